//! What a profile leads to: a role that is assumed with the keys of another one, a session of SSO, keys, or a program.

use super::assume::{Role, WebIdentity};
use super::{Chain, CredentialsError, FoundKeys, Keys, Renewal, answers};
use crate::sign::Credentials;

/// So many roles are assumed one after the other at the most. (A choice; more is a slip of the pen.)
const MOST_ROLES: usize = 8;

impl Chain<'_> {
    /// `None`: the profile says nothing of keys.
    pub(super) fn by_profile(&self, profile: &str) -> Result<Option<FoundKeys>, CredentialsError> {
        self.profile_after(profile, &mut Vec::new())
    }

    /// `via`: the profiles that named this one as their source, the first one first.
    fn profile_after(
        &self,
        profile: &str,
        via: &mut Vec<String>,
    ) -> Result<Option<FoundKeys>, CredentialsError> {
        let settings = self.files.settings(profile);
        let problem = |problem: String| CredentialsError::Profile { profile: profile.to_owned(), problem };
        let get = |k: &str| settings.get(k).filter(|v| !v.is_empty()).cloned();
        let names_itself = via.iter().any(|v| v == profile);
        // Keys end a chain: a profile may be its own source where it has some.
        let ends_chain = names_itself || (!via.is_empty() && get("aws_access_key_id").is_some());
        if let Some(arn) = get("role_arn").filter(|_| !ends_chain) {
            if via.len() >= MOST_ROLES {
                return Err(problem(format!("more than {MOST_ROLES} roles are assumed one after the other")));
            }
            via.push(profile.to_owned());
            let role = Role::of_settings(arn, &get).map_err(problem)?;
            return self.by_role(profile, &role, &get, via).map(Some);
        }
        match (get("aws_access_key_id"), get("aws_secret_access_key")) {
            (Some(access_key), Some(secret_key)) => {
                let credentials =
                    Credentials { access_key, secret_key, session_token: get("aws_session_token") };
                let source = format!("profile {profile} ({})", self.files.keys_at(profile).display());
                let keys = Keys { credentials, expires_unix_s: None };
                return Ok(Some(FoundKeys { keys, source, renewal: Renewal::Never }));
            }
            (None, None) if names_itself => {
                return Err(problem(format!("source_profile leads back to it ({})", via.join(", "))));
            }
            (None, None) => {}
            (Some(_), None) => return Err(problem("aws_secret_access_key is missing".into())),
            (None, Some(_)) => return Err(problem("aws_access_key_id is missing".into())),
        }
        if get("sso_session").is_some() || get("sso_start_url").is_some() {
            return self.by_sso(profile, &get).map(Some);
        }
        if let Some(command) = get("credential_process") {
            let output = self
                .sources
                .run(&command)
                .map_err(|e| problem(format!("credential_process could not be run: {e}")))?;
            let keys =
                answers::of_process(&output).map_err(|p| problem(format!("credential_process {p}")))?;
            // One that says when they expire is run again then.
            let renewal = if keys.expires_unix_s.is_some() { Renewal::Always } else { Renewal::Never };
            let source = format!("credential_process of profile {profile}");
            return Ok(Some(FoundKeys { keys, source, renewal }));
        }
        Ok(None)
    }

    /// The role of a profile, by what the profile says is to be shown for it.
    fn by_role(
        &self,
        profile: &str,
        role: &Role,
        get: &dyn Fn(&str) -> Option<String>,
        via: &mut Vec<String>,
    ) -> Result<FoundKeys, CredentialsError> {
        let problem = |problem: String| CredentialsError::Profile { profile: profile.to_owned(), problem };
        if let Some(token_file) = get("web_identity_token_file") {
            return self.by_web_identity(&WebIdentity { role: role.clone(), token_file });
        }
        if get("mfa_serial").is_some() {
            return Err(problem(format!(
                "mfa_serial needs a code that is typed in, which a run cannot ask for; add the line 'credential_process = aws \
                 configure export-credentials --profile {profile}' to a profile of its own and use that"
            )));
        }
        let base = match (get("source_profile"), get("credential_source").as_deref()) {
            (Some(source), None) => {
                let found = self.profile_after(&source, via)?;
                found.ok_or_else(|| match self.files.knows(&source) {
                    true => problem(format!("its source_profile '{source}' has no credentials")),
                    false => self.files.no_profile(&source),
                })?
            }
            (None, Some("Environment")) => super::environment(self.sources)?.ok_or_else(|| {
                problem("credential_source = Environment, but AWS_ACCESS_KEY_ID is not set".into())
            })?,
            (None, Some("EcsContainer")) => self.of_container()?.ok_or_else(|| {
                problem(
                    "credential_source = EcsContainer, but neither AWS_CONTAINER_CREDENTIALS_RELATIVE_URI nor \
                     AWS_CONTAINER_CREDENTIALS_FULL_URI is set"
                        .into(),
                )
            })?,
            (None, Some("Ec2InstanceMetadata")) => self.of_instance(true)?.ok_or_else(|| {
                problem("credential_source = Ec2InstanceMetadata, but no instance metadata service answers".into())
            })?,
            (None, Some(other)) => {
                return Err(problem(format!(
                    "credential_source = {other}: it must be Environment, EcsContainer or Ec2InstanceMetadata"
                )));
            }
            (Some(_), Some(_)) => {
                return Err(problem("it has both source_profile and credential_source: leave one out".into()));
            }
            (None, None) => {
                return Err(problem(
                    "role_arn needs source_profile, credential_source or web_identity_token_file".into(),
                ));
            }
        };
        self.assume(role, base)
    }
}
