//! What a conductor finds out of an agent's clock, against the truth: `cargo run --release -p plimsoll-fleet --example clocks` does more of it.

#[path = "../examples/clocks/world.rs"]
mod world;

use world::{BAD, QUARTZ, score};

#[test]
fn the_truth_is_inside_the_bound_whatever_the_way_does() {
    let score = score(7, 300, QUARTZ);
    assert!(score.asked > 10_000, "{}", score.asked);
    assert_eq!(score.inside, score.asked, "the largest error is {} times its bound", score.worst);
    // A bound that were always wide would hold, too.
    assert!(score.worst > 0.9, "{}", score.worst);
    let mut wide = score.wide;
    wide.sort_by(f64::total_cmp);
    assert!(wide[wide.len() / 2] < 5.0, "{}", wide[wide.len() / 2]);
}

#[test]
fn clocks_that_run_off_by_more_than_crystals_are_learnt() {
    let score = score(7, 100, BAD);
    assert!(score.share() > 0.9 && score.share() < 1.0, "{}", score.share());
}
