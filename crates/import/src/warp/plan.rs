//! The plan that comes nearest to what warp did: what reports and comparisons ask of a run.

use std::collections::BTreeMap;

use plimsoll_model::plan::bounds::MAX_IN_FLIGHT;
use plimsoll_model::plan::{Pacing, SizeDist, Stage, Stop, TargetSpec, Workload};
use plimsoll_model::units::{Size, Span};
use plimsoll_model::{OpKind, Plan};

use super::StageSpan;
use super::survey::{KindCounts, Survey};

/// Weights of a mix add up to about this.
const WEIGHTS: f64 = 10_000.0;

impl Survey {
    /// The stage of a number as we would have run it. The file does not say what warp was told, so this is what it did.
    pub fn stage_spec(&self, number: usize) -> Stage {
        let span = &self.stages[number];
        let all: u64 = span.kinds.iter().map(|k| self.counts(*k).requests).sum();
        let weight = |k: &OpKind| {
            let share = self.counts(*k).requests as f64 / all.max(1) as f64;
            (*k, ((share * WEIGHTS).round() as u32).max(1))
        };
        let mix: BTreeMap<OpKind, u32> = match &span.kinds[..] {
            [one] => [(*one, 1)].into(),
            several => several.iter().map(weight).collect(),
        };
        let name = match &span.kinds[..] {
            [one] => one.name().to_owned(),
            _ => "mixed".to_owned(),
        };
        let lasted_ns = (span.last_start_ns - span.start_ns).max(1) as u64;
        Stage {
            name: Some(name.clone()),
            warmup: Span(std::time::Duration::ZERO),
            workloads: vec![Workload {
                name,
                target: None,
                mix,
                size: SizeDist::Fixed(Size(self.size(span))),
                keys: plimsoll_model::plan::KeyDist::Uniform,
                concurrency: self.threads.clamp(1, MAX_IN_FLIGHT as u32),
                jobs: None,
                pacing: Pacing::Closed,
                stop: Stop {
                    duration: Some(Span(std::time::Duration::from_nanos(lasted_ns))),
                    ..Stop::default()
                },
                verify: false,
                data: plimsoll_model::plan::DataSpec::default(),
                object: None,
                block: None,
                machines: None,
            }],
            cell: None,
        }
    }

    /// All stages, on a target that is named and not reached.
    pub fn plan(&self, name: &str) -> Plan {
        Plan {
            version: plimsoll_model::plan::PLAN_VERSION,
            name: Some(name.to_owned()),
            seed: 0,
            options: plimsoll_model::plan::RunOptions::default(),
            labels: BTreeMap::from([("imported".to_owned(), "warp".to_owned())]),
            expect: Vec::new(),
            targets: BTreeMap::from([("imported".to_owned(), TargetSpec::Null)]),
            stages: (0..self.stages.len()).map(|i| self.stage_spec(i)).collect(),
            controller: None,
        }
    }

    /// What a person should know of the requests of a stage: sizes that differ.
    pub fn notes(&self, number: usize) -> Vec<String> {
        let kinds = self.stages[number].kinds.iter().filter(|k| k.moves_bytes());
        let several = kinds.map(|k| self.counts(*k)).filter(|c| c.ok > 0 && c.smallest < c.largest);
        several
            .map(|c| {
                format!(
                    "sizes from {} to {}; the nominal one is their mean",
                    Size(c.smallest),
                    Size(c.largest)
                )
            })
            .collect()
    }

    fn counts(&self, kind: OpKind) -> KindCounts {
        self.kinds.get(&kind).cloned().unwrap_or_default()
    }

    /// Mean payload of the ops that move one.
    fn size(&self, span: &StageSpan) -> u64 {
        let moving = span.kinds.iter().filter(|k| k.moves_bytes()).map(|k| self.counts(*k));
        let (ok, bytes) = moving.fold((0, 0u64), |(n, b), c| (n + c.ok, b.saturating_add(c.bytes)));
        bytes / ok.max(1)
    }
}
