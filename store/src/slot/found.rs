//! What a device holds, by the magic numbers of file systems and partition tables: so that nothing is overwritten that an administrator did not mean.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// Names, and the bytes that each has at an offset (the kernel's include/uapi/linux/magic.h and the formats' own documents).
const KNOWN: &[(&str, u64, &[u8])] = &[
    ("a GPT partition table", 512, b"EFI PART"),
    ("a GPT partition table", 4096, b"EFI PART"),
    ("a LUKS volume", 0, b"LUKS\xba\xbe"),
    ("an XFS file system", 0, b"XFSB"),
    ("a squashfs file system", 0, b"hsqs"),
    ("an EROFS file system", 1024, b"\xe2\xe1\xf5\xe0"),
    ("an ext2, ext3 or ext4 file system", 1080, b"\x53\xef"),
    ("a btrfs file system", 65600, b"_BHRfS_M"),
    ("an F2FS file system", 1024, b"\x10\x20\xf5\xf2"),
    ("swap space", 4086, b"SWAPSPACE2"),
    ("a physical volume of LVM", 536, b"LVM2 001"),
    ("an ISO 9660 file system", 32769, b"CD001"),
    ("a UBIFS file system", 0, b"\x31\x18\x10\x06"),
    ("an NTFS file system", 3, b"NTFS    "),
    ("an exFAT file system", 3, b"EXFAT   "),
    ("a FAT file system", 54, b"FAT1"),
    ("a FAT file system", 82, b"FAT32"),
    ("a dm-verity hash tree", 0, b"verity\0\0"),
];

/// How much is looked at: all offsets above lie in it.
const LOOK_LEN: usize = 128 << 10;

/// Returns what a device or file holds; `None` if its first bytes are zeros.
///
/// # Errors
/// Returns an error if it cannot be read.
pub(crate) fn found_in(file: &File) -> std::io::Result<Option<&'static str>> {
    let mut bytes = Vec::with_capacity(LOOK_LEN);
    while bytes.len() < LOOK_LEN {
        let start = bytes.len();
        bytes.resize(LOOK_LEN, 0);
        let read = file.read_at(&mut bytes[start..], sealift_format::num::wide(start))?;
        bytes.truncate(start + read);
        if read == 0 {
            break;
        }
    }
    Ok(name_of(&bytes))
}

fn name_of(bytes: &[u8]) -> Option<&'static str> {
    let has =
        |at: u64, magic: &[u8]| bytes.get(sealift_format::num::size(at)..).is_some_and(|rest| rest.starts_with(magic));
    let known = KNOWN.iter().find(|(_, at, magic)| has(*at, magic)).map(|(name, ..)| *name);
    let is_table =
        || has(510, &[0x55, 0xaa]) && bytes.get(446..510).is_some_and(|table| table.iter().any(|byte| *byte != 0));
    known
        .or_else(|| is_table().then_some("an MBR partition table"))
        .or_else(|| bytes.iter().any(|byte| *byte != 0).then_some("data"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_has_a_name() {
        assert_eq!(name_of(&[0; 4096]), None);
        assert_eq!(name_of(&[]), None);
        for (name, at, magic) in KNOWN {
            let mut bytes = vec![0; LOOK_LEN];
            bytes[sealift_format::num::size(*at)..][..magic.len()].copy_from_slice(magic);
            assert_eq!(name_of(&bytes), Some(*name));
        }
        let mut bytes = vec![0; 4096];
        bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
        assert_eq!(name_of(&bytes), Some("data"));
        bytes[450] = 0x83;
        assert_eq!(name_of(&bytes), Some("an MBR partition table"));
    }
}
