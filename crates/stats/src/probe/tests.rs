//! The controller on simulated systems, and on executors that misbehave.

use super::*;
use crate::simulate::events::Events;
use crate::simulate::fluid::Fluid;
use crate::simulate::{Bucket, Charges, drive};

fn both(seed: u64) -> Fluid {
    let mut s = Fluid::new(seed, 3000.0, 600e6, 0.002, 30e6);
    s.buckets = vec![Bucket::new(Charges::Ops, 1000.0, 20_000.0), Bucket::new(Charges::Bytes, 200e6, 3e9)];
    s
}

fn measured(f: &Found) -> f64 {
    match f.capacity {
        Capacity::Measured(e) => e.value,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn both_buckets_are_found_and_measured() {
    let o = drive::probe(&mut both(1), Options::default());
    assert!((o.ops.sustained.unwrap().value / 1000.0 - 1.0).abs() < 0.02, "{:?}", o.ops.sustained);
    assert!((o.bytes.sustained.unwrap().value / 200e6 - 1.0).abs() < 0.02);
    assert!((measured(&o.ops) / 20_000.0 - 1.0).abs() < 0.05);
    assert!((measured(&o.bytes) / 3e9 - 1.0).abs() < 0.05);
    assert!((o.ops.burst.unwrap().value / 3000.0 - 1.0).abs() < 0.1);
    assert!(o.ops.refill.is_none_or(|r| (r.value / 1000.0 - 1.0).abs() < 0.1));
    assert!(o.elapsed_s < 900.0);
    assert_eq!(o, drive::probe(&mut both(1), Options::default()));
}

#[test]
fn no_limiter_is_no_bucket() {
    let o = drive::probe(&mut Fluid::new(3, 3000.0, 600e6, 0.002, 30e6), Options::default());
    assert!(!o.ops.is_bucket() && !o.bytes.is_bucket());
    assert!(
        o.ops.open[0].contains("not excluded") && o.ops.not_excluded(1000.0) > 2000.0 * 100.0,
        "{:?} {} {:?}",
        o.ops.sustained,
        o.ops.horizon_s,
        o.ops.open
    );
}

#[test]
fn whole_requests_and_429s() {
    let buckets =
        [Bucket::new(Charges::Ops, 200.0, 4000.0), Bucket::new(Charges::Bytes, 40e6, 800e6).filled(0.5)];
    let mut s = Events::new(4, &buckets, 1);
    (s.ops_cap, s.bytes_cap) = (600.0, 120e6);
    let o = drive::probe(&mut s, Options { concurrency: 64, ..Options::default() });
    assert!((o.ops.sustained.unwrap().value / 200.0 - 1.0).abs() < 0.01);
    assert!((measured(&o.ops) / 4000.0 - 1.0).abs() < 0.03);
    assert!((measured(&o.bytes) / 800e6 - 1.0).abs() < 0.03, "{:?}", o.bytes.capacity);
}

#[test]
fn an_executor_that_sees_nothing_ends_with_reasons() {
    for seen in [
        None,
        Some(Seen { dt_s: 0.25, ..Seen::default() }),
        Some(Seen { dt_s: 0.25, ops_per_s: vec![0.0; 20], bytes_per_s: vec![0.0; 20], ..Seen::default() }),
    ] {
        let mut p = Probe::new(Options::default());
        let mut now = 0.0;
        let mut last = Observation::default();
        for _ in 0..2000 {
            last = match p.next(&last) {
                Action::Done => break,
                Action::Load { duration_s, .. } => {
                    now += duration_s;
                    Observation { now_s: now, seen: seen.clone() }
                }
                Action::Idle { seconds } => {
                    now += seconds;
                    Observation { now_s: now, seen: None }
                }
                Action::Stop => Observation { now_s: now, seen: None },
            };
        }
        assert_eq!(p.next(&last), Action::Done);
        let o = p.outcome();
        assert!(!o.ops.is_bucket() && !o.ops.open.is_empty(), "{:?}", o.ops);
    }
}

#[test]
fn the_summary_says_what_was_found_and_what_is_open() {
    let o = drive::probe(&mut both(1), Options::default());
    let s = o.summary("s3", "put");
    assert_eq!((s.binding.as_str(), s.scope.as_str()), ("both", "unknown"));
    let knee = s.knee_bytes.unwrap();
    assert!((knee.value / 200e3 - 1.0).abs() < 0.03 && knee.contains(200e3), "{knee:?}");
    let drains = s.evidence.iter().filter(|(name, _)| name.contains(" drain ")).count();
    assert_eq!(drains, o.ops.drains.len() + o.bytes.drains.len());
    assert!(s.evidence.iter().any(|(name, text)| name == "ops: why a limit" && text.contains("burst")));
    assert!(s.ops_per_s.unwrap().capacity.is_some());
    let none = drive::probe(&mut Fluid::new(3, 3000.0, 600e6, 0.002, 30e6), Options::default());
    assert_eq!(none.summary("s3", "put").binding, "none");
    assert!(none.findings().iter().all(|f| f.text.ends_with('.') && f.name == "open_question"));
}
