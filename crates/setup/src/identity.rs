//! Which machine this is, in the words of who lets it: type, region and zone, as they belong to a result and cannot be seen from inside.
//!
//! First the machine's own tables (DMI) say whose it is, without the network. Only then that provider's metadata service is asked, at an
//! address that leads nowhere else, for a second in all; a machine without such tables asks those of all providers, at the same time. Numbers
//! of accounts, projects and subscriptions are left out, and so are names and addresses that a person gave.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use plimsoll_model::text::clean;
use plimsoll_s3::Endpoint;
use plimsoll_s3::credentials::{Sources, WebAnswer, WebRequest, WebTrouble};
use serde_json::Value;

use crate::s3::ThisMachine;

/// For all that is asked, together.
const LIMIT: Duration = Duration::from_secs(1);
/// Nothing that a provider says of a machine is longer.
const MOST_CHARS: usize = 128;
/// So many disks are told of.
const MOST_DISKS: usize = 32;

/// What is known of a machine: `cloud`, `instance_type`, `region`, `zone`, `instance_id`, `maker`, `disk N`.
pub type MachineFacts = BTreeMap<String, String>;

/// Who has a metadata service that is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Provider {
    Aws,
    Azure,
    Gce,
    DigitalOcean,
    Hetzner,
    Vultr,
}

const ALL: [Provider; 6] = [
    Provider::Aws,
    Provider::Azure,
    Provider::Gce,
    Provider::DigitalOcean,
    Provider::Hetzner,
    Provider::Vultr,
];

/// Makers that say who they are in DMI, and of which no more is asked.
const NAMED_ONLY: [(&str, &str); 6] = [
    ("Scaleway", "scaleway"),
    ("UpCloud", "upcloud"),
    ("Akamai", "akamai"),
    ("Linode", "akamai"),
    ("OpenStack Foundation", "openstack"),
    ("Alibaba Cloud", "alibaba"),
];

/// Azure's tag of the chassis.
const AZURE: &str = "7783-7084-3265-9085-8269-3286-77";

impl Provider {
    fn name(self) -> &'static str {
        match self {
            Self::Aws => "aws",
            Self::Azure => "azure",
            Self::Gce => "gce",
            Self::DigitalOcean => "digitalocean",
            Self::Hetzner => "hetzner",
            Self::Vultr => "vultr",
        }
    }
}

/// What is asked, and of whom.
type Ask = fn(&WebRequest) -> Result<WebAnswer, WebTrouble>;

/// Of this machine.
pub fn identity() -> MachineFacts {
    let ask: Ask = |request| ThisMachine.web(request);
    identify(&ThisMachine, ask)
}

fn identify(sources: &dyn Sources, ask: Ask) -> MachineFacts {
    let dmi = |name: &str| {
        let text = sources.read(Path::new(&format!("/sys/class/dmi/id/{name}"))).ok();
        text.map(|t| t.trim().to_owned()).filter(|t| !t.is_empty())
    };
    let (vendor, product) = (dmi("sys_vendor"), dmi("product_name"));
    let mut facts = MachineFacts::new();
    let maker: Vec<&str> = vendor.iter().chain(&product).map(String::as_str).collect();
    put(&mut facts, "maker", &maker.join(" "));
    let (vendor, product) = (vendor.unwrap_or_default(), product.unwrap_or_default());
    let named = NAMED_ONLY.iter().find(|(maker, _)| vendor.starts_with(maker) || product.starts_with(maker));
    if let Some((_, cloud)) = named {
        put(&mut facts, "cloud", cloud);
        return facts;
    }
    let told = match vendor.as_str() {
        "Amazon EC2" => Some(Provider::Aws),
        "Xen" if dmi("bios_version").is_some_and(|v| v.contains("amazon")) => Some(Provider::Aws),
        "DigitalOcean" => Some(Provider::DigitalOcean),
        "Hetzner" => Some(Provider::Hetzner),
        "Vultr" => Some(Provider::Vultr),
        _ if product == "Google Compute Engine" => Some(Provider::Gce),
        _ if dmi("chassis_asset_tag").as_deref() == Some(AZURE) => Some(Provider::Azure),
        _ => None,
    };
    let bases: Vec<(Provider, Endpoint)> = match told {
        Some(provider) => base(sources, provider, true).map(|b| (provider, b)).into_iter().collect(),
        // It says who made it, and that is no provider: only who was named is asked.
        None => ALL.iter().filter_map(|p| Some((*p, base(sources, *p, maker_unknown(&facts))?))).collect(),
    };
    if let Some(provider) = told {
        put(&mut facts, "cloud", provider.name());
    }
    facts.extend(first_to_answer(bases, ask));
    facts
}

fn maker_unknown(facts: &MachineFacts) -> bool {
    !facts.contains_key("maker")
}

/// Where the provider's service is. `may_be`: the machine may be its; else only what the environment names is asked.
fn base(sources: &dyn Sources, provider: Provider, may_be: bool) -> Option<Endpoint> {
    const EVERYWHERE: &str = "http://169.254.169.254";
    let named = match provider {
        Provider::Aws => {
            if sources.env("AWS_EC2_METADATA_DISABLED").is_some_and(|v| v.eq_ignore_ascii_case("true")) {
                return None;
            }
            sources.env("AWS_EC2_METADATA_SERVICE_ENDPOINT").map(|url| url.trim_end_matches('/').to_owned())
        }
        Provider::Gce => sources.env("GCE_METADATA_HOST").map(|host| format!("http://{host}")),
        _ => None,
    };
    let url = named.or_else(|| may_be.then(|| EVERYWHERE.to_owned()))?;
    Endpoint::parse(&url).ok()
}

/// Who is not there does not answer, and nobody waits for him longer than for all together.
fn first_to_answer(bases: Vec<(Provider, Endpoint)>, ask: Ask) -> MachineFacts {
    let until = Instant::now() + LIMIT;
    let (answers, come) = sync_channel(ALL.len());
    for (provider, base) in bases {
        let answers = answers.clone();
        let body = move || {
            let left = || until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            let facts = asked(provider, &base, &left, ask).unwrap_or_default();
            let _ = answers.send(facts);
        };
        // Without a thread there is one who is not asked: this is beside the measurement.
        let _ = std::thread::Builder::new().name("asks-identity".into()).spawn(body);
    }
    drop(answers);
    while let Ok(facts) = come.recv_timeout(until.saturating_duration_since(Instant::now())) {
        if !facts.is_empty() {
            return facts;
        }
    }
    MachineFacts::new()
}

fn asked(provider: Provider, base: &Endpoint, left: &dyn Fn() -> Duration, ask: Ask) -> Option<MachineFacts> {
    let get = |path: &str, header: Option<(&'static str, String)>| -> Option<Vec<u8>> {
        let mut request = WebRequest::new("GET", base, path, left());
        request.headers.extend(header);
        ask(&request).ok().filter(|a| a.status == 200).map(|a| a.body)
    };
    let json = |body: Vec<u8>| serde_json::from_slice::<Value>(&body).ok();
    let mut facts = match provider {
        Provider::Aws => {
            let request = WebRequest::new("PUT", base, "/latest/api/token", left())
                .with("x-aws-ec2-metadata-token-ttl-seconds", "60");
            let token = ask(&request).ok().filter(|a| a.status == 200)?;
            let token = String::from_utf8(token.body).ok()?;
            let header = ("x-aws-ec2-metadata-token", token.trim().to_owned());
            of_aws(&json(get("/latest/dynamic/instance-identity/document", Some(header))?)?)
        }
        Provider::Azure => {
            let path = "/metadata/instance?api-version=2021-02-01";
            of_azure(&json(get(path, Some(("metadata", "true".into())))?)?)
        }
        Provider::Gce => {
            let path = "/computeMetadata/v1/instance/?recursive=true";
            of_gce(&json(get(path, Some(("metadata-flavor", "Google".into())))?)?)
        }
        Provider::DigitalOcean => {
            let said = json(get("/metadata/v1.json", None)?)?;
            picked(&said, &[("region", "/region"), ("instance_id", "/droplet_id")])
        }
        Provider::Hetzner => of_hetzner(&String::from_utf8(get("/hetzner/v1/metadata", None)?).ok()?),
        Provider::Vultr => {
            let said = json(get("/v1.json", None)?)?;
            picked(&said, &[("region", "/region/regioncode"), ("instance_id", "/instance-v2-id")])
        }
    };
    // An answer of somebody else, who is asked under the same address.
    if facts.is_empty() {
        return None;
    }
    put(&mut facts, "cloud", provider.name());
    Some(facts)
}

/// Texts and numbers under these names.
fn picked(said: &Value, wanted: &[(&str, &str)]) -> MachineFacts {
    let mut facts = MachineFacts::new();
    for (name, pointer) in wanted {
        match said.pointer(pointer) {
            Some(Value::String(text)) => put(&mut facts, name, text),
            Some(Value::Number(number)) => put(&mut facts, name, &number.to_string()),
            _ => {}
        }
    }
    facts
}

/// Without the account's number, and the addresses.
fn of_aws(said: &Value) -> MachineFacts {
    picked(
        said,
        &[
            ("instance_type", "/instanceType"),
            ("region", "/region"),
            ("zone", "/availabilityZone"),
            ("image", "/imageId"),
            ("instance_id", "/instanceId"),
        ],
    )
}

/// Without subscription, group, tags and names.
fn of_azure(said: &Value) -> MachineFacts {
    let mut facts = picked(
        said,
        &[
            ("instance_type", "/compute/vmSize"),
            ("region", "/compute/location"),
            ("zone", "/compute/zone"),
            ("instance_id", "/compute/vmId"),
        ],
    );
    let disks = said.pointer("/compute/storageProfile/dataDisks").and_then(Value::as_array);
    for disk in disks.into_iter().flatten().take(MOST_DISKS) {
        let text = |name: &str| disk[name].as_str().unwrap_or("?").to_owned();
        let kind = disk.pointer("/managedDisk/storageAccountType").and_then(Value::as_str).unwrap_or("?");
        let words = format!("{kind}, {} GB, caching {}", text("diskSizeGB"), text("caching"));
        put(&mut facts, &format!("disk lun {}", text("lun")), &words);
    }
    facts
}

/// Types and zones come with the project's number before them: it is left out.
fn of_gce(said: &Value) -> MachineFacts {
    let last = |pointer: &str| {
        let text = said.pointer(pointer).and_then(Value::as_str)?;
        Some(text.rsplit('/').next().unwrap_or_default().to_owned())
    };
    let mut facts = MachineFacts::new();
    for (name, value) in [("instance_type", last("/machineType")), ("zone", last("/zone"))] {
        put(&mut facts, name, &value.unwrap_or_default());
    }
    if let Some((region, _)) = facts.get("zone").and_then(|z| z.rsplit_once('-')) {
        let region = region.to_owned();
        put(&mut facts, "region", &region);
    }
    let disks = said.pointer("/disks").and_then(Value::as_array);
    for disk in disks.into_iter().flatten().take(MOST_DISKS) {
        let text = |name: &str| disk[name].as_str().unwrap_or("?").to_owned();
        put(
            &mut facts,
            &format!("disk {}", text("deviceName")),
            &format!("{}, {}", text("type"), text("interface")),
        );
    }
    facts
}

/// Its three lines of YAML.
fn of_hetzner(said: &str) -> MachineFacts {
    let mut facts = MachineFacts::new();
    for line in said.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim().trim_matches(['"', '\'']);
        match name {
            "instance-id" => put(&mut facts, "instance_id", value),
            "region" => put(&mut facts, "region", value),
            "availability-zone" => put(&mut facts, "zone", value),
            _ => {}
        }
    }
    facts
}

/// Firmware and services say what they like.
fn put(facts: &mut MachineFacts, name: &str, value: &str) {
    let short: String = value.trim().chars().take(MOST_CHARS).collect();
    if !short.is_empty() && name.len() <= MOST_CHARS {
        facts.insert(clean(name).into_owned(), clean(&short).into_owned());
    }
}

/// The volume behind a block device, as its provider calls it: EBS has its id as the serial number, Google's name is among those under
/// /dev/disk/by-id, and Azure's number has a link of its own.
pub fn volume_of(device: &str, model: &str, serial: &str, by_id: &[String]) -> Option<String> {
    match model.trim() {
        "Amazon Elastic Block Store" => {
            let id = serial.trim();
            let rest = id.strip_prefix("vol").map(|rest| rest.trim_start_matches('-'));
            return Some(rest.map_or_else(|| id.to_owned(), |rest| format!("vol-{rest}")));
        }
        "Amazon EC2 NVMe Instance Storage" => return Some("local to the instance".into()),
        _ => {}
    }
    let google = by_id.iter().find_map(|name| {
        let name = name.rsplit('/').next()?.strip_prefix("google-")?;
        Some(name.split("-part").next().unwrap_or(name).to_owned())
    });
    google.or_else(|| {
        let entries = std::fs::read_dir("/dev/disk/azure/scsi1").ok()?;
        entries.flatten().find_map(|entry| {
            let to = std::fs::read_link(entry.path()).ok()?;
            let name = entry.file_name().to_string_lossy().into_owned();
            to.file_name().is_some_and(|n| n == device).then(|| format!("Azure data disk {}", clean(&name)))
        })
    })
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::IpAddr;

    use super::*;

    /// DMI and environment, by name.
    struct Machine(&'static [(&'static str, &'static str)]);

    impl Machine {
        fn of(&self, name: &str) -> Option<String> {
            self.0.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned())
        }
    }

    impl Sources for Machine {
        fn env(&self, name: &str) -> Option<String> {
            self.of(name)
        }
        fn read(&self, path: &Path) -> io::Result<String> {
            let name = path.file_name().unwrap().to_str().unwrap();
            self.of(name).ok_or_else(|| io::ErrorKind::NotFound.into())
        }
        fn run(&self, _: &str) -> io::Result<Vec<u8>> {
            unreachable!()
        }
        fn web(&self, _: &WebRequest) -> Result<WebAnswer, WebTrouble> {
            unreachable!()
        }
        fn addresses(&self, _: &str) -> io::Result<Vec<IpAddr>> {
            unreachable!()
        }
        fn now_unix_s(&self) -> u64 {
            0
        }
        fn pause(&self, _: Duration) {}
    }

    fn ok(body: &str) -> Result<WebAnswer, WebTrouble> {
        Ok(WebAnswer { status: 200, body: body.into() })
    }

    fn nobody(request: &WebRequest) -> Result<WebAnswer, WebTrouble> {
        Err(WebTrouble { connected: false, what: request.path.clone() })
    }

    fn never(_: &WebRequest) -> Result<WebAnswer, WebTrouble> {
        panic!("nobody is to be asked")
    }

    fn of(facts: &MachineFacts, names: &[&str]) -> Vec<String> {
        names.iter().map(|n| facts.get(*n).cloned().unwrap_or_default()).collect()
    }

    #[test]
    fn a_machine_that_says_who_made_it_asks_nobody_else() {
        let facts = identify(&Machine(&[("sys_vendor", "Dell Inc.\n"), ("product_name", "R760")]), never);
        assert_eq!(facts, [("maker".to_owned(), "Dell Inc. R760".to_owned())].into());
        let facts = identify(&Machine(&[("sys_vendor", "Scaleway")]), never);
        assert_eq!(facts["cloud"], "scaleway");
        let off = [("sys_vendor", "Amazon EC2"), ("AWS_EC2_METADATA_DISABLED", "true")];
        assert_eq!(
            of(&identify(&Machine(Box::leak(Box::new(off))), never), &["cloud", "region"]),
            ["aws", ""]
        );
    }

    #[test]
    fn aws_is_asked_by_version_2_and_the_account_is_left_out() {
        let ask: Ask = |r| match (r.method, r.path.as_str(), r.headers.first().map(|(n, v)| (*n, v.as_str())))
        {
            ("PUT", "/latest/api/token", _) => ok("t"),
            (
                "GET",
                "/latest/dynamic/instance-identity/document",
                Some(("x-aws-ec2-metadata-token", "t")),
            ) => ok(
                r#"{"accountId":"123456789012","instanceType":"m7i.large","region":"eu-west-1","availabilityZone":"eu-west-1b","imageId":"ami-1","instanceId":"i-0a","privateIp":"10.0.0.1"}"#,
            ),
            _ => nobody(r),
        };
        let facts = identify(&Machine(&[("sys_vendor", "Amazon EC2")]), ask);
        assert_eq!(
            of(&facts, &["cloud", "instance_type", "zone", "instance_id"]),
            ["aws", "m7i.large", "eu-west-1b", "i-0a"]
        );
        assert!(!format!("{facts:?}").contains("123456789012") && !format!("{facts:?}").contains("10.0.0.1"));
    }

    #[test]
    fn the_others_each_in_their_own_form() {
        let azure: Ask = |r| match r.headers.first() {
            Some(("metadata", v)) if v == "true" && r.path.starts_with("/metadata/instance?") => ok(
                r#"{"compute":{"vmSize":"Standard_D4s_v5","location":"westeurope","zone":"2","subscriptionId":"s-1","vmId":"v","storageProfile":{"dataDisks":[{"lun":"0","diskSizeGB":"1023","caching":"None","managedDisk":{"storageAccountType":"Premium_LRS","id":"/subscriptions/s-1/x"}}]}}}"#,
            ),
            _ => nobody(r),
        };
        let facts = identify(
            &Machine(&[("sys_vendor", "Microsoft Corporation"), ("chassis_asset_tag", AZURE)]),
            azure,
        );
        assert_eq!(
            of(&facts, &["instance_type", "disk lun 0"]),
            ["Standard_D4s_v5", "Premium_LRS, 1023 GB, caching None"]
        );
        assert!(!format!("{facts:?}").contains("s-1"));
        let gce: Ask = |r| match r.headers.first() {
            Some(("metadata-flavor", v)) if v == "Google" => ok(
                r#"{"machineType":"projects/987654/machineTypes/n2-standard-4","zone":"projects/987654/zones/europe-west1-b","disks":[{"deviceName":"data","type":"PERSISTENT-SSD","interface":"NVME"}]}"#,
            ),
            _ => nobody(r),
        };
        let facts =
            identify(&Machine(&[("sys_vendor", "Google"), ("product_name", "Google Compute Engine")]), gce);
        assert_eq!(
            of(&facts, &["instance_type", "region", "zone", "disk data"]),
            ["n2-standard-4", "europe-west1", "europe-west1-b", "PERSISTENT-SSD, NVME"]
        );
        assert!(!format!("{facts:?}").contains("987654"));
        let rest: Ask = |r| match r.path.as_str() {
            "/metadata/v1.json" => ok(r#"{"droplet_id":42,"region":"ams3","hostname":"mine"}"#),
            "/hetzner/v1/metadata" => {
                ok("availability-zone: fsn1-dc14\nhostname: mine\ninstance-id: 7\nregion: eu-central\n")
            }
            "/v1.json" => ok(r#"{"instance-v2-id":"u-1","region":{"regioncode":"AMS"}}"#),
            _ => nobody(r),
        };
        for (vendor, region) in [("DigitalOcean", "ams3"), ("Hetzner", "eu-central"), ("Vultr", "AMS")] {
            let machine = [("sys_vendor", vendor)];
            let facts = identify(&Machine(Box::leak(Box::new(machine))), rest);
            assert_eq!(of(&facts, &["cloud", "region"]), [vendor.to_lowercase().as_str(), region]);
            assert!(!format!("{facts:?}").contains("mine"));
        }
    }

    #[test]
    fn without_tables_all_are_asked_and_garbage_is_nobody() {
        let vultr: Ask = |r| match r.path.as_str() {
            "/v1.json" => ok(r#"{"instance-v2-id":"u-1","region":{"regioncode":"AMS"}}"#),
            "/latest/api/token" => ok("<html>"),
            _ => ok("{}"),
        };
        assert_eq!(of(&identify(&Machine(&[]), vultr), &["cloud", "region"]), ["vultr", "AMS"]);
        assert_eq!(identify(&Machine(&[]), nobody), MachineFacts::new());
        let long: Ask = |r| match r.path.as_str() {
            "/v1.json" => ok(&format!("{{\"instance-v2-id\":\"\\u001b{}\"}}", "x".repeat(10_000))),
            _ => nobody(r),
        };
        let facts = identify(&Machine(&[]), long);
        assert!(facts["instance_id"].len() < 2 * MOST_CHARS && !facts["instance_id"].contains('\u{1b}'));
    }

    #[test]
    fn who_does_not_answer_costs_a_second_at_the_most() {
        let hangs: Ask = |r| {
            std::thread::sleep(Duration::from_secs(600));
            nobody(r)
        };
        // It would be ten minutes: that it comes back at all is the test.
        assert_eq!(identify(&Machine(&[]), hangs), MachineFacts::new());
    }

    #[test]
    fn volumes_have_their_providers_names() {
        let ebs = "Amazon Elastic Block Store              ";
        assert_eq!(volume_of("nvme1n1", ebs, "vol0abc123\n", &[]).as_deref(), Some("vol-0abc123"));
        assert_eq!(volume_of("nvme1n1", ebs, "vol-0abc", &[]).as_deref(), Some("vol-0abc"));
        let local = volume_of("nvme2n1", "Amazon EC2 NVMe Instance Storage", "AWS1", &[]);
        assert_eq!(local.as_deref(), Some("local to the instance"));
        assert_eq!(volume_of("no-such-device", "Samsung", "S1", &[]), None);
        let ids = ["scsi-0Google_PersistentDisk_data".to_owned(), "google-data-part1".to_owned()];
        assert_eq!(volume_of("sdb1", "PersistentDisk", "", &ids).as_deref(), Some("data"));
    }
}
