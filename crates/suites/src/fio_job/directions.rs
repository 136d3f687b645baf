//! A mixed job whose directions have rates of their own: its reads and its writes run side by side.

use plimsoll_model::plan::{FIO_READS, FIO_WRITES};

use super::block_size::mean_bytes;
use super::error::FioError;
use super::job::{JobSection, Pattern, RateProcess};

/// The job as it is, or its reads and its writes, each with what is added to its name.
///
/// fio draws the direction of each I/O by `rwmixread` and takes the other one when that is ahead of its rate
/// (`rate_ddir` in its io_u.c): each keeps its own rate exactly, and what has none goes on as fast as it can. That is
/// what the two do here. One sequence drawn by the ratio of the rates would hold each only on the average.
pub fn parts(job: &JobSection) -> Result<Vec<(JobSection, &'static str)>, FioError> {
    let rates = per_direction_rates(job);
    let rated = rates.iter().flatten().count();
    // Where size ends the job, both rates say how much of it falls to each: one sequence of that mix.
    if job.pattern != Pattern::ReadWrite || rated == 0 || rated == 2 && !job.time_based {
        return Ok(vec![(job.clone(), "")]);
    }
    if !job.time_based {
        return Err(job.error(
            "only one direction of this mixed job has a rate, and the job ends by its size: the share of each \
             direction is not known in advance",
            "Add time_based=1 and runtime=, or a rate for both directions, for example rate_iops=100,50",
        ));
    }
    let part = |pattern: Pattern, name: &'static str| {
        let mut part = job.clone();
        part.pattern = pattern;
        let paced = rates[usize::from(pattern == Pattern::Write)].is_some();
        if !paced {
            part.rate_process = RateProcess::Linear;
        }
        if pattern == Pattern::Read {
            (part.fsync, part.fdatasync, part.end_fsync) = (0, 0, false);
        }
        let held = match rates {
            [Some(_), Some(_)] => "reads and writes have rates of their own",
            [Some(_), None] => "the reads have a rate, the writes run as fast as they can",
            _ => "the writes have a rate, the reads run as fast as they can",
        };
        part.notes.push(format!(
            "{held}: they run at the same time, each in its own thread with up to iodepth={} in flight; rwmixread is \
             not used.",
            job.iodepth
        ));
        (part, name)
    };
    Ok(vec![part(Pattern::Read, FIO_READS), part(Pattern::Write, FIO_WRITES)])
}

/// Operations per million seconds of reads and writes of one clone, where a rate was written.
pub fn per_direction_rates(job: &JobSection) -> [Option<u64>; 2] {
    const PER: f64 = 1e6;
    let of = |i: usize| {
        let mean = mean_bytes(&job.block.distribution(i == 1)).max(1.0);
        let iops = job.rate_iops[i].map(|n| n as f64);
        iops.or(job.rate_bytes[i].map(|b| b as f64 / mean)).map(|r| (r * PER).round().max(1.0) as u64)
    };
    [of(0), of(1)]
}
