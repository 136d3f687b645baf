//! What looks like a key, a password or a token, and is left out wherever a text leaves: a ledger, a log, a terminal, a publication.
//!
//! Known by how it is given (`--password X`, `SECRET_KEY=X`, `mc alias set NAME URL KEY SECRET`, a parameter of a signed URL) or by its own
//! form (`AKIA...`, a private key). A name alone is none (`token_file`, "a password is needed"), and neither is what only says where the
//! secret is (`$PASSWORD`, `@file`).

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use regex::Regex;

use crate::text::{LEAST_SECRET, LEFT_OUT, without_secrets};

/// A shorter user in a URL is a name. (A choice: tokens of services have 20 characters and more.)
const LEAST_TOKEN: usize = 16;
/// A name of something secret; what follows a part of it (`_file`, `_env`, `bucket`) makes it the name of something else.
const NAME: &str = r"[a-z0-9_.-]*(?:passw(?:or)?d|passphrase|secret|token|(?:api|access|account|shared|master|encryption)[_-]?key)(?:[_-]?(?:key|id|value))*";
/// Of these only what is assigned with `=`: they are words of sentences, too.
const SHORT_NAME: &str =
    r"(?:[a-z0-9_-]*[_-])?(?:pass|pwd|sig|signature|x-amz-credential|x-goog-credential|awsaccesskeyid)";
/// A value, quoted or not, also inside of another text's quotes.
const VALUE: &str = r#"(?:\\+"(.*?)\\+"|\\+'(.*?)\\+'|"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)'|((?:[^\s"'`;&|<>()\\:=]|\\[^\s"'\\])(?:[^\s"'`;&|<>()\\]|\\[^\s"'\\])*))"#;
/// One that no flag is: of what is known by its place among words.
const WORD: &str =
    r#"(?:"((?:[^"\\\n]|\\.)+)"|'([^'\n]+)'|\\+"(.+?)\\+"|([^\s"'`;&|<>()\\-][^\s"'`;&|<>()\\]*))"#;
/// A word that is no secret.
const ANY: &str = r#"(?:\\*["'][^"'\n]*["']|[^\s"'`;&|<>()]+)"#;
/// A URL, or what stands for one.
const URL: &str = r#"\\*["']?[^\s"'`;&|<>()\\]*(?://|\$)[^\s"'`;&|<>()\\]*\\*["']?"#;
/// The rest of a command before a flag of it.
const ARGS: &str = r"\b[^;|&\n]*?\s";

/// What a value has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CredentialForm {
    Any,
    /// `USER:PASSWORD`, and no numbers of a user and a group.
    Pair,
    /// No word of a sentence.
    Mixed,
    /// What no name of an option is: letters of both cases and digits, or signs.
    Varied,
    /// `USER:PASSWORD` in base64.
    Encoded,
}

/// Every group of a rule is a secret.
struct CredentialRule {
    pattern: Regex,
    form: CredentialForm,
}

static RULES: LazyLock<Vec<CredentialRule>> = LazyLock::new(|| {
    use CredentialForm::{Any, Encoded, Mixed, Pair, Varied};
    let flags = |programs: &str, flag: &str| format!(r"\b(?:{programs}){ARGS}{flag}{VALUE}");
    let reads = r"sudo\s+(?:-\S+\s+)*-S|cryptsetup|chpasswd|passwd|kinit|smbpasswd|(?:docker|podman|helm)\s";
    let all = [
        (r"-----BEGIN [A-Z ]*PRIVATE KEY-----([\s\S]*?)(?:-----END|\z)".to_owned(), Any),
        // Headers: all that follows.
        (r#"\b(?:proxy-)?authorization\\*["']?[ \t]*[:=][ \t]*\\*["']?([^"'\n\\]+)"#.to_owned(), Any),
        (format!(r"\bbearer[ \t]+{VALUE}"), Mixed),
        (format!(r"\bbasic[ \t]+{VALUE}"), Encoded),
        // URLs with their user.
        (r#"://([^\s"'<>/,@\\]*(?:@[^\s"'<>/,@\\]*)*)@"#.to_owned(), Any),
        (format!(r#"{NAME}\\*["']?[ \t]*(?:=>|[:=])[ \t]*{VALUE}"#), Any),
        (format!(r#"(?:^|[^a-z0-9_-]){SHORT_NAME}={VALUE}"#), Any),
        (format!(r#"(?:^|[\s"'(\[,])--?(?:{NAME}|(?:[a-z0-9-]*-)?pass)[ \t]+{WORD}"#), Any),
        (
            format!(r#"(?:^|[\s"'(\[,])(?:-u[ \t]*|-[a-z]*u[ \t]+|--(?:proxy-)?user(?:[ \t]+|=)){VALUE}"#),
            Pair,
        ),
        (format!(r"\b(?:aws_)?(?:secret_access_key|access_key_id|session_token|secret_key)[ \t]+{WORD}"), Mixed),
        // By their place: the secrets of MinIO's and others' clients.
        (
            format!(
                r"\b(?:alias\s+s(?:et)?|config\s+host\s+add)\s+(?:--(?:api|path|config-dir)\s+\S+\s+|-\S+\s+)*{ANY}\s+{URL}[ \t]+{WORD}(?:[ \t]+{WORD})?"
            ),
            Any,
        ),
        (format!(r"\badmin\s+user\s+add\s+{ANY}\s+{WORD}(?:[ \t]+{WORD})?"), Any),
        (format!(r"\bhtpasswd\s+(?:-\S+\s+)*-\w*b\w*\s+(?:-\S+\s+)*{ANY}\s+{ANY}[ \t]+{WORD}"), Any),
        (flags(r"mysql\w*|mariadb[\w-]*|7z[ar]?", "-p"), Any),
        (flags(r"sshpass|mongo\w*|(?:docker|podman|nerdctl|skopeo|helm)\s+(?:registry\s+)?login", r"-p[ \t]*"), Any),
        (flags("redis-cli", r"-a[ \t]+"), Any),
        (flags(r"ldap\w+", r"-w[ \t]+"), Any),
        (flags("ipmitool|sqlcmd|zip", r"-P[ \t]*"), Any),
        (flags("openssl", r"(?:-k[ \t]+|-pass\w*[ \t]+pass:)"), Any),
        (format!(r"\b(?:echo|printf)\s+(?:-\w+\s+)*(?:{ANY}\s+)??{WORD}\s*\|\s*(?:{reads})"), Any),
        (format!(r"\b(?:{reads})[^;|&\n<]*<<<\s*{VALUE}"), Any),
        (format!(r#"(?:^|\s)-p{VALUE}"#), Varied),
        // Known by their own form.
        (r"\b((?-i:(?:AKIA|ASIA)[A-Z0-9]{12,}))".to_owned(), Any),
        (r"\b((?-i:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{10,}|AIza[\w-]{35}|hvs\.[\w-]{16,}))".to_owned(), Any),
        (r"\b((?-i:eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*))".to_owned(), Any),
    ];
    all.into_iter()
        .map(|(pattern, form)| CredentialRule {
            // Boundaries of ASCII words: those of all scripts are looked for by a slower engine.
            pattern: Regex::new(&format!("(?im){pattern}").replace(r"\b", r"(?-u:\b)"))
                .expect("our own pattern, compiled by the tests"),
            form,
        })
        .collect()
});

/// The text without what looks like a credential, and without the secrets of this process.
pub fn without_credentials(text: &str) -> Cow<'_, str> {
    replaced(without_secrets(text), |_| true)
}

/// The same of a command that somebody is to look at before it is run: what a shell would take for more than a word stays, so that no
/// other command hides in a secret.
pub fn shown_command(command: &str) -> Cow<'_, str> {
    replaced(without_secrets(command), |value| {
        !value.contains([';', '&', '|', '<', '>', '(', ')', '`', '\n'])
    })
}

/// The values in a text that look like credentials.
pub fn credentials_in(text: &str) -> Vec<&str> {
    found(text).into_iter().map(|at| &text[at]).collect()
}

/// Whether what has this name is a credential.
pub fn is_credential(name: &str, value: &str) -> bool {
    // In single quotes nothing of it has another meaning.
    let plain = value.replace(['\'', '\n'], "x");
    let (from, text) = (name.len() + 2, format!("{name}='{plain}'"));
    // All of it: what a URL has in it goes by itself.
    found(&text).iter().any(|at| at.start <= from && at.end + 1 >= text.len())
}

/// Whether a text that is kept holds a credential for sure. A user alone in a URL is none, unless it is as long as a token is:
/// `ssh://git@host`.
pub fn holds_credential(text: &str) -> bool {
    let is_user_alone =
        |v: &str| v.len() < LEAST_TOKEN && !v.contains(':') && text.contains(&format!("://{v}@"));
    credentials_in(text).into_iter().any(|v| !is_user_alone(v))
}

/// The same of a mark with a name, such as a label: by either of both.
pub fn is_secret_label(name: &str, value: &str) -> bool {
    // `pass=2` of two passes.
    let is_number = value.len() < 4 && value.bytes().all(|c| c.is_ascii_digit());
    is_credential(name, value) && !is_number || holds_credential(name) || holds_credential(value)
}

/// The same of a header: whatever stands after the scheme of an `Authorization`, under any name.
pub fn is_secret_header_value(value: &str) -> bool {
    let words: Vec<&str> = value.split_whitespace().collect();
    let of_scheme = |scheme: &&str| ["bearer", "basic"].contains(&scheme.to_ascii_lowercase().as_str());
    matches!(&words[..], [scheme, token] if of_scheme(scheme) && !is_elsewhere(token))
        || holds_credential(value)
}

/// The text of a TOML file without credentials. Where leaving them out in place would make it no TOML, or where they are written in
/// escapes, the file is written anew, without its comments.
pub fn toml_without_credentials(text: &str) -> String {
    let out = without_credentials(text);
    let parsed = out.parse::<toml::Table>().ok();
    let is_read_as_before = parsed.is_some() || text.parse::<toml::Table>().is_err();
    let Some(mut table) = parsed.or_else(|| text.parse().ok()) else { return out.into_owned() };
    if !cleaned(&mut table) && is_read_as_before {
        return out.into_owned();
    }
    format!("# Written anew: secrets that are left out stood in it in other spellings.\n{table}")
}

/// Whether one was in it.
fn cleaned(table: &mut toml::Table) -> bool {
    let one = |(key, value): (&str, &mut toml::Value)| cleaned_value(key, value);
    // All of them, not only up to the first.
    table.iter_mut().filter_map(|(k, v)| one((k, v)).then_some(())).count() > 0
}

fn cleaned_value(name: &str, value: &mut toml::Value) -> bool {
    match value {
        toml::Value::String(text) => {
            let clean = if is_credential(name, text) {
                LEFT_OUT.to_owned()
            } else {
                without_credentials(text).into_owned()
            };
            let changed = clean != *text;
            *text = clean;
            changed
        }
        toml::Value::Array(all) => {
            all.iter_mut().filter_map(|v| cleaned_value("", v).then_some(())).count() > 0
        }
        toml::Value::Table(table) => cleaned(table),
        _ => false,
    }
}

fn replaced<'a>(text: Cow<'a, str>, goes: impl Fn(&str) -> bool) -> Cow<'a, str> {
    let mut all = found(&text);
    all.retain(|at| goes(&text[at.clone()]));
    if all.is_empty() {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for at in all {
        out.push_str(&text[from..at.start]);
        out.push_str(LEFT_OUT);
        from = at.end;
    }
    out.push_str(&text[from..]);
    Cow::Owned(out)
}

/// Where credentials stand, in order, none in another.
fn found(text: &str) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = Vec::new();
    for rule in RULES.iter() {
        for captures in rule.pattern.captures_iter(text) {
            let whole = captures.get(0).map_or("", |m| m.as_str());
            // `--no-password`: the next word is another's.
            if whole.trim_start_matches(|c: char| c != '-').to_ascii_lowercase().starts_with("--no-") {
                continue;
            }
            let groups = captures.iter().skip(1).flatten();
            all.extend(groups.filter_map(|m| {
                let value = without_end(m.as_str());
                is_secret(value, rule.form).then(|| m.start()..m.start() + value.len())
            }));
        }
    }
    // What is one in one place is one wherever else it stands.
    let mut values: Vec<&str> =
        all.iter().map(|at| &text[at.clone()]).filter(|v| v.len() >= LEAST_SECRET).collect();
    values.sort_unstable();
    values.dedup();
    let again = values.into_iter().flat_map(|v| text.match_indices(v).map(|(at, v)| at..at + v.len()));
    let again: Vec<Range<usize>> = again.collect();
    all.extend(again);
    all.sort_by_key(|at| (at.start, std::cmp::Reverse(at.end)));
    let mut out: Vec<Range<usize>> = Vec::new();
    for at in all {
        match out.last_mut() {
            Some(last) if at.start < last.end => last.end = last.end.max(at.end),
            _ => out.push(at),
        }
    }
    out
}

/// Without what ends a sentence or a list around it.
fn without_end(value: &str) -> &str {
    value.trim_end_matches([',', ']', '}', '.']).trim_end()
}

/// Words that stand for no secret, or say that there is none.
const PLAIN: [&str; 18] = [
    "none",
    "null",
    "nil",
    "true",
    "false",
    "yes",
    "no",
    "on",
    "off",
    "required",
    "optional",
    "env",
    "environment",
    "file",
    "stdin",
    "prompt",
    "ask",
    "-",
];

fn is_secret(value: &str, form: CredentialForm) -> bool {
    let (has_digit, has_upper, has_lower) = (
        value.bytes().any(|c| c.is_ascii_digit()),
        value.bytes().any(|c| c.is_ascii_uppercase()),
        value.bytes().any(|c| c.is_ascii_lowercase()),
    );
    let is_formed = match form {
        CredentialForm::Any => true,
        CredentialForm::Mixed => value.len() >= 16 || (value.len() >= 6 && (has_digit || has_upper)),
        CredentialForm::Varied => {
            let has_sign = value.contains(['!', '#', '%', '^', '*', '+', '?', '~', '@']);
            value.len() >= 5
                && !value.contains(['/', ':'])
                && [has_digit, has_upper, has_lower, has_sign].iter().filter(|has| **has).count() >= 3
        }
        CredentialForm::Encoded => {
            let read = STANDARD_NO_PAD.decode(value.trim_end_matches('=')).ok();
            read.and_then(|bytes| String::from_utf8(bytes).ok()).is_some_and(|pair| pair.contains(':'))
        }
        CredentialForm::Pair => match value.split_once(':') {
            Some((user, password)) => {
                let is_number = |s: &str| s.bytes().all(|c| c.is_ascii_digit());
                // Of a user and a group; another's URL, a volume.
                let is_of_another = (is_number(user) && is_number(password)) || password.starts_with('/');
                !is_of_another && !is_elsewhere(password)
            }
            None => false,
        },
    };
    is_formed && !is_elsewhere(value)
}

/// It says where the secret is, or that there is none.
fn is_elsewhere(value: &str) -> bool {
    // Of `Bearer $TOKEN` and of `USER:$PASSWORD` the last part.
    let last = value.rsplit([' ', ':']).next().unwrap_or(value);
    let is_reference = |v: &str| v.starts_with(['$', '{', '<', '@']) || v.starts_with("%{");
    value.is_empty()
        || value.contains(LEFT_OUT)
        || is_reference(value)
        || is_reference(last)
        || value.bytes().all(|c| matches!(c, b'*' | b'.' | b'x' | b'X'))
        || PLAIN.contains(&value.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of each: the command, and what must not be left of it.
    const SECRETS: [(&str, &[&str]); 62] = [
        ("mc alias set tier http://s3.example.org minioadmin Sup3r/Secret", &["minioadmin", "Sup3r/Secret"]),
        (
            "/opt/mc --insecure alias set --api S3v4 'my tier' \"http://h:9000\" KEYKEY \"se cr et\"",
            &["KEYKEY", "se cr et"],
        ),
        ("mc config host add a https://h K3Y S3CR3T --api s3v4", &["K3Y", "S3CR3T"]),
        ("mc admin user add a newuser newpass", &["newuser", "newpass"]),
        ("curl --user root:calvin http://h", &["calvin"]),
        ("curl --user=root:calvin http://h", &["calvin"]),
        ("curl -u root:calvin http://h", &["calvin"]),
        ("curl -uroot:calvin http://h", &["calvin"]),
        ("curl -u 'root:cal vin' http://h", &["cal vin"]),
        ("curl --proxy-user a:b1c2 http://h", &["b1c2"]),
        ("curl -sku root:calvin -U root:hunter2 http://h", &["calvin", "hunter2"]),
        ("mysql -uroot -phunter2 db", &["hunter2"]),
        ("mariadb-dump -u root -phunter2", &["hunter2"]),
        ("sshpass -p hunter2 ssh h", &["hunter2"]),
        ("sshpass -phunter2 ssh h", &["hunter2"]),
        ("docker login -u me -p hunter2 registry", &["hunter2"]),
        ("attach-disk -pS3cr3t /dev/x", &["S3cr3t"]),
        ("tool --password hunter2 --other x", &["hunter2"]),
        ("tool --password=hunter2", &["hunter2"]),
        ("tool --password 'hunter two'", &["hunter two"]),
        ("tool --secret abcdef", &["abcdef"]),
        ("tool --secret-key=abcdef", &["abcdef"]),
        ("tool --secret-key abcdef", &["abcdef"]),
        ("tool --access-key ABCDEF --secret_key abcdef", &["ABCDEF", "abcdef"]),
        ("tool --http-pass hunter2", &["hunter2"]),
        ("s3cmd --access_key=ABCD --secret_key=efgh ls", &["ABCD", "efgh"]),
        ("curl -d '{\"accessKey\":\"ABCD\",\"secretKey\":\"efgh ij\"}' http://h", &["ABCD", "efgh ij"]),
        ("before = [\"curl -d '{\\\"secretKey\\\": \\\"efgh\\\"}' http://h\"]", &["efgh"]),
        ("{\"sessionToken\" : \"abc/def==\", \"n\": 1}", &["abc/def=="]),
        ("MINIO_ROOT_PASSWORD=hunter2 minio server", &["hunter2"]),
        ("export AWS_SECRET_ACCESS_KEY='wJalr/XUtn'; x", &["wJalr/XUtn"]),
        ("AWS_ACCESS_KEY_ID=minio AWS_SESSION_TOKEN=tok x", &["minio", "=tok"]),
        (
            "MYSQL_PWD=hunter2 PGPASSWORD=hunter3 RCLONE_CONFIG_X_PASS=hunter4 x",
            &["hunter2", "hunter3", "hunter4"],
        ),
        ("password = \"hunter2\"", &["hunter2"]),
        ("password: hunter2", &["hunter2"]),
        ("https://a.blob.core.windows.net/c?sv=2022-11-02&ss=b&se=2030-01-01&sig=abc%2Bdef%3D", &["abc%2B"]),
        ("DefaultEndpointsProtocol=https;AccountName=a;AccountKey=abc+/==;EndpointSuffix=x", &["abc+/=="]),
        (
            "http://h/b/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=minio%2F2026&X-Amz-Signature=0aff&X-Amz-Security-Token=Fwo",
            &["minio%2F", "0aff", "Fwo"],
        ),
        ("http://h/b/k?AWSAccessKeyId=minio&Signature=vjby%2BPk%3D&Expires=1", &["minio", "vjby"]),
        (
            "https://storage.googleapis.com/b?X-Goog-Credential=me%40x&X-Goog-Signature=12ab",
            &["me%40x", "12ab"],
        ),
        ("curl https://u:pw@h/x https://tok3n@h/y", &["u:pw", "tok3n"]),
        ("curl -H 'Authorization: Bearer abc.def' h", &["abc.def"]),
        ("curl -H \"Authorization: Basic cm9vdDpjYWx2aW4=\" h", &["cm9vd"]),
        ("curl -H X-Vault-Token:s.abcd -H 'X-Api-Key: APIK2' h", &["s.abcd", "APIK2"]),
        ("it said: bearer abcd1234 is not known", &["abcd1234"]),
        ("key AKIAABCDEFGHIJKLMNOP", &["AKIAABCD"]),
        ("use ghp_abcdefghijklmnopqrstuvwxyz012345", &["ghp_abc"]),
        ("with eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-_d", &["eyJhbGci", "abc-_d"]),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\nxyz==\n-----END RSA PRIVATE KEY-----\n",
            &["MIIabc", "xyz"],
        ),
        ("aws configure set aws_secret_access_key wJalrXUtnFEMI0", &["wJalr"]),
        (
            "rclone config create n s3 access_key_id MINIO12345 secret_access_key wJalrXUtnFEMI0",
            &["MINIO1", "wJalr"],
        ),
        ("redis-cli -h x -a hunter2 ping", &["hunter2"]),
        ("ipmitool -H h -U admin -P hunter2 power on", &["hunter2"]),
        ("ldapsearch -D cn=a -w hunter2", &["hunter2"]),
        ("openssl enc -aes-256-cbc -pass pass:hunter2 -in x", &["hunter2"]),
        ("echo hunter2 | sudo -S mount /x", &["hunter2"]),
        ("echo -n hunter2 | cryptsetup open /dev/x y", &["hunter2"]),
        ("printf '%s' hunter2 | cryptsetup open /dev/x y -", &["hunter2"]),
        ("echo 'root:hunter2' | chpasswd", &["hunter2"]),
        ("htpasswd -bc file me hunter2", &["hunter2"]),
        ("it failed: token => abcdef, and more", &["abcdef"]),
        ("password=$X password=second99 api_key=KEY123 token=TOK123", &["second99", "KEY123", "TOK123"]),
    ];

    #[test]
    fn what_looks_like_a_credential_goes() {
        for (text, gone) in SECRETS {
            let out = without_credentials(text);
            for secret in gone {
                assert!(text.contains(secret) && !out.contains(secret), "{secret} in: {out}");
            }
            assert_eq!(gone.is_empty(), out == text, "{out}");
            // Once more, and nothing else goes.
            assert_eq!(without_credentials(&out), out);
        }
    }

    #[test]
    fn what_is_around_it_stays() {
        for (text, left) in [
            (
                "mc alias set t http://h KEY SECRET && mc mb t/b",
                "mc alias set t http://h (secret left out) (secret left out) && mc mb t/b",
            ),
            ("curl --user a:b -X PUT h", "curl --user (secret left out) -X PUT h"),
            ("{\"secretKey\":\"x1\",\"n\":1}", "{\"secretKey\":\"(secret left out)\",\"n\":1}"),
            ("a = [\"x --token abc\", \"y\"] # why", "a = [\"x --token (secret left out)\", \"y\"] # why"),
            ("https://h/c?sv=1&sig=abc&se=2", "https://h/c?sv=1&sig=(secret left out)&se=2"),
            ("--token abcdefgh; echo abcdefgh-abc", "--token (secret left out); echo (secret left out)-abc"),
            ("password=ab, then more", "password=(secret left out), then more"),
        ] {
            assert_eq!(without_credentials(text), left);
        }
    }

    #[test]
    fn what_is_none_stays() {
        for text in [
            "a password is needed, and a token of 5 minutes",
            "a token bucket: 100 tokens, tokens: 12, token_bucket = 5, tokens=7",
            "passwordless, secretary, broken=1, design=new, config=x, passed=3, bypass=1, sigma=2, compass=north",
            "token_file = \"/etc/t\" token_env = \"T\" --password-file /etc/p --password-stdin --token-ttl=5m sse_c_key_file = \"k\"",
            "curl -d password=$PASSWORD -u root:$PW -u $U:$P https://$U:$P@h/x -H \"Authorization: Bearer $TOKEN\"",
            "mc alias set tier http://h \"$KEY\" \"$SECRET\"",
            "mc alias set tier http://h && mc ls tier",
            "mc alias list; mc admin info tier",
            "tool --secret-key ${SECRET} --password \"$(cat /etc/p)\" --token @/etc/t",
            "mkdir -p /data/new; cp -pr a b; ssh -p2222 h; ssh -p 2222 h; docker run -p 9000:9000 -p9000:9000 -u 1000:1000 x",
            "find . -print0 -path x -perm 644 -prune; tar -pxf x; gcc -pthread; ps -p123; ffmpeg -pix_fmt yuv420p",
            "sudo -u alice systemctl restart minio; chown alice:alice /x; psql --no-password db",
            "ssh root@host; scp a@b:/c .; git clone https://github.com/a/b; http://h:9000/a@b",
            "the bearer of news, basic authorization of users, authorized: 5",
            "Signature of the run; signed = \"full\"; signing: pool; key_size: 16; keys=5; access keys rotate",
            "put 4 KiB; 64 threads; subject 'minio-secret', bucket secrets/tokens, profile = \"work\"",
            "password: none, token = false, secret=***, api_key = \"\"",
            "echo hello | tee x; printf '%s' x | sha256sum",
            "std::token::Token, fn token(x: u8), 12:30:10",
            "run 20261124-120000-abcd of fast/put at 595.1 op/s",
        ] {
            assert_eq!(without_credentials(text), text);
            assert!(credentials_in(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn no_other_command_hides_in_what_is_shown() {
        for evil in [
            "x --password \"' ; rm -rf / ; echo '\"",
            "echo 'x --token \"' ; rm -rf / ; echo '\"'",
            "curl -H Authorization: x; rm -rf /",
            "curl --user \"a:b$(rm -rf /)\" h",
        ] {
            assert!(shown_command(evil).contains("rm -rf /"), "{}", shown_command(evil));
        }
        assert_eq!(shown_command("curl -u 'a:b' h"), "curl -u '(secret left out)' h");
    }

    #[test]
    fn a_toml_file_stays_one_and_says_the_same_but_for_its_secrets() {
        let plain = "# a comment\nbefore = [\"mc alias set t http://h KEY SECRET\", \"x\"]\n";
        let out = toml_without_credentials(plain);
        assert!(out.starts_with("# a comment\n") && !out.contains("KEY") && !out.contains("SECRET"), "{out}");
        for text in [
            "labels = { token = 'abcdef', tier = \"a\" }\n",
            "labels = { \"t\\u006fken\" = \"abcdef\" }\n",
            "a = [\"x --token \", \"abcdef\"]\nb = \"--token abcdef\"\n",
            "a = \"--t\\u006fken abcdef\"\n",
            "token = 12345678\nb = \"token=abcdef\"\n",
        ] {
            let out = toml_without_credentials(text);
            let (table, old) = (out.parse::<toml::Table>().unwrap(), text.parse::<toml::Table>().unwrap());
            assert!(table.keys().eq(old.keys()) && out.matches(LEFT_OUT).count() > 0, "{out}");
            assert!(
                !out.contains("=abcdef") && !out.contains("en abcdef") && !out.contains("'abcdef"),
                "{out}"
            );
        }
        let harmless = "name = \"t\"\nbefore = [\"mkdir -p /x\"] # a password is needed\n";
        assert_eq!(toml_without_credentials(harmless), harmless);
    }

    #[test]
    fn of_what_is_kept_only_what_is_surely_one_is_refused() {
        for text in [
            "http://u:PW@h/x",
            "http://h/x?sig=abc",
            "http://h/x?a=1&token=abc",
            "http://h/x?X-Amz-Security-Token=abc",
            "http://h/x?X-Amz-Signature=abc",
            "http://h/x?X-Amz-Credential=abc",
            "before: mc alias set a http://h AKIAABCDEFGHIJKLMNOP SECRET",
            "with Bearer abcd1234",
            "with Basic dTpwYXNzd29yZA==",
            "https://ghp_abcdefghijklmnopqrstuvwxyz012345@github.com/x",
        ] {
            assert!(
                holds_credential(text) && is_secret_label("url", text) && is_secret_header_value(text),
                "{text}"
            );
        }
        for text in [
            "ssh://git@h/x",
            "a Basic understanding of tokens",
            "http://h:9000/b/k?list-type=2",
            "node 3 off",
        ] {
            assert!(
                !holds_credential(text) && !is_secret_label("x", text) && !is_secret_header_value(text),
                "{text}"
            );
        }
        assert!(is_secret_header_value("Bearer TOKEN") && is_secret_header_value("basic xyz"));
        assert!(!is_secret_header_value("Bearer $TOKEN") && !is_secret_header_value("bearer of good news"));
        assert!(is_secret_label("password", "hunter2") && !is_secret_label("pass", "2"));
    }

    #[test]
    fn by_its_name_a_value_is_one() {
        assert!(is_credential("password", "it's") && is_credential("X_TOKEN", "a"));
        assert!(
            !is_credential("url", "https://h/c?sig=ab")
                && !is_credential("tier", "premium")
                && !is_credential("token_file", "x")
                && !is_credential("password", "$X")
        );
    }
}
