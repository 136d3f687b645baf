//! What is mounted.

use std::fs;

/// A line of /proc/self/mountinfo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Of the device's number; 0 for file systems without a device.
    pub major: u32,
    /// Of the device's number.
    pub minor: u32,
    /// As seen from whoever's table it is; octal escapes undone.
    pub mount_point: String,
    /// Type, for example `ext4`.
    pub file_system: String,
    /// Often a path under /dev; by itself no proof of which device.
    pub source: String,
}

/// Mounts of this mount namespace, and of the first process's where that can be read.
pub fn mounts() -> Vec<Mount> {
    let mut all = Vec::new();
    for path in ["/proc/self/mountinfo", "/proc/1/mountinfo"] {
        if let Ok(text) = fs::read_to_string(path) {
            for m in text.lines().filter_map(parse_mount) {
                if !all.contains(&m) {
                    all.push(m);
                }
            }
        }
    }
    all
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue` (proc(5)).
fn parse_mount(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ');
    let (maj, min) = left.nth(2)?.split_once(':')?;
    let mount_point = unescape(left.nth(1)?);
    let mut right = right.split(' ');
    let file_system = right.next()?.to_owned();
    let source = unescape(right.next()?);
    Some(Mount { major: maj.parse().ok()?, minor: min.parse().ok()?, mount_point, file_system, source })
}

/// Space, tab, newline and backslash are written as octal (`\040`).
pub fn unescape(text: &str) -> String {
    let mut out = Vec::new();
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        let octal = (bytes[i] == b'\\')
            .then(|| text.get(i + 1..i + 4).and_then(|d| u8::from_str_radix(d, 8).ok()))
            .flatten();
        match octal {
            Some(b) => {
                out.push(b);
                i += 4;
            }
            None => {
                out.push(bytes[i]);
                i += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mountinfo_is_read_with_its_escapes() {
        let m = parse_mount(
            r"36 35 98:3 / /mnt/my\040disk rw,noatime shared:1 master:2 - ext4 /dev/disk\134x rw",
        )
        .unwrap();
        assert_eq!((m.major, m.minor), (98, 3));
        assert_eq!(m.mount_point, "/mnt/my disk");
        assert_eq!(m.file_system, "ext4");
        assert_eq!(m.source, r"/dev/disk\x");
        assert!(parse_mount("garbage").is_none());
    }

    #[test]
    fn this_machine_has_a_root() {
        assert!(mounts().iter().any(|m| m.mount_point == "/"));
    }
}
