//! Pages of each make, read: recorded of real servers (node_exporter 1.5.0, process-exporter of Debian 12, MinIO of February 2026 with
//! four drives, the manager of Ceph 16.2.15 with four OSDs and a gateway), the other two of Ceph written after its sources.

use plimsoll_model::observed::ServerQuantity as Q;
use plimsoll_observe::page::of_series;
use plimsoll_observe::text::{self, MetricSeries};
use plimsoll_observe::{Make, PageReadings, readings, rules};

fn value(page: &PageReadings, host: &str, daemon: &str, quantity: Q, label: &str) -> Option<f64> {
    let subject = page.subjects.iter().find(|s| (s.host.as_str(), s.daemon.as_str()) == (host, daemon))?;
    subject.readings.iter().find(|r| r.quantity == quantity && r.label == label).map(|r| r.value)
}

#[test]
fn node_exporter() {
    let page = readings(Make::Node, include_str!("pages/node-exporter-1.5.0.txt"), "s1").unwrap();
    assert_eq!((page.missing.len(), page.left_out, page.resolution_s), (0, 0, 0.0));
    let of = |q, label: &str| value(&page, "s1", "", q, label).unwrap();
    // Two modes are one of ours, each CPU by itself.
    assert!(of(Q::CpuUserS, "0") > 1.0 && of(Q::CpuIdleS, "1") > 1.0);
    assert!(
        of(Q::MemoryTotalBytes, "") > 1e9 && of(Q::MemoryAvailableBytes, "") < of(Q::MemoryTotalBytes, "")
    );
    assert!(of(Q::NicRxBytes, "eth0") > 0.0 && of(Q::DiskWriteBytes, "vda") > 0.0);
    assert!(of(Q::DiskBusyS, "vda") <= of(Q::DiskQueueS, "vda") + 60.0);
    assert!(value(&page, "s1", "node_exporter", Q::ProcessCpuS, "").is_some(), "what scraping costs there");
}

#[test]
fn process_exporter() {
    let page = readings(Make::Process, include_str!("pages/process-exporter.txt"), "s1").unwrap();
    let cpu = value(&page, "s1", "minio", Q::ProcessCpuS, "").unwrap();
    let rss = value(&page, "s1", "minio", Q::ProcessRssBytes, "").unwrap();
    // It counts from when it saw the process first; of five kinds of memory the resident one is read.
    assert_eq!((cpu, rss), (0.0, 145_928_192.0));
    assert!(page.missing.is_empty());
}

#[test]
fn minio_of_version_3_and_2_say_the_same() {
    let new = readings(Make::Minio, include_str!("pages/minio-v3.txt"), "asked").unwrap();
    let old = readings(Make::Minio, include_str!("pages/minio-v2-cluster.txt"), "asked").unwrap();
    assert_eq!((new.resolution_s, old.resolution_s), (0.0, 10.0));
    for (page, get, put) in [(&new, "GetObject", "PutObject"), (&old, "getobject", "putobject")] {
        assert!(page.missing.is_empty(), "{:?}", page.missing);
        let of = |q, label: &str| value(page, "s1", "minio@s1:9000", q, label).unwrap();
        assert_eq!((of(Q::Requests, get), of(Q::Requests, put)), (30.0, 30.0));
        assert_eq!((of(Q::SentBytes, ""), of(Q::ReceivedBytes, "")), (31_457_280.0, 31_457_280.0));
        assert!(of(Q::ProcessCpuS, "") > 0.5 && of(Q::ProcessRssBytes, "") > 5e7);
        assert_eq!(value(page, "", "", Q::DrivesTotal, ""), Some(4.0));
    }
    assert_eq!(value(&old, "", "", Q::DrivesHealing, ""), Some(0.0));
    assert_eq!(value(&new, "", "", Q::ParityDrives, ""), Some(2.0));
}

#[test]
fn a_page_of_averages_is_of_no_use_and_says_so() {
    // `/minio/v2/metrics/resource`: means of a minute, and rates that the server made.
    let error = readings(Make::Minio, include_str!("pages/minio-v2-resource.txt"), "s1").unwrap_err();
    assert_eq!(error.to_string(), "none of its metrics is known for MinIO");
}

#[test]
fn several_servers_that_describe_one_cluster_do_not_add_up() {
    let page = "minio_cluster_drive_total{server=\"a:9\"} 8\nminio_cluster_drive_total{server=\"b:9\"} 8\n\
                minio_cluster_health_erasure_set_healing_drives{server=\"a:9\",set=\"0\"} 1\n\
                minio_cluster_health_erasure_set_healing_drives{server=\"a:9\",set=\"1\"} 2\n\
                minio_node_process_cpu_total_seconds{server=\"[::1]:9\"} 2\n";
    let page = readings(Make::Minio, page, "a").unwrap();
    assert_eq!(value(&page, "", "", Q::DrivesTotal, ""), Some(8.0));
    assert_eq!(value(&page, "", "", Q::DrivesHealing, ""), Some(3.0));
    assert_eq!(value(&page, "::1", "minio@[::1]:9", Q::ProcessCpuS, ""), Some(2.0));
}

/// Two jobs or two replicas of a Prometheus have each series twice, with labels of their own; a page may repeat itself, too.
#[test]
fn what_is_told_of_twice_is_counted_once() {
    let pages = [
        (Make::Node, include_str!("pages/node-exporter-1.5.0.txt")),
        (Make::Process, include_str!("pages/process-exporter.txt")),
        (Make::Minio, include_str!("pages/minio-v3.txt")),
        (Make::Minio, include_str!("pages/minio-v2-cluster.txt")),
        (Make::Ceph, include_str!("pages/ceph-exporter.txt")),
        (Make::Ceph, include_str!("pages/ceph-mgr.txt")),
        (Make::Ceph, include_str!("pages/ceph-mgr-16.2.15.txt")),
    ];
    for (make, page) in pages {
        let once = text::parse(page, |name| rules::of(name).is_some()).unwrap().series;
        let read = |series: &[MetricSeries]| of_series(make, series, 0, |_| "s1".into()).unwrap().subjects;
        let told_by = |replica: &str| {
            let own = [("job", "b"), ("replica", replica), ("prometheus", "p"), ("any", replica)];
            let labels = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let with = |s: &MetricSeries| MetricSeries {
                labels: s.labels.iter().chain(&labels).cloned().collect(),
                ..s.clone()
            };
            once.iter().map(with).collect::<Vec<_>>()
        };
        assert_eq!(read(&[once.clone(), once.clone()].concat()), read(&once), "{make:?}");
        assert_eq!(read(&[once.clone(), told_by("0"), told_by("1")].concat()), read(&once), "{make:?}");
    }
}

#[test]
fn only_parts_of_one_thing_are_added() {
    let page = "node_time_seconds{job=\"a\"} 100\nnode_time_seconds{job=\"b\"} 101\n\
                node_network_receive_drop_total{device=\"e\"} 3\nnode_network_transmit_drop_total{device=\"e\"} 4\n\
                node_network_receive_drop_total{device=\"e\",job=\"b\"} 5\n\
                ceph_rgw_op_global_get_obj_bytes{instance_id=\"1\"} 9\nceph_rgw_get_b{instance_id=\"1\"} 9\n\
                ceph_pg_total{pool_id=\"1\"} 8\nceph_pg_total{pool_id=\"1\",job=\"b\"} 8\nceph_pg_total{pool_id=\"2\"} 8\n\
                SeaweedFS_s3_request_total{type=\"GET\",code=\"200\",bucket=\"a\"} 1\n\
                SeaweedFS_s3_request_total{type=\"GET\",code=\"200\",bucket=\"b\"} 2\n\
                SeaweedFS_s3_request_total{type=\"GET\",code=\"404\",bucket=\"b\"} 4\n\
                api_s3_error_counter{api_endpoint=\"Get\",status_code=\"403\"} 1\n\
                api_s3_error_counter{api_endpoint=\"Get\",status_code=\"404\"} 2\n\
                minio_api_requests_traffic_sent_bytes{server=\"a:9\",type=\"s3\"} 1\n\
                minio_api_requests_traffic_sent_bytes{server=\"a:9\",type=\"admin\"} 2\n\
                minio_cluster_erasure_set_healing_drives_count{pool_id=\"0\",set_id=\"0\"} 1\n\
                minio_cluster_erasure_set_healing_drives_count{pool_id=\"1\",set_id=\"0\"} 1\n";
    let page = readings(Make::Any, page, "s1").unwrap();
    let host = |q, label: &str| value(&page, "s1", "", q, label);
    assert_eq!((host(Q::ClockUnixS, ""), host(Q::NicDrops, "e")), (Some(101.0), Some(9.0)));
    assert_eq!(
        value(&page, "s1", "rgw.1", Q::SentBytes, "get_obj"),
        Some(9.0),
        "its old name and its new one"
    );
    assert_eq!(value(&page, "", "", Q::PlacementGroups, "total"), Some(16.0));
    assert_eq!(value(&page, "", "", Q::DrivesHealing, ""), Some(2.0));
    let server = |q, label: &str| value(&page, "s1", "server", q, label);
    assert_eq!((server(Q::Requests, "GET"), server(Q::RequestErrors, "Get")), (Some(7.0), Some(3.0)));
    assert_eq!(value(&page, "a", "minio@a:9", Q::SentBytes, ""), Some(3.0));
}

#[test]
fn ceph_exporter_in_pages_and_without_its_means() {
    let page = readings(Make::Ceph, include_str!("pages/ceph-exporter.txt"), "ceph-1").unwrap();
    assert_eq!((page.resolution_s, page.missing.len()), (5.0, 0));
    assert_eq!(value(&page, "ceph-1", "osd.3", Q::ProcessCpuS, ""), Some(201.75));
    assert_eq!(value(&page, "ceph-1", "osd.3", Q::ProcessRssBytes, ""), Some(1024.0 * 1024.0 * 1024.0));
    assert_eq!(value(&page, "ceph-1", "osd.3", Q::Requests, "read"), Some(73_981.0));
    assert_eq!(value(&page, "ceph-1", "rgw.154247", Q::SentBytes, "get_obj"), Some(655_360_000.0));
}

#[test]
fn ceph_manager() {
    let page = readings(Make::Ceph, include_str!("pages/ceph-mgr.txt"), "mgr").unwrap();
    assert_eq!(page.resolution_s, 15.0);
    let of = |q, label: &str| value(&page, "", "", q, label);
    assert_eq!((of(Q::HealthStatus, ""), of(Q::HealthStatus, "OSD_DOWN")), (Some(1.0), Some(1.0)));
    assert_eq!((of(Q::PlacementGroups, "total"), of(Q::PlacementGroups, "clean")), (Some(65.0), Some(61.0)));
    assert_eq!((of(Q::OsdUp, "osd.1"), of(Q::PlacementGroups, "deep")), (Some(0.0), Some(2.0)));
    assert_eq!(of(Q::PoolRedundancy, "3 data ec:2+2"), Some(1.0));
}

/// Before ceph-exporter the manager's page has the counters of daemons, too: of gateways by instance, with names of their own.
#[test]
fn ceph_manager_before_reef() {
    let page = readings(Make::Ceph, include_str!("pages/ceph-mgr-16.2.15.txt"), "mgr").unwrap();
    assert_eq!((page.missing.len(), page.resolution_s), (0, 15.0));
    let cluster = |q, label: &str| value(&page, "", "", q, label);
    assert_eq!((cluster(Q::HealthStatus, ""), cluster(Q::OsdUp, "osd.3")), (Some(0.0), Some(1.0)));
    assert_eq!(cluster(Q::PlacementGroups, "total"), cluster(Q::PlacementGroups, "clean"));
    assert_eq!(cluster(Q::PoolRedundancy, "2 default.rgw.buckets.data replica:3"), Some(1.0));
    assert_eq!(cluster(Q::PoolRedundancy, "3 ec22.data ec:2+2"), Some(1.0));
    let (stored, used) = (cluster(Q::PoolStoredBytes, "3"), cluster(Q::PoolUsedBytes, "3"));
    assert_eq!(used.unwrap() / stored.unwrap(), 2.0);
    assert_eq!(value(&page, "mgr", "rgw.4190", Q::Requests, "put_obj"), Some(619.0));
    assert_eq!(value(&page, "mgr", "rgw.4190", Q::ReceivedBytes, "put_obj"), Some(2_587_885_830.0));
    assert_eq!(value(&page, "mgr", "osd.3", Q::ReceivedBytes, "write"), Some(914_358_272.0));
}

#[test]
fn a_standby_manager_and_a_renamed_metric() {
    // A standby answers with nothing.
    assert_eq!(readings(Make::Ceph, "", "mgr").unwrap_err().to_string(), "the page is empty");
    let renamed = include_str!("pages/node-exporter-1.5.0.txt")
        .replace("node_disk_io_time_seconds_total", "node_disk_io_seconds");
    let page = readings(Make::Node, &renamed, "s1").unwrap();
    assert_eq!(page.missing, ["node_disk_io_time_seconds_total"]);
    assert!(value(&page, "s1", "", Q::DiskWriteBytes, "vda").is_some(), "the others are used");
    // A page that has all there is, by its own word, lacks nothing.
    let partial = format!("plimsoll_box_node_info 1\n{renamed}");
    assert!(readings(Make::Node, &partial, "s1").unwrap().missing.is_empty());
}

#[test]
fn each_name_has_one_meaning() {
    let mut names: Vec<&str> = rules::all().map(|r| r.name).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
    assert!(rules::all().all(|r| rules::of(r.name) == Some(r)));
}
