//! A folder with a bundle of many chunks, and its volumes.

use std::ops::Deref;

use sealift_desk::{Desk, noise};

/// A desk with the tree `tree` and the signed bundle `os.sealift`.
pub(crate) struct Volumes(Desk);

impl Deref for Volumes {
    type Target = Desk;

    fn deref(&self) -> &Desk {
        &self.0
    }
}

/// The options of every run that judges a bundle.
pub(crate) const POLICY: &str = "--trust signers --state state --progress none";

impl Volumes {
    pub(crate) fn new() -> Self {
        let desk = Self(Desk::with_key());
        for number in 0..40_u32 {
            desk.write(&format!("tree/data/{number:02}"), noise(number, 9000 + 700 * usize::try_from(number).unwrap()));
        }
        desk.write("tree/etc/os-release", "ID=example\n");
        desk.pack("tree", "os", 7);
        desk
    }

    /// Packs a tree into `NAME.sealift`, in chunks of at most 64 KiB.
    pub(crate) fn pack(&self, tree: &str, name: &str, version: u8) {
        self.good(&format!(
            "pack {tree} -o {name}.sealift --name {name} --bundle-version {version} --key release --chunk-size 64KiB --force"
        ));
    }

    pub(crate) fn does(&self, line: &str) -> String {
        self.good(&format!("{line} {POLICY}"))
    }

    /// Checks that two directories have the same volumes, and nothing else.
    #[track_caller]
    pub(crate) fn assert_equal(&self, one: &str, other: &str) {
        assert_eq!(self.names(one), self.names(other), "{one} and {other}");
        for name in self.names(one) {
            assert!(self.read(&format!("{one}/{name}")) == self.read(&format!("{other}/{name}")), "{name}");
        }
    }

    /// Returns the names of the volumes in a directory.
    pub(crate) fn volumes(&self, directory: &str) -> Vec<String> {
        self.names(directory).into_iter().filter(|name| name.ends_with(".sealift-volume")).collect()
    }
}
