//! Which objects a workload uses: a data set that is prepared and read, objects that are prepared to be deleted,
//! and objects that it makes itself.
//!
//! Numbers, not names: the target makes a name of a number. Numbers below [`VICTIMS`] are the data set.
//! Deletes take the prepared victims in order, and then, in the same order, what this workload's own puts made
//! right behind them. So a mix that puts at least as often as it deletes never deletes what is not there.

use plimsoll_model::OpKind;
use plimsoll_model::plan::bounds::{MAX_OBJECTS, MAX_STAGES, MAX_WORKLOADS};
use plimsoll_model::plan::{ControllerSpec, ObjectOptions, Plan, Stage, Workload};

/// First number of objects that are not of a data set; each workload of each stage has a range of its own.
const VICTIMS: u64 = plimsoll_engine::target::s3::keys::DATASET_NUMBERS;
/// Numbers that one workload may use up.
const RANGE: u64 = 1 << 40;

// The last number of the last range fits, and no data set reaches into the first.
const _: () =
    assert!((MAX_STAGES * MAX_WORKLOADS) as u128 * (RANGE as u128) + VICTIMS as u128 <= u64::MAX as u128);
const _: () = assert!(MAX_OBJECTS * 2 < VICTIMS && MAX_OBJECTS * 2 < RANGE / 4);

/// Numbers of the objects of one workload of one stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyPlan {
    /// Objects `0..dataset` are read and never changed.
    pub dataset: u64,
    /// Objects `victims_first..victims_first + victims` are there to be deleted.
    pub victims_first: u64,
    /// How many of them; 0 where nothing deletes.
    pub victims: u64,
    /// What the workload makes is numbered from here on.
    pub fresh_first: u64,
    /// Where only so many ops are possible: deletes end with their victims when nothing makes new ones.
    pub most_ops: Option<u64>,
    /// Ops after which the workload would be at the end of its numbers: years, at the rate of any storage.
    pub room_ops: u64,
}

/// First number of the range of a workload of a stage.
fn range_first(stage: u32, workload: u16) -> u64 {
    let (stage, workload) = (u64::from(stage), u64::from(workload));
    assert!(
        stage < MAX_STAGES && workload < MAX_WORKLOADS,
        "stage {stage}, workload {workload}: no range is theirs"
    );
    VICTIMS + (stage * MAX_WORKLOADS + workload) * RANGE
}

/// The objects of workload `workload` of stage `stage`, served by `workers` threads.
pub fn key_plan(w: &Workload, stage: u32, workload: u16, workers: u32) -> KeyPlan {
    let objects = w.object.as_ref().map_or_else(|| ObjectOptions::default().objects, |o| o.objects).max(1);
    let batch = u64::from(w.object.as_ref().map_or(1, |o| o.delete_batch).max(1));
    let weight = |pick: fn(OpKind) -> bool| -> u64 {
        w.mix.iter().filter(|(k, _)| pick(**k)).map(|(_, n)| u64::from(*n)).sum()
    };
    let deletes = weight(|k| k == OpKind::Delete);
    let batches = weight(|k| k == OpKind::DeleteBatch);
    let made = weight(|k| matches!(k, OpKind::Put | OpKind::Multipart));
    // Whole rounds over the workers: the worker that deletes number n + victims is the one that made it.
    let round = u64::from(workers.max(1)) * if batches > 0 { batch } else { 1 };
    let victims = if deletes + batches > 0 { objects.div_ceil(round) * round } else { 0 };
    let victims_first = range_first(stage, workload);
    let total: u64 = weight(|_| true);
    let taken = deletes + batches * batch;
    let most_ops = (taken > made && taken > 0).then(|| victims * total / taken);
    KeyPlan {
        dataset: if weight(OpKind::reads_objects) > 0 { objects } else { 0 },
        victims_first,
        victims,
        fresh_first: victims_first + victims,
        most_ops,
        room_ops: (RANGE / 2 - victims) / batch,
    }
}

/// Whether what this workload puts is what another search of the plan reads: then both use the same numbers, `0..dataset`, and what
/// was written need not be prepared. Contents and sizes follow from the numbers, so that an object that is written again is the same.
/// A named data set is never written to by a measurement.
pub fn writes_what_is_read(plan: &Plan, w: &Workload) -> bool {
    let Some(spec @ ControllerSpec::Saturation { then, .. }) = &plan.controller else { return false };
    let only = |kind| w.mix.iter().all(|(k, weight)| *weight == 0 || *k == kind);
    if then.is_empty() || !only(OpKind::Put) {
        return false;
    }
    spec.templates().flat_map(|t| &t.workloads).any(|r| is_read_of(plan, w, r))
}

/// Whether some search of the plan writes what this workload reads.
pub fn reads_what_is_written(plan: &Plan, r: &Workload) -> bool {
    let writers = plan.controller.iter().flat_map(ControllerSpec::templates).flat_map(|t| &t.workloads);
    writers.into_iter().any(|w| is_read_of(plan, w, r) && writes_what_is_read(plan, w))
}

fn is_read_of(plan: &Plan, w: &Workload, r: &Workload) -> bool {
    let options = |w: &Workload| w.object.clone().unwrap_or_default();
    let place = |w: &Workload| plan.target_of(w).ok().map(|(name, _)| name.to_owned());
    let (of_w, of_r) = (options(w), options(r));
    r.mix.iter().any(|(kind, weight)| *weight > 0 && kind.reads_objects())
        && place(w) == place(r)
        && (&w.size, w.data) == (&r.size, r.data)
        && of_w.prefixes == of_r.prefixes
        && of_w.dataset.is_none()
        && of_r.dataset.is_none()
}

/// Objects that are written before the workload begins: to be read, and to be deleted (about: whole rounds over the workers).
pub fn prepared_objects(w: &Workload) -> (u64, u64) {
    let keys = key_plan(w, 0, 0, 1);
    (keys.dataset, keys.victims)
}

/// Workloads that deleted all that there was to delete before their time was over, in words for the user.
pub fn used_up(stage: &Stage, took_ns: u64) -> Vec<String> {
    let told = |w: &Workload| {
        let objects = w.object.as_ref().map_or_else(|| ObjectOptions::default().objects, |o| o.objects);
        key_plan(w, 0, 0, 1).most_ops?;
        let planned_ns = w.stop.duration?.as_ns() + super::times::warmup_ns(stage);
        // A tenth: a run that was nearly as long as it should be needs no more objects.
        (took_ns < planned_ns / 10 * 9).then(|| {
            format!(
                "{}: all objects that were prepared for it were deleted after {:.1} s. For a longer run prepare more: \
                 --objects {}",
                w.name,
                took_ns as f64 / 1e9,
                objects.saturating_mul(planned_ns.div_ceil(took_ns.max(1)))
            )
        })
    };
    stage.workloads.iter().filter_map(told).collect()
}

/// Objects that a long search or watch writes over and over, so that it does not fill the storage: enough that no two
/// in flight are the same, and no more than about 2 GiB.
pub fn objects_to_overwrite(w: &Workload, size_bytes: u64) -> u64 {
    const ROOM: u64 = 2 << 30;
    let objects = w.object.as_ref().map_or(1000, |o| o.objects).max(1);
    objects.min(ROOM / size_bytes.max(1)).max(4 * u64::from(w.concurrency))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::Plan;
    use proptest::prelude::*;

    fn workload(mix: &str, objects: u64) -> Workload {
        let text = format!(
            "version = 1\n[targets.s]\nkind = \"s3\"\nendpoints = [\"http://h\"]\nbucket = \"b\"\n[[stage]]\n\
             [[stage.workload]]\nname = \"w\"\nmix = {{ {mix} }}\n[stage.workload.object]\nobjects = {objects}\n\
             delete_batch = 10\n"
        );
        Plan::from_toml(&text).unwrap().stages.remove(0).workloads.remove(0)
    }

    /// Only where the same objects are meant, and never of a named data set, which is not the run's to write to.
    #[test]
    fn one_search_reads_what_another_writes() {
        let plan = |put: &str, get: &str| {
            let of = |op: &str, options: &str| {
                format!(
                    "[[WHERE.workload]]\nname = \"{op}\"\nmix = {{ {op} = 1 }}\nsize = \"4KiB\"\n{options}\n"
                )
            };
            let text = format!(
                "version = 1\n[targets.s]\nkind = \"s3\"\nendpoints = [\"http://h\"]\nbucket = \"b\"\n[controller]\n\
                 kind = \"saturation\"\n[controller.template]\n{}[[controller.then]]\n{}",
                of("put", put).replace("WHERE", "controller.template"),
                of("get", get).replace("WHERE", "controller.then"),
            );
            Plan::from_toml(&text).unwrap()
        };
        let shares = |p: &Plan| {
            let all: Vec<Stage> = p.controller.as_ref().unwrap().templates().cloned().collect();
            let (put, get) = (&all[0].workloads[0], &all[1].workloads[0]);
            assert!(!writes_what_is_read(p, get) && !reads_what_is_written(p, put));
            assert_eq!(writes_what_is_read(p, put), reads_what_is_written(p, get));
            writes_what_is_read(p, put)
        };
        assert!(shares(&plan("", "")));
        assert!(shares(&plan("object = { objects = 9 }", "object = { objects = 7 }")));
        assert!(!shares(&plan("object = { dataset = \"d\" }", "object = { dataset = \"d\" }")));
        assert!(!shares(&plan("", "object = { dataset = \"d\" }")));
        assert!(!shares(&plan("object = { prefixes = 4 }", "")));
        assert!(!shares(&plan("data = { compressible = 0.5 }", "")));
        let mut alone = plan("", "");
        if let Some(ControllerSpec::Saturation { then, .. }) = &mut alone.controller {
            let get = then.remove(0);
            assert!(!reads_what_is_written(&alone, &get.workloads[0]));
        }
    }

    #[test]
    fn only_what_is_needed_is_prepared() {
        let put = key_plan(&workload("put = 1", 100), 0, 0, 4);
        assert_eq!((put.dataset, put.victims, put.most_ops), (0, 0, None));
        let get = key_plan(&workload("get = 1, stat = 1", 100), 0, 0, 4);
        assert_eq!((get.dataset, get.victims, get.most_ops), (100, 0, None));
    }

    #[test]
    fn deletes_end_with_their_victims_unless_puts_make_more() {
        let only = key_plan(&workload("delete = 1", 101), 0, 0, 4);
        assert_eq!((only.dataset, only.victims, only.most_ops), (0, 104, Some(104)));
        let batch = key_plan(&workload("delete-batch = 1", 100), 0, 0, 4);
        assert_eq!((batch.victims, batch.most_ops), (120, Some(12)));
        let mixed = key_plan(&workload("get = 45, put = 15, delete = 10", 100), 0, 0, 4);
        assert_eq!((mixed.dataset, mixed.victims, mixed.most_ops), (100, 100, None));
        assert_eq!(mixed.fresh_first, mixed.victims_first + 100);
        let greedy = key_plan(&workload("get = 5, put = 1, delete = 4", 100), 0, 0, 4);
        assert_eq!(greedy.most_ops, Some(250));
    }

    #[test]
    fn a_run_that_ran_out_of_objects_says_how_many_it_needs() {
        let stage = |mix: &str| {
            let mut w = workload(mix, 100);
            w.stop.duration = Some(plimsoll_model::units::Span(std::time::Duration::from_secs(9)));
            let warmup = plimsoll_model::units::Span(std::time::Duration::from_secs(1));
            Stage { name: None, warmup, workloads: vec![w], cell: None }
        };
        let told = used_up(&stage("delete = 1"), 500_000_000);
        assert!(
            told.len() == 1 && told[0].contains("after 0.5 s") && told[0].contains("--objects 2000"),
            "{told:?}"
        );
        assert!(used_up(&stage("delete = 1"), 9_900_000_000).is_empty());
        assert!(used_up(&stage("put = 1, delete = 1"), 500_000_000).is_empty(), "it makes its own");
    }

    /// All numbers that a workload may touch outside of the data set: victims, and what it makes or deletes.
    fn range(w: &Workload, stage: u32, workload: u16, workers: u32) -> std::ops::Range<u64> {
        let k = key_plan(w, stage, workload, workers);
        assert_eq!(k.fresh_first, k.victims_first + k.victims);
        let batch = u64::from(w.object.as_ref().unwrap().delete_batch);
        k.victims_first..k.fresh_first.max(k.victims_first + k.room_ops * batch) + k.room_ops
    }

    proptest! {
        #[test]
        fn no_two_workloads_share_a_number(
            a in (0..MAX_STAGES as u32, 0..MAX_WORKLOADS as u16, 1u64..=MAX_OBJECTS, 1u32..5000),
            b in (0..MAX_STAGES as u32, 0..MAX_WORKLOADS as u16, 1u64..=MAX_OBJECTS, 1u32..5000),
            near in any::<bool>(),
        ) {
            // Next to each other, where ranges meet, as often as anywhere.
            let b = if near { (a.0.saturating_add(1).min(MAX_STAGES as u32 - 1), b.1, b.2, b.3) } else { b };
            let w = |objects| workload("put = 1, delete = 2, delete-batch = 1", objects);
            let (x, y) = (range(&w(a.2), a.0, a.1, a.3), range(&w(b.2), b.0, b.1, b.3));
            prop_assert!(x.start >= VICTIMS && y.start >= VICTIMS && x.start < x.end);
            if (a.0, a.1) != (b.0, b.1) {
                prop_assert!(x.end <= y.start || y.end <= x.start, "{:?} {:?}", x, y);
            }
        }
    }

    #[test]
    fn workload_16_of_a_stage_is_not_workload_0_of_the_next() {
        let w = workload("put = 1, delete = 1", 10);
        assert!(range(&w, 0, 16, 1).end <= range(&w, 1, 0, 1).start);
        assert!(range(&w, 0, 0, 1).end <= range(&w, 0, 1, 1).start);
    }
}
