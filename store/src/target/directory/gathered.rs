//! Writes the hot set again during an update, in the order of access. The kernel allocates space when it writes back, in the order of writing.
//! Reserving space file by file would not bring the files together; where possible, it is reserved for all of them at once.

use std::collections::HashMap;
use std::ops::Range;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{Mode, OFlags, fstat, fsync, ftruncate, renameat};
use rustix::io::{Errno, pread, retry_on_intr};
use sealift_format::{Entry, Index, Row, num};
use sealift_verify::kernel::extents;

use super::changes::Depth;
use super::files::Builder;
use super::metadata::Privilege;
use super::plan::PlannedName;
use super::seeks::seeks;
use super::stretch::Stretch;
use crate::Error;
use crate::delivery::write_sparse;
use crate::directory::TreeStage;
use crate::directory::walk::Walk;
use crate::fs::confined::open_name;
use crate::progress::Phase;
use crate::target::options::Durability;

/// The hot set of an update that rewrites every file of it that can be moved; empty if it is not rewritten.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// Its files in the order of access; those that stay in their places with their extents.
    pub(super) files: Vec<(PlannedName, Option<Vec<Range<u64>>>)>,
    /// Unchanged files that are rewritten only to move them, with the metadata that would otherwise have been set in place.
    pub(super) moved: HashMap<Row<Entry>, Option<Depth>>,
}

impl Gathered {
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the number of seeks that reading the hot set takes. The stage must have been written to the disk.
    pub(super) fn seeks_left(&self, stage: &TreeStage, index: &Index) -> u64 {
        let extents_of = |(place, stays): &(PlannedName, Option<Vec<Range<u64>>>)| match stays {
            Some(extents) => extents.clone(),
            None => {
                // A file that was left in its place after all is not in the stage.
                let name = TreeStage::file_name(place.entry);
                let file = open_name(stage.root(), &name, OFlags::RDONLY, Mode::empty()).ok();
                let found = file.and_then(|file| extents(file, index.object(place.object).size).ok().flatten());
                found.unwrap_or_default()
            }
        };
        let all: Vec<Vec<Range<u64>>> = self.files.iter().map(extents_of).collect();
        seeks(all.iter().map(|extents| Some(&extents[..])))
    }

    /// Writes those files of the hot set that are in the stage again, in the order of access.
    pub(super) fn write_in_order(&self, builder: &Builder<'_>) -> Result<(), Error> {
        let (mut walk, root) = (Walk::default(), builder.stage.root());
        // Not the builder's: a `Privilege` counts what it cannot set, and these files were counted when they were built.
        let privilege =
            Privilege::of_process(root).map_err(|error| Error::io("look at", builder.stage.target(), error))?;
        let built = self.files.iter().filter(|(_, stays)| stays.is_none()).map(|(place, _)| *place);
        let lens = built.clone().map(|place| builder.bundle.index.object(place.object).size);
        builder.progress.enter(Phase::Copying, lens.clone().sum(), 0);
        let mut stretch = Stretch::reserve(root, lens);
        for place in built {
            let Ok(file) = builder.open(&mut walk, place, OFlags::RDONLY, Mode::empty())? else { continue };
            write_again(builder, &privilege, (&file, place), &mut stretch)?;
        }
        Ok(())
    }
}

/// Replaces a file of the stage by a fresh copy.
fn write_again(
    builder: &Builder<'_>,
    privilege: &Privilege,
    (file, place): (&OwnedFd, PlannedName),
    stretch: &mut Option<Stretch>,
) -> Result<(), Error> {
    const COPY: &str = "copy";
    let (stage, failed) = (builder.stage.root(), builder.failed("write", place));
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
    let (inode, attributes) = builder.inode_of(place);
    let mode = privilege.creation_mode(attributes);
    let copy = open_name(stage, COPY.as_bytes(), flags, mode).map_err(&failed)?;
    let blocks = u64::try_from(fstat(file).map_err(&failed)?.st_blocks).unwrap_or_default();
    let len = builder.bundle.index.object(place.object).size;
    // Holes stay holes.
    if (1..=blocks.saturating_mul(512)).contains(&len) {
        *stretch = stretch.take().and_then(|mut stretch| stretch.give(&copy, len).then_some(stretch));
    }
    let (mut hasher, mut buffer, mut at) = (blake3::Hasher::new(), vec![0; 256 << 10], 0);
    loop {
        builder.progress.check()?;
        // Not copy_file_range(2), which may share the blocks.
        let len = retry_on_intr(|| pread(file, &mut *buffer, at)).map_err(&failed)?;
        if len == 0 {
            break;
        }
        hasher.update(&buffer[..len]);
        write_sparse(&copy, &buffer[..len], at).map_err(&failed)?;
        builder.progress.add(num::wide(len), 0);
        at += num::wide(len);
    }
    if hasher.finalize().as_bytes() != &builder.bundle.index.object(place.object).id {
        return Err(failed(Errno::IO));
    }
    ftruncate(&copy, at).map_err(&failed)?;
    privilege.apply(copy.as_fd(), attributes, inode, Some(mode)).map_err(&failed)?;
    if builder.options.tree.durability == Durability::Each {
        fsync(&copy).map_err(&failed)?;
    }
    renameat(stage, COPY, stage, TreeStage::file_name(place.entry)).map_err(&failed)
}
