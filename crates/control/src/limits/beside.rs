//! What is measured after the probe: whether the kinds of a mix have limits of their own, which ops share the limit, and whose
//! limit it is. A list of stages that follows from the outcome, each a few seconds on the plateau; the judgement is in stats.

use plimsoll_model::plan::{MachinesPart, Stage, Stop, Workload};
use plimsoll_model::summary::LimitSummary;
use plimsoll_model::units::significant;
use plimsoll_model::{Finding, Level, OpKind};
use plimsoll_stats::probe::scope::{self, Dimension, Doubled, Doubling};
use plimsoll_stats::probe::shared::{Pair, Sharing};
use plimsoll_stats::probe::{ProbeOutcome, Resource};

use super::asked::{Asked, PROBES_SHARE};
use super::kinds::{self, Plateau};
use super::shape::{Shape, seconds};
use crate::controller::Observation;
use crate::error::ControlError;

/// Kinds that are tried beside the one that was probed. Copies and uploads in parts leave things behind.
const KINDS: [OpKind; 5] = [OpKind::Put, OpKind::Get, OpKind::Stat, OpKind::List, OpKind::Delete];
/// Seconds on the plateau, and before it at the least.
const MEASURE_S: f64 = 4.0;
const SETTLE_S: f64 = 1.5;
const LONGEST_SETTLE_S: f64 = 60.0;
/// Seconds for one kind of a mix: so long a rate can be seen to be held.
const KIND_S: f64 = 12.0;
/// From the end of one stage to the start of the next: connections, and objects that have to be prepared through the limit itself. What
/// the stages so far took counts where it is more (guess: 40 objects at 40/s).
const BETWEEN_S: f64 = 1.0;
/// And so much more than that is kept free of the probe: a machine that is busy takes longer for all of it (guess).
const MARGIN: f64 = 1.15;
/// Looks at the kinds of a mix, each by itself and side by side, until it is clear whether they share (guess; each takes most of a
/// minute).
const ROUNDS: usize = 3;
/// A budget is kept within 5 %.
const MORE: f64 = 1.03;
/// The first measurement, again at the end: further away, the limiter's state has changed.
const SAME: f64 = 0.07;

/// One measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    /// The op that was probed, by itself: first, and again last.
    Alone,
    Other(OpKind),
    Both(OpKind),
    Doubled(Dimension),
    /// The op that was probed, with as many in flight, from half of the machines: what twice as many clients are held against.
    HalfOfClients,
    /// One kind of the mix that was probed, by itself.
    Kind(OpKind),
    /// All kinds of the mix side by side, each with ops in flight of its own: none waits for another.
    Kinds,
}

#[derive(Debug, Clone)]
pub struct Beside {
    asked: Asked,
    kinds: Vec<OpKind>,
    /// Kinds of the mix that is probed, where there are several.
    mixed: Vec<OpKind>,
    /// End of the budget, seconds since the run's start.
    end_s: f64,
    /// What was left out for want of time, and the budget that it takes, seconds.
    left_out: (Vec<What>, f64),
    list: Option<Vec<What>>,
    size_bytes: u64,
    concurrency: u32,
    settle_s: f64,
    of: Resource,
    /// Rates of the workloads of each stage that has run, and how they went over time.
    rates: Vec<Vec<f64>>,
    alone: Vec<Plateau>,
    none_found: bool,
    /// What is refused is how many there are at once.
    at_once: bool,
}

impl Beside {
    /// `budget_s`: of the probe and of this together.
    pub fn new(shape: &Shape, asked: Asked, budget_s: f64) -> Result<Self, ControlError> {
        if shape.is_block && (asked.shared || !asked.scope.is_empty()) {
            return Err(ControlError::input(
                "--probe-shared and --probe-scope apply to objects only",
                "Leave them out. To find whether reads and writes of a device share its limit, use --pattern randrw \
                 or rw",
            ));
        }
        let first = shape.workload().mix.keys().next().copied();
        let mut mixed: Vec<OpKind> =
            shape.workload().mix.iter().filter(|(_, n)| **n > 0).map(|(k, _)| *k).collect();
        if mixed.len() < 2 {
            mixed.clear();
        }
        let kinds = KINDS.into_iter().filter(|k| asked.shared && Some(*k) != first).collect();
        Ok(Self {
            asked,
            kinds,
            mixed,
            end_s: budget_s,
            left_out: (Vec::new(), 0.0),
            list: None,
            size_bytes: shape.small_bytes,
            concurrency: shape.concurrency,
            settle_s: SETTLE_S,
            of: Resource::Ops,
            rates: Vec::new(),
            alone: Vec::new(),
            none_found: false,
            at_once: false,
        })
    }

    /// Seconds that it will take, as far as that is known before the probe.
    pub fn expected_s(&self) -> f64 {
        MARGIN * self.wanted(Resource::Ops).iter().map(|w| w.seconds(SETTLE_S, BETWEEN_S)).sum::<f64>()
    }

    /// Whether anything was asked that the budget has to hold beside the probe.
    pub fn is_asked(&self) -> bool {
        self.asks() || !self.mixed.is_empty()
    }

    /// Whether the user asked for more than the limits.
    fn asks(&self) -> bool {
        self.asked.shared || !self.asked.scope.is_empty()
    }

    pub fn has_begun(&self) -> bool {
        self.list.is_some()
    }

    fn wanted(&self, of: Resource) -> Vec<What> {
        let mut list = self.round();
        if !self.asks() {
            return list;
        }
        list.push(What::Alone);
        // Ops without bytes draw on no bytes bucket.
        for kind in self.kinds.iter().filter(|k| of == Resource::Ops || k.moves_bytes()) {
            list.extend([What::Other(*kind), What::Both(*kind)]);
        }
        for d in &self.asked.scope {
            match d {
                Dimension::Client => list.extend([What::HalfOfClients, What::Doubled(*d)]),
                _ => list.push(What::Doubled(*d)),
            }
        }
        list.push(What::Alone);
        list
    }

    /// The probe has ended: what its outcome allows to ask, of agents on so many machines.
    pub fn begin(&mut self, shape: &Shape, outcome: &ProbeOutcome, machines: u32) {
        // To a server, agents on one machine may be one client.
        if machines < 2 {
            self.asked.scope.retain(|d| *d != Dimension::Client);
        }
        // What a refusing limiter lets through of a load that does not hold back is no plateau.
        let found = match (outcome.is_held(Resource::Ops), outcome.is_held(Resource::Bytes)) {
            (true, _) => Some((&outcome.ops, shape.small_bytes)),
            (false, true) => Some((&outcome.bytes, outcome.large_bytes)),
            (false, false) => None,
        };
        self.at_once = outcome.answers.at_once.is_some();
        self.none_found = found.is_none() && self.asks();
        let none = found.is_none();
        // A mix whose kinds wait for each other holds no rate, whatever limits they have: these are looked for all the same.
        let Some((found, size_bytes)) =
            found.or_else(|| (!self.mixed.is_empty()).then_some((&outcome.ops, shape.small_bytes)))
        else {
            self.list = Some(Vec::new());
            return;
        };
        (self.of, self.size_bytes, self.concurrency) = (found.resource, size_bytes, found.concurrency);
        let cliff = found.drains.iter().filter_map(|d| d.cliff_s).fold(0.0, f64::max);
        self.settle_s = (1.3 * cliff + SETTLE_S).min(LONGEST_SETTLE_S);
        let mut list = self.wanted(self.of);
        if none {
            list.retain(What::is_of_kinds);
        }
        self.list = Some(list);
    }

    /// The next stage; `seen` are the observations since the probe's end, and it is `now_s` since the run's start.
    pub fn next(&mut self, shape: &Shape, seen: &[Observation], now_s: f64) -> Option<Stage> {
        self.rates = seen.iter().map(|o| rates(o, self.of)).collect();
        self.alone = seen.iter().map(|o| Plateau::of(o, self.of)).collect();
        let between_s = seen.windows(2).map(|w| w[1].start_s - w[0].end_s).fold(BETWEEN_S, f64::max);
        let settle_s = self.settle_s;
        let time = |w: &What| w.seconds(settle_s, between_s);
        let left_s = self.end_s * MORE - now_s;
        self.look_again(seen.len(), left_s, &time);
        let list = self.list.as_mut()?;
        let what = list.get(seen.len())?.clone();
        // The last look, which the first is held against, has its time kept for it.
        let last = list.last() == Some(&What::Alone) && seen.len() + 1 < list.len() && !seen.is_empty();
        let kept_s = if last { time(&What::Alone) } else { 0.0 };
        if time(&what) + kept_s > left_s {
            let begun = list[..seen.len()].contains(&What::Alone);
            let all_s = MARGIN * list.iter().map(&time).sum::<f64>();
            let out = list.split_off(seen.len());
            let more_s = MARGIN * out.iter().map(&time).sum::<f64>() - left_s.max(0.0);
            self.left_out.1 = (self.end_s + more_s).max(all_s / (1.0 - PROBES_SHARE));
            self.left_out.0.extend(out.into_iter().filter(|w| *w != What::Alone));
            if !(begun && last) {
                return None;
            }
            list.push(What::Alone);
            return Some(self.stage(shape, &What::Alone));
        }
        Some(self.stage(shape, &what))
    }

    /// Whether the kinds of a mix share is not clear after a round of looks at them, and there is time: they are looked at once more.
    /// Other load on the machine keeps a limited rate low now and then, and never high.
    fn look_again(&mut self, seen: usize, left_s: f64, time: &dyn Fn(&What) -> f64) {
        let round = self.mixed.len() + 1;
        let rounds = seen / round.max(1);
        let whole = !self.mixed.is_empty() && seen > 0 && seen.is_multiple_of(round);
        let open = || self.sharing_of_kinds() == Some(Sharing::Undetermined);
        let Some(list) = self.list.as_ref().filter(|_| whole && rounds < ROUNDS && open()) else { return };
        // None of what else is asked for is given up for it.
        if list[..seen].iter().any(|w| !w.is_of_kinds()) {
            return;
        }
        let again = self.round();
        let rest_s: f64 = again.iter().chain(&list[seen..]).map(time).sum();
        if rest_s <= left_s
            && let Some(list) = &mut self.list
        {
            list.splice(seen..seen, again);
        }
    }

    /// Each kind of the mix by itself, and all side by side.
    fn round(&self) -> Vec<What> {
        let kinds = self.mixed.iter().map(|k| What::Kind(*k));
        kinds.chain((!self.mixed.is_empty()).then_some(What::Kinds)).collect()
    }

    fn stage(&self, shape: &Shape, what: &What) -> Stage {
        let mut stage = shape.stage(self.size_bytes, self.concurrency);
        stage.warmup = seconds(self.settle_s);
        let first = stage.workloads[0].clone();
        let other =
            |kind: OpKind| Workload { name: kind.name().into(), mix: [(kind, 1)].into(), ..first.clone() };
        let (name, workloads) = match what {
            What::Alone => (format!("{} alone", first.name), vec![first]),
            What::Other(k) => (format!("{k} alone"), vec![other(*k)]),
            What::Both(k) => (format!("{} and {k} together", first.name), vec![first.clone(), other(*k)]),
            What::HalfOfClients => {
                let half = Workload { machines: Some(MachinesPart::Half), ..first };
                ("from half of the machines".into(), vec![half])
            }
            What::Doubled(d) => {
                let name = match d {
                    Dimension::Client => "from twice as many machines".into(),
                    _ => format!("doubled: {}", d.name()),
                };
                (name, self.doubled(&first, *d))
            }
            What::Kind(k) => (format!("{k} alone"), vec![other(*k)]),
            What::Kinds => (
                "all kinds of the mix at the same time".into(),
                self.mixed.iter().map(|k| other(*k)).collect(),
            ),
        };
        stage.name = Some(name);
        stage.workloads = workloads;
        for w in &mut stage.workloads {
            w.stop = Stop { duration: Some(seconds(what.measure_s())), ..Stop::default() };
        }
        stage
    }

    /// The load with one thing twice: ops in flight, prefixes, or targets that differ in that thing.
    fn doubled(&self, first: &Workload, d: Dimension) -> Vec<Workload> {
        let mut w = first.clone();
        match d {
            Dimension::Connection => w.concurrency *= 2,
            Dimension::Prefix => {
                let o = w.object.get_or_insert_default();
                o.prefixes = o.prefixes.max(1) * 2;
            }
            Dimension::Client => w.machines = Some(MachinesPart::BothHalves),
            Dimension::Bucket | Dimension::Key => {
                let twin = Workload {
                    name: format!("{} with a second {}", first.name, d.name()),
                    target: self.asked.scope_targets.get(d.name()).cloned(),
                    ..first.clone()
                };
                return vec![w, twin];
            }
        }
        vec![w]
    }

    /// Limits of the kinds of the mix, where they have limits of their own; and what was found out about them.
    pub fn by_kind(&self, total: &mut LimitSummary, findings: &mut Vec<Finding>) -> Vec<LimitSummary> {
        // Where one of its kinds has a limiter, there is one: which one binds the mix is another question.
        let kinds = |w: &What| matches!(w, What::Kind(_));
        if total.binding == "none" && self.plateaus(&kinds).any(|p| p.is_limited(self.of)) {
            total.binding = "undetermined".into();
        }
        let Some((alone, together)) = self.of_kinds() else { return Vec::new() };
        let (finding, limits) = kinds::judge(&self.mixed, &alone, &together, self.of, total);
        findings.push(finding);
        limits
    }

    fn plateaus(&self, which: &dyn Fn(&What) -> bool) -> impl Iterator<Item = &Plateau> {
        let list = self.list.as_deref().unwrap_or_default();
        let seen: Vec<&Plateau> =
            list.iter().zip(&self.alone).filter(|(w, _)| which(w)).map(|(_, p)| p).collect();
        seen.into_iter()
    }

    /// The best look at each kind by itself, and all looks at them side by side; `None` before there is one of each.
    fn of_kinds(&self) -> Option<(Vec<&Plateau>, Vec<&[f64]>)> {
        let list = self.list.as_ref().filter(|_| !self.mixed.is_empty())?;
        let best = |k: &OpKind| {
            self.plateaus(&|w| *w == What::Kind(*k)).max_by(|a, b| a.mean().total_cmp(&b.mean()))
        };
        let alone: Vec<&Plateau> = self.mixed.iter().map(best).collect::<Option<_>>()?;
        let together: Vec<&[f64]> = list
            .iter()
            .zip(&self.rates)
            .filter(|(w, _)| **w == What::Kinds)
            .map(|(_, r)| r.as_slice())
            .collect();
        (!together.is_empty()).then_some((alone, together))
    }

    fn sharing_of_kinds(&self) -> Option<Sharing> {
        let (alone, together) = self.of_kinds()?;
        let means: Vec<f64> = alone.iter().map(|p| p.mean()).collect();
        Some(kinds::share(&means, &together).0)
    }

    /// Ops that use up unlike amounts of one limit, with what each comes to alone, per second; empty where none were seen to. `op`: what
    /// was probed.
    pub fn costs<'a>(&self, op: &'a str) -> Vec<(&'a str, f64)> {
        if self.of != Resource::Ops || self.none_found {
            return Vec::new();
        }
        if let Some((alone, _)) = self.of_kinds().filter(|_| self.sharing_of_kinds() == Some(Sharing::Shared))
        {
            return self.mixed.iter().zip(alone).map(|(k, p)| (k.name(), p.mean())).collect();
        }
        let Some((alone, true)) = self.alone().filter(|_| self.asked.shared) else { return Vec::new() };
        let cost =
            |k: &OpKind| self.pair(*k, alone).filter(Pair::have_own_costs).map(|p| (k.name(), p.other_alone));
        let others: Vec<(&str, f64)> = self.kinds.iter().filter_map(cost).collect();
        if others.is_empty() { others } else { [vec![(op, alone)], others].concat() }
    }

    /// What was seen of the op that was probed and another one.
    fn pair(&self, kind: OpKind, first_alone: f64) -> Option<Pair> {
        let &[other_alone] = self.of(&What::Other(kind))? else { return None };
        let &[first, other] = self.of(&What::Both(kind))? else { return None };
        Some(Pair { first_alone, other_alone, first, other })
    }

    /// What was measured, by what it was.
    fn of(&self, what: &What) -> Option<&[f64]> {
        let at = self.list.as_ref()?.iter().position(|w| w == what)?;
        self.rates.get(at).map(Vec::as_slice)
    }

    /// The plateau by itself: the higher of both looks, since a stall takes from a limit's rate and nothing adds to it.
    /// And whether both agree.
    fn alone(&self) -> Option<(f64, bool)> {
        let list = self.list.as_ref()?;
        let looks: Vec<f64> = list
            .iter()
            .zip(&self.rates)
            .filter(|(w, _)| **w == What::Alone)
            .filter_map(|(_, r)| r.first().copied())
            .collect();
        let (first, last) = (*looks.first()?, *looks.last()?);
        let most = first.max(last);
        (most > 0.0).then(|| (most, first.min(last) >= (1.0 - SAME) * most))
    }

    /// Writes what was found into the limit's summary.
    pub fn conclude(&self, limit: &mut LimitSummary, findings: &mut Vec<Finding>) {
        findings.extend(self.cut());
        if self.none_found {
            let text = if self.at_once {
                "No limit on a rate was found, so there is nothing to share and no scope to look for."
            } else {
                "No limit was proved, so there is nothing to share and no scope to look for."
            };
            findings.push(Finding::new("F46", "limit_shared", Level::Info, text));
        }
        if self.rates.is_empty() || self.none_found {
            return;
        }
        let Some((alone, same)) = self.alone() else { return };
        if !same {
            let text = "The plateau differed between the start and the end of these measurements, which may be why \
                        some answers are undetermined. Probe again when the storage is quiet.";
            findings.push(Finding::new("F49", "limit_unquiet", Level::Info, text));
        }
        if self.asked.shared {
            self.conclude_shared(alone, limit, findings);
        }
        if !self.asked.scope.is_empty() {
            self.conclude_scope(alone, limit, findings);
        }
    }

    /// What was asked for and not measured, and what it takes.
    fn cut(&self) -> Option<Finding> {
        let (left_out, budget_s) = &self.left_out;
        let mut names: Vec<String> = left_out.iter().map(What::question).collect();
        names.dedup();
        if names.is_empty() {
            return None;
        }
        let text = format!(
            "The budget ran out before all additional questions were measured. Not measured: {}. A --budget of \
             {:.0}s would be enough.",
            names.join("; "),
            10.0 * (budget_s / 10.0).ceil()
        );
        Some(Finding::new("F58", "limit_not_asked", Level::Qualified, text).measured(self.end_s, *budget_s))
    }

    fn conclude_shared(&self, alone: f64, limit: &mut LimitSummary, findings: &mut Vec<Finding>) {
        let mut by: [(Sharing, Vec<&str>); 3] =
            [Sharing::Shared, Sharing::Separate, Sharing::Undetermined].map(|s| (s, Vec::new()));
        for kind in &self.kinds {
            let Some(pair) = self.pair(*kind, alone) else { continue };
            let sharing = pair.judge();
            limit.evidence.push((
                format!("shared with {kind}"),
                format!(
                    "{}: {} alone {}, {kind} alone {}, together {} and {}",
                    sharing.words(),
                    limit.op_class,
                    significant(alone, 4),
                    significant(pair.other_alone, 4),
                    significant(pair.first, 4),
                    significant(pair.other, 4)
                ),
            ));
            if let Some((_, names)) = by.iter_mut().find(|(s, _)| *s == sharing) {
                names.push(kind.name());
            }
        }
        let op = limit.op_class.clone();
        let say = |names: &[&str], text: &str| match names {
            [] => String::new(),
            names => format!(" {}: {text}.", names.join(", ")),
        };
        let text = format!(
            "Beside {op}:{}{}{}",
            say(&by[0].1, "on the same bucket"),
            say(&by[1].1, "not on it"),
            say(&by[2].1, "undetermined (it slows the other op, but not as a shared bucket would)")
        );
        findings.push(Finding::new("F46", "limit_shared", Level::Info, text));
    }

    /// The plateau with two of a thing over that with one. `alone`: that of all machines, with one of anything else.
    fn ratio(&self, d: Dimension, alone: f64) -> Option<f64> {
        let sum = |what: &What| self.of(what).map(|r| r.iter().sum::<f64>());
        // As many ops in flight from half of the machines: what is doubled is the clients, and nothing with them.
        let one = if d == Dimension::Client { sum(&What::HalfOfClients)? } else { alone };
        Some(sum(&What::Doubled(d))? / one)
    }

    fn conclude_scope(&self, alone: f64, limit: &mut LimitSummary, findings: &mut Vec<Finding>) {
        let mut seen: Vec<Doubled> = Vec::new();
        for d in Dimension::ALL {
            let Some(ratio) = self.ratio(d, alone) else { continue };
            limit.evidence.push((
                format!("scope: {}", d.name()),
                format!(
                    "{} times the rate when doubled: {}",
                    significant(ratio, 3),
                    Doubling::of(ratio).words()
                ),
            ));
            seen.push((d, ratio));
        }
        limit.scope = scope::scope(&seen).into();
        let cut: Vec<Dimension> = self
            .left_out
            .0
            .iter()
            .filter_map(|w| if let What::Doubled(d) = w { Some(*d) } else { None })
            .collect();
        let text = match scope::open(&seen, &cut) {
            Some(text) => text,
            None if limit.scope == "server" => "Everything that was doubled shares the limit.".into(),
            None => {
                let key = Dimension::Client.name() == limit.scope
                    && !seen.iter().any(|(d, _)| *d == Dimension::Key);
                let keys = " Where agents use access keys of their own, it may be per key.";
                format!(
                    "The limit is per {}: with two of them, the rate doubles.{}",
                    limit.scope,
                    if key { keys } else { "" }
                )
            }
        };
        findings.push(Finding::new("F48", "limit_scope", Level::Info, text));
    }
}

impl What {
    fn measure_s(&self) -> f64 {
        match self {
            Self::Kind(_) | Self::Kinds => KIND_S,
            _ => MEASURE_S,
        }
    }

    /// Time of its stage, with what lies between two.
    fn seconds(&self, settle_s: f64, between_s: f64) -> f64 {
        settle_s + self.measure_s() + between_s
    }

    fn is_of_kinds(&self) -> bool {
        matches!(self, Self::Kind(_) | Self::Kinds)
    }

    /// What it is to answer.
    fn question(&self) -> String {
        match self {
            Self::Alone => "the plateau again".into(),
            Self::Other(k) | Self::Both(k) => format!("whether {k} shares the limit"),
            Self::Doubled(d) => format!("whether the limit is per {}", d.name()),
            Self::HalfOfClients => "whether the limit is per client".into(),
            Self::Kind(_) | Self::Kinds => "whether the kinds of the mix share the limit".into(),
        }
    }
}

/// Ok ops (or their bytes) per second of each workload of a stage.
fn rates(o: &Observation, of: Resource) -> Vec<f64> {
    let sum = |i: usize| -> f64 {
        let mine = o.series.iter().filter(|s| usize::from(s.id.workload) == i);
        mine.map(|s| if of == Resource::Ops { s.ok() } else { s.counts.bytes_ok }).sum::<u64>() as f64
    };
    let per_s = |n: f64| if o.window_s > 0.0 { n / o.window_s } else { 0.0 };
    (0..o.stage.workloads.len()).map(|i| per_s(sum(i))).collect()
}

#[cfg(test)]
mod tests;
