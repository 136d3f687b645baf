//! The drive test at a glance: all drives at once first, then a row a drive.

use plimsoll_model::count::counted;
use plimsoll_model::units::significant;
use plimsoll_model::{Finding, Level};

use super::drive::{Ceiling, Drive, Rates};
use crate::glance::{Body, Glance, GlanceFact, fact, first_sentence, promises};
use crate::number::MIB;
use crate::run::RunReport;
use crate::table::{Table, wrap};
use crate::terminal::{Style, grouped};

/// Reservations beside the worst one are told as a number.
const MOST_TOLD: usize = 2;
/// Characters of a path that stay in any case.
const LEAST_OF_A_PATH: usize = 12;

impl Ceiling {
    /// At most twelve lines of 100 columns. `said`: what is to be said of work that was given over the time that it took.
    pub fn short(&self, r: &RunReport, style: Style) -> String {
        let failed = self.failed();
        let told: Vec<(&Finding, usize)> =
            grouped(&self.said).into_iter().filter(|(f, _)| f.level != Level::Info).collect();
        let void: Vec<&str> =
            self.said.iter().filter(|f| f.level == Level::Invalid).map(|f| f.code.as_str()).collect();
        let mark = match (failed.is_empty(), void.first(), told.is_empty()) {
            (false, ..) => "INVALID V01".to_owned(),
            (true, Some(code), _) => format!("INVALID {code}"),
            (true, None, false) => "VALID !".into(),
            (true, None, true) => "VALID".into(),
        };
        // That the work was uneven is said of drives that have a mark of it.
        let named = |f: &&Finding| f.name != "uneven";
        let on = |f: &Finding| {
            let line = f.workload.as_ref().filter(|_| named(&f));
            line.map_or(String::new(), |w| format!("{w}: "))
        };
        let line = |(f, others): &(&Finding, usize)| {
            let more = if *others > 0 { format!(" ({others} more like this)") } else { String::new() };
            fact(&f.code, format!("{}{}{more}", on(f), first_sentence(&f.text)))
        };
        let glance = Glance {
            // The sentence says it.
            title: String::new(),
            mark,
            sentence: self.sentence(),
            facts: self.facts(),
            reservations: told.iter().take(MOST_TOLD).map(line).collect(),
            more_reservations: told.len().saturating_sub(MOST_TOLD),
        };
        glance.with_body(r, Some(self.body(style)), style)
    }

    /// What they give at once, or the one of them; which of them failed.
    fn sentence(&self) -> String {
        let failed = self.failed();
        let (n, all) = (self.drives.len() - failed.len(), self.drives.len());
        let at = |rates: &Rates| {
            let part = |name: &str, rate: Option<f64>| rate.map(|r| format!("{name} {} MiB/s", mib(Some(r))));
            let both = [part("write", rates.write_bytes_per_s), part("read", rates.read_bytes_per_s)];
            both.into_iter().flatten().collect::<Vec<_>>().join(", ")
        };
        let good: Vec<&Drive> = self.drives.iter().filter(|d| d.error.is_none()).collect();
        let rates = match &good[..] {
            [] => String::new(),
            [one] => format!("{}: {}", one.path, at(&one.alone)),
            _ if self.total == Rates::default() => {
                let sum = |pick: fn(&Rates) -> Option<f64>| {
                    let all: Vec<f64> = good.iter().filter_map(|d| pick(&d.alone)).collect();
                    all.into_iter().reduce(f64::min)
                };
                let slowest = Rates {
                    write_bytes_per_s: sum(|r| r.write_bytes_per_s),
                    read_bytes_per_s: sum(|r| r.read_bytes_per_s),
                };
                format!("{n} drives, each alone: at least {}", at(&slowest))
            }
            _ => format!("{n} drives at once: {}", at(&self.total)),
        };
        match (failed.len(), rates.is_empty()) {
            (0, _) => rates,
            (x, true) => format!("{x} of {} failed", counted(all, "drive")),
            (x, false) => format!("{x} of {} failed; {rates}", counted(all, "drive")),
        }
    }

    /// Promises, why drives failed, and what their marks mean.
    fn facts(&self) -> Vec<GlanceFact> {
        let mut out = promises(&self.expectations);
        let failed = self.failed();
        let shown = if failed.len() > 2 { 1 } else { failed.len() };
        let why = |d: &&Drive| fact("✗", format!("{}: {}", d.path, d.error.as_deref().unwrap_or("failed")));
        out.extend(failed[..shown].iter().map(why));
        if failed.len() > shown {
            out.push(fact("✗", format!("{} failed: -v", counted(failed.len() - shown, "more drive"))));
        }
        let unsure: Vec<&Drive> =
            self.drives.iter().filter(|d| d.error.is_none() && !d.invalid.is_empty()).collect();
        if let [first, rest @ ..] = &unsure[..] {
            let whom = match rest.len() {
                0 => first.path.clone(),
                n => format!("{} and {n} more", first.path),
            };
            let codes = first.invalid.join(" ");
            out.push(fact(
                "!",
                format!("{whom}: only all bytes over all time, no interval [INVALID {codes}]"),
            ));
        }
        let (w, r) = (self.total_while_all_ran.write_bytes_per_s, self.total_while_all_ran.read_bytes_per_s);
        if w.or(r).is_some() && self.drives.len() > 1 {
            out.push(fact("all running", format!("write {}, read {} MiB/s", mib(w), mib(r))));
        }
        out
    }

    fn body(&self, style: Style) -> Body {
        if let Some(lines) = self.dd() {
            return Body::Lines(
                lines.lines().map(|l| wrap(l, style.width, "", "  ").trim_end().to_owned()).collect(),
            );
        }
        let heads =
            ["drive", ">write MiB/s", ">read MiB/s", ">write, all at once", ">read, all at once", "mark"];
        let mut t = Table::new("Drives", 1, &heads);
        let several = self.drives.len() > 1;
        for d in &self.drives {
            let cell = |rate: Option<f64>, shown: bool| if shown { mib(rate) } else { String::new() };
            t.push(vec![
                d.path.clone(),
                mib(d.alone.write_bytes_per_s),
                mib(d.alone.read_bytes_per_s),
                cell(d.together.write_bytes_per_s, several),
                cell(d.together.read_bytes_per_s, several),
                d.mark().into(),
            ]);
        }
        let mut t = t.without_columns(|i, cells| {
            (i == 3 || i == 4) && cells.iter().all(|c| c.is_empty() || *c == "-")
        });
        // Of a long path the end tells more.
        let room = (style.width + t.width_of(0)).saturating_sub(t.width()).max(LEAST_OF_A_PATH);
        for cell in t.rows.iter_mut().filter_map(|r| r.first_mut()) {
            let over = cell.chars().count().saturating_sub(room);
            if over > 0 {
                *cell = std::iter::once('…').chain(cell.chars().skip(over + 1)).collect();
            }
        }
        Body::Table(t)
    }
}

/// In MiB/s; a total amount over a time has no interval.
fn mib(rate: Option<f64>) -> String {
    rate.map_or("-".into(), |r| significant(r / MIB, 3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support;

    fn drive(path: &str, write: f64) -> Drive {
        let rates = Rates { write_bytes_per_s: Some(write * MIB), read_bytes_per_s: Some(2.0 * write * MIB) };
        let together = Rates { write_bytes_per_s: Some(write * MIB / 2.0), read_bytes_per_s: None };
        Drive { path: path.into(), alone: rates, together, bytes: 1 << 30, ..Drive::default() }
    }

    fn record(drives: Vec<Drive>, streams: u32) -> Ceiling {
        let total = Rates { write_bytes_per_s: Some(2000.0 * MIB), read_bytes_per_s: Some(4000.0 * MIB) };
        Ceiling { total, ..super::super::drive::tests::record(drives, streams) }
    }

    fn short(c: &Ceiling) -> String {
        let text = c.short(&RunReport::of(support::kinds::suite("drive").0), Style::PLAIN);
        assert!(text.lines().count() <= 12, "{text}");
        assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
        text
    }

    #[test]
    fn all_at_once_is_said_first_and_each_drive_has_a_row() {
        let long = short(&record(vec![drive(&format!("/{}/end", "x".repeat(90)), 1.0), drive("/b", 1.0)], 4));
        assert!(long.contains("x/end  ") && long.contains('…'), "{long}");
        let text = short(&record(vec![drive("/a", 1000.0), drive("/b", 1000.0)], 4));
        assert!(text.starts_with("VALID  2 drives at once: write 2,000 MiB/s, read 4,000 MiB/s\n"), "{text}");
        assert_eq!(text.matches('✓').count(), 2, "{text}");
    }

    #[test]
    fn many_drives_with_failures_stay_short_and_say_so() {
        let bad =
            |path: &str| Drive { path: path.into(), error: Some("no space ".repeat(30)), ..Drive::default() };
        let mut drives: Vec<Drive> = (0..24).map(|i| drive(&format!("/mnt/d{i}"), 500.0)).collect();
        drives.extend(["/x", "/y", "/z"].map(bad));
        drives[0].invalid = vec!["V04".into()];
        let mut c = record(drives, 4);
        c.said = ["V07", "V22", "Q09"]
            .map(|code| Finding::new(code, code, Level::Qualified, "It was so. Do that."))
            .to_vec();
        let text = short(&c);
        assert!(text.starts_with("INVALID V01  3 of 27 drives failed; 24 drives at once: "), "{text}");
        assert!(
            text.contains("✗            /x: no space") && text.contains("2 more drives failed"),
            "{text}"
        );
        assert!(text.contains("more (3 marked): -v"), "{text}");
    }

    #[test]
    fn one_stream_has_dd_s_lines_below_the_answer() {
        let one = Drive { write_seconds: 1.0, read_seconds: 0.5, ..drive("/a", 1024.0) };
        let text = short(&record(vec![one], 1));
        assert!(text.starts_with("VALID  /a: write 1,024 MiB/s, read 2,048 MiB/s\n"), "{text}");
        assert_eq!(text.matches("64+0 records in").count(), 2, "{text}");
    }
}
