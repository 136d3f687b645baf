//! Known signatures at the beginning and end of a device or file: file systems, partition tables,
//! volume managers, RAID, encryption, swap and disk images. Pure: bytes in, names out.
//!
//! Offsets are those of the formats' own descriptions (and of util-linux' blkid, which looks for the same).

/// What the bytes look like.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signature {
    /// For example `ext4`, `GPT`, `LVM2 physical volume`.
    pub name: &'static str,
    /// Decides what the user is told.
    pub kind: Kind,
    /// Where its magic stands, from the beginning of the device.
    pub offset: u64,
}

/// What would be lost by writing over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Files.
    FileSystem,
    /// Where partitions begin: each may hold any of these.
    PartitionTable,
    /// A part of volumes that span devices.
    VolumeManager,
    /// A member of an array.
    Raid,
    /// What it holds cannot be seen without its key.
    Encryption,
    /// Memory of a running system, or of one that sleeps.
    Swap,
    /// Of a virtual machine's disk, or a file system in a file.
    Image,
}

impl Kind {
    /// For a sentence: `holds a file system (ext4)`.
    pub fn name(self) -> &'static str {
        match self {
            Self::FileSystem => "file system",
            Self::PartitionTable => "partition table",
            Self::VolumeManager => "volume manager",
            Self::Raid => "RAID member",
            Self::Encryption => "encrypted volume",
            Self::Swap => "swap area",
            Self::Image => "disk image",
        }
    }
}

/// Bytes to read at the beginning.
pub const HEAD_BYTES: u64 = 1 << 20;
/// Bytes to read at the end: two ZFS labels and the last RAID superblock lie in it.
pub const TAIL_BYTES: u64 = 640 << 10;

/// A fixed magic at a fixed place.
struct Magic(u64, &'static [u8], &'static str, Kind);

use Kind::{Encryption, FileSystem, Image, PartitionTable, Raid, Swap, VolumeManager};

const HEAD: &[Magic] = &[
    Magic(0, b"XFSB", "xfs", FileSystem),
    Magic(0x10040, b"_BHRfS_M", "btrfs", FileSystem),
    Magic(3, b"NTFS    ", "ntfs", FileSystem),
    Magic(3, b"EXFAT   ", "exfat", FileSystem),
    Magic(0x36, b"FAT12   ", "vfat", FileSystem),
    Magic(0x36, b"FAT16   ", "vfat", FileSystem),
    Magic(0x52, b"FAT32   ", "vfat", FileSystem),
    Magic(1024, &0xF2F5_2010u32.to_le_bytes(), "f2fs", FileSystem),
    Magic(1024, &0xE0F5_E1E2u32.to_le_bytes(), "erofs", FileSystem),
    Magic(1024, b"H+\x00\x04", "hfsplus", FileSystem),
    Magic(1024, b"HX\x00\x05", "hfsplus", FileSystem),
    // Its magic is two bytes; the revision before it tells it from chance.
    Magic(1024, b"\x02\x00\x00\x00\x00\x00\x34\x34", "nilfs2", FileSystem),
    Magic(32, b"NXSB", "apfs", FileSystem),
    Magic(0, b"hsqs", "squashfs", FileSystem),
    Magic(0, b"\x45\x3d\xcd\x28", "cramfs", FileSystem),
    Magic(0x8001, b"CD001", "iso9660", FileSystem),
    Magic(0x8000, b"JFS1", "jfs", FileSystem),
    Magic(0x10034, b"ReIsErFs", "reiserfs", FileSystem),
    Magic(0x10034, b"ReIsEr2Fs", "reiserfs", FileSystem),
    Magic(0x10034, b"ReIsEr3Fs", "reiserfs", FileSystem),
    Magic(0x10000, b"\x01\x16\x19\x70", "gfs2", FileSystem),
    Magic(2048, b"OCFSV2", "ocfs2", FileSystem),
    Magic(0, b"bluestore block device", "Ceph BlueStore", VolumeManager),
    Magic(0x10_0000 - 0x1_0000, b"\x0d\xd0\x01\xc0", "VMFS", VolumeManager),
    Magic(4096, &RAID_MAGIC.to_le_bytes(), "Linux RAID (1.2)", Raid),
    Magic(0, &RAID_MAGIC.to_le_bytes(), "Linux RAID (1.1)", Raid),
    Magic(
        4096 + 24,
        b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81",
        "bcache",
        VolumeManager,
    ),
    Magic(
        4096 + 24,
        b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef",
        "bcachefs",
        FileSystem,
    ),
    Magic(0, b"LUKS\xba\xbe", "LUKS", Encryption),
    Magic(0x4000, b"SKUL\xba\xbe", "LUKS2", Encryption),
    Magic(3, b"-FVE-FS-", "BitLocker", Encryption),
    Magic(512, b"EFI PART", "GPT", PartitionTable),
    Magic(4096, b"EFI PART", "GPT", PartitionTable),
    Magic(0, b"QFI\xfb", "qcow2", Image),
    Magic(0, b"KDMV", "vmdk", Image),
    Magic(0, b"vhdxfile", "vhdx", Image),
    Magic(0x40, b"\x7f\x10\xda\xbe", "vdi", Image),
];

const RAID_MAGIC: u32 = 0xA92B_4EFC;

/// Names what the first [`HEAD_BYTES`] and last [`TAIL_BYTES`] of `size` bytes hold. Either may be shorter.
pub fn detect(head: &[u8], tail: &[u8], size: u64) -> Vec<Signature> {
    let mut out: Vec<Signature> = HEAD
        .iter()
        .filter(|Magic(offset, magic, ..)| at(head, *offset, magic))
        .map(|Magic(offset, _, name, kind)| Signature { name, kind: *kind, offset: *offset })
        .collect();
    let found: [Option<Signature>; 9] = [
        ext(head),
        swap(head),
        lvm(head),
        zfs(head, 0),
        mbr(head),
        gpt_backup(tail, size),
        raid_at_end(tail, size),
        firmware_raid(tail, size),
        zfs(tail, size.saturating_sub(tail.len() as u64)),
    ];
    out.extend(found.into_iter().flatten());
    out.sort();
    out.dedup_by(|a, b| a.name == b.name);
    out
}

fn at(bytes: &[u8], offset: u64, magic: &[u8]) -> bool {
    let Ok(start) = usize::try_from(offset) else { return false };
    bytes.get(start..).is_some_and(|b| b.starts_with(magic))
}

fn u32_le(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes.get(offset..offset + 4)?.first_chunk::<4>().map(|b| u32::from_le_bytes(*b))
}

/// ext2, 3 and 4 share a two-byte magic, which random data hits once in 65,536: the block size and
/// revision must be possible as well.
fn ext(head: &[u8]) -> Option<Signature> {
    if !at(head, 0x438, b"\x53\xef") {
        return None;
    }
    let log_block_size = u32_le(head, 0x418)?;
    let revision = u32_le(head, 0x44c)?;
    let blocks = u32_le(head, 0x404)?;
    if log_block_size > 6 || revision > 1 || blocks == 0 {
        return None;
    }
    let (compatible, incompatible) = (u32_le(head, 0x45c)?, u32_le(head, 0x460)?);
    // Extents (0x40), 64 bit (0x80), flexible groups (0x200) make it ext4; a journal (0x4) ext3.
    let name = match (incompatible & 0x2c0 != 0, compatible & 4 != 0) {
        (true, _) => "ext4",
        (false, true) => "ext3",
        (false, false) => "ext2",
    };
    Some(Signature { name, kind: FileSystem, offset: 0x438 })
}

/// The magic stands at the end of the first page, of whatever size pages have.
fn swap(head: &[u8]) -> Option<Signature> {
    [4096u64, 8192, 16384, 32768, 65536].into_iter().map(|page| page - 10).find_map(|offset| {
        let hit = [&b"SWAPSPACE2"[..], b"SWAP-SPACE", b"S1SUSPEND\0"].iter().any(|m| at(head, offset, m));
        hit.then_some(Signature { name: "swap", kind: Swap, offset })
    })
}

/// The label is in one of the first four sectors.
fn lvm(head: &[u8]) -> Option<Signature> {
    [0u64, 512, 1024, 1536]
        .into_iter()
        .find(|o| at(head, *o, b"LABELONE") && at(head, o + 24, b"LVM2 001"))
        .map(|offset| Signature { name: "LVM2 physical volume", kind: VolumeManager, offset })
}

/// A ZFS label is 256 KiB; its second half is an array of uberblocks of 1 KiB or more.
fn zfs(bytes: &[u8], start: u64) -> Option<Signature> {
    const UBERBLOCK: u64 = 0x00ba_b10c;
    const LABEL: usize = 256 << 10;
    let first = (start as usize).next_multiple_of(1024) - start as usize;
    let hit = (first..bytes.len().saturating_sub(8)).step_by(1024).find(|o| {
        let inside = if start == 0 { o % LABEL >= LABEL / 2 && *o < 2 * LABEL } else { true };
        inside
            && (at(bytes, *o as u64, &UBERBLOCK.to_le_bytes())
                || at(bytes, *o as u64, &UBERBLOCK.to_be_bytes()))
    })?;
    Some(Signature { name: "ZFS", kind: VolumeManager, offset: start + hit as u64 })
}

/// A boot sector's 0x55AA is not enough (vfat has it too): at least one entry of the table must be
/// used, and each must be possible.
fn mbr(head: &[u8]) -> Option<Signature> {
    if !at(head, 510, b"\x55\xaa") {
        return None;
    }
    let entries: Vec<&[u8]> = (0..4).map(|i| &head[446 + 16 * i..462 + 16 * i]).collect();
    let sane = entries.iter().all(|e| e[0] == 0 || e[0] == 0x80);
    let used = entries.iter().any(|e| e[4] != 0 && e[12..16] != [0; 4]);
    (sane && used).then_some(Signature { name: "MBR", kind: PartitionTable, offset: 510 })
}

/// The second header of a GPT is in the last sector.
fn gpt_backup(tail: &[u8], size: u64) -> Option<Signature> {
    [512usize, 4096].into_iter().find_map(|sector| {
        let start = tail.len().checked_sub(sector)?;
        tail[start..].starts_with(b"EFI PART").then_some(Signature {
            name: "GPT",
            kind: PartitionTable,
            offset: size - sector as u64,
        })
    })
}

/// Linux RAID with its superblock at the end: version 1.0 (8 to 12 KiB before it) and 0.90 (64 to 128 KiB).
fn raid_at_end(tail: &[u8], size: u64) -> Option<Signature> {
    let start = size.checked_sub(tail.len() as u64)?;
    let places = [
        (size / 512).checked_sub(16).map(|s| (s & !7) * 512).map(|o| (o, "Linux RAID (1.0)")),
        (size & !0xffff).checked_sub(0x10000).map(|o| (o, "Linux RAID (0.90)")),
    ];
    places.into_iter().flatten().find_map(|(offset, name)| {
        let at_end = offset.checked_sub(start)?;
        at(tail, at_end, &RAID_MAGIC.to_le_bytes()).then_some(Signature { name, kind: Raid, offset })
    })
}

/// RAID of firmware: Intel's in the last but one sector, the industry's DDF in the last.
fn firmware_raid(tail: &[u8], size: u64) -> Option<Signature> {
    let before_end = |n: usize| tail.len().checked_sub(n).map(|s| &tail[s..]);
    let hit = |name, n: usize| Some(Signature { name, kind: Raid, offset: size - n as u64 });
    if before_end(1024)?.starts_with(b"Intel Raid ISM Cfg Sig. ") {
        return hit("Intel firmware RAID", 1024);
    }
    if before_end(512)?.starts_with(b"\xde\x11\xde\x11") || before_end(512)?.starts_with(b"\x11\xde\x11\xde")
    {
        return hit("DDF firmware RAID", 512);
    }
    None
}

#[cfg(test)]
mod tests;
