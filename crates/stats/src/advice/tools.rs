//! Settings of tools for a rate, or a number in flight, that is kept. Rates are rounded down, so that whoever follows the advice
//! stays below what was measured; and what is less than one per second is neither nothing nor one.
//!
//! Which numbers each takes: `warp --rps-limit` and `rclone --tpslimit` fractions; vegeta and k6 whole numbers in a period of any
//! length; wrk2 whole numbers per second.

/// Periods in which a rate may be counted, seconds, and how vegeta and k6 write them.
const PERIODS: [(f64, &str); 5] = [(1.0, "1s"), (10.0, "10s"), (60.0, "1m"), (600.0, "10m"), (3600.0, "1h")];
/// Rounding down to a whole number may take this much of a rate, before a longer period is taken (a choice).
const LOST: f64 = 0.05;
/// What is whole but for the last bits of a float is whole.
const BITS: f64 = 1e-9;

/// So many whole requests in a period, which is a rate that nothing rounds up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct KeptRate {
    count: f64,
    period_s: f64,
    period: &'static str,
}

impl KeptRate {
    /// At most `per_s`, in the shortest period that loses little of it; `None`: it is less than one an hour.
    pub(super) fn of(per_s: f64) -> Option<Self> {
        let within = |(period_s, period): (f64, &'static str)| {
            let count = (per_s * period_s * (1.0 + BITS)).floor();
            (count >= 1.0 && count.is_finite()).then_some(Self { count, period_s, period })
        };
        let all = || PERIODS.into_iter().filter_map(within);
        all().find(|k| k.per_s() >= (1.0 - LOST) * per_s).or_else(|| all().next_back())
    }

    fn per_s(self) -> f64 {
        self.count / self.period_s
    }

    /// Per second, as a decimal of at most three digits behind zeros; not above the rate.
    pub(super) fn decimal(self) -> String {
        let per_s = self.per_s();
        if self.period_s <= 1.0 {
            return format!("{per_s:.0}");
        }
        let digits = (2.0 - per_s.log10().floor()).clamp(0.0, 9.0);
        let step = 10f64.powi(digits as i32);
        let text = format!("{:.*}", digits as usize, (per_s * step * (1.0 + BITS)).floor() / step);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }

    /// For tools that move objects.
    pub(super) fn s3_tools(self) -> String {
        let per_s = self.decimal();
        format!("warp --rps-limit {per_s}, rclone --tpslimit {per_s}")
    }

    /// For generators of HTTP load. `on_each`: it is for each of several clients.
    pub(super) fn generators(self, on_each: bool) -> String {
        let Self { count, period, .. } = self;
        let whole = (self.per_s() * (1.0 + BITS)).floor();
        let wrk2 = if whole >= 1.0 { format!(", wrk2 -R{whole:.0}") } else { String::new() };
        format!(
            "{}vegeta -rate={count:.0}/{period}{wrk2}, k6 rate: {count:.0}, timeUnit: '{period}'.",
            begin(on_each)
        )
    }
}

/// So many in flight at the most. One thread of wrk2: it gives each thread as many connections, and refuses more threads than
/// connections.
pub(super) fn generators_in_flight(n: f64, on_each: bool) -> String {
    format!("{}vegeta -max-workers={n:.0}, wrk2 -t1 -c{n:.0}, k6 vus: {n:.0}.", begin(on_each))
}

/// How what is for generators of HTTP load begins: a line to itself.
fn begin(on_each: bool) -> &'static str {
    if on_each { "Load generators, on each: " } else { "Load generators: " }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(per_s: f64) -> (String, String) {
        let k = KeptRate::of(per_s).unwrap();
        (k.s3_tools(), k.generators(false))
    }

    #[test]
    fn a_rate_is_rounded_down_in_the_units_of_each_tool() {
        let (s3, http) = kept(98.7);
        assert_eq!(s3, "warp --rps-limit 98, rclone --tpslimit 98");
        assert_eq!(http, "Load generators: vegeta -rate=98/1s, wrk2 -R98, k6 rate: 98, timeUnit: '1s'.");
        // As many whole ones in a longer period, where whole ones per second would lose half of it.
        let (s3, http) = kept(1.99);
        assert_eq!(s3, "warp --rps-limit 1.9, rclone --tpslimit 1.9");
        assert_eq!(http, "Load generators: vegeta -rate=19/10s, wrk2 -R1, k6 rate: 19, timeUnit: '10s'.");
    }

    #[test]
    fn less_than_one_per_second_is_neither_nothing_nor_one() {
        let (s3, http) = kept(0.6);
        assert_eq!(s3, "warp --rps-limit 0.6, rclone --tpslimit 0.6");
        // wrk2 takes whole numbers per second.
        assert_eq!(http, "Load generators: vegeta -rate=6/10s, k6 rate: 6, timeUnit: '10s'.");
        assert_eq!(kept(0.67).0, "warp --rps-limit 0.666, rclone --tpslimit 0.666");
        assert!(kept(0.67).1.contains("-rate=40/1m,"), "{:?}", kept(0.67));
        assert_eq!(kept(1.0 / 3600.0).0, "warp --rps-limit 0.000277, rclone --tpslimit 0.000277");
        for none in [0.0, 1.0 / 3601.0, -3.0, f64::NAN, f64::INFINITY] {
            assert_eq!(KeptRate::of(none), None, "{none}");
        }
    }

    #[test]
    fn no_tool_is_told_more_than_the_rate() {
        for i in 1..40_000 {
            let per_s = f64::from(i) * f64::from(i) / 7000.0;
            let Some(k) = KeptRate::of(per_s) else { continue };
            let told: f64 = k.decimal().parse().unwrap();
            assert!(told > 0.0 && k.per_s() <= per_s * (1.0 + 2.0 * BITS), "{per_s}: {k:?}");
            assert!(told <= k.per_s() * (1.0 + 2.0 * BITS), "{per_s}: {told}");
            assert!(told >= 0.9 * per_s || per_s < 0.01, "{per_s}: {told}");
        }
    }

    /// What stands behind `Advice: `, of rates up to a million per second.
    #[test]
    fn a_line_of_generators_fits_a_terminal_of_100_columns() {
        let longest = KeptRate::of(999_999.0).unwrap().generators(false);
        assert!(longest.len() + "Advice: ".len() <= 100, "{longest}");
    }
}
