//! A folder with two versions of an image, bundles of them, and devices.

use std::fs::File;
use std::ops::Deref;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;

use sealift_desk::{Desk, add_partition, has, is_root, noise, out, remove_partition, said, set_mtime, skipped, text};

pub(crate) const MIB: usize = 1 << 20;
/// No multiple of a sector, and with the last piece shorter than the others.
pub(crate) const LEN: usize = 6 * MIB + 1234;

/// A desk with the images `1/root.img` and `2/root.img`, the signed bundles `1.sealift` and `2.sealift`, and `delta.sealift` from one to the other.
pub(crate) struct Slots(Desk);

impl Deref for Slots {
    type Target = Desk;

    fn deref(&self) -> &Desk {
        &self.0
    }
}

/// A loop device, detached on drop.
pub(crate) struct Loop(pub(crate) String);

impl Drop for Loop {
    fn drop(&mut self) {
        // Most have no partitions, and it may have been detached already.
        for number in 1..=2 {
            let _ = remove_partition(&self.0, number);
        }
        let _ = Command::new("losetup").args(["-d", &self.0]).output();
    }
}

/// Returns version 1 or 2 of the image: noise, a megabyte of zeros, and in version 2 a few other bytes.
pub(crate) fn image(version: u8) -> Vec<u8> {
    let mut image = noise(7, LEN);
    image[3 * MIB..4 * MIB].fill(0);
    if version > 1 {
        image[MIB / 2..MIB / 2 + 100].fill(version);
        image[2 * MIB..2 * MIB + 5000].fill(version);
        let end = LEN - 1;
        image[end] ^= version;
    }
    image
}

impl Slots {
    pub(crate) fn new() -> Self {
        let desk = Self(Desk::with_key());
        for version in [1, 2] {
            desk.write(&format!("{version}/root.img"), image(version));
            // A file that is read as a base is a tree whose directory has the file's time.
            for path in ["root.img", ""] {
                set_mtime(&desk.path(&format!("{version}/{path}")), 1_700_000_000, 0);
            }
            let pack =
                format!("pack {version} -o {version}.sealift --name os --bundle-version {version} --key release");
            desk.good(&pack);
        }
        desk.good(
            "pack 2 -o delta.sealift --name os --bundle-version 2 --key release --base 1.sealift --trust signers",
        );
        desk
    }

    /// Attaches an empty file of this length as a block device; `None` if that is impossible, and the test is reported as skipped.
    pub(crate) fn device(&self, file: &str, len: usize) -> Option<Loop> {
        self.write(file, "");
        File::options().write(true).open(self.path(file)).unwrap().set_len(len.try_into().unwrap()).unwrap();
        self.attach(file, &[])
    }

    /// Attaches a file with these options of losetup.
    pub(crate) fn attach(&self, file: &str, options: &[&str]) -> Option<Loop> {
        if !is_root() || !has(&["losetup"]) {
            if !is_root() {
                skipped("needs root: attaches loop devices");
            }
            return None;
        }
        let done = self.command_of("losetup").args(["-f", "--show"]).args(options).arg(file).output().unwrap();
        if !done.status.success() {
            skipped(&format!("needs loop devices: {}", said(&done).trim()));
            return None;
        }
        Some(Loop(text(&done.stdout).trim().to_owned()))
    }

    /// Runs a line with the device's trust. Returns its exit status and its output.
    pub(crate) fn ends(&self, line: &str) -> (Option<i32>, String) {
        self.run(&format!("{line} --trust signers"))
    }

    /// Runs a line that must succeed.
    #[track_caller]
    pub(crate) fn does(&self, line: &str) -> String {
        self.good(&format!("{line} --trust signers"))
    }

    /// Runs a line that must end with this status, and a message that contains `why`.
    #[track_caller]
    pub(crate) fn is_refused(&self, line: &str, status: i32, why: &str) -> String {
        self.refused(&format!("{line} --trust signers"), status, why)
    }

    /// Runs a line that must succeed, and returns its JSON.
    #[track_caller]
    pub(crate) fn tells(&self, line: &str) -> serde_json::Value {
        self.json(&format!("{line} --trust signers --json"))
    }
}

/// Returns the first bytes of a device or file.
pub(crate) fn start_of(path: impl AsRef<Path>, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    File::open(path).unwrap().read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// Checks that a device or file begins with a version of the image.
#[track_caller]
pub(crate) fn assert_has(path: impl AsRef<Path>, version: u8) {
    assert!(start_of(path, LEN) == image(version), "it is not version {version}");
}

/// Makes the disk `disk` with a GPT and two partitions of 8 MiB, labelled `root-a` and `root-b`, with UUIDs that begin with these eight digits, which no
/// other test has; returns it, and the devices of its partitions.
pub(crate) fn partitioned(slots: &Slots, uuid: &str) -> Option<(Loop, [String; 2])> {
    if !has(&["sfdisk"]) {
        return None;
    }
    slots.write("disk", "");
    File::options().write(true).open(slots.path("disk")).unwrap().set_len(24 << 20).unwrap();
    let table = format!(
        "label: gpt\nstart=2048, size=16384, name=root-a, uuid={uuid}-2222-3333-4444-555555555555\n\
         start=18432, size=16384, name=root-b, uuid={uuid}-BBBB-CCCC-DDDD-EEEEEEEEEEEE\n"
    );
    slots.write("table", table);
    out(slots.command_of("sh").args(["-c", "sfdisk -q disk < table"]));
    attached(slots)
}

/// Attaches the disk that [`partitioned`] made.
pub(crate) fn attached(slots: &Slots) -> Option<(Loop, [String; 2])> {
    let disk = slots.attach("disk", &[])?;
    for (number, start) in [(1, 2048), (2, 18432)] {
        let (status, said) = add_partition(&disk.0, number, start, 16384);
        if status != Some(0) {
            skipped(&format!("needs partitions of loop devices: {said}"));
            return None;
        }
    }
    let parts = [1, 2].map(|number| format!("{}p{number}", disk.0));
    Some((disk, parts))
}
