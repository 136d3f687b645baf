//! What the help and the README show: every command in them is one that the parser takes.

use clap::{Command, CommandFactory, Parser};

use crate::cli::Cli;

/// The help of every command, by its whole name; `examples` is its own, or that of the group it is in.
fn walk(command: &Command, name: &str, inherited: &str, told: &mut Vec<(String, String)>) {
    let own = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let help = if own.is_empty() { inherited.to_owned() } else { own };
    // What the root says is of no command.
    let passed_on = if name == "plimsoll" { "" } else { &help };
    for sub in command.get_subcommands() {
        walk(sub, &format!("{name} {}", sub.get_name()), passed_on, told);
    }
    told.push((name.to_owned(), help));
}

/// A command of ours, whatever machine it is called on. A token in its environment is as good as its flag.
fn own(line: &str) -> Option<String> {
    let called =
        line.strip_prefix("ssh ").and_then(|rest| rest.split_once(' ')).map_or(line, |(_, rest)| rest);
    let joins = called.strip_prefix("PLIMSOLL_JOIN=").and_then(|rest| rest.split_once(' '));
    let own = joins.map_or(called.to_owned(), |(token, rest)| format!("{rest} --join {token}"));
    let keyed = own.strip_prefix("PLIMSOLL_NET_KEY=").and_then(|rest| rest.split_once(' '));
    let own = keyed.map_or(own.clone(), |(_, rest)| rest.to_owned());
    own.starts_with("plimsoll ").then_some(own)
}

/// The commands in a text whose examples are indented by `indent`, one a line, `\` at the end going on.
fn examples(text: &str, indent: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        let Some(line) = line.strip_prefix(indent) else {
            goes_on = false;
            continue;
        };
        if goes_on {
            let last = found.last_mut().expect("something goes on");
            last.push_str(line.trim_end_matches('\\'));
        } else if let Some(command) = own(line) {
            found.push(command.trim_end_matches('\\').to_owned());
        } else {
            continue;
        }
        goes_on = line.ends_with('\\');
    }
    // A comment; and several commands in a line.
    let commands = found.iter().flat_map(|l| l.split("  #").next().unwrap_or(l).split(" ; "));
    let commands = commands.flat_map(|l| l.split(" && ")).flat_map(|l| l.split(" | "));
    commands.map(str::trim).map(|l| own(l).unwrap_or_else(|| l.to_owned())).collect()
}

/// As a shell would: quotes keep words together, and a redirection is not the program's.
fn words(line: &str) -> Vec<String> {
    let line = line.split(" > ").next().unwrap_or(line);
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().expect("never empty").push(c),
        }
    }
    words.retain(|w| !w.is_empty());
    words
}

fn refused(line: &str) -> Option<String> {
    // `...` and `RUN...` stand for more of the same, in a list and not in a flag.
    let words = words(line).into_iter().filter(|w| w != "...");
    Cli::try_parse_from(words).err().map(|e| format!("{line}\n{e}"))
}

#[test]
fn every_command_has_examples_and_they_are_commands() {
    let mut told = Vec::new();
    walk(&Cli::command(), "plimsoll", "", &mut told);
    let leaf = |name: &str| !told.iter().any(|(other, _)| other.starts_with(&format!("{name} ")));
    for (name, help) in told.iter().filter(|(name, _)| leaf(name)) {
        assert!(!examples(help, "  ").is_empty(), "{name} --help shows no example");
    }
    let wrong: Vec<_> =
        told.iter().flat_map(|(_, h)| examples(h, "  ")).filter_map(|l| refused(&l)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn examples_fit_a_terminal_of_80_columns() {
    let mut told = Vec::new();
    walk(&Cli::command(), "plimsoll", "", &mut told);
    for (name, help) in told {
        for line in help.lines().filter(|l| l.starts_with("  ")) {
            assert!(line.chars().count() <= 80, "{name}: {line}");
        }
    }
}

#[test]
fn the_commands_of_the_readme_are_commands() {
    let readme = include_str!("../../../README.md");
    let shown = examples(readme, "    ");
    assert!(shown.len() > 20, "{shown:?}");
    let wrong: Vec<_> = shown.iter().filter_map(|l| refused(l)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The pages under docs/, by their paths.
fn pages() -> Vec<(std::path::PathBuf, String)> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut folders = vec![root];
    let mut pages = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                let text = std::fs::read_to_string(&path).unwrap();
                pages.push((path, text));
            }
        }
    }
    pages
}

#[test]
fn the_commands_of_the_documentation_are_commands() {
    let shown: Vec<String> = pages().iter().flat_map(|(_, text)| examples(text, "    ")).collect();
    assert!(shown.len() >= 8, "{shown:?}");
    let wrong: Vec<_> = shown.iter().filter_map(|l| refused(l)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_links_of_the_documentation_lead_somewhere() {
    for (page, text) in pages() {
        // Headings as GitHub makes anchors of them; ours are single words.
        let heads: Vec<String> = text
            .lines()
            .filter_map(|l| l.strip_prefix('#'))
            .map(|l| l.trim_start_matches('#').trim().to_lowercase().replace(' ', "-"))
            .collect();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, anchor) = target.split_once('#').map_or((target, None), |(f, a)| (f, Some(a)));
            if target.starts_with("http") {
                continue;
            }
            let there = page.parent().unwrap().join(file);
            assert!(file.is_empty() || there.exists(), "{}: {target}", page.display());
            let known = |a: &str| heads.iter().any(|h| h == a);
            assert!(!file.is_empty() || anchor.is_some_and(known), "{}: {target}", page.display());
        }
    }
}

#[test]
fn the_cluster_file_of_the_readme_is_one() {
    let readme = include_str!("../../../README.md");
    let files = readme.split("```toml\n").skip(1).filter_map(|t| t.split("```").next());
    let text = files.into_iter().find(|t| t.contains("[[node]]")).expect("there is an example");
    plimsoll_model::Cluster::from_toml(text).unwrap_or_else(|e| panic!("{e}"));
}

/// What a first run needs stands first, under "Options"; all else has a heading of its own.
#[test]
fn help_begins_with_the_options_that_matter() {
    for (name, first) in [
        ("object put", &["size", "endpoint", "bucket", "concurrency", "duration"][..]),
        ("object get", &["size", "endpoint", "bucket", "concurrency", "duration"]),
        ("object sweep", &["ops", "sizes", "repeat", "endpoint", "bucket", "concurrency", "duration"]),
        ("limits object", &["op", "size", "budget", "endpoint", "bucket", "concurrency", "duration"]),
        ("speedtest object", &["op", "size", "budget", "endpoint", "bucket", "concurrency", "duration"]),
        ("check", &["against", "for", "max-load"]),
        ("block", &["size", "pattern", "bs", "iodepth", "runtime"]),
        ("block sweep", &["patterns", "repeat", "size", "pattern", "bs", "iodepth", "runtime"]),
    ] {
        let mut root = Cli::command();
        root.build();
        let mut command = &root;
        for word in name.split(' ') {
            command = command.find_subcommand(word).unwrap();
        }
        let shown =
            command.get_arguments().filter(|a| a.get_help_heading().is_none() && a.get_long().is_some());
        let shown: Vec<&str> = shown.filter_map(|a| a.get_long()).filter(|l| *l != "help").collect();
        assert_eq!(shown, first, "{name}");
    }
}
