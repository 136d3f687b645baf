//! What is on a device or file, as far as signatures tell.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::signature::{HEAD_BYTES, Signature, TAIL_BYTES, detect};

/// Signatures at both ends of a device or file.
pub fn signatures(file: &File, size: u64) -> std::io::Result<Vec<Signature>> {
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::Random);
    let read = |offset: u64, length: u64| -> std::io::Result<Vec<u8>> {
        let mut bytes = vec![0; length as usize];
        let mut done = 0;
        while done < bytes.len() {
            match file.read_at(&mut bytes[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        bytes.truncate(done);
        Ok(bytes)
    };
    let head = read(0, HEAD_BYTES.min(size))?;
    // An end that cannot be read holds no signature that anybody could use; the beginning must be readable.
    let tail = read(size - TAIL_BYTES.min(size), TAIL_BYTES.min(size)).unwrap_or_default();
    Ok(detect(&head, &tail, size))
}
