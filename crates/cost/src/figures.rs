//! The figures of a run: its subject's month, and what its rates come to.

use std::collections::BTreeMap;

use plimsoll_model::cost::{CostFigure, CostOptions, CostSummary, PriceProblem, PriceSubject};
use plimsoll_model::plan::SizeDist;
use plimsoll_model::summary::WorkloadSummary;
use plimsoll_model::units::Size;
use plimsoll_model::{Estimate, OpKind, Outcome};
use rust_decimal::Decimal;

use crate::number::{add, amount, decimal, div, mul, plain};
use crate::{CostItem, Sent, counted, fixed, total, used, written};

/// What a run has seen, as far as it costs.
#[derive(Debug, Clone, Default)]
pub struct RunSeen<'a> {
    /// Its lines of results.
    pub workloads: &'a [WorkloadSummary],
    /// What its load sent, warm-up and drain included. Empty: not known.
    pub sent: Vec<Sent>,
    /// From its start to the end of its load.
    pub seconds: f64,
    /// Fsyncs that came with each write of a line, by its name: they belong to the writes, and have no line of their own. None: not known.
    pub syncs: BTreeMap<String, Option<Decimal>>,
}

/// All figures that the prices and the run carry.
pub fn summary(c: &CostOptions, seen: &RunSeen<'_>) -> Result<CostSummary, PriceProblem> {
    let (name, subject) = c.chosen()?;
    let mut out = CostSummary {
        currency: c.currency.clone(),
        subject: name.to_owned(),
        date: subject.date.clone(),
        region: subject.region.clone(),
        source: subject.source.clone(),
        sha256: c.sha256.clone(),
        month_s: c.month.0.as_secs_f64(),
        counted: counted(subject),
        ..CostSummary::default()
    };
    let fixed = fixed::month(subject, c.month, &c.currency);
    if let Err(why) = &fixed {
        out.open.push(why.clone());
    }
    let fixed = fixed.ok();
    let of = Of { c, subject };
    if let Some(items) = fixed.as_ref().filter(|items| !items.is_empty()) {
        out.figures.push(of.exact("month", "/month", total(items), written(items, &c.currency)));
        out.figures.extend(of.per_tib(items));
    }
    for w in seen.workloads.iter().filter(|w| w.valid) {
        if let Some(items) = fixed.as_ref().filter(|items| !items.is_empty()) {
            out.figures.extend(of.per_rate(items, w));
        }
        match of.at_rate(fixed.as_deref(), w, seen) {
            Ok(figure) => out.figures.extend(figure),
            Err(why) if out.open.contains(&why) => {}
            Err(why) => out.open.push(why),
        }
    }
    if !seen.workloads.is_empty() && seen.workloads.iter().all(|w| !w.valid) {
        out.open.push("figures of a rate: the run has no valid line of results".into());
    }
    if !seen.sent.is_empty() {
        match of.run(seen) {
            Ok(figure) => out.figures.extend(figure),
            Err(why) if out.open.contains(&why) => {}
            Err(why) => out.open.push(why),
        }
    }
    Ok(out)
}

struct Of<'a> {
    c: &'a CostOptions,
    subject: &'a PriceSubject,
}

/// `fixed / (rate / scale)`, for the measured rate and its ends: the higher the rate, the less each op costs.
fn shared_over(fixed: Decimal, rate: &Estimate, scale: Decimal) -> Option<Estimate> {
    let at = |r: f64| decimal(r).filter(|r| *r > Decimal::ZERO).map(|r| amount(div(mul(fixed, scale), r)));
    Some(Estimate {
        value: at(rate.value)?,
        // An unbounded rate would cost nothing; one that may be 0, without end.
        low: at(rate.high).unwrap_or(0.0),
        high: at(rate.low).unwrap_or(f64::INFINITY),
        n_eff: rate.n_eff,
    })
}

impl Of<'_> {
    fn exact(&self, name: &str, per: &str, sum: Decimal, formula: String) -> CostFigure {
        CostFigure {
            name: name.into(),
            workload: None,
            unit: format!("{}{per}", self.c.currency),
            amount: Estimate::exact(amount(sum)),
            formula,
        }
    }

    fn per_tib(&self, fixed: &[CostItem]) -> Option<CostFigure> {
        let size = self.subject.size.filter(|s| s.0 > 0)?;
        let redundancy = self.subject.redundancy();
        let tib = Decimal::from(1u64 << 40);
        let sum = div(mul(mul(total(fixed), tib), redundancy), size.0.into());
        let formula = format!(
            "{} {} x 1TiB / {size} x {redundancy} (bytes paid for each that can be used) = {} {}",
            plain(total(fixed)),
            self.c.currency,
            plain(sum.round_dp(4)),
            self.c.currency
        );
        Some(self.exact("per_usable_tib", "/month per usable TiB", sum, formula))
    }

    /// The month, over each 1,000 op/s and each MiB/s that were held.
    fn per_rate(&self, fixed: &[CostItem], w: &WorkloadSummary) -> Vec<CostFigure> {
        let month = total(fixed);
        let currency = &self.c.currency;
        let figure = |name: &str, per: &str, scale: u64, rate: Option<Estimate>, shown: String| {
            let figure = CostFigure {
                name: name.into(),
                workload: Some(w.label()),
                unit: format!("{currency}/month per {per}"),
                amount: shared_over(month, &rate?, scale.into())?,
                formula: format!("{} {currency} / {shown}", plain(month)),
            };
            Some(figure)
        };
        let ops = w.ops_per_s;
        let text = |r: Option<Estimate>| r.map_or(String::new(), |r| r.value.to_string());
        let moves = OpKind::parse(&w.op).is_none_or(OpKind::moves_bytes);
        let bytes = w.bytes_per_s.filter(|_| moves);
        let block = OpKind::parse(&w.op).is_some_and(OpKind::is_block);
        let thousand = if block { "1,000 IOPS" } else { "1,000 op/s" };
        [
            figure("per_1000_ops_per_s", thousand, 1000, ops, format!("({} op/s / 1000)", text(ops))),
            figure("per_mib_per_s", "MiB/s", 1 << 20, bytes, format!("({} B/s / 1 MiB/s)", text(bytes))),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// A month of the rate that was measured, without a pause: what was refused or failed is paid, too, and comes as often as it did.
    fn at_rate(
        &self,
        fixed: Option<&[CostItem]>,
        w: &WorkloadSummary,
        seen: &RunSeen<'_>,
    ) -> Result<Option<CostFigure>, String> {
        let usage_is_priced = !self.subject.requests.is_empty()
            || self.subject.egress.is_some()
            || self.subject.ingress.is_some()
            || self.subject.retrieval.is_some();
        let (Some(fixed), Some(rate)) = (fixed, w.ops_per_s) else { return Ok(None) };
        // A sum of workloads of several kinds: its parts have their own.
        if !usage_is_priced || w.together > 0 {
            return Ok(None);
        }
        if rate.value <= 0.0 {
            return Err(format!("a month at the rate of '{}': nothing of it ended well", w.label()));
        }
        let currency = &self.c.currency;
        let month_s = decimal(self.c.month.0.as_secs_f64()).unwrap_or(Decimal::MAX);
        let mut kinds = kinds_of(w, seen.workloads).ok_or_else(|| {
            format!("a month at the rate of '{}': its ops are not known by kind", w.label())
        })?;
        let syncs = syncs_of(w, &kinds, seen)?;
        let synced = syncs
            .as_ref()
            .map_or(String::new(), |k| format!(", {} fsyncs with each,", plain(k.requests.round_dp(4))));
        kinds.extend(syncs);
        let at = |rate: f64| -> Result<Option<Vec<CostItem>>, String> {
            let Some(rate) = decimal(rate) else { return Ok(None) };
            let n = mul(rate.max(Decimal::ZERO), month_s);
            let sent: Vec<Sent> = kinds.iter().map(|k| k.sent(n)).collect();
            Ok(Some(used(self.subject, &sent, true, currency)?))
        };
        let month = total(fixed);
        let sum = |items: Vec<CostItem>| amount(add(total(&items), month));
        let Some(items) = at(rate.value)? else { return Ok(None) };
        let arithmetic = written(&[fixed, &items].concat(), currency);
        let tried = kinds.iter().filter(|k| !k.is_part).fold(Decimal::ZERO, |sum, k| add(sum, k.requests));
        let tried = match plain(tried.round_dp(4)) {
            one if one == "1" => String::new(),
            more => format!(", {more} attempts for each,"),
        };
        let formula = format!("{} op/s{tried}{synced} x {} s; {arithmetic}", rate.value, plain(month_s));
        Ok(Some(CostFigure {
            name: "month_at_rate".into(),
            workload: Some(w.label()),
            unit: format!("{currency}/month"),
            amount: Estimate {
                value: sum(items),
                low: at(rate.low)?.map_or(amount(month), sum),
                high: at(rate.high)?.map_or(f64::INFINITY, sum),
                n_eff: rate.n_eff,
            },
            formula,
        }))
    }

    /// The load of the run itself: what it sent, and the machines meanwhile.
    fn run(&self, seen: &RunSeen<'_>) -> Result<Option<CostFigure>, String> {
        let currency = &self.c.currency;
        let mut items = used(self.subject, &seen.sent, false, currency)?;
        let hours = fixed::hours(seen.seconds);
        items.extend(self.subject.instances.iter().map(|i| fixed::instances(i, hours, currency)));
        // Of prices that know no use, a run's own load is no figure.
        let figure = || self.exact("run", "", total(&items), written(&items, currency));
        Ok((!items.is_empty()).then(figure))
    }
}

/// What comes with each op of a line that ends well, of one kind.
struct KindShare {
    kind: OpKind,
    /// Begun, however they end.
    requests: Decimal,
    /// Of those that end well.
    bytes: Decimal,
    size: SizeDist,
    /// Of an upload or a write, which is the op.
    is_part: bool,
}

impl KindShare {
    fn sent(&self, n: Decimal) -> Sent {
        Sent {
            kind: self.kind,
            ops: mul(n, self.requests),
            bytes: mul(n, self.bytes),
            size: self.size.clone(),
        }
    }
}

/// What the ops of a line are: of one kind, or of a mix as the lines of its kinds were measured; with the parts of uploads.
fn kinds_of(w: &WorkloadSummary, all: &[WorkloadSummary]) -> Option<Vec<KindShare>> {
    let one = OpKind::parse(&w.op);
    let mut lines: Vec<(OpKind, &WorkloadSummary)> = match one {
        Some(kind) => vec![(kind, w)],
        None => {
            let of_mix = all.iter().filter(|p| p.name == w.name && w.mix.contains_key(&p.op));
            of_mix.filter_map(|p| Some((OpKind::parse(&p.op)?, p))).collect()
        }
    };
    let rate = |p: &WorkloadSummary| p.ops_per_s.and_then(|r| decimal(r.value)).unwrap_or(Decimal::ZERO);
    let sum = lines.iter().fold(Decimal::ZERO, |sum, (_, p)| add(sum, rate(p)));
    if sum <= Decimal::ZERO {
        return None;
    }
    if lines.iter().any(|(kind, _)| *kind == OpKind::Multipart) {
        let part = OpKind::UploadPart;
        lines.extend(all.iter().filter(|p| p.name == w.name && p.op == part.name()).map(|p| (part, p)));
    }
    let of_line = |(kind, p): (OpKind, &WorkloadSummary)| {
        let ok = div(rate(p), sum);
        let is_part = kind == OpKind::UploadPart && one != Some(kind);
        let size = law_of(p);
        KindShare { kind, requests: attempts(p, ok, sum), bytes: mul(ok, bytes_each(p)), size, is_part }
    };
    Some(lines.into_iter().map(of_line).collect())
}

/// Fsyncs with each op of a line: as often as they came with its writes.
fn syncs_of(
    w: &WorkloadSummary,
    kinds: &[KindShare],
    seen: &RunSeen<'_>,
) -> Result<Option<KindShare>, String> {
    let writes =
        kinds.iter().filter(|k| k.kind == OpKind::Write).fold(Decimal::ZERO, |n, k| add(n, k.requests));
    let Some(each) = seen.syncs.get(&w.name).filter(|_| writes > Decimal::ZERO) else { return Ok(None) };
    let each = each.ok_or_else(|| {
        format!("a month at the rate of '{}': how many fsyncs come with its writes is not known", w.label())
    })?;
    let requests = mul(writes, each);
    let size = SizeDist::Fixed(Size(0));
    Ok((requests > Decimal::ZERO).then_some(KindShare {
        kind: OpKind::Fsync,
        requests,
        bytes: Decimal::ZERO,
        size,
        is_part: true,
    }))
}

/// `ok` that end well, and the refused and failed ones beside them; of rates that add up to `sum`.
fn attempts(p: &WorkloadSummary, ok: Decimal, sum: Decimal) -> Decimal {
    let counts = |name: &str| name != Outcome::Ok.name() && name != Outcome::Cancelled.name();
    if !p.outcomes.iter().any(|(name, n)| *n > 0 && counts(name)) {
        // The two rates may differ all the same: of repeats one is a mean of another sort.
        return ok;
    }
    decimal(p.attempts_per_s).map_or(ok, |tried| div(tried, sum)).max(ok)
}

/// The line's law of sizes is kept as the plan wrote it.
fn law_of(w: &WorkloadSummary) -> SizeDist {
    match &w.size {
        _ if w.size_bytes == 0 => SizeDist::Fixed(Size(0)),
        serde_json::Value::String(_) => SizeDist::Fixed(Size(w.size_bytes)),
        law => serde_json::from_value(law.clone()).unwrap_or(SizeDist::Fixed(Size(w.size_bytes))),
    }
}

/// Of an op that ends well.
fn bytes_each(w: &WorkloadSummary) -> Decimal {
    let measured = w.ops_per_s.zip(w.bytes_per_s).filter(|(ops, _)| ops.value > 0.0);
    let each = measured.and_then(|(ops, bytes)| Some(div(decimal(bytes.value)?, decimal(ops.value)?)));
    each.unwrap_or(w.size_bytes.into())
}
