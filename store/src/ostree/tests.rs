//! Tests against libostree's own program: each side reads what the other writes.

mod bases;
mod killed;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{XattrFlags, lgetxattr, llistxattr, lsetxattr};
use sealift_desk::can_chown;
use sealift_format::Attributes;
use sealift_format::hex;
use sealift_format::ostree::{Checksum, Commit, Dictionary, DirTree, dirmeta, file};
use sealift_verify::content::ContentError;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::create::NewFile;
use super::object::ObjectType;
use super::read::FileContent;
use super::refs::{RefName, RefOwner};
use super::repo::Repo;
use super::transaction::Transaction;
use crate::Error;
use crate::error::RepoFault;

const MODES: [&str; 4] = ["bare", "bare-user", "bare-user-only", "archive-z2"];

/// Runs `ostree` and returns its output; `Err` is its error message.
fn ostree(repo: &Path, args: &[&str]) -> Result<String, String> {
    let mut command = Command::new("ostree");
    command.arg(args[0]).arg(format!("--repo={}", repo.display())).args(&args[1..]);
    let output = command.output().expect("ostree is installed: apt install ostree");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

fn init(folder: &Path, name: &str, mode: &str) -> PathBuf {
    let repo = folder.join(name);
    ostree(&repo, &["init", &format!("--mode={mode}"), "--collection-id=org.example.Os"]).expect("it can be made");
    repo
}

/// Returns bytes that deflate compresses, but by less than half.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 7_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 26).to_le_bytes()[0]
    };
    (0..len).map(|_| next()).collect()
}

/// Creates a tree that every mode can hold.
fn plain_tree(root: &Path) {
    let write = |name: &str, mode: u32, bytes: &[u8]| {
        let path = root.join(name);
        std::fs::write(&path, bytes).expect("a file");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("its mode");
    };
    for directory in ["", "sub", "sub/deep", "sub/none"] {
        std::fs::create_dir_all(root.join(directory)).expect("a directory");
    }
    write("foo", 0o644, b"foo\n");
    write("sub/again", 0o644, b"foo\n");
    write("empty", 0o644, b"");
    write("run", 0o755, b"#!/bin/sh\n");
    write("sub/private", 0o600, b"secret");
    write("sub/read-only", 0o444, b"constant");
    write("sub/group", 0o664, b"group");
    write("sub/deep/large", 0o644, &noise(3_000_001));
    write("sub/deep/edge", 0o644, &noise(256 << 10));
    write("sub/deep/beyond", 0o600, &noise((256 << 10) + 1));
    write("sub/n\u{e4}me", 0o644, b"utf-8");
    symlink("target", root.join("link")).expect("a link");
    symlink("../foo", root.join("sub/link")).expect("a link");
}

/// Adds what some modes cannot hold.
fn full_tree(root: &Path) {
    plain_tree(root);
    let set = |name: &str, xattr: &str, value: &[u8]| {
        lsetxattr(root.join(name), xattr, value, XattrFlags::empty()).expect("it can be set");
    };
    let own =
        |name: &str, uid, gid| std::os::unix::fs::lchown(root.join(name), Some(uid), Some(gid)).expect("root may");
    let mode = |name: &str, mode| {
        std::fs::set_permissions(root.join(name), PermissionsExt::from_mode(mode)).expect("its mode");
    };
    for name in ["su", "wall", "mine", "open", "closed", "ping"] {
        std::fs::write(root.join(name), name).expect("a file");
    }
    symlink("mine", root.join("my-link")).expect("a link");
    own("wall", 0, 5);
    own("mine", 1000, 1001);
    own("my-link", 1000, 1000);
    for (name, bits) in [("su", 0o4755), ("wall", 0o2755), ("open", 0o777), ("closed", 0)] {
        mode(name, bits);
    }
    set("ping", "security.capability", b"\x01\0\0\x02\0\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    set("ping", "user.b", b"2");
    set("ping", "user.a", &[b'x'; 300]);
    set("link", "trusted.note", b"on a link");
    set("sub", "user.note", b"on a directory");
    mode("sub/deep", 0o2700);
    own("sub/none", 33, 33);
}

/// Commits a tree to a new repository, and returns it.
fn committed(folder: &Path, mode: &str, tree: impl Fn(&Path)) -> PathBuf {
    let root = folder.join("tree");
    if !root.exists() {
        tree(&root);
    }
    let repo = init(folder, &format!("from-{mode}"), mode);
    let args = [
        "commit",
        "--branch=test/main",
        "--subject=subject",
        "--body=body",
        "--timestamp=@1700000000",
        "--add-detached-metadata-string=note=beside",
        "--add-metadata-string=version=7",
        "--add-metadata=types={'a': <[(byte 1, 'x', true)]>, 'b': <@mas ['y']>, 'c': <(1.5, @mi nothing, [@ay []])>}",
        "--add-metadata=unit=[((), objectpath '/a/b', <<<uint64 7>>>)]",
        root.to_str().expect("it is UTF-8"),
    ];
    ostree(&repo, &args).expect("it commits");
    repo
}

/// Commits the plain tree to a new archive. Returns its folder, its path, the repository and the commit.
fn plain() -> (TempDir, PathBuf, Repo, Checksum) {
    let folder = TempDir::new().expect("a folder");
    let path = committed(folder.path(), "archive-z2", plain_tree);
    let repo = Repo::open(&path).expect("it opens");
    let commit = repo.resolve("test/main").expect("there is the ref");
    (folder, path, repo, commit)
}

/// Creates an empty repository and opens it.
fn opened(folder: &TempDir, name: &str, mode: &str) -> (PathBuf, Repo) {
    let path = init(folder.path(), name, mode);
    let repo = Repo::open(&path).expect("it opens");
    (path, repo)
}

/// Adds a line to the configuration.
fn configure(repo: &Path, line: &str) {
    let mut config = std::fs::OpenOptions::new().append(true).open(repo.join("config")).expect("a file");
    writeln!(config, "{line}").expect("it is ours");
}

fn main_ref() -> RefName {
    RefName::new(RefOwner::Heads, "test/main").expect("it is a name")
}

/// What is written of a file that was read.
fn new_file(content: &mut FileContent) -> NewFile<'_> {
    match content {
        FileContent::Symlink(target) => NewFile::Symlink(target),
        FileContent::Regular(content) => NewFile::Regular { size: content.size(), content },
    }
}

/// Returns all objects that a commit needs, ending with the commit.
fn closure(repo: &Repo, commit: &Checksum) -> Vec<(ObjectType, Checksum)> {
    let bytes = repo.load_metadata(ObjectType::Commit, commit).expect("the commit is there");
    let parsed = Commit::parse(&bytes).expect("libostree wrote it");
    let mut found = BTreeSet::from([(ObjectType::DirMeta, *parsed.root_meta)]);
    let mut pending = vec![*parsed.root_tree];
    while let Some(next) = pending.pop() {
        if !found.insert((ObjectType::DirTree, next)) {
            continue;
        }
        let bytes = repo.load_metadata(ObjectType::DirTree, &next).expect("the tree is there");
        let tree = DirTree::parse(&bytes).expect("libostree wrote it");
        assert_eq!(tree.encode(), bytes);
        found.extend(tree.files.iter().map(|(_, file)| (ObjectType::File, **file)));
        found.extend(tree.directories.iter().map(|(_, _, meta)| (ObjectType::DirMeta, **meta)));
        pending.extend(tree.directories.iter().map(|(_, tree, _)| **tree));
    }
    found.into_iter().chain([(ObjectType::Commit, *commit)]).collect()
}

/// Writes a commit and everything that it needs, children first.
fn copy(from: &Repo, to: &Repo, commit: &Checksum) -> Result<u64, Error> {
    let transaction = Transaction::begin(to)?;
    write_all(from, &transaction, commit)?;
    transaction.set_ref(main_ref(), *commit);
    transaction.finish(2, || Ok(()))
}

fn write_all(from: &Repo, transaction: &Transaction<'_>, commit: &Checksum) -> Result<(), Error> {
    for (kind, checksum) in closure(from, commit) {
        match kind {
            ObjectType::File => {
                let (attributes, mut content) = from.open_file(&checksum)?;
                transaction.write_file(&checksum, &attributes, new_file(&mut content))?;
            }
            ObjectType::Commit => {
                transaction.write_commit(&checksum, &from.load_metadata(kind, &checksum)?)?;
                if let Some(bytes) = from.load_commitmeta(&checksum)? {
                    transaction.write_commitmeta(&checksum, &bytes)?;
                }
            }
            _ => drop(transaction.write_metadata(kind, &checksum, &from.load_metadata(kind, &checksum)?)?),
        }
    }
    Ok(())
}

/// All properties of a file in a repository.
#[derive(Debug, PartialEq, Eq)]
struct Loose {
    mode: u32,
    owner: (u32, u32),
    mtime: Option<i64>,
    content: Vec<u8>,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// Returns the objects of a repository as files. Compressed content is left out: it has no single form.
fn loose(repo: &Path) -> BTreeMap<PathBuf, Loose> {
    let mut all = BTreeMap::new();
    let names =
        |path: &Path| std::fs::read_dir(path).expect("a directory").map(|entry| entry.expect("an entry").path());
    for path in names(&repo.join("objects")).flat_map(|prefix| names(&prefix).collect::<Vec<_>>()) {
        let meta = path.symlink_metadata().expect("it is there");
        let extension = path.extension().and_then(OsStr::to_str).expect("a type");
        let mut list = vec![0; 4096];
        let len = llistxattr(&path, &mut list[..]).expect("names");
        let value = |name: &[u8]| {
            let mut value = vec![0; 4096];
            let len = lgetxattr(&path, name, &mut value[..]).expect("a value");
            value[..len].to_vec()
        };
        let names = list[..len].split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let found = Loose {
            mode: meta.mode(),
            owner: (meta.uid(), meta.gid()),
            mtime: (extension == "file" && meta.is_file()).then(|| meta.mtime()),
            content: match extension {
                "filez" => Vec::new(),
                _ if meta.is_symlink() => {
                    std::fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes()
                }
                _ => std::fs::read(&path).expect("a file"),
            },
            xattrs: names.map(|name| (name.to_vec(), value(name))).collect(),
        };
        all.insert(path.strip_prefix(repo).expect("it is beneath").to_owned(), found);
    }
    all
}

/// Copies a commit to a repository of each of these modes, and compares them with libostree's.
fn copies_are_libostrees(from_mode: &str, to_modes: &[&str], tree: impl Fn(&Path)) {
    let folder = TempDir::new().expect("a folder");
    let source = committed(folder.path(), from_mode, tree);
    let from = Repo::open(&source).expect("it opens");
    let commit = from.resolve("test/main").expect("there is the ref");
    let shown = |repo: &Path, args: &[&str]| ostree(repo, args).expect("it is shown");
    for mode in to_modes {
        let copied = init(folder.path(), &format!("to-{mode}"), mode);
        let to = Repo::open(&copied).expect("it opens");
        let count = copy(&from, &to, &commit).unwrap_or_else(|error| panic!("{from_mode} to {mode}: {error}"));
        assert!(count > 15, "{count}");
        ostree(&copied, &["fsck"]).unwrap_or_else(|error| panic!("{from_mode} to {mode}: {error}"));
        for args in
            [&["ls", "-R", "-C", "-X", "test/main"][..], &["show", "test/main"], &["refs"], &["rev-parse", "test/main"]]
        {
            assert_eq!(shown(&copied, args), shown(&source, args));
        }
        let note = ["show", "--print-detached-metadata-key=note", "test/main"];
        assert_eq!(shown(&copied, &note), "'beside'\n");
        assert_eq!(copy(&from, &to, &commit).expect("it is there"), 0, "a second write writes nothing");
        // Neither run leaves anything.
        for (place, kept) in [("tmp", vec!["cache"]), ("state", vec![])] {
            assert_eq!(names_in(&copied.join(place)), kept, "{place}");
        }
        let theirs = init(folder.path(), &format!("pulled-{mode}"), mode);
        ostree(&theirs, &["pull-local", source.to_str().expect("it is UTF-8"), "test/main"]).expect("it pulls");
        let (ours, mut theirs) = (loose(&copied), loose(&theirs));
        if (from_mode, *mode) == ("bare-user", "bare-user-only") {
            // libostree hard-links the files, and so keeps their extended attributes.
            theirs.values_mut().for_each(|file| file.xattrs.clear());
        }
        assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
        for (path, file) in &ours {
            let expected = &theirs[path];
            assert!(file == expected, "{from_mode} to {mode}: {}: {file:?} is not {expected:?}", path.display());
        }
    }
}

#[test]
fn any_tree_goes_from_a_mode_to_another() {
    if can_chown() {
        for mode in ["bare", "bare-user", "archive-z2"] {
            copies_are_libostrees(mode, &["bare", "bare-user", "archive-z2"], full_tree);
        }
    }
}

#[test]
fn a_plain_tree_goes_to_every_mode() {
    if can_chown() {
        for mode in ["bare", "bare-user", "archive-z2"] {
            copies_are_libostrees(mode, &["bare-user-only"], plain_tree);
        }
        copies_are_libostrees("bare-user-only", &MODES, plain_tree);
    }
}

#[test]
fn a_mode_refuses_what_it_cannot_hold() {
    let Some(folder) = can_chown().then(|| TempDir::new().expect("a folder")) else { return };
    let source = committed(folder.path(), "archive-z2", full_tree);
    let from = Repo::open(&source).expect("it opens");
    let to = Repo::open(&init(folder.path(), "to", "bare-user-only")).expect("it opens");
    let transaction = Transaction::begin(&to).expect("it begins");
    let mut reasons = BTreeSet::new();
    for (_, checksum) in closure(&from, &from.resolve("test/main").expect("a ref"))
        .into_iter()
        .filter(|object| object.0 == ObjectType::File)
    {
        let (attributes, mut content) = from.open_file(&checksum).expect("it opens");
        match transaction.write_file(&checksum, &attributes, new_file(&mut content)) {
            Err(Error::Repository { fault, .. }) if matches!(*fault, RepoFault::CannotHold { .. }) => {
                let RepoFault::CannotHold { why, .. } = *fault else { continue };
                reasons.insert(why);
            }
            written => assert!(written.expect("it is written")),
        }
    }
    let all = ["it does not belong to root", "it has extended attributes", "it has permission bits beyond 0775"];
    assert_eq!(reasons, BTreeSet::from(all));
}

#[test]
fn what_a_commit_says() {
    let folder = TempDir::new().expect("a folder");
    let repo = Repo::open(&committed(folder.path(), "archive-z2", plain_tree)).expect("it opens");
    assert_eq!(repo.config().collection_id.as_deref(), Some("org.example.Os"));
    let commit = repo.resolve("org.example.Os:test/main").expect("there is the ref");
    assert_eq!(repo.resolve(&hex(&commit)).expect("it is a checksum"), commit);
    let bytes = repo.load_metadata(ObjectType::Commit, &commit).expect("it is there");
    let parsed = Commit::parse(&bytes).expect("libostree wrote it");
    assert_eq!((parsed.subject, parsed.body, parsed.timestamp), ("subject", "body", 1_700_000_000));
    assert!(parsed.ref_bindings().is_some_and(|refs| refs.eq(["test/main"])));
    assert_eq!(parsed.collection_binding, Some("org.example.Os"));
    assert_eq!(parsed.metadata.value("version").and_then(|value| value.text()), Some("7"));
    let beside = repo.load_commitmeta(&commit).expect("it can be read").expect("it is there");
    let beside = Dictionary::parse(&beside).expect("libostree wrote it");
    assert_eq!(beside.value("note").and_then(|value| value.text()), Some("beside"));
}

#[test]
fn refs_are_those_of_libostree() {
    let (_folder, path, repo, commit) = plain();
    let names = [
        RefName::new(RefOwner::Heads, "a/b/c.d-e"),
        RefName::new(RefOwner::Remote("os".to_owned()), "stable"),
        RefName::new(RefOwner::Mirror("org.other.Os".to_owned()), "x/stable"),
    ];
    let names = names.map(|name| name.expect("it is a name"));
    let transaction = Transaction::begin(&repo).expect("it begins");
    for name in &names {
        transaction.set_ref(name.clone(), commit);
    }
    assert_eq!(transaction.finish(2, || Ok(())).expect("it ends"), 0);
    let listed: BTreeSet<_> = ostree(&path, &["refs"]).expect("they are listed").lines().map(str::to_owned).collect();
    assert_eq!(listed, ["a/b/c.d-e", "os:stable", "test/main"].map(str::to_owned).into());
    let mirrored = ostree(&path, &["refs", "--collections"]).expect("they are listed");
    assert!(mirrored.contains("(org.other.Os, x/stable)"), "{mirrored}");
    let refs: Vec<_> =
        repo.refs().expect("they are read").into_iter().map(|(name, found)| (name, found == commit)).collect();
    let [head, remote, mirror] = names;
    assert_eq!(refs, [(head, true), (main_ref(), true), (remote, true), (mirror, true)]);
    for text in ["os:stable", "org.other.Os:x/stable", "org.example.Os:a/b/c.d-e"] {
        assert_eq!(repo.resolve(text).expect(text), commit);
    }
    for text in ["none", "test", "os:none", "../config", "org.third.Os:x", ""] {
        assert!(repo.resolve(text).is_err(), "{text}");
    }
    std::fs::write(path.join("refs/heads/wrong"), "nonsense\n").expect("a file");
    assert!(repo.resolve("wrong").expect_err("it is wrong").to_string().contains("does not hold a checksum"));
}

/// Reads all of an object.
fn read(repo: &Repo, kind: ObjectType, checksum: &Checksum) -> Result<(), String> {
    if kind != ObjectType::File {
        return repo.load_metadata(kind, checksum).map(drop).map_err(|error| error.to_string());
    }
    match repo.open_file(checksum).map_err(|error| error.to_string())?.1 {
        FileContent::Symlink(_) => Ok(()),
        FileContent::Regular(mut content) => {
            let mut bytes = Vec::new();
            content.read_to_end(&mut bytes).map(drop).map_err(|error| error.to_string())
        }
    }
}

#[test]
fn whatever_is_changed_is_found() {
    if !can_chown() {
        return;
    }
    for mode in MODES {
        let folder = TempDir::new().expect("a folder");
        let path = committed(folder.path(), mode, plain_tree);
        let repo = Repo::open(&path).expect("it opens");
        let all = closure(&repo, &repo.resolve("test/main").expect("a ref"));
        for (kind, checksum) in all {
            read(&repo, kind, &checksum).expect("it is right");
            let file = repo.object_path(kind, &checksum);
            if file.is_symlink() {
                std::fs::remove_file(&file).expect("it is ours");
                symlink("elsewhere", &file).expect("a link");
                read(&repo, kind, &checksum).expect_err("its target is another");
                continue;
            }
            let bytes = std::fs::read(&file).expect("it is there");
            // The last bits of compressed data are ignored, and so is everything after it.
            let is_deflated = mode == "archive-z2" && kind == ObjectType::File;
            let ends = bytes.len().saturating_sub(if is_deflated { 5 } else { 1 });
            for at in [0, bytes.len() / 2, ends].into_iter().filter(|at| *at < bytes.len()) {
                let mut changed = bytes.clone();
                changed[at] ^= 0x10;
                std::fs::write(&file, changed).expect("it is ours");
                read(&repo, kind, &checksum).expect_err("a byte is another");
            }
            std::fs::write(&file, &bytes[..bytes.len() / 2]).expect("it is ours");
            if !bytes.is_empty() {
                read(&repo, kind, &checksum).expect_err("it is shorter");
            }
            std::fs::write(&file, [&*bytes, b"x"].concat()).expect("it is ours");
            if !is_deflated {
                read(&repo, kind, &checksum).expect_err("it is longer");
            }
            std::fs::remove_file(&file).expect("it is ours");
            assert!(read(&repo, kind, &checksum).expect_err("it is gone").contains("it has no object"));
        }
    }
}

#[test]
fn threads_write_the_same_objects() {
    let (folder, _, from, commit) = plain();
    let (path, to) = opened(&folder, "to", "archive-z2");
    let transaction = Transaction::begin(&to).expect("it begins");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| write_all(&from, &transaction, &commit).expect("it is written"));
        }
    });
    let objects = transaction.finish(2, || Ok(())).expect("it ends");
    assert_eq!(usize::try_from(objects).expect("it fits"), loose(&path).len());
    ostree(&path, &["fsck"]).expect("all is well");
}

#[test]
fn directories_that_came_meanwhile_are_filled() {
    let (folder, _, from, commit) = plain();
    let (path, to) = opened(&folder, "to", "bare-user");
    // Two programs find no directory, and both write all objects; a third empties one of the directories.
    let both = [(); 2].map(|()| Transaction::begin(&to).expect("it begins"));
    for transaction in &both {
        write_all(&from, transaction, &commit).expect("it is written");
    }
    std::fs::create_dir(path.join("objects").join(&hex(&commit)[..2])).expect("nobody has it");
    for transaction in both {
        transaction.finish(2, || Ok(())).expect("it ends");
        ostree(&path, &["fsck"]).expect("all is well");
    }
    assert_eq!(names_in(&path.join("tmp")), ["cache"]);
}

#[test]
fn directories_of_objects_have_the_group_of_those_above() {
    let (folder, _, from, commit) = plain();
    for shared in [false, true] {
        let path = init(folder.path(), &format!("to-{shared}"), "archive-z2");
        let objects = path.join("objects");
        let bits = if shared { 0o2775 } else { 0o755 };
        std::fs::set_permissions(&objects, std::fs::Permissions::from_mode(bits)).expect("it is ours");
        copy(&from, &Repo::open(&path).expect("it opens"), &commit).expect("it is copied");
        for name in names_in(&objects) {
            let found = std::fs::metadata(objects.join(&name)).expect("it is there");
            assert_eq!(found.mode() & 0o2000 != 0, shared, "{}", name.display());
        }
        ostree(&path, &["fsck"]).expect("all is well");
    }
}

#[test]
fn a_partial_commit_becomes_whole() {
    let (folder, source, from, commit) = plain();
    let path = init(folder.path(), "to", "archive-z2");
    let source = source.to_str().expect("it is UTF-8");
    ostree(&path, &["pull-local", "--commit-metadata-only", source, "test/main"]).expect("it pulls");
    let to = Repo::open(&path).expect("it opens");
    assert!(to.is_partial(&commit).expect("it can be told"));
    copy(&from, &to, &commit).expect("it is copied");
    assert!(!to.is_partial(&commit).expect("it can be told"));
    ostree(&path, &["fsck"]).expect("all is well");
}

#[test]
fn room_stays_free() {
    let (folder, _, from, commit) = plain();
    let path = init(folder.path(), "to", "bare-user-only");
    configure(&path, "min-free-space-size=1000000TB");
    let to = Repo::open(&path).expect("it opens");
    let error = copy(&from, &to, &commit).expect_err("there is no room");
    assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    assert!(loose(&path).is_empty() && to.refs().expect("they can be read").is_empty());
}

#[test]
fn what_has_another_checksum_is_not_written() {
    for mode in MODES {
        let folder = TempDir::new().expect("a folder");
        let path = init(folder.path(), "repo", mode);
        let repo = Repo::open(&path).expect("it opens");
        let transaction = Transaction::begin(&repo).expect("it begins");
        let attributes = Attributes { mode: 0o100_644, uid: 0, gid: 0, xattrs: sealift_format::Xattrs::default() };
        for len in [0, 4, 1 << 20] {
            let bytes = noise(len);
            let mut content = &bytes[..];
            let new = NewFile::Regular { size: content.len().try_into().expect("it fits"), content: &mut content };
            let error = transaction.write_file(&[7; 32], &attributes, new).expect_err("it has another");
            assert!(matches!(error, Error::Content(ContentError::OsTreeFile { checksum: [7, ..] })), "{error}");
        }
        let link = Attributes { mode: 0o120_777, ..attributes.clone() };
        transaction.write_file(&[7; 32], &link, NewFile::Symlink("target")).expect_err("it has another");
        transaction.write_metadata(ObjectType::DirTree, &[7; 32], &[0]).expect_err("it has another");
        // A content that ends too early.
        let sum = Sha256::new_with_prefix(file::encode_header(&attributes, "")).chain_update(b"foo\n").finalize();
        let new = NewFile::Regular { size: 4, content: &mut &b"foo"[..] };
        transaction.write_file(&sum.into(), &attributes, new).expect_err("it ends");
        assert_eq!(transaction.finish(2, || Ok(())).expect("it ends"), 0);
        assert!(loose(&path).is_empty());
    }
}

#[test]
fn a_transaction_that_is_dropped_leaves_nothing() {
    let folder = TempDir::new().expect("a folder");
    let path = init(folder.path(), "repo", "archive-z2");
    let abandoned = path.join("tmp/staging-boot-sealift-0");
    std::fs::create_dir(&abandoned).expect("a directory");
    std::fs::write(abandoned.join("0"), "of a run that was killed").expect("a file");
    std::fs::write(path.join("tmp/staging-boot-sealift-0-lock"), "").expect("a file");
    let repo = Repo::open(&path).expect("it opens");
    let first = Transaction::begin(&repo).expect("it begins");
    let second = Transaction::begin(&repo).expect("they write together");
    let usual =
        dirmeta::encode(&Attributes { mode: 0o40755, uid: 0, gid: 0, xattrs: sealift_format::Xattrs::default() });
    let checksum: Checksum = Sha256::digest(&usual).into();
    assert!(first.write_metadata(ObjectType::DirMeta, &checksum, &usual).expect("it is new"));
    assert!(!first.write_metadata(ObjectType::DirMeta, &checksum, &usual).expect("it is staged"));
    assert!(second.write_metadata(ObjectType::DirMeta, &checksum, &usual).expect("it is new there"));
    drop(first);
    assert!(!repo.has(ObjectType::DirMeta, &checksum).expect("it can be told"));
    assert_eq!(second.finish(2, || Ok(())).expect("it ends"), 1);
    drop(second);
    // A run that ends well removes what a killed one left.
    let last = Transaction::begin(&repo).expect("it begins");
    assert_eq!(last.finish(2, || Ok(())).expect("it ends"), 0);
    drop(last);
    assert!(repo.has(ObjectType::DirMeta, &checksum).expect("it can be told"));
    assert_eq!(names_in(&path.join("tmp")), ["cache"]);
}

#[test]
fn prune_and_a_transaction_keep_each_other_out() {
    let (_folder, path, ..) = plain();
    configure(&path, "lock-timeout-secs=1");
    let repo = Repo::open(&path).expect("it opens");
    let transaction = Transaction::begin(&repo).expect("it begins");
    let error = ostree(&path, &["prune"]).expect_err("it is locked");
    assert!(error.contains("Locking repo exclusive failed"), "{error}");
    drop(transaction);
    ostree(&path, &["prune"]).expect("nobody has it");
    let lock = std::fs::OpenOptions::new().read(true).write(true).open(path.join(".lock")).expect("it is there");
    assert!(super::lock::try_lock(&lock.into(), super::lock::LockKind::Exclusive).expect("it can be asked"));
    let held = std::fs::OpenOptions::new().read(true).write(true).open(path.join(".lock")).expect("it is there").into();
    assert!(super::lock::try_lock(&held, super::lock::LockKind::Exclusive).expect("it was given back"));
    let error = Transaction::begin(&repo).expect_err("it is locked");
    assert!(
        matches!(&error, Error::Repository { fault, .. } if matches!(**fault, RepoFault::Locked { seconds: 1 })),
        "{error}"
    );
}

#[test]
fn links_in_a_repository_lead_nowhere() {
    let (folder, path, repo, commit) = plain();
    let prefix = path.join("objects").join(&hex(&commit)[..2]);
    std::fs::rename(&prefix, folder.path().join("elsewhere")).expect("it is ours");
    symlink(folder.path().join("elsewhere"), &prefix).expect("a link");
    repo.load_metadata(ObjectType::Commit, &commit).expect_err("it is behind a link");
    std::fs::rename(path.join("refs/heads"), folder.path().join("heads")).expect("it is ours");
    symlink(folder.path().join("heads"), path.join("refs/heads")).expect("a link");
    repo.resolve("test/main").expect_err("it is behind a link");
    assert!(repo.refs().expect("they can be read").is_empty());
}

#[test]
fn what_is_no_repository() {
    let folder = TempDir::new().expect("a folder");
    let text = |path: &Path| Repo::open(path).expect_err("it is none").to_string();
    assert!(text(folder.path()).ends_with("it has no config"));
    std::fs::write(folder.path().join("config"), "[core]\nrepo_version=1\nmode=bare\n").expect("a file");
    assert!(text(folder.path()).ends_with("it has no objects"));
    let path = init(folder.path(), "split", "bare-split-xattrs");
    assert!(text(&path).contains("core.mode = \"bare-split-xattrs\""));
}

/// Returns the names in a directory.
fn names_in(path: &Path) -> Vec<std::ffi::OsString> {
    std::fs::read_dir(path).expect("a directory").map(|entry| entry.expect("an entry").file_name()).collect()
}

/// If a device cannot remember a bundle, the repository is unchanged, including marks.
#[test]
fn what_is_not_ready_is_not_there() {
    let (folder, _, from, commit) = plain();
    let (path, to) = opened(&folder, "to", "bare-user");
    for is_ready in [false, true] {
        let transaction = Transaction::begin(&to).expect("it begins");
        write_all(&from, &transaction, &commit).expect("it is written");
        transaction.set_ref(main_ref(), commit);
        let finished = transaction.finish(2, || {
            assert_eq!(loose(&path).len(), 0, "nothing has its name yet");
            assert!(to.read_ref(&main_ref()).expect("it reads").is_none());
            if is_ready { Ok(()) } else { Err(Error::Cancelled) }
        });
        assert_eq!(finished.is_ok(), is_ready);
        assert_eq!(names_in(&path.join("state")).len(), 0);
        assert_eq!(loose(&path).is_empty(), !is_ready);
        ostree(&path, &["fsck"]).expect("all is well");
    }
    assert_eq!(ostree(&path, &["rev-parse", "test/main"]).expect("it is there").trim(), hex(&commit));
}
