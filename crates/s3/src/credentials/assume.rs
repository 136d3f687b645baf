//! Roles: STS gives temporary keys for a token of somebody else (AssumeRoleWithWebIdentity, not signed) or for other keys (AssumeRole,
//! signed with them). MinIO and Ceph answer the same calls at their own endpoint (AWS_ENDPOINT_URL_STS). Source: AWS STS API Reference.

use std::time::Duration;

use plimsoll_model::text::keep_secret;

use super::files::{GENERAL, Service, endpoint_of, path_of};
use super::{Chain, CredentialsError, FoundKeys, Renewal, Sources, answers, is_sendable, web};
use crate::sign::{PostScope, sign_post};
use crate::uri::encode_query;

/// For connecting, and then for the answer. (A choice, between aws-config's 3.1 s for connecting and botocore's 60 s.)
const LIMIT: Duration = Duration::from_secs(5);
/// What the forms of STS are sent as.
const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";

/// A role, and what is said when it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Role {
    arn: String,
    session: Option<String>,
    external_id: Option<String>,
    duration_s: Option<u32>,
}

/// A role that is given to who shows the token in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WebIdentity {
    pub role: Role,
    pub token_file: String,
}

/// What the environment says of a web identity (EKS sets it in pods of a service account that has a role).
pub(super) fn identity_of_env(sources: &dyn Sources) -> Result<Option<WebIdentity>, CredentialsError> {
    const FILE: &str = "AWS_WEB_IDENTITY_TOKEN_FILE";
    const ROLE: &str = "AWS_ROLE_ARN";
    match (sources.env(FILE), sources.env(ROLE)) {
        (Some(token_file), Some(arn)) => {
            let session = sources.env("AWS_ROLE_SESSION_NAME");
            let role = Role { arn, session, external_id: None, duration_s: None };
            Ok(Some(WebIdentity { role, token_file }))
        }
        (Some(_), None) => Err(CredentialsError::Half { set: FILE, unset: ROLE }),
        // A role alone is no way to keys: tools set it for others.
        (None, _) => Ok(None),
    }
}

impl Role {
    pub(super) fn of_settings(arn: String, get: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let duration_s = match get("duration_seconds") {
            None => None,
            Some(text) => match text.parse::<u32>() {
                Ok(s) if (1..=43_200).contains(&s) => Some(s),
                _ => return Err(format!("duration_seconds = {text}: it must be a number up to 43200")),
            },
        };
        let (session, external_id) = (get("role_session_name"), get("external_id"));
        Ok(Self { arn, session, external_id, duration_s })
    }

    /// Without the account's number.
    fn shown(&self) -> &str {
        self.arn.rsplit_once(":role/").map_or("(of an unusual name)", |(_, name)| name)
    }

    fn form(&self, action: &str, now_unix_s: u64, token: Option<&str>) -> String {
        let session = self.session.clone().unwrap_or_else(|| format!("plimsoll-{now_unix_s}"));
        let duration = self.duration_s.map(|s| s.to_string());
        let parts = [
            ("Action", Some(action)),
            ("Version", Some("2011-06-15")),
            ("RoleArn", Some(&self.arn)),
            ("RoleSessionName", Some(&session)),
            ("ExternalId", self.external_id.as_deref()),
            ("DurationSeconds", duration.as_deref()),
            ("WebIdentityToken", token),
        ];
        let mut out = Vec::new();
        for (name, value) in parts.iter().filter_map(|(n, v)| v.map(|v| (n, v))) {
            if !out.is_empty() {
                out.push(b'&');
            }
            out.extend_from_slice(name.as_bytes());
            out.push(b'=');
            encode_query(value.as_bytes(), &mut out);
        }
        String::from_utf8(out).expect("percent-encoded text is ASCII")
    }
}

impl Chain<'_> {
    /// The file is read at each call: who writes it puts a new token there before the old one expires.
    pub(super) fn by_web_identity(&self, identity: &WebIdentity) -> Result<FoundKeys, CredentialsError> {
        let path = path_of(self.sources, &identity.token_file);
        let shown = path.display();
        let token = self.sources.read(&path).map_err(|e| {
            let what = format!("cannot read the web identity token file {shown}: {e}");
            CredentialsError::asked(
                what,
                "Check AWS_WEB_IDENTITY_TOKEN_FILE, or the profile's web_identity_token_file",
            )
        })?;
        let token = token.trim();
        keep_secret(token);
        if token.is_empty() || !is_sendable(token) {
            let what =
                format!("the web identity token file {shown} is empty or holds something else than a token");
            return Err(CredentialsError::asked(what, "Check AWS_WEB_IDENTITY_TOKEN_FILE"));
        }
        let form = identity.role.form("AssumeRoleWithWebIdentity", self.sources.now_unix_s(), Some(token));
        let (request, _) = self.sts(form)?;
        // This token is shown, not signed with: who reads it on the way has the role.
        self.must_be_near(&request.endpoint, &[]).map_err(unusable)?;
        let keys = self.ask_sts(&request, &identity.role)?;
        let source = format!("role {} by web identity", identity.role.shown());
        Ok(FoundKeys { keys, source, renewal: Renewal::Always })
    }

    /// With keys that were found before, which themselves may expire for good.
    pub(super) fn assume(&self, role: &Role, base: FoundKeys) -> Result<FoundKeys, CredentialsError> {
        let now = self.sources.now_unix_s();
        let (mut request, region) = self.sts(role.form("AssumeRole", now, None))?;
        super::printable(&base.keys.credentials, &base.source)?;
        let host = request.endpoint.host_header(None);
        let scope = PostScope { region: &region, service: "sts", host: &host, path: &request.path };
        let signed = sign_post(&base.keys.credentials, scope, FORM, request.body.as_bytes(), now);
        request.headers.extend(signed);
        let keys = self.ask_sts(&request, role)?;
        let renewal = match (base.renewal, base.keys.expires_unix_s) {
            (Renewal::Never, Some(at)) => Renewal::Until(at),
            (Renewal::Until(at), _) => Renewal::Until(at),
            _ => Renewal::Always,
        };
        Ok(FoundKeys { keys, source: format!("role {} with {}", role.shown(), base.source), renewal })
    }

    /// A form for STS, and the region that it is signed for: the region's own STS, the global one only where there is no region.
    fn sts(&self, form: String) -> Result<(web::WebRequest, String), CredentialsError> {
        let configured = endpoint_of(Service::Sts, self.sources, Some(self.files), self.settings);
        let region = self.region.clone();
        let url = configured.unwrap_or_else(|| match region.as_deref() {
            Some(r) if r.starts_with("cn-") => format!("https://sts.{r}.amazonaws.com.cn"),
            Some(r) => format!("https://sts.{r}.amazonaws.com"),
            None => "https://sts.amazonaws.com".into(),
        });
        let (endpoint, path) = web::place(&url).map_err(unusable)?;
        let mut request = web::WebRequest::new("POST", &endpoint, path, LIMIT);
        request.headers.push(("content-type", FORM.to_owned()));
        request.body = form;
        Ok((request, region.unwrap_or_else(|| "us-east-1".into())))
    }

    /// Whoever set the general endpoint may have meant it for STS, too.
    fn another_sts(&self) -> &'static str {
        let is_own = endpoint_of(Service::Sts, self.sources, Some(self.files), self.settings).is_some();
        let is_general = self.sources.env(GENERAL).is_some() || self.settings.contains_key("endpoint_url");
        match is_general && !is_own {
            true => {
                "For keys the storage's endpoint is not asked: if it has an STS, set AWS_ENDPOINT_URL_STS"
            }
            false => "",
        }
    }

    fn ask_sts(&self, request: &web::WebRequest, role: &Role) -> Result<super::Keys, CredentialsError> {
        let answer = web::ask(self.sources, request)
            .map_err(|t| web::silent("STS", t, "Check the region, the network, or AWS_ENDPOINT_URL_STS"))?;
        if answer.status != 200 {
            let who = format!("STS, asked for role {},", role.shown());
            let (what, _) = web::refusal(&who, request, &answer).problem_and_remedy();
            return Err(CredentialsError::asked(what, self.another_sts()));
        }
        answers::of_sts(&answer.body).map_err(|problem| {
            let what = format!("STS at {} {problem}", request.endpoint);
            CredentialsError::asked(what, "Check AWS_ENDPOINT_URL_STS: is what answers there an STS?")
        })
    }
}

fn unusable(problem: String) -> CredentialsError {
    let what = format!("the endpoint of STS cannot be used: {problem}");
    CredentialsError::asked(what, "Correct AWS_ENDPOINT_URL_STS, AWS_REGION or the profile")
}
