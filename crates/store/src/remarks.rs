//! What persons note while a run goes on, or after it: events on its time axis, appended to the file `remarks` of the run
//! directory, one JSON object a line. Lines that are not known are passed over: the file is not of the measurement.

use std::fs::File;
use std::io::{Read, Write};

use plimsoll_model::analysis::Remark;
use serde::{Deserialize, Serialize};

use crate::rundir::RunDir;
use crate::{StoreError, bounds, plain};

const FORMAT: &str = "plimsoll.remarks/1";
const FILE: &str = "remarks";

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Noted {
    format: String,
    at_s: f64,
    text: String,
}

impl RunDir {
    /// Notes an event, `at_s` seconds after the run's start. One write: two at once do not mix.
    pub fn note(&self, at_s: f64, text: &str) -> Result<(), StoreError> {
        let path = self.path().join(FILE);
        let noted = Noted { format: FORMAT.into(), at_s, text: text.to_owned() };
        let line = serde_json::to_string(&noted).expect("a remark is plain data") + "\n";
        let mut file = plain::open(&path, File::options().create(true).append(true))
            .map_err(StoreError::io("write", &path))?;
        file.write_all(line.as_bytes()).map_err(StoreError::io("write", &path))
    }

    /// All that was noted, in the order of time.
    pub fn remarks(&self) -> Result<Vec<Remark>, StoreError> {
        let path = self.path().join(FILE);
        // A run without notes, or with a file that is none of ours, is a run all the same.
        let Ok(file) = plain::open(&path, File::options().read(true)) else { return Ok(Vec::new()) };
        let mut text = Vec::new();
        file.take(bounds::REMARKS).read_to_end(&mut text).map_err(StoreError::io("read", &path))?;
        let mut all: Vec<Remark> = String::from_utf8_lossy(&text)
            .lines()
            .filter_map(|line| serde_json::from_str::<Noted>(line).ok())
            .filter(|n| n.format == FORMAT && n.at_s.is_finite())
            .map(|n| Remark {
                at_s: n.at_s,
                text: n.text.chars().filter(|c| !c.is_control()).collect(),
                planned: false,
            })
            .collect();
        all.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_come_back_in_the_order_of_time_and_odd_lines_do_not() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDir::create(root.path()).unwrap();
        assert_eq!(run.remarks().unwrap(), []);
        run.note(95.5, "rebuild ended").unwrap();
        run.note(30.0, "node 3 off\u{1b}[31m").unwrap();
        let mut file = File::options().append(true).open(run.path().join(FILE)).unwrap();
        file.write_all(b"{\"format\":\"plimsoll.remarks/9\",\"at_s\":1,\"text\":\"x\"}\nno json\n").unwrap();
        let said: Vec<_> = run.remarks().unwrap().into_iter().map(|r| (r.at_s, r.text)).collect();
        assert_eq!(said, [(30.0, "node 3 off[31m".to_owned()), (95.5, "rebuild ended".to_owned())]);
        std::fs::remove_file(run.path().join(FILE)).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", run.path().join(FILE)).unwrap();
        assert_eq!(run.remarks().unwrap(), []);
        assert!(run.note(1.0, "x").is_err(), "a link is not written through");
    }
}
