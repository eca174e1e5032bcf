//! A bundle in parts whose payloads are bytes. It is taken apart without checks, and put together again so that readers judge only the change.

use sealift_format::{Difference, Index, Layout, Objects, maxima, verity};

use super::columns;
use super::random::Random;
use crate::bundle;
use crate::bytes::{Section, hash, join, narrow, wide};
use crate::targets::INDEX_LEN;

/// A file in parts.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The preamble's bytes.
    pub preamble: [u8; 32],
    /// The root's sections.
    pub root: Vec<Section>,
    /// The signature area between its length and its BLAKE3.
    pub area: Vec<u8>,
    /// The layout's sections.
    pub layout: Vec<Section>,
    /// The sections of the index or the difference.
    pub index: Vec<Section>,
    /// The chunks' stored bytes.
    pub chunks: Vec<Vec<u8>>,
    /// The bytes of the bundles that are the bases of a delta bundle.
    pub bases: Vec<Vec<u8>>,
    /// The statements of the root, as they were.
    was: Was,
}

/// The statements of a file about itself.
#[derive(Clone, Debug, Default)]
struct Was {
    area_blake3: [u8; 32],
    layout_frame: Vec<u8>,
    index_frame: Vec<u8>,
}

/// What is not made consistent again: in a few mutations, each of these is left as it was, so that readers are compared on such inputs too.
#[derive(Clone, Copy, Debug, Default)]
pub struct Left {
    /// Digests and stored lengths of the chunks.
    pub chunks: bool,
    /// Lengths and hashes in the root, together with the stored layout and index.
    pub contents: bool,
    /// Lengths and hashes in the root only.
    pub hashes: bool,
    /// The maxima.
    pub maxima: bool,
    /// The root's length.
    pub root_len: bool,
    /// The BLAKE3 of the head.
    pub head: bool,
}

impl Left {
    /// In most files, all of them are made consistent.
    pub fn random(random: &mut Random) -> Self {
        if !random.once_in(8) {
            return Self::default();
        }
        let mut left = || random.once_in(4);
        Self { chunks: left(), contents: false, hashes: left(), maxima: left(), root_len: left(), head: left() }
    }
}

/// Returns the sections of a section list; bytes after them are dropped.
pub(super) fn split(bytes: &[u8]) -> Option<Vec<Section>> {
    let (mut sections, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let (id, after) = rest.split_first_chunk::<2>()?;
        let (flags, after) = after.split_first_chunk::<2>()?;
        let (len, after) = after.split_first_chunk::<8>()?;
        let (payload, after) = after.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
        let (id, flags) = (u16::from_le_bytes(*id), u16::from_le_bytes(*flags));
        sections.push(Section { id, flags, payload: payload.to_vec() });
        rest = after;
    }
    Some(sections)
}

fn decompressed(frame: &[u8]) -> Option<Vec<u8>> {
    let mut out = vec![0; 1 << 17];
    let len = zstd_safe::decompress(&mut out[..], frame).ok()?;
    out.truncate(len);
    Some(out)
}

/// Returns the payload of a section.
pub(super) fn payload(sections: &[Section], id: u16) -> Option<&[u8]> {
    sections.iter().find(|section| section.id == id).map(|section| &section.payload[..])
}

/// Gives a section another payload, if it exists.
pub(super) fn set_payload(sections: &mut [Section], id: u16, payload: Vec<u8>) {
    if let Some(section) = sections.iter_mut().find(|section| section.id == id) {
        section.payload = payload;
    }
}

impl Parts {
    /// Takes a file apart, as far as its form allows it.
    pub fn of(file: &[u8], bases: &[Vec<u8>]) -> Option<Self> {
        let at = |number: u64| usize::try_from(number).ok();
        let (preamble, rest) = file.split_first_chunk::<32>()?;
        let root_len = u32::from_le_bytes(*preamble[12..].first_chunk()?);
        let (root, rest) = rest.split_at_checked(at(root_len.into())?)?;
        let root = split(root)?;
        let area_len = u32::from_le_bytes(*rest.first_chunk()?);
        let (area, rest) = rest.split_at_checked(at(area_len.into())?)?;
        let area_blake3 = *area.last_chunk()?;
        let contents = columns::contents(payload(&root, 2)?)?;
        let (layout_frame, rest) = rest.split_at_checked(at(contents.layout_stored)?)?;
        let (index_frame, mut rest) = rest.split_at_checked(at(contents.index_stored)?)?;
        let (layout, index) = (split(&decompressed(layout_frame)?)?, split(&decompressed(index_frame)?)?);
        let lens = payload(&layout, 1).and_then(columns::chunks)?;
        let mut chunks = Vec::new();
        for chunk in lens {
            let len = at(chunk.stored_len.into())?.min(rest.len());
            let (stored, after) = rest.split_at(len);
            chunks.push(stored.to_vec());
            rest = after;
        }
        Some(Self {
            preamble: *preamble,
            root,
            area: area.get(4..area.len() - 32)?.to_vec(),
            layout,
            index,
            chunks,
            bases: bases.to_vec(),
            was: Was { area_blake3, layout_frame: layout_frame.to_vec(), index_frame: index_frame.to_vec() },
        })
    }

    /// Assembles a valid bundle that has other parts in place of the layout and the index of `head`.
    pub fn sound(head: &Self, layout: Vec<Section>, index: Vec<Section>, chunks: Vec<Vec<u8>>) -> Self {
        Self { layout, index, chunks, ..head.clone() }
    }

    /// Returns the bytes of the file. `frame` makes the stored bytes of layout and index.
    pub fn assemble(&self, left: Left, mut frame: impl FnMut(&[u8]) -> Vec<u8>) -> Vec<u8> {
        let (mut root, mut layout) = (self.root.clone(), self.layout.clone());
        if !left.chunks
            && let Some(mut rows) = payload(&layout, 1).and_then(columns::chunks)
        {
            for (row, stored) in rows.iter_mut().zip(&self.chunks) {
                row.stored_len = narrow(stored.len());
                row.digest = hash(stored);
            }
            set_payload(&mut layout, 1, bundle::encode_chunks(&rows));
        }
        let (index, layout) = (join(&self.index), join(&layout));
        let (mut layout_frame, mut index_frame) = (frame(&layout), frame(&index));
        if left.contents {
            layout_frame.clone_from(&self.was.layout_frame);
            index_frame.clone_from(&self.was.index_frame);
        } else if !left.hashes
            && let Some(mut contents) = payload(&root, 2).and_then(columns::contents)
        {
            contents.layout_len = wide(layout.len());
            contents.layout_stored = wide(layout_frame.len());
            contents.layout_blake3 = hash(&layout_frame);
            contents.index_stored = wide(index_frame.len());
            contents.index_blake3 = hash(&index_frame);
            if payload(&root, 5).is_none() {
                contents.index_len = wide(index.len());
                contents.index_digest = verity::digest(&index);
            }
            set_payload(&mut root, 2, contents.encode());
            if let Some(mut bases) = payload(&root, 5).and_then(columns::bases) {
                bases.difference_len = wide(index.len());
                set_payload(&mut root, 5, bases.encode());
            }
        }
        if !left.maxima {
            self.agree(&mut root, &layout, &index);
        }
        let mut preamble = self.preamble;
        let root = join(&root);
        if !left.root_len {
            preamble[12..16].copy_from_slice(&narrow(root.len()).to_le_bytes());
        }
        let mut file = [&preamble[..], &root].concat();
        file.extend(narrow(self.area.len() + 36).to_le_bytes());
        file.extend(&self.area);
        file.extend(if left.head { self.was.area_blake3 } else { hash(&file) });
        file.extend(layout_frame);
        file.extend(index_frame);
        file.extend(self.chunks.concat());
        file
    }

    /// Sets what the root says of recipes, as far as these can be read.
    fn agree_recipes(&self, root: &mut [Section]) -> Option<()> {
        let recipes = columns::layout(&self.layout)?.recipes?;
        let objects = match payload(root, 5) {
            Some(_) => columns::difference(&self.index)?.objects,
            None => columns::index(&self.index)?.objects,
        };
        set_payload(root, 9, recipes.sums(&objects).encode());
        Some(())
    }

    /// Sets the root's numbers to those of layout and index, as far as these can be read.
    fn agree(&self, root: &mut [Section], layout: &[u8], index: &[u8]) -> Option<()> {
        self.agree_recipes(root);
        let mut own = columns::maxima(payload(root, 3)?)?;
        let entries = 1 << 16;
        let longest = index.len().max(layout.len()).next_power_of_two().trailing_zeros();
        own.window_log = own.window_log.max(u8::try_from(longest).ok()?);
        if let Some(mut bases) = payload(root, 5).and_then(columns::bases) {
            let difference = Difference::parse(index, entries, INDEX_LEN).ok()?;
            let layout = Layout::parse(layout, &Objects::from(&difference), own.piece_log2).ok()?;
            own.refs = difference.refs().len().try_into().ok()?;
            own.set_layout(&layout);
            let prefix = layout.chunks.iter().map(|chunk| layout.prefix_len(chunk)).max().unwrap_or(0);
            bases.prefix_len = prefix.try_into().unwrap_or(u32::MAX);
            set_payload(root, 3, own.encode());
            set_payload(root, 5, bases.encode());
            let indexes: Vec<_> = self.bases.iter().map(|base| columns::index_of(base)).collect();
            let indexes: Vec<&Index> = indexes.iter().filter_map(|index| Option::as_ref(index)).collect();
            let made = difference.apply(&indexes).ok()?;
            let mut contents = columns::contents(payload(root, 2)?)?;
            contents.index_digest = verity::digest(&made);
            contents.index_len = wide(made.len());
            set_payload(root, 2, contents.encode());
            let made = Index::parse(made, entries).ok()?;
            let numbers = difference.carried_in(&made);
            if numbers.len() == difference.objects().len() {
                let objects = made.objects().len().try_into().ok()?;
                let layout = layout.renumbered(numbers, objects);
                own.set(&maxima(&made, &layout, own.piece_log2, own.window_log).ok()?);
            }
        } else {
            let index = Index::parse(index.to_vec(), entries).ok()?;
            let layout = Layout::parse(layout, &Objects::from(&index), own.piece_log2).ok()?;
            own.set(&maxima(&index, &layout, own.piece_log2, own.window_log).ok()?);
        }
        set_payload(root, 3, own.encode());
        Some(())
    }
}

impl bundle::Maxima {
    fn set_layout(&mut self, layout: &Layout) {
        let sum =
            |values: &mut dyn Iterator<Item = u32>| values.fold(0, |sum: u64, value| sum.wrapping_add(value.into()));
        self.chunks = wide(layout.chunks.len());
        self.chunks_stored = sum(&mut layout.chunks.iter().map(|chunk| chunk.stored_len));
        self.chunk_len = layout.chunks.iter().map(|chunk| chunk.len).max().unwrap_or(0);
        self.chunk_stored = layout.chunks.iter().map(|chunk| chunk.stored_len).max().unwrap_or(0);
    }

    fn set(&mut self, found: &sealift_format::Maxima) {
        *self = Self {
            piece_log2: self.piece_log2,
            window_log: self.window_log,
            refs: found.refs,
            depth: found.depth,
            entries: found.entries,
            paths: found.paths,
            inodes: found.inodes,
            objects: found.objects,
            logical: found.logical,
            disk: found.disk,
            chunks: found.chunks,
            chunks_stored: found.chunks_stored,
            chunk_len: found.chunk_len,
            chunk_stored: found.chunk_stored,
        };
    }
}
