//! Flags that other tools have, and what is meant by them here. The parser's own guess goes by spelling, and would have
//! somebody who types `--numjobs` name a file of that name.

use std::io::Write as _;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches};
use plimsoll_model::credentials::{
    credentials_in, holds_credential, is_secret_header_value, is_secret_label,
};

use crate::cli::Cli;
use crate::fault::{Exit, Fault};
use crate::{defaults, output, values};

/// Of fio, warp and elbencho: the flag, and what to write.
const FLAGS: &[(&str, &str)] = &[
    ("--rw", "--pattern: read, write, randread, randwrite, rw or randrw"),
    ("--readwrite", "--pattern: read, write, randread, randwrite, rw or randrw"),
    ("--rand", "--pattern randread or randwrite"),
    ("--direct", "omit it: I/O is direct unless --buffered is given"),
    ("--numjobs", "--jobs"),
    ("--filename", "the path itself, without a flag: plimsoll block PATH"),
    ("--directory", "plimsoll file DIR, or plimsoll drive DIR..."),
    ("--time_based", "omit it: with --runtime (--duration), a run always lasts that long"),
    ("--ioengine", "--ring: io_uring, libaio or psync"),
    ("--blocksize", "--bs (plimsoll block), --size (plimsoll object)"),
    ("--bs", "--size, the size of objects; --bs is for plimsoll block"),
    ("--block", "--bs (plimsoll block), --size (plimsoll object)"),
    ("--bsrange", "--bs 4KiB..64KiB"),
    ("--bssplit", "--bs 4KiB=60,64KiB=40"),
    ("--iodepth", "--concurrency; --iodepth is for plimsoll block"),
    ("--concurrency", "--iodepth (of each job) and --jobs; --concurrency is for plimsoll object"),
    ("--runtime", "--duration"),
    ("--timelimit", "--duration (plimsoll object), --runtime (plimsoll block)"),
    ("--ramp_time", "--warmup"),
    ("--rate_iops", "--rate, for example --rate 800/s"),
    ("--randseed", "--seed"),
    ("--randrepeat", "--seed: with the same seed the order is the same"),
    ("--group_reporting", "omit it: each job gets a line, and so does their sum"),
    ("--refill_buffers", "omit it: data is never written twice, unless --dedupable says so"),
    ("--buffer_compress_percentage", "--compressible"),
    ("--output-format", "--json, --markdown or --csv; plimsoll fio JOB.fio has fio's own forms"),
    ("--rwmixwrite", "--rwmixread, with 100 minus this value"),
    (
        "--access-key",
        "AWS_ACCESS_KEY_ID in the environment, or --profile: keys are never on the command line",
    ),
    (
        "--secret-key",
        "AWS_SECRET_ACCESS_KEY in the environment, or --profile: keys are never on the command line",
    ),
    (
        "--session-token",
        "AWS_SESSION_TOKEN in the environment, or --profile: keys are never on the command line",
    ),
    ("--s3key", "AWS_ACCESS_KEY_ID in the environment, or --profile: keys are never on the command line"),
    (
        "--s3secret",
        "AWS_SECRET_ACCESS_KEY in the environment, or --profile: keys are never on the command line",
    ),
    ("--host", "--endpoint http://HOST:PORT, or https://"),
    (
        "--hosts",
        "--endpoint, once for each or as http://node{1...4}:9000; --fleet, for load that comes from many machines",
    ),
    ("--s3endpoints", "--endpoint http://HOST:PORT, once for each"),
    ("--tls", "--endpoint https://HOST:PORT"),
    ("--lookup", "--addressing"),
    ("--concurrent", "--concurrency"),
    ("--obj.size", "--size"),
    ("--obj.randsize", "--size lognormal:64KiB:1.2:16MiB, or a range such as 1KiB..64KiB"),
    ("--part.size", "--part-size"),
    ("--noclear", "--keep, or --dataset NAME for objects that later runs reuse"),
    ("--keep-data", "--keep, or --dataset NAME for objects that later runs reuse"),
    ("--noprefix", "omit it: a run always has its own prefix, so it never removes anyone else's objects"),
    (
        "--autoterm",
        "omit it: a run lasts for its --duration, and reports the confidence interval of its rate",
    ),
    ("--rps-limit", "--rate, for example --rate 800/s"),
    ("--get-distrib", "--mix, for example --mix get=45,stat=30,put=15,delete=10"),
    ("--put-distrib", "--mix, for example --mix get=45,stat=30,put=15,delete=10"),
    ("--stat-distrib", "--mix, for example --mix get=45,stat=30,put=15,delete=10"),
    ("--delete-distrib", "--mix, for example --mix get=45,stat=30,put=15,delete=10"),
    ("--benchdata", "omit it: every run is stored (--runs-dir); see plimsoll runs show"),
    ("--md5", "--checksum"),
    ("--warp-client", "--fleet, with `plimsoll fleet up` here and `plimsoll agent` on each machine"),
    ("--service", "plimsoll agent on each machine, with the token of `plimsoll fleet up`"),
    ("--client", "--fleet, with `plimsoll fleet up` here and `plimsoll agent` on each machine"),
    ("--server", "plimsoll agent on each machine, with the token of `plimsoll fleet up`"),
    ("--objects", "--max-ops, for so many uploads; for reads --objects says how many are prepared"),
    ("--csvfile", "--csv, which goes to stdout"),
    ("--jsonfile", "--json, which goes to stdout"),
    ("--nolive", "--quiet"),
    ("--lat", "omit it: latencies are always measured"),
    ("--dropcache", "omit it: the file is dropped from the page cache unless --no-invalidate is given"),
];

/// The command line, or the parser's error with our tips, and the exit that goes with it.
pub fn parse() -> Cli {
    let words: Vec<String> = std::env::args_os().map(|w| w.to_string_lossy().into_owned()).collect();
    if let Some(fault) = secret_among(&words, |name| std::env::var(name).ok()) {
        output::tell(&fault);
        std::process::exit(Exit::Input as i32);
    }
    let told = |fault: Fault| -> ! {
        output::tell(&fault);
        std::process::exit(Exit::Input as i32)
    };
    let mut built = Cli::command();
    built.build();
    let all = defaults::of_process(&words, &built).unwrap_or_else(|fault| told(fault));
    let mut command = defaults::applied(Cli::command(), &all);
    let parsed = command.try_get_matches_from_mut(std::env::args_os()).and_then(|matches| {
        defaults::note_used(&command, &matches, &all);
        Cli::from_arg_matches(&matches).map_err(|e| e.format(&mut command))
    });
    parsed.unwrap_or_else(|e| {
        if let Some(fault) = defaults::explained(&e, &words, &all) {
            told(fault);
        }
        let e = explained(e, &words);
        // Help that reached nobody was not given; a reader that went away has had what it wanted.
        // What was typed is repeated in errors; help is ours, and may have colours.
        let told = if e.use_stderr() {
            output::tell_whole(&e.render().to_string());
            Ok(())
        } else {
            e.print().and_then(|()| std::io::stdout().flush())
        };
        let code = match told {
            Err(lost) if lost.kind() != std::io::ErrorKind::BrokenPipe => {
                output::tell(format_args!("error: the output cannot be written: {lost}"));
                Exit::Input as i32
            }
            _ => e.exit_code(),
        };
        std::process::exit(code)
    })
}

/// The command line is stored with a run, repeated in errors, and may be seen by anyone on this machine: no secret belongs into it,
/// whatever the option. Which word it is, is said; the word is not.
fn secret_among(words: &[String], env: impl Fn(&str) -> Option<String>) -> Option<Fault> {
    let at = (1..words.len()).find(|at| is_secret(words, *at, &env))?;
    let option = words[..=at].iter().rev().find(|w| w.starts_with("--")).and_then(|w| w.split('=').next());
    let whose = option.map(|o| format!(" (of {o})")).unwrap_or_default();
    let what = if values::tells_our_secret(&words[at], &env) {
        "a secret from the environment"
    } else {
        "what looks like a key, a password or a token"
    };
    Some(Fault::input(
        format!("argument {at}{whose} holds {what}, but a command line is stored and shown"),
        "Leave it out. Keys are read from the environment or from a profile, never from the command line.",
    ))
}

fn is_secret(words: &[String], at: usize, env: impl Fn(&str) -> Option<String>) -> bool {
    let word = &words[at];
    let given = |option: &str| {
        let own = word.strip_prefix(option).and_then(|rest| rest.strip_prefix('='));
        own.or_else(|| (words[at - 1] == option).then_some(word.as_str()))
    };
    // Texts that are kept, whatever they are about.
    let is_text = ["--mark-at", "--name"].iter().any(|option| given(option).is_some())
        || words.get(1).is_some_and(|command| command == "mark");
    let header = given("--header").map(|h| h.split_once(':').map_or(h, |(_, value)| value));
    // Addresses, and headers by their name, are refused by whoever takes them, with what to do instead.
    let has_own_words = word.contains("://") && !word.contains(char::is_whitespace);
    let looks_like_one = match given("--label").map(|l| l.split_once('=').unwrap_or(("", l))) {
        Some((name, value)) => is_secret_label(name.trim(), value.trim()),
        None if header.is_some() => header.is_some_and(is_secret_header_value),
        None if is_text => holds_credential(word),
        None => !has_own_words && !credentials_in(word).is_empty(),
    };
    looks_like_one || values::tells_our_secret(word, env)
}

/// The error, with what another tool's flag is here in place of what is spelt like it.
pub fn explained(mut e: clap::Error, words: &[String]) -> clap::Error {
    if e.kind() != ErrorKind::UnknownArgument {
        return e;
    }
    let flag = match e.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) => flag.clone(),
        _ => return e,
    };
    let name = flag.split('=').next().unwrap_or(&flag);
    if !flag.starts_with('-') && words.windows(2).any(|w| w[0] == "--fleet" && w[1] == flag) {
        let tip =
            StyledStr::from(format!("the name of a fleet is given with an equals sign: --fleet={flag}"));
        e.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    } else if let Some((_, meant)) = FLAGS.iter().find(|(theirs, _)| *theirs == name) {
        e.remove(ContextKind::SuggestedArg);
        let tip = StyledStr::from(format!("{name} is another tool's option; in plimsoll: {meant}"));
        e.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    } else if let Some(ContextValue::StyledStrs(tips)) = e.remove(ContextKind::Suggested) {
        // As a value it would be a path that nobody means.
        let sound = tips.into_iter().filter(|t| !t.to_string().contains("as a value")).collect::<Vec<_>>();
        if !sound.is_empty() {
            e.insert(ContextKind::Suggested, ContextValue::StyledStrs(sound));
        }
    }
    e
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_secret_is_taken_from_the_command_line_or_repeated() {
        let env = |name: &str| (name == "AWS_SECRET_ACCESS_KEY").then(|| "SuperSecret1234567".to_owned());
        let said = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(Into::into).collect();
            secret_among(&words, env).map(|f| f.to_string())
        };
        for line in [
            "plimsoll object put --label a=SuperSecret1234567",
            "plimsoll runs mark last SuperSecret1234567",
            "plimsoll object put --name=xSuperSecret1234567x",
        ] {
            let told = said(line).expect(line);
            assert!(!told.contains("SuperSecret"), "{told}");
        }
        assert!(said("plimsoll object put --label note=SuperSecret1234567").unwrap().contains("--label"));
        for line in [
            "plimsoll object put --label token=geheim123",
            "plimsoll object put --label=db_password=geheim123",
            "plimsoll object put --label id=AKIAGEHEIM1234567890",
            "plimsoll object put --name AKIAGEHEIM1234567890",
            "plimsoll object put --secret-key=geheim123",
        ] {
            let told = said(line).expect(line);
            assert!(
                !told.to_lowercase().contains("geheim") && told.contains("looks like a key"),
                "{line}: {told}"
            );
        }
        for words in [
            ["--label", "url=http://u:geheim123@h/x"],
            ["--label", "url=http://h/x?sig=geheim123"],
            ["--mark-at", "5s=mc alias set a http://h AKIAGEHEIM1234567890 geheim123"],
            ["--mark-at", "5s=http://h/?X-Amz-Signature=geheim123"],
            ["--header", "x-amz-meta-x: Bearer geheim123"],
            ["--header", "x-amz-meta-x: Basic geheim123"],
            ["--name", "http://u:geheim123@h"],
        ] {
            let line = [&["plimsoll", "object", "put"][..], &words].concat();
            let line: Vec<String> = line.into_iter().map(Into::into).collect();
            let told = secret_among(&line, env).expect(words[1]).to_string();
            assert!(told.contains(words[0]) && !told.to_lowercase().contains("geheim"), "{told}");
        }
        assert!(said("plimsoll mark last http://u:geheim123@h").is_some());
        for line in [
            "plimsoll object put --label repo=ssh://git@h/x",
            "plimsoll mark last ssh://git@h/x",
            "plimsoll object put --label a=b",
            "plimsoll object put --endpoint http://me:geheim123@h --header authorization:geheim123",
            "plimsoll object put --label pass=2 --label tier=standard",
            "plimsoll object put --endpoint http://h:9000 --observe ssh=root@h --observe-token-env MINIO_TOKEN",
            "plimsoll object put --sse-c-key-file /run/key --observe-token-file=/run/secrets/token",
            "plimsoll agent --join plimsoll-join-abcdefghijkl",
            "plimsoll block /dev/nvme0n1 --pattern randread --mark-at 30s=failover",
        ] {
            assert_eq!(said(line), None, "{line}");
        }
    }

    use clap::Parser;

    use super::*;

    fn told(line: &str) -> String {
        let words: Vec<String> = line.split_whitespace().map(Into::into).collect();
        explained(Cli::try_parse_from(&words).unwrap_err(), &words).to_string()
    }

    #[test]
    fn the_flags_of_other_tools_are_told_what_they_are_here() {
        for (line, here) in [
            ("plimsoll block /tmp/f --rw randread", "--pattern: read"),
            ("plimsoll object put --fleet lab --bucket b", "--fleet=lab"),
            ("plimsoll block /tmp/f --numjobs 4", "in plimsoll: --jobs"),
            ("plimsoll block /tmp/f --numjobs=4", "in plimsoll: --jobs"),
            ("plimsoll block /tmp/f --direct=1", "unless --buffered"),
            ("plimsoll object put --host h:9000", "--endpoint http://HOST:PORT"),
            ("plimsoll object put --access-key k", "never on the command line"),
            ("plimsoll object get --obj.size 1MiB", "in plimsoll: --size"),
            ("plimsoll object get --bs 1MiB", "in plimsoll: --size"),
            ("plimsoll block /tmp/f --time_based", "omit it"),
        ] {
            let text = told(line);
            assert!(
                text.contains(here) && !text.contains("similar") && !text.contains("as a value"),
                "{line}: {text}"
            );
        }
        let typo = told("plimsoll block /tmp/f --iodept 4");
        assert!(typo.contains("--iodepth") && !typo.contains("as a value"), "{typo}");
        assert!(!told("plimsoll block /tmp/f --no-such-flag-at-all").contains("as a value"));
    }

    fn longs(command: &clap::Command, out: &mut Vec<String>) {
        for arg in command.get_arguments() {
            out.extend(arg.get_long().map(|l| format!("--{l}")));
            out.extend(arg.get_all_aliases().into_iter().flatten().map(|l| format!("--{l}")));
        }
        command.get_subcommands().for_each(|c| longs(c, out));
    }

    /// A tip names what is there.
    #[test]
    fn what_is_to_be_written_exists() {
        let mut all = Vec::new();
        longs(&Cli::command(), &mut all);
        let is_flag = |w: &&str| w.starts_with("--") && w.len() > 2;
        for (theirs, meant) in FLAGS {
            let words = meant.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
            for word in words.filter(is_flag) {
                assert!(all.iter().any(|l| l == word), "{theirs}: there is no {word}");
            }
        }
    }
}
