//! What agents have of their own, compared before anything is written: one device or image that two of them mean, one that another has
//! mounted, and one directory that several see.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_crew::CrewError;
use plimsoll_model::text::clean;
use plimsoll_setup::safety::survey::{SeenKind, SeenThing, Survey};

/// What several agents have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Common {
    /// Targets whose directory several agents see: each needs one of its own in it.
    pub apart: BTreeSet<String>,
    /// Targets whose device or file all agents have, and are to have (`--shared`).
    pub shared: BTreeMap<String, SeenKind>,
}

/// What the agents have in common. An error names those that would write to one device or file, and the one that uses a device that
/// another is to write to. `sharing`: one device or file for all of them is what is wanted.
pub fn compare(surveys: &[(String, Survey)], sharing: bool) -> Result<Common, CrewError> {
    not_in_use(surveys)?;
    let mut common = Common::default();
    let mut seen: BTreeMap<&str, (&str, &SeenThing)> = BTreeMap::new();
    for (agent, survey) in surveys {
        for thing in &survey.things {
            for identity in &thing.identities {
                let Some((other, same)) = seen.insert(identity, (agent, thing)) else { continue };
                // Under two names of its own plan it is one agent's matter.
                if other == agent {
                    continue;
                }
                if thing.kind == SeenKind::Directory {
                    common.apart.insert(thing.target.clone());
                } else if sharing && same.target == thing.target && thing.exists {
                    common.shared.insert(thing.target.clone(), thing.kind);
                } else if sharing && !thing.exists {
                    return Err(to_be_made(thing));
                } else {
                    return Err(both(other, agent, same, thing, identity));
                }
            }
        }
    }
    common.shared.keys().try_for_each(|target| all_have(target, surveys))?;
    Ok(common)
}

/// Who would make it, and how the others would know that it is theirs, too, cannot be settled between machines.
fn to_be_made(thing: &SeenThing) -> CrewError {
    let path = clean(&thing.path);
    CrewError::input(
        format!("target '{}': agents share {path}, and it is not there", clean(&thing.target)),
        format!(
            "Make it first: for a load that writes, truncate -s SIZE {path}, and name it with --destroy-data; for one that reads, \
             write it in full on one machine (plimsoll block {path} --size SIZE --pattern write --bs 1MiB --keep)"
        ),
    )
}

/// Ranges are divided over all agents: each of them has to mean the same thing.
fn all_have(target: &str, surveys: &[(String, Survey)]) -> Result<(), CrewError> {
    let things = |s: &Survey| -> Vec<BTreeSet<String>> {
        let its = s.things.iter().filter(|t| t.target == target);
        its.map(|t| t.identities.iter().cloned().collect()).collect()
    };
    let Some((first, survey)) = surveys.first() else { return Ok(()) };
    let wanted = things(survey);
    for (agent, survey) in &surveys[1..] {
        let have = things(survey);
        let same = have.len() == wanted.len() && wanted.iter().zip(&have).all(|(w, h)| !w.is_disjoint(h));
        if !same {
            return Err(CrewError::input(
                format!(
                    "target '{}': agents {first} and {agent} do not have the same devices",
                    clean(target)
                ),
                "With --shared all agents of the run have the same ones: choose those (--agents label=value)",
            ));
        }
    }
    Ok(())
}

fn both(one: &str, other: &str, first: &SeenThing, second: &SeenThing, identity: &str) -> CrewError {
    let what = second.kind.words();
    let names = match first.path == second.path {
        true => clean(&first.path).into_owned(),
        false => format!("{} and {}", clean(&first.path), clean(&second.path)),
    };
    CrewError::input(
        format!(
            "target '{}': agents {one} and {other} have the same {what} ({names}: {})",
            clean(&second.target),
            clean(identity)
        ),
        format!(
            "Give each agent a {what} of its own, leave one out (--agents label=value), or let each write in a range of its own: --shared"
        ),
    )
}

/// What one agent is to use, and another one uses for something else: its own safety rules cannot know.
fn not_in_use(surveys: &[(String, Survey)]) -> Result<(), CrewError> {
    for (user, used) in surveys {
        for (identities, what) in &used.in_use {
            let is_it = |t: &&SeenThing| {
                t.kind == SeenKind::Device && t.identities.iter().any(|i| identities.contains(i))
            };
            let hit = surveys.iter().find_map(|(agent, s)| Some((agent, s.things.iter().find(is_it)?)));
            // Of its own devices each agent judges itself, and may be told which data may go.
            let Some((agent, thing)) = hit.filter(|(agent, _)| *agent != user) else { continue };
            return Err(CrewError::input(
                format!(
                    "target '{}': {} of agent {agent} is in use on agent {user}: {}",
                    clean(&thing.target),
                    clean(&thing.path),
                    clean(what)
                ),
                "Release it there (umount), or use another device",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thing(kind: SeenKind, path: &str, identities: &[&str]) -> SeenThing {
        let identities = identities.iter().map(|i| (*i).to_owned()).collect();
        SeenThing { target: "t".into(), path: path.into(), kind, identities, exists: true }
    }

    fn survey(agent: &str, things: Vec<SeenThing>) -> (String, Survey) {
        (agent.into(), Survey { things, in_use: Vec::new() })
    }

    #[test]
    fn one_device_by_any_of_its_names_is_refused_for_two() {
        let of = |agent, path, ids: &[&str]| survey(agent, vec![thing(SeenKind::Device, path, ids)]);
        let all =
            [of("a", "/dev/sda", &["wwn-1", "boot-a 8:0"]), of("b", "/dev/sdb", &["wwn-1", "boot-b 8:16"])];
        let e = compare(&all, false).unwrap_err().to_string();
        assert!(e.contains("agents a and b have the same device (/dev/sda and /dev/sdb: wwn-1)"), "{e}");
        // Of one path on each, and devices of their own.
        let own =
            [of("a", "/dev/sda", &["wwn-1"]), of("b", "/dev/sda", &["wwn-2"]), of("c", "/dev/sda", &[])];
        assert_eq!(compare(&own, false).unwrap(), Common::default());
    }

    #[test]
    fn what_another_agent_has_mounted_is_refused_by_both_names() {
        let mut mounted = survey("b", vec![]);
        mounted.1.in_use.push((vec!["wwn-1".into()], "/dev/sdb is mounted on /srv".into()));
        let one = survey("a", vec![thing(SeenKind::Device, "/dev/sda", &["wwn-1"])]);
        let e = compare(&[one.clone(), mounted], true).unwrap_err().to_string();
        assert!(e.contains("/dev/sda of agent a is in use on agent b: /dev/sdb is mounted on /srv"), "{e}");
        // Its own is for its own rules to judge.
        let mut own = one;
        own.1.in_use.push((vec!["wwn-1".into()], "/dev/sda is mounted on /srv".into()));
        assert!(compare(&[own], false).is_ok());
    }

    #[test]
    fn a_directory_that_two_have_is_parted_and_an_image_refused() {
        let of = |agent, kind| survey(agent, vec![thing(kind, "/mnt/x", &["nfs s:/x inode 2"])]);
        let shared = [of("a", SeenKind::Directory), of("b", SeenKind::Directory)];
        assert_eq!(compare(&shared, false).unwrap().apart, BTreeSet::from(["t".to_owned()]));
        let e = compare(&[of("a", SeenKind::File), of("b", SeenKind::File)], false).unwrap_err().to_string();
        assert!(e.contains("the same file (/mnt/x: nfs s:/x inode 2)"), "{e}");
    }

    #[test]
    fn what_is_shared_on_purpose_is_there_and_everybodys() {
        let of = |agent, ids: &[&str]| survey(agent, vec![thing(SeenKind::Device, "/dev/sda", ids)]);
        let all = [of("a", &["wwn-1", "boot-a 8:0"]), of("b", &["wwn-1", "boot-b 8:0"])];
        assert_eq!(compare(&all, true).unwrap().shared, BTreeMap::from([("t".to_owned(), SeenKind::Device)]));
        let another = [all[0].clone(), all[1].clone(), of("c", &["wwn-2"])];
        let e = compare(&another, true).unwrap_err().to_string();
        assert!(e.contains("agents a and c do not have the same devices"), "{e}");
        let image = |agent| {
            let missing =
                SeenThing { exists: false, ..thing(SeenKind::File, "/mnt/x", &["nfs s:/x inode 2/x"]) };
            survey(agent, vec![missing])
        };
        let e = compare(&[image("a"), image("b")], true).unwrap_err().to_string();
        assert!(e.contains("it is not there") && e.contains("truncate"), "{e}");
    }
}
