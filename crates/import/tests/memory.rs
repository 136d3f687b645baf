//! What an import holds at once, counted by the allocator: a file of some kilobytes must not need gigabytes. One test, as the count is of
//! the whole process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Cursor, Read};
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_import::{ImportError, Source, SourceForm, warp};

struct Counted;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all is done by the system's allocator; only sizes are added up beside it.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(live, Ordering::Relaxed);
        // SAFETY: as the caller has it.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller has it.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// A file that is made as it is read.
struct Made<I> {
    pieces: I,
    now: Cursor<Vec<u8>>,
}

impl<I: Iterator<Item = String>> Read for Made<I> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let n = self.now.read(buf)?;
            if n > 0 {
                return Ok(n);
            }
            match self.pieces.next() {
                Some(text) => self.now = Cursor::new(text.into_bytes()),
                None => return Ok(0),
            }
        }
    }
}

fn made(pieces: impl Iterator<Item = String>) -> impl Read {
    Made { pieces, now: Cursor::default() }
}

/// What the import came to, and the bytes that were held for it at most.
fn import(file: impl Read) -> (Result<(), ImportError>, usize) {
    let before = LIVE.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let outcome = Source::open(file).and_then(|source| match source.form() {
        SourceForm::WarpRequests => warp::survey(source.into_reader()).map(drop),
        _ => source.lines().map(drop),
    });
    (outcome, MOST.load(Ordering::Relaxed) - before)
}

/// A head, and a list of items that are the same.
fn listed(head: &str, item: &str, count: usize, end: &str) -> String {
    format!("{head}{}{item}{end}", format!("{item},").repeat(count - 1))
}

#[test]
fn no_file_needs_memory_far_beyond_its_size() {
    let elbencho = "{\"phase_type\":\"WRITE\",\"iso_start_date\":\"2026-11-23T10:00:00+0000\",\"config\":{\"version\":\"3.1-2\",\
                    \"command\":\"c\"},\"last_done\":{\"elapsed_time_ms\":\"10\",\"iops\":\"5\"},";
    let path = "p".repeat(20_000);
    let leaves: String = (0..10_000).map(|i| format!("\"{i}\":1,")).collect();
    let deep = format!("{elbencho}\"{path}\":{{{leaves}\"x\":1}}}}");
    let (outcome, held) = import(deep.as_bytes());
    outcome.unwrap();
    assert!(held < 20 << 20, "leaves below a long path: {} KiB became {} MiB", deep.len() >> 10, held >> 20);

    let head =
        "ISO date,label,operation,time ms [last],IOPS [last],MiB/s [last],version,command\n".to_owned();
    let label = "l".repeat(100_000);
    let row = move |i: usize| format!("2026-11-23T10:00:00+0000,{label},W,10,5,1,3.1-2,c{i}\n");
    let (outcome, held) = import(made(std::iter::once(head).chain((0..2000).map(row))));
    outcome.unwrap();
    assert!(held < 40 << 20, "columns that nobody asks for: {} MiB", held >> 20);

    let head = "idx\tthread\top\tclient_id\tn_objects\tbytes\tendpoint\tfile\terror\tstart\tfirst_byte\tend\tduration_ns\tcat\n";
    let name = "c".repeat(200_000);
    let row = move |i: usize| {
        format!(
            "{i}\t0\tGET\t{name}{i}\t1\t10\th\tf\t\t2026-11-23T10:00:00Z\t\t2026-11-23T10:00:01Z\t1000000000\t0\n"
        )
    };
    let (outcome, held) = import(made(std::iter::once(head.to_owned()).chain((0..1000).map(row))));
    let e = outcome.unwrap_err();
    assert!(e.to_string().starts_with("line 2: client_id has more than 1024 bytes"), "{e}");
    assert!(held < 20 << 20, "names of clients: {} MiB", held >> 20);

    let warp = "{\"v\":2,\"commandline\":\"warp get\",\"total\":{},\"by_op_type\":{\"GET\":{\"requests_by_client\":{\"a\":[";
    let kinds: String = (0..600_000).map(|i| format!("\"{i}\":{{}},")).collect();
    let lists = [
        (
            "kinds",
            format!("{{\"v\":2,\"commandline\":\"\",\"total\":{{}},\"by_op_type\":{{{kinds}\"x\":{{}}}}}}"),
        ),
        ("jobs", listed("{\"fio version\":\"fio-3.33\",\"jobs\":[", "{}", 300_000, "]}")),
        ("seconds", listed("{\"start\":{\"version\":\"iperf 3.12\"},\"intervals\":[", "{}", 2_000_000, "]}")),
        ("segments", listed(warp, "{}", 2_000_000, "]}}}}")),
        ("documents", "{\"fio version\":\"fio-3.33\"}\n".repeat(400_000)),
    ];
    for (what, text) in lists {
        let (outcome, held) = import(text.as_bytes());
        assert!(outcome.is_err(), "{what}");
        assert!(held < 60 << 20, "{what}: {} MiB became {} MiB", text.len() >> 20, held >> 20);
    }
}
