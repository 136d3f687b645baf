//! Each check fires on the fact that it is for, on nothing else, and says a number and a remedy.

use plimsoll_model::Level;

use super::*;

fn codes_of(f: &Facts) -> Vec<String> {
    check_all(f).into_iter().map(|x| x.code).collect()
}

/// Facts that trip exactly one check each.
fn trips() -> Vec<(&'static str, Facts)> {
    let d = Facts::default;
    let law = |error| Some(LittlesLawFact { in_flight: 16.0, rate_times_time: 15.0, error, edge: 0.0 });
    vec![
        ("V01", Facts { attempts: Some(1000.0), failed: Some(2.0), ..d() }),
        ("V02", Facts { verify_mismatches: Some(1), ..d() }),
        ("V03", Facts { bytes_sent: Some(1000.0), bytes_acknowledged: Some(990.0), ..d() }),
        ("V04", Facts { steady: Some(SteadyFact::Undetermined("40 s more".into())), ..d() }),
        ("V05", Facts { offered_per_s: Some(100.0), achieved_per_s: Some(90.0), ..d() }),
        ("V06", Facts { late_share: Some(0.02), ..d() }),
        ("V07", Facts { client_busy: Some(0.97), ..d() }),
        (
            "V08",
            Facts {
                reads: true,
                working_set_bytes: Some(1e9),
                client_ram_bytes: Some(1e9),
                bypasses_client_cache: Some(false),
                ..d()
            },
        ),
        ("V09", Facts { entropy_bits_per_byte: Some(4.0), ..d() }),
        ("V10", Facts { dt_s: Some(0.1), clock_offset_s: Some(-0.2), ..d() }),
        ("V11", Facts { ended_early_s: Some(3.0), ..d() }),
        ("V12", Facts { writes: true, durability_claimed: Some(Durability::Quorum), ..d() }),
        ("V13", Facts { littles_law: law(0.06), ..d() }),
        ("V14", Facts { level_changes: Some(1), ..d() }),
        ("V15", Facts { repeats: vec![10.0, 9.0, 8.0, 7.0, 6.0, 5.0], ..d() }),
        ("V16", Facts { configuration_differences: vec!["size".into()], ..d() }),
        ("V17", Facts { fill: Some(0.9), ..d() }),
        ("V18", Facts { background: vec!["healing".into()], ..d() }),
        ("V19", Facts { mixed_limiter_states: Some(true), ..d() }),
        ("V20", Facts { retried_as_success: Some(3), ..d() }),
        ("V21", Facts { tail_samples: Some(4.0), ..d() }),
        ("V22", Facts { steal: Some(0.2), ..d() }),
        ("V23", Facts { sealed_hash_matches: Some(false), ..d() }),
        ("Q01", Facts { horizon_s: Some(30.0), goal_s: Some(3600.0), ..d() }),
        ("Q02", Facts { repeats: vec![1.0, 1.0], repeats_expected: true, ..d() }),
        ("Q03", Facts { relative_half_width: Some(0.2), ..d() }),
        ("Q04", Facts { misfit_p: Some(0.001), ..d() }),
        ("Q05", Facts { client_hosts: Some(1), ..d() }),
        ("Q06", Facts { initial_fill_unknown: Some(true), ..d() }),
        ("Q07", Facts { transport_differs: vec!["TLS off".into()], ..d() }),
        ("Q08", Facts { shared_infrastructure: Some(true), ..d() }),
        ("Q09", Facts { loopback: Some(true), ..d() }),
        ("Q10", Facts { cold_start_included: Some(true), ..d() }),
    ]
}

/// What a longer run is not likely to mend is not advised to be run longer.
#[test]
fn a_very_wide_interval_is_not_told_two_things() {
    let text = |w: f64| {
        qualified::q03_wide_interval(&Facts { relative_half_width: Some(w), ..Facts::default() })
            .unwrap()
            .text
    };
    assert!(text(0.2).contains("Run about 4.0 times as long"), "{}", text(0.2));
    let wide = text(0.9);
    assert!(wide.contains("Find out what disturbs it.") && !wide.contains("as long."), "{wide}");
}

#[test]
fn every_code_has_a_case_and_trips_alone() {
    let trips = trips();
    assert_eq!(trips.iter().map(|t| t.0).collect::<Vec<_>>(), codes().collect::<Vec<_>>());
    for (code, facts) in &trips {
        assert_eq!(codes_of(facts), vec![code.to_string()]);
        let f = &check_all(facts)[0];
        assert_eq!(f.level, if code.starts_with('V') { Level::Invalid } else { Level::Qualified }, "{code}");
        assert!(f.text.ends_with('.') && f.text.len() > 30, "{code}: {}", f.text);
        assert!(f.measured.is_none_or(f64::is_finite) && f.threshold.is_none_or(f64::is_finite), "{code}");
    }
}

#[test]
fn nothing_known_is_nothing_claimed() {
    assert!(check_all(&Facts::default()).is_empty());
}

#[test]
fn thresholds_are_where_they_are_said_to_be() {
    let d = Facts::default;
    assert!(codes_of(&Facts { attempts: Some(1000.0), failed: Some(1.0), ..d() }).is_empty());
    assert!(codes_of(&Facts { client_busy: Some(0.84), ..d() }).is_empty());
    assert!(codes_of(&Facts { client_busy: Some(1.0), client_is_subject: true, ..d() }).is_empty());
    assert!(codes_of(&Facts { offered_per_s: Some(100.0), achieved_per_s: Some(95.0), ..d() }).is_empty());
    let law = LittlesLawFact { in_flight: 16.0, rate_times_time: 15.5, error: 0.03, edge: 0.0 };
    let f = check_all(&Facts { littles_law: Some(law), ..d() });
    assert_eq!((f[0].code.as_str(), f[0].level), ("V13", Level::Qualified));
    assert!(codes_of(&Facts { littles_law: Some(LittlesLawFact { edge: 0.02, ..law }), ..d() }).is_empty());
}

/// Stolen time is judged as time that other work took is: by whether it can have set the rate.
#[test]
fn stolen_time_voids_what_it_can_have_set() {
    let of = |steal: f64, client_busy: Option<f64>, refused: f64| {
        let f = Facts {
            steal: Some(steal),
            client_busy,
            refused_share: Some(refused),
            refused_slices: Some(1.0),
            ..Facts::default()
        };
        check_all(&f).into_iter().find(|f| f.code == "V22").map(|f| (f.level, f.text))
    };
    let level = |steal, busy, refused| of(steal, busy, refused).map(|f| f.0);
    assert_eq!(level(0.05, Some(0.1), 0.0), None);
    // Workers that wait: told, with what it can have cost.
    let (l, text) = of(0.17, Some(0.1), 0.0).unwrap();
    assert_eq!(l, Level::Qualified);
    assert!(text.contains("up to 20.5 % higher"), "{text}");
    // Busy with it, or nothing known of the workers, or too much of it.
    assert_eq!(level(0.17, Some(0.7), 0.0), Some(Level::Invalid));
    assert_eq!(level(0.17, None, 0.0), Some(Level::Invalid));
    assert_eq!(level(0.25, Some(0.1), 0.0), Some(Level::Invalid));
    // The limiter's rate, whatever the client could.
    assert_eq!(level(0.3, Some(0.8), 0.9), Some(Level::Qualified));
    let subject =
        Facts { steal: Some(0.1), client_busy: Some(0.1), client_is_subject: true, ..Facts::default() };
    assert_eq!(check_all(&subject)[0].level, Level::Invalid, "a ceiling is of the whole machine");
}

#[test]
fn the_mark_names_what_is_invalid() {
    let mut all = check_all(&trips()[6].1);
    all.extend(check_all(&trips()[0].1));
    all.extend(check_all(&trips()[23].1));
    assert_eq!(mark(&all), "[INVALID V01 V07]");
    assert!(!is_valid(&all));
    assert_eq!(mark(&check_all(&trips()[23].1)), "");
}

/// A finding on a cell is one on each of its lines, and on no line of another whose name begins alike.
#[test]
fn a_cell_falls_with_all_of_its_lines() {
    let cells = ["mixed 4KiB c1/get", "mixed 4KiB c1/put", "mixed 4KiB c16/get"].map(String::from);
    let on = |name: &str| vec![Finding::new("V07", "client_bound", Level::Invalid, "x").on(name)];
    assert!(is_run_valid(&on("mixed 4KiB c1"), &cells, true));
    assert!(is_run_valid(&on("mixed 4KiB c1/get"), &cells, true));
    assert!(!is_run_valid(&on("mixed 4KiB"), &cells, true), "no cell has this name");
    assert!(!is_run_valid(&on("mixed 4KiB c1"), &cells[..2], true), "all of them");
    assert!(!is_run_valid(&on("mixed 4KiB c1"), &cells[2..], true));
}

/// 10 op/s for ten seconds: one op of 99 that came late is no share of them.
#[test]
fn one_late_op_of_few_is_no_lag() {
    let of = |late: f64, sent: f64| {
        let f = Facts { late_share: Some(late / sent), sent: Some(sent), ..Facts::default() };
        check_all(&f).iter().any(|f| f.code == "V06")
    };
    assert!(!of(1.0, 99.0) && !of(2.0, 99.0) && of(4.0, 99.0));
    assert!(!of(110.0, 10_000.0) && of(120.0, 10_000.0));
}
