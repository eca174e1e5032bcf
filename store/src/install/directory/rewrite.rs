//! Writes the hot set again during an update, in the order of access. The kernel allocates space when it writes back, in the order of writing.
//! Reserving space file by file would not bring the files together; where possible, it is reserved for all of them at once.
//!
//! The update does without this step if it takes too much space, which is certain only once it is written: quotas are not part of what the system
//! says is free. Therefore everything that the update needs is built first.

use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags, fallocate, fstat, fsync, ftruncate, renameat, unlinkat};
use rustix::io::{Errno, pread, retry_on_intr};
use sealift_format::num;

use super::files::Builder;
use super::hot_files::{HotFile, HotFiles, Lies, Moved};
use super::hot_set::open_installed;
use super::job::Job;
use super::metadata::Privilege;
use super::plan::PlannedName;
use super::stretch::Stretch;
use crate::delivery::write_sparse;
use crate::directory::TreeStage;
use crate::directory::target::{Target, TargetWalk};
use crate::directory::walk::Walk;
use crate::fs::confined::open_name;
use crate::fs::unnamed::unnamed_in;
use crate::install::options::Durability;
use crate::progress::Phase;
use crate::{Class, Error};

/// The name of a copy in the stage until it is complete.
const COPY: &str = "copy";

/// Writes the hot set again: its new files, which are in the stage, and those that can be moved. Beside them, the stage takes `beside` more bytes.
/// If there is too little space, no file is moved.
pub(super) fn write_hot_set<'g>(
    job: &Job<'_>,
    builder: &Builder<'_>,
    gathered: &'g HotFiles<'_>,
    beside: u64,
) -> Result<Moved<'g>, Error> {
    let mut moved = Vec::new();
    let written = try_room(job, builder, gathered, beside);
    match written.and_then(|()| write_in_order(job, builder, gathered, &mut moved)) {
        Ok(()) => Ok(Some(moved)),
        Err(error) if error.class() == Class::DiskFull => {
            tracing::info!(%error, "the hot set stays scattered");
            let mut walk = Walk::default();
            for HotFile { place, links, .. } in moved {
                let links = links.iter().map(|link| PlannedName { entry: link.entry, ..*place });
                links.chain([*place]).try_for_each(|name| builder.remove(&mut walk, name))?;
            }
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Tries to reserve the space that the rest of the update takes at most.
fn try_room(job: &Job<'_>, builder: &Builder<'_>, gathered: &HotFiles<'_>, beside: u64) -> Result<(), Error> {
    let places: Vec<PlannedName> = gathered.written().map(|file| file.place).collect();
    let sizes = places.iter().map(|place| job.blocks.file(&[], job.bundle.index.object(place.object).size));
    let len = sizes.fold(beside, u64::saturating_add);
    let len = len.saturating_add(job.sealing.room(&job.bundle.index, &places));
    let reserve = |file| fallocate(file, FallocateFlags::empty(), 0, len);
    match unnamed_in(builder.stage.root()).and_then(reserve) {
        Err(error @ (Errno::NOSPC | Errno::DQUOT)) => Err(Error::io("write", builder.stage.target(), error)),
        // Not every file system can tell.
        _ => Ok(()),
    }
}

fn write_in_order<'g>(
    job: &Job<'_>,
    builder: &Builder<'_>,
    gathered: &'g HotFiles<'_>,
    moved: &mut Vec<&'g HotFile<'g>>,
) -> Result<(), Error> {
    let (mut walk, mut other, root) = (Walk::default(), Walk::default(), builder.stage.root());
    let (target, mut installed) = (Target::open(job.site, &job.bundle.index)?, TargetWalk::default());
    // Not the builder's: a `Privilege` counts what it cannot set, and new files were counted when they were built.
    let privilege =
        builder.privilege.within(root).map_err(|error| Error::io("look at", builder.stage.target(), error))?;
    let lens = gathered.written().map(|file| job.bundle.index.object(file.place.object).size);
    builder.progress.enter(Phase::Copying, lens.clone().sum(), 0);
    let mut stretch = Stretch::reserve(root, lens);
    for file in gathered.written() {
        let is_new = matches!(file.at, Lies::New);
        let opened = match is_new {
            true => builder.open(&mut walk, file.place, OFlags::RDONLY, Mode::empty())?.ok(),
            false => open_installed(job, &target, &mut installed, file.place).map(|(opened, _)| opened),
        };
        let Some(opened) = opened else { continue };
        match (write_again(builder, &privilege, &opened, file.place, &mut stretch)?, is_new) {
            (true, true) => {}
            (true, false) => {
                moved.push(file);
                file.links.iter().try_for_each(|link| builder.link(&mut walk, &mut other, link))?;
            }
            (false, true) => return Err(builder.failed("write", file.place)(Errno::IO)),
            // It has changed unnoticed.
            (false, false) => {}
        }
    }
    Ok(())
}

/// Puts a fresh copy of a file into the stage. Returns `false`, and leaves no copy, if the content cannot be read or is not as expected.
fn write_again(
    builder: &Builder<'_>,
    privilege: &Privilege,
    file: &OwnedFd,
    place: PlannedName,
    stretch: &mut Option<Stretch>,
) -> Result<bool, Error> {
    let written = copy(builder, privilege, file, place, stretch);
    if !matches!(written, Ok(true)) {
        let _ = unlinkat(builder.stage.root(), COPY, AtFlags::empty());
    }
    written
}

fn copy(
    builder: &Builder<'_>,
    privilege: &Privilege,
    file: &OwnedFd,
    place: PlannedName,
    stretch: &mut Option<Stretch>,
) -> Result<bool, Error> {
    let (stage, failed) = (builder.stage.root(), builder.failed("write", place));
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
    let (inode, attributes) = builder.inode_of(place);
    let mode = privilege.creation_mode(attributes);
    let copy = open_name(stage, COPY.as_bytes(), flags, mode).map_err(&failed)?;
    let blocks = u64::try_from(fstat(file).map_err(&failed)?.st_blocks).unwrap_or_default();
    let object = builder.bundle.index.object(place.object);
    // Holes stay holes.
    if (1..=blocks.saturating_mul(512)).contains(&object.size) {
        *stretch = stretch.take().and_then(|mut stretch| stretch.give(&copy, object.size).then_some(stretch));
    }
    let (mut hasher, mut buffer, mut at) = (blake3::Hasher::new(), vec![0; 256 << 10], 0);
    while at <= object.size {
        builder.progress.check()?;
        // Not copy_file_range(2), which may share the blocks.
        let Ok(len) = retry_on_intr(|| pread(file, &mut *buffer, at)) else { return Ok(false) };
        if len == 0 {
            break;
        }
        hasher.update(&buffer[..len]);
        write_sparse(&copy, &buffer[..len], at).map_err(&failed)?;
        builder.progress.add(num::wide(len), 0);
        at += num::wide(len);
    }
    if hasher.finalize().as_bytes() != &object.id {
        return Ok(false);
    }
    ftruncate(&copy, at).map_err(&failed)?;
    let applied = privilege.apply(copy.as_fd(), attributes, inode, Some(mode));
    applied.map_err(builder.unset(place))?;
    if builder.options.tree.durability == Durability::Each {
        fsync(&copy).map_err(&failed)?;
    }
    renameat(stage, COPY, stage, TreeStage::file_name(place.entry)).map_err(&failed)?;
    Ok(true)
}
