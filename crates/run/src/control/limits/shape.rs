//! The template of a probe in the sizes and numbers that a probe needs.

use std::time::Duration;

use plimsoll_model::plan::{ObjectOptions, SizeDist, Stage, TargetSpec, Workload};
use plimsoll_model::units::{Size, Span};
use plimsoll_model::{OpKind, Plan};

use crate::error::RunError;

/// Sizes from here on are those of large ops.
const LARGE: u64 = 256 << 10;
/// A client's large I/O on a block device: the kernel splits larger ones, and a limiter counts the pieces.
const LARGE_BLOCK: u64 = 512 << 10;
const LARGE_OBJECT: u64 = 8 << 20;
/// Where a ladder of concurrencies begins when nothing is asked for, and where it ends: for small and for large ops.
const FIRST_RUNG: u32 = 16;
const LAST_RUNG: [u32; 2] = [256, 64];
/// Objects that are prepared to be read: a limiter does not mind a cache, and preparing takes its tokens.
const MOST_OBJECTS: u64 = 64;
const MOST_BYTES: u64 = 64 << 20;

pub fn seconds(s: f64) -> Span {
    Span(Duration::from_secs_f64(s.max(0.0)))
}

#[derive(Debug, Clone)]
pub struct Shape {
    template: Stage,
    pub small_bytes: u64,
    pub large_bytes: u64,
    /// The size that the user asked about.
    pub asked_bytes: u64,
    pub concurrency: u32,
    pub most: [u32; 2],
    pub moves_bytes: bool,
    /// Whether some of the ops send a body.
    pub uploads: bool,
    pub is_block: bool,
    pub is_s3: bool,
}

impl Shape {
    pub fn of(plan: &Plan, template: Stage) -> Result<Self, RunError> {
        let Some(w) = template.workloads.first() else {
            return Err(RunError::input("the template of the probe has no workload", "Add one"));
        };
        let (_, target) = plan.target_of(w)?;
        let is_block = matches!(target, TargetSpec::Block(_) | TargetSpec::Files(_));
        let asked_bytes = match &w.size {
            SizeDist::Fixed(s) => s.0,
            other => crate::lower::size_spec(other, 1).max_bytes(),
        };
        let smallest = if is_block { 4096 } else { 1024 };
        let asked = w.concurrency * w.jobs.unwrap_or(1);
        let kinds = || w.mix.iter().filter(|(_, n)| **n > 0).map(|(k, _)| *k);
        Ok(Self {
            small_bytes: if asked_bytes < LARGE { asked_bytes.max(1) } else { smallest },
            large_bytes: match asked_bytes {
                s if s >= LARGE => s,
                _ if is_block => LARGE_BLOCK,
                _ => LARGE_OBJECT,
            },
            asked_bytes,
            // The default of a plan is 1, with which nothing is saturated.
            concurrency: if asked > 1 { asked } else { FIRST_RUNG },
            most: LAST_RUNG,
            moves_bytes: kinds().any(OpKind::moves_bytes),
            uploads: kinds()
                .any(|k| k.moves_bytes() && !matches!(k, OpKind::Get | OpKind::GetRange | OpKind::Copy)),
            is_block,
            is_s3: matches!(target, TargetSpec::S3(_)),
            template,
        })
    }

    pub fn workload(&self) -> &Workload {
        &self.template.workloads[0]
    }

    /// Load of one size with so many ops in flight; its length is the caller's.
    pub fn stage(&self, size_bytes: u64, concurrency: u32) -> Stage {
        let mut stage = self.template.clone();
        for w in &mut stage.workloads {
            w.size = SizeDist::Fixed(Size(size_bytes));
            w.concurrency = (concurrency / w.jobs.unwrap_or(1).max(1)).max(1);
            let named = w.object.as_ref().is_some_and(|o| o.dataset.is_some());
            if self.is_s3 && !named {
                let objects = w.object.get_or_insert_with(ObjectOptions::default);
                objects.objects =
                    objects.objects.min(MOST_OBJECTS).min((MOST_BYTES / size_bytes.max(1)).max(8));
            }
        }
        stage
    }
}
