//! The active probe on limiters of real products (`plimsoll_stats::products`), which no estimator was written for: what it says of each
//! beside what is true.

use plimsoll_model::Estimate;
use plimsoll_stats::math;
use plimsoll_stats::probe::{ProbeOptions, ProbeOutcome, Resource};
use plimsoll_stats::products::draw::{PRODUCTS, product};
use plimsoll_stats::products::{LawFamily, ProductTruth};
use plimsoll_stats::simulate::{Load, System, drive};

use super::Settings;
use super::score::{Goal, ScoreRow, percent};

/// A quoted rate further from the one that holds is wrong.
const NEAR: f64 = 0.03;
/// Counted for so long, seconds.
const COUNTED_S: f64 = 300.0;
/// A number in flight is looked for until it is known within an eighth.
const NEAR_IN_FLIGHT: f64 = 0.125;

/// What a statement is worth to whoever has to configure a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProductScore {
    /// The rate to quote, or the number in flight; of no limiter: that there is none, or that it can't be told.
    Right,
    /// Nothing is claimed that could be wrong, and that it is not known is said.
    Open,
    /// A rate that does not hold, or that is too low, or a law that it is not.
    Wrong,
}

#[derive(Clone)]
struct ProductCase {
    seed: u64,
    truth: ProductTruth,
    seen: ProbeOutcome,
    score: ProductScore,
    /// Phases, in order, with their seconds.
    phases: Vec<(String, f64)>,
    /// From when on the verdict did not change any more, seconds: what came after it was for what else was open.
    told_s: f64,
}

/// What somebody acts upon: what limits, and the rates or the number in flight.
type Verdict = (&'static str, Option<f64>, Option<f64>, Option<u32>);

fn verdict(o: &ProbeOutcome) -> Verdict {
    let rate = |e: Option<Estimate>| e.map(|e| e.value);
    (o.binding(), rate(o.ops.known()), rate(o.bytes.known()), o.answers.at_once.map(|a| a.passes))
}

/// When the last verdict came that it stayed with, within [`NEAR`].
fn stands_from(seen: &[(f64, Verdict)], last: Verdict, end_s: f64) -> f64 {
    let near = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) => (a / b - 1.0).abs() <= NEAR,
        (a, b) => a.is_none() && b.is_none(),
    };
    let same = |v: &Verdict| v.0 == last.0 && near(v.1, last.1) && near(v.2, last.2) && v.3 == last.3;
    seen.iter().rev().take_while(|(_, v)| same(v)).last().map_or(end_s, |(s, _)| *s)
}

/// Less than the default of `limits`, and that, seconds.
const BUDGET_S: f64 = 240.0;
const DEFAULT_BUDGET_S: f64 = 600.0;

/// As `limits object` probes.
fn options(budget_s: f64) -> ProbeOptions {
    ProbeOptions {
        small_bytes: 4096,
        concurrency: 16,
        most: [256, 64],
        overhead_bytes: 2048,
        questions: true,
        dt_s: 0.2,
        budget_s,
        horizon_s: 120.0,
        ..ProbeOptions::default()
    }
}

/// The rate that it would have somebody configure: of the small ops, where bytes are limited.
fn quoted(o: &ProbeOutcome) -> Option<f64> {
    let small = || o.limit_of_bytes().filter(|_| o.seen_twice() == Some(Resource::Bytes));
    o.limit_of_ops().or_else(|| small().map(|b| b / o.small_bytes as f64))
}

/// That rate with its interval.
fn known(o: &ProbeOutcome) -> Option<Estimate> {
    match o.limit_of_ops() {
        Some(_) => o.ops.known(),
        None => o.bytes.known().map(|e| e.scaled(1.0 / o.small_bytes as f64)),
    }
}

fn denied(o: &ProbeOutcome) -> bool {
    let refused = o.ops.refused().max(o.bytes.refused()) >= 0.01;
    refused && o.answers.at_once.is_none() && !o.is_limited(Resource::Ops) && !o.is_limited(Resource::Bytes)
}

/// Whether a fresh system passes a little less of it for minutes, and refuses a little more.
fn holds(index: usize, seed: u64, per_s: f64) -> bool {
    let refused = |per_s: f64| {
        let load = Load {
            size_bytes: 4096.0,
            concurrency: 256,
            duration_s: COUNTED_S,
            dt_s: 1.0,
            offered_per_s: Some(per_s),
        };
        let seen = product(index, seed).0.run(&load);
        let (ok, refused) = (math::mean(&seen.ops_per_s), math::mean(&seen.rejected_per_s));
        refused / (ok + refused)
    };
    refused((1.0 - NEAR) * per_s) < 0.01 && refused((1.0 + 2.0 * NEAR) * per_s) > 0.01
}

fn score((index, seed): (usize, u64), truth: &ProductTruth, o: &ProbeOutcome) -> ProductScore {
    use ProductScore::{Open, Right, Wrong};
    if denied(o) {
        return Wrong;
    }
    let in_flight = o.answers.at_once.filter(|a| a.sure).map(|a| a.passes);
    match (truth.family, truth.holds_per_s, truth.in_service) {
        (LawFamily::Free, ..) if o.is_limited(Resource::Ops) || o.is_limited(Resource::Bytes) => Wrong,
        (LawFamily::Free, ..) if o.per_connection().is_some() => Wrong,
        // A rate that is there, and that is told to grow.
        (_, Some(_), _) | (_, _, Some(_)) if o.grows.is_some() => Wrong,
        (LawFamily::Free, ..) => Right,
        (_, Some(holds), _) => match quoted(o) {
            Some(rate) if (rate / holds - 1.0).abs() <= NEAR => Right,
            // Less exact than it should be, and that is said.
            Some(_) if known(o).is_some_and(|e| e.contains(holds)) => Open,
            Some(_) => Wrong,
            None if in_flight.is_some() => Wrong,
            None => Open,
        },
        (_, None, Some(most)) => match in_flight {
            _ if quoted(o).is_some() => Wrong,
            Some(n) if (f64::from(n) / most - 1.0).abs() <= NEAR_IN_FLIGHT + 1.0 / most => Right,
            Some(_) => Wrong,
            None => Open,
        },
        // It grows while it is asked, and no rate of it is quoted.
        (LawFamily::Grows, None, None) if quoted(o).is_none() && o.grows.is_some() => Right,
        (LawFamily::PerConnection, None, None) if quoted(o).is_none() => {
            match o.per_connection().zip(truth.connection_bytes_per_s) {
                Some((e, rate)) if (e.value / rate - 1.0).abs() <= NEAR => Right,
                Some(_) => Wrong,
                None => Open,
            }
        }
        // No rate is declared to hold: what is quoted is held against what is counted.
        (_, None, None) => match quoted(o) {
            Some(rate) if holds(index, seed, rate) => Right,
            Some(_) => Wrong,
            None => Open,
        },
    }
}

pub fn rows(s: &Settings) -> Vec<ScoreRow> {
    let mut out = Vec::new();
    let mut all = Vec::new();
    for (i, (name, _)) in PRODUCTS.iter().enumerate().filter(|(_, (name, _))| is_asked(name)) {
        let cases = probed(s, i, s.systems(40), BUDGET_S);
        explain(&cases);
        out.push(row(name, &cases));
        all.extend(cases);
    }
    let limited = || all.iter().filter(|c| c.truth.family != LawFamily::Free);
    let [wrong, right, passing, covers] = shares(limited(), "");
    out.push(wrong);
    out.push(ScoreRow::share(
        "– \"no limiter\" where one refused",
        limited().filter(|c| denied(&c.seen)).count(),
        limited().count(),
        Goal::AtMost(0.0),
    ));
    out.extend([right, passing, covers]);
    out.push(in_service(limited()));
    let free: Vec<&ProductCase> = all.iter().filter(|c| c.truth.family == LawFamily::Free).collect();
    let wrong = free.iter().filter(|c| c.score == ProductScore::Wrong).count();
    out.push(ScoreRow::share("products, none: called a limiter", wrong, free.len(), Goal::AtMost(0.02)));
    for (what, of) in
        [("– time to a verdict that stays", told as fn(&ProductCase) -> f64), ("– time to the end", ended)]
    {
        let times: Vec<f64> = all.iter().map(of).collect();
        out.push(ScoreRow::shown(
            what,
            format!(
                "median {:.0} s, p90 {:.0} s, max {:.0} s",
                math::median(&times),
                math::quantile(&times, 0.9),
                math::quantile(&times, 1.0)
            ),
        ));
    }
    out.extend(with_default_budget(s));
    out
}

/// For whoever improves the method: parts of the names of the products that are looked at, with commas between them.
const ONLY_PRODUCTS: &str = "VALIDATE_PRODUCTS";

fn is_asked(name: &str) -> bool {
    std::env::var(ONLY_PRODUCTS).map_or(true, |only| only.split(',').any(|part| name.contains(part)))
}

fn told(c: &ProductCase) -> f64 {
    c.told_s
}

fn ended(c: &ProductCase) -> f64 {
    c.seen.elapsed_s
}

fn probed(s: &Settings, product_index: usize, each: u64, budget_s: f64) -> Vec<ProductCase> {
    s.each(60 + product_index as u64, each, |seed| {
        let (mut system, truth) = product(product_index, seed);
        let mut phases: Vec<(String, f64)> = Vec::new();
        let mut verdicts: Vec<(f64, Verdict)> = Vec::new();
        let seen = drive::probe_watched(&mut system, options(budget_s), &mut |phase, s, probe| {
            match phases.last_mut() {
                Some(last) if last.0 == phase => last.1 += s,
                _ => phases.push((phase.to_owned(), s)),
            }
            verdicts.push((probe.elapsed_s(), verdict(&probe.outcome())));
        });
        let score = score((product_index, seed), &truth, &seen);
        // Whoever is told nothing waits to the end.
        let told_s = match score {
            ProductScore::Open => seen.elapsed_s,
            ProductScore::Right | ProductScore::Wrong => {
                stands_from(&verdicts, verdict(&seen), seen.elapsed_s)
            }
        };
        ProductCase { seed, truth, score, seen, phases, told_s }
    })
}

/// The same with the time that a user who says nothing about it gives, a quarter of the systems.
fn with_default_budget(s: &Settings) -> Vec<ScoreRow> {
    let each = s.systems(40).div_ceil(4);
    let all: Vec<(&str, Vec<ProductCase>)> = PRODUCTS
        .iter()
        .enumerate()
        .filter(|(_, (name, _))| is_asked(name))
        .map(|(i, (name, _))| (*name, probed(s, i, each, DEFAULT_BUDGET_S)))
        .collect();
    let mut out = Vec::new();
    for (name, cases) in &all {
        if cases.iter().any(|c| c.score != ProductScore::Right) {
            explain(cases);
            out.push(row(&format!("{name}, 10 min"), cases));
        }
    }
    let limited = || all.iter().flat_map(|p| &p.1).filter(|c| c.truth.family != LawFamily::Free);
    out.extend(shares(limited(), ", 10 min"));
    out
}

/// Of limiters: how many statements are wrong, rates are near, and intervals have the truth in them.
fn shares<'c>(limited: impl Iterator<Item = &'c ProductCase> + Clone, with: &str) -> [ScoreRow; 4] {
    let wrong = limited.clone().filter(|c| c.score == ProductScore::Wrong).count();
    let rated: Vec<&ProductCase> = limited.clone().filter(|c| c.truth.holds_per_s.is_some()).collect();
    let right = rated.iter().filter(|c| c.score == ProductScore::Right).count();
    // What a limiter that delays comes to is its rate, whether or not it is known to be a limiter's.
    let passes = |c: &ProductCase| c.seen.ops.known().filter(|_| c.truth.family == LawFamily::KeepsRate);
    let near = |c: &ProductCase| {
        let off = passes(c).zip(c.truth.holds_per_s).map(|(e, holds)| (e.value / holds - 1.0).abs());
        c.score == ProductScore::Right || c.score == ProductScore::Open && off.is_some_and(|off| off <= NEAR)
    };
    let passing = rated.iter().filter(|c| near(c)).count();
    let told: Vec<&&ProductCase> = rated.iter().filter(|c| quoted(&c.seen).is_some()).collect();
    let covers =
        told.iter().filter(|c| known(&c.seen).zip(c.truth.holds_per_s).is_some_and(|(e, h)| e.contains(h)));
    [
        ScoreRow::share(
            format!("products, all with a limiter{with}: wrong"),
            wrong,
            limited.count(),
            Goal::AtMost(0.02),
        ),
        ScoreRow::share(format!("– rate to quote within 3 %{with}"), right, rated.len(), Goal::AtLeast(0.95)),
        ScoreRow::shown(
            format!("– – with what is told of whoever delays, be it a limiter or the storage{with}"),
            format!("{} ({passing} of {})", percent(passing as f64 / rated.len() as f64), rated.len()),
        ),
        ScoreRow::share(
            format!("– interval of the rate covers{with}"),
            covers.count(),
            told.len(),
            Goal::AtLeast(0.93),
        ),
    ]
}

/// Of limits on requests in service: the number in flight, be it told as the limit's or as what is enough.
fn in_service<'c>(limited: impl Iterator<Item = &'c ProductCase>) -> ScoreRow {
    let of: Vec<&ProductCase> = limited.filter(|c| c.truth.in_service.is_some()).collect();
    let near = |c: &ProductCase| {
        let served = c.seen.answers.served.map(|s| s.ops.value);
        let off = served.zip(c.truth.in_service).map(|(n, most)| (n / most - 1.0).abs());
        c.score == ProductScore::Right
            || c.score == ProductScore::Open && off.is_some_and(|off| off <= NEAR_IN_FLIGHT)
    };
    let told = of.iter().filter(|c| near(c)).count();
    let share = percent(told as f64 / of.len() as f64);
    ScoreRow::shown(
        "– requests in service: the number, be it a limit or what is enough",
        format!("{share} ({told} of {})", of.len()),
    )
}

fn row(name: &str, cases: &[ProductCase]) -> ScoreRow {
    let n = |s: ProductScore| cases.iter().filter(|c| c.score == s).count();
    let off: Vec<f64> =
        cases.iter().filter_map(|c| Some((quoted(&c.seen)? / c.truth.holds_per_s? - 1.0).abs())).collect();
    let off = match off.is_empty() {
        true => String::new(),
        false => format!(
            "; rate off by {} (median), {} (most)",
            percent(math::median(&off)),
            percent(math::quantile(&off, 1.0))
        ),
    };
    let median = |of: fn(&ProductCase) -> f64| math::median(&cases.iter().map(of).collect::<Vec<f64>>());
    ScoreRow::shown(
        format!("product, {name}"),
        format!(
            "right {}, open {}, wrong {}{off}; told at {:.0} s of {:.0} s",
            n(ProductScore::Right),
            n(ProductScore::Open),
            n(ProductScore::Wrong),
            median(told),
            median(ended)
        ),
    )
}

/// Each case that is not right, for whoever improves the method: `VALIDATE_EXPLAIN=1`, with tuning seeds only.
fn explain(cases: &[ProductCase]) {
    if std::env::var_os("VALIDATE_EXPLAIN").is_none() {
        return;
    }
    for (phase, s) in mean_phases(cases) {
        eprintln!("{:>6.1} s {phase} ({})", s, cases[0].truth.name);
    }
    for c in cases.iter().filter(|c| c.score != ProductScore::Right) {
        eprintln!(
            "{} {} {:?}: holds {:?}, in service {:?}; known {:?}, cause {:?}, refused {:.3}, at once {:?}, held back {:?}, {:.0} s",
            c.seed,
            c.truth.name,
            c.score,
            c.truth.holds_per_s,
            c.truth.in_service,
            c.seen.ops.known().map(|e| (e.low, e.value, e.high)),
            c.seen.cause_of(Resource::Ops),
            c.seen.ops.refused(),
            c.seen.answers.at_once,
            c.seen.answers.held_back,
            c.seen.elapsed_s
        );
        let phases: Vec<String> = c.phases.iter().map(|(p, s)| format!("{s:.0} s {p}")).collect();
        eprintln!("    {}", phases.join("; "));
        for (what, text) in c.seen.evidence() {
            eprintln!("    {what}: {text}");
        }
        for f in c.seen.findings() {
            eprintln!("    {} {}", f.code, f.text);
        }
    }
}

/// Where the time of a case goes, on average: phases without their figures, the longest first.
fn mean_phases(cases: &[ProductCase]) -> Vec<(String, f64)> {
    let mut sums: Vec<(String, f64)> = Vec::new();
    for (phase, s) in cases.iter().flat_map(|c| &c.phases) {
        let name = phase.replace(|c: char| c.is_ascii_digit() || c == '.', "");
        match sums.iter_mut().find(|p| p.0 == name) {
            Some(p) => p.1 += s,
            None => sums.push((name, *s)),
        }
    }
    sums.iter_mut().for_each(|p| p.1 /= cases.len() as f64);
    sums.sort_by(|a, b| b.1.total_cmp(&a.1));
    sums
}
