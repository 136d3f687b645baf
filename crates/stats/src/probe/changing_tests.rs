//! The probe where the storage, or the limiter, is not the same all the time.

use super::tests::{as_the_tool_does, said};
use super::*;
use crate::simulate::events::Events;
use crate::simulate::{Bucket, Charges, Load, RatesSeen, System, drive};

/// 60 op/s, held exactly, before a storage that moves as many large ops only just, and unevenly: their rate makes nothing unclear.
#[test]
fn a_rate_that_is_held_is_clear_however_large_ops_go() {
    let mut asked = 0;
    for seed in 0..12 {
        let mut s = Events::new(seed, &[Bucket::new(Charges::Ops, 60.0, 300.0)], 1);
        (s.ops_cap, s.bytes_cap, s.base_s, s.cv) = (5000.0, 450e6, 0.002, 0.3);
        s.backoff = crate::simulate::events::Backoff::Constant(0.005);
        let mut phases = Vec::new();
        let o = drive::probe_watched(&mut s, as_the_tool_does(100.0), &mut |phase, _, _| {
            phases.push(phase.to_owned())
        });
        asked += usize::from(phases.iter().any(|p| p.contains("requests at once")));
        assert!(o.is_proved(Resource::Ops), "{seed}: {:?} {}", o.evidence(), said(&o));
        // Who refuses small ops refuses large ones: that is no limit on bytes without a rate of theirs.
        assert!(o.bytes.known().is_some() || !o.is_limited(Resource::Bytes), "{seed}: {:?}", o.evidence());
        assert!((o.limit_of_ops().unwrap() / 60.0 - 1.0).abs() < 0.02, "{seed}: {}", said(&o));
    }
    assert!(asked > 0, "{asked}");
}

/// One limiter until `left_s` is over, then another.
struct Changes {
    first: Events,
    then: Events,
    left_s: f64,
}

impl System for Changes {
    fn run(&mut self, load: &Load) -> RatesSeen {
        let is_first = self.left_s > 0.0;
        self.left_s -= load.duration_s;
        let (now, other) =
            if is_first { (&mut self.first, &mut self.then) } else { (&mut self.then, &mut self.first) };
        other.idle(load.duration_s);
        now.run(load)
    }

    fn quiesce(&mut self) {
        self.first.quiesce();
        self.then.quiesce();
    }

    fn idle(&mut self, seconds: f64) {
        self.left_s -= seconds;
        self.first.idle(seconds);
        self.then.idle(seconds);
    }

    fn now_s(&self) -> f64 {
        self.first.now_s()
    }
}

/// 100/s, and from somewhere between two looks on 40/s: no rate of 70/s ever was, no limit on bytes, and no bucket between the two.
#[test]
fn what_lies_between_two_rates_is_none() {
    let mut told = 0;
    for (refuses, left_s) in
        [(true, 45.0), (true, 60.0), (true, 75.0), (false, 60.0), (false, 75.0), (false, 90.0)]
    {
        for seed in 0..3 {
            let limiter = |rate: f64| {
                let mut s = Events::new(seed, &[Bucket::new(Charges::Ops, rate, 5.0)], 1);
                (s.ops_cap, s.bytes_cap, s.base_s) = (5000.0, 2e9, 0.002);
                s.backoff = crate::simulate::events::Backoff::Constant(0.005);
                s.rejects = refuses;
                s
            };
            let mut s = Changes { first: limiter(100.0), then: limiter(40.0), left_s };
            let o = drive::probe(&mut s, as_the_tool_does(120.0));
            let near = |e: plimsoll_model::Estimate| e.contains(100.0) || e.contains(40.0);
            assert!(o.ops.known().is_none_or(near), "{refuses} {left_s}: {:?} {}", o.ops.known(), said(&o));
            assert!(
                o.knee_bytes().is_none() && !o.ops.is_bucket() && !o.bytes.is_bucket(),
                "{refuses} {left_s}: {}",
                said(&o)
            );
            told += usize::from(said(&o).contains("changed while it was measured"));
        }
    }
    assert!(told > 5, "{told}");
}
