//! A carrier of tests: what outlives a kill, and sessions over it on a clock of its own.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use jiff::Timestamp;
use plimsoll_model::Estimate;
use plimsoll_model::cost::Money;
use rust_decimal::Decimal;

use crate::cells::{CampaignCell, expand};
use crate::drive::{CampaignCarrier, CampaignEnd, CampaignSession, CampaignTold, CellEnd, LeftRun, RunTerms};
use crate::figures::{CellFigure, CellRun};
use crate::file::{CampaignFile, Subject};
use crate::ledger::{
    HookTime, LEDGER_FORMAT, LedgerEntry, LedgerError, LedgerSink, RunSpent, UnderWay, entries, stamp,
};
use crate::money::CampaignPrices;
use crate::rest::Rested;
use crate::state::CampaignState;

pub(crate) fn text(order: &str, repeat: &str, more: &str) -> String {
    format!(
        r#"
version = 1
name = "t"
order = "{order}"
repeat = {repeat}
{more}
[[subject]]
name = "a"
before = ["on a"]
after = ["off a"]
target = {{ kind = "null" }}
[[subject]]
name = "b"
promised = {{ ops_per_s = "100/s" }}
target = {{ kind = "null" }}
[[workload]]
name = "put"
mix = {{ put = 1 }}
sizes = ["4KiB", "1MiB"]
duration = "10s"
[[workload]]
name = "get"
mix = {{ get = 1 }}
duration = "10s"
"#
    )
}

pub(crate) fn file(order: &str, repeat: &str) -> CampaignFile {
    CampaignFile::from_toml(&text(order, repeat, "")).unwrap()
}

/// What outlives a kill.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    pub ledger: Vec<u8>,
    /// Runs that ended, by name: their directories.
    pub ended: BTreeMap<String, CellRun>,
    pub begun: BTreeMap<String, u32>,
    pub log: Vec<String>,
    pub names: u32,
    /// Steps until the process is killed; in the middle of the step.
    pub kill_in: Option<u32>,
    pub is_dead: bool,
    pub failing: Vec<String>,
    pub spread: f64,
    pub unrest: Vec<String>,
    /// The wall clock, seconds since 1970: runs take their time by it.
    pub clock_s: i64,
    pub interrupt_waits: bool,
    pub is_interrupted: bool,
    pub is_waiting_over: bool,
    /// Seconds of a pause between runs, of a command, and of a wait for rest.
    pub pause_s: i64,
    pub hook_s: i64,
    pub unrest_s: i64,
    pub prices: Option<CampaignPrices>,
    /// Of each run that has prices.
    pub run_costs: Decimal,
    /// What of the budget each run was told to be left.
    pub told_left: Vec<String>,
    /// What the record has of each run that does not count.
    pub cut: RunSpent,
    /// What a run that cannot be measured takes, seconds.
    pub failing_s: i64,
    /// A run that is begun with less than this left is ended by its budget.
    pub ended_below: Decimal,
}

impl Outside {
    fn step_kills(&mut self) -> bool {
        match &mut self.kill_in {
            Some(0) => self.is_dead = true,
            Some(n) => *n -= 1,
            None => {}
        }
        self.is_dead
    }
}

#[derive(Debug, Clone)]
struct Sim(Rc<RefCell<Outside>>);

impl LedgerSink for Sim {
    fn append(&mut self, entry: &LedgerEntry) -> Result<(), LedgerError> {
        let mut o = self.0.borrow_mut();
        let killed = || Err(LedgerError::Io { path: "ledger".into(), problem: io::Error::other("killed") });
        if o.is_dead {
            return killed();
        }
        let line = serde_json::to_string(entry).unwrap();
        if o.step_kills() {
            // Torn at a place that the number of its bytes decides.
            let cut = line.len() * (o.ledger.len() % 3) / 2;
            o.ledger.extend_from_slice(&line.as_bytes()[..cut]);
            return killed();
        }
        o.ledger.extend_from_slice(line.as_bytes());
        o.ledger.push(b'\n');
        Ok(())
    }
}

impl CampaignCarrier for Sim {
    fn new_run(&mut self) -> String {
        self.0.borrow_mut().names += 1;
        format!("run-{}", self.0.borrow().names)
    }

    fn measure(&mut self, cell: &CampaignCell, under: &UnderWay, terms: &RunTerms) -> CellEnd {
        let mut o = self.0.borrow_mut();
        *o.begun.entry(cell.key.clone()).or_default() += 1;
        o.log.push(format!("{} {}", cell.key, under.repeat));
        if o.step_kills() {
            return CellEnd::Interrupted;
        }
        if o.failing.iter().any(|f| cell.key.starts_with(f)) {
            o.clock_s += o.failing_s;
            return CellEnd::Failed("no such storage".into());
        }
        let cost = terms.cost.as_ref().map(|c| Money::of(o.run_costs, &c.currency));
        if let Some(left) = terms.cost.as_ref().and_then(|c| c.budget.as_ref()) {
            o.told_left.push(left.to_string());
            if left.amount.0 < o.ended_below {
                return CellEnd::OverBudget;
            }
        }
        o.clock_s += 12;
        let value = 100.0 + o.spread * (f64::from(under.repeat % 3) - 1.0);
        let run = CellRun {
            run: under.run.clone(),
            repeat: under.repeat,
            answered: true,
            took_s: 12.0,
            requests: 1000,
            cost,
            figures: vec![CellFigure {
                line: "x/x".into(),
                op: "x".into(),
                valid: true,
                ops_per_s: Some(Estimate::symmetric(value, 1.0, 10.0)),
                ..CellFigure::default()
            }],
            ..CellRun::default()
        };
        o.ended.insert(under.run.clone(), run.clone());
        // Killed after its end, before its line.
        o.step_kills();
        CellEnd::Measured(Box::new(run))
    }

    fn spent(&mut self, _: &UnderWay) -> RunSpent {
        let o = self.0.borrow();
        let cost = o.prices.as_ref().map(|p| Money::of(o.run_costs, p.currency()));
        RunSpent { cost, ..o.cut.clone() }
    }

    fn look_at(&mut self, _: Option<&CampaignCell>, under: &UnderWay) -> LeftRun {
        match self.0.borrow().ended.get(&under.run) {
            Some(run) => LeftRun::Whole(Box::new(run.clone())),
            None => LeftRun::Cut("cut".into()),
        }
    }

    fn hook(&mut self, subject: &Subject, when: HookTime, command: &str) -> (f64, Option<String>) {
        let mut o = self.0.borrow_mut();
        o.log.push(format!("{} {}", subject.name, when.name()));
        if o.step_kills() {
            return (0.0, Some("killed".into()));
        }
        o.clock_s += o.hook_s;
        let is_failing = o.failing.iter().any(|f| f == command);
        (o.hook_s.max(1) as f64, is_failing.then(|| "failed".to_owned()))
    }

    fn rest(&mut self, _: Duration) {
        let mut o = self.0.borrow_mut();
        o.clock_s += o.pause_s;
    }

    fn await_rest(&mut self, _: &CampaignCell, limit: Duration) -> Rested {
        self.0.borrow_mut().log.push(format!("waits {} s at most", limit.as_secs()));
        let mut o = self.0.borrow_mut();
        o.clock_s += o.unrest_s.min(limit.as_secs() as i64);
        Rested { took_s: 7.0, unrest: o.unrest.clone() }
    }

    fn is_interrupted(&self) -> bool {
        self.0.borrow().is_interrupted
    }

    fn is_waiting_over(&self) -> bool {
        self.0.borrow().is_waiting_over
    }

    fn wait_until(&mut self, due: Timestamp) {
        let mut o = self.0.borrow_mut();
        o.log.push(format!("waits until {due}"));
        o.is_interrupted = o.is_interrupted || o.interrupt_waits;
        if !o.is_interrupted {
            o.clock_s = due.as_second();
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.0.borrow().clock_s).unwrap()
    }

    fn edited(&mut self) -> Option<String> {
        None
    }

    fn tell(&mut self, _: &CampaignTold<'_>) {}
}

/// A session as the command makes it: what is in the ledger decides where it goes on.
pub(crate) fn session(
    file: &CampaignFile,
    outside: &Rc<RefCell<Outside>>,
) -> (Result<CampaignEnd, LedgerError>, CampaignState) {
    let cells = expand(file).unwrap();
    let mut sim = Sim(Rc::clone(outside));
    let known = {
        let mut o = outside.borrow_mut();
        if o.ledger.last().is_some_and(|b| *b != b'\n') {
            o.ledger.push(b'\n');
        }
        entries(&String::from_utf8(o.ledger.clone()).unwrap()).unwrap()
    };
    let at = stamp(sim.now());
    let mut opening = Vec::new();
    if known.is_empty() {
        opening.push(LedgerEntry::Begun {
            format: LEDGER_FORMAT.into(),
            name: "t".into(),
            fresh: 1,
            at: at.clone(),
        });
    }
    opening.push(LedgerEntry::Opened { version: "0".into(), budget_cost: None, fleet: Vec::new(), at });
    for entry in &opening {
        if let Err(e) = sim.append(entry) {
            return (Err(e), CampaignState::of(file, &cells, &known));
        }
    }
    let known = entries(std::str::from_utf8(&outside.borrow().ledger).unwrap()).unwrap();
    let state = CampaignState::of(file, &cells, &known);
    let prices = outside.borrow().prices.clone();
    let session = CampaignSession::new(file, &cells, state, sim.clone(), sim);
    let mut session = session.with_prices(prices.as_ref());
    let end = session.run();
    (end, session.state)
}

pub(crate) fn whole(file: &CampaignFile, spread: f64) -> (Rc<RefCell<Outside>>, CampaignState) {
    let outside = Rc::new(RefCell::new(Outside { spread, ..Outside::default() }));
    let (end, state) = session(file, &outside);
    assert_eq!(end.unwrap(), CampaignEnd::Complete);
    (outside, state)
}
