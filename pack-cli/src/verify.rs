//! Checks a whole bundle, in one pass over a file or a pipe.
//!
//! Writes nothing, and leaves the device's state unchanged. The crate's front page has an example.

use parking_lot::Mutex;
use sealift_format::num;
use sealift_format::verity::VerityHasher;
use sealift_format::{Bundle, Delta, Object, Opened, Row};
use sealift_verify::carried::CarriedChecker;
pub use sealift_verify::checker::Depth;
use sealift_verify::content::{Content, check_stored};
use sealift_verify::objects::{Checked, VerityTable};
use sealift_verify::ostree::{LargeFiles, OsTreeFiles};
use sealift_verify::read_plan::ReadPlan;

use crate::dm_verity::{self, VerityImages};
use crate::{Error, Input, Phase, Progress, Unopened};
use sealift_store::base::Bases;
use sealift_store::delivery::feed::ChunkScheduler;
use sealift_store::delivery::{Delivery, from_bases};
use sealift_store::threads::in_turn::OrderedSlots;
use sealift_store::threads::parallel;

/// The result of a verification.
#[derive(Clone, Debug)]
pub struct VerifyStats {
    /// The bundle, without its content.
    pub opened: Opened,
    /// Size of the whole file in bytes.
    pub file_bytes: u64,
    /// The disk images with dm-verity hash trees, which were compared with them. `None` if none was looked for: without [`Depth::Objects`], in a delta
    /// bundle without its bases, or in a pipe, which can be read only once.
    pub dm_verity: Option<VerityImages>,
}

/// Verifies every byte of a bundle in one pass, on `jobs` threads. The objects of a delta bundle can only be verified with its bases
/// ([`verify_opened`]): without them, [`Depth::Objects`] verifies those in chunks without a prefix, and the structure of the others.
///
/// # Errors
/// Returns an error if the bundle is damaged or cannot be read.
pub fn verify(bundle: Unopened, depth: Depth, jobs: usize, progress: &Progress) -> Result<VerifyStats, Error> {
    let (input, opened) = bundle.open_any()?;
    verify_opened(input, opened, Bases::default(), depth, jobs, progress)
}

/// Does the same as [`verify`] for an opened bundle. For a delta bundle that was completed with these bases, [`Depth::Objects`] verifies all
/// objects that it installs, including those that only a base has.
pub fn verify_opened(
    mut input: Input,
    opened: Opened,
    bases: Bases,
    depth: Depth,
    jobs: usize,
    progress: &Progress,
) -> Result<VerifyStats, Error> {
    let input = &mut input;
    let bases = match &opened {
        Opened::Whole(bundle) if depth == Depth::Objects => bases.making(bundle, input, jobs)?,
        _ => bases,
    };
    let (head, layout) = (opened.head(), opened.layout());
    progress.enter(Phase::Verifying, head.root().maxima.chunks_stored, 0);
    match (depth, &opened) {
        (Depth::Objects, Opened::Whole(bundle)) => check_objects(bundle, &bases, input, jobs, progress)?,
        (Depth::Objects, Opened::Delta(delta)) => check_carried(delta, input, jobs, progress)?,
        (Depth::Stored, _) => {
            let all: Vec<_> = Row::all(&layout.chunks).map(|(row, _)| row).collect();
            ChunkScheduler::new(head, &layout.chunks, &all, input, progress).run(
                jobs,
                || (),
                |(), number, stored| Ok(check_stored(number, &layout.chunks[number.at()], stored)?),
            )?;
        }
    }
    input.finish(head)?;
    let file_bytes = head.file_len();
    let dm_verity = match (depth, &opened) {
        (Depth::Objects, Opened::Whole(bundle)) if input.origin().is_some() => {
            Some(dm_verity::check(input, bundle, &bases, jobs, progress)?)
        }
        _ => None,
    };
    Ok(VerifyStats { opened, file_bytes, dm_verity })
}

/// Checks what can be checked of a delta bundle without its bases.
fn check_carried(delta: &Delta, input: &mut Input, jobs: usize, progress: &Progress) -> Result<(), Error> {
    let all: Vec<_> = Row::all(&delta.layout.chunks).map(|(row, _)| row).collect();
    ChunkScheduler::new(&delta.head, &delta.layout.chunks, &all, input, progress).run(
        jobs,
        || CarriedChecker::new(delta),
        |checker, number, stored| Ok(checker.check_alone(delta, number, stored)?),
    )?;
    let mut checker = CarriedChecker::new(delta);
    while checker.check_bare(delta)?.is_some() {
        progress.check()?;
    }
    Ok(())
}

fn check_objects(
    bundle: &Bundle,
    bases: &Bases,
    input: &mut Input,
    jobs: usize,
    progress: &Progress,
) -> Result<(), Error> {
    let (plan, files) = (ReadPlan::all(bundle.into()), OsTreeFiles::new(bundle));
    let table = Mutex::new(VerityTable::new(bundle));
    let large = OrderedSlots::new(files.large(bundle).into_iter().collect());
    let stop = || large.give_up();
    let take = |(): &mut (), content: &Content<'_>| {
        let checked = Checked::new(bundle, &files, content)?;
        // Pieces without data come last, and are inserted between the others below.
        if let Some(piece) = content.portion.piece.filter(|_| !content.data.is_empty()) {
            // Chunks are assigned in order, and pieces do not descend: the thread with the previous piece is already at work.
            let is_turn = |files: &LargeFiles| files.is_next(bundle, piece);
            large.act(content.portion.object, is_turn, |files| files.take(bundle, piece, content.data));
        }
        table.lock().take(checked);
        Ok(())
    };
    let delivery = Delivery::new(bundle, bases, &plan, jobs, progress).stopping(&stop);
    delivery.run(input, || (), take, |(), _| Ok(()))?;
    let large: Vec<LargeFiles> = large.into_things().collect();
    parallel::for_each(jobs, &large, |files| {
        let mut files = files.clone();
        while files.take_bare(bundle) {
            progress.check()?;
        }
        Ok(files.check(bundle)?)
    })?;
    let found = check_base_objects(bundle, bases, &files, jobs, progress)?;
    let mut table = table.into_inner();
    found.into_iter().for_each(|checked| table.take(checked));
    table.check(bundle)?;
    Ok(())
}

/// Checks the objects that are in no chunk: a base has them, or a recipe makes them.
fn check_base_objects(
    bundle: &Bundle,
    bases: &Bases,
    files: &OsTreeFiles,
    jobs: usize,
    progress: &Progress,
) -> Result<Vec<Checked>, Error> {
    if bundle.layout.stores_all() {
        return Ok(Vec::new());
    }
    let all = Row::all(bundle.index.objects()).map(|(object, _)| object);
    let lacking: Vec<_> = all.filter(|object| !bundle.layout.is_stored(*object)).collect();
    let size = |object: Row<Object>| bundle.index.object(object).size;
    progress.enter(Phase::Hashing, lacking.iter().map(|object| size(*object)).sum(), num::wide(lacking.len()));
    from_bases(bundle, bases, &lacking, jobs, |reader, object, of_base| {
        let (mut of_it, mut hasher) = (files.of(bundle, object), VerityHasher::new());
        reader.read_in_parts(of_base, |_, part| {
            progress.check()?;
            of_it.push(part);
            hasher.update(part);
            progress.add(num::wide(part.len()), 0);
            Ok(())
        })?;
        of_it.check(bundle)?;
        let digest = hasher.finish();
        progress.add(0, 1);
        Ok(Checked::Object { object, digest })
    })
}
