//! The addresses that a plan names, one by one, and what each is called.

use std::collections::BTreeMap;

use plimsoll_model::Plan;
use plimsoll_model::pattern::expand_ranges;
use plimsoll_model::plan::{ObserveMake, ObserveSpec, TargetSpec, TlsSpec};
use plimsoll_s3::Endpoint;

use crate::error::SetupError;
use crate::s3::EMBEDDED;

/// Sources of one run: each has a thread.
const MOST_PLACES: usize = 1000;

/// Collectors of node_exporter that are read; the others cost its host time.
const COLLECTORS: &[&str] =
    &["cpu", "diskstats", "meminfo", "netclass", "netdev", "netstat", "pressure", "stat", "time"];

/// One source.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedPlace {
    /// From 0, in the plan's order.
    pub number: usize,
    /// What it is.
    pub make: ObserveMake,
    /// Who is asked.
    pub endpoint: Endpoint,
    /// For what, in order of preference: the next one where a server does not know the one before.
    pub paths: Vec<String>,
    /// Of an existing Prometheus.
    pub selector: String,
    /// What the host is called.
    pub host: String,
    /// Where the token is.
    pub token_env: Option<String>,
    /// Where the token is.
    pub token_file: Option<String>,
    /// Whom to trust.
    pub tls: TlsSpec,
    /// Of ssh: whom it is told, and its configuration.
    pub login: String,
    /// Of ssh.
    pub ssh_config: Option<String>,
}

impl ObservedPlace {
    /// Make and address, for a person.
    pub fn name(&self) -> String {
        if self.make == ObserveMake::Ssh {
            return format!("ssh {}", self.login);
        }
        format!("{} {}", self.make.name(), self.endpoint)
    }
}

/// All sources of a plan. Where a run has a cluster of its own, its hosts are not known yet: they are called [`EMBEDDED`].
pub fn places(plan: &Plan) -> Result<Vec<ObservedPlace>, SetupError> {
    places_with(plan, &[], None)
}

/// The same; the host [`EMBEDDED`] stands for all of `own`, the run's own servers.
/// `made_ca`: of the certificate that they made, which their run trusts.
pub fn places_with(
    plan: &Plan,
    own: &[Endpoint],
    made_ca: Option<&str>,
) -> Result<Vec<ObservedPlace>, SetupError> {
    let of_target = plan.targets.values().find_map(|t| match t {
        TargetSpec::S3(s3) => Some(s3.tls.clone()),
        _ => None,
    });
    let mut tls = of_target.unwrap_or_default();
    if let Some(ca) = made_ca {
        tls.ca_file = Some(ca.to_owned());
    }
    places_of(&plan.options.observe, &tls, own)
}

/// Those that `specs` name, one by one. `tls`: whom to trust where a source names nobody.
pub(super) fn places_of(
    specs: &[ObserveSpec],
    tls: &TlsSpec,
    own: &[Endpoint],
) -> Result<Vec<ObservedPlace>, SetupError> {
    let mut out: Vec<ObservedPlace> = Vec::new();
    for spec in specs {
        if spec.make == ObserveMake::Ssh {
            let logins = expand_ranges(&spec.url)
                .map_err(|e| SetupError::input(format!("--observe ssh: {e}"), "Correct it"))?;
            most(out.len() + logins.len())?;
            for login in logins {
                let place = of_ssh(out.len(), spec, login)?;
                out.push(place);
            }
            continue;
        }
        let (base, path) = split(spec.parts().0);
        let endpoints = Endpoint::expand(base).map_err(|e| {
            SetupError::input(format!("--observe {}: {e}", spec.make.name()), "Correct the URL")
        })?;
        let endpoints: Vec<Endpoint> = endpoints.into_iter().flat_map(|e| at_own(e, own)).collect();
        most(out.len() + endpoints.len())?;
        for endpoint in endpoints {
            out.push(ObservedPlace {
                number: out.len(),
                make: spec.make,
                paths: paths(spec, path),
                selector: spec.parts().1.to_owned(),
                host: endpoint.host.clone(),
                endpoint,
                token_env: spec.token_env.clone(),
                token_file: spec.token_file.clone(),
                tls: spec.tls.clone().unwrap_or_else(|| tls.clone()),
                login: String::new(),
                ssh_config: None,
            });
        }
    }
    tell_apart(&mut out);
    Ok(out)
}

fn most(places: usize) -> Result<(), SetupError> {
    if places <= MOST_PLACES {
        return Ok(());
    }
    let problem = format!("--observe names more than {MOST_PLACES} sources");
    Err(SetupError::input(problem, "Observe fewer, or an existing Prometheus"))
}

/// `root@s1:2222`
fn of_ssh(number: usize, spec: &ObserveSpec, login: String) -> Result<ObservedPlace, SetupError> {
    let host = login.rsplit_once('@').map_or(login.as_str(), |(_, host)| host);
    let host = host.split(':').next().unwrap_or(host).to_owned();
    // The port is ssh's to know: this one is for the name alone.
    let endpoint = Endpoint::parse(&format!("http://{host}:22")).map_err(|e| {
        SetupError::input(format!("--observe ssh={login}: {}", e.problem), "Write [USER@]HOST[:PORT]")
    })?;
    Ok(ObservedPlace {
        number,
        make: ObserveMake::Ssh,
        endpoint,
        paths: Vec::new(),
        selector: String::new(),
        host,
        token_env: None,
        token_file: None,
        tls: TlsSpec::default(),
        login,
        ssh_config: spec.ssh_config.clone(),
    })
}

/// One for each of the run's own servers, on the same port; or as it is.
fn at_own(endpoint: Endpoint, own: &[Endpoint]) -> Vec<Endpoint> {
    if endpoint.host != EMBEDDED || own.is_empty() {
        return vec![endpoint];
    }
    own.iter().map(|o| Endpoint { host: o.host.clone(), ..endpoint.clone() }).collect()
}

/// Scheme and authority, and the path behind it.
fn split(url: &str) -> (&str, &str) {
    let after_scheme = url.find("://").map_or(0, |at| at + 3);
    let cut = url[after_scheme..].find('/').map_or(url.len(), |at| after_scheme + at);
    url.split_at(cut)
}

fn paths(spec: &ObserveSpec, path: &str) -> Vec<String> {
    let given = !matches!(path, "" | "/");
    let all: &[&str] = match spec.make {
        ObserveMake::Prometheus => return vec![format!("{}/api/v1/query", path.trim_end_matches('/'))],
        _ if given => &[path],
        ObserveMake::Minio => &["/minio/metrics/v3", "/minio/v2/metrics/cluster"],
        _ => &["/metrics"],
    };
    let mut all: Vec<String> = all.iter().map(|p| (*p).to_owned()).collect();
    if spec.make == ObserveMake::Node {
        // An exporter that lacks one of them refuses the whole: then without.
        let collect: Vec<String> = COLLECTORS.iter().map(|c| format!("collect[]={c}")).collect();
        all.insert(0, format!("{}?{}", all[0], collect.join("&")));
    }
    all
}

/// Two exporters of one make under one name are of two hosts behind one address: they are told apart by their ports.
fn tell_apart(places: &mut [ObservedPlace]) {
    let mut names: BTreeMap<(ObserveMake, String), usize> = BTreeMap::new();
    for p in places.iter() {
        *names.entry((p.make, p.host.clone())).or_default() += 1;
    }
    // Of MinIO each server names itself; of Ceph the daemons do.
    let by_port =
        |p: &ObservedPlace| matches!(p.make, ObserveMake::Node | ObserveMake::Process | ObserveMake::Metrics);
    for p in places.iter_mut().filter(|p| by_port(p)) {
        if names[&(p.make, p.host.clone())] > 1 {
            p.host = format!("{}:{}", p.host, p.endpoint.port);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sources: &[&str]) -> Vec<ObservedPlace> {
        let text = "version = 1\n[targets.t]\nkind = \"null\"\n[[stage]]\n[[stage.workload]]\nname = \"w\"\nmix = { null = 1 }\n";
        let mut plan = Plan::from_toml(text).unwrap();
        plan.options.observe = sources.iter().map(|s| s.parse().unwrap()).collect();
        places(&plan).unwrap()
    }

    #[test]
    fn a_pattern_is_many_sources_each_with_its_make_s_path() {
        let all = of(&["node=http://s{1...2}:9100", "minio=https://s1:9000/", "ceph=http://m:9283/metrics"]);
        assert_eq!(all.iter().map(|p| p.host.as_str()).collect::<Vec<_>>(), ["s1", "s2", "s1", "m"]);
        assert!(all[0].paths[0].starts_with("/metrics?collect[]=cpu&") && all[0].paths[1] == "/metrics");
        assert_eq!(all[2].paths, ["/minio/metrics/v3", "/minio/v2/metrics/cluster"]);
        assert_eq!((all[3].paths.as_slice(), all[3].number), (&["/metrics".to_owned()][..], 3));
        let prometheus = &of(&["prometheus=http://p:9090/prom?job=\"n\""])[0];
        assert_eq!(
            (prometheus.paths[0].as_str(), prometheus.selector.as_str()),
            ("/prom/api/v1/query", "job=\"n\"")
        );
    }

    #[test]
    fn ssh_is_a_login_for_each_host() {
        let all = of(&["ssh=root@s{1...2}:2222"]);
        assert_eq!(all.iter().map(|p| p.host.as_str()).collect::<Vec<_>>(), ["s1", "s2"]);
        assert_eq!((all[1].login.as_str(), all[1].name().as_str()), ("root@s2:2222", "ssh root@s2:2222"));
    }

    #[test]
    fn the_runs_own_servers_are_asked_where_they_are() {
        let text = "version = 1\n[targets.t]\nkind = \"null\"\n[[stage]]\n[[stage.workload]]\nname = \"w\"\nmix = { null = 1 }\n";
        let mut plan = Plan::from_toml(text).unwrap();
        plan.options.observe = vec!["node=http://embedded:9100".parse().unwrap()];
        let own = Endpoint::expand("http://10.213.0.{1...2}:9000").unwrap();
        let named =
            |places: Vec<ObservedPlace>| places.iter().map(|p| p.endpoint.to_string()).collect::<Vec<_>>();
        assert_eq!(
            named(places_with(&plan, &own, None).unwrap()),
            ["http://10.213.0.1:9100", "http://10.213.0.2:9100"]
        );
        assert_eq!(named(places(&plan).unwrap()), ["http://embedded:9100"]);
    }

    #[test]
    fn hosts_behind_one_address_are_told_apart() {
        let all = of(&["node=http://127.0.0.1:91", "node=http://127.0.0.1:92", "minio=http://127.0.0.1:90"]);
        let hosts: Vec<&str> = all.iter().map(|p| p.host.as_str()).collect();
        assert_eq!(hosts, ["127.0.0.1:91", "127.0.0.1:92", "127.0.0.1"]);
    }
}
