//! Builds bundles from their parts, so that one part can be wrong while everything around it is right.
//!
//! Nothing here uses the encoders of `format/`, which refuse the faults that vectors need. Columns of index and layout can be edited, and hooks edit
//! a structure's sections or bytes; everything above an edit is computed after it.

use sealift_format::{pieces, verity};

use crate::bytes::{Section, byte, hash, join, narrow, planes16, planes32, planes64, short, wide};
use crate::delta::{Bases, Delta};
use crate::disk;
use crate::frame::frame;
use crate::keys::Key;
use crate::ostree::{Commit, OsTree, commit};
use crate::recipes::{Recipes, Sums};
use crate::tree::{Node, What};

/// The columns of an index (core 6).
#[derive(Clone, Debug, Default)]
pub struct Index {
    /// Kind and name.
    pub refs: Vec<(u8, Vec<u8>)>,
    /// Names of the entries.
    pub names: Vec<Vec<u8>>,
    /// Links of the entries.
    pub links: Vec<u32>,
    /// Attribute rows of the inodes.
    pub rows: Vec<u32>,
    /// Times of the inodes.
    pub mtimes: Vec<i64>,
    /// Nanoseconds of the inodes' times.
    pub mtime_ns: Vec<u32>,
    /// Children of the directories.
    pub children: Vec<u32>,
    /// Objects of the regular files.
    pub regulars: Vec<u32>,
    /// Targets of the symbolic links.
    pub targets: Vec<Vec<u8>>,
    /// Major and minor numbers.
    pub devices: Vec<(u32, u32)>,
    /// The distinct attributes.
    pub attributes: Vec<Attributes>,
    /// Size and id.
    pub objects: Vec<(u64, [u8; 32])>,
    /// verity(T).
    pub verity: [u8; 32],
    /// Section 11.
    pub ostree: Option<OsTree>,
}

/// A row of section 8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Type and permissions.
    pub mode: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Names and values.
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The columns of a layout (core 7).
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Section 1.
    pub chunks: Vec<Chunk>,
    /// The objects in groups.
    pub members: Vec<u32>,
    /// Chunk + 1 and chaining value.
    pub pieces: Vec<(u32, [u8; 32])>,
    /// Objects with holes, and their extents.
    pub holes: Vec<(u32, Vec<(u64, u64)>)>,
    /// Section 5: the first chunk of the landmark, and the number of chunks.
    pub landmark: Option<(u32, u32)>,
    /// Section 6: for each chunk with a prefix, its ranges, each with object, offset and length.
    pub prefixes: Vec<Vec<(u32, u64, u64)>>,
    /// Section 7: kinds and bytes of the repository's files.
    pub repository: Option<Vec<(u8, Vec<u8>)>>,
    /// Section 8.
    pub recipes: Option<Recipes>,
}

/// A row of section 1.
#[derive(Clone, Debug, Default)]
pub struct Chunk {
    /// The codec.
    pub codec: u8,
    /// The number of stored bytes.
    pub stored_len: u32,
    /// The number of decoded bytes.
    pub len: u32,
    /// The number of objects in a group; 0 for a piece.
    pub objects: u32,
    /// BLAKE3 of the stored bytes.
    pub digest: [u8; 32],
}

/// Section 1 of the root.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The version of the bundle.
    pub version: u64,
    /// Seconds since 1970.
    pub created: i64,
    /// Seconds since 1970, or 0 for never.
    pub expires: i64,
    /// The name of the bundle.
    pub name: Vec<u8>,
    /// Compatible tags.
    pub tags: Vec<Vec<u8>>,
}

/// A row of section 6 of the root.
#[derive(Clone, Debug)]
pub struct Image {
    /// The number of a ref.
    pub reference: u16,
    /// The version of the image's form.
    pub version: u8,
    /// The hash algorithm of fs-verity.
    pub algorithm: u8,
    /// The digest of the image, with that algorithm.
    pub digest: Vec<u8>,
}

/// Section 2 of the root.
#[derive(Clone, Debug)]
pub struct Contents {
    /// verity(index).
    pub index_digest: [u8; 32],
    /// The number of decoded bytes.
    pub index_len: u64,
    /// The number of stored bytes.
    pub index_stored: u64,
    /// BLAKE3 of the stored bytes.
    pub index_blake3: [u8; 32],
    /// The number of decoded bytes.
    pub layout_len: u64,
    /// The number of stored bytes.
    pub layout_stored: u64,
    /// BLAKE3 of the stored bytes.
    pub layout_blake3: [u8; 32],
}

/// Section 3 of the root.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "core 4.3 describes them")]
pub struct Maxima {
    pub piece_log2: u8,
    pub window_log: u8,
    pub refs: u16,
    pub depth: u32,
    pub entries: u64,
    pub paths: u64,
    pub inodes: u64,
    pub objects: u64,
    pub logical: u64,
    pub disk: u64,
    pub chunks: u64,
    pub chunks_stored: u64,
    pub chunk_len: u32,
    pub chunk_stored: u32,
}

/// An edit to a structure, if any.
pub type Edit<T> = Option<Box<dyn FnOnce(&mut T)>>;

/// Makes an envelope for the signed bytes.
pub type MakeEnvelope = Box<dyn Fn(&[u8]) -> (u16, Vec<u8>)>;

/// Edits to structures after they were encoded, and before anything is computed from them.
#[derive(Default)]
pub struct Edits {
    /// The index's sections.
    pub index: Edit<Vec<Section>>,
    /// The stored bytes of the index.
    pub index_frame: Edit<Vec<u8>>,
    /// The layout's sections.
    pub layout: Edit<Vec<Section>>,
    /// The stored bytes of the layout.
    pub layout_frame: Edit<Vec<u8>>,
    /// Digests and lengths in the root.
    pub contents: Edit<Contents>,
    /// The maxima in the root.
    pub maxima: Edit<Maxima>,
    /// What the root says of recipes.
    pub sums: Edit<Sums>,
    /// The root's sections.
    pub root: Edit<Vec<Section>>,
    /// The root's bytes.
    pub root_bytes: Edit<Vec<u8>>,
    /// The preamble, before it is signed.
    pub preamble: Edit<Vec<u8>>,
    /// The area without its BLAKE3.
    pub area: Edit<Vec<u8>>,
    /// The whole file.
    pub file: Edit<Vec<u8>>,
}

/// A bundle in parts.
pub struct Bundle {
    /// Section 1 of the root.
    pub identity: Identity,
    /// The keys and values of annotations.
    pub annotations: Vec<(Vec<u8>, Vec<u8>)>,
    /// The images of its trees.
    pub images: Vec<Image>,
    /// log2 of the piece size.
    pub piece_log2: u8,
    /// The index.
    pub index: Index,
    /// The layout.
    pub layout: Layout,
    /// The chunks' stored bytes.
    pub stored: Vec<Vec<u8>>,
    /// The length of the signature area.
    pub area_len: u32,
    /// The keys that sign the bundle.
    pub signers: Vec<Key>,
    /// Further envelopes, made for the signed bytes.
    pub envelopes: Vec<MakeEnvelope>,
    /// The contents of the objects.
    pub contents: Vec<Vec<u8>>,
    /// What makes it a delta bundle; its layout then has only the carried objects.
    pub delta: Option<Delta>,
    /// Edits to the structures.
    pub edits: Edits,
}

/// How contents become chunks.
#[derive(Clone, Copy, Debug)]
pub struct Packing {
    /// log2 of the piece size.
    pub piece_log2: u8,
    /// The maximum number of objects in a group.
    pub group: usize,
    /// Whether chunks are stored without compression.
    pub raw: bool,
}

impl Default for Packing {
    fn default() -> Self {
        Self { piece_log2: 12, group: 100, raw: false }
    }
}

impl Bundle {
    /// Returns a valid bundle of these refs.
    pub fn new(refs: &[(&str, Node)], packing: Packing) -> Self {
        Self::with_commits(refs, &[], packing)
    }

    /// Returns a valid bundle of these refs, and of OSTree commits with their parents.
    pub fn with_commits(refs: &[(&str, Node)], commits: &[(&str, Vec<Commit>)], packing: Packing) -> Self {
        let mut contents = Vec::new();
        let mut index = Index::default();
        for (name, root) in refs {
            index.add_ref(name, root, &mut contents);
        }
        for (name, commits) in commits {
            OsTree::add_ref(&mut index, &mut contents, name, commits);
        }
        index.refs.sort_by(|a, b| a.1.cmp(&b.1));
        index.verity = verity_of(&contents);
        let (layout, stored) = lay_out(&contents, packing, !commits.is_empty());
        Self {
            identity: Identity {
                version: 1,
                created: 1_700_000_000,
                expires: 0,
                name: b"test".to_vec(),
                tags: Vec::new(),
            },
            annotations: Vec::new(),
            images: Vec::new(),
            piece_log2: packing.piece_log2,
            index,
            layout,
            stored,
            area_len: 64,
            signers: Vec::new(),
            envelopes: Vec::new(),
            contents,
            delta: None,
            edits: Edits::default(),
        }
    }

    /// Returns a valid bundle of the OSTree commit of a tree, except that its dirtrees are those of another tree with the same names.
    pub fn with_other_dirtrees(own: Node, other: Node, packing: Packing) -> Self {
        let [mut bundle, other] =
            [own, other].map(|tree| Self::with_commits(&[], &[("main", vec![commit(tree)])], packing));
        if let (Some(own), Some(other)) = (&mut bundle.index.ostree, other.index.ostree) {
            own.objects = other.objects;
        }
        bundle
    }

    /// Replaces the stored bytes of a chunk, and its length and digest in the layout.
    pub fn store(&mut self, chunk: usize, stored: Vec<u8>) {
        self.layout.chunks[chunk].stored_len = narrow(stored.len());
        self.layout.chunks[chunk].digest = hash(&stored);
        self.stored[chunk] = stored;
    }

    /// Signs with these keys, in an area with room for the signatures.
    pub fn signed_by(mut self, keys: &[Key]) -> Self {
        self.signers = keys.to_vec();
        self.area_len = 512;
        self
    }

    /// Returns the bytes of the file.
    pub fn encode(self) -> Vec<u8> {
        let Self {
            identity,
            annotations,
            images,
            piece_log2,
            index,
            layout,
            stored,
            area_len,
            signers,
            envelopes,
            edits,
            ..
        } = self;
        let carried = self.delta.as_ref().map(|delta| delta.carried.clone());
        let own = self.delta.as_ref().map_or(&index.objects, |delta| &delta.difference.objects);
        let sums = layout.recipes.as_ref().map(|recipes| edited(recipes.sums(own), edits.sums));
        let delta = self.delta.map(|delta| {
            let difference = join(&edited(delta.difference.sections(), delta.edit));
            let of_chunk =
                |ranges: &Vec<(u32, u64, u64)>| ranges.iter().fold(0_u64, |sum, range| sum.saturating_add(range.2));
            let prefix_len = layout.prefixes.iter().map(of_chunk).max().unwrap_or(0_u64);
            let prefix_len = u32::try_from(prefix_len).unwrap_or(u32::MAX);
            let bases = Bases { difference_len: wide(difference.len()), prefix_len, bases: delta.bases };
            (difference, edited(bases, delta.edit_bases))
        });
        let index_bytes = edited(index.sections(), edits.index);
        let index_bytes = join(&index_bytes);
        let layout_bytes = join(&edited(layout.sections(), edits.layout));
        // A delta bundle has the difference in place of the index.
        let installed = delta.as_ref().map_or(&index_bytes, |(difference, _)| difference);
        let index_frame = edited(frame(installed), edits.index_frame);
        let layout_frame = edited(frame(&layout_bytes), edits.layout_frame);
        let contents = Contents {
            index_digest: verity::digest(&index_bytes),
            index_len: wide(index_bytes.len()),
            index_stored: wide(index_frame.len()),
            index_blake3: hash(&index_frame),
            layout_len: wide(layout_bytes.len()),
            layout_stored: wide(layout_frame.len()),
            layout_blake3: hash(&layout_frame),
        };
        let chunk_lens = layout.chunks.iter().map(|chunk| wide(usize::try_from(chunk.len).expect("32 bits")));
        let window = chunk_lens.chain([wide(installed.len()), contents.layout_len]).max().unwrap_or(0);
        let window_log = u8::try_from(window.next_power_of_two().trailing_zeros()).expect("below 64").max(10);
        let contents = edited(contents, edits.contents);
        let maxima = edited(maxima(&index, &layout, carried.as_deref(), (piece_log2, window_log)), edits.maxima);

        let mut sections = vec![
            Section::critical(1, identity.encode()),
            Section::critical(2, contents.encode()),
            Section::critical(3, maxima.encode()),
        ];
        if !annotations.is_empty() {
            sections.push(Section::ignorable(4, encode_annotations(&annotations)));
        }
        sections.extend(delta.map(|(_, bases)| Section::critical(5, bases.encode())));
        if !images.is_empty() {
            sections.push(Section::ignorable(6, encode_images(&images)));
        }
        sections.extend(sums.map(|sums| Section::critical(9, sums.encode())));
        let root = edited(join(&edited(sections, edits.root)), edits.root_bytes);
        let mut preamble = vec![0x89, 0x53, 0x4c, 0x46, 0x54, 0x0d, 0x0a, 0x1a, 0, 0, 0, 0];
        preamble.extend(narrow(root.len()).to_le_bytes());
        preamble.resize(32, 0);
        let mut file = edited(preamble, edits.preamble);
        file.extend(root);

        let signed = signers.iter().map(|key| (1, key.sign(&file)));
        let mut envelopes: Vec<(u16, Vec<u8>)> = signed.chain(envelopes.iter().map(|make| make(&file))).collect();
        envelopes.sort();
        let area = edited(encode_envelopes(&envelopes, area_len), edits.area);
        file.extend(area);
        file.extend(hash(&file));
        file.extend(layout_frame);
        file.extend(index_frame);
        file.extend(stored.concat());
        edited(file, edits.file)
    }
}

fn edited<T>(mut value: T, edit: Edit<T>) -> T {
    if let Some(edit) = edit {
        edit(&mut value);
    }
    value
}

/// Returns the area without its BLAKE3: its length, the envelopes, their end and the fill.
fn encode_envelopes(envelopes: &[(u16, Vec<u8>)], area_len: u32) -> Vec<u8> {
    let mut out = area_len.to_le_bytes().to_vec();
    for (kind, body) in envelopes {
        out.extend(kind.to_le_bytes());
        out.extend(narrow(body.len()).to_le_bytes());
        out.extend(body);
    }
    let room = usize::try_from(area_len).expect("32 bits") - 32;
    assert!(out.len() + 2 <= room, "the area has no room: {} of {room}", out.len() + 2);
    out.resize(room, 0);
    out
}

/// Section 4 of the root.
pub fn encode_annotations(annotations: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut out = short(annotations.len()).to_le_bytes().to_vec();
    for (key, value) in annotations {
        out.push(byte(key.len()));
        out.extend(key);
        out.extend(short(value.len()).to_le_bytes());
        out.extend(value);
    }
    out
}

/// Section 6 of the root.
pub fn encode_images(images: &[Image]) -> Vec<u8> {
    let mut out = short(images.len()).to_le_bytes().to_vec();
    for image in images {
        out.extend(image.reference.to_le_bytes());
        out.extend([image.version, image.algorithm]);
        out.extend(&image.digest);
    }
    out
}

impl Identity {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = self.version.to_le_bytes().to_vec();
        out.extend(self.created.to_le_bytes());
        out.extend(self.expires.to_le_bytes());
        out.push(byte(self.name.len()));
        out.extend(&self.name);
        out.extend(short(self.tags.len()).to_le_bytes());
        for tag in &self.tags {
            out.push(byte(tag.len()));
            out.extend(tag);
        }
        out
    }
}

impl Contents {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = self.index_digest.to_vec();
        out.extend(self.index_len.to_le_bytes());
        out.extend(self.index_stored.to_le_bytes());
        out.extend(self.index_blake3);
        out.extend(self.layout_len.to_le_bytes());
        out.extend(self.layout_stored.to_le_bytes());
        out.extend(self.layout_blake3);
        out
    }
}

impl Maxima {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![self.piece_log2, self.window_log];
        out.extend(self.refs.to_le_bytes());
        out.extend(self.depth.to_le_bytes());
        for number in [self.entries, self.paths, self.inodes, self.objects, self.logical, self.disk, self.chunks] {
            out.extend(number.to_le_bytes());
        }
        out.extend(self.chunks_stored.to_le_bytes());
        out.extend(self.chunk_len.to_le_bytes());
        out.extend(self.chunk_stored.to_le_bytes());
        out
    }
}

impl Index {
    fn add_ref(&mut self, name: &str, root: &Node, contents: &mut Vec<Vec<u8>>) {
        self.refs.push((0, name.into()));
        self.add_inode(root, contents);
        self.add_block(root, contents);
    }

    fn add_block(&mut self, directory: &Node, contents: &mut Vec<Vec<u8>>) {
        let What::Directory(names) = &directory.what else { return };
        for (name, node) in names {
            self.names.push(name.clone());
            if let What::Link(inode) = node.what {
                self.links.push(inode + 1);
            } else {
                self.links.push(0);
                self.add_inode(node, contents);
            }
        }
        for (_, node) in names {
            self.add_block(node, contents);
        }
    }

    fn add_inode(&mut self, node: &Node, contents: &mut Vec<Vec<u8>>) {
        let attributes =
            Attributes { mode: node.st_mode(), uid: node.owner.0, gid: node.owner.1, xattrs: node.xattrs.clone() };
        let row = self.attribute_row(attributes);
        self.rows.push(row);
        self.mtimes.push(node.mtime.0);
        self.mtime_ns.push(node.mtime.1);
        match &node.what {
            What::Directory(names) => self.children.push(narrow(names.len())),
            What::Symlink(target) => self.targets.push(target.clone()),
            What::Device(_, major, minor) => self.devices.push((*major, *minor)),
            What::Regular(content) => {
                let column = self.object_of(content, contents);
                self.regulars.push(column);
            }
            What::Fifo | What::Socket | What::Link(_) => {}
        }
    }

    /// Returns the row of these attributes.
    pub fn attribute_row(&mut self, attributes: Attributes) -> u32 {
        let row = self.attributes.iter().position(|known| *known == attributes).unwrap_or_else(|| {
            self.attributes.push(attributes);
            self.attributes.len() - 1
        });
        narrow(row)
    }

    /// Returns the number in the column of objects for a file with this content.
    pub fn object_of(&mut self, content: &[u8], contents: &mut Vec<Vec<u8>>) -> u32 {
        if let Some(object) = contents.iter().position(|known| known == content) {
            return narrow(object) + 1;
        }
        self.objects.push((wide(content.len()), hash(content)));
        contents.push(content.to_vec());
        0
    }

    pub(crate) fn sections(&self) -> Vec<Section> {
        let u32s = |values: &[u32]| planes32(values.iter().copied());
        let mut refs = short(self.refs.len()).to_le_bytes().to_vec();
        for (kind, name) in &self.refs {
            refs.push(*kind);
            refs.push(byte(name.len()));
            refs.extend(name);
        }
        let mut entries = wide(self.names.len()).to_le_bytes().to_vec();
        entries.extend(self.names.iter().map(|name| byte(name.len())));
        entries.extend(u32s(&self.links));
        entries.extend(self.names.concat());
        let mut inodes = wide(self.rows.len()).to_le_bytes().to_vec();
        inodes.extend(u32s(&self.rows));
        inodes.extend(planes64(self.mtimes.iter().map(|time| u64::from_le_bytes(time.to_le_bytes()))));
        inodes.extend(u32s(&self.mtime_ns));
        let mut symlinks = planes16(self.targets.iter().map(|target| short(target.len())));
        symlinks.extend(self.targets.concat());
        let mut devices = planes32(self.devices.iter().map(|device| device.0));
        devices.extend(planes32(self.devices.iter().map(|device| device.1)));
        let mut attributes = narrow(self.attributes.len()).to_le_bytes().to_vec();
        self.attributes.iter().for_each(|row| row.encode(&mut attributes));
        let mut objects = wide(self.objects.len()).to_le_bytes().to_vec();
        objects.extend(planes64(self.objects.iter().map(|object| object.0)));
        objects.extend(self.objects.iter().flat_map(|object| object.1));
        let (children, regulars) = (u32s(&self.children), u32s(&self.regulars));
        let payloads =
            [refs, entries, inodes, children, regulars, symlinks, devices, attributes, objects, self.verity.to_vec()];
        let mut sections: Vec<Section> =
            (1..).zip(payloads).map(|(id, payload)| Section::critical(id, payload)).collect();
        sections.extend(self.ostree.as_ref().map(|ostree| Section::critical(11, ostree.encode())));
        sections
    }
}

impl Attributes {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.mode.to_le_bytes());
        out.extend(self.uid.to_le_bytes());
        out.extend(self.gid.to_le_bytes());
        out.extend(short(self.xattrs.len()).to_le_bytes());
        for (name, value) in &self.xattrs {
            out.push(byte(name.len()));
            out.extend(name);
            out.extend(narrow(value.len()).to_le_bytes());
            out.extend(value);
        }
    }
}

impl Layout {
    pub(crate) fn sections(&self) -> Vec<Section> {
        let chunks = encode_chunks(&self.chunks);
        let mut before = u32::MAX;
        let steps = self.members.iter().map(|object| {
            let step = object.wrapping_sub(before).wrapping_sub(1);
            before = *object;
            step
        });
        let steps: Vec<u32> = steps.collect();
        let mut pieces = planes32(self.pieces.iter().map(|piece| piece.0));
        pieces.extend(self.pieces.iter().flat_map(|piece| piece.1));
        let mut holes = narrow(self.holes.len()).to_le_bytes().to_vec();
        holes.extend(planes32(self.holes.iter().map(|holes| holes.0)));
        holes.extend(planes32(self.holes.iter().map(|holes| narrow(holes.1.len()))));
        let extents: Vec<(u64, u64)> = self.holes.iter().flat_map(|holes| holes.1.clone()).collect();
        holes.extend(planes64(extents.iter().map(|extent| extent.0)));
        holes.extend(planes64(extents.iter().map(|extent| extent.1)));
        let mut sections = vec![
            Section::critical(1, chunks),
            Section::critical(2, planes32(steps.iter().copied())),
            Section::critical(3, pieces),
            Section::critical(4, holes),
        ];
        let landmark = self.landmark.map(|(start, count)| [start.to_le_bytes(), count.to_le_bytes()].concat());
        sections.extend(landmark.map(|landmark| Section::ignorable(5, landmark)));
        if !self.prefixes.is_empty() {
            let ranges: Vec<(u32, u64, u64)> = self.prefixes.concat();
            let mut prefixes = planes32(self.prefixes.iter().map(|ranges| narrow(ranges.len())));
            prefixes.extend(planes32(ranges.iter().map(|range| range.0)));
            prefixes.extend(planes64(ranges.iter().map(|range| range.1)));
            prefixes.extend(planes64(ranges.iter().map(|range| range.2)));
            sections.push(Section::critical(6, prefixes));
        }
        sections.extend(self.repository.as_ref().map(|files| {
            let mut repository = vec![byte(files.len())];
            for (kind, bytes) in files {
                repository.push(*kind);
                repository.extend(narrow(bytes.len()).to_le_bytes());
                repository.extend(bytes);
            }
            Section::ignorable(7, repository)
        }));
        sections.extend(self.recipes.as_ref().map(|recipes| Section::critical(8, recipes.encode())));
        sections
    }
}

/// Section 1 of the layout.
pub(crate) fn encode_chunks(chunks: &[Chunk]) -> Vec<u8> {
    let mut out = narrow(chunks.len()).to_le_bytes().to_vec();
    out.extend(chunks.iter().map(|chunk| chunk.codec));
    out.extend(planes32(chunks.iter().map(|chunk| chunk.stored_len)));
    out.extend(planes32(chunks.iter().map(|chunk| chunk.len)));
    out.extend(planes32(chunks.iter().map(|chunk| chunk.objects)));
    out.extend(chunks.iter().flat_map(|chunk| chunk.digest));
    out
}

/// verity(T) of core 6.
fn verity_of(contents: &[Vec<u8>]) -> [u8; 32] {
    let digests: Vec<u8> = contents.iter().flat_map(|content| verity::digest(content)).collect();
    verity::digest(&digests)
}

/// Returns the maximal runs of at least 16 zero blocks.
fn holes_of(content: &[u8]) -> Vec<(u64, u64)> {
    let mut holes: Vec<(u64, u64)> = Vec::new();
    for (block, bytes) in (0..).zip(content.as_chunks::<4096>().0) {
        if bytes.iter().any(|byte| *byte != 0) {
            continue;
        }
        match holes.last_mut() {
            Some((start, len)) if *start + *len == block => *len += 1,
            _ => holes.push((block, 1)),
        }
    }
    holes.retain(|hole| hole.1 >= 16);
    holes
}

/// Returns the bytes of `content` between `start` and `start + len` that are not in holes.
fn data_of(content: &[u8], holes: &[(u64, u64)], start: usize, len: usize) -> Vec<u8> {
    let in_hole = |at: usize| {
        let block = wide(at / 4096);
        holes.iter().any(|(start, len)| (*start..start + len).contains(&block))
    };
    let mut data = Vec::new();
    for block in content[start..content.len().min(start + len)].chunks(4096).zip((start..).step_by(4096)) {
        if !in_hole(block.1) {
            data.extend(block.0);
        }
    }
    data
}

/// Packs the contents into chunks. With `in_order`, the chunks of the pieces of each object do not descend.
pub(crate) fn lay_out(contents: &[Vec<u8>], packing: Packing, in_order: bool) -> (Layout, Vec<Vec<u8>>) {
    lay_out_without(contents, &[], packing, in_order)
}

/// Does the same, without the data of the objects that are `made`.
pub(crate) fn lay_out_without(
    contents: &[Vec<u8>],
    made: &[u32],
    packing: Packing,
    in_order: bool,
) -> (Layout, Vec<Vec<u8>>) {
    let piece_len = 1 << packing.piece_log2;
    let (mut layout, mut stored) = (Layout::default(), Vec::new());
    let mut add_chunk = |data: &[u8], objects: usize, chunks: &mut Vec<Chunk>| {
        let bytes = if packing.raw { data.to_vec() } else { frame(data) };
        chunks.push(Chunk {
            codec: u8::from(!packing.raw),
            stored_len: narrow(bytes.len()),
            len: narrow(data.len()),
            objects: narrow(objects),
            digest: hash(&bytes),
        });
        stored.push(bytes);
        narrow(chunks.len())
    };

    let mut grouped = Vec::new();
    for (object, content) in (0..).zip(contents).filter(|(object, _)| !made.contains(object)) {
        let holes = holes_of(content);
        let data = data_of(content, &holes, 0, content.len());
        if content.len() <= piece_len && !data.is_empty() {
            grouped.push((object, data));
        }
        if !holes.is_empty() {
            layout.holes.push((object, holes));
        }
    }
    for group in grouped.chunks(packing.group) {
        let data: Vec<u8> = group.iter().flat_map(|(_, data)| data).copied().collect();
        add_chunk(&data, group.len(), &mut layout.chunks);
        layout.members.extend(group.iter().map(|(object, _)| object));
    }

    let mut known: Vec<(Vec<u8>, u32)> = Vec::new();
    for (object, content) in (0..).zip(contents).filter(|(_, content)| content.len() > piece_len) {
        let (holes, is_made) = (holes_of(content), made.contains(&object));
        let mut least = 0;
        for (at, piece) in (0..).step_by(piece_len).zip(content.chunks(piece_len)) {
            let data = data_of(content, &holes, at, piece_len);
            let chunk = match known.iter().find(|(seen, chunk)| *seen == data && *chunk >= least) {
                _ if data.is_empty() || is_made => 0,
                Some((_, chunk)) => *chunk,
                None => {
                    let chunk = add_chunk(&data, 0, &mut layout.chunks);
                    known.push((data, chunk));
                    chunk
                }
            };
            if in_order {
                least = chunk.max(least);
            }
            layout.pieces.push((chunk, pieces::chaining_value(wide(at), std::iter::once(piece))));
        }
    }
    (layout, stored)
}

/// Computes the maxima of core 4.3, as far as possible with columns that may be wrong. In a delta bundle, the layout has only the `carried` objects.
fn maxima(index: &Index, layout: &Layout, carried: Option<&[u32]>, (piece_log2, window_log): (u8, u8)) -> Maxima {
    let grown = index.ostree.as_ref().map(|ostree| ostree.grown.clone()).unwrap_or_default();
    let brought: Vec<_> = index.ostree.iter().flat_map(OsTree::brought).cloned().collect();
    let (depth, directories, paths) = walk(index);
    // For each regular file: the object, its size, and the space that the inode takes besides the content.
    let files = of_type(index, |bits| bits == 0x8000).map(|row| disk::xattrs(&row.xattrs)).chain(std::iter::repeat(0));
    let files: Vec<(usize, u64, u64)> = objects_of(index)
        .into_iter()
        .zip(files)
        .chain(grown.objects.iter().copied())
        .chain(brought.iter().filter_map(|brought| Some((brought.object?, brought.disk))))
        .map(|(object, beside)| (object, index.objects.get(object).map_or(0, |row| row.0), beside))
        .collect();
    let placed = |object: usize| match carried {
        Some(carried) => carried.iter().position(|number| *number == narrow(object)),
        None => Some(object),
    };
    let on_disk = |object: usize, size: u64| {
        let extents = || layout.holes.iter().filter(|holes| holes.0 == narrow(object)).flat_map(|holes| &holes.1);
        let holes = extents().map(|extent| extent.1.wrapping_mul(disk::BLOCK)).fold(0, u64::wrapping_add);
        disk::content(size.wrapping_sub(holes))
    };
    let contents = files.iter().filter_map(|(object, size, beside)| Some((placed(*object)?, size, beside)));
    let contents = contents.map(|(placed, size, beside)| on_disk(placed, *size).wrapping_add(*beside));
    let contents = contents.fold(0, u64::wrapping_add);
    let others = of_type(index, |bits| bits != 0x8000).map(|row| disk::xattrs(&row.xattrs));
    let others = others.chain(index.targets.iter().map(|target| disk::symlink(target))).sum::<u64>();
    let sum = |values: &mut dyn Iterator<Item = u64>| values.fold(0, u64::wrapping_add);
    let kept = sum(&mut brought.iter().filter(|brought| brought.object.is_none()).map(|brought| brought.disk));
    let others = if carried.is_some() { 0 } else { others + directories + grown.disk + kept };
    Maxima {
        piece_log2,
        window_log,
        refs: short(index.refs.len()),
        depth: depth.max(grown.depth),
        entries: wide(index.names.len()) + grown.entries + sum(&mut brought.iter().map(|brought| brought.entries)),
        paths: paths + grown.paths,
        inodes: wide(index.rows.len()) + grown.inodes + wide(brought.len()),
        objects: wide(index.objects.len()),
        logical: sum(&mut files.iter().map(|(_, size, _)| *size)),
        disk: contents.wrapping_add(others),
        chunks: wide(layout.chunks.len()),
        chunks_stored: sum(&mut layout.chunks.iter().map(|chunk| chunk.stored_len.into())),
        chunk_len: layout.chunks.iter().map(|chunk| chunk.len).max().unwrap_or(0),
        chunk_stored: layout.chunks.iter().map(|chunk| chunk.stored_len).max().unwrap_or(0),
    }
}

/// Returns the object of each regular file.
fn objects_of(index: &Index) -> Vec<usize> {
    let mut fresh = 0;
    let at = |number: u32| usize::try_from(number).expect("32 bits");
    let object = |column: &u32| match column.checked_sub(1) {
        Some(object) => at(object),
        None => {
            fresh += 1;
            fresh - 1
        }
    };
    index.regulars.iter().map(object).collect()
}

/// Returns the attributes of inodes with their types, as far as they exist.
fn of_type(index: &Index, is_one: impl Fn(u16) -> bool) -> impl Iterator<Item = &Attributes> {
    let rows = index.rows.iter().filter_map(|row| index.attributes.get(usize::try_from(*row).ok()?));
    rows.filter(move |row| is_one(row.mode & 0xf000))
}

/// Returns the largest number of components in a path, the space that directories take on a disk, and the bytes of all paths.
fn walk(index: &Index) -> (u32, u64, u64) {
    let is_directory = |inode: usize| {
        let row = index.rows.get(inode).and_then(|row| usize::try_from(*row).ok());
        row.and_then(|row| index.attributes.get(row)).is_some_and(|row| row.mode & 0xf000 == 0x4000)
    };
    let (mut deepest, mut len, mut paths, mut entry, mut inode) = (0, 0, 0, 0, 0);
    let children = (0..index.rows.len()).filter(|inode| is_directory(*inode)).zip(index.children.iter().copied());
    let children: std::collections::BTreeMap<usize, u32> = children.collect();
    for _ in index.refs.iter().filter(|(kind, _)| *kind == 0) {
        let mut pending = vec![(inode, 1, 0)];
        inode += 1;
        while let Some((directory, depth, above)) = pending.pop() {
            let (below, first) = (pending.len(), entry);
            for _ in 0..children.get(&directory).copied().unwrap_or(0).min(narrow(index.links.len())) {
                deepest = deepest.max(depth);
                let path = above + index.names.get(entry).map_or(0, |name| wide(name.len()));
                paths += path;
                if index.links.get(entry).is_some_and(|link| *link == 0) {
                    if is_directory(inode) {
                        pending.push((inode, depth + 1, path + 1));
                    }
                    inode += 1;
                }
                entry += 1;
            }
            len += disk::directory(index.names.iter().take(entry).skip(first).map(|name| &name[..]));
            pending[below..].reverse();
        }
    }
    (deepest, len, paths)
}
