//! A network test over time, as charts without a script: they print, are read out by their titles and descriptions, and tell lines apart by
//! colour and by dashes.

use std::fmt::Write as _;

use plimsoll_model::net::{NetLane, NetRecord, NetStage, TcpFacts};

use crate::net_page::text;

/// Points of a line; what is finer is averaged.
const MOST_POINTS: usize = 150;
/// Lanes that have lines of their own; of more there are the middle one, and those that carried least and most.
const MOST_LINES: usize = 6;
/// Stages that are drawn one by one; the first of a test with more, and those with findings of their own.
const MOST_STAGES: usize = 60;
/// Slices of a record, seconds.
const SLICE_S: f64 = 0.1;

/// Of a chart over the whole page, and of one of two beside each other: text has the same size in both.
const WIDE: f64 = 1000.0;
const NARROW: f64 = 480.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 10.0;
/// Below each panel, for the marks of the axis.
const FOOT: f64 = 26.0;

/// What charts need of the page's style. Lines are told apart by dashes, too: who prints in grey, or sees no colours, has those.
pub const STYLE: &str = "\
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(34rem,100%),1fr));gap:1rem}\
figure{margin:0;break-inside:avoid}figcaption{font-weight:600}figcaption p{font-weight:400;margin:0;font-size:.9rem}\
svg{width:100%;height:auto;display:block}svg text{font:12px system-ui,sans-serif;fill:var(--ink)}\
svg .grid{stroke:var(--rule);stroke-width:1}svg .warm{fill:var(--rule);opacity:.35}\
svg .fall{stroke:var(--slow);stroke-width:1.5;stroke-dasharray:2 3}\
svg .line{fill:none;stroke-width:1.6;stroke-linejoin:round}\
.k0{stroke:#0072b2}.k1{stroke:#d55e00;stroke-dasharray:7 3}.k2{stroke:#009e73;stroke-dasharray:2 2}\
.k3{stroke:#b2558a;stroke-dasharray:9 3 2 3}.k4{stroke:#a67c00;stroke-dasharray:4 2}.k5{stroke:#4a8fc4;stroke-dasharray:12 4}\
.key{display:inline-block;white-space:nowrap;margin-right:1rem}.key svg{display:inline;width:2rem;height:.7rem;vertical-align:middle}";

/// A line, or several pieces of one: seconds, and the value in the panel's unit.
struct Line {
    name: String,
    pieces: Vec<Vec<(f64, f64)>>,
}

/// An area with an axis of its own, above the same time as the others.
struct Panel {
    unit: &'static str,
    height: f64,
    lines: Vec<Line>,
}

/// All of a figure.
struct Figure {
    title: String,
    width: f64,
    /// In words, what is to be seen.
    description: String,
    until_s: f64,
    panels: Vec<Panel>,
    /// From, to: before what counts.
    warm: Vec<(f64, f64)>,
    /// Times at which a rate fell and stayed.
    falls: Vec<f64>,
}

/// The charts of a record; nothing where it has no slices.
pub fn charts(record: &NetRecord) -> String {
    let drawn: Vec<&NetStage> =
        record.stages.iter().filter(|s| s.lanes.iter().any(|l| !l.slices.is_empty())).collect();
    if drawn.is_empty() {
        return String::new();
    }
    let whole = over_the_test(record).map_or(String::new(), |f| svg(&f));
    let chosen =
        drawn.iter().enumerate().filter(|(i, s)| *i < MOST_STAGES || !s.falls.is_empty()).map(|(_, s)| *s);
    let each: Vec<String> = chosen.map(|s| svg(&of_stage(record, s))).collect();
    let left_out = match drawn.len() - each.len() {
        0 => String::new(),
        n => format!("<p>{n} more stages are in the record (--json), and not drawn.</p>"),
    };
    let how = "<p>Grey: warm-up, which does not count. Dotted, upright: a rate fell, and stayed there.</p>";
    format!("<h2>Over time</h2>{how}{whole}<div class=\"charts\">{}</div>{left_out}", each.concat())
}

/// Each stage's total at its time of the test; of one stage its own chart says that. Nothing where stages have no times.
fn over_the_test(record: &NetRecord) -> Option<Figure> {
    let timed: Option<Vec<(&NetStage, f64)>> =
        record.stages.iter().map(|s| Some((s, s.started_s?))).collect();
    let timed = timed.filter(|t| t.len() > 1)?;
    let mut lines: Vec<Line> = Vec::new();
    let (mut until_s, mut falls) = (0.0f64, Vec::new());
    for (stage, from_s) in &timed {
        let all: Vec<&NetLane> = stage.lanes.iter().collect();
        let points: Vec<(f64, f64)> =
            rate(&all, MOST_POINTS / 2).into_iter().map(|(t, v)| (from_s + t, v)).collect();
        until_s = points.last().map_or(until_s, |p| until_s.max(p.0));
        falls.extend(stage.falls.iter().map(|f| from_s + f.at_s));
        match lines.iter_mut().find(|l| l.name == stage.pattern) {
            Some(line) => line.pieces.push(points),
            None => lines.push(Line { name: stage.pattern.clone(), pieces: vec![points] }),
        }
    }
    let of = |(stage, from_s): &(&NetStage, f64)| format!("{} from {from_s:.0} s on", stage.title);
    let described: Vec<String> = timed.iter().take(MOST_LINES).map(of).collect();
    let more = if timed.len() > MOST_LINES {
        format!(", and {} more", timed.len() - MOST_LINES)
    } else {
        String::new()
    };
    Some(Figure {
        title: "Rate of each stage, all its lanes together".into(),
        width: WIDE,
        description: format!("Stages: {}{more}.", described.join("; ")),
        until_s,
        panels: vec![Panel { unit: "Gbit/s", height: 150.0, lines }],
        warm: Vec::new(),
        falls,
    })
}

/// The lanes of a stage, and what was sent again.
fn of_stage(record: &NetRecord, stage: &NetStage) -> Figure {
    let lanes = shown(&stage.lanes);
    let name =
        |l: &NetLane, why: &str| format!("{} to {}{why}", record.name_of(l.from), record.name_of(l.to));
    let rates: Vec<Line> = lanes
        .iter()
        .map(|(l, why)| Line { name: name(l, why), pieces: vec![rate(&[l], MOST_POINTS)] })
        .collect();
    let again: Vec<Line> =
        lanes.iter().map(|(l, why)| Line { name: name(l, why), pieces: vec![sent_again(l)] }).collect();
    let until_s = rates.iter().flat_map(|l| &l.pieces).flatten().map(|p| p.0).fold(0.0, f64::max);
    let mut panels = vec![Panel { unit: "Gbit/s", height: 130.0, lines: rates }];
    if again.iter().any(|l| l.pieces.iter().any(|p| !p.is_empty())) {
        panels.push(Panel { unit: "% sent again", height: 46.0, lines: again });
    }
    Figure {
        title: stage.title.clone(),
        width: NARROW,
        description: describe(stage),
        until_s,
        panels,
        warm: vec![(0.0, record.asked.warmup_s)],
        falls: stage.falls.iter().map(|f| f.at_s).collect(),
    }
}

/// Lanes that have lines, and why where it is not all of them.
fn shown(lanes: &[NetLane]) -> Vec<(&NetLane, &'static str)> {
    if lanes.len() <= MOST_LINES {
        return lanes.iter().map(|l| (l, "")).collect();
    }
    let mut sorted: Vec<&NetLane> = lanes.iter().collect();
    let rate = |l: &NetLane| l.bytes_per_s.map_or(0.0, |e| e.value);
    sorted.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
    let last = sorted.len() - 1;
    vec![(sorted[last], " (most)"), (sorted[last / 2], " (median)"), (sorted[0], " (least)")]
}

fn describe(stage: &NetStage) -> String {
    let Some(e) = &stage.bytes_per_s else {
        return format!("No rate: {}.", stage.why.as_deref().unwrap_or("not known"));
    };
    let halves = stage.halves.map_or(String::new(), |[a, b]| {
        format!(
            "; first half of the window {:.3}, second half {:.3} ({:+.1} %)",
            a.value * 8e-9,
            b.value * 8e-9,
            100.0 * (b.value / a.value - 1.0)
        )
    });
    let fell = |f: &plimsoll_model::net::NetFall| {
        format!(
            "; fell at {:.1} s from {:.3} to {:.3}",
            f.at_s,
            f.before_bytes_per_s * 8e-9,
            f.after_bytes_per_s * 8e-9
        )
    };
    let falls: String = stage.falls.iter().map(fell).collect();
    let lanes = match stage.lanes.len() {
        1 => "1 lane".to_owned(),
        n => format!("{n} lanes"),
    };
    format!("{lanes}, {:.3} Gbit/s in all{halves}{falls}.", e.value * 8e-9)
}

/// Gbit/s of payload that arrived on lanes, over the stage's time: in the middle of each step.
fn rate(lanes: &[&NetLane], most: usize) -> Vec<(f64, f64)> {
    let streams = || lanes.iter().flat_map(|l| &l.slices);
    let n = streams().map(Vec::len).max().unwrap_or(0);
    let step = n.div_ceil(most.max(1)).max(1);
    let sum = |from: usize, to: usize| -> f64 {
        streams().flat_map(|s| s.iter().take(to).skip(from)).map(|b| *b as f64).sum()
    };
    // The last step is drawn where it is whole: part of one has part of the bytes.
    (0..n / step)
        .map(|i| {
            let (from, to) = (i * step, (i + 1) * step);
            ((from + to) as f64 / 2.0 * SLICE_S, sum(from, to) * 8e-9 / (step as f64 * SLICE_S))
        })
        .collect()
}

/// Part of the bytes sent that were sent again, percent, second by second. Empty: the sender's kernel does not tell.
fn sent_again(lane: &NetLane) -> Vec<(f64, f64)> {
    let looks = lane.tcp.iter().map(Vec::len).min().unwrap_or(0);
    let grown = |i: usize, of: fn(&TcpFacts) -> Option<u64>| -> Option<u64> {
        lane.tcp.iter().map(|t| Some(of(&t[i].1)?.saturating_sub(of(&t[i - 1].1)?))).sum()
    };
    let point = |i: usize| {
        let (again, all) = (grown(i, |f| f.retransmitted_bytes)?, grown(i, |f| f.sent_bytes)?);
        let (from, to) = (lane.tcp[0][i - 1].0, lane.tcp[0][i].0);
        (all > 0).then(|| ((from + to) / 2.0, 100.0 * again as f64 / all as f64))
    };
    let points: Vec<(f64, f64)> = (1..looks).filter_map(point).collect();
    let step = points.len().div_ceil(MOST_POINTS).max(1);
    let mean = |c: &[(f64, f64)]| {
        let n = c.len() as f64;
        (c.iter().map(|p| p.0).sum::<f64>() / n, c.iter().map(|p| p.1).sum::<f64>() / n)
    };
    points.chunks(step).map(mean).collect()
}

/// A round number at or above, of 1, 2 or 5 times a power of ten; and how many steps an axis to there has.
fn round_up(most: f64) -> (f64, u32) {
    if !(most.is_finite() && most > 0.0) {
        return (1.0, 2);
    }
    let power = 10f64.powf(most.log10().floor());
    let (times, steps) = [(1.0, 2), (2.0, 2), (4.0, 4), (5.0, 5), (8.0, 4), (10.0, 5)]
        .into_iter()
        .find(|(times, _)| times * power >= most * 0.999_999)
        .unwrap_or((10.0, 5));
    (times * power, steps)
}

fn number(x: f64) -> String {
    let text = format!("{x:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn svg(f: &Figure) -> String {
    let height: f64 = f.panels.iter().map(|p| TOP + p.height + FOOT).sum();
    let across = |s: f64| LEFT + (f.width - LEFT - RIGHT) * s / f.until_s.max(f64::MIN_POSITIVE);
    let mut body = String::new();
    let mut top = TOP;
    for panel in &f.panels {
        draw(&mut body, panel, f, top, &across);
        top += panel.height + FOOT + TOP;
    }
    let (title, description) = (text(&f.title), text(&f.description));
    format!(
        "<figure><figcaption>{title}<p>{description}</p></figcaption><svg viewBox=\"0 0 {} {height}\" role=\"img\" \
         aria-label=\"{title}: {description}\"><title>{title}</title>{body}</svg><p>{}</p></figure>",
        f.width,
        keys(f)
    )
}

/// What the lines are, below the chart; one needs none.
fn keys(f: &Figure) -> String {
    let lines = &f.panels[0].lines;
    if lines.len() < 2 {
        return String::new();
    }
    let key = |(i, l): (usize, &Line)| {
        format!(
            "<span class=\"key\"><svg viewBox=\"0 0 32 10\" aria-hidden=\"true\"><path class=\"line k{}\" d=\"M0 5H32\"/></svg> {}</span> ",
            i % MOST_LINES,
            text(&l.name)
        )
    };
    lines.iter().enumerate().map(key).collect()
}

fn draw(out: &mut String, panel: &Panel, f: &Figure, top: f64, across: &dyn Fn(f64) -> f64) {
    let values = panel.lines.iter().flat_map(|l| &l.pieces).flatten().map(|p| p.1);
    let (most, steps) = round_up(values.fold(0.0, f64::max));
    let bottom = top + panel.height;
    let down = |v: f64| bottom - panel.height * v / most;
    let mut put =
        |text: std::fmt::Arguments<'_>| out.write_fmt(text).expect("writing to a string does not fail");
    for (from, to) in f.warm.iter().filter(|w| w.1 > w.0) {
        let (from, to) = (across(*from), across(to.min(f.until_s)));
        put(format_args!(
            "<rect class=\"warm\" x=\"{from:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>warm-up</title></rect>",
            to - from,
            panel.height
        ));
    }
    // A low panel has room for the ends only.
    let steps = if panel.height < 60.0 { 1 } else { steps };
    for i in 0..=steps {
        let value = most * f64::from(i) / f64::from(steps);
        let y = down(value);
        put(format_args!(
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            f.width - RIGHT,
            LEFT - 6.0,
            y + 4.0,
            number(value)
        ));
    }
    // Six marks at most, at round times.
    let every = round_up(f.until_s / 6.0).0;
    for at in (0..7).map(|i| every * f64::from(i)).filter(|at| *at <= f.until_s * 1.001) {
        put(format_args!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{} s</text>",
            across(at),
            bottom + 15.0,
            number(at)
        ));
    }
    put(format_args!(
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
        f.width - RIGHT,
        top + 11.0,
        panel.unit
    ));
    for (i, line) in panel.lines.iter().enumerate() {
        let piece = |points: &Vec<(f64, f64)>| {
            let at: Vec<String> =
                points.iter().map(|(t, v)| format!("{:.1} {:.1}", across(*t), down(*v))).collect();
            if at.is_empty() { String::new() } else { format!("M{}", at.join("L")) }
        };
        let path: String = line.pieces.iter().map(piece).collect();
        put(format_args!(
            "<path class=\"line k{}\" d=\"{path}\"><title>{}</title></path>",
            i % MOST_LINES,
            text(&line.name)
        ));
    }
    for at in &f.falls {
        put(format_args!(
            "<path class=\"fall\" d=\"M{:.1} {top:.1}V{bottom:.1}\"><title>fell, and stayed there, at {at:.1} s</title></path>",
            across(*at)
        ));
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::net::{NetAsked, NetFall, NetHost};
    use plimsoll_model::{Estimate, net::NET_FORMAT};

    use super::*;

    fn facts(sent: u64, again: u64) -> TcpFacts {
        TcpFacts { sent_bytes: Some(sent), retransmitted_bytes: Some(again), ..TcpFacts::default() }
    }

    fn lane(from: usize, to: usize, n: usize) -> NetLane {
        NetLane {
            from,
            to,
            bytes_per_s: Some(Estimate::symmetric(12.5e6 * (1 + from) as f64, 1e5, 9.0)),
            // 100 Mbit/s in two streams, half of that in the second half.
            slices: vec![(0..n).map(|i| if i < n / 2 { 625_000 } else { 312_500 }).collect(); 2],
            tcp: vec![(0..=n / 10).map(|s| (s as f64, facts(s as u64 * 1000, s as u64 * 20))).collect()],
            ..NetLane::default()
        }
    }

    fn record(lanes: Vec<NetLane>, stages: usize) -> NetRecord {
        let host = |name: &str| NetHost { name: name.into(), ..NetHost::default() };
        let stage = |i: usize| NetStage {
            pattern: if i == 0 { "pairs".into() } else { "in".into() },
            title: format!("<stage> {i}"),
            bytes_per_s: Some(Estimate::symmetric(12.5e6, 1e5, 9.0)),
            lanes: lanes.clone(),
            started_s: Some(20.0 * i as f64),
            falls: vec![NetFall {
                host: None,
                sends: false,
                at_s: 5.0,
                before_bytes_per_s: 12.5e6,
                after_bytes_per_s: 6.25e6,
                lasts_s: 5.0,
            }],
            ..NetStage::default()
        };
        NetRecord {
            format: NET_FORMAT.into(),
            id: "net-1".into(),
            plimsoll_version: "1".into(),
            commit: String::new(),
            made_at: "2026-11-23T00:00:00Z".into(),
            asked: NetAsked { warmup_s: 1.0, measured_s: 9.0, ..NetAsked::default() },
            hosts: vec![host("a"), host("<b>"), host("c")],
            streams_tried: Vec::new(),
            stages: (0..stages).map(stage).collect(),
            findings: Vec::new(),
            sentences: Vec::new(),
            valid: true,
            interrupted: false,
        }
    }

    #[test]
    fn a_rate_is_of_whole_steps_in_gbits() {
        let l = lane(0, 1, 100);
        let points = rate(&[&l], 10);
        assert_eq!(points.len(), 10);
        assert!((points[0].0 - 0.5).abs() < 1e-9 && (points[0].1 - 0.1).abs() < 1e-9, "{points:?}");
        assert!((points[9].1 - 0.05).abs() < 1e-9);
        assert_eq!(rate(&[&lane(0, 1, 95)], 10).len(), 9, "of ten slices a step, the last one is not whole");
        assert_eq!(rate(&[&l, &l], 10)[0].1, 2.0 * points[0].1);
        assert!(rate(&[], 10).is_empty());
    }

    #[test]
    fn what_was_sent_again_is_of_each_second() {
        let points = sent_again(&lane(0, 1, 100));
        assert_eq!(points.len(), 10);
        assert!(points.iter().all(|p| (p.1 - 2.0).abs() < 1e-9), "{points:?}");
        let mut silent = lane(0, 1, 100);
        silent.tcp[0][3].1.sent_bytes = None;
        assert_eq!(sent_again(&silent).len(), 8, "what is not told is left out");
        assert!(sent_again(&NetLane::default()).is_empty());
    }

    #[test]
    fn stages_lie_at_their_time_of_the_test() {
        let page = charts(&record(vec![lane(0, 1, 100)], 3));
        assert_eq!(page.matches("<figure>").count(), 4);
        assert!(page.contains("&lt;stage&gt; 2 from 40 s on") && !page.contains("<stage>"), "{page}");
        assert_eq!(
            page.matches("class=\"fall\"").count(),
            3 + 3 * 2,
            "in the whole, and in both panels of each"
        );
        assert!(page.contains("fell at 5.0 s from 0.100 to 0.050"));
        // Two patterns are two lines; one stage alone needs no chart of the whole, and one lane no key.
        assert_eq!(page.matches("class=\"key\"").count(), 2);
        let one = charts(&record(vec![lane(0, 1, 100)], 1));
        assert_eq!((one.matches("<figure>").count(), one.matches("class=\"key\"").count()), (1, 0));
        assert_eq!(charts(&record(Vec::new(), 2)), "");
    }

    #[test]
    fn of_many_lanes_the_least_the_median_and_the_most_are_drawn() {
        let lanes = (0..9).map(|i| lane(i, (i + 1) % 9, 300)).collect();
        let page = charts(&record(lanes, 1));
        assert_eq!(page.matches("class=\"key\"").count(), 3);
        assert!(
            page.contains("a to &lt;b&gt; (least)") && page.contains("(median)") && page.contains("(most)"),
            "{page}"
        );
        // All points are inside of the picture.
        let numbers = page.split(" d=\"M").skip(1).filter_map(|p| p.split('"').next());
        for pair in numbers.flat_map(|p| p.split('L')).filter(|p| p.contains(' ')) {
            let (x, y) = pair.split_once(' ').unwrap();
            let y: f64 = y.split(['H', 'V']).next().unwrap().parse().unwrap();
            assert!(
                (0.0..=NARROW).contains(&x.parse::<f64>().unwrap()) && (0.0..=260.0).contains(&y),
                "{pair}"
            );
        }
    }

    #[test]
    fn an_axis_ends_at_a_round_number() {
        let end = |x: f64| round_up(x).0;
        assert_eq!([end(0.383), end(9.41), end(1.0), end(1.0001), end(0.0)], [0.4, 10.0, 1.0, 2.0, 1.0]);
        assert_eq!((number(0.25), number(10.0), number(0.0)), ("0.25".into(), "10".into(), "0".into()));
    }
}
