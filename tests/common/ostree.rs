//! Encodes OSTree objects without rejecting anything, and section 11 of an index around them (ostree 2).

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};

use crate::bundle::{Attributes, Bundle, Index, Packing};
use crate::bytes::{byte, narrow, planes16, planes32, wide};
use crate::disk;
use crate::tree::{Node, What, dir};

/// SHA-256 of an object.
pub type Checksum = [u8; 32];

/// The columns of section 11.
#[derive(Clone, Debug, Default)]
pub struct OsTree {
    /// Types and bytes of the metadata objects.
    pub objects: Vec<(u8, Vec<u8>)>,
    /// Attribute rows of the file objects.
    pub rows: Vec<u32>,
    /// Objects of the regular files.
    pub regulars: Vec<u32>,
    /// Targets of the links.
    pub targets: Vec<Vec<u8>>,
    /// The column of commits.
    pub commits: Vec<u32>,
    /// Collection ids.
    pub collections: Vec<Vec<u8>>,
    /// The size of the commits' trees: entries, inodes, components, and the objects of their files.
    pub grown: Grown,
    /// The objects of refs, and what those of their parents add to the maxima if no ref has them (ostree 6.1).
    pub(crate) of_refs: BTreeSet<Named>,
    pub(crate) of_parents: BTreeMap<Named, Brought>,
    pub(crate) checksums: Vec<Checksum>,
    pub(crate) files: Vec<Checksum>,
}

/// The type and checksum of an object; 1 is a file.
type Named = (u8, Checksum);

/// What an object of a parent adds to the maxima.
#[derive(Clone, Debug, Default)]
pub(crate) struct Brought {
    pub(crate) entries: u64,
    /// The object of a regular file.
    pub(crate) object: Option<usize>,
    /// The disk usage of all but the object.
    pub(crate) disk: u64,
}

/// The trees' contribution to the maxima.
#[derive(Clone, Debug, Default)]
pub struct Grown {
    /// Entries.
    pub entries: u64,
    /// Bytes of their paths.
    pub paths: u64,
    /// Inodes.
    pub inodes: u64,
    /// Components of the longest path.
    pub depth: u32,
    /// The object of each regular file, and the disk usage of its extended attributes.
    pub objects: Vec<(usize, u64)>,
    /// The disk usage of all others.
    pub disk: u64,
}

/// A commit to add.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Its tree.
    pub tree: Node,
    /// Its commitmeta, if any.
    pub beside: Option<Vec<u8>>,
}

/// Returns a commit without a commitmeta.
pub fn commit(tree: Node) -> Commit {
    Commit { tree, beside: None }
}

impl OsTree {
    /// Adds a ref of kind 1 to the index: its newest commit first, followed by the parents.
    pub fn add_ref(index: &mut Index, contents: &mut Vec<Vec<u8>>, name: &str, commits: &[Commit]) {
        let mut own = index.ostree.take().unwrap_or_default();
        index.refs.push((1, name.into()));
        // Newer commits name older ones, so the checksums are computed first.
        let mut checksums: Vec<Option<Checksum>> = vec![None];
        for commit in commits.iter().rev() {
            let parent = checksums.last().copied().flatten();
            checksums.push(Some(sha256(&commit_bytes(&commit.tree, parent, name))));
        }
        for (commit, parent) in commits.iter().zip(checksums.iter().rev().skip(1)) {
            own.push(4, commit_bytes(&commit.tree, *parent, name));
            if let Some(beside) = &commit.beside {
                own.objects.push((6, beside.clone()));
            }
            own.push(3, dirmeta(&commit.tree));
            own.add_tree(index, contents, &commit.tree);
            own.grown.depth = own.grown.depth.max(levels(&commit.tree));
        }
        for (at, (commit, checksum)) in commits.iter().zip(checksums.iter().rev().flatten()).enumerate() {
            let mut named = BTreeMap::new();
            let len = own.objects.iter().find(|(kind, bytes)| *kind == 4 && sha256(bytes) == *checksum);
            let of = |len: usize| Brought { disk: disk::metadata(len), ..Brought::default() };
            named.insert((4, *checksum), Brought { entries: 1, ..of(len.map_or(0, |(_, bytes)| bytes.len())) });
            if let Some(beside) = &commit.beside {
                named.insert((6, *checksum), of(beside.len()));
            }
            objects_of(&commit.tree, contents, &mut named);
            if at == 0 {
                own.of_refs.extend(named.into_keys());
            } else {
                own.of_parents.extend(named);
            }
        }
        own.commits.push(0);
        own.collections.push(Vec::new());
        if let Some(tip) = commits.first() {
            own.grown.inodes += 1;
            own.grow(&tip.tree, (1, 0), contents);
        }
        index.ostree = Some(own);
    }

    fn push(&mut self, kind: u8, bytes: Vec<u8>) -> bool {
        let checksum = sha256(&bytes);
        let is_new = !self.checksums.contains(&checksum);
        if is_new {
            self.checksums.push(checksum);
            self.objects.push((kind, bytes));
        }
        is_new
    }

    fn add_tree(&mut self, index: &mut Index, contents: &mut Vec<Vec<u8>>, tree: &Node) {
        if !self.push(2, dirtree(tree)) {
            return;
        }
        let What::Directory(names) = &tree.what else { return };
        let is_directory = |node: &Node| matches!(node.what, What::Directory(_));
        for (_, node) in names.iter().filter(|(_, node)| !is_directory(node)) {
            let checksum = file_checksum(node);
            if !self.files.contains(&checksum) {
                self.files.push(checksum);
                self.add_file(index, contents, node);
            }
        }
        let below = || names.iter().map(|(_, node)| node).filter(|node| is_directory(node));
        for node in below() {
            self.push(3, dirmeta(node));
        }
        for node in below() {
            self.add_tree(index, contents, node);
        }
    }

    fn add_file(&mut self, index: &mut Index, contents: &mut Vec<Vec<u8>>, node: &Node) {
        let attributes =
            Attributes { mode: node.st_mode(), uid: node.owner.0, gid: node.owner.1, xattrs: node.xattrs.clone() };
        let row = index.attribute_row(attributes);
        self.rows.push(row);
        match &node.what {
            What::Symlink(target) => self.targets.push(target.clone()),
            What::Regular(content) => {
                let column = index.object_of(content, contents);
                self.regulars.push(column);
            }
            _ => {}
        }
    }

    /// Returns what belongs to no ref.
    pub(crate) fn brought(&self) -> impl Iterator<Item = &Brought> {
        self.of_parents.iter().filter(|(named, _)| !self.of_refs.contains(named)).map(|(_, brought)| brought)
    }

    fn grow(&mut self, node: &Node, (depth, above): (u32, usize), contents: &[Vec<u8>]) {
        let beside = disk::xattrs(&node.xattrs);
        let names = match &node.what {
            What::Directory(names) => names,
            What::Regular(content) => {
                let object = contents.iter().position(|known| known == content);
                self.grown.objects.push((object.expect("it was added with its file"), beside));
                return;
            }
            What::Symlink(target) => {
                self.grown.disk += disk::symlink(target) + beside;
                return;
            }
            _ => return,
        };
        self.grown.disk += disk::directory(names.iter().map(|(name, _)| &name[..])) + beside;
        for (name, node) in names {
            self.grown.entries += 1;
            self.grown.paths += wide(above + name.len());
            self.grown.inodes += 1;
            self.grown.depth = self.grown.depth.max(depth);
            self.grow(node, (depth + 1, above + name.len() + 1), contents);
        }
    }

    /// Returns the section's payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = narrow(self.objects.len()).to_le_bytes().to_vec();
        out.extend(self.objects.iter().map(|(kind, _)| *kind));
        out.extend(planes32(self.objects.iter().map(|(_, bytes)| narrow(bytes.len()))));
        out.extend(self.objects.iter().flat_map(|(_, bytes)| bytes));
        out.extend(narrow(self.rows.len()).to_le_bytes());
        out.extend(planes32(self.rows.iter().copied()));
        out.extend(planes32(self.regulars.iter().copied()));
        out.extend(planes16(self.targets.iter().map(|target| crate::bytes::short(target.len()))));
        out.extend(self.targets.concat());
        out.extend(planes32(self.commits.iter().copied()));
        for collection in &self.collections {
            out.push(byte(collection.len()));
            out.extend(collection);
        }
        out
    }
}

/// Returns the components of the longest path.
fn levels(node: &Node) -> u32 {
    let What::Directory(names) = &node.what else { return 0 };
    names.iter().map(|(_, node)| levels(node) + 1).max().unwrap_or(0)
}

/// Adds the objects of a commit's tree.
fn objects_of(node: &Node, contents: &[Vec<u8>], all: &mut BTreeMap<Named, Brought>) {
    let beside = disk::xattrs(&node.xattrs);
    match &node.what {
        What::Directory(names) => {
            let (tree, meta) = (dirtree(node), dirmeta(node));
            let of = |bytes: &[u8]| Brought { disk: disk::metadata(bytes.len()), ..Brought::default() };
            all.insert((2, sha256(&tree)), Brought { entries: wide(names.len()), ..of(&tree) });
            all.insert((3, sha256(&meta)), of(&meta));
            names.iter().for_each(|(_, node)| objects_of(node, contents, all));
        }
        What::Regular(content) => {
            let object = contents.iter().position(|known| known == content);
            all.insert((1, file_checksum(node)), Brought { object, disk: beside, ..Brought::default() });
        }
        What::Symlink(target) => {
            let disk = disk::symlink(target) + beside;
            all.insert((1, file_checksum(node)), Brought { disk, ..Brought::default() });
        }
        _ => {}
    }
}

/// SHA-256.
pub fn sha256(bytes: &[u8]) -> Checksum {
    Sha256::digest(bytes).into()
}

/// Returns a GVariant container: its body, and the member ends in storage order.
pub fn framed(mut body: Vec<u8>, ends: &[usize]) -> Vec<u8> {
    let width = [1_usize, 2, 4].into_iter().find(|width| {
        let len = body.len() + ends.len() * width;
        len < 1 << (8 * width)
    });
    let width = width.expect("vectors are small");
    for end in ends {
        body.extend(&end.to_le_bytes()[..width]);
    }
    body
}

/// Returns an array of variable-length values with alignment 1.
pub fn array(items: &[Vec<u8>]) -> Vec<u8> {
    let ends: Vec<usize> = items
        .iter()
        .scan(0, |end, item| {
            *end += item.len();
            Some(*end)
        })
        .collect();
    framed(items.concat(), &ends)
}

/// `a(ayay)`.
fn xattrs(node: &Node) -> Vec<u8> {
    let pairs = node.xattrs.iter().map(|(name, value)| {
        let name = [&name[..], b"\0"].concat();
        let end = name.len();
        framed([name, value.clone()].concat(), &[end])
    });
    array(&pairs.collect::<Vec<_>>())
}

/// `(uuua(ayay))`.
pub fn dirmeta(node: &Node) -> Vec<u8> {
    let numbers = [node.owner.0, node.owner.1, node.st_mode().into()];
    let mut out: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
    out.extend(xattrs(node));
    out
}

/// Returns the header of a file object.
pub fn file_header(node: &Node) -> Vec<u8> {
    let numbers = [node.owner.0, node.owner.1, node.st_mode().into(), 0];
    let mut body: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
    if let What::Symlink(target) = &node.what {
        body.extend(target);
    }
    body.push(0);
    let end = body.len();
    body.extend(xattrs(node));
    let variant = framed(body, &[end]);
    [&narrow(variant.len()).to_be_bytes()[..], &[0; 4], &variant].concat()
}

/// Returns the checksum of a file object.
pub fn file_checksum(node: &Node) -> Checksum {
    let content = if let What::Regular(content) = &node.what { &content[..] } else { &[] };
    sha256(&[&file_header(node), content].concat())
}

/// Encodes `(a(say)a(sayay))` for a directory's names, in their order.
pub fn dirtree(directory: &Node) -> Vec<u8> {
    let What::Directory(names) = &directory.what else { return Vec::new() };
    let (mut files, mut directories) = (Vec::new(), Vec::new());
    for (name, node) in names {
        let name = [&name[..], b"\0"].concat();
        if let What::Directory(_) = node.what {
            let (tree, meta) = (sha256(&dirtree(node)), sha256(&dirmeta(node)));
            let ends = [name.len() + 32, name.len()];
            directories.push(framed([name, tree.to_vec(), meta.to_vec()].concat(), &ends));
        } else {
            let ends = [name.len()];
            files.push(framed([name, file_checksum(node).to_vec()].concat(), &ends));
        }
    }
    let files = array(&files);
    let end = files.len();
    framed([files, array(&directories)].concat(), &[end])
}

/// Encodes `(a{sv}aya(say)sstayay)`, with no metadata, the subject `name` and the time 1700000000.
pub fn commit_bytes(tree: &Node, parent: Option<Checksum>, name: &str) -> Vec<u8> {
    commit_with(Vec::new(), tree, parent, name)
}

/// Like [`commit_bytes`], with this metadata.
pub fn commit_with(metadata: Vec<u8>, tree: &Node, parent: Option<Checksum>, name: &str) -> Vec<u8> {
    commit_of(metadata, tree, parent.as_ref().map_or(&[], |parent| &parent[..]), name)
}

/// Like [`commit_with`], with these bytes as the parent.
pub fn commit_of(metadata: Vec<u8>, tree: &Node, parent: &[u8], name: &str) -> Vec<u8> {
    let (mut body, metadata_end) = (metadata.clone(), metadata.len());
    body.extend(parent);
    let parent_end = body.len();
    body.extend(name.as_bytes());
    body.push(0);
    let subject_end = body.len();
    body.push(0);
    let body_end = body.len();
    body.resize(body.len().next_multiple_of(8), 0);
    body.extend(1_700_000_000_u64.to_be_bytes());
    body.extend(sha256(&dirtree(tree)));
    let tree_end = body.len();
    body.extend(sha256(&dirmeta(tree)));
    framed(body, &[tree_end, body_end, subject_end, parent_end, parent_end, metadata_end])
}

/// Encodes `a{sv}` with one byte-aligned value per key, and its type.
pub fn dictionary(entries: &[(&str, &str, &[u8])]) -> Vec<u8> {
    let (mut body, mut ends) = (Vec::new(), Vec::new());
    for (key, kind, value) in entries {
        let mut entry = [key.as_bytes(), &[0]].concat();
        let key_end = entry.len();
        entry.resize(entry.len().next_multiple_of(8), 0);
        entry.extend([value, &[0][..], kind.as_bytes()].concat());
        body.resize(body.len().next_multiple_of(8), 0);
        body.extend(framed(entry, &[key_end]));
        ends.push(body.len());
    }
    framed(body, &ends)
}

/// Returns a bundle of a commit whose root consists of these objects.
pub fn of_root(dirtree: Vec<u8>, dirmeta: Vec<u8>) -> Bundle {
    let mut bundle = Bundle::with_commits(&[], &[("main", vec![commit(dir([]))])], Packing::default());
    let ostree = bundle.index.ostree.as_mut().expect("it has a commit");
    ostree.objects = vec![(4, naming(&dirtree, &dirmeta)), (3, dirmeta), (2, dirtree)];
    bundle
}

/// Returns a bundle of a commit of this tree, which has no directory but its root, whose root has these bytes instead.
pub fn with_root(tree: Node, root: Vec<u8>) -> Bundle {
    let meta = dirmeta(&tree);
    let mut bundle = Bundle::with_commits(&[], &[("main", vec![commit(tree)])], Packing::default());
    let ostree = bundle.index.ostree.as_mut().expect("it has a commit");
    ostree.objects = vec![(4, naming(&root, &meta)), (3, meta), (2, root)];
    bundle
}

/// Returns a commit that names these objects.
fn naming(tree: &[u8], meta: &[u8]) -> Vec<u8> {
    naming_parent(tree, meta, None)
}

fn naming_parent(tree: &[u8], meta: &[u8], parent: Option<Checksum>) -> Vec<u8> {
    let replace = |bytes: &mut Vec<u8>, from: Checksum, to: Checksum| {
        let at = bytes.windows(32).position(|window| window == from).expect("the commit names it");
        bytes[at..at + 32].copy_from_slice(&to);
    };
    let mut bytes = commit_bytes(&dir([]), parent, "main");
    replace(&mut bytes, sha256(&dirtree(&dir([]))), sha256(tree));
    replace(&mut bytes, sha256(&dirmeta(&dir([]))), sha256(meta));
    bytes
}

/// Returns a bundle of a commit in which each directory contains the next one under each of these names.
pub fn nested(levels: usize, names: &[&[u8]]) -> Bundle {
    let meta = dirmeta(&dir([]));
    let mut trees = vec![dirtree(&dir([]))];
    for _ in 0..levels {
        let below = sha256(trees.last().expect("there is one"));
        let entry = |name: &&[u8]| {
            let name = [name, &b"\0"[..]].concat();
            let ends = [name.len() + 32, name.len()];
            framed([&name[..], &below, &sha256(&meta)].concat(), &ends)
        };
        trees.push(framed(array(&names.iter().map(entry).collect::<Vec<_>>()), &[0]));
    }
    let mut bundle = of_root(trees.last().expect("there is one").clone(), meta);
    let ostree = bundle.index.ostree.as_mut().expect("it has a commit");
    ostree.objects.truncate(2);
    ostree.objects.extend(trees.into_iter().rev().map(|tree| (2, tree)));
    bundle
}

/// A commit of a history: its root's dirtree and dirmeta, and the dirtrees below, in the order in which they are met.
struct Past {
    tree: Vec<u8>,
    meta: Vec<u8>,
    below: Vec<Vec<u8>>,
}

/// Returns a commit of an empty directory whose ancestors have these trees, in which each dirtree has one name. Each object is in one commit only, but
/// for those of the empty directory.
fn with_past(past: Vec<Past>, depth: u32) -> Bundle {
    let (tree, meta) = (dirtree(&dir([])), dirmeta(&dir([])));
    let mut bundle = of_root(tree.clone(), meta.clone());
    let ostree = bundle.index.ostree.as_mut().expect("it has a commit");
    let (mut parent, mut commits) = (None, Vec::new());
    for past in past.into_iter().rev() {
        let commit = naming_parent(&past.tree, &past.meta, parent);
        parent = Some(sha256(&commit));
        commits.push((commit, past));
    }
    ostree.objects = vec![(4, naming_parent(&tree, &meta, parent)), (3, meta.clone()), (2, tree)];
    for (commit, Past { tree, meta: own, below }) in commits.into_iter().rev() {
        let own = (own != meta).then_some((3, own));
        let all =
            [(4, commit)].into_iter().chain(own).chain([(2, tree)]).chain(below.into_iter().map(|tree| (2, tree)));
        for (kind, bytes) in all {
            let brought =
                Brought { entries: u64::from(kind != 3), disk: disk::metadata(bytes.len()), ..Brought::default() };
            ostree.of_parents.insert((kind, sha256(&bytes)), brought);
            ostree.objects.push((kind, bytes));
        }
    }
    ostree.grown.depth = depth;
    bundle
}

/// Returns a commit whose parent has nested directories with this name.
pub fn deep_parent(levels: usize, name: &[u8]) -> Bundle {
    let whole = nested(levels, &[name]).index.ostree.expect("it has a commit");
    let mut trees = whole.objects.into_iter().filter(|(kind, _)| *kind == 2).map(|(_, tree)| tree).take(levels);
    let tree = trees.next().expect("it has levels");
    let past = Past { tree, meta: dirmeta(&dir([])), below: trees.collect() };
    with_past(vec![past], narrow(levels))
}

/// Returns a commit with this many ancestors, each with a tree of one empty directory and a root of its own owner.
pub fn long_history(count: u32) -> Bundle {
    let past = |number: u32| {
        let name = number.to_string();
        let root = dir([(&*name, dir([]))]).owner(number, 0);
        Past { tree: dirtree(&root), meta: dirmeta(&root), below: Vec::new() }
    };
    with_past((1..=count).map(past).collect(), 1)
}
