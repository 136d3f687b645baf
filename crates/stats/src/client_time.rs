//! The workers' own time, put where it was: a worker that comes late to the grid's edge hands over one slice that holds the
//! time of several, and what was in flight in all of them. From that also when no worker ran at all.

/// What the workers of a stage handed over in one step, summed over them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct HandedOver {
    /// Slices that came.
    pub slices: u32,
    /// Time that they cover, seconds.
    pub alive_s: f64,
    /// Ops in flight integrated over that time, op-seconds.
    pub in_flight_op_s: f64,
}

/// Each step, with the time of late slices in the steps that it is of.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SpreadSteps {
    /// Mean ops in flight.
    pub in_flight: Vec<f64>,
    /// Not one slice came in the step, and all of its time came with an earlier, late one: no worker ran in it.
    pub silent: Vec<bool>,
}

/// Steps of `dt_s`, in which `workers` live that may have `most` ops in flight at once.
pub fn spread(steps: &[HandedOver], workers: u32, most: f64, dt_s: f64) -> SpreadSteps {
    let room_s = f64::from(workers.max(1)) * dt_s;
    let (mut alive_s, mut op_s) = (0.0, 0.0);
    let mut out = SpreadSteps::default();
    for s in steps {
        // Of this step nothing came, now or later: who was in flight before waits still (a device that hangs for good).
        if s.slices == 0 && alive_s < 1e-9 {
            out.in_flight.push(out.in_flight.last().copied().unwrap_or(0.0));
            out.silent.push(false);
            continue;
        }
        alive_s += s.alive_s;
        op_s += s.in_flight_op_s;
        // A late slice is filed under the step in which it began: what is too much for this one is of the next.
        let here = if alive_s > room_s { room_s / alive_s } else { 1.0 };
        out.in_flight.push((op_s * here / dt_s).min(most));
        // Nine tenths: the first of several late workers runs again a little before the last one.
        out.silent.push(s.slices == 0 && alive_s >= 0.9 * room_s);
        alive_s *= 1.0 - here;
        op_s *= 1.0 - here;
    }
    out
}

/// Runs of silent steps, `[from, to)`.
pub fn silences(silent: &[bool]) -> Vec<(usize, usize)> {
    let mut out: Vec<(usize, usize)> = Vec::new();
    for (i, _) in silent.iter().enumerate().filter(|(_, s)| **s) {
        match out.last_mut() {
            Some(last) if last.1 == i => last.1 = i + 1,
            _ => out.push((i, i + 1)),
        }
    }
    out
}

/// Whether the sampler, which takes a sample each `every_s`, stood still, too: it took none from `from_s` to `to_s`, and one
/// was due in it. `at_s`: the times of its samples, in order. `None`: none was due, which says nothing.
pub fn sampler_stood_still(at_s: &[f64], every_s: f64, from_s: f64, to_s: f64) -> Option<bool> {
    if at_s.iter().any(|t| *t > from_s && *t < to_s) {
        return Some(false);
    }
    let before = at_s.iter().rev().find(|t| **t <= from_s)?;
    (before + every_s < to_s).then_some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DT_S: f64 = 0.1;

    fn on_time(workers: u32, each: f64) -> HandedOver {
        let alive_s = f64::from(workers) * DT_S;
        HandedOver { slices: workers, alive_s, in_flight_op_s: alive_s * each }
    }

    #[test]
    fn what_is_on_time_stays() {
        let s = spread(&[on_time(2, 2.0); 5], 2, 4.0, DT_S);
        assert!(s.in_flight.iter().all(|f| (f - 4.0).abs() < 1e-9), "{s:?}");
        assert_eq!(s.silent, [false; 5]);
    }

    #[test]
    fn a_late_slice_is_of_all_the_steps_that_it_lasted() {
        // Both workers stop for 3 s in the third step and hand over 3.1 s each, with two in flight.
        let late = HandedOver { slices: 2, alive_s: 6.2, in_flight_op_s: 12.4 };
        let mut steps = vec![on_time(2, 2.0); 2];
        steps.push(late);
        steps.extend([HandedOver::default(); 30]);
        steps.extend([on_time(2, 2.0); 3]);
        let s = spread(&steps, 2, 4.0, DT_S);
        assert!(s.in_flight.iter().all(|f| (f - 4.0).abs() < 1e-6), "{s:?}");
        assert_eq!(silences(&s.silent), [(3, 33)]);
        let sum = |x: f64| (x * 1e6).round();
        let had: f64 = steps.iter().map(|x| x.in_flight_op_s).sum();
        assert_eq!(sum(s.in_flight.iter().sum::<f64>() * DT_S), sum(had), "nothing is lost");
    }

    #[test]
    fn one_worker_that_is_late_among_others_is_no_silence() {
        let mut steps = vec![on_time(2, 2.0)];
        steps.push(HandedOver { slices: 2, alive_s: 1.1, in_flight_op_s: 2.2 });
        steps.extend([on_time(1, 2.0); 9]);
        let s = spread(&steps, 2, 4.0, DT_S);
        assert!(s.in_flight.iter().all(|f| (f - 4.0).abs() < 1e-6), "{s:?}");
        assert_eq!(silences(&s.silent), []);
    }

    #[test]
    fn what_never_came_is_no_silence_and_nothing_is_above_the_load() {
        let s = spread(&[on_time(1, 1.0), HandedOver::default(), HandedOver::default()], 1, 1.0, DT_S);
        assert!(s.in_flight.iter().all(|f| (f - 1.0).abs() < 1e-9), "{s:?}");
        assert_eq!(silences(&s.silent), []);
        // A worker with one op and, late, another with 31.
        let late = HandedOver { slices: 2, alive_s: 3.2, in_flight_op_s: 31.0 * 3.1 + 0.1 };
        let s = spread(&[late, HandedOver::default()], 2, 32.0, DT_S);
        assert!(s.in_flight.iter().all(|f| *f <= 32.0), "{s:?}");
    }

    #[test]
    fn the_sampler_bears_witness_where_a_sample_was_due() {
        let at_s = [0.0, 1.0, 2.0, 6.1, 7.0];
        assert_eq!(sampler_stood_still(&at_s, 1.0, 2.5, 6.0), Some(true));
        assert_eq!(sampler_stood_still(&at_s, 1.0, 1.5, 2.5), Some(false));
        assert_eq!(sampler_stood_still(&at_s, 1.0, 6.2, 6.9), None);
        assert_eq!(sampler_stood_still(&[], 1.0, 6.2, 9.0), None);
    }
}
