//! What a run has cost so far, by what was sent: what a budget of money is held against.

use std::collections::BTreeMap;

use plimsoll_model::OpKind;
use plimsoll_model::cost::{CostOptions, PriceSubject};
use plimsoll_model::plan::SizeDist;
use rust_decimal::Decimal;

use crate::bound::{allowance, most, removal};
use crate::number::{add, plain};
use crate::{Sent, fixed, total, used};

/// Follows a run slice by slice. What cannot be priced was refused before the run began.
#[derive(Debug, Clone)]
pub struct MoneyMeter {
    cost: CostOptions,
    budget: Decimal,
    /// For what is not counted here: data that is prepared, and its removal.
    around: Decimal,
    /// By kind, and by the workload whose law of sizes it has.
    sent: BTreeMap<(OpKind, u64), Sent>,
    /// Objects that were written are removed, each with a request at most.
    removes: bool,
    /// Objects that were put there to be read or deleted.
    ready: BTreeMap<String, Sent>,
}

impl MoneyMeter {
    /// None: there is no budget. `around`: what is spent beside the load, as [`crate::bound`] has it. `removes`: the run removes what
    /// it writes to a bucket.
    pub fn new(cost: &CostOptions, around: Decimal, removes: bool) -> Option<Self> {
        let budget = cost.budget.as_ref()?.amount.0;
        Some(Self { budget, ..Self::counting(cost, around, removes) })
    }

    /// One that only counts: nothing is too much for it.
    pub fn counting(cost: &CostOptions, around: Decimal, removes: bool) -> Self {
        let (sent, ready) = (BTreeMap::new(), BTreeMap::new());
        Self { cost: cost.clone(), budget: Decimal::MAX, around, sent, removes, ready }
    }

    /// Objects were put there before a stage: of these `around` has a part, of a search that of its first step.
    pub fn made_ready(&mut self, size: &SizeDist, objects: u64) {
        let none = || Sent::new(OpKind::Put, Decimal::ZERO, most(size));
        let entry = self.ready.entry(format!("{size:?}")).or_insert_with(none);
        let more = Sent::new(OpKind::Put, objects.into(), most(size));
        entry.ops = add(entry.ops, more.ops);
        entry.bytes = add(entry.bytes, more.bytes);
    }

    /// More ops of a kind were sent. `law`: a number for the law of sizes, the same for the same.
    pub fn sent(&mut self, kind: OpKind, law: u64, size: &SizeDist, ops: u64, bytes: u64) {
        if ops == 0 && bytes == 0 {
            return;
        }
        let none = || Sent { kind, ops: Decimal::ZERO, size: size.clone(), bytes: Decimal::ZERO };
        let entry = self.sent.entry((kind, law)).or_insert_with(none);
        entry.ops = add(entry.ops, ops.into());
        entry.bytes = add(entry.bytes, bytes.into());
    }

    /// What was sent before, of a run that goes on.
    pub fn sent_before(&mut self, sent: &[Sent]) {
        for (i, s) in (0u64..).zip(sent) {
            // Beyond the numbers of any stage.
            self.sent.insert((s.kind, u64::MAX - i), s.clone());
        }
    }

    /// What it comes to, `seconds` after the run's start: with the removal of what was written.
    pub fn spent(&self, seconds: f64) -> Decimal {
        let Ok((_, subject)) = self.cost.chosen() else { return Decimal::ZERO };
        let mut sent: Vec<Sent> = self.sent.values().cloned().collect();
        if self.removes {
            let written = [OpKind::Put, OpKind::Multipart, OpKind::Copy];
            let objects = sent.iter().filter(|s| written.contains(&s.kind));
            let n = objects.fold(Decimal::ZERO, |sum, s| add(sum, s.ops));
            if n > Decimal::ZERO {
                sent.push(Sent::new(OpKind::Delete, n, SizeDist::Fixed(plimsoll_model::units::Size(0))));
            }
        }
        let items = used(subject, &sent, false, &self.cost.currency).unwrap_or_default();
        let hours = fixed::hours(seconds);
        let machines: Vec<_> =
            subject.instances.iter().map(|i| fixed::instances(i, hours, &self.cost.currency)).collect();
        add(add(total(&items), total(&machines)), self.around.max(self.around_so_far(subject)))
    }

    /// What was made ready, its removal and the run's marks, as [`crate::bound`] counts them.
    fn around_so_far(&self, subject: &PriceSubject) -> Decimal {
        if self.ready.is_empty() {
            return Decimal::ZERO;
        }
        let mut sent: Vec<Sent> = self.ready.values().cloned().collect();
        let objects = sent.iter().fold(Decimal::ZERO, |sum, s| add(sum, s.ops));
        if self.removes {
            sent.extend(removal(objects));
        }
        let items = used(subject, &sent, false, &self.cost.currency).unwrap_or_default();
        allowance(subject, &self.cost.currency)
            .map_or(total(&items), |marks| add(total(&items), marks.amount))
    }

    /// Whether the budget is used up; then in words, with what was spent.
    pub fn over(&self, seconds: f64) -> Option<String> {
        let spent = self.spent(seconds);
        (spent >= self.budget).then(|| self.said(spent))
    }

    /// `20.01 USD of 20 USD`
    pub fn said(&self, spent: Decimal) -> String {
        let currency = &self.cost.currency;
        format!("{} {currency} of {} {currency}", plain(spent), plain(self.budget))
    }

    /// By how much more than the budget was spent, in words; none: it was kept.
    pub fn overshoot(&self, seconds: f64) -> Option<String> {
        let more = self.spent(seconds) - self.budget;
        (more > Decimal::ZERO).then(|| format!("{} {}", plain(more), self.cost.currency))
    }
}
