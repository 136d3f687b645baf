//! Each way to credentials, and what is said when there is none.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::*;

mod servers;

/// What a server answers to a request: status and body. `None`: it takes the connection, and says nothing.
type Answers = fn(&WebRequest) -> Option<(u16, String)>;

#[derive(Default)]
struct World {
    env: BTreeMap<&'static str, &'static str>,
    files: BTreeMap<&'static str, &'static str>,
    output: Option<&'static str>,
    /// By URL of the server; others are not there.
    servers: BTreeMap<&'static str, Answers>,
    asked: RefCell<Vec<WebRequest>>,
    names: BTreeMap<&'static str, &'static str>,
}

/// 2026-11-23, 16:00:00 UTC.
const NOW: u64 = 1_795_449_600;

impl Sources for World {
    fn env(&self, name: &str) -> Option<String> {
        self.env.get(name).map(|s| (*s).to_owned())
    }
    fn read(&self, path: &Path) -> io::Result<String> {
        let text = path.to_str().and_then(|p| self.files.get(p));
        text.map(|s| (*s).to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
    fn run(&self, command: &str) -> io::Result<Vec<u8>> {
        assert_eq!(command, "helper --x");
        self.output
            .map(|o| o.as_bytes().to_vec())
            .ok_or_else(|| io::Error::other("it ended with exit status: 1"))
    }
    fn web(&self, request: &WebRequest) -> Result<WebAnswer, WebTrouble> {
        self.asked.borrow_mut().push(request.clone());
        let url = request.endpoint.to_string();
        let Some(answers) = self.servers.get(url.as_str()) else {
            return Err(WebTrouble { connected: false, what: format!("cannot connect to {url}") });
        };
        match answers(request) {
            Some((status, body)) => Ok(WebAnswer { status, body: body.into_bytes() }),
            None => Err(WebTrouble { connected: true, what: format!("{url} did not answer within 1s") }),
        }
    }
    fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let ip = self.names.get(host).ok_or(io::ErrorKind::NotFound)?;
        Ok(vec![ip.parse().unwrap()])
    }
    fn now_unix_s(&self) -> u64 {
        NOW
    }
    fn pause(&self, _time: Duration) {}
}

const FILES: [(&str, &str); 2] = [
    (
        "/h/.aws/credentials",
        "# mine\n[default]\naws_access_key_id = AKD\naws_secret_access_key=s/+= \n\n[work]\naws_access_key_id=AKW\naws_secret_access_key=sw\naws_session_token=tok\n[half]\naws_access_key_id=x\n",
    ),
    (
        "/h/.aws/config",
        "[default]\nregion = eu-central-1\ns3 =\n  max_concurrent_requests = 20\n[profile work]\nregion=r2\nendpoint_url = http://e:1\n[profile proc]\ncredential_process = helper --x\n[profile sso]\nsso_session = a\n",
    ),
];

fn world(env: &[(&'static str, &'static str)]) -> World {
    let mut w = World { files: FILES.into(), ..World::default() };
    w.env.insert("HOME", "/h");
    w.env.extend(env.iter().copied());
    w
}

#[test]
fn environment_comes_before_files_but_not_before_a_named_profile() {
    let w = world(&[
        ("AWS_ACCESS_KEY_ID", "AKE"),
        ("AWS_SECRET_ACCESS_KEY", "se"),
        ("AWS_SESSION_TOKEN", "te"),
        ("AWS_PROFILE", "work"),
    ]);
    let r = resolve(&w, None).unwrap();
    assert_eq!((r.credentials.access_key.as_str(), r.source.as_str()), ("AKE", "environment"));
    assert_eq!(r.credentials.session_token.as_deref(), Some("te"));
    assert_eq!((r.region.as_deref(), r.endpoint_url.as_deref()), (Some("r2"), Some("http://e:1")));
    let r = resolve(&w, Some("work")).unwrap();
    assert_eq!(r.credentials.access_key, "AKW");
}

#[test]
fn files_and_regions() {
    let r = resolve(&world(&[]), None).unwrap();
    assert_eq!((r.credentials.access_key.as_str(), r.credentials.secret_key.as_str()), ("AKD", "s/+="));
    assert_eq!(
        (r.region.as_deref(), r.source.as_str()),
        (Some("eu-central-1"), "profile default (/h/.aws/credentials)")
    );
    let r = resolve(
        &world(&[("AWS_PROFILE", "work"), ("AWS_REGION", "ra"), ("AWS_ENDPOINT_URL_S3", "http://s3")]),
        None,
    )
    .unwrap();
    assert_eq!(r.credentials.session_token.as_deref(), Some("tok"));
    assert_eq!((r.region.as_deref(), r.endpoint_url.as_deref()), (Some("ra"), Some("http://s3")));
    let mut w = world(&[("AWS_SHARED_CREDENTIALS_FILE", "~/c"), ("AWS_CONFIG_FILE", "/none")]);
    w.files.insert("/h/c", "[default]\naws_access_key_id=AKC\naws_secret_access_key=x");
    assert_eq!(
        resolve(&w, None).unwrap().credentials.access_key,
        "AKC",
        "a named file that is not there is empty"
    );
    assert!(
        matches!(resolve(&w, Some("work")), Err(CredentialsError::NoProfile { config, .. }) if config == "/none")
    );
}

#[test]
fn endpoints_in_the_order_of_the_sdks() {
    const CONFIG: &str = "[default]\nendpoint_url = http://general\nservices = mine\n\
        [profile plain]\nendpoint_url = http://plain\n[profile off]\nendpoint_url = http://off\n\
        ignore_configured_endpoint_urls = true\n[services mine]\nec2 =\n  endpoint_url = http://ec2\n\
        s3 =\n  endpoint_url = http://of-s3\n  other = x\n";
    let world = |env: &[(&'static str, &'static str)]| {
        let mut w = world(env);
        w.files = [("/h/.aws/config", CONFIG)].into();
        w
    };
    let url = |env: &[(&'static str, &'static str)], profile: Option<&str>| {
        endpoint_url(&world(env), profile).unwrap()
    };
    assert_eq!(url(&[], None).as_deref(), Some("http://of-s3"));
    assert_eq!(url(&[("AWS_ENDPOINT_URL", "http://e")], Some("plain")).as_deref(), Some("http://e"));
    let both = [("AWS_ENDPOINT_URL", "http://e"), ("AWS_ENDPOINT_URL_S3", "http://s3")];
    assert_eq!(url(&both, None).as_deref(), Some("http://s3"));
    assert_eq!(url(&[], Some("plain")).as_deref(), Some("http://plain"));
    assert_eq!(url(&[("AWS_PROFILE", "plain")], None).as_deref(), Some("http://plain"));
    assert_eq!(url(&[], Some("off")), None);
    assert_eq!(url(&[("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "TRUE"), both[0]], None), None);
    assert!(endpoint_url(&world(&[]), Some("nope")).unwrap_err().to_string().contains("no profile 'nope'"));
    let mut broken = world(&[both[0]]);
    broken.files.insert("/h/.aws/config", "[default");
    assert_eq!(endpoint_url(&broken, None).unwrap().as_deref(), Some("http://e"), "the file is not needed");
    broken.env.remove("AWS_ENDPOINT_URL");
    assert!(endpoint_url(&broken, None).unwrap_err().to_string().contains("line 1"));
}

#[test]
fn a_process_gives_them() {
    let mut w = world(&[]);
    w.output = Some(r#"{"Version":1,"AccessKeyId":"AKP","SecretAccessKey":"sp","SessionToken":"tp"}"#);
    let r = resolve(&w, Some("proc")).unwrap();
    assert_eq!(
        (r.credentials.access_key.as_str(), r.source.as_str()),
        ("AKP", "credential_process of profile proc")
    );
    for (bad, why) in [("no json", "JSON"), ("{}", "Version 1"), (r#"{"Version":1}"#, "AccessKeyId")] {
        w.output = Some(bad);
        let e = resolve(&w, Some("proc")).unwrap_err().to_string();
        assert!(e.contains(why) && e.contains("proc"), "{e}");
    }
    w.output = None;
    assert!(resolve(&w, Some("proc")).unwrap_err().to_string().contains("could not be run"));
}

#[test]
fn what_is_missing_is_said() {
    let text = |w: &World, p: Option<&str>| resolve(w, p).unwrap_err().to_string();
    assert!(text(&world(&[]), Some("nope")).contains("no profile 'nope'"));
    assert!(text(&world(&[]), Some("half")).contains("aws_secret_access_key is missing"));
    assert!(text(&world(&[]), Some("sso")).contains("no [sso-session a]"));
    assert!(text(&world(&[("AWS_ACCESS_KEY_ID", "x")]), None).contains("AWS_SECRET_ACCESS_KEY is not"));
    let mut w = world(&[]);
    w.files.clear();
    assert!(text(&w, None).contains("set AWS_ACCESS_KEY_ID"));
    w.files.insert("/h/.aws/credentials", "[default]\naws_access_key_id AKD");
    assert!(text(&w, None).contains("/h/.aws/credentials, line 2"));
    w.files.insert("/h/.aws/credentials", "x = y");
    assert!(text(&w, None).contains("line 1"));
}
