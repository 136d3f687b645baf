//! A history to look at: `history DIRECTORY` makes runs there, serves them, and prints the address. For the tests of the page
//! (web/test/history.test.mjs); ends with its stdin.

#[path = "../../index/examples/support/mod.rs"]
mod support;

use std::io::Read as _;
use std::path::Path;

use plimsoll_serve::{LiveServer, ServeOptions};
use support::{MadeRun, make};

const EVIL: &str = "<img src=x onerror=\"window.hit=1\"></script><script>window.hit=2</script>";

fn main() {
    let dir = std::env::args().nth(1).expect("usage: history DIRECTORY");
    let root = Path::new(&dir).join("runs");
    std::fs::create_dir_all(&root).expect("the directory can be made");
    // Of gold the level falls by a fifth at the thirteenth run; the noise is of 1 %.
    let noise = |i: usize| [0.0, 0.7, -0.4, 0.3, -0.6][i % 5];
    let made = |i: usize, op: &str, tier: &str, rate: f64, void: bool| {
        let id = format!("202611{:02}-080000-{i:04x}", 1 + i);
        // Eight seconds of a tenth of the rate in each slice; half of it for one of them. The run that is void has no rate to draw.
        let ended: Vec<u64> = (0..if void { 0 } else { 80 })
            .map(|k| (rate / if k / 10 == 2 { 20.0 } else { 10.0 }).max(1.0) as u64)
            .collect();
        let hours = 24 * i as i64;
        make(&root, &MadeRun { id: &id, op, tier, hours, rate, void, ended: &ended, ..MadeRun::default() });
    };
    for i in 0..24 {
        made(i, "get", "gold", if i < 12 { 1000.0 } else { 800.0 } + 10.0 * noise(i), false);
    }
    for i in 24..27 {
        made(i, "put", "tin", 300.0 + noise(i), i == 26);
    }
    made(27, "put", EVIL, 5.0, false);
    let options =
        ServeOptions { address: "0".parse().expect("an address"), root, token: None, names: Vec::new() };
    let server = LiveServer::start(options).expect("it serves");
    println!("{}", server.url("/"));
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}
