//! Scripts and manifests that bring agents onto other machines, printed.

use clap::Parser as _;
use plimsoll_bus::keeper::{Home, KeySet, now_s};
use plimsoll_bus::token::Token;
use plimsoll_fleet::Choice;
use plimsoll_model::text::clean;

use super::fleet::{ManifestArgs, SlurmArgs};
use crate::cli::{Cli, Command};
use crate::fault::{Exit, Fault};
use crate::launch::{kubernetes, slurm};
use crate::output;

pub fn slurm(a: &SlurmArgs) -> Result<Exit, Fault> {
    if let Some(bad) = a.partition.as_ref().filter(|p| !slurm::is_partition(p)) {
        return Err(Fault::input(
            format!("--partition: '{}' is no name of a partition", clean(bad)),
            "Give a name of letters, digits, `_`, `.` and `-`, or several with commas (sinfo lists them).",
        ));
    }
    let wish = slurm::SlurmWish {
        nodes: a.nodes,
        time: a.time,
        partition: a.partition.clone(),
        command: measuring(&a.command)?,
        agent_flags: a.agents.flags(),
    };
    output::print(&slurm::script(&wish))?;
    Ok(Exit::Valid)
}

/// `wanted`: of `--agents`, which all commands have.
pub fn manifest(a: &ManifestArgs, wanted: Option<&Choice>) -> Result<Exit, Fault> {
    let Some(&Choice::Count(agents)) = wanted else {
        return Err(Fault::input(
            "the manifest needs a number of agents",
            "Give --agents N: each gets a node of its own.",
        ));
    };
    let (token, conduct) = if a.conduct {
        let keys = KeySet::make(&a.fleet.name)?;
        let token = keys.token(&a.fleet.name, Vec::new(), now_s() + a.token_for.0.as_secs())?;
        let tag = kubernetes::tag_of(&token);
        let address = kubernetes::service_address(&a.fleet.name, &tag, a.namespace.as_deref());
        (Token { addresses: vec![address], ..token }, Some((keys.text(), measuring(&a.command)?)))
    } else {
        (Home::of(&a.fleet.name)?.token()?, None)
    };
    let wish = kubernetes::ManifestWish {
        fleet: a.fleet.name.clone(),
        tag: kubernetes::tag_of(&token),
        agents,
        image: a.image.clone(),
        namespace: a.namespace.clone(),
        claim: a.pvc.clone(),
        block: a.block,
        host_network: a.host_network,
        credentials: a.credentials.clone(),
        cpus: a.cpus,
        memory: a.memory,
        token: token.text()?,
        conduct,
    };
    output::print(&kubernetes::manifest(&wish))?;
    if wish.conduct.is_some() {
        output::tell(format_args!(
            "plimsoll: the manifest holds the fleet's private keys: whoever reads it can conduct the fleet, and give its agents orders"
        ));
    }
    Ok(Exit::Valid)
}

/// The words of a command that measures, without the program's name. One that cannot be read is refused here, and not in an hour on a
/// node.
fn measuring(words: &[String]) -> Result<Vec<String>, Fault> {
    let words = if words.first().is_some_and(|w| w == "plimsoll") { &words[1..] } else { words };
    let typed = std::iter::once("plimsoll").chain(words.iter().map(String::as_str));
    let cli = Cli::try_parse_from(typed).map_err(|e| {
        let text = e.to_string();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        Fault::input(format!("the command after -- cannot be read: {first}"), "Try it with --dry-run first.")
    })?;
    let measures = !matches!(
        cli.command,
        Command::Calibrate(_)
            | Command::Report(_)
            | Command::Runs(_)
            | Command::Mark(_)
            | Command::Cleanup(_)
            | Command::Analyze(_)
            | Command::Compare(_)
            | Command::Scale(_)
            | Command::Target(_)
            | Command::Fleet(_)
            | Command::Agent(_)
    );
    if measures {
        Ok(words.to_vec())
    } else {
        Err(Fault::input("the command after -- measures nothing", "Give one that does, such as object get."))
    }
}
