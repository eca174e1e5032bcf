//! A repository as a base: everything read from it has been compared with its object's id.

use sealift_desk::can_chown;
use sealift_format::{BaseObject, Row};
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::super::object::loose_path;
use super::{MODES, ObjectType, Repo, committed, noise, plain_tree};
use crate::base::{Base, BaseReader, Bases};
use crate::{Error, Progress};

fn base_of(repo: &Path) -> Bases {
    let mut spec = OsString::from("ostree:");
    spec.push(repo);
    spec.push(":test/main");
    Bases::new(vec![Base::of_commit(&spec, None, &[], 2, &Progress::default()).expect("a base")])
}

/// Returns the number of the object with so many bytes, and its path in the repository.
fn object_of(bases: &Bases, repo: &Path, size: usize) -> (Row<BaseObject>, PathBuf) {
    let index = bases.indexes()[0];
    let object = Row::all(index.objects()).find(|(_, row)| usize::try_from(row.size) == Ok(size)).expect("an object").0;
    let files = index.ostree().expect("commits").files();
    let is_of = |kind| matches!(kind, sealift_format::InodeKind::Regular(found) if found == object);
    let file = files.iter().find(|file| is_of(file.kind)).expect("a file");
    let mode = Repo::open(repo).expect("it opens").config().mode;
    (BaseObject::of_first(object), repo.join("objects").join(loose_path(ObjectType::File, &file.checksum, mode)))
}

/// Small objects, read at once, and large ones: unchanged, in parts, and changed after they were checked.
#[test]
fn what_is_read_was_compared() {
    for mode in MODES.iter().filter(|mode| **mode != "bare" || can_chown()) {
        let folder = TempDir::new().expect("a folder");
        let repo = committed(folder.path(), mode, plain_tree);
        for size in [3_000_001, 256 << 10] {
            let (bases, content) = (base_of(&repo), noise(size));
            let (object, path) = object_of(&bases, &repo, size);
            let len = u64::try_from(size).expect("small");
            let read = |bases: &Bases, range: std::ops::Range<u64>| {
                let mut out = b"before".to_vec();
                BaseReader::new(bases).read(object, range, &mut out).map(|()| out.split_off(6))
            };
            for holds in [false, true] {
                if holds {
                    assert!(BaseReader::new(&bases).holds(object, &Progress::default()).expect("it is read"), "{mode}");
                }
                assert!(read(&bases, 0..len).expect("it is read") == content, "{mode}: all of it");
                assert!(
                    read(&bases, 70_000..200_001).expect("it is read") == content[70_000..200_001],
                    "{mode}: a part"
                );
                assert!(read(&bases, 5..5).expect("it is read").is_empty(), "{mode}");
            }
            let mut whole = Vec::new();
            let opened = BaseReader::new(&bases).open(object).expect("it is there").read_to_end(&mut whole);
            assert!(opened.is_ok() && whole == content, "{mode}");

            let kept = std::fs::read(&path).expect("it is there");
            let mut damaged = kept.clone();
            damaged[kept.len() - 5] ^= 1;
            std::fs::write(&path, &damaged).expect("there is room");
            for range in [0..len, len - 9..len] {
                let read = read(&bases, range.clone());
                assert!(matches!(read, Err(Error::MissingBase { .. })), "{mode}: {range:?}: it was looked at before");
            }
            let mut reader = BaseReader::new(&bases);
            let mut opened = reader.open(object).expect("it is there");
            assert!(opened.read_to_end(&mut Vec::new()).is_err(), "{mode}: it was looked at before");
            let anew = Bases::new(vec![Base::of_repository(
                &std::sync::Arc::new(Repo::open(&repo).expect("it opens")),
                bases.indexes()[0].clone(),
            )]);
            assert!(!BaseReader::new(&anew).holds(object, &Progress::default()).expect("it is read"), "{mode}");
            let error = read(&anew, 0..1).expect_err("it is damaged").to_string();
            assert!(error.contains(".file, the content of sub/deep/"), "{mode}: {error}");

            std::fs::remove_file(&path).expect("it is there");
            assert!(!BaseReader::new(&anew).holds(object, &Progress::default()).expect("it is looked for"), "{mode}");
            for bases in [&bases, &anew] {
                assert!(matches!(read(bases, 1..2), Err(Error::MissingBase { .. })), "{mode}: it is gone");
                assert!(matches!(BaseReader::new(bases).open(object), Err(Error::MissingBase { .. })), "{mode}");
            }
            std::fs::remove_dir_all(&repo).expect("it is there");
            committed(folder.path(), mode, plain_tree);
        }
    }
}

/// Of two file objects with equal content, either will do.
#[test]
fn either_of_two_files() {
    let folder = TempDir::new().expect("a folder");
    let repo = committed(folder.path(), "bare-user-only", |root| {
        std::fs::create_dir_all(root).expect("a folder");
        for (name, mode) in [("a", 0o644), ("b", 0o755)] {
            std::fs::write(root.join(name), "content").expect("a file");
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(root.join(name), mode).expect("it is ours");
        }
    });
    let bases = base_of(&repo);
    assert_eq!(
        (bases.indexes()[0].objects().len(), bases.indexes()[0].ostree().expect("commits").files().len()),
        (1, 2)
    );
    let (_, first) = object_of(&bases, &repo, 7);
    std::fs::remove_file(first).expect("it is there");
    let mut out = Vec::new();
    BaseReader::new(&bases).open(Row::FIRST).expect("the other has it").read_to_end(&mut out).expect("it is read");
    assert_eq!(out, b"content");
    let mut out = Vec::new();
    BaseReader::new(&bases).read(Row::FIRST, 2..5, &mut out).expect("the other has it");
    assert_eq!(out, b"nte");
}

/// A compressed object stays open where its last reader stopped, until no read has come for a while.
#[test]
fn idle_streams_are_closed() {
    let folder = TempDir::new().expect("a folder");
    let content: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    let repo = committed(folder.path(), "archive", |root| {
        std::fs::create_dir_all(root).expect("a folder");
        std::fs::write(root.join("large"), &content).expect("a file");
    });
    let bases = base_of(&repo);
    let open = || {
        let all = std::fs::read_dir("/proc/self/fd").expect("Linux has it").flatten();
        let paths = all.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        paths
            .filter(|path| path.starts_with(folder.path()) && path.extension().is_some_and(|end| end == "filez"))
            .count()
    };
    // The first read verifies the whole file.
    for are_open in [0, 1] {
        let mut out = Vec::new();
        BaseReader::new(&bases).read(Row::FIRST, 1000..2000, &mut out).expect("it has it");
        assert!(out == content[1000..2000]);
        assert_eq!(open(), are_open);
    }
    bases.rest();
    assert_eq!(open(), 0);
}
