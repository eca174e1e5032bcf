//! Any tree packs, verifies and unpacks to itself, and always to the same bytes.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prelude::*;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags, lgetxattr, llistxattr, lsetxattr, mknodat,
    utimensat,
};
use sealift::Output;
use sealift::base::Base;
use sealift::order::{OrderEntry, OrderProfile};
use sealift::pack::{DeltaFor, PackOptions, PackRef, Zone, pack, pack_delta};
use sealift::source::{DirectoryOptions, DirectorySource, Source};
use sealift::unpack::unpack;
use sealift::verify::{Depth, verify};
use sealift::{Durability, InstallOptions, TreeOptions};
use sealift::{Identity, Input, Limits, Progress};
use sealift_desk::{can_chown, skipped};
use sealift_format::Opened;
use sealift_tests::complete::complete;
use sealift_tests::reader::{anyone, anyones, open, open_whole};
use sealift_tests::targets;
use sealift_tests::tree::paint;

/// A file to create.
#[derive(Clone, Debug)]
struct Item {
    /// Selects one of the directories before it.
    parent: prop::sample::Index,
    name: Vec<u8>,
    kind: What,
    mode: u16,
    mtime: (i64, u32),
    owner: (u32, u32),
    xattr: Option<(u8, Vec<u8>)>,
}

#[derive(Clone, Debug)]
enum What {
    Directory,
    Content(Vec<Run>),
    Symlink(Vec<u8>),
    Fifo,
    Socket,
    CharDevice(u32, u32),
    /// Another name for one of the files before it.
    Link(prop::sample::Index),
}

/// A part of a file's content.
#[derive(Clone, Debug)]
enum Run {
    Bytes(Vec<u8>),
    Painted(u8, usize),
    Zeros(usize),
}

impl Run {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes.clone(),
            Self::Painted(seed, len) => paint(*seed, *len),
            Self::Zeros(len) => vec![0; *len],
        }
    }
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![3 => b'a'..=b'e', 1 => any::<u8>()];
    vec(byte, 1..6).prop_map(|mut name| {
        name.iter_mut().filter(|byte| matches!(**byte, 0 | b'/')).for_each(|byte| *byte = b'_');
        if matches!(name.as_slice(), b"." | b"..") { b"dots".to_vec() } else { name }
    })
}

fn content() -> impl Strategy<Value = Vec<Run>> {
    let run = prop_oneof![
        4 => vec(any::<u8>(), 0..40).prop_map(Run::Bytes),
        2 => (0..3_u8, 0..9000_usize).prop_map(|(seed, len)| Run::Painted(seed, len)),
        1 => (14..40_usize, 0..2_usize).prop_map(|(blocks, more)| Run::Zeros(blocks * 4096 + more)),
    ];
    vec(run, 0..4)
}

fn item() -> impl Strategy<Value = Item> {
    let what = prop_oneof![
        3 => Just(What::Directory),
        6 => content().prop_map(What::Content),
        1 => vec(1..=255_u8, 1..60).prop_map(What::Symlink),
        1 => prop_oneof![Just(What::Fifo), Just(What::Socket), (0..300_u32, 0..300_u32).prop_map(|(a, b)| What::CharDevice(a, b))],
        2 => any::<prop::sample::Index>().prop_map(What::Link),
    ];
    let mtime = (-(1_i64 << 31)..1 << 33, 0..1_000_000_000_u32);
    let xattr = proptest::option::weighted(0.2, (0..4_u8, vec(any::<u8>(), 0..50)));
    let owner = prop_oneof![Just((0, 0)), (0..70_000_u32, 0..70_000_u32)];
    (any::<prop::sample::Index>(), name(), what, 0..0o10000_u16, mtime, owner, xattr).prop_map(
        |(parent, name, kind, mode, mtime, owner, xattr)| Item { parent, name, kind, mode, mtime, owner, xattr },
    )
}

/// A file of the tree, with all of its names.
#[derive(Clone, Debug)]
struct Made {
    item: Item,
    paths: Vec<PathBuf>,
}

/// Gives each item its path, and drops those whose name is taken.
fn arranged(items: &[Item]) -> Vec<Made> {
    let mut directories = vec![PathBuf::new()];
    let mut taken: Vec<PathBuf> = Vec::new();
    let mut made: Vec<Made> = Vec::new();
    for item in items {
        let path = item.parent.get(&directories).join(OsStr::from_bytes(&item.name));
        if taken.contains(&path) {
            continue;
        }
        taken.push(path.clone());
        let files: Vec<usize> = (0..made.len()).filter(|at| !matches!(made[*at].item.kind, What::Directory)).collect();
        match &item.kind {
            What::Link(_) if files.is_empty() => {}
            What::Link(which) => made[*which.get(&files)].paths.push(path),
            kind => {
                if matches!(kind, What::Directory) {
                    directories.push(path.clone());
                }
                made.push(Made { item: item.clone(), paths: vec![path] });
            }
        }
    }
    made
}

/// Creates the files, in reverse order if `backwards`, and then sets their metadata.
fn make(root: &Path, files: &[Made], backwards: bool) {
    std::fs::create_dir(root).expect("it is new");
    let mut names: Vec<(&Made, &PathBuf)> =
        files.iter().flat_map(|made| made.paths.iter().map(move |path| (made, path))).collect();
    if backwards {
        names.reverse();
    }
    let mut done: Vec<(*const Made, &PathBuf)> = Vec::new();
    for (made, path) in names {
        let full = root.join(path);
        std::fs::create_dir_all(full.parent().expect("it is below the root")).expect("there is room");
        match done.iter().find(|(other, _)| std::ptr::eq(*other, made)) {
            Some((_, first)) => std::fs::hard_link(root.join(first), &full).expect("there is room"),
            None => make_file(&full, &made.item.kind),
        }
        done.push((made, path));
    }
    for made in files.iter().rev() {
        set_metadata(&root.join(&made.paths[0]), &made.item);
    }
    let time = Timespec { tv_sec: 1_600_000_000, tv_nsec: 1 };
    let times = Timestamps { last_access: time, last_modification: time };
    utimensat(CWD, root, &times, AtFlags::empty()).expect("it is ours");
}

fn make_file(path: &Path, kind: &What) {
    let private = Mode::from_raw_mode(0o600);
    match kind {
        What::Directory => std::fs::create_dir_all(path).expect("there is room"),
        What::Content(runs) => {
            let file = std::fs::File::create_new(path).expect("it is new");
            let mut at = 0;
            for run in runs {
                let bytes = run.bytes();
                // Zeros are not written, so that the source has holes.
                if !matches!(run, Run::Zeros(_)) {
                    file.write_all_at(&bytes, at).expect("there is room");
                }
                at += u64::try_from(bytes.len()).expect("small");
            }
            file.set_len(at).expect("there is room");
        }
        What::Symlink(target) => std::os::unix::fs::symlink(OsStr::from_bytes(target), path).expect("there is room"),
        What::CharDevice(major, minor) if can_chown() => {
            let device = rustix::fs::makedev(*major, *minor);
            mknodat(CWD, path, FileType::CharacterDevice, private, device).expect("root may");
        }
        What::Socket => mknodat(CWD, path, FileType::Socket, private, 0).expect("there is room"),
        What::Fifo | What::CharDevice(..) | What::Link(_) => {
            mknodat(CWD, path, FileType::Fifo, private, 0).expect("there is room");
        }
    }
}

fn set_metadata(path: &Path, item: &Item) {
    let is_symlink = matches!(item.kind, What::Symlink(_));
    if can_chown() {
        std::os::unix::fs::lchown(path, Some(item.owner.0), Some(item.owner.1)).expect("root may");
    }
    if let (Some((number, value)), What::Directory | What::Content(_)) = (&item.xattr, &item.kind) {
        // Without extended attributes, there are none to compare.
        if let Err(error) = lsetxattr(path, format!("user.{number}"), value, XattrFlags::empty()) {
            skipped(&format!("needs extended attributes on this file system ({error})"));
        }
    }
    if !is_symlink {
        // Without root, the owner must be able to read the file.
        let mode = if can_chown() { item.mode } else { item.mode & 0o777 | 0o700 };
        rustix::fs::chmod(path, Mode::from_raw_mode(mode.into())).expect("it is ours");
    }
    let time = Timespec { tv_sec: item.mtime.0, tv_nsec: item.mtime.1.into() };
    let times = Timestamps { last_access: time, last_modification: time };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).expect("it is ours");
}

/// Everything by which two trees are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    mode: u32,
    owner: (u32, u32),
    mtime: (i64, i64),
    device: u64,
    content: Vec<u8>,
    xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    /// The first name of the same file.
    first_name: PathBuf,
}

fn seen(root: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut all = BTreeMap::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(path) = pending.pop() {
        let full = root.join(&path);
        let metadata = std::fs::symlink_metadata(&full).expect("it is there");
        if metadata.is_dir() {
            let names = std::fs::read_dir(&full).expect("it can be listed");
            pending.extend(names.map(|name| path.join(name.expect("a name").file_name())));
        }
        all.insert(path, (full, metadata));
    }
    let mut first_names: BTreeMap<u64, PathBuf> = BTreeMap::new();
    for (path, (_, metadata)) in &all {
        first_names.entry(metadata.ino()).or_insert_with(|| path.clone());
    }
    all.into_iter().map(|(path, (full, metadata))| (path, seen_file(&full, &metadata, &first_names))).collect()
}

fn seen_file(full: &Path, metadata: &Metadata, first_names: &BTreeMap<u64, PathBuf>) -> Seen {
    let content = if metadata.is_file() {
        std::fs::read(full).expect("it can be read")
    } else if metadata.is_symlink() {
        std::fs::read_link(full).expect("it can be read").as_os_str().as_bytes().to_vec()
    } else {
        Vec::new()
    };
    let file_type = metadata.file_type();
    let is_device = file_type.is_char_device() || file_type.is_block_device();
    Seen {
        mode: metadata.mode(),
        owner: (metadata.uid(), metadata.gid()),
        mtime: (metadata.mtime(), metadata.mtime_nsec()),
        device: if is_device { metadata.rdev() } else { 0 },
        content,
        xattrs: xattrs(full),
        first_name: first_names[&metadata.ino()].clone(),
    }
}

fn xattrs(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut names = vec![0; 4096];
    let len = llistxattr(path, &mut names[..]).unwrap_or(0);
    let ours = names[..len].split(|byte| *byte == 0).filter(|name| name.starts_with(b"user."));
    let mut all: Vec<(Vec<u8>, Vec<u8>)> = ours
        .map(|name| {
            let mut value = vec![0; 4096];
            let len = lgetxattr(path, name, &mut value[..]).expect("it was listed");
            (name.to_vec(), value[..len].to_vec())
        })
        .collect();
    all.sort();
    all
}

fn packed(tree: &Path, bundle: &Path, jobs: usize, chunk_len: u64, order: Option<OrderProfile>) -> Vec<u8> {
    let source = DirectorySource::list(tree, &DirectoryOptions::default(), jobs).expect("it can be listed");
    let options = pack_options(jobs, chunk_len, order);
    let refs = [PackRef { name: "main", source: &Source::Directory(source) }];
    let output = Output::File(bundle.to_owned());
    pack(&refs, &output, &options, &|_| Ok(Vec::new()), &Progress::default()).expect("it packs");
    std::fs::read(bundle).expect("it was written")
}

fn pack_options(jobs: usize, chunk_len: u64, order: Option<OrderProfile>) -> PackOptions {
    let zone = match order.as_ref().map_or(0, |order| order.entries().len() % 2) {
        0 => Zone::Start,
        _ => Zone::End,
    };
    PackOptions {
        identity: Identity { name: "test".into(), version: 1, created: 0, expires: None, compatible: Vec::new() },
        annotations: Vec::new(),
        images: Vec::new(),
        order,
        apart_from: Vec::new(),
        level: 1,
        chunk_len,
        hot_chunk_len: (chunk_len / 4).max(4096),
        zone,
        signature_room: 64,
        jobs,
        delta_memory: PackOptions::DELTA_MEMORY,
        recipes: true,
        limits: Limits::default(),
    }
}

/// Packs a delta of a tree over the bundle `base`, and returns its bytes.
fn packed_delta(tree: &Path, base: &Path, bundle: &Path) -> Vec<u8> {
    let source = DirectorySource::list(tree, &DirectoryOptions::default(), 2).expect("it can be listed");
    let refs = [PackRef { name: "main", source: &Source::Directory(source) }];
    let base = Input::open(base).expect("it was written");
    let base = Base::of_bundle(base, Limits::default(), &anyone()).expect("it is sound");
    let (output, options) = (Output::File(bundle.to_owned()), pack_options(2, 4096, None));
    pack_delta(&refs, DeltaFor::Bases(vec![base]), &output, &options, &|_| Ok(Vec::new()), &Progress::default())
        .expect("it packs");
    std::fs::read(bundle).expect("it was written")
}

/// Returns the maximum space of a file in bytes: its blocks without runs of at least 16 zero blocks.
fn most_blocks(content: &[u8]) -> u64 {
    let zero = |block: &[u8]| block.len() == 4096 && block.iter().all(|byte| *byte == 0);
    let runs: Vec<&[u8]> = content.chunks(4096).collect();
    let data = runs.chunk_by(|a, b| zero(a) == zero(b)).filter(|run| !(zero(run[0]) && run.len() >= 16));
    u64::try_from(data.map(<[_]>::len).sum::<usize>()).expect("small")
}

fn round_trip(items: &[Item], chunk_log2: u32, sizes: &[usize], hot: usize) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name);
    let files = arranged(items);
    make(&path("tree"), &files, false);
    make(&path("backwards"), &files, true);
    let expected = seen(&path("tree"));
    assert_eq!(seen(&path("backwards")), expected, "the two trees are equal");

    let chunk_len = 1 << chunk_log2;
    // For every other file: ranges in its third and fifth piece, and the last byte that a file can have.
    let ranges = |at: u64| match at % 2 {
        0 => Vec::new(),
        _ => vec![2 * chunk_len + 5..2 * chunk_len + 6, 4 * chunk_len..5 * chunk_len, u64::MAX / 2 - 1..u64::MAX / 2],
    };
    let hot_files = (0..).zip(files.iter().rev().take(hot)).map(|(at, made)| {
        let path = made.paths[0].as_os_str().as_bytes().to_vec();
        OrderEntry { path, ranges: ranges(at) }
    });
    let profile = OrderProfile::new(hot_files.collect());
    assert_eq!(
        OrderProfile::parse(profile.to_text().as_bytes()),
        Ok(profile.clone()),
        "a profile is read as it was written"
    );
    let order = || (hot > 0).then(|| profile.clone());
    let bytes = packed(&path("tree"), &path("bundle"), 1, chunk_len, order());
    for jobs in [2, 8] {
        assert!(
            packed(&path("tree"), &path("bundle"), jobs, chunk_len, order()) == bytes,
            "{jobs} jobs give other bytes"
        );
    }
    assert!(packed(&path("backwards"), &path("bundle"), 2, chunk_len, order()) == bytes, "another order of names");

    let bundle = open_whole(&bytes).expect("it opens");
    assert_eq!(open(&bytes, sizes), Ok(Opened::Whole(bundle.clone())));
    targets::index(bundle.index.bytes());
    targets::preamble_head(&bundle.head.encode());

    let input = || anyones(Input::open(&path("bundle")).expect("it was written")).expect("it is admitted");
    let progress = Progress::default();
    verify(input().into_unopened(), Depth::Objects, 2, &progress).expect("it verifies");
    for (target, hardlink_duplicates) in [("target", false), ("linked", true)] {
        let tree = TreeOptions { durability: Durability::None, hardlink_duplicates, ..TreeOptions::default() };
        let options = InstallOptions { jobs: 2, tree, ..InstallOptions::default() };
        unpack(input(), &path(target), &options, &progress).expect("it unpacks");
        let mut found = seen(&path(target));
        if hardlink_duplicates {
            // Equal files have become one file there.
            for (path, file) in &mut found {
                file.first_name.clone_from(&expected[path].first_name);
            }
        }
        assert!(found == expected, "{target}: {found:#?}\nexpected: {expected:#?}");
    }
    for (name, file) in &expected {
        let metadata = std::fs::symlink_metadata(path("target").join(name)).expect("it was compared");
        if metadata.is_file() {
            assert!(metadata.blocks() <= (most_blocks(&file.content) + 1) * 8, "{} lost its holes", name.display());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_comes_back_as_it_was(
        items in vec(item(), 0..25),
        chunk_log2 in 12..15_u32,
        sizes in vec(1..5000_usize, 1..5),
        hot in 0..4_usize,
    ) {
        round_trip(&items, chunk_log2, &sizes, hot);
    }
}

/// Updates `target`, which holds one bundle, to another bundle, and compares it with the tree of that.
fn updated(folder: &Path, options: &InstallOptions, expected: &BTreeMap<PathBuf, Seen>) {
    let target = folder.join("target");
    let run = |options: &InstallOptions| {
        let bundle = anyones(Input::open(&folder.join("new")).expect("it was written"))?;
        unpack(bundle, &target, options, &Progress::default())
    };
    let planned = run(&InstallOptions { dry_run: true, ..options.clone() }).expect("a plan");
    let stats = run(options).expect("it updates");
    assert_eq!((planned.files, planned.deleted), (stats.files, stats.deleted), "a dry run says what comes");
    let found = seen(&target);
    let brief = |seen: Option<&Seen>| seen.map(|seen| format!("{:?}", Seen { content: Vec::new(), ..seen.clone() }));
    let paths: std::collections::BTreeSet<_> = found.keys().chain(expected.keys()).collect();
    let differ = paths.into_iter().filter(|path| found.get(*path) != expected.get(*path));
    let differ: Vec<_> = differ.map(|path| (path, brief(found.get(path)), brief(expected.get(path)))).collect();
    assert!(differ.is_empty(), "{options:?}: {differ:#?}");
    let again = run(options).expect("nothing is left to do");
    assert_eq!((again.files, again.links, again.others, again.deleted.files, again.metadata_files), (0, 0, 0, 0, 0));
    assert_eq!(seen(&target), found);
    let beside = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let ours: Vec<_> = beside.filter(|name| name.as_bytes().starts_with(b".")).collect();
    assert_eq!(ours, [".target.sealift-state"], "what is left beside the target");
}

/// Checks that a delta bundle from `old` makes the index of `new`, and carries the objects that it needs.
fn delta(folder: &Path) {
    let path = |name: &str| folder.join(name);
    let [old, new] = ["old", "new"].map(|name| std::fs::read(path(name)).expect("it was written"));
    let wanted = open_whole(&new).expect("it is sound").index;
    if open_whole(&old).expect("it is sound").index == wanted {
        return;
    }
    let bytes = packed_delta(&path("new-tree"), &path("old"), &path("delta"));
    let Ok(Opened::Delta(delta)) = open(&bytes, &[usize::MAX]) else { panic!("it is no delta bundle") };
    targets::difference(&targets::difference_input(
        open_whole(&old).expect("it is sound").index.bytes(),
        &delta.difference.encode().expect("it fits"),
    ));
    let whole = complete(delta, &bytes, &[&old]).expect("it fits its base");
    assert!(whole.index == wanted);
}

fn update(old: &[Item], new: &[Item], kept: &[bool]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name);
    // Names that are in both trees, some with other content or another type, and names that are only in one.
    let stays = old.iter().zip(kept.iter().cycle()).filter(|(_, kept)| **kept).map(|(item, _)| item);
    let renamed = new.iter().zip(old.iter().step_by(2)).map(|(item, old)| {
        let mut item = item.clone();
        (item.name, item.parent) = (old.name.clone(), old.parent);
        item
    });
    let next: Vec<Item> = renamed.chain(new.iter().rev().take(4).cloned()).chain(stays.cloned()).collect();
    make(&path("old-tree"), &arranged(old), false);
    make(&path("new-tree"), &arranged(&next), false);
    packed(&path("old-tree"), &path("old"), 2, 4096, None);
    packed(&path("new-tree"), &path("new"), 2, 4096, None);
    let expected = seen(&path("new-tree"));
    delta(folder.path());
    let fresh = |target: &Path| {
        let tree = TreeOptions { durability: Durability::None, ..TreeOptions::default() };
        let options = InstallOptions { jobs: 2, tree, ..InstallOptions::default() };
        let bundle = anyones(Input::open(&path("old")).expect("it was written")).expect("it is admitted");
        unpack(bundle, target, &options, &Progress::default()).expect("it unpacks");
    };
    let tree = TreeOptions { update: true, delete: true, durability: Durability::None, ..TreeOptions::default() };
    let options = InstallOptions { jobs: 2, adopt: true, tree, ..InstallOptions::default() };
    for options in [options.clone(), InstallOptions { rehash: true, ..options.clone() }] {
        fresh(&path("target"));
        if options.rehash {
            // The record is removed, and no longer describes the target.
            std::fs::remove_dir_all(path(".target.sealift-state")).expect("it was kept");
            std::fs::write(path("target").join("not-in-the-bundle"), "extra").expect("a new file");
        }
        updated(folder.path(), &options, &expected);
        std::fs::remove_dir_all(path("target")).expect("it can be removed");
        std::fs::remove_dir_all(path(".target.sealift-state")).expect("it was kept");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_update_makes_the_new_tree(
        old in vec(item(), 0..20),
        new in vec(item(), 0..10),
        kept in vec(any::<bool>(), 1..8),
    ) {
        update(&old, &new, &kept);
    }
}

#[test]
fn an_empty_tree_comes_back() {
    round_trip(&[], 20, &[1], 0);
}
