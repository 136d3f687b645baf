//! Which requests belong together: warp's file does not say where its preparation ends.

use std::collections::BTreeMap;

use plimsoll_model::OpKind;

/// A preparation takes this long at least; what is shorter is the beginning of a mix. (A choice.)
const LEAST_LEAD_NS: i64 = 1_000_000_000;

/// Of one kind of op: from the first start to the last end, nanoseconds since 1970, and the last start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub first: i64,
    pub last_start: i64,
    pub last_end: i64,
}

impl Extent {
    pub fn of(start: i64, end: i64) -> Self {
        Self { first: start, last_start: start, last_end: end }
    }

    pub fn add(&mut self, start: i64, end: i64) {
        self.first = self.first.min(start);
        self.last_start = self.last_start.max(start);
        self.last_end = self.last_end.max(end);
    }
}

/// A stretch of the file that is a stage of its own: ops that went on at the same time. Nanoseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageSpan {
    /// Of its first request.
    pub start_ns: i64,
    /// When the last one started: from then on the load runs out.
    pub last_start_ns: i64,
    /// When the last one ended.
    pub end_ns: i64,
    /// What it consists of.
    pub kinds: Vec<OpKind>,
}

/// Finds the stages while requests come in order of their start.
#[derive(Debug, Clone, Default)]
pub(super) struct Divider {
    /// The kind of the first requests, for as long as there is no other.
    lead: Option<(OpKind, Extent)>,
    /// When the first request of another kind started.
    other_ns: Option<i64>,
    rest: BTreeMap<OpKind, Extent>,
    is_sorted: bool,
    latest: i64,
}

impl Divider {
    pub fn new() -> Self {
        Self { is_sorted: true, latest: i64::MIN, ..Self::default() }
    }

    pub fn add(&mut self, kind: OpKind, start: i64, end: i64) {
        self.is_sorted &= start >= self.latest;
        self.latest = self.latest.max(start);
        match &mut self.lead {
            None => self.lead = Some((kind, Extent::of(start, end))),
            Some((lead, extent)) if *lead == kind && self.other_ns.is_none() => extent.add(start, end),
            Some(_) => {
                self.other_ns.get_or_insert(start);
                self.rest.entry(kind).and_modify(|e| e.add(start, end)).or_insert(Extent::of(start, end));
            }
        }
    }

    /// In order of time. Kinds whose times overlap are one stage; of what comes first, a stretch of one kind that was over before
    /// any other began, and was no mere beginning, is one, too: the preparation.
    pub fn stages(&self) -> Vec<StageSpan> {
        let Some((kind, lead)) = self.lead else { return Vec::new() };
        let is_apart = self.is_sorted
            && self.other_ns.is_none_or(|other| {
                lead.last_end <= other
                    && (other - lead.first >= LEAST_LEAD_NS || !self.rest.contains_key(&kind))
            });
        let mut rest = self.rest.clone();
        let mut out = Vec::new();
        if is_apart {
            out.push(span(&[(kind, lead)]));
        } else {
            rest.entry(kind)
                .and_modify(|e| {
                    e.add(lead.first, lead.last_end);
                    e.last_start = e.last_start.max(lead.last_start);
                })
                .or_insert(lead);
        }
        let mut kinds: Vec<(OpKind, Extent)> = rest.into_iter().collect();
        kinds.sort_by_key(|(_, e)| e.first);
        let mut group: Vec<(OpKind, Extent)> = Vec::new();
        for k in kinds {
            if group.iter().all(|(_, e)| e.last_end <= k.1.first) && !group.is_empty() {
                out.push(span(&group));
                group.clear();
            }
            group.push(k);
        }
        if !group.is_empty() {
            out.push(span(&group));
        }
        out
    }
}

fn span(group: &[(OpKind, Extent)]) -> StageSpan {
    let ns = |of: fn(&Extent) -> i64| group.iter().map(move |(_, e)| of(e));
    StageSpan {
        start_ns: ns(|e| e.first).min().unwrap_or_default(),
        last_start_ns: ns(|e| e.last_start).max().unwrap_or_default(),
        end_ns: ns(|e| e.last_end).max().unwrap_or_default(),
        kinds: group.iter().map(|(k, _)| *k).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn divided(ops: &[(OpKind, i64, i64)]) -> Vec<(i64, i64, Vec<OpKind>)> {
        let mut d = Divider::new();
        ops.iter().for_each(|(k, s, e)| d.add(*k, s * S, e * S));
        d.stages().into_iter().map(|s| (s.start_ns / S, s.end_ns / S, s.kinds)).collect()
    }

    #[test]
    fn a_preparation_is_a_stage_of_its_own() {
        use OpKind::{Get, Put, Stat};
        assert_eq!(
            divided(&[(Put, 1, 2), (Put, 2, 4), (Get, 4, 5), (Get, 6, 9)]),
            [(1, 4, vec![Put]), (4, 9, vec![Get])]
        );
        // Also before a mix that has the same kind in it.
        assert_eq!(
            divided(&[(Put, 1, 2), (Put, 2, 4), (Get, 4, 6), (Put, 5, 8), (Stat, 6, 9)]),
            [(1, 4, vec![Put]), (4, 9, vec![Get, Put, Stat])]
        );
    }

    #[test]
    fn a_mix_is_one_stage() {
        use OpKind::{Get, Put};
        assert_eq!(divided(&[(Put, 1, 3), (Get, 2, 3), (Put, 3, 4)]), [(1, 4, vec![Put, Get])]);
        assert_eq!(divided(&[]), []);
        assert_eq!(divided(&[(Put, 1, 3)]), [(1, 3, vec![Put])]);
    }
}
