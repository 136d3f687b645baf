//! How hard the storage is driven, and for how long: concurrency, rate, keys, data, stop.

use clap::Args;
use plimsoll_model::plan::{DataSpec, KeyDist, Pacing, Stop};
use plimsoll_model::units::{Size, Span};

use crate::fault::Fault;
use crate::values::{self, Arrivals, OfferedRate};

const LOAD: &str = "Load";
const STOP: &str = "Time and stop";
const DATA: &str = "Keys and data";

/// How long a workload runs when nothing says when to stop.
pub const DEFAULT_DURATION: Span = Span(std::time::Duration::from_secs(30));

#[derive(Debug, Clone, Args)]
pub struct LoadArgs {
    /// Operations in flight at once
    #[arg(long, short = 'c', value_name = "N", default_value_t = 16,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub concurrency: u32,
    /// Send ops at this rate (open loop): 800/s, 600MiB/s, or 100/s..800/s for a ramp; latency is measured from the
    /// intended start
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, help_heading = LOAD)]
    pub rate: Option<OfferedRate>,
    /// Arrival process of an open loop
    #[arg(long, value_enum, default_value = "constant", help_heading = LOAD)]
    pub arrivals: Arrivals,
    /// Duration of a ramp from one rate to the other
    #[arg(long, value_name = "TIME", help_heading = LOAD)]
    pub ramp_over: Option<Span>,

    /// Duration of the measurement [default: 30s, unless --max-ops or --max-bytes is given]
    #[arg(long, short = 'd', value_name = "TIME")]
    pub duration: Option<Span>,
    /// Stop after this many ops
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = STOP)]
    pub max_ops: Option<u64>,
    /// Stop after this many bytes, for example 10GiB
    #[arg(long, value_name = "SIZE", help_heading = STOP)]
    pub max_bytes: Option<Size>,
    /// Duration of the warm-up, which is not part of any figure
    #[arg(long, value_name = "TIME", default_value = "2s", help_heading = STOP)]
    pub warmup: Span,

    /// Distribution of keys: uniform, sequential, or zipf:EXPONENT (for example zipf:1.1)
    #[arg(long, value_name = "HOW", default_value = "uniform", value_parser = values::key_dist, help_heading = DATA)]
    pub keys: KeyDist,
    /// Number of prefixes to spread keys over
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..), help_heading = DATA)]
    pub prefixes: u32,
    /// Share of the written data that is compressible, for example 50%
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = values::share, help_heading = DATA)]
    pub compressible: f64,
    /// Share of the written blocks that are duplicates, for example 20%
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = values::share, help_heading = DATA)]
    pub dedupable: f64,
}

impl LoadArgs {
    pub fn pacing(&self) -> Result<Pacing, Fault> {
        values::pacing(self.rate, self.arrivals, self.ramp_over).map_err(split_remedy)
    }

    pub fn stop(&self) -> Stop {
        stop(self.duration, self.max_ops, self.max_bytes)
    }

    /// What was asked for, without a default: a search has an end of its own.
    pub fn asked(&self) -> Stop {
        Stop { duration: self.duration, ops: self.max_ops, bytes: self.max_bytes, loops: None }
    }

    pub fn data(&self) -> DataSpec {
        DataSpec { compressible: self.compressible, dedupable: self.dedupable }
    }
}

/// A stop with the default duration where nothing else ends the workload.
pub fn stop(duration: Option<Span>, ops: Option<u64>, bytes: Option<Size>) -> Stop {
    let open_ended = duration.is_none() && ops.is_none() && bytes.is_none();
    Stop { duration: if open_ended { Some(DEFAULT_DURATION) } else { duration }, ops, bytes, loops: None }
}

/// `what: remedy` as one message becomes the two lines of a fault.
pub fn split_remedy(message: String) -> Fault {
    match message.split_once(": ") {
        Some((what, remedy)) => {
            let mut remedy = remedy.to_owned();
            remedy[..1].make_ascii_uppercase();
            Fault::input(what, remedy + ".")
        }
        None => Fault::input(message, "See --help."),
    }
}
