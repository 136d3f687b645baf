//! How many of something, in words: `1 run`, `3 runs`.

/// With the thing's name, which is given in the singular and has a regular plural.
pub fn counted(n: impl TryInto<u64>, one: &str) -> String {
    let n = n.try_into().unwrap_or(u64::MAX);
    let many = if n == 1 { "" } else { "s" };
    format!("{n} {one}{many}")
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
    }
}
