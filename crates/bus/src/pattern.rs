//! Subjects and the patterns that match them: parts between points, `*` for one of them, a last `>` for all that follow.

use crate::BusError;

/// A subject to publish under: parts that are not empty, none of them a wildcard.
pub fn check_subject(subject: &str) -> Result<(), BusError> {
    let plain = |part: &str| sound(part) && part != "*" && part != ">";
    if subject.split('.').all(plain) { Ok(()) } else { Err(BusError::Subject(subject.to_owned())) }
}

/// A subject to listen under: `>` may only be its last part.
pub fn check_pattern(pattern: &str) -> Result<(), BusError> {
    let parts: Vec<&str> = pattern.split('.').collect();
    let inner_rest = parts[..parts.len() - 1].contains(&">");
    if parts.iter().all(|p| sound(p)) && !inner_rest {
        Ok(())
    } else {
        Err(BusError::Subject(pattern.to_owned()))
    }
}

fn sound(part: &str) -> bool {
    !part.is_empty() && !part.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Whether a message under `subject` is for who listens to `pattern`.
pub fn matches(pattern: &str, subject: &str) -> bool {
    let mut parts = subject.split('.');
    for wanted in pattern.split('.') {
        match (wanted, parts.next()) {
            (">", Some(_)) => return true,
            ("*", Some(_)) => {}
            (wanted, Some(part)) if wanted == part => {}
            _ => return false,
        }
    }
    parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stand_for_parts() {
        assert!(matches("a.b", "a.b"));
        assert!(matches("a.*", "a.b"));
        assert!(matches("a.>", "a.b.c"));
        assert!(matches("*.b.>", "a.b.c.d"));
        for (pattern, subject) in
            [("a.b", "a"), ("a", "a.b"), ("a.*", "a.b.c"), ("a.*", "a"), ("a.>", "a"), ("a.b", "a.c")]
        {
            assert!(!matches(pattern, subject), "{pattern} {subject}");
        }
    }

    #[test]
    fn what_is_no_subject_is_refused() {
        for subject in ["", "a..b", ".a", "a.", "a b", "a.*", "a.>", "a\n.b"] {
            assert!(check_subject(subject).is_err(), "{subject:?}");
        }
        for pattern in ["", "a..b", "a.>.b", ">.a", "a b"] {
            assert!(check_pattern(pattern).is_err(), "{pattern:?}");
        }
        check_subject("fleet.demo.order.lg-1").unwrap();
        check_pattern("fleet.*.order.>").unwrap();
        check_pattern(">").unwrap();
    }
}
