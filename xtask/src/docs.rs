//! Reference pages under `docs/reference/`, made from the code: documents from their JSON schemas, findings from where they are made,
//! metrics from the list that the server gives out.
//! `cargo run -p xtask -- docs` writes them; `--check` only compares, as a test does.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use plimsoll_serve::METRIC_FAMILIES;
use serde_json::{Map, Value};

use crate::schema;

const USAGE: &str = "usage: cargo run -p xtask -- docs [--check]";
const MADE: &str = "<!-- Made by `cargo run -p xtask -- docs`: change the code that it is made from. -->\n";

pub fn main(args: &[String]) -> ExitCode {
    let done = match args {
        [] => write(),
        [one] if one == "--check" => check(),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e:#}");
            ExitCode::FAILURE
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn write() -> Result<()> {
    let folder = root().join("docs/reference");
    std::fs::create_dir_all(&folder)?;
    for (name, text) in all()? {
        std::fs::write(folder.join(name), text)
            .with_context(|| format!("docs/reference/{name} cannot be written"))?;
    }
    Ok(())
}

fn check() -> Result<()> {
    for (name, text) in all()? {
        if std::fs::read_to_string(root().join("docs/reference").join(name)).unwrap_or_default() != text {
            bail!("docs/reference/{name} is not what the code says; run: cargo run -p xtask -- docs");
        }
    }
    Ok(())
}

/// Name and text of each page.
fn all() -> Result<Vec<(&'static str, String)>> {
    let mut pages = vec![
        ("README.md", index()),
        ("findings.md", findings_page(&findings()?)),
        ("metrics.md", metrics_page()),
    ];
    for (name, text) in schema::all() {
        let schema: Value = serde_json::from_str(&text)?;
        match name {
            "plan.schema.json" => pages.push(("plan.md", document(&schema, name))),
            "campaign.schema.json" => pages.push(("campaign.md", document(&schema, name))),
            "run.schema.json" => pages.push(("summary.md", document(&schema, name))),
            _ => {}
        }
    }
    Ok(pages)
}

fn index() -> String {
    format!(
        "{MADE}# Reference\n\n- [Plan](plan.md): the file that `plimsoll run` takes, and that `--dry-run` prints.\n\
         - [Campaign](campaign.md): the file of `plimsoll campaign`.\n\
         - [Result](summary.md): `summary.json`, and what `--json` prints.\n\
         - [Findings](findings.md): codes of what voids or qualifies a result.\n\
         - [Metrics](metrics.md): what `plimsoll serve` and `--live` give out to Prometheus.\n"
    )
}

/// A document's own fields first, then each of its types in alphabetical order.
fn document(schema: &Value, file: &str) -> String {
    let title = schema["title"].as_str().unwrap_or_default();
    let mut out = format!("{MADE}# {title}\n\nFor programs: [`schema/{file}`](../../schema/{file}).\n\n");
    fields(&mut out, schema);
    for (name, one) in schema["$defs"].as_object().into_iter().flatten() {
        let _ = writeln!(out, "## {name}\n");
        section(&mut out, one);
    }
    // One empty line at the end is enough.
    format!("{}\n", out.trim_end())
}

fn section(out: &mut String, one: &Value) {
    if let Some(text) = one["description"].as_str() {
        let _ = writeln!(out, "{}\n", line(text));
    }
    fields(out, one);
    for choice in ["oneOf", "anyOf"].iter().filter_map(|k| one[*k].as_array()).flatten() {
        let about = choice["description"].as_str().map_or(String::new(), |d| format!(": {}", line(d)));
        let properties = choice["properties"].as_object();
        // Of a tagged type the tag tells the forms apart.
        let tag =
            properties.and_then(|p| p.iter().find_map(|(k, v)| Some(format!("`{k} = {}`", v.get("const")?))));
        let head = tag.unwrap_or_else(|| kind(choice));
        let _ = writeln!(out, "- {head}{about}");
        if properties.is_some_and(|p| p.len() > 1 || !p.values().any(|v| v.get("const").is_some())) {
            out.push('\n');
            fields(out, choice);
        }
    }
    if let Some(values) = one["enum"].as_array() {
        let _ = writeln!(
            out,
            "One of {}.\n",
            values.iter().map(|v| format!("`{v}`")).collect::<Vec<_>>().join(", ")
        );
    }
    if !out.ends_with("\n\n") {
        out.push('\n');
    }
}

fn fields(out: &mut String, of: &Value) {
    let Some(properties) = of["properties"].as_object() else { return };
    let required: BTreeSet<&str> =
        of["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    out.push_str("| field | form | what it is |\n|---|---|---|\n");
    for (name, field) in properties {
        let needed = if required.contains(name.as_str()) { " (required)" } else { "" };
        let about = field["description"].as_str().map(line).unwrap_or_default();
        let _ = writeln!(out, "| `{name}`{needed} | {} | {} |", cell(&kind(field)), cell(&about));
    }
    out.push('\n');
}

/// The form of a value in a few words, with a link to its type.
fn kind(field: &Value) -> String {
    if let Some(name) = field["$ref"].as_str().and_then(|r| r.rsplit('/').next()) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(value) = field.get("const") {
        return format!("`{value}`");
    }
    if let Some(values) = field["enum"].as_array() {
        return values.iter().map(|v| format!("`{v}`")).collect::<Vec<_>>().join(", ");
    }
    let choices = ["anyOf", "oneOf"].iter().find_map(|k| field[*k].as_array());
    if let Some(choices) = choices {
        let kinds: Vec<String> = choices.iter().filter(|c| c["type"] != "null").map(kind).collect();
        return kinds.join(" or ");
    }
    let types: Vec<&str> = match &field["type"] {
        Value::String(one) => vec![one],
        Value::Array(all) => all.iter().filter_map(Value::as_str).filter(|t| *t != "null").collect(),
        _ => return "any".into(),
    };
    let one = |t: &str| match t {
        "array" => format!("list of {}", kind(&field["items"])),
        "object" => match field.get("additionalProperties") {
            Some(of @ Value::Object(_)) => format!("table of {}", kind(of)),
            _ => named(field["properties"].as_object()),
        },
        "string" => "text".into(),
        "integer" => "whole number".into(),
        "boolean" => "true or false".into(),
        other => other.into(),
    };
    types.into_iter().map(one).collect::<Vec<_>>().join(" or ")
}

/// A table with one field is called by it: `{ duration = ... }`.
fn named(properties: Option<&Map<String, Value>>) -> String {
    let names: Vec<&str> = properties.into_iter().flatten().map(|(k, _)| k.as_str()).collect();
    match names[..] {
        [one] => format!("`{{ {one} = ... }}`"),
        _ => "table".into(),
    }
}

fn line(text: &str) -> String {
    // Links between types of the code lead nowhere here.
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace("[`", "`").replace("`]", "`")
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Code and name of each finding, and the crates that make it.
type FindingPlaces = BTreeMap<(String, String), BTreeSet<String>>;

fn findings() -> Result<FindingPlaces> {
    let mut sources: Vec<(String, String)> = Vec::new();
    for entry in std::fs::read_dir(root().join("crates"))? {
        let dir = entry?.path();
        let name = dir.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let mut folders = vec![dir.join("src")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten() {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("tests.rs") {
                    let text = std::fs::read_to_string(&path)?;
                    sources.push((
                        name.clone(),
                        text.split("#[cfg(test)]").next().unwrap_or_default().to_owned(),
                    ));
                }
            }
        }
    }
    // Constants of a crate's own come before those of others.
    let mut consts = TextConsts::new();
    sources.iter().for_each(|(of, text)| text_consts(text, of, &mut consts));
    let mut out = FindingPlaces::new();
    sources.iter().for_each(|(of, text)| in_source(text, of, &consts, &mut out));
    Ok(out)
}

/// Values of constants, by name and crate.
type TextConsts = BTreeMap<String, BTreeMap<String, String>>;

/// `const NAME: &str = "value";`
fn text_consts(text: &str, of: &str, out: &mut TextConsts) {
    for behind in text.split("const ").skip(1) {
        let Some((name, value)) = behind.split_once(": &str = \"") else { continue };
        let is_ident = !name.is_empty() && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
        if let Some((value, _)) = value.split_once('"').filter(|_| is_ident) {
            out.entry(name.to_owned()).or_default().insert(of.to_owned(), value.to_owned());
        }
    }
}

/// A code in quotes, and behind it a name, in quotes or as a constant.
fn in_source(text: &str, of: &str, consts: &TextConsts, out: &mut FindingPlaces) {
    let mut rest = text;
    while let Some(at) = rest.find('"') {
        rest = &rest[at + 1..];
        let Some((code, after)) = rest.split_once('"').filter(|(code, _)| is_code(code)) else { continue };
        let Some(behind) = after.strip_prefix(',') else { continue };
        let behind = behind.trim_start();
        let name = match behind.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').map(|(name, _)| name),
            None => {
                let path = behind.split([',', ')']).next().unwrap_or_default();
                let all = consts.get(path.rsplit("::").next().unwrap_or_default());
                all.and_then(|all| all.get(of).or(all.values().next())).map(String::as_str)
            }
        };
        let is_name = |n: &&str| !n.is_empty() && n.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        if let Some(name) = name.filter(is_name) {
            out.entry((code.to_owned(), name.to_owned())).or_default().insert(of.to_owned());
        }
    }
}

fn is_code(text: &str) -> bool {
    let digits = text.strip_prefix(['V', 'Q', 'F']);
    digits.is_some_and(|d| d.len() >= 2 && d.bytes().all(|b| b.is_ascii_digit()))
}

fn findings_page(all: &FindingPlaces) -> String {
    let mut out = format!(
        "{MADE}# Findings\n\nEach statement about a result has a code and a name, its measured value, the threshold, and what to change. \
         V: it makes a line, or the run, void. Q: it qualifies the result. F: it informs. A V finding may be a remark only, where what it found \
         decides nothing: its level says so. How each is computed is in [METHODOLOGY](../../METHODOLOGY.md).\n\n| code | name | said by |\n|---|---|---|\n"
    );
    let order = |code: &str| match &code[..1] {
        "V" => 0,
        "Q" => 1,
        _ => 2,
    };
    let mut sorted: Vec<_> = all.iter().collect();
    sorted.sort_by_key(|((code, name), _)| (order(code), code.clone(), name.clone()));
    for ((code, name), crates) in sorted {
        let by = crates.iter().map(|c| format!("`{c}`")).collect::<Vec<_>>().join(", ");
        let _ = writeln!(out, "| {code} | `{name}` | {by} |");
    }
    out
}

fn metrics_page() -> String {
    let mut out = format!(
        "{MADE}# Metrics\n\n`plimsoll serve`, and `--live` of a command that measures, give out the figures of runs as Prometheus text at `/metrics`: \
         of runs that go on, and the last results. Who else may ask is in the [README](../../README.md): beyond this machine it takes TLS and a token.\n\n\
         Latencies are cumulative buckets, never quantiles: an average of quantiles is none of anything. `histogram_quantile()` of summed buckets is one.\n\n\
         | metric | type | unit | labels | what it is |\n|---|---|---|---|---|\n"
    );
    for f in METRIC_FAMILIES {
        let labels = f.labels.iter().map(|l| format!("`{l}`")).collect::<Vec<_>>().join(", ");
        let _ = writeln!(out, "| `{}` | {} | {} | {labels} | {} |", f.name, f.kind, f.unit, cell(f.help));
    }
    out.push_str(
        "\nA histogram has `_bucket` (with `le`, seconds), `_sum` and `_count`. `outcome` is `ok` or what an op ended with (`http_503`, `timeout`): \
         only `ok` is throughput.\n\n| label | what it names |\n|---|---|\n\
         | `run` | the run's id, as `plimsoll runs list` has it |\n| `stage` | the stage of the plan, from 1 |\n\
         | `workload` | the workload's name in the plan |\n| `op` | get, put, read, write and so on; of a result `total`, too |\n\
         | `agent` | the agent of a fleet, by its name |\n",
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_what_the_code_says() {
        check().unwrap();
    }

    #[test]
    fn findings_are_found_and_those_of_tests_are_not() {
        let mut out = FindingPlaces::new();
        let text = "f(\"V07\", \"client_bound\", x); g(\n \"Q12\",\n \"followed\"); h(\"V7\", \"no\"); i(\"X07\", \"no\");\n#[cfg(test)]\nf(\"V99\", \"of_a_test\")";
        let text = text.split("#[cfg(test)]").next().unwrap();
        in_source(text, "stats", &TextConsts::new(), &mut out);
        let codes: Vec<&str> = out.keys().map(|(code, _)| code.as_str()).collect();
        assert_eq!(codes, ["Q12", "V07"]);
    }

    #[test]
    fn a_name_may_be_a_constant_of_this_crate_or_another() {
        let mut consts = TextConsts::new();
        text_consts("pub const CAUSE: &str = \"limit_cause\";\nconst N: f64 = 1.0;", "stats", &mut consts);
        text_consts("const CAUSE: &str = \"cause_of_loss\";", "judge", &mut consts);
        let named = |of: &str, text: &str| {
            let mut out = FindingPlaces::new();
            in_source(text, of, &consts, &mut out);
            out.into_keys().map(|(_, name)| name).collect::<Vec<_>>()
        };
        assert_eq!(named("stats", "new(\"F40\", CAUSE, x)"), ["limit_cause"]);
        assert_eq!(named("judge", "new(\"F40\", claims::CAUSE, x)"), ["cause_of_loss"]);
        assert_eq!(named("judge", "new(\"F40\", other, x)"), [""; 0]);
    }

    #[test]
    fn forms_are_told_in_words() {
        let of = |text: &str| kind(&serde_json::from_str(text).unwrap());
        assert_eq!(of(r##"{"anyOf": [{"$ref": "#/$defs/Stage"}, {"type": "null"}]}"##), "[Stage](#stage)");
        assert_eq!(of(r#"{"type": ["string", "null"]}"#), "text");
        assert_eq!(of(r#"{"type": "array", "items": {"type": "integer"}}"#), "list of whole number");
        assert_eq!(of(r#"{"type": "object", "additionalProperties": {"type": "string"}}"#), "table of text");
    }
}
