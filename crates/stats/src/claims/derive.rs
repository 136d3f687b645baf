//! The claims of a run, in the order in which they are read: validity, refusals, rates or limits, horizon, confidence, what
//! to do next.

use plimsoll_model::analysis::LoadPoint;
use plimsoll_model::claim::{Claim, ClaimKind, Refusal, Undetermined};
use plimsoll_model::{Analysis, RunSummary};

use super::{DEFAULT_GOAL_S, limits, lines, next, search, words};

/// What is collected while claims are made.
#[derive(Debug, Default)]
pub(super) struct Claims(Vec<Claim>);

impl Claims {
    pub fn add(&mut self, subject: Option<String>, kind: impl Into<ClaimKind>) {
        self.0.push(Claim { subject, kind: kind.into(), text: String::new() });
    }

    /// The claim, or that it is undetermined, with the reason.
    pub fn add_or(
        &mut self,
        subject: Option<String>,
        made: Result<ClaimKind, Refusal>,
        what: impl Into<String>,
    ) {
        let kind = made.unwrap_or_else(|why| Undetermined::new(what, why.0).into());
        self.add(subject, kind);
    }

    /// The claim where it may be made; nothing is missing where it may not.
    pub fn add_if(&mut self, subject: Option<String>, made: Result<ClaimKind, Refusal>) {
        if let Ok(kind) = made {
            self.add(subject, kind);
        }
    }
}

/// All that may be said. `s` is settled (`RunSummary::settle`); its verdict and claims are not looked at.
/// `goal_s`: the horizon that the user needs.
pub fn derive(s: &RunSummary, a: &Analysis, goal_s: Option<f64>) -> Vec<Claim> {
    let goal_s = goal_s.unwrap_or(DEFAULT_GOAL_S);
    let mut out = Claims(vec![s.status_claim()]);
    next::losses(&s.findings, &mut out);
    for o in &a.outages {
        out.add(None, ClaimKind::Outage(o.clone()));
    }
    next::throttled(&s.findings, &mut out);
    lines::refusals(s, a, &mut out);
    lines::mixes(s, &mut out);
    for m in &a.size_models {
        limits::of_sizes(m, &mut out);
    }
    if !a.saturations.is_empty() {
        for found in &a.saturations {
            // Of one search alone they are all.
            let is_mine = |p: &&LoadPoint| a.saturations.len() == 1 || p.op_class == found.op_class;
            let load: Vec<&LoadPoint> = a.load_points.iter().filter(is_mine).collect();
            search::of_search(s, found, &load, goal_s, &mut out);
        }
    } else if s.limits.is_empty() {
        lines::rates(s, a, goal_s, &mut out);
        lines::horizon(s, goal_s, &mut out);
    } else {
        for l in &s.limits {
            limits::of_limit(s, l, goal_s, &mut out);
        }
        next::kinds(&s.findings, &mut out);
    }
    next::servers(s, &a.bottlenecks, &mut out);
    next::notes(&s.findings, &mut out);
    next::next(&s.findings, &mut out);
    next::ceiling(&s.findings, &mut out);
    let mut claims = out.0;
    for c in &mut claims {
        c.text = words::sentence(c);
    }
    claims
}
