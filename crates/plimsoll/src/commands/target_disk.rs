//! `target disk`: a mounted directory on a disk with a known limit.

use std::time::Duration;

use plimsoll_target::disk::{DiskError, DiskOptions, start};

use super::target::DiskServerArgs;
use super::target_block::Directory;
use super::target_s3::limit_set;
use crate::fault::{Exit, Fault};
use crate::{output, signals};

pub fn serve(a: &DiskServerArgs) -> Result<Exit, Fault> {
    let limits = limit_set(a.tier.as_deref(), a.limits.as_deref(), a.scale)?.ok_or_else(|| {
        Fault::input("no limits are given", "Give --tier gce-standard-20, or --limits FILE.")
    })?;
    let (name, description) = (limits.name.clone(), limits.description.clone());
    let dir = Directory::make("disk", a.data.as_deref())?;
    let options = DiskOptions {
        limits,
        credit_s: a.credit.map(|c| c.0.as_secs_f64()),
        data: dir.path.clone(),
        size_bytes: a.size.0,
        is_cached: a.cached,
    };
    signals::install(signals::ProcessRole::Server);
    let disk = start(&options).map_err(refused)?;
    output::print(&format!("{}\n", disk.ready().line()))?;
    let scale = if a.scale == 1.0 { String::new() } else { format!(", times {}", a.scale) };
    let credit = disk.credit_s().map(|s| format!("; {s:.0} s of credit")).unwrap_or_default();
    output::tell(format_args!(
        "plimsoll: {} is limited as {name} ({description}){scale}{credit}; Ctrl-C takes it down",
        disk.path().display()
    ));
    while !signals::was_asked_to_stop() {
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(disk);
    Ok(Exit::Valid)
}

fn refused(e: DiskError) -> Fault {
    let remedy = match &e {
        DiskError::NotRoot => "Run it as root, or measure a directory that is there.",
        DiskError::NotInstalled => "Install it.",
        DiskError::NoSpace(..) | DiskError::DataDir(_) => {
            "Choose another directory with --data DIR, or a smaller --size."
        }
        DiskError::Step(..) => {
            "It needs FUSE, loop devices and ext4 of the kernel, as a container often has not."
        }
        DiskError::NoCredit(_) => "Leave --credit out, or choose a tier with credit: gce-standard-20.",
        _ => "See `plimsoll target disk --help`.",
    };
    Fault::input(e.to_string(), remedy)
}
