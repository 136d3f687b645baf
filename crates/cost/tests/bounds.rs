//! Bounds that hold: each plan here sends as many requests as the engine can be made to send, at a dollar a request.

use plimsoll_cost::{Bound, bound, parse};
use plimsoll_model::Plan;
use plimsoll_model::cost::CostOptions;
use rust_decimal::Decimal;

const A_DOLLAR_EACH: &str = r#"
[[subjects.a.requests]]
class = "any"
ops = ["put", "get", "get-range", "stat", "list", "delete", "delete-batch", "copy", "multipart", "upload-part", "read", "write", "trim"]
price = 1
per = 1
"#;
const MACHINES: &str = "[[subjects.a.instances]]\nname = \"m\"\ncount = 1\nprice = 3600\n";

fn prices(more: &str) -> CostOptions {
    let text = format!(
        "version = 1\ncurrency = \"USD\"\nmonth = \"30d\"\n[subjects.a]\ndate = \"2026-11-23\"\nregion = \"r\"\nsource = \"s\"\n{more}"
    );
    CostOptions::of(&parse(&text).unwrap(), "", None, None)
}

/// Of a plan on a bucket; `prepared`: objects to read, and to delete, before each workload.
fn bucket(plan: &str, prepared: (u64, u64), c: &CostOptions) -> Bound {
    let target =
        "version = 1\n[targets.s]\nkind = \"s3\"\nendpoints = [\"http://127.0.0.1:1\"]\nbucket = \"b\"\n";
    bound(&Plan::from_toml(&format!("{target}{plan}")).unwrap(), c, &|_| prepared).unwrap()
}

/// One workload of 4 in flight that reads.
fn reading(workload: &str, objects: u64, c: &CostOptions) -> Bound {
    let head = "[[stage]]\nwarmup = \"0s\"\n[[stage.workload]]\nname = \"w\"\nconcurrency = 4\n";
    bucket(&format!("{head}{workload}\n"), (objects, 0), c)
}

fn load(b: &Bound) -> Decimal {
    b.total() - b.around
}

#[test]
fn an_end_by_bytes_counts_the_bytes_that_an_op_takes() {
    let c = prices(A_DOLLAR_EACH);
    // 4 MiB in ranges of 4 KiB are 1,024 requests, however large the objects; and one more for each that is in flight.
    let ranges = reading(
        "mix = { get-range = 1 }\nsize = \"64KiB\"\nobject = { range = \"4KiB\" }\nstop = { bytes = \"4MiB\" }",
        20,
        &c,
    );
    assert_eq!((load(&ranges), ranges.is_closed()), (1028.into(), true), "{ranges:#?}");
    // 20 puts, 20 deletes and a listing, and 32 for marks.
    assert_eq!(ranges.around, 73.into());
    // No range: 64 KiB of each object, or what there is of it.
    let plain = |size| {
        load(&reading(
            &format!("mix = {{ get-range = 1 }}\nsize = \"{size}\"\nstop = {{ bytes = \"4MiB\" }}"),
            20,
            &c,
        ))
    };
    assert_eq!((plain("1MiB"), plain("4KiB")), (68.into(), 1028.into()));
    // The smaller of two kinds, if all of them were of it.
    let both = "mix = { get = 9, get-range = 1 }\nsize = \"64KiB\"\nobject = { range = \"4KiB\" }\nstop = { bytes = \"4MiB\" }";
    let b = reading(both, 20, &c);
    assert!(b.is_closed() && load(&b) >= 1028.into(), "{b:#?}");
    // A pace in bytes is taken by the bytes of an op, too: 10 s of 4 MiB/s.
    let paced = reading(
        "mix = { get-range = 1 }\nsize = \"64KiB\"\nobject = { range = \"4KiB\" }\npacing = { bytes = \"4MiB/s\" }\nstop = { duration = \"10s\" }",
        20,
        &c,
    );
    assert_eq!((load(&paced), paced.is_closed()), (10_244.into(), true), "{paced:#?}");
}

#[test]
fn ops_without_bytes_never_come_to_an_end_by_bytes() {
    let c = prices(A_DOLLAR_EACH);
    for mix in ["get = 1, stat = 9", "get = 1, list = 1", "put = 1, delete = 1", "put = 1, delete-batch = 1"]
    {
        let open =
            reading(&format!("mix = {{ {mix} }}\nsize = \"64KiB\"\nstop = {{ bytes = \"4MiB\" }}"), 20, &c);
        assert!(
            open.open.iter().any(|why| why.contains("no bytes") && why.contains("--max-ops")),
            "{open:#?}"
        );
        // What bounds it besides bytes still does.
        let ops = reading(
            &format!("mix = {{ {mix} }}\nsize = \"64KiB\"\nstop = {{ bytes = \"4MiB\", ops = 500 }}"),
            20,
            &c,
        );
        assert!(ops.is_closed() && load(&ops) >= 500.into(), "{ops:#?}");
    }
    // Objects that are there may be of any size.
    let there = "mix = { get = 1 }\nsize = \"64KiB\"\nobject = { existing = { prefix = \"p/\" } }\nstop = { bytes = \"4MiB\" }";
    let b = reading(there, 0, &c);
    assert!(b.open.iter().any(|why| why.contains("sizes of what is there")), "{b:#?}");
}

fn sweep(ops: &str, more: &str, prepared: (u64, u64)) -> Bound {
    let plan = format!(
        "[options]\nkeep = true\n[controller]\nkind = \"sweep\"\nops = [{ops}]\nsizes = [\"1KiB\"]\n{more}\n[controller.template]\nwarmup = \
         \"0s\"\n[[controller.template.workload]]\nname = \"w\"\nmix = {{ get = 1 }}\nconcurrency = 4\nstop = {{ ops = 16 }}\n"
    );
    bucket(&plan, prepared, &prices(A_DOLLAR_EACH))
}

#[test]
fn what_a_cell_deletes_is_made_ready_at_each_of_its_repeats() {
    // 48 objects, and 3 more at most: whole rounds over the threads, which are 4 at most. 32 for marks.
    let once = sweep("\"delete\"", "", (0, 48));
    assert_eq!((load(&once), once.around), (16.into(), (51 + 32).into()), "{once:#?}");
    let thrice = sweep("\"delete\"", "repeat = 3", (0, 48));
    assert_eq!((load(&thrice), thrice.around), (48.into(), (3 * 51 + 32).into()), "{thrice:#?}");
    let six = sweep("\"delete\"", "repeat = 3\nconcurrencies = [1, 4]", (0, 48));
    assert_eq!((load(&six), six.around), (96.into(), (6 * 51 + 32).into()), "{six:#?}");
}

#[test]
fn what_is_read_is_made_ready_once() {
    let b = sweep("\"get\", \"stat\"", "repeat = 3", (48, 0));
    assert_eq!((load(&b), b.around), (96.into(), (48 + 32).into()), "{b:#?}");
}

#[test]
fn what_is_prepared_counts_at_its_largest() {
    // 50 objects of 64 KiB at most: 3,276,800 B, at a dollar a kilobyte.
    let c = prices("ingress = { price = 1, per = \"1KB\" }");
    let b = reading(
        "mix = { get = 1 }\nsize = { uniform = { min = \"1KiB\", max = \"64KiB\" } }\nstop = { ops = 10 }",
        50,
        &c,
    );
    assert_eq!(b.around, "3276.8".parse::<Decimal>().unwrap(), "{b:#?}");
}

#[test]
fn how_long_machines_run_is_bounded_by_no_plan() {
    // What comes before and after the load takes as long as the storage does.
    let c = prices(MACHINES);
    let b =
        reading("mix = { put = 1 }\npacing = { constant = \"10/s\" }\nstop = { duration = \"5s\" }", 0, &c);
    assert_eq!(b.total().round_dp(6), 5.into());
    assert!(!b.is_closed() && b.open[0].contains("beyond the 0.0014 h of the load"), "{b:#?}");
    assert!(b.items.iter().any(|i| i.what == "m, while the load is on"), "{b:#?}");
    // Who pays no machine is told nothing of hours.
    let b = reading(
        "mix = { put = 1 }\npacing = { constant = \"10/s\" }\nstop = { duration = \"5s\" }",
        0,
        &prices(A_DOLLAR_EACH),
    );
    assert!(b.is_closed(), "{b:#?}");
}

/// A disk of a device's own, with 1,000 writes of one workload.
fn synced(block: &str, ops: &str) -> Result<Bound, String> {
    let plan = format!(
        "version = 1\n[targets.d]\nkind = \"block\"\npath = \"/dev/null\"\n[[stage]]\nwarmup = \"0s\"\n[[stage.workload]]\nname = \"w\"\n\
         mix = {{ write = 1 }}\nsize = \"4KiB\"\nconcurrency = 4\nstop = {{ ops = 1000 }}\nblock = {{ {block} }}\n"
    );
    let prices =
        prices(&format!("[[subjects.a.requests]]\nclass = \"io\"\nops = [{ops}]\nprice = 1\nper = 1\n"));
    bound(&Plan::from_toml(&plan).unwrap(), &prices, &|_| (0, 0))
}

#[test]
fn fsyncs_that_come_with_writes_are_in_the_bound() {
    let total = |block| synced(block, "\"write\", \"fsync\"").unwrap().total();
    assert_eq!(total(""), 1000.into());
    assert_eq!(total("fsync = 4"), 1250.into());
    assert_eq!(total("fdatasync = 3"), 1334.into());
    // Of each of the threads, which are no more than what is in flight.
    assert_eq!(total("end_fsync = true"), 1004.into());
    let refused = synced("fsync = 4", "\"write\"").unwrap_err();
    assert!(refused.contains("no class for 'fsync'"), "{refused}");
}
