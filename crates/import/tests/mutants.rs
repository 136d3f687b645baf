//! Files of the real tools with bytes changed, left out and doubled: read, or refused with a remedy, and never a panic. What is
//! recognised is fuzzed at length elsewhere (fuzz/fuzz_targets/import.rs).

use std::path::PathBuf;

use plimsoll_import::{ImportError, Source, SourceForm, warp};
use proptest::prelude::*;

const FILES: [&str; 8] = [
    "fio.json",
    "fio-client.json",
    "iperf3.json",
    "gobonniego.json",
    "elbencho.csv",
    "elbencho.json",
    "warp-summary.json.zst",
    "warp-mixed.csv.zst",
];

/// The content, decompressed: changes in it are not caught by a checksum.
fn content(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    let bytes = std::fs::read(path).unwrap();
    if name.ends_with(".zst") { zstd::decode_all(&bytes[..]).unwrap() } else { bytes }
}

fn read(bytes: &[u8]) -> Result<(), ImportError> {
    let source = Source::open(bytes)?;
    if source.form() != SourceForm::WarpRequests {
        let runs = source.lines()?;
        assert!(runs.iter().all(|r| !r.lines.is_empty()));
        return Ok(());
    }
    let survey = warp::survey(source.into_reader())?;
    let plan = survey.plan("mutant");
    assert!(plan.validate().is_ok(), "{:?}", plan.validate());
    let known: u64 = survey.kinds.values().map(|k| k.requests).sum();
    let mut ended = 0;
    warp::replay::<ImportError>(Source::open(bytes)?.into_reader(), &survey, |what| {
        if let warp::Replayed::Slice(_, interval) = what {
            ended += interval.series.iter().flat_map(|s| s.counts.outcomes).sum::<u64>();
        }
        Ok(())
    })?;
    assert_eq!(ended, known);
    Ok(())
}

/// A place in the file, a byte to write there, and what is done: 0 to 2.
type Change = (prop::sample::Index, u8, u8);

fn changed(bytes: &mut Vec<u8>, (at, to, how): &Change) {
    if bytes.is_empty() {
        return;
    }
    let i = at.index(bytes.len());
    // Digits and signs get further than any byte.
    let to = if how % 2 == 0 { b"0123456789-.eE,\t\"\n{}"[usize::from(*to) % 20] } else { *to };
    match how % 3 {
        0 => bytes[i] = to,
        1 => bytes.insert(i, to),
        _ => drop(bytes.remove(i)),
    }
}

proptest! {
    #[test]
    fn no_change_is_worse_than_an_error(
        file in 0..FILES.len(),
        changes in prop::collection::vec(any::<Change>(), 1..6),
    ) {
        let mut bytes = content(FILES[file]);
        changes.iter().for_each(|c| changed(&mut bytes, c));
        if let Err(e) = read(&bytes) {
            prop_assert!(!e.to_string().is_empty() && !e.remedy.is_empty(), "{e:?}");
        }
    }
}
