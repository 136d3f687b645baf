//! An S3 target as the engine is told of it: names and contents of objects, settings of the client.

use std::cell::RefCell;
use std::sync::Arc;

use plimsoll_engine::target::s3::config::{ClientOptions, Config, Setup};
use plimsoll_engine::target::s3::content::{Layout, ObjectContent};
use plimsoll_engine::target::s3::keys::KeyNames;
use plimsoll_model::OpKind;
use plimsoll_model::plan::{DataSpec, PayloadSigning, Plan, SizeDist, Workload};
use plimsoll_setup::objects::{FoundObjects, dataset_prefix};
use plimsoll_setup::s3::Reach;

use crate::error::CrewError;

/// A bucket that is reached, and the contents of what is put there.
#[derive(Debug)]
pub struct S3Ready {
    pub reach: Reach,
    content: RefCell<Vec<(ContentKey, Arc<ObjectContent>)>>,
}

#[derive(Debug, Clone, PartialEq)]
struct ContentKey {
    seed: u64,
    data: DataSpec,
    layout: Layout,
    sizes: Vec<u64>,
}

impl S3Ready {
    pub fn new(reach: Reach) -> Self {
        Self { reach, content: RefCell::default() }
    }

    /// The engine's settings for one workload, whose new objects are numbered from `fresh_first` on.
    ///
    /// `found`: the objects that it reads, where they were there already.
    pub fn config(
        &self,
        plan: &Plan,
        w: &Workload,
        fresh_first: u64,
        found: Option<&FoundObjects>,
    ) -> Result<Arc<Config>, CrewError> {
        let object = w.object.clone().unwrap_or_default();
        let multipart = w.mix.get(&OpKind::Multipart).is_some_and(|n| *n > 0);
        let options = ClientOptions {
            part_bytes: object.part_size.0.max(1),
            part_concurrency: object.part_concurrency.max(1),
            multipart,
            max_multipart_bytes: if multipart { w.size.max_bytes() } else { 0 },
            list_max_keys: object.list_max_keys,
            list_delimiter: object.list_delimiter.clone(),
            delete_batch: object.delete_batch.max(1),
            // Half of the workload's range of numbers, so that puts and copies never meet.
            copy_first: fresh_first + (1 << 39),
        };
        let setup = Setup {
            endpoints: self.reach.access.endpoints.clone(),
            redirects: self.reach.access.redirects.clone(),
            keys_in_use: self.reach.access.keys.clone(),
            region: self.reach.access.region.clone(),
            target: self.reach.access.target.clone(),
            keys: key_names(&self.reach.prefix, w, found),
            content: self.content(plan, w, &options),
            object: options,
        };
        Config::new(setup).map(Arc::new).map_err(|e| CrewError::input(e, "Correct the plan's target"))
    }

    /// Contents are megabytes: one for all workloads that look alike.
    fn content(&self, plan: &Plan, w: &Workload, options: &ClientOptions) -> Arc<ObjectContent> {
        let layout = match self.reach.access.target.signing {
            PayloadSigning::Pool => Layout::Pool,
            PayloadSigning::Unsigned | PayloadSigning::Full => Layout::Stamped,
        };
        let sizes = if layout == Layout::Pool { body_sizes(w, options) } else { Vec::new() };
        let key = ContentKey { seed: plimsoll_lower::data_seed(plan.seed, w), data: w.data, layout, sizes };
        let mut made = self.content.borrow_mut();
        if let Some((_, content)) = made.iter().find(|(k, _)| *k == key) {
            return Arc::clone(content);
        }
        let content = Arc::new(ObjectContent::new(key.seed, key.data, layout, &key.sizes));
        made.push((key, Arc::clone(&content)));
        content
    }
}

/// Names of a workload's objects under the run's prefix: cells of one size share theirs, and so their data set; a named data set
/// has one that outlives the run. Objects that were there already have the names that they have.
pub fn key_names(prefix: &str, w: &Workload, found: Option<&FoundObjects>) -> KeyNames {
    if let (Some(existing), Some(found)) = (w.existing(), found) {
        let keys = Some(Arc::clone(&found.keys));
        return KeyNames { prefix: existing.prefix.clone(), prefixes: 1, dataset: None, existing: keys };
    }
    let object = w.object.as_ref();
    KeyNames {
        prefix: format!("{prefix}{}/", size_word(&w.size)),
        prefixes: object.map_or(1, |o| o.prefixes.max(1)),
        dataset: object.and_then(|o| o.dataset.as_ref()).map(|name| dataset_prefix(name, &w.size)),
        existing: None,
    }
}

/// Lengths of bodies whose hash is known before the run: fixed sizes, and the parts of multipart objects.
fn body_sizes(w: &Workload, options: &ClientOptions) -> Vec<u64> {
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
