//! How data is kept more than once, in the text form that Ceph's pools have, too.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// More shards of an object are a slip of the pen.
const MOST_SHARDS: u32 = 1024;

/// What becomes of each object on the drives. Written `ec:6+2`, `replica:3` or `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Redundancy {
    /// Once.
    None,
    /// Data and parity shards.
    Erasure {
        /// k: so many are read.
        data: u32,
        /// m: so many may be lost.
        parity: u32,
    },
    /// So many whole copies.
    Replicas(u32),
}

impl Redundancy {
    /// Shards, or copies, of an object.
    pub fn shards(self) -> u32 {
        match self {
            Self::None => 1,
            Self::Erasure { data, parity } => data + parity,
            Self::Replicas(n) => n,
        }
    }

    /// Bytes on drives for each byte stored.
    pub fn on_drives(self) -> f64 {
        match self {
            Self::None => 1.0,
            Self::Erasure { data, parity } => f64::from(data + parity) / f64::from(data),
            Self::Replicas(n) => f64::from(n),
        }
    }
}

impl FromStr for Redundancy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form =
            || format!("'{text}' is no redundancy: write ec:6+2 (data and parity shards), replica:3 or none");
        let number = |t: &str, least: u32| {
            let n = t.trim().parse::<u32>().ok().filter(|n| (least..=MOST_SHARDS).contains(n));
            n.ok_or_else(form)
        };
        let lower = text.trim().to_ascii_lowercase();
        if lower == "none" {
            return Ok(Self::None);
        }
        if let Some(copies) = lower.strip_prefix("replica:") {
            return Ok(Self::Replicas(number(copies, 1)?));
        }
        let (data, parity) = lower.strip_prefix("ec:").and_then(|t| t.split_once('+')).ok_or_else(form)?;
        Ok(Self::Erasure { data: number(data, 1)?, parity: number(parity, 0)? })
    }
}

impl fmt::Display for Redundancy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.pad("none"),
            Self::Erasure { data, parity } => f.pad(&format!("ec:{data}+{parity}")),
            Self::Replicas(n) => f.pad(&format!("replica:{n}")),
        }
    }
}

impl Serialize for Redundancy {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Redundancy {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Redundancy {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Redundancy".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "How data is kept more than once: `ec:6+2`, `replica:3` or `none`.",
            "type": "string",
            "pattern": "^(ec:[0-9]+[+][0-9]+|replica:[0-9]+|none)$"
        })
    }
}
