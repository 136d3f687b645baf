//! JSON schemas of what people and programs exchange with Plimsoll: the plan, the campaign, the run summary, the analysis.
//!
//! They are generated from the types, kept in `schema/`, and compared by a test, so that a change of the contract
//! is seen in review. `cargo run -p xtask -- schema` writes them; `--check` only compares.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use plimsoll_campaign::CampaignFile;
use plimsoll_model::{Analysis, Plan, RunSummary};
use schemars::Schema;

const USAGE: &str = "usage: cargo run -p xtask -- schema [--check]";

pub fn main(args: &[String]) -> ExitCode {
    let done = match args {
        [] => write(&folder()),
        [one] if one == "--check" => check(&folder()),
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

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../schema")
}

/// File name and content of each schema.
pub fn all() -> Vec<(&'static str, String)> {
    vec![
        ("plan.schema.json", text(schemars::schema_for!(Plan), "Plimsoll plan, version 1 (written as TOML)")),
        (
            "campaign.schema.json",
            text(schemars::schema_for!(CampaignFile), "Plimsoll campaign, version 1 (written as TOML)"),
        ),
        ("run.schema.json", text(schemars::schema_for!(RunSummary), "Plimsoll run summary, plimsoll.run/2")),
        (
            "analysis.schema.json",
            text(schemars::schema_for!(Analysis), "Plimsoll analysis, plimsoll.analysis/1"),
        ),
    ]
}

fn text(mut schema: Schema, title: &str) -> String {
    schema.insert("title".into(), title.into());
    let mut out = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    out.push('\n');
    out
}

fn write(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    for (name, content) in all() {
        let path = folder.join(name);
        std::fs::write(&path, content).with_context(|| format!("{} cannot be written", path.display()))?;
        println!("schema/{name}");
    }
    Ok(())
}

fn check(folder: &Path) -> Result<()> {
    for (name, content) in all() {
        let path = folder.join(name);
        let kept =
            std::fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        if kept != content {
            bail!(
                "schema/{name} is not what the types say. If the change is meant: cargo run -p xtask -- schema"
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kept_schemas_are_what_the_types_say() {
        check(&folder()).unwrap();
    }

    #[test]
    fn a_change_is_seen() {
        let folder = std::env::temp_dir().join(format!("plimsoll-schema-{}", std::process::id()));
        write(&folder).unwrap();
        check(&folder).unwrap();
        let path = folder.join("run.schema.json");
        let other = std::fs::read_to_string(&path).unwrap().replace("\"verdict\"", "\"judgement\"");
        std::fs::write(&path, other).unwrap();
        let error = check(&folder).unwrap_err().to_string();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(error.contains("cargo run -p xtask -- schema"), "{error}");
    }

    /// The contract of the summary: these names may not go away within its schema number.
    #[test]
    fn the_summary_keeps_its_names() {
        let schema = serde_json::to_value(schemars::schema_for!(RunSummary)).unwrap();
        let names = &schema["properties"];
        for name in [
            "schema",
            "id",
            "valid",
            "status",
            "answered",
            "verdict",
            "claims",
            "findings",
            "workloads",
            "limits",
            "labels",
            "rerun",
            "environment",
        ] {
            assert!(names.get(name).is_some(), "{name}");
        }
    }
}
