//! How a command reaches a cluster that runs: one line to a socket in its directory, one line back. Only its user gets into that directory.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_setup::SetupError;

use crate::fault::BoxFault;
use crate::home::BoxHome;

const NAME: &str = "control";
/// A server is started within that.
const ANSWER: Duration = Duration::from_secs(30);
const LINE: Duration = Duration::from_secs(2);

/// The directory's own path may be longer than the name of a socket can be: its handle's is not.
fn short(dir: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{NAME}", dir.as_raw_fd()))
}

/// Where a cluster is asked.
#[derive(Debug)]
pub struct BoxControl {
    listener: UnixListener,
}

impl BoxControl {
    /// In the cluster's directory.
    pub fn open(dir: &Path) -> io::Result<Self> {
        let listener = UnixListener::bind(short(&File::open(dir)?))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener })
    }

    /// Answers whoever asks just now.
    pub fn answer(&self, mut fault: impl FnMut(BoxFault) -> Result<String, String>) {
        while let Ok((stream, _)) = self.listener.accept() {
            // Who asks and goes is not answered.
            let _ = answer_one(&stream, &mut fault);
        }
    }
}

fn answer_one(
    mut stream: &UnixStream,
    fault: &mut dyn FnMut(BoxFault) -> Result<String, String>,
) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(LINE))?;
    stream.set_write_timeout(Some(LINE))?;
    let mut line = String::new();
    BufReader::new(io::Read::take(stream, 1000)).read_line(&mut line)?;
    let said = line.trim().parse().and_then(fault);
    let (word, text) = match &said {
        Ok(text) => ("ok", text),
        Err(text) => ("error", text),
    };
    writeln!(stream, "{word} {}", plimsoll_model::text::clean(text))
}

/// Asks the cluster that runs here; what it said of it.
pub fn ask(home: &BoxHome, fault: &str) -> Result<String, SetupError> {
    let no =
        |what: String| SetupError::input(what, "Start it: plimsoll target cluster; it runs until Ctrl-C");
    if !home.is_running() {
        return Err(no(format!("no cluster runs in {}", home.dir().display())));
    }
    let asked = || {
        let dir = File::open(home.dir())?;
        let mut stream = UnixStream::connect(short(&dir))?;
        stream.set_read_timeout(Some(ANSWER))?;
        writeln!(stream, "{fault}")?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        Ok::<String, io::Error>(line)
    };
    let line = asked().map_err(|e| no(format!("the cluster does not answer: {e}")))?;
    match line.trim().split_once(' ') {
        Some(("ok", text)) => Ok(text.to_owned()),
        Some(("error", text)) => Err(SetupError::input(text, "See plimsoll target cluster fault --help")),
        _ => Err(no("the cluster ended before it answered".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_answered_by_a_line_wherever_the_directory_is() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("d".repeat(150));
        std::fs::create_dir(&deep).unwrap();
        let control = BoxControl::open(&deep).unwrap();
        let ask = |line: &str| {
            let mut stream = UnixStream::connect(short(&File::open(&deep).unwrap())).unwrap();
            writeln!(stream, "{line}").unwrap();
            control.answer(|f| {
                if f == BoxFault::Node(1, crate::fault::Becomes::Down) {
                    Ok(f.to_string())
                } else {
                    Err("no\nsuch".into())
                }
            });
            let mut line = String::new();
            BufReader::new(stream).read_line(&mut line).unwrap();
            line
        };
        assert_eq!(ask("node:1=down"), "ok node 1 is down\n");
        assert!(ask("node:2=down").starts_with("error no"), "one line");
        assert!(ask("nonsense").starts_with("error 'nonsense'"));
    }
}
