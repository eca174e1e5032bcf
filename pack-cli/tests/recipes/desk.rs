//! A folder with two versions of a tree, images of them, and bundles of these.

use std::ops::Deref;
use std::process::Command;

use sealift_desk::{Desk, has, noise, out, skipped};

/// A desk with the trees `tree-1` and `tree-2`, the images `1/os.squashfs` and `2/os.squashfs` of them, the signed bundles `1.sealift` and
/// `2.sealift`, and `delta.sealift` from one to the other.
pub(crate) struct Images(Desk);

impl Deref for Images {
    type Target = Desk;

    fn deref(&self) -> &Desk {
        &self.0
    }
}

/// The options of every run that unpacks.
pub(crate) const POLICY: &str = "--trust signers --state state --progress none";

impl Images {
    /// `None` without mksquashfs, which is then reported.
    pub(crate) fn new() -> Option<Self> {
        if !has(&["mksquashfs"]) {
            skipped("needs mksquashfs: makes images");
            return None;
        }
        let desk = Self(Desk::with_key());
        for version in 1..=2 {
            desk.plant(&format!("tree-{version}"), version);
            std::fs::create_dir(desk.path(&version.to_string())).unwrap();
            desk.squash(&format!("tree-{version}"), &format!("{version}/os.squashfs"), "gzip");
            let pack = format!(
                "pack {version} -o {version}.sealift --name os --bundle-version {version} --key release --recipes"
            );
            desk.good(&pack);
        }
        desk.good(
            "pack 2 -o delta.sealift --name os --bundle-version 2 --key release --recipes --base 1.sealift --trust signers",
        );
        Some(desk)
    }

    /// Writes a tree of small and large files. The second version differs in a few.
    fn plant(&self, tree: &str, version: u8) {
        for number in 0..200_u32 {
            let changed = if version > 1 && number % 40 == 3 { "changed " } else { "" };
            let lines =
                (0..number * 3).map(|line| format!("{changed}line {line} of file {number}, {}\n", line * 7919 % 101));
            self.write(&format!("{tree}/etc/file-{number}"), lines.collect::<String>());
        }
        let mut large = (0..60_000_u32).flat_map(|n| (n / 5 * 3).to_le_bytes()).collect::<Vec<u8>>();
        if version > 1 {
            large[100_000..100_004].fill(9);
        }
        self.write(&format!("{tree}/usr/lib/large.so"), &large);
        self.write(&format!("{tree}/usr/share/noise"), noise(5, 300_000));
        // Each block of an image is compressed alone: a bundle is smaller with the file.
        let digits: String = noise(6, 80_000).iter().map(|byte| format!("{byte:02x}")).collect();
        self.write(&format!("{tree}/usr/share/again"), digits.repeat(4));
        self.write(&format!("{tree}/usr/share/zeros"), vec![0; 400_000]);
        self.write(&format!("{tree}/empty"), "");
        std::os::unix::fs::symlink("../etc/file-3", self.path(&format!("{tree}/usr/link"))).unwrap();
    }

    /// Makes an image of a tree.
    pub(crate) fn squash(&self, tree: &str, image: &str, compressor: &str) {
        let mut command = Command::new("mksquashfs");
        command.arg(self.path(tree)).arg(self.path(image)).args([
            "-comp",
            compressor,
            "-quiet",
            "-no-progress",
            "-noappend",
        ]);
        out(command.args(["-all-time", "1700000000", "-mkfs-time", "1700000000", "-all-root"]));
    }

    pub(crate) fn has_image(&self, place: &str, version: u8) {
        let wanted = self.read(&format!("{version}/os.squashfs"));
        let found = self.read(place);
        assert!(found[..wanted.len().min(found.len())] == wanted, "{place} is not image {version}");
    }

    pub(crate) fn does(&self, line: &str) -> String {
        self.good(&format!("{line} {POLICY}"))
    }

    pub(crate) fn len(&self, name: &str) -> u64 {
        std::fs::metadata(self.path(name)).unwrap().len()
    }
}
