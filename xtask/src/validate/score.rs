//! Lines of the table, and the few statistics that fill them.

use std::fmt;

use plimsoll_stats::math;

/// One line: what was asked, what came out.
#[derive(Debug, Clone)]
pub struct ScoreRow {
    pub figure: String,
    pub goal: String,
    pub measured: String,
    /// `None`: shown without a goal.
    pub reached: Option<bool>,
}

impl fmt::Display for ScoreRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.reached {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "",
        };
        write!(f, "| {} | {} | {} | {mark} |", self.figure, self.goal, self.measured)
    }
}

impl ScoreRow {
    pub fn shown(figure: impl Into<String>, measured: impl Into<String>) -> Self {
        Self { figure: figure.into(), goal: String::new(), measured: measured.into(), reached: None }
    }

    /// Absolute relative errors whose 90th percentile has a goal (0.01: 1 %).
    pub fn error(figure: impl Into<String>, errors: &[f64], goal_p90: Option<f64>) -> Self {
        let e: Vec<f64> = errors.iter().map(|v| v.abs()).collect();
        let p90 = math::quantile(&e, 0.9);
        Self {
            figure: figure.into(),
            goal: goal_p90.map_or(String::new(), |g| format!("p90 <= {}", percent(g))),
            measured: format!(
                "p50 {}, p90 {}, max {} (n {})",
                percent(math::quantile(&e, 0.5)),
                percent(p90),
                percent(math::quantile(&e, 1.0)),
                e.len()
            ),
            reached: goal_p90.filter(|_| !e.is_empty()).map(|g| p90 <= g),
        }
    }

    /// A share that should be at least, or at most, the goal.
    pub fn share(figure: impl Into<String>, hits: usize, of: usize, goal: Goal) -> Self {
        let share = if of == 0 { f64::NAN } else { hits as f64 / of as f64 };
        let (text, reached) = match goal {
            Goal::AtLeast(g) => (format!(">= {}", percent(g)), Some(share >= g)),
            Goal::AtMost(g) => (format!("<= {}", percent(g)), Some(share <= g)),
            Goal::Between(a, b) => {
                (format!("{} to {}", percent(a), percent(b)), Some(share >= a && share <= b))
            }
            Goal::None => (String::new(), None),
        };
        Self {
            figure: figure.into(),
            goal: text,
            measured: format!("{} ({hits} of {of})", percent(share)),
            reached: reached.filter(|_| of > 0),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub enum Goal {
    AtLeast(f64),
    AtMost(f64),
    Between(f64, f64),
    None,
}

/// The goal for every interval: 93 to 97 %.
pub const COVERAGE: Goal = Goal::Between(0.93, 0.97);

pub fn percent(x: f64) -> String {
    let p = 100.0 * x;
    if p.abs() < 10.0 { format!("{p:.2} %") } else { format!("{p:.1} %") }
}

/// Hits among options: `Some(true)` hits, `None` not counted.
pub fn hits(x: impl Iterator<Item = Option<bool>>) -> (usize, usize) {
    x.flatten().fold((0, 0), |(h, n), v| (h + usize::from(v), n + 1))
}
