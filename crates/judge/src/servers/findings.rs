//! What is said of the sources themselves, and of servers' counts beside ours.

use plimsoll_model::plan::SizeDist;
use plimsoll_model::summary::servers::{
    RequestCount, ResourceUse, ServersLimit, ServersSummary, ServersWindow, ceiling_words,
};
use plimsoll_model::units::significant;
use plimsoll_model::{Finding, Level, RunSummary, Scrape};
use plimsoll_stats::claims::SERVERS_LIMIT;
use plimsoll_stats::judge::CONCURRENCY_BOUND;
use plimsoll_store::{ObservedSource, RunData};

use super::SeenWindow;
use super::limit::{AND_DOUBLE, DOUBLE};
use super::resources::BEYOND;

/// Requests at the servers beyond ours, from which on others are named. (A choice: what a health check or a listing adds is less.)
const NEIGHBOURS: f64 = 0.05;
/// Fewer requests than ours at the servers, from which on not all of them were observed, or the counts are of something else.
const UNSEEN: f64 = 0.02;
/// A clock that is off by more is told: charts of its host by other tools are shifted against ours. (A choice.)
const CLOCK_OFF_S: f64 = 1.0;
/// Part of the bytes read that the drives need not have read for it to be said: replicas, checksums and readahead add a little.
const FROM_CACHE: f64 = 0.5;
/// Fewer bytes are not worth the sentence.
const LEAST_READ_PER_S: f64 = 1e6;
/// The fullest of several against their median: from here on it is a hot spot. As for endpoints (stats/attribution: imbalance).
const HOT_SPOT: f64 = 1.3;
/// And at least so full: what nothing uses has no hot spot.
const HOT_SHARE: f64 = 0.5;

/// Of each source by itself.
pub fn of_sources(data: &RunData, windows: &[SeenWindow<'_>]) -> Vec<Finding> {
    let mut out: Vec<Finding> = data.observed.iter().flat_map(of_source).collect();
    out.extend(too_few(data, windows));
    for (s, (from, to)) in
        windows.iter().flat_map(|w| &w.subjects).flat_map(|s| s.restarts.iter().map(move |r| (s, r)))
    {
        let who = if s.daemon.is_empty() { s.host } else { s.daemon };
        let text = format!(
            "Counters of {who} fell between {:.1} s and {:.1} s: it was restarted, or what it tells is wrong. That time is left out of its \
             figures.",
            *from as f64 / 1e9,
            *to as f64 / 1e9
        );
        out.push(Finding::new("F74", "counters_restarted", Level::Qualified, text));
    }
    out.dedup_by(|a, b| a.text == b.text);
    out
}

/// Of windows in which no server was read twice: which ones, where others tell.
fn too_few(data: &RunData, windows: &[SeenWindow<'_>]) -> Option<Finding> {
    let seconds = |w: &&SeenWindow<'_>| w.to_ns.saturating_sub(w.from_ns) as f64 / 1e9;
    let blind: Vec<&SeenWindow<'_>> =
        windows.iter().filter(|w| w.subjects.iter().all(|s| s.steps.is_empty())).collect();
    let longest_s = blind.iter().map(seconds).reduce(f64::max)?;
    let (n, all) = (blind.len(), windows.len());
    // Where nobody answers more time is no remedy.
    let text = if data.observed.iter().all(is_silent) {
        "No observed source answered, so nothing is said of what the servers did. Check that their addresses and ports are those \
         of exporters, and that they can be reached from here."
            .to_owned()
    } else {
        let which = match (n, all) {
            (1, 1) => {
                format!("within the measured {longest_s:.1} s, so nothing is said of what the servers did")
            }
            (n, all) if n == all => {
                format!("in any of the {all} measured windows, so nothing is said of what the servers did")
            }
            (n, all) => format!(
                "in {n} of {all} measured windows (the longest has {longest_s:.1} s), so of those nothing is said"
            ),
        };
        format!("No server was read twice {which}. Measure for longer, or ask more often (--observe-every).")
    };
    Some(Finding::new("F78", "too_few_readings", Level::Info, text))
}

fn is_silent(s: &ObservedSource) -> bool {
    s.scrapes.iter().all(|x| x.gap.is_some())
}

fn of_source(s: &ObservedSource) -> Vec<Finding> {
    let mut out = Vec::new();
    let gaps: Vec<&str> = s.scrapes.iter().filter_map(|x| x.gap.as_deref()).collect();
    if let Some(last) = gaps.last() {
        let all = s.scrapes.len();
        let text = match gaps.len() {
            n if n == all => format!("{} was observed, and said nothing: {last}.", s.observes),
            n => format!("{} was observed, and {n} of {all} times said nothing: {last}.", s.observes),
        };
        let mut f = Finding::new("F70", "source_gaps", Level::Info, text);
        f.measured = Some(gaps.len() as f64 / all as f64);
        out.push(f);
    }
    if let Some(x) = s.scrapes.iter().find(|x| !x.missing.is_empty()) {
        let text = format!(
            "{} does not have {}: a collector is off, or a newer version renamed it. What else it has is used.",
            s.observes,
            x.missing.join(", ")
        );
        out.push(Finding::new("F75", "metrics_missing", Level::Info, text));
    }
    if let Some(most) = s.scrapes.iter().map(|x| x.left_out).max().filter(|n| *n > 0) {
        let text = format!("{} has more series than are read of one page; {most} were left out.", s.observes);
        out.push(Finding::new("F75", "series_left_out", Level::Info, text));
    }
    // An answer that took three seconds says no better than to half of that what time it was there.
    let surely = |x: &Scrape| {
        let off = x.clock_ahead_ns? as f64 / 1e9;
        Some(off.signum() * (off.abs() - x.took_ns as f64 / 2e9).max(0.0))
    };
    let mut ahead: Vec<f64> = s.scrapes.iter().filter_map(surely).collect();
    ahead.sort_by(f64::total_cmp);
    if let Some(off) = ahead.get(ahead.len() / 2).filter(|o| o.abs() > CLOCK_OFF_S) {
        let way = if *off > 0.0 { "ahead of" } else { "behind" };
        let text = format!(
            "The clock of {} is {:.1} s {way} this machine's. Its readings are put where they were asked for.",
            s.observes,
            off.abs()
        );
        let mut f = Finding::new("F76", "clock_of_source", Level::Info, text);
        (f.measured, f.threshold) = (Some(*off), Some(CLOCK_OFF_S));
        out.push(f);
    }
    out
}

/// Of what was seen in the windows. `is_changed`: the speed of a line of that name changed meanwhile.
pub fn of_windows(servers: &ServersSummary, is_changed: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let mut out = Vec::new();
    for w in &servers.windows {
        out.extend(w.requests.iter().filter_map(count));
        if let Some(drives) = w.drives_read_per_s.filter(|_| w.clients_read_per_s >= LEAST_READ_PER_S)
            && drives < FROM_CACHE * w.clients_read_per_s
        {
            let share = drives / w.clients_read_per_s;
            let text = format!(
                "Clients read {:.1} MB/s and the drives of the observed hosts {:.1} MB/s, {:.0} % of that: the rest came from caches, or \
                 from hosts that were not observed.",
                w.clients_read_per_s / 1e6,
                drives / 1e6,
                100.0 * share
            );
            let mut f = Finding::new("F73", "read_from_caches", Level::Info, text);
            (f.measured, f.threshold) = (Some(share), Some(FROM_CACHE));
            out.push(f);
        }
        out.extend(hot_spots(&w.resources));
        out.extend(slower_parts(&w.resources, is_changed));
        out.extend(more_than_said(&w.resources));
    }
    out
}

/// Name of the finding of what gives less than is said of it.
const SLOWER_PART: &str = "slower_part";

fn is_slower(r: &ResourceUse) -> bool {
    r.peers_request_s.is_some() || r.said.is_some()
}

/// Those that give less than is said of them, or than others with the same work: the slowest of them by name. A line that was changed meanwhile
/// is told as that; what the file has wrong of all lines in one way is told once.
fn slower_parts(all: &[ResourceUse], is_changed: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    const MOST: usize = 4;
    let mut slower: Vec<&ResourceUse> =
        all.iter().filter(|r| is_slower(r) && !is_changed(&r.name())).collect();
    slower.sort_by(|a, b| b.request_s.unwrap_or(0.0).total_cmp(&a.request_s.unwrap_or(0.0)));
    let alike = |a: &ResourceUse, b: &ResourceUse| {
        let of_lines = a.peers_request_s.is_none() && b.peers_request_s.is_none();
        of_lines && (a.ceiling, a.said) == (b.ceiling, b.said)
    };
    let mut told: Vec<(&ResourceUse, Vec<String>)> = Vec::new();
    for r in slower {
        match told.iter_mut().find(|(first, _)| alike(first, r)) {
            Some((first, others)) => {
                let name = r.name();
                if name != first.name() && !others.contains(&name) {
                    others.push(name);
                }
            }
            None => told.push((r, Vec::new())),
        }
    }
    let more = told.len().saturating_sub(MOST);
    let mut out: Vec<Finding> =
        told.into_iter().take(MOST).map(|(r, others)| slower_part(r, &others)).collect();
    if let Some(last) = out.last_mut().filter(|_| more > 0) {
        last.text += &format!(" So are {more} more.");
    }
    out
}

/// A ceiling that more went over by far is none, and nothing is told of it but this.
fn more_than_said(all: &[ResourceUse]) -> Option<Finding> {
    let mut beyond = all.iter().filter(|r| r.verdict == BEYOND);
    let first = beyond.next()?;
    let rate = |v: f64| match first.unit.as_str() {
        "B/s" => ceiling_words(&first.resource, &first.unit, v).unwrap_or_default(),
        unit => format!("{} {unit}", significant(v, 3)),
    };
    let said_by = if first.ceiling_of.is_empty() { "its exporter" } else { first.ceiling_of.as_str() };
    let more = match beyond.count() {
        0 => String::new(),
        n => format!(" So did {n} more."),
    };
    let text = format!(
        "{} ({}) used {}, and {said_by} says that it gives {}: one of both is wrong, and no part of it is told.{more}",
        first.name(),
        first.resource,
        rate(first.reached),
        rate(first.ceiling.unwrap_or(0.0)),
    );
    Some(Finding::new("F77", "more_than_said", Level::Qualified, text))
}

fn slower_part(r: &ResourceUse, alike: &[String]) -> Finding {
    let (name, share) = (r.name(), 100.0 * r.share.unwrap_or(0.0));
    let in_words = |per_s: f64| ceiling_words(&r.resource, "B/s", per_s).unwrap_or_default();
    let text = match r.peers_request_s {
        Some(peers_s) => {
            let ms = |s: f64| format!("{} ms", significant(1e3 * s, 3));
            format!(
                "{name} is slower than its peers: busy {share:.0} % of the time, a request took {}, and at half of the others with the same work {} \
                 or less{}.",
                ms(r.request_s.unwrap_or(0.0)),
                ms(peers_s),
                r.said.map_or(String::new(), |s| format!("; by cluster.toml it would give {}", in_words(s)))
            )
        }
        None if r.ceiling > r.said => format!(
            "{name} gives more than was thought: it tells a speed of {} and was at {share:.0} % of that ({}); by cluster.toml it has {}. Correct the file.",
            in_words(r.ceiling.unwrap_or(0.0)),
            r.resource,
            in_words(r.said.unwrap_or(0.0))
        ),
        None => format!(
            "{name} is slower than was thought: it tells a speed of {} and was at {share:.0} % of that ({}); by cluster.toml it has {}.",
            in_words(r.ceiling.unwrap_or(0.0)),
            r.resource,
            in_words(r.said.unwrap_or(0.0))
        ),
    };
    let alike: Vec<&str> = alike.iter().map(String::as_str).collect();
    let text = if alike.is_empty() { text } else { format!("{text} The same of {}.", super::named(&alike)) };
    let mut f = Finding::new("F77", SLOWER_PART, Level::Info, text);
    f.measured = r.share;
    f
}

/// From this size of objects on, and over such a time, what drives take is judged and not only shown: of smaller ones metadata, and of shorter
/// times what is written later, are a part of it.
const JUDGED_BYTES: u64 = 64 << 20;
const JUDGED_S: f64 = 60.0;
/// How far what drives take may be from the arithmetic.
const AMPLIFIED: f64 = 0.03;
/// Bytes of heads of a request and its answer that a server may count: measured below 1.5 KiB for a signed PUT.
const HEADS_BYTES: f64 = 2048.0;

/// What redundancy does not explain, and what others moved.
pub fn of_traffic(data: &RunData, servers: &ServersSummary) -> Vec<Finding> {
    let mut out = Vec::new();
    for w in &servers.windows {
        let seconds = (w.end_s - w.start_s).max(f64::MIN_POSITIVE);
        let ours = w.clients_read_per_s + w.clients_wrote_per_s;
        let heads = HEADS_BYTES * w.requests.iter().map(|r| r.ours.max(r.servers)).sum::<f64>() / seconds;
        if let Some(others) =
            w.others_per_s.filter(|o| *o > heads + LEAST_READ_PER_S && *o > NEIGHBOURS * ours)
        {
            let text = format!(
                "The servers moved {:.1} MB/s with clients and we {:.1} MB/s of it: {:.1} MB/s are of others.",
                (ours + others) / 1e6,
                ours / 1e6,
                others / 1e6
            );
            let mut f = Finding::new("F97", "bytes_of_others", Level::Qualified, text);
            (f.measured, f.threshold) = (Some(others / ours.max(1.0)), Some(NEIGHBOURS));
            out.push(f);
        }
        let large = data.stages.iter().find(|s| s.index == w.stage).is_some_and(|s| {
            s.spec.workloads.iter().all(|w| matches!(w.size, SizeDist::Fixed(size) if size.0 >= JUDGED_BYTES))
        });
        if !large || seconds < JUDGED_S {
            continue;
        }
        let written = w.traffic.iter().find(|t| t.what == "written to drives");
        if let Some((measured, expected)) = written.and_then(|t| t.per_byte.zip(t.expected))
            && (measured / expected - 1.0).abs() > AMPLIFIED
        {
            let off = 100.0 * (measured / expected - 1.0);
            let text = format!(
                "For each byte that clients wrote {measured:.2} bytes went to the drives, and redundancy makes {expected:.2} of it: {off:+.0} %. \
                 Metadata, work in the background, others, or what is written later may be the rest."
            );
            let mut f = Finding::new("F96", "amplification_off", Level::Info, text);
            (f.measured, f.threshold) = (Some(measured / expected), Some(1.0 + AMPLIFIED));
            out.push(f);
        }
    }
    out
}

/// What was the limit: one finding, or where stages had different ones, one for each that is different.
pub fn of_limits(servers: &ServersSummary) -> Vec<Finding> {
    const MOST: usize = 4;
    let mut seen: Vec<(&ServersLimit, Vec<u32>)> = Vec::new();
    for (limit, stage) in servers.windows.iter().filter_map(|w| Some((w.limit.as_ref()?, w.stage))) {
        let same = |(l, _): &&mut (&ServersLimit, Vec<u32>)| {
            (&l.verdict, &l.resource) == (&limit.verdict, &limit.resource) && l.at_ceiling == limit.at_ceiling
        };
        match seen.iter_mut().find(same) {
            Some((_, stages)) => stages.push(stage),
            None => seen.push((limit, vec![stage])),
        }
    }
    let several = seen.len() > 1;
    let finding = |(limit, stages): (&ServersLimit, Vec<u32>)| {
        let of = match (several, &stages[..]) {
            (false, _) => String::new(),
            (true, [one]) => format!("Stage {}: ", one + 1),
            (true, [first, ..]) => format!("Stage {} and {} more: ", first + 1, stages.len() - 1),
            (true, []) => String::new(),
        };
        let mut f = Finding::new("F95", SERVERS_LIMIT, Level::Info, in_all(&of, limit));
        f.measured = Some(limit.share);
        f
    };
    seen.into_iter().take(MOST).map(finding).collect()
}

fn in_all(of: &str, limit: &ServersLimit) -> String {
    let next = if limit.next.is_empty() { String::new() } else { format!(" {}", limit.next) };
    format!("{of}{}{next}", limit.text)
}

/// Of a rate that was offered and met there is nothing to be looked for.
pub fn drop_the_next_step_of_a_met_rate(s: &mut RunSummary) {
    if !s.offered_was_met() {
        return;
    }
    for limit in s.servers.iter_mut().flat_map(|x| &mut x.windows).filter_map(|w| w.limit.as_mut()) {
        let next = std::mem::take(&mut limit.next);
        let of_limit =
            |f: &&mut Finding| f.name == SERVERS_LIMIT && !next.is_empty() && f.text.ends_with(&next);
        for f in s.findings.iter_mut().filter(of_limit) {
            f.text.truncate(f.text.len() - next.len());
            f.text += "The rate that was offered was met.";
        }
    }
}

/// Where half of the servers and more had one kind of resource at its ceiling in each window, more in flight would find it there: that is no next step.
pub fn drop_what_a_ceiling_explains(s: &mut RunSummary) {
    let is_full =
        |w: &ServersWindow| w.limit.as_ref().is_some_and(|l| l.verdict == "one" && 2 * l.full >= l.of);
    if s.servers.as_ref().is_some_and(|x| !x.windows.is_empty() && x.windows.iter().all(is_full)) {
        s.findings.retain(|f| f.name != CONCURRENCY_BOUND);
    }
    // How many to try is said once.
    if s.findings.iter().any(|f| f.name == CONCURRENCY_BOUND) {
        let limits = s.servers.iter_mut().flat_map(|x| &mut x.windows).filter_map(|w| w.limit.as_mut());
        let texts = limits.map(|l| &mut l.next);
        let found = s.findings.iter_mut().filter(|f| f.name == SERVERS_LIMIT).map(|f| &mut f.text);
        for text in texts.chain(found) {
            *text = text.replace(AND_DOUBLE, "").replace(DOUBLE, "").trim_end().to_owned();
        }
    }
}

/// The server's count against ours.
fn count(r: &RequestCount) -> Option<Finding> {
    let off = r.servers - r.ours;
    let share = off / r.ours.max(1.0);
    let op = r.op.to_uppercase();
    let what = format!(
        "The observed servers counted {:.0} {op} requests and we made {:.0} in the same time",
        r.servers, r.ours
    );
    let (name, text, threshold) = match share {
        s if s > NEIGHBOURS && off > r.uncertain_by => {
            ("load_of_others", format!("{what}: {:.0} % more are of others.", 100.0 * s), NEIGHBOURS)
        }
        s if s < -UNSEEN && -off > r.uncertain_by => (
            "requests_not_counted",
            format!("{what}: not all servers were observed, or something in front of them answered."),
            UNSEEN,
        ),
        _ => return None,
    };
    let mut f = Finding::new("F72", name, Level::Qualified, text);
    (f.measured, f.threshold) = (Some(share), Some(threshold));
    Some(f)
}

/// Of which too little was seen for a word on it.
fn is_scarce(r: &ResourceUse) -> bool {
    r.verdict.starts_with("seen for")
}

/// One of several of a kind that is far fuller than the others.
fn hot_spots(resources: &[ResourceUse]) -> Vec<Finding> {
    let mut out = Vec::new();
    for (kind, words) in super::resources::KINDS {
        let mut of_kind: Vec<&ResourceUse> =
            resources.iter().filter(|r| r.resource == kind && r.share.is_some() && !is_scarce(r)).collect();
        of_kind.sort_by(|a, b| b.share.unwrap_or(0.0).total_cmp(&a.share.unwrap_or(0.0)));
        // What servers count of themselves is no measure for an interface that a host tells of.
        let mixed =
            of_kind.iter().any(|r| r.device.contains('@')) && !of_kind.iter().all(|r| r.device.contains('@'));
        let (Some(first), true) = (of_kind.first(), of_kind.len() >= 3 && !mixed) else { continue };
        let share = |r: &ResourceUse| r.share.unwrap_or(0.0);
        let median = share(of_kind[of_kind.len() / 2]);
        // Why it is fuller than the others is said by its own finding.
        if is_slower(first) || share(first) < HOT_SHARE || share(first) < HOT_SPOT * median {
            continue;
        }
        let text = format!(
            "{} is a hot spot: of {words} it was used to {:.0} %, and half of the {} to {:.0} % or less.",
            first.name(),
            100.0 * share(first),
            of_kind.len(),
            100.0 * median
        );
        let mut f = Finding::new("F77", "hot_spot", Level::Info, text);
        (f.measured, f.threshold) = (Some(share(first)), Some(HOT_SPOT * median));
        out.push(f);
    }
    out
}
