//! With what one connects to a broker that is somebody else's: as the `nats` tool does, by the same variables. Passwords and keys are in
//! files or in the environment, never on a command line.

use std::path::{Path, PathBuf};

use async_nats::ConnectOptions;

use crate::BusError;

/// What the broker's owner gave.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum Login {
    /// A file with a user's token and key (`nsc generate creds`).
    Creds(PathBuf),
    /// A file with the private half of a key.
    Key(PathBuf),
    /// Name and password.
    Password(String, String),
    /// Nothing: the broker lets everybody in, or asks for no more than a certificate.
    #[default]
    Nothing,
}

impl std::fmt::Debug for Login {
    /// A password is shown to nobody.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.words())
    }
}

impl Login {
    /// The file that was named, else what the environment says.
    pub fn find(creds: Option<&Path>, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, BusError> {
        let set = |name: &str| env(name).filter(|v| !v.is_empty());
        if let Some(file) = creds.map(Path::to_owned).or_else(|| set("NATS_CREDS").map(PathBuf::from)) {
            return Ok(Self::Creds(file));
        }
        if let Some(file) = set("NATS_NKEY") {
            return Ok(Self::Key(file.into()));
        }
        match (set("NATS_USER"), set("NATS_PASSWORD")) {
            (Some(user), Some(password)) => Ok(Self::Password(user, password)),
            (None, None) => Ok(Self::Nothing),
            (Some(_), None) => Err(half("NATS_USER", "NATS_PASSWORD")),
            (None, Some(_)) => Err(half("NATS_PASSWORD", "NATS_USER")),
        }
    }

    /// Without what is secret.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Creds(file) => format!("credentials of {}", file.display()),
            Self::Key(file) => format!("key of {}", file.display()),
            Self::Password(user, _) => format!("user {user}"),
            Self::Nothing => "without credentials".to_owned(),
        }
    }

    pub(crate) fn options(&self) -> Result<ConnectOptions, BusError> {
        let read = |file: &Path| {
            std::fs::read_to_string(file).map_err(|e| {
                BusError::refused(format!("{} cannot be read: {e}", file.display()), "Name the right file")
            })
        };
        match self {
            Self::Creds(file) => ConnectOptions::with_credentials(&read(file)?).map_err(|e| {
                BusError::refused(
                    format!("{} is no file of credentials: {e}", file.display()),
                    "Name the one that `nsc generate creds` wrote",
                )
            }),
            Self::Key(file) => Ok(ConnectOptions::with_nkey(read(file)?.trim().to_owned())),
            Self::Password(user, password) => {
                Ok(ConnectOptions::with_user_and_password(user.clone(), password.clone()))
            }
            Self::Nothing => Ok(ConnectOptions::new()),
        }
    }
}

fn half(set: &str, unset: &str) -> BusError {
    BusError::refused(format!("{set} is set but {unset} is not"), "Set both")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_file_comes_before_the_environment_and_a_password_is_not_shown() {
        let env = |all: &'static [(&str, &str)]| {
            move |name: &str| all.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned())
        };
        let find = |creds: Option<&str>, all| Login::find(creds.map(Path::new), &env(all));
        let user = &[("NATS_USER", "me"), ("NATS_PASSWORD", "hunter2")];
        assert_eq!(find(Some("f"), user).unwrap(), Login::Creds("f".into()));
        let login = find(None, user).unwrap();
        assert!(
            login == Login::Password("me".into(), "hunter2".into())
                && !format!("{login:?}").contains("hunter2")
        );
        assert_eq!(find(None, &[("NATS_NKEY", "k")]).unwrap(), Login::Key("k".into()));
        assert_eq!(find(None, &[("NATS_CREDS", "")]).unwrap(), Login::Nothing);
        assert!(find(None, &[("NATS_USER", "me")]).unwrap_err().to_string().contains("NATS_PASSWORD is not"));
    }

    #[test]
    fn a_file_that_is_none_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.creds");
        let told = || Login::Creds(file.clone()).options().unwrap_err().to_string();
        assert!(told().contains("x.creds cannot be read"));
        std::fs::write(&file, "nonsense").unwrap();
        assert!(told().contains("x.creds is no file of credentials"));
    }
}
