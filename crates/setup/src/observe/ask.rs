//! One source: asked, read, and put into a record with its time and its cost.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_engine::admin::fetch_up_to;
use plimsoll_model::Scrape;
use plimsoll_model::observed::{ReadSubject, ServerQuantity};
use plimsoll_model::plan::ObserveMake;
use plimsoll_model::text::{keep_secret, said};
use plimsoll_observe::proc::hosts_files;
use plimsoll_observe::text::{MOST_PAGE_BYTES, MetricSeries};
use plimsoll_observe::{Make, NotMetrics, PageReadings, answer, page, readings};
use plimsoll_s3::credentials::WebRequest;
use plimsoll_s3::metrics_token::metrics_token;
use plimsoll_s3::uri;
use rustix::time::{ClockId, clock_gettime};

use super::ssh::SshHost;
use super::{ObserveSetting, ObservedPlace};

/// A token's file has at most this many bytes.
const MOST_TOKEN_BYTES: usize = 16 << 10;
/// Raw samples of a Prometheus are looked for so far back: two of its usual periods, and more.
const LOOK_BACK_S: u64 = 150;
/// A series may be as old as this: after five minutes a Prometheus itself takes one for gone. (What is older is no reading of now, or its
/// clock is another.)
const OLDEST_S: f64 = 300.0;

/// A source, and what is known of it by now.
pub(super) struct Asking {
    place: ObservedPlace,
    setting: ObserveSetting,
    /// Which of its paths it knows.
    path: usize,
    /// Of ssh: the process that is on the host.
    ssh: SshHost,
    /// Of a Prometheus: when what it has of each host was made, so that nothing is recorded twice.
    made_s: std::collections::BTreeMap<String, f64>,
}

/// An answer, with the times around it.
struct Got {
    body: String,
    /// Nanoseconds since the run's start, in the middle.
    at_ns: u64,
    took_ns: u64,
    /// The wall clock at the same time, seconds since 1970.
    wall_s: f64,
}

impl Asking {
    pub fn new(place: ObservedPlace, setting: ObserveSetting) -> Self {
        let ssh = SshHost::new(&place);
        Self { place, setting, path: 0, ssh, made_s: Default::default() }
    }

    /// What came of asking once: one record, of a Prometheus one for each host of which it has something new.
    pub fn ask(&mut self, limit: Duration) -> Vec<Scrape> {
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        let begun_ns = self.now_ns();
        let asked = match self.place.make {
            ObserveMake::Ssh => self.over_ssh(limit),
            _ => self.got(limit).and_then(|got| self.read(&got)),
        };
        let mut scrapes = match asked {
            Ok(scrapes) => scrapes,
            Err(gap) => vec![Scrape { at_ns: begun_ns, gap: Some(gap), ..Scrape::default() }],
        };
        let used = clock_gettime(ClockId::ThreadCPUTime);
        let ns = |t: rustix::time::Timespec| t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64;
        if let Some(first) = scrapes.first_mut() {
            first.client_cpu_ns = ns(used).saturating_sub(ns(cpu));
        }
        scrapes
    }

    /// The page itself, once; or why there is none.
    pub fn page(&mut self, limit: Duration) -> Result<String, String> {
        self.got(limit).map(|got| got.body)
    }

    /// Nanoseconds since the run's start.
    fn now_ns(&self) -> u64 {
        plimsoll_engine::ring::monotonic_ns().saturating_sub(self.setting.epoch_ns)
    }

    /// The files of a host, read there.
    fn over_ssh(&mut self, limit: Duration) -> Result<Vec<Scrape>, String> {
        let (begun_ns, wall) = (self.now_ns(), SystemTime::now());
        let body = self.ssh.ask(limit)?;
        let took_ns = self.now_ns().saturating_sub(begun_ns);
        let wall_s = wall.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() + took_ns as f64 / 2e9;
        let subjects = hosts_files(&body, &self.place.host);
        if subjects.iter().all(|s| s.readings.is_empty()) {
            return Err(format!("{}: what it says is not of /proc", self.place.login));
        }
        let got = Got { at_ns: begun_ns + took_ns / 2, took_ns, wall_s, body };
        Ok(vec![self.scrape(&got, PageReadings { subjects, ..PageReadings::default() })])
    }

    /// Asks for the page; where the server does not know it, for the next that it may know.
    fn got(&mut self, limit: Duration) -> Result<Got, String> {
        loop {
            let mut path = self.place.paths[self.path].clone();
            if self.place.make == ObserveMake::Prometheus {
                let query = answer::query(&self.place.selector, LOOK_BACK_S);
                path = format!("{path}?query={}", encoded(&query));
            }
            let mut request = WebRequest::new("GET", &self.place.endpoint, path, limit)
                .with("accept", "text/plain;version=0.0.4, */*;q=0.5");
            if let Some(token) = self.token()? {
                request = request.with("authorization", format!("Bearer {token}"));
            }
            let (begun_ns, wall) = (self.now_ns(), SystemTime::now());
            let answer =
                fetch_up_to(&request, &self.place.tls, MOST_PAGE_BYTES).map_err(|t| said(&t.what))?;
            let took_ns = self.now_ns().saturating_sub(begun_ns);
            match answer.status {
                200 => {}
                400 | 404 if self.path + 1 < self.place.paths.len() => {
                    self.path += 1;
                    continue;
                }
                status => return Err(self.refused(status, &answer.body)),
            }
            let wall_s = wall.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
            return Ok(Got {
                body: String::from_utf8_lossy(&answer.body).into_owned(),
                at_ns: begun_ns + took_ns / 2,
                took_ns,
                wall_s: wall_s + took_ns as f64 / 2e9,
            });
        }
    }

    fn refused(&self, status: u16, body: &[u8]) -> String {
        let name = &self.place.endpoint;
        let why = match status {
            401 | 403 => {
                "it wants a token that it knows: name one with token_env or token_file (--observe-token-file); MinIO's users need the \
                 right admin:Prometheus"
            }
            404 => "there is no such page: check the path",
            503 if self.place.make == ObserveMake::Ceph => {
                "its metrics are stale, or it is a standby manager"
            }
            _ => "",
        };
        let text = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
        let text = said(text.lines().next().unwrap_or_default());
        match why {
            "" => format!("{name} answered {status}: {text}"),
            why => format!("{name} answered {status}: {why}"),
        }
    }

    /// The bearer token: named, or of MinIO's made of the run's keys.
    fn token(&self) -> Result<Option<String>, String> {
        let named = match (&self.place.token_env, &self.place.token_file) {
            (Some(name), _) => Some(
                std::env::var(name)
                    .map_err(|_| format!("the environment variable {name} with the token is not set"))?,
            ),
            (None, Some(file)) => Some(token_of(Path::new(file))?),
            (None, None) => None,
        };
        if let Some(token) = named {
            let token = token.trim().to_owned();
            if token.is_empty() || !token.bytes().all(|b| b.is_ascii_graphic()) {
                return Err("the token is empty, or not one word of printable characters".into());
            }
            keep_secret(&token);
            return Ok(Some(token));
        }
        let keys = self.setting.keys.as_ref().filter(|_| self.place.make == ObserveMake::Minio);
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Ok(keys.map(|keys| metrics_token(&keys.get(), now_s)))
    }

    fn read(&mut self, got: &Got) -> Result<Vec<Scrape>, String> {
        let in_words = |e: NotMetrics| format!("{}: {e}", self.place.endpoint);
        let make = match self.place.make {
            ObserveMake::Node => Make::Node,
            ObserveMake::Process => Make::Process,
            ObserveMake::Minio => Make::Minio,
            ObserveMake::Ceph => Make::Ceph,
            ObserveMake::Metrics | ObserveMake::Ssh => Make::Any,
            ObserveMake::Prometheus => {
                let (series, left_out, between_s) = answer::series(&got.body).map_err(in_words)?;
                return self.of_prometheus(got, &series, left_out, between_s);
            }
        };
        let found = readings(make, &got.body, &self.place.host).map_err(in_words)?;
        Ok(vec![self.scrape(got, found)])
    }

    fn scrape(&self, got: &Got, found: PageReadings) -> Scrape {
        let ns = |s: f64| (s * 1e9) as i64;
        let clock = value(&found.subjects, ServerQuantity::ClockUnixS);
        let old_s = age_s(got.wall_s, found.made_s);
        // A clock that was read a while ago told that time, and not the one of asking.
        let read_s = got.wall_s - age_s(got.wall_s, found.clock_made_s);
        Scrape {
            at_ns: got.at_ns.saturating_sub(ns(old_s) as u64),
            took_ns: got.took_ns,
            bytes: got.body.len() as u64,
            client_cpu_ns: 0,
            resolution_ns: ns(found.resolution_s) as u64,
            clock_ahead_ns: clock.map(|c| ns(c - read_s)),
            subjects: found.subjects,
            gap: None,
            missing: found.missing,
            left_out: found.left_out,
        }
    }

    /// Hosts are scraped at different times: a record for each of which there is something new.
    fn of_prometheus(
        &mut self,
        got: &Got,
        series: &[MetricSeries],
        left_out: u64,
        between_s: f64,
    ) -> Result<Vec<Scrape>, String> {
        let mut by_host: std::collections::BTreeMap<&str, Vec<MetricSeries>> = Default::default();
        for s in series {
            by_host.entry(s.label("instance")).or_default().push(s.clone());
        }
        if by_host.is_empty() {
            return Err(format!(
                "{}: it has nothing that is known where the selector holds",
                self.place.endpoint
            ));
        }
        let mut out = Vec::new();
        for (instance, series) in by_host {
            let host = page::host_part(instance).to_owned();
            let Ok(mut found) = page::of_series(Make::Any, &series, left_out, |_| host.clone()) else {
                continue;
            };
            let made_s = found.made_s.unwrap_or(got.wall_s);
            if self.made_s.insert(instance.to_owned(), made_s).is_some_and(|before| before >= made_s) {
                continue;
            }
            found.resolution_s = found.resolution_s.max(between_s);
            out.push(self.scrape(got, found));
        }
        // What one answer took is counted once.
        out.iter_mut().skip(1).for_each(|s| (s.bytes, s.took_ns) = (0, 0));
        Ok(out)
    }
}

/// Each byte that has a meaning in a query.
fn encoded(text: &str) -> String {
    let mut out = Vec::new();
    uri::encode_query(text.as_bytes(), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn value(subjects: &[ReadSubject], quantity: ServerQuantity) -> Option<f64> {
    subjects.iter().flat_map(|s| &s.readings).find(|r| r.quantity == quantity).map(|r| r.value)
}

/// How long before it was asked a series was made, by its stamp. A stamp that is far off, or of later, is another clock's, and is not
/// followed: then it counts as made when it was asked.
fn age_s(asked_s: f64, made_s: Option<f64>) -> f64 {
    made_s.map(|made| asked_s - made).filter(|age| (0.0..=OLDEST_S).contains(age)).unwrap_or(0.0)
}

/// The first line of a plain file. A pipe or a device is not waited for: it may never give anything.
fn token_of(file: &Path) -> Result<String, String> {
    use std::io::Read as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let name = file.display();
    let cannot = |e: std::io::Error| format!("the token's file {name} cannot be read: {e}");
    let mut how = std::fs::File::options();
    let opened =
        how.read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(file).map_err(cannot)?;
    if !opened.metadata().map_err(cannot)?.is_file() {
        return Err(format!("the token's file {name} is no plain file"));
    }
    let mut text = String::new();
    opened.take(MOST_TOKEN_BYTES as u64 + 1).read_to_string(&mut text).map_err(cannot)?;
    if text.len() > MOST_TOKEN_BYTES {
        return Err(format!("the token's file {name} is longer than {MOST_TOKEN_BYTES} bytes"));
    }
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_S: f64 = 1_700_000_000.0;
    const S: i64 = 1_000_000_000;

    fn asking(source: &str) -> Asking {
        let text = "version = 1\n[targets.t]\nkind = \"null\"\n[[stage]]\n[[stage.workload]]\nname = \"w\"\nmix = { null = 1 }\n";
        let mut plan = plimsoll_model::Plan::from_toml(text).unwrap();
        plan.options.observe = vec![source.parse().unwrap()];
        let place = super::super::places(&plan).unwrap().remove(0);
        Asking::new(place, ObserveSetting { every: Duration::from_secs(2), keys: None, epoch_ns: 0 })
    }

    fn got(body: String) -> Got {
        Got { body, at_ns: 1_000 * S as u64, took_ns: 0, wall_s: NOW_S }
    }

    /// Seconds before it was asked where a reading is put, and how far ahead the clock is told, of a page whose clock and stamps are as given.
    fn page(clock_s: f64, stamp_s: f64) -> (i64, i64) {
        let stamp = (stamp_s * 1000.0) as i64;
        let body = format!("node_time_seconds {clock_s} {stamp}\nnode_memory_MemTotal_bytes 8e9 {stamp}\n");
        seconds(&asking("node=http://s1:9100").read(&got(body)).unwrap()[0])
    }

    fn seconds(scrape: &Scrape) -> (i64, i64) {
        let rounded = |ns: i64| (ns as f64 / S as f64).round() as i64;
        (rounded(1_000 * S - scrape.at_ns as i64), rounded(scrape.clock_ahead_ns.unwrap()))
    }

    #[test]
    fn a_stamp_of_another_clock_is_not_followed() {
        assert_eq!(page(NOW_S - 10.0, NOW_S - 10.0), (10, 0));
        assert_eq!(page(NOW_S - 7200.0, NOW_S - 7200.0), (0, -7200));
        assert_eq!(page(NOW_S - 301.0, NOW_S - 301.0), (0, -301));
        assert_eq!(page(NOW_S + 7200.0, NOW_S + 7200.0), (0, 7200));
    }

    #[test]
    fn a_clock_is_compared_with_the_time_of_its_own_sample() {
        let body = |series: &str| {
            format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":[{series}]}}}}"#)
        };
        let one = |name: &str, at_s: f64, value: f64| {
            format!(
                r#"{{"metric":{{"__name__":"{name}","instance":"s1:9100","job":"n"}},"values":[[{at_s},"{value}"]]}}"#
            )
        };
        let old = NOW_S - 10.0;
        let read = |body| seconds(&asking("prometheus=http://p:9090").read(&got(body)).unwrap()[0]);
        assert_eq!(read(body(&one("node_time_seconds", old, old))), (10, 0));
        assert_eq!(read(body(&one("node_time_seconds", old, old + 3.0))), (10, 3));
        // Another series is newer than the clock's.
        let newer = one("node_memory_MemTotal_bytes", NOW_S - 2.0, 8e9);
        assert_eq!(read(body(&format!("{},{newer}", one("node_time_seconds", old, old)))), (2, 0));
        // A clock without a time of its own is of when it was asked.
        let page =
            format!("node_time_seconds {NOW_S}\nnode_memory_MemTotal_bytes 8e9 {}\n", old as i64 * 1000);
        assert_eq!(seconds(&asking("node=http://s1:9100").read(&got(page)).unwrap()[0]), (10, 0));
    }

    /// Gives up where it would wait for good.
    fn token_in_time(file: &Path) -> Result<String, String> {
        let (tell, told) = std::sync::mpsc::channel();
        let file = file.to_owned();
        std::thread::spawn(move || tell.send(token_of(&file)));
        told.recv_timeout(Duration::from_secs(10)).expect("it waits for good")
    }

    #[test]
    fn a_token_is_read_of_a_plain_file_alone() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("token"), "secret\nmore\n").unwrap();
        std::os::unix::fs::symlink(at("token"), at("link")).unwrap();
        assert_eq!(token_in_time(&at("token")).unwrap(), "secret");
        assert_eq!(token_in_time(&at("link")).unwrap(), "secret");
        mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for other in [at("fifo"), dir.path().to_owned(), "/dev/zero".into()] {
            let why = token_in_time(&other).unwrap_err();
            assert!(why.contains("is no plain file"), "{why}");
        }
        std::fs::write(at("long"), "x".repeat(MOST_TOKEN_BYTES + 1)).unwrap();
        assert!(token_in_time(&at("long")).unwrap_err().contains("longer than"));
    }
}
