//! Makes objects and views in memory, as recipes 3 and 4 say, from the contents of a bundle and of its bases.

use std::ops::Range;

use sealift::Bundle;
use sealift_format::{BaseRange, Chunk, Layout, Made, Object, PartOf, Recipes, Row, Segment, SegmentKind, verity};
use sealift_store::recipe::{decode, encode};
use sealift_verify::content::{ChunkDecoder, ContentError, Portion, check_made, overlap, portions_of, range_of};
use sealift_verify::objects::Checked;
use sealift_verify::ostree::OsTreeFiles;
use sealift_verify::read_plan::ReadPlan;

fn at(number: impl TryInto<usize>) -> usize {
    number.try_into().ok().expect("vectors are small")
}

/// What objects and views are made of.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    /// The recipes.
    pub recipes: &'a Recipes,
    /// The bundle, once its index is known, with the contents of its objects and leaves; those that are made are empty.
    pub bundle: Option<(&'a Bundle, &'a [Vec<u8>])>,
    /// The contents of the base objects.
    pub bases: &'a [Vec<u8>],
}

/// Returns each chunk with its stored bytes.
pub fn stored_chunks<'a>(
    chunks_at: u64,
    layout: &'a Layout,
    file: &'a [u8],
) -> impl Iterator<Item = (Row<Chunk>, &'a [u8])> {
    let stored = move |offset: u64, len: u32| &file[at(chunks_at + offset)..at(chunks_at + offset) + at(len)];
    Row::all(&layout.chunks).map(move |(row, chunk)| (row, stored(chunk.offset, chunk.stored_len)))
}

/// Returns the content of each object and leaf of a bundle that lies in its chunks; the others are empty.
///
/// # Errors
/// Returns an error if a chunk or an object is not sound.
pub fn stored_contents(bundle: &Bundle, file: &[u8], bases: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, ContentError> {
    let recipes = &bundle.layout.recipes;
    let sources = Sources { recipes, bundle: None, bases };
    let (mut decoder, plan) = (ChunkDecoder::default(), ReadPlan::all(bundle.into()));
    let objects = bundle.index.objects().iter().chain(&recipes.leaves);
    let content = |(row, object): (Row<Object>, &Object)| {
        let is_bare = row.at() >= bundle.index.objects().len() || bundle.layout.is_stored(row);
        vec![0; if is_bare && recipes.of(row).is_none() { at(object.size) } else { 0 }]
    };
    let rows = sealift_format::Rows::new(0..u32::MAX).zip(objects);
    let mut contents: Vec<Vec<u8>> = rows.map(content).collect();
    for (number, stored) in stored_chunks(bundle.head.chunks_at(), &bundle.layout, file) {
        let prefix = sources.prefix(bundle.layout.prefix_of(&bundle.layout.chunks[number.at()]))?;
        let decoded = decoder.decode(bundle, number, stored, &prefix)?;
        for content in plan.contents(bundle.into(), number, decoded) {
            let content = content?;
            for (start, data) in content.extents() {
                contents[content.portion.object.at()][at(start)..][..data.len()].copy_from_slice(data);
            }
        }
    }
    Ok(contents)
}

/// Makes the objects of a bundle's index that have a recipe, and checks each.
///
/// # Errors
/// Returns an error if one of them is not what the index says, or cannot be made.
pub fn check_all_made(bundle: &Bundle, file: &[u8], bases: &[Vec<u8>]) -> Result<Vec<Checked>, ContentError> {
    if bundle.layout.recipes.made.is_empty() {
        return Ok(Vec::new());
    }
    let (contents, files) = (stored_contents(bundle, file, bases)?, OsTreeFiles::new(bundle));
    let sources = Sources { recipes: &bundle.layout.recipes, bundle: Some((bundle, &contents)), bases };
    let made = bundle.layout.recipes.made.iter();
    let of_index = made.filter_map(|made| Some((made, made.object.get(bundle.index.objects())?)));
    let check = |(made, object): (&Made, &Object)| {
        let mut content = Vec::new();
        sources.read(PartOf::Object(made.object), 0..object.size, &mut content)?;
        let mut of_it = files.of(bundle, made.object);
        of_it.push(&content);
        of_it.check(bundle)?;
        Ok(Checked::Object { object: made.object, digest: verity::digest(&content) })
    };
    of_index.map(check).collect()
}

impl Sources<'_> {
    /// Returns the bytes of a prefix.
    ///
    /// # Errors
    /// Returns an error if a view cannot be made.
    pub fn prefix(&self, ranges: &[BaseRange]) -> Result<Vec<u8>, ContentError> {
        let mut prefix = Vec::new();
        for BaseRange { object, offset, len } in ranges {
            let range = *offset..*offset + *len;
            match self.recipes.view_of(*object) {
                Some(view) => {
                    self.make(self.recipes.segments(&view.segments), view.segments.start, range, &mut prefix)?;
                }
                None => self.read(PartOf::Base(*object), range, &mut prefix)?,
            }
        }
        Ok(prefix)
    }

    /// Appends bytes of an object or view.
    ///
    /// # Errors
    /// Returns an error if it cannot be made, or is not what index or layout say.
    pub fn read(&self, of: PartOf, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), ContentError> {
        match of {
            PartOf::Base(object) => out.extend(&self.bases[object.at()][at(range.start)..at(range.end)]),
            PartOf::View(view) => {
                let segments = &view.get(&self.recipes.views).expect("it was parsed").segments;
                self.make(self.recipes.segments(segments), segments.start, range, out)?;
            }
            PartOf::Object(object) => {
                let (bundle, contents) = self.bundle.expect("views and prefixes have none");
                match self.recipes.of(object) {
                    None => out.extend(&contents[object.at()][at(range.start)..at(range.end)]),
                    Some(made) => {
                        for (portion, _) in portions_of(bundle, object, None) {
                            self.make_portion(bundle, made, portion, &range, out)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Appends what is wanted of a portion, after all of it was checked.
    fn make_portion(
        &self,
        bundle: &Bundle,
        made: &Made,
        portion: Portion,
        wanted: &Range<u64>,
        out: &mut Vec<u8>,
    ) -> Result<(), ContentError> {
        let within = range_of(bundle, portion);
        if within.start.max(wanted.start) < within.end.min(wanted.end) {
            let mut bytes = Vec::new();
            self.make(self.recipes.segments(&made.segments), made.segments.start, within.clone(), &mut bytes)?;
            check_made(bundle, portion, &bytes)?;
            out.extend(overlap(&bytes, within.start, wanted));
        }
        Ok(())
    }

    /// Appends bytes that segments make; `first` is the number of the first one.
    fn make(&self, segments: &[Segment], first: u32, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), ContentError> {
        for (number, segment) in (first..).zip(segments) {
            let from = range.start.max(segment.offset);
            let to = range.end.min(segment.offset + segment.len);
            if from >= to {
                continue;
            }
            let (from, to) = (from - segment.offset, to - segment.offset);
            let ranges = self.recipes.ranges(segment);
            let mut input = Vec::new();
            let made = match &segment.kind {
                SegmentKind::Zeros => {
                    out.resize(out.len() + at(to - from), 0);
                    continue;
                }
                SegmentKind::Copied(_) => {
                    self.read(ranges[0].of, ranges[0].offset + from..ranges[0].offset + to, out)?;
                    continue;
                }
                SegmentKind::Encoded { coder, .. } => {
                    for part in ranges {
                        self.read(part.of, part.offset..part.offset + part.len, &mut input)?;
                    }
                    let coder = &self.recipes.coders[usize::from(*coder)];
                    // There is room for a byte more, so that a longer output is not taken for one that was cut.
                    encode(coder, &input, at(segment.len + 1)).expect("the encoder is there")
                }
                SegmentKind::Decoded { codec, .. } => {
                    self.read(ranges[0].of, ranges[0].offset..ranges[0].offset + ranges[0].len, &mut input)?;
                    decode(*codec, &input, at(segment.len))
                }
            };
            let made = made.filter(|made| made.len() == at(segment.len));
            out.extend(&made.ok_or(ContentError::Recipe { segment: number })?[at(from)..at(to)]);
        }
        Ok(())
    }
}
