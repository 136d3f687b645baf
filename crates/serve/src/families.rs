//! What `GET /metrics` gives out, by name: the one list that the document and the reference page (`docs/reference/metrics.md`) are made of.

/// One metric: its samples differ by their labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricFamily {
    /// As Prometheus knows it. Its unit is in it.
    pub name: &'static str,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// What one of it is.
    pub unit: &'static str,
    /// Names of its labels, in the order in which they are written; `le` of the buckets of a histogram.
    pub labels: &'static [&'static str],
    /// One sentence.
    pub help: &'static str,
}

/// Of one series of a stage.
const OF_SERIES: &[&str] = &["run", "stage", "workload", "op", "size"];
/// Of one line of a result.
const OF_LINE: &[&str] = &["run", "workload", "op", "size"];

macro_rules! families {
    ($($(#[$about:meta])* $id:ident: $name:literal, $kind:literal, $unit:literal, $labels:expr, $help:literal;)*) => {
        $($(#[$about])* pub const $id: MetricFamily =
            MetricFamily { name: $name, kind: $kind, unit: $unit, labels: $labels, help: $help };)*
        /// All of them, in the order of the document.
        pub const METRIC_FAMILIES: &[MetricFamily] = &[$($id),*];
    };
}

families! {
    /// What its other metrics are joined with.
    RUN_INFO: "plimsoll_run_info", "gauge", "1", &["run", "label_NAME"],
        "1, with the run's own labels, each as label_NAME: join with it on run.";
    /// Whether it goes on.
    RUN_RUNNING: "plimsoll_run_running", "gauge", "0 or 1", &["run"], "1 while the run goes on, 0 when it has ended.";
    /// Refused and failed ones, too.
    OPS: "plimsoll_ops_total", "counter", "ops", &["run", "stage", "workload", "op", "size", "outcome"],
        "Ops that ended, by outcome, since the first op of their stage.";
    /// Of ops that move any.
    PAYLOAD: "plimsoll_payload_bytes_total", "counter", "bytes", OF_SERIES, "Payload of ops that ended well.";
    /// Buckets, never quantiles.
    RESPONSE: "plimsoll_response_seconds", "histogram", "seconds", &["run", "stage", "workload", "op", "size", "le"],
        "Response time of ops that ended well, from the intended start.";
    /// While it goes on.
    IN_FLIGHT: "plimsoll_in_flight", "gauge", "ops", &["run"], "Ops in flight, mean of the last second on record.";
    /// Of a fleet.
    AGENT_RATE: "plimsoll_agent_ops_per_second", "gauge", "ops per second", &["run", "agent"],
        "Rate of each agent so far, over the measured windows that it had a part in.";
    /// Of a fleet.
    AGENTS_LOST: "plimsoll_agents_lost", "gauge", "agents", &["run"], "Agents that were lost.";
    /// Of each line.
    RESULT_RATE: "plimsoll_result_ops_per_second", "gauge", "ops per second", OF_LINE,
        "Rate of the measured window (of a run that goes on: so far).";
    /// Where it is bounded.
    RESULT_RATE_LOW: "plimsoll_result_ops_per_second_low", "gauge", "ops per second", OF_LINE, "Lower end of its 95 % interval.";
    /// Where it is bounded.
    RESULT_RATE_HIGH: "plimsoll_result_ops_per_second_high", "gauge", "ops per second", OF_LINE,
        "Upper end of its 95 % interval.";
    /// Of a line whose mean is no rate.
    RESULT_SUSTAINED: "plimsoll_result_sustained_ops_per_second", "gauge", "ops per second", OF_LINE,
        "The rate that held after a burst, where the mean of the window mixes both.";
    /// Of each line.
    RESULT_BYTES: "plimsoll_result_bytes_per_second", "gauge", "bytes per second", OF_LINE,
        "Payload of the measured window (of a run that goes on: so far).";
    /// Where it is bounded.
    RESULT_BYTES_LOW: "plimsoll_result_bytes_per_second_low", "gauge", "bytes per second", OF_LINE, "Lower end of its 95 % interval.";
    /// Where it is bounded.
    RESULT_BYTES_HIGH: "plimsoll_result_bytes_per_second_high", "gauge", "bytes per second", OF_LINE,
        "Upper end of its 95 % interval.";
    /// Of each line.
    RESULT_VALID: "plimsoll_result_valid", "gauge", "0 or 1", OF_LINE, "1 where the figures may be used, 0 where they are void.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_in_the_names_as_prometheus_wants_them() {
        for f in METRIC_FAMILIES {
            assert!(f.name.starts_with("plimsoll_"), "{f:?}");
            assert_eq!(f.name.ends_with("_total"), f.kind == "counter", "{f:?}");
            assert_eq!(f.labels.contains(&"le"), f.kind == "histogram", "{f:?}");
            assert_eq!(f.name.contains("_bytes"), f.unit.starts_with("bytes"), "{f:?}");
            assert_eq!(f.name.contains("_per_second"), f.unit.ends_with(" per second"), "{f:?}");
            assert_eq!(f.name.ends_with("_seconds"), f.unit == "seconds", "{f:?}");
        }
    }
}
