//! Builds delta bundles from their parts (delta 3, 5, 6 and 8), as [`crate::bundle`] builds full ones: nothing is refused.
//!
//! The edits of a tree are written as [`Change`]s. They become the columns of a [`Difference`], which can be edited.

use sealift_format::verity;

use crate::bundle::{Attributes, Bundle, Edit, Packing, lay_out};
use crate::bytes::{Section, byte, hash, join, narrow, planes16, planes32, planes64, short, wide};
use crate::frame::{frame, frame_with_prefix};
use crate::tree::{Node, What};

/// What makes a bundle a delta bundle.
#[derive(Default)]
pub struct Delta {
    /// The bases, of which the first is the one that the difference is relative to.
    pub bases: Vec<Base>,
    /// The difference, which takes the place of the index.
    pub difference: Difference,
    /// The numbers of the carried objects in the wanted index.
    pub carried: Vec<u32>,
    /// Edits to section 5 of the root.
    pub edit_bases: Edit<Bases>,
    /// Edits to the difference's sections.
    pub edit: Edit<Vec<Section>>,
}

/// Section 5 of the root.
#[derive(Clone, Debug)]
pub struct Bases {
    /// Decoded bytes of the difference.
    pub difference_len: u64,
    /// The length of the longest prefix.
    pub prefix_len: u32,
    /// The rows of the table.
    pub bases: Vec<Base>,
}

/// A row of section 5 of the root.
#[derive(Clone, Debug)]
pub struct Base {
    /// The version of the base's bundle.
    pub version: u64,
    /// The name of the base's bundle.
    pub name: Vec<u8>,
    /// The digest of its index.
    pub digest: [u8; 32],
    /// The number of bytes of its index.
    pub len: u64,
}

impl Base {
    /// Returns the row for a full bundle as a base.
    pub fn of(bundle: &Bundle) -> Self {
        let (index, identity) = (join(&bundle.index.sections()), &bundle.identity);
        let (version, name) = (identity.version, identity.name.clone());
        Self { version, name, digest: verity::digest(&index), len: wide(index.len()) }
    }
}

/// The columns of a difference (delta 5).
#[derive(Clone, Debug, Default)]
pub struct Difference {
    /// The number of objects of all bases.
    pub base_objects: u32,
    /// Kind and name of the first base's refs.
    pub base_refs: Vec<(u8, Vec<u8>)>,
    /// Kind and name of each wanted ref, and which ref of the base it is relative to.
    pub refs: Vec<(u8, Vec<u8>, u16)>,
    /// Ops of the edits.
    pub ops: Vec<u8>,
    /// The names of the edits.
    pub names: Vec<Vec<u8>>,
    /// Types of files whose edits do not change their attributes.
    pub types: Vec<u8>,
    /// Attribute rows.
    pub rows: Vec<u32>,
    /// Seconds and nanoseconds.
    pub mtimes: Vec<(i64, u32)>,
    /// The lengths of the blocks.
    pub blocks: Vec<u32>,
    /// Objects of the regular files, by number: first the carried objects, then those of the bases.
    pub regulars: Vec<u32>,
    /// Targets of the symbolic links.
    pub targets: Vec<Vec<u8>>,
    /// Major and minor numbers.
    pub devices: Vec<(u32, u32)>,
    /// The edits that links name.
    pub links: Vec<u32>,
    /// Old and new times.
    pub times: Vec<((i64, u32), (i64, u32))>,
    /// The distinct attributes.
    pub attributes: Vec<Attributes>,
    /// Size and id of the carried objects.
    pub objects: Vec<(u64, [u8; 32])>,
    /// verity(T) of the wanted index.
    pub verity: [u8; 32],
    /// Section 14.
    pub ostree: Option<OsTreeDifference>,
    /// The ids of the carried objects, followed by those of the base objects.
    pub known: Vec<[u8; 32]>,
}

/// The columns of section 14 (ostree 8).
#[derive(Clone, Debug, Default)]
pub struct OsTreeDifference {
    /// For each commit, its number in the base (0 if it is carried), and its commitmeta (column `beside`).
    pub commits: Vec<(u32, u8)>,
    /// The carried commits.
    pub carried: Vec<Vec<u8>>,
    /// The carried commitmetas.
    pub beside: Vec<Vec<u8>>,
    /// The carried dirmetas.
    pub dirmetas: Vec<Vec<u8>>,
    /// The stored bytes of the carried dirtrees.
    pub trees: Vec<Vec<u8>>,
    /// The metadata objects of the base, the prefix of the frame.
    pub prefix: Vec<u8>,
    /// A frame to use for the dirtrees in place of the right one.
    pub frame: Option<Vec<u8>>,
    /// Attribute rows of the carried files.
    pub files: Vec<u32>,
    /// Objects of the carried regular files.
    pub regulars: Vec<u32>,
    /// Targets of the carried symbolic links.
    pub targets: Vec<Vec<u8>>,
    /// The commit and the collection of each ref.
    pub refs: Vec<(u32, Vec<u8>)>,
}

/// An edit of a name.
#[derive(Clone, Debug)]
pub struct Change {
    name: Vec<u8>,
    op: u8,
    /// The file, as far as the op needs it.
    node: Option<Node>,
    link: Option<u32>,
    block: Option<Vec<Change>>,
}

fn change(name: &str, op: u8, node: Option<Node>) -> Change {
    Change { name: name.into(), op, node, link: None, block: None }
}

/// A directory that stays, and in which something changes.
pub fn within<const N: usize>(name: &str, block: [Change; N]) -> Change {
    Change { block: Some(block.to_vec()), ..change(name, 0, None) }
}

/// A file that stays, and that links name.
pub fn named(name: &str) -> Change {
    change(name, 1, None)
}

/// A name that is removed.
pub fn gone(name: &str) -> Change {
    change(name, 2, None)
}

/// A new file; for a directory, with everything below it.
pub fn comes(name: &str, node: Node) -> Change {
    let block = if let What::Directory(names) = &node.what {
        Some(names.iter().map(|(name, node)| comes(&String::from_utf8_lossy(name), node.clone())).collect())
    } else {
        None
    };
    Change { block, ..change(name, 3, Some(node)) }
}

/// The same, in place of what the base has under this name.
pub fn replaces(name: &str, node: Node) -> Change {
    Change { op: 4, ..comes(name, node) }
}

/// Another name for the file of an edit.
pub fn linked(name: &str, edit: u32) -> Change {
    Change { link: Some(edit), ..change(name, 5, None) }
}

/// The same, in place of what the base has under this name.
pub fn relinked(name: &str, edit: u32) -> Change {
    Change { op: 6, ..linked(name, edit) }
}

/// A file that stays, and takes the parts of `node` that the bits of `new` select.
pub fn changed(name: &str, new: u8, node: Node) -> Change {
    change(name, 8 + new, Some(node))
}

impl Change {
    /// Returns the same edit of a directory, with a block of these edits.
    pub fn block<const N: usize>(self, block: [Self; N]) -> Self {
        self.with(block.to_vec())
    }

    /// The same, with any number of edits.
    pub fn with(mut self, block: Vec<Self>) -> Self {
        self.block = Some(block);
        self
    }
}

impl Difference {
    /// Adds the edits of a tree.
    pub fn add_tree(&mut self, root: &Change) {
        self.add(root);
        self.add_block(root);
    }

    fn add_block(&mut self, directory: &Change) {
        let block = directory.block.as_deref().unwrap_or_default();
        block.iter().for_each(|change| self.add(change));
        block.iter().for_each(|change| self.add_block(change));
    }

    fn add(&mut self, change: &Change) {
        self.ops.push(change.op);
        self.names.push(change.name.clone());
        self.links.extend(change.link);
        let Some(node) = &change.node else {
            self.blocks.extend(change.block.as_ref().map(|block| narrow(block.len())));
            return;
        };
        let new = if change.op < 8 { 7 } else { change.op - 8 };
        if new & 1 == 0 {
            self.types.push(byte(usize::from(node.st_mode() >> 12)));
        } else {
            let row = self.attribute_row(node);
            self.rows.push(row);
        }
        if new & 2 != 0 {
            self.mtimes.push(node.mtime);
        }
        match &node.what {
            What::Directory(_) => self.blocks.push(narrow(change.block.as_ref().map_or(0, Vec::len))),
            What::Symlink(target) if new & 4 != 0 => self.targets.push(target.clone()),
            What::Device(_, major, minor) if new & 4 != 0 => self.devices.push((*major, *minor)),
            What::Regular(content) if new & 4 != 0 => self.regulars.push(self.object(content)),
            _ => {}
        }
    }

    /// Returns the row of a file's attributes.
    pub fn attribute_row(&mut self, node: &Node) -> u32 {
        let (uid, gid) = node.owner;
        let attributes = Attributes { mode: node.st_mode(), uid, gid, xattrs: node.xattrs.clone() };
        let known = self.attributes.iter().position(|known| *known == attributes);
        narrow(known.unwrap_or_else(|| {
            self.attributes.push(attributes);
            self.attributes.len() - 1
        }))
    }

    /// Returns the number that refers to the object with this content.
    pub fn object(&self, content: &[u8]) -> u32 {
        let id = hash(content);
        narrow(self.known.iter().position(|known| *known == id).expect("base or difference have it"))
    }

    pub(crate) fn sections(&self) -> Vec<Section> {
        let u32s = |values: &[u32]| planes32(values.iter().copied());
        let put_ref = |out: &mut Vec<u8>, kind: u8, name: &[u8]| {
            out.extend([kind, byte(name.len())]);
            out.extend(name);
        };
        let mut base = self.base_objects.to_le_bytes().to_vec();
        base.extend(short(self.base_refs.len()).to_le_bytes());
        self.base_refs.iter().for_each(|(kind, name)| put_ref(&mut base, *kind, name));
        let mut refs = short(self.refs.len()).to_le_bytes().to_vec();
        for (kind, name, from) in &self.refs {
            put_ref(&mut refs, *kind, name);
            refs.extend(from.to_le_bytes());
        }
        let mut edits = wide(self.ops.len()).to_le_bytes().to_vec();
        edits.extend(&self.ops);
        self.names.iter().for_each(|name| edits.extend([name, &b"\0"[..]].concat()));
        let mut changes = self.types.clone();
        changes.extend(u32s(&self.rows));
        changes.extend(times(self.mtimes.iter().copied()));
        let mut symlinks = planes16(self.targets.iter().map(|target| short(target.len())));
        symlinks.extend(self.targets.concat());
        let mut devices = planes32(self.devices.iter().map(|device| device.0));
        devices.extend(planes32(self.devices.iter().map(|device| device.1)));
        let mut changed = narrow(self.times.len()).to_le_bytes().to_vec();
        changed.extend(times(self.times.iter().map(|change| change.0)));
        changed.extend(times(self.times.iter().map(|change| change.1)));
        let mut attributes = narrow(self.attributes.len()).to_le_bytes().to_vec();
        self.attributes.iter().for_each(|row| row.encode(&mut attributes));
        let mut objects = wide(self.objects.len()).to_le_bytes().to_vec();
        objects.extend(planes64(self.objects.iter().map(|object| object.0)));
        objects.extend(self.objects.iter().flat_map(|object| object.1));
        let payloads = [
            base,
            refs,
            edits,
            changes,
            u32s(&self.blocks),
            steps(&self.regulars),
            symlinks,
            devices,
            u32s(&self.links),
            changed,
            attributes,
            objects,
            self.verity.to_vec(),
        ];
        let mut sections: Vec<Section> =
            (1..).zip(payloads).map(|(id, payload)| Section::critical(id, payload)).collect();
        sections.extend(self.ostree.as_ref().map(|ostree| Section::critical(14, ostree.encode())));
        sections
    }
}

/// `planes(i64, n)` of the seconds and `planes(u32, n)` of the nanoseconds.
fn times(times: impl Iterator<Item = (i64, u32)> + Clone) -> Vec<u8> {
    let mut out = planes64(times.clone().map(|time| u64::from_le_bytes(time.0.to_le_bytes())));
    out.extend(planes32(times.map(|time| time.1)));
    out
}

/// `references(n)` of delta 5.2.
fn steps(values: &[u32]) -> Vec<u8> {
    let before = [u32::MAX].into_iter().chain(values.iter().copied());
    planes32(values.iter().zip(before).map(|(value, before)| value.wrapping_sub(before).wrapping_sub(1)))
}

fn blobs(out: &mut Vec<u8>, blobs: &[Vec<u8>]) {
    out.extend(planes32(blobs.iter().map(|blob| narrow(blob.len()))));
    out.extend(blobs.concat());
}

impl OsTreeDifference {
    fn encode(&self) -> Vec<u8> {
        let mut out = narrow(self.commits.len()).to_le_bytes().to_vec();
        out.extend(planes32(self.commits.iter().map(|commit| commit.0)));
        out.extend(self.commits.iter().map(|commit| commit.1));
        blobs(&mut out, &self.carried);
        blobs(&mut out, &self.beside);
        out.extend(narrow(self.dirmetas.len()).to_le_bytes());
        blobs(&mut out, &self.dirmetas);
        out.extend(narrow(self.trees.len()).to_le_bytes());
        out.extend(planes32(self.trees.iter().map(|tree| narrow(tree.len()))));
        let frame = self.frame.clone().unwrap_or_else(|| match &self.trees[..] {
            [] => Vec::new(),
            trees => frame_with_prefix(&trees.concat(), &self.prefix),
        });
        out.extend(narrow(frame.len()).to_le_bytes());
        out.extend(frame);
        out.extend(narrow(self.files.len()).to_le_bytes());
        out.extend(planes32(self.files.iter().copied()));
        out.extend(steps(&self.regulars));
        out.extend(planes16(self.targets.iter().map(|target| short(target.len()))));
        out.extend(self.targets.concat());
        out.extend(planes32(self.refs.iter().map(|named| named.0)));
        for (_, collection) in &self.refs {
            out.push(byte(collection.len()));
            out.extend(collection);
        }
        out
    }
}

impl Bases {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = self.difference_len.to_le_bytes().to_vec();
        out.extend(self.prefix_len.to_le_bytes());
        out.extend(short(self.bases.len()).to_le_bytes());
        for base in &self.bases {
            out.extend(base.version.to_le_bytes());
            out.push(byte(base.name.len()));
            out.extend(&base.name);
            out.extend(base.digest);
            out.extend(base.len.to_le_bytes());
        }
        out
    }
}

impl Bundle {
    /// Returns a valid delta bundle of the content of `self`, except for section 14. `changes` has for each ref the ref of the base that it is
    /// relative to and, unless it is a commit, the edits of its tree.
    pub fn relative_to(mut self, bases: &[&Self], changes: &[(u16, Option<Change>)], packing: Packing) -> Self {
        let of_bases = || bases.iter().flat_map(|base| &base.index.objects);
        let carried = (0..).zip(&self.index.objects).filter(|(_, row)| of_bases().all(|known| known.1 != row.1));
        let carried: Vec<(u32, (u64, [u8; 32]))> = carried.map(|(number, row)| (number, *row)).collect();
        let objects: Vec<(u64, [u8; 32])> = carried.iter().map(|object| object.1).collect();
        let mut difference = Difference {
            base_objects: narrow(of_bases().count()),
            base_refs: bases[0].index.refs.clone(),
            refs: self.index.refs.iter().zip(changes).map(|((kind, name), of)| (*kind, name.clone(), of.0)).collect(),
            known: objects.iter().chain(of_bases()).map(|object| object.1).collect(),
            objects,
            verity: self.index.verity,
            ..Difference::default()
        };
        changes.iter().filter_map(|(_, root)| root.as_ref()).for_each(|root| difference.add_tree(root));
        let at = |number: &u32| usize::try_from(*number).expect("32 bits");
        let contents: Vec<Vec<u8>> = carried.iter().map(|(number, _)| self.contents[at(number)].clone()).collect();
        (self.layout, self.stored) = lay_out(&contents, packing, self.index.ostree.is_some());
        self.delta = Some(Delta {
            bases: bases.iter().copied().map(Base::of).collect(),
            difference,
            carried: carried.iter().map(|object| object.0).collect(),
            ..Delta::default()
        });
        self
    }

    /// Returns the parts that make it a delta bundle.
    ///
    /// # Panics
    /// Panics if it is a full bundle.
    pub fn delta(&mut self) -> &mut Delta {
        self.delta.as_mut().expect("it is a delta bundle")
    }

    /// Returns the difference.
    ///
    /// # Panics
    /// Panics if it is a full bundle.
    pub fn difference(&mut self) -> &mut Difference {
        &mut self.delta().difference
    }

    /// Replaces the stored bytes of a chunk, with a codec that uses a prefix of these ranges. Call it for the chunks with a prefix in order.
    pub fn store_with_prefix(&mut self, chunk: usize, codec: u8, stored: Vec<u8>, ranges: &[(u32, u64, u64)]) {
        self.store(chunk, stored);
        self.layout.chunks[chunk].codec = codec;
        self.layout.prefixes.push(ranges.to_vec());
    }
}

/// The stored bytes of a chunk of codec 3 (delta 8).
#[derive(Clone, Debug, Default)]
pub struct ByteDifference {
    /// Add, copy and seek.
    pub runs: Vec<(u32, u32, i64)>,
    /// The bytes that are added to the prefix.
    pub added: Vec<u8>,
    /// The bytes that are copied as they are.
    pub copied: Vec<u8>,
    /// Bytes after the last frame.
    pub tail: Vec<u8>,
}

impl ByteDifference {
    /// Returns the stored bytes.
    pub fn encode(&self) -> Vec<u8> {
        let frame_of = |bytes: &[u8]| if bytes.is_empty() { Vec::new() } else { frame(bytes) };
        let mut control = planes32(self.runs.iter().map(|run| run.0));
        control.extend(planes32(self.runs.iter().map(|run| run.1)));
        control.extend(planes64(self.runs.iter().map(|run| u64::from_le_bytes(run.2.to_le_bytes()))));
        let (control, added) = (frame(&control), frame_of(&self.added));
        let numbers = [self.runs.len(), self.added.len(), control.len(), added.len()];
        let mut out: Vec<u8> = numbers.iter().flat_map(|number| narrow(*number).to_le_bytes()).collect();
        out.extend(control);
        out.extend(added);
        out.extend(frame_of(&self.copied));
        out.extend(&self.tail);
        out
    }
}
