//! This machine's own ceiling as a load generator: against a target that does nothing, and against the canned server
//! in a process of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_judge::ceiling::SIZES;
use plimsoll_model::plan::PLAN_VERSION;
use plimsoll_model::units::{Size, Span};
use plimsoll_model::{Estimate, Event, OpKind, Plan};
use plimsoll_run::ceiling::{CEILING_FORMAT, Calibration, keep};
use plimsoll_run::{Options, RunError, execute};
use plimsoll_store::RunDir;

/// A ceiling whose interval is wider than this to either side is none to hold a result against: a run counts as limited
/// by the client from 90 % of it on.
const WIDE: f64 = 0.1;
/// Each is measured so often at most, each time twice as long, until it is narrow enough.
const ATTEMPTS: u32 = 3;

/// Measures until the interval is narrow enough, each time twice as long. Gives the narrowest, and whether it will do.
fn narrow(mut measure: impl FnMut(u32) -> Result<Estimate, RunError>) -> Result<(Estimate, bool), RunError> {
    let mut best: Option<Estimate> = None;
    for attempt in 0..ATTEMPTS {
        let e = measure(attempt)?;
        let narrower = |b: Estimate| e.relative_half_width() < b.relative_half_width();
        let kept = best.filter(|b| !narrower(*b)).unwrap_or(e);
        if kept.relative_half_width() <= WIDE {
            return Ok((kept, true));
        }
        best = Some(kept);
    }
    best.map(|e| (e, false)).ok_or_else(|| RunError::Bug("no attempt was made".into()))
}

/// Before each measurement.
const WARMUP: Duration = Duration::from_millis(500);

/// How long it takes: each ceiling once, or as often as it is measured at most.
fn how_long(ceilings: usize, duration: Duration) -> String {
    let of = |attempts: u32| (0..attempts).map(|i| WARMUP + duration * (1 << i)).sum::<Duration>();
    let all_s = |attempts: u32| (of(attempts) * ceilings as u32).as_secs_f64().ceil();
    format!(
        "{ceilings} ceilings, {} each: about {:.0} s, or up to {:.0} s if intervals stay wide. A ceiling with a wide \
         interval is measured again, up to {} times, for twice as long each time",
        Span(duration),
        all_s(1),
        all_s(ATTEMPTS),
        ATTEMPTS - 1
    )
}

/// Shorter than this no rate can be told from few slices of 100 ms.
pub const SHORTEST: Duration = Duration::from_millis(500);

/// Measures the ceilings, `duration` each, and keeps them.
pub fn calibrate(
    options: &Options,
    duration: Duration,
    mut events: impl FnMut(Event),
) -> Result<Calibration, RunError> {
    if duration < SHORTEST {
        return Err(RunError::input(
            format!("{} is too short to measure a ceiling", Span(duration)),
            format!("Give --duration {} or more; 2s is usual", Span(SHORTEST)),
        ));
    }
    let mut ops_per_s = BTreeMap::new();
    let mut wide = Vec::new();
    let new_root = !options.root.exists();
    let options = Options { run_dir: None, ceiling: BTreeMap::new(), ..options.clone() };
    let mut cases = vec![("null".to_owned(), OpKind::Null, 0)];
    for kind in [OpKind::Get, OpKind::Put] {
        cases.extend(SIZES.iter().map(|size| (format!("{kind} {size}"), kind, *size)));
    }
    events(Event::Doing(how_long(cases.len(), duration)));
    let result = cases.into_iter().try_for_each(|(name, kind, size)| {
        let (estimate, narrow) = narrow(|attempt| {
            let again = if attempt > 0 { " again, for longer: the interval was too wide" } else { "" };
            events(Event::Doing(format!("measuring {name}{again}")));
            once(&options, (kind, size, duration * (1 << attempt)), &mut events)
        })?;
        if !narrow {
            wide.push(name.clone());
        }
        ops_per_s.insert(name, estimate);
        if options.interrupt.is_requested() { Err(RunError::Interrupted) } else { Ok(()) }
    });
    if new_root {
        // With anything in it, it stays.
        let _ = std::fs::remove_dir(&options.root);
    }
    result?;
    let here = plimsoll_run::machine();
    let calibration = Calibration {
        format: CEILING_FORMAT.into(),
        host: here.host,
        cpu_model: here.cpu_model,
        cpu_count: here.cpu_count,
        cpu_quota_cores: here.cpu_quota_cores,
        plimsoll_version: env!("CARGO_PKG_VERSION").into(),
        commit: options.commit.clone(),
        made_at: jiff::Timestamp::now().to_string(),
        ops_per_s,
        wide,
    };
    keep(&calibration)?;
    Ok(calibration)
}

/// One measurement of one case.
fn once(
    options: &Options,
    (kind, size, duration): (OpKind, u64, Duration),
    events: &mut dyn FnMut(Event),
) -> Result<Estimate, RunError> {
    let text = if kind == OpKind::Null { null_plan(duration) } else { canned_plan(kind, size, duration) };
    let plan = Plan::from_toml(&text).map_err(|e| RunError::Bug(format!("calibration plan: {e}")))?;
    let finished = execute(&plan, options, &mut *events)?;
    // The run itself is of no further use. One that cannot be removed, or was killed, is a run like any other: it is listed,
    // and can be removed by name.
    let _ = RunDir::open(&finished.path).and_then(RunDir::remove);
    let line = finished.summary.workloads.first().and_then(|w| w.ops_per_s);
    line.filter(|e| e.value > 0.0).ok_or_else(|| {
        RunError::input(format!("'{kind}' gave no rate"), "Run it again on a quiet machine, or for longer")
    })
}

fn null_plan(duration: Duration) -> String {
    format!(
        "version = {PLAN_VERSION}\nname = \"calibrate null\"\n[options]\nthreads = 1\n[targets.null]\nkind = \"null\"\n\
         [[stage]]\nwarmup = \"{}\"\n[[stage.workload]]\nname = \"null\"\nmix = {{ null = 1 }}\nconcurrency = 16\n\
         stop = {{ duration = \"{}\" }}\n",
        Span(WARMUP),
        Span(duration)
    )
}

fn canned_plan(kind: OpKind, size: u64, duration: Duration) -> String {
    format!(
        "version = {PLAN_VERSION}\nname = \"calibrate {kind}\"\n[options]\nthreads = 1\n[targets.canned]\nkind = \"s3\"\n\
         endpoints = [\"{}\"]\nbucket = \"bucket\"\n[[stage]]\nwarmup = \"{}\"\n[[stage.workload]]\n\
         name = \"{kind}\"\nmix = {{ {kind} = 1 }}\nsize = \"{}\"\nconcurrency = 16\nstop = {{ duration = \"{}\" }}\n",
        plimsoll_setup::s3::CANNED,
        Span(WARMUP),
        Size(size),
        Span(duration)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_plans() {
        for plan in [
            null_plan(Duration::from_secs(2)),
            canned_plan(OpKind::Put, 1 << 20, Duration::from_millis(1500)),
        ] {
            Plan::from_toml(&plan).unwrap();
        }
    }

    #[test]
    fn what_stays_wide_is_marked() {
        let of = |half: f64| Estimate::symmetric(100.0, half, 10.0);
        let widths = |list: &'static [f64]| move |i: u32| Ok(of(list[i as usize]));
        assert_eq!(narrow(widths(&[5.0])).unwrap(), (of(5.0), true), "once is enough");
        assert_eq!(narrow(widths(&[50.0, 9.0])).unwrap(), (of(9.0), true));
        assert_eq!(narrow(widths(&[50.0, 20.0, 30.0])).unwrap(), (of(20.0), false));
        assert!(narrow(|_| Err(RunError::Interrupted)).is_err());
    }

    #[test]
    fn how_long_it_takes_is_said_before() {
        let said = how_long(5, Duration::from_secs(4));
        assert!(said.contains("5 ceilings, 4s each"), "{said}");
        // Five of 4.5 s; and with 8.5 s and 16.5 s more each.
        assert!(said.contains("about 23 s") && said.contains("up to 148 s"), "{said}");
    }
}
