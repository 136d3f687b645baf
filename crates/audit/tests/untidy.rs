//! Tables as untidy as people publish them: a sound one is left alone however it is written, and a fault is found all the same, in its row.

use plimsoll_audit::{AuditFacts, AuditReport, audit, read_csv, read_markdown};

const HEADER: &str =
    "| Op | Size | Clients | IOPS | Throughput (MiB/s) | Avg latency (ms) |\n|---|---|---|---|---|---|\n";
/// Four rows that fit, each cell tidy: operations, throughput, latency.
const ROWS: [[&str; 6]; 4] = [
    ["PUT", "4 KiB", "8", "8851", "34.57", "0.904"],
    ["PUT", "64 KiB", "8", "1101", "68.81", "7.27"],
    ["GET", "4 KiB", "8", "12345", "48.22", "0.648"],
    ["GET", "64 KiB", "8", "10003", "625.19", "0.800"],
];

fn audited(text: &str) -> AuditReport {
    let tables = if text.starts_with('|') { read_markdown(text) } else { read_csv(text) };
    audit(&tables.unwrap(), &AuditFacts::default()).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn table(rows: &[[String; 6]]) -> String {
    HEADER.to_owned() + &rows.iter().map(|r| format!("| {} |\n", r.join(" | "))).collect::<String>()
}

fn tidy() -> [[String; 6]; 4] {
    ROWS.map(|r| r.map(str::to_owned))
}

/// How people write a number, and its unit.
type Untidiness = (&'static str, fn(&mut [String; 6], usize));

fn grouped(digits: &str, by: &str) -> String {
    let (whole, part) = digits.split_once('.').map_or((digits, String::new()), |(w, p)| (w, format!(".{p}")));
    let at = whole.len().saturating_sub(3);
    if at == 0 { digits.to_owned() } else { format!("{}{by}{}{part}", &whole[..at], &whole[at..]) }
}

const KINDS: &[Untidiness] = &[
    ("thin spaces", |r, _| r[3] = grouped(&r[3], "\u{2009}")),
    ("narrow spaces that do not break, a unit without a space", |r, _| {
        r[3] = grouped(&r[3], "\u{202f}");
        r[1] = r[1].replace(' ', "");
    }),
    ("commas between thousands", |r, _| r[3] = grouped(&r[3], ",")),
    ("commas before decimals", |r, _| {
        r[3] = grouped(&r[3], ".");
        r[4] = r[4].replace('.', ",");
        r[5] = r[5].replace('.', ",");
    }),
    ("apostrophes", |r, _| r[3] = grouped(&r[3], "'")),
    ("merged labels and sizes", |r, row| {
        r[2] = if row == 0 { r[2].clone() } else { String::new() };
        if row % 2 == 1 {
            r[0] = "^^".into();
        }
    }),
    ("thousands as K", |r, _| r[3] = format!("{}K", r[3].parse::<f64>().unwrap() / 1000.0)),
    ("about", |r, _| r[3] = format!("~{}", grouped(&r[3], ","))),
    ("approximately", |r, row| {
        if row == 3 {
            r[3] = "\u{2248}10,000".into();
        }
    }),
    ("ranges", |r, _| {
        let value: f64 = r[5].parse().unwrap();
        r[5] = format!("{:.3}-{:.3}", value * 0.98, value * 1.02);
    }),
    ("tolerances", |r, _| r[3] = format!("{} \u{b1} 0.5 %", r[3])),
    ("a tolerance in brackets", |r, _| r[4] = format!("{} MiB/s (\u{b1}0.2)", r[4])),
    ("units in cells", |r, _| {
        r[3] = format!("{} IOPS", r[3]);
        r[5] = format!("{} us", r[5].parse::<f64>().unwrap() * 1000.0);
    }),
    ("footnotes", |r, row| r[3] = format!("{}{}", r[3], ["*", "\u{b9}", "[1]", "\u{2020}"][row])),
    ("a spreadsheet's powers of ten", |r, _| r[3] = format!("{:e}", r[3].parse::<f64>().unwrap())),
    ("bold", |r, _| r[3] = format!("**{}**", r[3])),
    ("what was not measured", |r, row| {
        if row == 0 {
            r[5] = "n/a".into();
        } else if row == 2 {
            r[5] = "\u{2014}".into();
        } else if row == 3 {
            r[5] = "< 1".into();
        }
    }),
];

#[test]
fn a_sound_table_is_left_alone_however_untidy() {
    for (kind, change) in KINDS {
        let mut rows = tidy();
        rows.iter_mut().enumerate().for_each(|(i, r)| change(r, i));
        let r = audited(&table(&rows));
        assert!(r.remarks.is_empty(), "{kind}: {:#?}", r.remarks);
        assert!(r.checks.iter().any(|c| c.rule == "bytes" && c.checked == 4), "{kind}: {:?}", r.checks);
    }
}

#[test]
fn a_fault_in_an_untidy_table_is_found_in_its_row() {
    for (kind, change) in KINDS {
        let mut rows = tidy();
        rows[1][4] = "86.75".into();
        rows.iter_mut().enumerate().for_each(|(i, r)| change(r, i));
        let r = audited(&table(&rows));
        let of_rule: Vec<_> = r.remarks.iter().filter(|m| m.rule == "bytes").collect();
        assert_eq!(of_rule.len(), 1, "{kind}: {:#?}", r.remarks);
        assert_eq!(of_rule[0].line, Some(4), "{kind}");
    }
}

/// 8: somebody took bits for bytes, in one row or in a column, up or down.
#[test]
fn a_factor_of_eight_is_called_what_it_is() {
    for (cell, cause) in [("550.48", "in Mibit/s"), ("8.601", "factor of 8: bits for bytes")] {
        let mut rows = tidy();
        rows[1][4] = cell.into();
        let r = audited(&table(&rows));
        assert_eq!((r.remarks.len(), r.remarks[0].line), (1, Some(4)), "{:#?}", r.remarks);
        assert!(r.remarks[0].explanation.contains(cause), "{:#?}", r.remarks);
    }
    for (unit, cause) in
        [("Mibit/s", "is in MiB/s, called Mibit/s"), ("Mbit/s", "is in MiB/s, called Mbit/s")]
    {
        let r = audited(&table(&tidy()).replace("MiB/s", unit));
        assert_eq!(r.remarks.len(), 1, "told once: {:#?}", r.remarks);
        assert!(r.remarks[0].line.is_none() && r.remarks[0].explanation.contains(cause), "{:#?}", r.remarks);
    }
}

/// What is wrong in each row has one cause, and is told once.
#[test]
fn a_fault_of_every_row_is_one_remark() {
    let mut low = tidy();
    for (row, of) in [(1, 0), (2, 1), (3, 2), (0, 3)] {
        low[row][4] = ROWS[of][4].into();
    }
    let r = audited(&table(&low));
    assert_eq!(r.remarks.len(), 1, "{:#?}", r.remarks);
    assert!(r.remarks[0].explanation.contains("the throughput stands a row too low"), "{:#?}", r.remarks);

    let mut per_client = tidy();
    per_client.iter_mut().for_each(|r| r[2] = "2".into());
    let r = audited(&table(&per_client));
    assert_eq!(r.remarks.len(), 1, "{:#?}", r.remarks);
    let remark = &r.remarks[0];
    assert!(remark.line.is_none() && remark.explanation.contains("per client or per job"), "{remark:#?}");
}

#[test]
fn two_faults_are_named_in_both_of_their_rows() {
    let mut rows = tidy();
    rows[0][5] = "9.04".into();
    rows[2][3] = "12354".into();
    let r = audited(&table(&rows));
    let lines: Vec<_> = r.remarks.iter().map(|m| (m.rule, m.line)).collect();
    assert_eq!(lines, [("little", Some(3)), ("bytes", Some(5))], "{:#?}", r.remarks);
}

/// Sums and means are of no size, and a range of sizes is of none that is known.
#[test]
fn rows_that_sum_up_are_not_held_against_the_size_above() {
    let text =
        table(&tidy()) + "| Average | | | 8074 | 194.1 | 2.41 |\n| PUT | 4-64 KiB | 8 | 3000 | 50 | 2.7 |\n";
    let r = audited(&text);
    assert!(r.remarks.is_empty(), "{:#?}", r.remarks);
}

#[test]
fn a_missing_unit_is_asked_for_and_can_be_told() {
    let text = "Size,IOPS,Throughput\n4 KiB,8850,34.57\n64 KiB,1100,68.75\n";
    let tables = read_csv(text).unwrap();
    let e = audit(&tables, &AuditFacts::default()).unwrap_err();
    assert!(e.place.contains("line 2, column 'Throughput'") && e.remedy.contains("unit = \"MB/s\""), "{e:?}");
    let facts = AuditFacts::from_toml("[columns]\nThroughput = { unit = \"MiB/s\" }\n").unwrap();
    assert!(audit(&tables, &facts).unwrap().remarks.is_empty());
}
