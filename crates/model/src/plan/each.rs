//! A plan whose figures are each agent's, made one whose figures are of all of them together: the only kind that is carried out.

use super::check::invalid;
use super::{ControllerSpec, Pacing, Plan, PlanError, Stage, Workload};
use crate::units::{BytesRate, OpsRate, Size};

impl Plan {
    /// What was asked for once, so many times: ops in flight (jobs on devices and files), rates, objects, and the ops and bytes that end
    /// a load. Times stay, and so do sizes: files and devices are each agent's own anyway. An error where the plan is of so many
    /// already, or where so much is more than a plan may ask for.
    pub fn for_each_of(mut self, agents: u32) -> Result<Self, PlanError> {
        if let Some(of) = self.options.each {
            return Err(invalid(
                "options.each",
                format!("the plan asks for what {of} agents do together"),
                "Leave out --each, or remove options.each from the plan.",
            ));
        }
        let on_files: Vec<String> = {
            let files = self.targets.iter().filter(|(_, spec)| spec.is_on_files());
            files.map(|(name, _)| name.clone()).collect()
        };
        let only = (self.targets.len() == 1).then(|| self.targets.keys().next().cloned()).flatten();
        let is_on_files = |w: &Workload| {
            w.target.as_ref().or(only.as_ref()).is_some_and(|target| on_files.contains(target))
        };
        let times = |stage: &mut Stage| {
            stage.workloads.iter_mut().for_each(|w| of_all(w, is_on_files(w), agents));
        };
        self.stages.iter_mut().for_each(times);
        match &mut self.controller {
            None => {}
            Some(ControllerSpec::Sweep { template, concurrencies, .. }) => {
                times(template);
                concurrencies.iter_mut().for_each(|c| *c = c.saturating_mul(agents));
            }
            Some(ControllerSpec::Saturation { template, then, max_concurrency, .. }) => {
                times(template);
                then.iter_mut().for_each(times);
                *max_concurrency = max_concurrency.map(|c| c.saturating_mul(agents));
            }
            Some(ControllerSpec::Limits { template, .. } | ControllerSpec::Watch { template, .. }) => {
                times(template);
            }
        }
        self.options.each = Some(agents);
        self.validate()?;
        Ok(self)
    }

    /// `64 in flight on each of 8 agents, 512 in all`: of the loads that the plan names; none where it is not of that kind.
    pub fn each_in_words(&self) -> Option<String> {
        let agents = self.options.each.filter(|n| *n > 0)?;
        let templates = self.controller.iter().flat_map(ControllerSpec::templates);
        let mut said: Vec<String> = Vec::new();
        for w in self.stages.iter().chain(templates).flat_map(|stage| &stage.workloads) {
            let jobs = w.jobs.unwrap_or(1);
            let all = u64::from(w.concurrency) * u64::from(jobs);
            let mut text = format!("{} in flight", all / u64::from(agents));
            if let Some(rate) = rate_in_words(&w.pacing, f64::from(agents)) {
                text.push_str(&format!(" and {rate}"));
            }
            let text = format!("{text} on each of {agents} agents, {all} in flight in all");
            if !said.contains(&text) {
                said.push(text);
            }
        }
        Some(said.join("; "))
    }
}

/// A rate in so many parts.
fn rate_in_words(pacing: &Pacing, parts: f64) -> Option<String> {
    Some(match *pacing {
        Pacing::Closed => return None,
        Pacing::Constant(OpsRate(r)) | Pacing::Capped(OpsRate(r)) | Pacing::Poisson(OpsRate(r)) => {
            OpsRate(r / parts).to_string()
        }
        Pacing::Bytes(BytesRate(r)) => BytesRate(r / parts).to_string(),
        Pacing::Ramp { from, to, .. } => {
            format!("{} to {}", OpsRate(from.0 / parts), OpsRate(to.0 / parts))
        }
    })
}

fn of_all(w: &mut Workload, is_on_files: bool, agents: u32) {
    // Depth is a job's, and jobs are what is divided.
    if is_on_files {
        w.jobs = Some(w.jobs.unwrap_or(1).saturating_mul(agents));
    } else {
        w.concurrency = w.concurrency.saturating_mul(agents);
    }
    let times = f64::from(agents);
    w.pacing = match w.pacing {
        Pacing::Closed => Pacing::Closed,
        Pacing::Constant(OpsRate(r)) => Pacing::Constant(OpsRate(r * times)),
        Pacing::Capped(OpsRate(r)) => Pacing::Capped(OpsRate(r * times)),
        Pacing::Poisson(OpsRate(r)) => Pacing::Poisson(OpsRate(r * times)),
        Pacing::Bytes(BytesRate(r)) => Pacing::Bytes(BytesRate(r * times)),
        Pacing::Ramp { from, to, over } => {
            Pacing::Ramp { from: OpsRate(from.0 * times), to: OpsRate(to.0 * times), over }
        }
    };
    let many = u64::from(agents);
    w.stop.ops = w.stop.ops.map(|n| n.saturating_mul(many));
    w.stop.bytes = w.stop.bytes.map(|Size(n)| Size(n.saturating_mul(many)));
    if let Some(object) = &mut w.object {
        object.objects = object.objects.saturating_mul(many);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(target: &str, workload: &str) -> Plan {
        Plan::from_toml(&format!(
            "version = 1\n[targets.t]\n{target}\n[[stage]]\nwarmup = \"0s\"\n[[stage.workload]]\nname = \"w\"\n{workload}\n"
        ))
        .unwrap()
    }

    #[test]
    fn what_is_each_agents_is_so_many_times_as_much_for_all() {
        let p = plan(
            "kind = \"sim\"\nbase = \"1ms\"",
            "mix = { get = 1 }\nconcurrency = 64\npacing = { constant = \"100/s\" }\n\
             stop = { ops = 1000, bytes = \"1MiB\", duration = \"5s\" }",
        );
        let all = p.clone().for_each_of(8).unwrap();
        let w = &all.stages[0].workloads[0];
        assert_eq!((w.concurrency, w.jobs), (512, None));
        assert_eq!(w.pacing, Pacing::Constant(OpsRate(800.0)));
        assert_eq!((w.stop.ops, w.stop.bytes), (Some(8000), Some(Size(8 << 20))));
        assert_eq!(w.stop.duration, p.stages[0].workloads[0].stop.duration);
        assert_eq!(
            all.each_in_words().unwrap(),
            "64 in flight and 100/s on each of 8 agents, 512 in flight in all"
        );
        assert_eq!(p.each_in_words(), None);
        // It is written down with the run, and not multiplied once more.
        let read = Plan::from_toml(&all.to_toml()).unwrap();
        assert_eq!(read, all);
        assert!(read.for_each_of(2).unwrap_err().to_string().contains("8 agents"));
    }

    #[test]
    fn on_devices_jobs_are_what_each_has() {
        let p =
            plan("kind = \"block\"\npath = \"/dev/sdz\"", "mix = { read = 1 }\nconcurrency = 16\njobs = 2");
        let w = p.for_each_of(3).unwrap().stages.remove(0).workloads.remove(0);
        assert_eq!((w.concurrency, w.jobs), (16, Some(6)));
    }

    #[test]
    fn more_than_a_plan_may_ask_for_is_refused_for_all_too() {
        let p = plan("kind = \"null\"", "mix = { get = 1 }\nconcurrency = 1000");
        assert!(p.for_each_of(u32::MAX).is_err());
    }
}
