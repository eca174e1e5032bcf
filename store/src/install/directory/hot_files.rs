//! The hot set of an update that writes it again.

use std::ops::Range;

use crate::kernel::extents;
use rustix::fs::{Mode, OFlags};
use sealift_format::Index;

use super::plan::{Link, PlannedName};
use super::seeks::seeks;
use crate::directory::TreeStage;
use crate::fs::confined::open_name;

/// The hot set of an update that is to write it again; otherwise empty.
#[derive(Debug, Default)]
pub(super) struct HotFiles<'a> {
    /// Its files in the order of access.
    pub(super) files: Vec<HotFile<'a>>,
}

/// A file that is read first.
#[derive(Debug)]
pub(super) struct HotFile<'a> {
    pub(super) place: PlannedName,
    /// Its further names.
    pub(super) links: Vec<&'a Link>,
    pub(super) at: Lies,
}

/// Where a file lies.
#[derive(Debug)]
pub(super) enum Lies {
    /// Not yet: this update builds it.
    New,
    /// In these extents, which it shares with no other file: it can be moved.
    Here(Vec<Range<u64>>),
    /// In these extents, or in unknown ones if there are none here; it must stay.
    Stays(Vec<Range<u64>>),
}

/// The unchanged files that were written again only to move them; `None` if the hot set was not written again.
pub(super) type Moved<'g> = Option<Vec<&'g HotFile<'g>>>;

impl<'a> HotFiles<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the files that are written again.
    pub(super) fn written(&self) -> impl Iterator<Item = &HotFile<'a>> + Clone {
        self.files.iter().filter(|file| !matches!(file.at, Lies::Stays(_)))
    }

    /// Returns the number of seeks that reading the hot set takes. The stage must have been written to the disk.
    pub(super) fn seeks_left(&self, stage: &TreeStage, index: &Index) -> u64 {
        let extents_of = |file: &HotFile<'_>| {
            let name = TreeStage::file_name(file.place.entry);
            let staged = open_name(stage.root(), &name, OFlags::RDONLY, Mode::empty()).ok();
            let found = staged.and_then(|staged| extents(staged, index.object(file.place.object).size).ok().flatten());
            match &file.at {
                Lies::New => found.unwrap_or_default(),
                Lies::Here(extents) | Lies::Stays(extents) => found.unwrap_or_else(|| extents.clone()),
            }
        };
        let all: Vec<Vec<Range<u64>>> = self.files.iter().map(extents_of).collect();
        seeks(all.iter().map(|extents| Some(&extents[..])))
    }
}
