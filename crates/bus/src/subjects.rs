//! Every subject of a fleet, and who may say and hear what there: made here and nowhere else, so that the two cannot differ.
//!
//! The last part of a subject names the one agent that it is to or from. So an agent's key opens its own subjects and no others.

use crate::BusError;

/// The subjects of one fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subjects {
    fleet: String,
}

/// What a user of the broker may do; all else is denied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Permissions {
    /// Subjects that it may publish under.
    pub publish: Vec<String>,
    /// Subjects that it may listen to.
    pub subscribe: Vec<String>,
}

impl Subjects {
    /// Of the fleet of this name, which is checked (see [`check_name`]).
    pub fn of(fleet: &str) -> Result<Self, BusError> {
        check_name("fleet", fleet)?;
        Ok(Self { fleet: fleet.to_owned() })
    }

    /// The fleet's name.
    pub fn fleet(&self) -> &str {
        &self.fleet
    }

    fn subject(&self, kind: &str, of: &str) -> String {
        format!("fleet.{}.{kind}.{of}", self.fleet)
    }

    /// What the conductor orders an agent.
    pub fn order(&self, agent: &str) -> String {
        self.subject("order", agent)
    }

    /// What the conductor asks of all agents: who is there?
    pub fn call(&self) -> String {
        self.subject("call", "all")
    }

    /// What an agent says of itself: answers, progress, its end.
    pub fn tell(&self, agent: &str) -> String {
        self.subject("tell", agent)
    }

    /// What an agent measured.
    pub fn frame(&self, agent: &str) -> String {
        self.subject("frame", agent)
    }

    /// The conductor's question for an agent's clock.
    pub fn clock(&self, agent: &str) -> String {
        self.subject("clock", agent)
    }

    /// The agent's answer to it.
    pub fn clock_echo(&self, agent: &str) -> String {
        self.subject("clockecho", agent)
    }

    /// What all agents say of themselves.
    pub fn tells(&self) -> String {
        self.tell("*")
    }

    /// What all agents measured.
    pub fn frames(&self) -> String {
        self.frame("*")
    }

    /// The answers of all clocks.
    pub fn clock_echoes(&self) -> String {
        self.clock_echo("*")
    }

    /// What the keeper says last: the fleet is over, and no agent need look for it any more.
    pub fn over(&self) -> String {
        self.subject("over", "all")
    }

    /// Where those who want to join ask for it.
    pub fn enrol(&self) -> String {
        self.subject("enrol", "keeper")
    }

    /// The keeper's answer to the holder of a key.
    pub fn enrolled(&self, key: &str) -> String {
        self.subject("enrolled", key)
    }

    /// What an agent may do: hear what is said to it or to all, and speak as itself.
    pub fn of_agent(&self, agent: &str) -> Permissions {
        Permissions {
            publish: vec![self.tell(agent), self.frame(agent), self.clock_echo(agent)],
            subscribe: vec![self.order(agent), self.clock(agent), self.call(), self.over()],
        }
    }

    /// What the conductor may do: the other side of all agents.
    pub fn of_conductor(&self) -> Permissions {
        Permissions {
            publish: vec![self.order("*"), self.clock("*"), self.call()],
            subscribe: vec![self.tells(), self.frames(), self.clock_echoes()],
        }
    }

    /// What whoever holds the token may do: ask to join, and hear the answers, in which there is no secret.
    pub fn of_newcomer(&self) -> Permissions {
        Permissions { publish: vec![self.enrol()], subscribe: vec![self.enrolled("*")] }
    }

    /// What the keeper may do: the other side of newcomers.
    pub fn of_keeper(&self) -> Permissions {
        Permissions { publish: vec![self.enrolled("*"), self.over()], subscribe: vec![self.enrol()] }
    }
}

/// What the holder of a key says to itself, and nobody else hears.
pub fn echo(key: &str) -> String {
    format!("echo.{key}")
}

/// The agent that a subject of a fleet is to or from: its last part.
pub fn agent_of(subject: &str) -> &str {
    subject.rsplit_once('.').map_or(subject, |(_, agent)| agent)
}

/// The longest name of a fleet or an agent.
pub const LONGEST_NAME: usize = 63;

/// A name of a `what` (fleet, agent): it becomes part of subjects, files and directories.
pub fn check_name(what: &str, name: &str) -> Result<(), BusError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let sound = !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(fits);
    if sound && !name.starts_with('-') {
        return Ok(());
    }
    // One that is far too long is not said back as a whole.
    let shown: String = name.chars().take(LONGEST_NAME + 1).collect();
    Err(BusError::refused(
        format!("{shown:?} cannot be the name of {} {what}", if what.starts_with('a') { "an" } else { "a" }),
        format!("Use 1 to {LONGEST_NAME} letters, digits, - and _, and no - at the start"),
    ))
}

/// A name for an agent from any text, such as a host's name: its first part, with what does not fit replaced.
pub fn name_from(text: &str) -> String {
    let first = text.split('.').next().unwrap_or_default();
    let fitting = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = first.chars().map(fitting).take(LONGEST_NAME).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "agent".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::{check_pattern, matches};

    fn may(allowed: &[String], subject: &str) -> bool {
        allowed.iter().any(|a| matches(a, subject))
    }

    #[test]
    fn an_agent_opens_its_own_subjects_only() {
        let subjects = Subjects::of("demo").unwrap();
        let one = subjects.of_agent("lg-1");
        for kind in [Subjects::order, Subjects::tell, Subjects::frame, Subjects::clock, Subjects::clock_echo]
        {
            assert!(!may(&one.publish, &kind(&subjects, "lg-2")));
            assert!(!may(&one.subscribe, &kind(&subjects, "lg-2")));
            assert_eq!(agent_of(&kind(&subjects, "lg-2")), "lg-2");
        }
        assert!(!may(&one.publish, &subjects.order("lg-1")), "it orders nobody, not even itself");
        assert!(!may(&one.publish, &subjects.call()) && !may(&one.publish, &subjects.over()));
        assert!(!may(&subjects.of_conductor().publish, &subjects.over()), "the keeper alone ends a fleet");
        assert!(one.publish.iter().chain(&one.subscribe).all(|s| !s.contains('*')));
    }

    #[test]
    fn what_one_side_says_the_other_may_hear() {
        let subjects = Subjects::of("demo").unwrap();
        // Agents hear the conductor and, at the end, the keeper; the keeper also hears newcomers.
        let over = Permissions { publish: vec![subjects.over()], subscribe: vec![] };
        let conducting = subjects.of_conductor();
        let all_that_agents_hear =
            Permissions { publish: [conducting.publish, over.publish].concat(), ..conducting };
        let mut keeper = subjects.of_keeper();
        keeper.publish.retain(|s| *s != subjects.over());
        let pairs = [(all_that_agents_hear, subjects.of_agent("lg-1")), (keeper, subjects.of_newcomer())];
        let heard = |said: &[String], heard: &[String]| {
            said.iter().all(|s| may(heard, &s.replace('*', "lg-1")) || heard.contains(s))
        };
        for (one, other) in pairs {
            assert!(heard(&other.publish, &one.subscribe), "{other:?}");
            assert!(heard(&one.subscribe, &other.publish), "{other:?}");
            for all in [&one, &other] {
                assert!(all.publish.iter().chain(&all.subscribe).all(|s| check_pattern(s).is_ok()));
            }
        }
        let newcomer = subjects.of_newcomer();
        assert!(!may(&newcomer.subscribe, &subjects.order("lg-1")));
        assert!(!may(&newcomer.publish, &subjects.tell("lg-1")));
    }

    #[test]
    fn names_are_parts_of_subjects() {
        for good in ["demo", "lg-1", "Node_7", &"a".repeat(63)] {
            check_name("agent", good).unwrap();
        }
        for bad in ["", "a.b", "*", ">", "a b", "-a", "ä", "../x", &"a".repeat(64)] {
            assert!(Subjects::of(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn any_host_gets_a_name() {
        let names = ["node1.example.net", "load gen", "", "--", "ä.b", ".x"].map(name_from);
        assert_eq!(names, ["node1", "load-gen", "agent", "agent", "agent", "agent"]);
        names.iter().for_each(|n| check_name("agent", n).unwrap());
    }
}
