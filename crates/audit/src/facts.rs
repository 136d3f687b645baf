//! What is told beside a table: columns, what holds for all rows, caps, clusters, and claims of the text (TOML).

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::AuditError;
use crate::number::Mark;
use crate::quantity::Quantity;
use crate::unit::Dimension;

/// A map of columns, facts and claims: the file of `--map`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditFacts {
    /// Where it was published.
    #[serde(default)]
    pub source: Option<SourceFact>,
    /// What stands before decimals, where the table does not tell.
    #[serde(default)]
    pub(crate) decimal: Option<MarkFact>,
    #[serde(default)]
    pub(crate) columns: BTreeMap<String, ColumnFact>,
    #[serde(default)]
    pub(crate) given: GivenFact,
    #[serde(default, rename = "cap")]
    pub(crate) caps: Vec<CapFact>,
    #[serde(default, rename = "burst")]
    pub(crate) bursts: Vec<BurstFact>,
    #[serde(default, rename = "traffic")]
    pub(crate) traffic: Vec<TrafficFact>,
    #[serde(default, rename = "cliff")]
    pub(crate) cliffs: Vec<CliffFact>,
    #[serde(default, rename = "claim")]
    pub(crate) claims: Vec<ClaimFact>,
}

/// Where something was published.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceFact {
    /// As it calls itself.
    #[serde(default)]
    pub title: String,
    /// Where it stands.
    #[serde(default)]
    pub url: String,
    /// Who wrote it.
    #[serde(default)]
    pub author: String,
    /// When.
    #[serde(default)]
    pub date: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum MarkFact {
    #[serde(rename = ",")]
    Comma,
    #[serde(rename = ".")]
    Point,
}

impl From<MarkFact> for Mark {
    fn from(m: MarkFact) -> Self {
        match m {
            MarkFact::Comma => Self::Comma,
            MarkFact::Point => Self::Point,
        }
    }
}

/// What a column holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ColumnFact {
    pub role: Option<String>,
    pub unit: Option<String>,
    /// Columns of the same subject belong together: `PUT`, `read`.
    pub of: Option<String>,
}

/// What holds for every row.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GivenFact {
    /// Operations in flight. Several where the text says several.
    #[serde(default)]
    pub concurrency: Numbers,
    pub size: Option<String>,
    pub nodes: Option<f64>,
}

/// One number, or several that contradict each other.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Numbers {
    #[default]
    None,
    One(f64),
    Many(Vec<f64>),
}

impl Numbers {
    pub fn all(&self) -> Vec<f64> {
        match self {
            Self::None => Vec::new(),
            Self::One(n) => vec![*n],
            Self::Many(n) => n.clone(),
        }
    }
}

/// A limit that was published.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CapFact {
    /// Labels of the rows that it holds for; none: all.
    #[serde(default)]
    pub when: BTreeMap<String, String>,
    pub ops: Option<String>,
    pub throughput: Option<String>,
    /// The size from which the throughput binds, as printed.
    pub knee: Option<String>,
}

/// A burst that was published, and for how long somebody looked.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BurstFact {
    pub name: String,
    pub lasts: String,
    /// How long the published figure was measured.
    pub run: String,
    /// The figure.
    pub printed: String,
}

/// What a cluster moves for its clients, and over which links.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrafficFact {
    pub name: String,
    pub engine: EngineFact,
    pub op: OpFact,
    /// What clients get or put.
    pub rate: String,
    pub nodes: f64,
    /// Of a node, in each direction.
    pub link: String,
    /// Data and parity shards; or `replicas`.
    pub k: Option<f64>,
    pub m: Option<f64>,
    pub replicas: Option<f64>,
    /// Clients run in the servers, and their bytes cross no wire.
    #[serde(default)]
    pub clients_inside: bool,
    /// What the drives of a node carry in this direction.
    pub drives: Option<String>,
    /// Network traffic of a node that was published.
    pub printed: Option<String>,
    /// What the text says is the limit.
    pub limit: Option<LimitFact>,
    /// Whether traffic between nodes has links of its own.
    #[serde(default)]
    pub east_west_apart: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EngineFact {
    Minio,
    Ceph,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OpFact {
    Put,
    Get,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LimitFact {
    Network,
    Drives,
}

/// A mean over runs, of which the later ones were slower.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CliffFact {
    pub name: String,
    /// In the order in which a run measures them.
    pub phases: Vec<PhaseFact>,
    pub runs: f64,
    /// After which run it fell, as printed.
    pub after: f64,
}

/// One figure of the run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PhaseFact {
    pub name: String,
    pub mean: String,
    pub before: String,
    pub after: String,
}

/// A figure of the text, with the formula that gives it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClaimFact {
    pub says: String,
    pub formula: String,
    pub printed: String,
    #[serde(default)]
    pub is: ClaimedRelation,
    /// Where prices or other numbers of the formula are from, with a date.
    #[serde(default)]
    pub basis: String,
    #[serde(default)]
    pub explanation: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum ClaimedRelation {
    #[default]
    #[serde(rename = "equal")]
    Equal,
    #[serde(rename = "at most")]
    AtMost,
    #[serde(rename = "at least")]
    AtLeast,
}

impl AuditFacts {
    /// Reads the map.
    ///
    /// # Errors
    /// Where it is no TOML, or says what no map says.
    pub fn from_toml(text: &str) -> Result<Self, AuditError> {
        toml::from_str(text).map_err(|e| {
            let line = e.span().map(|s| text[..s.start.min(text.len())].matches('\n').count() + 1);
            AuditError::new(
                line.map_or("the map".to_owned(), |l| format!("map, line {l}")),
                plimsoll_model::text::said(e.message()),
                "See `plimsoll audit --help` for what a map holds.",
            )
        })
    }

    /// Facts or claims that are judged without a table.
    pub fn stands_alone(&self) -> bool {
        !(self.claims.is_empty()
            && self.traffic.is_empty()
            && self.cliffs.is_empty()
            && self.bursts.is_empty())
    }
}

/// A figure of the map, which has to be of the right kind.
pub(crate) fn figure(place: &str, text: &str, dimension: Dimension) -> Result<Quantity, AuditError> {
    let (q, _) = Quantity::printed(text).ok_or_else(|| {
        AuditError::new(
            place,
            format!("'{text}' is no number with a unit"),
            "Write one such as '600 MiB/s', '800 /s', '64 KiB', '60 s'.",
        )
    })?;
    if q.dimension == dimension {
        return Ok(q);
    }
    Err(AuditError::new(
        place,
        format!("'{text}' is {}, but should be {}", q.dimension.words(), dimension.words()),
        "Correct its unit.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_says_where_it_is_wrong() {
        let e = AuditFacts::from_toml("[given]\nconcurrency = 16\nsizes = 4\n").unwrap_err();
        assert!(e.place.contains("line 3") && e.problem.contains("sizes"), "{e:?}");
        let e = AuditFacts::from_toml("[[claim]]\nsays = 'x'\n").unwrap_err();
        assert!(e.problem.contains("formula"), "{e:?}");
        assert!(figure("here", "600 MiB", Dimension::BYTES_PER_S).unwrap_err().problem.contains("a size"));
    }
}
