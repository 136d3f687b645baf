//! One run of each kind that the page has a first screen of its own for.

use super::record::stage_toml;
use super::*;

/// A summary without the labels, rerun and verdict of the sweep.
fn plain(id: &str, verdict: &str, rerun: &str, lines: Vec<WorkloadSummary>) -> RunSummary {
    let mut s = summary(id, verdict, lines);
    s.labels.clear();
    s.rerun = rerun.into();
    s
}

fn checks() -> Vec<Check> {
    let check = |code: &str, name: &str, result: &str| Check {
        code: code.into(),
        name: name.into(),
        result: result.into(),
        measured: "0.3 %".into(),
        threshold: "1 %".into(),
        remedy: if result == "pass" { String::new() } else { "Run longer, or with --repeat 5.".into() },
    };
    vec![
        check("V01", "error_rate", "pass"),
        check("V04", "too_few_ops", "pass"),
        check("V07", "client_bound", "pass"),
        check("Q02", "repeats", "note"),
        check("V22", "steal", "not tested"),
    ]
}

fn analysis() -> Analysis {
    Analysis { schema: SCHEMA.into(), checks: checks(), ..Analysis::default() }
}

fn level(start_s: f64, end_s: f64, per_s: f64) -> MeasuredLevel {
    MeasuredLevel { start_s, end_s, per_s: Estimate::symmetric(per_s, per_s * 0.004, 20.0) }
}

/// One operation that holds its rate.
pub fn object() -> (RunSummary, Analysis, Vec<Script>) {
    let s = plain(
        "20260301-0900-object",
        "VALID. Sustained **812 ± 4 op/s** of 64 KiB GET (95 %, 58 s window).",
        "plimsoll object get --endpoint https://s3.example.net --bucket bench --size 64KiB --duration 1m",
        vec![line(OpKind::Get, 65_536, 812.0, 31)],
    );
    let hold = Hold {
        unit: "ops".into(),
        verdict: "steady".into(),
        levels: vec![level(1.0, 60.0, 812.0)],
        horizon_s: 60.0,
        ..Hold::default()
    };
    (
        s,
        Analysis { holds: vec![hold], ..analysis() },
        vec![script("get", OpKind::Get, 65_536, 60.0, |_| 812.0)],
    )
}

fn script(name: &str, op: OpKind, size: u64, seconds: f64, law: impl Fn(f64) -> f64 + 'static) -> Script {
    let plan = format!(
        "[[stage]]\nname = \"{name}\"\n[[stage.workload]]\nname = \"{op}-{size}\"\nmix = {{ {op} = 1 }}\nsize = {size}\nconcurrency = 16\n"
    );
    Script {
        stage: stage_toml(&plan),
        seconds,
        load: vec![(op, size, Box::new(move |t| (law(t), 0.0, 0.0)))],
        latency_ns: 8e6,
    }
}

/// A probe: phases that follow each other, a bucket of operations, the caps over sizes.
pub fn limits() -> (RunSummary, Analysis, Vec<Script>) {
    let mut s = limited();
    s.id = "20260301-0910-limits".into();
    s.labels.clear();
    let mut a = limited_analysis();
    (a.saturations, a.scalings, a.comparisons, a.load_points) = Default::default();
    (a.holds, a.checks) = (Vec::new(), checks());
    let steps = [
        ("pilot: what size moves bytes best", 4.0),
        ("looking for a limit on ops", 40.0),
        ("waiting while the ops bucket refills", 20.0),
        ("draining the ops bucket again", 15.0),
        ("measuring a short burst of ops", 3.0),
        ("looking for a limit on bytes", 25.0),
        ("deciding", 2.0),
    ];
    let of = |(name, seconds): (&str, f64)| {
        let waits = name.starts_with("waiting");
        script(name, OpKind::Put, 4096, seconds, move |t| match t {
            _ if waits => 20.0,
            t if t < 18.0 => BURST,
            _ => SUSTAINED,
        })
    };
    (s, a, steps.into_iter().map(of).collect())
}

/// A long run that falls, with an outage.
pub fn watch() -> (RunSummary, Analysis, Vec<Script>) {
    let mut s = limited();
    s.id = "20260301-0920-watch".into();
    s.labels.clear();
    s.limits[0].evidence = vec![("line".into(), "put/put".into())];
    s.rerun = "plimsoll watch object --endpoint https://s3.example.net --bucket bench --for 2m".into();
    let mut a = limited_analysis();
    (a.saturations, a.scalings, a.comparisons, a.load_points, a.size_models) = Default::default();
    a.checks = checks();
    (s, a, limited_script(120.0))
}

/// The file benchmark again and again, on a disk that collapses after twenty minutes: writes to a quarter, reads to a tenth.
pub fn cycles() -> (RunSummary, Analysis, Vec<Script>) {
    let parts = [
        (OpKind::Write, 1_048_576, 135.0, 13.0),
        (OpKind::Read, 1_048_576, 98.0, 6.0),
        (OpKind::Read, 512, 300.0, 79.0),
    ];
    let mut rng = Rng(23);
    let (mut lines, mut scripts, mut findings) = (Vec::new(), Vec::new(), Vec::new());
    let fall = 5;
    for (i, (op, size, before, after)) in parts.into_iter().enumerate() {
        let mut w = line(op, size, before, 50 + i as u64);
        w.name = ["write", "read", "iops"][i].into();
        w.each_ops_per_s = (0..12)
            .map(|c| {
                let rate: f64 = if c < fall { before } else { after };
                Estimate::symmetric(rate * (1.0 + 0.04 * rng.normal()), rate * 0.03, 8.0)
            })
            .collect();
        w.repeats = 12;
        let text = format!(
            "From cycle 6 on, 25 min after the start, {} does {after} op/s, and {before} before: the mean over all 12 cycles is of neither.",
            w.name
        );
        let mut f = Finding::new("F30", "cliff", Level::Qualified, text).on(format!("{}/{}", w.name, w.op));
        f.evidence = vec![("cycle".into(), "6".into())];
        findings.push(f);
        lines.push(w);
    }
    for repeat in 0..12u32 {
        for (i, (op, size, before, after)) in parts.into_iter().enumerate() {
            let name = ["write", "read", "iops"][i];
            let plan = format!(
                "[[stage]]\nname = \"{name}\"\ncell = {{ index = {i}, repeat = {repeat} }}\n[[stage.workload]]\nname = \"{name}\"\nmix = {{ {op} = 1 }}\nsize = {size}\nconcurrency = 4\n"
            );
            let rate = if repeat < fall { before } else { after };
            scripts.push(Script {
                stage: stage_toml(&plan),
                seconds: 4.0,
                load: vec![(op, size, Box::new(move |_| (rate, 0.0, 0.0)))],
                latency_ns: 9e6,
            });
        }
    }
    let mut s = plain(
        "20260301-0930-cycles",
        "VALID (3 notes). From cycle 6 on, 25 min after the start, write does 13 op/s, and 135 before.",
        "plimsoll watch /mnt/disk --cycle file --for 1h",
        lines,
    );
    s.labels.insert("suite".into(), "file".into());
    s.findings = findings;
    (s, analysis(), scripts)
}

/// The search for the concurrency that is enough.
pub fn search() -> (RunSummary, Analysis, Vec<Script>) {
    let mut a = limited_analysis();
    let saturations = std::mem::take(&mut a.saturations);
    let points = &saturations[0].points;
    let step = |(i, p): (usize, &SaturationPoint)| WorkloadSummary {
        name: format!("{} in flight", p.concurrency),
        concurrency: p.concurrency,
        ..line(OpKind::Put, 4096, p.ops_per_s.value, 60 + i as u64)
    };
    let lines = points.iter().enumerate().map(step).collect();
    let of = |p: &SaturationPoint| {
        let rate = p.ops_per_s.value;
        script(&format!("rung: {}", p.concurrency), OpKind::Put, 4096, 5.0, move |_| rate)
    };
    let scripts = points.iter().map(of).collect();
    let s = plain(
        "20260301-0940-search",
        "VALID. PUT 4 KiB does 2,955 ± 25 op/s with 64 in flight; more in flight bring no more.",
        "plimsoll speedtest object --endpoint https://s3.example.net --bucket bench",
        lines,
    );
    (s, Analysis { saturations, ..analysis() }, scripts)
}

/// Reads and writes of a device at ten sizes, one cell of them void.
pub fn block() -> (RunSummary, Analysis, Vec<Script>) {
    let sizes = [4096u64, 8192, 16_384, 32_768, 65_536, 131_072, 262_144, 524_288, 1_048_576, 4_194_304];
    let rate = |op: OpKind, size: u64| {
        let cap: f64 = if op == OpKind::Read { 11_700.0 } else { 6_100.0 };
        (cap.powi(-6) + (1.5e8 / size as f64).powi(-6)).powf(-1.0 / 6.0)
    };
    let cells: Vec<(OpKind, u64)> = [OpKind::Write, OpKind::Read]
        .into_iter()
        .flat_map(|op| sizes.into_iter().map(move |size| (op, size)))
        .collect();
    let lines = cells.iter().enumerate().map(|(i, (op, s))| line(*op, *s, rate(*op, *s), 70 + i as u64));
    let mut s = plain(
        "20260301-0950-block",
        "PARTLY VALID. Writes reach 6,100 ± 37 IOPS (4 KiB), reads 11,700 ± 70 IOPS (4 KiB).",
        "plimsoll block /dev/sdb --sizes 4KiB,8KiB,16KiB,32KiB,64KiB,128KiB,256KiB,512KiB,1MiB,4MiB",
        lines.collect(),
    );
    let mut f = Finding::new("V04", "too_few_ops", Level::Invalid, "Too few ops ended. Run longer.");
    f.workload = Some(format!("{}/{}", s.workloads[9].name, s.workloads[9].op));
    s.findings.push(f);
    s.settle(true, false);
    let scripts = cells.iter().map(|(op, size)| {
        let r = rate(*op, *size);
        script(&format!("{op} {size}"), *op, *size, 5.0, move |_| r)
    });
    (s, analysis(), scripts.collect())
}

/// Parts of a suite, a line each: `file` or `drive`.
pub fn suite(name: &str) -> (RunSummary, Analysis, Vec<Script>) {
    let parts = [
        ("sequential write", OpKind::Write, 1_048_576u64, 1577.0),
        ("sequential read", OpKind::Read, 1_048_576, 1614.0),
        ("random read", OpKind::Read, 4096, 28_484.0),
    ];
    let lines = parts.iter().enumerate().map(|(i, (name, op, size, rate))| WorkloadSummary {
        name: (*name).into(),
        ..line(*op, *size, *rate, 90 + i as u64)
    });
    let mut s = plain(
        &format!("20260301-1000-{name}"),
        "VALID. Up to 28,484 ± 171 op/s (4 KiB READ), up to 1,614 ± 10 MiB/s (1 MiB READ).",
        &format!("plimsoll {name} /mnt/nvme"),
        lines.collect(),
    );
    s.labels.insert("suite".into(), name.into());
    let scripts = parts.iter().map(|(name, op, size, rate)| {
        let r = *rate;
        script(name, *op, *size, 6.0, move |_| r)
    });
    (s, analysis(), scripts.collect())
}

/// What `compare` says: rates and times over sizes, some of them not proved.
pub fn compare() -> (RunSummary, Analysis) {
    let one = limited_analysis().comparisons.remove(0);
    let of = |(i, (op, size, ratio)): (usize, &(&str, u64, f64))| {
        let rate = |measure: &str, ratio: f64, half: f64| Comparison {
            name: format!("{op} {} {measure}", plimsoll_model::units::format_size(*size)),
            op: (*op).into(),
            size_bytes: *size,
            measure: measure.into(),
            unit: if measure == "rate" { "op/s".into() } else { "ns".into() },
            ratio: Some(Estimate::symmetric(ratio, half, 9.0)),
            outcome: match () {
                () if (ratio - 1.0).abs() < half => "none seen".into(),
                () if (ratio > 1.0) == (measure == "rate") => "faster".into(),
                () => "slower".into(),
            },
            verdict: "the difference is larger than these runs could show by chance".into(),
            ..one.clone()
        };
        [rate("rate", *ratio, 0.02 + 0.01 * i as f64), rate("p99 response", 1.0 / ratio, 0.09)]
    };
    let cells =
        [("put", 4096, 1.31), ("put", 1_048_576, 0.82), ("get", 4096, 1.01), ("get", 1_048_576, 1.17)];
    let s = RunSummary {
        id: "replica 3 against EC 2+2".into(),
        valid: true,
        status: plimsoll_model::RunStatus::Valid,
        answered: true,
        verdict: "VALID. replica 3 is faster at 2 of 4 rates, slower at 1.".into(),
        rerun: "plimsoll compare RUN... --against RUN...".into(),
        ..RunSummary::default()
    };
    let comparisons = cells.iter().enumerate().flat_map(of).collect();
    (s, Analysis { comparisons, ..analysis() })
}

/// What `scale` says.
pub fn scale() -> (RunSummary, Analysis) {
    let (mut s, _) = compare();
    s.id = "Scaling over nodes".into();
    s.verdict = "VALID. 8 nodes do 6.6 times what one does; 16 are predicted to do 10.9 times.".into();
    s.rerun = "plimsoll scale RUN...".into();
    (s, Analysis { scalings: limited_analysis().scalings, ..analysis() })
}
