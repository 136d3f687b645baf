//! No name of a type stands for two things where both can be in reach: whoever reads it knows which is meant, and whoever
//! looks for it finds one place.

mod workspace;

use std::collections::{BTreeMap, BTreeSet};

use workspace::{named, short, source_dir, sources};

/// What a macro makes has its name on no line of its own: the quantities of model/src/units.rs.
const BY_MACRO: [&str; 6] = ["BytesRate", "LineRate", "LinkRate", "OpsRate", "Size", "Span"];

/// Where a type is: the crate, and the file.
type At = (String, String);

/// The name of the type that a line makes known beyond its module.
fn type_of(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = rest.strip_prefix("(crate)").unwrap_or(rest).strip_prefix(' ')?;
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let (word, rest) = rest.split_once(' ')?;
    let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    (["struct", "enum", "trait", "type", "union"].contains(&word) && !name.is_empty()).then_some(name)
}

/// Files that only tests see have names of their own.
fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("tests.rs")
}

fn definitions(crates: &BTreeSet<String>) -> BTreeMap<String, Vec<At>> {
    let at = || vec![("model".to_owned(), "units.rs".to_owned())];
    let mut out: BTreeMap<String, Vec<At>> = BY_MACRO.iter().map(|n| ((*n).to_owned(), at())).collect();
    for name in crates {
        for (path, text) in sources(&source_dir(name)).iter().filter(|(p, _)| !is_test(p)) {
            for found in text.lines().filter_map(type_of) {
                out.entry(found.to_owned()).or_default().push((name.clone(), path.clone()));
            }
        }
    }
    out
}

/// What a crate has in reach: itself, and what it uses, directly or not.
fn reach(of: &str, named: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    let mut left = vec![of.to_owned()];
    while let Some(name) = left.pop() {
        if let Some(uses) = named.get(&name).filter(|_| out.insert(name)) {
            left.extend(uses.iter().map(|n| short(n)));
        }
    }
    out
}

/// Names that stand for two things in crates that meet: each with all its places.
fn doubles<'a>(
    definitions: &'a BTreeMap<String, Vec<At>>,
    named: &BTreeMap<String, BTreeSet<String>>,
) -> BTreeMap<&'a str, &'a Vec<At>> {
    let reach: BTreeMap<_, _> = named.keys().map(|n| (n.as_str(), reach(n, named))).collect();
    let meet = |a: &str, b: &str| reach[a].contains(b) || reach[b].contains(a);
    let is_double = |at: &[At]| (1..at.len()).any(|i| at[..i].iter().any(|(other, _)| meet(other, &at[i].0)));
    definitions.iter().filter(|(_, at)| is_double(at)).map(|(name, at)| (name.as_str(), at)).collect()
}

#[test]
fn a_type_has_its_name_for_itself() {
    let named = named();
    let definitions = definitions(&named.keys().cloned().collect());
    assert!(definitions.len() > 500, "only {} types were found", definitions.len());
    let doubles = doubles(&definitions, &named);
    assert!(doubles.is_empty(), "each stands for two things, one needs another name: {doubles:#?}");
}

#[test]
fn only_crates_that_meet_are_held_against_each_other() {
    let at = |names: &[&str]| names.iter().map(|n| ((*n).to_owned(), "lib.rs".to_owned())).collect();
    let definitions = BTreeMap::from([
        ("Engine".to_owned(), at(&["engine", "plimsoll"])),
        ("Request".to_owned(), at(&["s3", "target"])),
        ("Step".to_owned(), at(&["model", "setup"])),
        ("Twice".to_owned(), at(&["target", "target"])),
    ]);
    let doubles = doubles(&definitions, &named());
    assert_eq!(doubles.keys().copied().collect::<Vec<_>>(), ["Engine", "Step", "Twice"]);
}

#[test]
fn what_leaves_its_module_is_seen() {
    let seen = [
        ("pub struct Step<'a> {", Some("Step")),
        ("    pub(crate) enum Step {", Some("Step")),
        ("pub unsafe trait Step: Copy {", Some("Step")),
        ("pub type Step = u32;", Some("Step")),
        ("pub struct Step(u32);", Some("Step")),
        ("pub(super) struct Step;", None),
        ("struct Step;", None),
        ("pub fn step() {", None),
        ("// pub struct Step;", None),
    ];
    for (line, name) in seen {
        assert_eq!(type_of(line), name, "{line}");
    }
}
