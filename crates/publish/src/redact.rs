//! What must not leave the house: names of machines, endpoints, buckets and addresses, each replaced by a name of its own that says
//! nothing, the same everywhere. Applied to every text before a page is made of it, so that no markup is ever touched.

use std::collections::BTreeMap;
use std::net::IpAddr;

use plimsoll_model::cluster::Cluster;
use plimsoll_model::credentials::{is_credential, toml_without_credentials, without_credentials};
use plimsoll_model::pattern::expand_ranges;
use plimsoll_model::plan::{ObserveMake, ObserveSpec, Plan, TargetSpec};
use plimsoll_model::text::LEFT_OUT;
use plimsoll_model::{Environment, RunSummary};

/// A kind of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RedactKind {
    /// Names of machines and agents, and what tells one machine from others.
    Hosts,
    /// Of storage: URLs, and the hosts and ports in them.
    Endpoints,
    /// Of object storage.
    Buckets,
    /// IP addresses, wherever they stand.
    Addresses,
}

impl RedactKind {
    /// All, as they are named on the command line.
    pub const ALL: [(&'static str, Self); 4] = [
        ("hosts", Self::Hosts),
        ("endpoints", Self::Endpoints),
        ("buckets", Self::Buckets),
        ("addresses", Self::Addresses),
    ];

    fn stand_in(self, n: usize) -> String {
        // Names that may stand in a URL, and that no network resolves.
        match self {
            Self::Hosts => format!("host-{n}.invalid"),
            Self::Endpoints => format!("endpoint-{n}.invalid"),
            Self::Buckets => format!("redacted-bucket-{n}"),
            Self::Addresses => format!("address-{n}.invalid"),
        }
    }
}

/// Names of storage that mean no place: an embedded server has no address of its own.
const NO_PLACE: [&str; 4] = ["embedded", "local", "localhost", ""];
/// Shorter names are replaced only where they stand alone.
const LEAST_INSIDE: usize = 5;

/// Knows what is to be replaced, and by what.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    kinds: Vec<RedactKind>,
    /// Lower case, longest first.
    words: Vec<(String, String)>,
    addresses: BTreeMap<String, String>,
    counts: BTreeMap<RedactKind, usize>,
}

impl Redactor {
    /// Of these kinds; it knows no name yet.
    pub fn new(kinds: &[RedactKind]) -> Self {
        Self { kinds: kinds.to_vec(), ..Self::default() }
    }

    /// Whether it does anything.
    pub fn is_on(&self) -> bool {
        !self.kinds.is_empty()
    }

    /// How many different names of each kind it knows.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, usize)> {
        RedactKind::ALL
            .iter()
            .filter(|(_, k)| self.kinds.contains(k))
            .map(|(name, k)| (*name, self.counts.get(k).copied().unwrap_or_default()))
    }

    /// Every name that it knows: what a search over all files must not find.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(|(w, _)| w.as_str()).chain(self.addresses.keys().map(String::as_str))
    }

    fn know(&mut self, kind: RedactKind, name: &str) {
        let name = name.trim().to_lowercase();
        if !self.kinds.contains(&kind) || NO_PLACE.contains(&name.as_str()) {
            return;
        }
        if self.words.iter().any(|(w, _)| *w == name) {
            return;
        }
        let n = self.counts.entry(kind).or_default();
        *n += 1;
        self.words.push((name, kind.stand_in(*n)));
        // One name may be part of another: the whole goes first.
        self.words.sort_by_key(|(w, _)| std::cmp::Reverse(w.len()));
    }

    fn know_endpoint(&mut self, url: &str) {
        self.know_url(url, Self::know_endpoint_host);
    }

    /// Its port alone says nothing; a path behind it stays readable.
    fn know_endpoint_host(&mut self, host: &str) {
        self.know(RedactKind::Endpoints, host);
    }

    /// One name of a server that was observed: a machine, and for whoever hides endpoints alone one of these.
    fn know_server(&mut self, name: &str) {
        self.know(RedactKind::Hosts, name);
        self.know(RedactKind::Endpoints, name);
    }

    fn know_url(&mut self, url: &str, know: fn(&mut Self, &str)) {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let host = match authority.strip_prefix('[') {
            Some(v6) => v6.split(']').next().unwrap_or_default(),
            None => authority.split(':').next().unwrap_or_default(),
        };
        know(self, host);
        // `node{1...4}` is four names, and any of them may stand in a message.
        if host.contains('{') {
            expand_ranges(host).iter().flatten().for_each(|host| know(self, host));
        }
    }

    /// Names that a plan has: of its targets, of whoever is asked what servers do meanwhile, and of the servers themselves.
    pub fn know_plan(&mut self, plan: &Plan) {
        plan.targets.values().for_each(|t| self.know_target(t));
        self.know_servers(&plan.options.observe, plan.options.cluster.as_deref());
    }

    /// Who is asked, and what a cluster is made of.
    pub fn know_servers(&mut self, observe: &[ObserveSpec], cluster: Option<&Cluster>) {
        for source in observe {
            match source.make {
                ObserveMake::Ssh => self.know_url(&source.url, Self::know_server),
                _ => self.know_url(source.parts().0, Self::know_server),
            }
        }
        for node in cluster.iter().flat_map(|c| &c.nodes) {
            for pattern in std::iter::once(&node.name).chain(&node.addresses) {
                self.know_server(pattern);
                expand_ranges(pattern).iter().flatten().for_each(|name| self.know_server(name));
            }
        }
    }

    /// Names that a target of a file or plan has.
    pub fn know_target(&mut self, target: &TargetSpec) {
        if let TargetSpec::S3(s) = target {
            for url in s.endpoints.iter().chain(&s.redirects_to) {
                self.know_endpoint(url);
            }
            self.know(RedactKind::Buckets, &s.bucket);
        }
    }

    /// Names that a run brings along.
    pub fn know_run(&mut self, summary: &RunSummary) {
        self.know_environment(&summary.environment);
        for endpoint in summary.workloads.iter().flat_map(|w| &w.per_endpoint) {
            self.know_endpoint(&endpoint.endpoint);
        }
        summary.agents.iter().for_each(|a| {
            self.know(RedactKind::Hosts, &a.host);
            self.know(RedactKind::Hosts, &a.agent);
        });
        for source in summary.servers.iter().flat_map(|s| &s.sources) {
            source.hosts.iter().for_each(|host| self.know_server(host));
        }
        let windows = summary.servers.iter().flat_map(|s| &s.windows);
        windows.flat_map(|w| &w.resources).for_each(|r| self.know_server(&r.host));
    }

    fn know_environment(&mut self, env: &Environment) {
        for place in env.servers.keys().filter(|k| k.contains(['.', ':', '/'])) {
            self.know_endpoint(place);
        }
        for agent in env.agent_hosts() {
            self.know(RedactKind::Hosts, &agent.agent);
            self.know(RedactKind::Hosts, &agent.machine.host);
            // A name without its domain is the same machine.
            if let Some((short, _)) = agent.machine.host.split_once('.') {
                self.know(RedactKind::Hosts, short);
            }
            self.know(RedactKind::Hosts, &agent.machine.boot_id);
        }
        self.know(RedactKind::Hosts, &env.machine.host);
    }

    /// The text without them.
    pub fn text(&mut self, text: &str) -> String {
        // What looks like a key never leaves, whatever was asked for.
        let mut out = without_credentials(text).into_owned();
        if !self.is_on() || text.is_empty() {
            return out;
        }
        for (word, by) in &self.words {
            out = replaced(&out, word, by);
        }
        if self.kinds.contains(&RedactKind::Addresses) { self.without_addresses(&out) } else { out }
    }

    /// What has this name, without them.
    pub fn value(&mut self, name: &str, value: &str) -> String {
        if is_credential(name, value) { LEFT_OUT.to_owned() } else { self.text(value) }
    }

    /// Labels without them.
    pub fn labels(&mut self, labels: BTreeMap<String, String>) -> BTreeMap<String, String> {
        labels.into_iter().map(|(k, v)| (self.text(&k), self.value(&k, &v))).collect()
    }

    /// The text of a TOML file without them. Where they stood in escapes (`\u0062`), in which a name is no text that is found, it is written
    /// anew for that, without its comments.
    pub fn toml(&mut self, text: &str) -> String {
        let out = self.text(&toml_without_credentials(text));
        let Ok(mut table) = out.parse::<toml::Table>() else { return out };
        if !self.cleaned(&mut table) {
            return out;
        }
        self.text(&format!(
            "# Written anew: names that are left out stood in it in other spellings.\n{table}"
        ))
    }

    /// Whether a name was in it.
    fn cleaned(&mut self, table: &mut toml::Table) -> bool {
        let mut changed = false;
        for (key, mut value) in std::mem::take(table) {
            let name = self.text(&key);
            changed |= name != key;
            changed |= self.cleaned_value(&mut value);
            table.insert(name, value);
        }
        changed
    }

    fn cleaned_value(&mut self, value: &mut toml::Value) -> bool {
        match value {
            toml::Value::String(text) => {
                let clean = self.text(text);
                let changed = clean != *text;
                *text = clean;
                changed
            }
            // All of them, not only up to the first.
            toml::Value::Array(all) => {
                all.iter_mut().filter_map(|v| self.cleaned_value(v).then_some(())).count() > 0
            }
            toml::Value::Table(table) => self.cleaned(table),
            _ => false,
        }
    }

    /// In place.
    pub fn apply(&mut self, text: &mut String) {
        *text = self.text(text);
    }

    fn without_addresses(&mut self, text: &str) -> String {
        let is_part = |c: char| c.is_ascii_hexdigit() || matches!(c, ':' | '.');
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        let mut before = ' ';
        while let Some(c) = rest.chars().next() {
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            // Only a whole word: hexadecimal digits are letters of other words, too.
            if end == 0 || before.is_ascii_alphanumeric() || before == '_' {
                // Of these only four numbers with dots are still an address.
                if c.is_ascii_digit() && !before.is_ascii_digit() {
                    let token =
                        &rest[..rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len())];
                    out.push_str(&self.without_ipv4(token));
                    before = token.chars().next_back().unwrap_or(' ');
                    rest = &rest[token.len()..];
                    continue;
                }
                out.push(c);
                before = c;
                rest = &rest[c.len_utf8()..];
                continue;
            }
            let token = &rest[..end];
            let mut left = token;
            while !left.is_empty() {
                let (address, tail) = address_at(left);
                match address {
                    Some(address) => out.push_str(&self.stand_in_of(address)),
                    None => out.push_str(&self.without_ipv4(&left[..left.len() - tail.len()])),
                }
                left = tail;
            }
            before = token.chars().next_back().unwrap_or(' ');
            rest = &rest[end..];
        }
        out
    }

    /// Four numbers with dots are an address also where letters touch them (`ip_10.1.2.3`, `db10.1.2.3`).
    fn without_ipv4(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
            out.push_str(&rest[..at]);
            let digits = &rest[at..];
            let end = digits.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(digits.len());
            let token = digits[..end].trim_end_matches('.');
            match token.parse::<std::net::Ipv4Addr>() {
                Ok(_) => out.push_str(&self.stand_in_of(token)),
                Err(_) => out.push_str(token),
            }
            rest = &digits[token.len()..];
        }
        out + rest
    }

    fn stand_in_of(&mut self, address: &str) -> String {
        if let Some(by) = self.addresses.get(address) {
            return by.clone();
        }
        let n = self.counts.entry(RedactKind::Addresses).or_default();
        *n += 1;
        let by = RedactKind::Addresses.stand_in(*n);
        self.addresses.insert(address.to_owned(), by.clone());
        by
    }
}

/// The address at the beginning of a token of digits, dots and colons, and what is behind it: a port, the end of a sentence.
fn address_at(token: &str) -> (Option<&str>, &str) {
    let bare = token.trim_end_matches(['.', ':']);
    if bare.len() > 2 && bare.parse::<IpAddr>().is_ok() {
        return (Some(bare), &token[bare.len()..]);
    }
    // An IPv4 address with its port.
    if let Some((ip, _)) = bare.split_once(':')
        && ip.parse::<std::net::Ipv4Addr>().is_ok()
    {
        return (Some(ip), &token[ip.len()..]);
    }
    // Behind a colon there may be one: what is before it goes out as it is.
    (None, token.find(':').map_or("", |at| &token[at + 1..]))
}

/// Whatever its case; a short name only where it is a word.
fn replaced(text: &str, word: &str, by: &str) -> String {
    // Only ASCII changes its case, so that places in both texts are the same.
    let lower = text.to_ascii_lowercase();
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    while let Some(at) = lower[from..].find(word).map(|i| from + i) {
        let end = at + word.len();
        let stands_alone = !is_word(lower[..at].chars().next_back()) && !is_word(lower[end..].chars().next());
        out.push_str(&text[from..at]);
        out.push_str(if stands_alone || word.len() >= LEAST_INSIDE { by } else { &text[at..end] });
        from = end;
    }
    out.push_str(&text[from..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Redactor {
        Redactor::new(&RedactKind::ALL.map(|(_, k)| k))
    }

    #[test]
    fn names_are_replaced_wherever_and_however_they_stand() {
        let mut r = all();
        r.know_endpoint("https://User:x@S3.Example.org:9000/path");
        r.know(RedactKind::Buckets, "tests");
        r.know(RedactKind::Hosts, "db7");
        let text = r.text("at https://s3.EXAMPLE.org:9000/tests/x on DB7, not db70, mytests-2");
        assert_eq!(
            text,
            "at https://endpoint-1.invalid:9000/redacted-bucket-1/x on host-1.invalid, not db70, myredacted-bucket-1-2"
        );
        // The same again, and nothing new.
        assert_eq!(r.text("db7"), "host-1.invalid");
    }

    #[test]
    fn a_pattern_of_servers_is_each_of_them() {
        let mut r = all();
        r.know_endpoint("http://node{08...10}.example.net:9000");
        let text =
            r.text("node09.example.net refused, NODE10.EXAMPLE.NET, http://node{08...10}.example.net:9000");
        assert!(!text.to_lowercase().contains("example") && !text.contains("node"), "{text}");
        assert_eq!(text.matches(".invalid").count(), 3, "{text}");
    }

    #[test]
    fn observed_servers_and_nodes_of_a_cluster_are_machines() {
        let observe: Vec<ObserveSpec> = [
            "node=http://storage-{1...2}.corp.example:9100",
            "ssh=root@db7.corp.example:2222",
            "minio=https://[2001:db8::7]:9000/x",
        ]
        .map(|s| s.parse().unwrap())
        .to_vec();
        let cluster: Cluster = toml::from_str(
            "version = 1\nsoftware = \"minio\"\n[[node]]\nname = \"disk{01...02}\"\naddresses = [\"nas{1...2}.example\"]\n",
        )
        .unwrap();
        let told = "storage-{1...2}.corp.example STORAGE-2.corp.example db7.corp.example disk01 nas2.example 2001:db8::7";
        for kinds in [vec![RedactKind::Hosts], vec![RedactKind::Endpoints]] {
            let mut r = Redactor::new(&kinds);
            r.know_servers(&observe, Some(&cluster));
            let text = r.text(told);
            assert!(
                !text.contains("corp") && !text.contains("disk") && !text.contains("nas"),
                "{kinds:?}: {text}"
            );
            assert!(!text.contains("db8"), "{kinds:?}: {text}");
        }
        let mut none = Redactor::new(&[RedactKind::Buckets]);
        none.know_servers(&observe, Some(&cluster));
        assert_eq!(none.text(told), told);
    }

    #[test]
    fn a_name_in_escapes_does_not_pass() {
        let mut r = all();
        r.know_endpoint("http://s3.example.org:9000");
        r.know(RedactKind::Buckets, "secretbucket");
        let plain = "# a comment\nbucket = \"secretbucket\"\nhost = 's3.example.org'\n";
        let out = r.toml(plain);
        assert!(out.starts_with("# a comment\n") && !out.contains("secretbucket"), "{out}");
        for hidden in [
            "bucket = \"secret\\u0062ucket\"\n",
            "bucket = \"secret\\U00000062ucket\"\n",
            "[subject]\nruns = [\"x\", \"\"\"a secret\\\n   bucket\"\"\"]\n",
            "\"secret\\u0062ucket\" = 1\n",
            "note = \"at 10.\\u0031.2.3\"\n",
            "host = \"s3.ex\\u0061mple.org\"\n",
            "keys = \"AKIAABCD\\u0045FGHIJKLMNOP\"\n",
        ] {
            let out = r.toml(hidden);
            let is_anew = out.starts_with("# Written anew");
            let value = out.parse::<toml::Table>().unwrap().to_string();
            assert!(is_anew, "{hidden}");
            for name in ["secretbucket", "example.org", "10.1.2.3", "AKIAABCD"] {
                assert!(!value.contains(name) && !out.contains(name), "{hidden}: {out}");
            }
        }
    }

    #[test]
    fn addresses_are_known_by_their_form_and_other_numbers_are_not() {
        let mut r = all();
        let text = r.text("10.0.0.7:9000, [fe80::1]:80, 10.0.0.7. But 1.5 at 12:30:10, std::fs, 0.1.0");
        assert_eq!(
            text,
            "address-1.invalid:9000, [address-2.invalid]:80, address-1.invalid. But 1.5 at 12:30:10, std::fs, 0.1.0"
        );
        let mut r = all();
        let text = r.text("db:10.1.2.3 :10.1.2.4 10.9.9.9:10.8.8.8:80 10.1.2.3:9000");
        assert_eq!(
            text,
            "db:address-1.invalid :address-2.invalid address-3.invalid:address-4.invalid:80 address-1.invalid:9000"
        );
        // Letters may touch it; what is longer is a version, or a number of something else.
        let mut r = all();
        assert_eq!(
            r.text("ip_10.1.2.4, x10.1.2.3; v10.1.2.5-z db10.1.2.6 1.2.3.4.5 x1.2.3 300.1.2.3"),
            "ip_address-1.invalid, xaddress-2.invalid; vaddress-3.invalid-z dbaddress-4.invalid 1.2.3.4.5 x1.2.3 300.1.2.3"
        );
        let mut off = Redactor::new(&[RedactKind::Hosts]);
        assert_eq!(off.text("10.0.0.7"), "10.0.0.7");
    }

    /// Whatever was asked for, and by its name where the value alone says nothing.
    #[test]
    fn what_looks_like_a_secret_never_leaves() {
        let mut r = Redactor::new(&[]);
        assert_eq!(r.text("it failed: password=hunter3"), "it failed: password=(secret left out)");
        assert_eq!(r.value("password", "hunter3"), "(secret left out)");
        assert_eq!(r.value("tier", "premium"), "premium");
        let labels =
            [("api_key", "K"), ("url", "https://h/c?sig=ab%3D")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        let labels = r.labels(labels.into());
        assert_eq!(labels["api_key"], "(secret left out)");
        assert_eq!(labels["url"], "https://h/c?sig=(secret left out)");
    }
}
