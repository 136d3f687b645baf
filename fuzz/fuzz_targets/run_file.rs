//! A run file of any bytes is read up to its first damage. Half of the inputs are wrapped into good frames, so that
//! what lies behind the checksum is reached, too.
#![no_main]

use std::path::{Path, PathBuf};

use libfuzzer_sys::fuzz_target;
use plimsoll_store::frame::FrameWriter;
use plimsoll_store::varint::put_u64;
use plimsoll_store::{Record, StreamReader, codec};

/// A record as it stands in a frame: tag, length, content.
fn record(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    put_u64(&mut out, content.len() as u64);
    out.extend_from_slice(content);
    out
}

fn write_framed(path: &Path, records: &[(u8, Vec<u8>)]) {
    let mut w = FrameWriter::create(path).expect("a new file");
    // A header first: without one nothing behind it is looked at.
    w.append(&record(0, br#"{"format":"plimsoll.intervals/1","source":"a","grid_ns":100000000}"#))
        .expect("a frame");
    for (tag, content) in records {
        w.append(&record(tag % 5, content)).expect("a frame");
    }
}

fuzz_target!(|input: (bool, Vec<(u8, Vec<u8>)>)| {
    let (framed, records) = input;
    let path = PathBuf::from(format!("/dev/shm/plimsoll-fuzz-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    if framed {
        write_framed(&path, &records);
    } else {
        let bytes: Vec<u8> = records.into_iter().flat_map(|(_, content)| content).collect();
        std::fs::write(&path, bytes).expect("a new file");
    }
    if let Ok(mut reader) = StreamReader::open(&path) {
        while let Some(record) = reader.next().expect("no disk error") {
            if let Record::Interval { interval, .. } = record {
                let mut out = Vec::new();
                codec::encode(&interval, &mut out);
            }
        }
    }
    let _ = std::fs::remove_file(&path);
});
