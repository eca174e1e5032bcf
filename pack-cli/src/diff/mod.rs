//! Compares two bundles, or a bundle and a directory: what an update changes, or what happened to a tree.
//!
//! For a bundle, head, layout and index are enough: contents are compared by object id and not read. In a directory, only files whose size does
//! not decide are read. No content is returned, so integrity is enough, and no signer has to be trusted.
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/bundle.rs"));
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = signed_bundle()?;
//! # let (bundle, tree) = (folder.path().join("os.sealift"), folder.path().join("tree"));
//! use sealift::diff::{Change, DiffOptions, Side, diff};
//! use sealift::source::{Source, SourceOptions};
//! use sealift::{Input, Limits, Progress};
//!
//! let bundle = Input::open(&bundle)?.open_bundle(Limits::default())?;
//! std::fs::write(tree.join("hello"), "hello")?;
//! let tree = Source::open_spec(tree.as_os_str(), &SourceOptions::default(), 1)?;
//! let options = DiffOptions { ignore: sealift::diff::Ignore::METADATA, ..DiffOptions::default() };
//! let found = diff(Side::Bundle(&bundle), Side::Source(&tree), &options, &Progress::default())?;
//! let lines: Vec<_> = found.differences.iter().map(|found| (found.change, found.path.to_vec())).collect();
//! assert_eq!(lines, [(Change::Added, b"hello".to_vec())]);
//! # Ok(())
//! # }
//! ```

mod collect;
mod compare;
mod moves;
mod names;
mod path;
mod report;
mod side;
mod start;
mod take;
mod walk;
mod wishes;

use std::collections::BTreeSet;

use sealift_format::Index;

use crate::{Error, Keeps, Progress};
use sealift_store::contents::{self, ContentInfo, Want};
use sealift_store::seal::Digests;
use sealift_store::source::{Exclude, XattrFilter};

use collect::Collector;
use names::Names;
pub use path::TreePath;
pub use report::{Change, Counts, Diff, Field, File, PathDifference, Take};
pub use side::Side;
use side::View;
use walk::Walk;
use wishes::ReadWishes;

/// Options of a comparison.
#[derive(Clone, Debug, Default)]
pub struct DiffOptions {
    /// The ref to compare. Without one, two bundles are compared ref by ref; a bundle and a directory are compared if the bundle has only one ref.
    pub reference: Option<String>,
    /// Only what lies at or below this path, as `[REF:]PATH`, which may be written as in listings; empty for everything.
    pub prefix: Vec<u8>,
    /// Differences to ignore.
    pub ignore: Ignore,
    /// What the new side, a directory, can keep of the old side's metadata; the rest is not expected. `None` for everything.
    pub keeps: Option<Keeps>,
    /// Paths to exclude from both sides. The listing of a directory must have excluded them too.
    pub exclude: Option<Exclude>,
    /// Paths that are left out of both sides, with what lies below them.
    pub left_out: BTreeSet<Vec<u8>>,
    /// Whether equal files of the old side may be hard links of one file on the new side.
    pub linked_duplicates: bool,
    /// Whether a file removed from one path and added at another is reported as moved.
    pub moves: bool,
    /// Threads that read the files of a directory.
    pub jobs: usize,
}

/// Metadata to ignore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct Ignore {
    /// Permission bits.
    pub mode: bool,
    /// Owner and group.
    pub owner: bool,
    /// Modification time.
    pub mtime: bool,
    /// Extended attributes.
    pub xattrs: bool,
    /// Which names are hard links to one file.
    pub links: bool,
    /// What unpacking without root leaves out: owner and group, set-id bits, extended attributes that only root may set, and missing devices.
    pub privileged: bool,
}

impl Ignore {
    /// All metadata: only contents, targets, types and names are compared.
    pub const METADATA: Self =
        Self { mode: true, owner: true, mtime: true, xattrs: true, links: true, privileged: false };
}

/// Extends a filter by the extended attributes that occur in an index, whatever their names. Use it to read a directory that is to be compared with
/// that index.
pub fn take_xattrs_of(index: &Index, filter: &mut XattrFilter) {
    filter.add_names_of(index);
}

/// Compares two sides.
///
/// # Errors
/// Returns an error if there is no such ref or path, if a file of a directory cannot be read or has changed since it was listed, or if the caller
/// cancelled.
pub fn diff(old: Side<'_>, new: Side<'_>, options: &DiffOptions, progress: &Progress) -> Result<Diff, Error> {
    let walk = Walk {
        old: old.view(),
        new: new.view(),
        exclude: options.exclude.as_ref(),
        left_out: &options.left_out,
        progress,
    };
    let (starts, prefix) = start::starts(walk.old, walk.new, options)?;
    let takes = matches!(new, Side::Bundle(_));
    let mut wishes = ReadWishes::new(walk.old, walk.new, options, takes);
    for start in &starts {
        walk.run(&start.at, &mut |met| wishes.meet(met))?;
    }
    let (old_wanted, new_wanted) = wishes.finish();
    let old_found = read(old, &old_wanted, options, progress)?;
    let new_found = read(new, &new_wanted, options, progress)?;
    let mut collector = Collector::new(Names::new(walk.old, old_found), Names::new(walk.new, new_found), options);
    for start in &starts {
        walk.run(&start.at, &mut |met| collector.meet(start, met))?;
    }
    let take = match new {
        Side::Bundle(bundle) => Some(take::take(bundle, &collector.new_objects())),
        _ => None,
    };
    Ok(Diff { take, prefix, ..collector.finish(options.moves) })
}

fn read(
    side: Side<'_>,
    wanted: &[Want],
    options: &DiffOptions,
    progress: &Progress,
) -> Result<Vec<ContentInfo>, Error> {
    let (View::Source(source), true) = (side.view(), wanted.iter().any(|want| *want != Want::Nothing)) else {
        return Ok(Vec::new());
    };
    let digests: Option<&Digests> = match side {
        Side::Sealed(_, digests) => Some(digests),
        _ => None,
    };
    contents::find(source, wanted, digests, options.jobs, progress)
}
