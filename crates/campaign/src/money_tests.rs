//! Prices of subjects, what a run may cost before it begins, and a budget of money over several sessions.

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_cost::parse;
use rust_decimal::Decimal;

use crate::cells::expand;
use crate::check::CampaignError;
use crate::drive::CampaignEnd;
use crate::file::CampaignFile;
use crate::ledger::LedgerEntry;
use crate::money::{CampaignPrices, CostKnownBy, affordable};
use crate::outside::{Outside, session};
use crate::state::CampaignState;

/// A thousand requests are a dollar.
fn prices_of(names: &[&str], currency: &str) -> String {
    let one = |name: &&str| {
        format!(
            "[subjects.{name}]\ndate = \"2026-11-24\"\nregion = \"here\"\nsource = \"this test\"\n\
             [[subjects.{name}.requests]]\nclass = \"any\"\nops = [\"put\"]\nprice = 1\nper = 1000\n"
        )
    };
    let all: String = names.iter().map(one).collect();
    format!("version = 1\ncurrency = \"{currency}\"\nmonth = \"30d\"\n{all}")
}

fn priced(file: &CampaignFile, names: &[&str]) -> Result<CampaignPrices, CampaignError> {
    CampaignPrices::of(file, parse(&prices_of(names, "USD")).unwrap(), String::new())
}

/// Two subjects, each with a paced cell (1,001 requests) and a closed one, where a subject promises 50/s (501 requests).
fn campaign(head: &str) -> CampaignFile {
    let text = format!(
        r#"
version = 1
name = "t"
order = "as-written"
{head}
[[subject]]
name = "a"
price = "tier-1"
target = {{ kind = "null" }}
[[subject]]
name = "b"
promised = {{ ops_per_s = "50/s" }}
target = {{ kind = "null" }}
[[workload]]
name = "paced"
mix = {{ put = 1 }}
pacing = {{ constant = "100/s" }}
duration = "10s"
warmup = "0s"
[[workload]]
name = "closed"
mix = {{ put = 1 }}
duration = "10s"
warmup = "0s"
"#
    );
    CampaignFile::from_toml(&text).unwrap()
}

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

fn fresh(file: &CampaignFile, prices: Option<&CampaignPrices>) -> Result<(), CampaignError> {
    let cells = expand(file).unwrap();
    affordable(file, &cells, &CampaignState::new(file, &cells), prices)
}

#[test]
fn a_subject_has_the_prices_that_it_names_or_those_of_its_name() {
    let f = campaign("");
    let p = priced(&f, &["tier-1", "b", "c"]).unwrap();
    assert_eq!((p.name_of("a"), p.name_of("b")), (Some("tier-1"), Some("b")));
    assert!(p.without(&f).is_empty());
    let p = priced(&f, &["tier-1"]).unwrap();
    assert_eq!((p.name_of("b"), p.without(&f)), (None, vec!["b"]), "one of two subjects has no price");
    let e = priced(&f, &["tier-2"]).unwrap_err();
    assert!(e.place.contains("'a'") && e.problem.contains("tier-1") && e.remedy.contains("tier-2"), "{e}");
    let one = CampaignFile::from_toml(
        "version = 1\nname = \"t\"\n[[subject]]\nname = \"x\"\ntarget = { kind = \"null\" }\n[[workload]]\nname = \"w\"\nmix = { put = 1 }",
    )
    .unwrap();
    assert_eq!(priced(&one, &["any"]).unwrap().name_of("x"), Some("any"), "there is one of each");
    assert_eq!(priced(&one, &["any", "other"]).unwrap().name_of("x"), None);
}

#[test]
fn a_run_is_bounded_by_its_plan_by_what_is_promised_or_by_those_before_it() {
    let f = campaign("");
    let cells = expand(&f).unwrap();
    let p = priced(&f, &["tier-1", "b"]).unwrap();
    let of = |i: usize, runs: &[crate::CellRun]| p.next_run(&f, &cells[i], runs).unwrap().unwrap();
    let key = |i: usize| cells[i].key.as_str();
    assert_eq!((key(0), key(1), key(3)), ("a//paced", "a//closed", "b//closed"));
    let bound = of(0, &[]);
    assert_eq!((bound.amount, bound.known_by), (decimal("1.001"), CostKnownBy::Bound));
    let part = of(1, &[]);
    assert_eq!((part.amount, part.known_by), (Decimal::ZERO, CostKnownBy::Part));
    assert!(part.open[0].contains("closed loop"), "{:?}", part.open);
    let promised = of(3, &[]);
    assert_eq!((promised.amount, promised.known_by), (decimal("0.501"), CostKnownBy::Promise));
    let run = |cost: &str| crate::CellRun { cost: Some(cost.parse().unwrap()), ..Default::default() };
    let seen = of(3, &[run("0.2USD"), run("3USD"), run("1USD"), run("7EUR")]);
    assert_eq!(
        (seen.amount, seen.known_by),
        (decimal("3"), CostKnownBy::Runs),
        "the dearest, in this currency"
    );
    let p = priced(&f, &["tier-1"]).unwrap();
    assert_eq!(p.next_run(&f, &cells[3], &[]).unwrap(), None, "what has no price costs nobody knows what");
}

#[test]
fn what_does_not_fit_is_refused_by_name_and_amount() {
    let told = |head: &str, names: &[&str]| {
        let f = campaign(head);
        let e = fresh(&f, Some(&priced(&f, names).unwrap())).unwrap_err();
        format!("{}: {} | {}", e.place, e.problem, e.remedy)
    };
    let both = ["tier-1", "b"];
    let one = told("budget = { cost = \"1USD\" }", &both);
    assert!(
        one.contains("one run of 'a//paced'")
            && one.contains("1.01 USD")
            && one.contains("0.001 USD too little"),
        "{one}"
    );
    assert!(one.contains("to 1.01 USD at least"), "{one}");
    // 1.001 + 0 + 1.001 + 0.501
    let all = told("budget = { cost = \"2.5USD\" }", &both);
    assert!(
        all.contains("each of 4 cells once may cost 2.51 USD") && all.contains("0.003 USD too little"),
        "{all}"
    );
    let unpriced = told("budget = { cost = \"9USD\" }", &["tier-1"]);
    assert!(
        unpriced.contains("no price is known of b") && unpriced.contains("there are tier-1"),
        "{unpriced}"
    );
    let euros = told("budget = { cost = \"9EUR\" }", &both);
    assert!(euros.contains("in EUR, the prices are in USD"), "{euros}");
    let f = campaign("budget = { cost = \"2.503USD\" }");
    fresh(&f, Some(&priced(&f, &both).unwrap())).unwrap();
    let e = fresh(&f, None).unwrap_err();
    assert!(e.remedy.contains("--prices"), "{e}");
    let f = campaign("");
    fresh(&f, Some(&priced(&f, &["tier-1"]).unwrap())).unwrap();
}

#[test]
fn a_session_ends_before_what_would_go_over_and_the_next_goes_on_counting() {
    let with =
        |budget: &str| campaign(&format!("repeat = {{ at_least = 2 }}\nbudget = {{ cost = \"{budget}\" }}"));
    let f = with("4USD");
    let outside = Rc::new(RefCell::new(Outside {
        prices: Some(priced(&f, &["tier-1", "b"]).unwrap()),
        run_costs: decimal("0.9"),
        ..Outside::default()
    }));
    let (end, state) = session(&f, &outside);
    // 3.6 USD after four runs: 0.4 USD are left, and a paced run may cost 1.001.
    let CampaignEnd::Budget(what) = end.unwrap() else { panic!("not ended by its budget") };
    assert!(
        what.contains("4 USD") && what.contains("0.4 USD are left") && what.contains("1.01 USD"),
        "{what}"
    );
    assert_eq!((state.done_runs(), state.money.of("USD")), (4, decimal("3.6")));
    assert_eq!(outside.borrow().told_left, ["4 USD", "3.1 USD", "2.2 USD", "1.3 USD"]);
    let (end, state) = session(&with("9USD"), &outside);
    assert_eq!(end.unwrap(), CampaignEnd::Complete);
    assert_eq!((state.done_runs(), state.money.of("USD")), (8, decimal("7.2")));
    assert_eq!(outside.borrow().told_left[4], "5.4 USD");
}

#[test]
fn what_was_cut_short_was_paid_all_the_same() {
    let f = campaign("repeat = { at_least = 1 }\nbudget = { cost = \"9USD\" }");
    let outside = Rc::new(RefCell::new(Outside {
        prices: Some(priced(&f, &["tier-1", "b"]).unwrap()),
        run_costs: decimal("1.25"),
        ended_below: decimal("8"),
        ..Outside::default()
    }));
    // The second run is told that 7.75 USD are left, and ends by it.
    let (end, state) = session(&f, &outside);
    let CampaignEnd::Budget(what) = end.unwrap() else { panic!("not ended by its budget") };
    assert!(what.contains("a//closed") && what.contains("does not count"), "{what}");
    assert_eq!((state.done_runs(), state.dropped, state.money.of("USD")), (1, 1, decimal("2.5")));
    {
        let mut o = outside.borrow_mut();
        o.ended_below = Decimal::ZERO;
        // Opened, and the line before the run: killed in it.
        o.kill_in = Some(2);
    }
    let (end, _) = session(&f, &outside);
    assert!(end.is_err());
    {
        let mut o = outside.borrow_mut();
        (o.kill_in, o.is_dead) = (None, false);
    }
    let (end, state) = session(&f, &outside);
    assert_eq!(end.unwrap(), CampaignEnd::Complete);
    // Four runs that count, and two that do not.
    assert_eq!((state.done_runs(), state.dropped, state.money.of("USD")), (4, 2, decimal("7.5")));
    assert_eq!(state.money.unpriced, 0);
    let text = String::from_utf8(outside.borrow().ledger.clone()).unwrap();
    let costs = crate::ledger::entries(&text)
        .unwrap()
        .into_iter()
        .filter(|e| matches!(e, LedgerEntry::Dropped { spent, .. } if spent.cost.as_ref().is_some_and(|c| c.to_string() == "1.25 USD")));
    assert_eq!(costs.count(), 2);
}
