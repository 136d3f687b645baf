//! `--dry-run`: the plan, and above it as comments what would happen. The text is itself a plan file.

use std::fmt::Write as _;

use plimsoll_model::Cluster;
use plimsoll_model::count::counted;
use plimsoll_model::plan::{BlockTarget, ControllerSpec, Pacing, Plan, Stage, Stop, TargetSpec, Workload};

/// TOML of the plan, headed by comment lines that say what running it would do.
pub fn text(plan: &Plan) -> String {
    let mut out = String::from("# What would happen:\n");
    for line in explain(plan) {
        let _ = writeln!(out, "#   {line}");
    }
    out.push('\n');
    out + &plan.to_toml()
}

/// A sentence for each target and stage.
pub fn explain(plan: &Plan) -> Vec<String> {
    let target = |(name, t): (&String, &TargetSpec)| target_line(name, t, plan.only_reads(name));
    let mut lines: Vec<String> = plan.targets.iter().map(target).collect();
    for (i, stage) in plan.stages.iter().enumerate() {
        let prepared = stage.workloads.iter().filter_map(|w| prepared_line(plan, w));
        lines.extend(prepared.map(|what| format!("before stage {}: {what}", i + 1)));
        lines.push(format!("stage {}: {}", i + 1, stage_line(stage)));
    }
    if let Some(c) = &plan.controller {
        lines.push(controller_line(c));
    }
    lines.extend(plan.each_in_words());
    lines.extend(cost_lines(plan));
    lines.extend(plan.options.cluster.as_deref().map(cluster_line));
    lines.extend(observe_line(plan));
    lines.extend(plan.guards().iter().map(|g| format!("the run ends (exit code 8) when {g}")));
    if plan.options.keep {
        lines.push("what the run creates is kept".into());
    } else {
        lines.push("at the end, what the run created is removed".into());
    }
    lines
}

/// What the servers are made of.
fn cluster_line(c: &Cluster) -> String {
    let redundancy = c.redundancy.map_or("redundancy not known".to_owned(), |r| r.to_string());
    format!(
        "the servers: {}, {} node(s), {} drive(s), {redundancy}",
        c.software,
        c.node_count(),
        c.drive_count()
    )
}

/// Who is asked meanwhile, and how often.
fn observe_line(plan: &Plan) -> Option<String> {
    let places = plimsoll_setup::observe::places(plan).ok().filter(|p| !p.is_empty())?;
    let names: Vec<String> = places.iter().map(|p| p.name()).collect();
    let every = plan.observe_every().as_secs_f64();
    Some(format!("each {every} s it is asked what the servers do: {}", names.join(", ")))
}

/// What the run costs, by the prices that it was given: with its arithmetic, and what has no bound.
fn cost_lines(plan: &Plan) -> Vec<String> {
    let (Some(cost), Ok(Some(bound))) = (&plan.options.cost, plimsoll_run::cost_bound(plan)) else {
        return Vec::new();
    };
    let currency = &cost.currency;
    let of = cost.chosen().map_or(String::new(), |(name, s)| {
        format!("by the prices of {name}, {}, {} ({})", s.region, s.date, s.source)
    });
    let mut out = vec![if bound.is_closed() {
        format!("cost: at most {}, {of}", bound.said(currency))
    } else {
        format!("cost: not bounded; at most {} beside what is named below, {of}", bound.said(currency))
    }];
    out.extend(bound.items.iter().map(|i| format!("cost, {}: {}", i.what, i.formula)));
    out.extend(bound.open.iter().map(|why| format!("cost, not bounded: {why}")));
    if let Some(budget) = &cost.budget {
        out.push(format!(
            "the run ends when what was sent comes to {budget}; what is sent in the two seconds after that (of a fleet, three) can \
             be more"
        ));
    }
    out
}

fn target_line(name: &str, target: &TargetSpec, only_reads: bool) -> String {
    match target {
        TargetSpec::S3(s) if only_reads => {
            format!("{name}: bucket {} at {}, only listed and read", s.bucket, s.endpoints.join(", "))
        }
        TargetSpec::Block(b) if b.existing => format!("{name}: {}, only read", b.path),
        TargetSpec::S3(s) => {
            let prefix = s.prefix.as_deref().unwrap_or("plimsoll/RUN-ID/");
            let made = if s.create_bucket { " (created if it does not exist)" } else { "" };
            format!("{name}: bucket {}{made} at {}, under {prefix} only", s.bucket, s.endpoints.join(", "))
        }
        TargetSpec::Block(BlockTarget { embedded: Some(volume), size, .. }) => {
            let limits = volume.tier.as_ref().or(volume.limits.as_ref()).cloned().unwrap_or_default();
            let factor = |what, f: Option<f64>| f.map_or_else(String::new, |f| format!(", {what} times {f}"));
            format!(
                "{name}: plimsoll's own volume of {}, limited as {limits}{}{}, gone with the run",
                size.unwrap_or(BlockTarget::EMBEDDED_SIZE),
                factor("rates", volume.scale),
                factor("length of bursts", volume.burst_scale)
            )
        }
        TargetSpec::Block(b) => match &b.destroy_data {
            Some(d) => format!("{name}: {}; ALL DATA ON {d} MAY BE DESTROYED", b.path),
            None => format!(
                "{name}: {}{}",
                b.path,
                if b.buffered { ", through the page cache" } else { ", direct I/O" }
            ),
        },
        TargetSpec::Files(f) => format!("{name}: new files of {} in {}", f.file_size, f.directory),
        TargetSpec::Null => format!("{name}: null target; measures plimsoll itself"),
        TargetSpec::Sim(_) => format!("{name}: a simulated target on a virtual clock"),
    }
}

fn stage_line(stage: &Stage) -> String {
    let line = |w: &Workload| format!("{}, {}", load_text(w), stop_text(&w.stop));
    warmup_then(stage, line)
}

/// Objects that have to be there first: those that are read, and beside them those that are deleted.
fn prepared_line(plan: &Plan, w: &Workload) -> Option<String> {
    if !matches!(plan.target_of(w).ok()?.1, TargetSpec::S3(_)) {
        return None;
    }
    if let Some(existing) = w.existing() {
        let most = w.object.as_ref().map_or(0, |o| o.objects);
        let place = match existing.prefix.as_str() {
            "" => "in the bucket".to_owned(),
            prefix => format!("under '{prefix}'"),
        };
        let size = size_text(&w.size);
        return Some(format!(
            "at most {most} objects are looked for {place}, of about {size} where there are such"
        ));
    }
    let (read, deleted) = plimsoll_run::prepared_objects(w);
    let what = match (read, deleted) {
        (0, 0) => return None,
        (n, 0) => format!("{} to read or list", counted(n, "object")),
        (0, n) => format!("{} to delete", counted(n, "object")),
        (n, m) => format!("{} objects ({n} to read or list, {m} to delete)", n + m),
    };
    let again = match w.object.as_ref().and_then(|o| o.dataset.as_ref()) {
        Some(name) => format!(" (those to read only once, as data set {name})"),
        None => String::new(),
    };
    Some(format!("{what} are written, each {}{again}", size_text(&w.size)))
}

/// A stage whose end is the controller's, unless the template names one.
fn template_line(stage: &Stage) -> String {
    let line = |w: &Workload| match w.stop == Stop::default() {
        true => load_text(w),
        false => format!("{}, {}", load_text(w), stop_text(&w.stop)),
    };
    warmup_then(stage, line)
}

fn warmup_then(stage: &Stage, line: impl Fn(&Workload) -> String) -> String {
    let work: Vec<String> = stage.workloads.iter().map(line).collect();
    format!("{} of warm-up, then {}", stage.warmup, work.join("; at the same time "))
}

fn load_text(w: &Workload) -> String {
    let total: u32 = w.mix.values().sum();
    let ops: Vec<String> = match w.mix.len() {
        1 => w.mix.keys().map(|k| k.name().to_owned()).collect(),
        _ => w
            .mix
            .iter()
            .map(|(k, n)| format!("{k} {:.0} %", f64::from(*n) * 100.0 / f64::from(total)))
            .collect(),
    };
    let jobs = w.jobs.map(|j| format!("{j} jobs of ")).unwrap_or_default();
    format!(
        "{} of {}, {jobs}{} in flight{}",
        ops.join(", "),
        size_text(&w.size),
        w.concurrency,
        pacing_text(&w.pacing)
    )
}

fn size_text(size: &plimsoll_model::plan::SizeDist) -> String {
    use plimsoll_model::plan::SizeDist;
    match size {
        SizeDist::Fixed(s) => s.to_string(),
        SizeDist::Uniform { min, max } => format!("{min} to {max}"),
        SizeDist::Weighted(list) => {
            list.iter().map(|(s, w)| format!("{s} x{w}")).collect::<Vec<_>>().join(" / ")
        }
        SizeDist::LogNormal { median, sigma, max } => {
            format!("log-normal sizes around {median} (sigma {sigma}, at most {max})")
        }
    }
}

fn pacing_text(pacing: &Pacing) -> String {
    match pacing {
        Pacing::Closed => String::new(),
        Pacing::Constant(r) => format!(" at most, at {r}, evenly spaced"),
        Pacing::Capped(r) => format!(" at most, at no more than {r}"),
        Pacing::Poisson(r) => format!(" at most, at {r} on average, at random"),
        Pacing::Bytes(r) => format!(" at most, at {r}"),
        Pacing::Ramp { from, to, over } => format!(" at most, from {from} to {to} over {over}"),
    }
}

fn stop_text(stop: &Stop) -> String {
    let mut ends = Vec::new();
    ends.extend(stop.duration.map(|d| format!("for {d}")));
    ends.extend(stop.ops.map(|n| format!("until {}", counted(n, "op"))));
    ends.extend(stop.bytes.map(|b| format!("until {b}")));
    ends.extend(stop.loops.map(|n| format!("for {n} passes")));
    if ends.is_empty() { "for 30s".into() } else { ends.join(" or ") }
}

fn controller_line(controller: &ControllerSpec) -> String {
    match controller {
        ControllerSpec::Sweep { template, ops, sizes, concurrencies, repeat } => {
            let cells = match sizes.len() {
                0 => "the cells chosen by a pilot".to_owned(),
                n => counted(ops.len() * n * concurrencies.len().max(1), "cell"),
            };
            format!(
                "a sweep of {cells}, each {repeat} times in random order; each cell: {}",
                stage_line(template)
            )
        }
        ControllerSpec::Saturation { template, then, load_points, budget, .. } => {
            let points = match load_points.len() {
                0 => String::new(),
                n => format!(", then latency at {n} fractions of the rate found"),
            };
            let time = budget.map_or(String::new(), |b| format!(" of {b}"));
            if then.is_empty() {
                return format!(
                    "a search for the best concurrency{time}{points}, starting from: {}",
                    template_line(template)
                );
            }
            let together = budget.map_or(String::new(), |b| format!(" within {b} together"));
            let each: Vec<String> = controller.templates().map(template_line).collect();
            format!(
                "{} searches for the best concurrency{together}, one after the other{}{points}, starting from: {}",
                each.len(),
                if points.is_empty() { "" } else { ", each" },
                each.join("; and ")
            )
        }
        ControllerSpec::Limits { template, budget, .. } => {
            format!("a probe for limits that takes at most {budget}, with: {}", template_line(template))
        }
        ControllerSpec::Watch { template, duration } => {
            format!("a watch of {duration} over: {}", template_line(template))
        }
    }
}
