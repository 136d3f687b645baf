//! Agents ask the storage in place of a conductor that does not reach it: one at a time, and another one where that is lost, refuses, or
//! does not reach it either.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_crew::CrewError;
use plimsoll_engine::admin::GiveUp;
use plimsoll_model::plan::S3Target;
use plimsoll_model::text::clean;
use plimsoll_setup::objects::{
    Held, Item, ItemPage, KeyPage, ObjectStore, STOPPED, StoreFault, Told, Upload, Versioning,
};
use plimsoll_setup::s3::{Bucket, Errands, ListPage, ReachTold};
use plimsoll_setup::{Interrupt, SetupError};

use super::ask::{Barrier, Came};
use super::link::Link;
use crate::error::AgentRefusal;
use crate::wire::errand::{BucketCall, BucketReply, Errand, ErrandDone};
use crate::wire::order::Assignment;
use crate::wire::tell::WorkDone;

/// What is said where an answer is not of its question.
const ODD: &str = "it answers another question than it was asked";

/// The agents of a link, for one run.
#[derive(Debug)]
pub struct FleetErrands {
    link: Arc<Link>,
    mark: String,
    asked: Arc<Asked>,
}

/// Who is asked, and who was.
#[derive(Debug, Default)]
struct Asked {
    now: AtomicUsize,
    did: Mutex<BTreeSet<usize>>,
}

impl FleetErrands {
    /// `mark`: of the run.
    pub fn new(link: &Arc<Link>, mark: &str) -> Self {
        Self { link: Arc::clone(link), mark: mark.to_owned(), asked: Arc::default() }
    }
}

impl Errands for FleetErrands {
    fn bucket(&self, target: &str, endpoints: &[String], region: &str, endpoint: usize) -> Box<dyn Bucket> {
        let (endpoints, region) = (endpoints.to_vec(), region.to_owned());
        Box::new(BucketFarOff {
            link: Arc::clone(&self.link),
            asked: Arc::clone(&self.asked),
            target: target.to_owned(),
            told: ReachTold {
                endpoints,
                region,
                prefix: String::new(),
                is_here: false,
                made_keys: None,
                made_ca_file: None,
            },
            endpoint,
            mark: self.mark.clone(),
            seen: RefCell::default(),
        })
    }

    fn done_by(&self) -> Vec<String> {
        let inside = self.link.lock();
        let did = self.asked.did.lock().unwrap_or_else(PoisonError::into_inner);
        did.iter().map(|n| inside.agents[*n].name.clone()).collect()
    }
}

/// A bucket that an agent asks for us.
#[derive(Debug)]
struct BucketFarOff {
    link: Arc<Link>,
    asked: Arc<Asked>,
    target: String,
    told: ReachTold,
    endpoint: usize,
    mark: String,
    seen: RefCell<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    server: Option<String>,
    versions: bool,
    give_up: GiveUp,
}

impl BucketFarOff {
    /// Of those who are there the one that was asked last; the next where that one cannot. The first one's reason is told where nobody can.
    fn ask(&self, call: BucketCall) -> Result<BucketReply, StoreFault> {
        let (told, endpoint) = (self.told.clone(), self.endpoint);
        let errand = Errand { target: self.target.clone(), told, endpoint, mark: self.mark.clone(), call };
        // Before anything was made any of them will do, and one that does not reach the storage is no use.
        let is_first = matches!(errand.call, BucketCall::Reach);
        let agents = self.link.lock().agents.len();
        let mut why: Option<StoreFault> = None;
        for _ in 0..agents {
            let number = self.asked.now.load(Ordering::Relaxed) % agents;
            match self.ask_one(number, &errand)? {
                Ok(done) => {
                    self.note(number, &done);
                    let away = matches!(done.result, Err(StoreFault::Away(_)));
                    let result = done.result.map_err(|fault| self.of_agent(number, fault));
                    if !away {
                        return result;
                    }
                    self.next();
                    if !is_first {
                        // Whoever waits patiently asks again, and then another one.
                        return result;
                    }
                    why = why.or(result.err());
                }
                Err(fault) => {
                    self.next();
                    why = why.or(Some(fault));
                }
            }
        }
        Err(why.unwrap_or_else(|| StoreFault::Other("no agent is left to ask the storage".to_owned().into())))
    }

    /// What one agent says; an inner error: why it cannot be asked. Outer: nobody waits any more.
    fn ask_one(&self, number: usize, errand: &Errand) -> Result<Result<ErrandDone, StoreFault>, StoreFault> {
        let job = Assignment::Errand(Box::new(errand.clone()));
        let (mut quiet, nobody) = (|_| {}, Interrupt::default());
        let give_up = self.seen.borrow().give_up.clone();
        let barrier = Barrier::new("asking the storage", &nobody, &mut quiet);
        let came = self.link.ask(vec![(number, job)], Barrier { give_up, interrupt: None, ..barrier });
        let came = match came {
            Ok(mut came) => came.remove(&number),
            Err(CrewError::Setup(SetupError::Interrupted)) => {
                return Err(StoreFault::Other(STOPPED.to_owned().into()));
            }
            Err(e) => return Err(StoreFault::Other(e.to_string().into())),
        };
        let other = |what: &str, remedy: &str| {
            let told = Told { what: what.to_owned(), remedy: remedy.to_owned() };
            Ok(Err(self.of_agent(number, StoreFault::Other(told))))
        };
        match came {
            Some(Came::Answer(Ok(WorkDone::Errand(done)))) => Ok(Ok(*done)),
            Some(Came::Answer(Err(AgentRefusal { problem, remedy, .. }))) => other(&problem, &remedy),
            Some(Came::Lost(why)) => other(&format!("it is lost: {why}"), "Look whether it still runs"),
            Some(Came::Answer(Ok(_))) | None => other(ODD, "Use the same version"),
        }
    }

    fn next(&self) {
        self.asked.now.fetch_add(1, Ordering::Relaxed);
    }

    fn note(&self, number: usize, done: &ErrandDone) {
        self.asked.did.lock().unwrap_or_else(PoisonError::into_inner).insert(number);
        let mut seen = self.seen.borrow_mut();
        seen.versions |= done.shows_versions;
        if let Some(server) = &done.server {
            seen.server = Some(clean(server).into_owned());
        }
    }

    /// What it says is outside text, and of that agent.
    fn of_agent(&self, number: usize, fault: StoreFault) -> StoreFault {
        let name = self.link.lock().agents[number].name.clone();
        let told = |t: Told| Told {
            what: format!("agent {name}: {}", clean(&t.what)),
            remedy: clean(&t.remedy).into_owned(),
        };
        match fault {
            StoreFault::Denied(t) => StoreFault::Denied(told(t)),
            StoreFault::Forbidden(t) => StoreFault::Forbidden(told(t)),
            StoreFault::Away(t) => StoreFault::Away(told(t)),
            StoreFault::Other(t) => StoreFault::Other(told(t)),
            plain @ (StoreFault::NoSuchBucket
            | StoreFault::NoSuchKey
            | StoreFault::Unsupported
            | StoreFault::NotEmpty) => plain,
        }
    }
}

fn odd<T>() -> Result<T, StoreFault> {
    Err(StoreFault::Other(ODD.to_owned().into()))
}

/// A call and the reply that is of it.
macro_rules! asked {
    ($self:expr, $call:expr, $reply:pat => $value:expr) => {
        match $self.ask($call)? {
            $reply => Ok($value),
            _ => odd(),
        }
    };
}

impl ObjectStore for BucketFarOff {
    fn bucket_exists(&self) -> Result<bool, StoreFault> {
        asked!(self, BucketCall::BucketExists, BucketReply::Truth(there) => there)
    }
    fn create_bucket(&self) -> Result<(), StoreFault> {
        asked!(self, BucketCall::CreateBucket, BucketReply::Nothing => ())
    }
    fn delete_bucket(&self) -> Result<(), StoreFault> {
        asked!(self, BucketCall::DeleteBucket, BucketReply::Nothing => ())
    }
    fn put(&self, key: &str, body: &[u8]) -> Result<(), StoreFault> {
        let call = BucketCall::Put { key: key.to_owned(), body: body.to_vec() };
        asked!(self, call, BucketReply::Nothing => ())
    }
    fn put_new(&self, key: &str, body: &[u8]) -> Result<bool, StoreFault> {
        let call = BucketCall::PutNew { key: key.to_owned(), body: body.to_vec() };
        asked!(self, call, BucketReply::Truth(made) => made)
    }
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreFault> {
        asked!(self, BucketCall::Get { key: key.to_owned() }, BucketReply::Body(body) => body)
    }
    fn list(&self, prefix: &str, from: Option<&str>, most: u32) -> Result<KeyPage, StoreFault> {
        let (prefix, from) = (prefix.to_owned(), from.map(str::to_owned));
        asked!(self, BucketCall::List { prefix, from, most }, BucketReply::Keys(page) => page)
    }
    fn versioning(&self) -> Result<Versioning, StoreFault> {
        asked!(self, BucketCall::Versioning, BucketReply::Versioning(v) => v)
    }
    fn versions(&self, prefix: &str, from: Option<&(String, String)>) -> Result<ItemPage, StoreFault> {
        let (prefix, from) = (prefix.to_owned(), from.cloned());
        asked!(self, BucketCall::Versions { prefix, from }, BucketReply::Items(page) => page)
    }
    fn shows_versions(&self) -> bool {
        self.seen.borrow().versions
    }
    fn get_version(&self, key: &str, version: &str) -> Result<Option<Vec<u8>>, StoreFault> {
        let call = BucketCall::GetVersion { key: key.to_owned(), version: version.to_owned() };
        asked!(self, call, BucketReply::Body(body) => body)
    }
    fn delete(&self, items: &[Item]) -> Result<Vec<Held>, StoreFault> {
        asked!(self, BucketCall::Delete { items: items.to_vec() }, BucketReply::Held(held) => held)
    }
    fn give_up_when(&self, end: GiveUp) {
        self.seen.borrow_mut().give_up = end;
    }
    fn uploads(&self, prefix: &str) -> Result<Vec<Upload>, StoreFault> {
        let prefix = prefix.to_owned();
        asked!(self, BucketCall::Uploads { prefix }, BucketReply::Uploads(all) => all)
    }
    fn abort_upload(&self, upload: &Upload) -> Result<(), StoreFault> {
        asked!(self, BucketCall::AbortUpload { upload: upload.clone() }, BucketReply::Nothing => ())
    }
}

impl Bucket for BucketFarOff {
    fn server(&self) -> Option<String> {
        self.seen.borrow().server.clone()
    }
    fn reach(&self, tell: &mut dyn FnMut(String)) -> Result<bool, StoreFault> {
        let BucketReply::Reached { exists, said } = self.ask(BucketCall::Reach)? else { return odd() };
        said.iter().for_each(|text| tell(clean(text).into_owned()));
        Ok(exists)
    }
    fn list_objects(&self, prefix: &str, from: Option<&str>) -> Result<ListPage, StoreFault> {
        let (prefix, from) = (prefix.to_owned(), from.map(str::to_owned));
        asked!(self, BucketCall::ListObjects { prefix, from }, BucketReply::Objects(page) => page.into())
    }
    fn unconfirmed(&self, _: &S3Target, prefix: &str) -> Vec<String> {
        match self.ask(BucketCall::Unconfirmed { prefix: prefix.to_owned() }) {
            Ok(BucketReply::Sentences(all)) => all.iter().map(|text| clean(text).into_owned()).collect(),
            Ok(_) => vec![ODD.into()],
            Err(e) => vec![format!("What was stored could not be asked: {e}.")],
        }
    }
}
