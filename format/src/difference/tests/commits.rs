//! Differences of OSTree commits.

use alloc::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

use super::*;
use crate::index::OsTreeKind;
use crate::ostree::file::FileObjectHasher;
use crate::ostree::{Checksum, Commit, Dictionary, DirTree, dirmeta};

/// A commit to be added to an index: its tree, and whether it has a commitmeta.
type Version<'a> = (&'a Tree, bool);

/// The objects of commits, each once.
#[derive(Default)]
struct Commits {
    met: BTreeMap<(OsTreeKind, Checksum), u32>,
    met_files: BTreeSet<Checksum>,
    files: Vec<(Attributes, What)>,
}

fn sum(bytes: &[u8]) -> Checksum {
    Sha256::digest(bytes).into()
}

/// Replaces types that an OSTree repository cannot hold.
fn plain(what: &What) -> What {
    match what {
        What::Regular(_) | What::Symlink(_) => what.clone(),
        _ => What::Regular(3),
    }
}

fn file_sum(attributes: &Attributes, what: &What) -> Checksum {
    match what {
        What::Symlink(target) => {
            FileObjectHasher::new(attributes, core::str::from_utf8(target).expect("it is text")).finish()
        }
        What::Regular(content) => {
            let mut hasher = FileObjectHasher::new(attributes, "");
            hasher.update(&content.to_le_bytes());
            hasher.finish()
        }
        _ => [0; 32],
    }
}

impl Commits {
    fn put(&mut self, builder: &mut IndexBuilder, kind: OsTreeKind, bytes: &[u8]) -> bool {
        let key = (kind, sum(bytes));
        if self.met.contains_key(&key) {
            return false;
        }
        let number = builder.ostree_object(kind, bytes);
        self.met.insert(key, number);
        true
    }

    /// Adds a history, whose oldest version comes first.
    fn add_ref(&mut self, builder: &mut IndexBuilder, name: &str, history: &[Version<'_>]) {
        let mut commits: Vec<Vec<u8>> = Vec::new();
        for (tree, _) in history {
            let parent = commits.last().map(|parent| sum(parent));
            let commit = Commit {
                metadata: Dictionary::parse(&[]).expect("it is empty"),
                collection_binding: None,
                parent: parent.as_ref(),
                related: &[],
                subject: "a version",
                body: "",
                timestamp: 7,
                root_tree: &sum(&dirtree(tree, 0)),
                root_meta: &sum(&meta(tree, 0)),
            };
            commits.push(commit.encode());
        }
        let tip = commits.last().map(|tip| sum(tip)).unwrap_or_default();
        let known = self.met.get(&(OsTreeKind::Commit, tip)).copied();
        for (commit, (tree, has_beside)) in commits.iter().zip(history).rev() {
            if !self.put(builder, OsTreeKind::Commit, commit) {
                break;
            }
            if *has_beside {
                builder.ostree_object(OsTreeKind::CommitMeta, &[]);
            }
            self.put(builder, OsTreeKind::DirMeta, &meta(tree, 0));
            self.add_tree(builder, tree, 0);
        }
        builder.commit_ref(name, known, if name == "a" { "org.example" } else { "" });
    }

    fn add_tree(&mut self, builder: &mut IndexBuilder, tree: &Tree, directory: usize) {
        if !self.put(builder, OsTreeKind::DirTree, &dirtree(tree, directory)) {
            return;
        }
        let mut below = Vec::new();
        for child in tree.directories[directory].1.values() {
            match *child {
                Child::File(file) => {
                    let (meta, what) = &tree.files[file];
                    let what = plain(what);
                    let attributes = meta.attributes(what.file_type());
                    if self.met_files.insert(file_sum(&attributes, &what)) {
                        self.files.push((attributes, what));
                    }
                }
                Child::Directory(child) => {
                    below.push(child);
                }
            }
        }
        for child in &below {
            self.put(builder, OsTreeKind::DirMeta, &meta(tree, *child));
        }
        below.iter().for_each(|child| self.add_tree(builder, tree, *child));
    }
}

fn meta(tree: &Tree, directory: usize) -> Vec<u8> {
    dirmeta::encode(&tree.directories[directory].0.attributes(FileType::Directory))
}

fn dirtree(tree: &Tree, directory: usize) -> Vec<u8> {
    let children = &tree.directories[directory].1;
    let (mut files, mut directories) = (Vec::new(), Vec::new());
    for (name, child) in children {
        match *child {
            Child::File(file) => {
                let (meta, what) = &tree.files[file];
                let what = plain(what);
                files.push((&name[..], file_sum(&meta.attributes(what.file_type()), &what)));
            }
            Child::Directory(child) => {
                directories.push((&name[..], sum(&dirtree(tree, child)), sum(&meta(tree, child))));
            }
        }
    }
    DirTree {
        files: files.iter().map(|(name, file)| (*name, file)).collect(),
        directories: directories.iter().map(|(name, tree, meta)| (*name, tree, meta)).collect(),
    }
    .encode()
}

/// Returns an index of refs, each a tree or a history.
fn mixed(refs: &[(&str, Result<&Tree, Vec<Version<'_>>>)]) -> Index {
    let mut builder = IndexBuilder::default();
    let mut commits = Commits::default();
    for (name, what) in refs {
        match what {
            Ok(tree) => {
                builder.begin_ref(name);
                tree.add_to(&mut builder);
            }
            Err(history) => commits.add_ref(&mut builder, name, history),
        }
    }
    for (attributes, what) in &commits.files {
        builder.ostree_file(attributes, what.node());
    }
    finished(builder)
}

#[test]
fn a_commit_changes() {
    let mut tree = Tree::default();
    let kept = tree.add_directory(0, b"kept", META);
    tree.add_file(kept, b"f", META, What::Regular(1));
    let edited = tree.add_directory(0, b"edited", META);
    tree.add_file(edited, b"f", META, What::Regular(1));
    tree.add_file(edited, b"g", META, What::Regular(2));
    let before = tree.clone();
    let base = mixed(&[("a", Err(vec![(&before, true)]))]);
    let unchanged = differ(&base, &base);
    assert!(unchanged.ostree().is_some_and(|ostree| ostree.files().is_empty()));

    tree.files[2].1 = What::Regular(9);
    tree.directories[0].1.remove(&b"kept"[..]);
    let moved = tree.add_directory(0, b"moved", META);
    tree.add_file(moved, b"f", META, What::Regular(1));
    let wanted = mixed(&[("a", Err(vec![(&before, true), (&tree, true)]))]);
    let difference = differ(&base, &wanted);
    assert_eq!(difference.objects(), [object(9)]);
    let ostree = difference.ostree().expect("there is a commit");
    assert_eq!(ostree.commits().len(), 2);
    assert!(matches!(ostree.commits()[0].commit, CommitObject::Carried(_)));
    assert_eq!(ostree.commits()[0].beside, Beside::Carried(Vec::new()));
    assert!(matches!(ostree.commits()[1].commit, CommitObject::Base(_)));
    assert_eq!(ostree.commits()[1].beside, Beside::OfBase);
    assert_eq!(ostree.files().len(), 1);
    assert_eq!(listed(&difference), [""; 0]);
}

#[test]
fn links_change_in_a_commit_and_in_a_tree() {
    let link = |target: &[u8]| {
        let mut tree = Tree::default();
        tree.add_file(0, b"l", META, What::Symlink(target.to_vec()));
        tree
    };
    let pair = |commit: &Tree, tree: &Tree| mixed(&[("a", Err(vec![(commit, false)])), ("b", Ok(tree))]);
    differ(&pair(&link(b"old"), &link(b"old")), &pair(&link(b"of a commit"), &link(b"of a tree")));
}

/// The second of two equal directories is not stored like the first one, which already covers everything carried below it.
#[test]
fn a_dirtree_at_two_places() {
    let base = mixed(&[("a", Err(vec![(&Tree::default(), false)]))]);
    let mut tree = Tree::default();
    for name in [&b"d"[..], b"e"] {
        let below = tree.add_directory(0, name, META);
        let deeper = tree.add_directory(below, b"x", META);
        tree.add_file(deeper, b"f", META, What::Regular(1));
    }
    differ(&base, &mixed(&[("a", Err(vec![(&tree, false)]))]));
    // The root of the parent is below the root of its child.
    let mut above = Tree::default();
    let below = above.add_directory(0, b"x", META);
    above.add_file(below, b"f", META, What::Regular(1));
    differ(&base, &mixed(&[("a", Err(vec![(&above, false), (&tree, false)]))]));
}

/// Returns a base, and the difference to a tree with a new directory, file and dirmeta.
fn sample() -> (Index, Difference) {
    let mut tree = Tree::default();
    let below = tree.add_directory(0, b"d", META);
    tree.add_file(below, b"f", META, What::Regular(1));
    tree.add_file(0, b"f", META, What::Regular(1));
    let base = mixed(&[("a", Err(vec![(&tree, true)]))]);
    tree.files[0].1 = What::Regular(2);
    tree.files[1].1 = What::Symlink(b"d".to_vec());
    let new = tree.add_directory(0, b"n", Meta { permissions: 1, ..META });
    tree.add_file(new, b"g", META, What::Regular(3));
    let difference = differ(&base, &mixed(&[("a", Err(vec![(&tree, true)]))]));
    (base, difference)
}

/// An index can be read without checking that a file's content matches its checksum (ostree 5).
#[test]
fn a_file_of_one_checksum_and_another_object() {
    let mut tree = Tree::default();
    tree.add_file(0, b"f", META, What::Regular(1));
    tree.add_file(0, b"g", META, What::Regular(2));
    let with = |content: u32| {
        let (mut builder, mut commits) = (IndexBuilder::default(), Commits::default());
        commits.add_ref(&mut builder, "a", &[(&tree, false)]);
        commits.files[0].1 = What::Regular(content);
        commits.files.iter().for_each(|(attributes, what)| builder.ostree_file(attributes, what.node()));
        finished(builder)
    };
    let refused = Difference::between(&with(1), &[], &with(5), compress).expect_err("one of the two is false");
    assert!(refused.contains("another content than its checksum"), "{refused}");
}

#[test]
fn rules_of_the_bytes() {
    let refused = |change: &dyn Fn(&mut OsTreeDifference), rule: &str| {
        let (_, mut difference) = sample();
        difference.ostree.as_mut().into_iter().for_each(change);
        let error = Difference::parse(&difference.encode().expect("it fits"), u64::MAX, INDEX_LEN).expect_err(rule);
        assert!(alloc::format!("{error}").contains(rule), "{error} is not: {rule}");
    };
    OsTreeDifference::breaks().into_iter().for_each(|(change, rule)| refused(&change, rule));
    let (_, mut difference) = sample();
    difference.ostree = None;
    assert!(Difference::parse(&difference.encode().expect("it fits"), u64::MAX, u64::MAX).is_err());
    let bytes = sample().1.encode().expect("it fits");
    assert!((0..bytes.len()).all(|len| Difference::parse(&bytes[..len], u64::MAX, u64::MAX).is_err()));
}

#[test]
fn rules_of_the_base() {
    let (base, difference) = sample();
    for (change, rule) in OsTreeDifference::misfits() {
        let mut difference = difference.clone();
        difference.ostree.as_mut().into_iter().for_each(change);
        let error = difference.apply(&[&base]).expect_err(rule);
        assert!(alloc::format!("{error}").contains(rule), "{error} is not: {rule}");
    }
}

/// Refs by name: a tree, or a history.
fn some_pair() -> impl Strategy<Value = (Index, Index)> {
    let name = || prop::sample::select(&["a", "b", "c", "d"][..]);
    // The steps of each version except the first change the version before it.
    let one = || (name(), some_steps(25), some_steps(6), some_steps(4), 0..6_u8, any::<[bool; 3]>(), 0..4_u8);
    prop::collection::vec(one(), 1..4).prop_map(|refs| {
        let grown: Vec<_> = refs
            .iter()
            .map(|(_, first, second, third, ..)| {
                let first = grown(Tree::default(), first);
                let second = grown(first.clone(), second);
                (first, second.clone(), grown(second, third))
            })
            .collect();
        let (mut base, mut wanted) = (BTreeMap::new(), BTreeMap::new());
        for ((name, _, _, _, shape, beside, fate), (first, second, third)) in refs.iter().zip(&grown) {
            let (old, new) = match shape {
                0 => (Ok(first), Ok(second)),
                1 => (Ok(first), Err(vec![(second, beside[0])])),
                2 => (Err(vec![(first, beside[0])]), Err(vec![(second, beside[1])])),
                3 => (Err(vec![(first, beside[0])]), Err(vec![(first, beside[1]), (second, beside[2])])),
                4 => (
                    Err(vec![(first, beside[0])]),
                    Err(vec![(first, beside[0]), (second, beside[1]), (third, beside[2])]),
                ),
                _ => (Err(vec![(first, false), (second, true)]), Err(vec![(first, beside[0])])),
            };
            if *fate != 0 {
                base.insert(*name, old);
            }
            if *fate != 1 {
                wanted.insert(if *fate == 2 { "e" } else { *name }, new);
            }
        }
        let nothing = Tree::default();
        let index_of = |refs: &mut BTreeMap<&'static str, Result<_, _>>| {
            if refs.is_empty() {
                refs.insert("z", Ok(&nothing));
            }
            let refs: Vec<_> = refs.iter().map(|(name, what)| (*name, what.clone())).collect();
            mixed(&refs)
        };
        (index_of(&mut base), index_of(&mut wanted))
    })
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
        let as_if = between(&other, &other);
        difference.base_objects = as_if.base_objects;
        if difference.base_refs.len() <= as_if.base_refs.len() {
            difference.base_refs = as_if.base_refs;
        }
        if let Ok(parsed) = Difference::parse(&difference.encode().expect("it fits"), u64::MAX, u64::MAX) {
            let _ = parsed.apply(&[&other]);
        }
        let _ = between(&base, &wanted).apply(&[&other]);
    }

    #[test]
    fn no_other_bytes_are_taken(
        (base, wanted) in some_pair(), flips in some_flips(), cut in 0..3_usize,
    ) {
        take_damaged(&base, between(&base, &wanted).encode().expect("it fits"), flips, cut, 100_000)?;
    }
}
