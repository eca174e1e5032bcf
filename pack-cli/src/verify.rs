//! Checks a whole bundle, in one pass over a file or a pipe.
//!
//! Writes nothing, and leaves the device's state unchanged. The crate's front page has an example.

use std::sync::{Mutex, PoisonError};

use sealift_format::num;
use sealift_format::{Bundle, Opened};
pub use sealift_verify::checker::Depth;
use sealift_verify::content::{Content, check_shape, check_stored};
use sealift_verify::objects::{Checked, VerityTable};
use sealift_verify::ostree::{LargeFiles, OsTreeFiles};
use sealift_verify::read_plan::ReadPlan;

use crate::Phase;
use crate::{Error, Input, Progress, Unopened};
use sealift_store::base::Bases;
use sealift_store::delivery::Delivery;
use sealift_store::delivery::feed::ChunkScheduler;
use sealift_store::threads::in_turn::OrderedSlots;
use sealift_store::threads::parallel;

/// The result of a verification.
#[derive(Clone, Debug)]
pub struct Verified {
    /// The bundle, without its content.
    pub opened: Opened,
    /// Size of the whole file in bytes.
    pub file_bytes: u64,
}

/// Verifies every byte of a bundle in one pass, on `jobs` threads. The objects of a delta bundle can only be verified where its bases are: here,
/// [`Depth::Objects`] checks the structure of the chunks.
///
/// # Errors
/// Returns an error if the bundle is damaged or cannot be read.
pub fn verify(bundle: Unopened, depth: Depth, jobs: usize, progress: &Progress) -> Result<Verified, Error> {
    let (mut input, opened) = bundle.open_any()?;
    let input = &mut input;
    let (head, layout) = (opened.head(), opened.layout());
    progress.enter(Phase::Verifying, head.root().maxima.chunks_stored, 0);
    match (depth, &opened) {
        (Depth::Objects, Opened::Whole(bundle)) => check_objects(bundle, input, jobs, progress)?,
        _ => {
            let all: Vec<u32> = (0..).take(layout.chunks.len()).collect();
            ChunkScheduler::new((head, &layout.chunks), &all, input, progress).run(
                jobs,
                || (),
                |(), number, stored| {
                    let chunk = &layout.chunks[num::at(number)];
                    check_stored(number, chunk, stored)?;
                    if depth == Depth::Objects {
                        check_shape(head, layout, number, stored)?;
                    }
                    Ok(())
                },
            )?;
        }
    }
    input.finish(head)?;
    let file_bytes = head.file_len();
    Ok(Verified { opened, file_bytes })
}

fn check_objects(bundle: &Bundle, input: &mut Input, jobs: usize, progress: &Progress) -> Result<(), Error> {
    let (plan, files) = (ReadPlan::all(bundle.into()), OsTreeFiles::new(bundle));
    let table = Mutex::new(VerityTable::new(bundle));
    let large = OrderedSlots::new(files.large(bundle).into_iter().collect());
    let stop = || large.give_up();
    let take = |(): &mut (), content: &Content<'_>| {
        let checked = Checked::new(bundle, &files, content)?;
        // Pieces without data come last, and are inserted between the others below.
        if let Some(piece) = content.portion.piece.filter(|_| !content.data.is_empty()) {
            // Chunks are assigned in order, and pieces do not descend: the thread with the previous one is at work.
            let is_turn = |files: &LargeFiles| files.is_next(bundle, piece);
            large.act(content.portion.object, is_turn, |files| files.take(bundle, piece, content.data));
        }
        table.lock().unwrap_or_else(PoisonError::into_inner).take(checked);
        Ok(())
    };
    let bases = Bases::default();
    let delivery = Delivery::new((bundle, &bases), &plan, jobs, progress).stopping(&stop);
    delivery.run(input, || (), take, |(), _| Ok(()))?;
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
