//! What the help and the README show: every command in them is one that the parser takes.

use clap::{Command, CommandFactory, Parser};

use crate::args::ArgsContext;
use crate::cli::{self, Cli};

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
    let words: Vec<String> = words(line).into_iter().filter(|w| w != "...").collect();
    let parsed = match Cli::try_parse_from(&words) {
        Ok(parsed) => parsed,
        Err(e) => return Some(format!("{line}\n{e}")),
    };
    // S3 has no shorter names of buckets.
    if words.windows(2).any(|w| w[0] == "--bucket" && w[1].len() < 3) {
        return Some(format!("{line}\nno name of a bucket"));
    }
    // What is cut short has no plan.
    if line.contains("...") {
        return None;
    }
    let context = ArgsContext::with(Some("http://h"), 7);
    let plan = match &parsed.command {
        cli::Command::Object(c) => c.plan(&context),
        cli::Command::Limits(c) => c.plan(&context),
        cli::Command::Speedtest(c) => c.plan(&context),
        _ => return None,
    };
    // Files that an example names are not here.
    let fault = plan.err().map(|f| f.to_string()).filter(|f| !f.contains("cannot be read"));
    fault.map(|f| format!("{line}\n{f}"))
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
    assert!(shown.len() >= 60, "{shown:?}");
    let wrong: Vec<_> = shown.iter().filter_map(|l| refused(l)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Commands within a sentence: `plimsoll runs show`. They may be cut short, but each word of theirs is one, and each flag.
#[test]
fn what_the_documentation_calls_a_command_is_one() {
    let mut root = Cli::command();
    root.build();
    let readme = (std::path::PathBuf::from("README.md"), include_str!("../../../README.md").to_owned());
    let mut seen = 0;
    for (page, text) in pages().into_iter().chain([readme]) {
        // Blocks are no sentences: their commands are parsed whole.
        let sentences: String = text
            .split("```")
            .step_by(2)
            .flat_map(str::lines)
            .filter(|l| !l.starts_with("    "))
            .collect::<Vec<_>>()
            .join("\n");
        for code in sentences.split('`').skip(1).step_by(2) {
            let line = code.replace('\n', " ");
            let Some(rest) = line.split(" ; ").next().and_then(|l| l.strip_prefix("plimsoll ")) else {
                continue;
            };
            let words = words(rest.split(" | ").next().unwrap_or(rest));
            let mut command = &root;
            let mut rest = words.iter().peekable();
            while let Some(below) = rest.peek().and_then(|w| command.find_subcommand(w)) {
                (command, seen) = (below, seen + 1);
                rest.next();
            }
            let is_group = command.get_subcommands().next().is_some();
            let next = rest
                .peek()
                .filter(|w| w.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !w.starts_with('-'));
            assert!(!is_group || next.is_none(), "{}: `{line}`: no such command", page.display());
            for flag in rest.filter_map(|w| w.strip_prefix("--")).filter(|f| !f.is_empty()) {
                let flag = flag.split('=').next().unwrap_or(flag);
                let known = command.get_arguments().any(|a| a.get_long() == Some(flag));
                assert!(known || is_group, "{}: `{line}`: no flag --{flag}", page.display());
            }
        }
    }
    assert!(seen > 50, "{seen}");
}

/// Each page is reached from the first one.
#[test]
fn every_page_of_the_documentation_is_in_its_index() {
    let pages = pages();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let index: String = pages
        .iter()
        .filter(|(p, _)| p.file_name().is_some_and(|n| n == "README.md"))
        .map(|(_, text)| text.as_str())
        .collect();
    for (page, _) in pages.iter().filter(|(p, _)| p.file_name().is_some_and(|n| n != "README.md")) {
        let name = page.strip_prefix(&root).unwrap().display().to_string();
        assert!(index.contains(&format!("]({name})")), "{name} is in no index");
    }
}

#[test]
fn the_links_of_the_documentation_lead_somewhere() {
    let readme = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let more = [(readme, include_str!("../../../README.md").to_owned())];
    for (page, text) in pages().into_iter().chain(more) {
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
