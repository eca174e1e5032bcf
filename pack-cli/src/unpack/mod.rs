//! Unpacking: a bundle into a new directory.

mod files;
mod metadata;
mod plan;
mod stage;
pub(crate) mod state;
mod walk;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sealift_format::{Bundle, Head, Index, Limits, Ref};
use sealift_verify::content::{ChunkDecoder, check_object, check_piece};

use crate::feed::Feed;
use crate::input::Input;
use crate::progress::Phase;
use crate::{Error, Progress};

use files::{Builder, Hand};
use metadata::Privilege;
pub(crate) use plan::Selection;
use stage::Stage;
pub(crate) use stage::sibling;

/// How a bundle is unpacked.
#[derive(Clone, Debug)]
pub struct UnpackOptions {
    /// The ref that is unpacked; needed where there are several.
    pub reference: Option<String>,
    /// Only what lies at or below this path is unpacked.
    pub prefix: Vec<u8>,
    /// When the medium has to have everything.
    pub durability: Durability,
    /// Equal files with equal metadata become one file with several names.
    pub hardlink_duplicates: bool,
    /// Find out what would be done, and do nothing.
    pub dry_run: bool,
    /// Threads.
    pub jobs: usize,
}

/// When the medium has to have everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a caller chooses one")]
pub enum Durability {
    /// Whenever the system likes.
    None,
    /// Before the target gets its name.
    #[default]
    End,
    /// After each file, for systems where one large flush would starve others.
    Each,
}

/// What was unpacked, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnpackStats {
    /// Regular files made.
    pub files: u64,
    /// Distinct objects written.
    pub objects: u64,
    /// Directories made.
    pub directories: u64,
    /// Hard links made.
    pub links: u64,
    /// Symbolic links, devices, fifos and sockets.
    pub others: u64,
    /// Bytes of all regular files.
    pub logical_bytes: u64,
    /// Bytes that they take on the target.
    pub disk_bytes: u64,
    /// Stored bytes that were read for it.
    pub stored_bytes: u64,
    /// Inodes that the target needs.
    pub inodes: u64,
    /// Bytes free on the target's file system before.
    pub free_bytes: u64,
    /// Bytes shared between equal files.
    pub shared_bytes: u64,
    /// Files that did not get their owner, for want of privilege.
    pub owners_skipped: u64,
    /// Files that did not get their set-id bits, since they did not get their owner.
    pub set_ids_skipped: u64,
    /// Extended attributes that could not be set, for want of privilege.
    pub xattrs_skipped: u64,
    /// Devices that were not made, for want of privilege.
    pub devices_skipped: u64,
}

/// Unpacks a bundle into `target`, which is new and appears by one rename when it is complete.
///
/// `judge` decides by the head whether the bundle is to be trusted, before anything behind it is read.
///
/// # Errors
/// The bundle is refused or damaged, the target exists or has no room, or a file cannot be made. Nothing is left of the target then.
pub fn unpack(
    input: &mut Input,
    target: &Path,
    options: &UnpackOptions,
    limits: Limits,
    judge: impl FnOnce(&Head) -> Result<(), Error>,
    progress: &Progress,
) -> Result<UnpackStats, Error> {
    let bundle = input.open_bundle(limits, judge)?;
    let tree = choose_ref(&bundle.index, options.reference.as_deref())?;
    let selection = Selection::new(&bundle, tree, &options.prefix);
    if !options.prefix.is_empty()
        && selection.inodes() == as_u64(selection.directories.len())
        && !names_directory(&bundle, tree, &options.prefix)
    {
        let prefix = String::from_utf8_lossy(&options.prefix).escape_debug().to_string();
        return Err(Error::Usage(format!("nothing in the bundle lies at or below {prefix}")));
    }
    let mut stats = expected(&bundle, &selection);
    stats.free_bytes = check_room(target, &selection, options.dry_run)?;
    if options.dry_run {
        return Ok(stats);
    }
    progress.enter(Phase::Unpacking, selection.stored, as_u64(selection.regulars.len() + selection.others.len()));

    let stage = Stage::create(target)?;
    let privilege = Privilege::of_process(stage.root()).map_err(|error| Error::io("look at", target, error))?;
    let builder = Builder::new(&bundle, &selection, &stage, &privilege, progress, options);
    with_writeback(&stage, options.durability, || build(&builder, input, options))?;
    input.finish(&bundle)?;

    let state = state::write(target, &bundle)?;
    progress.enter(Phase::Syncing, 0, 0);
    if options.durability != Durability::None {
        stage.sync()?;
    }
    state.finish()?;
    stats.shared_bytes = builder.duplicate_bytes.load(Ordering::Relaxed);
    drop(builder);
    stage.finish(options.durability != Durability::None)?;
    let skipped = privilege.skipped();
    stats.owners_skipped = skipped.owners.load(Ordering::Relaxed);
    stats.set_ids_skipped = skipped.set_ids.load(Ordering::Relaxed);
    stats.xattrs_skipped = skipped.xattrs.load(Ordering::Relaxed);
    stats.devices_skipped = skipped.devices.load(Ordering::Relaxed);
    Ok(stats)
}

/// Runs `work`, and meanwhile has the medium take what was written so far: the system would begin with that seconds later, and the last
/// sync would wait for all of it.
fn with_writeback<T>(stage: &Stage, durability: Durability, work: impl FnOnce() -> T) -> T {
    if durability != Durability::End {
        return work();
    }
    let (done, ends) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while ends.recv_timeout(WRITEBACK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                // Its failure shows in the sync that counts.
                let _ = stage.sync();
            }
        });
        let result = work();
        drop(done);
        result
    })
}

/// How long what was written may wait.
const WRITEBACK_INTERVAL: Duration = Duration::from_millis(300);

fn as_u64(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

/// The ref that was asked for, or the only one.
pub(crate) fn choose_ref<'a>(index: &'a Index, name: Option<&str>) -> Result<&'a Ref, Error> {
    let refs = index.refs();
    let names = || refs.iter().map(|r| r.name.as_str()).collect::<Vec<_>>().join(", ");
    match (name, refs) {
        (None, [only]) => Ok(only),
        (None, _) => Err(Error::Usage(format!("the bundle has several refs: choose one of {}", names()))),
        (Some(name), _) => index
            .find_ref(name)
            .ok_or_else(|| Error::Usage(format!("the bundle has no ref {}; it has {}", name.escape_debug(), names()))),
    }
}

fn names_directory(bundle: &Bundle, tree: &Ref, prefix: &[u8]) -> bool {
    (tree.directory..tree.directories_end).any(|directory| bundle.index.directory_path(directory) == prefix)
}

fn expected(bundle: &Bundle, selection: &Selection) -> UnpackStats {
    let mut objects: Vec<u32> = selection.regulars.iter().map(|place| place.object).collect();
    objects.dedup();
    UnpackStats {
        files: as_u64(selection.regulars.len()),
        objects: as_u64(objects.len()),
        directories: as_u64(selection.directories.len()),
        links: as_u64(selection.links.len()),
        others: as_u64(selection.others.len()),
        logical_bytes: selection
            .regulars
            .iter()
            .map(|place| bundle.index.object(place.object).size)
            .fold(0, u64::saturating_add),
        disk_bytes: selection.disk,
        stored_bytes: selection.stored,
        inodes: selection.inodes(),
        ..UnpackStats::default()
    }
}

/// Compares what is needed with what the target's file system has. Returns its free bytes.
fn check_room(target: &Path, selection: &Selection, dry_run: bool) -> Result<u64, Error> {
    let parent = stage::parent_of(target);
    let room = rustix::fs::statvfs(parent).map_err(|error| Error::io("look at", parent, error))?;
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    // Some file systems make inodes as they need them, and say 0.
    let few_inodes = room.f_files > 0 && room.f_favail < selection.inodes();
    if !dry_run && (free < selection.disk || few_inodes) {
        if few_inodes {
            return Err(Error::Usage(format!(
                "{} has {} inodes free, and {} are needed",
                parent.display(),
                room.f_favail,
                selection.inodes()
            )));
        }
        return Err(Error::NoSpace { path: parent.to_owned(), needed: selection.disk, free });
    }
    Ok(free)
}

fn build(builder: &Builder<'_>, input: &mut Input, options: &UnpackOptions) -> Result<(), Error> {
    let (bundle, selection) = (builder.bundle, builder.selection);
    let mut hand = Hand::default();
    builder.make_directories(&mut hand)?;
    builder.make_large(&mut hand)?;
    Feed::new(bundle, &selection.chunks, input, builder.progress).run(
        options.jobs,
        || (ChunkDecoder::default(), Hand::default()),
        |(decoder, hand), number, stored| {
            let decoded = decoder.decode(bundle, number, stored)?;
            builder.take_chunk(hand, number, decoded)
        },
    )?;
    check_without_data(builder, options.jobs)?;
    for &place in &selection.others {
        builder.make_other(&mut hand, place)?;
    }
    let mut from = Hand::default();
    for link in &selection.links {
        builder.link(&mut from, &mut hand, link)?;
    }
    builder.finish_directories(&mut hand)
}

/// Checks the objects and pieces that have no data, which no chunk brings, and makes the files of such objects.
fn check_without_data(builder: &Builder<'_>, jobs: usize) -> Result<(), Error> {
    let (bundle, selection) = (builder.bundle, builder.selection);
    let mut objects: Vec<u32> = selection.regulars.iter().map(|place| place.object).collect();
    objects.dedup();
    let mut tasks: Vec<(u32, Option<u64>)> = Vec::new();
    for object in objects {
        let size = bundle.index.object(object).size;
        if size > bundle.head.root().maxima.piece_len() {
            let empty = (0..).zip(bundle.layout.pieces_of(object)).filter(|(_, piece)| piece.chunk.is_none());
            tasks.extend(empty.map(|(piece, _)| (object, Some(piece))));
            if sealift_format::data_len(bundle.layout.holes_of(object), 0..size) == 0 {
                tasks.push((object, None));
            }
        } else if sealift_format::data_len(bundle.layout.holes_of(object), 0..size) == 0 {
            tasks.push((object, None));
        }
    }
    let next = AtomicUsize::new(0);
    let failed: Mutex<Option<Error>> = Mutex::new(None);
    let work = || {
        let mut hand = Hand::default();
        while let Some(&(object, piece)) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = builder.progress.check().and_then(|()| match piece {
                Some(piece) => check_piece(bundle, object, piece, &[]).map(|_| ()).map_err(Error::from),
                None if bundle.index.object(object).size > bundle.head.root().maxima.piece_len() => {
                    builder.write_empty(&mut hand, object) // its pieces are checked by themselves
                }
                None => check_object(bundle, object, &[])
                    .map_err(Error::from)
                    .and_then(|()| builder.write_empty(&mut hand, object)),
            });
            if let Err(error) = result {
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                next.store(usize::MAX / 2, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..jobs.clamp(1, tasks.len().max(1)) {
            scope.spawn(work);
        }
        work();
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}
