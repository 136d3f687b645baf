//! What lies between two cells: a pause, and a machine that is waited for until it is at rest.

use std::fmt;
use std::time::Duration;

use plimsoll_model::units::Span;
use schemars::JsonSchema;
use serde::de::{self, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Looks in a row, of about a second each, that find nothing before it is rest. (A choice: a journal writes every five seconds.)
pub const CALM_LOOKS: u32 = 3;

/// Between two cells: `30s`, or `{ pause = "30s", wait = "10m" }`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CampaignRest {
    /// Nothing is done.
    pub pause: Span,
    /// Then the machine is waited for, this long at most.
    pub wait: Option<Span>,
}

impl Default for CampaignRest {
    fn default() -> Self {
        Self { pause: no_pause(), wait: None }
    }
}

impl fmt::Display for CampaignRest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.wait {
            None => write!(f, "{}", self.pause),
            Some(wait) => write!(f, "{}, then until the machine is at rest, at most {wait}", self.pause),
        }
    }
}

fn no_pause() -> Span {
    Span(Duration::ZERO)
}

/// Both, as a table of the file.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RestTable {
    /// Nothing is done for so long. Default: none.
    #[serde(default = "no_pause")]
    pause: Span,
    /// Then the machine is waited for, this long at most: until others leave its CPUs and disks alone, and servers that are observed neither
    /// heal nor scrub. What is not at rest by then is remarked in the record of the run, which begins all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wait: Option<Span>,
}

impl Serialize for CampaignRest {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self.wait {
            None => self.pause.serialize(s),
            Some(_) => RestTable { pause: self.pause, wait: self.wait }.serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for CampaignRest {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Written;
        impl<'de> Visitor<'de> for Written {
            type Value = CampaignRest;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a pause such as \"30s\", or { pause = \"30s\", wait = \"10m\" }")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<CampaignRest, E> {
                let pause = text.parse().map_err(E::custom)?;
                Ok(CampaignRest { pause, wait: None })
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<CampaignRest, A::Error> {
                let RestTable { pause, wait } = RestTable::deserialize(MapAccessDeserializer::new(map))?;
                Ok(CampaignRest { pause, wait })
            }
        }
        d.deserialize_any(Written)
    }
}

impl JsonSchema for CampaignRest {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CampaignRest".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let (pause, table) = (generator.subschema_for::<Span>(), generator.subschema_for::<RestTable>());
        schemars::json_schema!({
            "description": "Between two cells: a pause such as `30s`, or both: `{ pause = \"30s\", wait = \"10m\" }`.",
            "anyOf": [pause, table]
        })
    }
}

/// How a wait for rest ended.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rested {
    /// Seconds.
    pub took_s: f64,
    /// What was not at rest at its end; empty: it was at rest.
    pub unrest: Vec<String>,
}

impl Rested {
    /// For the record of the run that begins all the same; `None`: it was at rest.
    pub fn remark(&self, limit: Span) -> Option<String> {
        (!self.unrest.is_empty()).then(|| {
            format!("begun without rest, after it was waited {limit} for: {}", self.unrest.join("; "))
        })
    }
}

/// Looks until nothing was found [`CALM_LOOKS`] times in a row, or the limit is reached. `look`: takes about a second, and gives the
/// seconds since the wait began with what it found; `None`: somebody ends the wait.
pub fn wait_for_rest(limit: Duration, mut look: impl FnMut() -> Option<(f64, Vec<String>)>) -> Rested {
    let (mut calm, mut at) = (0, Rested::default());
    while calm < CALM_LOOKS {
        let Some((took_s, unrest)) = look() else { return Rested { took_s: at.took_s, unrest: Vec::new() } };
        calm = if unrest.is_empty() { calm + 1 } else { 0 };
        at = Rested { took_s, unrest };
        if took_s >= limit.as_secs_f64() {
            break;
        }
    }
    if calm > 0 && calm < CALM_LOOKS {
        at.unrest = vec!["it was quiet only at the end".into()];
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waited(limit_s: u64, found: &[&str]) -> (Rested, usize) {
        let mut at = 0;
        let rested = wait_for_rest(Duration::from_secs(limit_s), || {
            at += 1;
            let what = found.get(at - 1).copied().unwrap_or("");
            Some((at as f64, if what.is_empty() { Vec::new() } else { vec![what.to_owned()] }))
        });
        (rested, at)
    }

    #[test]
    fn rest_is_several_quiet_looks_in_a_row() {
        assert_eq!(waited(60, &[]), (Rested { took_s: 3.0, unrest: vec![] }, 3));
        let busy = ["sda", "", "", "sda", "", "", ""];
        assert_eq!(waited(60, &busy), (Rested { took_s: 7.0, unrest: vec![] }, 7));
    }

    #[test]
    fn at_its_limit_it_goes_on_and_says_what_was_not_at_rest() {
        let (rested, looks) = waited(5, &["sda"; 99]);
        assert_eq!(looks, 5);
        let remark = rested.remark(Span(Duration::from_secs(5))).unwrap();
        assert_eq!(remark, "begun without rest, after it was waited 5s for: sda");
        let (late, _) = waited(5, &["sda", "sda", "sda", "sda"]);
        assert_eq!(late.unrest, ["it was quiet only at the end"]);
        assert_eq!(Rested::default().remark(Span(Duration::ZERO)), None);
    }

    #[test]
    fn whoever_ends_the_wait_ends_it() {
        let rested = wait_for_rest(Duration::from_secs(600), || None);
        assert_eq!(rested, Rested::default());
    }

    #[test]
    fn it_is_written_as_a_pause_or_as_a_table() {
        #[derive(Serialize, Deserialize)]
        struct File {
            rest: CampaignRest,
        }
        let read = |text: &str| toml::from_str::<File>(text).map(|f| f.rest).map_err(|e| e.to_string());
        let s = |n| Span(Duration::from_secs(n));
        assert_eq!(read("rest = \"30s\""), Ok(CampaignRest { pause: s(30), wait: None }));
        assert_eq!(read("rest = { wait = \"10m\" }"), Ok(CampaignRest { pause: s(0), wait: Some(s(600)) }));
        for (bad, part) in [
            ("rest = \"soon\"", "soon"),
            ("rest = { until = \"10m\" }", "until"),
            ("rest = true", "{ pause = \"30s\", wait = \"10m\" }"),
        ] {
            let told = read(bad).unwrap_err();
            assert!(told.contains(part), "{bad}: {told}");
        }
        let text = |r| serde_json::to_string(&r).unwrap();
        assert_eq!(text(CampaignRest { pause: s(30), wait: None }), "\"30s\"", "as it always was");
        assert_eq!(text(CampaignRest { pause: s(0), wait: Some(s(600)) }), r#"{"pause":"0s","wait":"10m"}"#);
    }
}
