//! The difference of OSTree commits (ostree 8).

use super::delta::{accept_delta, on, reject_delta};
use super::ostree::{history, plain, tree, with_commit, with_history};
use super::*;
use crate::bundle::Attributes;
use crate::delta::{OsTreeDifference, within};
use crate::frame::{RawFrame, frame};
use crate::ostree::{Commit, commit, dirmeta, dirtree, sha256};
use crate::tree::{Node, What};

pub(super) fn vectors() -> Vec<Vector> {
    let good = accept_delta(
        "good-delta-ostree",
        "a new commit on top of the base's, a summary, and carried dirtrees",
        newer(),
        &["good-ostree"],
    );
    let history = accept_delta(
        "good-delta-ostree-history",
        "commits that the base has, one with its commitmeta and one with a new one, a second ref to the first, and refs that go",
        of_history(),
        &["good-ostree-history"],
    );
    let repository = accept_delta(
        "good-delta-ostree-repository",
        "all four files of a repository",
        with_repository_files(),
        &["good-ostree"],
    );
    [vec![good, history, repository], sections(), objects(), trees(), files(), refs(), misfits()]
        .into_iter()
        .flatten()
        .collect()
}

/// Returns the new directory `b`.
fn b() -> Node {
    dir([("c", dir([])), ("u", file("more\n"))]).mode(0o700)
}

/// Returns the new directory `n`.
fn n() -> Node {
    dir([("x", file("two\n").mode(0o4755))])
}

fn new_tree() -> Node {
    new_tree_with(b())
}

fn new_tree_with(b: Node) -> Node {
    new_tree_of(b, n())
}

fn new_tree_of(b: Node, n: Node) -> Node {
    dir([("a", file("new\n")), ("b", b), ("l", symlink("a")), ("n", n), ("y", symlink("b")), ("z", file(""))])
}

/// Returns a dirtree as a difference stores it: zeros stand for the checksums of these directories.
fn blank(tree: &Node, below: &[&Node]) -> Vec<u8> {
    let mut bytes = dirtree(tree);
    for below in below {
        let checksum = sha256(&dirtree(below));
        let at = bytes.windows(32).position(|bytes| bytes == checksum).expect("the directory is there");
        bytes[at..at + 32].fill(0);
    }
    bytes
}

/// Returns the bytes of the first of these commits.
fn newest(commits: &[Commit]) -> Vec<u8> {
    let bundle = Bundle::with_commits(&[], &[("os/stable", commits.to_vec())], Packing::default());
    bundle.index.ostree.expect("it has a commit").objects[0].1.clone()
}

/// Returns the bytes of a base's metadata objects.
fn prefix(base: &Bundle) -> Vec<u8> {
    let ostree = base.index.ostree.as_ref().expect("it has a commit");
    ostree.objects.iter().flat_map(|object| object.1.clone()).collect()
}

/// Returns a commit on top of the one of `good-ostree`, whose metadata objects 0 to 4 are the commit, the dirmeta of all directories, and the
/// dirtrees of the root, `b`, and `b/c`. The delta carries the dirmeta of `b`, the dirtrees of the root, `b` and `n`, and the files `a`, `y`
/// and `b/u`, with objects 0 and 1.
fn newer() -> Bundle {
    newer_with(&n())
}

/// Returns the same with this directory `n`.
fn newer_with(n: &Node) -> Bundle {
    let base = with_commit();
    let new_tree = || new_tree_of(b(), n.clone());
    let commits = vec![commit(new_tree()), commit(tree())];
    let newest = newest(&commits);
    let wanted = Bundle::with_commits(&[], &[("os/stable", commits)], Packing::default());
    let mut delta = wanted.relative_to(&[&base], &[(1, None)], Packing::default());
    let difference = delta.difference();
    let files = [file(""), symlink("b"), file("")].map(|node| difference.attribute_row(&node)).to_vec();
    difference.ostree = Some(OsTreeDifference {
        commits: vec![(0, 0), (1, 0)],
        carried: vec![newest],
        dirmetas: vec![dirmeta(&b())],
        trees: vec![blank(&new_tree(), &[&b(), n]), dirtree(&b()), dirtree(n)],
        prefix: prefix(&base),
        files,
        regulars: vec![0, 1],
        targets: vec![b"b".to_vec()],
        refs: vec![(0, Vec::new())],
        ..OsTreeDifference::default()
    });
    delta.layout.repository = Some(vec![(1, b"a summary".to_vec())]);
    delta
}

fn with_repository_files() -> Bundle {
    let mut delta = newer();
    delta.layout.repository = Some((1..5).map(|kind| (kind, vec![kind; 3])).collect());
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
        ostree.grown.paths += grown.paths;
        ostree.grown.inodes += grown.inodes;
        ostree.grown.objects.extend(grown.objects);
        ostree.grown.disk += grown.disk;
    }
    let theirs = base.index.ostree.clone().expect("it has commits");
    let changes = [(1, Some(within("", []))), (2, None), (0, None)];
    let mut delta = wanted.relative_to(&[&base], &changes, Packing::default());
    let commits = (1..).zip(&theirs.objects).filter(|(_, object)| object.0 == 4).map(|(number, _)| number);
    delta.difference().ostree = Some(OsTreeDifference {
        commits: commits.zip([1, 2]).collect(),
        beside: vec![Vec::new()],
        refs: vec![(0, Vec::new()), (0, collection)],
        ..OsTreeDifference::default()
    });
    delta
}

/// Returns a commit of `a`, which the base has, and the new file `u`, which is `own`. Its dirtree is that of the file `other`.
fn of_other_file(name: &str, kind: &str, comment: &str, own: Node, other: Node) -> Vector {
    let tree = |u| dir([("a", file("one\n")), ("u", u)]);
    let base = with_commit();
    let wanted = Bundle::with_other_dirtrees(tree(own.clone()), tree(other.clone()), Packing::default());
    let carried = wanted.index.ostree.as_ref().expect("it has a commit").objects[0].1.clone();
    let mut delta = wanted.relative_to(&[&base], &[(1, None)], Packing::default());
    let difference = delta.difference();
    let row = difference.attribute_row(&own);
    let (regulars, targets) = match &own.what {
        What::Regular(content) => (vec![difference.object(content)], Vec::new()),
        What::Symlink(target) => (Vec::new(), vec![target.clone()]),
        _ => panic!("a dirtree has no such file"),
    };
    difference.ostree = Some(OsTreeDifference {
        commits: vec![(0, 0)],
        carried: vec![carried],
        trees: vec![dirtree(&tree(other))],
        prefix: prefix(&base),
        files: vec![row],
        regulars,
        targets,
        refs: vec![(0, Vec::new())],
        ..OsTreeDifference::default()
    });
    on(&["good-ostree"], vector(name, kind, comment, delta.encode()))
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
        reject_delta(
            "difference-ostree-repository-left",
            "layout",
            "section 7 of the layout, and no wanted ref of kind 1",
            |b| b.layout.repository = Some(vec![(1, b"a summary".to_vec())]),
        ),
        reject_delta("difference-ostree-left", "index", "section 14 without a ref of kind 1", |b| {
            b.difference().ostree = Some(OsTreeDifference::default());
        }),
    ]
}

fn objects() -> Vec<Vector> {
    vec![
        index("difference-ostree-beside", "a commitmeta of kind 3", |o| o.commits[1].1 = 3),
        index("difference-ostree-beside-new", "a carried commit has the commitmeta that the base has of it", |o| {
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
    ]
}

fn trees() -> Vec<Vector> {
    vec![
        index("difference-ostree-frame", "the frame of the dirtrees has another content size", |o| {
            o.frame = Some(frame(b"short"));
        }),
        index("difference-ostree-frame-alone", "a frame without a dirtree", |o| {
            o.trees.clear();
            o.frame = Some(frame(b""));
        }),
        index(
            "difference-ostree-frame-window",
            "the frame of the dirtrees has a window that passes its content",
            |o| o.frame = Some(RawFrame::of(&o.trees.concat()).with_window(24).encode()),
        ),
        index("difference-ostree-trees-len", "the dirtrees have more bytes than the wanted index", |o| {
            o.trees.push(vec![0; 1 << 20]);
        }),
    ]
}

fn files() -> Vec<Vector> {
    vec![
        reject_from(newer(), "difference-ostree-file-type", "index", "y has a directory's attributes", |b| {
            let difference = b.difference();
            difference.attributes[1] = Attributes { mode: 0o040_755, ..Attributes::default() };
            difference.ostree.as_mut().expect("it has a commit").targets.clear();
        }),
        of_other_file(
            "difference-ostree-file-owner",
            "object",
            "u belongs to another owner than its checksum says, and a base has its content",
            file("two\n").owner(1, 0),
            file("two\n"),
        ),
        of_other_file(
            "difference-ostree-link-target",
            "index",
            "u is a link to another target than its checksum says",
            symlink("b"),
            symlink("a/b"),
        ),
    ]
}

fn refs() -> Vec<Vector> {
    vec![
        index("difference-ostree-ref-commit", "a ref names the third of two commits", |o| o.refs[0].0 = 2),
        index("difference-ostree-collection", "a collection id of one element", |o| o.refs[0].1 = b"example".to_vec()),
        reject_from(newer(), "difference-ostree-repository-kind", "layout", "a file of kind 5", |b| {
            b.layout.repository = Some(vec![(5, Vec::new())]);
        }),
    ]
}

/// Returns the faults that only the base reveals.
fn misfits() -> Vec<Vector> {
    let index = |name, comment, change| on(&["good-ostree"], index(name, comment, change));
    vec![
        index("difference-ostree-commit-unknown", "a commit is object 5 of a base that has five", |o| {
            o.commits[1].0 = 6;
        }),
        index("difference-ostree-commit-of-base", "a commit that the base has", |o| {
            o.commits[1].0 = 0;
            o.carried.push(with_commit().index.ostree.expect("it has a commit").objects[0].1.clone());
        }),
        index("difference-ostree-commit-type", "a commit is a dirmeta of the base", |o| o.commits[1].0 = 2),
        index("difference-ostree-commit-left", "a commit that no ref takes", |o| o.commits.push((1, 0))),
        index("difference-ostree-commit-next", "a ref names the second commit before any has named the first", |o| {
            o.refs[0].0 = 1;
        }),
        index("difference-ostree-beside-none", "the base has no commitmeta of its commit", |o| o.commits[1].1 = 1),
        {
            let n = n().mode(0o711);
            let comment = "the second carried dirmeta is visited before the first";
            let made = reject_from(newer_with(&n), "difference-ostree-dirmeta-order", "index", comment, |b| {
                let ostree = b.difference().ostree.as_mut().expect("it has a commit");
                ostree.dirmetas.insert(0, dirmeta(&n));
            });
            on(&["good-ostree"], made)
        },
        index("difference-ostree-dirmeta-left", "a dirmeta that nothing names", |o| {
            o.dirmetas.push(dirmeta(&dir([]).mode(0o711)));
        }),
        index("difference-ostree-dirmeta-of-base", "a dirmeta that the base has", |o| {
            o.dirmetas.push(dirmeta(&tree()));
        }),
        index("difference-ostree-dirmeta-missing", "a dirmeta that neither base nor difference have", |o| {
            o.dirmetas.clear();
        }),
        index("difference-ostree-prefix", "the frame of the dirtrees was made with another prefix", |o| {
            o.prefix.extend([7; 100]);
        }),
        index("difference-ostree-tree-form", "a dirtree with a name that has a slash", |o| {
            o.trees[2] = dirtree(&dir([("x/", file("two\n").mode(0o4755))]));
        }),
        index("difference-ostree-tree-order", "the last two dirtrees have changed places", |o| o.trees.swap(1, 2)),
        index("difference-ostree-tree-left", "a dirtree that nothing names", |o| {
            o.trees.push(dirtree(&dir([("left", file("two\n"))])));
        }),
        index("difference-ostree-tree-of-base", "a dirtree that the base has", |o| {
            let c = dir([]);
            o.trees[1] = blank(&b(), &[&c]);
            o.trees.insert(2, dirtree(&c));
        }),
        index("difference-ostree-tree-stated", "the checksum of a dirtree is stated where it comes next", |o| {
            o.trees[0] = blank(&new_tree(), &[&b()]);
        }),
        index("difference-ostree-tree-missing", "zeros stand for a dirtree behind the last one", |o| {
            o.trees[1] = blank(&b(), &[&dir([])]);
        }),
        index("difference-ostree-root", "a commit's root has another checksum than the commit says", |o| {
            o.trees[2] = dirtree(&dir([("z", file("two\n").mode(0o4755))]));
        }),
        index("difference-ostree-file-left", "an OSTree file that no dirtree names", |o| {
            o.files.push(o.files[2]);
            o.regulars.push(1);
        }),
        index("difference-ostree-file-missing", "a dirtree names a file more than there are", |o| {
            let more = dir([("c", dir([])), ("u", file("more\n")), ("v", file("most\n"))]).mode(0o700);
            let wanted = new_tree_with(more.clone());
            o.trees = vec![blank(&wanted, &[&more, &n()]), dirtree(&more), dirtree(&n())];
            o.carried = vec![newest(&[commit(wanted), commit(tree())])];
        }),
    ]
}
