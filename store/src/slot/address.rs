//! `[IMAGE=]DEVICE` and `[IMAGE=]image:FILE`, as users write them.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::address::TargetKind;
use crate::error::path_of;

/// A slot, and which file of the bundle it gets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct SlotAddress {
    /// The path of the image in the bundle's tree, which may be escaped as listings show it; `None` if the tree has only one regular file.
    pub image: Option<Vec<u8>>,
    /// The slot as the user named it, without the image: `/dev/mmcblk0p3` or `image:FILE`.
    pub target: PathBuf,
}

impl SlotAddress {
    /// Parses an argument; `None` if it names no slot.
    #[must_use]
    pub fn of(argument: &Path) -> Option<Self> {
        let is_slot = |target: &Path| TargetKind::of(target).0 == TargetKind::Slot;
        if is_slot(argument) {
            return Some(Self { image: None, target: argument.to_owned() });
        }
        let bytes = argument.as_os_str().as_bytes();
        let equals = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'=').map(|(at, _)| at);
        let mut parts = equals.map(|at| (&bytes[..at], path_of(&bytes[at + 1..])));
        let (image, target) = parts.find(|(_, target)| is_slot(target))?;
        Some(Self { image: Some(image.to_vec()), target: target.to_owned() })
    }

    /// Returns the path of the device or file.
    #[must_use]
    pub fn path(&self) -> &Path {
        TargetKind::of(&self.target).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments() {
        let slot = |image: Option<&str>, target: &str| {
            Some(SlotAddress { image: image.map(|image| image.as_bytes().to_vec()), target: target.into() })
        };
        for (argument, address) in [
            ("image:a", slot(None, "image:a")),
            ("root.img=image:a", slot(Some("root.img"), "image:a")),
            ("a=b=image:c=d", slot(Some("a=b"), "image:c=d")),
            ("/dev/no-such-device", slot(None, "/dev/no-such-device")),
            ("boot/a.img=/dev/no-such-device", slot(Some("boot/a.img"), "/dev/no-such-device")),
            ("/dev/null", slot(None, "/dev/null")),
            ("/dev/shm/target", None),
            ("/dev", None),
            ("a=b", None),
            ("directory", None),
            ("ostree:repo", None),
        ] {
            assert_eq!(SlotAddress::of(Path::new(argument)), address, "{argument}");
        }
    }
}
