//! What unpacking reports.

use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use sealift_format::{Bundle, InodeKind, num};
use sealift_verify::escape;
use serde::{Serialize, Serializer};

use super::census::Census;
use super::plan::{PlannedName, Selection};
use super::trial::NotKept;
use crate::install::stats::InstallStats;
use crate::{Error, LeftRun, RecordFault};

/// What was unpacked, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
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
    /// Those of the others that are symbolic links.
    pub symlinks: u64,
    /// What all targets report.
    #[serde(flatten)]
    pub install: InstallStats,
    /// Bytes that everything needs on the target, as ext4 with blocks of this size would store it.
    pub disk_bytes: u64,
    /// Files that an interrupted run had completed correctly.
    pub resumed_files: u64,
    /// Whether an existing target was updated.
    #[serde(skip)]
    pub is_update: bool,
    /// Whether this very bundle was already unpacked, and nothing was left to do.
    pub was_complete: bool,
    /// Files that an update left unchanged.
    pub kept_files: u64,
    /// Files whose content stayed, and whose metadata an update set.
    pub metadata_files: u64,
    /// Files that an update built from the target's own content, under the same name or another.
    pub copied_files: u64,
    /// Unchanged files that an update wrote again, so that the hot set lies together.
    pub gathered_files: u64,
    /// What an update deleted, including everything below.
    pub deleted: Census,
    /// The deleted paths in the target, on request; those of directories end with a slash.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "paths")]
    pub deletions: Vec<PathBuf>,
    /// What an update replaced.
    pub replaced: Census,
    /// Whether the target was a directory that this program had not made.
    #[serde(rename = "adopted")]
    pub was_adopted: bool,
    /// Why it was not shown to be this program's, if it was adopted.
    #[serde(skip)]
    pub adopted: Option<RecordFault>,
    /// What another run was found to have left there, which this one resumes or completes first.
    #[serde(rename = "run", skip_serializing_if = "Option::is_none")]
    pub found: Option<LeftRun>,
    /// Files that an update compared with their record: by size, times and inode number, or by reading them.
    pub checked_files: u64,
    /// Those of them that did not match their record, or were missing.
    pub changed_files: u64,
    /// Whether all files of the target were hashed, because no record describes them or on request.
    pub was_hashed: bool,
    /// Files of the target that were hashed.
    pub hashed_files: u64,
    /// Inodes that the target needs.
    pub inodes: u64,
    /// Bytes free on the target's file system beforehand.
    pub free_bytes: u64,
    /// Bytes shared between equal files.
    pub shared_bytes: u64,
    /// Files that were sealed by this run.
    pub sealed_files: u64,
    /// What the target does not keep of the metadata of the bundle, or not exactly.
    pub not_kept: Vec<NotKept>,
    /// Files that did not get their owner, for lack of privilege.
    pub owners_skipped: u64,
    /// Files that did not get their set-id bits, because they did not get their owner.
    pub set_ids_skipped: u64,
    /// Extended attributes that could not be set, for lack of privilege.
    pub xattrs_skipped: u64,
    /// Devices that were not made, for lack of privilege.
    pub devices_skipped: u64,
    /// Paths in the target at which another file system is mounted, or which are subvolumes: an update leaves them as they are.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "paths")]
    pub mounts: Vec<PathBuf>,
    /// Names of the bundle that lie under these, unchanged and unseen.
    #[serde(skip_serializing_if = "is_zero")]
    pub under_mounts: u64,
}

/// Decides whether an update may adopt a directory that this program did not make. It receives what would be replaced and deleted, with the names
/// of all deletions. If it returns an error, the directory stays unchanged.
pub type Consent<'a> = dyn Fn(&UnpackStats) -> Result<(), Error> + 'a;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Serializes paths as JSON names (docs/json.md).
fn paths<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| escape::percent(path.as_os_str().as_bytes())))
}

/// Returns the stats of a new tree with this selection, as far as they are known beforehand.
pub(super) fn expected(bundle: &Bundle, selection: &Selection) -> UnpackStats {
    let mut objects: Vec<_> = selection.regulars.iter().map(|place| place.object).collect();
    objects.dedup();
    let kind = |place: &PlannedName| bundle.index.inode(bundle.index.entry(place.entry).inode).kind;
    let is_symlink = |place: &&PlannedName| matches!(kind(place), InodeKind::Symlink(_));
    UnpackStats {
        files: num::wide(selection.regulars.len()),
        objects: num::wide(objects.len()),
        directories: num::wide(selection.directories.len()),
        links: num::wide(selection.links.len()),
        others: num::wide(selection.others.len()),
        symlinks: num::wide(selection.others.iter().filter(|place| is_symlink(place)).count()),
        install: InstallStats {
            logical_bytes: selection
                .regulars
                .iter()
                .map(|place| bundle.index.object(place.object).size)
                .fold(0, u64::saturating_add),
            stored_bytes: selection.reads.stored_bytes(),
            ..InstallStats::default()
        },
        inodes: selection.inodes(),
        ..UnpackStats::default()
    }
}
