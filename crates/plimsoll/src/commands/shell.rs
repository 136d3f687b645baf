//! What a shell and a manual need of the command line: completions and man pages, made from the commands' own definitions.

use plimsoll_model::count::counted;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory, ValueEnum};
use plimsoll_store::whole::{beside, replace_whole};

use crate::cli::{Cli, find};
use crate::fault::{Exit, Fault};
use crate::output;

pub const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  plimsoll completions bash > /etc/bash_completion.d/plimsoll
  plimsoll completions zsh > ~/.zfunc/_plimsoll
  plimsoll completions fish > ~/.config/fish/completions/plimsoll.fish";

pub const MAN_EXAMPLES: &str = "\
Examples:
  plimsoll man object put > plimsoll-object-put.1
  plimsoll man --out /usr/local/share/man/man1";

#[derive(Debug, Clone, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub struct CompletionsCommand {
    /// Shell that completes
    #[arg(value_name = "SHELL")]
    pub shell: CompletedShell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum CompletedShell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = MAN_EXAMPLES)]
pub struct ManCommand {
    /// Command, such as `object put` [default: plimsoll itself]
    #[arg(value_name = "COMMAND", num_args = 0..)]
    pub words: Vec<String>,
    /// Write the pages of all commands into this directory
    #[arg(long, value_name = "DIR", conflicts_with = "words")]
    pub out: Option<PathBuf>,
}

pub fn completions(c: &CompletionsCommand) -> Result<Exit, Fault> {
    output::print(&completion(c.shell))?;
    Ok(Exit::Valid)
}

fn completion(shell: CompletedShell) -> String {
    use clap_complete::{aot, generate};
    let (mut root, mut text) = (Cli::command(), Vec::new());
    match shell {
        CompletedShell::Bash => generate(aot::Bash, &mut root, "plimsoll", &mut text),
        CompletedShell::Zsh => generate(aot::Zsh, &mut root, "plimsoll", &mut text),
        CompletedShell::Fish => generate(aot::Fish, &mut root, "plimsoll", &mut text),
    }
    String::from_utf8(text).expect("completions are text")
}

pub fn man(c: &ManCommand) -> Result<Exit, Fault> {
    let mut root = Cli::command();
    root.build();
    let Some(out) = &c.out else {
        let command = find(&mut root, &c.words)
            .map_err(|problem| Fault::input(problem, "`plimsoll --help` lists the commands."))?;
        output::print(&page(command))?;
        return Ok(Exit::Valid);
    };
    let mut pages = Vec::new();
    pages_of(&root, "plimsoll".to_owned(), &mut pages);
    // As `install -d` does: a fresh machine has no man1.
    fs::create_dir_all(out).map_err(|e| {
        Fault::input(format!("{} is no directory: {e}", out.display()), "Name a directory with --out.")
    })?;
    // All are looked at before the first is written.
    pages.iter().try_for_each(|(name, _)| check_page(&out.join(name)))?;
    pages.iter().try_for_each(|(name, text)| write_page(&out.join(name), text))?;
    output::tell(format_args!("plimsoll: {} in {}", counted(pages.len(), "page"), Path::new(out).display()));
    Ok(Exit::Valid)
}

/// What every page begins with, as a comment: by it one is known for ours, and may be replaced.
const PAGE_MARK: &str = ".\\\" Written by plimsoll man\n";

/// Only a page of ours, or an empty file, is replaced; what a link leads to is somebody's.
fn check_page(file: &Path) -> Result<(), Fault> {
    let problem = match fs::symlink_metadata(file) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => e.to_string(),
        Ok(meta) if meta.is_symlink() => "it is a symbolic link".into(),
        Ok(meta) if !meta.is_file() => "it is not a regular file".into(),
        Ok(meta) if meta.len() == 0 => return Ok(()),
        Ok(_) => match begins_as_page(file) {
            Ok(true) => return Ok(()),
            Ok(false) => "it exists and is not a page that plimsoll wrote".into(),
            Err(e) => e.to_string(),
        },
    };
    Err(Fault::input(
        format!("{} cannot be written: {problem}", file.display()),
        "No page was written. Move it away, or name another directory with --out.",
    ))
}

fn begins_as_page(file: &Path) -> io::Result<bool> {
    let mut head = Vec::new();
    // A pipe that took the name meanwhile is not waited for.
    let open = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(file)?;
    open.take(PAGE_MARK.len() as u64).read_to_end(&mut head)?;
    Ok(head == PAGE_MARK.as_bytes())
}

/// Whole, by way of a name that nobody uses: a reader finds the old or the new page, and nothing is written through a link.
fn write_page(file: &Path, text: &str) -> Result<(), Fault> {
    let put = beside(file).and_then(|temporary| replace_whole(file, &temporary, text.as_bytes(), 0o666));
    put.map_err(|e| {
        Fault::input(
            format!("{} cannot be written: {e}", file.display()),
            "Check permissions and free space, or name another directory with --out.",
        )
    })
}

/// `plimsoll-object-put.1`, for the command and for those below it.
fn pages_of(command: &clap::Command, name: String, pages: &mut Vec<(String, String)>) {
    for sub in command.get_subcommands().filter(|s| s.get_name() != "help") {
        pages_of(sub, format!("{name}-{}", sub.get_name()), pages);
    }
    pages.push((format!("{name}.1"), page(command)));
}

fn page(command: &clap::Command) -> String {
    let mut text = PAGE_MARK.as_bytes().to_vec();
    // The whole name, as it is typed; a page is called by it with dashes.
    let typed = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
    let named = command.clone().display_name(typed.replace(' ', "-"));
    clap_mangen::Man::new(named).render(&mut text).expect("memory takes it");
    String::from_utf8(text).expect("man pages are text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_know_commands_and_flags_at_every_depth() {
        for shell in [CompletedShell::Bash, CompletedShell::Zsh, CompletedShell::Fish] {
            let text = completion(shell);
            for word in ["speedtest", "completions", "concurrency", "on-agent-loss"] {
                assert!(text.contains(word), "{shell:?} has no {word}");
            }
        }
    }

    #[test]
    fn each_command_has_a_page_with_its_examples_and_its_whole_name() {
        let mut root = Cli::command();
        root.build();
        let mut pages = Vec::new();
        pages_of(&root, "plimsoll".to_owned(), &mut pages);
        let of = |name: &str| &pages.iter().find(|(n, _)| n == name).expect(name).1;
        assert!(of("plimsoll.1").contains(".TH plimsoll 1"));
        let put = of("plimsoll-object-put.1");
        assert!(put.contains(".TH plimsoll-object-put 1") && put.contains("plimsoll object put"), "{put}");
        assert!(put.contains("Examples:"), "{put}");
        assert!(pages.iter().all(|(_, text)| text.starts_with(".\\\" Written by plimsoll man\n.")), "{put}");
    }

    fn written_in(dir: &Path) -> Result<Exit, Fault> {
        man(&ManCommand { words: Vec::new(), out: Some(dir.to_owned()) })
    }

    #[test]
    fn pages_of_ours_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        written_in(dir.path()).unwrap();
        let one = dir.path().join("plimsoll-object-put.1");
        let text = fs::read_to_string(&one).unwrap();
        // Of an older version, and one of which nothing was written.
        fs::write(&one, format!("{PAGE_MARK}of another version")).unwrap();
        fs::write(dir.path().join("plimsoll.1"), "").unwrap();
        written_in(dir.path()).unwrap();
        assert_eq!(fs::read_to_string(&one).unwrap(), text);
        assert!(fs::read_dir(dir.path()).unwrap().all(|e| e.unwrap().path().extension().unwrap() == "1"));
    }

    #[test]
    fn what_is_no_page_of_ours_is_refused_before_any_is_written() {
        let theirs = |make: fn(&Path)| {
            let dir = tempfile::tempdir().unwrap();
            // The last that is written.
            let place = dir.path().join("plimsoll.1");
            make(&place);
            let told = written_in(dir.path()).unwrap_err();
            assert!(told.exit == Exit::Input && told.what.contains("plimsoll.1"), "{told}");
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "{told}");
            told.what
        };
        assert!(
            theirs(|p| fs::write(p, ".TH plimsoll 1").unwrap()).contains("not a page that plimsoll wrote")
        );
        assert!(theirs(|p| std::os::unix::fs::symlink("nowhere", p).unwrap()).contains("symbolic link"));
        assert!(theirs(|p| fs::create_dir(p).unwrap()).contains("not a regular file"));
    }
}
