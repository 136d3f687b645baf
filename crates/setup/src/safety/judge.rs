//! The decision: may this be written to? Pure, over facts that others gathered.

use super::device::DeviceInfo;
use super::facts::{DeviceUse, UseOf};
use super::signature::Signature;

/// What the user asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// As the user wrote it.
    pub path: &'a str,
    /// Whether the run writes (layout included).
    pub writes: bool,
    /// Value of `--destroy-data`.
    pub destroy_data: Option<&'a str>,
}

/// A target that is not touched: what is the matter, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}. {remedy}")]
pub struct TargetRefusal {
    /// As the plan names it.
    pub path: String,
    /// Follows the path: `is mounted on /srv`.
    pub problem: String,
    /// A sentence, without its full stop.
    pub remedy: String,
}

impl TargetRefusal {
    /// Of what `path` names; `problem` goes on from it.
    pub fn new(path: &str, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { path: path.into(), problem: problem.into(), remedy: remedy.into() }
    }
}

/// Refuses a device that must not be written. Reading is free.
///
/// Uses come before the permission: a device in use is refused whatever the user names.
pub fn judge(
    request: Request<'_>,
    device: &DeviceInfo,
    uses: &[DeviceUse],
    signatures: &[Signature],
) -> Result<(), TargetRefusal> {
    if !request.writes {
        return Ok(());
    }
    let refuse = |problem: String, remedy: String| Err(TargetRefusal::new(request.path, problem, remedy));
    if let Some(u) = uses.first() {
        let who = match u.whose {
            UseOf::Itself => "it".to_owned(),
            UseOf::Part => format!("its partition {}", u.device),
            UseOf::Whole => format!("{}, the disk that it is part of,", u.device),
            UseOf::Twin => format!("{}, which is on the same file,", u.device),
        };
        return refuse(
            format!("{who} {}", u.what),
            "A device in use is never written to, whatever --destroy-data says; choose another, or release it"
                .into(),
        );
    }
    if device.read_only {
        return refuse(
            "the device is read-only".into(),
            "Choose a read workload, or make it writable (blockdev --setrw)".into(),
        );
    }
    let content = match signatures {
        [] => String::new(),
        list => format!("; it contains {}", names(list)),
    };
    match request.destroy_data {
        Some(word) if device.is_named_by(word) => Ok(()),
        Some(word) => refuse(
            format!("--destroy-data={word} names another device{content}"),
            format!("To destroy the data on this one, write {}", naming(device)),
        ),
        None => refuse(
            format!("writing to a block device destroys its data{content}"),
            format!("If that is intended, write {}", naming(device)),
        ),
    }
}

/// `an ext4 file system and a GPT partition table`.
pub fn names(signatures: &[Signature]) -> String {
    let list: Vec<String> = signatures.iter().map(|s| format!("{} ({})", s.name, s.kind.name())).collect();
    list.join(" and ")
}

fn naming(device: &DeviceInfo) -> String {
    let path = format!("--destroy-data={}", device.path.display());
    match (device.serial.as_str(), &device.partition_of) {
        ("", _) | (_, Some(_)) => path,
        (serial, None) => format!("{path} (or its serial number: --destroy-data={serial})"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::signature::Kind;
    use super::*;

    fn device() -> DeviceInfo {
        DeviceInfo {
            path: "/dev/sdx".into(),
            name: "sdx".into(),
            serial: "SN1".into(),
            by_id: vec!["ata-X_SN1".into()],
            ..DeviceInfo::default()
        }
    }

    fn write(destroy: Option<&str>) -> Request<'_> {
        Request { path: "/dev/sdx", writes: true, destroy_data: destroy }
    }

    fn in_use(whose: UseOf) -> Vec<DeviceUse> {
        vec![DeviceUse { whose, device: "sdx1".into(), what: "is mounted on /".into() }]
    }

    #[test]
    fn reading_is_free_and_writing_needs_the_name() {
        let d = device();
        assert_eq!(judge(Request { writes: false, ..write(None) }, &d, &in_use(UseOf::Itself), &[]), Ok(()));
        assert!(judge(write(None), &d, &[], &[]).is_err());
        assert!(judge(write(Some("SN2")), &d, &[], &[]).unwrap_err().to_string().contains("another device"));
        for name in ["SN1", "ata-X_SN1", "/dev/disk/by-id/ata-X_SN1"] {
            assert_eq!(judge(write(Some(name)), &d, &[], &[]), Ok(()), "{name}");
        }
    }

    #[test]
    fn a_device_in_use_is_refused_whatever_is_named() {
        for whose in [UseOf::Itself, UseOf::Part, UseOf::Whole, UseOf::Twin] {
            let e = judge(write(Some("SN1")), &device(), &in_use(whose), &[]).unwrap_err();
            assert!(e.problem.contains("mounted on /"), "{e}");
        }
    }

    #[test]
    fn the_refusal_names_what_would_be_lost() {
        let s = [Signature { name: "xfs", kind: Kind::FileSystem, offset: 0 }];
        let e = judge(write(None), &device(), &[], &s).unwrap_err().to_string();
        assert!(e.contains("xfs (file system)") && e.contains("--destroy-data=/dev/sdx"), "{e}");
        assert_eq!(judge(write(Some("SN1")), &device(), &[], &s), Ok(()));
    }

    #[test]
    fn read_only_is_told() {
        let d = DeviceInfo { read_only: true, ..device() };
        assert!(judge(write(Some("SN1")), &d, &[], &[]).unwrap_err().problem.contains("read-only"));
    }
}
