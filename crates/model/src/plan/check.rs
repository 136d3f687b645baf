//! Reading a plan: syntax, unknown keys, then what no syntax can say. Each error has a place and a remedy.

use super::{ControllerSpec, PLAN_VERSION, Pacing, Plan, SizeDist, Stage, TargetSpec, Workload};
use crate::OpKind;
use crate::cluster::ClusterError;
use crate::text::toml_problem;
use crate::units::Size;

/// Why a plan cannot be run.
#[allow(missing_docs, reason = "each message has all fields in it")]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The text is no plan; the message has line and column.
    #[error("the plan cannot be read: {0}")]
    Syntax(String),
    #[error("{place}: {problem}. {remedy}")]
    Invalid { place: String, problem: String, remedy: String },
}

pub(super) fn invalid(
    place: impl Into<String>,
    problem: impl Into<String>,
    remedy: impl Into<String>,
) -> PlanError {
    PlanError::Invalid { place: place.into(), problem: problem.into(), remedy: remedy.into() }
}

fn in_plan(e: ClusterError) -> PlanError {
    match e {
        ClusterError::Syntax(text) => PlanError::Syntax(text),
        ClusterError::Invalid { place, problem, remedy } => {
            invalid(format!("options.cluster, {place}"), problem, remedy)
        }
    }
}

impl Plan {
    /// Parses and validates.
    pub fn from_toml(text: &str) -> Result<Self, PlanError> {
        let plan: Plan = toml::from_str(text).map_err(|e| PlanError::Syntax(toml_problem(text, &e)))?;
        plan.validate()?;
        Ok(plan)
    }

    /// Reads back as the same plan; comments of its source are lost.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("a plan is always TOML")
    }

    /// What the types cannot say.
    pub fn validate(&self) -> Result<(), PlanError> {
        if self.version == 0 || self.version > PLAN_VERSION {
            return Err(invalid(
                "version",
                format!("{} is not a plan version that this program supports", self.version),
                format!("Write version = {PLAN_VERSION}, or use a newer plimsoll."),
            ));
        }
        if self.targets.is_empty() {
            return Err(invalid(
                "targets",
                "there is none",
                "Add a table [targets.NAME] with kind = \"s3\", \"block\", \"files\", \"null\" or \"sim\".",
            ));
        }
        if self.stages.is_empty() == self.controller.is_none() {
            return Err(invalid(
                "stage",
                "a plan needs either stages or a controller",
                "Write [[stage]] tables, or one [controller] table.",
            ));
        }
        if !(0.0..=1.0).contains(&self.options.max_error_rate) {
            return Err(invalid(
                "options.max_error_rate",
                "is not between 0 and 1",
                "Write a share, for example 0.001 for 0.1 %.",
            ));
        }
        for (name, target) in &self.targets {
            let place = format!("targets.{name}");
            match target {
                TargetSpec::Files(files) => files.check_embedded(&place)?,
                TargetSpec::S3(s3) => s3.embedded.as_ref().map_or(Ok(()), |e| e.check(&place))?,
                _ => {}
            }
        }
        if let Some(client) = &self.options.client {
            client.check()?;
            if self.targets.values().any(|t| matches!(t, TargetSpec::Sim(_))) {
                return Err(invalid(
                    "options.client",
                    "on the virtual clock of a simulated target there is no client to be bounded",
                    "Leave it out.",
                ));
            }
        }
        if let Some(cost) = &self.options.cost {
            cost.check().map_err(|e| invalid(format!("options.cost.{}", e.place), e.problem, e.remedy))?;
        }
        if let Some(cluster) = &self.options.cluster {
            cluster.check().map_err(in_plan)?;
        }
        self.check_secrets()?;
        self.check_bounds()?;
        self.check_observe()?;
        self.check_guards()?;
        self.check_existing()?;
        self.check_volumes()?;
        for (i, stage) in self.stages.iter().enumerate() {
            self.check_stage(&format!("stage {}", i + 1), stage)?;
        }
        match &self.controller {
            None => Ok(()),
            Some(ControllerSpec::Sweep { template, ops, sizes, repeat, .. }) => {
                if ops.is_empty() || *repeat == 0 {
                    return Err(invalid(
                        "controller",
                        "a sweep needs ops and at least one repeat",
                        "Give ops, and set repeat to 1 or more.",
                    ));
                }
                if sizes.is_empty() && !ops.iter().all(|op| matches!(op, OpKind::Put | OpKind::Get)) {
                    return Err(invalid(
                        "controller.sizes",
                        "automatic sizes are supported for put and get only",
                        "Give the sizes, or sweep put and get.",
                    ));
                }
                if ops.contains(&OpKind::GetRange) {
                    let smallest = sizes.iter().min_by_key(|s| s.0).copied().unwrap_or(Size(0));
                    let ranged = |w: &Workload| {
                        let mix = [(OpKind::GetRange, 1)].into();
                        check_range("controller", &Workload { mix, ..w.clone() }, &SizeDist::Fixed(smallest))
                    };
                    template.workloads.iter().try_for_each(ranged)?;
                }
                self.check_stage("controller.template", template)
            }
            Some(ControllerSpec::Saturation { template, then, load_points, .. }) => {
                if let Some(bad) = load_points.iter().find(|f| !(**f > 0.0 && **f <= 2.0)) {
                    return Err(invalid(
                        "controller.load_points",
                        format!("{bad} is not a valid fraction of a limit"),
                        "Give fractions above 0 and at most 2, for example [0.5, 0.8, 0.95].",
                    ));
                }
                self.check_stage("controller.template", template)?;
                for (i, stage) in then.iter().enumerate() {
                    self.check_stage(&format!("controller.then {}", i + 1), stage)?;
                }
                if then.is_empty() { Ok(()) } else { check_searches(template, then) }
            }
            Some(ControllerSpec::Limits { template, .. } | ControllerSpec::Watch { template, .. }) => {
                self.check_stage("controller.template", template)
            }
        }
    }

    /// The target of a workload: the named one, or the only one.
    pub fn target_of(&self, w: &Workload) -> Result<(&str, &TargetSpec), PlanError> {
        let place = || format!("workload '{}'", w.name);
        match &w.target {
            Some(name) => self.targets.get_key_value(name).map(|(k, v)| (k.as_str(), v)).ok_or_else(|| {
                invalid(
                    place(),
                    format!("there is no target '{name}'"),
                    format!("Targets of this plan: {}.", self.target_names()),
                )
            }),
            None if self.targets.len() == 1 => {
                let (k, v) = self.targets.iter().next().expect("length was checked");
                Ok((k, v))
            }
            None => Err(invalid(
                place(),
                "does not name its target",
                format!("Add target = \"...\", one of {}.", self.target_names()),
            )),
        }
    }

    fn target_names(&self) -> String {
        self.targets.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    fn check_stage(&self, place: &str, stage: &Stage) -> Result<(), PlanError> {
        if stage.workloads.is_empty() {
            return Err(invalid(place, "has no workload", "Add a [[stage.workload]] table."));
        }
        for w in &stage.workloads {
            self.check_workload(&format!("{place}, workload '{}'", w.name), w)?;
        }
        Ok(())
    }

    fn check_workload(&self, place: &str, w: &Workload) -> Result<(), PlanError> {
        let (target_name, target) = self.target_of(w)?;
        if w.mix.values().map(|v| u64::from(*v)).sum::<u64>() == 0 {
            return Err(invalid(
                place,
                "its mix is empty",
                "Give at least one op a weight, for example mix = { get = 1 }.",
            ));
        }
        for kind in w.mix.keys() {
            if !target_does(target, *kind) {
                return Err(invalid(
                    place,
                    format!("target '{target_name}' has no op '{kind}'"),
                    "Choose another op, or another target.",
                ));
            }
        }
        if w.concurrency == 0 || w.jobs == Some(0) {
            return Err(invalid(place, "concurrency and jobs must not be 0", "Write 1 or more."));
        }
        if w.stop.duration.is_some_and(|d| d.0.is_zero()) {
            return Err(invalid(place, "the duration must not be 0", "Write a duration such as 30s."));
        }
        check_size(place, &w.size)?;
        check_range(place, w, &w.size)?;
        if let Pacing::Ramp { over, .. } = &w.pacing
            && over.0.is_zero()
        {
            return Err(invalid(place, "the duration of a ramp must not be 0", "Write over = \"30s\"."));
        }
        for (name, share) in [("compressible", w.data.compressible), ("dedupable", w.data.dedupable)] {
            if !(0.0..=1.0).contains(&share) {
                return Err(invalid(
                    place,
                    format!("data.{name} is not between 0 and 1"),
                    "Write a share, for example 0.5.",
                ));
            }
        }
        Ok(())
    }
}

/// Each of several searches is of one op, and no two of the same: promises and results name them by it.
fn check_searches(template: &Stage, then: &[Stage]) -> Result<(), PlanError> {
    let mut ops: Vec<(OpKind, &str)> = Vec::new();
    for stage in std::iter::once(template).chain(then) {
        let bad = |problem: String, remedy: &str| Err(invalid("controller.then", problem, remedy));
        let mixed = "each of several searches takes one workload of one op";
        let [w] = &stage.workloads[..] else {
            return bad(mixed.into(), "Give each stage one workload, or search one stage alone.");
        };
        let mut kinds = w.mix.iter().filter(|(_, weight)| **weight > 0).map(|(kind, _)| *kind);
        let (Some(kind), None) = (kinds.next(), kinds.next()) else {
            return bad(format!("{mixed}, and '{}' has several", w.name), "Search a mix alone.");
        };
        if let Some((_, other)) = ops.iter().find(|(k, _)| *k == kind) {
            return bad(
                format!("'{other}' and '{}' are both {kind}, and results are named by the op", w.name),
                "Name each op once, or search one after the other.",
            );
        }
        ops.push((kind, &w.name));
    }
    Ok(())
}

fn check_size(place: &str, size: &SizeDist) -> Result<(), PlanError> {
    let bad = |problem: &str, remedy: &str| Err(invalid(place, problem, remedy));
    match size {
        SizeDist::Fixed(_) => Ok(()),
        SizeDist::Uniform { min, max } if min > max => bad("size: min is above max", "Swap them."),
        SizeDist::Uniform { .. } => Ok(()),
        SizeDist::Weighted(list) if list.iter().all(|(_, w)| *w == 0) => {
            bad("size: all weights are 0", "Write pairs such as [\"4KiB\", 3].")
        }
        SizeDist::Weighted(_) => Ok(()),
        SizeDist::LogNormal { sigma, median, max } => {
            if !sigma.is_finite() || *sigma < 0.0 || median > max {
                return bad("size: a log-normal needs sigma >= 0 and median <= max", "Correct them.");
            }
            Ok(())
        }
    }
}

/// A range that no object has would be cut to what there is, and told as what was asked for.
fn check_range(place: &str, w: &Workload, size: &SizeDist) -> Result<(), PlanError> {
    let largest = super::bounds::largest(size);
    let ranged = w.mix.get(&OpKind::GetRange).is_some_and(|n| *n > 0);
    match w.object.as_ref().and_then(|o| o.range) {
        Some(range) if ranged && range.0 > largest => Err(invalid(
            place,
            format!("a range of {range} is larger than an object of {}", Size(largest)),
            "Read less, or make the objects larger.",
        )),
        _ => Ok(()),
    }
}

fn target_does(target: &TargetSpec, kind: OpKind) -> bool {
    match target {
        TargetSpec::S3(_) => !kind.is_block() && kind != OpKind::Null,
        TargetSpec::Block(_) | TargetSpec::Files(_) => kind.is_block(),
        TargetSpec::Null | TargetSpec::Sim(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
version = 1
seed = 7
[targets.s]
kind = "s3"
endpoints = ["http://127.0.0.1:9000"]
bucket = "b"
[[stage]]
name = "one"
[[stage.workload]]
name = "w"
mix = { get = 45, stat = 30, put = 15, delete = 10 }
size = { uniform = { min = "1KiB", max = "64KiB" } }
concurrency = 16
pacing = { poisson = "800/s" }
stop = { duration = "30s" }
"#;

    #[test]
    fn reads_and_writes_back() {
        let plan = Plan::from_toml(GOOD).unwrap();
        assert_eq!(Plan::from_toml(&plan.to_toml()).unwrap(), plan);
    }

    #[test]
    fn errors_have_place_and_remedy() {
        let e = Plan::from_toml(&GOOD.replace("concurrency", "concurency")).unwrap_err().to_string();
        assert!(e.contains("line 14") && e.contains("concurency"), "{e}");
        let e = Plan::from_toml(&GOOD.replace("get = 45", "read = 45")).unwrap_err().to_string();
        assert!(e.contains("workload 'w'") && e.contains("no op 'read'"), "{e}");
        let ranged = GOOD.replace("get = 45", "get-range = 45") + "object = { range = \"65KiB\" }\n";
        let e = Plan::from_toml(&ranged).unwrap_err().to_string();
        assert!(e.contains("workload 'w'") && e.contains("65KiB is larger than an object of 64KiB"), "{e}");
        assert!(Plan::from_toml(&ranged.replace("65KiB", "64KiB")).is_ok());
        let secret = "put_headers = { X-Amz-Server-Side-Encryption-Customer-Key = \"AAAA\" }\n[[stage]]";
        let e = Plan::from_toml(&GOOD.replace("[[stage]]", secret)).unwrap_err().to_string();
        assert!(e.contains("sse_c_key_file") && !e.contains("AAAA"), "{e}");
        let e = Plan::from_toml(&GOOD.replace("\"64KiB\"", "\"64k\"")).unwrap_err().to_string();
        assert!(e.contains("line"), "{e}");
    }
}
