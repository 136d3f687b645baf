//! `--detach`: once there is load, the measurement goes on without the command that asked for it, in a process of its own that no
//! terminal's end reaches. Until then it is a command as any other: what it says is seen, and Ctrl-C ends it.

use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};

use plimsoll_bus::keeper::{Detached, Home, now_s};
use plimsoll_model::Event;

use crate::commands::fleet_exec::own_session;
use crate::fault::{Exit, Fault};
use crate::{fleet_use, output};

/// Of the process that conducts.
#[derive(Debug)]
enum Conducting {
    /// The command still waits, at the other end of this.
    Watched {
        waits: PipeWriter,
        run: Option<(String, PathBuf)>,
    },
    Alone(Detached),
}

static CONDUCTING: Mutex<Option<Conducting>> = Mutex::new(None);
/// Whom a command that waits passes SIGTERM on to.
static CONDUCTOR: AtomicI32 = AtomicI32::new(0);

/// Where it was asked for, parts the command from the process that measures. Gives how the command ends, in the process that is the
/// command. To be called before there are threads.
pub fn part() -> Result<Option<Exit>, Fault> {
    if !fleet_use::detaches() {
        return Ok(None);
    }
    let cannot = |e: std::io::Error| Fault::input(format!("--detach: {e}"), "Leave it out.");
    let (waits, ready) = std::io::pipe().map_err(cannot)?;
    // SAFETY: there is one thread by now, so that nothing in the new process is left half done.
    match unsafe { libc::fork() } {
        ..0 => Err(cannot(std::io::Error::last_os_error())),
        0 => {
            let watched = Conducting::Watched { waits: ready, run: None };
            *CONDUCTING.lock().unwrap_or_else(PoisonError::into_inner) = Some(watched);
            Ok(None)
        }
        conductor => {
            drop(ready);
            wait(conductor, waits).map(Some)
        }
    }
}

extern "C" fn pass_on(signal: libc::c_int) {
    // SAFETY: kill is async-signal-safe; the number is of a child that was not waited for yet.
    unsafe {
        libc::kill(CONDUCTOR.load(Ordering::Relaxed), signal);
    }
}

/// Until there is load, or until it has ended before that. Ctrl-C reaches both, and is the conductor's to obey.
fn wait(conductor: libc::pid_t, mut waits: PipeReader) -> Result<Exit, Fault> {
    CONDUCTOR.store(conductor, Ordering::Relaxed);
    // SAFETY: one handler makes one async-signal-safe call, and the others are to be ignored.
    unsafe {
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        libc::signal(libc::SIGHUP, libc::SIG_IGN);
        libc::signal(libc::SIGTERM, pass_on as extern "C" fn(libc::c_int) as libc::sighandler_t);
    }
    let mut ready = [0];
    if matches!(waits.read(&mut ready), Ok(1)) {
        return Ok(Exit::Valid);
    }
    let mut status = 0;
    // SAFETY: `status` is a place for what is told, and the child is ours.
    while unsafe { libc::waitpid(conductor, &mut status, 0) } < 0 {
        let e = std::io::Error::last_os_error();
        if e.kind() != std::io::ErrorKind::Interrupted {
            return Err(Fault::bug(format!("the process that measures cannot be waited for: {e}")));
        }
    }
    if libc::WIFEXITED(status) {
        return Ok(Exit::of_code(libc::WEXITSTATUS(status) as u8));
    }
    Err(Fault::input("the process that measures was killed before there was load", "Measure again."))
}

/// What happens in the run. The first load parts the process from its terminal.
pub fn saw(event: &Event) {
    let mut conducting = CONDUCTING.lock().unwrap_or_else(PoisonError::into_inner);
    match (&mut *conducting, event) {
        (Some(Conducting::Watched { run, .. }), Event::Started { id, path }) => {
            *run = Some((id.clone(), path.clone()));
        }
        (Some(Conducting::Watched { waits, run: Some((id, path)) }), Event::Live(_)) => {
            match go_alone(waits, id, path.clone()) {
                Ok(alone) => *conducting = Some(Conducting::Alone(alone)),
                Err(e) => {
                    output::tell(format_args!(
                        "plimsoll: it cannot go on by itself: {}. It goes on here",
                        e.what
                    ));
                    *conducting = None;
                }
            }
        }
        _ => {}
    }
}

/// How the command of a detached measurement ended, for whoever waits for that.
pub fn over(code: u8) {
    if let Some(Conducting::Alone(alone)) = CONDUCTING.lock().unwrap_or_else(PoisonError::into_inner).take() {
        // A fleet that was ended under it has no place for that any more.
        let _ = alone.ended(code, now_s());
    }
}

fn go_alone(waits: &mut PipeWriter, id: &str, directory: PathBuf) -> Result<Detached, Fault> {
    let name = fleet_use::name().unwrap_or_default();
    let home = Home::of(&name)?;
    let shown = directory.display().to_string();
    let alone = home.open()?.detach(&fleet_use::command_in_short(), id, directory, now_s())?;
    let of = if name == "default" { String::new() } else { format!(" --name {name}") };
    let log = home.detached_log();
    output::tell(format_args!(
        "plimsoll: run {id} goes on in the background (process {}), in {shown}\n\
         plimsoll: what it says is in {}\n\
         plimsoll: `plimsoll fleet wait{of}` waits for its result, `plimsoll fleet status{of}` shows it, `plimsoll fleet stop{of}` ends it",
        std::process::id(),
        log.display()
    ));
    output::print(&format!("{id}\n"))?;
    let cannot = |e: std::io::Error| Fault::input(format!("its terminal cannot be left: {e}"), "");
    own_session().map_err(cannot)?;
    let nothing = File::open("/dev/null").map_err(cannot)?;
    for (file, place) in [(&nothing, 0), (&alone.out, 1), (&alone.log, 2)] {
        become_standard(file, place).map_err(cannot)?;
    }
    output::tell(format_args!("plimsoll: run {id} in {shown}"));
    // Nobody may wait there any more.
    let _ = waits.write_all(&[1]);
    Ok(alone)
}

/// From now on standard input, output or error.
fn become_standard(file: &File, place: i32) -> std::io::Result<()> {
    // SAFETY: both are open, and whoever holds the standard one by its number means whatever it is.
    match unsafe { libc::dup2(file.as_raw_fd(), place) } {
        ..0 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}
