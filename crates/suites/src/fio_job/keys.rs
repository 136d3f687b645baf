//! Which keys of fio there are for us: canonical names, keys that are the way things are done here
//! anyway, and near misses for error messages.

/// fio's other names for a key.
const ALIASES: &[(&str, &str)] = &[
    ("readwrite", "rw"),
    ("blocksize", "bs"),
    ("blocksize_range", "bsrange"),
    ("io_limit", "io_size"),
    ("nr_files", "nrfiles"),
    ("timeout", "runtime"),
    ("wait_for_previous", "stonewall"),
    ("start_delay", "startdelay"),
    ("file_size", "filesize"),
    ("fsync_on_close", "end_fsync"),
];

/// Keys that are read.
pub const SUPPORTED: &[&str] = &[
    "rw",
    "rwmixread",
    "rwmixwrite",
    "bs",
    "bssplit",
    "bsrange",
    "size",
    "io_size",
    "filesize",
    "filename",
    "directory",
    "nrfiles",
    "offset",
    "iodepth",
    "numjobs",
    "direct",
    "buffered",
    "invalidate",
    "ioengine",
    "runtime",
    "time_based",
    "ramp_time",
    "loops",
    "stonewall",
    "new_group",
    "group_reporting",
    "norandommap",
    "random_generator",
    "random_distribution",
    "randseed",
    "rate",
    "rate_iops",
    "rate_process",
    "fsync",
    "fdatasync",
    "end_fsync",
    "verify",
    "do_verify",
    "verify_fatal",
    "unlink",
    "refill_buffers",
    "buffer_compress_percentage",
    "dedupe_percentage",
    "percentile_list",
    "startdelay",
    "kb_base",
    "name",
    "overwrite",
];

/// Keys whose meaning is how Plimsoll works in any case, or that change only how fio measures.
pub const NEUTRAL: &[(&str, &str)] = &[
    ("thread", "jobs are always threads"),
    ("description", "text"),
    ("gtod_reduce", "latencies are always measured"),
    ("clat_percentiles", "always printed"),
    ("lat_percentiles", "always recorded"),
    ("slat_percentiles", "always recorded"),
    ("disable_lat", "latencies are always measured"),
    ("disable_clat", "latencies are always measured"),
    ("disable_slat", "latencies are always measured"),
    ("disable_bw_measurement", "always measured"),
    ("disk_util", "always printed"),
    ("unit_base", "both units are printed"),
    ("randrepeat", "determined by the seed: see randseed"),
    ("allrandrepeat", "determined by the seed: see randseed"),
    ("fallocate", "files are written in full before they are read, and allocated before they are written"),
    ("create_serialize", "layout is not measured"),
    ("create_fsync", "layout is always synced"),
    ("scramble_buffers", "blocks are always unique"),
    ("registerfiles", "files are registered if the kernel supports it"),
    ("fixedbufs", "buffers are registered if the kernel supports it"),
    ("bwavgtime", "determined by the run's time slices"),
    ("iopsavgtime", "determined by the run's time slices"),
    ("log_avg_msec", "determined by the run's time slices"),
    ("eta_newline", "affects display only"),
    ("significant_figures", "affects display only"),
];

/// The name under which a key is known here, whatever alias was written.
pub fn canonical(key: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == key).map_or(key, |(_, name)| *name)
}

pub fn is_neutral(key: &str) -> bool {
    NEUTRAL.iter().any(|(k, _)| *k == key)
}

/// The supported key that is spelt most alike, if any is close.
pub fn nearest(key: &str) -> Option<&'static str> {
    SUPPORTED
        .iter()
        .map(|k| (distance(key, k), *k))
        .min()
        .filter(|(d, k)| *d <= 1 + k.len() / 4)
        .map(|(_, k)| k)
}

/// Levenshtein's distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let change = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_are_found() {
        assert_eq!(nearest("iodeph"), Some("iodepth"));
        assert_eq!(nearest("run_time"), Some("runtime"));
        assert_eq!(nearest("zonemode"), None);
    }

    #[test]
    fn every_alias_leads_to_a_supported_key() {
        for (alias, name) in ALIASES {
            assert!(SUPPORTED.contains(name), "{name}");
            assert!(!SUPPORTED.contains(alias), "{alias}");
        }
        for (key, _) in NEUTRAL {
            assert!(!SUPPORTED.contains(key), "{key}");
        }
    }
}
