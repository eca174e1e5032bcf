//! The guest's disks.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use xtask::shell::output;

/// A disk of each kind, in the order of their names in the guest: vda, vdb.
pub(super) struct Disks([PathBuf; 2]);

/// The file system of each disk, the size of its sparse file in bytes, and the command that creates it.
type Kinds = [(&'static str, u64, &'static [&'static str]); 2];

/// The disks are small, since tests search them completely for a page.
pub(super) const SMALL: Kinds = [
    ("ext4", 96 << 20, &["mkfs.ext4", "-q", "-F", "-b", "4096", "-O", "verity"]),
    ("btrfs", 128 << 20, &["mkfs.btrfs", "-q", "-f"]),
];
/// The first disk has room for a little more than the inodes of two hundred thousand files.
pub(super) const LARGE: Kinds = [
    ("ext4", 2 << 30, &["mkfs.ext4", "-q", "-F", "-b", "4096", "-O", "verity", "-N", "250000"]),
    ("btrfs", 128 << 20, &["mkfs.btrfs", "-q", "-f"]),
];

impl Disks {
    /// Creates new and empty disks.
    pub(super) fn new(work: &Path, kinds: &Kinds) -> Result<Self> {
        let disks = kinds.map(|(name, ..)| work.join(name).with_extension("disk"));
        for ((_, len, make), disk) in kinds.iter().zip(&disks) {
            if disk.exists() {
                fs::remove_file(disk)?;
            }
            let file = File::create(disk).with_context(|| format!("cannot make {}", disk.display()))?;
            file.set_len(*len)?;
            output(Command::new(make[0]).args(&make[1..]).arg(disk).env("PATH", with_system_folders()))?;
        }
        Ok(Self(disks))
    }

    /// Returns QEMU's options. Flushed data is only in this machine's memory, which is enough: it survives the end of QEMU.
    pub(super) fn drives(&self) -> Vec<String> {
        self.0.iter().map(|disk| format!("file={},cache=unsafe", disk.display())).collect()
    }
}

/// Returns a PATH with the system folders, which a user's often lacks: the mkfs programs are in them.
fn with_system_folders() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}
