//! Guards of a run (`--abort-if 'server.cpu > 90 % for 30s'`): what ends it, so that what is in use beside it is left alone.
//!
//! Form: `SUBJECT.MEASURE > VALUE [for TIME]`. `server.cpu`, `server.network`, `server.drive` and `server.memory` are parts of what any one
//! observed host has; `NAME.p99` (`p50`, `p90`, `p999`, `mean`, `max`) is the response of a workload or op of the plan, second by second.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::check::{PlanError, invalid};
use super::{ControllerSpec, Plan, Workload};
use crate::units::{self, Span};

const FORM: &str = "write it like 'server.cpu > 90 % for 30s' or 'other.p99 > 50ms'";
/// Guards of a plan.
const MOST: usize = 100;
/// A condition that has to hold for longer guards nothing.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Whose value is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuardSubject {
    /// Of each observed host by itself.
    Server(ServerGuard),
    /// The response of a workload's ops, or of all ops of a kind.
    Response(String, GuardQuantile),
}

/// What of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerGuard {
    /// All processors together, or a quota.
    Cpu,
    /// The fullest interface, in or out.
    Network,
    /// The fullest drive.
    Drive,
    /// What is not available of the memory.
    Memory,
}

impl ServerGuard {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Network => "network",
            Self::Drive => "drive",
            Self::Memory => "memory",
        }
    }

    /// All of them.
    pub const ALL: [Self; 4] = [Self::Cpu, Self::Network, Self::Drive, Self::Memory];
}

/// Which response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardQuantile {
    /// Of all.
    Mean,
    /// In parts of ten thousand: 9900 is p99.
    Quantile(u32),
    /// The longest.
    Max,
}

/// One guard.
#[derive(Debug, Clone, PartialEq)]
pub struct AbortGuard {
    /// As it was written.
    pub text: String,
    /// Whose value.
    pub subject: GuardSubject,
    /// It ends the run above this: a share, or nanoseconds.
    pub above: f64,
    /// And has to be above for so long without a pause.
    pub held: Duration,
}

impl fmt::Display for AbortGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl FromStr for AbortGuard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.chars().any(crate::text::is_harmful) || text.chars().count() > 200 {
            return Err(format!("it is no line of at most 200 printable characters; {FORM}"));
        }
        let (left, right) = text.split_once('>').ok_or_else(|| format!("'{text}' has no '>'; {FORM}"))?;
        let (name, measure) = left
            .trim()
            .rsplit_once('.')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| format!("'{}' is no SUBJECT.MEASURE; {FORM}", left.trim()))?;
        let (value, held) = match right.split_once(" for ") {
            Some((value, time)) => {
                let time = units::parse_duration(time.trim()).map_err(|e| format!("{e}; {FORM}"))?;
                (value.trim(), Some(time))
            }
            None => (right.trim(), None),
        };
        if held.is_some_and(|h| h > LONGEST) {
            return Err(format!("'{text}' waits for longer than a day; {FORM}"));
        }
        let (subject, above) = if name == "server" {
            let what = ServerGuard::ALL.into_iter().find(|s| s.name() == measure);
            let all = ServerGuard::ALL.map(|s| format!("server.{}", s.name())).join(", ");
            let what = what.ok_or_else(|| format!("'server.{measure}' is none of {all}"))?;
            (
                GuardSubject::Server(what),
                share(value).ok_or_else(|| {
                    format!("'{value}' is no part of a resource: write 90 % or 0.9; {FORM}")
                })?,
            )
        } else {
            let which = quantile(measure)
                .ok_or_else(|| format!("'{measure}' is none of p50, p90, p99, p999, mean, max; {FORM}"))?;
            let time = units::parse_duration(value).map_err(|e| format!("{e}; {FORM}"))?;
            if time.is_zero() {
                return Err(format!("'{text}' is above nothing; {FORM}"));
            }
            (GuardSubject::Response(name.to_owned(), which), time.as_nanos() as f64)
        };
        Ok(Self { text: text.to_owned(), subject, above, held: held.unwrap_or_default() })
    }
}

/// `90 %`, `0.9`: above 0, below 1.
fn share(text: &str) -> Option<f64> {
    let (number, factor) = text.strip_suffix('%').map_or((text, 1.0), |n| (n, 0.01));
    number.trim().parse::<f64>().ok().map(|v| v * factor).filter(|v| *v > 0.0 && *v < 1.0)
}

fn quantile(text: &str) -> Option<GuardQuantile> {
    Some(match text {
        "mean" => GuardQuantile::Mean,
        "max" => GuardQuantile::Max,
        "p50" => GuardQuantile::Quantile(5000),
        "p90" => GuardQuantile::Quantile(9000),
        "p99" => GuardQuantile::Quantile(9900),
        "p999" => GuardQuantile::Quantile(9990),
        _ => return None,
    })
}

impl Plan {
    /// Its guards. They were checked.
    pub fn guards(&self) -> Vec<AbortGuard> {
        self.options.abort_if.iter().filter_map(|t| t.parse().ok()).collect()
    }

    /// Refuses guards that can never see anything.
    pub(super) fn check_guards(&self) -> Result<(), PlanError> {
        const PLACE: &str = "options.abort_if";
        if self.options.abort_if.len() > MOST {
            return Err(invalid(PLACE, format!("has more than {MOST} entries"), "Write fewer."));
        }
        for text in &self.options.abort_if {
            let guard: AbortGuard = text.parse().map_err(|why: String| {
                invalid(PLACE, format!("'{}' cannot be read: {why}", crate::text::clean(text)), "Correct it.")
            })?;
            match &guard.subject {
                GuardSubject::Server(what) if self.options.observe.is_empty() => {
                    return Err(invalid(
                        PLACE,
                        format!("'{guard}' looks at server.{}, and no server is observed", what.name()),
                        "Add --observe, for example --observe 'node=http://s{1...4}:9100'.",
                    ));
                }
                GuardSubject::Response(name, _) if !self.does(name) => {
                    return Err(invalid(
                        PLACE,
                        format!("'{guard}': there is no workload or op '{name}' in this plan"),
                        format!(
                            "Name one of: {}. A light load that stands for somebody else's is a [[stage.workload]] of its own (--dry-run \
                             writes a plan to add it to).",
                            self.work_names().join(", ")
                        ),
                    ));
                }
                _ => {}
            }
            if guard.held < self.observe_every()
                && matches!(guard.subject, GuardSubject::Server(_))
                && !guard.held.is_zero()
            {
                return Err(invalid(
                    PLACE,
                    format!("'{guard}': servers are asked each {} only", Span(self.observe_every())),
                    "Ask more often (--observe-every 1s), or let it hold for longer.",
                ));
            }
        }
        Ok(())
    }

    fn does(&self, name: &str) -> bool {
        self.work_names().iter().any(|n| n == name)
    }

    /// Names of all workloads and ops.
    fn work_names(&self) -> Vec<String> {
        let of = |w: &Workload| {
            let ops = w.mix.iter().filter(|(_, n)| **n > 0).map(|(k, _)| k.name().to_owned());
            std::iter::once(w.name.clone()).chain(ops).collect::<Vec<_>>()
        };
        let templates = self.controller.iter().flat_map(ControllerSpec::templates);
        let mut all: Vec<String> =
            self.stages.iter().chain(templates).flat_map(|s| &s.workloads).flat_map(of).collect();
        if let Some(ControllerSpec::Sweep { ops, .. }) = &self.controller {
            all.extend(ops.iter().map(|k| k.name().to_owned()));
        }
        all.sort();
        all.dedup();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_is_read() {
        let g: AbortGuard = "server.cpu > 90 % for 30s".parse().unwrap();
        assert_eq!(
            (&g.subject, g.above, g.held),
            (&GuardSubject::Server(ServerGuard::Cpu), 0.9, Duration::from_secs(30))
        );
        let g: AbortGuard = " other.p99>50ms ".parse().unwrap();
        assert_eq!(g.subject, GuardSubject::Response("other".into(), GuardQuantile::Quantile(9900)));
        assert_eq!((g.above, g.held, g.text.as_str()), (50e6, Duration::ZERO, "other.p99>50ms"));
        assert_eq!("server.memory > 0.95".parse::<AbortGuard>().unwrap().above, 0.95);
        for (bad, why) in [
            ("server.cpu", "no '>'"),
            ("cpu > 90 %", "no SUBJECT.MEASURE"),
            ("server.disk > 90 %", "none of server.cpu, server.network"),
            ("server.cpu > 90", "no part of a resource"),
            ("server.cpu > 100 %", "no part of a resource"),
            ("server.cpu > 90 % for 30", "30s, 30m"),
            ("get.p98 > 5ms", "none of p50"),
            ("get.p99 > 50", "50s, 50m"),
            ("get.p99 > 0ms", "above nothing"),
            ("get.p99 > 5ms for 999d", "a day"),
            ("g\u{1b}[31m.p99 > 5ms", "printable"),
        ] {
            let e = bad.parse::<AbortGuard>().unwrap_err();
            assert!(e.contains(why) && !e.contains('\u{1b}'), "{bad}: {e}");
        }
    }

    #[test]
    fn a_guard_that_can_see_nothing_is_refused() {
        let text = "version = 1\n[targets.t]\nkind = \"null\"\n[[stage]]\n[[stage.workload]]\nname = \"w\"\nmix = { null = 1 }\n";
        let with = |guard: &str, observe: &[&str]| {
            let mut plan = Plan::from_toml(text).unwrap();
            plan.options.abort_if = vec![guard.into()];
            plan.options.observe = observe.iter().map(|s| s.parse().unwrap()).collect();
            plan.validate().map_err(|e| e.to_string())
        };
        assert!(with("w.p99 > 5ms", &[]).is_ok() && with("null.max > 5ms", &[]).is_ok());
        assert!(with("server.cpu > 90 % for 30s", &["node=http://s1:9100"]).is_ok());
        for (guard, observe, parts) in [
            ("other.p99 > 50ms", &[][..], &["options.abort_if", "no workload or op 'other'", "null, w"][..]),
            ("server.cpu > 90 %", &[], &["no server is observed", "--observe"]),
            ("server.cpu > 90 % for 2s", &["node=http://s1:9100"], &["each 5s only", "--observe-every"]),
            ("nonsense", &[], &["options.abort_if", "cannot be read"]),
        ] {
            let e = with(guard, observe).unwrap_err();
            assert!(parts.iter().all(|p| e.contains(p)), "{guard}: {e}");
        }
    }
}
