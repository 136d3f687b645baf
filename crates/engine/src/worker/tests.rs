//! The loop on a virtual clock with scripted times.

use std::sync::Arc;

use super::*;
use crate::api::{DataSeed, FileConfig, SeriesSpec, StopRule, TargetConfig};
use crate::grid::SliceGrid;
use crate::ring::simulated::VirtualRing;
use crate::ring::{RingOp, RingSpec, Token};
use crate::source::{Dist, FileOrder, KindSpec, OpPlace, OpSource, Share, SizeSpec, SyncRule};

/// Writes take 10 ns, the first fsync 100, later ones 1000.
struct Scripted {
    syncs: u64,
}

impl Target<VirtualRing> for Scripted {
    const STAMP_AFTER_PREPARE: bool = false;

    fn begin(
        &mut self,
        cx: &mut Context<'_, VirtualRing>,
        slot: u32,
        op: &plimsoll_model::Op,
        _n: u64,
    ) -> OpStep {
        let is_sync = op.kind == OpKind::Fsync;
        let takes_ns = match (is_sync, self.syncs) {
            (false, _) => 10,
            (true, 0) => 100,
            (true, _) => 1000,
        };
        self.syncs += u64::from(is_sync);
        let until_ns = cx.now_ns + takes_ns;
        // SAFETY: a sleep points to nothing.
        unsafe { cx.ring.push(Token::new(slot, 0), RingOp::Sleep { until_ns }) };
        OpStep::MORE
    }

    fn complete(&mut self, _: &mut Context<'_, VirtualRing>, _: Token, _: i32) -> OpStep {
        OpStep::Done(Done::at_once(Outcome::Ok, 0))
    }

    fn cancel(&mut self, _: &mut Context<'_, VirtualRing>, _: u32, _: Outcome) -> OpStep {
        OpStep::MORE
    }
}

fn spec(files: usize) -> WorkerSpec {
    let place = OpPlace::Region {
        files: 1,
        order: FileOrder::Serial,
        offset_bytes: 0,
        length_bytes: 1 << 20,
        align_bytes: 512,
        dist: Dist::Sequential,
    };
    let kinds = vec![KindSpec { kind: OpKind::Write, weight: 1, size: SizeSpec::Fixed(512), place }];
    let series = |kind| SeriesSpec { kind, shape: Default::default(), trace_series: 0 };
    let paths = vec![std::path::PathBuf::new(); files];
    WorkerSpec {
        worker: plimsoll_model::WorkerId::here(0),
        stage: 0,
        workload: 0,
        series: vec![series(OpKind::Write), series(OpKind::Fsync)],
        cpu: None,
        ring: Default::default(),
        source: OpSource { seed: 1, kinds, sync: SyncRule { fsync_every: 1, ..SyncRule::default() } },
        share: Share::WHOLE,
        pacer: crate::Pacer::Closed,
        pace_share: Share::WHOLE,
        target: TargetConfig::Block(FileConfig {
            paths,
            through: Vec::new(),
            buffered: true,
            create: false,
            first_object: 0,
            written: Vec::new(),
        }),
        slots: 4,
        stop: StopRule { ops: Some(5), ..StopRule::default() },
        start_delay_ns: 0,
        trace: false,
        verify: false,
        data: DataSeed::default(),
    }
}

/// (time, writes promised) whenever the promise grew.
fn promised(spec: &WorkerSpec) -> Vec<(u64, u64)> {
    let control = Control::default();
    let ring = VirtualRing::open(&RingSpec { entries: 4, ..RingSpec::default() }).unwrap();
    let recorder = Recorder::new(spec, Arc::new(SliceGrid::new(u64::MAX / 2)), None);
    let mut w = Worker::new(spec, ring, Scripted { syncs: 0 }, recorder, &control, 0).without_cpu_clock();
    w.start(0, None);
    let mut seen = vec![];
    w.begin_due();
    while let Some(at_ns) = w.ring.next_event_ns() {
        w.ring.advance_to(at_ns);
        w.wake();
        w.reap();
        if seen.last().map_or(0, |s: &(u64, u64)| s.1) < w.synced_through() {
            seen.push((at_ns, w.synced_through()));
        }
        w.begin_due();
    }
    seen
}

#[test]
fn an_fsync_promises_what_was_done_when_it_began() {
    // At 0: write 0, sync, write 1, sync; both see nothing done. The third begins at 10 beside write 2;
    // write 3 ends at 30, and the fourth begins then. The first ends at 100, with promises around it.
    assert_eq!(promised(&spec(1)), [(1010, 2), (1030, 4)]);
    assert_eq!(promised(&spec(2)), [], "an fsync speaks for one file");
}

/// Refuses each op after 10 ns, and wants so many without one.
struct Refusing(u64);

impl Target<VirtualRing> for Refusing {
    const STAMP_AFTER_PREPARE: bool = false;

    fn begin(
        &mut self,
        cx: &mut Context<'_, VirtualRing>,
        slot: u32,
        _: &plimsoll_model::Op,
        _n: u64,
    ) -> OpStep {
        let until_ns = cx.now_ns + 10;
        // SAFETY: a sleep points to nothing.
        unsafe { cx.ring.push(Token::new(slot, 0), RingOp::Sleep { until_ns }) };
        OpStep::MORE
    }

    fn complete(&mut self, cx: &mut Context<'_, VirtualRing>, _: Token, _: i32) -> OpStep {
        OpStep::Done(Done { hold_until_ns: cx.now_ns + self.0, ..Done::at_once(Outcome::Http429, 0) })
    }

    fn cancel(&mut self, _: &mut Context<'_, VirtualRing>, _: u32, _: Outcome) -> OpStep {
        OpStep::MORE
    }
}

/// Single writes at a constant rate, two in flight at the most.
fn paced(period_ns: f64, ops: Option<u64>) -> WorkerSpec {
    let place = OpPlace::Region {
        files: 1,
        order: FileOrder::Serial,
        offset_bytes: 0,
        length_bytes: 1 << 20,
        align_bytes: 512,
        dist: Dist::Sequential,
    };
    let mut spec = spec(1);
    spec.source.kinds = vec![KindSpec { kind: OpKind::Write, weight: 1, size: SizeSpec::Fixed(512), place }];
    spec.source.sync = SyncRule::default();
    (spec.pacer, spec.slots, spec.stop.ops) = (crate::Pacer::Constant { per_s: 1e9 / period_ns }, 2, ops);
    spec
}

/// The one slice of a load that is refused, and when it ended.
fn refused(spec: &WorkerSpec, hold_ns: u64, after_ns: Option<u64>) -> (plimsoll_model::Interval, u64) {
    let control = Control::default();
    let ring = VirtualRing::open(&RingSpec { entries: 4, ..RingSpec::default() }).unwrap();
    let (full, slices) = crossbeam_channel::unbounded();
    let (_back, empty) = crossbeam_channel::unbounded();
    let outlet = crate::recorder::Outlet { full, empty, lockstep: false };
    let recorder = Recorder::new(spec, Arc::new(SliceGrid::new(u64::MAX / 2)), Some(outlet));
    let mut w = Worker::new(spec, ring, Refusing(hold_ns), recorder, &control, 0).without_cpu_clock();
    w.start(0, after_ns);
    w.begin_due();
    while !w.is_over() {
        let end_ns = after_ns.unwrap_or(u64::MAX);
        assert!(
            w.held.first_ns().is_none_or(|t| t <= end_ns.max(w.now_ns())),
            "it waits for what is after the end"
        );
        let at_ns = w.ring.next_event_ns().unwrap_or(u64::MAX).min(w.wake_ns());
        w.ring.advance_to(at_ns);
        w.wake();
        w.reap();
        w.begin_due();
    }
    let ended_ns = w.now_ns();
    w.close().unwrap();
    let Ok(crate::api::Output::Interval { interval, .. }) = slices.recv() else { panic!("no slice") };
    (*interval, ended_ns)
}

/// Pauses are counted as such, and what was due meanwhile is late for want of a slot, and not because the client was busy.
#[test]
fn pauses_after_refusals_are_counted_and_make_no_op_late() {
    // One each 300 ns, two slots, four ops: at 0 and 300, and those of 600 and 900 when a slot is free again.
    let (interval, _) = refused(&paced(300.0, Some(4)), 1000, None);
    let c = interval.client;
    let series = &interval.series[0];
    assert_eq!((series.throttled(), series.counts.started, c.late_ops), (4, 4, 0), "{c:?}");
    // Both slots for 1,000 ns after their first op, and for no longer than the load lasts after their second.
    assert_eq!((c.in_flight_ns, c.paused_ns), (40, 2000 + 300), "{c:?}");
}

/// Who is asked to come back in ten minutes waits for no longer than the load lasts.
#[test]
fn a_pause_ends_with_the_load() {
    let (interval, ended_ns) = refused(&paced(300.0, None), 600_000_000_000, Some(5000));
    assert_eq!((interval.series[0].throttled(), ended_ns), (2, 5000));
    // From 10 and 310 on.
    assert_eq!(interval.client.paused_ns, (5000 - 10) + (5000 - 310));
}
