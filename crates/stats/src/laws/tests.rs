//! Laws of products, request by request, before the contest of laws that are flows.

use super::*;
use crate::products::buckets::{TakesFirst, Tokens};
use crate::products::counted::{EnvoyGlobal, HaproxyTable, OverQuota, WafRule};
use crate::products::penalties::{CdnRule, FairUse, VarnishThrottle};
use crate::products::{LawAnswer, LawRequest, ProductLaw};
use crate::rng::Rng;
use crate::simulate::RatesSeen;

/// Loads, each of so many attempts per second for so many seconds after a rest of so many, and what became of them.
fn record(law: &mut dyn ProductLaw, loads: &[(f64, f64, f64)]) -> LoadRecord {
    let mut g = Rng::new(11);
    let mut out = LoadRecord::default();
    let mut now_s = 0.0;
    for (rest_s, per_s, length_s) in loads {
        now_s += rest_s;
        let dt_s = 0.2;
        let slices = (length_s / dt_s).round() as usize;
        let mut seen = RatesSeen { dt_s, ..RatesSeen::default() };
        seen.ops_per_s = vec![0.0; slices];
        seen.rejected_per_s = vec![0.0; slices];
        let n = (per_s * length_s) as usize;
        for i in 0..n {
            let at_s = (i as f64 + g.between(0.0, 0.9)) / per_s;
            let request = LawRequest { at_s: now_s + at_s, size_bytes: 4096.0, connection: 0 };
            let slice = ((at_s / dt_s) as usize).min(slices - 1);
            match law.ask(request) {
                LawAnswer::At(_) => seen.ops_per_s[slice] += 1.0 / dt_s,
                LawAnswer::RefusedAt(_) => seen.rejected_per_s[slice] += 1.0 / dt_s,
            }
        }
        now_s += length_s;
        let load =
            RecordedLoad { continues: false, scored: true, offered_per_s: Some(*per_s), in_flight: 256 };
        out.add(&seen, now_s, load);
    }
    out
}

/// Pushed hard, and then at two rates above what holds, after rests.
fn loads(holds: f64) -> [(f64, f64, f64); 4] {
    [
        (0.0, 20.0 * holds, 20.0),
        (40.0, 2.0 * holds, 40.0),
        (40.0, 1.3 * holds, 40.0),
        (40.0, 0.9 * holds, 20.0),
    ]
}

#[track_caller]
fn best(law: &mut dyn ProductLaw, holds: f64, expected: RivalLaw) -> LawFit {
    let found = contest(&record(law, &loads(holds)), 600.0).unwrap();
    let Some(best) = found.standing().first() else { panic!("{expected:?}: {found:#?}") };
    assert_eq!(best.law, expected, "{found:#?}");
    // One with a parameter more may explain as much.
    assert!(found.standing().len() <= 3, "{found:#?}");
    *best
}

#[track_caller]
fn near(fit: LawFit, holds: f64) {
    assert!((fit.rate_per_s / holds - 1.0).abs() < 0.03, "{holds}: {fit:?}");
}

#[test]
fn a_bucket_is_best_where_it_is_one() {
    near(best(&mut FlatBucket(Tokens::new(50.0, 200.0)), 50.0, RivalLaw::Bucket), 50.0);
}

#[derive(Debug)]
struct FlatBucket(Tokens);

impl ProductLaw for FlatBucket {
    fn ask(&mut self, r: LawRequest) -> LawAnswer {
        if self.0.take(r.at_s) { LawAnswer::At(r.at_s) } else { LawAnswer::RefusedAt(r.at_s) }
    }
}

#[test]
fn a_ban_is_best_where_it_is_one() {
    let fit = best(&mut VarnishThrottle::new(250.0, 5.0, 12.0), 50.0, RivalLaw::Ban);
    near(fit, 50.0);
    assert!((fit.shut_s.unwrap() - 12.0).abs() < 0.5, "{fit:?}");
}

#[test]
fn a_rule_that_blocks_is_best_where_it_is_one() {
    let fit = best(&mut CdnRule::new(500.0, 10.0, 15.0), 50.0, RivalLaw::CalendarBan);
    assert!((fit.shut_s.unwrap() - 15.0).abs() < 1.0, "{fit:?}");
}

#[test]
fn a_quota_of_a_minute_is_best_where_it_is_one() {
    let mut law = EnvoyGlobal::new(60.0, 3000.0, 17.0);
    let long = [(0.0, 500.0, 200.0), (0.0, 70.0, 60.0)];
    let found = contest(&record(&mut law, &long), 600.0).unwrap();
    let won = found.winner().unwrap_or_else(|| panic!("{found:#?}"));
    assert_eq!(won.law, RivalLaw::Calendar, "{found:#?}");
    near(*won, 50.0);
    assert!((won.period_s.unwrap() - 60.0).abs() < 0.5, "{won:?}");
}

#[test]
fn a_count_of_refused_attempts_is_best_where_it_is_one() {
    let table = || HaproxyTable::new(10.0, 500.0, OverQuota::Deny);
    let fit = best(&mut table(), 50.0, RivalLaw::CountsRefused);
    // 500 in eight seconds explain as much as 500 in ten, until a rate between them is refused.
    assert!(fit.rate_bounds.0 < 50.0 && 50.0 < fit.rate_bounds.1, "{fit:?}");
    let more: Vec<(f64, f64, f64)> = loads(50.0).into_iter().chain([(40.0, 54.0, 40.0)]).collect();
    let found = contest(&record(&mut table(), &more), 600.0).unwrap();
    assert_eq!(found.fits[0].law, RivalLaw::CountsRefused, "{found:#?}");
    near(found.fits[0], 50.0);
}

#[test]
fn a_note_until_it_is_calm_loses_to_no_other_where_it_is_one() {
    // Calm are only loads that end: one below the rate does not open it again.
    let loads = [(0.0, 1000.0, 20.0), (0.0, 45.0, 40.0), (40.0, 65.0, 40.0)];
    let mut law = HaproxyTable::new(10.0, 500.0, OverQuota::Noted(15.0));
    let found = contest(&record(&mut law, &loads), 600.0).unwrap();
    // It was pushed only once: several laws explain that, and none of them is told.
    assert!(found.winner().is_none_or(|w| w.law == RivalLaw::UntilCalm), "{found:#?}");
}

/// Pushed, it is a bucket with a slow begin: what it lets through after less than a period of calm tells.
#[test]
fn a_count_of_what_passed_is_best_where_it_is_one() {
    let fit = best(&mut HaproxyTable::new(30.0, 1500.0, OverQuota::Spared), 50.0, RivalLaw::CountsPassed);
    near(fit, 50.0);
    assert_eq!(fit.period_s, Some(30.0));
    assert!(!fit.law.punishes() && (fit.memory_s() - 36.0).abs() < 1e-9, "{fit:?}");
}

/// A minute's attempts, looked at each ten seconds.
#[test]
fn a_count_that_is_looked_at_is_best_where_it_is_one() {
    let mut law = WafRule::new(60.0, 3000.0, 10.0);
    let loads =
        [(0.0, 500.0, 25.0), (0.0, 5.0, 65.0), (0.0, 90.0, 60.0), (70.0, 65.0, 90.0), (60.0, 49.0, 80.0)];
    let seen = record(&mut law, &loads);
    let found = contest(&seen, 600.0).unwrap();
    let won = found.winner().unwrap_or_else(|| panic!("{found:#?}"));
    assert_eq!((won.law, won.period_s), (RivalLaw::CountsAtLooks, Some(60.0)), "{found:#?}");
    assert!(won.rate_bounds.0 < 50.0 && 50.0 < won.rate_bounds.1, "{won:?}");
    // In a few minutes it is not told, and must not keep other laws from being told.
    let brief = contest(&seen, 240.0).unwrap();
    assert!(brief.fits.iter().all(|f| f.law != RivalLaw::CountsAtLooks), "{brief:#?}");
    // Nobody comes: it lets in at the first look at which a minute's count is small enough.
    let state = won.state(&record(&mut WafRule::new(60.0, 3000.0, 10.0), &[(0.0, 500.0, 20.0)]));
    let opens_s = state.first_passing_s(0.0, 5.0, 90.0).unwrap();
    assert!((opens_s - 60.0).abs() <= 1.0, "{opens_s}");
    assert_eq!(state.first_passing_s(0.0, 5.0, 30.0), None);
}

#[test]
fn a_bucket_that_refusals_draw_on_is_not_excluded_where_it_is_one() {
    let mut law = TakesFirst { tokens: Tokens::new(50.0, 100.0), refusal: 1.0, floor: -100.0 };
    // After a rest it is a bucket with a ban as well; both have its rate.
    let found = contest(&record(&mut law, &loads(50.0)), 600.0).unwrap();
    assert!(found.standing().iter().any(|f| f.law == RivalLaw::TakesFirst), "{found:#?}");
    near(*found.standing().first().unwrap_or_else(|| panic!("{found:#?}")), 50.0);
}

#[test]
fn a_lower_rate_after_an_excess_is_best_where_it_is_one() {
    let mut law = FairUse::new(Tokens::new(50.0, 100.0), Tokens::new(20.0, 20.0), 10.0);
    let fit = best(&mut law, 50.0, RivalLaw::Slower);
    assert!(fit.rate_bounds.0 < 50.0 && 50.0 < fit.rate_bounds.1, "{fit:?}");
}

/// One in three is refused, whatever comes: no law that is known here.
#[test]
fn what_is_no_law_that_is_known_is_none() {
    #[derive(Debug)]
    struct OneInThree(u32);
    impl ProductLaw for OneInThree {
        fn ask(&mut self, r: LawRequest) -> LawAnswer {
            self.0 += 1;
            if self.0.is_multiple_of(3) { LawAnswer::RefusedAt(r.at_s) } else { LawAnswer::At(r.at_s) }
        }
    }
    let found = contest(&record(&mut OneInThree(0), &loads(50.0)), 600.0).unwrap();
    assert!(found.ahead_of_none < 0.0 && found.winner().is_none(), "{found:#?}");
    assert!(found.standing().is_empty());
}

#[test]
fn nothing_is_told_of_a_few_refusals() {
    let mut law = FlatBucket(Tokens::new(50.0, 200.0));
    assert_eq!(contest(&record(&mut law, &[(0.0, 40.0, 60.0)]), 600.0), None);
    assert_eq!(contest(&LoadRecord::default(), 600.0), None);
}

/// All that foresee the same as the best have their part of the likelihood, and no more than that.
#[test]
fn hypotheses_share_the_likelihood() {
    let found = contest(&record(&mut VarnishThrottle::new(250.0, 5.0, 12.0), &loads(50.0)), 600.0).unwrap();
    let sum: f64 = found.hypotheses.iter().map(|h| h.weight).sum();
    assert!((sum - 1.0).abs() < 1e-9 && found.hypotheses[0].fit.law == found.fits[0].law, "{found:#?}");
    let state = found.fits[0].state(&record(&mut VarnishThrottle::new(250.0, 5.0, 12.0), &loads(50.0)));
    // 250 tokens, of which 20 a second are missing.
    let at_s = state.first_refusal_s(40.0, 70.0, 60.0).unwrap();
    assert!((at_s - 12.5).abs() < 1.0, "{at_s}");
    assert_eq!(state.first_refusal_s(40.0, 45.0, 60.0), None);
    // It is still shut.
    assert!(
        found.fits[0]
            .state(&record(&mut VarnishThrottle::new(250.0, 5.0, 12.0), &[(0.0, 500.0, 10.0)]))
            .first_refusal_s(1.0, 20.0, 60.0)
            .is_some_and(|s| s < 1.0)
    );
}
