//! Where a device begins and ends what it erases at once, so that writes do not cut it: flash that gets a part of an erase block copies the rest.

use std::path::{Path, PathBuf};

use rustix::fs::Dev;
use sealift_format::num::size;

use crate::fs::block_device::folder_of;

/// The unit without other information: a multiple of most erase blocks.
const USUAL: u64 = 4 << 20;
/// The largest unit.
const MAX: u64 = 8 << 20;

/// The units in which a slot is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Bytes of a unit.
    unit: u64,
    /// Where the slot begins within a unit of its disk.
    start: u64,
}

impl Geometry {
    /// Those of a regular file, whose place on its device is not known.
    pub(super) const OF_FILE: Self = Self { unit: USUAL, start: 0 };

    /// Returns those that the kernel reports for a block device (Documentation/ABI/stable/sysfs-block; the erase block of an MMC or SD card is in
    /// Documentation/driver-api/mmc/mmc-dev-attrs.rst).
    pub(super) fn of_device(device: Dev) -> Self {
        folder_of(device).canonicalize().map_or(Self::OF_FILE, |folder| Self::read(&folder))
    }

    fn read(folder: &Path) -> Self {
        let disk = if folder.join("partition").exists() { folder.parent().unwrap_or(folder) } else { folder };
        let number = |path: PathBuf| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
        let told = ["device/preferred_erase_size", "queue/optimal_io_size", "queue/discard_granularity"];
        let block = told.iter().find_map(|file| number(disk.join(file)).filter(|len| *len > 0));
        let sectors = number(folder.join("start")).unwrap_or(0);
        Self::new(block.unwrap_or(USUAL), sectors.saturating_mul(512))
    }

    fn new(block: u64, start: u64) -> Self {
        // As many whole blocks as the usual unit has, if that is not too much; O_DIRECT needs multiples of 4096 bytes.
        let unit = USUAL.div_ceil(block).saturating_mul(block);
        let unit = if unit > MAX || !unit.is_multiple_of(4096) { USUAL } else { unit };
        // A partition need not begin at a multiple of what O_DIRECT needs, but units do.
        Self { unit, start: start % unit / 4096 * 4096 }
    }

    /// Returns the same with smaller units, of at most `len` bytes if that is possible.
    pub(super) fn at_most(self, len: usize) -> Self {
        let Self { mut unit, start } = self;
        while size(unit) > len && unit.is_multiple_of(2 * 4096) {
            unit /= 2;
        }
        Self { unit, start: start % unit }
    }

    /// Returns how many bytes there are from an offset of the slot to the end of its unit.
    pub(super) fn until_end(self, offset: u64) -> usize {
        size(self.unit - (offset + self.start) % self.unit)
    }

    /// Returns the bytes of a unit.
    pub(super) fn unit(self) -> usize {
        size(self.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn units_are_whole_erase_blocks_of_the_disk() {
        for (block, unit) in [
            (4096, 4 * MIB),
            (512 << 10, 4 * MIB),
            (3 * MIB, 6 * MIB),
            (6 * MIB, 6 * MIB),
            (8 * MIB, 8 * MIB),
            (16 * MIB, 4 * MIB),
            (1000, 4 * MIB),
            (u64::MAX, 4 * MIB),
        ] {
            assert_eq!(Geometry::new(block, 0), Geometry { unit, start: 0 }, "{block}");
        }
        let shifted = Geometry::new(4 * MIB, 9 * MIB);
        assert_eq!(
            [0, 1, 3 * MIB - 1, 3 * MIB].map(|offset| shifted.until_end(offset)),
            [3 << 20, (3 << 20) - 1, 1, 4 << 20]
        );
    }

    #[test]
    fn a_card_tells_its_erase_block_and_a_partition_its_start() {
        let folder = tempfile::tempdir().expect("a folder");
        let (disk, part) = (folder.path().join("mmcblk0"), folder.path().join("mmcblk0/mmcblk0p2"));
        for path in [disk.join("device"), disk.join("queue"), part.clone()] {
            std::fs::create_dir_all(path).expect("it is ours");
        }
        let write = |path: PathBuf, text: &str| std::fs::write(path, text).expect("it is ours");
        write(disk.join("queue/optimal_io_size"), "0\n");
        write(disk.join("queue/discard_granularity"), "6291456\n");
        assert_eq!(Geometry::read(&disk), Geometry { unit: 6 * MIB, start: 0 });
        write(disk.join("device/preferred_erase_size"), "4194304\n");
        write(part.join("partition"), "2\n");
        write(part.join("start"), "2048\n");
        assert_eq!(Geometry::read(&part), Geometry { unit: 4 * MIB, start: MIB });
    }
}
