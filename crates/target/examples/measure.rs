//! A plain closed-loop client for the servers of this crate: blocking threads, nothing shared with Plimsoll's engine.
//! `measure ADDRESS [--connections N] [--pipeline N] [--seconds S] [--put BYTES]`: requests/s, MiB/s and latencies.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

fn value<T: std::str::FromStr>(args: &[String], name: &str) -> Option<T> {
    let at = args.iter().position(|a| a == name)?;
    args.get(at + 1)?.parse().ok()
}

/// Takes one answer off the buffer: (bytes of its head, length of its body, whether it is a 2xx).
fn head(buf: &[u8]) -> Option<(usize, usize, bool)> {
    let end = buf.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&buf[..end]).ok()?;
    let length = text.lines().find_map(|l| l.strip_prefix("Content-Length: ")).and_then(|n| n.parse().ok());
    Some((end, length.unwrap_or(0), text[9..].starts_with('2')))
}

/// (good, refused, bytes, latencies in ns) of one connection.
fn work(
    address: &str,
    request: &[u8],
    pipeline: usize,
    start: Instant,
    end: Instant,
) -> (u64, u64, u64, Vec<u64>) {
    let mut s = TcpStream::connect(address).expect("connect");
    s.set_nodelay(true).expect("nodelay");
    let batch = request.repeat(pipeline);
    let mut buf = vec![0u8; 4 << 20];
    let (mut good, mut refused, mut bytes, mut times) = (0, 0, 0, Vec::new());
    loop {
        let sent = Instant::now();
        s.write_all(&batch).expect("write");
        let (mut have, mut at, mut answers) = (0, 0, 0);
        while answers < pipeline {
            have += match s.read(&mut buf[have..]).expect("read") {
                0 => panic!("closed"),
                n => n,
            };
            while answers < pipeline
                && let Some((h, body, ok)) = head(&buf[at..have])
            {
                if at + h + body > have {
                    break;
                }
                at += h + body;
                answers += 1;
                let now = Instant::now();
                if now > end {
                    return (good, refused, bytes, times);
                }
                if now >= start {
                    *if ok { &mut good } else { &mut refused } += 1;
                    bytes += body as u64;
                    times.push((now - sent).as_nanos() as u64);
                }
            }
        }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let connections: usize = value(&args, "--connections").unwrap_or(16);
    let pipeline: usize = value(&args, "--pipeline").unwrap_or(1);
    let seconds: f64 = value(&args, "--seconds").unwrap_or(3.0);
    let put: usize = value(&args, "--put").unwrap_or(0);
    let mut request = if put > 0 {
        format!("PUT /bucket/key HTTP/1.1\r\nHost: x\r\nContent-Length: {put}\r\n\r\n").into_bytes()
    } else {
        b"GET /bucket/key HTTP/1.1\r\nHost: x\r\n\r\n".to_vec()
    };
    request.resize(request.len() + put, b'x');
    let start = Instant::now() + Duration::from_millis(1_000);
    let end = start + Duration::from_secs_f64(seconds);
    let threads: Vec<_> = (0..connections)
        .map(|_| {
            let (address, request) = (args[0].clone(), request.clone());
            std::thread::spawn(move || work(&address, &request, pipeline, start, end))
        })
        .collect();
    let (mut good, mut refused, mut bytes, mut times) = (0, 0, 0, Vec::new());
    for t in threads {
        let (g, r, b, l) = t.join().expect("thread");
        (good, refused, bytes) = (good + g, refused + r, bytes + b);
        times.extend(l);
    }
    bytes += good * put as u64;
    times.sort_unstable();
    let p = |q: f64| times.get((times.len() as f64 * q) as usize).copied().unwrap_or(0) as f64 / 1_000.0;
    println!(
        "{:.2} good/s, {:.2} refused/s, {:.2} MiB/s; us p50 {:.1}, p99 {:.1}, min {:.1}",
        good as f64 / seconds,
        refused as f64 / seconds,
        bytes as f64 / seconds / 1_048_576.0,
        p(0.5),
        p(0.99),
        p(0.0)
    );
}
