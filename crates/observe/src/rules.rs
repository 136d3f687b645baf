//! Which series means what: names of each make, old ones and new ones, to our quantities. A name that is not here is not read.
//!
//! Left out on purpose: averages and rates that a server works out itself (MinIO's `*_per_sec`, `perc_util`, `cpu_avg_*` and interface
//! rates of a minute; Ceph's `ceph_exporter_cpu_usage`, the mean since the daemon's start), because no two of them subtract.

use std::collections::HashMap;
use std::sync::LazyLock;

use plimsoll_model::observed::ServerQuantity as Q;

/// Who a series is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The host of the page.
    Host,
    /// All of them together.
    Cluster,
    /// A daemon that this label names.
    Daemon(&'static str),
    /// A gateway of Ceph's, by its instance.
    Gateway,
    /// A server of MinIO's, by its address.
    Minio,
    /// The process that wrote the page.
    Own,
}

/// What a series counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesMeaning {
    /// This, without a label.
    One(Q),
    /// This, of each value of the label.
    Each(Q, &'static str),
    /// This, under a label of ours.
    Named(Q, &'static str),
    /// This, where the label has that value.
    Where(Q, &'static str, &'static str),
    /// What the label's value says.
    Mode(&'static str, &'static [(&'static str, Q)]),
    /// What the label's value says, of each value of another.
    ModeOfEach(&'static str, &'static [(&'static str, Q)], &'static str),
    /// A pool's number, name and redundancy.
    Pool(Q),
}

/// One name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// As on the page.
    pub name: &'static str,
    /// Who it is of.
    pub whose: Whose,
    /// What it counts.
    pub meaning: SeriesMeaning,
    /// To our unit.
    pub scale: f64,
    /// Labels beside those of the meaning whose values are parts of one reading, which are added. Series that differ in other labels only
    /// tell of the same thing.
    pub over: &'static [&'static str],
}

/// Guest time is in user time already.
const CPU_MODES: &[(&str, Q)] = &[
    ("user", Q::CpuUserS),
    ("nice", Q::CpuUserS),
    ("system", Q::CpuSystemS),
    ("iowait", Q::CpuIowaitS),
    ("irq", Q::CpuIrqS),
    ("softirq", Q::CpuIrqS),
    ("steal", Q::CpuStealS),
    ("idle", Q::CpuIdleS),
];
/// ceph-exporter has a mode `idle`, too.
const PROCESS_MODES: &[(&str, Q)] =
    &[("user", Q::ProcessCpuS), ("system", Q::ProcessCpuS), ("kernel", Q::ProcessCpuS)];
/// ceph-exporter copies a field of /proc/PID/stat: pages.
const PAGE_BYTES: f64 = 4096.0;

const fn rule(name: &'static str, whose: Whose, meaning: SeriesMeaning) -> Rule {
    Rule { name, whose, meaning, scale: 1.0, over: &[] }
}

/// The same, of parts that these labels tell apart.
const fn added(over: &'static [&'static str], rule: Rule) -> Rule {
    Rule { over, ..rule }
}

const fn host(name: &'static str, q: Q) -> Rule {
    rule(name, Whose::Host, SeriesMeaning::One(q))
}

const fn device(name: &'static str, q: Q) -> Rule {
    rule(name, Whose::Host, SeriesMeaning::Each(q, "device"))
}

const fn cluster(name: &'static str, q: Q) -> Rule {
    rule(name, Whose::Cluster, SeriesMeaning::One(q))
}

const fn minio(name: &'static str, q: Q) -> Rule {
    rule(name, Whose::Minio, SeriesMeaning::One(q))
}

const fn minio_op(name: &'static str, q: Q, label: &'static str) -> Rule {
    rule(name, Whose::Minio, SeriesMeaning::Each(q, label))
}

const fn osd(name: &'static str, q: Q, op: &'static str) -> Rule {
    rule(name, Whose::Daemon("ceph_daemon"), SeriesMeaning::Named(q, op))
}

const fn rgw(name: &'static str, q: Q, op: &'static str) -> Rule {
    rule(name, Whose::Gateway, SeriesMeaning::Named(q, op))
}

const fn placement(name: &'static str, state: &'static str) -> Rule {
    added(&["pool_id"], rule(name, Whose::Cluster, SeriesMeaning::Named(Q::PlacementGroups, state)))
}

const fn pool(name: &'static str, q: Q) -> Rule {
    rule(name, Whose::Cluster, SeriesMeaning::Each(q, "pool_id"))
}

const NODE: &[Rule] = &[
    rule("node_cpu_seconds_total", Whose::Host, SeriesMeaning::ModeOfEach("mode", CPU_MODES, "cpu")),
    host("node_memory_MemTotal_bytes", Q::MemoryTotalBytes),
    host("node_memory_MemAvailable_bytes", Q::MemoryAvailableBytes),
    host("node_netstat_Tcp_OutSegs", Q::TcpOutSegments),
    host("node_netstat_Tcp_RetransSegs", Q::TcpRetransmits),
    host("node_pressure_cpu_waiting_seconds_total", Q::PsiCpuS),
    host("node_pressure_io_waiting_seconds_total", Q::PsiIoS),
    host("node_pressure_memory_waiting_seconds_total", Q::PsiMemoryS),
    host("node_time_seconds", Q::ClockUnixS),
    host("node_boot_time_seconds", Q::BootUnixS),
    device("node_network_receive_bytes_total", Q::NicRxBytes),
    device("node_network_transmit_bytes_total", Q::NicTxBytes),
    device("node_network_receive_drop_total", Q::NicDrops),
    device("node_network_transmit_drop_total", Q::NicDrops),
    device("node_network_speed_bytes", Q::NicSpeedBytesPerS),
    device("node_disk_reads_completed_total", Q::DiskReads),
    device("node_disk_read_bytes_total", Q::DiskReadBytes),
    device("node_disk_read_time_seconds_total", Q::DiskReadS),
    device("node_disk_writes_completed_total", Q::DiskWrites),
    device("node_disk_written_bytes_total", Q::DiskWriteBytes),
    device("node_disk_write_time_seconds_total", Q::DiskWriteS),
    device("node_disk_io_time_seconds_total", Q::DiskBusyS),
    device("node_disk_io_time_weighted_seconds_total", Q::DiskQueueS),
    device("node_disk_io_now", Q::DiskInFlight),
];

const PROCESS: &[Rule] = &[
    rule(
        "namedprocess_namegroup_cpu_seconds_total",
        Whose::Daemon("groupname"),
        SeriesMeaning::Mode("mode", PROCESS_MODES),
    ),
    rule(
        "namedprocess_namegroup_memory_bytes",
        Whose::Daemon("groupname"),
        SeriesMeaning::Where(Q::ProcessRssBytes, "memtype", "resident"),
    ),
    rule(
        "namedprocess_namegroup_read_bytes_total",
        Whose::Daemon("groupname"),
        SeriesMeaning::One(Q::ProcessReadBytes),
    ),
    rule(
        "namedprocess_namegroup_write_bytes_total",
        Whose::Daemon("groupname"),
        SeriesMeaning::One(Q::ProcessWriteBytes),
    ),
    // The usual names of any program that counts itself: here the exporter's own.
    rule("process_cpu_seconds_total", Whose::Own, SeriesMeaning::One(Q::ProcessCpuS)),
    rule("process_resident_memory_bytes", Whose::Own, SeriesMeaning::One(Q::ProcessRssBytes)),
];

/// Version 3: each server of itself.
const MINIO_3: &[Rule] = &[
    minio("minio_system_process_cpu_total_seconds", Q::ProcessCpuS),
    minio("minio_system_process_resident_memory_bytes", Q::ProcessRssBytes),
    minio("minio_system_process_io_read_bytes", Q::ProcessReadBytes),
    minio("minio_system_process_io_write_bytes", Q::ProcessWriteBytes),
    minio("minio_system_network_internode_sent_bytes_total", Q::InternodeSentBytes),
    minio("minio_system_network_internode_recv_bytes_total", Q::InternodeReceivedBytes),
    added(&["type"], minio_op("minio_api_requests_total", Q::Requests, "name")),
    added(&["type"], minio_op("minio_api_requests_errors_total", Q::RequestErrors, "name")),
    added(&["type"], minio("minio_api_requests_traffic_sent_bytes", Q::SentBytes)),
    added(&["type"], minio("minio_api_requests_traffic_received_bytes", Q::ReceivedBytes)),
    minio("minio_scanner_objects_scanned", Q::ScannedObjects),
    cluster("minio_cluster_health_drives_count", Q::DrivesTotal),
    cluster("minio_cluster_health_drives_online_count", Q::DrivesOnline),
    cluster("minio_cluster_health_drives_offline_count", Q::DrivesOffline),
    cluster("minio_cluster_health_nodes_offline_count", Q::NodesOffline),
    added(
        &["pool_id", "set_id"],
        cluster("minio_cluster_erasure_set_healing_drives_count", Q::DrivesHealing),
    ),
    cluster("minio_cluster_config_standard_parity", Q::ParityDrives),
];

/// Version 2: of the page `cluster` each server of itself, with the cluster's state by whoever was asked.
const MINIO_2: &[Rule] = &[
    minio("minio_node_process_cpu_total_seconds", Q::ProcessCpuS),
    minio("minio_node_process_resident_memory_bytes", Q::ProcessRssBytes),
    minio("minio_node_io_read_bytes", Q::ProcessReadBytes),
    minio("minio_node_io_write_bytes", Q::ProcessWriteBytes),
    minio("minio_inter_node_traffic_sent_bytes", Q::InternodeSentBytes),
    minio("minio_inter_node_traffic_received_bytes", Q::InternodeReceivedBytes),
    minio_op("minio_s3_requests_total", Q::Requests, "api"),
    minio_op("minio_s3_requests_errors_total", Q::RequestErrors, "api"),
    minio("minio_s3_traffic_sent_bytes", Q::SentBytes),
    minio("minio_s3_traffic_received_bytes", Q::ReceivedBytes),
    minio("minio_node_scanner_objects_scanned", Q::ScannedObjects),
    cluster("minio_cluster_drive_total", Q::DrivesTotal),
    cluster("minio_cluster_drive_online_total", Q::DrivesOnline),
    cluster("minio_cluster_drive_offline_total", Q::DrivesOffline),
    cluster("minio_cluster_nodes_offline_total", Q::NodesOffline),
    added(&["pool", "set"], cluster("minio_cluster_health_erasure_set_healing_drives", Q::DrivesHealing)),
];

/// ceph-exporter, on each host: of its daemons.
const CEPH_EXPORTER: &[Rule] = &[
    rule("ceph_exporter_cpu_total", Whose::Daemon("ceph_daemon"), SeriesMeaning::Mode("mode", PROCESS_MODES)),
    Rule {
        scale: PAGE_BYTES,
        ..rule(
            "ceph_exporter_resident_size",
            Whose::Daemon("ceph_daemon"),
            SeriesMeaning::One(Q::ProcessRssBytes),
        )
    },
    osd("ceph_osd_op_r", Q::Requests, "read"),
    osd("ceph_osd_op_w", Q::Requests, "write"),
    osd("ceph_osd_op_r_out_bytes", Q::SentBytes, "read"),
    osd("ceph_osd_op_w_in_bytes", Q::ReceivedBytes, "write"),
    rgw("ceph_rgw_req", Q::Requests, "all"),
    rgw("ceph_rgw_failed_req", Q::RequestErrors, "all"),
    rgw("ceph_rgw_op_global_get_obj_ops", Q::Requests, "get_obj"),
    rgw("ceph_rgw_op_global_put_obj_ops", Q::Requests, "put_obj"),
    rgw("ceph_rgw_op_global_del_obj_ops", Q::Requests, "del_obj"),
    rgw("ceph_rgw_op_global_list_obj_ops", Q::Requests, "list_obj"),
    rgw("ceph_rgw_op_global_get_obj_bytes", Q::SentBytes, "get_obj"),
    rgw("ceph_rgw_op_global_put_obj_bytes", Q::ReceivedBytes, "put_obj"),
    // Before Reef.
    rgw("ceph_rgw_get", Q::Requests, "get_obj"),
    rgw("ceph_rgw_put", Q::Requests, "put_obj"),
    rgw("ceph_rgw_get_b", Q::SentBytes, "get_obj"),
    rgw("ceph_rgw_put_b", Q::ReceivedBytes, "put_obj"),
];

/// The manager's module: the cluster.
const CEPH_MGR: &[Rule] = &[
    cluster("ceph_health_status", Q::HealthStatus),
    rule("ceph_health_detail", Whose::Cluster, SeriesMeaning::Each(Q::HealthStatus, "name")),
    rule("ceph_osd_up", Whose::Cluster, SeriesMeaning::Each(Q::OsdUp, "ceph_daemon")),
    placement("ceph_pg_total", "total"),
    placement("ceph_pg_clean", "clean"),
    placement("ceph_pg_degraded", "degraded"),
    placement("ceph_pg_undersized", "undersized"),
    placement("ceph_pg_backfilling", "backfilling"),
    placement("ceph_pg_backfill_wait", "backfill_wait"),
    placement("ceph_pg_recovering", "recovering"),
    placement("ceph_pg_recovery_wait", "recovery_wait"),
    placement("ceph_pg_remapped", "remapped"),
    placement("ceph_pg_peering", "peering"),
    placement("ceph_pg_snaptrim", "snaptrim"),
    placement("ceph_pg_scrubbing", "scrubbing"),
    placement("ceph_pg_deep", "deep"),
    rule("ceph_num_objects_degraded", Whose::Cluster, SeriesMeaning::Named(Q::ObjectsNotInPlace, "degraded")),
    rule(
        "ceph_num_objects_misplaced",
        Whose::Cluster,
        SeriesMeaning::Named(Q::ObjectsNotInPlace, "misplaced"),
    ),
    rule("ceph_num_objects_unfound", Whose::Cluster, SeriesMeaning::Named(Q::ObjectsNotInPlace, "unfound")),
    pool("ceph_pool_recovering_bytes_per_sec", Q::RecoveringBytesPerS),
    pool("ceph_pool_stored", Q::PoolStoredBytes),
    pool("ceph_pool_bytes_used", Q::PoolUsedBytes),
    rule("ceph_pool_metadata", Whose::Cluster, SeriesMeaning::Pool(Q::PoolRedundancy)),
];

/// Other servers of objects; newer versions of Garage put its name before.
const OTHERS: &[Rule] = &[
    rule("api_s3_request_counter", Whose::Own, SeriesMeaning::Each(Q::Requests, "api_endpoint")),
    rule("garage_api_s3_request_counter", Whose::Own, SeriesMeaning::Each(Q::Requests, "api_endpoint")),
    added(
        &["status_code"],
        rule("api_s3_error_counter", Whose::Own, SeriesMeaning::Each(Q::RequestErrors, "api_endpoint")),
    ),
    added(
        &["status_code"],
        rule(
            "garage_api_s3_error_counter",
            Whose::Own,
            SeriesMeaning::Each(Q::RequestErrors, "api_endpoint"),
        ),
    ),
    added(
        &["code", "bucket"],
        rule("SeaweedFS_s3_request_total", Whose::Own, SeriesMeaning::Each(Q::Requests, "type")),
    ),
];

/// All names that are known.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    [NODE, PROCESS, MINIO_3, MINIO_2, CEPH_EXPORTER, CEPH_MGR, OTHERS].into_iter().flatten()
}

/// What a name means; `None`: nothing to us.
pub fn of(name: &str) -> Option<&'static Rule> {
    static BY_NAME: LazyLock<HashMap<&'static str, &'static Rule>> =
        LazyLock::new(|| all().map(|r| (r.name, r)).collect());
    BY_NAME.get(name).copied()
}

/// How old the counters of such a page may be, seconds: what their makes keep before they count anew. (Read in their sources: MinIO's
/// version 2 keeps groups for 10 s, and its version 3 those that are used here for none; ceph-exporter asks its daemons each 5 s by
/// default, the manager's module collects each 15 s.)
pub fn resolution_s(name: &str) -> f64 {
    let is_of = |rules: &[Rule]| rules.iter().any(|r| r.name == name);
    if name.starts_with("minio_") && is_of(MINIO_2) {
        10.0
    } else if !name.starts_with("ceph_") {
        0.0
    } else if is_of(CEPH_MGR) {
        15.0
    } else {
        5.0
    }
}
