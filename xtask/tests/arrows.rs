//! Which crate of the workspace may use which: the arrows of ARCHITECTURE.md, held against the manifests.

mod workspace;

use std::collections::{BTreeMap, BTreeSet};

use workspace::{named, short, source_dir, sources};

/// A crate, and the crates of ours that it uses, tests included. An arrow that is not here has to be thought about before it
/// is: does the one room really need the other, or only something small that belongs below both?
const ARROWS: [(&str, &[&str]); 30] = [
    ("model", &[]),
    ("s3", &["model"]),
    ("engine", &["model", "s3"]),
    ("store", &["model"]),
    ("archive", &["model", "store"]),
    ("bus", &["store"]),
    ("stats", &["model"]),
    ("control", &["model", "stats"]),
    ("cost", &["model"]),
    ("judge", &["control", "cost", "model", "stats", "store"]),
    ("setup", &["engine", "model", "observe", "s3", "store"]),
    ("lower", &["engine", "model"]),
    ("crew", &["engine", "lower", "model", "setup", "store"]),
    ("run", &["control", "cost", "crew", "engine", "judge", "lower", "model", "setup", "stats", "store"]),
    ("net", &["model", "stats"]),
    ("observe", &["model"]),
    ("import", &["model", "stats"]),
    ("fleet", &["bus", "crew", "engine", "lower", "model", "net", "run", "setup", "store"]),
    ("suites", &["judge", "model", "run", "setup", "stats", "store"]),
    ("campaign", &["cost", "lower", "model", "stats", "store"]),
    ("report", &["model", "stats", "store"]),
    ("index", &["model", "report", "store"]),
    ("publish", &["campaign", "model", "report", "store"]),
    ("serve", &["index", "judge", "model", "report", "stats", "store"]),
    ("audit", &["model"]),
    ("target", &[]),
    ("cluster", &["model", "setup", "store", "target"]),
    (
        "plimsoll",
        &[
            "archive", "audit", "bus", "campaign", "cluster", "cost", "engine", "fleet", "import", "index",
            "judge", "model", "net", "publish", "report", "run", "serve", "setup", "stats", "store",
            "suites", "target",
        ],
    ),
    (
        "fuzz",
        &[
            "archive", "bus", "campaign", "cost", "fleet", "import", "model", "net", "observe", "s3",
            "store", "suites",
        ],
    ),
    ("xtask", &["audit", "campaign", "model", "serve", "stats"]),
];

/// Crates from outside that a crate may not name, so that it stays what it is.
const NEVER: [(&str, &[&str]); 9] = [
    // The hot path: nothing that formats, logs or schedules.
    ("engine", &["serde_json", "tokio", "tracing"]),
    // Data and decisions: nothing that reads, writes, waits or looks at a clock.
    ("model", &["crossbeam-channel", "jiff", "libc", "rustix", "tokio"]),
    ("stats", &["crossbeam-channel", "jiff", "libc", "rustix", "tokio"]),
    ("cost", &["crossbeam-channel", "jiff", "libc", "rustix", "tokio"]),
    ("control", &["crossbeam-channel", "jiff", "libc", "rustix", "tokio"]),
    ("lower", &["crossbeam-channel", "jiff", "libc", "rustix", "tokio"]),
    ("judge", &["crossbeam-channel", "jiff", "libc", "rustix", "tokio"]),
    ("audit", &["crossbeam-channel", "jiff", "libc", "rustix", "tokio"]),
    ("observe", &["crossbeam-channel", "jiff", "libc", "rustix", "tokio"]),
];

/// Of the standard library, what a crate without I/O does without.
const OUTSIDE: [&str; 9] = [
    "std::env",
    "std::fs",
    "std::io",
    "std::net",
    "std::os",
    "std::process",
    "std::thread",
    "Instant::",
    "SystemTime",
];

/// What the table says otherwise than the manifests: a line each.
fn differences(table: &[(&str, &[&str])], named: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut out = Vec::new();
    for (name, names) in named {
        let Some((_, allowed)) = table.iter().find(|(n, _)| n == name) else {
            out.push(format!("{name} is a crate of which the table knows nothing"));
            continue;
        };
        let allowed: BTreeSet<String> = allowed.iter().map(|n| (*n).to_owned()).collect();
        let ours = |n: &String| named.contains_key(&short(n));
        let uses: BTreeSet<String> = names.iter().filter(|n| ours(n)).map(|n| short(n)).collect();
        out.extend(uses.difference(&allowed).map(|to| format!("{name} -> {to} is not permitted")));
        out.extend(allowed.difference(&uses).map(|to| format!("{name} -> {to} is permitted, and not used")));
    }
    let gone = table.iter().filter(|(n, _)| !named.contains_key(*n));
    out.extend(gone.map(|(n, _)| format!("there is no crate {n}")));
    out
}

#[test]
fn crates_use_each_other_as_the_table_has_it() {
    assert_eq!(differences(&ARROWS, &named()), Vec::<String>::new(), "correct the table and ARCHITECTURE.md");
}

#[test]
fn an_arrow_too_many_is_told() {
    let mut named = named();
    named.get_mut("control").unwrap().insert("plimsoll-run".to_owned());
    assert_eq!(differences(&ARROWS, &named), ["control -> run is not permitted"]);
}

#[test]
fn no_crate_names_what_would_make_it_another() {
    let named = named();
    for (name, never) in NEVER {
        let found: Vec<_> = never.iter().filter(|n| named[name].contains(**n)).collect();
        assert!(found.is_empty(), "{name} names {found:?}");
    }
}

#[test]
fn controllers_judgement_and_statistics_touch_nothing_outside() {
    for name in ["stats", "control", "cost", "judge", "lower", "audit", "observe"] {
        for (path, text) in sources(&source_dir(name)) {
            let found = OUTSIDE.iter().find(|w| text.contains(**w));
            assert_eq!(found, None, "{path}");
        }
    }
}
