//! Published and ours side by side: the types, and the arithmetic of a ratio and of a difference.

use plimsoll_model::Estimate;
use serde::Serialize;

/// Of [`Replication`].
pub const REPLICATE_SCHEMA: &str = "plimsoll.replicate/1";

/// All that can be said of a publication by measuring again.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replication {
    /// `plimsoll.replicate/1`.
    pub schema: String,
    /// Of our campaign.
    pub name: String,
    /// Who published.
    pub source: String,
    /// Where.
    pub url: Option<String>,
    /// What it was measured on, where that is known.
    pub hardware: Option<String>,
    /// Whether somebody says that it is what was measured here: absolute figures are compared then, too.
    pub is_same_hardware: bool,
    /// In the order of the campaign.
    pub comparisons: Vec<ComparedFigures>,
    /// What a reader has to know.
    pub notes: Vec<String>,
}

/// What is held against what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparedFigure {
    /// Op/s: only on the same hardware.
    OpsPerS,
    /// Bytes a second: only on the same hardware.
    BytesPerS,
    /// Rate over the lower of the promised rates at this size.
    ShareOfCap,
    /// Which of the promised rates is reached, to 95 %.
    CapReached,
    /// PUT over GET, or write over read, of one subject at one size.
    WriteOverRead,
    /// Payload over that at the largest size.
    OfLargestSize,
    /// A subject over the one before it.
    SubjectOverSubject,
    /// A subject over one that the source names.
    PublishedRatio,
    /// Payload at the largest size over op/s at the smallest, over the same of what is promised.
    KneeOfPromised,
    /// The knee that a probe found, over that of what is promised.
    LimitKnee,
    /// The rate of a burst over the one that is kept up.
    BurstOverSustained,
    /// Seconds that a full burst lasts; where it is shortened here, as long as it would last unshortened.
    BurstLasts,
    /// Runs before a fall.
    CliffAfterRuns,
    /// 1 - after / before.
    CliffDrop,
    /// What a month at the rate costs: the source's arithmetic made again, and the same of ours, unscaled.
    MonthAtRate,
}

/// What comes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplicaVerdict {
    /// Ours is higher: the interval of the difference is above zero.
    Higher,
    /// Ours is lower.
    Lower,
    /// Zero is in the interval of the difference. It is not shown that there is none.
    NoDifferenceSeen,
    /// Of what has no interval.
    Same,
    /// Of what has no interval.
    Differs,
    /// The data do not carry it.
    Inconclusive,
    /// It means nothing to compare them.
    NotComparable,
    /// The source has no figure.
    OnlyOurs,
    /// There is none of ours.
    OnlyPublished,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedFigures {
    /// What is compared.
    pub figure: ComparedFigure,
    /// Of the campaign.
    pub subject: String,
    /// The subject, op or size that it is a ratio to.
    pub over: Option<String>,
    /// Of the campaign.
    pub workload: String,
    /// The line of its runs.
    pub line: String,
    /// Null where its ops have no one size.
    pub size_bytes: Option<u64>,
    /// The same ratio of what is promised, there.
    pub promised: Option<f64>,
    /// Of a printed number the interval is its rounding.
    pub published: Option<Estimate>,
    /// With its interval over runs.
    pub ours: Option<Estimate>,
    /// In words, where it is no number.
    pub published_word: Option<String>,
    /// The same of ours.
    pub our_word: Option<String>,
    /// Ours less published, with the interval of both; of op/s and payload over the published one.
    pub difference: Option<Estimate>,
    /// What comes of it.
    pub verdict: ReplicaVerdict,
    /// Why it is not comparable, or not conclusive.
    pub why: Option<String>,
}

/// `a / b`, errors propagated in the logarithm: each end of its own, so that lopsided intervals stay so. An interval that reaches zero
/// has no logarithm, and is unbounded on that side.
pub(crate) fn ratio(a: Estimate, b: Estimate) -> Estimate {
    let value = a.value / b.value;
    let up = (a.high / a.value).ln().hypot((b.value / b.low).ln());
    let down = (a.value / a.low).ln().hypot((b.high / b.value).ln());
    let bounded = |x: f64, else_: f64| if x.is_nan() { else_ } else { x };
    Estimate {
        value,
        low: if a.low > 0.0 { bounded(value * (-down).exp(), f64::NEG_INFINITY) } else { f64::NEG_INFINITY },
        high: if b.low > 0.0 { bounded(value * up.exp(), f64::INFINITY) } else { f64::INFINITY },
        n_eff: a.n_eff.min(b.n_eff),
    }
}

/// `a - b`, as far apart as both may be.
pub(crate) fn less(a: Estimate, b: Estimate) -> Estimate {
    let value = a.value - b.value;
    let up = (a.high - a.value).hypot(b.value - b.low);
    let down = (a.value - a.low).hypot(b.high - b.value);
    Estimate { value, low: value - down, high: value + up, n_eff: a.n_eff.min(b.n_eff) }
}

impl ComparedFigures {
    /// A line of this subject and workload, without figures.
    pub(crate) fn bare(figure: ComparedFigure, subject: &str, workload: &str, line: &str) -> Self {
        Self {
            figure,
            subject: subject.to_owned(),
            over: None,
            workload: workload.to_owned(),
            line: line.to_owned(),
            size_bytes: None,
            promised: None,
            published: None,
            ours: None,
            published_word: None,
            our_word: None,
            difference: None,
            verdict: ReplicaVerdict::Inconclusive,
            why: None,
        }
    }

    /// What the interval of the difference says.
    pub(crate) fn judge(mut self, is_one_run: bool) -> Self {
        let (published, ours) = match (self.published, self.ours) {
            (Some(p), Some(o)) => (p, o),
            (None, _) => return self.told(ReplicaVerdict::OnlyOurs, "the source has none"),
            (_, None) => return self.told(ReplicaVerdict::OnlyPublished, "there is none of ours"),
        };
        let difference = less(ours, published);
        self.difference = Some(difference);
        if !(difference.half_width().is_finite() && difference.value.is_finite()) {
            return self.told(ReplicaVerdict::Inconclusive, "its interval has no end");
        }
        if is_one_run {
            let why = "a single run: another may differ by more than its interval says";
            return self.told(ReplicaVerdict::Inconclusive, why);
        }
        self.verdict = match () {
            () if difference.low > 0.0 => ReplicaVerdict::Higher,
            () if difference.high < 0.0 => ReplicaVerdict::Lower,
            () => ReplicaVerdict::NoDifferenceSeen,
        };
        self
    }

    /// A reason that is known already is the better one.
    pub(crate) fn told(mut self, verdict: ReplicaVerdict, why: &str) -> Self {
        self.verdict = verdict;
        self.why.get_or_insert_with(|| why.to_owned());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3 * b.abs()
    }

    #[test]
    fn a_ratio_and_a_difference_carry_the_errors_of_both() {
        // 100 +- 3 % over 50 +- 4 %: 2 with about 5 %.
        let r = ratio(Estimate::symmetric(100.0, 3.0, 5.0), Estimate::symmetric(50.0, 2.0, 3.0));
        assert!(near(r.value, 2.0) && r.n_eff == 3.0);
        // ln 1.03 = 0.029559, ln(50/48) = 0.040822: 0.050400 together; ln(100/97) = 0.030459, ln 1.04 = 0.039221: 0.049658.
        assert!(
            near(r.high, 2.0 * 0.050_400_f64.exp()) && near(r.low, 2.0 * (-0.049_658_f64).exp()),
            "{r:?}"
        );
        let d = less(Estimate::symmetric(0.98, 0.03, 5.0), Estimate::symmetric(0.90, 0.04, 5.0));
        assert!(near(d.value, 0.08) && near(d.low, 0.03) && near(d.high, 0.13), "{d:?}");
        let exact = ratio(Estimate::exact(1000.0), Estimate::exact(800.0));
        assert!(near(exact.value, 1.25) && exact.half_width().abs() < 1e-12);
    }

    #[test]
    fn an_interval_without_an_end_stays_without_one() {
        let open = Estimate::symmetric(10.0, f64::INFINITY, 1.0);
        let r = ratio(open, Estimate::exact(5.0));
        assert!(r.low == f64::NEG_INFINITY && r.high == f64::INFINITY && near(r.value, 2.0));
        let over = ratio(Estimate::exact(5.0), Estimate::symmetric(1.0, 2.0, 2.0));
        assert!(over.high == f64::INFINITY && over.low > 0.0, "{over:?}");
    }
}
