//! What the checks look at. Absent facts are absent, never assumed.

/// How writes are made durable, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// In the memory of a server or of a cache that loses power.
    Volatile,
    /// On one device.
    OneDevice,
    /// On a quorum of devices or servers.
    Quorum,
}

/// Little's law as it came out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LittlesLawFact {
    /// Mean, measured.
    pub in_flight: f64,
    /// Rate times mean time in system.
    pub rate_times_time: f64,
    /// Relative difference, 0 to 1.
    pub error: f64,
    /// Part of it that the edges of the window explain.
    pub edge: f64,
}

/// Time for which workers were ready to run and had no CPU, beyond what each waking costs anyway.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuWait {
    /// Of all workers, over the window.
    pub total_s: f64,
    /// Share of the workers' time.
    pub share: f64,
    /// Part of the wait that was for other work, not for threads of the client itself: 0 to 1; absent: not known.
    pub for_others: Option<f64>,
}

/// A CPU quota of the control group that the client runs in, over the window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuotaUse {
    /// CPU time that the group may use, over time.
    pub cores: f64,
    /// Share of the periods in which the quota ran out and the group was stopped: 0 to 1.
    pub throttled: f64,
    /// CPU time of the client's process against the quota.
    pub used: f64,
}

/// What the steady-state method said.
#[derive(Debug, Clone, PartialEq)]
pub enum SteadyFact {
    /// A window that holds the rules was found.
    Steady,
    /// Too short or too uncertain; the reason says what is missing.
    Undetermined(String),
    /// The rate rises or falls all along.
    Drifting,
    /// The rate jumps, or wanders too far.
    Unstable,
    /// It fell because a limiter took over.
    Throttled,
}

/// Facts about one result. Shares are 0 to 1, times seconds, sizes bytes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facts {
    /// Workload that the findings concern.
    pub workload: Option<String>,
    /// Of several agents, the one that they concern.
    pub agent: Option<String>,

    // Outcomes.
    /// In the window, of whatever outcome.
    pub attempts: Option<f64>,
    /// Neither `Ok` nor throttled.
    pub failed: Option<f64>,
    /// Share of the stage's attempts that a limiter refused.
    pub refused_share: Option<f64>,
    /// Share of the window's slices in which it refused any.
    pub refused_slices: Option<f64>,
    /// Share of failures that was asked for as acceptable; absent: 0.1 %.
    pub max_error_rate: Option<f64>,
    /// Absent: nothing was verified.
    pub verify_mismatches: Option<u64>,
    /// Every mismatch that was looked at was a sound block of another seed: another run's data, not damage.
    pub of_another_seed: bool,
    /// Payload bytes that moved.
    pub bytes_sent: Option<f64>,
    /// Payload bytes that were acknowledged.
    pub bytes_acknowledged: Option<f64>,
    /// Ops that were counted as one success and took more than one attempt.
    pub retried_as_success: Option<u64>,
    /// Ops in the tail beyond the highest percentile that is reported.
    pub tail_samples: Option<f64>,

    // The window.
    /// Absent: the series was not judged.
    pub steady: Option<SteadyFact>,
    /// Steps between levels inside the window.
    pub level_changes: Option<usize>,
    /// Absent: a side of it is not known.
    pub littles_law: Option<LittlesLawFact>,
    /// For how long load was on.
    pub horizon_s: Option<f64>,
    /// For how long the result was asked to hold.
    pub goal_s: Option<f64>,
    /// Of the interval of the rate: 0.1 is 10 %.
    pub relative_half_width: Option<f64>,
    /// The window begins with the load.
    pub cold_start_included: Option<bool>,

    // Load.
    /// Open loop: what was to be sent.
    pub offered_per_s: Option<f64>,
    /// Open loop: what ended.
    pub achieved_per_s: Option<f64>,
    /// Share of the time of its slots for which a load that backs off paused after refused attempts.
    pub held_back: Option<f64>,
    /// The option of the command that sets the ops in flight; absent: --concurrency.
    pub in_flight_option: Option<&'static str>,
    /// Least share of its part that any worker achieved.
    pub worst_worker_share: Option<f64>,
    /// Share of ops sent late because the client was busy.
    pub late_share: Option<f64>,
    /// Ops sent, of which that is a share; absent: so many that it is known.
    pub sent: Option<f64>,

    // The client.
    /// The client itself is what is measured (calibration): being busy is then no fault.
    pub client_is_subject: bool,
    /// Share of time in which the busiest workers did not wait.
    pub client_busy: Option<f64>,
    /// Of the client host's cores, the most that the client itself can have used of one.
    pub client_core: Option<f64>,
    /// How long the workers were ready to run and had no CPU.
    pub cpu_wait: Option<CpuWait>,
    /// Absent: the client's control groups set no quota.
    pub cpu_quota: Option<QuotaUse>,
    /// Share of the network interface's speed.
    pub client_nic: Option<f64>,
    /// Share of the calibrated ceiling of this machine.
    pub ceiling_share: Option<f64>,
    /// Share of CPU time that the hypervisor gave to others.
    pub steal: Option<f64>,
    /// Of the wall clock against the monotonic one.
    pub clock_jump_s: Option<f64>,
    /// A processor ran slower because it was hot.
    pub thermal_throttled: Option<bool>,
    /// All of the client's memory.
    pub client_ram_bytes: Option<f64>,
    /// Machines that put load on.
    pub client_hosts: Option<u32>,
    /// Client and storage are one machine.
    pub loopback: Option<bool>,

    // Data.
    /// What the load can touch.
    pub working_set_bytes: Option<f64>,
    /// Some ops read: only then does the working set count (V08).
    pub reads: bool,
    /// Some ops write: only then does durability count (V12).
    pub writes: bool,
    /// Reads that the client's page cache cannot answer (direct I/O, or an object over the network).
    pub bypasses_client_cache: Option<bool>,
    /// All of the server's memory.
    pub server_ram_bytes: Option<f64>,
    /// The user said that the server's cache is part of what is measured.
    pub server_cache_stated: Option<bool>,
    /// Of the payload: 8 is random.
    pub entropy_bits_per_byte: Option<f64>,
    /// Share of payload blocks that repeat another.
    pub repeated_share: Option<f64>,
    /// Compressible or repeated data was asked for.
    pub reducible_asked_for: bool,
    /// Reads of what was never written.
    pub unwritten_reads: Option<u64>,

    // Several drivers.
    /// Between the first driver's start and the last one's.
    pub start_skew_s: Option<f64>,
    /// The largest between two drivers.
    pub clock_offset_s: Option<f64>,
    /// Length of a slice of the grid.
    pub dt_s: Option<f64>,
    /// By which the first driver stopped before the others.
    pub ended_early_s: Option<f64>,

    // The storage.
    /// As far as it is known.
    pub durability: Option<Durability>,
    /// As the result says.
    pub durability_claimed: Option<Durability>,
    /// Of the device, 0 to 1.
    pub fill: Option<f64>,
    /// The user said how full it is meant to be.
    pub fill_stated: bool,
    /// Flash without a file system: fresh, it is faster than it will stay.
    pub raw_ssd: bool,
    /// It was written over before.
    pub preconditioned: Option<bool>,
    /// What else the storage did, each in words.
    pub background: Vec<String>,

    // Several runs or cells.
    /// Run means in the order in which they were made.
    pub repeats: Vec<f64>,
    /// One run alone is qualified.
    pub repeats_expected: bool,
    /// Between runs that are compared, each in words.
    pub configuration_differences: Vec<String>,
    /// Whether some cells were measured from a full bucket and some from an empty one.
    pub mixed_limiter_states: Option<bool>,
    /// The raw data hashes to what the seal says.
    pub sealed_hash_matches: Option<bool>,

    // Limits.
    /// p-value of the limit model's misfit.
    pub misfit_p: Option<f64>,
    /// Where it fits worst, in words.
    pub misfit_cell: Option<String>,
    /// A bucket was fitted, and whether it was full at the start is not known.
    pub initial_fill_unknown: Option<bool>,
    /// TLS, addressing, ...: what later use will have otherwise, each in words.
    pub transport_differs: Vec<String>,
    /// Others use the same storage: what they did meanwhile is not known.
    pub shared_infrastructure: Option<bool>,
}
