//! Sessions of IAM Identity Center: what `aws sso login` left in its cache is read, never written, and shown to the portal, which gives
//! keys for a role. Source: AWS SDKs and Tools Reference Guide, "IAM Identity Center credential provider".

use std::time::Duration;

use plimsoll_model::text::keep_secret;

use super::files::{Service, endpoint_of, home};
use super::{Chain, CredentialsError, FoundKeys, Renewal, answers, date_of, is_sendable, web};
use crate::sign::sha1_hex;
use crate::uri::encode_query;

/// For connecting, and then for the answer.
const LIMIT: Duration = Duration::from_secs(5);

impl Chain<'_> {
    /// `get`: the settings of the profile.
    pub(super) fn by_sso(
        &self,
        profile: &str,
        get: &dyn Fn(&str) -> Option<String>,
    ) -> Result<FoundKeys, CredentialsError> {
        let problem = |problem: String| CredentialsError::Profile { profile: profile.to_owned(), problem };
        let session = get("sso_session");
        let shared = match &session {
            None => None,
            Some(name) => Some(self.files.sso_session(name).ok_or_else(|| {
                problem(format!("there is no [sso-session {name}] in {}", self.files.config_path.display()))
            })?),
        };
        let of = |name: &str| {
            let own = get(name).or_else(|| shared?.get(name).filter(|v| !v.is_empty()).cloned());
            own.ok_or_else(|| problem(format!("{name} is missing")))
        };
        let (region, account, role) = (of("sso_region")?, of("sso_account_id")?, of("sso_role_name")?);
        // The file has the name of what was logged in to.
        let key = match session {
            Some(name) => name,
            None => of("sso_start_url")?,
        };
        let (token, until) = self.sso_token(profile, &key)?;
        let configured = endpoint_of(Service::Sso, self.sources, Some(self.files), self.settings);
        let url = configured.unwrap_or_else(|| match region.starts_with("cn-") {
            true => format!("https://portal.sso.{region}.amazonaws.com.cn"),
            false => format!("https://portal.sso.{region}.amazonaws.com"),
        });
        let (endpoint, _) = web::place(&url).map_err(|p| problem(format!("the portal's endpoint: {p}")))?;
        self.must_be_near(&endpoint, &[]).map_err(|p| {
            let what = format!("profile '{profile}': the portal's endpoint cannot be used: {p}");
            CredentialsError::asked(what, "Correct AWS_ENDPOINT_URL_SSO or the profile's services section")
        })?;
        let mut path = b"/federation/credentials?role_name=".to_vec();
        encode_query(role.as_bytes(), &mut path);
        path.extend_from_slice(b"&account_id=");
        encode_query(account.as_bytes(), &mut path);
        let path = String::from_utf8(path).expect("percent-encoded text is ASCII");
        let request =
            web::WebRequest::new("GET", &endpoint, path, LIMIT).with("x-amz-sso_bearer_token", token);
        let answer = web::ask(self.sources, &request)
            .map_err(|t| web::silent("the SSO portal", t, "Check sso_region and the network"))?;
        match answer.status {
            200 => {}
            401 => {
                let what = format!("profile '{profile}': the SSO portal does not accept the session");
                return Err(CredentialsError::asked(what, login(profile)));
            }
            _ => return Err(web::refusal("the SSO portal", &request, &answer)),
        }
        let names = ["accessKeyId", "secretAccessKey", "sessionToken", "expiration"];
        let keys = answers::json(&answer.body)
            .and_then(|json| answers::of_json(&json["roleCredentials"], names))
            .map_err(|p| {
                CredentialsError::asked(
                    format!("the SSO portal at {endpoint} {p}"),
                    "Check what answers there",
                )
            })?;
        let source = format!("SSO session of profile {profile} (role {role})");
        Ok(FoundKeys { keys, source, renewal: Renewal::Until(until) })
    }

    /// What was logged in with, and until when it is taken.
    fn sso_token(&self, profile: &str, key: &str) -> Result<(String, u64), CredentialsError> {
        let path =
            home(self.sources).join(".aws/sso/cache").join(format!("{}.json", sha1_hex(key.as_bytes())));
        let trouble =
            |what: String| CredentialsError::asked(format!("profile '{profile}': {what}"), login(profile));
        let text = match self.sources.read(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Err(trouble("nobody has logged in to SSO here".into()));
            }
            Err(e) => return Err(trouble(format!("cannot read {}: {e}", path.display()))),
        };
        let useless = || trouble(format!("{} holds no session of SSO", path.display()));
        let json = answers::json(text.as_bytes()).map_err(|_| useless())?;
        for secret in ["accessToken", "refreshToken", "clientSecret"] {
            json[secret].as_str().into_iter().for_each(keep_secret);
        }
        let token =
            json["accessToken"].as_str().filter(|t| !t.is_empty() && is_sendable(t)).ok_or_else(useless)?;
        let until = json["expiresAt"].as_str().and_then(answers::unix_s).ok_or_else(useless)?;
        if until <= self.sources.now_unix_s() {
            return Err(trouble(format!("the SSO session expired at {}", date_of(until))));
        }
        Ok((token.to_owned(), until))
    }
}

fn login(profile: &str) -> String {
    format!("Run: aws sso login --profile {profile}")
}
