//! What is recorded of each slice, as lines of JSON: tests hold an agent's own record against the run's.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use plimsoll_fleet::FromAgent;
use plimsoll_fleet::read_own_record;
use plimsoll_model::{Interval, OpKind, Outcome};
use plimsoll_store::{Record, RunDir, SparseInterval};
use serde_json::json;

use super::fleet::TallyArgs;
use crate::fault::{Exit, Fault};
use crate::output;

/// Of one slice of an agent: what its workers handed over, as one.
#[derive(Default)]
struct Tally(Option<SparseInterval>);

impl Tally {
    fn add(&mut self, interval: &SparseInterval) {
        self.0.get_or_insert_with(|| Interval::empty(interval.index)).merge(interval);
    }

    /// Counts to read, and as a number that two records of one slice share all that was measured, histograms included. What a client
    /// did before the start is of the first slice in a run's record, so that its own counts are not in it.
    fn told(&self, (agent, stage, slice): &(String, u32, u64)) -> serde_json::Value {
        let (mut started, mut ok, mut ended, mut workers) = (0u64, 0u64, 0u64, 0);
        let mut hasher = DefaultHasher::new();
        if let Some(all) = &self.0 {
            workers = all.client.workers;
            for s in all.series.iter().filter(|s| s.id.kind != OpKind::UploadPart) {
                started = started.saturating_add(s.counts.started);
                ok = ok.saturating_add(s.counts.outcomes[Outcome::Ok.index()]);
                ended = s.counts.outcomes.iter().fold(ended, |n, o| n.saturating_add(*o));
            }
            format!("{:?}", all.series).hash(&mut hasher);
        }
        json!({ "agent": agent, "stage": stage, "slice": slice, "workers": workers, "started": started, "ok": ok,
                "failed": ended.saturating_sub(ok), "digest": format!("{:016x}", hasher.finish()) })
    }
}

pub fn tally(a: &TallyArgs) -> Result<Exit, Fault> {
    let mut all: BTreeMap<(String, u32, u64), Tally> = BTreeMap::new();
    let own = a.dir.join("frames");
    if own.is_file() {
        for (stage, outputs) in read_own_record(&own, 0)? {
            for output in outputs {
                let FromAgent::Interval { interval, .. } = output else { continue };
                let key = (String::new(), stage, interval.index);
                all.entry(key).or_default().add(&interval);
            }
        }
    } else {
        for mut reader in RunDir::open(&a.dir)?.interval_readers()? {
            let agent = reader.header().source.clone();
            while let Some(record) = reader.next()? {
                let Record::Interval { stage, interval } = record else { continue };
                let key = (agent.clone(), stage, interval.index);
                all.entry(key).or_default().add(&interval);
            }
        }
    }
    output::print(&all.iter().map(|(key, t)| format!("{}\n", t.told(key))).collect::<String>())?;
    Ok(Exit::Valid)
}
