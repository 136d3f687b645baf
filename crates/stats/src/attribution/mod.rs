//! (i) What the bottleneck is, from the samples that exist, and the cheapest experiment that would tell.
//!
//! Each candidate is scored by the share of samples in which it was at its threshold; half of them make it a suspect. The
//! client comes first: a saturated client voids every claim about the storage. Evidence without an intervention is "consistent
//! with", never "is". Without samples of a server, attribution stops at "beyond the client".

mod samples;

pub use samples::{Shares, shares};

/// What can be the bottleneck, in the order in which they are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Candidate {
    ClientCpu,
    ClientQuota,
    ClientNic,
    ClientPacing,
    NetworkPath,
    ServerDisk,
    ServerCpu,
    /// The cores that client and storage share with whatever else runs: whose work it is the samples do not tell.
    SharedCpu,
    ServerNic,
    Imbalance,
    Limiter,
}

impl Candidate {
    pub fn name(self) -> &'static str {
        match self {
            Self::ClientCpu => "client processor",
            Self::ClientQuota => "client's CPU quota",
            Self::ClientNic => "client network interface",
            Self::ClientPacing => "client pacing or pauses",
            Self::NetworkPath => "network path",
            Self::ServerDisk => "disk",
            Self::ServerCpu => "server processor",
            Self::SharedCpu => "this machine's processor",
            Self::ServerNic => "server network interface",
            Self::Imbalance => "imbalance between servers",
            Self::Limiter => "limiter",
        }
    }

    pub fn is_client(self) -> bool {
        matches!(self, Self::ClientCpu | Self::ClientQuota | Self::ClientNic | Self::ClientPacing)
    }

    /// Level beyond which a sample counts. Those of the client are those of the checks (V07; a quota that stops one period in
    /// ten); a disk at 95 % is what iostat's users call saturated; the others are guesses, and only ever "consistent with".
    pub fn threshold(self) -> f64 {
        match self {
            Self::ClientCpu => 0.90,
            // Of the periods, those in which it ran out.
            Self::ClientQuota => 0.10,
            Self::ClientNic => 0.92,
            Self::ClientPacing => 0.10,
            Self::NetworkPath => 0.001,
            Self::ServerDisk => 0.95,
            Self::ServerCpu | Self::SharedCpu => 0.85,
            Self::ServerNic => 0.90,
            Self::Imbalance => 1.3,
            Self::Limiter => 0.01,
        }
    }

    fn experiment(self) -> &'static str {
        match self {
            Self::ClientCpu => {
                "use more threads, or a second client machine, at the same total concurrency: a rise above 5 % proves it"
            }
            Self::ClientQuota => {
                "give the client's control group a larger quota, or none: a rate that rises proves it"
            }
            Self::ClientNic => {
                "use a second client machine at the same total concurrency: a rise above 5 % proves it"
            }
            Self::ClientPacing => {
                "turn pauses after 429 off, or raise the concurrency: a rise above 5 % proves it"
            }
            Self::NetworkPath => "measure one stream against many: one far slower points at the path",
            Self::ServerDisk => "add a drive, or halve the size of ops: a rate that follows proves it",
            Self::ServerCpu => {
                "double the size of ops: ops a second that stay, with bytes that double, prove it"
            }
            Self::SharedCpu => {
                "see with top(1) whose work it is, end what is neither client nor storage, or move one of them to a machine \
                 of its own: a rate that rises proves it"
            }
            Self::ServerNic => {
                "compare reads with writes: replication loads the servers' network on writes only"
            }
            Self::Imbalance => "give each endpoint the same share by name, and compare",
            Self::Limiter => {
                "rest for a minute and run again: a burst that returns proves a bucket (plimsoll limits does this)"
            }
        }
    }
}

/// Samples of one candidate: shares of a capacity (0 to 1), or its own unit where the threshold has one.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    pub candidate: Candidate,
    /// Which: a core, an interface, a disk.
    pub what: String,
    pub samples: Vec<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Suspect {
    pub candidate: Candidate,
    pub what: String,
    /// Share of samples at or above the threshold.
    pub time_fraction: f64,
    pub mean: f64,
    pub threshold: f64,
    pub experiment: &'static str,
}

/// A candidate that is not the bottleneck.
#[derive(Debug, Clone, PartialEq)]
pub struct Cleared {
    pub candidate: Candidate,
    pub what: String,
    /// Share of samples at or above the threshold: less than half.
    pub time_fraction: f64,
    pub mean: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Attribution {
    /// Above their threshold in half of the samples or more; client first, then by time.
    pub suspects: Vec<Suspect>,
    /// Looked at, and not saturated for half of the time.
    pub cleared: Vec<Cleared>,
    pub has_server_samples: bool,
    pub text: String,
}

/// Share of the samples from which on a candidate is a suspect (a choice).
const HALF: f64 = 0.5;

/// Judges what was observed. Candidates without a sample are not judged.
pub fn attribute(observed: &[Observed]) -> Attribution {
    let mut suspects = Vec::new();
    let mut cleared = Vec::new();
    let mut has_server_samples = false;
    for o in observed {
        let good: Vec<f64> = o.samples.iter().copied().filter(|v| v.is_finite()).collect();
        if good.is_empty() {
            continue;
        }
        has_server_samples |=
            matches!(o.candidate, Candidate::ServerCpu | Candidate::ServerDisk | Candidate::ServerNic);
        let threshold = o.candidate.threshold();
        let time_fraction = good.iter().filter(|v| **v >= threshold).count() as f64 / good.len() as f64;
        if time_fraction >= HALF {
            suspects.push(Suspect {
                candidate: o.candidate,
                what: o.what.clone(),
                time_fraction,
                mean: crate::math::mean(&good),
                threshold,
                experiment: o.candidate.experiment(),
            });
        } else {
            let mean = crate::math::mean(&good);
            cleared.push(Cleared { candidate: o.candidate, what: o.what.clone(), time_fraction, mean });
        }
    }
    suspects.sort_by(|a, b| {
        b.candidate
            .is_client()
            .cmp(&a.candidate.is_client())
            .then(b.time_fraction.total_cmp(&a.time_fraction))
            .then(a.candidate.cmp(&b.candidate))
    });
    let text = text(&suspects, has_server_samples, observed.is_empty());
    Attribution { suspects, cleared, has_server_samples, text }
}

fn text(suspects: &[Suspect], server: bool, nothing: bool) -> String {
    if nothing {
        return "No samples: the bottleneck is not known.".into();
    }
    let Some(first) = suspects.first() else {
        return if server {
            "Nothing sampled was saturated: a limiter, a lock, or the concurrency itself. Raise the concurrency next.".into()
        } else {
            "The client is not the bottleneck; it lies beyond the client. Raise the concurrency next, and sample the server."
                .into()
        };
    };
    let named = |s: &Suspect| {
        format!("{} ({}, {:.0} % of the time)", s.candidate.name(), s.what, 100.0 * s.time_fraction)
    };
    let mut out = if first.candidate.is_client() {
        format!(
            "Consistent with the client as the bottleneck: {}. Nothing follows about the storage.",
            named(first)
        )
    } else if suspects.len() == 1 {
        format!("Consistent with the {}.", named(first))
    } else {
        let list: Vec<String> = suspects.iter().map(named).collect();
        format!("Several were saturated, so that none is named alone: {}.", list.join(", "))
    };
    out += &format!(" To tell: {}.", first.experiment);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(candidate: Candidate, level: f64) -> Observed {
        Observed { candidate, what: "x".into(), samples: vec![level; 20] }
    }

    #[test]
    fn the_client_comes_first() {
        let a = attribute(&[seen(Candidate::ServerDisk, 0.99), seen(Candidate::ClientCpu, 0.95)]);
        assert_eq!(a.suspects[0].candidate, Candidate::ClientCpu);
        assert!(a.text.contains("Nothing follows about the storage"), "{}", a.text);
    }

    #[test]
    fn without_a_server_it_stops_at_the_client() {
        let a = attribute(&[seen(Candidate::ClientCpu, 0.3), seen(Candidate::ClientNic, 0.2)]);
        assert!(a.suspects.is_empty() && a.cleared.len() == 2 && a.text.contains("beyond the client"));
        assert!(attribute(&[]).text.contains("No samples"));
        assert!(attribute(&[seen(Candidate::ClientCpu, f64::NAN)]).cleared.is_empty());
    }

    #[test]
    fn half_of_the_time_is_the_line() {
        let mut o = seen(Candidate::ServerDisk, 0.99);
        o.samples.truncate(10);
        o.samples.extend(vec![0.1; 10]);
        assert_eq!(attribute(std::slice::from_ref(&o)).suspects.len(), 1);
        o.samples.push(0.1);
        assert!(attribute(&[o]).suspects.is_empty());
    }
}
