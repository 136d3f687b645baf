//! The clock offset that a conductor finds out, against the truth, in simulated worlds: ways that are unlike, jitter, queues, loss, drift.
//!
//!     cargo run --release -p plimsoll-fleet --example clocks -- 5000 1
//!
//! So many worlds, and the seed that they are drawn from.

mod world;

use world::{BAD, Clocks, QUARTZ, Score, score};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let worlds: u64 = args.next().map_or(Ok(2000), |n| n.parse())?;
    let seed: u64 = args.next().map_or(Ok(1), |n| n.parse())?;
    tell(&format!("clocks of quartz ({worlds} worlds, seed {seed})"), QUARTZ, score(seed, worlds, QUARTZ));
    tell("clocks beyond what the method takes for granted", BAD, score(seed, worlds, BAD));
    Ok(())
}

fn tell(what: &str, clocks: Clocks, mut score: Score) {
    let mut median = |of: fn(&mut Score) -> &mut Vec<f64>| {
        let all = of(&mut score);
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(0.0)
    };
    let (wide, ratio) = (median(|s| &mut s.wide), median(|s| &mut s.ratios));
    println!(
        "{what}: up to {} ppm apart, changing by {} ppm: {} estimates, {:.3} % inside their bound; error as a share of the bound: \
         median {ratio:.2}, most {:.3}; bound: median {wide:.2} times half of the least way there and back",
        clocks.most_ppm,
        clocks.wander_ppm,
        score.asked,
        100.0 * score.share(),
        score.worst
    );
}
