//! Trees, repositories and bundles.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::ops::Deref;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{XattrFlags, lsetxattr};
use sealift_desk::{Desk, noise, text};

pub(crate) const MODES: [&str; 4] = ["bare", "bare-user", "bare-user-only", "archive"];

/// A desk whose operations are on repositories.
pub(crate) struct Repos(Desk);

impl Deref for Repos {
    type Target = Desk;

    fn deref(&self) -> &Desk {
        &self.0
    }
}

impl Repos {
    pub(crate) fn new() -> Self {
        Self(Desk::new())
    }

    /// In memory where possible.
    pub(crate) fn in_memory() -> Self {
        Self(Desk::in_memory())
    }

    /// Creates a repository that does not sync, and does not keep space free on a disk that is nearly full.
    pub(crate) fn init(&self, repo: &str, mode: &str) {
        self.ostree(repo, &["init", &format!("--mode={mode}")]);
        self.ostree(repo, &["config", "set", "core.fsync", "false"]);
        self.ostree(repo, &["config", "set", "core.min-free-space-percent", "0"]);
    }

    /// Commits a tree, and returns the commit's checksum.
    pub(crate) fn commit(&self, repo: &str, reference: &str, tree: &str, more: &[&str]) -> String {
        let branch = format!("--branch={reference}");
        let mut args = vec!["commit", &branch, "--subject=subject", "--timestamp=@1700000000"];
        args.extend(more);
        args.push(tree);
        self.ostree(repo, &args).trim().to_owned()
    }

    /// Runs `ostree` on a repository, which must succeed.
    pub(crate) fn ostree(&self, repo: &str, args: &[&str]) -> String {
        self.try_ostree(repo, args).unwrap_or_else(|error| panic!("ostree {args:?} of {repo}: {error}"))
    }

    /// Runs `ostree` on a repository, and returns its output; `Err` is the error message.
    pub(crate) fn try_ostree(&self, repo: &str, args: &[&str]) -> Result<String, String> {
        let mut command = self.command_of("ostree");
        command.arg(args[0]).arg(format!("--repo={repo}")).args(&args[1..]);
        let output = command.output().expect("ostree is installed: apt install ostree");
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// Checks that the repository is sound.
    pub(crate) fn fsck(&self, repo: &str) {
        self.ostree(repo, &["fsck", "--quiet"]);
    }

    /// Lists a commit's whole tree, with checksums and extended attributes.
    pub(crate) fn listed(&self, repo: &str, commit: &str) -> String {
        self.ostree(repo, &["ls", "-R", "-C", "-X", commit])
    }

    /// Runs sealift, which must succeed, and returns its output.
    #[track_caller]
    pub(crate) fn run(&self, line: &str) -> String {
        self.out(line)
    }

    /// Runs sealift, which must refuse, and returns its message.
    pub(crate) fn refused(&self, line: &str) -> String {
        let output = self.command(line).output().expect("sealift runs");
        let said = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(1..=4)), "{line}: {:?} {said}", output.status);
        // These refusals have their own exit statuses: by the remote's policy, because a base is missing, and because the remote does not exist.
        for (words, status) in [("refused commit", 3), ("use the full bundle", 4), ("it has no remote", 2)] {
            assert!(
                !said.contains(words) || output.status.code() == Some(status),
                "{line}: {:?} {said}",
                output.status
            );
        }
        said
    }

    /// Unpacks an unsigned bundle into a repository, and returns the line of `--json`.
    pub(crate) fn import(&self, bundle: &str, target: &str) -> serde_json::Value {
        self.import_with(bundle, target, "")
    }

    /// Creates a repository, and unpacks an unsigned bundle into it.
    pub(crate) fn init_with(&self, repo: &str, mode: &str, bundle: &str) {
        self.init(repo, mode);
        self.import(bundle, repo);
    }

    /// The same as [`Self::import`], with an option.
    pub(crate) fn import_with(&self, bundle: &str, target: &str, option: &str) -> serde_json::Value {
        self.json(&format!("unpack {bundle} ostree:{target} --allow-unsigned --json {option}"))
    }

    /// Returns the names and inodes of everything in a repository except its lock, with the change times of files.
    pub(crate) fn snapshot(&self, repo: &str) -> Snapshot {
        let mut found = Snapshot::new();
        let mut pending = vec![self.path(repo)];
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(&directory).expect("it can be listed") {
                let path = entry.expect("an entry").path();
                let stat = fs::symlink_metadata(&path).expect("it is there");
                let time = (stat.mtime(), stat.mtime_nsec(), stat.ctime(), stat.ctime_nsec());
                let time = if stat.is_dir() { (0, 0, 0, 0) } else { time };
                if stat.is_dir() {
                    pending.push(path.clone());
                }
                if !path.ends_with(".lock") {
                    found.insert(path, (stat.ino(), time));
                }
            }
        }
        found
    }

    /// Returns the names of everything in a repository except its lock.
    pub(crate) fn files(&self, repo: &str) -> BTreeSet<PathBuf> {
        let root = self.path(repo);
        let paths = self.snapshot(repo).into_keys();
        paths.map(|path| path.strip_prefix(&root).expect("it is inside").to_owned()).collect()
    }

    /// Checks that nothing in the repository changed since a snapshot.
    pub(crate) fn is_as(&self, before: &Snapshot, repo: &str, what: &str) {
        let after = self.snapshot(repo);
        let all: BTreeSet<_> = before.keys().chain(after.keys()).collect();
        let different: Vec<_> = all.into_iter().filter(|path| before.get(*path) != after.get(*path)).collect();
        assert!(different.is_empty(), "{what}: {repo} changed at {different:?}");
    }

    /// Returns the largest regular file of a repository whose name has this ending.
    pub(crate) fn largest(&self, repo: &str, end: &str) -> PathBuf {
        let found = self.snapshot(repo).into_keys().filter(|path| path.to_string_lossy().ends_with(end));
        let size = |path: &PathBuf| fs::symlink_metadata(path).expect("it is there").len();
        found.filter(|path| path.is_file() && !path.is_symlink()).max_by_key(size).expect("there is one")
    }
}

pub(crate) type Snapshot = BTreeMap<PathBuf, (u64, (i64, i64, i64, i64))>;

/// Copies a file or directory with all of its attributes.
pub(crate) fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp runs").success());
}

pub(crate) fn write(path: &Path, mode: u32, bytes: &[u8]) {
    fs::write(path, bytes).expect("there is room");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
}

/// Creates a tree that every mode can hold, if root creates it.
pub(crate) fn plain_tree(root: &Path) {
    for directory in ["", "empty", "usr", "usr/bin", "usr/share"] {
        fs::create_dir_all(root.join(directory)).expect("a folder");
    }
    let write = |name: &str, mode, bytes: &[u8]| write(&root.join(name), mode, bytes);
    write("none", 0o644, b"");
    write("usr/none", 0o644, b"");
    write("usr/bin/run", 0o755, b"#!/bin/sh\n");
    write("usr/share/equal", 0o644, b"equal\n");
    write("usr/share/again", 0o644, b"equal\n");
    write("usr/share/equal-but-private", 0o600, b"equal\n");
    write("usr/share/n\u{e4}me", 0o644, b"utf-8");
    write("usr/share/noise", 0o644, &noise(1, 300_000));
    let large = File::create_new(root.join("usr/share/large")).expect("a new file");
    large.write_all_at(&noise(2, 2_500_000), 0).expect("there is room");
    large.write_all_at(&noise(3, 1_000_001), 6 << 20).expect("there is room");
    fs::copy(root.join("usr/share/large"), root.join("usr/share/as-large")).expect("there is room");
    File::create_new(root.join("usr/share/void")).expect("a new file").set_len(5 << 20).expect("it may have holes");
    symlink("usr/share/equal", root.join("link")).expect("a link");
    symlink("../nowhere", root.join("usr/dangling")).expect("a link");
}

/// Adds what bare-user-only cannot hold; for `bare`, root must create it.
pub(crate) fn full_tree(root: &Path) {
    plain_tree(root);
    let xattr = |name: &str, xattr: &str, value: &[u8]| {
        lsetxattr(root.join(name), xattr, value, XattrFlags::empty()).expect("it can be set");
    };
    write(&root.join("usr/bin/su"), 0o4755, b"su");
    write(&root.join("usr/bin/wall"), 0o2755, b"wall");
    chown(root.join("usr/bin/wall"), Some(0), Some(5)).expect("root may");
    fs::set_permissions(root.join("usr/bin/wall"), fs::Permissions::from_mode(0o2755)).expect("root may");
    write(&root.join("open"), 0o666, b"open");
    write(&root.join("group"), 0o664, b"group");
    write(&root.join("closed"), 0, b"closed");
    write(&root.join("mine"), 0o640, b"mine");
    chown(root.join("mine"), Some(1000), Some(1001)).expect("root may");
    lchown(root.join("usr/dangling"), Some(1000), Some(1000)).expect("root may");
    fs::set_permissions(root.join("usr"), fs::Permissions::from_mode(0o1777)).expect("root may");
    xattr("usr/share/noise", "user.note", b"of a file");
    xattr("usr/share/large", "user.long", &[b'x'; 700]);
    xattr("usr/bin/run", "security.capability", b"\x01\0\0\x02\0\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    xattr("link", "trusted.note", b"of a link");
    xattr("empty", "user.note", b"of a directory");
}
