//! What may be said of a run: its summary and analysis become a list of claims (`derive`), these become words (`words`), and
//! the paragraph is the words in order. Nothing is said that is no claim.
//!
//! How to add one: see `plimsoll_model::claim`.

mod contradictions;
mod derive;
mod imported;
mod limits;
mod lines;
mod next;
mod search;
mod words;

pub use contradictions::contradictions;
pub use derive::derive;
pub use lines::is_of_a_server_that_was_away;
pub use next::{MAY_BE_DOWN, SERVERS_LIMIT, THROTTLED_TO_NOTHING};

use plimsoll_model::{Claim, ClaimKind};

/// How long a load has to be seen before its rate may be called sustained, where the user names no horizon, seconds.
pub const DEFAULT_GOAL_S: f64 = 600.0;

/// A limit that was found by elimination does not stand against the counters: where attempts were refused there is a limiter.
pub fn bind_to_counters(s: &mut plimsoll_model::RunSummary) {
    let refused = lines::attempts_of(s, "total").1;
    for l in &mut s.limits {
        if refused > 0 && matches!(l.binding.as_str(), "none" | "latency" | "client") {
            l.binding = "undetermined".into();
            l.evidence.push(("refused attempts".into(), refused.to_string()));
        }
    }
}

/// Lines that the paragraph names; the table has the others.
const NAMED: usize = 3;

/// The paragraph that a person reads.
pub fn paragraph(claims: &[Claim]) -> String {
    let is_of_line = |c: &&Claim| match &c.kind {
        ClaimKind::Rate(_) | ClaimKind::VoidLine(_) => true,
        ClaimKind::Undetermined(u) => u.what.starts_with(lines::RATE_OF),
        ClaimKind::Fact(f) => imported::is_figure(f),
        _ => false,
    };
    let lines = claims.iter().filter(is_of_line).count();
    let mut said: Vec<String> = Vec::new();
    let mut named = 0;
    for c in claims {
        if is_of_line(&c) {
            named += 1;
            match named {
                0..=NAMED => {}
                n if n == lines => {
                    said.push(format!("{} more in the table.", lines - NAMED));
                    continue;
                }
                _ => continue,
            }
        }
        said.push(c.text.clone());
    }
    said.retain(|t| !t.is_empty());
    said.join(" ")
}

#[cfg(test)]
mod tests;
