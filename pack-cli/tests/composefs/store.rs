//! A tree that is packed, imported into the store `store`, and mounted at `mnt`.

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::process::Command;

use rustix::fs::{CWD, FileType, Mode, XattrFlags, makedev, mknodat, setxattr};
use sealift_desk::{Desk, Mounted, as_root, is_root, noise, out, program, skipped, text};

/// A desk whose operations are on the store `store`.
pub(crate) struct Store(Desk);

/// The output and exit status of a program.
pub(crate) struct Said {
    pub(crate) out: String,
    error: String,
    status: Option<i32>,
}

impl Said {
    #[track_caller]
    pub(crate) fn good(self) -> Self {
        assert_eq!(self.status, Some(0), "{}{}", self.out, self.error);
        self
    }

    #[track_caller]
    pub(crate) fn has(self, text: &str) -> Self {
        assert!(self.out.contains(text), "{text:?} is not in:\n{}", self.out);
        self
    }

    /// Checks that standard error contains this text.
    #[track_caller]
    pub(crate) fn said(self, text: &str) -> Self {
        assert!(self.error.contains(text), "{text:?} is not in:\n{}", self.error);
        self
    }

    /// Checks for exit status 1 and a report of what differs.
    #[track_caller]
    pub(crate) fn differs(self) -> Self {
        assert_eq!(self.status, Some(1), "{}{}", self.out, self.error);
        self
    }

    /// Returns whether it was refused with a message that contains these words.
    pub(crate) fn is_refused_with(&self, why: &str) -> bool {
        self.status.is_some_and(|status| status != 0) && self.error.contains(why)
    }

    #[track_caller]
    pub(crate) fn refused(self, status: i32, why: &str) {
        let Self { out, error, .. } = &self;
        assert_eq!(self.status, Some(status), "{out}{error}");
        // Messages are wrapped into lines.
        let words = error.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(why), "{why:?} is not in:\n{error}");
    }
}

impl Deref for Store {
    type Target = Desk;

    fn deref(&self) -> &Desk {
        &self.0
    }
}

impl Store {
    pub(crate) fn new() -> Self {
        Self(Desk::new())
    }

    /// A desk with a tree `os` and its bundle.
    pub(crate) fn packed() -> Self {
        let desk = Self::new();
        desk.nasty_tree("os");
        desk.pack("os", "os.sealift", 1, &["--composefs"]);
        desk
    }

    /// The same with a store that has the bundle.
    pub(crate) fn unpacked() -> Self {
        let desk = Self::packed();
        desk.unpack("os.sealift", &[]).good();
        desk
    }

    fn sealift_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.command_of(program());
        // Not the state that most runs are told to keep.
        command.args(arguments).env("SEALIFT_STATE", self.path("home/state"));
        command
    }

    pub(crate) fn sealift(&self, arguments: &[&str]) -> Said {
        let state = self.path("state");
        let takes_state = matches!(arguments, ["unpack" | "mount" | "audit", ..]);
        let mut command = self.sealift_command(arguments);
        if takes_state {
            command.arg("--state").arg(state);
        }
        Self::said(&mut command)
    }

    /// Runs sealift with only these arguments.
    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        Self::said(&mut self.sealift_command(arguments))
    }

    fn said(command: &mut Command) -> Said {
        let done = command.output().unwrap();
        Said { out: text(&done.stdout), error: text(&done.stderr), status: done.status.code() }
    }

    pub(crate) fn pack(&self, tree: &str, bundle: &str, version: u64, options: &[&str]) {
        let name = bundle.split(['.', '-']).next().unwrap();
        let version = version.to_string();
        let arguments = [
            "pack",
            "--force",
            tree,
            "-o",
            bundle,
            "--name",
            name,
            "--bundle-version",
            &version,
            "--xattrs",
            "trusted.*",
        ];
        self.sealift(&[&arguments[..], options].concat()).good();
    }

    pub(crate) fn unpack(&self, bundle: &str, options: &[&str]) -> Said {
        self.sealift(&[&["unpack", bundle, "composefs:store", "--allow-unsigned"], options].concat())
    }

    /// Audits the store, with these options.
    pub(crate) fn audit(&self, options: &[&str]) -> Said {
        self.sealift(&[&["audit", "composefs:store", "--allow-unsigned"], options].concat())
    }

    /// Returns the paths of the store's objects except the image, in ascending order of size.
    pub(crate) fn objects(&self) -> Vec<String> {
        let names = |folder: &str| if self.path(folder).exists() { self.names(folder) } else { Vec::new() };
        let images = names("store/images");
        let mut objects = Vec::new();
        for folder in names("store/objects") {
            for object in self.names(&format!("store/objects/{folder}")) {
                if !images.contains(&format!("{folder}{object}")) {
                    objects.push(format!("store/objects/{folder}/{object}"));
                }
            }
        }
        objects.sort_by_key(|object| (fs::metadata(self.path(object)).unwrap().len(), object.clone()));
        objects
    }

    /// Returns the lines that a shell command prints.
    pub(crate) fn shell_lines(&self, line: &str) -> Vec<String> {
        let printed = out(&mut self.shell(line));
        printed.lines().map(str::to_owned).collect()
    }

    /// Mounts a tree, calls `look`, and unmounts it.
    pub(crate) fn mounted(&self, name: &str, look: impl FnOnce(&Self)) {
        let Some(mountpoint) = as_root("mounts", || self.path("mnt")) else { return };
        fs::create_dir_all(&mountpoint).unwrap();
        self.sealift(&["mount", "composefs:store", name, "mnt", "--allow-unsigned"]).good().has("mnt: mounted ");
        let mounted = Mounted::at(mountpoint);
        look(self);
        drop(mounted);
    }

    /// Compares trees, and what rsync does not see: the kinds of the files in `dev`.
    #[track_caller]
    pub(crate) fn assert_same(&self, a: &str, b: &str) {
        self.0.assert_same(a, b);
        let kinds = |tree: &str| {
            let mut kinds: Vec<_> = fs::read_dir(self.path(tree).join("dev"))
                .unwrap()
                .map(|entry| {
                    let entry = entry.unwrap();
                    let kind = entry.file_type().unwrap();
                    (entry.file_name(), kind.is_fifo(), kind.is_char_device(), kind.is_socket())
                })
                .collect();
            kinds.sort();
            kinds
        };
        assert_eq!(kinds(a), kinds(b));
    }

    /// Creates a tree with everything that an image can hold.
    pub(crate) fn nasty_tree(&self, name: &str) {
        let at = |path: &str| self.path(name).join(path);
        for folder in ["bin", "etc", "dev", "a b/\u{fc}/c", "empty"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        let big = noise(1, 5_000_000);
        fs::write(at("bin/big"), &big).unwrap();
        fs::hard_link(at("bin/big"), at("bin/linked")).unwrap();
        for len in [0, 1, 63, 64, 65, 4095, 4096, 4097, 70_000] {
            fs::write(at("etc").join(format!("len-{len}")), &big[len..2 * len]).unwrap();
            fs::write(at("a b").join(format!("same-{len}")), &big[len..2 * len]).unwrap();
        }
        fs::write(at("etc/small"), "small\n").unwrap();
        let hole = fs::File::create(at("etc/hole")).unwrap();
        hole.set_len(3 << 20).unwrap();
        let sparse = fs::File::create(at("etc/sparse")).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&sparse, b"end", 6 << 20).unwrap();
        symlink("../x", at("bin/link")).unwrap();
        symlink("y".repeat(4000), at("bin/long-link")).unwrap();
        setxattr(at("etc/small"), "user.note", b"value", XattrFlags::empty()).unwrap();
        setxattr(at("etc"), "user.shared", b"value", XattrFlags::empty()).unwrap();
        self.set_mode(&format!("{name}/etc/small"), 0o640);
        let node = |path: &str, kind, device| {
            mknodat(CWD, at(path), kind, Mode::from_raw_mode(0o644), device).unwrap();
        };
        node("dev/fifo", FileType::Fifo, 0);
        node("dev/socket", FileType::Socket, 0);
        if is_root() {
            node("dev/null", FileType::CharacterDevice, makedev(1, 3));
            node("dev/loop", FileType::BlockDevice, makedev(7, 300));
            self.set_mode(&format!("{name}/bin/big"), 0o4755);
            std::os::unix::fs::lchown(at("etc/len-64"), Some(100_000), Some(5)).unwrap();
            setxattr(at("etc/len-64"), "trusted.overlay.opaque", b"y", XattrFlags::empty()).unwrap();
        } else {
            skipped("needs root: device nodes, files of other owners");
        }
        // Many names in one directory take blocks of their own in the image.
        for number in 0..300 {
            fs::write(at("a b/\u{fc}").join(format!("a-name-of-some-length-{number}")), number.to_string()).unwrap();
        }
    }
}
