//! What is wrong with a run, said of its lines: which may be used, and how much of the run that is.

use crate::claim::{Claim, ClaimKind, RunStatus, Status};
use crate::estimate::Estimate;
use crate::finding::{Finding, Level};
use crate::outcome::Outcome;
use crate::summary::{ClientSummary, Latencies, RunSummary, SCHEMA, WorkloadSummary};

/// What is too inexact in a part may be exact enough in a total; all else that is wrong with a part is wrong with the total.
const OF_PRECISION: [&str; 4] = ["V04", "V14", "V15", "V21"];

impl WorkloadSummary {
    /// As findings name the line.
    pub fn label(&self) -> String {
        if self.name == self.op { self.name.clone() } else { format!("{}/{}", self.name, self.op) }
    }

    /// Attempts that ended in one of the outcomes picked: `w.count(Outcome::is_throttled)`.
    pub fn count(&self, pick: fn(Outcome) -> bool) -> u64 {
        Outcome::ALL.into_iter().filter(|o| pick(*o)).filter_map(|o| self.outcomes.get(o.name())).sum()
    }

    /// Without anything that was measured: what was asked for stays.
    fn forget_figures(&mut self) {
        (self.ops_per_s, self.bytes_per_s, self.latency_ns) = (None, None, Latencies::default());
        (self.attempts_per_s, self.littles_law, self.client) = (0.0, None, ClientSummary::default());
        (self.window_s, self.horizon_s, self.warmup_s, self.tail_s) = (0.0, 0.0, 0.0, 0.0);
        self.each_ops_per_s.clear();
        self.outcomes.clear();
        self.per_endpoint.clear();
        self.notes.clear();
    }

    /// A sum over other lines: of a mix, or of jobs.
    pub fn is_total(&self) -> bool {
        self.together > 0 || self.op == "total"
    }

    fn is_named(&self, on: &str) -> bool {
        // The lines of one search among several begin with its name.
        let within = self.name.strip_prefix(on).is_some_and(|rest| rest.starts_with('/'));
        within
            || on == self.name
            || on.strip_prefix(&self.name).and_then(|r| r.strip_prefix('/')) == Some(&self.op)
    }

    fn is_part_of(&self, total: &Self) -> bool {
        if self.is_total() || self.name == total.name && self.op == total.op {
            return false;
        }
        if total.together > 0 {
            // Of the same stage, which is in the names where there are several.
            let stage = total.name.rsplit_once('/').map_or("", |(stage, _)| stage);
            return self.op == total.op && self.name.starts_with(stage);
        }
        self.name == total.name
    }
}

/// Of an open loop's offered rate, the share from which on it was met: nothing in the system held it back.
/// Guess: as much as an arrival process and the edges of a short window leave open.
const MET: f64 = 0.98;

impl RunSummary {
    /// Whether every line is of an open loop, and came as it was offered.
    pub fn offered_was_met(&self) -> bool {
        let met = |w: &WorkloadSummary| {
            let ok = w.count(Outcome::is_ok) as f64;
            w.offered_per_s.is_some_and(|offered| ok >= MET * offered * w.window_s)
        };
        !self.workloads.is_empty() && self.workloads.iter().all(met)
    }

    /// What makes one line invalid by name, whatever it is of the run.
    pub fn spoiled_by<'a>(&'a self, w: &'a WorkloadSummary) -> impl Iterator<Item = &'a Finding> {
        self.invalid().filter(move |f| f.workload.as_ref().is_some_and(|on| w.is_named(on)))
    }

    /// Codes of all that makes a line void: its own, those of its parts, those of the run.
    pub fn codes_of(&self, w: &WorkloadSummary) -> Vec<String> {
        let mut found: Vec<&Finding> = self.spoiled_by(w).chain(self.of_the_run()).collect();
        if w.is_total() {
            let parts = || self.workloads.iter().filter(|p| p.is_part_of(w));
            let all = parts().next().is_some() && parts().all(|p| self.spoiled_by(p).next().is_some());
            let counts = |f: &&Finding| {
                all || f.name == "nothing_succeeded" || !OF_PRECISION.contains(&f.code.as_str())
            };
            found.extend(parts().flat_map(|p| self.spoiled_by(p)).filter(counts));
        }
        // A fault of the stage is said of its total: it is one of each part, too.
        let totals = self.workloads.iter().filter(|t| t.is_total() && w.is_part_of(t));
        let of_stage = |f: &&Finding| !OF_PRECISION.contains(&f.code.as_str());
        found.extend(totals.flat_map(|t| self.spoiled_by(t)).filter(of_stage));
        let mut codes: Vec<String> = found.into_iter().map(|f| f.code.clone()).collect();
        codes.sort_unstable();
        codes.dedup();
        codes
    }

    /// Codes of whatever makes the run void, of any line.
    pub fn codes_of_the_answer(&self) -> Vec<String> {
        let mut codes: Vec<String> = self.invalid().map(|f| f.code.clone()).collect();
        codes.sort_unstable();
        codes.dedup();
        codes
    }

    fn invalid(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|f| f.level == Level::Invalid)
    }

    /// What is wrong with all of it: named after no line.
    fn of_the_run(&self) -> impl Iterator<Item = &Finding> {
        let of_a_line = |f: &&Finding| {
            f.workload.as_ref().is_some_and(|on| self.workloads.iter().any(|w| w.is_named(on)))
        };
        self.invalid().filter(move |f| !of_a_line(f))
    }

    /// Sets `workloads[].valid`, `status`, `valid` and `answered` from the findings. `answered`: whether what is wrong leaves
    /// the answer standing; `one_answer`: its lines lead to one answer together (a search).
    pub fn settle(&mut self, answered: bool, one_answer: bool) {
        self.drop_what_is_no_number();
        let valid: Vec<bool> = self.workloads.iter().map(|w| self.codes_of(w).is_empty()).collect();
        self.status = if self.invalid().next().is_none() {
            RunStatus::Valid
        } else if valid.iter().any(|v| *v) && (answered || !one_answer)
            || answered && one_answer && self.of_the_run().next().is_none()
        {
            RunStatus::Partly
        } else {
            RunStatus::None
        };
        let none = self.status == RunStatus::None;
        self.workloads.iter_mut().zip(valid).for_each(|(w, v)| w.valid = v && !none);
        self.valid = self.status == RunStatus::Valid;
        self.answered = self.valid || answered && !none;
    }

    /// Files of the result are not as they were written: no figure of it is shown, and the verdict says why.
    pub fn distrust(&mut self, altered: &[String]) {
        let text = format!(
            "{} was changed after it was written, so its figures are not shown. `plimsoll analyze {}` recreates it \
             from the raw data.",
            altered.join(" and "),
            self.id
        );
        for w in &mut self.workloads {
            w.forget_figures();
        }
        self.limits.clear();
        self.agents.clear();
        self.claims.clear();
        self.expectations.clear();
        self.verdict = format!("NOT VALID (V23). {text}");
        self.findings.insert(0, Finding::new("V23", "result_altered", Level::Invalid, text));
        self.settle(false, true);
    }

    /// An estimate without a value is none: JSON has no word for it, and nobody could read the file again.
    fn drop_what_is_no_number(&mut self) {
        let lines = self.workloads.iter_mut().flat_map(|w| [&mut w.ops_per_s, &mut w.bytes_per_s]);
        let mut all: Vec<&mut Option<Estimate>> = lines.collect();
        for l in &mut self.limits {
            all.push(&mut l.knee_bytes);
            for b in [&mut l.ops_per_s, &mut l.bytes_per_s].into_iter().flatten() {
                all.extend([
                    &mut b.sustained,
                    &mut b.burst,
                    &mut b.capacity,
                    &mut b.refill,
                    &mut b.full_again_s,
                ]);
            }
        }
        let is_number = |e: &Estimate| e.value.is_finite() && !e.low.is_nan() && !e.high.is_nan();
        all.into_iter().filter(|e| e.is_some_and(|e| !is_number(&e))).for_each(|e| *e = None);
    }

    /// The first claim.
    pub fn status_claim(&self) -> Claim {
        let codes = self.codes_of_the_answer();
        let mut void: Vec<String> =
            self.workloads.iter().filter(|w| !w.valid).map(WorkloadSummary::label).collect();
        void.dedup();
        let notes = self.findings.iter().filter(|f| f.level == Level::Qualified).count() as u32;
        let because = self.because();
        let lines = (self.workloads.len() as u32, void);
        let kind = match Status::new(self.status, self.answered, codes, lines, notes, because) {
            Ok(status) => ClaimKind::Status(status),
            Err(why) => crate::claim::Undetermined::new("whether the run may be used", why.0).into(),
        };
        Claim { subject: None, kind, text: String::new() }
    }

    /// The first fault in words. Of one that several lines have, it is told of the line that is furthest off, as in the table of
    /// findings.
    fn because(&self) -> String {
        let Some(first) = self.invalid().next() else { return String::new() };
        let same = |f: &&Finding| f.workload.is_some() && (&f.code, &f.name) == (&first.code, &first.name);
        let alike: Vec<&Finding> = self.invalid().filter(same).collect();
        let worst = alike.iter().copied().reduce(|a, b| if b.off_by() > a.off_by() { b } else { a });
        match worst.filter(|_| first.workload.is_some() && alike.len() > 1) {
            Some(Finding { text, workload: Some(on), .. }) => {
                format!("{text} (For {on}, the worst of {}.)", alike.len())
            }
            _ => first.text.clone(),
        }
    }

    /// A summary of `plimsoll.run/1` in the names of today: which lines are void is in its findings.
    pub fn from_schema_1(mut self) -> Self {
        let answered = self.valid;
        let searched = !self.limits.is_empty() || self.workloads.is_empty();
        self.settle(answered, searched);
        self.answered = answered;
        self.schema = SCHEMA.into();
        self.claims = vec![self.status_claim()];
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(names: &[(&str, &str)], bad: &[(&str, Option<&str>)]) -> RunSummary {
        let line = |(name, op): &(&str, &str)| WorkloadSummary {
            name: (*name).into(),
            op: (*op).into(),
            ..WorkloadSummary::default()
        };
        let finding = |(code, on): &(&str, Option<&str>)| Finding {
            workload: on.map(Into::into),
            ..Finding::new(code, "x", Level::Invalid, "t")
        };
        let findings = bad.iter().map(finding).collect();
        RunSummary { workloads: names.iter().map(line).collect(), findings, ..RunSummary::default() }
    }

    fn settled(names: &[(&str, &str)], bad: &[(&str, Option<&str>)]) -> (RunStatus, Vec<bool>) {
        let mut s = summary(names, bad);
        s.settle(bad.is_empty(), false);
        assert_eq!(s.valid, s.status == RunStatus::Valid);
        (s.status, s.workloads.iter().map(|w| w.valid).collect())
    }

    /// Whatever somebody wrote into a result is nowhere in what is shown of it.
    #[test]
    fn of_an_altered_result_no_figure_is_left() {
        let mut s = summary(&[("put", "put")], &[]);
        let w = &mut s.workloads[0];
        w.outcomes.insert("ok".into(), 987_654_321);
        (w.attempts_per_s, w.window_s, w.horizon_s) = (987_654_321.0, 987_654_321.0, 987_654_321.0);
        (w.ops_per_s, w.each_ops_per_s) =
            (Some(Estimate::exact(987_654_321.0)), vec![Estimate::exact(987_654_321.0)]);
        w.client.cpu_s = 987_654_321.0;
        w.notes.push("987654321".into());
        s.distrust(&["summary.json".into()]);
        assert!(!serde_json::to_string(&s).unwrap().contains("987654321"));
        assert!(s.verdict.contains("V23"));
    }

    #[test]
    fn lines_stand_and_fall_by_themselves_and_totals_with_their_parts() {
        use RunStatus::{None as Void, Partly, Valid};
        let two = [("put", "put"), ("get", "get")];
        assert_eq!(settled(&two, &[]), (Valid, vec![true, true]));
        assert_eq!(settled(&two, &[("V04", Some("put"))]), (Partly, vec![false, true]));
        assert_eq!(settled(&two, &[("V23", None)]), (Void, vec![false, false]));
        assert_eq!(settled(&two, &[("V04", Some("put")), ("V04", Some("get"))]), (Void, vec![false, false]));
        let mix = [("m", "put"), ("m", "get"), ("m", "total")];
        // A part that is inexact leaves its total; one that failed does not; nor do two that are void.
        assert_eq!(settled(&mix, &[("V04", Some("m/put"))]), (Partly, vec![false, true, true]));
        assert_eq!(settled(&mix, &[("V01", Some("m/put"))]), (Partly, vec![false, true, false]));
        assert_eq!(settled(&mix, &[("V07", Some("m/total"))]), (Void, vec![false; 3]));
        assert_eq!(settled(&mix, &[("V04", Some("m/total"))]), (Partly, vec![true, true, false]));
        assert_eq!(settled(&mix, &[("V04", Some("m/put")), ("V04", Some("m/get"))]), (Void, vec![false; 3]));
    }

    #[test]
    fn an_old_summary_says_which_lines_are_void() {
        let mut old = summary(&[("a", "put"), ("b", "put")], &[("V06", Some("b/put"))]);
        (old.valid, old.schema) = (true, super::super::SCHEMA_1.into());
        let new = old.from_schema_1();
        assert_eq!((new.valid, new.status, new.answered), (false, RunStatus::Partly, true));
        assert_eq!(new.workloads.iter().map(|w| w.valid).collect::<Vec<_>>(), [true, false]);
    }

    /// Of one fault of several lines, the verdict tells what the table of findings tells: the line that is furthest off.
    #[test]
    fn the_verdict_tells_the_worst_of_a_fault() {
        let steal = |on: &str, share: f64| {
            let text = format!("The hypervisor took {share} of the client's CPU time.");
            Finding::new("V22", "steal", Level::Invalid, text).measured(share, 0.05).on(on)
        };
        let mut s = summary(&[("a", "get"), ("b", "get"), ("c", "get")], &[]);
        s.findings = vec![steal("a/get", 0.059), steal("b/get", 0.251)];
        s.settle(true, false);
        let ClaimKind::Status(status) = s.status_claim().kind else { panic!("no status") };
        assert!(status.because.contains("0.251") && !status.because.contains("0.059"), "{}", status.because);
        assert!(status.because.contains("b/get"), "{}", status.because);
        // Of one line it is that line's.
        s.findings = vec![steal("a/get", 0.059)];
        let ClaimKind::Status(status) = s.status_claim().kind else { panic!("no status") };
        assert!(!status.because.contains("a/get"), "{}", status.because);
    }
}
