//! `plimsoll describe cluster`: what a cluster is made of, asked of its servers, as the file that `--cluster` takes.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use plimsoll_model::Cluster;
use plimsoll_model::net::NetRecord;
use plimsoll_model::plan::{ObserveSpec, TlsSpec};
use plimsoll_model::text::clean;
use plimsoll_model::units::{BytesRate, LineRate};
use plimsoll_report::fio::{Ceiling, Rates};
use plimsoll_setup::observe::{DescribeKeys, describe as ask};

use super::net_exec;
use crate::ceiling::{self, Recorded};
use crate::fault::{Exit, Fault};
use crate::{out_file, output, runs_dir};

pub const EXAMPLES: &str = "\
Examples:
  plimsoll describe cluster minio=http://s1:9000 -o cluster.toml
  plimsoll describe cluster minio=http://s1:9000 'node=http://s{1...4}:9100'
  plimsoll describe cluster ceph=http://mgr:9283 --ceiling last -o cluster.toml

The file is to be looked at and completed: what nobody told is not in it. Keys \
are found as for the S3 commands; MinIO's users need admin:ServerInfo.";

#[derive(Debug, Clone, Subcommand)]
pub enum DescribeCommand {
    /// Nodes, drives, interfaces and redundancy, as a file for --cluster
    Cluster(DescribeClusterCommand),
}

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct DescribeClusterCommand {
    /// Who is asked: minio, ceph (its manager) or node (node_exporter), and where
    #[arg(value_name = "MAKE=URL", required = true)]
    pub sources: Vec<String>,
    /// Write the file here; nothing that exists is overwritten [default: standard output]
    #[arg(long, short = 'o', value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// What the cluster is called in reports
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// What drives, or the network, were measured to give at most: a run of `plimsoll drive` or `plimsoll net`, or its JSON; may be repeated
    #[arg(long, value_name = "RUN|FILE")]
    pub ceiling: Vec<String>,
    /// Profile in ~/.aws/config and ~/.aws/credentials
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Region to sign for [default: that of the profile, or us-east-1]
    #[arg(long, value_name = "REGION")]
    pub region: Option<String>,
    /// File with the bearer token of exporters
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<String>,
    /// PEM file of certificate authorities to trust instead of the system's
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<String>,
    /// Accept any server certificate
    #[arg(long, conflicts_with = "ca_file")]
    pub insecure: bool,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", env = "PLIMSOLL_RUNS")]
    pub runs_dir: Option<PathBuf>,
}

pub fn describe(c: &DescribeCommand) -> Result<Exit, Fault> {
    let DescribeCommand::Cluster(c) = c;
    if let Some(file) = &c.output {
        is_free(file)?;
    }
    let specs: Vec<ObserveSpec> = c.sources.iter().map(|text| source(c, text)).collect::<Result<_, _>>()?;
    let records: Vec<Record> = c.ceiling.iter().map(|given| record(c, given)).collect::<Result<_, _>>()?;
    let tls = TlsSpec { ca_file: c.ca_file.clone(), insecure: c.insecure, ..TlsSpec::default() };
    let keys = DescribeKeys { profile: c.profile.clone(), region: c.region.clone() };
    let found = ask(&specs, &keys, &tls)?.cluster();
    let (mut cluster, mut remarks) = found
        .ok_or_else(|| Fault::input("no node was found", "Ask the servers themselves, or their hosts."))?;
    cluster.name = c.name.clone();
    for r in &records {
        match r {
            Record::Drives(drives) => with_drives(&mut cluster, drives, &mut remarks),
            Record::Network(network) => with_network(&mut cluster, network, &mut remarks),
        }
    }
    cluster.check().map_err(|e| {
        Fault::input(format!("what the servers say makes no cluster: {e}"), "Write the file by hand.")
    })?;
    let text = as_file(&cluster, &remarks);
    match &c.output {
        Some(file) => out_file::write_new(file, text.as_bytes())?,
        None => output::print(&text)?,
    }
    for r in &remarks {
        output::tell(format_args!("plimsoll: {r}"));
    }
    if let Some(file) = &c.output {
        output::tell(format_args!(
            "plimsoll: {} node(s), {} drive(s); complete {} and give it to --cluster",
            cluster.node_count(),
            cluster.drive_count(),
            file.display()
        ));
    }
    Ok(Exit::Valid)
}

fn source(c: &DescribeClusterCommand, text: &str) -> Result<ObserveSpec, Fault> {
    let spec: ObserveSpec = text
        .parse()
        .map_err(|why: String| Fault::input(why, "Write MAKE=URL, for example minio=http://s1:9000"))?;
    Ok(ObserveSpec { token_file: c.token_file.clone(), ..spec })
}

enum Record {
    Drives(Box<Ceiling>),
    Network(Box<NetRecord>),
}

fn record(c: &DescribeClusterCommand, given: &str) -> Result<Record, Fault> {
    let runs = c.runs_dir.as_deref();
    if let Ok(Some(network)) = net_exec::stored(&runs_dir::root(runs), given) {
        network
            .usable_ceiling()
            .map_err(|no| Fault::input(format!("--ceiling {given}: {}", clean(&no.why)), no.remedy))?;
        return Ok(Record::Network(Box::new(network)));
    }
    match ceiling::of_drives(given, runs)? {
        Recorded::Drives(record) => Ok(Record::Drives(record)),
        Recorded::Run(dir) => Err(Fault::input(
            format!("--ceiling {}: it is a run of neither drives nor a network", dir.id()),
            "Name a run of `plimsoll drive` or `plimsoll net`.",
        )),
    }
}

/// What is written in a file has no digits that no measurement has.
fn whole_mb(rate: f64) -> BytesRate {
    BytesRate(if rate > 1e7 { (rate / 1e6).round() * 1e6 } else { rate.round() })
}

fn whole_mbit(rate: f64) -> LineRate {
    LineRate((rate * 8.0 / 1e6).round().max(1.0) * 1e6 / 8.0)
}

fn median(mut all: Vec<f64>) -> Option<f64> {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

/// Drives that were measured alone stand for all that have no figures: the median of them.
fn with_drives(cluster: &mut Cluster, record: &Ceiling, remarks: &mut Vec<String>) {
    let sound = record.drives.iter().filter(|d| d.error.is_none() && d.invalid.is_empty());
    let rates: Vec<Rates> = sound.map(|d| d.alone).collect();
    let of = |pick: fn(&Rates) -> Option<f64>| median(rates.iter().filter_map(pick).collect());
    let (read, write) = (of(|r| r.read_bytes_per_s), of(|r| r.write_bytes_per_s));
    if read.is_none() && write.is_none() {
        remarks.push(format!("{} has no rate of a drive alone that may be used", record.run));
        return;
    }
    let source = format!("drive {}, median of {}", record.run, rates.len());
    for d in cluster.nodes.iter_mut().flat_map(|n| &mut n.drives) {
        (d.read, d.write) = (read.map(whole_mb), write.map(whole_mb));
        d.source = Some(source.clone());
    }
}

/// What each host sent and took in at most, as its interface counts it.
fn with_network(cluster: &mut Cluster, record: &NetRecord, remarks: &mut Vec<String>) {
    let source = format!("net {}", record.id);
    let mut remark = |text: String| {
        if !remarks.contains(&text) {
            remarks.push(text);
        }
    };
    for (place, host) in record.hosts.iter().enumerate() {
        let most = |is_out: bool| {
            let of_stage = |stage: &plimsoll_model::net::NetStage| {
                let own = stage.lanes.iter().filter(|l| if is_out { l.from == place } else { l.to == place });
                let carried = own.map(|l| {
                    let payload = l.framing.map_or(1.0, |f| f.payload_share());
                    l.bytes_per_s.map_or(0.0, |e| e.value) / payload
                });
                carried.sum::<f64>()
            };
            record.stages.iter().map(of_stage).reduce(f64::max).filter(|rate| *rate > 0.0)
        };
        let (sends, receives) = (most(true), most(false));
        let named = [host.name.as_str(), host.host.as_str()];
        let addresses = host.interfaces.iter().map(|i| i.address.as_str());
        let Some(at) = named.into_iter().chain(addresses).find_map(|n| cluster.node_index_of(n)) else {
            continue;
        };
        let node = &mut cluster.nodes[at];
        match &mut node.nics[..] {
            [nic] => {
                if node.name.contains('{') {
                    // A pattern has one figure: the least is true of each.
                    remark(format!("{} stands for several: the least of {source} is written", node.name));
                }
                let least = |old: Option<LineRate>, new: Option<f64>| {
                    let own = old.filter(|_| nic.source.as_ref() == Some(&source)).map(|r| r.0);
                    own.into_iter().chain(new).reduce(f64::min).map(whole_mbit)
                };
                let (sends, receives) = (least(nic.sends, sends), least(nic.receives, receives));
                (nic.sends, nic.receives, nic.source) = (sends, receives, Some(source.clone()));
            }
            _ => remark(format!(
                "{} has no interface, or several: write sends and receives by hand",
                node.name
            )),
        }
    }
}

fn as_file(cluster: &Cluster, remarks: &[String]) -> String {
    let mut out = String::from(
        "# What the servers said of themselves (plimsoll describe cluster). Complete it, and give it to --cluster.\n",
    );
    for r in remarks {
        out.push_str(&format!("# {}\n", clean(r)));
    }
    format!("{out}{}", cluster.to_toml())
}

/// It may have been edited: whatever is there is somebody's.
fn is_free(file: &Path) -> Result<(), Fault> {
    match file.symlink_metadata() {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        Err(e) => Err(out_file::cannot(file, &e.to_string())),
        Ok(_) => Err(out_file::cannot(file, "it exists, and may have been edited")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::net::NetAsked;
    use plimsoll_report::fio::Drive;

    fn cluster() -> Cluster {
        Cluster::from_toml(
            "version = 1\nsoftware = \"minio\"\n[[node]]\nname = \"s{1...2}\"\ndrive = [{ count = 2 }]\nnic = [{ name = \"eth0\" }]\n",
        )
        .unwrap()
    }

    #[test]
    fn measured_ceilings_go_into_the_file_with_their_source() {
        let drive = |read: f64, error: Option<&str>| Drive {
            alone: Rates { read_bytes_per_s: Some(read), write_bytes_per_s: Some(read / 2.0) },
            error: error.map(str::to_owned),
            ..Drive::default()
        };
        let mut record: Ceiling = serde_json::from_str(
            r#"{"schema":"plimsoll.ceiling/1","run":"r1","started_at":"","host":"s1","block_bytes":1,"file_bytes":1,"streams":1,"drives":[],
                "total":{"write_bytes_per_s":null,"read_bytes_per_s":null},"total_while_all_ran":{"write_bytes_per_s":null,"read_bytes_per_s":null}}"#,
        )
        .unwrap();
        let (mut c, mut remarks) = (cluster(), Vec::new());
        with_drives(&mut c, &record, &mut remarks);
        assert!(c.nodes[0].drives[0].read.is_none() && remarks[0].contains("r1 has no rate"));
        record.drives = vec![drive(3e9, None), drive(1e9, Some("full")), drive(2e9, None), drive(4e9, None)];
        with_drives(&mut c, &record, &mut remarks);
        let d = &c.nodes[0].drives[0];
        assert_eq!((d.read.map(|r| r.0), d.write.map(|r| r.0)), (Some(3e9), Some(1.5e9)));
        assert_eq!(d.source.as_deref(), Some("drive r1, median of 3"));
        c.check().unwrap();
    }

    #[test]
    fn what_a_network_was_measured_to_carry_is_found_by_any_name_and_told_once() {
        let text = "version = 1\nsoftware = \"minio\"\n[[node]]\nname = \"s{1...2}\"\naddresses = [\"10.0.0.{1...2}\"]\n\
            nic = [{ name = \"eth0\" }]\n[[node]]\nname = \"s{3...4}\"\n";
        let mut c = Cluster::from_toml(text).unwrap();
        let host = |name: &str, address: &str| {
            serde_json::json!({ "name": name, "host": name, "kernel": "", "cores": 1, "boot_id": name, "receive_buffer": "",
                "send_buffer": "", "interfaces": [{ "name": "eth0", "address": address }] })
        };
        let lane = |from: usize, to: usize, rate: f64| serde_json::json!({ "from": from, "to": to, "bytes_per_s": { "value": rate, "low": rate, "high": rate, "n_eff": 9 } });
        let hosts =
            [host("a", "10.0.0.1"), host("b", "10.0.0.2"), host("s3:7", "10.0.0.3"), host("s4", "10.0.0.4")];
        let lanes = [lane(0, 1, 1e9), lane(1, 0, 9e8), lane(2, 3, 1e9), lane(3, 2, 1e9)];
        let record: NetRecord = serde_json::from_value(serde_json::json!({
            "format": "", "id": "n1", "plimsoll_version": "", "made_at": "", "asked": NetAsked::default(), "hosts": hosts,
            "stages": [{ "pattern": "full", "title": "", "bytes_per_s": null, "lanes": lanes, "hosts": [] }],
            "findings": [], "sentences": [], "valid": true,
        }))
        .unwrap();
        let mut remarks = Vec::new();
        with_network(&mut c, &record, &mut remarks);
        // By their addresses alone; of both the least.
        let nic = &c.nodes[0].nics[0];
        assert_eq!((nic.sends.map(|r| r.0), nic.receives.map(|r| r.0)), (Some(9e8), Some(9e8)));
        assert_eq!(
            remarks,
            [
                "s{1...2} stands for several: the least of net n1 is written",
                "s{3...4} has no interface, or several: write sends and receives by hand"
            ]
        );
        c.check().unwrap();
    }

    #[test]
    fn what_is_there_is_not_overwritten() {
        let file = std::env::temp_dir().join(format!("plimsoll-describe-{}", std::process::id()));
        std::fs::write(&file, "mine").unwrap();
        assert!(is_free(&file).is_err() && out_file::write_new(&file, b"x").is_err());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
        std::fs::remove_file(&file).unwrap();
        assert!(is_free(&file).is_ok());
    }

    #[test]
    fn the_file_reads_back_whatever_stands_in_remarks() {
        let text = as_file(&cluster(), &["a\nb = 1".into()]);
        assert_eq!(Cluster::from_toml(&text).unwrap(), cluster());
    }
}
