//! What cluster is asked for, and under which name.

use plimsoll_model::plan::EmbeddedCluster;
use plimsoll_setup::SetupError;

/// Names become parts of names of interfaces, which have 15 characters.
const LONGEST_NAME: usize = 8;

/// A cluster to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterSpec {
    /// By which it is told from others on this machine.
    pub name: String,
    /// As a plan has it.
    pub made: EmbeddedCluster,
}

impl ClusterSpec {
    /// What it cannot be, with the flag that says so.
    pub fn check(&self) -> Result<(), SetupError> {
        check_name(&self.name)?;
        self.made.check().map_err(|p| {
            let flag = p.field.replace('_', "-");
            SetupError::input(format!("--{flag}: {}", p.problem), p.remedy.trim_end_matches('.'))
        })
    }
}

/// Whether a name can be one.
pub fn check_name(name: &str) -> Result<(), SetupError> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(fits) {
        return Ok(());
    }
    Err(SetupError::input(
        format!("'{}' cannot be a cluster's name", plimsoll_model::text::clean(name)),
        format!("It becomes part of names of interfaces: 1 to {LONGEST_NAME} of a-z and 0-9"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused_with_its_flag() {
        let said = |name: &str, made: EmbeddedCluster| {
            ClusterSpec { name: name.into(), made }.check().unwrap_err().to_string()
        };
        assert!(said("Box/../x", EmbeddedCluster::default()).contains("a-z"));
        let slow =
            EmbeddedCluster { drive_limit: Some("1B/s".parse().unwrap()), ..EmbeddedCluster::default() };
        assert!(said("box", slow).starts_with("--drive-limit: "));
    }
}
