//! Files whose content a given base has, and the delta bundle does not carry.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::ftruncate;
use rustix::io::Errno;
use sealift_format::num;

use super::files::{Builder, WorkerState};
use super::plan::Place;
use crate::Error;
use crate::base::{BaseReader, Bases};
use crate::delivery::write_all_at;
use crate::progress::Phase;
use crate::threads::parallel::for_each;

/// What a thread reuses.
struct Copier<'a> {
    reader: BaseReader<'a>,
    hand: WorkerState,
    part: Vec<u8>,
}

/// Bytes per read of a base.
const PART_LEN: u64 = 1 << 20;
/// Zeros of this length become a hole.
const HOLE_LEN: usize = 64 << 10;

/// Builds the files of the selection whose content is not in the bundle. Each is hashed while it is copied.
pub(super) fn copy(builder: &Builder<'_>, bases: &Bases, jobs: usize) -> Result<(), Error> {
    let (bundle, progress) = (builder.bundle, builder.progress);
    let size = |place: &Place| bundle.index.object(place.object).size;
    let is_lacking = |place: &Place| size(place) > 0 && !bundle.layout.is_carried(place.object);
    let places = builder.selection.regulars.chunk_by(|a, b| a.object == b.object);
    let tasks: Vec<(&Place, &[Place])> =
        places.filter_map(<[Place]>::split_first).filter(|(first, _)| is_lacking(first)).collect();
    if tasks.is_empty() {
        return Ok(());
    }
    let by_id = bases.by_id();
    let bytes = tasks.iter().map(|(first, _)| size(first)).sum();
    progress.enter(Phase::Copying, bytes, num::wide(tasks.len()));
    let start = || Copier { reader: BaseReader::new(bases), hand: WorkerState::default(), part: Vec::new() };
    for_each(jobs, &tasks, start, |copier, &(first, others)| {
        progress.check()?;
        let row = bundle.index.object(first.object);
        let Some(&object) = by_id.get(&row.id) else { return Err(lost(builder, *first)) };
        let file = builder.create(&mut copier.hand, *first)?;
        let hash = copier.write(object, row.size, &file, &builder.failed("write", *first))?;
        if hash != row.id {
            return Err(lost(builder, *first));
        }
        for &place in others {
            builder.copy_file(&mut copier.hand, &file, *first, place)?;
        }
        builder.finish_file(&file, *first)?;
        progress.add(row.size, 0);
        Ok(())
    })
}

impl Copier<'_> {
    /// Copies an object of the bases into a new file. Returns its hash.
    fn write(
        &mut self,
        object: u32,
        size: u64,
        file: &OwnedFd,
        failed: &impl Fn(Errno) -> Error,
    ) -> Result<[u8; 32], Error> {
        let mut hasher = blake3::Hasher::new();
        let mut at = 0;
        while at < size {
            self.part.clear();
            let end = size.min(at + PART_LEN);
            self.reader.read(object, at..end, &mut self.part)?;
            hasher.update(&self.part);
            write_sparse(file, &self.part, at).map_err(failed)?;
            at = end;
        }
        ftruncate(file, size).map_err(failed)?;
        Ok(*hasher.finalize().as_bytes())
    }
}

/// Writes what is not zero, by parts as long as a hole is at least.
fn write_sparse(file: impl AsFd, data: &[u8], offset: u64) -> Result<(), Errno> {
    let mut at = offset;
    for part in data.chunks(HOLE_LEN) {
        if part.len() < HOLE_LEN || part.iter().any(|byte| *byte != 0) {
            write_all_at(&file, part, at)?;
        }
        at += num::wide(part.len());
    }
    Ok(())
}

fn lost(builder: &Builder<'_>, place: Place) -> Error {
    let path = builder.path(place);
    let problem = format!("the content of {} is not in the base any more", String::from_utf8_lossy(&path));
    Error::MissingBase { path: builder.stage.target().to_owned(), problem }
}
