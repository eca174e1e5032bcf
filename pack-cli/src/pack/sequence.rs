//! Turns scanned contents, in access order, into chunks: finds equal objects and chooses where chunks end.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::ops::Range;
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use sealift_format::num;
use sealift_format::verity::{FileHasher, VerityHasher};
use sealift_format::{Extent, Object, Row, Table, Xattrs, pieces};

use super::buffers::Buffer;
use super::holes::append_holes;
use super::image_wish::ForImages;
use super::scan::{LargePiece, Scanned, SmallObject, update_verity};
use crate::Error;
use sealift_store::contents::tasks::Item;

/// An object of the bundle, numbered in packing order.
#[derive(Debug)]
pub(super) struct PackedObject {
    pub(super) id: [u8; 32],
    pub(super) verity: [u8; 32],
    /// The first content with these bytes.
    pub(super) first: Item,
    /// Whether it is full of addresses: machine code, or tables of a file system.
    pub(super) has_addresses: bool,
    /// What few objects have.
    rare: Option<Box<Rare>>,
}

/// What an object has if it is large, has holes, or becomes part of an image.
#[derive(Debug, Default)]
struct Rare {
    holes: Vec<Extent>,
    #[cfg_attr(not(feature = "composefs"), allow(dead_code, reason = "nothing makes images"))]
    images: ForImages,
    pieces: Vec<StoredPiece>,
}

/// A piece of a large object: the job that stores it, if it has data, and its chaining value.
type StoredPiece = (Option<usize>, [u8; 32]);

impl Rare {
    fn boxed(self) -> Option<Box<Self>> {
        let has_any = !self.holes.is_empty() || !self.pieces.is_empty() || self.images.has_any();
        has_any.then(|| Box::new(self))
    }
}

impl PackedObject {
    /// Returns its row in an object table.
    pub(super) fn row(&self) -> Object {
        Object { id: self.id, size: self.size() }
    }

    /// Returns its length in bytes.
    pub(super) fn size(&self) -> u64 {
        self.first.len
    }

    pub(super) fn holes(&self) -> &[Extent] {
        self.rare.as_ref().map_or(&[], |rare| &rare.holes)
    }

    /// Returns the pieces of a large object; none of any other.
    pub(super) fn pieces(&self) -> &[StoredPiece] {
        self.rare.as_ref().map_or(&[], |rare| &rare.pieces)
    }

    #[cfg(feature = "composefs")]
    pub(super) fn images(&self) -> Option<&ForImages> {
        self.rare.as_ref().map(|rare| &rare.images)
    }
}

impl Table for PackedObject {
    const COUNT: &'static str = Object::COUNT;
}

/// Bytes that become one chunk.
pub(super) struct ChunkJob {
    /// Jobs are numbered in the order of writing.
    pub(super) number: usize,
    pub(super) parts: Vec<(Arc<Buffer>, Range<usize>)>,
    pub(super) len: usize,
    /// The objects of a group; none for a piece.
    pub(super) objects: Vec<Row<PackedObject>>,
    /// The job of the previous piece of its object.
    pub(super) after: Option<usize>,
    /// Whether it is of the hot set.
    pub(super) is_hot: bool,
}

/// Accepts scanned contents in access order.
pub(super) struct Sequencer {
    /// Target size of groups.
    group_len: usize,
    /// Target size of groups after the hot set.
    usual_len: usize,
    piece_len: u64,
    /// Whether the data becomes chunks.
    keeps: bool,
    /// The contents that recipes make, by source and number.
    made: HashSet<(usize, u32)>,
    objects: Vec<PackedObject>,
    by_id: HashTable<Row<PackedObject>>,
    hasher: RandomState,
    /// The object of each content of each source, once it has arrived.
    object_of: Vec<Vec<Option<Row<PackedObject>>>>,
    xattrs: Vec<(Item, Xattrs)>,
    pending: Vec<Pending>,
    pending_len: usize,
    /// The large contents of which some pieces have arrived.
    large: HashMap<(usize, u32), LargeState>,
    next_job: usize,
    /// Whether what arrives belongs to the hot set.
    is_hot: bool,
}

/// An object that waits for the end of its group.
struct Pending {
    data: Arc<Buffer>,
    range: Range<usize>,
    object: Row<PackedObject>,
}

/// A large object of which some pieces have arrived.
#[derive(Default)]
struct LargeState {
    verity: VerityHasher,
    sha512: Option<FileHasher>,
    holes: Vec<Extent>,
    has_addresses: bool,
    /// The pieces from the first one on, without a gap.
    pieces: Vec<StoredPiece>,
    /// Pieces after a gap, with their jobs: the part of a file that is read first need not be its start.
    ahead: BTreeMap<u64, (Option<usize>, LargePiece)>,
    last_job: Option<usize>,
}

impl LargeState {
    /// Appends the pieces that are next.
    fn catch_up(&mut self) {
        while let Some((job, piece)) = self.ahead.remove(&num::wide(self.pieces.len())) {
            update_verity(&mut self.verity, &piece);
            match (&mut self.sha512, &piece.sha512) {
                (Some(hasher), Some(next)) => hasher.append(next),
                (first, next) => *first = next.clone(),
            }
            append_holes(&mut self.holes, &piece.holes);
            self.has_addresses |= piece.has_addresses;
            self.pieces.push((job, piece.chaining_value));
        }
    }
}

/// Returns how many of the pending objects, given by id and length and `len` bytes in total, become a group of target size `group_len`. Of the cuts
/// between half and one and a half times that size, chooses the one before the object with the least id: this depends only on nearby objects, so a
/// change elsewhere moves no cut. Returns none if the group may still grow.
pub(crate) fn choose_cut<'a>(
    pending: impl ExactSizeIterator<Item = (&'a [u8; 32], u64)>,
    len: u64,
    group_len: u64,
) -> Option<usize> {
    if len <= group_len / 2 * 3 {
        return None;
    }
    let (mut before, count) = (0, pending.len());
    let mut best: Option<(&[u8; 32], usize)> = None;
    for (at, (id, len)) in pending.enumerate() {
        if before > group_len / 2 * 3 {
            break;
        }
        if before >= group_len / 2 && best.is_none_or(|(least, _)| id < least) {
            best = Some((id, at));
        }
        before += len;
    }
    Some(best.map_or(count, |(_, at)| at.max(1)))
}

/// The result of [`Sequencer::finish`].
pub(super) struct Sequenced {
    pub(super) objects: Vec<PackedObject>,
    /// The object of each content of each source.
    pub(super) object_of: Vec<Vec<Row<PackedObject>>>,
    pub(super) xattrs: Vec<(Item, Xattrs)>,
}

impl Sequencer {
    /// `content_counts` are those of the sources. Without `keeps`, objects are found but no chunks are made.
    pub(super) fn new(
        chunk_len: u64,
        keeps: bool,
        made: HashSet<(usize, u32)>,
        content_counts: impl Iterator<Item = usize>,
    ) -> Self {
        let unseen = |count| vec![None; count];
        Self {
            group_len: num::size(chunk_len),
            usual_len: num::size(chunk_len),
            piece_len: chunk_len,
            keeps,
            made,
            objects: Vec::new(),
            by_id: HashTable::new(),
            hasher: RandomState::new(),
            object_of: content_counts.map(unseen).collect(),
            xattrs: Vec::new(),
            pending: Vec::new(),
            pending_len: 0,
            large: HashMap::new(),
            next_job: 0,
            is_hot: false,
        }
    }

    /// Returns the number of bytes that wait for the end of their chunk.
    pub(super) fn pending_len(&self) -> usize {
        self.pending_len
    }

    /// Accepts the next task's result and appends the chunks that it completes.
    pub(super) fn take(&mut self, scanned: Scanned, jobs: &mut Vec<ChunkJob>) -> Result<(), Error> {
        match scanned {
            Scanned::Batch { data, objects } => {
                for object in objects {
                    self.take_small(&data, object)?;
                }
                while let Some(cut) = self.choose_cut() {
                    jobs.push(self.end_group(cut));
                }
            }
            Scanned::Piece(piece) => {
                if self.is_hot {
                    // What is read before this piece must be stored before it.
                    self.flush(jobs);
                }
                jobs.extend(self.take_piece(*piece)?);
            }
        }
        Ok(())
    }

    /// Ends the open group, if there is one.
    pub(super) fn flush(&mut self, jobs: &mut Vec<ChunkJob>) {
        if !self.pending.is_empty() {
            jobs.push(self.end_group(self.pending.len()));
        }
    }

    /// Begins the hot set, whose groups have this target size.
    pub(super) fn begin_hot(&mut self, group_len: u64) {
        self.group_len = self.usual_len.min(num::size(group_len));
        self.is_hot = true;
    }

    /// Ends the hot set; the caller must have flushed pending objects.
    pub(super) fn end_hot(&mut self) {
        self.is_hot = false;
        self.group_len = self.usual_len;
    }

    /// # Errors
    /// Returns an error if a content has not arrived.
    pub(super) fn finish(self) -> Result<Sequenced, Error> {
        let Self { objects, object_of, xattrs, .. } = self;
        let object_of = object_of.into_iter().map(|of| of.into_iter().collect()).collect::<Option<_>>();
        let object_of = object_of.ok_or_else(|| Error::Usage("not all files of a source were read".into()))?;
        Ok(Sequenced { objects, object_of, xattrs })
    }

    /// Returns whether the data of a content becomes chunks.
    fn keeps_of(&self, item: Item) -> bool {
        self.keeps && !self.made.contains(&(item.source, item.content))
    }

    fn take_small(&mut self, data: &Arc<Buffer>, small: SmallObject) -> Result<(), Error> {
        let SmallObject { item, id, verity, holes, xattrs, has_addresses, images, start, end } = small;
        self.take_xattrs(item, xattrs);
        let rare = Rare { holes, images, pieces: Vec::new() }.boxed();
        let found = PackedObject { id, verity, first: item, has_addresses, rare };
        let (object, is_new) = self.intern(found)?;
        self.set_object(item, object);
        if self.keeps_of(item) && is_new && start < end {
            self.pending_len += end - start;
            self.pending.push(Pending { data: Arc::clone(data), range: start..end, object });
        }
        Ok(())
    }

    fn take_piece(&mut self, mut piece: LargePiece) -> Result<Option<ChunkJob>, Error> {
        let item = piece.item;
        self.take_xattrs(item, std::mem::take(&mut piece.xattrs));
        let data = piece.data.take();
        let job = (self.keeps_of(item) && !data.is_empty()).then_some(self.next_job);
        let state = self.large.entry((item.source, item.content)).or_default();
        let after = state.last_job;
        state.last_job = job.or(after);
        state.ahead.insert(piece.number, (job, piece));
        state.catch_up();
        if num::wide(state.pieces.len()) == item.pieces(self.piece_len) {
            self.end_large(item)?;
        }
        let Some(number) = job else { return Ok(None) };
        self.next_job += 1;
        let len = data.len();
        Ok(Some(ChunkJob {
            number,
            parts: vec![(Arc::new(data), 0..len)],
            len,
            objects: Vec::new(),
            after,
            is_hot: self.is_hot,
        }))
    }

    fn end_large(&mut self, item: Item) -> Result<(), Error> {
        let Some(state) = self.large.remove(&(item.source, item.content)) else { return Ok(()) };
        let images = ForImages { sha512: state.sha512.map(FileHasher::finish), ..ForImages::default() };
        let values: Vec<[u8; 32]> = state.pieces.iter().map(|(_, value)| *value).collect();
        let (object, _) = self.intern(PackedObject {
            // A large content has at least two pieces.
            id: pieces::object_id(&values).unwrap_or_default(),
            verity: state.verity.finish(),
            first: item,
            has_addresses: state.has_addresses,
            rare: Rare { holes: state.holes, images, pieces: state.pieces }.boxed(),
        })?;
        self.set_object(item, object);
        Ok(())
    }

    fn intern(&mut self, object: PackedObject) -> Result<(Row<PackedObject>, bool), Error> {
        let next = Row::after(self.objects.len())?;
        let hash = |id: &[u8; 32]| self.hasher.hash_one(id);
        let id_of = |row: &Row<PackedObject>| &self.objects[row.at()].id;
        let is_same = |row: &Row<PackedObject>| *id_of(row) == object.id;
        match self.by_id.entry(hash(&object.id), is_same, |row| hash(id_of(row))) {
            Entry::Occupied(known) => Ok((*known.get(), false)),
            Entry::Vacant(place) => {
                place.insert(next);
                self.objects.push(object);
                Ok((next, true))
            }
        }
    }

    fn set_object(&mut self, item: Item, object: Row<PackedObject>) {
        self.object_of[item.source][num::at(item.content)] = Some(object);
    }

    fn take_xattrs(&mut self, item: Item, xattrs: Xattrs) {
        if !xattrs.is_empty() {
            self.xattrs.push((item, xattrs));
        }
    }

    /// Returns where the open group ends, if enough objects are pending.
    fn choose_cut(&self) -> Option<usize> {
        let of = |pending: &Pending| (&self.objects[pending.object.at()].id, num::wide(pending.range.len()));
        choose_cut(self.pending.iter().map(of), num::wide(self.pending_len), num::wide(self.group_len))
    }

    fn end_group(&mut self, cut: usize) -> ChunkJob {
        let group: Vec<Pending> = self.pending.drain(..cut).collect();
        let len = group.iter().map(|pending| pending.range.len()).sum();
        self.pending_len -= len;
        self.next_job += 1;
        ChunkJob {
            number: self.next_job - 1,
            objects: group.iter().map(|pending| pending.object).collect(),
            parts: group.into_iter().map(|pending| (pending.data, pending.range)).collect(),
            len,
            after: None,
            is_hot: self.is_hot,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_ends_before_the_least_id_of_its_middle() {
        let cut = |ids: [u8; 6]| {
            let ids = ids.map(|first| [first; 32]);
            choose_cut(ids.iter().map(|id| (id, 40)), 240, 100)
        };
        // The third and the fourth begin between a half and one and a half of a group's length.
        assert_eq!(cut([1, 1, 3, 5, 1, 1]), Some(2));
        assert_eq!(cut([1, 1, 5, 3, 1, 1]), Some(3));
        // Less than that is not cut, and one long object is a group of its own.
        assert_eq!(choose_cut([([1; 32], 150)].iter().map(|(id, len)| (id, *len)), 150, 100), None);
        assert_eq!(choose_cut([([1; 32], 151)].iter().map(|(id, len)| (id, *len)), 151, 100), Some(1));
    }
}
