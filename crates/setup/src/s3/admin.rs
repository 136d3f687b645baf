//! The engine's blocking client as an object store: what is asked of a bucket beside the load.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_engine::admin::{
    Admin, AdminError, AdminSetup, DeleteItem, GiveUp, KeepsVersions, Kept, Trouble,
};
use plimsoll_model::Outcome;
use plimsoll_model::plan::{Addressing, S3Target};
use plimsoll_model::text::clean;
use plimsoll_s3::Endpoint;
use plimsoll_s3::classify::classify_code;
use plimsoll_s3::xml::{ListPage, ListedVersion};

use super::access::Access;
use super::asked;
use super::bucket::Bucket;
use super::held::HeldKeys;
use crate::error::SetupError;
use crate::objects::{
    self, Held, Item, ItemPage, KeyPage, ObjectStore, StoreFault, Told, Upload, Versioning,
};

/// The engine's blocking client as an [`ObjectStore`], the headers that uploads carry beside those of S3 itself, and the keys, which are
/// renewed for as long as somebody has them.
#[derive(Debug)]
pub struct AdminStore(
    RefCell<Admin>,
    Option<String>,
    #[expect(dead_code, reason = "held")] Option<Arc<HeldKeys>>,
);

impl AdminStore {
    /// At the first endpoint. An error where none is named, or TLS cannot be set up.
    pub fn new(access: &Access) -> Result<Self, SetupError> {
        let endpoint = access
            .endpoints
            .first()
            .ok_or_else(|| SetupError::input("no endpoint is given", "Give one with --endpoint"))?;
        Self::of(access, endpoint)
    }

    /// At this endpoint: each has a clock, and perhaps a listing, of its own.
    pub fn of(access: &Access, endpoint: &Endpoint) -> Result<Self, SetupError> {
        let setup = AdminSetup {
            endpoint: endpoint.clone(),
            keys: access.keys.clone(),
            region: access.region.clone(),
            bucket: access.target.bucket.clone(),
            virtual_host: access.target.addressing == Addressing::VirtualHost,
            tls: access.target.tls.clone(),
            put_headers: access.target.put_headers.clone().into_iter().collect(),
            timeout: access.target.timeout.0.min(Duration::from_secs(30)),
        };
        let admin =
            Admin::new(setup).map_err(|e| SetupError::input(e.message, "Correct the plan's target"))?;
        Ok(Self(RefCell::new(admin), asked::named(&access.target), access.held.clone()))
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

impl Bucket for AdminStore {
    fn server(&self) -> Option<String> {
        self.0.borrow().server().map(|s| clean(s).into_owned())
    }

    fn reach(&self, tell: &mut dyn FnMut(String)) -> Result<bool, StoreFault> {
        self.0.borrow_mut().reach(tell).map_err(|e| match e.trouble {
            // A listing cannot lack an object: this is no S3 server, or not at its root.
            Trouble::NotFound => StoreFault::Other(Told {
                what: e.message,
                remedy: "Check the endpoint: what answers there is not an S3 server".into(),
            }),
            _ => fault(e),
        })
    }

    fn list_objects(&self, prefix: &str, from: Option<&str>) -> Result<ListPage, StoreFault> {
        self.0.borrow_mut().list_page(prefix, from).map_err(fault)
    }

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

impl AdminStore {
    /// Whether an object that a listing shows may be read, too (a HEAD). An object that is gone says nothing against it.
    pub fn may_read(&self, key: &str) -> Result<(), StoreFault> {
        match self.0.borrow_mut().stored(key).map_err(fault) {
            Err(e @ (StoreFault::Denied(_) | StoreFault::Forbidden(_) | StoreFault::Away(_))) => Err(e),
            _ => Ok(()),
        }
    }
}

impl ObjectStore for AdminStore {
    fn shows_versions(&self) -> bool {
        self.0.borrow().shows_versions()
    }
    fn give_up_when(&self, end: GiveUp) {
        self.0.borrow_mut().give_up_when(end);
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
            format!("Correct or omit the upload options ({names}), or use a server that supports them")
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
    fn list(&self, prefix: &str, from: Option<&str>, most: u32) -> Result<KeyPage, StoreFault> {
        let page = self.0.borrow_mut().list_page(prefix, from).map_err(fault)?;
        let keys = page.objects.into_iter().map(|o| o.key).take(most as usize).collect();
        Ok(KeyPage { keys, next: page.next_token.filter(|_| page.truncated) })
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
