//! What each node's host counts, as node_exporter names it: a page at port 9100 of the node, asked over the node's own link. It says what
//! a real host would: its interface and the speed of that, its limited drives, and its processor where it has one of its own (a quota).

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use plimsoll_setup::network::namespace_file;

use crate::network::NODE_INTERFACE;

/// As node_exporter's.
pub const PORT: u16 = 9100;
const REQUEST: Duration = Duration::from_secs(2);
/// Of /proc/PID/stat: the kernel's clock ticks, as all of its interfaces have them.
const TICKS_PER_S: f64 = 100.0;
const SECTOR_BYTES: f64 = 512.0;

/// What its page is made of.
#[derive(Debug, Default)]
pub struct BoxFacts {
    /// The server's process, while it runs.
    pub pid: Option<u32>,
    /// Bits a second of the link, where it has a rate.
    pub link_bits_per_s: Option<f64>,
    /// Cores, and the control group that holds it to them.
    pub quota: Option<(f64, PathBuf)>,
    /// Names and devices of drives with a limit.
    pub drives: Vec<(String, PathBuf)>,
}

/// Shared with whoever changes it.
pub type SharedFacts = Arc<Mutex<BoxFacts>>;

/// CPU time of a node's servers, the ended ones included.
#[derive(Debug)]
struct CpuUse {
    began: Instant,
    pid: Option<u32>,
    /// Of the one that runs: user, system.
    last: (f64, f64),
    /// Of those before.
    base: (f64, f64),
    idle: f64,
}

/// Answers for a node until this process ends.
pub fn serve(namespace: &str, address: &str, facts: SharedFacts) -> io::Result<()> {
    let space = File::open(namespace_file(namespace))?;
    let at = format!("{address}:{PORT}");
    let (send, ready) = std::sync::mpsc::channel();
    std::thread::Builder::new().name("box-exporter".into()).spawn(move || {
        // SAFETY: a system call with a descriptor that is open; it is about this thread alone.
        let entered = unsafe { libc::setns(space.as_raw_fd(), libc::CLONE_NEWNET) };
        let listening = if entered == 0 { TcpListener::bind(at) } else { Err(io::Error::last_os_error()) };
        match listening {
            Ok(listener) => {
                // Whoever started it waits for that.
                let _ = send.send(Ok(()));
                answer_all(&listener, &facts);
            }
            Err(e) => drop(send.send(Err(e))),
        }
    })?;
    ready.recv().unwrap_or_else(|_| Err(io::Error::other("its thread ended")))
}

fn answer_all(listener: &TcpListener, facts: &SharedFacts) {
    let mut cpu = CpuUse { began: Instant::now(), pid: None, last: (0.0, 0.0), base: (0.0, 0.0), idle: 0.0 };
    for stream in listener.incoming().flatten() {
        // Who asks and goes is not answered.
        let _ = answer(stream, facts, &mut cpu);
    }
}

fn answer(mut stream: TcpStream, facts: &SharedFacts, cpu: &mut CpuUse) -> io::Result<()> {
    stream.set_read_timeout(Some(REQUEST))?;
    stream.set_write_timeout(Some(REQUEST))?;
    let (mut head, mut buffer) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|w| w == b"\r\n\r\n") {
        let n = stream.read(&mut buffer)?;
        head.extend(&buffer[..n]);
        if n == 0 || head.len() > 8192 {
            return Ok(());
        }
    }
    let (status, body) = match head.starts_with(b"GET /metrics") {
        true => ("200 OK", page(&facts.lock().unwrap_or_else(PoisonError::into_inner), cpu, Path::new("/"))),
        false => ("404 Not Found", "GET /metrics\n".into()),
    };
    let kind = "text/plain; version=0.0.4";
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// `top`: where /proc and /sys are looked for.
fn page(facts: &BoxFacts, cpu: &mut CpuUse, top: &Path) -> String {
    let text = |path: &str| fs::read_to_string(top.join(path)).unwrap_or_default();
    let mut out = String::new();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    // Whoever reads it knows that what is not here is not missing (observe: PARTIAL_PAGE).
    line(&mut out, "plimsoll_box_node_info", "", 1.0);
    line(&mut out, "node_time_seconds", "", now);
    interface(&mut out, &text("proc/thread-self/net/dev"), facts.link_bits_per_s);
    segments(&mut out, &text("proc/thread-self/net/snmp"));
    for (name, device) in &facts.drives {
        let device = device.file_name().unwrap_or_default().to_string_lossy();
        drive(&mut out, name, &text(&format!("sys/block/{device}/stat")));
    }
    if let Some((cores, group)) = &facts.quota {
        let stat = facts.pid.map(|pid| text(&format!("proc/{pid}/stat"))).unwrap_or_default();
        let waited = fs::read_to_string(group.join("cpu.stat")).unwrap_or_default();
        quota(&mut out, *cores);
        processor(&mut out, *cores, cpu, (facts.pid, &stat), &waited);
    }
    out
}

fn line(out: &mut String, name: &str, labels: &str, value: f64) {
    // Into a String: it cannot fail.
    let _ = match labels.is_empty() {
        true => writeln!(out, "{name} {value}"),
        false => writeln!(out, "{name}{{{labels}}} {value}"),
    };
}

fn interface(out: &mut String, text: &str, bits_per_s: Option<f64>) {
    let labels = format!("device=\"{NODE_INTERFACE}\"");
    let row = text.lines().find_map(|l| l.trim().strip_prefix(NODE_INTERFACE)?.strip_prefix(':'));
    let fields: Vec<f64> =
        row.unwrap_or_default().split_whitespace().filter_map(|f| f.parse().ok()).collect();
    let names = [(0, "receive_bytes"), (3, "receive_drop"), (8, "transmit_bytes"), (11, "transmit_drop")];
    for (field, name) in names {
        if let Some(value) = fields.get(field) {
            line(out, &format!("node_network_{name}_total"), &labels, *value);
        }
    }
    if let Some(bits) = bits_per_s {
        line(out, "node_network_speed_bytes", &labels, bits / 8.0);
    }
}

fn segments(out: &mut String, text: &str) {
    let mut rows = text.lines().filter_map(|l| l.strip_prefix("Tcp:")).map(str::split_whitespace);
    let (Some(names), Some(values)) = (rows.next(), rows.next()) else { return };
    for (name, value) in names.zip(values) {
        if let (true, Ok(value)) = (["OutSegs", "RetransSegs"].contains(&name), value.parse()) {
            line(out, &format!("node_netstat_Tcp_{name}"), "", value);
        }
    }
}

fn drive(out: &mut String, name: &str, text: &str) {
    let fields: Vec<f64> = text.split_whitespace().filter_map(|f| f.parse().ok()).collect();
    let names = [
        (0, "reads_completed_total", 1.0),
        (2, "read_bytes_total", SECTOR_BYTES),
        (3, "read_time_seconds_total", 1e-3),
        (4, "writes_completed_total", 1.0),
        (6, "written_bytes_total", SECTOR_BYTES),
        (7, "write_time_seconds_total", 1e-3),
        (8, "io_now", 1.0),
        (9, "io_time_seconds_total", 1e-3),
        (10, "io_time_weighted_seconds_total", 1e-3),
    ];
    for (field, metric, scale) in names {
        if let Some(value) = fields.get(field) {
            line(out, &format!("node_disk_{metric}"), &format!("device=\"{name}\""), value * scale);
        }
    }
}

/// As cAdvisor names what a control group is held to, in microseconds: node_exporter has no name for it.
fn quota(out: &mut String, cores: f64) {
    const PERIOD_US: f64 = 100_000.0;
    line(out, "container_spec_cpu_period", "", PERIOD_US);
    line(out, "container_spec_cpu_quota", "", (cores * PERIOD_US).round());
}

/// A host with so many cores: what its server did not use of them was idle.
fn processor(out: &mut String, cores: f64, cpu: &mut CpuUse, (pid, stat): (Option<u32>, &str), waited: &str) {
    let used = stat.rsplit_once(')').and_then(|(_, rest)| {
        let mut fields = rest.split_whitespace().skip(11).map(|f| f.parse::<f64>().map(|t| t / TICKS_PER_S));
        Some((fields.next()?.ok()?, fields.next()?.ok()?))
    });
    if pid != cpu.pid {
        cpu.base = (cpu.base.0 + cpu.last.0, cpu.base.1 + cpu.last.1);
        (cpu.pid, cpu.last) = (pid, (0.0, 0.0));
    }
    cpu.last = used.unwrap_or(cpu.last);
    let (user, system) = (cpu.base.0 + cpu.last.0, cpu.base.1 + cpu.last.1);
    // A counter does not go back: a quota's period may give a little more than its share just now.
    cpu.idle = cpu.idle.max(cpu.began.elapsed().as_secs_f64() * cores - user - system);
    for (mode, value) in [("user", user), ("system", system), ("idle", cpu.idle)] {
        line(out, "node_cpu_seconds_total", &format!("cpu=\"0\",mode=\"{mode}\""), value);
    }
    let counted = |name: &str, per_s: f64| {
        let row = waited.lines().find_map(|l| l.strip_prefix(name)?.trim().parse::<f64>().ok());
        row.map(|v| v / per_s)
    };
    // Version 1 counts nanoseconds.
    if let Some(s) = counted("throttled_usec", 1e6).or_else(|| counted("throttled_time", 1e9)) {
        line(out, "node_pressure_cpu_waiting_seconds_total", "", s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_what_the_kernel_counts_in_its_names() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put(
            "proc/thread-self/net/dev",
            "Inter-| Receive\n    lo: 1 2 0 0 0 0 0 0 1 2 0 0 0 0 0 0\n  eth0: 1000 10 0 3 0 0 0 0 2000 20 0 4 0 0 0 0\n",
        );
        put("proc/thread-self/net/snmp", "Tcp: RtoMin OutSegs RetransSegs\nTcp: 200 77 5\n");
        put("sys/block/loop3/stat", "  10 0 80 500 20 0 160 1500 2 1000 2000 0 0 0 0\n");
        put("proc/7/stat", "7 (minio (x) y) S 1 7 7 0 -1 0 0 0 0 0 250 50 0 0 20 0 9 0 100\n");
        put("cpu.stat", "nr_periods 5\nnr_throttled 2\nthrottled_time 1500000000\n");
        let facts = BoxFacts {
            pid: Some(7),
            link_bits_per_s: Some(2e8),
            quota: Some((0.5, dir.path().into())),
            drives: vec![("drive2".into(), "/dev/loop3".into())],
        };
        let began = Instant::now();
        let mut cpu = CpuUse { began, pid: None, last: (0.0, 0.0), base: (0.0, 0.0), idle: 0.0 };
        let text = page(&facts, &mut cpu, dir.path());
        for row in [
            "plimsoll_box_node_info 1",
            "node_network_receive_bytes_total{device=\"eth0\"} 1000",
            "node_network_receive_drop_total{device=\"eth0\"} 3",
            "node_network_transmit_bytes_total{device=\"eth0\"} 2000",
            "node_network_speed_bytes{device=\"eth0\"} 25000000",
            "node_netstat_Tcp_OutSegs 77",
            "node_netstat_Tcp_RetransSegs 5",
            "node_disk_read_bytes_total{device=\"drive2\"} 40960",
            "node_disk_written_bytes_total{device=\"drive2\"} 81920",
            "node_disk_io_time_seconds_total{device=\"drive2\"} 1",
            "container_spec_cpu_period 100000",
            "container_spec_cpu_quota 50000",
            "node_cpu_seconds_total{cpu=\"0\",mode=\"user\"} 2.5",
            "node_cpu_seconds_total{cpu=\"0\",mode=\"system\"} 0.5",
            "node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} 0",
            "node_pressure_cpu_waiting_seconds_total 1.5",
        ] {
            assert!(text.lines().any(|l| l == row), "{row} is not in\n{text}");
        }
        // Started again: what the one before used stays counted.
        put("proc/8/stat", "8 (minio) S 1 7 7 0 -1 0 0 0 0 0 100 0 0 0 20 0 9 0 100\n");
        let text = page(&BoxFacts { pid: Some(8), ..facts }, &mut cpu, dir.path());
        assert!(text.contains("mode=\"user\"} 3.5"), "{text}");
    }
}
