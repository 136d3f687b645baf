//! The command that repeats a run: what was typed, with what was not typed but mattered.

use plimsoll_model::Plan;
use plimsoll_model::plan::TargetSpec;

/// `typed` without the program's name; the seed and an endpoint from the environment are added.
pub fn command(typed: &[String], plan: &Plan) -> String {
    let mut words: Vec<String> = vec!["plimsoll".into()];
    // Who looked on is no part of the measurement.
    words.extend(typed.iter().filter(|w| !w.starts_with("--live")).map(|w| quoted(w)));
    let given = |flag: &str| typed.iter().any(|w| w == flag || w.starts_with(&format!("{flag}=")));
    let from_plan = typed.first().is_some_and(|w| w == "run");
    // What it reads is the baseline's, and the order of reads is nobody's choice.
    if typed.first().is_some_and(|w| w == "check") {
        return words.join(" ");
    }
    if !given("--endpoint") && !from_plan {
        for target in plan.targets.values() {
            if let TargetSpec::S3(s3) = target {
                words.extend(s3.endpoints.iter().flat_map(|e| ["--endpoint".into(), quoted(e)]));
            }
        }
    }
    if !given("--seed") {
        words.push(format!("--seed {}", plan.seed));
    }
    words.join(" ")
}

/// A word as a POSIX shell reads it back.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_shell_reads_back_what_was_typed() {
        assert_eq!(quoted("--size"), "--size");
        assert_eq!(quoted("http://n{1...4}:9000"), "'http://n{1...4}:9000'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]
        #[test]
        fn any_word_survives_a_shell(word in "[^\u{0}]{0,12}") {
            let out = std::process::Command::new("sh").arg("-c").arg(format!("printf %s {}", quoted(&word))).output().unwrap();
            prop_assert_eq!(String::from_utf8_lossy(&out.stdout), word);
        }
    }
}
