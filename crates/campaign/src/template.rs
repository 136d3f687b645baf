//! Files to start from: what the published comparisons did, with what only the user knows marked, and small ones for this machine.

/// Name, what it is for, the file for others' storage, and that for this machine alone.
pub const TEMPLATES: [(&str, &str, &str, &str); 5] = [
    (
        "object-tiers",
        "tiers of object storage: PUT and GET by size, caps, metadata ops beside them",
        include_str!("../templates/object-tiers.toml"),
        include_str!("../templates/object-tiers-embedded.toml"),
    ),
    (
        "cluster-speed",
        "a cluster: best concurrency of PUT and GET by parity, nodes, TLS",
        include_str!("../templates/cluster-speed.toml"),
        include_str!("../templates/cluster-speed-embedded.toml"),
    ),
    (
        "gateway-cluster",
        "gateways of a cluster: rates by size, nodes, layout and TLS, what limits them, their CPU and memory",
        include_str!("../templates/gateway-cluster.toml"),
        include_str!("../templates/gateway-cluster-embedded.toml"),
    ),
    (
        "block-tiers",
        "tiers of block storage: random and sequential, read, write and mixed, by block size",
        include_str!("../templates/block-tiers.toml"),
        include_str!("../templates/block-tiers-embedded.toml"),
    ),
    (
        "disks",
        "disks by kind, size and cache: write, read and IOPS of the file benchmark",
        include_str!("../templates/disks.toml"),
        include_str!("../templates/disks-embedded.toml"),
    ),
];

/// A template by its name; for this machine alone with `is_embedded`.
pub fn template(name: &str, is_embedded: bool) -> Option<&'static str> {
    TEMPLATES.iter().find(|t| t.0 == name).map(|t| if is_embedded { t.3 } else { t.2 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::expand;
    use crate::file::CampaignFile;

    /// Seed of what is told of gateways: each part of the matrix is there, and what servers do is observed in all of it.
    #[test]
    fn gateways_are_measured_over_sizes_nodes_layouts_clients_and_tls() {
        for (is_embedded, cells_of_all) in [(true, 36), (false, 54)] {
            let text = template("gateway-cluster", is_embedded).unwrap().replace("FILL-IN", "x1");
            let file = CampaignFile::from_toml(&text).unwrap();
            let cells = expand(&file).unwrap();
            assert_eq!(cells.len(), cells_of_all, "{is_embedded}");
            let has = |label: &str, value: &str| {
                cells.iter().any(|c| c.labels.get(label).is_some_and(|v| v == value))
            };
            for (label, value) in [("tls", "on"), ("ec", "2+2"), ("nodes", "4")] {
                assert!(has(label, value), "{label}={value}");
            }
            for size in ["64KiB", "4MiB", "64MiB", "256MiB"] {
                for op in ["PUT", "GET"] {
                    assert!(
                        cells.iter().any(|c| c.workload.starts_with(op) && c.workload.contains(size)),
                        "{op} {size}"
                    );
                }
            }
            if is_embedded {
                assert!(
                    file.subjects.iter().all(|s| !s.observe.is_empty()) || !file.options.observe.is_empty()
                );
                // More clients, smaller set of drives: the same cell in several numbers.
                let clients = cells.iter().filter(|c| c.workload.contains("by clients")).count();
                assert_eq!(clients, 4);
                assert_eq!(file.published.unwrap().ratios.len(), 10);
            }
        }
    }

    /// Where it will be is not known before a run begins; what it is made of is.
    #[test]
    fn a_cluster_that_a_run_brings_along_labels_its_cells() {
        let text = template("cluster-speed", true).unwrap();
        let bare: Vec<&str> = text.lines().filter(|l| !l.starts_with("labels = ")).collect();
        let cells = expand(&CampaignFile::from_toml(&bare.join("\n")).unwrap()).unwrap();
        let of = |subject: &str| &cells.iter().find(|c| c.subject == subject).unwrap().labels;
        assert_eq!((of("EC 2")["nodes"].as_str(), of("EC 2")["ec"].as_str()), ("4", "14+2"));
        assert_eq!(of("EC 4")["ec"], "12+4");
        // Whoever writes one knows better.
        let cells = expand(&CampaignFile::from_toml(text).unwrap()).unwrap();
        assert_eq!(cells.iter().find(|c| c.subject == "EC 2").unwrap().labels["ec"], "2");
    }

    /// A figure that belongs to no cell would be told to lack ours, for ever.
    #[test]
    fn every_figure_that_was_published_is_of_a_cell_that_is_measured() {
        for (name, figures) in [
            ("object-tiers", 44),
            ("cluster-speed", 6),
            ("gateway-cluster", 6),
            ("block-tiers", 32),
            ("disks", 22),
        ] {
            let file = CampaignFile::from_toml(template(name, true).unwrap()).unwrap();
            let cells = expand(&file).unwrap();
            let published = file.published.unwrap();
            assert_eq!(published.figures.len(), figures, "{name}");
            let is = |subject: &str, workload: &str| {
                assert!(
                    cells.iter().any(|c| c.subject == subject && c.workload == workload),
                    "{name}: {subject}, {workload}"
                );
            };
            published.figures.iter().for_each(|f| is(&f.subject, &f.workload));
            published.cliffs.iter().for_each(|c| is(&c.subject, &c.workload));
            published.costs.iter().for_each(|c| is(&c.subject, &c.workload));
            published.limits.iter().for_each(|l| is(&l.subject, &l.workload));
            published.ratios.iter().for_each(|r| {
                is(&r.subject, &r.workload);
                is(&r.over, &r.workload);
            });
            for s in published.subjects {
                assert!(cells.iter().any(|c| c.subject == s.name), "{name}: {}", s.name);
            }
        }
    }
}
