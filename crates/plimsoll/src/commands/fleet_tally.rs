//! What is recorded of each slice, as lines of JSON: tests hold an agent's own record against the run's.

use std::collections::BTreeMap;

use plimsoll_engine::Output;
use plimsoll_fleet::read_own_record;
use plimsoll_model::{OpKind, Outcome, Series};
use plimsoll_store::{Record, RunDir};
use serde_json::json;

use super::fleet::TallyArgs;
use crate::fault::{Exit, Fault};
use crate::output;

/// Of one slice of an agent.
#[derive(Default)]
struct Tally {
    workers: u64,
    started: u64,
    ok: u64,
    failed: u64,
}

impl Tally {
    fn add<H>(&mut self, workers: u32, series: &[Series<H>]) {
        self.workers += u64::from(workers);
        for s in series.iter().filter(|s| s.id.kind != OpKind::UploadPart) {
            let ok = s.counts.outcomes[Outcome::Ok.index()];
            let all = s.counts.outcomes.iter().fold(0u64, |n, o| n.saturating_add(*o));
            self.started = self.started.saturating_add(s.counts.started);
            self.ok = self.ok.saturating_add(ok);
            self.failed = self.failed.saturating_add(all.saturating_sub(ok));
        }
    }
}

pub fn tally(a: &TallyArgs) -> Result<Exit, Fault> {
    let mut all: BTreeMap<(String, u32, u64), Tally> = BTreeMap::new();
    let own = a.dir.join("frames");
    if own.is_file() {
        for (stage, outputs) in read_own_record(&own, 0)? {
            for output in outputs {
                let Output::Interval { interval, .. } = output else { continue };
                let key = (String::new(), stage, interval.index);
                all.entry(key).or_default().add(interval.client.workers, &interval.series);
            }
        }
    } else {
        for mut reader in RunDir::open(&a.dir)?.interval_readers()? {
            let agent = reader.header().source.clone();
            while let Some(record) = reader.next()? {
                let Record::Interval { stage, interval } = record else { continue };
                let key = (agent.clone(), stage, interval.index);
                all.entry(key).or_default().add(interval.client.workers, &interval.series);
            }
        }
    }
    let line = |((agent, stage, slice), t): (&(String, u32, u64), &Tally)| {
        let Tally { workers, started, ok, failed } = t;
        let line = json!({ "agent": agent, "stage": stage, "slice": slice, "workers": workers, "started": started, "ok": ok,
                           "failed": failed });
        format!("{line}\n")
    };
    output::print(&all.iter().map(line).collect::<String>())?;
    Ok(Exit::Valid)
}
