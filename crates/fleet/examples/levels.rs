//! What agents send, and what a level of aggregators between them and their conductor would cost: measured on the own records of real
//! agents, then with as many as are asked for, in sites, merged by sites and at once.
//!
//!     cargo run --release -p plimsoll-fleet --example levels -- 10000 100 20 null=RUNS/agents/RUN/frames,... object=...
//!
//! Agents, sites, slices of 100 ms that each agent has, and for each workload the own records of its agents (`bench/fleet.py --parts levels` makes them).

use std::path::Path;
use std::time::Duration;

use plimsoll_fleet::FromAgent;
use plimsoll_fleet::levels::{SiteSum, add, framed, unframed};
use plimsoll_fleet::read_own_record;
use plimsoll_store::SparseInterval as Slice;

type Failed = Box<dyn std::error::Error>;

/// Slices of a frame, about: of 100 ms, every quarter of a second.
const PER_FRAME: f64 = 2.5;
/// What one agent measured: by worker, its slices in order.
type AgentRecord = Vec<(u16, Vec<Slice>)>;

fn main() -> Result<(), Failed> {
    let mut args = std::env::args().skip(1);
    let mut number = |what: &str| -> Result<usize, Failed> {
        Ok(args.next().ok_or_else(|| format!("how many {what}?"))?.parse()?)
    };
    let (agents, sites, length) = (number("agents")?, number("sites")?, number("slices")?);
    for arg in args {
        let (name, files) = arg.split_once('=').ok_or("NAME=FILE,... is wanted")?;
        let records = files.split(',').map(|f| record(Path::new(f))).collect::<Result<Vec<_>, _>>()?;
        workload(name, &records, agents, sites, length)?;
    }
    Ok(())
}

fn record(file: &Path) -> Result<AgentRecord, Failed> {
    let mut workers: std::collections::BTreeMap<u16, Vec<Slice>> = std::collections::BTreeMap::new();
    for output in read_own_record(file, 0)?.into_values().next().ok_or("an empty record")? {
        if let FromAgent::Interval { worker, interval } = output {
            workers.entry(worker.worker).or_default().push(*interval);
        }
    }
    // The ends of a stage are shorter.
    let whole = |(worker, all): (u16, Vec<Slice>)| {
        (worker, all[2.min(all.len())..all.len().saturating_sub(2)].to_vec())
    };
    Ok(workers.into_iter().map(whole).collect())
}

/// CPU time of this thread.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0))
}

/// Of all agents and sites.
#[derive(Default)]
struct Cost {
    frames: u64,
    bytes: u64,
    encode: Duration,
    decode: Duration,
    merge: Duration,
}

impl Cost {
    fn tell(&self, who: &str, count: usize, seconds: f64) {
        let us = |d: Duration| d.as_secs_f64() * 1e6 / self.frames as f64;
        let per_s = |x: f64| x / seconds / count as f64;
        println!(
            "  {who}: {:.2} frames and {:.1} KB a second each, {:.0} bytes a frame; CPU a frame: {:.0} us to make, {:.0} us to read, \
             {:.0} us to merge",
            per_s(self.frames as f64),
            per_s(self.bytes as f64) / 1e3,
            self.bytes as f64 / self.frames as f64,
            us(self.encode),
            us(self.decode),
            us(self.merge)
        );
    }

    /// Through the wire, and into a sum.
    fn pass(&mut self, worker: u16, slices: &[&Slice], sum: &mut SiteSum) -> Result<(), Failed> {
        let at = cpu();
        let frames = framed(worker, slices);
        let made = cpu();
        let back = unframed(&frames)?;
        let read = cpu();
        back.iter().for_each(|s| add(sum, s));
        self.encode += made - at;
        self.decode += read - made;
        self.merge += cpu() - read;
        self.frames += frames.len() as u64;
        self.bytes += frames.iter().map(|f| f.len() as u64).sum::<u64>();
        Ok(())
    }
}

/// The slices of agent `n`: those of a real one, from another place of its record on, so that no two agents of a site did the same.
fn of_agent(records: &[AgentRecord], n: usize, length: usize) -> Vec<Slice> {
    let record = &records[n % records.len()];
    let mut out = Vec::new();
    for (_, slices) in record {
        let from = (n / records.len()) * 7;
        out.extend((0..length).filter_map(|i| {
            let mut slice = slices.get((from + i) % slices.len().max(1))?.clone();
            slice.index = i as u64;
            Some(slice)
        }));
    }
    out.sort_by_key(|s| s.index);
    out
}

fn workload(
    name: &str,
    records: &[AgentRecord],
    agents: usize,
    sites: usize,
    length: usize,
) -> Result<(), Failed> {
    let seconds = length as f64 / 10.0;
    let first = records.first().ok_or("no record")?;
    let all: Vec<&Slice> = first.iter().flat_map(|(_, s)| s).collect();
    let series = all.iter().map(|s| s.series.len()).max().unwrap_or(0);
    let buckets = |s: &&&Slice| s.series.iter().map(|s| s.response.buckets().len()).sum::<usize>();
    println!(
        "{name}: {} worker(s) an agent, {series} series a slice, {:.0} buckets a slice of response times",
        first.len(),
        all.iter().map(|s| buckets(&s)).sum::<usize>() as f64 / all.len().max(1) as f64
    );
    let (mut flat, mut top) = (SiteSum::new(), SiteSum::new());
    let (mut low, mut high) = (Cost::default(), Cost::default());
    let cut = |slices: &[Slice]| -> Vec<std::ops::Range<usize>> {
        let frame = |s: &Slice| (s.index as f64 / PER_FRAME) as u64;
        let mut at: Vec<usize> =
            (1..slices.len()).filter(|i| frame(&slices[*i]) != frame(&slices[i - 1])).collect();
        at.insert(0, 0);
        at.push(slices.len());
        at.windows(2).map(|w| w[0]..w[1]).collect()
    };
    for site in 0..sites {
        let mut sum = SiteSum::new();
        for n in (site..agents).step_by(sites) {
            let slices = of_agent(records, n, length);
            slices.iter().for_each(|s| add(&mut flat, s));
            for range in cut(&slices) {
                low.pass(0, &slices[range].iter().collect::<Vec<_>>(), &mut sum)?;
            }
        }
        let merged: Vec<Slice> = sum.into_values().collect();
        for range in cut(&merged) {
            high.pass(site as u16, &merged[range].iter().collect::<Vec<_>>(), &mut top)?;
        }
    }
    low.tell("an agent, to its aggregator", agents, seconds);
    high.tell("an aggregator, to the conductor", sites, seconds);
    let cores = |c: &Cost, count: f64| (c.decode + c.merge).as_secs_f64() / seconds / count;
    let up = high.encode.as_secs_f64() / seconds / sites as f64;
    println!(
        "  {agents} agents in {sites} sites: an aggregator takes {:.1} MB/s and {:.2} of a core; the conductor {:.1} MB/s and {:.2} of a \
         core, of {:.1} MB/s and {:.2} cores without them",
        low.bytes as f64 / seconds / sites as f64 / 1e6,
        cores(&low, sites as f64) + up,
        high.bytes as f64 / seconds / 1e6,
        cores(&high, 1.0),
        low.bytes as f64 / seconds / 1e6,
        cores(&low, 1.0)
    );
    let ops: u64 = flat.values().flat_map(|s| &s.series).map(|s| s.counts.ok()).sum();
    if top != flat {
        return Err(format!("{name}: merged by sites is not what is merged at once").into());
    }
    println!(
        "  {ops} ops in {} slices: merged by sites and merged at once are the same, bit for bit",
        flat.len()
    );
    Ok(())
}
