//! Points of a finished run, handed to an InfluxDB by HTTP. Nothing is read from there, and nothing removed: points that are written again
//! replace themselves.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use plimsoll_engine::admin::{check_tls, fetch_up_to};
use plimsoll_model::plan::TlsSpec;
use plimsoll_model::text::{keep_secret, said};
use plimsoll_s3::credentials::WebRequest;
use plimsoll_s3::endpoint::Endpoint;

use crate::SetupError;

/// Points in one request: what InfluxDB's own documentation advises.
const BATCH_LINES: usize = 5_000;
/// For connecting, and for an answer.
const LIMIT: Duration = Duration::from_secs(30);
/// An answer is empty, or a sentence.
const MOST_ANSWER_BYTES: usize = 64 << 10;
/// Parameters of an address that say where points go, and how they are written (InfluxDB 1, 2 and 3).
const WHERE: [&str; 9] =
    ["db", "rp", "precision", "consistency", "org", "orgid", "bucket", "accept_partial", "no_sync"];
/// Where InfluxDB's own tools look for a token.
pub const INFLUX_TOKEN: &str = "INFLUX_TOKEN";

/// Which of its write endpoints is spoken to. Each newer InfluxDB takes the older ones, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InfluxApi {
    /// `/write?db=`
    V1,
    /// `/api/v2/write?bucket=`
    V2,
    /// `/api/v3/write_lp?db=`
    V3,
}

impl InfluxApi {
    /// By the path's end: a proxy may have put something before it.
    fn of(path: &str) -> Option<Self> {
        let path = path.trim_end_matches('/');
        let forms = [("/api/v3/write_lp", Self::V3), ("/api/v2/write", Self::V2), ("/write", Self::V1)];
        forms.into_iter().find(|(end, _)| path.ends_with(end)).map(|(_, api)| api)
    }

    /// Without it nothing says into what points are written.
    fn needs(self) -> &'static str {
        match self {
            Self::V1 | Self::V3 => "db",
            Self::V2 => "bucket",
        }
    }

    /// How nanoseconds are called. Version 3 guesses from the digits where nothing is said.
    fn precision(self) -> &'static str {
        match self {
            Self::V1 | Self::V2 => "ns",
            Self::V3 => "nanosecond",
        }
    }

    /// The head that carries a token. Of version 1, which has users and no tokens of its own, USER:PASSWORD as HTTP has them.
    fn authorization(self, token: &str) -> String {
        match self {
            Self::V1 if token.contains(':') => format!("Basic {}", BASE64_STANDARD.encode(token)),
            Self::V1 | Self::V2 => format!("Token {token}"),
            Self::V3 => format!("Bearer {token}"),
        }
    }
}

/// An address to which points are posted.
#[derive(Debug, Clone)]
pub struct InfluxUrl {
    server: Endpoint,
    path: String,
    api: InfluxApi,
}

impl InfluxUrl {
    /// A whole address with path and query: `http://HOST:8086/write?db=DB` (InfluxDB 1),
    /// `http://HOST:8086/api/v2/write?org=ORG&bucket=BUCKET` (2) or `http://HOST:8181/api/v3/write_lp?db=DB` (3). Keys in it are refused: it
    /// would stand in the run's own record.
    pub fn parse(url: &str) -> Result<Self, SetupError> {
        let form = "http://HOST:8086/write?db=DB (InfluxDB 1), http://HOST:8086/api/v2/write?org=ORG&bucket=BUCKET (2) or \
                    http://HOST:8181/api/v3/write_lp?db=DB (3)";
        let bad = |problem: &str| SetupError::input(format!("--influx: {problem}"), format!("Write {form}"));
        let (scheme, rest) = url.split_once("://").ok_or_else(|| bad("that is no URL"))?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let is_where = |pair: &str| {
            let name = pair.split('=').next().unwrap_or_default().to_ascii_lowercase();
            pair.is_empty() || WHERE.contains(&name.as_str())
        };
        let query = path.split_once('?').map_or("", |(_, q)| q);
        // A key has many names, and more spellings; what says where points go has few.
        if authority.contains('@') || !query.split('&').all(is_where) {
            return Err(SetupError::input(
                "--influx: user names, passwords and tokens do not belong into the address: it is stored with the run",
                format!(
                    "Put the token into the environment as {INFLUX_TOKEN} (of InfluxDB 1: USER:PASSWORD), and leave in the address only {}",
                    WHERE.join(", ")
                ),
            ));
        }
        if !path.starts_with('/')
            || query.is_empty()
            || path.contains(['#', ' '])
            || path.chars().any(char::is_control)
        {
            return Err(bad("the address says neither where points are written nor into what"));
        }
        let api = InfluxApi::of(path.split_once('?').map_or(path, |(p, _)| p))
            .ok_or_else(|| bad("no InfluxDB writes points at that path"))?;
        let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        if value(api.needs()).is_none_or(str::is_empty) {
            return Err(bad(&format!(
                "the address does not say into what points are written: {}=",
                api.needs()
            )));
        }
        let mut path = path.to_owned();
        match value("precision") {
            Some(given) if given != api.precision() => {
                return Err(bad(&format!("times of points are nanoseconds (precision={})", api.precision())));
            }
            Some(_) => {}
            None => path.push_str(&format!("&precision={}", api.precision())),
        }
        let server = Endpoint::parse(&format!("{scheme}://{authority}")).map_err(|e| bad(&e.to_string()))?;
        Ok(Self { server, path, api })
    }

    /// Whether certificates can be verified by this file: said before anything is measured.
    pub fn check_ca_file(&self, ca_file: &str) -> Result<(), SetupError> {
        if !self.server.tls {
            return Err(SetupError::input(
                format!("--influx-ca-file: {} is asked without TLS", self.server),
                "Write https:// in --influx, or leave --influx-ca-file out",
            ));
        }
        check_tls(&trusting(Some(ca_file))).map_err(|why| {
            SetupError::input(
                format!("--influx-ca-file: {why}"),
                "Name the PEM file of the authority that signed the server's certificate",
            )
        })
    }

    /// Posts lines of points, a batch after the other, and says how many there were. Stops at the first that is refused: those before it
    /// are written.
    pub fn post(&self, lines: &str, token: Option<&str>, ca_file: Option<&str>) -> Result<usize, SetupError> {
        let tls = trusting(ca_file);
        let points: Vec<&str> = lines.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).collect();
        let mut written = 0;
        for batch in points.chunks(BATCH_LINES) {
            self.batch(batch, token, &tls).map_err(|why| {
                SetupError::input(
                    format!("{} did not take the points: {why}; {written} of {} are written", self.server, points.len()),
                    "Check address and token, and write them again: `plimsoll report RUN --influx URL` (points replace themselves)",
                )
            })?;
            written += batch.len();
        }
        Ok(written)
    }

    fn batch(&self, lines: &[&str], token: Option<&str>, tls: &TlsSpec) -> Result<(), String> {
        let mut request = WebRequest::new("POST", &self.server, self.path.clone(), LIMIT)
            .with("content-type", "text/plain; charset=utf-8");
        if let Some(token) = token {
            keep_secret(token);
            request = request.with("authorization", self.api.authorization(token));
        }
        request.body = lines.join("\n") + "\n";
        let answer = fetch_up_to(&request, tls, MOST_ANSWER_BYTES).map_err(|t| said(&t.what))?;
        match answer.status {
            200 | 204 => Ok(()),
            status => Err(format!("HTTP {status}: {}", said(&String::from_utf8_lossy(&answer.body)))),
        }
    }
}

fn trusting(ca_file: Option<&str>) -> TlsSpec {
    TlsSpec { ca_file: ca_file.map(str::to_owned), ..TlsSpec::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_where_and_holds_no_key() {
        for good in ["http://h:8086/write?db=x", "https://h/api/v2/write?org=o&bucket=b&precision=ns"] {
            InfluxUrl::parse(good).unwrap();
        }
        let path = |url: &str| InfluxUrl::parse(url).unwrap().path;
        assert_eq!(path("http://h/api/v3/write_lp?db=x"), "/api/v3/write_lp?db=x&precision=nanosecond");
        assert_eq!(path("http://h/proxy/write?db=x"), "/proxy/write?db=x&precision=ns");
        assert_eq!(
            path("http://h/api/v2/write?bucket=b&precision=ns"),
            "/api/v2/write?bucket=b&precision=ns"
        );
        for (bad, why) in [
            ("h:8086", "no URL"),
            ("http://h:8086", "neither where"),
            ("http://h:8086/write", "neither where"),
            ("http://me:geheim@h/write?db=x", "do not belong"),
            ("http://h/write?db=x&u=me&p=geheim", "do not belong"),
            ("http://h/write?db=x&%70=geheim", "do not belong"),
            ("http://h/write?db=x&code=geheim", "only db, rp"),
            ("http://h/write?geheim", "do not belong"),
            ("http://h/write?db=x&precision=s", "nanoseconds"),
            ("http://h/api/v3/write_lp?db=x&precision=ns", "precision=nanosecond"),
            ("http://h/api/v3/write_lp?bucket=x", "db="),
            ("http://h/api/v2/write?db=x", "bucket="),
            ("http://h/write?db=", "db="),
            ("http://h/query?db=x", "no InfluxDB"),
            ("ftp://h/write?db=x", "--influx"),
        ] {
            let told = InfluxUrl::parse(bad).unwrap_err().to_string();
            assert!(told.contains(why) && !told.contains("geheim"), "{bad}: {told}");
        }
    }

    #[test]
    fn each_version_is_told_who_writes_in_its_own_words() {
        let of = |url: &str, token: &str| InfluxUrl::parse(url).unwrap().api.authorization(token);
        assert_eq!(of("http://h/write?db=x", "me:pw"), "Basic bWU6cHc=");
        assert_eq!(of("http://h/write?db=x", "abc"), "Token abc");
        assert_eq!(of("http://h/api/v2/write?bucket=b", "abc"), "Token abc");
        assert_eq!(of("http://h/api/v3/write_lp?db=x", "abc"), "Bearer abc");
    }
}
