//! What pools hold, and what that takes of the drives: bytes on drives for each byte stored, over all that lies there.

use std::collections::BTreeMap;

use plimsoll_model::cluster::Redundancy;
use plimsoll_model::observed::{ServerQuantity as Q, ServerReading};
use plimsoll_model::summary::servers::PoolUse;
use plimsoll_store::ObservedSource;

/// Less stored makes no ratio: what a pool takes is rounded up object by object. Guess.
const LEAST_BYTES: f64 = 1e6;

/// As the last reading of each pool has it, the fullest first.
pub fn of_run(sources: &[ObservedSource]) -> Vec<PoolUse> {
    let mut all: BTreeMap<String, (u64, PoolUse)> = BTreeMap::new();
    let answers = sources.iter().flat_map(|s| &s.scrapes).filter(|s| s.gap.is_none());
    for scrape in answers {
        for subject in scrape.subjects.iter().filter(|s| s.daemon.is_empty()) {
            for pool in of_readings(&subject.readings) {
                let newest = all.entry(pool.name.clone()).or_default();
                if scrape.at_ns >= newest.0 {
                    *newest = (scrape.at_ns, pool);
                }
            }
        }
    }
    let mut pools: Vec<PoolUse> = all.into_values().map(|(_, pool)| pool).collect();
    pools.sort_by(|a, b| b.used_bytes.total_cmp(&a.used_bytes).then_with(|| a.name.cmp(&b.name)));
    pools
}

/// Pools that are named, and of which both counts are there.
fn of_readings(readings: &[ServerReading]) -> Vec<PoolUse> {
    let of =
        |q: Q, number: &str| readings.iter().find(|r| r.quantity == q && r.label == number).map(|r| r.value);
    let pool = |r: &ServerReading| {
        let (number, rest) = r.label.split_once(' ')?;
        let (name, redundancy) = rest.rsplit_once(' ')?;
        let (stored, used) = (of(Q::PoolStoredBytes, number)?, of(Q::PoolUsedBytes, number)?);
        Some(PoolUse {
            name: name.to_owned(),
            redundancy: redundancy.to_owned(),
            stored_bytes: stored,
            used_bytes: used,
            per_byte: (stored >= LEAST_BYTES).then(|| used / stored),
            expected: redundancy.parse::<Redundancy>().ok().map(Redundancy::on_drives),
        })
    };
    readings.iter().filter(|r| r.quantity == Q::PoolRedundancy).filter_map(pool).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::Scrape;
    use plimsoll_model::observed::ReadSubject;

    fn told(at_ns: u64, pools: &[(&str, &str, f64, f64)]) -> Scrape {
        let reading = |quantity, label: &str, value| ServerReading { quantity, label: label.into(), value };
        let of = |(n, (name, redundancy, stored, used)): (usize, &(&str, &str, f64, f64))| {
            let number = n.to_string();
            [
                reading(Q::PoolRedundancy, &format!("{number} {name} {redundancy}"), 1.0),
                reading(Q::PoolStoredBytes, &number, *stored),
                reading(Q::PoolUsedBytes, &number, *used),
            ]
        };
        let readings = pools.iter().enumerate().flat_map(of).collect();
        Scrape {
            at_ns,
            subjects: vec![ReadSubject { host: String::new(), daemon: String::new(), readings }],
            ..Scrape::default()
        }
    }

    #[test]
    fn a_pool_is_what_its_last_reading_says() {
        let source = ObservedSource {
            observes: "ceph mgr".into(),
            every: 1,
            scrapes: vec![
                told(1, &[("data", "ec:2+2", 1e9, 2e9), ("gone", "replica:3", 1e7, 3e7)]),
                told(
                    9,
                    &[
                        ("data", "ec:2+2", 3e9, 6.6e9),
                        (".mgr", "replica:3", 2e5, 1.8e6),
                        ("odd", "what:1", 2e6, 2e6),
                    ],
                ),
            ],
        };
        let all = of_run(&[source]);
        let of = |name: &str| all.iter().find(|p| p.name == name).unwrap();
        assert_eq!(all.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["data", "gone", "odd", ".mgr"]);
        assert_eq!((of("data").per_byte, of("data").expected), (Some(2.2), Some(2.0)));
        assert_eq!((of(".mgr").per_byte, of(".mgr").expected), (None, Some(3.0)));
        assert_eq!((of("odd").redundancy.as_str(), of("odd").expected), ("what:1", None));
        assert!(of_run(&[]).is_empty());
    }
}
