//! Bundles and targets, and the operations on them.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::ops::Deref;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use sealift::trust::{Guard, TrustOptions, TrustPaths, Trusted};
use sealift::unpack::{UnpackStats, unpack};
use sealift::{Durability, InstallOptions, TreeOptions};
use sealift::{Error, Index, Input, Limits, Progress};
use sealift_desk::{Desk, NOBODY, is_root, noise};
use sealift_format::Row;
use sealift_store::Record;

/// A desk with the tree `tree`, its bundles, and what they are unpacked to.
pub(crate) struct Installed(Desk);

impl Deref for Installed {
    type Target = Desk;

    fn deref(&self) -> &Desk {
        &self.0
    }
}

impl Installed {
    /// Creates a desk with the tree `tree`, which belongs to the user.
    pub(crate) fn new() -> Self {
        let desk = Desk::new();
        desk.set_mode("", 0o755);
        desk.write("tree/lib/lib.so", noise(1, 40_000));
        desk.write("tree/etc/motd", "hello\n");
        desk.write("tree/etc/issue", "first\n");
        Self(desk)
    }

    /// Packs `tree` as `VERSION.sealift`.
    pub(crate) fn pack(&self, version: u64) {
        self.good(&format!("pack tree -o {version}.sealift --force --name os --bundle-version {version}"));
    }

    /// Unpacks a bundle to `to`.
    pub(crate) fn unpack(&self, version: u64, to: &str) {
        self.take(version, to, &InstallOptions::default(), &Progress::default()).unwrap();
    }

    /// Packs `tree` as `VERSION.sealift`, and unpacks it to `to`.
    pub(crate) fn install(&self, version: u64, to: &str) {
        self.pack(version);
        self.unpack(version, to);
    }

    /// `--update`
    pub(crate) fn update(&self, version: u64, to: &str) -> Result<UnpackStats, Error> {
        let tree = TreeOptions { update: true, ..TreeOptions::default() };
        self.take(version, to, &InstallOptions { tree, ..InstallOptions::default() }, &Progress::default())
    }

    /// `--update --delete`
    pub(crate) fn replace(&self, version: u64, to: &str) -> Result<UnpackStats, Error> {
        let tree = TreeOptions { update: true, delete: true, ..TreeOptions::default() };
        let options = InstallOptions { tree, ..InstallOptions::default() };
        self.take(version, to, &options, &Progress::default())
    }

    /// `--update --delete --dry-run`
    pub(crate) fn dry_replace(&self, version: u64, to: &str) -> Result<UnpackStats, Error> {
        let tree = TreeOptions { update: true, delete: true, ..TreeOptions::default() };
        let options = InstallOptions { dry_run: true, tree, ..InstallOptions::default() };
        self.take(version, to, &options, &Progress::default())
    }

    pub(crate) fn take(
        &self,
        version: u64,
        to: &str,
        options: &InstallOptions,
        progress: &Progress,
    ) -> Result<UnpackStats, Error> {
        let input = Input::open(&self.path(&format!("{version}.sealift")))?;
        let tree = TreeOptions { durability: Durability::None, ..options.tree.clone() };
        let options = InstallOptions { jobs: 2, tree, ..options.clone() };
        unpack(anyones(input)?, &self.path(to), &options, progress)
    }

    /// Returns the bundle of a version as a pipe. `spring` runs when at most `left` bytes are still to be read.
    pub(crate) fn trapped(&self, version: u64, left: usize, spring: impl FnOnce() + Send + 'static) -> Input {
        let bytes = std::io::Cursor::new(self.read(&format!("{version}.sealift")));
        Input::pipe("pipe", Box::new(Trap { bytes, at_left: left, spring: Some(spring) }))
    }

    /// Returns the length of a version's bundle without its head.
    pub(crate) fn len_behind_head(&self, version: u64) -> usize {
        let head =
            Input::open(&self.path(&format!("{version}.sealift"))).unwrap().read_head(Limits::default()).unwrap();
        usize::try_from(head.file_len() - head.head_len()).unwrap()
    }

    /// Runs the command line as a user who is not root, on a target in `home`.
    pub(crate) fn run_as_user(&self, line: &str) -> Output {
        let mut command = self.command_as_user(line);
        command.env("SEALIFT_STATE", self.path("home/state")).output().unwrap()
    }

    /// Creates `home`, and gives it to the user.
    pub(crate) fn make_home(&self) {
        fs::create_dir(self.path("home")).unwrap();
        if is_root() {
            chown(self.path("home"), Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }

    /// Leaves beside `target` what an update leaves that is killed after it wrote its mark, before anything was moved: the files in which `whole`
    /// differs are in the stage.
    pub(crate) fn leave_update(&self, target: &str, whole: &str) {
        let (folder, name) = target.rsplit_once('/').map_or(("", target), |(folder, name)| (folder, name));
        let stage = self.path(folder).join(format!(".{name}.sealift-partial"));
        fs::create_dir_all(stage.join("files")).unwrap();
        fs::set_permissions(&stage, fs::Permissions::from_mode(0o700)).unwrap();
        let (whole_folder, whole_name) = whole.rsplit_once('/').unwrap_or(("", whole));
        let kept = self.path(whole_folder).join(format!(".{whole_name}.sealift-state"));
        fs::create_dir(stage.join("state")).unwrap();
        for part in ["head", "index"] {
            fs::copy(kept.join(part), stage.join("state").join(part)).unwrap();
        }
        let inode = fs::metadata(self.path(target)).unwrap().ino();
        let record = Record { inode, ..Record::parse(&fs::read(kept.join(Record::FILE)).unwrap()).unwrap() };
        fs::write(stage.join("state").join(Record::FILE), record.encode()).unwrap();
        let index = Index::parse(fs::read(kept.join("index")).unwrap(), u32::MAX.into()).unwrap();
        for (directory, row) in Row::all(index.directories()) {
            for number in row.entries() {
                let path = index.path(directory, number);
                let path = String::from_utf8(path).unwrap();
                let new = self.path(whole).join(&path);
                if new.is_file()
                    && fs::read(&new).unwrap() != fs::read(self.path(target).join(&path)).unwrap_or_default()
                {
                    let staged = stage.join("files").join(number.to_string());
                    let done = Command::new("cp").arg("-p").arg(&new).arg(&staged).status().unwrap();
                    assert!(done.success(), "{path}");
                }
            }
        }
        fs::write(stage.join("journal"), format!("delete {inode}\n")).unwrap();
        if is_root() && fs::metadata(self.path(target)).unwrap().uid() == NOBODY {
            let done = Command::new("chown").args(["-R", "65534:65534"]).arg(&stage).status().unwrap();
            assert!(done.success());
        }
    }

    pub(crate) fn assert_same(&self, target: &str, tree: &str) {
        assert_eq!(listing(&self.path(target)), listing(&self.path(tree)));
    }
}

/// Each path below a directory with its content, its mode and its time.
type Listing = BTreeMap<PathBuf, (Vec<u8>, u32, i64)>;

fn listing(dir: &Path) -> Listing {
    let mut listing = Listing::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(below) = pending.pop() {
        for entry in fs::read_dir(dir.join(&below)).unwrap() {
            let entry = entry.unwrap();
            let (path, metadata) = (below.join(entry.file_name()), entry.metadata().unwrap());
            let content = match () {
                () if metadata.is_dir() => {
                    pending.push(path.clone());
                    b"a directory".to_vec()
                }
                () if metadata.is_file() => fs::read(entry.path()).unwrap(),
                () => b"another file".to_vec(),
            };
            listing.insert(path, (content, metadata.mode(), metadata.mtime()));
        }
    }
    listing
}

/// A pipe during which something happens: when at most so many bytes are left.
struct Trap<F> {
    bytes: std::io::Cursor<Vec<u8>>,
    at_left: usize,
    spring: Option<F>,
}

impl<F: FnOnce() + Send> Read for Trap<F> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = self.bytes.get_ref().len() - usize::try_from(self.bytes.position()).unwrap();
        let before = left.saturating_sub(self.at_left);
        if before == 0 {
            self.spring.take().into_iter().for_each(|spring| spring());
        }
        let len = buffer.len().min(if before == 0 { left } else { before });
        self.bytes.read(&mut buffer[..len])
    }
}

/// Admits a bundle without requiring a signature.
pub(crate) fn anyones(input: Input) -> Result<Trusted, Error> {
    anyone().admit(input, Limits::default())
}

/// Returns a guard that accepts unsigned bundles and remembers nothing, for any user.
pub(crate) fn anyone() -> Guard {
    let nowhere = PathBuf::from("/nonexistent");
    let places = TrustPaths { user_config: None, system_config: nowhere.clone(), state: Some(nowhere) };
    Guard::load_from(&TrustOptions { allow_unsigned: true, ..TrustOptions::default() }, places).unwrap()
}
