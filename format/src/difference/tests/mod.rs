//! Differences of trees.

mod commits;
mod rules;

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;
use proptest::sample::Index as Pick;

use super::*;
use crate::attributes::Xattr;
use crate::index::{Index, IndexBuilder, Node};
use crate::num::wide;

/// Attributes and time, derived from small numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Meta {
    permissions: u8,
    owner: u8,
    xattr: Option<u8>,
    mtime: (i64, u32),
}

const META: Meta = Meta { permissions: 5, owner: 0, xattr: None, mtime: (1, 0) };

impl Meta {
    fn attributes(self, file_type: FileType) -> Attributes {
        let mode = file_type.bits() | 0o600 | u16::from(self.permissions);
        let xattrs = self.xattr.map(|value| Xattr { name: b"user.x".to_vec(), value: vec![value] });
        Attributes {
            mode,
            uid: self.owner.into(),
            gid: 7,
            xattrs: xattrs.into_iter().collect::<Vec<_>>().try_into().expect("they fit"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Regular(u32),
    Symlink(Vec<u8>),
    CharDevice(u32),
    BlockDevice(u32),
    Fifo,
    Socket,
}

impl What {
    fn file_type(&self) -> FileType {
        match self {
            Self::Regular(_) => FileType::Regular,
            Self::Symlink(_) => FileType::Symlink,
            Self::CharDevice(_) => FileType::CharDevice,
            Self::BlockDevice(_) => FileType::BlockDevice,
            Self::Fifo => FileType::Fifo,
            Self::Socket => FileType::Socket,
        }
    }

    fn node(&self) -> Node<'_> {
        match self {
            Self::Regular(content) => Node::Regular { content: *content },
            Self::Symlink(target) => Node::Symlink(target),
            Self::CharDevice(number) | Self::BlockDevice(number) => Node::Device(Device { major: 8, minor: *number }),
            Self::Fifo | Self::Socket => Node::Plain,
        }
    }
}

/// Directories and files; several names of one file are hard links.
#[derive(Clone, Debug)]
struct Tree {
    directories: Vec<(Meta, BTreeMap<Vec<u8>, Child>)>,
    files: Vec<(Meta, What)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Child {
    Directory(usize),
    File(usize),
}

impl Default for Tree {
    fn default() -> Self {
        Self { directories: vec![(META, BTreeMap::new())], files: Vec::new() }
    }
}

impl Tree {
    fn add_file(&mut self, directory: usize, name: &[u8], meta: Meta, what: What) {
        self.files.push((meta, what));
        let file = Child::File(self.files.len() - 1);
        self.directories[directory].1.insert(name.to_vec(), file);
    }

    fn add_directory(&mut self, directory: usize, name: &[u8], meta: Meta) -> usize {
        self.directories.push((meta, BTreeMap::new()));
        let added = self.directories.len() - 1;
        self.directories[directory].1.insert(name.to_vec(), Child::Directory(added));
        added
    }

    /// Returns directory, name and child of everything that can be reached.
    fn names(&self) -> Vec<(usize, Vec<u8>, Child)> {
        let mut found = Vec::new();
        let mut pending = vec![0];
        while let Some(directory) = pending.pop() {
            for (name, child) in &self.directories[directory].1 {
                found.push((directory, name.clone(), *child));
                if let Child::Directory(below) = child {
                    pending.push(*below);
                }
            }
        }
        found
    }

    /// Returns the numbers of directories that can be reached, the root first.
    fn reached(&self) -> Vec<usize> {
        let below = self.names().into_iter().filter_map(|(_, _, child)| match child {
            Child::Directory(directory) => Some(directory),
            Child::File(_) => None,
        });
        core::iter::once(0).chain(below).collect()
    }

    fn add_to(&self, builder: &mut IndexBuilder) {
        let directory = |builder: &mut IndexBuilder, directory: usize| {
            let (meta, children) = &self.directories[directory];
            let node = Node::Directory { children: number(children.len()).expect("they are few") };
            builder.inode(&meta.attributes(FileType::Directory), meta.mtime, node);
        };
        let mut inode_of = vec![None; self.files.len()];
        directory(builder, 0);
        let mut pending = vec![0];
        while let Some(next) = pending.pop() {
            let below = pending.len();
            for (name, child) in &self.directories[next].1 {
                match *child {
                    Child::Directory(child) => {
                        builder.entry(name, None);
                        directory(builder, child);
                        pending.push(child);
                    }
                    Child::File(file) => {
                        builder.entry(name, inode_of[file]);
                        if inode_of[file].is_none() {
                            let (meta, what) = &self.files[file];
                            let attributes = meta.attributes(what.file_type());
                            inode_of[file] = Some(builder.inode(&attributes, meta.mtime, what.node()));
                        }
                    }
                }
            }
            pending[below..].reverse();
        }
    }
}

fn object(content: u32) -> Object {
    Object { id: *blake3::hash(&content.to_le_bytes()).as_bytes(), size: u64::from(content) * 1000 }
}

fn index(refs: &[(&str, &Tree)]) -> Index {
    let mut builder = IndexBuilder::default();
    for (name, tree) in refs {
        builder.begin_ref(name);
        tree.add_to(&mut builder);
    }
    finished(builder)
}

fn finished(builder: IndexBuilder) -> Index {
    let objects: Vec<Object> = builder.contents().iter().map(|content| object(*content)).collect();
    let verity = *blake3::hash(&objects.iter().flat_map(|object| object.id).collect::<Vec<_>>()).as_bytes();
    let bytes = builder.finish(objects.into_iter(), &verity).expect("all of it fits");
    Index::parse(bytes, u64::MAX).expect("it is sound")
}

/// Returns the difference of two indexes.
fn between(base: &Index, wanted: &Index) -> Difference {
    Difference::between(base, &[], wanted, compress).expect("it can be compressed")
}

fn compress(prefix: &[u8], bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut context = zstd_safe::CCtx::create();
    let mut out = alloc::vec![0; zstd_safe::compress_bound(bytes.len())];
    let done = context.ref_prefix(prefix).and_then(|_| context.compress2(&mut out[..], bytes));
    out.truncate(done.map_err(|code| String::from(zstd_safe::get_error_name(code)))?);
    Ok(out)
}

/// Encodes and parses the difference of two indexes, and checks that it makes the wanted index from the base.
fn differ(base: &Index, wanted: &Index) -> Difference {
    let difference = between(base, wanted);
    let bytes = difference.encode().expect("it fits");
    let entries = wanted.entries().len().try_into().expect("they are few");
    let parsed = Difference::parse(&bytes, entries, wide(wanted.bytes().len()));
    assert_eq!(parsed.as_ref(), Ok(&difference));
    assert_eq!(difference.apply(&[base]).expect("it is the base").as_slice(), wanted.bytes());
    difference
}

/// Returns each edit with its path, as short text.
fn listed(difference: &Difference) -> Vec<String> {
    let edits = difference.edits().iter().filter(|edit| edit.op != Op::Within);
    let words = edits.map(|edit| {
        let path = String::from_utf8(difference.path(edit)).expect("it is text");
        let word = match edit.op {
            Op::Within => "within",
            Op::Named => "named",
            Op::Removed => "removed",
            Op::Added(_) => "added",
            Op::Replaced(_) => "replaced",
            Op::Linked(_) => "linked",
            Op::Relinked(_) => "relinked",
            Op::Changed(Changed { content: Some(_), .. }) => "content",
            Op::Changed(Changed { attributes: Some(_), .. }) => "attributes",
            Op::Changed(_) => "time",
        };
        alloc::format!("{word} {path}")
    });
    words.collect()
}

#[test]
fn nothing_changes() {
    let mut tree = Tree::default();
    let below = tree.add_directory(0, b"d", META);
    tree.add_file(below, b"f", META, What::Regular(1));
    let base = index(&[("a", &tree)]);
    let difference = differ(&base, &base);
    assert_eq!(difference.edits().len(), 1);
    assert_eq!(
        difference.encode().expect("it fits").len(),
        13 * 12 + (4 + 2 + 3) + (2 + 3 + 2) + (8 + 2) + 4 + 4 + 4 + 8 + 32
    );
}

#[test]
fn what_is_listed() {
    let mut tree = Tree::default();
    let gone = tree.add_directory(0, b"gone", META);
    tree.add_file(gone, b"f", META, What::Regular(1));
    let kept = tree.add_directory(0, b"kept", META);
    tree.add_file(kept, b"content", META, What::Regular(2));
    tree.add_file(kept, b"mode", META, What::Regular(2));
    tree.add_file(kept, b"same", META, What::Regular(3));
    tree.add_file(kept, b"time", META, What::Fifo);
    tree.add_file(kept, b"type", META, What::Regular(4));
    let base = index(&[("a", &tree)]);

    tree.directories[0].1.remove(&b"gone"[..]);
    tree.files[1].1 = What::Regular(9);
    tree.files[2].0.permissions = 7;
    tree.files[4].0.mtime = (2, 3);
    tree.files[5].1 = What::Symlink(b"same".to_vec());
    let new = tree.add_directory(kept, b"new", META);
    tree.add_file(new, b"g", META, What::Regular(1));
    tree.directories[new].1.insert(b"link".to_vec(), Child::File(3));
    let difference = differ(&base, &index(&[("a", &tree)]));
    let expected = [
        "removed gone",
        "content kept/content",
        "attributes kept/mode",
        "added kept/new",
        "named kept/same",
        "time kept/time",
        "replaced kept/type",
        "added kept/new/g",
        "linked kept/new/link",
    ];
    assert_eq!(listed(&difference), expected);
    assert_eq!(difference.objects(), [object(9)]);
    let carried = |name: EditedName<'_>| Some((name.path, name.carried?, name.size?));
    let expected = [(b"kept/content".to_vec(), Row::FIRST, 9000)];
    assert_eq!(difference.edited_names().filter_map(carried).collect::<Vec<_>>(), expected);
    let g = difference.edits().iter().find(|edit| difference.path(edit) == b"kept/new/g").expect("it is listed");
    assert_eq!(g.op.new_file().map(|file| file.content), Some(NewContent::Regular(Reference::Base(Row::FIRST))));
}

#[test]
fn a_directory_in_which_nothing_changes_is_not_named() {
    let mut tree = Tree::default();
    tree.add_directory(0, b"kept", META);
    let other = tree.add_directory(0, b"other", META);
    let base = index(&[("a", &tree)]);
    tree.add_file(other, b"f", META, What::Fifo);
    let difference = differ(&base, &index(&[("a", &tree)]));
    let names: Vec<&[u8]> = difference.edits().iter().map(|edit| difference.name(edit)).collect();
    assert_eq!(names, [&b""[..], b"other", b"f"]);
}

#[test]
fn what_is_below_a_new_directory() {
    let mut tree = Tree::default();
    let kept = tree.add_directory(0, b"kept", META);
    tree.add_file(0, b"file", META, What::Regular(1));
    let base = index(&[("a", &tree)]);

    tree.add_file(kept, b"f", META, What::Regular(2));
    let new = tree.add_directory(0, b"new", META);
    let deep = tree.add_directory(new, b"deep", META);
    tree.add_file(deep, b"g", META, What::Regular(3));
    let replaced = tree.add_directory(0, b"file", META);
    tree.add_file(replaced, b"h", META, What::Regular(4));
    let difference = differ(&base, &index(&[("a", &tree), ("b", &tree)]));
    let names = difference.edited_names();
    let (below, other): (Vec<_>, Vec<_>) = names.partition(|name| name.is_below_new);
    let of = |names: &[EditedName<'_>], reference: &str| {
        let own = names.iter().filter(|name| name.reference == reference);
        own.map(|name| String::from_utf8(name.path.clone()).expect("it is text")).collect::<Vec<_>>()
    };
    assert_eq!(of(&other, "a"), ["file", "new", "kept/f"]);
    assert_eq!(of(&below, "a"), ["file/h", "new/deep", "new/deep/g"]);
    assert_eq!(of(&other, "b"), [""]);
    assert_eq!(of(&below, "b").len(), 7);
}

#[test]
fn refs_come_and_go() {
    let mut one = Tree::default();
    one.add_file(0, b"f", META, What::Regular(1));
    let mut other = Tree::default();
    other.add_file(0, b"g", META, What::Regular(2));
    let base = index(&[("a", &one), ("b", &other)]);
    let difference = differ(&base, &index(&[("b", &other), ("c", &one), ("d", &other)]));
    let from: Vec<_> = difference.refs().iter().map(|edited| edited.from).collect();
    assert_eq!(from, [Some(1), Some(0), None]);
    differ(&base, &index(&[("z", &Tree::default())]));
}

#[test]
fn a_deep_path() {
    let mut tree = Tree::default();
    let mut directory = 0;
    for _ in 0..20_000 {
        directory = tree.add_directory(directory, b"d", META);
    }
    tree.add_file(directory, b"f", META, What::Regular(1));
    let base = index(&[("a", &tree)]);
    tree.files[0].1 = What::Regular(2);
    let difference = differ(&base, &index(&[("a", &tree)]));
    assert_eq!(difference.path(difference.edits().last().expect("there are edits")).len(), 40_001);
}

/// What to do to a tree.
#[derive(Clone, Debug)]
enum Step {
    Remove(Pick),
    Put(Pick, Vec<u8>, Meta, Option<What>),
    Link(Pick, Pick, Vec<u8>),
    Move(Pick, Pick, Vec<u8>),
    Become(Pick, What),
    Dress(Pick, Meta),
    AllTimes(i64, i64),
}

fn some_meta() -> impl Strategy<Value = Meta> {
    (0..3_u8, 0..2_u8, proptest::option::weighted(0.2, 0..2_u8), (0..4_i64, 0..2_u32))
        .prop_map(|(permissions, owner, xattr, mtime)| Meta { permissions, owner, xattr, mtime })
}

fn some_what() -> impl Strategy<Value = What> {
    prop_oneof![
        6 => (0..9_u32).prop_map(What::Regular),
        1 => prop::collection::vec(b'a'..b'c', 1..3).prop_map(What::Symlink),
        1 => (0..2_u32).prop_map(What::CharDevice),
        1 => (0..2_u32).prop_map(What::BlockDevice),
        1 => Just(What::Fifo),
        1 => Just(What::Socket),
    ]
}

fn some_step() -> impl Strategy<Value = Step> {
    let name = || prop::collection::vec(b'a'..=b'd', 1..=2);
    let pick = any::<Pick>;
    prop_oneof![
        1 => pick().prop_map(Step::Remove),
        6 => (pick(), name(), some_meta(), proptest::option::weighted(0.7, some_what()))
            .prop_map(|(directory, name, meta, what)| Step::Put(directory, name, meta, what)),
        2 => (pick(), pick(), name()).prop_map(|(file, directory, name)| Step::Link(file, directory, name)),
        1 => (pick(), pick(), name()).prop_map(|(file, directory, name)| Step::Move(file, directory, name)),
        1 => (pick(), some_what()).prop_map(|(file, what)| Step::Become(file, what)),
        1 => (pick(), some_meta()).prop_map(|(file, meta)| Step::Dress(file, meta)),
        1 => (0..4_i64, 0..4_i64).prop_map(|(from, to)| Step::AllTimes(from, to)),
    ]
}

fn take(tree: &mut Tree, step: &Step) {
    let names = tree.names();
    let files: Vec<usize> = names
        .iter()
        .filter_map(|(_, _, child)| match child {
            Child::File(file) => Some(*file),
            Child::Directory(_) => None,
        })
        .collect();
    let directory = |pick: &Pick| *pick.get(&tree.reached());
    match step {
        Step::Put(pick, name, meta, Some(what)) => tree.add_file(directory(pick), name, *meta, what.clone()),
        Step::Put(pick, name, meta, None) => drop(tree.add_directory(directory(pick), name, *meta)),
        Step::AllTimes(from, to) => {
            let metas = tree.files.iter_mut().map(|file| &mut file.0);
            let metas = metas.chain(tree.directories.iter_mut().map(|directory| &mut directory.0));
            metas.filter(|meta| meta.mtime.0 == *from).for_each(|meta| meta.mtime.0 = *to);
        }
        _ if names.is_empty() => {}
        Step::Remove(pick) => {
            let (directory, name, _) = pick.get(&names);
            tree.directories[*directory].1.remove(name);
        }
        Step::Dress(pick, meta) => match pick.get(&names).2 {
            Child::Directory(directory) => tree.directories[directory].0 = *meta,
            Child::File(file) => tree.files[file].0 = *meta,
        },
        _ if files.is_empty() => {}
        Step::Link(file, pick, name) => {
            let file = *file.get(&files);
            let directory = directory(pick);
            tree.directories[directory].1.insert(name.clone(), Child::File(file));
        }
        Step::Move(pick, to, new_name) => {
            let (from, name, child) = pick.get(&names);
            tree.directories[*from].1.remove(name);
            // If a directory were moved below itself, it could not be reached any more; those below it cannot be reached now.
            let to = *to.get(&tree.reached());
            tree.directories[to].1.insert(new_name.clone(), *child);
        }
        Step::Become(file, what) => tree.files[*file.get(&files)].1 = what.clone(),
    }
}

fn some_steps(len: usize) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(some_step(), 0..len)
}

fn grown(mut tree: Tree, steps: &[Step]) -> Tree {
    steps.iter().for_each(|step| take(&mut tree, step));
    tree
}

fn some_pair() -> impl Strategy<Value = (Index, Index)> {
    let name = || prop::sample::select(&["a", "b", "c"][..]);
    let tree = || (name(), some_steps(30), some_steps(12));
    (prop::collection::vec(tree(), 1..3), prop::collection::vec((name(), any::<Pick>(), some_steps(6)), 0..2)).prop_map(
        |(trees, others)| {
            let base: BTreeMap<&str, Tree> =
                trees.iter().map(|(name, steps, _)| (*name, grown(Tree::default(), steps))).collect();
            let mut wanted = base.clone();
            for (name, _, steps) in &trees {
                let own = wanted.remove(name).unwrap_or_default();
                wanted.insert(name, grown(own, steps));
            }
            for (name, from, steps) in &others {
                let names: Vec<&str> = wanted.keys().copied().collect();
                let from = wanted.remove(*from.get(&names)).unwrap_or_default();
                wanted.insert(name, grown(from, steps));
            }
            let index_of = |trees: &BTreeMap<&str, Tree>| {
                index(&trees.iter().map(|(name, tree)| (*name, tree)).collect::<Vec<_>>())
            };
            (index_of(&base), index_of(&wanted))
        },
    )
}

/// Positions, and the bytes to write there. Small bytes, which are valid numbers, are more frequent.
fn some_flips() -> impl Strategy<Value = Vec<(Pick, u8)>> {
    prop::collection::vec((any::<Pick>(), prop_oneof![4 => 0..12_u8, 1 => any::<u8>()]), 1..3)
}

/// Lists everything that can be listed.
fn list_all(difference: &Difference) {
    for edit in difference.edits() {
        assert!(edit.parent.is_none() || !difference.path(edit).is_empty());
        assert!(
            difference.file_type(edit).is_some() || !matches!(edit.op, Op::Within | Op::Added(_) | Op::Replaced(_))
        );
        if let Some(file) = edit.op.new_file() {
            assert!(file.attributes.get(difference.attribute_rows()).is_some());
            if let NewContent::Symlink(symlink) = file.content {
                assert!(!difference.symlink_target(symlink).is_empty());
            }
        }
    }
}

/// The length in bytes of the longest index that a damaged difference may make.
const INDEX_LEN: u64 = 1 << 20;

/// Parses and applies a difference of which some bytes were changed and the last may be missing. An index may have `entries` entries.
fn take_damaged(
    base: &Index,
    mut bytes: Vec<u8>,
    flips: Vec<(Pick, u8)>,
    cut: usize,
    entries: u64,
) -> Result<(), TestCaseError> {
    for (at, byte) in flips {
        let at = at.index(bytes.len());
        bytes[at] = byte;
    }
    bytes.truncate(bytes.len() - cut.saturating_sub(1));
    if let Ok(parsed) = Difference::parse(&bytes, u64::MAX, INDEX_LEN) {
        prop_assert_eq!(parsed.encode().expect("it fits"), bytes.as_slice());
        list_all(&parsed);
        if let Ok(made) = parsed.apply(&[base]) {
            // The result is not larger than base and difference allow.
            prop_assert!(
                made.len()
                    <= base.bytes().len() + 16 * bytes.len() + at(u32::try_from(INDEX_LEN).expect("it is small"))
            );
            let _ = Index::parse(made, entries);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_pair_comes_back((base, wanted) in some_pair()) {
        let difference = differ(&base, &wanted);
        list_all(&difference);
        let lacking: Vec<Object> =
            wanted.objects().iter().filter(|object| !base.objects().contains(object)).copied().collect();
        prop_assert_eq!(difference.objects(), lacking);
        differ(&wanted, &base);
    }

    #[test]
    fn another_base_gives_other_bytes_or_none((base, wanted) in some_pair(), (other, _) in some_pair()) {
        let mut difference = between(&base, &wanted);
        // As if the other base happened to have the same number of objects and the same refs.
        difference.base_objects = number(other.objects().len()).expect("they are few");
        difference.base_refs = between(&other, &other).base_refs;
        if let Ok(parsed) = Difference::parse(&difference.encode().expect("it fits"), u64::MAX, u64::MAX) {
            let _ = parsed.apply(&[&other]);
        }
        let _ = between(&base, &wanted).apply(&[&other]);
    }

    #[test]
    fn no_other_bytes_are_taken(
        (base, wanted) in some_pair(), flips in some_flips(), cut in 0..3_usize,
    ) {
        take_damaged(&base, between(&base, &wanted).encode().expect("it fits"), flips, cut, u64::MAX)?;
    }
}
