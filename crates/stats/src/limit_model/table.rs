//! A plain table of sizes against published or supposed caps: which one binds, where the knee is, and whether the
//! table behaves at all. For tables without repeats and concurrencies, as vendors print them.

/// Caps as they are published.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Caps {
    /// As it is published.
    pub ops_per_s: f64,
    /// As it is published.
    pub bytes_per_s: f64,
}

impl Caps {
    /// Size below which the ops cap is reached before the bytes cap. `None` unless both are positive.
    pub fn knee_bytes(&self) -> Option<f64> {
        let ok = |v: f64| v.is_finite() && v > 0.0;
        (ok(self.ops_per_s) && ok(self.bytes_per_s)).then(|| self.bytes_per_s / self.ops_per_s)
    }
}

/// One line of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Of one op.
    pub size_bytes: f64,
    /// As the table has it.
    pub ops_per_s: f64,
}

/// Which of the published caps a row reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// Only that on operations.
    Ops,
    /// Only that on bytes.
    Bytes,
    /// It lies near the knee.
    Both,
    /// Something else limits it: latency, as a rule.
    Neither,
    /// Above a cap by more than the tolerance: the cap, or its scope, is not what was said.
    Beyond,
}

/// One row, held against the caps.
#[derive(Debug, Clone, PartialEq)]
pub struct RowVerdict {
    /// As it was read.
    pub row: Row,
    /// By the tolerances of this file.
    pub reached: Reached,
    /// Share of each cap.
    pub ops_share: f64,
    /// Share of the cap on bytes; `ops_share` is of that on operations.
    pub bytes_share: f64,
}

/// A place where more bytes an op gave more ops a second: no cap explains that.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rise {
    /// Size of the smaller ops.
    pub from_bytes: f64,
    /// Size of the larger ones.
    pub to_bytes: f64,
    /// Relative rise of the ops rate.
    pub rise: f64,
}

/// What a table says about the caps that it is held against.
#[derive(Debug, Clone, PartialEq)]
pub struct TableVerdict {
    /// Size at which both caps give the same; absent where a cap is none.
    pub knee_bytes: Option<f64>,
    /// In order of size.
    pub rows: Vec<RowVerdict>,
    /// Rates under fixed caps fall, or stay, as sizes grow. Empty: monotone.
    pub rises: Vec<Rise>,
}

/// A row within this of a cap reaches it: published figures are rounded, and headers cost something (guess).
const REACHES: f64 = 0.90;
/// A row beyond this is above its cap: the cap is none (guess).
const BEYOND: f64 = 1.05;
/// A rise beyond this is no noise of a two-minute run (guess).
const RISES: f64 = 0.10;

impl TableVerdict {
    /// Rates fall, or stay, as sizes grow.
    pub fn is_monotone(&self) -> bool {
        self.rises.is_empty()
    }

    /// One or two sentences.
    pub fn text(&self) -> String {
        let mut out = Vec::new();
        if let Some(k) = self.knee_bytes {
            out.push(format!(
                "By the published limits, objects smaller than {} bytes reach the operations limit first.",
                plimsoll_model::units::significant(k, 6)
            ));
        }
        let neither = self.rows.iter().filter(|r| r.reached == Reached::Neither).count();
        if neither == self.rows.len() && neither > 0 {
            out.push("Neither cap binds in any row.".into());
        } else if neither > 0 {
            out.push(format!("Neither cap binds in {neither} of {} rows.", self.rows.len()));
        }
        if let Some(r) = self.rises.iter().max_by(|a, b| a.rise.total_cmp(&b.rise)) {
            out.push(format!(
                "The rates are not monotonic: from {:.0} to {:.0} bytes they rise by {:.0} %, which no cap explains. \
                 Something else limited the smaller size (latency at this concurrency, or a different state of the \
                 service).",
                r.from_bytes,
                r.to_bytes,
                100.0 * r.rise
            ));
        }
        out.join(" ")
    }
}

/// Judges a table of one op against caps. Rows that hold no positive numbers are left out.
pub fn judge(rows: &[Row], caps: Caps) -> TableVerdict {
    let ok = |v: f64| v.is_finite() && v > 0.0;
    let mut rows: Vec<Row> = rows.iter().copied().filter(|r| ok(r.size_bytes) && ok(r.ops_per_s)).collect();
    rows.sort_by(|a, b| a.size_bytes.total_cmp(&b.size_bytes));
    let rises = rows
        .windows(2)
        .filter(|w| w[1].ops_per_s > w[0].ops_per_s * (1.0 + RISES))
        .map(|w| Rise {
            from_bytes: w[0].size_bytes,
            to_bytes: w[1].size_bytes,
            rise: w[1].ops_per_s / w[0].ops_per_s - 1.0,
        })
        .collect();
    let rows = rows.into_iter().map(|row| row_verdict(row, caps)).collect();
    TableVerdict { knee_bytes: caps.knee_bytes(), rows, rises }
}

fn row_verdict(row: Row, caps: Caps) -> RowVerdict {
    let share = |x: f64, cap: f64| if cap > 0.0 { x / cap } else { 0.0 };
    let ops_share = share(row.ops_per_s, caps.ops_per_s);
    let bytes_share = share(row.ops_per_s * row.size_bytes, caps.bytes_per_s);
    let reached = if ops_share > BEYOND || bytes_share > BEYOND {
        Reached::Beyond
    } else {
        match (ops_share >= REACHES, bytes_share >= REACHES) {
            (true, true) => Reached::Both,
            (true, false) => Reached::Ops,
            (false, true) => Reached::Bytes,
            (false, false) => Reached::Neither,
        }
    };
    RowVerdict { row, reached, ops_share, bytes_share }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = 1048576.0;

    fn rows(r: &[(f64, f64)]) -> Vec<Row> {
        // The vendor's sizes are decimal, and its "1024 KB" is 1,000,000 bytes: only so do its MiB/s figures fit.
        r.iter().map(|&(size_bytes, ops_per_s)| Row { size_bytes, ops_per_s }).collect()
    }

    /// Published limits and the knees that follow; the vendor prints the last one itself.
    #[test]
    fn knees_of_published_limits() {
        for (ops, mib, want) in [
            (800.0, 600.0, 786_432.0),
            (1000.0, 800.0, 838_860.8),
            (4000.0, 1000.0, 262_144.0),
            (10_000.0, 5000.0, 524_288.0),
        ] {
            let k = Caps { ops_per_s: ops, bytes_per_s: mib * MIB }.knee_bytes().unwrap();
            assert!((k - want).abs() < 1e-6, "{k}");
        }
        assert_eq!(Caps { ops_per_s: 0.0, bytes_per_s: 1.0 }.knee_bytes(), None);
    }

    /// The standard tier as its vendor measured it: small objects reach no cap, and 1 MB ones are faster than 512 KB ones.
    #[test]
    fn a_standard_tier_that_no_cap_explains() {
        let caps = Caps { ops_per_s: 800.0, bytes_per_s: 600.0 * MIB };
        let put = [(4e3, 469.9), (64e3, 343.2), (512e3, 393.6), (1e6, 595.1), (1e7, 57.9)];
        let get = [(4e3, 361.3), (64e3, 422.4), (512e3, 390.4), (1e6, 613.7), (1e7, 59.7)];
        for table in [put, get] {
            let v = judge(&rows(&table), caps);
            assert!(!v.is_monotone());
            assert!(v.rows[..3].iter().all(|r| r.reached == Reached::Neither), "{:?}", v.rows);
            assert!(v.rows[3..].iter().all(|r| r.reached == Reached::Bytes), "{:?}", v.rows);
            let t = v.text();
            assert!(
                t.contains("786,432 bytes") && t.contains("not monotonic") && t.contains("Neither cap"),
                "{t}"
            );
        }
    }

    #[test]
    fn a_table_that_follows_its_caps() {
        let caps = Caps { ops_per_s: 1000.0, bytes_per_s: 1e8 };
        let v = judge(&rows(&[(1e4, 990.0), (1e5, 980.0), (1e6, 99.0), (1e7, 11.0)]), caps);
        let reached: Vec<Reached> = v.rows.iter().map(|r| r.reached).collect();
        assert_eq!(reached, [Reached::Ops, Reached::Both, Reached::Bytes, Reached::Beyond]);
        assert!(v.is_monotone());
        assert!(judge(&[], caps).rows.is_empty());
    }
}
