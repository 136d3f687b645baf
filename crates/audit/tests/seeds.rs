//! Published tables and claims, and what an audit has to find in them.

use plimsoll_audit::{AuditFacts, AuditReport, audit, read_markdown};

macro_rules! publication {
    ($name:literal) => {
        audited(
            include_str!(concat!("../seeds/", $name, "/table.md")),
            include_str!(concat!("../seeds/", $name, "/facts.toml")),
        )
    };
}

fn audited(table: &str, facts: &str) -> AuditReport {
    let facts = AuditFacts::from_toml(facts).unwrap_or_else(|e| panic!("{e}"));
    let report = audit(&read_markdown(table).unwrap(), &facts).unwrap_or_else(|e| panic!("{e}"));
    for r in &report.remarks {
        println!(
            "{:?} {} [{}]\n    printed  {}\n    expected {}\n    why      {}",
            r.line, r.row, r.rule, r.printed, r.expected, r.explanation
        );
    }
    println!("{:?} {:?}", report.checks, report.notes);
    report
}

/// One remark of this rule holds all of these words.
#[track_caller]
fn finds(report: &AuditReport, rule: &str, words: &[&str]) {
    let text =
        |r: &plimsoll_audit::AuditRemark| format!("{} {} {} {}", r.row, r.printed, r.expected, r.explanation);
    let found =
        report.remarks.iter().filter(|r| r.rule == rule && words.iter().all(|w| text(r).contains(w))).count();
    assert_eq!(found, 1, "{rule}: {words:?}");
}

/// What was printed rightly is not remarked upon.
#[track_caller]
fn passes(report: &AuditReport, words: &str) {
    let found = report.remarks.iter().find(|r| r.row.contains(words));
    assert_eq!(found, None, "{words}");
}

#[test]
fn object_tiers() {
    let r = publication!("000");
}

#[test]
fn a_cluster_with_its_clients_inside() {
    let r = publication!("001");
}

#[test]
fn block_tiers() {
    let r = publication!("002");
}

#[test]
fn disks_of_clouds() {
    let r = publication!("003");
}

#[test]
fn a_gateway_with_erasure_coding() {
    let r = publication!("004");
}
