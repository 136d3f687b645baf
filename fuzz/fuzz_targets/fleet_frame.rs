//! What an agent measured: read or refused, never a panic, nor more memory than the bytes are worth.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| plimsoll_fleet::from_outside::frame(data));
