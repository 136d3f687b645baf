//! Writes the reports that the browser test opens, from synthetic run directories: `fixture OUTPUT-DIRECTORY`.

#[path = "../tests/support/mod.rs"]
mod support;

use std::path::Path;

use plimsoll_report::{GroupKey, Layout, RunReport, Style, html, markdown, read, terminal};

fn main() {
    let out = std::env::args().nth(1).expect("usage: fixture OUTPUT-DIRECTORY");
    let out = Path::new(&out);
    std::fs::create_dir_all(out).expect("the output directory can be made");
    let runs = out.join("runs");
    if runs.exists() {
        std::fs::remove_dir_all(&runs).expect("the old fixture runs can be removed");
    }
    let sweep = support::write_run(
        &runs.join("sweep"),
        &support::sweep(),
        &support::sweep_analysis(),
        &support::sweep_script(9.0),
    );
    let limited = support::write_run(
        &runs.join("limited"),
        &with_intervals(support::limited()),
        &support::limited_analysis(),
        &support::limited_script(120.0),
    );
    let sweep = read(&sweep, 1).expect("the run was just written");
    let limited = read(&limited, 1).expect("the run was just written");
    write(out, "sweep", std::slice::from_ref(&sweep), &[]);
    write(out, "limited", &[limited], &[]);
    let several: Vec<RunReport> = ["standard", "performance", "performance"]
        .iter()
        .enumerate()
        .map(|(i, tier)| {
            let mut run = sweep.clone();
            run.summary.id = format!("20260214-0930-{i}");
            run.summary.labels.insert("tier".into(), (*tier).into());
            for w in &mut run.summary.workloads {
                let factor = [0.3, 1.0, 1.03][i];
                w.ops_per_s = w.ops_per_s.map(|e| e.scaled(factor));
                w.bytes_per_s = w.bytes_per_s.map(|e| e.scaled(factor));
            }
            run
        })
        .collect();
    let by: Vec<GroupKey> =
        ["op", "size", "label:tier"].iter().map(|k| k.parse().expect("a known key")).collect();
    write(out, "several", &several, &by);
    write(out, "mixed", &[RunReport::of(support::mixed())], &[]);
    let refused = support::write_run(
        &runs.join("refused"),
        &support::refused(),
        &plimsoll_model::Analysis { schema: plimsoll_model::analysis::SCHEMA.into(), ..Default::default() },
        &support::refused_script(5.0),
    );
    write(out, "refused", &[read(&refused, 1).expect("the run was just written")], &[]);
    let mut nothing = support::refused();
    nothing.workloads.clear();
    write(out, "nothing", &[RunReport::of(nothing)], &[]);
    let mut invalid = support::sweep();
    invalid.verdict =
        "[INVALID V07] The client limited this result: its workers were busy for 97 % of the time.".into();
    invalid.findings.push(
        plimsoll_model::Finding::new(
            "V07",
            "client_bound",
            plimsoll_model::finding::Level::Invalid,
            "Workers were busy for 97 % of the time (threshold 85 %). Use more threads, or more machines.",
        )
        .measured(0.97, 0.85),
    );
    spoil(&mut invalid, 0);
    invalid.settle(false, false);
    write(out, "invalid", &[RunReport::of(invalid)], &[]);
    let mut in_part = support::mixed();
    spoil(&mut in_part, 2);
    in_part.settle(true, false);
    write(out, "in-part", &[RunReport::of(in_part)], &[]);
    kinds(out, &runs);
    write(
        out,
        "pivot",
        &pivot(),
        &["label:provider".parse().expect("known"), "label:GiB".parse().expect("known")],
    );
}

/// One report of each kind of run.
fn kinds(out: &Path, runs: &Path) {
    use support::kinds;
    let recorded = [
        ("object", kinds::object()),
        ("limits", kinds::limits()),
        ("watch", kinds::watch()),
        ("cycles", kinds::cycles()),
        ("search", kinds::search()),
        ("block", kinds::block()),
        ("file", kinds::suite("file")),
        ("drive", kinds::suite("drive")),
    ];
    for (name, (summary, analysis, script)) in recorded {
        let dir = support::write_run(&runs.join(name), &summary, &analysis, &script);
        write(out, name, &[read(&dir, 1).expect("the run was just written")], &[]);
    }
    for (name, (summary, analysis)) in [("compare", kinds::compare()), ("scale", kinds::scale())] {
        let title = summary.id.clone();
        let report = RunReport { analysis, ..RunReport::of(summary) };
        let layout = Layout { title: Some(&title), ..Layout::default() };
        let page = html(&[report], layout).expect("plain data");
        std::fs::write(out.join(format!("{name}.html")), page).expect("writable");
    }
}

/// Three providers with two sizes of disk each.
fn pivot() -> Vec<RunReport> {
    let disks = [
        ("AWS", "100", 0.9),
        ("AWS", "20", 0.4),
        ("Azure", "100", 0.5),
        ("Azure", "20", 0.2),
        ("Google", "100", 1.0),
        ("Google", "20", 0.402),
    ];
    let of = |(i, (provider, size, factor)): (usize, &(&str, &str, f64))| {
        let (mut s, ..) = support::kinds::object();
        s.id = format!("20260302-0900-{i}");
        s.labels.insert("provider".into(), (*provider).into());
        s.labels.insert("GiB".into(), (*size).into());
        for w in &mut s.workloads {
            w.ops_per_s = w.ops_per_s.map(|e| e.scaled(*factor));
            w.bytes_per_s = w.bytes_per_s.map(|e| e.scaled(*factor));
        }
        RunReport::of(s)
    };
    disks.iter().enumerate().map(of).collect()
}

/// Percentiles that are known so exactly: the one furthest out has no upper end.
fn with_intervals(mut s: plimsoll_model::RunSummary) -> plimsoll_model::RunSummary {
    let around = |ns: Option<u64>, below: f64, above: f64| {
        let value = ns? as f64;
        let (low, high) = (value * (1.0 - below), value * (1.0 + above));
        Some(plimsoll_model::Estimate { value, low, high, n_eff: 300.0 })
    };
    for l in s.workloads.iter_mut().filter_map(|w| w.latency_ns.response.as_mut()) {
        l.intervals = plimsoll_model::summary::PercentileIntervals {
            p50: around(l.p50, 0.012, 0.015),
            p90: around(l.p90, 0.02, 0.025),
            p99: around(l.p99, 0.05, 0.12),
            p999: around(l.p999, 0.2, f64::INFINITY),
        };
    }
    s
}

/// One line of the run is invalid.
fn spoil(s: &mut plimsoll_model::RunSummary, line: usize) {
    let (level, text) = (plimsoll_model::finding::Level::Invalid, "Too few ops ended. Run longer.");
    let mut finding = plimsoll_model::Finding::new("V04", "too_few_ops", level, text);
    let w = &s.workloads[line];
    finding.workload = Some(format!("{}/{}", w.name, w.op));
    s.findings.push(finding);
}

fn write(out: &Path, name: &str, runs: &[RunReport], by: &[GroupKey]) {
    let page = html(runs, Layout::by(by)).expect("plain data");
    std::fs::write(out.join(format!("{name}.html")), page).expect("writable");
    std::fs::write(out.join(format!("{name}.txt")), terminal(runs, Layout::by(by), Style::PLAIN))
        .expect("writable");
    std::fs::write(out.join(format!("{name}.md")), markdown(runs, Layout::by(by))).expect("writable");
}
