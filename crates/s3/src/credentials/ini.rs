//! The INI dialect of the AWS files: sections, `name = value`, `#` and `;` comments, indented sub-settings
//! (`s3 =` and an indented `endpoint_url = ...` below it become `s3.endpoint_url`).

use std::collections::BTreeMap;

pub(super) type Sections = BTreeMap<String, BTreeMap<String, String>>;

/// Reads a file; an error has its line and what is wrong.
pub(super) fn parse(text: &str) -> Result<Sections, (usize, &'static str)> {
    let mut all = Sections::new();
    let mut section: Option<String> = None;
    // The setting without a value that indented lines belong to, and whether there was any setting yet.
    let mut above: Option<String> = None;
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
            above = None;
            continue;
        }
        let Some(s) = section.as_ref().and_then(|name| all.get_mut(name)) else {
            return Err((line, "there is a setting before the first [section]"));
        };
        let indented = raw.starts_with([' ', '\t']) && !s.is_empty();
        let Some((name, value)) = trimmed.split_once('=') else {
            // The second line of a value of several: none of ours has one.
            if indented {
                continue;
            }
            return Err((line, "there is no '=' between name and value"));
        };
        let name = name.trim().to_ascii_lowercase();
        let value = value.split(" #").next().unwrap_or("").split(" ;").next().unwrap_or("").trim();
        if indented {
            if let Some(above) = &above {
                s.insert(format!("{above}.{name}"), value.to_owned());
            }
            continue;
        }
        above = value.is_empty().then(|| name.clone());
        s.insert(name, value.to_owned());
    }
    Ok(all)
}
