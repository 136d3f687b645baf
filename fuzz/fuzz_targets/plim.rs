//! A packed run from anybody: read to its end or refused, in bounded memory, and never more than it says.
//!
//! Bytes as they are get no further than the decompressor: the other half of the inputs are entries that are put into a sound tar.
#![no_main]

use std::io::{self, Read};

use libfuzzer_sys::fuzz_target;
use plimsoll_archive::read_plim;

const MOST: u64 = 1 << 20;

/// (name, kind, content)
type RawEntry = (String, u8, Vec<u8>);

fn made(manifest: Option<String>, id: &str, entries: &[RawEntry]) -> Vec<u8> {
    let mut tar = tar::Builder::new(zstd::Encoder::new(Vec::new(), 1).expect("memory"));
    let mut add = |name: &str, kind: u8, content: &[u8]| {
        let mut header = tar::Header::new_ustar();
        let bytes = name.as_bytes();
        let length = bytes.len().min(100);
        header.as_old_mut().name[..length].copy_from_slice(&bytes[..length]);
        header.set_entry_type(tar::EntryType::new(kind));
        header.set_size(content.len() as u64);
        header.set_cksum();
        tar.append(&header, content).expect("memory");
    };
    let text = manifest.unwrap_or_else(|| {
        let file = |(name, _, content): &RawEntry| {
            let xxh3 = format!("{:032x}", xxhash_rust::xxh3::xxh3_128(content));
            (name.clone(), serde_json::json!({"bytes": content.len(), "xxh3": xxh3}))
        };
        let files: serde_json::Map<_, _> = entries.iter().map(file).collect();
        serde_json::json!({"format": "plimsoll.plim/1", "id": id, "files": files}).to_string()
    });
    add(&format!("{id}/plim.json"), b'0', text.as_bytes());
    for (name, kind, content) in entries {
        add(&format!("{id}/{name}"), *kind, content);
    }
    tar.into_inner().and_then(zstd::Encoder::finish).expect("memory")
}

fuzz_target!(|input: (bool, Vec<u8>, Option<String>, String, Vec<RawEntry>)| {
    let (raw, bytes, manifest, id, mut entries) = input;
    let bytes = if raw {
        bytes
    } else {
        // The one file without which there is no run.
        if let Some(first) = entries.first_mut() {
            (first.0, first.1) = ("plan.toml".into(), b'0');
        }
        made(manifest, &id, &entries)
    };
    let mut taken = 0;
    let read = read_plim(&bytes[..], MOST, |manifest| {
        assert!(!manifest.id.contains('/') && !manifest.id.starts_with('.'));
        Ok(|name: &str, content: &mut dyn Read| {
            assert!(name.split('/').all(|part| !part.is_empty() && !part.starts_with('.')), "{name}");
            taken += io::copy(content, &mut io::sink())?;
            Ok(())
        })
    });
    assert!(taken <= MOST);
    if let Ok(manifest) = read {
        assert_eq!(taken, manifest.files.values().map(|f| f.bytes).sum::<u64>());
    }
});
