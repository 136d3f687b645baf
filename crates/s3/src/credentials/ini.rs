//! The INI dialect of the AWS files: sections, `name = value`, `#` and `;` comments, indented sub-settings.

use std::collections::BTreeMap;

pub(super) type Sections = BTreeMap<String, BTreeMap<String, String>>;

/// Reads a file; an error has its line and what is wrong.
pub(super) fn parse(text: &str) -> Result<Sections, (usize, &'static str)> {
    let mut all = Sections::new();
    let mut section: Option<String> = None;
    for (i, raw) in text.lines().enumerate() {
        let line = i + 1;
        let trimmed = raw.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some(rest) = trimmed.strip_prefix('[') {
            let (name, _) = rest.split_once(']').ok_or((line, "a section's '[' is not closed"))?;
            let name = name.split_whitespace().collect::<Vec<_>>().join(" ").replace(['"', '\''], "");
            all.entry(name.clone()).or_default();
            section = Some(name);
            continue;
        }
        // An indented line belongs to the setting above it (`s3 =` with its own settings): none of ours is there.
        if raw.starts_with([' ', '\t']) && section.as_ref().is_some_and(|s| !all[s].is_empty()) {
            continue;
        }
        let (name, value) =
            trimmed.split_once('=').ok_or((line, "there is no '=' between name and value"))?;
        let Some(s) = &section else { return Err((line, "there is a setting before the first [section]")) };
        let value = value.split(" #").next().unwrap_or("").split(" ;").next().unwrap_or("").trim();
        all.entry(s.clone()).or_default().insert(name.trim().to_ascii_lowercase(), value.to_owned());
    }
    Ok(all)
}
