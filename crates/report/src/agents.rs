//! The agents of a run that has several: a table of them, and the line of it that stands in the short form.

use plimsoll_model::RunSummary;
use plimsoll_model::summary::AgentSummary;
use plimsoll_model::units::{format_latency_ns, significant};

use crate::number::{self, MIB};
use crate::table::Table;
use crate::tables;

/// Agents that the short form names; of more it tells who did least and who did most.
const MOST_NAMED: usize = 4;

/// A row an agent, in order of their numbers; without rows: the run has one agent only, and its lines are that one's.
pub(crate) fn table(s: &RunSummary) -> Table {
    let rate = if tables::is_block(s) { ">IOPS" } else { ">op/s" };
    let heads = [
        "agent",
        "host",
        rate,
        ">share",
        ">MiB/s",
        ">busy",
        ">CPU",
        ">NIC",
        ">p50",
        ">p99",
        ">clock",
        ">start",
        ">first op",
        ">last op",
    ];
    let mut t = Table::new("Agents", 1, &heads);
    for a in &s.agents {
        t.push(vec![
            a.agent.clone(),
            a.host.clone(),
            significant(a.ops_per_s, 4),
            number::percent(a.share),
            a.bytes_per_s.map_or(String::new(), |b| significant(b / MIB, 4)),
            number::percent(a.busy_fraction),
            a.cpu_fraction.map_or(String::new(), number::percent),
            a.nic_fraction.map_or(String::new(), number::percent),
            tables::latency(a.p50_ns),
            tables::latency(a.p99_ns),
            clock(a),
            a.start_skew_ns.map_or(String::new(), signed),
            a.first_op_s.map_or(String::new(), seconds),
            a.last_op_s.map_or(String::new(), seconds),
        ]);
    }
    t.without_empty_columns()
}

/// `+0.12 ms ± 40 us`. Between machines the offset is that of their boots, and may be days: only its bound matters then.
fn clock(a: &AgentSummary) -> String {
    let Some(offset) = a.clock_offset_ns else { return String::new() };
    let bound = a.clock_bound_ns.map_or(number::MISSING.into(), |b| format_latency_ns(b as f64));
    format!("{} ± {bound}", signed(offset))
}

/// `-120 us`
fn signed(ns: i64) -> String {
    let sign = if ns < 0 { '-' } else { '+' };
    let far = ns.unsigned_abs() as f64;
    let far = if far < 1e9 { format_latency_ns(far) } else { seconds(far / 1e9) };
    format!("{sign}{far}")
}

/// `40.0 s`, since the first load began.
fn seconds(s: f64) -> String {
    format!("{} s", number::tenth(s))
}

/// `3: lg-1 33 %, lg-2 33 %, lg-3 34 %; clocks within 0.96 ms`. Of what is void no share is told, only who was there.
pub(crate) fn in_a_line(s: &RunSummary) -> Option<String> {
    let all = &s.agents;
    if all.is_empty() {
        return None;
    }
    let named = |a: &AgentSummary| match s.answered {
        true => format!("{} {}", a.agent, number::percent(a.share)),
        false => a.agent.clone(),
    };
    let by_share = |a: &&AgentSummary, b: &&AgentSummary| a.share.total_cmp(&b.share);
    let ends = (all.iter().min_by(by_share), all.iter().max_by(by_share));
    let who = match ends {
        (Some(least), Some(most)) if all.len() > MOST_NAMED && s.answered => {
            format!(": {} at least, {} at most", named(least), named(most))
        }
        _ if all.len() > MOST_NAMED => String::new(),
        _ => format!(": {}", all.iter().map(named).collect::<Vec<_>>().join(", ")),
    };
    let bound = all.iter().filter_map(|a| a.clock_bound_ns).max();
    let clocks = bound.map_or(String::new(), |b| format!("; clocks within {}", format_latency_ns(b as f64)));
    Some(format!("{}{who}{}{clocks}", all.len(), lost(s)))
}

/// `; lg-3 lost`
fn lost(s: &RunSummary) -> String {
    let mut names: Vec<&str> =
        s.findings.iter().filter(|f| f.name == "agent_lost").filter_map(|f| f.agent.as_deref()).collect();
    names.sort_unstable();
    names.dedup();
    match names.len() {
        0 => String::new(),
        n if n > MOST_NAMED => format!("; {n} lost"),
        _ => format!("; {} lost", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::{Finding, Level};

    use super::*;

    fn of(agents: u32, answered: bool) -> RunSummary {
        let agent = |n: u32| AgentSummary {
            agent: format!("lg-{n}"),
            share: f64::from(n) / 15.0,
            clock_bound_ns: (n > 1).then_some(u64::from(n) * 100_000),
            ..AgentSummary::default()
        };
        RunSummary { answered, agents: (1..=agents).map(agent).collect(), ..RunSummary::default() }
    }

    #[test]
    fn few_are_named_and_of_many_the_ends() {
        let line = |agents, answered| in_a_line(&of(agents, answered)).unwrap();
        assert_eq!(in_a_line(&of(0, true)), None);
        assert_eq!(line(2, true), "2: lg-1 6.7 %, lg-2 13 %; clocks within 200 us");
        assert_eq!(line(5, true), "5: lg-1 6.7 % at least, lg-5 33 % at most; clocks within 500 us");
        assert_eq!(line(2, false), "2: lg-1, lg-2; clocks within 200 us");
        assert_eq!(line(5, false), "5; clocks within 500 us");
    }

    #[test]
    fn who_was_lost_is_told_in_the_line() {
        let lost = |names: &[u32]| {
            let one = |n: &u32| {
                let agent = format!("lg-{n}");
                Finding::new("V24", "agent_lost", Level::Qualified, "x").of_agent(Some(&agent))
            };
            let s = RunSummary { findings: names.iter().map(one).collect(), ..of(2, false) };
            in_a_line(&s).unwrap()
        };
        assert_eq!(lost(&[2]), "2: lg-1, lg-2; lg-2 lost; clocks within 200 us");
        assert_eq!(lost(&[2, 1, 2]), "2: lg-1, lg-2; lg-1, lg-2 lost; clocks within 200 us");
        assert_eq!(lost(&[1, 2, 3, 4, 5]), "2: lg-1, lg-2; 5 lost; clocks within 200 us");
    }

    #[test]
    fn an_offset_has_its_sign_and_its_bound() {
        let at = |offset, bound| {
            clock(&AgentSummary { clock_offset_ns: offset, clock_bound_ns: bound, ..AgentSummary::default() })
        };
        assert_eq!(at(None, None), "");
        assert_eq!(at(Some(-120_000), Some(40_000)), "-120 us ± 40.0 us");
        assert_eq!(at(Some(86_400_000_000_000), Some(400_000)), "+86,400.0 s ± 400 us");
    }
}
