//! The first bytes of a connection of a network test, its orders and answers, and what a kernel tells of a connection: read or refused,
//! never a panic, and never proved by who does not have the key.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use plimsoll_net::wire::{NetAnswer, NetOrder};
use plimsoll_net::{HELLO, Hello, NetKey, parse_tcp_info};

static KEY: LazyLock<NetKey> = LazyLock::new(NetKey::random);

fuzz_target!(|data: &[u8]| {
    if let Some(claimed) = Hello::read(data) {
        assert_eq!(data.len(), HELLO);
        assert!(!claimed.is_proved(&KEY), "nobody guesses a key");
    }
    let _ = serde_json::from_slice::<NetOrder>(data);
    let _ = serde_json::from_slice::<NetAnswer>(data);
    let _ = NetKey::parse(&String::from_utf8_lossy(data));
    parse_tcp_info(data);
});
