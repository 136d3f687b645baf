//! Cluster files that are read, and those that are not.

use super::*;

const BOX: &str = r#"
version = 1
software = "minio"
redundancy = "ec:6+2"
set_size = 8

[[node]]
name = "s{1...4}"
addresses = ["10.77.0.{1...4}"]
cpus = 0.3
drive = [{ path = "/srv/d{1...2}", size = "1GiB", write = "50MB/s" }]
nic = [{ rate = "200mbit" }]
"#;

fn told(text: &str) -> String {
    Cluster::from_toml(text).unwrap_err().to_string()
}

#[test]
fn four_nodes_of_two_drives() {
    let c = Cluster::from_toml(BOX).unwrap();
    assert_eq!((c.node_count(), c.drive_count()), (4, 8));
    assert_eq!(c.labels(), BTreeMap::from([("nodes".into(), "4".into()), ("ec".into(), "6+2".into())]));
    for host in ["s3", "s3:9000", "10.77.0.4", "10.77.0.4:9000"] {
        assert!(c.node_of(host).is_some(), "{host}");
    }
    assert!(c.node_of("s5").is_none() && c.node_of("10.77.0.40").is_none());
    let node = c.node_of("s1").unwrap();
    assert_eq!(node.only_nic().and_then(ClusterNic::most_in), Some(25e6));
    assert_eq!(node.drive("vdb").and_then(|d| d.write).map(|r| r.0), Some(50e6));
    assert_eq!((c.clients, c.is_east_west_apart()), (ClientPlace::Apart, false));
    assert_eq!(c.spread(None).unwrap().put().drives, 8.0 / 6.0);
    // What is written reads back.
    assert_eq!(Cluster::from_toml(&c.to_toml()).unwrap(), c);
}

#[test]
fn a_class_has_a_redundancy_of_its_own_and_gateways_apart_no_arithmetic() {
    let text = BOX.replace("[[node]]", "[classes]\nREDUCED_REDUNDANCY = \"ec:7+1\"\n[[node]]");
    let mut c = Cluster::from_toml(&text).unwrap();
    assert_eq!(c.spread(Some("REDUCED_REDUNDANCY")).unwrap().parity, 1.0);
    assert_eq!(c.spread(Some("STANDARD")).unwrap().parity, 2.0);
    c.gateways = GatewayPlace::Apart;
    assert_eq!(c.spread(None), None);
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_a_remedy() {
    for (from, to, parts) in [
        ("version = 1", "version = 2", &["version", "Write version = 1"][..]),
        ("set_size = 8", "sets = 8", &["unknown field `sets`", "line 5"]),
        ("ec:6+2", "6+2", &["is no redundancy", "replica:3"]),
        ("set_size = 8", "set_size = 16", &["ec:6+2 has 8 shards", "16 drives"]),
        ("200mbit", "200m", &["line rate", "25Gbit/s"]),
        ("s{1...4}", "s{4...1}", &["node 1, name", "backwards"]),
        ("10.77.0.{1...4}", "10.77.0.1", &["stands for 1 and", "as many"]),
        ("cpus = 0.3", "cpus = 0", &["node 1, cpus"]),
        ("nic = [{ rate", "nic = [{ rate = \"1Gbit/s\" }, { rate", &["nic 1", "no name"]),
        ("d{1...2}", "d{1...1}", &["needs 8 drives", "have 4"]),
        ("\"minio\"", "\"mi\\u001b[31mnio\"", &["software", "printable"]),
    ] {
        let text = BOX.replacen(from, to, 1);
        assert_ne!(text, BOX, "{from}");
        let said = told(&text);
        assert!(parts.iter().all(|p| said.contains(p)) && !said.contains('\u{1b}'), "{from}: {said}");
    }
    let none = &BOX[..BOX.find("[[node]]").unwrap()];
    assert!(told(none).contains("node"));
    let twice = format!("{BOX}\n[[node]]\nname = \"s2\"\n");
    assert!(told(&twice).contains("'s2' is there twice"));
}

#[test]
fn interfaces_and_drives_are_found_by_name() {
    let text = BOX.replace(
        "nic = [{ rate = \"200mbit\" }]",
        "nic = [{ name = \"eth0\", rate = \"25Gbit/s\", network = \"clients\" }, { name = \"eth1\", rate = \"100Gbit/s\", sends = \"97Gbit/s\", network = \"servers\" }]",
    );
    let c =
        Cluster::from_toml(&text.replace("path = \"/srv/d{1...2}\"", "device = \"nvme{0...1}n1\"")).unwrap();
    let node = c.node_of("s4").unwrap();
    let eth1 = node.nic("eth1").unwrap();
    assert_eq!((eth1.most_in(), eth1.most_out()), (Some(12.5e9), Some(97e9 / 8.0)));
    assert!(c.is_east_west_apart() && node.only_nic().is_none() && node.nic("eth2").is_none());
    assert!(node.drive("nvme1n1").is_some() && node.drive("sda").is_none());
}
