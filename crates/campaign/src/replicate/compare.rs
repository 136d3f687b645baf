//! What of two sides can be held against each other. On other hardware that is what has no dimension: shares of what is promised, and
//! ratios within one side.

use plimsoll_model::Estimate;

use super::compared::{ComparedFigure, ComparedFigures, ReplicaVerdict, ratio};
use super::side::{SideCell, find};

/// A promised rate counts as reached from this share on: a limiter's own accounting takes a few percent. (A choice.)
const REACHED: f64 = 0.95;
/// Ratios of what is promised that differ by less are the same: rounding of what is written.
const SAME_PROMISE: f64 = 0.005;

const ELSEWHERE: &str = "other hardware";

/// Our cells in their order, then what was published and is no cell of ours.
pub(crate) struct Pairs<'a> {
    pub list: Vec<(Option<&'a SideCell>, Option<&'a SideCell>)>,
    pub subjects: Vec<&'a str>,
}

impl<'a> Pairs<'a> {
    /// Published first, ours second.
    pub fn of(published: &'a [SideCell], ours: &'a [SideCell]) -> Self {
        let theirs = |o: &SideCell| {
            published
                .iter()
                .find(|p| p.is(o))
                // One that names another line of ours is of that line alone.
                .or_else(|| {
                    find(published, &o.subject, &o.workload, Some(&o.op))
                        .filter(|p| !ours.iter().any(|x| p.is(x)))
                })
        };
        let mut list: Vec<_> = ours.iter().map(|o| (theirs(o), Some(o))).collect();
        let is_used = |p: &SideCell| list.iter().any(|(t, _)| t.is_some_and(|t| std::ptr::eq(t, p)));
        let others: Vec<_> = published.iter().filter(|p| !is_used(p)).collect();
        list.extend(others.into_iter().map(|p| (Some(p), None)));
        let mut subjects: Vec<&str> = Vec::new();
        for name in list.iter().filter_map(|(p, o)| o.or(*p)).map(|c| c.subject.as_str()) {
            if !subjects.contains(&name) {
                subjects.push(name);
            }
        }
        Self { list, subjects }
    }

    /// Cells that both have a rate of.
    fn both(&self) -> impl Iterator<Item = (&'a SideCell, &'a SideCell)> {
        self.list.iter().filter_map(|(p, o)| Some(((*p)?, (*o)?)))
    }

    /// Cell by cell: absolute figures, share of what is promised, and which promise is reached.
    pub fn cells(&self, is_same_hardware: bool) -> Vec<ComparedFigures> {
        self.list.iter().flat_map(|(p, o)| cell(*p, *o, is_same_hardware)).collect()
    }

    /// PUT over GET, write over read: of the same subject, at the same size.
    pub fn writes_over_reads(&self) -> Vec<ComparedFigures> {
        let all: Vec<_> = self.both().collect();
        let mut out = Vec::new();
        for (write, read) in [("put", "get"), ("write", "read")] {
            for (p, o) in all.iter().filter(|(_, o)| o.op == write) {
                let same = |(_, r): &&(&SideCell, &SideCell)| {
                    r.subject == o.subject && r.op == read && r.size_bytes == o.size_bytes
                };
                let reads: Vec<_> = all.iter().filter(same).collect();
                // Of several it would be open which one.
                if let [(pr, or)] = reads[..] {
                    out.push(over(
                        ComparedFigure::WriteOverRead,
                        (p, o),
                        (pr, or),
                        SideCell::rate,
                        format!("{read} ({})", or.workload),
                    ));
                }
            }
        }
        out
    }

    /// Payload over that at the largest size of the same op.
    pub fn of_largest(&self) -> Vec<ComparedFigures> {
        let all: Vec<_> = self.both().filter(|(_, o)| o.size_bytes > 0).collect();
        let mut out = Vec::new();
        for (p, o) in &all {
            let same = all.iter().filter(|(_, l)| l.subject == o.subject && l.line == o.line);
            let Some((pl, ol)) = same.max_by_key(|(_, l)| l.size_bytes) else { continue };
            if ol.size_bytes > o.size_bytes {
                out.push(over(
                    ComparedFigure::OfLargestSize,
                    (p, o),
                    (pl, ol),
                    SideCell::payload,
                    ol.workload.clone(),
                ));
            }
        }
        out
    }

    /// Each subject over the one before it.
    pub fn subjects_over_each_other(&self) -> Vec<ComparedFigures> {
        let all: Vec<_> = self.both().collect();
        let mut out = Vec::new();
        for two in self.subjects.windows(2) {
            for (p, o) in all.iter().filter(|(_, o)| o.subject == two[1]) {
                let before = all
                    .iter()
                    .find(|(_, b)| b.subject == two[0] && b.workload == o.workload && b.line == o.line);
                let Some((pb, ob)) = before else { continue };
                let figure = ComparedFigure::SubjectOverSubject;
                let mut c = over(figure, (p, o), (pb, ob), SideCell::rate, two[0].to_owned());
                let promised = |a: &SideCell, b: &SideCell| Some(a.cap()?.0 / b.cap()?.0);
                c.promised = promised(p, pb);
                let (there, here) = (c.promised, promised(o, ob));
                if let (Some(there), Some(here)) = (there, here)
                    && (there / here - 1.0).abs() > SAME_PROMISE
                {
                    c.difference = None;
                    let why =
                        format!("promised are {there:.3} there, and {here:.3} here: one is scaled otherwise");
                    c.why = Some(why.clone());
                    c = c.told(ReplicaVerdict::NotComparable, &why);
                }
                out.push(c);
            }
        }
        out
    }

    /// Payload at the largest size over op/s at the smallest, where the promised knee lies between them.
    pub fn knees(&self) -> Vec<ComparedFigures> {
        let all: Vec<_> = self.both().filter(|(_, o)| o.size_bytes > 0).collect();
        let mut out = Vec::new();
        let mut seen: Vec<(&str, &str)> = Vec::new();
        for (_, o) in &all {
            if seen.contains(&(&o.subject, &o.line)) {
                continue;
            }
            seen.push((&o.subject, &o.line));
            let same = || all.iter().filter(|(_, l)| l.subject == o.subject && l.line == o.line);
            let (Some(small), Some(large)) =
                (same().min_by_key(|(_, l)| l.size_bytes), same().max_by_key(|(_, l)| l.size_bytes))
            else {
                continue;
            };
            let knee = |small: &SideCell, large: &SideCell| {
                let promised = small.promised_knee()?;
                let is_between = (small.size_bytes as f64) < promised && promised < large.size_bytes as f64;
                Some(ratio(large.payload()?, small.rate()?).scaled(1.0 / promised)).filter(|_| is_between)
            };
            let (published, ours) = (knee(small.0, large.0), knee(small.1, large.1));
            if published.is_none() && ours.is_none() {
                continue;
            }
            let mut c = ComparedFigures { published, ours, ..plain(ComparedFigure::KneeOfPromised, small.1) };
            c.over = Some("promised knee".into());
            c.workload = format!("{} to {}", small.1.workload, large.1.workload);
            c.size_bytes = None;
            c.promised = small.0.promised_knee();
            let single = [small.0, small.1, large.0, large.1].iter().any(|c| c.is_one_run);
            out.push(c.judge(single));
        }
        out
    }
}

/// A line without figures.
fn plain(figure: ComparedFigure, of: &SideCell) -> ComparedFigures {
    ComparedFigures {
        size_bytes: Some(of.size_bytes).filter(|n| *n > 0),
        ..ComparedFigures::bare(figure, &of.subject, &of.workload, &of.line)
    }
}

/// The same ratio on both sides.
fn over(
    figure: ComparedFigure,
    (p, o): (&SideCell, &SideCell),
    (pb, ob): (&SideCell, &SideCell),
    of: fn(&SideCell) -> Option<Estimate>,
    name: String,
) -> ComparedFigures {
    let both = |a: &SideCell, b: &SideCell| Some(ratio(of(a)?, of(b)?));
    let why = o.lacks.clone().or_else(|| ob.lacks.as_ref().map(|l| format!("{}: {l}", ob.subject)));
    let c = ComparedFigures {
        published: both(p, pb),
        ours: both(o, ob),
        over: Some(name),
        why,
        ..plain(figure, o)
    };
    c.judge([p, o, pb, ob].iter().any(|c| c.is_one_run))
}

fn cell(p: Option<&SideCell>, o: Option<&SideCell>, is_same_hardware: bool) -> Vec<ComparedFigures> {
    let Some(any) = o.or(p) else { return Vec::new() };
    // Of either side one run says nothing of the next.
    let is_one_run = [p, o].into_iter().flatten().any(|c| c.is_one_run);
    let why = match o {
        None => Some("no cell of this campaign".to_owned()),
        Some(o) => o.lacks.clone(),
    };
    let with = |figure, of: fn(&SideCell) -> Option<Estimate>| {
        let c = ComparedFigures {
            published: p.and_then(of),
            ours: o.and_then(of),
            why: why.clone(),
            ..plain(figure, any)
        };
        (c.published.is_some() || c.ours.is_some()).then_some(c)
    };
    let absolute = |c: ComparedFigures| match (c.published, c.ours) {
        (Some(published), Some(ours)) if is_same_hardware => relative(c, published, ours, is_one_run),
        (Some(_), Some(_)) => c.told(ReplicaVerdict::NotComparable, ELSEWHERE),
        _ => c.judge(is_one_run),
    };
    let mut out: Vec<ComparedFigures> = [
        with(ComparedFigure::OpsPerS, |s| s.ops).map(absolute),
        with(ComparedFigure::BytesPerS, |s| s.bytes).map(absolute),
        with(ComparedFigure::ShareOfCap, SideCell::share).map(|c| c.judge(is_one_run)),
    ]
    .into_iter()
    .flatten()
    .collect();
    out.extend(p.zip(o).and_then(|(p, o)| reached(p, o)));
    out
}

/// Of op/s and payload: how many percent ours is off.
fn relative(
    mut c: ComparedFigures,
    published: Estimate,
    ours: Estimate,
    is_one_run: bool,
) -> ComparedFigures {
    let r = ratio(ours, published);
    let off = Estimate { value: r.value - 1.0, low: r.low - 1.0, high: r.high - 1.0, n_eff: r.n_eff };
    (c.published, c.ours) = (Some(Estimate::exact(0.0)), Some(off));
    c = c.judge(is_one_run);
    (c.published, c.ours) = (Some(published), Some(ours));
    c
}

/// Which promised rate each side reaches.
fn reached(p: &SideCell, o: &SideCell) -> Option<ComparedFigures> {
    let word = |s: &SideCell| {
        let (share, (_, which)) = (s.share()?, s.cap()?);
        Some(match () {
            () if s.is_one_run => "open".to_owned(),
            () if share.low >= REACHED => which.to_owned(),
            () if share.high < REACHED => "none".to_owned(),
            () => "open".to_owned(),
        })
    };
    let (published, ours) = (word(p)?, word(o)?);
    let mut c = plain(ComparedFigure::CapReached, o);
    c.verdict = match () {
        () if published == "open" || ours == "open" => ReplicaVerdict::Inconclusive,
        () if published == ours => ReplicaVerdict::Same,
        () => ReplicaVerdict::Differs,
    };
    let why = if p.is_one_run || o.is_one_run {
        "a single run".to_owned()
    } else {
        format!("the interval of the share has {} % in it", REACHED * 100.0)
    };
    c.why = (c.verdict == ReplicaVerdict::Inconclusive).then_some(why);
    (c.published_word, c.our_word) = (Some(published), Some(ours));
    Some(c)
}
