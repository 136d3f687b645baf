//! Worked examples, each with its arithmetic, and what holds for all prices.

use plimsoll_cost::{MoneyMeter, RunSeen, Sent, amount, bound, month, parse, summary, total, used};
use plimsoll_model::cost::{CostFigure, CostOptions, CostSummary};
use plimsoll_model::plan::{Plan, SizeDist};
use plimsoll_model::summary::WorkloadSummary;
use plimsoll_model::units::Size;
use plimsoll_model::{Estimate, OpKind};
use proptest::prelude::*;
use rust_decimal::Decimal;

fn examples(subject: &str) -> CostOptions {
    let file = parse(include_str!("../../../prices/examples.toml")).unwrap();
    CostOptions::of(&file, "", Some(subject), None)
}

/// The prices of a text, whose one subject has date, region and source.
fn prices(month: &str, more: &str) -> CostOptions {
    let text = format!(
        "version = 1\ncurrency = \"USD\"\nmonth = \"{month}\"\n[subjects.a]\ndate = \"2026-11-23\"\nregion = \"r\"\nsource = \"s\"\n{more}"
    );
    CostOptions::of(&parse(&text).unwrap(), "", None, None)
}

fn line(op: OpKind, rate: Estimate, size: u64) -> WorkloadSummary {
    WorkloadSummary {
        name: "w".into(),
        op: op.name().into(),
        valid: true,
        size_bytes: size,
        size: format!("{size}").into(),
        ops_per_s: Some(rate),
        bytes_per_s: Some(rate.scaled(size as f64)),
        ..WorkloadSummary::default()
    }
}

fn of_rate(c: &CostOptions, w: WorkloadSummary) -> CostSummary {
    summary(c, &RunSeen { workloads: &[w], ..RunSeen::default() }).unwrap()
}

fn figure<'a>(s: &'a CostSummary, name: &str) -> &'a CostFigure {
    s.figures.iter().find(|f| f.name == name).unwrap_or_else(|| panic!("no {name} in {s:#?}"))
}

fn dec(text: &str) -> Decimal {
    text.parse().unwrap()
}

fn sent(kind: OpKind, n: u64, size: u64) -> Sent {
    Sent::new(kind, n.into(), SizeDist::Fixed(Size(size)))
}

#[test]
fn the_worst_month_of_an_azure_standard_disk() {
    // "( $0.0005 / 10000 IO operations ) x ( 1100 IO operations / 1 second ) x ( 3600 seconds / 1 hour ) x ( 24 hours / 1 day )
    // x ( 30 days / 1 month ) = $1,425.60", says the article. The formula is right and its result is not:
    //   3600 x 24 x 30          = 2,592,000 s
    //   1100/s x 2,592,000 s    = 2,851,200,000 operations
    //   / 10,000                = 285,120 lots
    //   x 0.0005 USD            = 142.56 USD
    // The printed 1,425.60 is ten times that.
    let s = of_rate(
        &examples("azure-standard-256"),
        line(OpKind::Read, Estimate { value: 1100.0, low: 1000.0, high: 1200.0, n_eff: 20.0 }, 4096),
    );
    let f = figure(&s, "month_at_rate");
    assert_eq!(f.amount.value, 142.56);
    assert_eq!(1425.60 / f.amount.value, 10.0);
    // The interval is the rate's: 1000/s and 1200/s, by the same arithmetic.
    assert_eq!((f.amount.low, f.amount.high, f.amount.n_eff), (129.6, 155.52, 20.0));
    assert_eq!(f.unit, "USD/month");
    assert_eq!(
        f.formula,
        "1100 op/s x 2592000 s; transactions: 2851200000 requests of 256KiB / 10000 x 0.0005 USD = 142.56 USD"
    );
    // 1,106 were measured: 1106 x 2,592,000 / 10,000 x 0.0005 = 143.3376.
    let s = of_rate(&examples("azure-standard-256"), line(OpKind::Read, Estimate::exact(1106.0), 4096));
    assert_eq!(figure(&s, "month_at_rate").amount.value, 143.3376);
}

#[test]
fn a_month_at_a_rate_pays_for_what_was_refused_and_failed() {
    // 23.6 puts a second end well of 47.2 that are tried. At a dollar for 1,000 requests:
    //   47.2/s x 2,592,000 s = 122,342,400 requests / 1,000 = 122,342.4 USD; the 23.6 alone would be half of it.
    // Of 1 KB at a dollar for 1 GB, of those that ended well: 23.6 x 2,592,000 x 1 KB = 61.1712 GB.
    let c = prices(
        "30d",
        "ingress = { price = 1, per = \"1GB\" }\n[[subjects.a.requests]]\nclass = \"A\"\nops = [\"put\", \"get\"]\nprice = 1\nper = 1000\n",
    );
    let refused = |op, rate: Option<Estimate>, attempts_per_s, ok, not| WorkloadSummary {
        attempts_per_s,
        ops_per_s: rate,
        bytes_per_s: rate.map(|r| r.scaled(1000.0)),
        outcomes: [("ok".to_owned(), ok), ("throttled".to_owned(), not)].into(),
        ..line(op, Estimate::exact(0.0), 1000)
    };
    let rate = Estimate { value: 23.6, low: 20.0, high: 25.0, n_eff: 9.0 };
    let s = of_rate(&c, refused(OpKind::Put, Some(rate), 47.2, 2360, 2360));
    let f = figure(&s, "month_at_rate");
    assert_eq!(f.amount.value, 122_403.571_2);
    // As many attempts for each that ends well: 2 x 20 and 2 x 25.
    assert_eq!((f.amount.low, f.amount.high), (103_680.0 + 51.84, 129_600.0 + 64.8));
    assert!(
        f.formula.starts_with("23.6 op/s, 2 attempts for each, x 2592000 s; A: 122342400 requests"),
        "{}",
        f.formula
    );
    // Of a mix, a kind that was only ever refused is paid for as often as it was tried: 10 gets and 5 puts a second.
    let kinds = [
        refused(OpKind::Get, Some(Estimate::exact(10.0)), 10.0, 100, 0),
        refused(OpKind::Put, None, 5.0, 0, 50),
    ];
    let whole = WorkloadSummary {
        op: "total".into(),
        mix: [("get".to_owned(), 2.0), ("put".to_owned(), 1.0)].into(),
        ..refused(OpKind::Get, Some(Estimate::exact(10.0)), 15.0, 100, 50)
    };
    let all = [&kinds[..], &[whole]].concat();
    let s = summary(&c, &RunSeen { workloads: &all, ..RunSeen::default() }).unwrap();
    let f = s.figures.iter().find(|f| f.workload.as_deref().is_some_and(|w| !w.contains("get"))).unwrap();
    assert_eq!(f.amount.value, 38_880.0, "{f:#?}");
    // Cancelled ones ended with the run.
    let mut cut = refused(OpKind::Put, Some(Estimate::exact(10.0)), 11.0, 100, 0);
    cut.outcomes.insert("cancelled".into(), 10);
    assert_eq!(figure(&of_rate(&c, cut), "month_at_rate").amount.value, 25_920.0 + 25.92);
}

#[test]
fn the_month_of_an_upload_in_parts_has_its_parts() {
    // One upload a second of 2 parts of 8 MB: 2 requests and 2 parts, 4 x 2,592,000 / 1,000 = 10,368 USD; 41,472 GB come in.
    let c = prices(
        "30d",
        "ingress = { price = 1, per = \"1GB\" }\n[[subjects.a.requests]]\nclass = \"A\"\nops = [\"multipart\", \"upload-part\"]\nprice = 1\nper = 1000\n",
    );
    let all = [
        line(OpKind::Multipart, Estimate::exact(1.0), 16_000_000),
        line(OpKind::UploadPart, Estimate::exact(2.0), 8_000_000),
    ];
    let s = summary(&c, &RunSeen { workloads: &all, ..RunSeen::default() }).unwrap();
    let f = s.figures.iter().find(|f| f.name == "month_at_rate" && f.formula.starts_with("1 op/s")).unwrap();
    assert_eq!(f.amount.value, 10_368.0 + 41_472.0, "{f:#?}");
}

/// 1,000 writes a second with an fsync after every fourth, on a disk of 0.0005 USD for 10,000 transactions.
fn synced(c: &CostOptions, each: Option<Decimal>) -> CostSummary {
    let w = line(OpKind::Write, Estimate { value: 1000.0, low: 800.0, high: 1200.0, n_eff: 9.0 }, 4096);
    let seen = RunSeen { workloads: &[w], syncs: [("w".to_owned(), each)].into(), ..RunSeen::default() };
    summary(c, &seen).unwrap()
}

#[test]
fn fsyncs_are_transactions_of_the_month() {
    // 1,000 writes and 250 fsyncs a second: 1,250 x 2,592,000 / 10,000 x 0.0005 = 162 USD; the writes alone would be 129.60.
    let c = examples("azure-standard-256");
    let s = synced(&c, Some(dec("0.25")));
    let f = figure(&s, "month_at_rate");
    assert_eq!((f.amount.value, f.amount.low, f.amount.high), (162.0, 129.6, 194.4));
    assert!(
        f.formula.starts_with("1000 op/s, 0.25 fsyncs with each, x 2592000 s; transactions: 3240000000 req"),
        "{}",
        f.formula
    );
    assert_eq!(s.counted, ["transactions counts read, write, fsync, trim, once for each begun 256KiB"]);
    // Without them, and where they are ops of the mix with a line of their own, as before.
    assert_eq!(figure(&synced(&c, Some(dec("0"))), "month_at_rate").amount.value, 129.6);
    // A line whose fsyncs are not known has no month, and says so.
    let s = synced(&c, None);
    assert!(s.figures.iter().all(|f| f.name != "month_at_rate"));
    assert!(
        s.open.iter().any(|o| o.contains("how many fsyncs come with its writes is not known")),
        "{:?}",
        s.open
    );
}

#[test]
fn prices_that_do_not_know_fsyncs_give_no_month_and_those_that_have_them_free_do() {
    let io = |ops: &str| {
        format!(
            "[[subjects.a.requests]]\nclass = \"I/O\"\nops = [\"write\"]\nprice = 1\nper = 1000000\n{ops}"
        )
    };
    let s = synced(&prices("30d", &io("")), Some(dec("0.25")));
    assert!(s.figures.iter().all(|f| f.name != "month_at_rate"));
    assert!(s.open.iter().any(|o| o.contains("no class for 'fsync'")), "{:?}", s.open);
    let free = "[[subjects.a.requests]]\nclass = \"flush\"\nops = [\"fsync\"]\nprice = 0\nper = 1\n";
    let s = synced(&prices("30d", &io(free)), Some(dec("0.25")));
    assert_eq!(figure(&s, "month_at_rate").amount.value, 2592.0);
    assert_eq!(s.counted, ["I/O counts write", "flush counts fsync, at no price"]);
}

#[test]
fn an_fsync_of_a_workload_of_large_writes_is_one_transaction() {
    let plan = Plan::from_toml(
        "version = 1\n[targets.d]\nkind = \"null\"\n[[stage]]\n[[stage.workload]]\nname = \"w\"\nmix = { write = 1 }\nsize = \"1MiB\"\n\
         block = { fsync = 4 }\n",
    );
    let stage = &plan.unwrap().stages[0];
    let w = &stage.workloads[0];
    assert_eq!(plimsoll_cost::size_of(OpKind::Fsync, w), SizeDist::Fixed(Size(0)));
    assert_eq!(plimsoll_cost::size_of(OpKind::Write, w), SizeDist::Fixed(Size(1 << 20)));
}

#[test]
fn an_op_of_more_than_a_unit_is_several_transactions() {
    // 1 MiB is four units of 256 KiB, 257 KiB are two, 4 KiB are one.
    let c = examples("azure-standard-256");
    let (_, s) = c.chosen().unwrap();
    for (size, units) in [(4096, 1), (256 << 10, 1), (257 << 10, 2), (1 << 20, 4)] {
        let items = used(s, &[sent(OpKind::Write, 10_000, size)], false, "USD").unwrap();
        assert_eq!(total(&items), dec("0.0005") * Decimal::from(units), "{size}");
    }
}

#[test]
fn a_disk_that_is_sold_in_steps() {
    // 20 GiB are billed as 32 GiB: 32 x 0.165 = 5.28. Of the 20 GiB that can be used a TiB is 1024 / 20 x 5.28 = 270.336.
    let c = examples("azure-premium-20");
    let s = of_rate(&c, line(OpKind::Read, Estimate::exact(1106.0), 512));
    assert_eq!(figure(&s, "month").amount, Estimate::exact(5.28));
    assert_eq!(figure(&s, "per_usable_tib").amount.value, 270.336);
    // One byte more than the largest step is not sold.
    let (_, subject) = c.chosen().unwrap();
    let mut larger = subject.clone();
    larger.size = Some(Size((32 << 30) + 1));
    let why = month(&larger, c.month, "USD").unwrap_err();
    assert!(why.contains("more than the largest step") && why.contains("32GiB"), "{why}");
}

#[test]
fn iops_are_the_cheaper_the_more_a_disk_holds() {
    // 256 GiB x 0.17 = 43.52 USD a month; at 11,728 IOPS each 1,000 of them are 43.52 / 11.728 = 3.7107776...
    let rate = Estimate { value: 11_728.0, low: 11_000.0, high: 12_000.0, n_eff: 10.0 };
    let s = of_rate(&examples("google-pd-ssd-256"), line(OpKind::Read, rate, 512));
    let f = figure(&s, "per_1000_ops_per_s");
    assert!((f.amount.value - 43.52 / 11.728).abs() < 1e-9);
    // More IOPS for the same money: the ends change places. 43.52 / 12 and 43.52 / 11.
    assert!((f.amount.low - 43.52 / 12.0).abs() < 1e-9 && (f.amount.high - 43.52 / 11.0).abs() < 1e-9);
    assert_eq!(f.unit, "USD/month per 1,000 IOPS");
    assert_eq!(f.formula, "43.52 USD / (11728 op/s / 1000)");
    // 11,728 x 512 B are 5.7265625 MiB/s: 43.52 / 5.7265625.
    assert!((figure(&s, "per_mib_per_s").amount.value - 43.52 / 5.7265625).abs() < 1e-9);
    // Nothing is billed by use: there is no month at a rate beside the month.
    assert!(s.figures.iter().all(|f| f.name != "month_at_rate"));
}

#[test]
fn provisioned_rates_above_what_is_included() {
    // 256 GiB x 0.08 = 20.48; (6000 - 3000) x 0.005 = 15; (250 - 125) MiB/s x 0.04 = 5; together 40.48.
    let c = examples("aws-gp3-256");
    let items = month(c.chosen().unwrap().1, c.month, "USD").unwrap();
    let each: Vec<_> = items.iter().map(|i| amount(i.amount)).collect();
    assert_eq!(each, [20.48, 15.0, 5.0]);
    assert_eq!(total(&items), dec("40.48"));
}

#[test]
fn the_bill_that_the_provider_reckons_itself() {
    // S3 Express One Zone, example 1 of the provider's FAQ: 10 GB for a month, 1,000,000 writes and 9,000,000 reads of 10 KB (which it
    // takes for KiB: "10 KB / 1,048,576"), all removed:
    //   10 x 0.11                        = 1.10
    //   1,000,000 x 0.00113 / 1,000      = 1.13
    //   9,000,000 x 0.00003 / 1,000      = 0.27
    //   1,000,000 deletes                = 0
    //   10 KiB x 1,000,000 x 0.0032/GiB  = 0.0305...
    //   10 KiB x 9,000,000 x 0.0006/GiB  = 0.0514...
    // Together 2.58, as printed there.
    let c = examples("aws-s3-express");
    let (_, s) = c.chosen().unwrap();
    let all = [
        sent(OpKind::Put, 1_000_000, 10 << 10),
        sent(OpKind::Get, 9_000_000, 10 << 10),
        sent(OpKind::Delete, 1_000_000, 0),
    ];
    let mut items = month(s, c.month, "USD").unwrap();
    items.extend(used(s, &all, true, "USD").unwrap());
    assert_eq!(total(&items).round_dp(2), dec("2.58"));
    let of = |what: &str| items.iter().find(|i| i.what == what).unwrap().amount;
    assert_eq!((of("PUT"), of("GET"), of("DELETE")), (dec("1.13"), dec("0.27"), Decimal::ZERO));
    assert_eq!((of("ingress").round_dp(4), of("retrieval").round_dp(4)), (dec("0.0305"), dec("0.0515")));
}

#[test]
fn an_hour_of_32_machines() {
    // "can be easily replicated in an hour for less than $350": 32 x 10.848 = 347.136 an hour of the servers.
    let c = examples("minio-32-i3en");
    let w = line(OpKind::Get, Estimate::exact(1.0), 1);
    let seen = RunSeen {
        workloads: &[w],
        sent: vec![sent(OpKind::Get, 1, 1)],
        seconds: 3600.0,
        ..RunSeen::default()
    };
    let s = summary(&c, &seen).unwrap();
    assert_eq!(figure(&s, "run").amount.value, 347.136);
    // A month of 30 days has 720 h: 347.136 x 720 = 249,937.92.
    assert_eq!(figure(&s, "month").amount.value, 249_937.92);
}

#[test]
fn what_is_included_lowers_a_month_and_no_run() {
    // (300 GB - 100 GB) x 0.09 = 18 of a month; a run of the same may come after others have used it up: 27.
    let c = examples("aws-s3-standard");
    let (_, s) = c.chosen().unwrap();
    let all = [sent(OpKind::Get, 300, 1_000_000_000)];
    let egress = |monthly| {
        let items = used(s, &all, monthly, "USD").unwrap();
        items.iter().find(|i| i.what == "egress").unwrap().amount
    };
    assert_eq!((egress(true), egress(false)), (dec("18"), dec("27")));
}

#[test]
fn an_op_without_a_class_is_told_and_not_taken_as_free() {
    let c = examples("azure-standard-256");
    let (_, s) = c.chosen().unwrap();
    let why = used(s, &[sent(OpKind::Stat, 1, 0)], false, "USD").unwrap_err();
    assert_eq!(
        why,
        "the prices have no class for 'stat': add it to the ops of one, with price = 0 where it is free"
    );
    let open = of_rate(&c, line(OpKind::Stat, Estimate::exact(10.0), 0)).open;
    assert_eq!(open, [why]);
}

#[test]
fn a_void_line_costs_nothing_and_says_nothing() {
    let w = WorkloadSummary { valid: false, ..line(OpKind::Read, Estimate::exact(1100.0), 4096) };
    assert!(of_rate(&examples("azure-standard-256"), w).figures.is_empty());
}

#[test]
fn an_interval_without_an_end_has_none_in_money() {
    let rate = Estimate { value: 100.0, low: f64::NEG_INFINITY, high: f64::INFINITY, n_eff: 1.0 };
    let f = of_rate(&examples("google-pd-ssd-256"), line(OpKind::Read, rate, 512));
    let f = &figure(&f, "per_1000_ops_per_s").amount;
    assert_eq!((f.low, f.high), (0.0, f64::INFINITY));
}

const PLAN: &str = r#"
version = 1
[targets.s]
kind = "s3"
endpoints = ["http://127.0.0.1:1"]
bucket = "b"
[[stage]]
warmup = "1s"
[[stage.workload]]
name = "put"
mix = { put = 1 }
size = "1MB"
concurrency = 4
STOP
"#;

fn bound_of(stop: &str, c: &CostOptions) -> plimsoll_cost::Bound {
    let plan = Plan::from_toml(&PLAN.replace("STOP", stop)).unwrap();
    bound(&plan, c, &|_| (0, 0)).unwrap()
}

#[test]
fn a_run_of_so_many_requests_is_bounded_before_it_starts() {
    // 10,000 puts / 1,000 x 0.005 = 0.05; to remove them at most 10,000 deletes, free, and 10 listings / 1,000 x 0.005 = 0.00005;
    // at most 32 requests for marks, of the dearest class: 32 / 1,000 x 0.005 = 0.00016. Together 0.05021.
    let c = examples("aws-s3-standard");
    let b = bound_of("stop = { ops = 10000 }", &c);
    assert_eq!((b.total(), b.is_closed()), (dec("0.05021"), true));
    assert_eq!(b.around, dec("0.00021"));
    // A paced load of 9 s after a second of warm-up: 100/s x 10 s and what is in flight, 4: 1,004 puts.
    let b = bound_of("stop = { duration = \"9s\" }\npacing = { constant = \"100/s\" }", &c);
    assert!(b.items.iter().any(|i| i.formula == "1004 requests / 1000 x 0.005 USD"), "{b:#?}");
}

#[test]
fn a_closed_loop_has_no_bound_and_says_so() {
    let b = bound_of("stop = { duration = \"9s\" }", &examples("aws-s3-standard"));
    assert!(!b.is_closed() && b.open[0].contains("--max-ops"), "{b:#?}");
}

#[test]
fn a_meter_reaches_its_budget_with_the_request_that_does() {
    // 0.05 USD are 10,000 puts at 0.005 per 1,000.
    let mut c = examples("aws-s3-standard");
    c.budget = Some("0.05USD".parse().unwrap());
    let mut m = MoneyMeter::new(&c, Decimal::ZERO, true).unwrap();
    let size = SizeDist::Fixed(Size(1_000_000));
    m.sent(OpKind::Put, 0, &size, 9_999, 0);
    assert_eq!(m.over(1.0), None);
    m.sent(OpKind::Put, 0, &size, 1, 0);
    assert_eq!(m.over(1.0).unwrap(), "0.05 USD of 0.05 USD");
    assert_eq!(m.overshoot(1.0), None);
    m.sent(OpKind::Put, 0, &size, 200, 0);
    assert_eq!(m.overshoot(1.0).unwrap(), "0.001 USD");
}

#[test]
fn a_meter_counts_what_is_made_ready_again_and_again() {
    // A dollar a request. 20 objects to delete and their removal, with 32 for marks, are set aside before: 20 + 20 + 1 + 32 = 73.
    let mut c = prices(
        "30d",
        "[[subjects.a.requests]]\nclass = \"A\"\nops = [\"put\", \"delete\", \"list\"]\nprice = 1\nper = 1\n",
    );
    c.budget = Some("1000USD".parse().unwrap());
    let size = SizeDist::Fixed(Size(1));
    let spent = |removes, steps| {
        let mut m = MoneyMeter::new(&c, dec("73"), removes).unwrap();
        (0..steps).for_each(|_| m.made_ready(&size, 20));
        m.spent(1.0)
    };
    assert_eq!((spent(true, 0), spent(true, 1)), (dec("73"), dec("73")));
    // A search makes them ready before each of its steps: 60 puts, 60 deletes, a listing, and the marks.
    assert_eq!((spent(true, 3), spent(false, 3)), (dec("153"), dec("92")));
}

/// Prices with all that depends on use.
fn any_prices(per: u32, unit: u64, round_up: bool) -> CostOptions {
    prices(
        "30d",
        &format!(
            "egress = {{ price = 0.07, per = \"1GB\", included = \"1GB\" }}\n[[subjects.a.requests]]\nclass = \"A\"\nops = [\"get\", \"put\"]\nprice = 0.03\nper = {per}\nunit = \"{unit}B\"\nincluded = 100\nround_up = {round_up}\n"
        ),
    )
}

#[test]
fn no_use_is_more_than_the_arithmetic_holds() {
    let c = any_prices(1, 1, true);
    let (_, s) = c.chosen().unwrap();
    let most = [sent(OpKind::Get, u64::MAX, u64::MAX), sent(OpKind::Put, u64::MAX, u64::MAX)];
    assert!(total(&used(s, &most, true, "USD").unwrap()) > Decimal::from(u64::MAX));
}

proptest! {
    #[test]
    fn more_use_never_costs_less(
        per in 1u32..100_000, unit in 1u64..1_000_000, up: bool, monthly: bool,
        n in 0u64..1_000_000_000_000, more in 0u64..1_000_000_000, size in 0u64..10_000_000, larger in 0u64..10_000_000,
    ) {
        let c = any_prices(per, unit, up);
        let (_, s) = c.chosen().unwrap();
        let cost = |n, size| total(&used(s, &[sent(OpKind::Get, n, size)], monthly, "USD").unwrap());
        prop_assert!(cost(n + more, size) >= cost(n, size));
        prop_assert!(cost(n, size + larger) >= cost(n, size));
    }

    #[test]
    fn a_begun_lot_is_paid_in_full_and_none_beyond(per in 1u32..100_000, n in 1u64..1_000_000_000) {
        let of = |up| {
            let c = any_prices(per, 1 << 40, up);
            total(&used(c.chosen().unwrap().1, &[sent(OpKind::Put, n, 1)], false, "USD").unwrap())
        };
        let lots = n.div_ceil(u64::from(per));
        prop_assert_eq!(of(true), Decimal::from(lots) * dec("0.03"));
        prop_assert!(of(true) >= of(false) && of(true) - of(false) < dec("0.03"));
    }

    #[test]
    fn sizes_between_steps_are_billed_as_the_larger(size in 1u64..(64 << 30)) {
        let steps = "capacity = { steps = [{ up_to = \"4GiB\", price = 1.1 }, { up_to = \"32GiB\", price = 5.28 }, { up_to = \"64GiB\", price = 10.21 }] }";
        let c = prices("730h", &format!("size = \"{size}B\"\n{steps}"));
        let paid = total(&month(c.chosen().unwrap().1, c.month, "USD").unwrap());
        let expected = if size <= 4 << 30 { "1.1" } else if size <= 32 << 30 { "5.28" } else { "10.21" };
        prop_assert_eq!(paid, dec(expected));
    }

    #[test]
    fn thousands_of_small_sums_do_not_drift(n in 1u64..5_000) {
        // 0.1 added n times is n / 10: in binary it is not from the third time on.
        let mut m = {
            let mut c = prices("30d", "[[subjects.a.requests]]\nclass = \"A\"\nops = [\"get\"]\nprice = 0.1\nper = 1\n");
            c.budget = Some("1000000USD".parse().unwrap());
            MoneyMeter::new(&c, Decimal::ZERO, false).unwrap()
        };
        let size = SizeDist::Fixed(Size(1));
        (0..n).for_each(|_| m.sent(OpKind::Get, 0, &size, 1, 0));
        prop_assert_eq!(m.spent(0.0), Decimal::new(n as i64, 1));
    }
}
