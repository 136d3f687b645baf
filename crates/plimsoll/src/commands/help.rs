//! `plimsoll help`: of a command, or on a topic that no one command owns.

use clap::{Args, CommandFactory};
use plimsoll_report::table::wrap;

use crate::cli::{Cli, EXIT_CODES, find};
use crate::fault::{Exit, Fault};
use crate::output;

pub const EXAMPLES: &str = "\
Examples:
  plimsoll help object put
  plimsoll help verdicts";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct HelpCommand {
    /// Command, or topic: verdicts, rates, limits, networks, terms, units, fleet, credentials, exit-codes
    #[arg(value_name = "COMMAND|TOPIC", num_args = 0..)]
    pub words: Vec<String>,
}

/// Where a topic's text is.
#[derive(Debug, Clone, Copy)]
enum TopicText {
    /// The part of GLOSSARY.md below this heading: terms, and what they mean.
    Glossary(&'static str),
    /// Paragraphs; indented lines are commands.
    Prose(&'static str),
}

const GLOSSARY: &str = include_str!("../../../../GLOSSARY.md");

/// Name, what it is about, text. `limits` and `fleet` are commands, too: their help comes first.
const TOPICS: &[(&str, &str, TopicText)] = &[
    (
        "verdicts",
        "valid, invalid, undetermined: what a result's first word says",
        TopicText::Glossary("Validity"),
    ),
    (
        "rates",
        "rates, times, and the words for how well they are known",
        TopicText::Glossary("Rates and time"),
    ),
    ("limits", "caps, buckets, bursts, cliffs, and what proves them", TopicText::Glossary("Limits")),
    ("networks", "the words of network tests", TopicText::Glossary("Networks")),
    ("terms", "runs, plans, stages, agents and what else results name", TopicText::Glossary("Runs")),
    (
        "units",
        "sizes, rates, times, and how uncertainty is printed",
        TopicText::Prose(include_str!("../topics/units.md")),
    ),
    ("fleet", "one run over many machines", TopicText::Prose(include_str!("../topics/fleet.md"))),
    (
        "credentials",
        "where keys come from, and where they never go",
        TopicText::Prose(include_str!("../topics/credentials.md")),
    ),
    ("exit-codes", "what each exit code says", TopicText::Prose(EXIT_CODES)),
];

/// Wide enough for a sentence, narrow enough for every terminal.
const WIDTH: usize = 80;

pub fn help(c: &HelpCommand) -> Result<Exit, Fault> {
    output::print(&text(&c.words)?)?;
    Ok(Exit::Valid)
}

fn text(words: &[String]) -> Result<String, Fault> {
    let mut root = Cli::command();
    root.build();
    let [first, ..] = words else {
        return Ok(format!("{}\n{}", root.render_long_help(), contents()));
    };
    let topic = TOPICS.iter().find(|(name, ..)| name == first && words.len() == 1);
    let topic = topic.map(|(name, about, text)| format!("{name}: {about}\n\n{}", rendered(*text)));
    if let (Some(told), None) = (&topic, root.find_subcommand(first)) {
        return Ok(told.clone());
    }
    let command = find(&mut root, words).map_err(|problem| {
        let problem = format!("{problem}, and there is no topic '{}'", words.join(" "));
        Fault::input(problem, format!("Topics: {}. `plimsoll --help` lists the commands.", names()))
    })?;
    let told = command.render_long_help();
    Ok(topic.map_or_else(|| told.to_string(), |topic| format!("{told}\n{topic}")))
}

fn names() -> String {
    TOPICS.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ")
}

fn contents() -> String {
    let lines = TOPICS.iter().map(|(name, about, _)| format!("  {name:<12} {about}\n"));
    format!("Topics (plimsoll help TOPIC):\n{}", lines.collect::<String>())
}

fn rendered(text: TopicText) -> String {
    match text {
        TopicText::Glossary(heading) => section(heading).lines().filter_map(term).collect(),
        TopicText::Prose(text) => prose(text),
    }
}

/// What stands below a heading of the glossary, up to the next.
fn section(heading: &str) -> &'static str {
    let below = GLOSSARY.split("\n## ").find_map(|part| part.strip_prefix(heading)?.strip_prefix('\n'));
    below.expect("the topics name headings of the glossary")
}

/// A row of the glossary: the term, and indented below it what it means and where it is met.
fn term(row: &str) -> Option<String> {
    let mut cells = row.strip_prefix("| **")?.trim_end_matches(" |").splitn(3, " | ");
    let (term, meaning, place) = (cells.next()?, cells.next()?, cells.next()?);
    let meant = wrap(&plain(meaning), WIDTH, "    ", "    ");
    let place = wrap(&format!("({})", plain(place)), WIDTH, "    ", "    ");
    Some(format!("{}\n{meant}{place}\n", plain(term)))
}

/// Without the marks of Markdown that a terminal does not need.
fn plain(text: &str) -> String {
    text.replace("**", "").replace('`', "")
}

/// Paragraphs are wrapped; commands, and what is aligned, stay as they are.
fn prose(text: &str) -> String {
    let mut out = String::new();
    let mut paragraph = String::new();
    for line in text.lines().chain([""]) {
        let as_it_is = line.starts_with(' ') || line.is_empty();
        if as_it_is && !paragraph.is_empty() {
            out += &wrap(&plain(&std::mem::take(&mut paragraph)), WIDTH, "", "");
        }
        if as_it_is {
            out += line;
            out.push('\n');
        } else {
            paragraph += line;
            paragraph.push(' ');
        }
    }
    format!("{}\n", out.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topic_has_a_text_that_fits_a_terminal() {
        for (name, about, _) in TOPICS {
            let text = text(&[(*name).to_owned()]).unwrap();
            let text = &text[text.find(about).expect(name)..];
            assert!(text.lines().count() > 8, "{name}: {text}");
            assert!(!text.contains("**") && !text.contains('`'), "{name}: {text}");
            for line in text.lines().filter(|l| !l.starts_with("  plimsoll")) {
                assert!(line.chars().count() <= WIDTH, "{name}: {line}");
            }
        }
    }

    #[test]
    fn each_topic_is_named_in_the_help_of_help() {
        let command = HelpCommand::augment_args(clap::Command::new("help"));
        let told = command.get_arguments().find_map(|a| a.get_help()).unwrap().to_string();
        for (name, ..) in TOPICS {
            assert!(told.contains(name), "{name} is not in: {told}");
            assert!(text(&[]).unwrap().contains(name), "{name}");
        }
    }

    #[test]
    fn commands_are_found_at_any_depth_and_what_is_neither_is_refused() {
        let of = |line: &str| text(&line.split(' ').map(Into::into).collect::<Vec<_>>());
        assert!(of("object put").unwrap().contains("plimsoll object put"));
        let both = of("fleet").unwrap();
        assert!(
            both.contains("Usage: plimsoll fleet") && both.contains("A fleet lets any command"),
            "{both}"
        );
        let fault = of("object stir").unwrap_err().to_string();
        assert!(fault.contains("no command 'stir'") && fault.contains("verdicts"), "{fault}");
    }
}
