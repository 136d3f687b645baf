//! `target block`: a file that is a disk with a known limit, exported by QEMU's storage daemon over FUSE.

use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_setup::safety::trees::Temporary;
use plimsoll_target::block::{BlockError, BlockOptions, Export, start};

use super::target::BlockServerArgs;
use super::target_s3::limit_set;
use crate::fault::{Exit, Fault};
use crate::{output, signals};

pub fn serve(a: &BlockServerArgs) -> Result<Exit, Fault> {
    let limits = limit_set(a.tier.as_deref(), a.limits.as_deref(), a.scale)?
        .ok_or_else(|| Fault::input("no limits are given", "Give --tier vultr-hdd, or --limits FILE."))?
        .with_bursts(a.burst_scale)
        .map_err(|e| Fault::input(e.to_string(), "See `plimsoll target block --help`."))?;
    let name = limits.name.clone();
    let dir = Directory::make("block", a.data.as_deref())?;
    let options = BlockOptions { limits, data: dir.path.clone(), size_bytes: a.size.0, export: Export::Fuse };
    signals::install(signals::ProcessRole::Server);
    let mut handle = start(&options).map_err(refused)?;
    output::print(&format!("{}\n", handle.ready().line()))?;
    let (path, throttle) = (handle.path().display(), handle.throttle());
    if !a.quiet {
        output::tell(format_args!(
            "plimsoll: {path} is limited as {name} ({throttle}); use direct I/O; Ctrl-C stops it"
        ));
    }
    while !signals::was_asked_to_stop() {
        if handle.has_ended() {
            return Err(Fault::input("qemu-storage-daemon ended", "Its own message is above."));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    handle.stop();
    Ok(Exit::Valid)
}

fn refused(e: BlockError) -> Fault {
    let remedy = match &e {
        BlockError::NotInstalled => "Install it, or limit a disk by other means.",
        BlockError::File(..) | BlockError::DataDir(_) => "Choose another directory with --data DIR.",
        BlockError::Daemon(_) => "FUSE exports need /dev/fuse, and a file system with direct I/O for --data.",
        _ => "See `plimsoll target block --help`.",
    };
    Fault::input(e.to_string(), remedy)
}

/// Where disk and export lie; one that was not given is removed at the end.
pub struct Directory {
    pub path: PathBuf,
    _temporary: Option<Temporary>,
}

impl Directory {
    pub fn make(kind: &str, given: Option<&Path>) -> Result<Self, Fault> {
        if let Some(given) = given {
            return Ok(Self { path: given.to_owned(), _temporary: None });
        }
        let made = Temporary::make(kind).map_err(|e| {
            Fault::input(
                format!("cannot create a temporary directory: {e}"),
                "Set TMPDIR, or choose a directory with --data DIR.",
            )
        })?;
        // Beside its mark: a disk wants a directory that is empty.
        Ok(Self { path: made.path.join("disk"), _temporary: Some(made) })
    }
}
