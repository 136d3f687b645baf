//! What a probe is told.

/// What the probe may use and want.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProbeOptions {
    /// Size of ops for the ops bucket, and the largest for the bytes bucket.
    pub small_bytes: u64,
    /// The pilot may choose less.
    pub large_bytes: u64,
    /// The user named the size of large ops: it is kept, however few of them end in a slice.
    pub keep_large: bool,
    /// Ops in flight that saturate, or from which a ladder of doublings starts.
    pub concurrency: u32,
    /// Highest rung of that ladder for small and for large ops; 0: no ladder. At or below `concurrency`: two rungs, the upper one
    /// of `concurrency`.
    pub most: [u32; 2],
    /// Bytes that travel with each op beside its own (headers): under one cap on bytes, small ops move the fewer for them.
    pub overhead_bytes: u64,
    /// Bytes of one op that buffers on the way may take up at once: a burst of so many for each op in flight is none.
    pub buffered_bytes: u64,
    /// Whether the op moves bytes: without, there is no bytes bucket to look for.
    pub moves_bytes: bool,
    /// What kind of limiter it is, beside its figures: what refusals cost, burst by tokens or by time, cost of a size.
    pub questions: bool,
    /// Slice of the series that is wanted back.
    pub dt_s: f64,
    /// All phases together may take this long.
    pub budget_s: f64,
    /// A first drain without a cliff ends here: larger buckets are not excluded, and the result says so.
    pub horizon_s: f64,
}

impl Default for ProbeOptions {
    fn default() -> Self {
        Self {
            small_bytes: 1024,
            large_bytes: 8 << 20,
            keep_large: false,
            concurrency: 256,
            most: [0; 2],
            overhead_bytes: 0,
            buffered_bytes: 0,
            moves_bytes: true,
            questions: false,
            dt_s: 0.25,
            budget_s: 900.0,
            horizon_s: 180.0,
        }
    }
}
