//! The archive of files with which a kernel starts: cpio in the form "newc", uncompressed, since decompressing takes an emulated machine longer than
//! reading.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

/// An archive that is being written.
#[derive(Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    inodes: u32,
    directories: BTreeSet<String>,
}

impl Archive {
    /// Adds a file of this machine.
    pub(super) fn copy(&mut self, from: &Path, to: &str) -> Result<()> {
        let content = std::fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
        self.add(to, 0o100_755, (0, 0), &content)
    }

    /// Adds a file.
    pub(super) fn file(&mut self, path: &str, content: &[u8]) -> Result<()> {
        self.add(path, 0o100_644, (0, 0), content)
    }

    /// Adds a device for characters.
    pub(super) fn device(&mut self, path: &str, number: (u32, u32)) -> Result<()> {
        self.add(path, 0o020_600, number, &[])
    }

    /// Returns its bytes.
    pub(super) fn finish(mut self) -> Result<Vec<u8>> {
        self.header("TRAILER!!!", 0, (0, 0), 0)?;
        Ok(self.bytes)
    }

    /// Adds an entry, and the directories above it.
    fn add(&mut self, path: &str, mode: u32, device: (u32, u32), content: &[u8]) -> Result<()> {
        for (slash, _) in path.match_indices('/') {
            if self.directories.insert(path[..slash].to_owned()) {
                self.header(&path[..slash], 0o040_755, (0, 0), 0)?;
            }
        }
        self.header(path, mode, device, content.len())?;
        self.bytes.extend(content);
        self.pad();
        Ok(())
    }

    fn header(&mut self, path: &str, mode: u32, device: (u32, u32), len: usize) -> Result<()> {
        self.inodes += 1;
        let len = u32::try_from(len).context("a file for the guest is too long")?;
        let name_len = u32::try_from(path.len() + 1)?;
        // Inode, mode, owner, group, links, time, length, device of the file system, own device, length of the name, checksum.
        let fields = [self.inodes, mode, 0, 0, 1, 0, len, 0, 0, device.0, device.1, name_len, 0];
        self.bytes.extend(b"070701");
        fields.iter().for_each(|field| self.bytes.extend(format!("{field:08x}").bytes()));
        self.bytes.extend(path.bytes());
        self.bytes.push(0);
        self.pad();
        Ok(())
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}
