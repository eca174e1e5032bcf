//! Checking a whole bundle, in one pass over a file or a pipe.
//!
//! Nothing is written, and what the device remembers stays as it is. The crate's front page has an example.

use std::sync::{Mutex, PoisonError};

use sealift_format::{Bundle, Opened};
use sealift_verify::content::{ChunkDecoder, check_shape, check_stored};
use sealift_verify::objects::{Bare, Checked, PieceMap, VerityTable, check_bare, check_chunk, without_data};
use sealift_verify::ostree::{LargeFiles, OsTreeFiles};
pub use sealift_verify::walk::Depth;

use crate::feed::Feed;
use crate::in_turn::InTurn;
use crate::parallel;
use crate::progress::Phase;
use crate::{Error, Input, Progress, Unopened};

/// What was checked.
#[derive(Clone, Debug)]
pub struct Verified {
    /// The bundle, without its content.
    pub opened: Opened,
    /// Bytes of the whole file.
    pub file_bytes: u64,
}

/// Checks every byte of a bundle in one pass, on `jobs` threads. Of a delta bundle, the objects are checked where its bases are: here,
/// [`Depth::Objects`] looks at the shape of the chunks.
///
/// # Errors
/// The bundle is damaged, or cannot be read.
pub fn verify(bundle: Unopened, depth: Depth, jobs: usize, progress: &Progress) -> Result<Verified, Error> {
    let (mut input, opened) = bundle.open_any()?;
    let input = &mut input;
    let (head, layout) = (opened.head(), opened.layout());
    let all: Vec<u32> = (0..).take(layout.chunks.len()).collect();
    progress.enter(Phase::Verifying, head.root().maxima.chunks_stored, 0);
    match (depth, &opened) {
        (Depth::Objects, Opened::Whole(bundle)) => check_objects(bundle, &all, input, jobs, progress)?,
        _ => Feed::new((head, &layout.chunks), &all, input, progress).run(
            jobs,
            || (),
            |(), number, stored| {
                let chunk = &layout.chunks[usize::try_from(number).unwrap_or(usize::MAX)];
                check_stored(number, chunk, stored)?;
                if depth == Depth::Objects {
                    check_shape(head, layout, number, stored)?;
                }
                Ok(())
            },
        )?,
    }
    input.finish(head)?;
    let file_bytes = head.file_len();
    Ok(Verified { opened, file_bytes })
}

fn check_objects(
    bundle: &Bundle,
    all: &[u32],
    input: &mut Input,
    jobs: usize,
    progress: &Progress,
) -> Result<(), Error> {
    let (pieces, files) = (PieceMap::new(bundle), OsTreeFiles::new(bundle));
    let table = Mutex::new(VerityTable::new(bundle));
    let take = |checked| table.lock().unwrap_or_else(PoisonError::into_inner).take(checked);
    let large = InTurn::new(files.large(bundle).into_iter().collect());
    let stop = || large.give_up();
    let feed = Feed::new((&bundle.head, &bundle.layout.chunks), all, input, progress).stopping(&stop);
    feed.run(jobs, ChunkDecoder::default, |decoder, number, stored| {
        let decoded = decoder.decode(bundle, number, stored, &[])?;
        let result = check_chunk(bundle, &pieces, &files, number, decoded, |checked| {
            if let Checked::Piece { object, piece, .. } = checked {
                // Chunks are given out in order, and pieces do not descend: whoever has the one before is at work.
                large.act(object, |files| files.is_next(bundle, piece), |files| files.take(bundle, piece, decoded));
            }
            take(checked);
        });
        Ok(result?)
    })?;
    let bare: Vec<Bare> = without_data(bundle).collect();
    parallel::for_each(
        jobs,
        &bare,
        || (),
        |(), &bare| {
            progress.check()?;
            take(check_bare(bundle, &files, bare)?);
            Ok(())
        },
    )?;
    let large: Vec<LargeFiles> = large.into_things().collect();
    parallel::for_each(
        jobs,
        &large,
        || (),
        |(), files| {
            let mut files = files.clone();
            while files.take_bare(bundle) {
                progress.check()?;
            }
            Ok(files.check(bundle)?)
        },
    )?;
    Ok(table.into_inner().unwrap_or_else(PoisonError::into_inner).check(bundle)?)
}
