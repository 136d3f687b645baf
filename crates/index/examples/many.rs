//! How long a list of many runs takes: `many DIRECTORY [NUMBER]` makes so many (10,000) runs there, unless it has them, and prints what it
//! takes to read them all, to look whether they are still the same, to list and to filter them, and to read how the rate of each went.

mod support;

use std::path::Path;
use std::time::{Duration, Instant};

use plimsoll_index::{RunFilter, RunIndex};
use support::{MadeRun, make};

fn main() {
    let mut args = std::env::args().skip(1);
    let dir = args.next().expect("usage: many DIRECTORY [NUMBER]");
    let number: usize = args.next().map_or(10_000, |n| n.parse().expect("a number of runs"));
    let root = Path::new(&dir).join("runs");
    if !root.exists() {
        std::fs::create_dir_all(&root).expect("the directory can be made");
        filled(&root, number);
    }
    let file = Path::new(&dir).join("index.sqlite");
    for what in ["first", "again", "again"] {
        let begun = Instant::now();
        let mut index = RunIndex::open_at(&root, &file).expect("the index opens");
        let done = index.refresh().expect("the runs can be read");
        let refreshed = begun.elapsed();
        let all = index.runs(&RunFilter::default()).expect("they are listed").len();
        let listed = begun.elapsed();
        let filter = RunFilter {
            labels: vec![("tier".into(), "t7".into())],
            ops: vec!["get".into()],
            ..RunFilter::default()
        };
        let some = index.runs(&filter).expect("they are filtered").len();
        let filtered = begun.elapsed() - listed;
        println!(
            "{what}: {} of {} runs read; up to date after {refreshed:.2?}, {all} listed after {listed:.2?}; {some} filtered in {filtered:.2?}",
            done.read, done.runs
        );
        let begun = Instant::now();
        let read = index.read_courses(Duration::from_secs(86_400)).expect("the record of each is read");
        let took = begun.elapsed();
        let known = index.courses().expect("they are known").len();
        println!(
            "{what}: {read} courses read in {took:.2?}, {known} given in {:.2?}",
            begun.elapsed() - took
        );
    }
}

/// One run is made in order; the others are copies of its files under their own names, since each file in order is synced.
fn filled(root: &Path, number: usize) {
    let ops = ["get", "put", "stat", "delete"];
    let tiers: Vec<String> = (0..20).map(|t| format!("t{t}")).collect();
    // Half a minute each.
    let ended: Vec<u64> = (0..300).map(|i| 70 + i % 7).collect();
    let template = tempfile::tempdir().expect("a directory for the template");
    for i in 0..number {
        let id = format!(
            "2026{:02}{:02}-{:02}{:02}{:02}-{:04x}",
            1 + i / 2_000 % 12,
            1 + i / 100 % 28,
            i / 60 % 24,
            i % 60,
            i % 60,
            i
        );
        let (op, tier) = (ops[i % ops.len()], &tiers[i % tiers.len()]);
        if i < ops.len() * tiers.len() {
            make(
                root,
                &MadeRun {
                    id: &id,
                    op,
                    tier,
                    hours: i as i64,
                    rate: 700.0 + i as f64,
                    ended: &ended,
                    ..MadeRun::default()
                },
            );
            if i == 0 {
                continue;
            }
            let _ = std::fs::remove_dir_all(template.path().join(format!("{op}-{tier}")));
            copied(&root.join(&id), &template.path().join(format!("{op}-{tier}")));
            continue;
        }
        let from = template.path().join(format!("{op}-{tier}"));
        let from = if from.exists() { from } else { template.path().join("put-t1") };
        copied(&from, &root.join(&id));
    }
}

fn copied(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory can be made");
    for entry in std::fs::read_dir(from).expect("the template can be read") {
        let entry = entry.expect("the template can be read");
        let place = to.join(entry.file_name());
        if entry.path().is_dir() {
            copied(&entry.path(), &place);
        } else {
            std::fs::copy(entry.path(), place).expect("a file can be copied");
        }
    }
}
