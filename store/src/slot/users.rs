//! Who uses a block device or the file of an image: mounts, swap, other devices that lie on it, and partitions of it that are used.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::Dev;

use crate::error::path_of;
use crate::fs::block_device::{folder_of, mount_of};
use crate::fs::mount_list::parse_device;

/// Returns who uses a block device, worded as the end of a sentence; `None` if nobody is known to.
pub(super) fn user_of_device(device: Dev) -> Option<String> {
    let folder = folder_of(device);
    user_of(device).or_else(|| holder(&folder)).or_else(|| {
        // A disk is used if one of its partitions is.
        let partitions = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
        partitions.filter(|path| path.join("partition").exists()).find_map(|path| {
            let name = path.file_name()?.to_string_lossy().into_owned();
            let device = parse_device(std::fs::read_to_string(path.join("dev")).ok()?.trim())?;
            let used = user_of(device).or_else(|| holder(&path))?;
            Some(format!("its partition {name}: {used}"))
        })
    })
}

/// Returns who uses a regular file as a device.
pub(super) fn user_of_file(file: &Metadata) -> Option<String> {
    let devices = std::fs::read_dir("/sys/block").ok()?.flatten();
    devices.into_iter().find_map(|device| {
        let is_it = backing_file(&device.path()) == Some((file.dev(), file.ino()));
        is_it.then(|| format!("it is attached to /dev/{}", device.file_name().to_string_lossy()))
    })
}

/// Returns the numbers of the file that a loop device shows; `None` for any other device, or if the file has lost its name.
pub(super) fn backing_file(folder: &Path) -> Option<(Dev, u64)> {
    let mut path = std::fs::read(folder.join("loop/backing_file")).ok()?;
    path.pop_if(|byte| *byte == b'\n');
    let file = path_of(&path).metadata().ok()?;
    Some((file.dev(), file.ino()))
}

/// Returns the device that a partition is a part of.
pub(super) fn disk_of(device: Dev) -> Option<Dev> {
    let folder = folder_of(device).canonicalize().ok().filter(|folder| folder.join("partition").exists())?;
    parse_device(std::fs::read_to_string(folder.parent()?.join("dev")).ok()?.trim())
}

/// Returns what tells a device without a partition UUID from others that get its name: a name of the device mapper or of the hardware, or the file
/// behind a loop device.
pub(super) fn hardware_of(device: Dev) -> Option<String> {
    let folder = folder_of(device);
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).ok().filter(|text| !text.trim().is_empty());
    let named = ["dm/uuid", "wwid", "device/wwid", "serial", "device/serial"].into_iter().find_map(read);
    let text = named.or_else(|| backing_file(&folder).map(|(system, inode)| format!("loop-{system}-{inode}")))?;
    Some(text.trim().chars().map(|character| if character.is_ascii_graphic() { character } else { '-' }).collect())
}

/// Returns whether the kernel lets nobody write to a block device.
pub(super) fn is_read_only(device: Dev) -> bool {
    std::fs::read_to_string(folder_of(device).join("ro")).is_ok_and(|text| text.trim() == "1")
}

fn user_of(device: Dev) -> Option<String> {
    if let Some(place) = mount_of(device) {
        return Some(format!("it is mounted at {}", place.display()));
    }
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    let mut paths = swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    let is_it = |path: &str| Path::new(path).metadata().is_ok_and(|metadata| metadata.rdev() == device);
    paths.any(is_it).then(|| "it is swap space".to_owned())
}

/// Returns which device lies on it, such as one of device mapper.
fn holder(folder: &Path) -> Option<String> {
    let held = std::fs::read_dir(folder.join("holders")).ok()?.flatten().next()?;
    let name = std::fs::read_to_string(held.path().join("dm/name")).map(|name| name.trim().to_owned());
    let node = held.file_name().to_string_lossy().into_owned();
    Some(match name {
        Ok(name) => format!("the device {name} ({node}) lies on it"),
        Err(_) => format!("the device {node} lies on it"),
    })
}
