//! What a shell and a manual need of the command line: completions and man pages, made from the commands' own definitions.

use plimsoll_model::count::counted;
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory, ValueEnum};

use crate::cli::{Cli, find};
use crate::fault::{Exit, Fault};
use crate::{out_file, output};

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
    if !out.is_dir() {
        return Err(Fault::input(format!("{} is no directory", out.display()), "Make it first."));
    }
    for (name, text) in &pages {
        out_file::write(&out.join(name), text.as_bytes())?;
    }
    output::tell(format_args!("plimsoll: {} in {}", counted(pages.len(), "page"), Path::new(out).display()));
    Ok(Exit::Valid)
}

/// `plimsoll-object-put.1`, for the command and for those below it.
fn pages_of(command: &clap::Command, name: String, pages: &mut Vec<(String, String)>) {
    for sub in command.get_subcommands().filter(|s| s.get_name() != "help") {
        pages_of(sub, format!("{name}-{}", sub.get_name()), pages);
    }
    pages.push((format!("{name}.1"), page(command)));
}

fn page(command: &clap::Command) -> String {
    let mut text = Vec::new();
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
    }
}
