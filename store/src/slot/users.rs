//! Who uses a block device or the file of an image: mounts, swap, other devices that lie on it, and partitions of it that are used.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{Dev, major, minor};

/// Returns who uses a block device, worded as the end of a sentence; `None` if nobody is known to.
pub(super) fn user_of_device(device: Dev) -> Option<String> {
    let folder = format!("/sys/dev/block/{}:{}", major(device), minor(device));
    let folder = Path::new(&folder);
    user_of(&numbers(device), device).or_else(|| holder(folder)).or_else(|| {
        // A disk is used if one of its partitions is.
        let partitions = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
        partitions.filter(|path| path.join("partition").exists()).find_map(|path| {
            let name = path.file_name()?.to_string_lossy().into_owned();
            let text = std::fs::read_to_string(path.join("dev")).ok()?;
            let numbers = text.trim();
            let (major, minor) = numbers.split_once(':')?;
            let device = rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?);
            let used = user_of(numbers, device).or_else(|| holder(&path))?;
            Some(format!("its partition {name}: {used}"))
        })
    })
}

/// Returns who uses a regular file as a device.
pub(super) fn user_of_file(path: &Path) -> Option<String> {
    let devices = std::fs::read_dir("/sys/block").ok()?.flatten();
    devices.into_iter().find_map(|device| {
        let backing = std::fs::read_to_string(device.path().join("loop/backing_file")).ok()?;
        (Path::new(backing.trim_end_matches('\n')) == path)
            .then(|| format!("it is attached to /dev/{}", device.file_name().to_string_lossy()))
    })
}

/// Returns whether the kernel lets nobody write to a block device.
pub(super) fn is_read_only(device: Dev) -> bool {
    let file = format!("/sys/dev/block/{}/ro", numbers(device));
    std::fs::read_to_string(file).is_ok_and(|text| text.trim() == "1")
}

fn numbers(device: Dev) -> String {
    format!("{}:{}", major(device), minor(device))
}

fn user_of(numbers: &str, device: Dev) -> Option<String> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    if let Some(at) = mount_of(&mounts, numbers) {
        return Some(format!("it is mounted at {at}"));
    }
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    let paths = swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    let is_it = |path: &str| Path::new(path).metadata().is_ok_and(|metadata| metadata.rdev() == device);
    paths.into_iter().any(is_it).then(|| "it is swap space".to_owned())
}

/// Returns where a device is mounted, according to mountinfo (proc_pid_mountinfo(5)).
fn mount_of<'a>(mounts: &'a str, numbers: &str) -> Option<&'a str> {
    let words = mounts.lines().map(|line| line.split(' '));
    words.filter_map(|mut words| Some((words.nth(2)?, words.nth(1)?))).find(|(of, _)| *of == numbers).map(|(_, at)| at)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_found_by_the_numbers_of_its_device() {
        let mounts =
            "22 1 8:2 / / rw - ext4 /dev/sda2 rw\n30 22 7:3 / /mnt/with\\040space ro - squashfs /dev/loop3 ro\n";
        assert_eq!(mount_of(mounts, "7:3"), Some("/mnt/with\\040space"));
        assert_eq!((mount_of(mounts, "8:2"), mount_of(mounts, "7:33")), (Some("/"), None));
        assert_eq!(mount_of("garbage\n\n", "8:2"), None);
    }
}
