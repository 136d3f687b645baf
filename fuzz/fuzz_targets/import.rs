//! Any bytes are the result of a tool that is known, read whole, or an error with a remedy; requests become slices in order, and
//! none is lost.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_import::{ImportError, Source, SourceForm, warp};

fuzz_target!(|bytes: &[u8]| {
    let told = |e: ImportError| assert!(!e.to_string().is_empty() && !e.remedy.is_empty(), "{e:?}");
    let Ok(source) = Source::open(bytes).map_err(told) else { return };
    if source.form() != SourceForm::WarpRequests {
        if let Ok(runs) = source.lines().map_err(told) {
            assert!(runs.iter().all(|r| !r.lines.is_empty()));
        }
        return;
    }
    let Ok(survey) = warp::survey(source.into_reader()).map_err(told) else { return };
    // A year of slices with nothing in between is passed over, not walked through.
    let known: u64 = survey.kinds.values().map(|k| k.requests).sum();
    let plan = survey.plan("fuzz");
    assert!(plan.validate().is_ok(), "{:?}", plan.validate());
    let again = Source::open(bytes).expect("it was opened before");
    let (mut last, mut ended) = (0, 0);
    let read = warp::replay::<ImportError>(again.into_reader(), &survey, |what| {
        if let warp::Replayed::Slice(_, interval) = what {
            assert!(interval.index >= last, "slices come in order");
            last = interval.index;
            ended += interval.series.iter().flat_map(|s| s.counts.outcomes).sum::<u64>();
        }
        Ok(())
    });
    if read.map_err(told).is_ok() {
        assert_eq!(ended, known, "each request is in one slice");
    }
});
