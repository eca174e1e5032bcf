//! The difference of OSTree commits (spec 6.7.5).

use super::delta::{accept_delta, on, reject_delta};
use super::ostree::{history, plain, tree, with_commit, with_history};
use super::*;
use crate::bundle::Attributes;
use crate::bytes::narrow;
use crate::delta::{OsTreeDifference, within};
use crate::ostree::{commit, dirmeta, file_checksum};
use crate::tree::Node;

pub(super) fn vectors() -> Vec<Vector> {
    let good = accept_delta(
        "good-delta-ostree",
        "a new commit on top of the base's, a summary, and edits of dirtrees of all kinds",
        newer(),
        vec![("good-ostree", with_commit())],
    );
    let history = accept_delta(
        "good-delta-ostree-history",
        "commits that the base has, one with its commitmeta and one with a new one, a second ref to the first, and refs that go",
        of_history(),
        vec![("good-ostree-history", with_history())],
    );
    [vec![good, history], sections(), objects(), trees(), files(), refs(), misfits()].into_iter().flatten().collect()
}

/// Returns the new directory `b`.
fn b() -> Node {
    dir([("c", dir([])), ("u", file("more\n"))]).mode(0o700)
}

fn new_tree() -> Node {
    let n = dir([("x", file("two\n").mode(0o4755))]);
    dir([("a", file("new\n")), ("b", b()), ("l", symlink("a")), ("n", n), ("y", symlink("b")), ("z", file(""))])
}

/// Returns a commit on top of the one of `good-ostree`. The base's metadata objects 0 to 4 are the commit, the dirmeta of all directories, and the
/// dirtrees of the root, `b`, and `b/c`; files 0 to 3 are `a` (and `b/t`), `l`, `s` and `z`. The delta carries the dirmeta of `b`, the dirtrees
/// of the root, `b` and `n`, and the files `a`, `y` and `b/u`, with objects 0 and 1.
fn newer() -> Bundle {
    let base = with_commit();
    let commits = vec![commit(new_tree()), commit(tree())];
    let mut wanted = Bundle::with_commits(&[], &[("os/stable", commits)], Packing::default());
    let summary = vec![(1, b"a summary".to_vec())];
    let of = |bundle: &Bundle| bundle.index.ostree.clone().expect("it has a commit");
    if let Some(ostree) = &mut wanted.index.ostree {
        ostree.repository_files = summary.clone();
    }
    let newest = of(&wanted).objects[0].1.clone();
    let mut delta = wanted.relative_to(&[&base], &[(1, None)], Packing::default());
    let difference = delta.difference();
    let rows = [file(""), symlink("b"), file("")].map(|node| difference.attribute_row(&node));
    let sums = [file("new\n"), symlink("b"), file("more\n")].map(|node| file_checksum(&node));
    let named = |op: u8, name: &str| (op, name.as_bytes().to_vec());
    difference.ostree = Some(OsTreeDifference {
        base_objects: narrow(of(&base).objects.len()),
        base_files: narrow(of(&base).rows.len()),
        commits: vec![(0, 0), (1, 0)],
        carried: vec![newest],
        beside: Vec::new(),
        dirmetas: vec![dirmeta(&b())],
        trees: vec![
            (3, vec![named(2, "a"), named(7, "b"), named(3, "n"), named(0, "s"), named(1, "y")]),
            (4, vec![named(0, "t"), named(1, "u")]),
            (0, vec![named(1, "x")]),
        ],
        files: sums.into_iter().zip(rows).collect(),
        regulars: vec![0, 1],
        targets: vec![b"b".to_vec()],
        named: [vec![0, 1, 2, 5], vec![0, 1, 2], vec![2, 0, 2]],
        refs: vec![(0, 0, Vec::new())],
        repository_files: summary,
    });
    delta
}

/// Returns the newest commit of `os/stable` and its parent, with a new commitmeta, for two refs; of the trees only `apps` is kept.
fn of_history() -> Bundle {
    let base = with_history();
    let [newest, mut parent] = history();
    parent.beside = Some(Vec::new());
    let commits = [("os/stable", vec![newest, parent])];
    let mut wanted = Bundle::with_commits(&[("apps", plain())], &commits, Packing::default());
    let collection = b"org.example.Os".to_vec();
    wanted.index.refs.push((1, b"os/then".to_vec()));
    if let Some(ostree) = &mut wanted.index.ostree {
        ostree.commits.push(1);
        ostree.collections.push(collection.clone());
        let grown = ostree.grown.clone();
        ostree.grown.entries += grown.entries;
        ostree.grown.inodes += grown.inodes;
        ostree.grown.objects.extend(grown.objects);
        ostree.grown.disk += grown.disk;
    }
    let theirs = base.index.ostree.clone().expect("it has commits");
    let changes = [(1, Some(within("", []))), (2, None), (0, None)];
    let mut delta = wanted.relative_to(&[&base], &changes, Packing::default());
    let commits = (1..).zip(&theirs.objects).filter(|(_, object)| object.0 == 4).map(|(number, _)| number);
    delta.difference().ostree = Some(OsTreeDifference {
        base_objects: narrow(theirs.objects.len()),
        base_files: narrow(theirs.rows.len()),
        commits: commits.zip([1, 2]).collect(),
        beside: vec![Vec::new()],
        refs: vec![(0, 0, Vec::new()), (0, 1, collection)],
        ..OsTreeDifference::default()
    });
    delta
}

fn reject_ostree(name: &str, kind: &str, comment: &str, change: impl FnOnce(&mut OsTreeDifference)) -> Vector {
    reject_from(newer(), name, kind, comment, |b| change(b.difference().ostree.as_mut().expect("it has a commit")))
}

fn index(name: &str, comment: &str, change: fn(&mut OsTreeDifference)) -> Vector {
    reject_ostree(name, "index", comment, change)
}

fn sections() -> Vec<Vector> {
    vec![
        reject_from(newer(), "difference-ostree-missing", "index", "a ref of kind 1, and no section 14", |b| {
            b.difference().ostree = None;
        }),
        reject_delta("difference-ostree-left", "index", "section 14 without a ref of kind 1", |b| {
            b.difference().ostree = Some(OsTreeDifference::default());
        }),
    ]
}

fn objects() -> Vec<Vector> {
    vec![
        index("difference-ostree-commit-unknown", "a commit is object 5 of a base that has five", |o| {
            o.commits[1].0 = 6;
        }),
        index("difference-ostree-beside", "beside a commit is a thing of kind 3", |o| o.commits[1].1 = 3),
        index("difference-ostree-beside-new", "beside a commit that comes is what the base has of it", |o| {
            o.commits[0].1 = 1;
        }),
        index("difference-ostree-commit-form", "a commit with a byte too many", |o| o.carried[0].push(0)),
        index("difference-ostree-commitmeta-form", "a commitmeta of one byte", |o| {
            o.commits[0].1 = 2;
            o.beside = vec![vec![1]];
        }),
        index("difference-ostree-dirmeta-form", "a dirmeta with a byte too few", |o| {
            o.dirmetas[0].pop();
        }),
        index("difference-ostree-dirmeta-order", "the second dirmeta is come to before the first", |o| {
            o.dirmetas.insert(0, dirmeta(&dir([]).mode(0o711)));
            o.named[2] = vec![3, 1, 0];
        }),
        index("difference-ostree-dirmeta-left", "a dirmeta that nothing comes to", |o| {
            o.dirmetas.push(dirmeta(&dir([]).mode(0o711)));
            o.named[2] = vec![3, 0, 3];
        }),
    ]
}

fn trees() -> Vec<Vector> {
    vec![
        index("difference-ostree-like-unknown", "a dirtree is like object 5 of a base that has five", |o| {
            o.trees[1].0 = 6;
        }),
        index("difference-ostree-like-twice", "two dirtrees are like the same one", |o| o.trees[1].0 = 3),
        index("difference-ostree-like-same", "a dirtree has no edits and is like one of the base", |o| {
            o.trees[2] = (5, Vec::new());
            o.named[0].pop();
        }),
        reject_ostree("difference-ostree-name", "path", "a slash in a name", |o| o.trees[0].1[4].1 = b"y/".to_vec()),
        index("difference-ostree-name-utf8", "a name that is no UTF-8", |o| o.trees[0].1[4].1 = b"\xff".to_vec()),
        index("difference-ostree-names-order", "s stands behind t", |o| o.trees[1].1[1].1 = b"s".to_vec()),
        index("difference-ostree-op", "an edit of op 8", |o| o.trees[0].1[3].0 = 8),
        index("difference-ostree-op-new", "a file is replaced in a dirtree that is like none", |o| {
            o.trees[2].1[0].0 = 2;
        }),
        index("difference-ostree-tree-order", "the last dirtree is come to before the second", |o| {
            o.trees.swap(1, 2);
            (o.named[0], o.named[1]) = (vec![0, 1, 5, 2], vec![0, 2, 1]);
        }),
        index("difference-ostree-tree-left", "a dirtree that nothing comes to", |o| o.trees.push((0, Vec::new()))),
        index("difference-ostree-cycle", "a dirtree is below itself", |o| {
            o.trees[2].1[0].0 = 3;
            o.named[0].pop();
            o.named[1].push(0);
            o.named[2].push(2);
        }),
    ]
}

fn files() -> Vec<Vector> {
    vec![
        reject_from(
            newer(),
            "difference-ostree-file-type",
            "index",
            "the last file has a directory's attributes",
            |b| {
                let difference = b.difference();
                difference.attributes.push(Attributes { mode: 0o040_755, ..Attributes::default() });
                difference.ostree.as_mut().expect("it has a commit").files[2].1 = 2;
            },
        ),
        index("difference-ostree-file-twice", "two files have one checksum", |o| o.files[2].0 = o.files[0].0),
        index("difference-ostree-file-unknown", "an edit names file 4 of a base that has four", |o| o.named[0][3] = 7),
        index("difference-ostree-tree-unknown", "an edit names dirtree 5 of a base that has five objects", |o| {
            o.trees.pop();
            o.named[0].pop();
            o.named[1][2] = 7;
        }),
        index("difference-ostree-meta-unknown", "an edit names dirmeta 5 of a base that has five objects", |o| {
            o.named[2][2] = 6;
        }),
    ]
}

fn refs() -> Vec<Vector> {
    vec![
        index("difference-ostree-ref-commit", "a ref names the third of two commits", |o| o.refs[0].0 = 2),
        index("difference-ostree-ref-known", "a commit is known in the way 2", |o| o.refs[0].1 = 2),
        index("difference-ostree-collection", "a collection id of one element", |o| {
            o.refs[0].2 = b"example".to_vec();
        }),
        index("difference-ostree-repository-order", "summary.sig stands before summary", |o| {
            o.repository_files.insert(0, (2, Vec::new()));
        }),
        index("difference-ostree-repository-kind", "a file of kind 5", |o| o.repository_files.push((5, Vec::new()))),
    ]
}

/// Returns the faults that only the base reveals.
fn misfits() -> Vec<Vector> {
    let index = |name, comment, change| on(&["good-ostree"], index(name, comment, change));
    vec![
        index("difference-ostree-base-objects", "the difference is to a base of an object more", |o| {
            o.base_objects += 1;
        }),
        index("difference-ostree-base-files", "the difference is to a base of a file more", |o| o.base_files += 1),
        index("difference-ostree-commit-type", "a commit is a dirmeta of the base", |o| o.commits[1].0 = 2),
        index("difference-ostree-beside-none", "the base has nothing beside its commit", |o| o.commits[1].1 = 1),
        index("difference-ostree-like-type", "a dirtree is like a dirmeta of the base", |o| o.trees[1].0 = 2),
        index("difference-ostree-tree-type", "a directory has a dirmeta of the base as its dirtree", |o| {
            o.trees.pop();
            o.named[0].pop();
            o.named[1][2] = 3;
        }),
        index("difference-ostree-meta-type", "a directory has a dirtree of the base as its dirmeta", |o| {
            o.named[2][2] = 3;
        }),
        index("difference-ostree-name-missing", "a name goes that the base does not have", |o| {
            o.trees[0].1[3].1 = b"t".to_vec();
        }),
        index("difference-ostree-name-there", "a name comes that the base has", |o| {
            o.trees[0].1[4].1 = b"z".to_vec();
        }),
        index("difference-ostree-replaces", "a directory comes in place of a directory", |o| o.trees[0].1[1].0 = 4),
        index("difference-ostree-changes", "a file stays as a directory", |o| o.trees[0].1[1].1 = b"l".to_vec()),
        index("difference-ostree-root", "a name stays that the commit does not have", |o| {
            o.trees[0].1.remove(3);
        }),
        index("difference-ostree-files-order", "two carried files have changed places", |o| {
            o.files.swap(0, 2);
            (o.regulars, o.named[0]) = (vec![1, 0], vec![2, 1, 0, 5]);
        }),
    ]
}
