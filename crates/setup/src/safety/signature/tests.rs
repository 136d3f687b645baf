use proptest::prelude::*;

use super::*;

const SIZE: u64 = 64 << 20;

/// A device of zeros with some bytes put into it.
fn device(puts: &[(u64, &[u8])]) -> Vec<Signature> {
    let mut all = vec![0u8; SIZE as usize];
    for (offset, bytes) in puts {
        all[*offset as usize..*offset as usize + bytes.len()].copy_from_slice(bytes);
    }
    detect(&all[..HEAD_BYTES as usize], &all[(SIZE - TAIL_BYTES) as usize..], SIZE)
}

fn name_of(puts: &[(u64, &[u8])]) -> &'static str {
    match device(puts).as_slice() {
        [one] => one.name,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_empty_device_has_none() {
    assert_eq!(device(&[]), vec![]);
    assert_eq!(detect(&[], &[], 0), vec![]);
}

#[test]
fn every_fixed_magic_is_found_alone() {
    for Magic(offset, magic, name, kind) in HEAD {
        let found = device(&[(*offset, magic)]);
        assert_eq!(found, vec![Signature { name, kind: *kind, offset: *offset }]);
    }
}

#[test]
fn ext_needs_more_than_its_two_bytes() {
    assert_eq!(device(&[(0x438, b"\x53\xef")]), vec![]);
    let blocks: (u64, &[u8]) = (0x404, b"\x00\x10\x00\x00");
    assert_eq!(name_of(&[(0x438, b"\x53\xef"), blocks]), "ext2");
    assert_eq!(name_of(&[(0x438, b"\x53\xef"), blocks, (0x45c, b"\x04")]), "ext3");
    assert_eq!(name_of(&[(0x438, b"\x53\xef"), blocks, (0x45c, b"\x3c"), (0x460, b"\xc2\x02")]), "ext4");
    assert_eq!(device(&[(0x438, b"\x53\xef"), blocks, (0x418, b"\xff")]), vec![]);
}

#[test]
fn tables_volumes_and_swaps() {
    let entry: (u64, &[u8]) = (446, b"\x80\0\0\0\x83\0\0\0\0\x08\0\0\0\x10\0\0");
    assert_eq!(name_of(&[(510, b"\x55\xaa"), entry]), "MBR");
    assert_eq!(device(&[(510, b"\x55\xaa")]), vec![], "a boot sector without partitions is no table");
    assert_eq!(name_of(&[(SIZE - 512, b"EFI PART")]), "GPT");
    assert_eq!(name_of(&[(512, b"LABELONE"), (536, b"LVM2 001")]), "LVM2 physical volume");
    assert_eq!(name_of(&[(4086, b"SWAPSPACE2")]), "swap");
    assert_eq!(name_of(&[(65526, b"SWAPSPACE2")]), "swap");
    assert_eq!(name_of(&[(132 << 10, &0x00ba_b10cu64.to_le_bytes())]), "ZFS");
    assert_eq!(name_of(&[(SIZE - (100 << 10), &0x00ba_b10cu64.to_be_bytes())]), "ZFS");
}

#[test]
fn raid_at_both_ends() {
    let magic = RAID_MAGIC.to_le_bytes();
    assert_eq!(name_of(&[(SIZE - 8192, &magic)]), "Linux RAID (1.0)");
    assert_eq!(name_of(&[(SIZE - 65536, &magic)]), "Linux RAID (0.90)");
    assert_eq!(name_of(&[(SIZE - 1024, b"Intel Raid ISM Cfg Sig. 1.0")]), "Intel firmware RAID");
    assert_eq!(name_of(&[(SIZE - 512, b"\xde\x11\xde\x11")]), "DDF firmware RAID");
}

#[test]
fn small_things_do_not_panic() {
    for n in [1usize, 100, 511, 512, 1024, 4095, 4096, 70_000] {
        let bytes = vec![0xffu8; n];
        detect(&bytes, &bytes, n as u64);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_judged_without_panic(head in proptest::collection::vec(any::<u8>(), 0..9000),
                                          tail in proptest::collection::vec(any::<u8>(), 0..3000), extra in 0u64..1 << 40) {
        let size = extra + head.len().max(tail.len()) as u64;
        for s in detect(&head, &tail, size) {
            prop_assert!(s.offset < size);
        }
    }
}
