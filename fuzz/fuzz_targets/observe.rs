//! Any text is a page of metrics, an answer of a Prometheus or of MinIO's administrators, a file of /proc, or an error; and no reading is
//! anything but a number.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_model::observed::ReadSubject;
use plimsoll_observe::proc::{self, ProcUnits};
use plimsoll_observe::{Make, admin, answer, page, readings};

fn check(subjects: &[ReadSubject]) {
    for s in subjects {
        assert!(s.readings.iter().all(|r| r.value.is_finite()));
        for text in [&s.host, &s.daemon].into_iter().chain(s.readings.iter().map(|r| &r.label)) {
            assert!(!text.contains(plimsoll_model::text::is_harmful), "{text:?}");
        }
    }
}

fuzz_target!(|text: &str| {
    for make in [Make::Node, Make::Process, Make::Minio, Make::Ceph, Make::Any] {
        if let Ok(page) = readings(make, text, "host") {
            check(&page.subjects);
        }
    }
    if let Ok((series, left_out, _)) = answer::series(text)
        && let Ok(page) = page::of_series(Make::Any, &series, left_out, |s| s.label("instance").to_owned())
    {
        check(&page.subjects);
    }
    let _ = admin::info(text).map(|cluster| check(&[cluster]));
    let _ = admin::drives_of_sets(text);
    let units = ProcUnits::default();
    let readings = [
        proc::stat(text, units),
        proc::meminfo(text),
        proc::net_dev(text),
        proc::diskstats(text),
        proc::process(text, text, text, units),
    ];
    let (host, daemon) = (String::new(), String::new());
    check(&[ReadSubject { host, daemon, readings: readings.concat() }]);
});
