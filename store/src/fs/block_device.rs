//! Block devices: how much has been written to one, and whether a file system on it may be written to.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::PathBuf;

use rustix::fs::{Dev, major, minor};

use super::mount_list::{ListedMount, listed_mounts, parse_device};
use crate::Error;

/// How many sectors of a device were written, and how many discarded, since the system started (Documentation/block/stat.rst of Linux).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written(u64, u64);

impl Written {
    /// Returns what the kernel has counted; `None` if it does not tell.
    pub(crate) fn to(device: Dev) -> Option<Self> {
        Self::parse(&fs::read_to_string(folder_of(device).join("stat")).ok()?)
    }

    fn parse(stat: &str) -> Option<Self> {
        let numbers: Vec<u64> = stat.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
        // Discards are counted since Linux 4.18.
        Some(Self(*numbers.get(6)?, numbers.get(13).copied().unwrap_or(0)))
    }
}

/// Returns where a file system is mounted that may be written to, if it is on this device, on one of its partitions, or on what is made of them,
/// such as a logical volume. Opening the device with `O_EXCL` would refuse read-only mounts as well.
///
/// # Errors
/// Returns an error if the mounts cannot be listed.
pub(crate) fn writable_mount(device: Dev) -> Result<Option<PathBuf>, Error> {
    let mut devices = BTreeSet::new();
    add_with_users(device, &mut devices);
    let mounts = listed_mounts()?;
    Ok(mounts.into_iter().find(|mount| mount.is_writable && is_on(mount, &devices)).map(|mount| mount.place))
}

/// Returns where a file system on this very device is mounted; `None` also if the mounts cannot be listed.
pub(crate) fn mount_of(device: Dev) -> Option<PathBuf> {
    let devices = BTreeSet::from([device]);
    listed_mounts().ok()?.into_iter().find(|mount| is_on(mount, &devices)).map(|mount| mount.place)
}

fn is_on(mount: &ListedMount, devices: &BTreeSet<Dev>) -> bool {
    // The number of btrfs is no device's. Sources elsewhere may be on servers that do not answer.
    let named = || mount.source.starts_with("/dev").then(|| fs::metadata(&mount.source).ok()).flatten();
    devices.contains(&mount.device)
        || named().is_some_and(|found| found.file_type().is_block_device() && devices.contains(&found.rdev()))
}

/// Adds a device, its partitions, and the devices that are made of any of them.
fn add_with_users(device: Dev, devices: &mut BTreeSet<Dev>) {
    if !devices.insert(device) {
        return;
    }
    let folder = folder_of(device);
    // Without /sys, only the device itself is known.
    for listed in [folder.join("holders"), folder] {
        for entry in fs::read_dir(listed).into_iter().flatten().flatten() {
            // A directory with a number is a device.
            let number = fs::read_to_string(entry.path().join("dev")).ok();
            if let Some(found) = number.and_then(|text| parse_device(text.trim())) {
                add_with_users(found, devices);
            }
        }
    }
}

/// Returns the folder in which the kernel tells about a device (Documentation/ABI/stable/sysfs-block of Linux).
pub(crate) fn folder_of(device: Dev) -> PathBuf {
    format!("/sys/dev/block/{}:{}", major(device), minor(device)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_counted() {
        let old = "  100 1 800 5  20 2 160 9 0 10 14\n";
        let new = "  100 1 800 5  20 2 160 9 0 10 14  7 0 56 3  2 1\n";
        assert_eq!((Written::parse(old), Written::parse(new)), (Some(Written(160, 0)), Some(Written(160, 56))));
        assert_eq!(Written::parse("1 2"), None);
    }
}
