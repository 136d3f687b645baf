//! Which bucket is measured, and how it is spoken to.

use std::collections::BTreeMap;

use clap::Args;
use plimsoll_model::plan::{
    Addressing, Checksum, EmbeddedSpec, OnThrottle, PayloadSigning, S3Target, TargetSpec, TlsSpec, shown_url,
};
use plimsoll_model::units::Span;

use super::ArgsContext;
use crate::fault::Fault;
use crate::values;

const STORAGE: &str = "Storage";
const REQUESTS: &str = "Requests";
const TLS: &str = "TLS";
const EMBEDDED: &str = "Embedded server (with --endpoint embedded)";

/// Credentials are not here on purpose: a command line is seen by every user of the machine.
#[derive(Debug, Clone, Args)]
pub struct StorageArgs {
    /// URL of the S3 server; repeat it, or write http://node{1...4}:9000, to spread the load over several servers.
    /// `embedded` starts plimsoll's own server for the run. Default: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL,
    /// or endpoint_url of the profile
    #[arg(long = "endpoint", value_name = "URL")]
    pub endpoints: Vec<String>,
    /// Bucket to use; the run keeps its objects under a prefix of its own
    #[arg(long, value_name = "NAME")]
    pub bucket: Option<String>,
    /// Server that a redirect (307, 308) may lead to; may be repeated. Keys and signatures are sent only to servers
    /// named here or as an endpoint, and never from https to http
    #[arg(long = "redirect-to", value_name = "URL", help_heading = STORAGE)]
    pub redirects_to: Vec<String>,
    /// Create the bucket, and remove it at the end if it is empty
    #[arg(long, help_heading = STORAGE)]
    pub create_bucket: bool,
    /// Prefix for the run's objects [default: plimsoll/RUN-ID/]
    #[arg(long, value_name = "PREFIX", help_heading = STORAGE)]
    pub prefix: Option<String>,
    /// Region to sign for [default: AWS_REGION, the profile, or us-east-1]
    #[arg(long, value_name = "REGION", help_heading = STORAGE)]
    pub region: Option<String>,
    /// Profile in ~/.aws/config and ~/.aws/credentials. Its keys are used even if AWS_ACCESS_KEY_ID is set;
    /// AWS_REGION and AWS_ENDPOINT_URL override its region and endpoint, as in the AWS tools
    #[arg(long, value_name = "NAME", help_heading = STORAGE)]
    pub profile: Option<String>,
    /// path: http://host/bucket/key; virtual-host: http://bucket.host/key
    #[arg(long, value_name = "HOW", default_value = "path", help_heading = STORAGE,
          value_parser = values::named::<Addressing>(["path", "virtual-host"]))]
    pub addressing: Addressing,

    /// Payload signing: unsigned, pool (hashes computed before the run), or full (each body hashed when it is sent)
    #[arg(long, value_name = "MODE", default_value = "unsigned", help_heading = REQUESTS,
          value_parser = values::named::<PayloadSigning>(["unsigned", "pool", "full"]))]
    pub signing: PayloadSigning,
    /// Checksum to send with uploads and verify on downloads
    #[arg(long, value_name = "KIND", default_value = "none", help_heading = REQUESTS,
          value_parser = values::named::<Checksum>(["none", "crc32c", "crc64nvme"]))]
    pub checksum: Checksum,
    /// On 429 and 503 SlowDown: record it and continue; back off (honouring Retry-After); or pause a few milliseconds
    /// [default: record; in limits: pause; in speedtest and watch: backoff]
    #[arg(long, value_name = "WHAT", help_heading = REQUESTS,
          value_parser = values::named::<OnThrottle>(["record", "backoff", "pause"]))]
    pub on_throttle: Option<OnThrottle>,
    /// Timeout of an op
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = REQUESTS)]
    pub timeout: Span,
    /// Storage class of uploads, for example STANDARD_IA
    #[arg(long, value_name = "CLASS", help_heading = REQUESTS)]
    pub storage_class: Option<String>,
    /// Server-side encryption of uploads: AES256, or aws:kms with --sse-kms-key-id
    #[arg(long, value_name = "METHOD", help_heading = REQUESTS)]
    pub sse: Option<String>,
    /// Key ID for aws:kms encryption
    #[arg(long, value_name = "ID", requires = "sse", help_heading = REQUESTS)]
    pub sse_kms_key_id: Option<String>,
    /// File with a customer-provided encryption key (SSE-C): 32 bytes in base64, as from `openssl rand -base64 32`
    #[arg(long, value_name = "FILE", conflicts_with = "sse", help_heading = REQUESTS)]
    pub sse_c_key_file: Option<String>,
    /// Header to add to each upload, for example 'x-amz-meta-owner: lab'; may be repeated
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = values::header, help_heading = REQUESTS)]
    pub headers: Vec<(String, String)>,
    /// Open a new connection for each request
    #[arg(long, help_heading = REQUESTS)]
    pub no_keep_alive: bool,
    /// Send `Expect: 100-continue` before bodies
    #[arg(long, help_heading = REQUESTS)]
    pub expect_continue: bool,

    /// PEM file of certificate authorities to trust instead of the system's
    #[arg(long, value_name = "FILE", help_heading = TLS)]
    pub ca_file: Option<String>,
    /// PEM file of the client certificate
    #[arg(long, value_name = "FILE", requires = "client_key", help_heading = TLS)]
    pub client_cert: Option<String>,
    /// PEM file of the client key
    #[arg(long, value_name = "FILE", requires = "client_cert", help_heading = TLS)]
    pub client_key: Option<String>,
    /// Accept any server certificate
    #[arg(long, conflicts_with = "ca_file", help_heading = TLS)]
    pub insecure: bool,
    /// Use only this TLS version
    #[arg(long, value_name = "VERSION", value_parser = ["1.2", "1.3"], help_heading = TLS)]
    pub tls_version: Option<String>,

    /// A tier with known limits, for example vultr-standard (`plimsoll target s3 --help` lists them)
    #[arg(long, value_name = "TIER", help_heading = EMBEDDED)]
    pub tier: Option<String>,
    /// A limits file instead of a tier (`plimsoll target s3 --help` shows the format)
    #[arg(long, value_name = "FILE", conflicts_with = "tier", help_heading = EMBEDDED)]
    pub limits: Option<String>,
    /// Multiply the tier's rates and capacities by this factor, for example 0.1 on a small machine
    #[arg(long, value_name = "FACTOR", help_heading = EMBEDDED)]
    pub scale: Option<f64>,
    /// Data directory of the embedded server [default: a temporary one]
    #[arg(long, value_name = "DIR", help_heading = EMBEDDED)]
    pub data: Option<String>,
    /// Answer without waiting for data to be synced
    #[arg(long, help_heading = EMBEDDED)]
    pub no_sync: bool,
    /// Speak TLS, with a certificate made for the run
    #[arg(long, help_heading = EMBEDDED)]
    pub tls: bool,
}

impl StorageArgs {
    pub fn target(&self, context: &ArgsContext) -> Result<TargetSpec, Fault> {
        let endpoints = self.endpoints(context)?;
        let embedded = endpoints.iter().any(|e| e == "embedded");
        self.redirects_to.iter().try_for_each(|url| check_endpoint(url))?;
        Ok(TargetSpec::S3(S3Target {
            redirects_to: self.redirects_to.clone(),
            bucket: self.bucket(embedded)?,
            region: self.region.clone(),
            profile: self.profile.clone(),
            addressing: self.addressing,
            signing: self.signing,
            tls: TlsSpec {
                ca_file: self.ca_file.clone(),
                client_cert: self.client_cert.clone(),
                client_key: self.client_key.clone(),
                insecure: self.insecure,
                version: self.tls_version.clone(),
            },
            // The embedded server starts empty: there is nothing of anyone's to be careful with.
            create_bucket: self.create_bucket || embedded,
            prefix: self.prefix.clone(),
            timeout: self.timeout,
            on_throttle: self.on_throttle.unwrap_or_default(),
            keep_alive: !self.no_keep_alive,
            expect_continue: self.expect_continue,
            put_headers: self.put_headers(),
            // Clean-up may be called from another directory.
            sse_c_key_file: self.sse_c_key_file.as_ref().map(|f| absolute(f)),
            checksum: self.checksum,
            embedded: self.embedded(embedded)?.map(Box::new),
            endpoints,
        }))
    }

    fn endpoints(&self, context: &ArgsContext) -> Result<Vec<String>, Fault> {
        let mut endpoints = self.endpoints.clone();
        if endpoints.is_empty() {
            endpoints.extend(context.endpoint(self.profile.as_deref())?);
        }
        if endpoints.is_empty() {
            return Err(Fault::input(
                "no endpoint to measure",
                "Add --endpoint URL (for example http://127.0.0.1:9000), --endpoint embedded, or set AWS_ENDPOINT_URL_S3 or endpoint_url of the profile.",
            ));
        }
        for e in &endpoints {
            check_endpoint(e)?;
        }
        if endpoints.len() > 1 && endpoints.iter().any(|e| e == "embedded") {
            return Err(Fault::input(
                "--endpoint embedded cannot be mixed with other endpoints",
                "Measure one or the other.",
            ));
        }
        Ok(endpoints)
    }

    fn bucket(&self, embedded: bool) -> Result<String, Fault> {
        match &self.bucket {
            Some(b) if !b.is_empty() && !b.contains('/') => Ok(b.clone()),
            Some(b) => Err(Fault::input(
                format!("'{b}' is not a bucket name"),
                "Write the bucket alone; a prefix in it goes to --prefix.",
            )),
            None if embedded => Ok("plimsoll".into()),
            None => Err(Fault::input(
                "no bucket to work in",
                "Add --bucket NAME (and --create-bucket to make it).",
            )),
        }
    }

    fn put_headers(&self) -> BTreeMap<String, String> {
        let mut headers: BTreeMap<String, String> = self.headers.iter().cloned().collect();
        let mut add = |name: &str, value: &Option<String>| {
            if let Some(v) = value {
                headers.insert(name.to_owned(), v.clone());
            }
        };
        add("x-amz-storage-class", &self.storage_class);
        add("x-amz-server-side-encryption", &self.sse);
        add("x-amz-server-side-encryption-aws-kms-key-id", &self.sse_kms_key_id);
        headers
    }

    fn embedded(&self, embedded: bool) -> Result<Option<EmbeddedSpec>, Fault> {
        let spec = EmbeddedSpec {
            tier: self.tier.clone(),
            limits: self.limits.clone(),
            scale: self.scale,
            data: self.data.as_ref().map(|d| absolute(d)),
            no_sync: self.no_sync,
            tls: self.tls,
            cluster: None,
        };
        if spec == EmbeddedSpec::default() {
            return Ok(None);
        }
        if !embedded {
            return Err(Fault::input(
                "--tier, --limits, --scale, --data, --no-sync and --tls configure the embedded server, which is not used here",
                "Add --endpoint embedded, or leave them out.",
            ));
        }
        if self.scale.is_some_and(|s| !(s.is_finite() && s > 0.0)) {
            return Err(Fault::input("--scale must be above 0", "Write a factor such as 0.1."));
        }
        Ok(Some(spec))
    }
}

fn absolute(path: &str) -> String {
    std::path::absolute(path).map_or_else(|_| path.to_owned(), |p| p.to_string_lossy().into_owned())
}

fn check_endpoint(url: &str) -> Result<(), Fault> {
    if url == "embedded" {
        return Ok(());
    }
    let Some(rest) = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")) else {
        return Err(Fault::input(
            format!("endpoint '{}' is no URL", shown_url(url)),
            match url.split_once("://") {
                Some((scheme, _)) => {
                    format!("S3 is spoken over http:// or https://, and not over {scheme}://")
                }
                None => format!("Write http://{0} or https://{0}.", shown_url(url)),
            },
        ));
    };
    let authority = rest.split('/').next().unwrap_or_default();
    if rest.contains('@') {
        return Err(Fault::input(
            "an endpoint must not carry credentials: every user of this machine can read a command line",
            "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use --profile.",
        ));
    }
    if authority.is_empty() {
        return Err(Fault::input(
            format!("endpoint '{}' names no host", shown_url(url)),
            "Write http://HOST:PORT.",
        ));
    }
    Ok(())
}
