//! What is asked of a phase of elbencho, and how it is picked out of a document.

use std::collections::BTreeMap;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// All that is asked of a phase: columns of the one form, and paths of the other. Nothing else is kept.
pub(super) const ASKED: [&str; 72] = [
    "ISO date",
    "path type",
    "hosts",
    "threads",
    "block size",
    "block size [bytes]",
    "direct IO",
    "directIO",
    "direct",
    "random",
    "rand",
    "IO depth",
    "io depth",
    "iodepth",
    "operation",
    "version",
    "command",
    "time ms [last]",
    "entries/s [last]",
    "IOPS [last]",
    "MiB/s [last]",
    "entries [last]",
    "Ent lat us [min]",
    "Ent lat us [avg]",
    "Ent lat us [max]",
    "IO lat us [min]",
    "IO lat us [avg]",
    "IO lat us [max]",
    "rwmix read entries/s [last]",
    "rwmix read IOPS [last]",
    "rwmix read MiB/s [last]",
    "rwmix read entries [last]",
    "rwmix read Ent lat us [min]",
    "rwmix read Ent lat us [avg]",
    "rwmix read Ent lat us [max]",
    "rwmix read IO lat us [min]",
    "rwmix read IO lat us [avg]",
    "rwmix read IO lat us [max]",
    "phase_type",
    "iso_start_date",
    "config.version",
    "config.command",
    "config.hosts",
    "config.threads",
    "config.io_depth",
    "config.block_size",
    "config.direct_io",
    "config.path_type",
    "config.random_offsets",
    "last_done.elapsed_time_ms",
    "last_done.iops",
    "last_done.entries/s",
    "last_done.entries",
    "last_done.bytes/s",
    "last_done.bytes",
    "last_done.latency.IO.min_us",
    "last_done.latency.IO.avg_us",
    "last_done.latency.IO.max_us",
    "last_done.latency.entries.min_us",
    "last_done.latency.entries.avg_us",
    "last_done.latency.entries.max_us",
    "last_done.rwmix_read.iops",
    "last_done.rwmix_read.entries/s",
    "last_done.rwmix_read.entries",
    "last_done.rwmix_read.bytes/s",
    "last_done.rwmix_read.bytes",
    "last_done.latency.IO.rwmix_read.min_us",
    "last_done.latency.IO.rwmix_read.avg_us",
    "last_done.latency.IO.rwmix_read.max_us",
    "last_done.latency.entries.rwmix_read.min_us",
    "last_done.latency.entries.rwmix_read.avg_us",
    "last_done.latency.entries.rwmix_read.max_us",
];

/// A phase, whatever the form: value by name.
pub(super) struct Phase {
    pub fields: BTreeMap<&'static str, String>,
    /// Bytes per second, where the form has them exactly.
    pub exact_bytes: bool,
}

impl Phase {
    pub fn text(&self, names: &[&str]) -> &str {
        names.iter().find_map(|n| self.fields.get(*n)).map_or("", String::as_str)
    }

    pub fn number(&self, names: &[&str]) -> Option<f64> {
        self.text(names).trim().parse().ok().filter(|v: &f64| v.is_finite() && *v >= 0.0)
    }

    pub fn whole(&self, names: &[&str]) -> u32 {
        self.number(names).map_or(0, |v| v as u32)
    }
}

/// Reads `last_done.latency.IO.avg_us` from objects in objects; its writer makes a text of every number. What is not asked for is passed
/// over as it is read.
impl<'de> Deserialize<'de> for Phase {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut fields = BTreeMap::new();
        Branch { path: String::new(), fields: &mut fields }.deserialize(from)?;
        Ok(Self { fields, exact_bytes: true })
    }
}

/// What stands below a path of which something is asked, or at it.
struct Branch<'a> {
    path: String,
    fields: &'a mut BTreeMap<&'static str, String>,
}

impl Branch<'_> {
    fn keep(self, text: impl Into<String>) {
        if let Some(name) = ASKED.iter().find(|n| **n == self.path) {
            self.fields.insert(name, text.into());
        }
    }
}

impl<'de> DeserializeSeed<'de> for Branch<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Branch<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a phase of elbencho")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let path = if self.path.is_empty() { key } else { format!("{}.{key}", self.path) };
            let leads =
                |n: &&str| n.strip_prefix(path.as_str()).is_some_and(|r| r.is_empty() || r.starts_with('.'));
            if ASKED.iter().any(leads) {
                map.next_value_seed(Branch { path, fields: &mut *self.fields })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_str<E>(self, v: &str) -> Result<(), E> {
        self.keep(v);
        Ok(())
    }

    fn visit_bool<E>(self, v: bool) -> Result<(), E> {
        self.keep(v.to_string());
        Ok(())
    }

    fn visit_u64<E>(self, v: u64) -> Result<(), E> {
        self.keep(v.to_string());
        Ok(())
    }

    fn visit_i64<E>(self, v: i64) -> Result<(), E> {
        self.keep(v.to_string());
        Ok(())
    }

    fn visit_f64<E>(self, v: f64) -> Result<(), E> {
        self.keep(v.to_string());
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}
