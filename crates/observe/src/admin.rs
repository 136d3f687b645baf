//! MinIO's `GET /minio/admin/v3/info`: the state of servers and drives, and the redundancy.

use plimsoll_model::observed::{ReadSubject, ServerQuantity, ServerReading};
use serde_json::Value;

use crate::text::NotMetrics;

/// What the answer says of the cluster as a whole. Fields that are not there are left out.
pub fn info(text: &str) -> Result<ReadSubject, NotMetrics> {
    let answer: Value = serde_json::from_str(text).map_err(|e| NotMetrics::Answer(e.to_string()))?;
    let backend = &answer["backend"];
    if !backend.is_object() {
        return Err(NotMetrics::Answer("there is no 'backend' in it".into()));
    }
    let drives = || {
        let servers = answer["servers"].as_array().into_iter().flatten();
        servers.flat_map(|s| s["drives"].as_array().into_iter().flatten())
    };
    let (online, offline) = (count(&backend["onlineDisks"]), count(&backend["offlineDisks"]));
    let mut readings = Vec::new();
    let mut add = |quantity, value: Option<f64>| {
        readings.extend(value.filter(|v| v.is_finite()).map(|value| ServerReading {
            quantity,
            label: String::new(),
            value,
        }));
    };
    add(ServerQuantity::DrivesOnline, online);
    add(ServerQuantity::DrivesOffline, offline);
    add(ServerQuantity::DrivesTotal, online.zip(offline).map(|(a, b)| a + b));
    add(ServerQuantity::ParityDrives, count(&backend["standardSCParity"]));
    let healing = drives().filter(|d| d["healing"] == Value::Bool(true)).count();
    add(ServerQuantity::DrivesHealing, answer["servers"].is_array().then_some(healing as f64));
    let down = |s: &&Value| s["state"].as_str().is_some_and(|s| s != "online");
    let nodes_down = answer["servers"].as_array().map(|s| s.iter().filter(down).count() as f64);
    add(ServerQuantity::NodesOffline, nodes_down);
    Ok(ReadSubject { host: String::new(), daemon: String::new(), readings })
}

/// Drives of each erasure set, in the answer's order: with the parity they give k+m.
pub fn drives_of_sets(text: &str) -> Vec<u64> {
    let answer: Value = serde_json::from_str(text).unwrap_or_default();
    let sets = answer["backend"]["totalDrivesPerSet"].as_array().into_iter().flatten();
    sets.filter_map(Value::as_u64).take(1000).collect()
}

/// A number; some versions write a count for each host: their sum.
fn count(v: &Value) -> Option<f64> {
    match v {
        Value::Object(by_host) => by_host.values().map(Value::as_f64).sum(),
        v => v.as_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_answer() {
        let text = include_str!("../tests/pages/minio-admin-info.json");
        let cluster = info(text).unwrap();
        let value = |q| cluster.readings.iter().find(|r| r.quantity == q).map(|r| r.value);
        assert_eq!(value(ServerQuantity::DrivesTotal), Some(4.0));
        assert_eq!(value(ServerQuantity::ParityDrives), Some(2.0));
        assert_eq!(value(ServerQuantity::DrivesHealing), Some(0.0));
        assert_eq!((value(ServerQuantity::NodesOffline), drives_of_sets(text)), (Some(0.0), vec![4]));
        let ill = text.replace("\"state\":\"ok\"", "\"state\":\"ok\",\"healing\":true");
        let ill = ill.replacen("\"state\":\"online\"", "\"state\":\"offline\"", 1);
        let cluster = info(&ill).unwrap();
        let value = |q| cluster.readings.iter().find(|r| r.quantity == q).map(|r| r.value);
        assert_eq!(value(ServerQuantity::DrivesHealing), Some(4.0));
        assert_eq!(value(ServerQuantity::NodesOffline), Some(1.0));
        assert!(info("{}").is_err() && info("<html>").is_err() && info("[]").is_err());
        let by_host = r#"{"backend":{"onlineDisks":{"a":3,"b":1},"offlineDisks":{}}}"#;
        assert_eq!(info(by_host).unwrap().readings[0].value, 4.0);
    }
}
