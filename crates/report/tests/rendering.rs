//! Whole reports of synthetic runs, compared with what was looked at and found good.

mod support;

use plimsoll_report::glance::Glance;
use plimsoll_report::{
    GroupKey, Layout, RunReport, Style, csv, export, html, json, markdown, read, terminal,
};

fn sweep() -> RunReport {
    RunReport { analysis: support::sweep_analysis(), ..RunReport::of(support::sweep()) }
}

fn limited() -> RunReport {
    RunReport { analysis: support::limited_analysis(), ..RunReport::of(support::limited()) }
}

#[test]
fn terminal_of_a_sweep() {
    insta::assert_snapshot!(terminal(&[sweep()], Layout::default(), Style::PLAIN));
}

#[test]
fn terminal_of_a_limit() {
    insta::assert_snapshot!(terminal(&[limited()], Layout::default(), Style::PLAIN));
}

#[test]
fn a_report_has_the_title_and_the_columns_that_were_asked_for() {
    let mut other = sweep();
    other.summary.id = "other".into();
    let runs = [sweep(), other];
    let columns = ["P99".to_owned(), "op/s".to_owned()];
    let layout = Layout { title: Some("Tiers in May"), columns: &columns, ..Layout::default() };
    layout.check().unwrap();
    let text = terminal(&runs, layout, Style::PLAIN);
    assert!(text.starts_with("Tiers in May side by side\n"), "{text}");
    let heads = text.lines().nth(2).unwrap();
    assert!(heads.ends_with("p99") && heads.contains("op/s") && !heads.contains("MiB/s"), "{heads}");
    assert!(markdown(&runs, layout).starts_with("# Tiers in May\n"));
    let page = html(&runs, layout).unwrap();
    assert!(
        page.contains("<title>Tiers in May - Plimsoll</title>") && !page.contains("<th>MiB/s"),
        "{}",
        page.len()
    );
    let wrong = ["p98".to_owned()];
    let why = Layout { columns: &wrong, ..Layout::default() }.check().unwrap_err().to_string();
    assert!(why.contains("'p98'") && why.contains("p99"), "{why}");
}

#[test]
fn at_a_glance() {
    let of = |r: &RunReport| Glance::of(r).terminal(r, Style::PLAIN);
    let all = [sweep(), limited(), RunReport::of(support::mixed()), RunReport::of(support::refused())];
    insta::assert_snapshot!(all.each_ref().map(of).join("\n=====\n"));
}

/// Three agents, one of which did less: in short, in full, and in each form that has tables.
#[test]
fn agents_of_a_fleet() {
    let r = RunReport::of(support::fleet());
    let short = Glance::of(&r).terminal(&r, Style::PLAIN);
    let all = [r];
    // The CSV of the lines is one table: whoever reads it finds as many cells in each row as there are heads.
    assert_eq!(csv(&all).lines().count(), 1 + all[0].summary.workloads.len());
    let agents = export::agents_table(&all);
    let forms = [
        short,
        terminal(&all, Layout::default(), Style::PLAIN),
        markdown(&all, Layout::default()).split("### ").filter(|t| t.starts_with("Agents")).collect(),
        agents.csv_heads().replace("\r\n", "\n") + &agents.csv_rows().replace("\r\n", "\n"),
    ];
    insta::assert_snapshot!(forms.join("\n=====\n"));
}

/// Twelve lines at 100 columns, and nothing wider than the terminal: a table of sizes is as long as it is.
#[test]
fn a_glance_is_short() {
    for width in [40, 60, 80, 100] {
        for r in [limited(), RunReport::of(support::refused()), RunReport::of(support::fleet())] {
            let g = Glance::of(&r);
            let text = g.terminal(&r, Style { width, colour: false });
            assert!(text.lines().all(|l| l.chars().count() <= width), "{width}:\n{text}");
            assert!(width < 100 || text.lines().count() <= 12, "{text}");
            assert!(!g.title.contains(&r.summary.id), "{}", g.title);
        }
    }
}

#[test]
fn markdown_of_both() {
    insta::assert_snapshot!(
        markdown(&[sweep()], Layout::default()) + &markdown(&[limited()], Layout::default())
    );
}

#[test]
fn csv_of_both() {
    insta::assert_snapshot!(csv(&[sweep(), limited()]));
}

#[test]
fn width_is_bounded_and_colour_is_never_needed() {
    for width in [40, 60, 80, 100] {
        let text = terminal(&[limited()], Layout::default(), Style { width, colour: false });
        // A single cell may be wider than the terminal; wrapped text and tables of several columns may not.
        let long: Vec<&str> = text.lines().filter(|l| l.chars().count() > width.max(100)).collect();
        assert!(long.is_empty(), "{long:?}");
        assert!(!text.contains('\u{1b}'));
    }
    let colour = terminal(&[limited()], Layout::default(), Style { width: 100, colour: true });
    let mut bare = String::new();
    let mut parts = colour.split('\u{1b}');
    bare.push_str(parts.next().unwrap_or(""));
    for p in parts {
        bare.push_str(p.split_once('m').map_or("", |x| x.1));
    }
    assert_eq!(bare, terminal(&[limited()], Layout::default(), Style::PLAIN));
}

#[test]
fn json_is_the_summary() {
    let back: plimsoll_model::RunSummary = serde_json::from_str(&json(&[limited()])).unwrap();
    assert_eq!(back, support::limited());
    let two: Vec<plimsoll_model::RunSummary> = serde_json::from_str(&json(&[sweep(), limited()])).unwrap();
    assert_eq!(two.len(), 2);
}

#[test]
fn csv_has_as_many_cells_as_heads() {
    let text = csv(&[sweep()]);
    let mut lines = text.lines();
    let heads = lines.next().unwrap().split(',').count();
    // The fixture has no quoted commas but in notes; those are the only longer rows.
    assert!(lines.all(|l| l.split(',').count() >= heads));
}

#[test]
fn a_run_directory_becomes_a_page_with_windows_and_spectra() {
    let dir = tempfile::tempdir().unwrap();
    let run = support::write_run(
        &dir.path().join("r"),
        &support::limited(),
        &support::limited_analysis(),
        &support::limited_script(40.0),
    );
    let report = read(&run, 1).unwrap();
    assert!(report.gaps.is_empty(), "{:?}", report.gaps);
    let page = plimsoll_report::page::page(&[report], Layout::default());
    let r = &page.runs[0];
    assert_eq!(r.stages[0].window, Some((2.3, 40.3)));
    let s = &r.series[0];
    assert_eq!(s.line, Some(0));
    // Mean over the first level's whole seconds: the script's burst rate, within its noise.
    let level: Vec<f64> = s.ops_per_s[5..25].iter().map(|x| x.unwrap()).collect();
    let mean = level.iter().sum::<f64>() / level.len() as f64;
    assert!((mean / support::BURST - 1.0).abs() < 0.02, "{mean}");
    assert!(s.outcomes_per_s["http_429"][..30].iter().flatten().all(|x| *x == 0.0));
    assert!(s.outcomes_per_s["http_429"].iter().flatten().next_back().unwrap() > &500.0);
    assert_eq!(r.spectra[0].line, 0);
    assert!(r.resources.iter().any(|x| x.name == "Busiest core"));
}

#[test]
fn what_cannot_be_read_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r");
    let run =
        support::write_run(&path, &support::sweep(), &support::sweep_analysis(), &support::sweep_script(2.0));
    std::fs::remove_file(path.join("analysis.json")).unwrap();
    std::fs::remove_dir_all(path.join("intervals")).unwrap();
    std::fs::create_dir(path.join("intervals")).unwrap();
    let report = read(&run, 1).unwrap();
    assert_eq!(report.gaps.len(), 2);
    assert!(
        terminal(std::slice::from_ref(&report), Layout::default(), Style::PLAIN)
            .contains("The analysis is not available")
    );
    assert!(html(&[report], Layout::default()).unwrap().contains("The analysis is not available"));
}

#[test]
fn groups_by_label_show_the_values_of_the_label() {
    let mut other = sweep();
    other.summary.labels.insert("tier".into(), "standard".into());
    let by: Vec<GroupKey> = ["op", "label:tier"].iter().map(|k| k.parse().unwrap()).collect();
    let text = terminal(&[sweep(), other], Layout::by(&by), Style::PLAIN);
    assert!(text.contains("performance") && text.contains("standard"), "{text}");
}

#[test]
fn terminal_of_a_mix_and_of_a_refusal() {
    let both = [support::mixed(), support::refused()]
        .map(|s| terminal(&[RunReport::of(s)], Layout::default(), Style::PLAIN));
    insta::assert_snapshot!(both.join("\n=====\n"));
}

/// The longest runs have as many points as a report ever takes: the page must stay small all the same.
#[test]
fn a_page_of_a_very_long_run_stays_small() {
    let dir = tempfile::tempdir().unwrap();
    let run = support::write_run(
        &dir.path().join("r"),
        &support::limited(),
        &support::limited_analysis(),
        &support::limited_script(20.0),
    );
    let mut report = read(&run, 1).unwrap();
    let series = report.series.as_mut().unwrap();
    let stage = &mut series.data.stages[0];
    let point = stage.series.values().next().unwrap()[5];
    let long = |i: u64| {
        let mut p = point;
        p.counts.outcomes = std::array::from_fn(|k| 1_000_003 + i * 977 + k as u64 * 31_337);
        p
    };
    for points in stage.series.values_mut() {
        *points = (0..900).map(long).collect();
    }
    let (id, points) = stage.series.iter().next().map(|(id, p)| (*id, p.clone())).unwrap();
    for kind in [plimsoll_model::OpKind::Get, plimsoll_model::OpKind::Stat, plimsoll_model::OpKind::Delete] {
        let id = plimsoll_model::SeriesId { kind, ..id };
        stage.series.insert(id, points.clone());
        series.lines.push(plimsoll_report::lines::Line { id, ..series.lines[0].clone() });
    }
    stage.stop_ns = Some(stage.start_ns + 900 * series.data.step_ns);
    let page = plimsoll_report::page::page(&[report], Layout::default());
    assert_eq!(page.runs[0].series.len(), 4);
    let bytes = serde_json::to_string(&page).unwrap().len();
    assert!(bytes < 1_500_000, "{bytes}");
}

/// A limit without drains in its analysis gets them from the series: the script's bucket, seen from its start.
#[test]
fn a_limit_shows_the_work_that_emptied_its_bucket() {
    let dir = tempfile::tempdir().unwrap();
    let none =
        plimsoll_model::Analysis { schema: plimsoll_model::analysis::SCHEMA.into(), ..Default::default() };
    let run =
        support::write_run(&dir.path().join("r"), &support::limited(), &none, &support::limited_script(60.0));
    let page = plimsoll_report::page::page(&[read(&run, 1).unwrap()], Layout::default());
    let buckets = &page.runs[0].analysis.buckets;
    assert_eq!(buckets.len(), 1, "bytes never went above their sustained rate");
    let d = &buckets[0].drains[0];
    let excess = d.work.iter().map(|(t, a)| a - support::SUSTAINED * t).fold(0.0, f64::max);
    let expected = (support::BURST - support::SUSTAINED) * support::CLIFF_S;
    assert!((excess / expected - 1.0).abs() < 0.03, "{excess} for {expected}");
}
