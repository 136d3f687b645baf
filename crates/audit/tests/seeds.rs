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
    finds(&r, "base", &["1024 KB is 1,000,000 bytes", "10240 KB is 10,000,000 bytes", "512 KB is 512,000"]);
    for (row, off) in [
        ("Premium Tier, GET, 4 KB", "-10.3 %"),
        ("Standard Tier, PUT, 64 KB", "-4.0 %"),
        ("Premium Tier, PUT, 1024 KB", "-2.0 %"),
        ("Standard Tier, PUT, 512 KB", "-1.1 %"),
        ("Standard Tier, GET, 4 KB", "-5.7 %"),
    ] {
        finds(&r, "bytes", &[row, off]);
    }
    finds(&r, "repeated", &["613.7", "Standard Tier, GET, 1024 KB", "Premium Tier, GET, 4 KB", "569.2"]);
    finds(&r, "monotone", &["Standard Tier, PUT: 393.6 at 512 KB and 595.1 at 1024 KB"]);
    finds(&r, "caps", &["no operations limit is reached", "59 % of 800", "85 % of 10,000"]);
    finds(&r, "claim", &["8.3 Gbps", "8.389", "cut off"]);
    for sound in ["5.0 Gbps", "6.7 Gbps", "41.9 Gbps", "524,288", "25 % more", "33 % more"] {
        passes(&r, sound);
    }
}

#[test]
fn a_cluster_with_its_clients_inside() {
    let r = publication!("001");
    finds(
        &r,
        "traffic",
        &["84.6 Gbit/s", "84.52 Gbit/s between nodes alone", "171.8", "clients run in the servers"],
    );
    finds(&r, "traffic", &["clients on the wire", "172 % of the link"]);
    finds(&r, "traffic", &["77 Gbit/s", "57.21", "fits neither"]);
    for (ec, drives) in [("EC:2", "225.1 GiB/s"), ("EC:3", "222.8 GiB/s"), ("EC:4", "220 GiB/s")] {
        finds(&r, "traffic", &[&format!("PUT, {ec}"), drives, "the drives are nearer"]);
    }
    finds(&r, "claim", &["1.1 GB/s of write", "1.035"]);
    // 32 x $10.848 is $347: it holds.
    for sound in ["$350", "12.5 Gbyte/s", "2.3 GB/s of read", "1.0 GB/s"] {
        passes(&r, sound);
    }
    assert!(r.remarks.iter().all(|m| m.rule != "bytes"), "ops x size fits");
}

#[test]
fn block_tiers() {
    let r = publication!("002");
    finds(&r, "little", &["16 and 64 in flight", "such as 32", "5 of 5 rows"]);
    assert_eq!(r.remarks.iter().filter(|m| m.rule == "little").count(), 1, "one cause is told once");
    finds(&r, "base", &["the sizes are KiB, called KB"]);
    finds(&r, "claim", &["209.7 KB", "200 KB"]);
    passes(&r, "2 MB/s");
}

#[test]
fn disks_of_clouds() {
    let r = publication!("003");
    finds(&r, "claim", &["$1,425.60", "$142.6", "factor of 10"]);
    finds(&r, "claim", &["22 times", "37.96"]);
    finds(&r, "claim", &["22 times", "49.07"]);
    finds(&r, "claim", &["0.008 %", "0.0007792 %"]);
    finds(&r, "claim", &["second to last", "(20 GiB)", "3: -33.3 %"]);
    finds(&r, "claim", &["within 0.5 %", "0.5455 %"]);
    finds(&r, "cliff", &["162", "43 MB/s", "74 MB/s", "means over a cliff"]);
    finds(&r, "cliff", &["write 5 good runs", "read 4 good runs", "inside of run 5, after its write phase"]);
    finds(&r, "burst", &["gp2", "3 h"]);
    for sound in ["gp2 has 2 times", "75 %", "95 %", "90 %", "125 MB/s"] {
        passes(&r, sound);
    }
}

#[test]
fn a_gateway_with_erasure_coding() {
    let r = publication!("004");
    finds(&r, "claim", &["86.6K PUT of about", "692.8"]);
    finds(&r, "claim", &["391K GET of about", "782"]);
    finds(&r, "claim", &["24.4 GB/s", "MiB/s divided by 1,000"]);
    finds(&r, "claim", &["5.4 GiB/s", "MiB/s divided by 1,000"]);
    finds(&r, "claim", &["111 GiB/s", "113 GiB/s", "two figures"]);
    finds(&r, "claim", &["close to line rate", "79.46 %"]);
    finds(&r, "claim", &["12.5 GiB/s", "11.64 GiB/s: "]);
    finds(&r, "claim", &["nearly 10 cores", "7.526"]);
    finds(&r, "claim", &["under 3 cores", "7.424"]);
    finds(&r, "claim", &["8 to 9 %", "22 %"]);
    finds(&r, "traffic", &["GET, EC 2+2", "192 Gbit/s", "192 % of the link"]);
    finds(&r, "traffic", &["PUT, EC 2+2", "160.9 Gbit/s"]);
    finds(&r, "threads", &["+37%", "+33%", "27.0 %"]);
    for sound in ["9.25 GiB/s a node", "5.5 GiB/s a node", "over 3 times", "36 ms"] {
        passes(&r, sound);
    }
}

/// Both numbers could be either: the reading under which the table fits itself is taken, and said.
#[test]
fn points_between_thousands_are_found_by_what_fits() {
    let table = "| Size | Clients | IOPS | Throughput (KiB/s) |\n|---|---|---|---|\n| 4 KiB | 16 | 8.850 | 35.400 |\n| 64 KiB | 16 | 1.100 | 70.400 |\n";
    assert_eq!(audited(table, "").remarks, []);
    let table = table.replace("8.850", "8850").replace("1.100", "1100");
    let r = audited(&table, "");
    assert!(r.remarks.is_empty() && r.notes[0].contains("thousands"), "{r:?}");
}

#[test]
fn what_cannot_be_judged_is_bad_input_with_place_and_remedy() {
    for (table, facts, place, problem) in [
        ("| a | b |\n|---|---|\n| x | y |\n", "", "the table", "nothing in it can be held"),
        (
            "| Size | IOPS | Throughput |\n|---|---|---|\n| 4 KB | 10 | 3 |\n",
            "",
            "line 3, column 'Throughput'",
            "no unit",
        ),
        (
            "| Size | IOPS | MB/s |\n|---|---|---|\n| 4 KB | fast | 3 |\n",
            "",
            "line 3, column 'IOPS'",
            "'fast' is no number",
        ),
        ("| Size | IOPS | MB/s |\n|---|---|---|\n| 4 KB | 1,5 | 3.5 |\n", "", "line 3", "comma"),
        (
            "| Size | IOPS | MB/s |\n|---|---|---|\n| 4 KB | 1 | 3 |\n",
            "[columns]\nops = { role = 'ops' }\n",
            "map",
            "no table has such a column",
        ),
        (
            "| Size | IOPS | MB/s |\n|---|---|---|\n| 4 KB | 1 | 3 |\n",
            "[given]\nconcurrency = 0\n",
            "map",
            "more than 0",
        ),
    ] {
        let facts = AuditFacts::from_toml(facts).unwrap();
        let e = audit(&read_markdown(table).unwrap(), &facts).unwrap_err();
        assert!(e.place.contains(place) && e.problem.contains(problem) && !e.remedy.is_empty(), "{e:?}");
    }
}
