//! What an op of a size between the two that were probed costs: which law the sizes in between follow.

use super::questions::APART;

/// What an op of a size in between costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cost {
    /// The lower of the two caps: limiters that do not know of each other.
    OpsAndBytes,
    /// One resource, used by each op and by each byte.
    Shared,
    /// One op for each started unit of so many bytes.
    Units(f64),
    /// None of these: predicted and measured ops per second differ by this ratio.
    Other(f64),
}

/// Units by which limiters are known to count.
const UNITS: [f64; 6] = [4096.0, 16384.0, 65536.0, 131_072.0, 262_144.0, 1_048_576.0];

/// Which law of cost the sizes in between follow.
pub(super) fn cost(seen: &[(u64, f64)], ops: f64, bytes: f64) -> Option<Cost> {
    if seen.is_empty() {
        return None;
    }
    let fits = |law: &dyn Fn(f64) -> f64| seen.iter().all(|(s, x)| (x / law(*s as f64) - 1.0).abs() <= APART);
    let lower = |s: f64| ops.min(bytes / s);
    if fits(&lower) {
        return Some(Cost::OpsAndBytes);
    }
    if fits(&|s| 1.0 / (1.0 / ops + s / bytes)) {
        return Some(Cost::Shared);
    }
    let unit = UNITS
        .into_iter()
        .find(|u| (bytes / (u * ops) - 1.0).abs() <= APART && fits(&|s| ops / (s / u).ceil()));
    let worst = seen
        .iter()
        .map(|(s, x)| x / lower(*s as f64))
        .fold(1.0, |a: f64, b| if (b - 1.0).abs() > (a - 1.0).abs() { b } else { a });
    Some(unit.map_or(Cost::Other(worst), Cost::Units))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_of_cost_are_told_apart() {
        let (ops, bytes) = (1000.0, 65_536_000.0);
        let knee = 65_536;
        let at = |law: &dyn Fn(f64) -> f64| {
            cost(&[knee, knee * 3 / 2].map(|s| (s, law(s as f64))), ops, bytes).unwrap()
        };
        assert_eq!(at(&|s| ops.min(bytes / s)), Cost::OpsAndBytes);
        assert_eq!(at(&|s| 1.0 / (1.0 / ops + s / bytes)), Cost::Shared);
        assert_eq!(at(&|s| ops / (s / 65_536.0).ceil()), Cost::Units(65_536.0));
        assert!(matches!(at(&|_| 300.0), Cost::Other(r) if r < 0.5));
        assert_eq!(cost(&[], ops, bytes), None);
    }
}
