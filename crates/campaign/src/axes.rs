//! Axes of a campaign file: what a subject or a workload takes one value after the other of. Resolved before anything else looks at the
//! file, so that all that comes after knows plain subjects and workloads, each with the values that it stands for.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::cells::OWN_LABELS;
use crate::check::{CampaignError, wrong};
use crate::file::CampaignFile;
use crate::schedule::TIME_AXIS;

/// More of them are no matrix that anybody reads.
const MOST_AXES: usize = 8;
/// Subjects, or workloads, that one comes to.
const MOST_VARIANTS: usize = 2_000;
/// What all of them together repeat of the file.
const MOST_BYTES: usize = 64 << 20;
/// Settings that are one choice: taken whole, and not key by key.
const WHOLE: [&str; 3] = ["mix", "keys", "pacing"];
/// What a value cannot set: it says which subject or workload it is, and what it is made of.
const FIXED: [&str; 2] = ["name", "axis"];

/// Something that takes several values: a pattern, TLS, a size of disks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CampaignAxis {
    /// A label: tables and charts can be made by it, and `only` can name it.
    pub name: String,
    /// A subject, or a workload, for each.
    pub values: Vec<AxisValue>,
}

/// One value of an axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AxisValue {
    /// Stands in names, after that of the subject or workload; a number and `on`, `off`, `yes`, `no` with the name of the axis before it.
    pub name: String,
    /// What it means: keys of the subject or workload. Tables such as `target` are laid over key by key; `mix`, `keys`, `pacing` and
    /// lists are replaced.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub set: Map<String, Value>,
}

/// A subject or workload with its values.
pub(crate) trait HasAxes: Serialize + DeserializeOwned {
    /// `subject`, `workload`.
    const WHAT: &'static str;
    fn name(&self) -> &str;
    fn take_axes(&mut self) -> Vec<CampaignAxis>;
    /// What it is called now, and the values that it stands for.
    fn stands_for(&mut self, name: String, values: Vec<(String, String)>) -> Result<(), CampaignError>;
}

/// Subjects and workloads with axes become one for each of their values.
pub(crate) fn resolve(file: &mut CampaignFile) -> Result<(), CampaignError> {
    file.subjects = resolved(std::mem::take(&mut file.subjects))?;
    file.workloads = resolved(std::mem::take(&mut file.workloads))?;
    for subject in &file.subjects {
        for (axis, _) in file.workloads.iter().flat_map(|w| &w.values) {
            if subject.labels.contains_key(axis) || file.labels.contains_key(axis) {
                return Err(wrong(
                    format!("axis '{axis}'"),
                    format!(
                        "'{axis}' is a label of subject '{}' too, and would say two things",
                        subject.name
                    ),
                    "Give one of them another name.",
                ));
            }
        }
    }
    Ok(())
}

fn resolved<T: HasAxes>(list: Vec<T>) -> Result<Vec<T>, CampaignError> {
    let mut out = Vec::new();
    let mut bytes = 0usize;
    for mut one in list {
        let axes = one.take_axes();
        if axes.is_empty() {
            out.push(one);
            continue;
        }
        let place = format!("{} '{}'", T::WHAT, one.name());
        let variants = count(&place, &axes)?;
        let base = serde_json::to_value(&one).expect("plain data is always JSON");
        let text = serde_json::to_string(&(&base, &axes)).map_or(usize::MAX >> 16, |t| t.len());
        bytes = bytes.saturating_add(text.saturating_mul(variants));
        if bytes > MOST_BYTES || out.len() + variants > MOST_VARIANTS {
            return Err(wrong(
                place,
                format!("its axes come to {variants}, and with what each repeats that is too much"),
                "Leave out values, or split the campaign.",
            ));
        }
        for n in 0..variants {
            out.push(variant(&place, &base, one.name(), &axes, n)?);
        }
    }
    Ok(out)
}

/// How many they come to, where they can be told apart.
fn count(place: &str, axes: &[CampaignAxis]) -> Result<usize, CampaignError> {
    let mut names = BTreeSet::new();
    let mut all = 1usize;
    for axis in axes {
        let at = format!("{place}, axis '{}'", axis.name);
        if !is_label(&axis.name)
            || OWN_LABELS.contains(&axis.name.as_str())
            || axis.name == TIME_AXIS
            || !names.insert(&axis.name)
        {
            return Err(wrong(
                at,
                "it cannot be a label: empty, of other letters than a-z, 0-9, - and _, there twice, or one of the campaign's own",
                "Write for example name = \"pattern\".",
            ));
        }
        let mut values = BTreeSet::new();
        if axis.values.is_empty()
            || axis.values.iter().any(|v| v.name.trim().is_empty() || !values.insert(&v.name))
        {
            return Err(wrong(
                at,
                "it has no values, or values without a name or of one name",
                "Write for example values = [{ name = \"randread\", set = { mix = { read = 1 } } }, ...].",
            ));
        }
        all = all.saturating_mul(axis.values.len());
    }
    if axes.len() > MOST_AXES {
        return Err(wrong(
            place,
            format!("{} axes are more than {MOST_AXES}", axes.len()),
            "Split the campaign.",
        ));
    }
    Ok(all)
}

fn is_label(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    (1..=60).contains(&name.len()) && name.chars().all(fits)
}

/// The `n`th: the last axis turns fastest.
fn variant<T: HasAxes>(
    place: &str,
    base: &Value,
    name: &str,
    axes: &[CampaignAxis],
    mut n: usize,
) -> Result<T, CampaignError> {
    let mut chosen: Vec<(&CampaignAxis, &AxisValue)> = Vec::new();
    for axis in axes.iter().rev() {
        chosen.push((axis, &axis.values[n % axis.values.len()]));
        n /= axis.values.len();
    }
    chosen.reverse();
    let (mut all, mut called) = (base.clone(), name.to_owned());
    let mut at = place.to_owned();
    for (axis, value) in &chosen {
        at += &format!(", axis '{}', value '{}'", axis.name, value.name);
        if let Some(fixed) = FIXED.iter().find(|key| value.set.contains_key(**key)) {
            return Err(wrong(at, format!("a value cannot set '{fixed}'"), "Leave it out."));
        }
        lay_over(&mut all, &value.set);
        called += &format!(" {}", shown(&axis.name, &value.name));
    }
    let mut one: T = serde_json::from_value(all).map_err(|e| {
        wrong(
            &at,
            e.to_string(),
            format!("A value sets keys of its {}, as they are written without an axis.", T::WHAT),
        )
    })?;
    let values = chosen.iter().map(|(axis, value)| (axis.name.clone(), value.name.clone())).collect();
    one.stands_for(called, values)?;
    Ok(one)
}

/// As it stands in a name: what says nothing without its axis has it before it.
pub(crate) fn shown(axis: &str, value: &str) -> String {
    let is_bare = matches!(value, "on" | "off" | "yes" | "no") || value.bytes().all(|b| b.is_ascii_digit());
    if is_bare { format!("{axis} {value}") } else { value.to_owned() }
}

/// Key by key; lists and what is one choice are replaced, and so is a target of another kind.
pub(crate) fn lay_over(base: &mut Value, set: &Map<String, Value>) {
    let Value::Object(base) = base else { return };
    let kind = |map: &Map<String, Value>| map.get("kind").cloned();
    for (key, new) in set {
        match (base.get_mut(key), new) {
            (Some(Value::Object(old)), Value::Object(new))
                if !WHOLE.contains(&key.as_str())
                    && (kind(new).is_none() || kind(old).is_none() || kind(old) == kind(new)) =>
            {
                let mut below = Value::Object(std::mem::take(old));
                lay_over(&mut below, new);
                base.insert(key.clone(), below);
            }
            _ => {
                base.insert(key.clone(), new.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::cells::{CellWork, expand};
    use crate::file::CampaignFile;
    use plimsoll_model::OpKind;
    use plimsoll_model::plan::TargetSpec;

    const FILE: &str = r#"
version = 1
name = "t"
[[subject]]
name = "volume"
labels = { tier = "nvme" }
promised = { ops_per_s = "100/s" }
target = { kind = "block", path = "/mnt/a/f", size = "1GiB" }
[[subject.axis]]
name = "cache"
values = [
  { name = "direct" },
  { name = "page cache", set = { target = { buffered = true } } },
]
[[workload]]
name = "block"
mix = { read = 1 }
sizes = ["4KiB", "64KiB"]
concurrency = [16]
[[workload.axis]]
name = "pattern"
values = [
  { name = "randread" },
  { name = "randrw", set = { mix = { read = 1, write = 1 } } },
  { name = "write", set = { mix = { write = 1 }, keys = "sequential" } },
]
[[workload.axis]]
name = "jobs"
values = [{ name = "1", set = { jobs = 1 } }, { name = "4", set = { jobs = 4, target = { size = "2GiB" } } }]
"#;

    #[test]
    fn axes_are_a_matrix_whose_values_are_names_and_labels() {
        let file = CampaignFile::from_toml(FILE).unwrap();
        let names: Vec<&str> = file.subjects.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["volume direct", "volume page cache"]);
        assert_eq!(file.subjects[1].labels["cache"], "page cache");
        let cells = expand(&file).unwrap();
        assert_eq!(cells.len(), 2 * 3 * 2 * 2);
        let cell = cells.iter().find(|c| c.key == "volume page cache//block randrw jobs 4 64KiB").unwrap();
        assert_eq!(
            cell.axes.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect::<Vec<_>>(),
            [("cache", "page cache"), ("pattern", "randrw"), ("jobs", "4"), ("size", "64KiB")]
        );
        let labels = cell.run_labels(0);
        assert_eq!(
            (&*labels["pattern"], &*labels["cache"], &*labels["tier"]),
            ("randrw", "page cache", "nvme")
        );
        let CellWork::Stage(stage) = &cell.work else { panic!("a stage") };
        let w = &stage.workloads[0];
        assert_eq!((w.jobs, w.mix.get(&OpKind::Write)), (Some(4), Some(&1)));
        let Some(TargetSpec::Block(b)) = &cell.target else { panic!("a block target") };
        assert!(b.buffered && b.size.unwrap().0 == 2 << 30, "{b:?}");
        // What is one choice is taken whole.
        let write = cells.iter().find(|c| c.workload == "block write jobs 1 4KiB").unwrap();
        let CellWork::Stage(stage) = &write.work else { panic!("a stage") };
        assert!(!stage.workloads[0].mix.contains_key(&OpKind::Read));
    }

    #[test]
    fn mistakes_in_axes_name_the_value() {
        for (from, to, place, problem) in [
            ("{ buffered = true }", "{ bufered = true }", "axis 'cache', value 'page cache'", "bufered"),
            ("name = \"pattern\"", "name = \"tier\"", "axis 'tier'", "label of subject"),
            ("name = \"pattern\"", "name = \"repeat\"", "axis 'repeat'", "cannot be a label"),
            ("keys = \"sequential\"", "name = \"x\"", "value 'write'", "cannot set 'name'"),
            ("{ name = \"randread\" }", "{ name = \"randrw\" }", "axis 'pattern'", "of one name"),
            ("set = { jobs = 1 }", "set = { jobs = \"one\" }", "value '1'", "invalid type"),
            ("name = \"cache\"", "name = \"tier\"", "subject 'volume direct'", "'tier' is a label"),
            ("{ size = \"2GiB\" }", "{ sise = \"2GiB\" }", "workload 'block randread jobs 4'", "sise"),
        ] {
            let bad = FILE.replacen(from, to, 1);
            assert_ne!(bad, FILE, "{from}");
            let e = CampaignFile::from_toml(&bad).unwrap_err();
            let all = format!("{} | {}", e.place, e.problem);
            assert!(all.contains(place) && all.contains(problem) && !e.remedy.is_empty(), "{to}: {e:?}");
        }
    }

    #[test]
    fn too_many_values_are_refused_before_they_are_made() {
        let values: Vec<String> = (0..300).map(|n| format!("{{ name = \"v{n}\" }}")).collect();
        let axis =
            |name: &str| format!("[[workload.axis]]\nname = \"{name}\"\nvalues = [{}]\n", values.join(","));
        let e = CampaignFile::from_toml(&(FILE.to_owned() + &axis("a") + &axis("b"))).unwrap_err();
        assert!(e.problem.contains("too much"), "{e}");
    }
}
