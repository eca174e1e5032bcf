//! The base objects in a bundle.

use std::ops::Range;

use rustix::fs::Advice;
use sealift_format::num::{self, size};
use sealift_format::{Bundle, Chunk, Holds, Index, Layout, Limits, Object, Row};
use sealift_verify::content::{ChunkDecoder, Content, ObjectRows, Portion, fill_holes, portions_of, range_of};

use super::{Base, Holder, ObjectReader};
use crate::kept_order::KeptOrder;
use crate::trust::Guard;
use crate::{Error, Input, Medium, Unopened};

/// A bundle, and the locations of its objects.
#[derive(Debug)]
pub(super) struct BundleBase {
    medium: Medium,
    bundle: Bundle,
    /// For each object, the chunk of its group.
    chunk_of: Vec<Option<Row<Chunk>>>,
}

/// Chunks that a thread caches: successive reads are mostly close together.
const KEPT: usize = 6;
/// The limit for their total bytes, unless a single chunk is larger.
const KEPT_LEN: usize = 64 << 20;

/// Reads the objects of a bundle in one thread.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    base: &'a BundleBase,
    decoder: ChunkDecoder,
    stored: Vec<u8>,
    /// Cached chunks, the most recent first.
    kept: Vec<(Row<Chunk>, Vec<u8>)>,
    /// The last piece that was verified: a large one is read in many parts.
    checked: Option<Portion>,
    /// A chunk of a group, and the place behind the object that was read last: reads are mostly sequential.
    behind: (Option<Row<Chunk>>, Place),
}

/// A place in a group: the number of objects and of bytes before it.
type Place = (usize, usize);

impl Base {
    /// Opens a bundle as a base that `guard` trusts, as [`Guard::judge_base`] does: its content will be used.
    ///
    /// # Errors
    /// Returns an error if the bundle is refused or damaged, is a delta bundle, or comes through a pipe.
    pub fn of_bundle(input: Input, limits: Limits, guard: &Guard) -> Result<Self, Error> {
        let unopened = input.begin(limits)?;
        guard.judge_base(unopened.head())?;
        Self::of_known(unopened)
    }

    /// Opens one that a delta names, which vouches for it.
    pub fn of_known(unopened: Unopened) -> Result<Self, Error> {
        let (input, bundle) = unopened.open_bundle()?;
        let index = bundle.index.clone();
        let identity = &bundle.head.root().identity;
        let identity = (identity.name.clone(), identity.version);
        let order = KeptOrder::of_bundle(&bundle);
        let holder = BundleBase::new(&input, bundle)?;
        Ok(Self { index, holder: Box::new(holder), identity: Some(identity), order })
    }
}

impl BundleBase {
    /// Wraps the bundle that was opened from `input`, which must be a file.
    fn new(input: &Input, bundle: Bundle) -> Result<Self, Error> {
        let medium = Medium::new(input, &bundle.head, Advice::Normal)?;
        let mut chunk_of = vec![None; bundle.index.objects().len()];
        for (number, chunk) in Row::all(&bundle.layout.chunks) {
            if let Holds::Group(range) = &chunk.holds {
                for object in bundle.layout.group(range) {
                    chunk_of[object.at()] = Some(number);
                }
            }
        }
        Ok(Self { medium, bundle, chunk_of })
    }
}

impl Holder for BundleBase {
    fn reader<'a>(&'a self, _index: &'a Index) -> Box<dyn ObjectReader + 'a> {
        Box::new(Reader::new(self))
    }

    fn bundle(&self) -> Option<&Bundle> {
        Some(&self.bundle)
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(base: &'a BundleBase) -> Self {
        Self {
            base,
            decoder: ChunkDecoder::default(),
            stored: Vec::new(),
            kept: Vec::new(),
            checked: None,
            behind: (None, (0, 0)),
        }
    }

    fn read_checked(&mut self, object: Row<Object>, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), Error> {
        let base = self.base;
        let bundle = &base.bundle;
        for (portion, chunk) in portions_of(bundle, object, base.chunk_of[object.at()]) {
            let within = range_of(bundle, portion);
            let wanted = within.start.max(range.start)..within.end.min(range.end);
            if wanted.is_empty() && portion.piece.is_some() {
                continue;
            }
            let is_checked = portion.piece.is_some() && self.checked == Some(portion);
            let behind = self.behind;
            let decoded = match chunk {
                None => &[],
                Some(chunk) => self.chunk(chunk)?,
            };
            let (data, behind) = match (portion.piece, chunk) {
                (None, Some(chunk)) => {
                    let from = if behind.0 == Some(chunk) { behind.1 } else { (0, 0) };
                    let found = find(bundle, chunk, decoded, from, object);
                    let found = found.or_else(|| find(bundle, chunk, decoded, (0, 0), object));
                    let Some((data, place)) = found else { return Ok(()) };
                    (data, (Some(chunk), place))
                }
                _ => (decoded, behind),
            };
            if !is_checked {
                Content::check(bundle.into(), portion, data)?;
            }
            append(&bundle.layout, object, within, wanted, data, out);
            (self.checked, self.behind) = (Some(portion), behind);
        }
        Ok(())
    }

    /// Returns the decoded bytes of a chunk.
    fn chunk(&mut self, number: Row<Chunk>) -> Result<&[u8], Error> {
        if let Some(known) = self.kept.iter().position(|(kept, _)| *kept == number) {
            self.kept[..=known].rotate_right(1);
        } else {
            let BundleBase { medium, bundle, .. } = self.base;
            medium.read_chunk(&bundle.layout.chunks[number.at()], &mut self.stored)?;
            let decoded = self.decoder.decode(bundle, number, &self.stored, &[])?;
            let mut buffer = Vec::new();
            let mut kept_len = self.kept.iter().map(|(_, kept)| kept.len()).sum::<usize>() + decoded.len();
            while self.kept.len() >= KEPT || (kept_len > KEPT_LEN && !self.kept.is_empty()) {
                buffer = self.kept.pop().map_or_else(Vec::new, |(_, kept)| kept);
                kept_len -= buffer.len();
            }
            buffer.clear();
            buffer.extend(decoded);
            self.kept.insert(0, (number, buffer));
        }
        Ok(self.kept.first().map_or(&[], |(_, decoded)| decoded))
    }
}

impl ObjectReader for Reader<'_> {
    fn read(&mut self, object: Row<Object>, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), Error> {
        self.read_checked(object, range, out).map_err(|error| error.of_bundle(self.base.medium.path()))
    }

    /// A bundle's content is verified when it is read.
    fn holds(&mut self, _object: Row<Object>) -> Result<bool, Error> {
        Ok(true)
    }
}

/// Finds the data of an object in the group of a chunk, starting at a place. Returns it with the place behind it.
fn find<'d>(
    bundle: &'d Bundle,
    chunk: Row<Chunk>,
    decoded: &'d [u8],
    (mut objects, mut bytes): Place,
    wanted: Row<Object>,
) -> Option<(&'d [u8], Place)> {
    let Holds::Group(group) = &bundle.layout.chunks[chunk.at()].holds else { return None };
    let (group, decoded) = (bundle.layout.group(group).get(objects..)?, decoded.get(bytes..)?);
    for (object, data) in ObjectRows::from(bundle).group(group, decoded) {
        (objects, bytes) = (objects + 1, bytes + data.len());
        if object == wanted {
            return Some((data, (objects, bytes)));
        }
    }
    None
}

/// Appends the bytes of `wanted`, which lies in `within`, with the data `data`.
fn append(
    layout: &Layout,
    object: Row<Object>,
    within: Range<u64>,
    wanted: Range<u64>,
    data: &[u8],
    out: &mut Vec<u8>,
) {
    let mut place = within.start;
    let Ok(()) = fill_holes(data, layout.holes_of(object), within, &mut |part| {
        let end = place + num::wide(part.len());
        let (from, to) = (wanted.start.clamp(place, end) - place, wanted.end.clamp(place, end) - place);
        out.extend(&part[size(from)..size(to)]);
        place = end;
        Ok::<(), std::convert::Infallible>(())
    });
}
