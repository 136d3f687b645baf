//! An S3 target made ready: credentials found, endpoints reached, bucket there, a prefix of our own marked.

use std::path::Path;

use plimsoll_model::plan::{EmbeddedSpec, S3Target, Workload};
use plimsoll_model::text::keep_secret;
use plimsoll_model::{Event, OpKind, Plan};
use plimsoll_s3::Endpoint;
use plimsoll_store::Journal;
use plimsoll_store::rundir::descriptors_for;
use serde::{Deserialize, Serialize};

use super::access::{Access, GivenKeys, access, access_with};
use super::admin::AdminStore;
use super::asked;
use super::bucket::{self, Bucket, ClaimBy, Errands, Way};
use crate::error::SetupError;
use crate::interrupt::{Interrupt, RemovalEnd};
use crate::objects::{self, Area, FoundObjects, ObjectStore, StoreFault, WantedObjects};
use crate::removal::{self, How};
use crate::server::{self, EmbeddedServer, ReadyLine};

/// The word that stands for the embedded server in a plan.
pub const EMBEDDED: &str = "embedded";
/// And the one for the canned server, which keeps nothing: for calibration.
pub const CANNED: &str = "canned";
/// How the canned server names itself.
const CANNED_SERVER: &str = "PlimsollCanned";

/// What an agent needs to work in a place that was claimed: how the storage is reached, and where the run's objects are. It makes
/// nothing there by itself, and removes nothing.
#[derive(Debug, Clone)]
pub struct Reach {
    /// Endpoints, keys and settings.
    pub access: Access,
    /// Where the run's objects live, or would.
    pub prefix: String,
    /// The storage runs on this machine.
    pub is_here: bool,
    /// It is a server that was started for this run, whose keys nobody else has and which end with it.
    pub is_own_server: bool,
}

/// What an agent is told of a place that was claimed. No secret of anybody's is in it: with the plan, which says where keys are found, it
/// finds its own. A server that was started for this run alone has keys that were made for it, and goes with them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReachTold {
    /// As URLs, in the order in which they were named.
    pub endpoints: Vec<String>,
    /// What requests are signed for; empty: what the agent has for it.
    pub region: String,
    /// Where the run's objects live, or would.
    pub prefix: String,
    /// The endpoints are each machine's own: the storage runs where the agent does.
    pub is_here: bool,
    /// Access key and secret key of a server that was started for this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_keys: Option<(String, String)>,
    /// Of the certificate that it made, a file of the machine that it is on: it is reached on no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_ca_file: Option<String>,
}

impl std::fmt::Debug for ReachTold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReachTold").field("endpoints", &self.endpoints).finish_non_exhaustive()
    }
}

impl Reach {
    /// For agents on other machines.
    pub fn told(&self) -> ReachTold {
        ReachTold {
            endpoints: self.access.endpoints.iter().map(ToString::to_string).collect(),
            region: self.access.region.clone(),
            prefix: self.prefix.clone(),
            is_here: self.is_here,
            made_keys: self.is_own_server.then(|| {
                let keys = self.access.keys.get();
                (keys.access_key.clone(), keys.secret_key.clone())
            }),
            made_ca_file: self.access.target.tls.ca_file.clone().filter(|_| self.is_own_server),
        }
    }

    /// Of an agent that was told of a target of its plan: with the keys that it was given, else with those that this machine has for it.
    /// It is one of `agents` that share the connections.
    pub fn of_agent(
        plan: &Plan,
        target: &S3Target,
        told: &ReachTold,
        given: Option<&GivenKeys>,
        agents: u64,
        interrupt: &Interrupt,
    ) -> Result<Self, SetupError> {
        check_descriptors(plan, agents)?;
        let access = told.access(target, given, interrupt)?;
        bucket::all_answer(&access.endpoints, interrupt)?;
        let is_own_server = told.made_keys.is_some();
        Ok(Self { access, prefix: told.prefix.clone(), is_here: told.is_here, is_own_server })
    }
}

impl ReachTold {
    fn access(
        &self,
        target: &S3Target,
        given: Option<&GivenKeys>,
        interrupt: &Interrupt,
    ) -> Result<Access, SetupError> {
        let region = Some(self.region.clone()).filter(|r| !r.is_empty()).or_else(|| target.region.clone());
        let target = S3Target { endpoints: self.endpoints.clone(), region, ..target.clone() };
        let ready =
            self.made_keys.as_ref().zip(self.endpoints.first()).map(|((access, secret), endpoint)| {
                keep_secret(secret);
                let (access_key, secret_key) = (access.clone(), secret.clone());
                let (endpoint, ca_file) = (endpoint.clone(), self.made_ca_file.clone());
                ReadyLine { endpoint, access_key, secret_key, ca_file, ..ReadyLine::default() }
            });
        let given = given.cloned();
        interrupt.unless_ended(move || access_with(&target, ready.as_ref(), given.as_ref()))
    }

    /// The bucket at one of the endpoints, for an agent that is asked to do there what its conductor cannot.
    pub fn bucket(
        &self,
        target: &S3Target,
        endpoint: usize,
        given: Option<&GivenKeys>,
        interrupt: &Interrupt,
    ) -> Result<AdminStore, SetupError> {
        let access = self.access(target, given, interrupt)?;
        let named = access.endpoints.get(endpoint);
        let named = named.ok_or_else(|| SetupError::Bug(format!("there is no endpoint {endpoint}")))?;
        AdminStore::of(&access, named)
    }
}

/// A target whose bucket and prefix are the run's: claimed once, by whoever conducts, who also gives it back.
#[derive(Debug)]
pub struct BucketClaim {
    access: Access,
    /// Absent where nothing can be made: in the canned server, and where everything is refused.
    area: Option<Area>,
    /// Where the run's objects live, or would.
    prefix: String,
    /// Why nothing may be done here, in the server's words: measured all the same.
    refused: Option<String>,
    /// What was asked of the storage, and not confirmed by it: a sentence each.
    unconfirmed: Vec<String>,
    /// Name of the target in the plan.
    name: String,
    admin: Box<dyn Bucket>,
    way: Way,
    server: Option<EmbeddedServer>,
}

/// The run that a target is made ready for.
#[derive(Debug)]
pub struct ForRun<'a> {
    /// Of the run; in its marker and its journal.
    pub id: &'a str,
    /// This program, for embedded servers.
    pub exe: &'a Path,
    /// Ends waiting and preparing.
    pub interrupt: &'a Interrupt,
    /// Who asks the storage.
    pub by: ClaimBy,
    /// Those who can do it in place of this machine; none: there is nobody.
    pub errands: Option<Box<dyn Errands>>,
}

/// Everything up to the marker. Clear words for each thing that can be missing.
pub fn claim(
    plan: &Plan,
    name: &str,
    target: &S3Target,
    run: ForRun<'_>,
    journal: &mut Journal,
    events: &mut dyn FnMut(Event),
) -> Result<BucketClaim, SetupError> {
    let ForRun { id, exe, interrupt, by, errands } = run;
    if plan.only_reads(name) {
        return look(plan, name, target, bucket::way(target, by, errands, interrupt)?, interrupt);
    }
    target.prefix.as_deref().map_or(Ok(()), objects::check_prefix)?;
    let server = start_server(plan, name, target, exe, journal)?;
    let way = match &server {
        Some(_) => Way::Here,
        None => bucket::way(target, by, errands, interrupt)?,
    };
    let (access, admin) = reached(plan, name, target, &way, server.as_ref(), interrupt)?;
    // Until the load begins, whoever ends the run waits for no answer.
    admin.give_up_when(interrupt.asked_flag().into());
    // The first request says whether the server is there and lets us in, and what it calls itself.
    let reached = admin.reach(&mut |text| events(Event::Message(text)));
    if let Way::ByErrands(errands, why) = &way {
        let by = errands.done_by().join(", ");
        events(Event::Message(format!("markers, listings and cleanup by agent {by}, {why}")));
    }
    let prefix = target.prefix.clone().unwrap_or_else(|| format!("plimsoll/{id}/"));
    let place = (name, target.bucket.as_str());
    let mut refused = None;
    let mut area = None;
    match reached {
        // It keeps nothing, whatever it answers.
        _ if admin.server().is_some_and(|s| s.starts_with(CANNED_SERVER)) => {}
        // Not wrong keys: a server that denies everything is measured as what it is.
        Err(StoreFault::Forbidden(told))
            if objects::nothing_is_allowed(&*admin, journal, place, &prefix)? =>
        {
            refused = Some(told.to_string());
        }
        // One time-out is enough.
        Err(fault) if fault.may_pass() => return Err(objects::bucket_error(&target.bucket, &fault)),
        reached => {
            others_answer((name, &access, &way), reached == Ok(true), interrupt)?;
            let mut tell = |text| events(Event::Message(text));
            let made = objects::open_area(&*admin, journal, place, &prefix, target.create_bucket, &mut tell);
            match made {
                Ok(made) => area = Some(made),
                Err(e) => {
                    // What was made until then (the bucket) goes again, if it is known to be there.
                    if !e.unsure {
                        let how = How { end: RemovalEnd::of(interrupt), ..How::default() };
                        let left = removal::bucket_things(&*admin, journal, name, &how, &mut None, events)?;
                        left.into_iter()
                            .for_each(|text| events(Event::Message(format!("left behind: {text}"))));
                    }
                    if let Some(server) = server {
                        server.stop(journal)?;
                    }
                    return Err(e.error);
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
    let name = name.to_owned();
    Ok(BucketClaim { access, area, prefix, refused, unconfirmed, name, admin, way, server })
}

/// A bucket that is only read: nothing is made there, marked or removed. Whether it is there, and lets itself be listed, shows when its
/// objects are looked for.
fn look(
    plan: &Plan,
    name: &str,
    target: &S3Target,
    way: Way,
    interrupt: &Interrupt,
) -> Result<BucketClaim, SetupError> {
    let (access, admin) = reached(plan, name, target, &way, None, interrupt)?;
    admin.give_up_when(interrupt.asked_flag().into());
    Ok(BucketClaim {
        access,
        area: None,
        prefix: String::new(),
        refused: None,
        unconfirmed: Vec::new(),
        name: name.to_owned(),
        admin,
        way,
        server: None,
    })
}

/// The target's first endpoint, by the way that leads there.
fn reached(
    plan: &Plan,
    name: &str,
    target: &S3Target,
    way: &Way,
    server: Option<&EmbeddedServer>,
    interrupt: &Interrupt,
) -> Result<(Access, Box<dyn Bucket>), SetupError> {
    match way {
        Way::Here => {
            check_descriptors(plan, 1)?;
            let (access, admin) = read(target, server.map(|s| s.ready.clone()), interrupt)?;
            Ok((access, Box::new(admin)))
        }
        Way::ByErrands(..) => {
            let access = bucket::without_keys(target)?;
            let admin = way.bucket(&access, name, 0)?;
            Ok((access, admin))
        }
    }
}

/// Each further endpoint is there, lets us in and has the bucket: a dead one would cost a time-out per connection, and
/// turn a part of all ops into failures. Before anything is made, so that nothing is left where one does not.
fn others_answer(
    (name, access, way): (&str, &Access, &Way),
    exists: bool,
    interrupt: &Interrupt,
) -> Result<(), SetupError> {
    const LEAVE_OUT: &str = "Correct or omit this endpoint: all endpoints must serve the same bucket";
    for (number, endpoint) in access.endpoints.iter().enumerate().skip(1) {
        let store = way.bucket(access, name, number)?;
        store.give_up_when(interrupt.asked_flag().into());
        let bucket = &access.target.bucket;
        match store.bucket_exists() {
            Ok(there) if there == exists => {}
            Ok(there) => {
                let has = if there { "has" } else { "lacks" };
                let text = format!("{endpoint} {has} bucket '{bucket}', unlike {}", access.endpoints[0]);
                return Err(SetupError::input(text, LEAVE_OUT));
            }
            Err(e) => return Err(SetupError::input(e.to_string(), e.remedy().unwrap_or(LEAVE_OUT))),
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
) -> Result<Option<EmbeddedServer>, SetupError> {
    let Some(word) = target.endpoints.iter().find(|e| *e == EMBEDDED || *e == CANNED) else {
        return Ok(None);
    };
    if target.endpoints.len() > 1 {
        return Err(SetupError::input(
            format!("target '{name}' combines the {word} server with other endpoints"),
            "Give it a target of its own",
        ));
    }
    if word == CANNED {
        let sizes = plan.stages.iter().flat_map(|s| &s.workloads).map(|w| w.size.max_bytes());
        return server::start_canned(exe, sizes.max().unwrap_or(4096)).map(Some);
    }
    let spec = target.embedded.clone().unwrap_or_default();
    server::start_s3(exe, &spec, &target.bucket, journal).map(Some)
}

/// A connection for each op in flight, over so many agents, and some for the rest of the program.
fn check_descriptors(plan: &Plan, agents: u64) -> Result<(), SetupError> {
    const REST: u64 = 64;
    let stages = plan.stages.iter();
    let most = stages.map(|s| s.workloads.iter().map(connections).sum::<u64>()).max().unwrap_or(0);
    let most = most.div_ceil(agents.max(1));
    let wanted = most + REST;
    let allowed = descriptors_for(wanted);
    if allowed >= wanted {
        return Ok(());
    }
    Err(SetupError::input(
        format!("{most} connections need {wanted} file descriptors, but only {allowed} are allowed"),
        format!("Raise the limit with: ulimit -n {wanted}, or lower the concurrency"),
    ))
}

fn connections(w: &Workload) -> u64 {
    let parts = w.object.as_ref().filter(|_| w.mix.contains_key(&OpKind::Multipart));
    u64::from(w.concurrency)
        * u64::from(w.jobs.unwrap_or(1))
        * parts.map_or(1, |o| u64::from(o.part_concurrency.max(1)))
}

/// A client for cleaning up: the same access, later.
pub fn admin_for(target: &S3Target, interrupt: &Interrupt) -> Result<AdminStore, SetupError> {
    read(target, None, interrupt).map(|(_, admin)| admin)
}

/// The same, by whoever reaches it: this machine, or those who run errands for it. Gives who they are, too, in words.
pub fn bucket_for(
    name: &str,
    target: &S3Target,
    by: ClaimBy,
    errands: Option<Box<dyn Errands>>,
    interrupt: &Interrupt,
) -> Result<Box<dyn Bucket>, SetupError> {
    let way = bucket::way(target, by, errands, interrupt)?;
    match &way {
        Way::Here => Ok(Box::new(admin_for(target, interrupt)?)),
        Way::ByErrands(..) => way.bucket(&bucket::without_keys(target)?, name, 0),
    }
}

/// Keys, certificates and settings, from files that may be pipes: one whose writer never comes is waited for, until whoever
/// waits has had enough.
fn read(
    target: &S3Target,
    ready: Option<ReadyLine>,
    interrupt: &Interrupt,
) -> Result<(Access, AdminStore), SetupError> {
    let target = target.clone();
    interrupt.unless_ended(move || {
        let access = access(&target, ready.as_ref())?;
        let admin = AdminStore::new(&access)?;
        Ok((access, admin))
    })
}

/// The same for an embedded server over a directory that outlives it: without its limits, for the clean-up.
pub fn embedded_admin(
    target: &S3Target,
    journal: &mut Journal,
) -> Result<(AdminStore, EmbeddedServer), SetupError> {
    let data = target.embedded.as_ref().and_then(|e| e.data.clone());
    let spec = EmbeddedSpec { data, ..EmbeddedSpec::default() };
    let exe = std::env::current_exe().unwrap_or_else(|_| "plimsoll".into());
    let server = server::start_s3(&exe, &spec, &target.bucket, journal)?;
    let store = AdminStore::new(&access(target, Some(&server.ready))?)?;
    Ok((store, server))
}

impl BucketClaim {
    /// What agents are told of it.
    pub fn reach(&self) -> Reach {
        let (access, prefix) = (self.access.clone(), self.prefix.clone());
        Reach { access, prefix, is_here: self.is_here(), is_own_server: self.server.is_some() }
    }

    /// As URLs, in the order in which they were named.
    pub fn endpoint_names(&self) -> Vec<String> {
        self.access.endpoints.iter().map(ToString::to_string).collect()
    }

    /// Where the run's objects live, or would.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The storage runs on this machine.
    pub fn is_here(&self) -> bool {
        self.server.is_some()
            || self.access.endpoints.iter().all(|e| {
                matches!(e.host.as_str(), "localhost" | "::1" | "[::1]") || e.host.starts_with("127.")
            })
    }

    /// For cleaning up, and for what is prepared.
    pub fn store(&self) -> &dyn ObjectStore {
        &*self.admin
    }

    /// Who asked the storage in place of this machine, by name, and why; none: this machine did.
    pub fn by_errands(&self) -> Option<(Vec<String>, &str)> {
        match &self.way {
            Way::Here => None,
            Way::ByErrands(errands, why) => Some((errands.done_by(), why)),
        }
    }

    /// Objects that are there already: those of each endpoint have to be the same, so that the first one's listing is taken, and the
    /// others are asked whether they are there and let us in.
    pub fn find_existing(&self, wanted: &WantedObjects) -> Result<FoundObjects, SetupError> {
        let bucket = &self.access.target.bucket;
        let failed = |e: StoreFault| objects::listing_error(bucket, &wanted.prefix, &e);
        for number in 1..self.access.endpoints.len() {
            let other = self.way.bucket(&self.access, &self.name, number)?;
            other.list_objects(&wanted.prefix, None).map_err(failed)?;
        }
        let found = objects::find_existing(wanted, |from| self.admin.list_objects(&wanted.prefix, from))
            .map_err(failed)?;
        if found.count() == 0 {
            return Err(objects::none_found(wanted, bucket, &found));
        }
        Ok(found)
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

    /// For the workers, who have connections of their own.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// `Server` header, as far as it was seen.
    pub fn server_header(&self) -> Option<String> {
        self.admin.server()
    }

    /// Where the servers are that were started for this run; `None`: there are none.
    pub fn own_servers(&self) -> Option<Vec<Endpoint>> {
        self.server.as_ref().map(|_| self.access.endpoints.clone())
    }

    /// The data of the embedded server is in a temporary directory that goes with it.
    pub fn is_thrown_away(&self) -> bool {
        let named = self.access.target.embedded.as_ref().is_some_and(|e| e.data.is_some());
        self.server.is_some() && !named
    }

    /// Name of the target in the plan.
    pub fn target_name(&self) -> &str {
        &self.name
    }

    /// Ends the embedded server, if this target has one. Gives what of its data stays because the removal was stopped.
    pub fn stop_server(
        &mut self,
        journal: &mut Journal,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Option<String>, SetupError> {
        self.server.take().map_or(Ok(None), |s| s.stop_watched(journal, go_on))
    }
}
