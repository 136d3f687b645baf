//! Where an agent was started, as its launcher's environment says: a name that no other of the job has, and labels to choose by.

/// What is read of the environment.
type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// By Slurm's variables, of Kubernetes' jobs those that our manifest gives.
const LABELS: [(&str, &str); 5] = [
    ("SLURM_JOB_ID", "job"),
    ("SLURMD_NODENAME", "node"),
    ("SLURM_PROCID", "index"),
    ("JOB_COMPLETION_INDEX", "index"),
    ("PLIMSOLL_NODE", "node"),
];

/// What the launcher says of this agent: name and value. What was given by hand comes after it, and counts.
pub fn labels(env: Environment<'_>) -> Vec<(String, String)> {
    LABELS.iter().filter_map(|(from, label)| Some(((*label).to_owned(), env(from)?))).collect()
}

/// The name that it gives: Slurm's of the node, which is the host's or not; several tasks of a node are numbered.
pub fn name(env: Environment<'_>) -> Option<String> {
    let node = env("SLURMD_NODENAME").filter(|_| env("SLURM_PROCID").is_some())?;
    match env("SLURM_LOCALID").as_deref() {
        None | Some("0") => Some(node),
        Some(local) => Some(format!("{node}-{local}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_of_slurm_is_called_by_its_node() {
        let env = |name: &str| {
            let all = [
                ("SLURMD_NODENAME", "n7"),
                ("SLURM_PROCID", "3"),
                ("SLURM_LOCALID", "1"),
                ("SLURM_JOB_ID", "42"),
            ];
            all.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned())
        };
        assert_eq!(name(&env).as_deref(), Some("n7-1"));
        let labels: Vec<String> = labels(&env).iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(labels, ["job=42", "node=n7", "index=3"]);
    }

    #[test]
    fn without_a_launcher_nothing_is_said() {
        assert_eq!((name(&|_| None), labels(&|_| None).len()), (None, 0));
        // The batch script of a job is no task of it.
        assert_eq!(name(&|n| (n == "SLURMD_NODENAME").then(|| "n7".into())), None);
    }
}
