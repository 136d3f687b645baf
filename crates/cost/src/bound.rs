//! What a plan costs at most, before it starts.

use std::collections::BTreeSet;

use plimsoll_model::OpKind;
use plimsoll_model::cost::CostOptions;
use plimsoll_model::plan::{ControllerSpec, Pacing, Plan, SizeDist, Stage, TargetSpec, Workload};
use plimsoll_model::units::{Size, Span};
use rust_decimal::Decimal;

use crate::number::{add, decimal, div, mul, plain};
use crate::{CostItem, Sent, fixed, size_of, total, used};

/// Requests that claim a place in a bucket, mark it, list it and remove the mark: so many at most, of the dearest class (a choice: a
/// run in an empty prefix takes a third of it).
const AROUND: u32 = 32;
/// Objects of one page of a listing.
const PAGE: u32 = 1000;

/// The most that a plan can cost, as far as it can be said.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// What is spent beside the load: data that is prepared, claims, removal of what was prepared.
    pub around: Decimal,
    /// Of everything that can be bounded, `around` included.
    pub items: Vec<CostItem>,
    /// What has no bound before the run, and why. Empty: [`Bound::total`] is the most.
    pub open: Vec<String>,
}

impl Bound {
    /// Of all that can be bounded.
    pub fn total(&self) -> Decimal {
        total(&self.items)
    }

    /// Nothing is left out of it.
    pub fn is_closed(&self) -> bool {
        self.open.is_empty()
    }

    /// `1.23 USD`
    pub fn said(&self, currency: &str) -> String {
        format!("{} {currency}", plain(self.total()))
    }
}

/// `prepared`: objects that are written before a workload to be read, and to be deleted. An error: the prices do not know an op of it.
pub fn bound(
    plan: &Plan,
    c: &CostOptions,
    prepared: &dyn Fn(&Workload) -> (u64, u64),
) -> Result<Bound, String> {
    let (_, subject) = c.chosen().map_err(|e| format!("{}: {}. {}", e.place, e.problem, e.remedy))?;
    let currency = &c.currency;
    let mut of = PlanBound {
        plan,
        prepared,
        around: Vec::new(),
        load: Vec::new(),
        seconds: Some(Decimal::ZERO),
        shared: BTreeSet::new(),
        open: Vec::new(),
    };
    for (i, stage) in plan.stages.iter().enumerate() {
        of.stage(&format!("stage {}", i + 1), stage, 1);
    }
    if let Some(controller) = &plan.controller {
        of.controller(controller);
    }
    let mut around = used(subject, &of.around, false, currency)?;
    if plan.targets.values().any(|t| matches!(t, TargetSpec::S3(_))) {
        around.extend(allowance(subject, currency));
    }
    around.iter_mut().for_each(|i| i.what = format!("before and after, {}", i.what));
    let mut items = around.clone();
    items.extend(used(subject, &of.load, false, currency)?);
    let mut open = of.open;
    if !subject.instances.is_empty() {
        items.extend(machines(subject, of.seconds, currency, &mut open));
    }
    Ok(Bound { around: total(&around), items, open })
}

/// For the load alone, where its length is known; the rest of their hours is open in any case.
fn machines(
    subject: &plimsoll_model::cost::PriceSubject,
    load_s: Option<Decimal>,
    currency: &str,
    open: &mut Vec<String>,
) -> Vec<CostItem> {
    let Some(s) = load_s else {
        open.push("the hours of the machines: how long the load takes is not known".into());
        return Vec::new();
    };
    let hours = div(s, Decimal::from(3600));
    open.push(format!(
        "the hours of the machines beyond the {} h of the load: data that is made ready, what is in flight at the end and its removal \
         take as long as the storage does",
        plain(hours.round_dp(4))
    ));
    let while_on = |i: &plimsoll_model::cost::InstancePrice| CostItem {
        what: format!("{}, while the load is on", i.name),
        ..fixed::instances(i, hours, currency)
    };
    subject.instances.iter().map(while_on).collect()
}

/// For requests that are not of the load or its objects.
pub(crate) fn allowance(subject: &plimsoll_model::cost::PriceSubject, currency: &str) -> Option<CostItem> {
    let each = |r: &plimsoll_model::cost::RequestPrice| div(r.price.0, r.per.into());
    let dearest = subject.requests.iter().max_by_key(|r| each(r))?;
    let lots = div(AROUND.into(), dearest.per.into());
    let lots = if dearest.round_up { lots.ceil() } else { lots };
    Some(CostItem {
        what: "marks and listings".into(),
        amount: mul(lots, dearest.price.0),
        formula: format!("at most {AROUND} requests / {} x {} {currency}", dearest.per, dearest.price),
    })
}

struct PlanBound<'a> {
    plan: &'a Plan,
    prepared: &'a dyn Fn(&Workload) -> (u64, u64),
    around: Vec<Sent>,
    load: Vec<Sent>,
    /// Of the load; none: not known.
    seconds: Option<Decimal>,
    /// Data sets that are counted: what is read is there for all that read the same.
    shared: BTreeSet<String>,
    open: Vec<String>,
}

/// At most a request for each object, and a listing for each page.
pub(crate) fn removal(objects: Decimal) -> [Sent; 2] {
    let none = SizeDist::Fixed(Size(0));
    let pages = div(objects, PAGE.into()).ceil();
    [Sent::new(OpKind::Delete, objects, none.clone()), Sent::new(OpKind::List, pages, none)]
}

fn seconds_of(span: Span) -> Decimal {
    decimal(span.0.as_secs_f64()).unwrap_or(Decimal::MAX)
}

impl PlanBound<'_> {
    fn controller(&mut self, c: &ControllerSpec) {
        match c {
            ControllerSpec::Sweep { template, ops, sizes, concurrencies, repeat } if !sizes.is_empty() => {
                let each = u64::from(*repeat) * concurrencies.len().max(1) as u64;
                for (op, size) in ops.iter().flat_map(|op| sizes.iter().map(move |s| (op, s))) {
                    let mut stage = (**template).clone();
                    for w in &mut stage.workloads {
                        w.mix = [(*op, 1)].into();
                        w.size = SizeDist::Fixed(*size);
                        w.concurrency = concurrencies.iter().copied().max().unwrap_or(w.concurrency);
                    }
                    self.stage(&format!("cell {op} of {size}"), &stage, each);
                }
            }
            ControllerSpec::Watch { template, duration } => {
                let mut stage = (**template).clone();
                stage.workloads.iter_mut().for_each(|w| {
                    w.stop = plimsoll_model::plan::Stop { duration: Some(*duration), ..Default::default() };
                });
                self.stage("the watch", &stage, 1);
            }
            _ => {
                for stage in c.templates() {
                    for w in &stage.workloads {
                        self.prepare(w, 1);
                        self.named(w);
                        if self.deletes(w) {
                            self.open.push(format!(
                                "'{}': objects to delete, which are made ready before each step of the search",
                                w.name
                            ));
                        }
                    }
                }
                self.seconds = None;
                self.open.push(
                    "the load: how many requests a search sends is found out by the storage; --budget-cost ends it"
                        .into(),
                );
            }
        }
    }

    fn stage(&mut self, place: &str, stage: &Stage, times: u64) {
        let mut longest = Some(Decimal::ZERO);
        for w in &stage.workloads {
            self.prepare(w, times);
            match ops_of(stage, w) {
                Ok(ops) => {
                    self.add_load(w, mul(ops, times.into()));
                    self.end_syncs(w, times);
                }
                Err(why) => {
                    self.named(w);
                    self.open.push(format!("{place}, '{}': {why}", w.name));
                }
            }
            let lasts = w.stop.lasts().map(|d| add(seconds_of(d), seconds_of(stage.warmup)));
            longest = longest.zip(lasts).map(|(a, b)| a.max(b));
        }
        self.seconds = self.seconds.zip(longest).map(|(sum, s)| add(sum, mul(s, times.into())));
    }

    fn removes(&self) -> bool {
        !self.plan.options.keep
    }

    fn on_bucket(&self, w: &Workload) -> bool {
        self.plan.target_of(w).is_ok_and(|(_, t)| matches!(t, TargetSpec::S3(_)))
    }

    fn deletes(&self, w: &Workload) -> bool {
        self.on_bucket(w) && (self.prepared)(w).1 > 0
    }

    /// Objects that have to be there first, and their removal: what is read once, what is deleted at each of so many `times`.
    fn prepare(&mut self, w: &Workload, times: u64) {
        if !self.on_bucket(w) {
            let target = self.plan.target_of(w).map(|(_, t)| t);
            let laid_out = match target {
                Ok(TargetSpec::Block(b)) => !b.existing,
                Ok(TargetSpec::Files(_)) => true,
                _ => false,
            };
            if laid_out {
                self.open.push(format!(
                    "'{}': what a file system, the page cache and the laying out of files make of it: a disk bills what arrives at it",
                    w.name
                ));
            }
            return;
        }
        if w.existing().is_some() {
            self.open.push(format!(
                "'{}': listings that find the objects that are there, and how large these are",
                w.name
            ));
            return;
        }
        let (read, deleted) = (self.prepared)(w);
        let mut n = Decimal::ZERO;
        if read > 0 && self.shared.insert(self.data_set(w, read)) {
            n = read.into();
        }
        if deleted > 0 {
            let each = add(deleted.into(), (whole_rounds(w) - 1).into());
            n = add(n, mul(each, times.into()));
        }
        if n > Decimal::ZERO {
            self.around.push(Sent::new(OpKind::Put, n, most(&w.size)));
        }
        self.removal(n);
    }

    /// What is the same for all that read the same objects.
    fn data_set(&self, w: &Workload, objects: u64) -> String {
        let target = self.plan.target_of(w).map_or("", |(name, _)| name);
        let o = w.object.as_ref();
        let (prefixes, named) = (o.map_or(1, |o| o.prefixes.max(1)), o.and_then(|o| o.dataset.as_ref()));
        format!("{target} {:?} {prefixes} {named:?} {objects}", w.size)
    }

    fn removal(&mut self, objects: Decimal) {
        if objects > Decimal::ZERO && self.removes() {
            self.around.extend(removal(objects));
        }
    }

    /// Ops whose number is not known: that the prices know them is asked all the same.
    fn named(&mut self, w: &Workload) {
        self.add_load(w, Decimal::ZERO);
        let writes = [OpKind::Put, OpKind::Multipart, OpKind::Copy];
        if writes.iter().any(|k| w.mix.get(k).is_some_and(|n| *n > 0)) && self.on_bucket(w) && self.removes()
        {
            self.around.push(Sent::new(OpKind::Delete, Decimal::ZERO, SizeDist::Fixed(Size(0))));
        }
    }

    fn add_load(&mut self, w: &Workload, ops: Decimal) {
        let weights: u64 = w.mix.values().map(|n| u64::from(*n)).sum();
        let one = w.mix.values().filter(|n| **n > 0).count() == 1;
        let mut written = Decimal::ZERO;
        for (kind, weight) in w.mix.iter().filter(|(_, n)| **n > 0) {
            let share = div(mul(ops, (*weight).into()), weights.max(1).into());
            // Which op comes next is drawn: of a mix a kind may come more often than its share, by six standard deviations at most.
            let n = if one { ops } else { add(share, mul(Decimal::from(6), root(share))).min(ops).ceil() };
            let size = most(&size_of(*kind, w));
            if *kind == OpKind::Multipart {
                let part = w.object.as_ref().map_or(8 << 20, |o| o.part_size.0).max(1);
                let parts = Decimal::from(size.max_bytes().div_ceil(part).max(1));
                self.load
                    .push(Sent { bytes: Decimal::ZERO, ..Sent::new(OpKind::Multipart, n, size.clone()) });
                let bytes = mul(n, size.max_bytes().into());
                let of_part = SizeDist::Fixed(Size(part));
                self.load.push(Sent { bytes, ..Sent::new(OpKind::UploadPart, mul(n, parts), of_part) });
            } else {
                self.load.push(Sent::new(*kind, n, size));
            }
            if let Some(b) = w.block.as_ref().filter(|_| *kind == OpKind::Write) {
                // Beside the ops that were asked for.
                for every in [b.fsync, b.fdatasync].into_iter().filter(|every| *every > 0) {
                    self.load.push(Sent::new(
                        OpKind::Fsync,
                        div(n, every.into()).ceil(),
                        SizeDist::Fixed(Size(0)),
                    ));
                }
            }
            if [OpKind::Put, OpKind::Multipart, OpKind::Copy].contains(kind) && self.on_bucket(w) {
                written = add(written, n);
            }
        }
        self.removal(written);
    }
}

impl PlanBound<'_> {
    /// One of each file by each thread, of which there are no more than ops in flight.
    fn end_syncs(&mut self, w: &Workload, times: u64) {
        if !w.block.as_ref().is_some_and(|b| b.end_fsync) {
            return;
        }
        let files = match self.plan.target_of(w) {
            Ok((_, TargetSpec::Files(f))) => f.files,
            _ => 1,
        };
        let n = mul(Decimal::from(w.in_flight().max(1)), mul(files.into(), times.into()));
        self.load.push(Sent::new(OpKind::Fsync, n, SizeDist::Fixed(Size(0))));
    }
}

/// Of a law the largest size: the bound is of the worst that is drawn.
pub(crate) fn most(size: &SizeDist) -> SizeDist {
    SizeDist::Fixed(Size(size.max_bytes()))
}

/// Objects to delete are made ready in whole rounds over the threads, of which there are no more than ops in flight: up to one less
/// than this are beyond what was asked for.
fn whole_rounds(w: &Workload) -> u64 {
    let batches = w.mix.get(&OpKind::DeleteBatch).is_some_and(|n| *n > 0);
    let batch = w.object.as_ref().filter(|_| batches).map_or(1, |o| u64::from(o.delete_batch.max(1)));
    u64::from(w.in_flight().max(1)).saturating_mul(batch)
}

/// The least bytes that an op of it can take off a bound on bytes, or a pace in bytes; 0: an op that takes none.
fn least_bytes(w: &Workload, kind: OpKind) -> u64 {
    let of = |size: &SizeDist| match size {
        SizeDist::Fixed(s) | SizeDist::Uniform { min: s, .. } => s.0,
        SizeDist::Weighted(list) => list.iter().map(|(s, _)| s.0).min().unwrap_or(0),
        SizeDist::LogNormal { .. } => 1,
    };
    match kind {
        OpKind::Stat | OpKind::List | OpKind::Delete | OpKind::DeleteBatch | OpKind::Fsync => 0,
        // No more than the object has.
        OpKind::GetRange => {
            let range = w.object.as_ref().and_then(|o| o.range).map_or(64 << 10, |r| r.0);
            range.min(of(&w.size))
        }
        _ => of(&size_of(kind, w)),
    }
}

/// The least of all ops that a workload may draw, or why there is none.
fn least_of_mix(w: &Workload) -> Result<Decimal, String> {
    if w.existing().is_some() {
        return Err("the sizes of what is there are not known before, so neither is how many requests take so many bytes: \
                    give --max-ops, or end it with --budget-cost"
            .into());
    }
    let kinds = w.mix.iter().filter(|(_, weight)| **weight > 0);
    let least = kinds.map(|(kind, _)| (least_bytes(w, *kind), *kind)).min();
    match least {
        Some((0, kind)) => Err(format!(
            "a '{kind}' may have no bytes, so how many requests come before the bytes are sent is not known: give --max-ops, or end it \
             with --budget-cost"
        )),
        other => Ok(other.map_or(1, |(bytes, _)| bytes).into()),
    }
}

/// Not below the square root.
fn root(x: Decimal) -> Decimal {
    let r = crate::number::amount(x).max(0.0).sqrt();
    decimal(r.ceil()).unwrap_or(Decimal::MAX)
}

/// Ops that a workload starts at most, warm-up included.
fn ops_of(stage: &Stage, w: &Workload) -> Result<Decimal, String> {
    let in_flight = Decimal::from(w.in_flight());
    let mut known: Vec<Decimal> = Vec::new();
    let mut why = None;
    known.extend(w.stop.ops.map(Decimal::from));
    if let Some(bytes) = w.stop.bytes {
        // Shared out over threads or jobs: each may end within an op.
        match least_of_mix(w) {
            Ok(least) => known.push(add(div(bytes.0.into(), least).ceil(), in_flight)),
            Err(open) => why = Some(open),
        }
    }
    if let Some(lasts) = w.stop.lasts() {
        let s = add(seconds_of(lasts), seconds_of(stage.warmup));
        match paced(w, s) {
            Ok(n) => known.extend(n.map(|n| add(n, in_flight))),
            Err(open) => why = Some(open),
        }
    }
    known.into_iter().min().ok_or_else(|| {
        why.unwrap_or_else(|| {
            "a closed loop sends as many requests as the storage answers: give --max-ops or --rate, or end it with --budget-cost".into()
        })
    })
}

/// Ops of an open loop in so many seconds, at most; none: a closed loop.
fn paced(w: &Workload, s: Decimal) -> Result<Option<Decimal>, String> {
    let rate = |r: f64| decimal(r).unwrap_or(Decimal::MAX);
    Ok(Some(match &w.pacing {
        Pacing::Closed => return Ok(None),
        Pacing::Constant(r) | Pacing::Capped(r) => mul(rate(r.0), s).ceil(),
        Pacing::Poisson(r) => {
            let mean = mul(rate(r.0), s);
            add(mean, mul(Decimal::from(6), root(mean))).ceil()
        }
        Pacing::Bytes(r) => div(mul(rate(r.0), s), least_of_mix(w)?).ceil(),
        Pacing::Ramp { from, to, .. } => mul(rate(from.0.max(to.0)), s).ceil(),
    }))
}
