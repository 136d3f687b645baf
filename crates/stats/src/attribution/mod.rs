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
    /// The busiest core that the client ran on.
    ClientCpu,
    /// Periods in which the client's group had used up its CPU time.
    ClientQuota,
    /// Share of the interface's speed, at the client.
    ClientNic,
    /// Pauses after refusals, and ops that were sent late.
    ClientPacing,
    /// Share of segments that were sent again.
    NetworkPath,
    /// Share of time in which the disk was busy.
    ServerDisk,
    /// Share of what the disk was measured to give.
    ServerDiskRate,
    /// All cores of the server together.
    ServerCpu,
    /// The cores that client and storage share with whatever else runs: whose work it is the samples do not tell.
    SharedCpu,
    /// Share of the interface's speed, at the server.
    ServerNic,
    /// The busiest server over the mean of all.
    Imbalance,
    /// Share of attempts that were refused.
    Limiter,
}

impl Candidate {
    /// For a person: `client processor`.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClientCpu => "client processor",
            Self::ClientQuota => "client's CPU quota",
            Self::ClientNic => "client network interface",
            Self::ClientPacing => "client pacing or pauses",
            Self::NetworkPath => "network path",
            Self::ServerDisk | Self::ServerDiskRate => "disk",
            Self::ServerCpu => "server processor",
            Self::SharedCpu => "this machine's processor",
            Self::ServerNic => "server network interface",
            Self::Imbalance => "imbalance between servers",
            Self::Limiter => "limiter",
        }
    }

    /// As a suspect it voids what is said of the storage.
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
            Self::ServerNic | Self::ServerDiskRate => 0.90,
            Self::Imbalance => 1.3,
            Self::Limiter => 0.01,
        }
    }

    fn experiment(self) -> &'static str {
        match self {
            Self::ClientCpu => {
                "use more threads, or a second client machine, at the same total concurrency: an increase of more \
                 than 5 % proves it"
            }
            Self::ClientQuota => {
                "give the client's control group a larger CPU quota, or none: a higher rate proves it"
            }
            Self::ClientNic => {
                "use a second client machine at the same total concurrency: an increase of more than 5 % proves it"
            }
            Self::ClientPacing => {
                "turn off pauses after 429, or raise the concurrency: an increase of more than 5 % proves it"
            }
            Self::NetworkPath => {
                "compare one stream with many: if one is far slower, the network path is the likely \
                                  cause"
            }
            Self::ServerDisk | Self::ServerDiskRate => {
                "add a drive, or halve the op size: if the rate follows, that proves it"
            }
            Self::ServerCpu => "double the op size: if op/s stay the same and bytes double, that proves it",
            Self::SharedCpu => {
                "find the other processes with top(1) and stop them, or move client or storage to a machine of its \
                 own: a higher rate proves it"
            }
            Self::ServerNic => {
                "raise the interfaces' rate by half (a faster port, a bond), or add servers, at the same load: a rate that follows proves it"
            }
            Self::Imbalance => "give each endpoint the same share of the load, and compare",
            Self::Limiter => {
                "rest for a minute and run again: a burst that comes back proves a token bucket (plimsoll limits \
                 does this)"
            }
        }
    }
}

/// Samples of one candidate: shares of a capacity (0 to 1), or its own unit where the threshold has one.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// What the samples are of.
    pub candidate: Candidate,
    /// Which: a core, an interface, a disk.
    pub what: String,
    /// Between neighbouring samples of the host.
    pub samples: Vec<f64>,
}

/// What may be the bottleneck: evidence is "consistent with" it, no more.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspect {
    /// What is suspected.
    pub candidate: Candidate,
    /// Which: a core, an interface, a disk.
    pub what: String,
    /// Share of samples at or above the threshold.
    pub time_fraction: f64,
    /// Of the samples, in the candidate's unit.
    pub mean: f64,
    /// In the same unit: what a sample has to reach to count.
    pub threshold: f64,
    /// The cheapest that would prove it, as advice.
    pub experiment: &'static str,
}

/// A candidate that is not the bottleneck.
#[derive(Debug, Clone, PartialEq)]
pub struct Cleared {
    /// What is cleared.
    pub candidate: Candidate,
    /// Which: a core, an interface, a disk.
    pub what: String,
    /// Share of samples at or above the threshold: less than half.
    pub time_fraction: f64,
    /// Of the samples, in the candidate's unit.
    pub mean: f64,
}

/// What the samples say of the bottleneck.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribution {
    /// Above their threshold in half of the samples or more; client first, then by time, and what is sent again after a line that is full.
    pub suspects: Vec<Suspect>,
    /// Looked at, and not saturated for half of the time.
    pub cleared: Vec<Cleared>,
    /// Without them nothing is said of what lies beyond the client.
    pub has_server_samples: bool,
    /// For a person; a sentence or more.
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
        has_server_samples |= matches!(
            o.candidate,
            Candidate::ServerCpu | Candidate::ServerDisk | Candidate::ServerDiskRate | Candidate::ServerNic
        );
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
    // A full line drops what it has no room for: that is sent again because of it.
    let line_is_full =
        suspects.iter().any(|s| matches!(s.candidate, Candidate::ClientNic | Candidate::ServerNic));
    let follows = |s: &Suspect| line_is_full && s.candidate == Candidate::NetworkPath;
    suspects.sort_by(|a, b| {
        b.candidate
            .is_client()
            .cmp(&a.candidate.is_client())
            .then(follows(a).cmp(&follows(b)))
            .then(b.time_fraction.total_cmp(&a.time_fraction))
            .then(a.candidate.cmp(&b.candidate))
    });
    let text = text(&suspects, has_server_samples, observed.is_empty());
    Attribution { suspects, cleared, has_server_samples, text }
}

fn text(suspects: &[Suspect], server: bool, nothing: bool) -> String {
    if nothing {
        return "The bottleneck is not known: there are no resource samples.".into();
    }
    let Some(first) = suspects.first() else {
        return if server {
            "No sampled resource was saturated: the limit is a rate limiter, a lock, or the concurrency itself. \
             Raise the concurrency next.".into()
        } else {
            "The bottleneck is not the client but something beyond it. Next, raise the concurrency and sample the \
             server."
                .into()
        };
    };
    let named = |s: &Suspect| {
        format!("{} ({}, {:.0} % of the time)", s.candidate.name(), s.what, 100.0 * s.time_fraction)
    };
    let mut out = if first.candidate.is_client() {
        format!(
            "Consistent with the client as the bottleneck: {}. This says nothing about the storage.",
            named(first)
        )
    } else if suspects.len() == 1 {
        format!("Consistent with the {}.", named(first))
    } else {
        let list: Vec<String> = suspects.iter().map(named).collect();
        format!("Several resources were saturated, so no single one can be named: {}.", list.join(", "))
    };
    out += &format!(" To find out: {}.", first.experiment);
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
        assert!(a.text.contains("This says nothing about the storage"), "{}", a.text);
    }

    #[test]
    fn without_a_server_it_stops_at_the_client() {
        let a = attribute(&[seen(Candidate::ClientCpu, 0.3), seen(Candidate::ClientNic, 0.2)]);
        assert!(a.suspects.is_empty() && a.cleared.len() == 2 && a.text.contains("something beyond it"));
        assert!(attribute(&[]).text.contains("no resource samples"));
        assert!(attribute(&[seen(Candidate::ClientCpu, f64::NAN)]).cleared.is_empty());
    }

    /// Behind a full line of the servers 0.3 % was sent again all the time, and the way there was "possibly" the limit.
    #[test]
    fn what_is_sent_again_follows_from_a_line_that_is_full() {
        let mut line = seen(Candidate::ServerNic, 0.97);
        line.samples[0] = 0.5;
        let again = seen(Candidate::NetworkPath, 0.003);
        let of = |all: &[Observed]| attribute(all).suspects.iter().map(|s| s.candidate).collect::<Vec<_>>();
        assert_eq!(of(&[again.clone(), line]), [Candidate::ServerNic, Candidate::NetworkPath]);
        let mut disk = seen(Candidate::ServerDisk, 0.99);
        disk.samples[0] = 0.5;
        assert_eq!(of(&[disk, again]), [Candidate::NetworkPath, Candidate::ServerDisk]);
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
