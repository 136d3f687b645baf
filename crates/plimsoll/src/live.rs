//! `--live`: the process that measures answers browsers, too. Its server reads what the run records; the run itself does nothing for it but
//! say what it is doing, a few times a second, into a place that is overwritten.

use std::io::Read as _;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use plimsoll_model::Event;
use plimsoll_serve::{LiveServer, ServeError, ServeOptions};

use crate::args::LiveArgs;
use crate::cli::Command;
use crate::fault::Fault;
use crate::{output, progress, runs_dir, signals};

/// For pages to be told the result, before the process ends. (A choice: nobody waits for a browser for longer.)
const FOR_THE_RESULT: Duration = Duration::from_secs(5);

static ARGS: OnceLock<LiveArgs> = OnceLock::new();
static SERVING: Mutex<Option<Serving>> = Mutex::new(None);

struct Serving {
    server: LiveServer,
    /// The run that goes on.
    run: Option<String>,
}

fn serving() -> MutexGuard<'static, Option<Serving>> {
    SERVING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the command line says of it. Refused by name where the command has no run to show.
pub fn note(args: &LiveArgs, command: &Command) -> Result<(), Fault> {
    let runs = matches!(
        command,
        Command::Object(_)
            | Command::Block(_)
            | Command::Fio(_)
            | Command::File(_)
            | Command::Drive(_)
            | Command::Run(_)
            | Command::Limits(_)
            | Command::Speedtest(_)
            | Command::Watch(_)
            | Command::Check(_)
            | Command::Campaign(_)
            | Command::Replicate(_)
    );
    if args.live.is_some() && !runs {
        return Err(Fault::input(
            "--live: this command makes no run that could be shown",
            "Leave it out; `plimsoll serve` shows the runs that there are.",
        ));
    }
    let _ = ARGS.set(args.clone());
    Ok(())
}

/// Listens, where that was asked for: an address that cannot be had is told before anything is measured.
pub fn begin(runs: Option<&Path>) -> Result<(), Fault> {
    let Some(args) = ARGS.get() else { return Ok(()) };
    let Some(address) = args.live else { return Ok(()) };
    let mut serving = serving();
    if serving.is_some() {
        return Ok(());
    }
    let token = args.live_token_file.as_deref().map(token_in).transpose()?;
    let options = ServeOptions { address, root: runs_dir::root(runs), token, names: names() };
    *serving = Some(Serving { server: LiveServer::start(options)?, run: None });
    Ok(())
}

/// What happens in the run.
pub fn saw(event: &Event) {
    let mut serving = serving();
    let Some(Serving { server, run }) = serving.as_mut() else { return };
    match event {
        Event::Started { id, path } => {
            let begun = server.begin(id, path, || {
                let interrupt = signals::interrupt();
                !interrupt.is_requested() && {
                    output::tell("plimsoll: stopped from its page: writing the result and cleaning up");
                    interrupt.signal();
                    true
                }
            });
            match begun {
                Ok(()) => tell_place(server, &format!("/runs/{id}"), "live"),
                Err(e) => output::tell(format_args!("plimsoll: --live: {e}; the run goes on without it")),
            }
            *run = Some(id.clone());
        }
        Event::Live(l) => hint(server, run.as_deref(), None, l.late),
        Event::Message(_) | Event::StageDone { .. } => {}
        other => hint(server, run.as_deref(), Some(progress::line(other)), 0),
    }
}

fn hint(server: &LiveServer, run: Option<&str>, doing: Option<String>, late: usize) {
    if let Some(run) = run {
        server.hint(run, |h| {
            h.doing = doing;
            h.late = late;
        });
    }
}

/// The run has ended, and its result is on disk, or it has none.
pub fn ended() {
    let mut serving = serving();
    if let Some(Serving { server, run }) = serving.as_mut()
        && let Some(run) = run.take()
    {
        server.finish(&run, FOR_THE_RESULT);
    }
}

/// Where to look, for a person.
pub fn tell_place(server: &LiveServer, path: &str, what: &str) {
    output::tell(format_args!("plimsoll: {what} at {}", server.url(path)));
    if let Some(fingerprint) = server.fingerprint() {
        output::tell(format_args!(
            "plimsoll: its certificate is its own; SHA-256 {fingerprint}, which the browser shows, too"
        ));
    }
}

/// Of a file that never ends the beginning is a token, too, if a strange one.
const MOST_TOKEN_BYTES: u64 = 64 << 10;

/// A token out of a file, where others cannot read it off the command line.
pub fn token_in(file: &Path) -> Result<String, Fault> {
    let mut text = String::new();
    let read = std::fs::File::open(file).and_then(|f| f.take(MOST_TOKEN_BYTES).read_to_string(&mut text));
    read.map_err(|e| {
        Fault::input(
            format!("the token cannot be read from {}: {e}", file.display()),
            "Name a file that holds it.",
        )
    })?;
    Ok(text.trim().to_owned())
}

/// What this machine is called.
pub fn names() -> Vec<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim().to_ascii_lowercase();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    if name.is_empty() || !name.chars().all(plain) { Vec::new() } else { vec![name] }
}

impl From<ServeError> for Fault {
    fn from(e: ServeError) -> Self {
        let remedy = match &e {
            ServeError::Listen { .. } => "Choose another address; port 0 is any free port.",
            ServeError::Token => "Make one, for example: openssl rand -hex 16 > token",
            ServeError::Tls(_) | ServeError::Start(_) => {
                "Raise the limits on threads and open files, or leave it out."
            }
        };
        Fault::input(e.to_string(), remedy)
    }
}
