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
                // Depth is a job's, and the template's jobs are so many times as many now.
                if !template.workloads.iter().all(is_on_files) {
                    concurrencies.iter_mut().for_each(|c| *c = c.saturating_mul(agents));
                }
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

    /// `64 in flight on each of 8 agents, 512 in flight in all`: of the loads that will be; where a controller finds them, only whose the
    /// figures are that were asked for. None where the plan is not of that kind.
    pub fn each_in_words(&self) -> Option<String> {
        let agents = self.options.each.filter(|n| *n > 0)?;
        let finds_them = match &self.controller {
            None | Some(ControllerSpec::Watch { .. }) => false,
            Some(ControllerSpec::Sweep { sizes, concurrencies, .. }) => {
                sizes.is_empty() && concurrencies.is_empty()
            }
            Some(ControllerSpec::Saturation { .. } | ControllerSpec::Limits { .. }) => true,
        };
        if finds_them {
            return Some(format!(
                "what was asked for is each of {agents} agents'; what is in flight, the run finds out, of all of them together"
            ));
        }
        let templates = self.controller.iter().flat_map(ControllerSpec::templates);
        let mut said: Vec<String> = Vec::new();
        for w in self.stages.iter().chain(templates).flat_map(|stage| &stage.workloads) {
            let jobs = u64::from(w.jobs.unwrap_or(1));
            let (least, most) = self.concurrencies_of(w);
            let (least, most) = (u64::from(least) * jobs, u64::from(most) * jobs);
            let mut text = format!("{} in flight", ends(least / u64::from(agents), most / u64::from(agents)));
            if let Some(rate) = rate_in_words(&w.pacing, f64::from(agents)) {
                text.push_str(&format!(" and {rate}"));
            }
            let text = format!("{text} on each of {agents} agents, {} in flight in all", ends(least, most));
            if !said.contains(&text) {
                said.push(text);
            }
        }
        Some(said.join("; "))
    }

    /// The least and the most ops in flight (of each job) that a workload will have: those of a sweep take the place of its template's own.
    fn concurrencies_of(&self, w: &Workload) -> (u32, u32) {
        let swept: &[u32] = match &self.controller {
            Some(ControllerSpec::Sweep { concurrencies, .. }) => concurrencies,
            _ => &[],
        };
        let (least, most) = (swept.iter().min(), swept.iter().max());
        least.copied().zip(most.copied()).unwrap_or((w.concurrency, w.concurrency))
    }
}

/// `64`, or `1 to 64`.
fn ends(least: u64, most: u64) -> String {
    if least == most { most.to_string() } else { format!("{least} to {most}") }
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

    /// A plan with a controller, whose template has this workload.
    fn controlled(controller: &str, workload: &str) -> Plan {
        Plan::from_toml(&format!(
            "version = 1\n[targets.t]\nkind = \"null\"\n[controller]\n{controller}\n[controller.template]\nwarmup = \"0s\"\n\
             [[controller.template.workload]]\nname = \"w\"\n{workload}\n"
        ))
        .unwrap()
    }

    #[test]
    fn of_a_sweep_the_loads_are_told_that_will_be_and_of_a_search_none() {
        let said = |controller: &str, workload: &str| {
            controlled(controller, workload).for_each_of(8).unwrap().each_in_words().unwrap()
        };
        let sweep = "kind = \"sweep\"\nops = [\"get\"]\nsizes = [\"4KiB\"]";
        let get = "mix = { get = 1 }\nconcurrency = 5";
        assert_eq!(
            said(&format!("{sweep}\nconcurrencies = [64, 1, 8]"), get),
            "1 to 64 in flight on each of 8 agents, 8 to 512 in flight in all"
        );
        assert_eq!(
            said(&format!("{sweep}\nconcurrencies = [64]"), get),
            "64 in flight on each of 8 agents, 512 in flight in all"
        );
        assert_eq!(said(sweep, get), "5 in flight on each of 8 agents, 40 in flight in all");
        for finds in ["kind = \"sweep\"\nops = [\"get\"]\nsizes = []", "kind = \"saturation\""] {
            let told = said(finds, "mix = { get = 1 }");
            assert!(told.starts_with("what was asked for is each of 8 agents'"), "{told}");
            assert!(!told.contains(|c: char| c.is_ascii_digit() && c != '8'), "{told}");
        }
    }

    #[test]
    fn the_depths_of_a_sweep_of_devices_are_a_jobs_and_stay() {
        let p = Plan::from_toml(
            "version = 1\n[targets.t]\nkind = \"block\"\npath = \"/dev/sdz\"\n[controller]\nkind = \"sweep\"\n\
             ops = [\"read\"]\nsizes = [\"4KiB\"]\nconcurrencies = [1, 16]\n[controller.template]\n\
             [[controller.template.workload]]\nname = \"w\"\nmix = { read = 1 }\njobs = 2\n",
        )
        .unwrap();
        let all = p.for_each_of(3).unwrap();
        let Some(ControllerSpec::Sweep { template, concurrencies, .. }) = &all.controller else { panic!() };
        assert_eq!((&concurrencies[..], template.workloads[0].jobs), (&[1, 16][..], Some(6)));
        assert_eq!(
            all.each_in_words().unwrap(),
            "2 to 32 in flight on each of 3 agents, 6 to 96 in flight in all"
        );
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
