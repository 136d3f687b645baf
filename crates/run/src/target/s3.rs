//! An S3 target made ready: credentials found, endpoints reached, bucket there, a prefix of our own marked.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_engine::admin::{Admin, AdminError, AdminSetup, DeleteItem, KeepsVersions, Kept, Trouble};
use plimsoll_engine::target::s3::config::{Config, Options, Setup};
use plimsoll_engine::target::s3::content::{Content, Layout};
use plimsoll_engine::target::s3::keys::KeyNames;
use plimsoll_model::plan::{
    Addressing, EmbeddedSpec, PayloadSigning, S3Target, SizeDist, Workload, is_secret_header,
};
use plimsoll_model::text::{clean, keep_secret};
use plimsoll_model::{Event, OpKind, Outcome, Plan, plan::DataSpec};
use plimsoll_s3::classify::classify_code;
use plimsoll_s3::credentials::{System, endpoint_url, resolve};
use plimsoll_s3::xml::ListedVersion;
use plimsoll_s3::{Credentials, Endpoint};
use plimsoll_store::Journal;

use crate::cleanup::{self, How};
use crate::error::RunError;
use crate::lower::KeyPlan;
use crate::objects::{
    self, Area, Held, Item, ItemPage, ListPage, ObjectStore, StoreFault, Told, Upload, Versioning,
    dataset_prefix,
};
use crate::server::{self, Server};
use crate::target::asked;

/// The word that stands for the embedded server in a plan.
pub const EMBEDDED: &str = "embedded";
/// And the one for the canned server, which keeps nothing: for calibration.
pub const CANNED: &str = "canned";
/// How the canned server names itself.
const CANNED_SERVER: &str = "PlimsollCanned";
/// Region where none is named anywhere: what servers other than AWS expect.
const DEFAULT_REGION: &str = "us-east-1";

/// How to reach a target, without having touched its bucket.
#[derive(Debug, Clone)]
pub struct Access {
    pub endpoints: Vec<Endpoint>,
    /// Where redirects may lead beside those.
    pub redirects: Vec<Endpoint>,
    pub credentials: Credentials,
    pub region: String,
    pub target: S3Target,
}

/// A target whose bucket and prefix are there.
#[derive(Debug)]
pub struct S3Ready {
    access: Access,
    /// Absent where nothing can be made: in the canned server, and where everything is refused.
    area: Option<Area>,
    /// Where the run's objects live, or would.
    prefix: String,
    /// Why nothing may be done here, in the server's words: measured all the same.
    refused: Option<String>,
    /// What was asked of the storage, and not confirmed by it: a sentence each.
    unconfirmed: Vec<String>,
    admin: AdminStore,
    server: Option<Server>,
    content: RefCell<Vec<(ContentKey, Arc<Content>)>>,
}

#[derive(Debug, Clone, PartialEq)]
struct ContentKey {
    seed: u64,
    data: DataSpec,
    layout: Layout,
    sizes: Vec<u64>,
}

/// Everything up to the marker. Clear words for each thing that can be missing.
pub fn connect(
    plan: &Plan,
    name: &str,
    target: &S3Target,
    exe: &Path,
    run_id: &str,
    journal: &mut Journal,
    events: &mut dyn FnMut(Event),
) -> Result<S3Ready, RunError> {
    target.prefix.as_deref().map_or(Ok(()), objects::check_prefix)?;
    let server = start_server(plan, name, target, exe, journal)?;
    let access = access(target, server.as_ref())?;
    check_descriptors(plan)?;
    let admin = AdminStore::new(&access)?;
    // The first request says whether the server is there and lets us in, and what it calls itself.
    let reached = admin.reach(&mut |text| events(Event::Message(text)));
    let prefix = target.prefix.clone().unwrap_or_else(|| format!("plimsoll/{run_id}/"));
    let place = (name, target.bucket.as_str());
    let mut refused = None;
    let mut area = None;
    match reached {
        // It keeps nothing, whatever it answers.
        _ if admin.server().is_some_and(|s| s.starts_with(CANNED_SERVER)) => {}
        // Not wrong keys: a server that denies everything is measured as what it is.
        Err(StoreFault::Forbidden(told)) if objects::nothing_is_allowed(&admin, journal, place, &prefix)? => {
            refused = Some(told.to_string());
        }
        // One time-out is enough.
        Err(fault) if fault.may_pass() => return Err(objects::bucket_error(&target.bucket, &fault)),
        reached => {
            others_answer(&access, reached == Ok(true))?;
            let mut tell = |text| events(Event::Message(text));
            let made = objects::open_area(&admin, journal, place, &prefix, target.create_bucket, &mut tell);
            match made {
                Ok(made) => area = Some(made),
                Err(e) => {
                    // What was made until then (the bucket) goes again.
                    let left =
                        cleanup::bucket_things(&admin, journal, name, &How::default(), &mut None, events)?;
                    left.into_iter().for_each(|text| events(Event::Message(format!("left behind: {text}"))));
                    if let Some(server) = server {
                        server.stop(journal)?;
                    }
                    return Err(e);
                }
            }
        }
    }
    let prefix = objects::with_slash(&prefix);
    let unconfirmed = match &area {
        Some(_) => admin.unconfirmed(&access.target, &prefix),
        // A server that keeps nothing, or lets nothing be stored, cannot be asked.
        None if asked::asks(&access.target) => vec![asked::UNKNOWN.into()],
        None => Vec::new(),
    };
    Ok(S3Ready { access, area, prefix, refused, unconfirmed, admin, server, content: RefCell::default() })
}

/// Each further endpoint is there, lets us in and has the bucket: a dead one would cost a time-out per connection, and
/// turn a part of all ops into failures. Before anything is made, so that nothing is left where one does not.
fn others_answer(access: &Access, exists: bool) -> Result<(), RunError> {
    const LEAVE_OUT: &str =
        "Correct this endpoint, or leave it out: all endpoints have to serve the same bucket";
    for endpoint in access.endpoints.iter().skip(1) {
        let store = AdminStore::of(access, endpoint)?;
        let bucket = &access.target.bucket;
        match store.bucket_exists() {
            Ok(there) if there == exists => {}
            Ok(there) => {
                let has = if there { "has" } else { "lacks" };
                let text = format!("{endpoint} {has} bucket '{bucket}', unlike {}", access.endpoints[0]);
                return Err(RunError::input(text, LEAVE_OUT));
            }
            Err(e) => return Err(RunError::input(e.to_string(), e.remedy().unwrap_or(LEAVE_OUT))),
        }
    }
    Ok(())
}

/// The server that the plan's endpoint asks for, if it asks for one.
fn start_server(
    plan: &Plan,
    name: &str,
    target: &S3Target,
    exe: &Path,
    journal: &mut Journal,
) -> Result<Option<Server>, RunError> {
    let Some(word) = target.endpoints.iter().find(|e| *e == EMBEDDED || *e == CANNED) else {
        return Ok(None);
    };
    if target.endpoints.len() > 1 {
        return Err(RunError::input(
            format!("target '{name}' names the {word} server beside other endpoints"),
            "Give it a target of its own",
        ));
    }
    if word == CANNED {
        let sizes = plan
            .stages
            .iter()
            .flat_map(|s| &s.workloads)
            .map(|w| crate::lower::size_spec(&w.size, 1).max_bytes());
        return server::start_canned(exe, sizes.max().unwrap_or(4096)).map(Some);
    }
    let spec = target.embedded.clone().unwrap_or_default();
    server::start_s3(exe, &spec, &target.bucket, journal).map(Some)
}

/// Credentials from the server that we started, else from where the AWS tools look.
fn access(target: &S3Target, server: Option<&Server>) -> Result<Access, RunError> {
    let wire = asked::with_customer_key(target)?;
    if let Some(server) = server {
        let endpoint = parse_endpoints(std::slice::from_ref(&server.ready.endpoint))?;
        let credentials = Credentials {
            access_key: server.ready.access_key.clone(),
            secret_key: server.ready.secret_key.clone(),
            session_token: None,
        };
        let region = target.region.clone().unwrap_or_else(|| DEFAULT_REGION.into());
        return Ok(Access { endpoints: endpoint, redirects: Vec::new(), credentials, region, target: wire });
    }
    wire.put_headers.iter().filter(|(n, _)| is_secret_header(n)).for_each(|(_, key)| keep_secret(key));
    let found = resolve(&System, target.profile.as_deref()).map_err(|e| {
        let text = e.to_string();
        match text.split_once(": ").filter(|_| e.names_remedy()) {
            Some((problem, remedy)) => RunError::input(problem, capital(remedy)),
            None => RunError::input(text, "A secret is never taken from the command line or the plan"),
        }
    })?;
    // A server may repeat what it was sent.
    keep_secret(&found.credentials.secret_key);
    if let Some(token) = found.credentials.session_token.as_deref() {
        keep_secret(token);
    }
    let endpoints = match (&target.endpoints[..], &found.endpoint_url) {
        ([], Some(url)) => parse_endpoints(std::slice::from_ref(url))?,
        ([], None) => {
            return Err(RunError::input(
                "no endpoint is named",
                "Name one with --endpoint, or set AWS_ENDPOINT_URL",
            ));
        }
        (list, _) => parse_endpoints(list)?,
    };
    let region = target.region.clone().or(found.region).unwrap_or_else(|| DEFAULT_REGION.into());
    let redirects = parse_endpoints(&target.redirects_to)?;
    Ok(Access { endpoints, redirects, credentials: found.credentials, region, target: wire })
}

/// A sentence's beginning.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}

/// The endpoint where the command line names none: of the environment, or of the profile.
pub fn configured_endpoint(profile: Option<&str>) -> Result<Option<String>, RunError> {
    endpoint_url(&System, profile)
        .map_err(|e| RunError::input(e.to_string(), "Correct it, or name the endpoint with --endpoint"))
}

fn parse_endpoints(patterns: &[String]) -> Result<Vec<Endpoint>, RunError> {
    let mut all = Vec::new();
    for p in patterns {
        all.extend(Endpoint::expand(p).map_err(|e| {
            RunError::input(e.to_string(), "An endpoint is a URL such as http://127.0.0.1:9000")
        })?);
    }
    Ok(all)
}

/// A connection for each op in flight, and some for the rest of the program.
fn check_descriptors(plan: &Plan) -> Result<(), RunError> {
    const REST: u64 = 64;
    let stages = plan.stages.iter();
    let most = stages.map(|s| s.workloads.iter().map(connections).sum::<u64>()).max().unwrap_or(0);
    let wanted = most + REST;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let (soft, hard) = (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX));
    if soft >= wanted {
        return Ok(());
    }
    if hard >= wanted {
        // The soft limit is ours to raise.
        let raised = rustix::process::Rlimit { current: Some(wanted), maximum: limit.maximum };
        if rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).is_ok() {
            return Ok(());
        }
    }
    Err(RunError::input(
        format!("{most} connections need {wanted} file descriptors, and {soft} are allowed"),
        format!("Raise the limit with: ulimit -n {wanted}, or lower the concurrency"),
    ))
}

fn connections(w: &Workload) -> u64 {
    let parts = w.object.as_ref().filter(|_| w.mix.contains_key(&OpKind::Multipart));
    u64::from(w.concurrency)
        * u64::from(w.jobs.unwrap_or(1))
        * parts.map_or(1, |o| u64::from(o.part_concurrency.max(1)))
}

impl S3Ready {
    pub fn endpoint_names(&self) -> Vec<String> {
        self.access.endpoints.iter().map(ToString::to_string).collect()
    }

    /// The storage runs on this machine.
    pub fn is_here(&self) -> bool {
        self.server.is_some()
            || self.access.endpoints.iter().all(|e| {
                matches!(e.host.as_str(), "localhost" | "::1" | "[::1]") || e.host.starts_with("127.")
            })
    }

    pub fn store(&self) -> &dyn ObjectStore {
        &self.admin
    }

    /// The run's own place in the bucket; none in a server that keeps nothing.
    pub fn area(&self) -> Option<&Area> {
        self.area.as_ref()
    }

    /// Why nothing may be done here, where the server denies everything.
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// It speaks TLS, and with anyone: no certificate was checked.
    pub fn is_unchecked(&self) -> bool {
        self.access.target.tls.insecure && self.access.endpoints.iter().any(|e| e.tls)
    }

    /// What was asked of the storage, and not confirmed by it.
    pub fn unconfirmed(&self) -> &[String] {
        &self.unconfirmed
    }

    pub fn access(&self) -> &Access {
        &self.access
    }

    /// `Server` header, as far as it was seen.
    pub fn server_header(&self) -> Option<String> {
        self.admin.server()
    }

    /// The data of the embedded server is in a temporary directory that goes with it.
    pub fn is_thrown_away(&self) -> bool {
        let named = self.access.target.embedded.as_ref().is_some_and(|e| e.data.is_some());
        self.server.is_some() && !named
    }

    /// Name of the target in the plan.
    pub fn target_name(&self) -> &str {
        self.area.as_ref().map_or("", |a| a.target.as_str())
    }

    /// Ends the embedded server, if this target has one.
    pub fn stop_server(&mut self, journal: &mut Journal) -> Result<(), RunError> {
        self.server.take().map_or(Ok(()), |s| s.stop(journal))
    }

    /// Names of a workload's objects: cells of one size share their prefix, and so their data set; a named data set
    /// has one that outlives the run.
    pub fn key_names(&self, w: &Workload) -> KeyNames {
        let object = w.object.as_ref();
        KeyNames {
            prefix: format!("{}{}/", self.prefix, size_word(&w.size)),
            prefixes: object.map_or(1, |o| o.prefixes.max(1)),
            dataset: object.and_then(|o| o.dataset.as_ref()).map(|name| dataset_prefix(name, &w.size)),
        }
    }

    /// The engine's settings for one workload.
    pub fn config(&self, plan: &Plan, w: &Workload, keys: &KeyPlan) -> Result<Arc<Config>, RunError> {
        let object = w.object.clone().unwrap_or_default();
        let multipart = w.mix.get(&OpKind::Multipart).is_some_and(|n| *n > 0);
        let options = Options {
            part_bytes: object.part_size.0.max(1),
            part_concurrency: object.part_concurrency.max(1),
            multipart,
            max_multipart_bytes: if multipart { crate::lower::size_spec(&w.size, 1).max_bytes() } else { 0 },
            list_max_keys: object.list_max_keys,
            list_delimiter: object.list_delimiter.clone(),
            delete_batch: object.delete_batch.max(1),
            // Half of the workload's range of numbers, so that puts and copies never meet.
            copy_first: keys.fresh_first + (1 << 39),
        };
        let setup = Setup {
            endpoints: self.access.endpoints.clone(),
            redirects: self.access.redirects.clone(),
            credentials: self.access.credentials.clone(),
            region: self.access.region.clone(),
            target: self.access.target.clone(),
            keys: self.key_names(w),
            content: self.content(plan, w, &options),
            object: options,
        };
        Config::new(setup).map(Arc::new).map_err(|e| RunError::input(e, "Correct the plan's target"))
    }

    /// Contents are megabytes: one for all workloads that look alike.
    fn content(&self, plan: &Plan, w: &Workload, options: &Options) -> Arc<Content> {
        let layout = match self.access.target.signing {
            PayloadSigning::Pool => Layout::Pool,
            PayloadSigning::Unsigned | PayloadSigning::Full => Layout::Stamped,
        };
        let sizes = if layout == Layout::Pool { body_sizes(w, options) } else { Vec::new() };
        let key = ContentKey { seed: crate::lower::data_seed(plan.seed, w), data: w.data, layout, sizes };
        let mut made = self.content.borrow_mut();
        if let Some((_, content)) = made.iter().find(|(k, _)| *k == key) {
            return Arc::clone(content);
        }
        let content = Arc::new(Content::new(key.seed, key.data, layout, &key.sizes));
        made.push((key, Arc::clone(&content)));
        content
    }
}

/// Lengths of bodies whose hash is known before the run: fixed sizes, and the parts of multipart objects.
fn body_sizes(w: &Workload, options: &Options) -> Vec<u64> {
    let mut sizes: Vec<u64> = match &w.size {
        SizeDist::Fixed(s) => vec![s.0],
        SizeDist::Weighted(list) => list.iter().map(|(s, _)| s.0).collect(),
        SizeDist::Uniform { .. } | SizeDist::LogNormal { .. } => Vec::new(),
    };
    if options.multipart {
        let parts: Vec<u64> =
            sizes.iter().flat_map(|s| [options.part_bytes.min(*s), s % options.part_bytes]).collect();
        sizes = parts;
    }
    sizes.retain(|s| *s > 0);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// A size distribution in a key.
fn size_word(size: &SizeDist) -> String {
    let text = serde_json::to_string(size).unwrap_or_default();
    let word: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
    word.trim_matches('-').to_owned()
}

/// The engine's blocking client as an [`ObjectStore`], and the headers that uploads carry beside those of S3 itself.
#[derive(Debug)]
pub struct AdminStore(RefCell<Admin>, Option<String>);

/// A client for cleaning up: the same access, later.
pub fn admin_for(target: &S3Target) -> Result<AdminStore, RunError> {
    AdminStore::new(&access(target, None)?)
}

/// The same for an embedded server over a directory that outlives it: without its limits, for the clean-up.
pub fn embedded_admin(target: &S3Target, journal: &mut Journal) -> Result<(AdminStore, Server), RunError> {
    let data = target.embedded.as_ref().and_then(|e| e.data.clone());
    let spec = EmbeddedSpec { data, ..EmbeddedSpec::default() };
    let exe = std::env::current_exe().unwrap_or_else(|_| "plimsoll".into());
    let server = server::start_s3(&exe, &spec, &target.bucket, journal)?;
    let store = AdminStore::new(&access(target, Some(&server))?)?;
    Ok((store, server))
}

impl AdminStore {
    /// `Server` header, as far as it was seen.
    fn server(&self) -> Option<String> {
        self.0.borrow().server().map(|s| clean(s).into_owned())
    }

    fn new(access: &Access) -> Result<Self, RunError> {
        let endpoint = access
            .endpoints
            .first()
            .ok_or_else(|| RunError::input("no endpoint is named", "Name one with --endpoint"))?;
        Self::of(access, endpoint)
    }

    fn of(access: &Access, endpoint: &Endpoint) -> Result<Self, RunError> {
        let setup = AdminSetup {
            endpoint: endpoint.clone(),
            credentials: access.credentials.clone(),
            region: access.region.clone(),
            bucket: access.target.bucket.clone(),
            virtual_host: access.target.addressing == Addressing::VirtualHost,
            tls: access.target.tls.clone(),
            put_headers: access.target.put_headers.clone().into_iter().collect(),
            timeout: access.target.timeout.0.min(Duration::from_secs(30)),
        };
        let admin = Admin::new(setup).map_err(|e| RunError::input(e.message, "Correct the plan's target"))?;
        Ok(Self(RefCell::new(admin), asked::named(&access.target)))
    }

    /// What of encryption and storage class the server does not say of our marker.
    fn unconfirmed(&self, target: &S3Target, prefix: &str) -> Vec<String> {
        if !asked::asks(target) {
            return Vec::new();
        }
        match self.0.borrow_mut().stored(&format!("{prefix}{}", objects::MARKER)) {
            Ok(stored) => asked::unconfirmed(target, &stored),
            Err(e) => {
                vec![format!("{} {}.", asked::UNKNOWN, e.message)]
            }
        }
    }
}

fn fault(e: AdminError) -> StoreFault {
    let told = Told { what: e.message, remedy: e.remedy };
    match e.trouble {
        Trouble::NoSuchBucket => StoreFault::NoSuchBucket,
        Trouble::NotFound => StoreFault::NoSuchKey,
        Trouble::Refused => StoreFault::Denied(told),
        Trouble::Forbidden => StoreFault::Forbidden(told),
        Trouble::Unreachable | Trouble::Throttled | Trouble::Failing => StoreFault::Away(told),
        Trouble::Unsupported => StoreFault::Unsupported,
        Trouble::Conflict | Trouble::Foreign | Trouble::Other => StoreFault::Other(told),
    }
}

impl AdminStore {
    /// Whether the bucket is there; see [`Admin::reach`].
    fn reach(&self, tell: &mut dyn FnMut(String)) -> Result<bool, StoreFault> {
        self.0.borrow_mut().reach(tell).map_err(|e| match e.trouble {
            // A listing cannot lack an object: this is no S3 server, or not at its root.
            Trouble::NotFound => StoreFault::Other(Told {
                what: e.message,
                remedy: "Check the endpoint: what answers there does not speak S3".into(),
            }),
            _ => fault(e),
        })
    }
}

impl ObjectStore for AdminStore {
    fn shows_versions(&self) -> bool {
        self.0.borrow().shows_versions()
    }
    fn give_up_when(&self, enough: &'static std::sync::atomic::AtomicBool) {
        self.0.borrow_mut().give_up_when(enough);
    }
    fn bucket_exists(&self) -> Result<bool, StoreFault> {
        self.reach(&mut |_| {})
    }
    fn create_bucket(&self) -> Result<(), StoreFault> {
        self.0.borrow_mut().create_bucket().map(drop).map_err(fault)
    }
    fn delete_bucket(&self) -> Result<(), StoreFault> {
        self.0.borrow_mut().delete_bucket().map_err(|e| match e.trouble {
            Trouble::Conflict => StoreFault::NotEmpty,
            _ => fault(e),
        })
    }
    fn put_new(&self, key: &str, body: &[u8]) -> Result<bool, StoreFault> {
        let made = self.0.borrow_mut().put_new(key, body);
        match made {
            Ok(made) => Ok(made),
            // The condition may be what it does not know; the plain form says what is really wrong.
            Err(e) if matches!(e.trouble, Trouble::Unreachable | Trouble::Throttled) => Err(fault(e)),
            Err(_) => self.put(key, body).map(|()| true),
        }
    }
    fn put(&self, key: &str, body: &[u8]) -> Result<(), StoreFault> {
        let wanted = self.1.as_ref().map(|names| {
            format!("Correct or leave out what uploads ask for ({names}), or use a server that knows it")
        });
        self.0.borrow_mut().put(key, body).map_err(|e| match (e.trouble, wanted) {
            // An upload cannot lack its object: something that it names is not there (a key of encryption).
            (Trouble::NotFound | Trouble::Other | Trouble::Refused, Some(remedy)) if e.remedy.is_empty() => {
                StoreFault::Other(Told { what: e.message, remedy })
            }
            (Trouble::NotFound, _) => StoreFault::Other(Told { what: e.message, remedy: e.remedy }),
            _ => fault(e),
        })
    }
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreFault> {
        self.0.borrow_mut().get(key).map_err(fault)
    }
    fn list(&self, prefix: &str, from: Option<&str>, most: u32) -> Result<ListPage, StoreFault> {
        let page = self.0.borrow_mut().list_page(prefix, from).map_err(fault)?;
        let keys = page.objects.into_iter().map(|o| o.key).take(most as usize).collect();
        Ok(ListPage { keys, next: page.next_token.filter(|_| page.truncated) })
    }
    fn versioning(&self) -> Result<Versioning, StoreFault> {
        let KeepsVersions { status, lock, retention } =
            self.0.borrow_mut().keeps_versions().map_err(fault)?;
        Ok(Versioning { status, lock, retention, hidden: false })
    }
    fn versions(&self, prefix: &str, from: Option<&(String, String)>) -> Result<ItemPage, StoreFault> {
        let from = from.map(|(key, version)| (key.as_str(), version.as_str()));
        let page = self.0.borrow_mut().versions_page(prefix, from).map_err(fault)?;
        let item = |v: ListedVersion| Item { key: v.key, version: Some(v.version_id) };
        let next = page.truncated.then_some((page.next_key_marker, page.next_version_id_marker));
        Ok(ItemPage { items: page.versions.into_iter().map(item).collect(), next })
    }
    fn get_version(&self, key: &str, version: &str) -> Result<Option<Vec<u8>>, StoreFault> {
        self.0.borrow_mut().get_version(key, version).map_err(fault)
    }
    fn delete(&self, items: &[Item]) -> Result<Vec<Held>, StoreFault> {
        let items: Vec<DeleteItem> =
            items.iter().map(|i| DeleteItem { key: i.key.clone(), version: i.version.clone() }).collect();
        let kept = self.0.borrow_mut().delete_items(&items).map_err(fault)?;
        // A part of the batch may be deleted later where the server stumbled or throttled.
        let passing = |k: &&Kept| {
            let outcome = classify_code(&k.code);
            outcome.is_throttled() || outcome == Outcome::Http5xx
        };
        let why = |k: &Kept| {
            if k.message.contains(&k.code) { k.message.clone() } else { format!("{}: {}", k.code, k.message) }
        };
        if let Some(k) = kept.iter().find(passing) {
            return Err(StoreFault::Away(
                format!("'{}' was not deleted: {}", clean(&k.item.key), why(k)).into(),
            ));
        }
        let held = |k: Kept| {
            let why = why(&k);
            Held { item: Item { key: k.item.key, version: k.item.version }, why }
        };
        Ok(kept.into_iter().map(held).collect())
    }
    fn uploads(&self, prefix: &str) -> Result<Vec<Upload>, StoreFault> {
        let all = self.0.borrow_mut().list_uploads(prefix).map_err(|e| match e.trouble {
            // Servers without multipart answer 404.
            Trouble::NotFound => StoreFault::Unsupported,
            _ => fault(e),
        })?;
        Ok(all.into_iter().map(|(key, id)| Upload { key, id }).collect())
    }
    fn abort_upload(&self, upload: &Upload) -> Result<(), StoreFault> {
        self.0.borrow_mut().abort_upload(&upload.key, &upload.id).map_err(fault)
    }
}
