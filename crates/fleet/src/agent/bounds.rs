//! What an agent's own flags let be done on its machine. Whoever conducts cannot have more of it.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use plimsoll_lower::planned_ns;
use plimsoll_model::Plan;
use plimsoll_model::plan::TargetSpec;
use plimsoll_net::AllowedNetworks;
use plimsoll_setup::s3::ReachTold;

use crate::error::AgentRefusal;

/// A machine's ceiling is measured for no longer, each of its measurements. (A choice: hundreds of times what is usual.)
const LONGEST_CALIBRATION: Duration = Duration::from_secs(600);

/// Nothing on this machine is touched but what is named here; storage that is reached over the network may be, unless endpoints are
/// named.
#[derive(Debug, Clone, Default)]
pub struct Bounds {
    /// Devices that may be read and written.
    pub devices: Vec<PathBuf>,
    /// Directories in which files may be made, read and written.
    pub dirs: Vec<PathBuf>,
    /// URLs, in which `*` stands for anything. None: all.
    pub endpoints: Vec<String>,
    /// Of a run, from when the agent was hired.
    pub max_duration: Option<Duration>,
    /// Addresses that network tests may use.
    pub nets: AllowedNetworks,
    /// It takes part in network tests only.
    pub network_only: bool,
}

/// What a person would allow: not the directory of ours that is still to be made, but the one that it is made in.
fn allowable(path: &Path) -> &Path {
    let made_in = path.parent().filter(|p| !path.exists() && p.is_dir() && p.parent().is_some());
    made_in.unwrap_or(path)
}

impl Bounds {
    /// Refuses a plan that is outside, before anything of it is touched.
    pub fn check(&self, plan: &Plan) -> Result<(), AgentRefusal> {
        for spec in plan.targets.values() {
            match spec {
                TargetSpec::Block(b) => {
                    for path in std::iter::once(&b.path).chain(&b.also) {
                        self.device(Path::new(path))?;
                    }
                }
                TargetSpec::Files(f) => self.dir(Path::new(&f.directory))?,
                TargetSpec::S3(s3) => s3.redirects_to.iter().try_for_each(|e| self.endpoint(e))?,
                TargetSpec::Null | TargetSpec::Sim(_) => {}
            }
        }
        self.duration(plan)
    }

    /// Refuses load on storage, of whatever kind.
    pub fn load(&self) -> Result<(), AgentRefusal> {
        if self.network_only {
            return Err(AgentRefusal::new(
                "it serves, and generates no load on storage",
                "Leave it out (--agents)",
            ));
        }
        Ok(())
    }

    /// Refuses measurements of this machine's ceiling that load it for longer than a run may, or than any need.
    pub fn calibration(&self, each: Duration) -> Result<(), AgentRefusal> {
        self.load()?;
        let most = self.max_duration.map_or(LONGEST_CALIBRATION, |most| most.min(LONGEST_CALIBRATION));
        if each <= most {
            return Ok(());
        }
        Err(AgentRefusal::new(
            format!("it measures its ceiling for no longer than {} s", most.as_secs()),
            "Use a shorter --duration",
        ))
    }

    /// Refuses places that are outside.
    pub fn check_claims<'a>(&self, claims: impl Iterator<Item = &'a ReachTold>) -> Result<(), AgentRefusal> {
        claims.flat_map(|c| &c.endpoints).try_for_each(|e| self.endpoint(e))
    }

    fn device(&self, path: &Path) -> Result<(), AgentRefusal> {
        let real = real(path);
        if self.devices.iter().any(|d| self::real(d) == real) || self.is_in_dirs(&real) {
            return Ok(());
        }
        Err(AgentRefusal::new(
            format!("it does not let {} be used", path.display()),
            format!(
                "Start it with --allow-device {0}, or --allow-dir for a file, if {0} may be overwritten",
                path.display()
            ),
        ))
    }

    /// Refuses a directory that is outside.
    pub fn dir(&self, path: &Path) -> Result<(), AgentRefusal> {
        if self.is_in_dirs(&real(path)) {
            return Ok(());
        }
        Err(AgentRefusal::new(
            format!("it does not let files be made in {}", path.display()),
            format!("Start it with --allow-dir {}", allowable(path).display()),
        ))
    }

    fn is_in_dirs(&self, path: &Path) -> bool {
        self.dirs.iter().any(|d| path.starts_with(real(d)))
    }

    fn endpoint(&self, url: &str) -> Result<(), AgentRefusal> {
        let plain = url.trim_end_matches('/');
        if self.endpoints.is_empty() || self.endpoints.iter().any(|p| fits(p.trim_end_matches('/'), plain)) {
            return Ok(());
        }
        Err(AgentRefusal::new(
            format!("it does not let {url} be used, only {}", self.endpoints.join(", ")),
            format!("Start it with --allow-endpoint {url}"),
        ))
    }

    /// What a controller makes is ended by the clock.
    fn duration(&self, plan: &Plan) -> Result<(), AgentRefusal> {
        let Some(most) = self.max_duration else { return Ok(()) };
        let planned = Duration::from_nanos(plan.stages.iter().filter_map(planned_ns).sum());
        if planned <= most {
            return Ok(());
        }
        Err(AgentRefusal::new(
            format!(
                "it does not work for longer than {} s, and the plan takes {} s",
                most.as_secs(),
                planned.as_secs()
            ),
            "Shorten the run, or start it with a longer --max-duration (preparing, starting and ending count, too)",
        ))
    }
}

/// Where a path leads, as far as it is there. What leads back up behind what is not there leads nowhere.
fn real(path: &Path) -> PathBuf {
    let mut known = path;
    loop {
        if let Ok(real) = std::fs::canonicalize(known) {
            let rest = path.strip_prefix(known).unwrap_or(Path::new(""));
            let climbs = rest.components().any(|c| matches!(c, Component::ParentDir));
            return if climbs { PathBuf::new() } else { real.join(rest) };
        }
        match known.parent() {
            Some(parent) if parent != Path::new("") => known = parent,
            _ => return std::env::current_dir().map(|d| d.join(path)).unwrap_or_default(),
        }
    }
}

/// `*` stands for any text, also for none.
fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
            let starts = (0..=rest.len()).filter(|i| rest.is_char_boundary(*i));
            starts.into_iter().any(|i| fits(after, &rest[i..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(target: &str) -> Plan {
        Plan::from_toml(&format!(
            "version = 1\n[targets.t]\n{target}\n[[stage]]\nwarmup = \"0s\"\n[[stage.workload]]\nname = \"w\"\n\
             mix = {{ read = 1 }}\nstop = {{ duration = \"60s\" }}\n"
        ))
        .unwrap()
    }

    fn files(dir: &Path) -> Plan {
        plan(&format!("kind = \"files\"\ndirectory = \"{}\"\nfile_size = \"1MiB\"", dir.display()))
    }

    #[test]
    fn the_directory_to_allow_is_one_that_a_person_named() {
        let dir = tempfile::tempdir().unwrap();
        let ours = dir.path().join("plimsoll-file");
        let why = Bounds::default().dir(&ours).unwrap_err();
        assert!(why.remedy.ends_with(&format!("--allow-dir {}", dir.path().display())), "{}", why.remedy);
        let gone = dir.path().join("a/b");
        assert!(Bounds::default().dir(&gone).unwrap_err().remedy.ends_with(&gone.display().to_string()));
        assert_eq!(allowable(Path::new("/none-of-ours")), Path::new("/none-of-ours"));
    }

    #[test]
    fn nothing_here_is_touched_unless_it_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let block = plan("kind = \"block\"\npath = \"/dev/sdz\"");
        let refused = Bounds::default().check(&block).unwrap_err();
        assert!(
            refused.problem.contains("/dev/sdz") && refused.remedy.contains("--allow-device"),
            "{refused:?}"
        );
        Bounds { devices: vec!["/dev/sdz".into()], ..Bounds::default() }.check(&block).unwrap();
        let inside = files(&dir.path().join("not/there"));
        assert!(Bounds::default().check(&inside).is_err());
        let bounds = Bounds { dirs: vec![dir.path().into()], ..Bounds::default() };
        bounds.check(&inside).unwrap();
        assert!(bounds.check(&files(&dir.path().join("not/../../up"))).is_err());
        assert!(bounds.check(&files(dir.path().parent().unwrap())).is_err());
        std::os::unix::fs::symlink("/etc", dir.path().join("link")).unwrap();
        assert!(bounds.check(&files(&dir.path().join("link"))).is_err());
    }

    #[test]
    fn endpoints_are_free_until_one_is_named() {
        let told = |url: &str| ReachTold {
            endpoints: vec![url.into()],
            region: String::new(),
            prefix: String::new(),
            is_here: false,
            made_keys: None,
            made_ca_file: None,
        };
        let check = |bounds: &Bounds, url| bounds.check_claims([told(url)].iter());
        check(&Bounds::default(), "http://s3:9000").unwrap();
        let bounds = Bounds { endpoints: vec!["https://*.example.net:9000".into()], ..Bounds::default() };
        check(&bounds, "https://node1.example.net:9000").unwrap();
        for other in
            ["http://node1.example.net:9000", "https://example.com", "https://a.example.net:9000.evil"]
        {
            assert!(check(&bounds, other).unwrap_err().problem.contains(other));
        }
    }

    #[test]
    fn a_ceiling_is_measured_within_bounds_and_never_by_who_serves() {
        let (free, s) = (Bounds::default(), Duration::from_secs);
        free.calibration(s(600)).unwrap();
        assert!(free.calibration(s(601)).unwrap_err().problem.contains("600 s"));
        let short = Bounds { max_duration: Some(s(30)), ..Bounds::default() };
        short.calibration(s(30)).unwrap();
        assert!(short.calibration(s(31)).unwrap_err().problem.contains("30 s"));
        let serves = Bounds { network_only: true, ..Bounds::default() };
        assert!(serves.calibration(s(1)).unwrap_err().problem.contains("no load on storage"));
    }

    #[test]
    fn a_plan_that_lasts_too_long_is_refused() {
        let bounds = |s| Bounds { max_duration: Some(Duration::from_secs(s)), ..Bounds::default() };
        let plan = plan("kind = \"null\"").clone();
        bounds(60).check(&plan).unwrap();
        assert!(bounds(59).check(&plan).unwrap_err().problem.contains("60 s"));
    }
}
