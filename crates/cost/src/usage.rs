//! What was sent, or will be, to money: requests by class, and bytes that travel.

use plimsoll_model::OpKind;
use plimsoll_model::cost::{PriceSubject, RequestPrice, TransferPrice};
use plimsoll_model::plan::{SizeDist, Workload};
use plimsoll_model::units::Size;
use rust_decimal::Decimal;

use crate::CostItem;
use crate::number::{above, add, div, mul, plain};

/// Ops of one kind and one law of sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct Sent {
    /// What was done.
    pub kind: OpKind,
    /// How often, failed and refused attempts included: most providers bill them.
    pub ops: Decimal,
    /// Of the ops.
    pub size: SizeDist,
    /// That travelled with all of them.
    pub bytes: Decimal,
}

impl Sent {
    /// So many ops of a kind, with the bytes that come with them.
    pub fn new(kind: OpKind, ops: Decimal, size: SizeDist) -> Self {
        let each = Decimal::from(size.mean_bytes());
        Self { kind, ops, bytes: mul(ops, each), size }
    }
}

/// The law of sizes of a kind of a workload's ops.
pub fn size_of(kind: OpKind, w: &Workload) -> SizeDist {
    let object = w.object.as_ref();
    match kind {
        OpKind::GetRange => object.and_then(|o| o.range).map_or_else(|| w.size.clone(), SizeDist::Fixed),
        // An fsync carries nothing: of a price by units it is one.
        OpKind::Fsync => SizeDist::Fixed(Size(0)),
        OpKind::UploadPart => object.map_or_else(|| w.size.clone(), |o| SizeDist::Fixed(o.part_size)),
        OpKind::Write | OpKind::Trim => {
            w.block.as_ref().and_then(|b| b.write_size.clone()).unwrap_or_else(|| w.size.clone())
        }
        _ => w.size.clone(),
    }
}

/// How an op counts as requests: a multipart upload is begun and completed.
fn requests_of(kind: OpKind) -> Decimal {
    if kind == OpKind::Multipart { Decimal::TWO } else { Decimal::ONE }
}

/// Units of an op, on average; of laws of sizes that are not written out at most so many.
fn units_of(size: &SizeDist, unit: Size) -> Decimal {
    let of = |s: &Size| div(s.0.into(), unit.0.into()).ceil().max(Decimal::ONE);
    match size {
        SizeDist::Fixed(s) => of(s),
        SizeDist::Weighted(list) => {
            let weights: u64 = list.iter().map(|(_, w)| u64::from(*w)).sum();
            let sum = list.iter().fold(Decimal::ZERO, |sum, (s, w)| add(sum, mul(of(s), (*w).into())));
            if weights > 0 { div(sum, weights.into()) } else { Decimal::ONE }
        }
        SizeDist::Uniform { .. } | SizeDist::LogNormal { .. } => {
            add(div(size.mean_bytes().into(), unit.0.into()), Decimal::ONE)
        }
    }
}

/// What the prices ask for it. `monthly`: it is all of a month, from which what is included is taken. An op that the prices do not
/// know is an error, where they know any.
pub fn used(s: &PriceSubject, sent: &[Sent], monthly: bool, currency: &str) -> Result<Vec<CostItem>, String> {
    if !s.requests.is_empty() {
        let known = |kind| s.requests.iter().any(|r| r.ops.contains(&kind)) || kind == OpKind::Null;
        if let Some(x) = sent.iter().find(|x| !known(x.kind)) {
            return Err(format!(
                "the prices have no class for '{}': add it to the ops of one, with price = 0 where it is free",
                x.kind
            ));
        }
    }
    let mut items: Vec<CostItem> =
        s.requests.iter().filter_map(|r| requests(r, sent, monthly, currency)).collect();
    let (out, come) =
        ([OpKind::Get, OpKind::GetRange].as_slice(), [OpKind::Put, OpKind::UploadPart].as_slice());
    let ways = [("egress", &s.egress, out), ("retrieval", &s.retrieval, out), ("ingress", &s.ingress, come)];
    for (what, price, kinds) in ways {
        let Some(price) = price else { continue };
        let of_kind = sent.iter().filter(|x| kinds.contains(&x.kind));
        let bytes = of_kind.fold(Decimal::ZERO, |sum, x| add(sum, x.bytes));
        if bytes > Decimal::ZERO {
            items.push(transfer(what, price, bytes, monthly, currency));
        }
    }
    Ok(items)
}

/// Which ops each class of the prices counts, in words: an op that is in none of them has no price.
pub fn counted(s: &PriceSubject) -> Vec<String> {
    let class = |r: &RequestPrice| {
        let ops: Vec<&str> = r.ops.iter().map(|op| op.name()).collect();
        let unit = r.unit.map_or(String::new(), |u| format!(", once for each begun {u}"));
        let free = if r.price.0.is_zero() { ", at no price" } else { "" };
        format!("{} counts {}{unit}{free}", r.class, ops.join(", "))
    };
    s.requests.iter().map(class).collect()
}

fn requests(r: &RequestPrice, sent: &[Sent], monthly: bool, currency: &str) -> Option<CostItem> {
    let of_class: Vec<&Sent> =
        sent.iter().filter(|x| r.ops.contains(&x.kind) && x.ops > Decimal::ZERO).collect();
    if of_class.is_empty() {
        return None;
    }
    let count = |x: &&Sent| {
        let n = mul(x.ops, requests_of(x.kind));
        r.unit.map_or(n, |unit| mul(n, units_of(&x.size, unit)))
    };
    // What was begun is a request.
    let all = of_class.iter().fold(Decimal::ZERO, |sum, x| add(sum, count(x))).ceil();
    let included = if monthly { Decimal::from(r.included) } else { Decimal::ZERO };
    let paid = above(all, included);
    let per = Decimal::from(r.per);
    let lots = div(paid, per);
    let lots = if r.round_up { lots.ceil() } else { lots };
    let less = if included.is_zero() { String::new() } else { format!(" - {} included", plain(included)) };
    let up = if r.round_up { " (rounded up)" } else { "" };
    let unit = r.unit.map_or(String::new(), |u| format!(" of {u}"));
    let n = plain(all);
    let n =
        if less.is_empty() { format!("{n} requests{unit}") } else { format!("({n} requests{unit}{less})") };
    Some(CostItem {
        what: r.class.clone(),
        // Multiplied first: a third of a lot has no end.
        amount: if r.round_up { mul(lots, r.price.0) } else { div(mul(paid, r.price.0), per) },
        formula: format!("{n} / {}{up} x {} {currency}", r.per, r.price),
    })
}

fn transfer(what: &str, t: &TransferPrice, bytes: Decimal, monthly: bool, currency: &str) -> CostItem {
    let included = t.included.filter(|_| monthly);
    let paid = above(bytes, included.map_or(Decimal::ZERO, |i| i.0.into()));
    let less = included.map_or(String::new(), |i| format!(" - {i} included"));
    CostItem {
        what: what.to_owned(),
        amount: div(mul(paid, t.price.0), t.per.0.into()),
        formula: format!("({} B{less}) / {} x {} {currency}", plain(bytes.ceil()), t.per, t.price),
    }
}
