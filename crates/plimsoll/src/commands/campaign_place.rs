//! Where the campaign of a file was begun, kept in the user's state directory: a command that goes on finds it from any directory.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_campaign::CampaignDir;
use plimsoll_campaign::ledger::text_hash;
use plimsoll_model::text::clean;
use plimsoll_store::whole::{beside, replace_whole};
use serde::{Deserialize, Serialize};

use crate::{output, runs_dir};

/// Of the file; one of another format is none.
const PLACE_FORMAT: &str = "plimsoll.campaign-place/1";

/// The file in the state directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CampaignPlace {
    /// [`PLACE_FORMAT`].
    format: String,
    /// Of the campaign.
    name: String,
    /// Its file.
    file: PathBuf,
    /// Directory of its runs.
    runs: PathBuf,
}

impl CampaignPlace {
    fn is_begun(&self) -> bool {
        CampaignDir::of(&self.runs, &self.name).is_begun()
    }
}

/// `$XDG_STATE_HOME/plimsoll/campaigns`, or below `~/.local/state`.
fn all() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let state = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|h| h.join(".local/state")))?;
    Some(state.join("plimsoll").join("campaigns"))
}

fn place_of(all: &Path, file: &Path, name: &str) -> PathBuf {
    all.join(text_hash(&format!("{}\n{name}", file.display()))).with_extension("json")
}

fn read(path: &Path) -> Option<CampaignPlace> {
    let place: CampaignPlace = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    (place.format == PLACE_FORMAT).then_some(place)
}

/// Keeps it. Where that cannot be done, `resume` has to be told the directory again, as it says then.
pub fn remember(file: &Path, name: &str, runs: &Path) {
    let write = || -> Option<()> {
        let all = all()?;
        let (file, runs) = (fs::canonicalize(file).ok()?, fs::canonicalize(runs).ok()?);
        fs::create_dir_all(&all).ok()?;
        // Those whose runs are gone.
        for path in fs::read_dir(&all).ok()?.flatten().map(|e| e.path()) {
            if read(&path).is_some_and(|place| !place.is_begun()) {
                let _ = fs::remove_file(path);
            }
        }
        let path = place_of(&all, &file, name);
        if path.exists() && read(&path).is_none() {
            return None;
        }
        let place = CampaignPlace { format: PLACE_FORMAT.into(), name: name.to_owned(), file, runs };
        let text = serde_json::to_vec_pretty(&place).ok()?;
        replace_whole(&path, &beside(&path).ok()?, &text, 0o600).ok()
    };
    let _ = write();
}

/// The directory of runs that is given, else that in which the campaign of this file was begun.
pub fn runs_of(given: Option<&PathBuf>, file: &Path, name: &str) -> Option<PathBuf> {
    given.cloned().or_else(|| begun_in(file, name))
}

/// `None`: in that which is looked in without a flag, or nowhere.
fn begun_in(file: &Path, name: &str) -> Option<PathBuf> {
    if CampaignDir::of(&runs_dir::root(None), name).is_begun() {
        return None;
    }
    let place = read(&place_of(&all()?, &fs::canonicalize(file).ok()?, name))?;
    if place.name != name || !place.is_begun() {
        return None;
    }
    output::tell(format_args!(
        "plimsoll: campaign '{}' was begun with its runs in {} (--runs-dir: elsewhere)",
        clean(name),
        clean(&place.runs.display().to_string())
    ));
    Some(place.runs)
}
