//! Ways to keys that lead over a server: what is asked of it, in which order, and what is said when it does not give any.

use super::*;
use crate::Endpoint;
use crate::sign::{PostScope, sign_post};

const STS: &str = "https://sts.eu-west-1.amazonaws.com";
const IMDS: &str = "http://169.254.169.254";

fn sts_answer(name: &str) -> String {
    format!(
        "<{name}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{name}Result><AssumedRoleUser><Arn>x</Arn>\
         </AssumedRoleUser><Credentials><AccessKeyId>ASIA1</AccessKeyId><SecretAccessKey>role-secret-value</SecretAccessKey>\
         <SessionToken>role-token-value</SessionToken><Expiration>2026-11-23T17:00:00Z</Expiration></Credentials>\
         </{name}Result></{name}Response>"
    )
}

fn keys_json(expiration: &str) -> String {
    format!(
        "{{\"Code\":\"Success\",\"AccessKeyId\":\"ASIA2\",\"SecretAccessKey\":\"agent-secret-value\",\"Token\":\"agent-token-value\",\
         \"Expiration\":\"{expiration}\"}}"
    )
}

fn sts(request: &WebRequest) -> Option<(u16, String)> {
    let name =
        if request.body.contains("WebIdentityToken=") { "AssumeRoleWithWebIdentity" } else { "AssumeRole" };
    assert!(request.body.starts_with(&format!("Action={name}&Version=2011-06-15&")), "{}", request.body);
    Some((200, sts_answer(name)))
}

fn header<'a>(request: &'a WebRequest, name: &str) -> Option<&'a str> {
    request.headers.iter().find(|(n, _)| *n == name).map(|(_, v)| v.as_str())
}

fn refused(w: &World, profile: Option<&str>) -> (String, String) {
    resolve(w, profile).unwrap_err().problem_and_remedy()
}

#[test]
fn a_web_identity_of_the_environment_is_shown_to_the_regions_sts_and_not_signed() {
    let mut w = world(&[
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "/token"),
        ("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/bench"),
        ("AWS_ROLE_SESSION_NAME", "me"),
        ("AWS_REGION", "eu-west-1"),
    ]);
    w.files.insert("/token", "jwt.of+test/1=\n");
    w.servers.insert(STS, sts);
    let r = resolve(&w, None).unwrap();
    assert_eq!(
        (r.credentials.access_key.as_str(), r.credentials.session_token.as_deref()),
        ("ASIA1", Some("role-token-value"))
    );
    assert_eq!((r.expires_unix_s, r.renewal), (Some(NOW + 3600), Renewal::Always));
    assert_eq!(r.source, "role bench by web identity", "without the account's number");
    let asked = w.asked.borrow();
    assert_eq!((asked.len(), asked[0].method, asked[0].path.as_str()), (1, "POST", "/"));
    assert!(header(&asked[0], "authorization").is_none());
    assert!(
        asked[0].body.ends_with("&RoleSessionName=me&WebIdentityToken=jwt.of%2Btest%2F1%3D"),
        "{}",
        asked[0].body
    );
    drop(asked);
    // Keys of the environment come first, and a named profile knows of neither.
    w.env.extend([("AWS_ACCESS_KEY_ID", "AKE"), ("AWS_SECRET_ACCESS_KEY", "se")]);
    assert_eq!(resolve(&w, None).unwrap().credentials.access_key, "AKE");
    assert_eq!(resolve(&w, Some("work")).unwrap().credentials.access_key, "AKW");
}

#[test]
fn what_is_wrong_with_a_web_identity_is_said_without_its_token() {
    let env = [
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "/token"),
        ("AWS_ROLE_ARN", "arn:aws:iam::1:role/bench"),
        ("AWS_REGION", "eu-west-1"),
    ];
    let mut w = world(&env);
    assert!(refused(&w, None).0.contains("cannot read the web identity token file /token"));
    w.files.insert("/token", "two lines\nof text");
    assert!(refused(&w, None).0.contains("something else than a token"));
    w.files.insert("/token", "the-token-of-this-test");
    assert!(refused(&w, None).0.contains("cannot connect to https://sts.eu-west-1"));
    w.servers.insert(STS, |_| Some((403, "<ErrorResponse><Error><Code>ExpiredTokenException</Code><Message>Token the-token-of-this-test expired</Message></Error></ErrorResponse>".into())));
    let (what, _) = refused(&w, None);
    assert!(what.contains("asked for role bench") && what.contains("ExpiredTokenException"), "{what}");
    assert!(!what.contains("the-token-of-this-test"), "{what}");
    w.servers.insert(STS, |_| Some((302, String::new())));
    assert!(refused(&w, None).0.contains("a redirect (HTTP 302), which is not followed"));
    w.servers.insert(STS, |_| Some((200, "<html>hello</html>".into())));
    assert!(refused(&w, None).0.contains("gave no AccessKeyId"));
    w.asked.borrow_mut().clear();
    w.servers.insert(STS, |_| Some((503, String::new())));
    assert!(refused(&w, None).0.contains("HTTP 503") && w.asked.borrow().len() == 3, "tried three times");
    w.env.remove("AWS_ROLE_ARN");
    assert!(refused(&w, None).0.contains("AWS_WEB_IDENTITY_TOKEN_FILE is set but AWS_ROLE_ARN is not"));
}

const ROLES: &str = "[profile direct]\nrole_arn = arn:aws:iam::1:role/a/b\nsource_profile = base\nexternal_id = x y\nduration_seconds = 900\n\
    region = eu-west-1\n[profile base]\naws_access_key_id = AKB\naws_secret_access_key = sb\n\
    [profile chain]\nrole_arn = arn:aws:iam::1:role/c\nsource_profile = direct\nregion = eu-west-1\n\
    [profile self]\nrole_arn = arn:aws:iam::1:role/s\nsource_profile = self\naws_access_key_id = AKS\naws_secret_access_key = ss\nregion = eu-west-1\n\
    [profile one]\nrole_arn = arn:aws:iam::1:role/1\nsource_profile = two\n[profile two]\nrole_arn = arn:aws:iam::1:role/2\nsource_profile = one\n\
    [profile mfa]\nrole_arn = arn:aws:iam::1:role/m\nsource_profile = base\nmfa_serial = arn:x\n\
    [profile env]\nrole_arn = arn:aws:iam::1:role/e\ncredential_source = Environment\nregion = eu-west-1\n\
    [profile ecs]\nrole_arn = arn:aws:iam::1:role/e\ncredential_source = EcsContainer\n\
    [profile odd]\nrole_arn = arn:aws:iam::1:role/o\ncredential_source = Moon\n[profile alone]\nrole_arn = arn:aws:iam::1:role/o\n\
    [profile lost]\nrole_arn = arn:aws:iam::1:role/o\nsource_profile = nowhere\n\
    [profile web]\nrole_arn = arn:aws:iam::1:role/w\nweb_identity_token_file = ~/jwt\nregion = eu-west-1\n";

fn roles(env: &[(&'static str, &'static str)]) -> World {
    let mut w = world(env);
    w.files = [("/h/.aws/config", ROLES), ("/h/jwt", "jwt")].into();
    w.servers.insert(STS, sts);
    w
}

#[test]
fn a_role_is_assumed_with_the_keys_of_its_source() {
    let w = roles(&[]);
    let r = resolve(&w, Some("direct")).unwrap();
    assert_eq!((r.credentials.access_key.as_str(), r.renewal), ("ASIA1", Renewal::Always));
    assert_eq!(r.source, "role a/b with profile base (/h/.aws/config)");
    let asked = w.asked.borrow();
    assert!(
        asked[0].body.contains("&ExternalId=x%20y&DurationSeconds=900")
            && asked[0].body.contains("RoleSessionName=plimsoll-")
    );
    let base = Credentials { access_key: "AKB".into(), secret_key: "sb".into(), session_token: None };
    let scope =
        PostScope { region: "eu-west-1", service: "sts", host: "sts.eu-west-1.amazonaws.com", path: "/" };
    let form = header(&asked[0], "content-type").unwrap();
    let expected = sign_post(&base, scope, form, asked[0].body.as_bytes(), NOW);
    assert_eq!(header(&asked[0], "authorization"), Some(expected.last().unwrap().1.as_str()));
    drop(asked);
    // A chain: the second is asked for with the keys of the first, whose token goes along.
    w.asked.borrow_mut().clear();
    resolve(&w, Some("chain")).unwrap();
    let asked = w.asked.borrow();
    assert_eq!(asked.len(), 2);
    assert_eq!(header(&asked[1], "x-amz-security-token"), Some("role-token-value"));
    assert!(header(&asked[1], "authorization").unwrap().contains("Credential=ASIA1/"));
    drop(asked);
    resolve(&w, Some("self")).unwrap();
    assert!(resolve(&w, Some("web")).unwrap().source.contains("by web identity"));
    let w = roles(&[
        ("AWS_ACCESS_KEY_ID", "AKE"),
        ("AWS_SECRET_ACCESS_KEY", "se"),
        ("AWS_CREDENTIAL_EXPIRATION", "2026-11-23T16:10:00Z"),
    ]);
    let r = resolve(&w, Some("env")).unwrap();
    assert_eq!(r.renewal, Renewal::Until(NOW + 600), "no longer than what it is asked with");
}

#[test]
fn roles_that_cannot_be_assumed_say_why() {
    let w = roles(&[]);
    for (profile, why) in [
        ("one", "leads back to it"),
        ("mfa", "mfa_serial needs a code"),
        ("env", "AWS_ACCESS_KEY_ID is not set"),
        ("ecs", "AWS_CONTAINER_CREDENTIALS_FULL_URI is set"),
        ("odd", "must be Environment, EcsContainer or Ec2InstanceMetadata"),
        ("alone", "role_arn needs source_profile"),
        ("lost", "there is no profile 'nowhere'"),
    ] {
        let (what, _) = refused(&w, Some(profile));
        assert!(what.contains(why), "{profile}: {what}");
    }
}

#[test]
fn sts_is_asked_at_its_own_endpoint_and_never_at_the_storages() {
    let env = [("AWS_ENDPOINT_URL", "http://all:9000"), ("AWS_ENDPOINT_URL_STS", "http://sts:1/path")];
    let mut w = roles(&env);
    w.servers.extend([("http://sts:1", sts as Answers), ("http://all:9000", sts)]);
    resolve(&w, Some("direct")).unwrap();
    assert_eq!(w.asked.borrow()[0].path, "/path");
    w.env.remove("AWS_ENDPOINT_URL_STS");
    resolve(&w, Some("direct")).unwrap();
    assert_eq!(w.asked.borrow()[1].endpoint.to_string(), STS);
    // Who meant the general one reads which one counts.
    w.servers.insert(STS, |_| Some((403, String::new())));
    let (_, remedy) = refused(&w, Some("direct"));
    assert!(remedy.contains("AWS_ENDPOINT_URL_STS"), "{remedy}");
}

/// Who was asked, after all was tried once: with the setting that is given.
fn asked_at(mut w: World, profile: Option<&str>, set: (&'static str, &'static str)) -> (Vec<String>, String) {
    w.env.insert(set.0, set.1);
    w.names.extend([("near.example", "127.0.0.2"), ("localhost", "127.0.0.1")]);
    let said = resolve(&w, profile).err().map(|e| e.to_string()).unwrap_or_default();
    let asked = w.asked.borrow().iter().map(|r| r.endpoint.to_string()).collect();
    (asked, said)
}

#[test]
fn a_token_that_opens_by_itself_goes_over_plain_http_to_this_machine_only() {
    const LOGGED_IN: &str = "{\"accessToken\":\"sso-access-token\",\"expiresAt\":\"2026-11-23T20:00:00Z\"}";
    const PORTAL: &str = "https://portal.sso.eu-west-1.amazonaws.com";
    for (variable, world, profile, at_home) in [
        ("AWS_ENDPOINT_URL_SSO", (|| sso(LOGGED_IN)) as fn() -> World, "new", PORTAL),
        ("AWS_ENDPOINT_URL_STS", || roles(&[]), "web", STS),
    ] {
        // What the storage is reached by is no place for tokens.
        let (asked, said) = asked_at(world(), Some(profile), ("AWS_ENDPOINT_URL", "http://192.0.2.2:38080"));
        assert_eq!(asked, [at_home], "{said}");
        for far in
            ["http://192.0.2.2:38080", "http://far.example", "http://169.254.170.2", "http://near.example"]
        {
            let (asked, said) = asked_at(world(), Some(profile), (variable, far));
            assert!(asked.is_empty(), "{asked:?}");
            assert!(said.contains("neither https nor") || said.contains("not found"), "{said}");
        }
        for near in ["http://127.0.0.1:1", "http://[::1]:1", "http://localhost", "https://far.example"] {
            assert_eq!(asked_at(world(), Some(profile), (variable, near)).0, [near]);
        }
    }
    let mut w = sso(LOGGED_IN);
    w.files.insert("/h/.aws/config", SSO_ELSEWHERE);
    assert_eq!(asked_at(w, Some("new"), ("X", "x")).0, [PORTAL], "nor is the profile's general one");
}

const SSO_ELSEWHERE: &str = "[profile new]\nsso_session = corp\nsso_account_id = 1\nsso_role_name = Bench\n\
    endpoint_url = http://192.0.2.2:9000\n[sso-session corp]\nsso_region = eu-west-1\n";

#[test]
fn the_agent_of_a_container_is_asked_with_the_token_of_the_file() {
    let mut w = world(&[
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1/credentials"),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/token"),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "of the environment"),
    ]);
    w.files = [("/token", "of the file\n")].into();
    w.servers.insert("http://169.254.170.23", |_| Some((200, keys_json("2026-11-23T22:00:00Z"))));
    let r = resolve(&w, None).unwrap();
    assert_eq!((r.credentials.access_key.as_str(), r.source.as_str()), ("ASIA2", "container"));
    assert_eq!((r.expires_unix_s, r.renewal), (Some(NOW + 6 * 3600), Renewal::Always));
    assert_eq!(header(&w.asked.borrow()[0], "authorization"), Some("of the file"));
    w.files.insert("/token", "a\r\nx-evil: b");
    assert!(refused(&w, None).0.contains("cannot be sent"));
    // The relative one comes first.
    w.env.insert("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials/x?id=1");
    w.env.remove("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    w.servers.insert("http://169.254.170.2", |_| Some((200, keys_json("2026-11-23T15:00:00Z"))));
    assert!(refused(&w, None).0.contains("expired at 2026-11-23T15:00:00Z"));
    assert_eq!(w.asked.borrow().last().unwrap().path, "/v2/credentials/x?id=1");
    w.servers
        .insert("http://169.254.170.2", |_| Some((400, "{\"code\":\"Bad\",\"message\":\"no role\"}".into())));
    assert!(refused(&w, None).0.contains("refused (HTTP 400): Bad: no role"));
    w.servers.insert("http://169.254.170.2", |_| Some((200, "[]".into())));
    assert!(refused(&w, None).0.contains("gave no AccessKeyId"));
}

#[test]
fn what_an_agent_repeats_of_its_token_or_path_is_not_shown() {
    let mut w = world(&[
        (
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "http://127.0.0.1:1/v1/credentials/5f1c-agent-path?id=77aa-agent-query",
        ),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "Bearer agents-bearer-of-this-test"),
    ]);
    w.files.clear();
    w.servers.insert("http://127.0.0.1:1", |r| {
        let token = header(r, "authorization").unwrap().split_once(' ').unwrap().1;
        Some((403, format!("{{\"message\":\"no credentials for {token} at {}\"}}", r.path)))
    });
    let (what, _) = refused(&w, None);
    for secret in ["agents-bearer-of-this-test", "5f1c-agent-path", "77aa-agent-query"] {
        assert!(!what.contains(secret), "{what}");
    }
    assert!(what.contains("no credentials for") && what.contains("/v1/credentials/"), "words stay: {what}");
}

#[test]
fn a_containers_token_goes_to_its_own_machine_only() {
    for (url, is_asked) in [
        ("http://127.0.0.1:51679/x", true),
        ("http://[::1]/x", true),
        ("http://[fd00:ec2::23]/x", true),
        ("https://far.example/x", true),
        ("http://localhost/x", true),
        ("http://near.example/x", false),
        ("http://far.example/x", false),
        ("http://10.0.0.1/x", false),
        ("http://unknown.example/x", false),
        ("http://169.254.169.254/x", false),
    ] {
        let mut w = world(&[("AWS_CONTAINER_AUTHORIZATION_TOKEN", "secret-token")]);
        w.files.clear();
        w.env.insert("AWS_CONTAINER_CREDENTIALS_FULL_URI", url);
        w.names.extend([("near.example", "127.0.0.2"), ("localhost", "127.0.0.1")]);
        let (what, _) = refused(&w, None);
        assert_eq!(!w.asked.borrow().is_empty(), is_asked, "{url}: {what}");
        assert!(is_asked || what.contains("neither https nor") || what.contains("not found"), "{what}");
    }
}

fn imds(request: &WebRequest) -> Option<(u16, String)> {
    let token = header(request, "x-aws-ec2-metadata-token");
    Some(match (request.method, request.path.as_str(), token) {
        ("PUT", "/latest/api/token", None) => (200, "imds-token".into()),
        ("GET", "/latest/meta-data/iam/security-credentials/", Some("imds-token")) => {
            (200, "bench-role\n".into())
        }
        ("GET", "/latest/meta-data/iam/security-credentials/bench-role", Some("imds-token")) => {
            (200, keys_json("2026-11-23T22:00:00Z"))
        }
        _ => (401, String::new()),
    })
}

fn instance(vendor: &'static str, answers: Answers) -> World {
    let mut w = world(&[]);
    w.files = [("/sys/class/dmi/id/sys_vendor", vendor)].into();
    w.servers.insert(IMDS, answers);
    w
}

#[test]
fn an_instance_gives_keys_for_a_token_and_is_asked_only_where_there_may_be_one() {
    let w = instance("Amazon EC2\n", imds);
    let r = resolve(&w, None).unwrap();
    assert_eq!(
        (r.credentials.access_key.as_str(), r.source.as_str()),
        ("ASIA2", "instance (role bench-role)")
    );
    assert_eq!(w.asked.borrow()[0].limit, Duration::from_secs(1));
    let w = instance("QEMU\n", imds);
    assert!(refused(&w, None).0.contains("no credentials") && w.asked.borrow().is_empty());
    let mut w = instance("Amazon EC2\n", imds);
    w.env.insert("AWS_EC2_METADATA_DISABLED", "true");
    assert!(refused(&w, None).0.contains("no credentials") && w.asked.borrow().is_empty());
    // Elsewhere, where it is named.
    let mut w = instance("QEMU\n", |_| None);
    w.env.insert("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1338/");
    w.servers.insert("http://127.0.0.1:1338", imds);
    resolve(&w, None).unwrap();
}

#[test]
fn an_instances_trouble_is_told_with_what_to_do() {
    for (answers, what, remedy) in [
        ((|_| None) as Answers, "did not answer", "hop limit"),
        (|_| Some((403, String::new())), "switched off", "AWS_EC2_METADATA_DISABLED"),
        (|_| Some((404, String::new())), "has no version 2", "AWS_EC2_METADATA_V1_DISABLED=false"),
        (|_| Some((200, "a\nb c".into())), "gave no token", ""),
        (|_| Some((200, "x".into())), "gave no JSON", ""),
    ] {
        let w = instance("Amazon EC2", answers);
        let said = refused(&w, None);
        assert!(said.0.contains(what) && said.1.contains(remedy), "{what}: {said:?}");
    }
    // Whatever it is that answers under this address on a machine that does not say that it is Amazon's.
    let mut w = instance("", |_| Some((403, String::new())));
    w.files.remove("/sys/class/dmi/id/sys_vendor");
    assert!(refused(&w, None).0.contains("no credentials") && !w.asked.borrow().is_empty());
    // No role is attached: as if it were not there.
    let without: Answers = |r| Some(if r.method == "PUT" { (200, "t".into()) } else { (404, String::new()) });
    assert!(refused(&instance("Amazon EC2", without), None).0.contains("no credentials"));
}

#[test]
fn version_1_is_used_where_it_is_asked_for() {
    let old: Answers = |r| match (r.method, header(r, "x-aws-ec2-metadata-token")) {
        ("PUT", _) => None,
        ("GET", None) if r.path.ends_with("credentials/") => Some((200, "role".into())),
        ("GET", None) => Some((200, keys_json("2026-11-23T22:00:00Z"))),
        _ => Some((400, String::new())),
    };
    let mut w = instance("Amazon EC2", old);
    assert!(refused(&w, None).0.contains("did not answer"));
    w.env.insert("AWS_EC2_METADATA_V1_DISABLED", "false");
    assert_eq!(resolve(&w, None).unwrap().credentials.access_key, "ASIA2");
}

const SSO: &str = "[profile new]\nsso_session = corp\nsso_account_id = 123456789012\nsso_role_name = Bench\n\
    [sso-session corp]\nsso_region = eu-west-1\nsso_start_url = https://corp.example/start\n\
    [profile old]\nsso_start_url = https://corp.example/start\nsso_region = eu-west-1\nsso_account_id = 1\nsso_role_name = Bench\n\
    [profile half]\nsso_session = corp\nsso_role_name = x\n";
/// SHA-1 of `corp`, and of the start URL.
const OF_SESSION: &str = "/h/.aws/sso/cache/ee0bfd2552fbd840c02cc48b6e823320543c450f.json";
const OF_URL: &str = "/h/.aws/sso/cache/f7c9b39d0b4c7a7d82c79307585f77e1c5e74378.json";

fn portal(request: &WebRequest) -> Option<(u16, String)> {
    match header(request, "x-amz-sso_bearer_token") {
        Some("sso-access-token") => Some((
            200,
            format!(
                "{{\"roleCredentials\":{{\"accessKeyId\":\"ASIA3\",\"secretAccessKey\":\"sso-secret-value\",\"sessionToken\":\"sso-token-value\",\"expiration\":{}000}}}}",
                NOW + 900
            ),
        )),
        _ => Some((401, "{\"message\":\"Session token not found or invalid\"}".into())),
    }
}

fn sso(token: &'static str) -> World {
    let mut w = world(&[]);
    w.files = [("/h/.aws/config", SSO)].into();
    if !token.is_empty() {
        w.files.extend([(OF_SESSION, token), (OF_URL, token)]);
    }
    w.servers.insert("https://portal.sso.eu-west-1.amazonaws.com", portal);
    w
}

#[test]
fn a_session_of_sso_is_read_from_where_the_tools_keep_it() {
    let w = sso("{\"accessToken\":\"sso-access-token\",\"expiresAt\":\"2026-11-23T20:00:00Z\"}");
    for profile in ["new", "old"] {
        let r = resolve(&w, Some(profile)).unwrap();
        assert_eq!((r.credentials.access_key.as_str(), r.expires_unix_s), ("ASIA3", Some(NOW + 900)));
        assert_eq!(r.renewal, Renewal::Until(NOW + 4 * 3600));
        assert_eq!(r.source, format!("SSO session of profile {profile} (role Bench)"));
    }
    assert_eq!(w.asked.borrow()[0].path, "/federation/credentials?role_name=Bench&account_id=123456789012");
}

#[test]
fn who_has_to_log_in_to_sso_is_told_how() {
    for (token, why) in [
        ("", "nobody has logged in"),
        (
            "{\"accessToken\":\"sso-access-token\",\"expiresAt\":\"2026-11-23T15:00:00UTC\"}",
            "expired at 2026-11-23T15:00:00Z",
        ),
        (
            "{\"accessToken\":\"another-token\",\"expiresAt\":\"2026-11-23T20:00:00Z\"}",
            "does not accept the session",
        ),
        ("{\"clientId\":\"x\"}", "holds no session"),
        ("garbage", "holds no session"),
    ] {
        let (what, remedy) = refused(&sso(token), Some("new"));
        assert!(what.contains(why) && !what.contains("another-token"), "{what}");
        assert_eq!(remedy, "Run: aws sso login --profile new");
    }
    assert!(refused(&sso(""), Some("half")).0.contains("sso_account_id is missing"));
}

#[test]
fn a_request_shows_nothing_of_what_is_in_it() {
    let endpoint = Endpoint::parse("http://h").unwrap();
    let mut request =
        WebRequest::new("GET", &endpoint, "/?secret=1", Duration::ZERO).with("authorization", "hunter2");
    request.body = "hunter3".into();
    let answer = WebAnswer { status: 200, body: b"hunter4".to_vec() };
    assert_eq!(format!("{request:?} {answer:?}"), "WebRequest(GET http://h) WebAnswer(200, 7 bytes)");
}
