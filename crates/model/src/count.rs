//! How many of something, in words: `1 run`, `3 runs`.

/// With the thing's name, which is given in the singular and has a regular plural.
pub fn counted(n: impl TryInto<u64>, one: &str) -> String {
    let n = n.try_into().unwrap_or(u64::MAX);
    let many = if n == 1 { "" } else { "s" };
    format!("{n} {one}{many}")
}

/// Of two groups: `3 and 5 runs`, `1 run and 3 runs`.
pub fn both_counted(a: impl TryInto<u64>, b: impl TryInto<u64>, one: &str) -> String {
    let of = |n: Option<u64>| n.unwrap_or(u64::MAX);
    match (of(a.try_into().ok()), of(b.try_into().ok())) {
        (a, b) if a == 1 || b == 1 => format!("{} and {}", counted(a, one), counted(b, one)),
        (a, b) => format!("{a} and {b} {one}s"),
    }
}

/// The verb that goes with it: `is`, `are`.
pub fn are(n: impl TryInto<u64>) -> &'static str {
    if n.try_into().is_ok_and(|n| n == 1) { "is" } else { "are" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_all_else_is_not() {
        let of = |n: u64| format!("{} {} to go", counted(n, "run"), are(n));
        assert_eq!([of(0), of(1), of(2)], ["0 runs are to go", "1 run is to go", "2 runs are to go"]);
        assert_eq!(counted(1234_u32, "cell"), "1234 cells");
        let both = |a: u32, b: u32| both_counted(a, b, "run");
        assert_eq!(
            [both(3, 5), both(1, 3), both(1, 1)],
            ["3 and 5 runs", "1 run and 3 runs", "1 run and 1 run"]
        );
    }
}
