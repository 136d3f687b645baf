//! The outside world as credentials are looked for in it: this process's environment, files, programs, servers and the clock.

use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, ToSocketAddrs};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_s3::credentials::{Sources, WebAnswer, WebRequest, WebTrouble};

/// No file of credentials is longer; what is, is something else.
const MOST_BYTES: u64 = 4 << 20;

/// This machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThisMachine;

impl Sources for ThisMachine {
    fn env(&self, name: &str) -> Option<String> {
        std::env::var(name).ok().filter(|v| !v.is_empty())
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        let mut text = String::new();
        File::open(path)?.take(MOST_BYTES + 1).read_to_string(&mut text)?;
        if text.len() as u64 > MOST_BYTES {
            return Err(io::Error::other("it is longer than any such file"));
        }
        Ok(text)
    }

    fn run(&self, command: &str) -> io::Result<Vec<u8>> {
        let out = Command::new("sh")
            .args(["-c", command])
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()?;
        if out.status.success() {
            Ok(out.stdout)
        } else {
            Err(io::Error::other(format!("it ended with {}", out.status)))
        }
    }

    fn web(&self, request: &WebRequest) -> Result<WebAnswer, WebTrouble> {
        // As the AWS tools have it: who else is trusted than the system's authorities.
        plimsoll_engine::admin::fetch(request, self.env("AWS_CA_BUNDLE").as_deref())
    }

    fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        Ok((host, 0).to_socket_addrs()?.map(|a| a.ip()).collect())
    }

    fn now_unix_s(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
    }

    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }
}
