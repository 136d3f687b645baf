//! What the options of an fio job say of its load.

use std::collections::BTreeMap;

use plimsoll_model::OpKind;

/// Engines that have one op in flight, whatever `iodepth` says. The default of Linux is among them.
const ONE_AT_A_TIME: [&str; 7] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice"];

/// Of a job, with those of the global section below them.
pub(super) struct Options<'a> {
    own: &'a BTreeMap<String, String>,
    global: &'a BTreeMap<String, String>,
}

impl<'a> Options<'a> {
    pub fn of(own: &'a BTreeMap<String, String>, global: &'a BTreeMap<String, String>) -> Self {
        Self { own, global }
    }

    /// By its names; fio writes them as the user did.
    fn get(&self, names: &[&str]) -> Option<&'a str> {
        let of = |from: &'a BTreeMap<String, String>| names.iter().find_map(|n| from.get(*n));
        of(self.own).or_else(|| of(self.global)).map(String::as_str)
    }

    fn number(&self, names: &[&str]) -> Option<u32> {
        self.get(names).and_then(|v| v.trim().parse().ok())
    }

    fn is_on(&self, name: &str) -> bool {
        self.get(&[name]).is_some_and(|v| v.is_empty() || v == "1" || v == "true")
    }

    /// Ops in flight at most, of all that the line is of.
    pub fn in_flight(&self) -> u32 {
        let engine = self.get(&["ioengine"]).unwrap_or("psync");
        let depth = if ONE_AT_A_TIME.contains(&engine) { 1 } else { self.number(&["iodepth"]).unwrap_or(1) };
        let jobs = if self.is_on("group_reporting") { self.number(&["numjobs"]).unwrap_or(1) } else { 1 };
        depth.max(1).saturating_mul(jobs.max(1))
    }

    /// Fixed block size of a direction: `4k`, or `4k,8k,16k` for reads, writes and trims.
    pub fn size(&self, kind: OpKind) -> Option<u64> {
        if self
            .get(&["bsrange", "blocksize_range", "bssplit", "bs_unaligned", "blocksize_unaligned"])
            .is_some()
        {
            return None;
        }
        let Some(text) = self.get(&["bs", "blocksize"]) else { return Some(4096) };
        let parts: Vec<&str> = text.split(',').collect();
        let at = match kind {
            OpKind::Read => 0,
            OpKind::Write => 1,
            _ => 2,
        };
        let part = parts.get(at).or(parts.last()).filter(|p| !p.is_empty()).or(parts.first())?;
        bytes(part, self.number(&["kb_base"]).unwrap_or(1024))
    }

    /// `randread`, as reports name loads.
    pub fn load(&self, kind: OpKind) -> String {
        let rw = self.get(&["rw", "readwrite"]).unwrap_or("read");
        let rw = rw.split(':').next().unwrap_or_default();
        match rw {
            "readwrite" => "rw".into(),
            "rw" | "randrw" | "read" | "write" | "randread" | "randwrite" | "trim" | "randtrim"
            | "trimwrite" => rw.to_owned(),
            _ => kind.name().to_owned(),
        }
    }

    /// What changes how figures are to be read.
    pub fn notes(&self) -> Vec<String> {
        let mut out = Vec::new();
        let direct = self.is_on("direct") || self.get(&["buffered"]) == Some("0");
        if !direct {
            out.push("not direct I/O: the page cache may have answered".to_owned());
        }
        let paced = ["rate", "rate_iops", "rate_min", "rate_iops_min", "thinktime"];
        if let Some(name) = paced.into_iter().find(|n| self.get(&[n]).is_some()) {
            out.push(format!("paced ({name}): times count from submission, not from when an op was due"));
        }
        if let Some(ramp) = self.get(&["ramp_time"]) {
            out.push(format!("without the first {ramp} (ramp_time)"));
        }
        out
    }
}

/// `4k`, `4KiB`, `1m`: fio's sizes. With kb_base=1000 its units are swapped: k is 1000 and Ki 1024; else k and Ki are 1024, and kB 1000.
fn bytes(text: &str, kb_base: u32) -> Option<u64> {
    let text = text.trim().to_lowercase();
    let digits = text.trim_end_matches(|c: char| c.is_alphabetic());
    let number: u64 = digits.parse().ok()?;
    let unit = text[digits.len()..].trim_end_matches('b');
    let binary = unit.ends_with('i') || kb_base != 1000 && !text.ends_with('b');
    let power = match unit.trim_end_matches('i') {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return None,
    };
    let base: u64 = if binary { 1024 } else { 1000 };
    number.checked_mul(base.pow(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_fios() {
        for (text, size) in [("4k", 4096), ("512", 512), ("1m", 1 << 20), ("4KiB", 4096), ("4kb", 4000)] {
            assert_eq!(bytes(text, 1024), Some(size), "{text}");
        }
        assert_eq!((bytes("4k", 1000), bytes("4ki", 1000), bytes("x", 1024)), (Some(4000), Some(4096), None));
    }

    #[test]
    fn in_flight_is_of_the_engine() {
        let of = |all: &[(&str, &str)]| -> BTreeMap<String, String> {
            all.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
        };
        let global = of(&[("iodepth", "8"), ("ioengine", "libaio")]);
        assert_eq!(Options::of(&of(&[]), &global).in_flight(), 8);
        assert_eq!(Options::of(&of(&[("numjobs", "2"), ("group_reporting", "1")]), &global).in_flight(), 16);
        assert_eq!(Options::of(&of(&[("numjobs", "2")]), &global).in_flight(), 8);
        assert_eq!(Options::of(&of(&[("ioengine", "psync")]), &global).in_flight(), 1);
        assert_eq!(Options::of(&of(&[("bs", "4k,8k")]), &global).size(OpKind::Write), Some(8192));
        assert_eq!(Options::of(&of(&[("bsrange", "4k-8k")]), &global).size(OpKind::Write), None);
    }
}
