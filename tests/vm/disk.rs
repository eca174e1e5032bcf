//! A disk of the machine with its file system, and operations for the test cases.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use sealift_desk::noise;

use crate::machine::wait_for;

/// A mounted disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disk {
    kind: &'static str,
    device: &'static str,
    root: &'static str,
    options: &'static CStr,
}

/// With the `verity` feature.
pub(crate) const EXT4: Disk = Disk { kind: "ext4", device: "/dev/vda", root: "/ext4", options: c"" };
/// Without its own checksums, which would detect a flipped bit first.
pub(crate) const BTRFS: Disk = Disk { kind: "btrfs", device: "/dev/vdb", root: "/btrfs", options: c"nodatasum" };

/// The size of a page, and of a block on both file systems.
pub(crate) const PAGE: usize = 4096;

impl Disk {
    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    pub(crate) fn root(&self) -> &'static Path {
        Path::new(self.root)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    pub(crate) fn mount(&self) {
        wait_for(Path::new(self.device));
        fs::create_dir_all(self.root).expect("a directory");
        let mounted = mount(self.device, self.root, self.kind, MountFlags::empty(), self.options);
        mounted.unwrap_or_else(|error| panic!("{} does not mount: {error}", self.device));
    }

    /// Syncs the disk, passes it to `change` while unmounted, and starts over with empty caches.
    pub(crate) fn change_disk(&self, change: impl FnOnce(&File)) {
        unmount(self.root, UnmountFlags::empty()).unwrap_or_else(|error| panic!("{} is busy: {error}", self.root));
        let disk = File::options().read(true).write(true).open(self.device).expect("the disk");
        change(&disk);
        disk.sync_all().expect("the disk takes it");
        drop(disk);
        self.mount();
    }

    /// Drops the caches, so that data is read from the disk again.
    pub(crate) fn drop_caches(&self) {
        rustix::fs::sync();
        fs::write("/proc/sys/vm/drop_caches", "3").expect("the caches go");
    }

    /// Writes a file of noise. Its blocks differ from each other and from those of other seeds.
    pub(crate) fn write_noise(&self, name: &str, seed: u64, len: usize) -> Vec<u8> {
        let content = noise(seed, len);
        fs::write(self.path(name), &content).expect("a file");
        content
    }

    /// Flips a bit in the disk block that holds this page. The content must be unique on the disk: removed files
    /// leave their blocks behind.
    pub(crate) fn flip(&self, page: &[u8]) {
        self.change_disk(|disk| {
            let at = find(disk, page).expect("the page lies somewhere on the disk");
            let mut byte = [0];
            disk.read_exact_at(&mut byte, at + 100).expect("it can be read");
            disk.write_all_at(&[byte[0] ^ 1], at + 100).expect("it can be written");
        });
    }

    /// Runs `sealift` in the root of the file system.
    pub(crate) fn sealift(&self, line: &str) -> Output {
        let done = command(line).current_dir(self.root).output();
        done.unwrap_or_else(|error| panic!("sealift does not start: {error}"))
    }

    /// Runs `sealift`, which must succeed, and returns its output.
    pub(crate) fn good(&self, line: &str) -> String {
        let done = self.sealift(line);
        assert!(done.status.success(), "sealift {line}: {}{}", text(&done.stderr), text(&done.stdout));
        text(&done.stdout)
    }

    /// Runs `sealift`, which must exit with this status and a message that contains `why`.
    pub(crate) fn bad(&self, line: &str, status: i32, why: &str) -> String {
        let done = self.sealift(line);
        let (out, message) = (text(&done.stdout), text(&done.stderr));
        assert_eq!(done.status.code(), Some(status), "sealift {line}: {message}{out}");
        assert!(message.contains(why) || out.contains(why), "sealift {line}: {message}{out}");
        out
    }
}

/// Returns a `sealift` command with these arguments.
pub(crate) fn command(line: &str) -> Command {
    let mut command = Command::new("/sealift");
    command.args(line.split(' ').filter(|word| !word.is_empty()));
    command.env("HOME", "/tmp").env("SOURCE_DATE_EPOCH", "1700000000");
    command.stdin(Stdio::null());
    command
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the offset of a page on a disk.
fn find(disk: &File, page: &[u8]) -> Option<u64> {
    let mut buffer = vec![0; 1 << 20];
    let mut at = 0;
    loop {
        let len = read_at(disk, &mut buffer, at).expect("the disk can be read");
        if len == 0 {
            return None;
        }
        let found = buffer[..len].chunks(PAGE).position(|block| block.get(..page.len()) == Some(page));
        if let Some(number) = found {
            return Some(at + u64::try_from(number * PAGE).expect("it is small"));
        }
        at += u64::try_from(len).expect("it is small");
    }
}

/// Fills the buffer, except at the end of the disk.
fn read_at(disk: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match disk.read_at(&mut buffer[filled..], at + u64::try_from(filled).expect("it is small"))? {
            0 => break,
            len => filled += len,
        }
    }
    Ok(filled)
}
