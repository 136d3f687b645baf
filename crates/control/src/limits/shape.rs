//! The template of a probe in the sizes and numbers that a probe needs.

use std::time::Duration;

use plimsoll_model::plan::{ObjectOptions, SizeDist, Stage, TargetSpec, Workload};
use plimsoll_model::units::{Size, Span, format_size};
use plimsoll_model::{OpKind, Plan};

use crate::error::ControlError;

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

/// Smallest and largest size that a distribution names.
fn ends(size: &SizeDist) -> (u64, u64) {
    match size {
        SizeDist::Fixed(s) => (s.0, s.0),
        SizeDist::Uniform { min, max } => (min.0, max.0),
        SizeDist::Weighted(list) => {
            let of = |f: fn(u64, u64) -> u64| list.iter().map(|(s, _)| s.0).reduce(f).unwrap_or(1);
            (of(u64::min), of(u64::max))
        }
        SizeDist::LogNormal { median, max, .. } => (median.0, max.0),
    }
}

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
    /// Whether the user named the size of small and of large ops: what is named is what is probed.
    pub named: [bool; 2],
    pub concurrency: u32,
    pub most: [u32; 2],
    pub moves_bytes: bool,
    /// Whether some of the ops send a body.
    pub uploads: bool,
    pub is_block: bool,
    pub is_s3: bool,
}

impl Shape {
    pub fn of(plan: &Plan, template: Stage) -> Result<Self, ControlError> {
        let Some(w) = template.workloads.first() else {
            return Err(ControlError::input("the template of the probe has no workload", "Add one"));
        };
        let (_, target) = plan.target_of(w)?;
        let is_block = target.is_on_files();
        let (least, asked_bytes) = ends(&w.size);
        let smallest = if is_block { 4096 } else { 1024 };
        let asked = w.in_flight();
        // One size is that of small ops or of large ones; two (4KiB..1MiB) are both.
        let named = [least < asked_bytes || asked_bytes < LARGE, least < asked_bytes || asked_bytes >= LARGE];
        let kinds = || w.mix.iter().filter(|(_, n)| **n > 0).map(|(k, _)| *k);
        Ok(Self {
            small_bytes: if named[0] { least.max(1) } else { smallest },
            large_bytes: match asked_bytes {
                s if named[1] => s,
                _ if is_block => LARGE_BLOCK,
                _ => LARGE_OBJECT,
            },
            asked_bytes,
            named,
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

    /// With which sizes the probe works, and whose choice they are. `large_bytes`: of large ops, once its pilot has chosen it.
    pub fn sizes(&self, large_bytes: Option<u64>) -> String {
        let whose = |i: usize| if self.named[i] { "" } else { " (the probe's choice)" };
        let at_most = if self.named[1] || large_bytes.is_some() { "" } else { "at most " };
        format!(
            "small ops of {}{}, large ops of {at_most}{}{}",
            format_size(self.small_bytes),
            whose(0),
            format_size(large_bytes.unwrap_or(self.large_bytes)),
            whose(1),
        )
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

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(size: &str) -> Shape {
        let text = format!(
            "version = 1\n[targets.s]\nkind = \"sim\"\n[[stage]]\n[[stage.workload]]\nname = \"w\"\nmix = {{ put = 1 }}\nsize = {size}\n"
        );
        let plan = Plan::from_toml(&text).unwrap();
        let stage = plan.stages[0].clone();
        Shape::of(&plan, stage).unwrap()
    }

    #[test]
    fn sizes_that_are_named_are_those_that_are_probed() {
        let sizes = |s: &str| {
            let s = shape(s);
            (s.small_bytes, s.large_bytes, s.named)
        };
        assert_eq!(sizes("\"4KiB\""), (4096, LARGE_OBJECT, [true, false]));
        assert_eq!(sizes("\"1MiB\""), (1024, 1 << 20, [false, true]));
        assert_eq!(sizes("\"200KiB\""), (200 << 10, LARGE_OBJECT, [true, false]));
        assert_eq!(
            sizes("{ uniform = { min = \"16KiB\", max = \"64KiB\" } }"),
            (16 << 10, 64 << 10, [true, true])
        );
        let one = shape("\"4KiB\"");
        assert_eq!(one.sizes(None), "small ops of 4KiB, large ops of at most 8MiB (the probe's choice)");
        assert_eq!(one.sizes(Some(5 << 20)), "small ops of 4KiB, large ops of 5MiB (the probe's choice)");
        assert_eq!(
            shape("\"1MiB\"").sizes(Some(1 << 20)),
            "small ops of 1KiB (the probe's choice), large ops of 1MiB"
        );
    }
}
