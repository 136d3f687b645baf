//! Flags to plan, for every command that has one: snapshots of the plan, and of what is refused.

use clap::{CommandFactory, Parser};
use plimsoll_model::Plan;

use crate::args::ArgsContext;
use crate::cli::{Cli, Command};
use crate::dry_run;
use crate::fault::{Exit, Fault};

fn plan_of(line: &str, endpoint: Option<&str>) -> Result<Plan, Fault> {
    let args = std::iter::once("plimsoll").chain(line.split_whitespace());
    let cli = Cli::try_parse_from(args).unwrap_or_else(|e| panic!("{line}: {e}"));
    let context = ArgsContext::with(endpoint, 7);
    match &cli.command {
        Command::Object(c) => c.plan(&context),
        Command::Block(c) => c.plan(&context),
        Command::Limits(c) => c.plan(&context),
        Command::Speedtest(c) => c.plan(&context),
        Command::Watch(c) => c.probed.as_ref().expect("a subcommand was given").plan(&context),
        other => panic!("{other:?} has no plan of its own"),
    }
}

const LINES: &[(&str, &str)] = &[
    (
        "put",
        "object put --endpoint http://127.0.0.1:9000 --bucket b --size 4KiB --concurrency 16 --duration 30s",
    ),
    (
        "get_range",
        "object get --endpoint http://n{1...4}:9000 --bucket b --size 8MiB --range 64KiB --verify --objects 50",
    ),
    ("stat", "object stat --endpoint http://h --bucket b --keys zipf:1.1 --prefixes 16 --dataset d"),
    ("list", "object list --endpoint http://h --bucket b --max-keys 100 --delimiter /"),
    ("delete_batch", "object delete --endpoint http://h --bucket b --batch 100 --max-ops 1000"),
    ("copy", "object copy --endpoint http://h --bucket b --size 1MB --max-bytes 1GB"),
    (
        "multipart",
        "object multipart --endpoint http://h --bucket b --size 64MiB --part-size 16MiB --part-concurrency 2",
    ),
    (
        "mixed",
        "object mixed --endpoint http://h --bucket b --mix get=45,stat=30,put=15,delete=10 --rate 800/s --arrivals poisson",
    ),
    (
        "sweep",
        "object sweep --endpoint http://h --bucket b --ops put,get --sizes 4KB,64KB,512KB,1MB,10MB --repeat 5 --concurrencies 1,16",
    ),
    (
        "embedded",
        "object put --endpoint embedded --tier vultr-standard --scale 0.1 --label tier=standard --expect put.ops_per_s>=80",
    ),
    (
        "tls",
        "object put --endpoint https://h --bucket b --ca-file ca.pem --client-cert c.pem --client-key k.pem --tls-version 1.3 --signing full --checksum crc32c --storage-class COLD --sse AES256 --on-throttle backoff",
    ),
    (
        "open_ramp",
        "object get --endpoint http://h --bucket b --rate 100/s..800/s --ramp-over 30s --ring epoll --threads 2 --cpus 0-1",
    ),
    (
        "block_table",
        "block /tmp/f --size 4GiB --pattern randread --bs 4KiB,64KiB,512KiB,1MiB,4MiB --iodepth 4 --jobs 4 --runtime 60s",
    ),
    (
        "block_write",
        "block /dev/sdz --pattern randrw --rwmixread 70 --bs 4KiB=60,64KiB=40 --fsync 32 --destroy-data=/dev/sdz --loops 2 --offsets zipf:1.2",
    ),
    (
        "limits_object",
        "limits object --endpoint http://h --bucket b --op get --size 4KiB --budget 10m --probe-shared",
    ),
    ("limits_block", "limits block /tmp/f --pattern randread --iodepth 32 --budget 5m --goal 1h"),
    (
        "speedtest",
        "speedtest object --endpoint http://h --bucket b --op put --size 1MiB --max-concurrency 256 --p99-ceiling 50ms",
    ),
    (
        "speedtest_two_ops",
        "speedtest object --endpoint http://h --bucket b --op put,get --size 1MiB --budget 2m",
    ),
    ("watch", "watch object --endpoint http://h --bucket b --mix put=1,get=3 --for 4h"),
];

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_becomes_the_plan_it_says() {
    for (name, line) in LINES {
        let plan = plan_of(line, None).unwrap_or_else(|e| panic!("{line}: {e}"));
        insta::assert_snapshot!(*name, format!("$ plimsoll {line} --dry-run\n{}", dry_run::text(&plan)));
    }
}

/// What a command does after a refused attempt, where nothing is said and where something is.
#[test]
fn what_is_done_after_a_refusal_is_the_commands_default_or_what_was_asked_for() {
    use plimsoll_model::plan::OnThrottle::{self, Backoff, Pause, Record};
    let of = |command: &str, asked: &str| -> OnThrottle {
        let plan = plan_of(&format!("{command} --endpoint http://h --bucket b{asked}"), None).unwrap();
        match plan.targets.values().next() {
            Some(plimsoll_model::plan::TargetSpec::S3(s3)) => s3.on_throttle,
            other => panic!("{other:?}"),
        }
    };
    for (command, default) in [
        ("object put", Record),
        ("limits object", Pause),
        ("speedtest object", Backoff),
        ("watch object", Backoff),
    ] {
        assert_eq!(of(command, ""), default, "{command}");
        for (word, asked) in [("record", Record), ("pause", Pause), ("backoff", Backoff)] {
            assert_eq!(of(command, &format!(" --on-throttle {word}")), asked, "{command} {word}");
        }
    }
}

#[test]
fn a_dry_run_is_itself_a_plan() {
    for (_, line) in LINES {
        let plan = plan_of(line, None).unwrap();
        assert_eq!(Plan::from_toml(&dry_run::text(&plan)).as_ref(), Ok(&plan), "{line}");
    }
}

#[test]
fn the_endpoint_comes_from_the_environment_when_no_flag_names_one() {
    let line = "object put --bucket b";
    let plan = plan_of(line, Some("http://s3")).unwrap();
    assert!(plan.to_toml().contains(r#"endpoints = ["http://s3"]"#));
    assert_eq!(plan_of(line, None).unwrap_err().exit, Exit::Input);
}

#[test]
fn what_cannot_be_is_refused_with_a_remedy() {
    let refused = [
        "object put --endpoint 127.0.0.1:9000 --bucket b",
        "object put --endpoint http://key:secret@h --bucket b",
        "object put --endpoint http:// --bucket b",
        "object put --endpoint http://h",
        "object put --endpoint http://h --bucket b/c",
        "object put --endpoint http://h --bucket b --tier vultr-standard",
        "object put --endpoint http://h --bucket b --arrivals poisson",
        "object put --endpoint http://h --bucket b --rate 1/s..2/s",
        "object put --endpoint http://h --endpoint embedded --bucket b",
        "object put --endpoint embedded --scale 0",
        "block /tmp/f --pattern randread --offsets sequential",
        "block /tmp/f --pattern read --offsets zipf:1.1",
        "block /tmp/f --bs 4k",
        "limits block /tmp/f --bs 4KiB,8KiB",
    ];
    let mut told = String::new();
    for line in refused {
        let fault = plan_of(line, None).expect_err(line);
        assert_eq!(fault.exit, Exit::Input, "{line}");
        assert!(!fault.remedy.is_empty(), "{line}");
        assert!(!fault.to_string().contains("secret"), "{line}: {fault}");
        told += &format!("$ plimsoll {}\n{fault}\n\n", line.replace("key:secret", "..."));
    }
    insta::assert_snapshot!("refused", told);
}

#[test]
fn a_speedtest_of_a_described_cluster_takes_large_objects_where_no_size_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cluster.toml");
    std::fs::write(&file, "version = 1\nsoftware = \"minio\"\n[[node]]\nname = \"s{1...4}\"\n").unwrap();
    let of = |command: &str, more: &str| {
        let line = format!("{command} object --endpoint http://h --bucket b --op put {more}");
        match plan_of(&line, None).unwrap().controller.unwrap().templates().next().unwrap().workloads[0].size
        {
            plimsoll_model::plan::SizeDist::Fixed(size) => size.0,
            ref other => panic!("{other:?}"),
        }
    };
    let cluster = format!("--cluster {}", file.display());
    assert_eq!([of("speedtest", ""), of("speedtest", &cluster)], [4096, 64 << 20]);
    assert_eq!(of("speedtest", &format!("{cluster} --size 1MiB")), 1 << 20);
    assert_eq!(of("limits", &cluster), 4096, "a probe looks for a limit on operations");
}
