//! The probe's outcome in the words of the run summary: a limit, its evidence, and what remains open.

use plimsoll_model::summary::{BucketSummary, LimitSummary};
use plimsoll_model::{Estimate, Finding, Level};

use super::{Capacity, Found, Outcome};
use crate::words;

impl Outcome {
    /// As the summary has it. The scope is unknown until another probe varies it.
    pub fn summary(&self, target: &str, op_class: &str) -> LimitSummary {
        let bucket = |f: &Found| f.sustained.map(|_| f.bucket());
        let binding = match (self.ops.is_bucket(), self.bytes.is_bucket()) {
            (true, true) => "both",
            (true, false) => "ops",
            (false, true) => "bytes",
            (false, false) => "none",
        };
        LimitSummary {
            target: target.into(),
            op_class: op_class.into(),
            scope: "unknown".into(),
            ops_per_s: bucket(&self.ops),
            bytes_per_s: bucket(&self.bytes),
            knee_bytes: self.knee_bytes(),
            binding: binding.into(),
            evidence: self.evidence(),
        }
    }

    /// Bytes rate over ops rate: where the binding limit changes. `None` unless both rates are known.
    pub fn knee_bytes(&self) -> Option<Estimate> {
        let (o, b) = (self.ops.sustained?, self.bytes.sustained?);
        if !(o.value > 0.0 && b.value > 0.0) {
            return None;
        }
        // Relative half widths of independent measurements add in quadrature.
        let r = o.relative_half_width().hypot(b.relative_half_width());
        let knee = b.value / o.value;
        let factor = if r.is_finite() { r.exp() } else { f64::INFINITY };
        Some(Estimate { value: knee, low: knee / factor, high: knee * factor, n_eff: o.n_eff.min(b.n_eff) })
    }

    /// One line per drain.
    pub fn evidence(&self) -> Vec<(String, String)> {
        let mut out = Vec::new();
        for f in [&self.ops, &self.bytes] {
            for (i, d) in f.drains.iter().enumerate() {
                let idle = d.idle_s.map_or("first".into(), |s| format!("after {} of rest", words::span(s)));
                let cliff = d.cliff_s.map_or(String::new(), |s| format!(", cliff at {}", words::span(s)));
                let found =
                    d.recovered.map_or("unknown".into(), |r| plimsoll_model::units::significant(r, 4));
                let text = format!(
                    "{idle}: {}{cliff}, plateau {}, {found} tokens beyond it, {} long",
                    d.kind.name(),
                    plimsoll_model::units::significant(d.rate, 4),
                    words::span(d.length_s)
                );
                out.push((format!("{} drain {}", f.resource.name(), i + 1), text));
            }
        }
        out
    }

    /// What remains undetermined, each with what would settle it.
    pub fn findings(&self) -> Vec<Finding> {
        [&self.ops, &self.bytes]
            .into_iter()
            .flat_map(|f| &f.open)
            .map(|q| {
                let mut c = q.chars();
                let text: String = c.next().map(|f| f.to_uppercase().chain(c).collect()).unwrap_or_default();
                Finding::new("F03", "open_question", Level::Info, text + ".")
            })
            .collect()
    }
}

impl Found {
    fn bucket(&self) -> BucketSummary {
        let capacity = match self.capacity {
            Capacity::Measured(e) => Some(e),
            // A bound, as an interval without an upper end.
            Capacity::AtLeast(v) => Some(Estimate { value: v, low: v, high: f64::MAX, n_eff: 1.0 }),
            Capacity::NoneSeen => None,
        };
        let finite = |e: Option<Estimate>| e.filter(|e| e.low.is_finite() && e.high.is_finite());
        BucketSummary {
            sustained: finite(self.sustained),
            burst: finite(self.burst),
            capacity,
            refill: finite(self.refill),
        }
    }
}
