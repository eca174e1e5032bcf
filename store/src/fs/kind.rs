//! The names of file systems, for messages.

use std::os::fd::BorrowedFd;

use rustix::fs::{FsWord, fstatfs};

/// The file systems by their magic numbers (statfs(2), linux/magic.h).
const KINDS: [(FsWord, &str); 19] = [
    (0xEF53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683E, "btrfs"),
    (0x0102_1994, "tmpfs"),
    (0x8584_58F6, "ramfs"),
    (0x794C_7630, "overlayfs"),
    (0x6573_5546, "FUSE"),
    (0x2011_BAB0, "exFAT"),
    (0x4D44, "FAT"),
    (0x7366_746E, "NTFS"),
    (0x6969, "NFS"),
    (0xFF53_4D42, "SMB"),
    (0xFE53_4D42, "SMB"),
    (0x0102_1997, "9p"),
    (0xF2F5_2010, "f2fs"),
    (0xCA45_1A4E, "bcachefs"),
    (0x2FC1_2FC1, "ZFS"),
    (0x00C3_6400, "Ceph"),
    (0x4244, "HFS"),
];

/// Returns the name of the file system of an open file, as the subject of a sentence.
#[must_use]
pub fn kind_of(file: BorrowedFd<'_>) -> &'static str {
    let found = fstatfs(file).map(|stat| stat.f_type);
    let name = found.ok().and_then(|magic| KINDS.iter().find(|(known, _)| *known == magic));
    name.map_or("the file system", |(_, name)| name)
}
