//! What a cluster is made of, asked of its servers and exporters, once each.

use std::time::{SystemTime, UNIX_EPOCH};

use plimsoll_engine::admin::fetch_up_to;
use plimsoll_model::plan::{ObserveMake, ObserveSpec, TlsSpec};
use plimsoll_model::text::said;
use plimsoll_observe::cluster::FoundCluster;
use plimsoll_observe::text::MOST_PAGE_BYTES;
use plimsoll_s3::Credentials;
use plimsoll_s3::credentials::WebRequest;
use plimsoll_s3::sign::{PostScope, sign_get};

use super::ask::Asking;
use super::place::{ObservedPlace, places_of};
use super::{OBSERVED_ONCE, ObserveSetting};
use crate::error::SetupError;
use crate::s3::HeldKeys;

/// MinIO's administrators' call.
const MINIO_INFO: &str = "/minio/admin/v3/info";
/// What MinIO signs for where it was told nothing else.
const DEFAULT_REGION: &str = "us-east-1";

/// Whose keys sign what administrators ask.
#[derive(Debug, Clone, Default)]
pub struct DescribeKeys {
    /// Of the AWS tools' files. Absent: as these tools choose.
    pub profile: Option<String>,
    /// What is signed for.
    pub region: Option<String>,
}

/// Asks each source. What one does not say is a remark; an error only where none says anything.
pub fn describe(
    specs: &[ObserveSpec],
    keys: &DescribeKeys,
    tls: &TlsSpec,
) -> Result<FoundCluster, SetupError> {
    let useful = |m: ObserveMake| matches!(m, ObserveMake::Minio | ObserveMake::Node | ObserveMake::Ceph);
    if let Some(other) = specs.iter().find(|s| !useful(s.make)) {
        return Err(SetupError::input(
            format!("{} does not tell what a cluster is made of", other.make.name()),
            "Name its servers and hosts: minio=URL, ceph=URL of the manager, node=URL",
        ));
    }
    let places = places_of(specs, tls, &[])?;
    let signs = places.iter().any(|p| p.make == ObserveMake::Minio);
    let held = signs.then(|| HeldKeys::found_here(keys.profile.as_deref())).transpose()?;
    let region = keys.region.clone().or_else(|| held.as_ref()?.region.clone());
    let region = region.unwrap_or_else(|| DEFAULT_REGION.into());
    let (mut found, mut told, mut troubles) = (FoundCluster::default(), 0, Vec::new());
    // Each server of MinIO knows them all: the first that answers is enough.
    let mut minio_told = false;
    for place in places {
        if place.make == ObserveMake::Minio && minio_told {
            continue;
        }
        let name = place.name();
        let made = match &held {
            Some(held) if place.make == ObserveMake::Minio => minio(&place, &held.live().get(), &region)
                .and_then(|answer| found.add_minio(&answer, place.endpoint.tls).map_err(|e| e.to_string())),
            _ => page(place.clone()).and_then(|page| {
                let added = match place.make {
                    ObserveMake::Ceph => found.add_ceph(&page),
                    _ => found.add_node(&page, &place.host),
                };
                added.map_err(|e| e.to_string())
            }),
        };
        match made {
            Ok(()) => {
                told += 1;
                minio_told |= place.make == ObserveMake::Minio;
            }
            Err(why) => troubles.push(format!("{name}: {why}")),
        }
    }
    if told == 0 {
        let problem = format!("nobody told what the cluster is made of: {}", troubles.join("; "));
        return Err(SetupError::input(problem, "Correct the addresses, or write the file by hand"));
    }
    found.remarks.extend(troubles.into_iter().map(|t| format!("not asked: {t}")));
    Ok(found)
}

fn page(place: ObservedPlace) -> Result<String, String> {
    let setting = ObserveSetting { every: OBSERVED_ONCE, keys: None, epoch_ns: 0 };
    Asking::new(place, setting).page(OBSERVED_ONCE)
}

/// The signed answer of a server.
fn minio(place: &ObservedPlace, keys: &Credentials, region: &str) -> Result<String, String> {
    let host = place.endpoint.host_header(None);
    let scope = PostScope { region, service: "s3", host: &host, path: MINIO_INFO };
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut request = WebRequest::new("GET", &place.endpoint, MINIO_INFO, OBSERVED_ONCE);
    for (name, value) in sign_get(keys, scope, now_s) {
        request = request.with(name, value);
    }
    let answer = fetch_up_to(&request, &place.tls, MOST_PAGE_BYTES).map_err(|t| said(&t.what))?;
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    match answer.status {
        200 => Ok(body),
        403 => Err("it refuses who asks: the keys need the right admin:ServerInfo, and the region and the clock have to be right".into()),
        status => Err(format!("it answered {status}: {}", said(body.lines().next().unwrap_or_default()))),
    }
}
