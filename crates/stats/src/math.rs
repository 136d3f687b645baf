//! The small sums that every method uses: means, variances, order statistics, least squares.
//! All take slices of finite numbers; an empty slice gives 0, never NaN.

/// Arithmetic mean; 0 when empty.
pub fn mean(x: &[f64]) -> f64 {
    if x.is_empty() { 0.0 } else { x.iter().sum::<f64>() / x.len() as f64 }
}

/// Variance with divisor `n - ddof`; 0 when there are too few values.
pub fn variance(x: &[f64], ddof: usize) -> f64 {
    if x.len() <= ddof {
        return 0.0;
    }
    let m = mean(x);
    x.iter().map(|v| (v - m) * (v - m)).sum::<f64>() / (x.len() - ddof) as f64
}

/// Standard deviation with divisor `n - ddof`.
pub fn stdev(x: &[f64], ddof: usize) -> f64 {
    variance(x, ddof).sqrt()
}

/// Quantile by linear interpolation between order statistics (Hyndman and Fan's type 7); 0 when empty.
pub fn quantile(x: &[f64], q: f64) -> f64 {
    let mut v = x.to_vec();
    v.sort_unstable_by(f64::total_cmp);
    quantile_sorted(&v, q)
}

/// [`quantile`] of values that are already in order.
pub fn quantile_sorted(v: &[f64], q: f64) -> f64 {
    if v.is_empty() {
        return 0.0;
    }
    let at = q.clamp(0.0, 1.0) * (v.len() - 1) as f64;
    let i = at.floor() as usize;
    let j = (i + 1).min(v.len() - 1);
    v[i] + (v[j] - v[i]) * (at - i as f64)
}

/// Median; 0 when empty.
pub fn median(x: &[f64]) -> f64 {
    let n = x.len();
    if n == 0 {
        return 0.0;
    }
    let mut v = x.to_vec();
    let (low, &mut mid, _) = v.select_nth_unstable_by(n / 2, f64::total_cmp);
    if n % 2 == 1 {
        return mid;
    }
    let below = low.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (below + mid) / 2.0
}

/// Median absolute deviation times 1.4826: the standard deviation of normal data, robust to outliers.
pub fn mad_sd(x: &[f64]) -> f64 {
    let m = median(x);
    let d: Vec<f64> = x.iter().map(|v| (v - m).abs()).collect();
    1.4826 * median(&d)
}

/// The same around zero: for residuals, whose centre is known.
pub fn mad_sd_about_zero(x: &[f64]) -> f64 {
    let d: Vec<f64> = x.iter().map(|v| v.abs()).collect();
    1.4826 * median(&d)
}

/// Means of `batches` equal batches, taken from the end (the remainder at the start is left out).
pub fn batch_means(x: &[f64], batches: usize) -> Vec<f64> {
    if batches == 0 || x.len() < batches {
        return Vec::new();
    }
    let k = x.len() / batches;
    x[x.len() - batches * k..].chunks_exact(k).map(mean).collect()
}

/// Means of whole bins of `k` samples from the start (the remainder at the end is left out).
pub fn bin_means(x: &[f64], k: usize) -> Vec<f64> {
    x.chunks_exact(k.max(1)).map(mean).collect()
}

/// Slope and intercept of the least-squares line through `(i, y[i])`; a flat line for fewer than two values.
pub fn line(y: &[f64]) -> (f64, f64) {
    let n = y.len() as f64;
    if y.len() < 2 {
        return (0.0, mean(y));
    }
    let t0 = (n - 1.0) / 2.0;
    let m = mean(y);
    let (mut sty, mut stt) = (0.0, 0.0);
    for (i, v) in y.iter().enumerate() {
        let t = i as f64 - t0;
        sty += t * (v - m);
        stt += t * t;
    }
    let slope = sty / stt;
    (slope, m - slope * t0)
}

/// Cumulative sum times `dt`, starting with 0: work done up to each edge of the grid.
pub fn cumulative(x: &[f64], dt: f64) -> Vec<f64> {
    let mut out = Vec::with_capacity(x.len() + 1);
    let mut sum = 0.0;
    out.push(0.0);
    for v in x {
        sum += v * dt;
        out.push(sum);
    }
    out
}

/// Whether every value is a finite, non-negative number: what a series of rates or counts has to be.
pub fn is_series(x: &[f64]) -> bool {
    x.iter().all(|v| v.is_finite() && *v >= 0.0)
}

/// Spearman's rank correlation; 0 for fewer than three pairs or when one side is constant.
pub fn spearman(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len().min(b.len());
    if n < 3 {
        return 0.0;
    }
    pearson(&ranks(&a[..n]), &ranks(&b[..n]))
}

/// Pearson's correlation; 0 when one side is constant.
pub fn pearson(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len().min(b.len());
    let (ma, mb) = (mean(&a[..n]), mean(&b[..n]));
    let (mut sab, mut saa, mut sbb) = (0.0, 0.0, 0.0);
    for (x, y) in a.iter().zip(b) {
        sab += (x - ma) * (y - mb);
        saa += (x - ma) * (x - ma);
        sbb += (y - mb) * (y - mb);
    }
    if saa <= 0.0 || sbb <= 0.0 { 0.0 } else { sab / (saa * sbb).sqrt() }
}

/// Ranks from 1, ties sharing their mean rank.
fn ranks(x: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..x.len()).collect();
    order.sort_by(|&i, &j| x[i].total_cmp(&x[j]));
    let mut out = vec![0.0; x.len()];
    let mut i = 0;
    while i < order.len() {
        let mut j = i;
        while j + 1 < order.len() && x[order[j + 1]] == x[order[i]] {
            j += 1;
        }
        let rank = (i + j) as f64 / 2.0 + 1.0;
        for &k in &order[i..=j] {
            out[k] = rank;
        }
        i = j + 1;
    }
    out
}

/// Positive values, in order: of those nearer than a factor of `apart` the first, and no more than so many (two and more), evenly over what
/// there is.
pub(crate) fn distinct(mut values: Vec<f64>, apart: f64, most: usize) -> Vec<f64> {
    values.retain(|v| v.is_finite() && *v > 0.0);
    values.sort_by(f64::total_cmp);
    values.dedup_by(|a, b| *a < apart * *b);
    evenly(values, most)
}

/// No more than so many (two and more), evenly over all of them, with the first and the last.
pub(crate) fn evenly(values: Vec<f64>, most: usize) -> Vec<f64> {
    let n = values.len();
    if n <= most {
        return values;
    }
    (0..most).map(|i| values[i * (n - 1) / (most - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_statistics_are_numpys() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0], 0.75), 3.25);
        assert_eq!(median(&[]), 0.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }

    #[test]
    fn lines_and_batches() {
        let (s, c) = line(&[1.0, 3.0, 5.0, 7.0]);
        assert!((s - 2.0).abs() < 1e-12 && (c - 1.0).abs() < 1e-12);
        assert_eq!(batch_means(&[9.0, 1.0, 3.0, 5.0, 7.0], 2), vec![2.0, 6.0]);
        assert_eq!(bin_means(&[1.0, 3.0, 5.0, 7.0, 9.0], 2), vec![2.0, 6.0]);
        assert!(batch_means(&[1.0], 2).is_empty());
    }

    #[test]
    fn rank_correlation() {
        assert!((spearman(&[1.0, 2.0, 3.0, 4.0], &[10.0, 20.0, 30.0, 40.0]) - 1.0).abs() < 1e-12);
        assert!((spearman(&[1.0, 2.0, 3.0, 4.0], &[4.0, 3.0, 2.0, 1.0]) + 1.0).abs() < 1e-12);
        assert_eq!(spearman(&[1.0, 2.0, 3.0], &[5.0, 5.0, 5.0]), 0.0);
    }
}
