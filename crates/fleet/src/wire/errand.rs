//! What an agent is asked to do in a bucket, where its conductor does not reach that: the calls of a bucket, one by one. Whoever
//! conducts keeps the journal; what may be done is held to the run's mark by the agent itself ([`plimsoll_setup::objects::Guarded`]).

use plimsoll_model::plan::S3Target;
use plimsoll_setup::objects::{
    Guarded, Held, Item, ItemPage, KeyPage, ObjectStore, StoreFault, Upload, Versioning,
};
use plimsoll_setup::s3::{AdminStore, Bucket, ListPage, ListedObject, ReachTold};
use serde::{Deserialize, Serialize};

/// One call, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errand {
    /// Name of the target in the plan.
    pub target: String,
    /// How it is reached.
    pub told: ReachTold,
    /// Which of its endpoints.
    pub endpoint: usize,
    /// Of the run, which is in its markers.
    pub mark: String,
    /// What is asked.
    pub call: BucketCall,
}

/// The calls of [`ObjectStore`] and [`Bucket`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is the method of its name")]
pub enum BucketCall {
    Reach,
    BucketExists,
    CreateBucket,
    DeleteBucket,
    Put { key: String, body: Vec<u8> },
    PutNew { key: String, body: Vec<u8> },
    Get { key: String },
    GetVersion { key: String, version: String },
    List { prefix: String, from: Option<String>, most: u32 },
    ListObjects { prefix: String, from: Option<String> },
    Versioning,
    Versions { prefix: String, from: Option<(String, String)> },
    Delete { items: Vec<Item> },
    Uploads { prefix: String },
    AbortUpload { upload: Upload },
    Unconfirmed { prefix: String },
}

/// What a bucket answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is what the method of its call gives")]
pub enum BucketReply {
    Nothing,
    Truth(bool),
    Reached { exists: bool, said: Vec<String> },
    Body(Option<Vec<u8>>),
    Keys(KeyPage),
    Objects(ObjectsTold),
    Versioning(Versioning),
    Items(ItemPage),
    Held(Vec<Held>),
    Uploads(Vec<Upload>),
    Sentences(Vec<String>),
}

/// What came of it, and what is known of the server since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrandDone {
    /// Of the call.
    pub result: Result<BucketReply, StoreFault>,
    /// `Server` header.
    pub server: Option<String>,
    /// An answer showed that the bucket keeps versions.
    pub shows_versions: bool,
}

/// A page of a listing: key, size in bytes, storage class; and where the next one begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectsTold {
    objects: Vec<(String, u64, String)>,
    next: Option<String>,
}

impl From<ListPage> for ObjectsTold {
    fn from(page: ListPage) -> Self {
        let one = |o: ListedObject| (o.key, o.size_bytes, o.storage_class);
        let objects = page.objects.into_iter().map(one).collect();
        Self { objects, next: page.next_token.filter(|_| page.truncated) }
    }
}

impl From<ObjectsTold> for ListPage {
    fn from(told: ObjectsTold) -> Self {
        let one = |(key, size_bytes, storage_class)| ListedObject {
            key,
            size_bytes,
            storage_class,
            ..ListedObject::default()
        };
        let objects = told.objects.into_iter().map(one).collect();
        Self { objects, truncated: told.next.is_some(), next_token: told.next, ..Self::default() }
    }
}

impl Errand {
    /// Runs it.
    pub fn run(&self, bucket: &Guarded<AdminStore>, target: &S3Target) -> ErrandDone {
        let result = self.call.on(bucket, target);
        ErrandDone { result, server: bucket.inner().server(), shows_versions: bucket.shows_versions() }
    }
}

impl BucketCall {
    fn on(&self, bucket: &Guarded<AdminStore>, target: &S3Target) -> Result<BucketReply, StoreFault> {
        Ok(match self {
            Self::Reach => {
                let mut said = Vec::new();
                let exists = bucket.inner().reach(&mut |text| said.push(text))?;
                BucketReply::Reached { exists, said }
            }
            Self::BucketExists => BucketReply::Truth(bucket.bucket_exists()?),
            Self::CreateBucket => bucket.create_bucket().map(|()| BucketReply::Nothing)?,
            Self::DeleteBucket => bucket.delete_bucket().map(|()| BucketReply::Nothing)?,
            Self::Put { key, body } => bucket.put(key, body).map(|()| BucketReply::Nothing)?,
            Self::PutNew { key, body } => BucketReply::Truth(bucket.put_new(key, body)?),
            Self::Get { key } => BucketReply::Body(bucket.get(key)?),
            Self::GetVersion { key, version } => BucketReply::Body(bucket.get_version(key, version)?),
            Self::List { prefix, from, most } => {
                BucketReply::Keys(bucket.list(prefix, from.as_deref(), *most)?)
            }
            Self::ListObjects { prefix, from } => {
                BucketReply::Objects(bucket.inner().list_objects(prefix, from.as_deref())?.into())
            }
            Self::Versioning => BucketReply::Versioning(bucket.versioning()?),
            Self::Versions { prefix, from } => BucketReply::Items(bucket.versions(prefix, from.as_ref())?),
            Self::Delete { items } => BucketReply::Held(bucket.delete(items)?),
            Self::Uploads { prefix } => BucketReply::Uploads(bucket.uploads(prefix)?),
            Self::AbortUpload { upload } => bucket.abort_upload(upload).map(|()| BucketReply::Nothing)?,
            Self::Unconfirmed { prefix } => {
                BucketReply::Sentences(bucket.inner().unconfirmed(target, prefix))
            }
        })
    }
}
