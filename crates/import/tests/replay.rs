//! Slices made of requests against the same counted the slow way, for requests in any order.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plimsoll_import::{ImportError, Source, warp};
use proptest::prelude::*;

/// Of a request: start and length in nanoseconds, kind, whether it failed.
type Op = (u64, u64, bool, bool);

const START_S: i64 = 1_763_900_000;
const GRID: u64 = warp::GRID_NS;

fn table(ops: &[Op]) -> String {
    let head = [
        "idx",
        "thread",
        "op",
        "client_id",
        "n_objects",
        "bytes",
        "endpoint",
        "file",
        "error",
        "start",
        "first_byte",
        "end",
        "duration_ns",
        "cat",
    ];
    let mut out = head.join("\t") + "\n";
    let at = |ns: u64| {
        let ns = i128::from(START_S) * 1_000_000_000 + i128::from(ns);
        jiff::Timestamp::from_nanosecond(ns).unwrap().to_string()
    };
    for (i, (start, took, put, failed)) in ops.iter().enumerate() {
        let op = if *put { "PUT" } else { "GET" };
        let error = if *failed { "Access Denied." } else { "" };
        let (from, to) = (at(*start), at(start + took));
        writeln!(out, "{i}\t{}\t{op}\tc\t1\t100\th\tf\t{error}\t{from}\t\t{to}\t{took}\t0", i % 4).unwrap();
    }
    out
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let one = (0..40 * GRID, prop_oneof![0..GRID / 3, 0..7 * GRID], any::<bool>(), any::<bool>());
    // Far apart at times: nothing walks through an empty day.
    let all = prop::collection::vec((one, 0u64..40), 1..60);
    all.prop_map(|all| {
        let far = |n: u64| if n == 0 { 86_400_000_000_000 } else { 0 };
        all.into_iter().map(|((s, t, p, f), n)| (s + far(n), t, p, f)).collect()
    })
}

proptest! {
    #[test]
    fn each_request_is_in_its_slice_and_in_flight_where_it_was(ops in ops(), sorted in any::<bool>()) {
        let mut ops = ops;
        if sorted {
            ops.sort_unstable();
        }
        let text = table(&ops);
        let survey = warp::survey(Source::open(text.as_bytes()).unwrap().into_reader()).unwrap();
        let first = ops.iter().map(|o| o.0).min().unwrap();
        let (mut ended, mut in_flight) = (BTreeMap::<u64, (u64, u64)>::new(), BTreeMap::<u64, u128>::new());
        for (start, took, _, failed) in &ops {
            let (from, to) = (start - first, start - first + took);
            let n = ended.entry(to / GRID).or_default();
            if *failed { n.1 += 1 } else { n.0 += 1 }
            for slice in from / GRID..=to / GRID {
                let inside = to.min((slice + 1) * GRID) - from.max(slice * GRID);
                *in_flight.entry(slice).or_default() += u128::from(inside);
            }
        }
        in_flight.retain(|_, ns| *ns > 0);
        let (mut seen_ended, mut seen_in_flight) = (BTreeMap::<u64, (u64, u64)>::new(), BTreeMap::<u64, u128>::new());
        let mut last = 0;
        let again = Source::open(text.as_bytes()).unwrap();
        warp::replay::<ImportError>(again.into_reader(), &survey, |what| {
            if let warp::Replayed::Slice(_, interval) = what {
                assert!(interval.index >= last);
                last = interval.index;
                let (ok, failed) = interval
                    .series
                    .iter()
                    .fold((0, 0), |(n, f), s| (n + s.counts.ok(), f + s.counts.failed()));
                if ok + failed > 0 {
                    let n = seen_ended.entry(interval.index).or_default();
                    (n.0, n.1) = (n.0 + ok, n.1 + failed);
                }
                if interval.client.in_flight_ns > 0 {
                    *seen_in_flight.entry(interval.index).or_default() += interval.client.in_flight_ns;
                }
            }
            Ok(())
        }).unwrap();
        prop_assert_eq!(seen_ended, ended);
        prop_assert_eq!(seen_in_flight, in_flight);
    }
}

/// Requests of an hour each, one after the other: a short file that is in flight for days.
fn hours(rows: u64) -> String {
    let hour = 3_600_000_000_000;
    table(&(0..rows).map(|i| (i * hour, hour, true, false)).collect::<Vec<Op>>())
}

#[test]
fn a_short_file_is_not_made_into_slices_without_end() {
    let text = hours(40);
    let survey = warp::survey(text.as_bytes()).unwrap();
    let mut given = 0u64;
    let replayed = warp::replay::<ImportError>(text.as_bytes(), &survey, |_| {
        given += 1;
        Ok(())
    });
    let e = replayed.unwrap_err();
    assert!(e.place.starts_with("line ") && e.problem.contains("nothing starts and nothing ends"), "{e}");
    assert!(given <= 1_000_100, "{given}");
}

#[test]
fn an_interrupt_ends_it_between_two_rows_too() {
    let text = hours(3);
    let survey = warp::survey(text.as_bytes()).unwrap();
    let mut given = 0u64;
    let replayed = warp::replay(text.as_bytes(), &survey, |_| {
        given += 1;
        if given == 10 { Err(ImportError::new("interrupted", "")) } else { Ok(()) }
    });
    assert_eq!((replayed.unwrap_err().problem.as_str(), given), ("interrupted", 10));
}
