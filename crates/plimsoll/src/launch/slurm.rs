//! A batch script for Slurm: one agent a node, and the first node conducts. Printed, not submitted: sites differ, and a person has a
//! look at it first.

use plimsoll_model::units::Span;

use crate::rerun::quoted;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct SlurmWish {
    /// One agent on each.
    pub nodes: u32,
    /// After which Slurm ends it.
    pub time: Span,
    /// Where it is to run, as [`is_partition`] has it; none: the site's own choice.
    pub partition: Option<String>,
    /// The command that measures, without `plimsoll`.
    pub command: Vec<String>,
    /// More flags of the agents.
    pub agent_flags: Vec<String>,
}

/// Whether it can be a partition, or several after commas. In a line of `#SBATCH` nothing else is safe: quotes do not hold there, and
/// what comes after the end of a line is a command.
pub fn is_partition(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_.,-".contains(c);
    !text.is_empty() && !text.starts_with('-') && text.chars().all(fits)
}

/// The script.
pub fn script(wish: &SlurmWish) -> String {
    let SlurmWish { nodes, time, partition, command, agent_flags } = wish;
    let partition = partition.as_ref().map_or(String::new(), |p| format!("#SBATCH --partition={p}\n"));
    let words = |all: &[String]| all.iter().map(|w| quoted(w)).collect::<Vec<_>>().join(" ");
    let flags = if agent_flags.is_empty() { String::new() } else { format!(" \\\n  {}", words(agent_flags)) };
    let time = in_slurm(time.0.as_secs());
    format!(
        r#"#!/bin/bash
# A fleet of {nodes} nodes, of which the first one conducts. Submit it with sbatch; the result is in its output, the runs in
# plimsoll-runs/ of the directory that it was submitted from. All nodes need plimsoll in PATH, the first one nats-server, too.
#SBATCH --job-name=plimsoll
#SBATCH --nodes={nodes}
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --no-kill
#SBATCH --time={time}
# Two minutes before the time is over: the run ends, is stored, and what it made is removed.
#SBATCH --signal=B:TERM@120
{partition}set -euo pipefail
PLIMSOLL=${{PLIMSOLL:-plimsoll}}

# The fleet's keys are for this job alone, on this node's own disk.
XDG_RUNTIME_DIR=$(mktemp -d "${{TMPDIR:-/tmp}}/plimsoll-$SLURM_JOB_ID-XXXXXX")
PLIMSOLL_FLEET=slurm-$SLURM_JOB_ID
export XDG_RUNTIME_DIR PLIMSOLL_FLEET
leave() {{
  "$PLIMSOLL" fleet down --force || true
  wait || true
  rmdir "$XDG_RUNTIME_DIR" || true
}}
trap leave EXIT

# Its output would be in the job's: the token is for the agents only, and is given to them in their environment.
"$PLIMSOLL" fleet up --token-for 1h >/dev/null
PLIMSOLL_JOIN=$("$PLIMSOLL" fleet token)
export PLIMSOLL_JOIN
srun --nodes={nodes} --ntasks={nodes} --ntasks-per-node=1 --overlap --cpu-bind=none --kill-on-bad-exit=0 --wait=0 --no-kill \
  "$PLIMSOLL" agent --until-idle 10min{flags} &
unset PLIMSOLL_JOIN
"$PLIMSOLL" fleet wait {nodes} --within 5min

# In the background, so that the signal above is heard while it runs.
"$PLIMSOLL" {command} &
run=$!
told=no
trap 'told=yes; kill -TERM "$run" 2>/dev/null || true' TERM INT
code=0
wait "$run" || code=$?
if [ "$told" = yes ]; then
  # The signal ended the wait, and not yet the run.
  code=0
  wait "$run" || code=$?
fi
exit "$code"
"#,
        command = words(command),
    )
}

/// `D-HH:MM:SS`; what is less than a minute is one.
fn in_slurm(seconds: u64) -> String {
    let minutes = seconds.div_ceil(60).max(1);
    format!("{}-{:02}:{:02}:00", minutes / 1440, minutes / 60 % 24, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish() -> SlurmWish {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect();
        SlurmWish {
            nodes: 8,
            time: "90min".parse().unwrap(),
            partition: Some("fast".into()),
            command: words("object put --endpoint http://n{1...4}:9000 --bucket b"),
            agent_flags: words("--allow-dir /scratch"),
        }
    }

    #[test]
    fn a_shell_can_read_it() {
        let script = script(&wish());
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("job.sh");
        std::fs::write(&file, &script).unwrap();
        let read = std::process::Command::new("bash").arg("-n").arg(&file).output().unwrap();
        assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
        assert!(script.contains("\"$PLIMSOLL\" object put --endpoint 'http://n{1...4}:9000' --bucket b &"));
        assert!(
            script.contains("#SBATCH --time=0-01:30:00\n") && script.contains("#SBATCH --partition=fast\n")
        );
        assert!(script.contains("--until-idle 10min \\\n  --allow-dir /scratch &"));
    }

    #[test]
    fn a_partition_is_a_word() {
        assert!(["fast", "gpu,gpu-2", "a_b.c"].iter().all(|p| is_partition(p)));
        for bad in ["", "x\nrm -rf ~ #", "a b", "$(id)", "'a'", "a;b", "-x"] {
            assert!(!is_partition(bad), "{bad}");
        }
    }

    #[test]
    fn times_are_slurms() {
        let told = [1, 60, 61, 3_600, 90_000].map(in_slurm);
        assert_eq!(told, ["0-00:01:00", "0-00:01:00", "0-00:02:00", "0-01:00:00", "1-01:00:00"]);
    }
}
