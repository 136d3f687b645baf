//! Who is connected, as the broker itself sees it (its system account): an agent that hangs is there, one that was killed is not.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::NatsBus;

const WAIT: Duration = Duration::from_secs(5);
/// More than there may be agents.
const MOST: u32 = 65_536;

/// One client of the broker.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Client {
    /// The public half of its key.
    #[serde(default, rename = "authorized_user")]
    pub key: String,
    /// From where it is connected.
    #[serde(default)]
    pub ip: String,
    /// The broker's last round trip to it, in the broker's words (`153µs`).
    #[serde(default)]
    pub rtt: String,
}

#[derive(Debug, Deserialize)]
struct Page<T> {
    data: T,
}

/// Of `CONNZ`.
#[derive(Debug, Deserialize)]
struct Clients {
    #[serde(default)]
    connections: Option<Vec<Client>>,
}

/// Of `VARZ`, in which `connections` is a number.
#[derive(Debug, Deserialize)]
struct Variables {
    config_load_time: String,
}

/// All clients by key; `None` where the broker does not answer.
pub fn clients(system: &NatsBus) -> Option<BTreeMap<String, Client>> {
    let question = format!(r#"{{"auth":true,"limit":{MOST}}}"#);
    let all = ask::<Clients>(system, "CONNZ", &question)?.connections.unwrap_or_default();
    Some(all.into_iter().map(|c| (c.key.clone(), c)).collect())
}

/// When the broker read its configuration last, in its words: another text is another time.
pub fn loaded(system: &NatsBus) -> Option<String> {
    ask::<Variables>(system, "VARZ", "{}").map(|d| d.config_load_time)
}

fn ask<T: DeserializeOwned>(system: &NatsBus, what: &str, question: &str) -> Option<T> {
    let answer = system.ask(&format!("$SYS.REQ.SERVER.PING.{what}"), question.as_bytes(), WAIT)?;
    serde_json::from_slice::<Page<T>>(&answer).ok().map(|page| page.data)
}
