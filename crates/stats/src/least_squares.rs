//! Robust non-linear least squares for a handful of parameters (Levenberg 1944, Marquardt 1963).
//!
//! Loss: soft L1, `f^2 (sqrt(1 + (r/f)^2) - 1) * 2`, as scipy's `soft_l1`: quadratic for residuals below `f`, linear beyond,
//! so that a few bad cells do not decide. Derivatives are central differences: the models here are cheap.

// How the search goes, and not where it ends: where the models of this crate converge, these change the time. All are guesses
// that work (tests of the fits, and METHODOLOGY's tables, would show one that does not).

/// Damping at the start, and its least (Marquardt 1963 starts at 1e-2).
const DAMPING: f64 = 1e-2;
const LEAST_DAMPING: f64 = 1e-12;
/// Damping after a step that helped, one that did not, and one that could not be made, as factors.
const AFTER_GAIN: f64 = 0.3;
const AFTER_LOSS: f64 = 4.0;
const AFTER_SINGULAR: f64 = 10.0;
/// Dampings that are tried of one step.
const TRIES: usize = 12;
/// The longest step in a parameter; they are logarithms, so a factor of seven.
const LONGEST_STEP: f64 = 2.0;
/// Part of a parameter by which it is moved for its derivative: near the cube root of the rounding, as central differences want.
const DIFFERENCE: f64 = 1e-5;
/// A gain of less than this part of the cost ends the search.
const LEAST_GAIN: f64 = 1e-10;
/// Against a division by nothing.
const TINY_COST: f64 = 1e-12;
const TINY_CURVATURE: f64 = 1e-9;
const TINY_PIVOT: f64 = 1e-300;

/// Where the search ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// The parameters, as the start had them: logarithms in the models of this crate.
    pub x: Vec<f64>,
    /// Half the sum of losses: a log-likelihood when residuals are in units of their standard deviation.
    pub cost: f64,
}

/// How far a search goes, and what outliers may do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FitSettings {
    /// Residual beyond which the loss is linear; infinite: plain least squares.
    pub soft: f64,
    /// Steps after which it ends, converged or not.
    pub max_steps: usize,
}

/// Minimises over `x`, each clamped to its `[low, high]`, from `start`. `residuals` fills its second argument.
pub fn minimise(
    start: &[f64],
    bounds: &[(f64, f64)],
    n: usize,
    settings: FitSettings,
    residuals: impl Fn(&[f64], &mut [f64]),
) -> Solution {
    let k = start.len();
    let clamp = |x: &mut [f64]| x.iter_mut().zip(bounds).for_each(|(v, b)| *v = v.clamp(b.0, b.1));
    let mut x = start.to_vec();
    clamp(&mut x);
    let mut r = vec![0.0; n];
    residuals(&x, &mut r);
    let mut cost = total(&r, settings.soft);
    let mut lambda = DAMPING;
    let mut jac = vec![0.0; n * k];
    let (mut up, mut down, mut trial_r) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
    for _ in 0..settings.max_steps {
        for j in 0..k {
            let h = DIFFERENCE * x[j].abs().max(1.0);
            let mut y = x.clone();
            y[j] = x[j] + h;
            residuals(&y, &mut up);
            y[j] = x[j] - h;
            residuals(&y, &mut down);
            for i in 0..n {
                jac[i * k + j] = (up[i] - down[i]) / (2.0 * h);
            }
        }
        let (a, g) = normal_equations(&jac, &r, k, settings.soft);
        let mut moved = false;
        for _ in 0..TRIES {
            let mut m = a.clone();
            for j in 0..k {
                m[j * k + j] += lambda * (a[j * k + j] + TINY_CURVATURE);
            }
            let Some(step) = solve(m, g.clone(), k) else {
                lambda *= AFTER_SINGULAR;
                continue;
            };
            let mut y: Vec<f64> =
                x.iter().zip(&step).map(|(v, d)| v - d.clamp(-LONGEST_STEP, LONGEST_STEP)).collect();
            clamp(&mut y);
            residuals(&y, &mut trial_r);
            let c = total(&trial_r, settings.soft);
            if c < cost {
                let gain = cost - c;
                x = y;
                r.copy_from_slice(&trial_r);
                cost = c;
                lambda = (lambda * AFTER_GAIN).max(LEAST_DAMPING);
                moved = gain > LEAST_GAIN * (cost + TINY_COST);
                break;
            }
            lambda *= AFTER_LOSS;
        }
        if !moved {
            break;
        }
    }
    Solution { x, cost }
}

fn total(r: &[f64], soft: f64) -> f64 {
    let sum: f64 = r.iter().map(|v| loss(*v, soft)).sum();
    if sum.is_finite() { 0.5 * sum } else { f64::INFINITY }
}

fn loss(r: f64, soft: f64) -> f64 {
    if soft.is_infinite() { r * r } else { 2.0 * soft * soft * ((1.0 + (r / soft).powi(2)).sqrt() - 1.0) }
}

/// Weighted normal equations: each residual counts by the slope of its loss.
fn normal_equations(jac: &[f64], r: &[f64], k: usize, soft: f64) -> (Vec<f64>, Vec<f64>) {
    let (mut a, mut g) = (vec![0.0; k * k], vec![0.0; k]);
    for (i, ri) in r.iter().enumerate() {
        let w = if soft.is_infinite() { 1.0 } else { 1.0 / (1.0 + (ri / soft).powi(2)).sqrt() };
        let row = &jac[i * k..(i + 1) * k];
        for p in 0..k {
            g[p] += w * row[p] * ri;
            for q in 0..k {
                a[p * k + q] += w * row[p] * row[q];
            }
        }
    }
    (a, g)
}

/// Solves `m x = b` for a `k` by `k` matrix, row by row, by Gaussian elimination with pivoting; `None` when singular.
pub fn solve(mut m: Vec<f64>, mut b: Vec<f64>, k: usize) -> Option<Vec<f64>> {
    for c in 0..k {
        let p = (c..k).max_by(|&i, &j| m[i * k + c].abs().total_cmp(&m[j * k + c].abs()))?;
        if m[p * k + c].abs() < TINY_PIVOT || !m[p * k + c].is_finite() {
            return None;
        }
        if p != c {
            for j in 0..k {
                m.swap(c * k + j, p * k + j);
            }
            b.swap(c, p);
        }
        for i in c + 1..k {
            let f = m[i * k + c] / m[c * k + c];
            for j in c..k {
                m[i * k + j] -= f * m[c * k + j];
            }
            b[i] -= f * b[c];
        }
    }
    for c in (0..k).rev() {
        let s: f64 = (c + 1..k).map(|j| m[c * k + j] * b[j]).sum();
        b[c] = (b[c] - s) / m[c * k + c];
    }
    b.iter().all(|v| v.is_finite()).then_some(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fits_an_exponential_through_an_outlier() {
        let t: Vec<f64> = (0..20).map(f64::from).collect();
        let y: Vec<f64> = t.iter().map(|t| if *t == 7.0 { 9.0 } else { 2.0 * (-0.3 * t).exp() }).collect();
        let s = minimise(
            &[0.0, -1.0],
            &[(-10.0, 10.0), (-10.0, 10.0)],
            20,
            FitSettings { soft: 2.0, max_steps: 80 },
            |x, r| {
                for i in 0..20 {
                    r[i] = (x[0].exp() * (-x[1].exp() * t[i]).exp() - y[i]) / 0.01;
                }
            },
        );
        assert!((s.x[0].exp() - 2.0).abs() < 0.01 && (s.x[1].exp() - 0.3).abs() < 0.01, "{s:?}");
    }

    #[test]
    fn singular_systems_end() {
        let s = minimise(
            &[1.0, 1.0],
            &[(-1.0, 2.0), (-1.0, 2.0)],
            3,
            FitSettings { soft: f64::INFINITY, max_steps: 9 },
            |_, r| {
                r.fill(1.0);
            },
        );
        assert_eq!(s.x, vec![1.0, 1.0]);
        assert!(solve(vec![1.0, 1.0, 1.0, 1.0], vec![1.0, 1.0], 2).is_none());
    }
}
