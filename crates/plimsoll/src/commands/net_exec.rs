//! What `net` does: over a fleet, or between two machines.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::Path;
use std::time::Duration;

use plimsoll_model::net::NetRecord;
use plimsoll_model::text::clean;
use plimsoll_net::{
    AllowedNetworks, NetError, NetHosts, NetKey, NetPair, NetPattern, NetServer, NetWish, conduct, new_record,
};
use plimsoll_report::Style;
use plimsoll_report::table::Table;
use plimsoll_store::net;

use super::agent_exec::line_from;
use super::net::{NetArgs, NetCommand, NetSubcommand, ServeArgs};
use crate::args::OutputArgs;
use crate::fault::{Exit, Fault, sentence};
use crate::signals::{self, ProcessRole};
use crate::{fleet_use, hand_out, out_file, output, runs_dir};

/// The key, where no flag names one: a command line is open to all users of a machine.
const KEY_VARIABLE: &str = "PLIMSOLL_NET_KEY";

impl From<NetError> for Fault {
    fn from(e: NetError) -> Self {
        match e {
            NetError::Input { problem, remedy } => Fault::input(problem, sentence(&remedy)),
            e @ NetError::Lost { .. } => {
                Fault::input(e.to_string(), "Nothing was measured: look at that machine, and run again.")
            }
            NetError::Interrupted => Fault {
                what: "interrupted before anything was measured".into(),
                remedy: String::new(),
                exit: Exit::Interrupted,
            },
        }
    }
}

pub fn net(c: &NetCommand) -> Result<Exit, Fault> {
    match &c.serve {
        Some(NetSubcommand::Serve(a)) => serve(a),
        None => test(&c.test),
    }
}

fn allowed(named: &[String]) -> Result<AllowedNetworks, Fault> {
    AllowedNetworks::of(named)
        .map_err(|why| Fault::input(format!("--allow-net: {why}"), "For example --allow-net 203.0.113.0/24."))
}

/// The key of a flag, or of the environment.
fn key_of(given: Option<&str>) -> Result<Option<NetKey>, Fault> {
    let read = match given {
        Some(text) if text == "-" || text.starts_with('@') => Some(line_from(text, "--key", "the key")?),
        Some(_) => {
            return Err(Fault::input(
                "--key: a key on the command line is open to all users of this machine",
                format!("Give --key @FILE or --key -, or set {KEY_VARIABLE}."),
            ));
        }
        None => std::env::var(KEY_VARIABLE).ok().filter(|text| !text.is_empty()),
    };
    let parsed = read.map(|text| NetKey::parse(&text)).transpose();
    parsed.map_err(|why| Fault::input(format!("--key: {why}"), "Use what `plimsoll net serve` printed."))
}

fn serve(a: &ServeArgs) -> Result<Exit, Fault> {
    signals::install(ProcessRole::Server);
    let given = key_of(a.key.as_deref())?;
    let key = given.clone().unwrap_or_else(NetKey::random);
    let server = NetServer::listen(a.listen, key.clone(), allowed(&a.allow_net)?)?;
    let at = server.address();
    let tell = |text: String| output::tell(format_args!("plimsoll net: {text}"));
    if given.is_none() {
        let [first, more @ ..] = &reached_at(at)[..] else {
            return Err(Fault::input("this machine has no address", "Give one with --listen."));
        };
        tell(format!("waits on {at} for one test. On the other machine:"));
        output::print(&format!("{KEY_VARIABLE}={} plimsoll net --to {first}\n", key.text()))?;
        if !more.is_empty() {
            let more: Vec<String> = more.iter().map(ToString::to_string).collect();
            tell(format!("also at {}", more.join(", ")));
        }
    } else {
        tell(format!("waits on {at} for one test"));
    }
    let stop = signals::interrupt().asked_flag();
    match server.serve(&stop, &tell) {
        Ok(()) => {
            tell("the test is over".into());
            Ok(Exit::Valid)
        }
        Err(NetError::Lost { host, why }) => Err(Fault {
            what: format!("{host} is gone: {why}"),
            remedy: "What it measured until then is on that machine.".into(),
            exit: Exit::Undetermined,
        }),
        Err(NetError::Interrupted) => {
            tell("stopped".into());
            Ok(Exit::Interrupted)
        }
        Err(e) => Err(e.into()),
    }
}

/// Where others reach a port of this machine.
fn reached_at(at: SocketAddr) -> Vec<SocketAddr> {
    if !at.ip().is_unspecified() {
        return vec![at];
    }
    let own = plimsoll_net::this_host().interfaces;
    let mut all: Vec<SocketAddr> = own
        .iter()
        .filter_map(|i| i.address.parse().ok())
        .filter(|ip: &std::net::IpAddr| ip.is_ipv4() || at.is_ipv6())
        .map(|ip| SocketAddr::new(ip, at.port()))
        .collect();
    all.sort_by_key(|a| a.ip().is_loopback());
    all
}

fn wish(a: &NetArgs) -> Result<NetWish, Fault> {
    let bad = |why: String| Fault::input(why, "See `plimsoll net --help`.");
    let mut patterns: Vec<NetPattern> = if a.pattern.iter().any(|p| p == "all") {
        NetPattern::ALL.to_vec()
    } else {
        a.pattern
            .iter()
            .map(|p| p.parse())
            .collect::<Result<_, String>>()
            .map_err(|e| bad(format!("--pattern: {e}")))?
    };
    patterns.sort();
    patterns.dedup();
    let streams = match a.streams.as_str() {
        "auto" => None,
        n => Some(n.parse().map_err(|_| bad(format!("--streams: '{n}' is neither a number nor auto")))?),
    };
    let wish = NetWish {
        patterns,
        streams,
        warmup: a.warmup.0.max(Duration::from_millis(100)),
        measured: a.duration.0,
        max_gbps: a.max_gbps,
        seed: a.seed,
        servers: Vec::new(),
        labels: Vec::new(),
    };
    wish.check()?;
    Ok(wish)
}

fn test(a: &NetArgs) -> Result<Exit, Fault> {
    let mut wish = wish(a)?;
    if a.output.csv {
        return Err(no_csv());
    }
    hand_out::check(&a.output.hand_out)?;
    hand_out::refuse_figures(&a.output.hand_out)?;
    a.output.html.as_deref().map_or(Ok(()), |file| out_file::check(Path::new(file)))?;
    signals::install(ProcessRole::Run);
    let interrupt = signals::interrupt();
    if let Some(to) = &a.to {
        if fleet_use::is_used() {
            return Err(Fault::input(
                "--to and --fleet name two different networks",
                "Leave one of them out.",
            ));
        }
        let key = key_of(a.key.as_deref())?.ok_or_else(|| {
            Fault::input(
                "the key of the test is missing",
                format!("Give --key @FILE or set {KEY_VARIABLE}: `plimsoll net serve` prints it."),
            )
        })?;
        let at: Vec<SocketAddr> = to
            .to_socket_addrs()
            .map_err(|e| {
                Fault::input(format!("--to {to}: {e}"), "Give HOST:PORT, for example 10.0.0.7:5210.")
            })?
            .collect();
        let mut pair = NetPair::connect(&at, &key, allowed(&a.allow_net)?, interrupt.asked_flag())?;
        // Of the two this one asked: reads come to it, writes go from it.
        return measured_as(&net::new_id().0, &mut pair, &wish, Some(0), &a.output);
    }
    let Some(fleet) = fleet_use::fleet()? else {
        return Err(Fault::input(
            "between which machines is not said",
            "Give --fleet, or --to HOST:PORT with `plimsoll net serve` there.",
        ));
    };
    let id = net::new_id().0;
    let mut tell = |text: String| output::tell(format_args!("plimsoll: {text}"));
    let mut hosts = fleet.net(&id, &interrupt, &mut tell).map_err(plimsoll_run::RunError::from)?;
    wish.servers = hosts.servers();
    wish.labels = hosts.labels();
    measured_as(&id, &mut hosts, &wish, None, &a.output)
}

/// Measures, keeps the record, and shows it. `asked_by`: the host that asked, where it is one of them.
fn measured_as(
    id: &str,
    hosts: &mut dyn NetHosts,
    wish: &NetWish,
    asked_by: Option<usize>,
    out: &OutputArgs,
) -> Result<Exit, Fault> {
    let made_at = net::new_id().1;
    let mut empty = new_record(id.to_owned(), env!("CARGO_PKG_VERSION"), env!("PLIMSOLL_COMMIT"), made_at);
    empty.asked.asked_by = asked_by;
    let mut first = true;
    let record = conduct(hosts, wish, empty, &mut |text| {
        // What will be loaded is said in any case.
        if !out.quiet || std::mem::take(&mut first) {
            output::tell(format_args!("plimsoll: {text}"));
        }
    })?;
    let path = net::keep(&runs_dir::root(out.runs_dir.as_deref()), &record)?;
    if !out.quiet {
        output::tell(format_args!("plimsoll: stored in {}", path.display()));
    }
    let exit = exit_of(&record);
    // What was measured is kept.
    show(&record, out).map_err(|e| e.after_a_run(exit, id))?;
    Ok(exit)
}

fn exit_of(record: &NetRecord) -> Exit {
    match (record.interrupted, record.valid) {
        (true, _) => Exit::Interrupted,
        (false, true) => Exit::Valid,
        (false, false) => Exit::Invalid,
    }
}

/// A stored record by its id, where it is the name of one.
pub fn stored(root: &Path, name: &str) -> Result<Option<NetRecord>, Fault> {
    let file = Path::new(name);
    if net::is_name(name) {
        return Ok(Some(net::read(&net::find(root, name)?)?));
    }
    let is_one = file.extension().is_some_and(|e| e == "json") && file.is_file();
    if is_one { Ok(Some(net::read(file)?)) } else { Ok(None) }
}

fn no_csv() -> Fault {
    Fault::input("a network test has no CSV form", "Use --json or --markdown.")
}

/// In the form that was asked for.
pub fn show(record: &NetRecord, out: &OutputArgs) -> Result<(), Fault> {
    if out.csv {
        return Err(no_csv());
    }
    let page = || plimsoll_report::net_html(record);
    let written: Result<(), Fault> = out.html.as_ref().map_or(Ok(()), |file| {
        out_file::write(Path::new(file), page().as_bytes())?;
        output::tell(format_args!("plimsoll: report in {file}"));
        Ok(())
    });
    // What was measured is told, whatever becomes of the file.
    output::print(&if out.json {
        plimsoll_report::net_json(record)
    } else if out.oneline {
        format!(
            "{}: {}, network test {}\n",
            plimsoll_report::net_status(record),
            plimsoll_report::net_result(record),
            record.id
        )
    } else if out.markdown {
        plimsoll_report::net_markdown(record)
    } else {
        plimsoll_report::net_terminal(record, Style::for_stdout())
    })?;
    written?;
    hand_out::write_text(&plimsoll_report::net_markdown(record), &out.hand_out)
}

/// The network tests that are kept, newest first, below the list of runs.
pub fn list(root: &Path) -> Result<Exit, Fault> {
    let mut table =
        Table::new("Network tests", 1, &["network test", "started (UTC)", "hosts", "result", "status"]);
    for id in net::ids(root).iter().rev() {
        let row = match net::find(root, id).and_then(|path| net::read(&path)) {
            Ok(r) => {
                let started = r.made_at.get(..16).unwrap_or_default().replace('T', " ");
                let what = plimsoll_report::net_result(&r);
                let what: String = what.chars().take(60).collect();
                [id.clone(), started, r.hosts.len().to_string(), what, plimsoll_report::net_status(&r).into()]
            }
            Err(e) => [id.clone(), String::new(), String::new(), e.to_string(), "cannot be read".into()],
        };
        table.push(row.map(|text| clean(&text).into_owned()).into());
    }
    if !table.rows.is_empty() {
        output::print(&format!("\n{}", table.plain(Style::for_stdout().width)))?;
    }
    Ok(Exit::Valid)
}
