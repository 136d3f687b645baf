//! Who is in: keys and names, and the questions that were asked before. Pure; what the broker knows of connections is asked of it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::home::Door;
use crate::Speaks;
use crate::enrol::{NONCE_BYTES, Question};
use crate::subjects::Subjects;
use crate::token::Secret;

/// So many agents are in at most: the broker reads all their keys at each change.
const MOST_AGENTS: usize = 10_000;
/// So many questions are remembered. Beyond it nobody gets in until the door is renewed: better than to forget one.
const MOST_NONCES: usize = 1_000_000;

/// The agents that were let in, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roster {
    /// Name to key.
    pub agents: BTreeMap<String, String>,
    /// Questions that were answered, whatever the answer.
    #[serde(skip)]
    asked: BTreeSet<[u8; NONCE_BYTES]>,
}

impl Roster {
    /// Whether this question lets its key in, at `now_s`; if not, why, in words for the newcomer. `connected` knows which keys have a
    /// connection: the name of an agent that is gone is free. `ours` is what agents have to speak. `own` are the keys of the fleet itself, which no agent may have: the broker
    /// takes no configuration in which a key stands twice.
    pub fn admit(
        &mut self,
        question: &Question,
        subjects: &Subjects,
        (door, ours): (&Door, &Speaks),
        own: &[String],
        now_s: u64,
        connected: impl Fn(&str) -> bool,
    ) -> Result<(), String> {
        if now_s >= door.expires_s {
            return Err("the token has expired: take the token of `plimsoll fleet token`".to_owned());
        }
        question.check(subjects.fleet(), &Secret(door.secret), ours)?;
        if own.contains(&question.key) {
            return Err("its key is one of the fleet's own: an agent makes its own key".to_owned());
        }
        if self.asked.len() >= MOST_NONCES {
            return Err(
                "too many have asked: renew the token with `plimsoll fleet token --for 1h`".to_owned()
            );
        }
        if !question.nonce_bytes().is_some_and(|nonce| self.asked.insert(nonce)) {
            return Err("this was asked before: a replayed enrolment lets nobody in".to_owned());
        }
        self.place(question, connected)
    }

    fn place(&mut self, question: &Question, connected: impl Fn(&str) -> bool) -> Result<(), String> {
        let named = self.agents.iter().find(|(_, key)| **key == question.key).map(|(name, _)| name);
        if let Some(name) = named.filter(|name| **name != question.name) {
            return Err(format!("its key is in already, as {name}"));
        }
        match self.agents.get(&question.name) {
            Some(key) if *key == question.key => return Ok(()),
            Some(key) if connected(key) => {
                return Err(format!(
                    "another agent is connected under the name {}: give --name",
                    question.name
                ));
            }
            None if self.agents.len() >= MOST_AGENTS => {
                return Err(format!("{MOST_AGENTS} agents are in already"));
            }
            _ => {}
        }
        self.agents.insert(question.name.clone(), question.key.clone());
        Ok(())
    }

    /// A new door has a new secret, under which no old question holds.
    pub fn forget_questions(&mut self) {
        self.asked.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Identity;

    const DOOR: Door = Door { secret: [5; 32], expires_s: 1_000 };

    fn ask(identity: &Identity, name: &str) -> Question {
        Question::new("demo", &Secret(DOOR.secret), identity, name).unwrap()
    }

    fn admit(roster: &mut Roster, question: &Question, connected: bool) -> Result<(), String> {
        roster.admit(question, &Subjects::of("demo").unwrap(), (&DOOR, &Speaks::default()), &[], 999, |_| {
            connected
        })
    }

    #[test]
    fn a_name_is_one_agents_while_that_one_is_there() {
        let mut roster = Roster::default();
        let (one, two) = (Identity::random(), Identity::random());
        admit(&mut roster, &ask(&one, "lg-1"), false).unwrap();
        let e = admit(&mut roster, &ask(&two, "lg-1"), true).unwrap_err();
        assert!(e.contains("another agent is connected under the name lg-1"), "{e}");
        assert_eq!(roster.agents["lg-1"], one.public());
        admit(&mut roster, &ask(&one, "lg-1"), true).unwrap();
        admit(&mut roster, &ask(&two, "lg-1"), false).unwrap();
        assert_eq!(roster.agents["lg-1"], two.public());
        assert!(admit(&mut roster, &ask(&two, "lg-2"), false).unwrap_err().contains("as lg-1"));
    }

    #[test]
    fn replayed_and_late_questions_let_nobody_in() {
        let mut roster = Roster::default();
        let question = ask(&Identity::random(), "lg-1");
        let late = roster.admit(
            &question,
            &Subjects::of("demo").unwrap(),
            (&DOOR, &Speaks::default()),
            &[],
            1_000,
            |_| false,
        );
        assert!(late.unwrap_err().contains("expired"));
        admit(&mut roster, &question, false).unwrap();
        roster.agents.clear();
        assert!(admit(&mut roster, &question, false).unwrap_err().contains("replayed"));
        assert!(roster.agents.is_empty());
    }

    #[test]
    fn the_fleets_own_keys_are_no_agents() {
        let mut roster = Roster::default();
        let ours = Identity::random();
        let (subjects, own) = (Subjects::of("demo").unwrap(), [ours.public()]);
        let twin =
            roster.admit(&ask(&ours, "twin"), &subjects, (&DOOR, &Speaks::default()), &own, 999, |_| false);
        assert!(twin.unwrap_err().contains("one of the fleet's own"));
        assert_eq!(roster, Roster::default());
    }

    #[test]
    fn a_wrong_question_is_not_even_remembered() {
        let mut roster = Roster::default();
        let wrong = Question { name: "lg-2".into(), ..ask(&Identity::random(), "lg-1") };
        assert!(admit(&mut roster, &wrong, false).is_err());
        assert_eq!(roster, Roster::default());
    }
}
