//! Packed runs, sound and hostile.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use plimsoll_archive::{PlimManifest, pack, unpack};
use plimsoll_model::{Environment, Interval, Plan};
use plimsoll_store::{EnvFile, RunDir};
use proptest::prelude::*;
use tar::{EntryType, Header};

const PLAN: &str = r#"
version = 1
[targets.n]
kind = "null"
[[stage]]
[[stage.workload]]
name = "w"
mix = { null = 1 }
"#;

fn run_in(root: &Path) -> RunDir {
    let run = RunDir::create(root).unwrap();
    run.write_plan(&Plan::from_toml(PLAN).unwrap()).unwrap();
    let environment = Environment { started_at: "2026-11-24T08:00:00Z".into(), ..Environment::default() };
    run.write_env(&EnvFile {
        format: "plimsoll.env/1".into(),
        id: run.id(),
        environment,
        rerun: "plimsoll run plan.toml".into(),
        clock_offsets_ns: Default::default(),
    })
    .unwrap();
    let mut stream = run.create_intervals("local", 100_000_000).unwrap();
    for index in 0..3 {
        stream.interval(0, &Interval::empty(index)).unwrap();
    }
    stream.finish().unwrap();
    run.seal("done").unwrap();
    run
}

fn packed(run: &RunDir) -> Vec<u8> {
    let mut bytes = Vec::new();
    pack(run, &mut bytes, &|| false).unwrap();
    bytes
}

/// A file with these bytes, and an empty directory to unpack it into.
fn place(bytes: &[u8]) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (file, root) = (dir.path().join("x.plim"), dir.path().join("runs"));
    fs::write(&file, bytes).unwrap();
    (dir, file, root)
}

fn refused(bytes: &[u8]) -> String {
    let (_dir, file, root) = place(bytes);
    let told = unpack(&file, &root, &|| false).unwrap_err();
    let left = fs::read_dir(&root).map_or(0, Iterator::count);
    assert_eq!(left, 0, "something is left: {told}");
    assert!(!told.remedy.is_empty());
    told.problem
}

type Entry<'a> = (&'a str, EntryType, Vec<u8>);

/// A tar with these entries, compressed.
fn made(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut tar = tar::Builder::new(zstd::Encoder::new(Vec::new(), 1).unwrap());
    for (name, kind, content) in entries {
        let mut header = Header::new_gnu();
        // Not by set_path, which refuses what is tested here.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        if matches!(kind, EntryType::Symlink | EntryType::Link) {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append(&header, &content[..]).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

/// The manifest of a run, as JSON that can be changed.
fn manifest_of(run: &RunDir) -> serde_json::Value {
    let manifest: PlimManifest = pack(run, std::io::sink(), &|| false).unwrap();
    serde_json::to_value(manifest).unwrap()
}

fn text(value: &serde_json::Value) -> Vec<u8> {
    serde_json::to_vec(value).unwrap()
}

#[test]
fn a_run_comes_out_as_it_went_in() {
    let home = tempfile::tempdir().unwrap();
    let run = run_in(home.path());
    let bytes = packed(&run);
    assert_eq!(bytes, packed(&run), "two packs of one run are the same");
    let (_dir, file, root) = place(&bytes);
    let unpacked = unpack(&file, &root, &|| false).unwrap();
    assert_eq!(unpacked.run.id(), run.id());
    for name in unpacked.manifest.files.keys() {
        assert_eq!(
            fs::read(run.path().join(name)).unwrap(),
            fs::read(unpacked.run.path().join(name)).unwrap()
        );
    }
    assert!(unpacked.run.altered_files().unwrap().is_empty());
    assert!(unpacked.run.load(&Default::default()).unwrap().damage.is_empty());
    assert_eq!(fs::read_dir(&root).unwrap().count(), 1, "and nothing beside it");
    // As it can be removed like any run, it is one.
    unpacked.run.remove().unwrap();
}

#[test]
fn nothing_stands_behind_the_run() {
    let home = tempfile::tempdir().unwrap();
    let sound = packed(&run_in(home.path()));
    let tar = zstd::decode_all(&sound[..]).unwrap();
    let compressed = |tar: &[u8]| zstd::encode_all(tar, 1).unwrap();
    let behind: [(&str, Vec<u8>); 5] = [
        ("the run again", [&sound[..], &sound[..]].concat()),
        ("bytes", [&sound[..], &[7; 700]].concat()),
        ("a frame that decoders skip", [&sound[..], &[0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 1, 2]].concat()),
        ("a tar", compressed(&[&tar[..], &tar[..]].concat())),
        ("bytes behind the tar", compressed(&[&tar[..], &[1; 512]].concat())),
    ];
    for (what, bytes) in behind {
        let told = refused(&bytes);
        assert!(
            told.contains("behind the run") || told.contains("holds more than it says"),
            "{what}: {told}"
        );
    }
    refused(&sound[..sound.len() - 1]);
    // Other programs pad a tar to 10 KiB.
    let (_dir, file, root) = place(&compressed(&[&tar[..], &[0; 9216]].concat()));
    unpack(&file, &root, &|| false).unwrap();
}

#[test]
fn what_is_there_is_never_overwritten() {
    let home = tempfile::tempdir().unwrap();
    let run = run_in(home.path());
    let (_dir, file, root) = place(&packed(&run));
    unpack(&file, &root, &|| false).unwrap();
    fs::write(root.join(run.id()).join("plan.toml"), "changed by hand").unwrap();
    assert!(unpack(&file, &root, &|| false).unwrap_err().problem.contains("is there already"));
    assert_eq!(fs::read_to_string(root.join(run.id()).join("plan.toml")).unwrap(), "changed by hand");
    // A file, an empty directory or a link of that name is something, too.
    let makers: [fn(&Path) -> std::io::Result<()>; 3] =
        [|p| fs::write(p, "x"), |p| fs::create_dir(p), |p| std::os::unix::fs::symlink("/nowhere", p)];
    for make in makers {
        let (_dir, file, root) = place(&packed(&run));
        fs::create_dir(&root).unwrap();
        make(&root.join(run.id())).unwrap();
        assert!(unpack(&file, &root, &|| false).unwrap_err().problem.contains("is there already"));
        assert_eq!(fs::read_dir(&root).unwrap().count(), 1);
    }
}

#[test]
fn names_that_leave_the_directory_and_what_is_no_file_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let run = run_in(home.path());
    let sound = manifest_of(&run);
    let id = run.id();
    let name = format!("{id}/plim.json");
    let names = [
        "../plan.toml",
        "/etc/passwd",
        "intervals/../../x.zst",
        "intervals/.zst",
        "intervals/a/b.zst",
        ".plimsoll-made",
        "seal.json.new",
        "",
    ];
    for evil in names {
        let mut manifest = sound.clone();
        manifest["files"][evil] = serde_json::json!({"bytes": 1, "xxh3": "0"});
        assert!(
            refused(&made(&[(&name, EntryType::Regular, text(&manifest))])).contains("no file of a run"),
            "{evil}"
        );
    }
    let options = ["--help", "-", "_x", "last", "net", "net-20261122-053127-0000", "x.plim"];
    for evil in ["../x", "", ".hidden", "a/b", &"x".repeat(120)].into_iter().chain(options) {
        let mut manifest = sound.clone();
        manifest["id"] = evil.into();
        let first = format!("{evil:.80}/plim.json");
        let told = refused(&made(&[(&first, EntryType::Regular, text(&manifest))]));
        assert!(told.contains("no name of a run") || told.contains("of another run"), "{evil}: {told}");
    }
    let first = (name.as_str(), EntryType::Regular, text(&sound));
    let plan = format!("{id}/plan.toml");
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Char,
        EntryType::Block,
        EntryType::Fifo,
        EntryType::Directory,
        EntryType::GNULongName,
        EntryType::GNUSparse,
        EntryType::XHeader,
    ] {
        let told = refused(&made(&[first.clone(), (&plan, kind, Vec::new())]));
        assert!(told.contains("no regular file"), "{kind:?}: {told}");
    }
    let told = refused(&made(&[first, ("../plan.toml", EntryType::Regular, vec![1])]));
    assert!(told.contains("is not in its plim.json"), "{told}");
}

#[test]
fn lengths_are_believed_only_inside_of_bounds() {
    let home = tempfile::tempdir().unwrap();
    let run = run_in(home.path());
    let id = run.id();
    let (name, plan) = (format!("{id}/plim.json"), format!("{id}/plan.toml"));
    let of = |bytes: u64| {
        let mut m = manifest_of(&run);
        m["files"] = serde_json::json!({"plan.toml": {"bytes": bytes, "xxh3": "0"}});
        m
    };
    let first = |bytes: u64| (name.as_str(), EntryType::Regular, text(&of(bytes)));
    // It says that it holds more than it may. Streams have no bound of their own.
    let with_stream = |bytes: u64| {
        let mut m = of(10);
        m["files"]["intervals/local.zst"] = serde_json::json!({"bytes": bytes, "xxh3": "0"});
        m
    };
    for bytes in [1 << 40, u64::MAX - 10] {
        let told = refused(&made(&[(name.as_str(), EntryType::Regular, text(&with_stream(bytes)))]));
        assert!(told.contains("are allowed"), "{told}");
    }
    let two = with_stream(u64::MAX);
    assert!(refused(&made(&[(&name, EntryType::Regular, text(&two))])).contains("2^64"));
    // It holds more than it says: kilobytes that grow to gigabytes are not followed.
    let bomb = made(&[first(10), (&plan, EntryType::Regular, vec![0; 80 << 20])]);
    assert!(bomb.len() < 64 << 10, "it is small: {}", bomb.len());
    assert!(refused(&bomb).contains("bytes long and not 10"));
    let mut trailing = zstd::Encoder::new(Vec::new(), 1).unwrap();
    let whole = zstd::decode_all(&made(&[first(10)])[..]).unwrap();
    trailing.write_all(&whole[..whole.len() - 1024]).unwrap();
    trailing.write_all(&vec![1; 40 << 20]).unwrap();
    let told = refused(&trailing.finish().unwrap());
    assert!(told.contains("cannot be read") || told.contains("no regular file"), "{told}");
    // A manifest without end.
    let told = refused(&made(&[(&name, EntryType::Regular, vec![b' '; 20 << 20])]));
    assert!(told.contains("plim.json cannot be read") || told.contains("no packed run"), "{told}");
}

#[test]
fn what_is_missing_doubled_or_changed_is_told() {
    let home = tempfile::tempdir().unwrap();
    let run = run_in(home.path());
    let id = run.id();
    let (name, plan) = (format!("{id}/plim.json"), format!("{id}/plan.toml"));
    let content = fs::read(run.path().join("plan.toml")).unwrap();
    let manifest = manifest_of(&run);
    let first = (name.as_str(), EntryType::Regular, text(&manifest));
    let whole = (plan.as_str(), EntryType::Regular, content.clone());
    assert!(refused(&made(&[first.clone(), whole.clone()])).contains("it ends before"));
    assert!(refused(&made(&[first.clone(), whole.clone(), whole])).contains("in it twice"));
    let mut other = content;
    other[0] ^= 1;
    let told = refused(&made(&[first, (plan.as_str(), EntryType::Regular, other)]));
    assert!(told.contains("its hash is another"), "{told}");
    let mut newer = manifest.clone();
    newer["format"] = "plimsoll.plim/9".into();
    assert!(refused(&made(&[(&name, EntryType::Regular, text(&newer))])).contains("plimsoll.plim/9"));
}

/// Packed by hand, with hashes that fit what is not what was sealed.
#[test]
fn the_runs_own_seal_is_checked_too() {
    let home = tempfile::tempdir().unwrap();
    let run = run_in(home.path());
    let id = run.id();
    let name = format!("{id}/plim.json");
    let mut manifest = manifest_of(&run);
    let (mut files, mut entries) = (serde_json::Map::new(), Vec::new());
    for file in manifest["files"].as_object().unwrap().keys() {
        let mut bytes = fs::read(run.path().join(file)).unwrap();
        if file == "env.json" {
            bytes = String::from_utf8(bytes).unwrap().replace("08:00:00", "09:00:00").into_bytes();
        }
        let xxh3 = format!("{:032x}", xxhash_rust::xxh3::xxh3_128(&bytes));
        files.insert(file.clone(), serde_json::json!({"bytes": bytes.len(), "xxh3": xxh3}));
        entries.push((format!("{id}/{file}"), bytes));
    }
    manifest["files"] = files.into();
    let mut all = vec![(name.as_str(), EntryType::Regular, text(&manifest))];
    all.extend(entries.iter().map(|(n, b)| (n.as_str(), EntryType::Regular, b.clone())));
    assert!(refused(&made(&all)).contains("env.json changed since it was sealed"));
}

#[test]
fn only_a_record_that_nobody_changed_is_packed() {
    let home = tempfile::tempdir().unwrap();
    let run = run_in(home.path());
    let told = |run: &RunDir| pack(run, std::io::sink(), &|| false).unwrap_err().problem;
    let held = run.journal().unwrap();
    assert!(told(&run).contains("still in progress"));
    drop(held);
    pack(&run, std::io::sink(), &|| false).unwrap();
    let env = run.path().join("env.json");
    let text = fs::read_to_string(&env).unwrap();
    fs::write(&env, text.replace("08:00:00", "09:00:00")).unwrap();
    assert!(told(&run).contains("env.json changed since it was sealed"));
    fs::remove_file(&env).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &env).unwrap();
    run.unseal().unwrap();
    assert!(told(&run).contains("env.json"));
}

/// A run that was killed has no seal, and goes along as it is.
#[test]
fn a_killed_run_is_packed_as_far_as_it_was_recorded() {
    let home = tempfile::tempdir().unwrap();
    let run = run_in(home.path());
    run.unseal().unwrap();
    let (_dir, file, root) = place(&packed(&run));
    let unpacked = unpack(&file, &root, &|| false).unwrap();
    assert!(unpacked.run.sealed().unwrap().is_none());
}

/// Without a seal nobody says whose a result is: it is neither packed nor taken out of a pack.
#[test]
fn a_result_without_a_seal_does_not_go_along() {
    let home = tempfile::tempdir().unwrap();
    let run = run_in(home.path());
    let results = ["summary.json", "analysis.json"];
    for name in results {
        fs::write(run.path().join(name), "{}").unwrap();
    }
    let sealed = packed(&run);
    run.unseal().unwrap();
    let mut bytes = Vec::new();
    let manifest = pack(&run, &mut bytes, &|| false).unwrap();
    assert!(results.iter().all(|name| !manifest.files.contains_key(*name)), "{manifest:?}");
    // As an older version packed it, or somebody by hand.
    let mut entries = entries_of(&sealed);
    let mut manifest: PlimManifest = serde_json::from_slice(&entries[0].1).unwrap();
    manifest.files.remove("seal.json").unwrap();
    entries[0].1 = serde_json::to_vec(&manifest).unwrap();
    entries.retain(|(name, _)| !name.ends_with("seal.json"));
    let all: Vec<Entry<'_>> =
        entries.iter().map(|(n, b)| (n.as_str(), EntryType::Regular, b.clone())).collect();
    let (_dir, file, root) = place(&made(&all));
    let unpacked = unpack(&file, &root, &|| false).unwrap().run;
    assert!(results.iter().all(|name| !unpacked.path().join(name).exists()));
    let (_dir, file, root) = place(&sealed);
    assert!(unpack(&file, &root, &|| false).unwrap().run.path().join("summary.json").exists());
}

fn entries_of(plim: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut tar = tar::Archive::new(zstd::Decoder::new(plim).unwrap());
    let read = |entry: std::io::Result<tar::Entry<'_, _>>| {
        let mut entry = entry.unwrap();
        let (name, mut bytes) = (entry.path().unwrap().display().to_string(), Vec::new());
        std::io::Read::read_to_end(&mut entry, &mut bytes).unwrap();
        (name, bytes)
    };
    tar.entries().unwrap().map(read).collect()
}

/// It is told by the manifest, and nothing of it is unpacked. Whoever packs is told, too.
#[test]
fn a_document_that_is_larger_than_is_read_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let run = run_in(home.path());
    for name in ["plan.toml", "env.json", "seal.json", "summary.json", "analysis.json", "journal", "remarks"]
    {
        let mut manifest = manifest_of(&run);
        let bytes = plimsoll_store::bounds::most_bytes(name).unwrap() + 1;
        manifest["files"][name] = serde_json::json!({ "bytes": bytes, "xxh3": "0" });
        let id = format!("{}/plim.json", run.id());
        let mut begun = false;
        let packed = made(&[(&id, EntryType::Regular, text(&manifest))]);
        let told = plimsoll_archive::read_plim(&packed[..], u64::MAX, |_| {
            begun = true;
            Ok(|_: &str, _: &mut dyn std::io::Read| Ok(()))
        });
        let told = told.unwrap_err().problem;
        assert!(!begun && told.contains(name) && told.contains(&bytes.to_string()), "{told}");
    }
    fs::File::options().append(true).open(run.path().join("plan.toml")).unwrap().set_len(17 << 20).unwrap();
    run.unseal().unwrap();
    let told = pack(&run, std::io::sink(), &|| false).unwrap_err().problem;
    assert!(told.contains("plan.toml is 17825792 bytes long, and at most 16777216"), "{told}");
}

/// Whoever waits no longer, at whichever piece of it, finds nothing left.
#[test]
fn what_is_stopped_leaves_nothing_behind() {
    let home = tempfile::tempdir().unwrap();
    let run = run_in(home.path());
    let (_dir, file, root) = place(&packed(&run));
    let mut ends = 0;
    for pieces in 0.. {
        let left = std::cell::Cell::new(pieces);
        let stop = || left.replace(i32::max(left.get() - 1, 0)) == 0;
        match unpack(&file, &root, &stop) {
            Ok(_) => break,
            Err(e) => assert!(e.problem.contains("stopped"), "{}", e.problem),
        }
        assert_eq!(fs::read_dir(&root).map_or(0, Iterator::count), 0, "after {pieces}");
        ends += 1;
    }
    assert!(ends > 0);
    assert!(pack(&run, std::io::sink(), &|| true).unwrap_err().problem.contains("stopped"));
}

/// Nobody may ever write to it.
#[test]
fn a_pipe_is_not_waited_for() {
    let home = tempfile::tempdir().unwrap();
    let pipe = home.path().join("x.plim");
    let mode = rustix::fs::Mode::RWXU;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert!(!plimsoll_archive::is_plim(&pipe));
    let told = unpack(&pipe, &home.path().join("runs"), &|| false).unwrap_err();
    assert!(told.problem.contains("not a regular file"), "{}", told.problem);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Cut off or changed anywhere, it is refused whole or is what it was.
    #[test]
    fn damage_leaves_nothing_behind(at in 0.0f64..1.0, flip in 1u8..=255, cut in any::<bool>()) {
        let home = tempfile::tempdir().unwrap();
        let run = run_in(home.path());
        let mut bytes = packed(&run);
        let at = (at * bytes.len() as f64) as usize;
        if cut {
            bytes.truncate(at);
        } else {
            bytes[at] ^= flip;
        }
        let (_dir, file, root) = place(&bytes);
        match unpack(&file, &root, &|| false) {
            Ok(unpacked) => {
                for name in unpacked.manifest.files.keys() {
                    let (was, is) = (run.path().join(name), unpacked.run.path().join(name));
                    prop_assert_eq!(fs::read(was).unwrap(), fs::read(is).unwrap());
                }
            }
            Err(_) => prop_assert_eq!(fs::read_dir(&root).map_or(0, Iterator::count), 0),
        }
    }
}
