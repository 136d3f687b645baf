//! Keys of the storage for agents that have none: sent only where it was asked for, to each agent sealed for itself, and told.

use plimsoll_bus::sealed::is_vouched;
use plimsoll_crew::CrewError;
use plimsoll_model::{Event, Finding, Level, Plan};
use plimsoll_setup::Interrupt;

use super::ask::Barrier;
use super::link::OpenLink;
use super::recruit::{Fleet, OthersBroker};
use super::roll_call::Present;
use crate::wire::entrusted::Entrusted;
use crate::wire::order::Assignment;

impl Fleet {
    /// Sends them; the finding says so. Nothing is sent where one agent would not take them, or may be a stranger.
    pub(super) fn entrust(
        &self,
        open: &OpenLink,
        plan: &Plan,
        chosen: &[Present],
        run: &str,
        interrupt: &Interrupt,
        events: &mut dyn FnMut(Event),
    ) -> Result<Option<Finding>, CrewError> {
        let entrusted = Entrusted::of_here(plan).map_err(CrewError::from)?;
        if entrusted.is_empty() {
            return Ok(None);
        }
        let jobs = chosen.iter().map(|p| {
            let key = self.key_of(p)?;
            let unusable =
                || CrewError::input(format!("agent {}: its key is none", p.name), "Start it again");
            let sealed = entrusted.sealed(key, run, &p.session).ok_or_else(unusable)?;
            Ok(Assignment::Entrust { sealed })
        });
        let jobs = jobs.collect::<Result<Vec<_>, CrewError>>()?.into_iter().enumerate().collect();
        open.link.ask_each(jobs, Barrier::new("sending credentials", interrupt, events))?;
        let s = if chosen.len() == 1 { "" } else { "s" };
        let text = format!("Credentials were sent to {} agent{s}, sealed to each.", chosen.len());
        events(Event::Message(text.trim_end_matches('.').to_owned()));
        Ok(Some(Finding::new("Q16", "credentials_sent", Level::Info, text)))
    }

    fn key_of<'a>(&self, agent: &'a Present) -> Result<&'a str, CrewError> {
        let name = &agent.name;
        let Some(told) = &agent.here.sealing else {
            return Err(CrewError::input(
                format!("agent {name} takes no credentials"),
                "Start it without --refuse-credentials, leave it out (--agents), or leave --send-credentials out",
            ));
        };
        let is_known =
            |b: &OthersBroker| is_vouched(&b.secret, name, &agent.session, &told.key, &told.voucher);
        if self.options().broker.as_ref().is_none_or(is_known) {
            return Ok(&told.key);
        }
        Err(CrewError::input(
            format!("agent {name} does not hold this fleet's token, and may be anybody"),
            "Nothing was sent. Start the agent with the token of `plimsoll fleet token`",
        ))
    }
}

impl OthersBroker {
    /// What a result says of it.
    pub(super) fn remark(&self) -> Finding {
        let plain = if self.is_encrypted { "" } else { ", without encryption" };
        Finding::new(
            "Q17",
            "broker_of_others",
            Level::Info,
            format!(
                "The fleet met on a broker that was there before ({}{plain}): who else may listen and speak there is what its \
                 owner set.",
                self.url
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plimsoll_bus::sealed::{SealingKey, voucher};
    use plimsoll_bus::subjects::Subjects;
    use plimsoll_bus::token::Secret;
    use plimsoll_bus::{Identity, MemoryBus};

    use super::*;
    use crate::conductor::FleetOptions;
    use crate::wire::tell::SealingTold;

    #[test]
    fn keys_go_to_who_takes_them_and_holds_the_token() {
        let fleet = |broker| {
            let options = FleetOptions { broker, ..FleetOptions::default() };
            let (bus, subjects) = (Arc::new(MemoryBus::default()), Subjects::of("test").unwrap());
            Fleet::new(bus, subjects, Identity::random(), options)
        };
        let of_others =
            || OthersBroker { url: "tls://b".into(), is_encrypted: true, secret: Secret([1; 32]) };
        let key = SealingKey::random().unwrap().public();
        let agent = |secret| {
            let mut agent = Present::for_tests("lg-1", "a", None);
            let voucher = voucher(&Secret(secret), "lg-1", &agent.session, &key);
            agent.here.sealing = Some(SealingTold { key: key.clone(), voucher });
            agent
        };
        assert_eq!(fleet(Some(of_others())).key_of(&agent([1; 32])).unwrap(), key);
        let stranger = fleet(Some(of_others())).key_of(&agent([2; 32])).unwrap_err().to_string();
        assert!(stranger.contains("agent lg-1 does not hold this fleet's token"), "{stranger}");
        // On its own broker nobody speaks under another's name, and tokens are renewed.
        assert_eq!(fleet(None).key_of(&agent([2; 32])).unwrap(), key);
        let refuses = fleet(None).key_of(&Present::for_tests("lg-1", "a", None)).unwrap_err().to_string();
        assert!(refuses.contains("agent lg-1 takes no credentials"), "{refuses}");
    }
}
