//! What agents have of their own, compared before anything is written: one device or image that two of them mean, one that another has
//! mounted, and one directory that several see.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_crew::CrewError;
use plimsoll_model::text::clean;
use plimsoll_setup::safety::survey::{SeenKind, SeenThing, Survey};

/// Targets whose directory more than one agent has, so that each needs one of its own in it. An error names the agents that would write
/// to one device or file, and the one that uses a device that another is to write to.
pub fn compare(surveys: &[(String, Survey)]) -> Result<BTreeSet<String>, CrewError> {
    not_in_use(surveys)?;
    let mut apart = BTreeSet::new();
    let mut seen: BTreeMap<&str, (&str, &SeenThing)> = BTreeMap::new();
    for (agent, survey) in surveys {
        for thing in &survey.things {
            for identity in &thing.identities {
                let Some((other, same)) = seen.insert(identity, (agent, thing)) else { continue };
                // Under two names of its own plan it is one agent's matter.
                if other == agent {
                    continue;
                }
                if thing.kind != SeenKind::Directory {
                    return Err(both(other, agent, same, thing, identity));
                }
                apart.insert(thing.target.clone());
            }
        }
    }
    Ok(apart)
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
        format!("Give each agent a {what} of its own, or leave one out (--agents label=value)"),
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
        let e = compare(&all).unwrap_err().to_string();
        assert!(e.contains("agents a and b have the same device (/dev/sda and /dev/sdb: wwn-1)"), "{e}");
        // Of one path on each, and devices of their own.
        let own =
            [of("a", "/dev/sda", &["wwn-1"]), of("b", "/dev/sda", &["wwn-2"]), of("c", "/dev/sda", &[])];
        assert_eq!(compare(&own).unwrap(), BTreeSet::new());
    }

    #[test]
    fn what_another_agent_has_mounted_is_refused_by_both_names() {
        let mut mounted = survey("b", vec![]);
        mounted.1.in_use.push((vec!["wwn-1".into()], "/dev/sdb is mounted on /srv".into()));
        let one = survey("a", vec![thing(SeenKind::Device, "/dev/sda", &["wwn-1"])]);
        let e = compare(&[one.clone(), mounted]).unwrap_err().to_string();
        assert!(e.contains("/dev/sda of agent a is in use on agent b: /dev/sdb is mounted on /srv"), "{e}");
        // Its own is for its own rules to judge.
        let mut own = one;
        own.1.in_use.push((vec!["wwn-1".into()], "/dev/sda is mounted on /srv".into()));
        assert!(compare(&[own]).is_ok());
    }

    #[test]
    fn a_directory_that_two_have_is_parted_and_an_image_refused() {
        let of = |agent, kind| survey(agent, vec![thing(kind, "/mnt/x", &["nfs s:/x inode 2"])]);
        let shared = [of("a", SeenKind::Directory), of("b", SeenKind::Directory)];
        assert_eq!(compare(&shared).unwrap(), BTreeSet::from(["t".to_owned()]));
        let e = compare(&[of("a", SeenKind::File), of("b", SeenKind::File)]).unwrap_err().to_string();
        assert!(e.contains("the same file (/mnt/x: nfs s:/x inode 2)"), "{e}");
    }
}
