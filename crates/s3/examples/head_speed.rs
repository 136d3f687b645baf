//! How long one signed request head takes: `cargo run --release -p plimsoll-s3 --example head_speed`.

use std::hint::black_box;
use std::time::Instant;

use plimsoll_s3::head::{Action, Body, HEAD_CAPACITY, HeadOptions, Heads, PayloadHash};
use plimsoll_s3::{Credentials, Endpoint};

const ROUNDS: u32 = 300_000;

fn main() {
    let endpoint = Endpoint::parse("http://127.0.0.1:9000").expect("a constant URL");
    let credentials = Credentials {
        access_key: "AKIAIOSFODNN7EXAMPLE".into(),
        secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
        session_token: None,
    };
    let options = HeadOptions { bucket: "plimsoll-bucket".into(), ..HeadOptions::default() };
    let mut heads = Heads::new(&endpoint, credentials, "us-east-1", &options).expect("no headers to refuse");
    let mut out = Vec::with_capacity(HEAD_CAPACITY);
    for (name, action) in [("PUT", Action::PutObject), ("GET", Action::GetObject)] {
        let body = Body::new(4096, PayloadHash::Unsigned);
        let begun = Instant::now();
        for i in 0..ROUNDS {
            out.clear();
            let key = [b"plimsoll/run/".as_slice(), &i.to_le_bytes().map(|b| b'a' + b % 26)].concat();
            // A new second every so often, as in a run.
            heads.write(&mut out, &action, &key, &body, 1_800_000_000 + u64::from(i >> 16));
            black_box(&out);
        }
        let each = begun.elapsed().as_nanos() / u128::from(ROUNDS);
        println!("{name}: {each} ns for a signed head of {} bytes", out.len());
    }
}
