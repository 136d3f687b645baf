//! How a rate went over a time, in few parts. Read from counts alone, and not as a whole run is loaded: of a list of many runs each has one.

use plimsoll_model::SeriesId;

use crate::StoreError;
use crate::rundir::RunDir;
use crate::stream::StreamReader;

/// The slices of a time, in parts of as equal a number of them as there can be.
#[derive(Debug, Clone, Copy)]
struct Parts {
    from: u64,
    slices: u64,
    parts: u64,
}

impl Parts {
    /// The whole slices between two times. A time from a file may end a hair off its slice.
    fn of((from_s, to_s): (f64, f64), grid_ns: u64, parts: usize) -> Self {
        const HAIR: f64 = 1e-3;
        let at = |s: f64| s * 1e9 / grid_ns as f64;
        let from = (at(from_s) - HAIR).ceil().max(0.0) as u64;
        let to = (at(to_s) + HAIR).floor().max(0.0) as u64;
        let slices = to.saturating_sub(from);
        Self { from, slices, parts: slices.min(parts as u64) }
    }

    /// Which part a slice is in.
    fn part_of(self, slice: u64) -> Option<usize> {
        let at = slice.checked_sub(self.from).filter(|at| *at < self.slices && self.parts > 0)?;
        Some((u128::from(at) * u128::from(self.parts) / u128::from(self.slices)) as usize)
    }

    /// How many slices a part has.
    fn slices_of(self, part: usize) -> u64 {
        let first = |p: usize| (p as u128 * u128::from(self.slices)).div_ceil(u128::from(self.parts));
        (first(part + 1) - first(part)) as u64
    }
}

impl RunDir {
    /// Ops a second that ended well, all of these series together, in so many equal parts of a time (seconds since the run's start); in
    /// fewer, where it has fewer slices. `None`: it has no whole slice, or a file cannot be read to its end.
    pub fn rates(
        &self,
        series: &[SeriesId],
        between_s: (f64, f64),
        parts: usize,
    ) -> Result<Option<Vec<f64>>, StoreError> {
        let mut grid_ns = None;
        let mut ended: Vec<u64> = Vec::new();
        // One after the other: slices have the run's time, whoever's they are.
        for file in self.interval_files()? {
            let mut reader = StreamReader::open(&file)?;
            let own_ns = reader.header().grid_ns;
            if *grid_ns.get_or_insert(own_ns) != own_ns {
                return Ok(None);
            }
            let parts = Parts::of(between_s, own_ns, parts);
            ended.resize(parts.parts as usize, 0);
            while let Some(slice) = reader.next_counts()? {
                if slice.index >= parts.from.saturating_add(parts.slices) {
                    break;
                }
                let Some(part) = parts.part_of(slice.index) else { continue };
                let mine =
                    slice.series.iter().filter(|(id, _)| id.stage == slice.stage && series.contains(id));
                ended[part] = mine.fold(ended[part], |sum, (_, counts)| sum.saturating_add(counts.ok()));
            }
            if reader.damage().is_some() {
                return Ok(None);
            }
        }
        let Some(grid_ns) = grid_ns.filter(|_| !ended.is_empty()) else { return Ok(None) };
        let parts = Parts::of(between_s, grid_ns, parts);
        let seconds = |part| parts.slices_of(part) as f64 * grid_ns as f64 / 1e9;
        let rate = |(part, n): (usize, &u64)| *n as f64 / seconds(part);
        Ok(Some(ended.iter().enumerate().map(rate).collect()))
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::{OpKind, SeriesCounts};

    use super::*;
    use crate::codec::{SparseInterval, SparseSeries};
    use crate::sparse::SparseHistogram;

    const GRID: u64 = 100_000_000;

    fn id(stage: u32, kind: OpKind) -> SeriesId {
        SeriesId { stage, workload: 0, kind }
    }

    fn slice(index: u64, all: &[(SeriesId, u64)]) -> SparseInterval {
        let mut times = plimsoll_model::Histogram::new();
        times.record(1_000_000);
        let series = |(id, ok): &(SeriesId, u64)| {
            let mut counts = SeriesCounts { started: *ok, ..SeriesCounts::default() };
            counts.outcomes[0] = *ok;
            counts.outcomes[1] = 7;
            SparseSeries {
                id: *id,
                counts,
                response: SparseHistogram::from(&times),
                service: Some(SparseHistogram::from(&times)),
                first_byte: None,
                submission: None,
                throttled: Some(SparseHistogram::from(&times)),
                endpoints: Vec::new(),
            }
        };
        SparseInterval { series: all.iter().map(series).collect(), ..SparseInterval::empty(index) }
    }

    fn run(root: &std::path::Path, agents: &[&str], ok: impl Fn(u64) -> u64) -> RunDir {
        let run = RunDir::create_at(&root.join("r")).unwrap();
        for agent in agents {
            let mut out = run.create_intervals(agent, GRID).unwrap();
            for i in 0..100 {
                let all = [(id(0, OpKind::Put), ok(i)), (id(0, OpKind::Get), 1)];
                out.sparse(0, &slice(i, &all)).unwrap();
            }
            out.sparse(1, &slice(100, &[(id(1, OpKind::Put), 1000)])).unwrap();
            out.finish().unwrap();
        }
        run
    }

    #[test]
    fn a_rate_is_of_its_series_and_its_time_only() {
        let dir = tempfile::tempdir().unwrap();
        let run = run(dir.path(), &["a", "b"], |i| if i < 50 { 10 } else { 5 });
        let put = [id(0, OpKind::Put)];
        // Two agents, ten slices a second.
        assert_eq!(run.rates(&put, (1.0, 9.0), 4).unwrap().unwrap(), [200.0, 200.0, 100.0, 100.0]);
        let both = [id(0, OpKind::Put), id(0, OpKind::Get)];
        assert_eq!(run.rates(&both, (6.0, 7.0), 1).unwrap().unwrap(), [120.0]);
        // Parts of three and four slices; no more parts than slices; slices that are not whole are left out.
        assert_eq!(run.rates(&put, (0.0, 1.0), 3).unwrap().unwrap(), [200.0; 3]);
        assert_eq!(run.rates(&put, (0.05, 0.45), 32).unwrap().unwrap(), [200.0; 3]);
        assert_eq!(run.rates(&put, (0.2999999999, 0.5000000001), 32).unwrap().unwrap(), [200.0; 2]);
        assert_eq!(run.rates(&put, (3.0, 3.0), 32).unwrap(), None);
        assert_eq!(run.rates(&put, (f64::NAN, f64::INFINITY), 0).unwrap(), None);
        // What did not end in a part was none; what lies beyond the record, too.
        assert_eq!(run.rates(&put, (9.0, 11.0), 2).unwrap().unwrap(), [100.0, 0.0]);
    }

    #[test]
    fn nothing_is_said_of_what_cannot_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let run = run(dir.path(), &["a"], |_| 1);
        let file = run.intervals_path("a");
        let bytes = std::fs::read(&file).unwrap();
        std::fs::write(&file, &bytes[..bytes.len() - 3]).unwrap();
        assert_eq!(run.rates(&[id(0, OpKind::Put)], (0.0, 10.0), 4).unwrap(), None);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(run.rates(&[id(0, OpKind::Put)], (0.0, 10.0), 4).unwrap(), None);
    }
}
