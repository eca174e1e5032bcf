//! The objects of a base that lie in a bundle.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use sealift_format::{Bundle, Error as FormatError, Head, Holds, Layout, Limits};
use sealift_verify::content::{ChunkDecoder, check_object, check_piece, fill_holes, group_objects, piece_range};

use super::{Base, Holder};
use crate::{Error, Input};

/// A bundle that carries all of its objects.
#[derive(Debug)]
pub(crate) struct BundleBase {
    file: File,
    path: PathBuf,
    bundle: Bundle,
    /// For each object the chunk of its group.
    chunk_of: Vec<Option<u32>>,
}

/// Chunks that a thread keeps: what is wanted next lies near to what was wanted before.
const KEPT: usize = 6;

#[derive(Debug)]
pub(super) struct Reader<'a> {
    base: &'a BundleBase,
    decoder: ChunkDecoder,
    stored: Vec<u8>,
    /// The latest first.
    kept: Vec<(u32, Vec<u8>)>,
}

impl Base {
    /// Takes a bundle as a base, if `judge` takes its head: its content is going to be used.
    ///
    /// # Errors
    /// The bundle is refused or damaged, is a delta bundle, or comes through a pipe.
    pub fn of_bundle(
        input: &mut Input,
        limits: Limits,
        judge: impl FnOnce(&Head) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let bundle = input.open_bundle(limits, judge)?;
        let path = input.path().to_owned();
        let Some(file) = input.file() else {
            return Err(Error::Usage(format!("{}: a base is read at many places, and this is a pipe", path.display())));
        };
        let file = file.try_clone().map_err(|error| Error::io("read", &path, error))?;
        let mut chunk_of = vec![None; bundle.index.objects().len()];
        for (number, chunk) in (0..).zip(&bundle.layout.chunks) {
            if let Holds::Group(range) = &chunk.holds {
                for object in bundle.layout.group(range) {
                    chunk_of[at(*object)] = Some(number);
                }
            }
        }
        let index = bundle.index.clone();
        let holder = BundleBase { file, path, bundle, chunk_of };
        Ok(Self { index, holder: Holder::Bundle(Box::new(holder)) })
    }
}

fn at(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl<'a> Reader<'a> {
    pub(super) fn new(base: &'a BundleBase) -> Self {
        Self { base, decoder: ChunkDecoder::default(), stored: Vec::new(), kept: Vec::new() }
    }

    pub(super) fn read(&mut self, object: u32, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), Error> {
        let base = self.base;
        let bundle = &base.bundle;
        let piece_len = bundle.head.root().maxima.piece_len();
        if bundle.index.object(object).size > piece_len {
            for (number, piece) in (0..).zip(bundle.layout.pieces_of(object)) {
                let within = piece_range(bundle, object, number);
                let wanted = within.start.max(range.start)..within.end.min(range.end);
                if wanted.is_empty() {
                    continue;
                }
                let data = match piece.chunk {
                    None => &[],
                    Some(chunk) => self.chunk(chunk)?,
                };
                check_piece(bundle, object, number, data)?;
                append(&bundle.layout, object, within, wanted, data, out);
            }
            return Ok(());
        }
        let size = bundle.index.object(object).size;
        let Some(number) = base.chunk_of[at(object)] else {
            check_object(bundle, object, &[])?;
            append(&bundle.layout, object, 0..size, range, &[], out);
            return Ok(());
        };
        let Holds::Group(group) = &bundle.layout.chunks[at(number)].holds else { return Ok(()) };
        let decoded = self.chunk(number)?;
        let found = group_objects(bundle, bundle.layout.group(group), decoded).find(|(found, _)| *found == object);
        if let Some((_, data)) = found {
            check_object(bundle, object, data)?;
            append(&bundle.layout, object, 0..size, range, data, out);
        }
        Ok(())
    }

    /// The decoded bytes of a chunk.
    fn chunk(&mut self, number: u32) -> Result<&[u8], Error> {
        if let Some(known) = self.kept.iter().position(|(kept, _)| *kept == number) {
            self.kept[..=known].rotate_right(1);
        } else {
            let base = self.base;
            let row = &base.bundle.layout.chunks[at(number)];
            self.stored.resize(at(row.stored_len), 0);
            let start = base.bundle.head.chunks_at() + row.offset;
            base.file.read_exact_at(&mut self.stored, start).map_err(|error| match error.kind() {
                std::io::ErrorKind::UnexpectedEof => {
                    FormatError::Truncated { len: start, expected: base.bundle.head.file_len() }.into()
                }
                _ => Error::io("read", &base.path, error),
            })?;
            let decoded = self.decoder.decode(&base.bundle, number, &self.stored, &[])?;
            let mut buffer = if self.kept.len() < KEPT { Vec::new() } else { self.kept.pop().unwrap_or_default().1 };
            buffer.clear();
            buffer.extend(decoded);
            self.kept.insert(0, (number, buffer));
        }
        Ok(self.kept.first().map_or(&[], |(_, decoded)| decoded))
    }
}

/// Appends the bytes of `wanted`, which lies in `within`, whose data are `data`.
fn append(layout: &Layout, object: u32, within: Range<u64>, wanted: Range<u64>, data: &[u8], out: &mut Vec<u8>) {
    let mut place = within.start;
    let Ok(()) = fill_holes(data, layout.holes_of(object), within, |part| {
        let end = place + u64::try_from(part.len()).unwrap_or(0);
        let (from, to) = (wanted.start.clamp(place, end) - place, wanted.end.clamp(place, end) - place);
        out.extend(&part[usize::try_from(from).unwrap_or(usize::MAX)..usize::try_from(to).unwrap_or(usize::MAX)]);
        place = end;
        Ok::<(), std::convert::Infallible>(())
    });
}
