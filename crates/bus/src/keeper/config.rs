//! The broker's configuration, as text: where it listens, its certificate, and a user for each key with what that key may do. Users
//! are keys, not passwords: the broker knows only their public halves.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;

use crate::subjects::{Permissions, Subjects, echo};

/// Who may connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The public half of its key.
    pub key: String,
    /// What it may say and hear.
    pub permissions: Permissions,
}

/// All that the configuration says.
#[derive(Debug, Clone)]
pub struct Config<'a> {
    /// The fleet.
    pub subjects: &'a Subjects,
    /// Port 0 is any free one.
    pub listen: SocketAddr,
    /// The state directory: certificate, log and the file of ports are there.
    pub dir: &'a Path,
    /// The key of the user that sees the broker's own subjects.
    pub system: &'a str,
    /// Everybody else.
    pub users: &'a [User],
}

impl Config<'_> {
    /// What the broker reads. The limits are generous where a thousand agents come at once: each needs a TLS handshake, and what they
    /// send together may wait for the one conductor. By default it would be thrown out when 64 MiB wait, with all of them lost.
    pub fn text(&self) -> String {
        let dir = self.dir.display();
        let port = if self.listen.port() == 0 { -1 } else { i32::from(self.listen.port()) };
        let host = self.listen.ip();
        let mut out = format!(
            r#"# Written by plimsoll for the fleet {name}; changes are overwritten.
server_name: "plimsoll-{name}"
host: "{host}"
port: {port}
ports_file_dir: "{dir}"
log_file: "{dir}/broker.log"
logfile_size_limit: 16777216
max_payload: 1048576
max_pending: 536870912
write_deadline: "10s"
ping_interval: "5s"
ping_max: 2
tls {{
  cert_file: "{dir}/certificate.pem"
  key_file: "{dir}/certificate.key"
  timeout: 30
}}
authorization {{ timeout: 60 }}
system_account: SYS
accounts {{
  SYS {{ users: [ {{ nkey: "{system}" }} ] }}
  FLEET {{
    users: [
"#,
            name = self.subjects.fleet(),
            system = self.system,
        );
        for user in self.users {
            let own = echo(&user.key);
            let (publish, subscribe) =
                (list(&user.permissions.publish, &own), list(&user.permissions.subscribe, &own));
            // Writing to a text does not fail.
            let _ = writeln!(
                out,
                "      {{ nkey: \"{}\", permissions: {{ publish: {{ allow: [{publish}] }}, subscribe: {{ allow: [{subscribe}] }} }} }}",
                user.key
            );
        }
        out.push_str("    ]\n  }\n}\n");
        out
    }
}

/// Subjects are made of checked names: nothing in them needs escaping.
fn list(subjects: &[String], own: &str) -> String {
    let all = subjects.iter().map(String::as_str).chain([own]);
    all.map(|s| format!("\"{s}\"")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_gets_its_subjects_and_nobody_gets_inboxes() {
        let subjects = Subjects::of("demo").unwrap();
        let users = [
            User { key: "UAGENT".into(), permissions: subjects.of_agent("lg-1") },
            User { key: "UCONDUCTOR".into(), permissions: subjects.of_conductor() },
        ];
        let listen = "0.0.0.0:0".parse().unwrap();
        let config =
            Config { subjects: &subjects, listen, dir: Path::new("/run/x"), system: "USYS", users: &users };
        let text = config.text();
        assert!(text.contains("port: -1"));
        assert!(
            text.contains(r#"nkey: "UAGENT", permissions: { publish: { allow: ["fleet.demo.tell.lg-1", "#)
        );
        assert!(text.contains(r#"SYS { users: [ { nkey: "USYS" } ] }"#));
        assert!(!text.contains("INBOX") && !text.contains('>'), "{text}");
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }
}
