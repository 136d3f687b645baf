//! What is there already and only read: objects found by listing, and files or devices that others use; and what a run brings itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::MAX_EXISTING;
use super::check::invalid;
use super::{BlockTarget, ControllerSpec, EMBEDDED_VOLUME, Plan, PlanError, Stage, TargetSpec, Workload};
use crate::OpKind;

/// Objects that are there already: found by listing before a stage begins, and left as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExistingObjects {
    /// Keys begin with it; empty: those of the whole bucket.
    pub prefix: String,
}

/// Servers that a run starts for itself: nothing is there already.
const STARTED: [&str; 2] = ["embedded", "canned"];

impl Workload {
    /// The objects that it reads, where they are there already.
    pub fn existing(&self) -> Option<&ExistingObjects> {
        self.object.as_ref().and_then(|o| o.existing.as_ref())
    }
}

impl Plan {
    /// Whether no workload of this target makes or changes anything there.
    pub fn only_reads(&self, target: &str) -> bool {
        let mut of_target =
            self.workloads().filter(|w| self.target_of(w).is_ok_and(|(name, _)| name == target)).peekable();
        of_target.peek().is_some() && of_target.all(|w| w.existing().is_some())
    }

    /// Of all stages, and of a controller's template.
    fn workloads(&self) -> impl Iterator<Item = &Workload> {
        let template: Option<&Stage> = self.controller.as_ref().map(|c| match c {
            ControllerSpec::Sweep { template, .. }
            | ControllerSpec::Saturation { template, .. }
            | ControllerSpec::Limits { template, .. }
            | ControllerSpec::Watch { template, .. } => &**template,
        });
        self.stages.iter().chain(template).flat_map(|s| &s.workloads)
    }

    /// Who only reads what is there does nothing else, and asks for nothing that would have to be made.
    pub(super) fn check_existing(&self) -> Result<(), PlanError> {
        for w in self.workloads() {
            let place = format!("workload '{}'", w.name);
            let (name, spec) = self.target_of(w)?;
            if let TargetSpec::Block(b) = spec
                && b.existing
                && (b.destroy_data.is_some() || w.mix.iter().any(|(k, n)| *n > 0 && *k != OpKind::Read))
            {
                return Err(invalid(
                    place,
                    format!("target '{name}' is there already and only read"),
                    "Use read alone, without destroy_data, or leave out existing = true.",
                ));
            }
            if w.existing().is_some() {
                self.check_reads(&place, w, (name, spec))?;
            }
        }
        Ok(())
    }

    /// A volume that the run brings is the run's alone: nothing of it is anybody's before, or in use by others.
    pub(super) fn check_volumes(&self) -> Result<(), PlanError> {
        for (name, spec) in &self.targets {
            let TargetSpec::Block(b) = spec else { continue };
            let Some(volume) = b.embedded_volume() else { continue };
            let place = format!("targets.{name}");
            if b.path != EMBEDDED_VOLUME || !b.also.is_empty() {
                return Err(invalid(
                    place,
                    format!("an embedded volume has the path '{EMBEDDED_VOLUME}', and this one '{}'", b.path),
                    "Write path = \"embedded\", or leave out `embedded`.",
                ));
            }
            if b.existing || b.destroy_data.is_some() || b.offset.is_some() || b.buffered {
                return Err(invalid(
                    place,
                    "an embedded volume is new, used in full, and its limits hold for direct I/O only",
                    "Leave out existing, destroy_data, offset and buffered.",
                ));
            }
            if volume.tier.is_some() == volume.limits.is_some() {
                return Err(invalid(
                    format!("{place}.embedded"),
                    "it takes a tier or a file of limits",
                    "Write for example embedded = { tier = \"vultr-hdd\" }.",
                ));
            }
            if !b.size.unwrap_or(BlockTarget::EMBEDDED_SIZE).0.is_multiple_of(4096) {
                return Err(invalid(
                    place,
                    "its size is no multiple of 4,096 bytes",
                    "Write for example size = \"256MiB\".",
                ));
            }
        }
        Ok(())
    }

    fn check_reads(
        &self,
        place: &str,
        w: &Workload,
        (name, spec): (&str, &TargetSpec),
    ) -> Result<(), PlanError> {
        let bad = |problem: String, remedy: &str| Err(invalid(place, problem, remedy));
        let TargetSpec::S3(s3) = spec else {
            return bad(format!("target '{name}' holds no objects"), "Leave out object.existing.");
        };
        let reads = [OpKind::Get, OpKind::GetRange, OpKind::Stat, OpKind::List];
        if let Some((kind, _)) = w.mix.iter().find(|(k, n)| **n > 0 && !reads.contains(*k)) {
            return bad(
                format!("{kind} does not leave existing objects as they are"),
                "Use get, get-range, stat or list, or leave out object.existing (--existing).",
            );
        }
        let object = w.object.clone().unwrap_or_default();
        if object.dataset.is_some() || w.verify || object.prefixes > 1 {
            return bad(
                "existing objects are no data set of plimsoll's: their content and names are not known"
                    .into(),
                "Leave out dataset, verify and prefixes, or object.existing (--existing).",
            );
        }
        if object.objects > MAX_EXISTING {
            return bad(
                format!("{} existing objects are out of bounds", object.objects),
                "Write 1000000 or less: their names are kept in memory.",
            );
        }
        if s3.create_bucket || s3.endpoints.iter().any(|e| STARTED.contains(&e.as_str())) {
            return bad(
                format!("target '{name}' is made for the run: no object is there already"),
                "Name the endpoint of a server that is there, without create_bucket (--create-bucket).",
            );
        }
        if s3.prefix.is_some() {
            return bad(
                format!("target '{name}' has a prefix to write under, and existing objects are only read"),
                "Write the prefix into object.existing, and none into the target.",
            );
        }
        if !self.only_reads(name) {
            return bad(
                format!("another workload writes to target '{name}', or prepares objects there"),
                "Measure existing objects in a plan or a target of their own.",
            );
        }
        match self.controller {
            Some(ControllerSpec::Sweep { .. } | ControllerSpec::Limits { .. }) => bad(
                "existing objects have the sizes that they have, and this controller asks for its own".into(),
                "Use stages, or leave out object.existing (--existing).",
            ),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "version = 1\n[targets.s]\nkind = \"s3\"\nendpoints = [\"http://h\"]\nbucket = \"b\"\n[[stage]]\n\
                        [[stage.workload]]\nname = \"w\"\nmix = { get = 1 }\nobject = { existing = { prefix = \"p/\" } }\n";

    #[test]
    fn existing_objects_are_read_and_a_plan_says_so() {
        let plan = Plan::from_toml(PLAN).unwrap();
        assert!(plan.only_reads("s") && !plan.only_reads("other"));
        assert_eq!(Plan::from_toml(&plan.to_toml()).unwrap(), plan);
        let whole = Plan::from_toml(&PLAN.replace("prefix = \"p/\"", "")).unwrap();
        assert_eq!(whole.stages[0].workloads[0].existing().unwrap().prefix, "");
        let usual = Plan::from_toml(&PLAN.replace("object = ", "# ")).unwrap();
        assert!(!usual.only_reads("s"));
    }

    #[test]
    fn what_would_write_is_refused() {
        let second = "[[stage.workload]]\nname = \"x\"\nmix = { put = 1 }\n";
        for (from, to, told) in [
            ("get = 1", "put = 1", "put does not leave existing objects"),
            ("get = 1", "get = 1, delete = 1", "delete does not leave"),
            ("get = 1", "copy = 1", "copy does not leave"),
            ("existing =", "dataset = \"d\", existing =", "no data set"),
            ("name = \"w\"", "name = \"w\"\nverify = true", "no data set"),
            ("existing =", "prefixes = 2, existing =", "no data set"),
            ("existing =", "objects = 2000000, existing =", "out of bounds"),
            ("\"http://h\"", "\"embedded\"", "made for the run"),
            ("bucket = \"b\"", "bucket = \"b\"\ncreate_bucket = true", "made for the run"),
            ("bucket = \"b\"", "bucket = \"b\"\nprefix = \"mine\"", "a prefix to write under"),
            ("[[stage]]\n", &format!("[[stage]]\n{second}"), "another workload writes"),
        ] {
            let e = Plan::from_toml(&PLAN.replacen(from, to, 1)).expect_err(to).to_string();
            assert!(e.contains(told) && e.contains("workload 'w'"), "{to}: {e}");
        }
    }

    #[test]
    fn a_file_that_is_only_read_is_not_written() {
        let plan = "version = 1\n[targets.f]\nkind = \"block\"\npath = \"/x\"\nexisting = true\n[[stage]]\n\
                    [[stage.workload]]\nname = \"w\"\nmix = { read = 1 }\n";
        assert!(Plan::from_toml(plan).is_ok());
        for (from, to) in [
            ("read = 1", "write = 1"),
            ("read = 1", "read = 1, trim = 1"),
            ("existing = true", "existing = true\ndestroy_data = \"/x\""),
        ] {
            let e = Plan::from_toml(&plan.replace(from, to)).expect_err(to).to_string();
            assert!(e.contains("only read"), "{to}: {e}");
        }
    }

    #[test]
    fn a_volume_that_the_run_brings_is_new_and_its_own() {
        let plan = "version = 1\n[targets.v]\nkind = \"block\"\npath = \"embedded\"\nsize = \"64MiB\"\n\
                    embedded = { tier = \"vultr-hdd\", scale = 0.1, burst_scale = 0.05 }\n[[stage]]\n[[stage.workload]]\n\
                    name = \"w\"\nmix = { write = 1 }\n";
        let read = Plan::from_toml(plan).unwrap();
        assert_eq!(Plan::from_toml(&read.to_toml()).unwrap(), read);
        for (from, to, told) in [
            ("path = \"embedded\"", "path = \"/dev/sdz\"", "has the path 'embedded'"),
            ("size = ", "also = [\"/dev/sdz\"]\nsize = ", "has the path 'embedded'"),
            ("size = ", "destroy_data = \"/dev/sdz\"\nsize = ", "is new"),
            ("size = ", "buffered = true\nsize = ", "direct I/O only"),
            ("size = ", "offset = \"1MiB\"\nsize = ", "used in full"),
            ("64MiB", "100KB", "multiple of 4,096"),
            ("tier = \"vultr-hdd\", ", "", "a tier or a file of limits"),
            ("tier =", "limits = \"x\", tier =", "a tier or a file of limits"),
            ("scale = 0.1,", "scale = 0,", "embedded.scale"),
            ("burst_scale = 0.05", "burst_scale = 1e9", "embedded.burst_scale"),
        ] {
            let e = Plan::from_toml(&plan.replacen(from, to, 1)).expect_err(to).to_string();
            assert!(e.contains(told), "{to}: {e}");
        }
    }
}
