//! Reads payloads into the columns that [`crate::bundle`] and [`crate::delta`] write, and checks only whether each field is there.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use sealift_format::Index as Parsed;

use crate::bundle::{Attributes, Chunk, Contents, Identity, Image, Index, Layout, Maxima};
use crate::bytes::Section;
use crate::delta::{Base, Bases, Difference};
use crate::ostree::OsTree;
use crate::reader::open_whole;
use crate::recipes::{PartRange, Recipes, Segment, Sums};

use super::parts::payload;

/// The remaining bytes of a payload.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    /// Reads a count of rows, each of which has at least one byte.
    fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.u32()?).ok()?;
        (count <= self.0.len()).then_some(count)
    }

    fn wide_count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.u64()?).ok()?;
        (count <= self.0.len()).then_some(count)
    }

    fn planes<const W: usize>(&mut self, count: usize) -> Option<Vec<[u8; W]>> {
        let bytes = self.take(count.checked_mul(W)?)?;
        Some((0..count).map(|row| std::array::from_fn(|plane| bytes[plane * count + row])).collect())
    }

    fn u16s(&mut self, count: usize) -> Option<Vec<u16>> {
        Some(self.planes(count)?.into_iter().map(u16::from_le_bytes).collect())
    }

    fn u32s(&mut self, count: usize) -> Option<Vec<u32>> {
        Some(self.planes(count)?.into_iter().map(u32::from_le_bytes).collect())
    }

    fn u64s(&mut self, count: usize) -> Option<Vec<u64>> {
        Some(self.planes(count)?.into_iter().map(u64::from_le_bytes).collect())
    }

    fn i64s(&mut self, count: usize) -> Option<Vec<i64>> {
        Some(self.planes(count)?.into_iter().map(i64::from_le_bytes).collect())
    }

    fn hashes(&mut self, count: usize) -> Option<Vec<[u8; 32]>> {
        Some(self.take(count.checked_mul(32)?)?.as_chunks().0.to_vec())
    }

    fn blobs(&mut self, lens: impl IntoIterator<Item = impl Into<u32>>) -> Option<Vec<Vec<u8>>> {
        lens.into_iter().map(|len| Some(self.take(usize::try_from(len.into()).ok()?)?.to_vec())).collect()
    }

    /// Reads bytes that are preceded by their length in one byte.
    fn string(&mut self) -> Option<Vec<u8>> {
        let len = self.u8()?;
        Some(self.take(len.into())?.to_vec())
    }

    fn all_u32s(&mut self) -> Option<Vec<u32>> {
        self.u32s(self.0.len() / 4)
    }

    fn targets(&mut self, count: usize) -> Option<Vec<Vec<u8>>> {
        let lens = self.u16s(count)?;
        self.blobs(lens)
    }

    /// Reads values of the form `references`.
    fn references(&mut self, count: usize) -> Option<Vec<u32>> {
        let mut last = u32::MAX;
        let steps = self.u32s(count)?.into_iter();
        let rows = steps.map(|step| {
            last = last.wrapping_add(1).wrapping_add(step);
            last
        });
        Some(rows.collect())
    }

    /// Reads names, each followed by a zero byte.
    fn names(&mut self, count: usize) -> Option<Vec<Vec<u8>>> {
        let name = |_| {
            let len = self.0.iter().position(|byte| *byte == 0)?;
            let name = self.take(len)?.to_vec();
            self.take(1)?;
            Some(name)
        };
        (0..count).map(name).collect()
    }

    /// Reads a structure that must end after its last field.
    fn end<T>(&self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

/// Section 1 of the root.
pub(super) fn identity(bytes: &[u8]) -> Option<Identity> {
    let mut fields = Fields(bytes);
    let (version, created, expires, name) = (fields.u64()?, fields.i64()?, fields.i64()?, fields.string()?);
    let tags = (0..fields.u16()?).map(|_| fields.string()).collect::<Option<_>>()?;
    fields.end(Identity { version, created, expires, name, tags })
}

/// Section 2 of the root.
pub(super) fn contents(bytes: &[u8]) -> Option<Contents> {
    let mut fields = Fields(bytes);
    let contents = Contents {
        index_digest: fields.array()?,
        index_len: fields.u64()?,
        index_stored: fields.u64()?,
        index_blake3: fields.array()?,
        layout_len: fields.u64()?,
        layout_stored: fields.u64()?,
        layout_blake3: fields.array()?,
    };
    fields.end(contents)
}

/// Section 3 of the root.
pub(super) fn maxima(bytes: &[u8]) -> Option<Maxima> {
    let mut fields = Fields(bytes);
    let maxima = Maxima {
        piece_log2: fields.u8()?,
        window_log: fields.u8()?,
        refs: fields.u16()?,
        depth: fields.u32()?,
        entries: fields.u64()?,
        paths: fields.u64()?,
        inodes: fields.u64()?,
        objects: fields.u64()?,
        logical: fields.u64()?,
        disk: fields.u64()?,
        chunks: fields.u64()?,
        chunks_stored: fields.u64()?,
        chunk_len: fields.u32()?,
        chunk_stored: fields.u32()?,
    };
    fields.end(maxima)
}

/// Section 4 of the root.
pub(super) fn annotations(bytes: &[u8]) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut fields = Fields(bytes);
    let count = fields.u16()?;
    let row = |_| {
        let key = fields.string()?;
        let len = fields.u16()?;
        Some((key, fields.take(len.into())?.to_vec()))
    };
    let rows = (0..count).map(row).collect::<Option<_>>()?;
    fields.end(rows)
}

/// Section 5 of the root.
pub(super) fn bases(bytes: &[u8]) -> Option<Bases> {
    let mut fields = Fields(bytes);
    let (difference_len, prefix_len, count) = (fields.u64()?, fields.u32()?, fields.u16()?);
    let base = |_| {
        let (version, name) = (fields.u64()?, fields.string()?);
        Some(Base { version, name, digest: fields.array()?, len: fields.u64()? })
    };
    let bases = (0..count).map(base).collect::<Option<_>>()?;
    fields.end(Bases { difference_len, prefix_len, bases })
}

/// Section 6 of the root.
pub(super) fn images(bytes: &[u8]) -> Option<Vec<Image>> {
    let mut fields = Fields(bytes);
    let count = fields.u16()?;
    let image = |_| {
        let (reference, version, algorithm) = (fields.u16()?, fields.u8()?, fields.u8()?);
        let digest = fields.take(if algorithm == 2 { 64 } else { 32 })?.to_vec();
        Some(Image { reference, version, algorithm, digest })
    };
    let images = (0..count).map(image).collect::<Option<_>>()?;
    fields.end(images)
}

/// Reads the envelopes, without what follows them.
pub(super) fn envelopes(area: &[u8]) -> Option<Vec<(u16, Vec<u8>)>> {
    let (mut fields, mut envelopes) = (Fields(area), Vec::new());
    loop {
        let kind = fields.u16()?;
        if kind == 0 {
            return Some(envelopes);
        }
        let len = fields.count()?;
        envelopes.push((kind, fields.take(len)?.to_vec()));
    }
}

/// Section 1 of the layout.
pub(super) fn chunks(bytes: &[u8]) -> Option<Vec<Chunk>> {
    let mut fields = Fields(bytes);
    let count = fields.count()?;
    let codecs = fields.take(count)?;
    let [stored, lens, objects] = [fields.u32s(count)?, fields.u32s(count)?, fields.u32s(count)?];
    let digests = fields.hashes(count)?;
    let chunk = |row: usize| Chunk {
        codec: codecs[row],
        stored_len: stored[row],
        len: lens[row],
        objects: objects[row],
        digest: digests[row],
    };
    fields.end((0..count).map(chunk).collect())
}

/// A layout.
pub(super) fn layout(sections: &[Section]) -> Option<Layout> {
    let chunks = chunks(payload(sections, 1)?)?;
    let mut groups = Fields(payload(sections, 2)?);
    let members = groups.references(groups.0.len() / 4)?;
    let mut table = Fields(payload(sections, 3)?);
    let count = table.0.len() / 36;
    let pieces = table.u32s(count)?.into_iter().zip(table.hashes(count)?).collect();
    let mut table = Fields(payload(sections, 4)?);
    let count = table.count()?;
    let (objects, extents) = (table.u32s(count)?, table.u32s(count)?);
    let sum = usize::try_from(extents.iter().map(|count| u64::from(*count)).sum::<u64>()).ok()?;
    let mut rows = table.u64s(sum)?.into_iter().zip(table.u64s(sum)?);
    let of = |count: u32| usize::try_from(count).ok();
    let mut holes = Vec::new();
    for (object, count) in objects.into_iter().zip(extents) {
        holes.push((object, rows.by_ref().take(of(count)?).collect()));
    }
    let landmark = payload(sections, 5).and_then(|bytes| {
        let mut fields = Fields(bytes);
        Some((fields.u32()?, fields.u32()?))
    });
    let mut prefixes = Vec::new();
    if let Some(bytes) = payload(sections, 6) {
        let mut table = Fields(bytes);
        let counts = table.u32s(chunks.iter().filter(|chunk| chunk.codec > 1).count())?;
        let sum = usize::try_from(counts.iter().map(|count| u64::from(*count)).sum::<u64>()).ok()?;
        let (objects, offsets, lens) = (table.u32s(sum)?, table.u64s(sum)?, table.u64s(sum)?);
        let mut rows = (0..sum).map(|row| (objects[row], offsets[row], lens[row]));
        for count in counts {
            prefixes.push(rows.by_ref().take(of(count)?).collect());
        }
    }
    let repository = match payload(sections, 7) {
        Some(bytes) => Some(repository(bytes)?),
        None => None,
    };
    let recipes = match payload(sections, 8) {
        Some(bytes) => Some(recipes(bytes)?),
        None => None,
    };
    Some(Layout { chunks, members, pieces, holes, landmark, prefixes, repository, recipes })
}

/// Section 8 of the layout.
fn recipes(bytes: &[u8]) -> Option<Recipes> {
    let mut table = Fields(bytes);
    let count = table.count()?;
    let leaves = table.u64s(count)?.into_iter().zip(table.hashes(count)?).collect();
    let (views, made) = (table.count()?, table.count()?);
    let objects = table.u32s(made)?;
    let counts = table.u32s(views + made)?;
    let sum = usize::try_from(counts.iter().map(|count| u64::from(*count)).sum::<u64>()).ok()?;
    let kinds = table.take(sum)?;
    let of = |wanted: u8| kinds.iter().filter(|kind| **kind == wanted).count();
    let mut zeros = table.u64s(of(1))?.into_iter();
    let (coders, lens, inputs) = (table.u16s(of(2))?, table.u32s(of(2))?, table.u32s(of(2))?);
    let mut inputs_left = inputs.clone().into_iter();
    let mut encoded = coders.into_iter().zip(lens);
    let mut decoded = table.take(of(3))?.to_vec().into_iter().zip(table.u32s(of(3))?);
    let total = inputs.iter().map(|count| u64::from(*count)).sum::<u64>();
    let total = usize::try_from(total).ok()?.checked_add(of(0) + of(3))?;
    let (parts, offsets, range_lens) = (table.u32s(total)?, table.u64s(total)?, table.u64s(total)?);
    let mut rows = (0..total).map(|row| PartRange { of: parts[row], offset: offsets[row], len: range_lens[row] });
    let mut kinds = kinds.iter();
    let mut lists = Vec::new();
    for count in counts {
        let mut range = || rows.next();
        let mut segments = Vec::new();
        for kind in kinds.by_ref().take(usize::try_from(count).ok()?) {
            segments.push(match kind {
                0 => Segment::Copied(range()?),
                1 => Segment::Zeros(zeros.next()?),
                2 => {
                    let (coder, len) = encoded.next()?;
                    let ranges = (0..inputs_left.next()?).map(|_| range()).collect::<Option<_>>()?;
                    Segment::Encoded { coder, len, ranges }
                }
                3 => {
                    let (codec, len) = decoded.next()?;
                    Segment::Decoded { codec, len, range: range()? }
                }
                other => Segment::Unknown(*other),
            });
        }
        lists.push(segments);
    }
    let of_made = lists.split_off(views);
    let count = table.u16()?;
    let coders = (0..count).map(|_| Some((table.u8()?, table.string()?))).collect::<Option<_>>()?;
    table.end(Recipes { leaves, views: lists, made: objects.into_iter().zip(of_made).collect(), coders })
}

/// Section 9 of the root.
pub(super) fn sums(bytes: &[u8]) -> Option<Sums> {
    let mut fields = Fields(bytes);
    let mut sums = Sums {
        leaves: fields.u64()?,
        leaf_bytes: fields.u64()?,
        made: fields.u64()?,
        made_bytes: fields.u64()?,
        decoded_bytes: fields.u64()?,
        memory: fields.u64()?,
        encoders: Vec::new(),
    };
    for _ in 0..fields.u16()? {
        sums.encoders.push((fields.u8()?, fields.u64()?));
    }
    fields.end(sums)
}

fn repository(bytes: &[u8]) -> Option<Vec<(u8, Vec<u8>)>> {
    let mut table = Fields(bytes);
    let mut files = Vec::new();
    for _ in 0..table.u8()? {
        let kind = table.u8()?;
        let len = table.count()?;
        files.push((kind, table.take(len)?.to_vec()));
    }
    table.end(files)
}

fn attributes(bytes: &[u8]) -> Option<Vec<Attributes>> {
    let mut fields = Fields(bytes);
    let count = fields.count()?;
    let rows = (0..count).map(|_| attribute_row(&mut fields)).collect::<Option<_>>()?;
    fields.end(rows)
}

fn attribute_row(fields: &mut Fields<'_>) -> Option<Attributes> {
    let (mode, uid, gid) = (fields.u16()?, fields.u32()?, fields.u32()?);
    let mut xattrs = Vec::new();
    for _ in 0..fields.u16()? {
        let name = fields.string()?;
        let len = fields.count()?;
        xattrs.push((name, fields.take(len)?.to_vec()));
    }
    Some(Attributes { mode, uid, gid, xattrs })
}

fn objects(bytes: &[u8]) -> Option<Vec<(u64, [u8; 32])>> {
    let mut fields = Fields(bytes);
    let count = fields.wide_count()?;
    let rows = fields.u64s(count)?.into_iter().zip(fields.hashes(count)?).collect();
    fields.end(rows)
}

fn devices(bytes: &[u8]) -> Option<Vec<(u32, u32)>> {
    let (mut fields, count) = (Fields(bytes), bytes.len() / 8);
    Some(fields.u32s(count)?.into_iter().zip(fields.u32s(count)?).collect())
}

/// An index.
pub(super) fn index(sections: &[Section]) -> Option<Index> {
    let part = |id| payload(sections, id).map(Fields);
    let mut table = part(1)?;
    let mut refs = Vec::new();
    for _ in 0..table.u16()? {
        refs.push((table.u8()?, table.string()?));
    }
    let mut table = part(2)?;
    let count = table.wide_count()?;
    let lens = table.take(count)?;
    let links = table.u32s(count)?;
    let names = table.blobs(lens.iter().copied())?;
    let mut table = part(3)?;
    let count = table.wide_count()?;
    let (rows, mtimes, mtime_ns) = (table.u32s(count)?, table.i64s(count)?, table.u32s(count)?);
    let attributes = attributes(payload(sections, 8)?)?;
    let is_link = |row: &&u32| {
        let row = usize::try_from(**row).ok().and_then(|row| attributes.get(row));
        row.is_some_and(|row| row.mode >> 12 == 10)
    };
    let targets = part(6)?.targets(rows.iter().filter(is_link).count())?;
    let refs_of_commits = refs.iter().filter(|(kind, _)| *kind == 1).count();
    let ostree = match payload(sections, 11) {
        Some(bytes) => Some(ostree(bytes, &attributes, refs_of_commits)?),
        None => None,
    };
    Some(Index {
        refs,
        names,
        links,
        rows,
        mtimes,
        mtime_ns,
        children: part(4)?.all_u32s()?,
        regulars: part(5)?.all_u32s()?,
        targets,
        devices: devices(payload(sections, 7)?)?,
        attributes,
        objects: objects(payload(sections, 9)?)?,
        verity: part(10)?.array()?,
        ostree,
    })
}

fn ostree(bytes: &[u8], attributes: &[Attributes], refs: usize) -> Option<OsTree> {
    let mut table = Fields(bytes);
    let count = table.count()?;
    let kinds = table.take(count)?;
    let lens = table.u32s(count)?;
    let objects = kinds.iter().copied().zip(table.blobs(lens)?).collect();
    let count = table.count()?;
    let rows = table.u32s(count)?;
    let of_type = |wanted: u16| {
        let kind = |row: &&u32| attributes.get(usize::try_from(**row).ok()?).map(|row| row.mode >> 12);
        rows.iter().filter(|row| kind(row) == Some(wanted)).count()
    };
    let regulars = table.u32s(of_type(8))?;
    let targets = table.targets(of_type(10))?;
    let commits = table.u32s(refs)?;
    let collections = (0..refs).map(|_| table.string()).collect::<Option<_>>()?;
    table.end(OsTree { objects, rows, regulars, targets, commits, collections, ..OsTree::default() })
}

/// A difference, except for its section 14.
pub(super) fn difference(sections: &[Section]) -> Option<Difference> {
    let part = |id| payload(sections, id).map(Fields);
    let mut table = part(1)?;
    let base_objects = table.u32()?;
    let mut base_refs = Vec::new();
    for _ in 0..table.u16()? {
        base_refs.push((table.u8()?, table.string()?));
    }
    let mut table = part(2)?;
    let mut refs = Vec::new();
    for _ in 0..table.u16()? {
        refs.push((table.u8()?, table.string()?, table.u16()?));
    }
    let mut table = part(3)?;
    let count = table.wide_count()?;
    let ops = table.take(count)?.to_vec();
    let names = table.names(count)?;
    let attributes = attributes(payload(sections, 11)?)?;

    let has = |bit: u8| ops.iter().filter(|op| matches!(op, 3 | 4) || **op > 8 && **op & bit != 0).count();
    let mut table = part(4)?;
    let types = table.take(ops.iter().filter(|op| **op > 8 && **op & 1 == 0).count())?.to_vec();
    let rows = table.u32s(has(1))?;
    let mtimes = table.i64s(has(2))?.into_iter().zip(table.u32s(has(2))?).collect();
    let (mut of_types, mut of_rows) = (types.iter(), rows.iter());
    let mut links = 0;
    for op in &ops {
        let kind = match op {
            3 | 4 | 9.. if matches!(op, 3 | 4) || op & 1 != 0 => {
                let row = of_rows.next().and_then(|row| usize::try_from(*row).ok());
                row.and_then(|row| attributes.get(row)).map(|row| row.mode >> 12)
            }
            9.. => of_types.next().map(|kind| u16::from(*kind)),
            _ => None,
        };
        links += usize::from(kind == Some(10) && (matches!(op, 3 | 4) || op & 4 != 0));
    }
    let mut table = part(6)?;
    let regulars = table.references(table.0.len() / 4)?;
    let mut table = part(10)?;
    let count = table.count()?;
    let mut times = || Some(table.i64s(count)?.into_iter().zip(table.u32s(count)?).collect::<Vec<_>>());
    let times = times()?.into_iter().zip(times()?).collect();
    Some(Difference {
        base_objects,
        base_refs,
        refs,
        ops,
        names,
        types,
        rows,
        mtimes,
        blocks: part(5)?.all_u32s()?,
        regulars,
        targets: part(7)?.targets(links)?,
        devices: devices(payload(sections, 8)?)?,
        links: part(9)?.all_u32s()?,
        times,
        attributes,
        objects: objects(payload(sections, 12)?)?,
        verity: part(13)?.array()?,
        ostree: None,
        known: Vec::new(),
    })
}

thread_local! {
    static INDEXES: RefCell<HashMap<[u8; 32], Rc<Option<Parsed>>>> = RefCell::default();
}

/// Returns the index of a bundle that is a base. A few hundred are cached.
pub(super) fn index_of(file: &[u8]) -> Rc<Option<Parsed>> {
    let key = crate::bytes::hash(file);
    INDEXES.with_borrow_mut(|known| {
        if known.len() > 300 && !known.contains_key(&key) {
            known.clear();
        }
        let index = || Rc::new(open_whole(file).ok().map(|bundle| bundle.index));
        Rc::clone(known.entry(key).or_insert_with(index))
    })
}
