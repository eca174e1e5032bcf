//! Checks whether an installed tree still matches its signed index, file by file and byte by byte.
//!
//! For a tree that was sealed when it was unpacked, the kernel reports each file's digest, and no content is read: a sealed file can only return
//! the bytes of its digest. A file that is no longer sealed is read, and reported.
//!
//! [`audit`] checks a directory, and [`crate::ostree::audit`] a repository. With the feature `composefs` there is an audit of a store as well. The
//! latter two compare objects and refs with the records of the installed bundles, and return a [`StoreAudit`].
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/bundle.rs"));
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = signed_bundle()?;
//! # let (bundle, target) = (folder.path().join("os.sealift"), folder.path().join("target"));
//! use sealift::audit::{AuditOptions, audit};
//! use sealift::diff::{DiffOptions, Ignore};
//! use sealift::trust::{Guard, TrustOptions};
//! use sealift::{Input, Limits, Progress};
//!
//! # let signers = Some(folder.path().join("allowed_signers"));
//! # let trust = TrustOptions { signers, state: Some(folder.path().join("state")), ..TrustOptions::default() };
//! # let (guard, progress) = (Guard::load(&trust)?, std::sync::Arc::new(Progress::default()));
//! # let taken = guard.admit(Input::open(&bundle)?, Limits::default())?;
//! # sealift::unpack::unpack(taken, &target, &sealift::InstallOptions::default(), &progress)?;
//! // Unpacked as a non-root user, who cannot set owners.
//! let ignore = Ignore { privileged: true, ..Ignore::default() };
//! let options = AuditOptions { diff: DiffOptions { ignore, ..DiffOptions::default() }, ..AuditOptions::default() };
//! let check = || audit(&target, None, &options, Limits::default(), &guard, &progress);
//! let (diff, bundle) = check()?;
//! assert!(diff.is_empty() && bundle.head.root().identity.version == 7);
//! std::fs::write(target.join("etc/os-release"), "ID=another\n")?;
//! let (diff, _) = check()?;
//! assert_eq!(diff.counts.changed, 1);
//! # Ok(())
//! # }
//! ```

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealift_format::{FileType, Index, Limits};
use sealift_store::{LeftRun, Site};

use crate::diff::{self, Change, Diff, DiffOptions, Field, PathDifference, Side};
use crate::trust::{Guard, Judged, Survey};
use crate::{Bundle, Error, Input, Phase, Progress};
pub use sealift_store::audit::{Finding, FindingKind, StoreAudit, StoreAuditOptions, StoreCounts};
use sealift_store::base::GivenBases;
use sealift_store::directory::{TreeRecord, state};
use sealift_store::install_record::InstallRecord;
use sealift_store::seal::Digests;
use sealift_store::source::{DirectoryOptions, DirectorySource, Source, XattrFilter};

/// Options of an audit.
#[derive(Clone, Debug, Default)]
pub struct AuditOptions {
    /// Where the bases of a delta bundle are.
    pub bases: GivenBases,
    /// What is compared. Files are expected at their recorded paths: a moved file is missing there and extra elsewhere.
    pub diff: DiffOptions,
    /// Extended attributes to compare, besides those in the index.
    pub xattrs: XattrFilter,
    /// Skips other file systems.
    pub one_file_system: bool,
    /// Ignores files that are not in the index.
    pub allow_extra: bool,
}

/// Compares the tree at `target` with a bundle, or with the index of the bundle installed there. In the result the old side is the index: a removed
/// file is missing from the tree, and an added one is extra. Also returns the bundle, as judged.
///
/// `guard` decides from the head whether to trust the index before it is parsed, as [`Guard::judge_installed`] does.
///
/// # Errors
/// Returns an error if the bundle or its record is refused, damaged or missing, or if the tree cannot be read or changes during the audit.
pub fn audit(
    target: &Path,
    bundle: Option<Input>,
    options: &AuditOptions,
    limits: Limits,
    guard: &Guard,
    progress: &Arc<Progress>,
) -> Result<(Diff, Judged), Error> {
    let site = Site::resolve(target)?;
    let mut diff_options = DiffOptions { moves: false, ..options.diff.clone() };
    let (mut is_of_another, mut gone_back_from) = (false, None);
    let run = site.run()?;
    // What the target keeps was kept when it was unpacked: if it differs now, missing privilege is not the cause.
    let record = state::kept_record(&site).ok().flatten();
    let record = record.filter(|record| site.inode_id().is_ok_and(|id| id.1 == record.inode));
    diff_options.keeps = record.as_ref().map(|record| record.keeps);
    diff_options.ignore.privileged &= diff_options.keeps.is_none();
    diff_options.linked_duplicates |= record.is_some_and(|record| record.links_duplicates);
    // What was unpacked lies on one file system: what is mounted over it is something else.
    let is_recorded = bundle.is_none();
    let (judged, index, digests) = match bundle {
        Some(input) => {
            let unopened = input.begin(limits)?;
            let judged = guard.judge_installed(unopened.head())?;
            let (_, Bundle { index, .. }, _) = options.bases.open(unopened, progress)?;
            // A record of another bundle has no digests for this index.
            let digests = Digests::kept(&site, &index).ok().flatten();
            (judged, index, digests)
        }
        None => {
            let survey = Survey::of_directory(&site, Some(guard.state()))?;
            gone_back_from = survey.gone_back_from();
            let dir = site.record()?.ok_or_else(|| no_state(target, run))?;
            let judged = guard.judge_installed(&InstallRecord::read_head(&dir, limits)?)?;
            let state = TreeRecord::read_behind(&dir, judged.head.clone())?;
            is_of_another = !state.is_of(&site)?;
            // Only what was unpacked is expected.
            if diff_options.reference.is_none() {
                diff_options.reference = Some(state.part.reference);
            }
            if diff_options.prefix.is_empty() {
                diff_options.prefix = state.part.prefix;
            }
            let digests = state.sealed.map(|table| Digests::new(&state.installed.index, &table));
            (judged, state.installed.index, digests)
        }
    };
    let source = list(&site, &index, options, is_recorded, progress)?;
    if let Source::Directory(listed) = &source {
        diff_options.left_out = listed.mounts().iter().cloned().collect();
    }
    let side = digests.as_ref().map_or(Side::Source(&source), |digests| Side::Sealed(&source, digests));
    let mut found = diff::diff(Side::Index(&index), side, &diff_options, progress)?;
    found.mounts = std::mem::take(&mut diff_options.left_out).into_iter().collect();
    found.is_sealed = digests.is_some();
    // When a bundle is given, the record beside the target may be damaged.
    found.is_index_signed = found.is_sealed && state::is_index_signed(&site).unwrap_or_default();
    (found.is_of_another, found.run, found.gone_back_from) = (is_of_another, run, gone_back_from);
    if let Some(keeps) = diff_options.keeps {
        found.lacks = keeps.lacks().collect();
        found.counts.privileged = 0;
        found.differences.iter_mut().for_each(|difference| difference.privileged = false);
    }
    if options.allow_extra {
        allow_extra(&mut found);
    }
    Ok((found, judged))
}

/// Returns where `target` keeps its install record, for messages.
///
/// # Errors
/// Returns an error if there is no such target.
pub fn state_path(target: &Path) -> Result<PathBuf, Error> {
    state::path_of(target)
}

fn no_state(target: &Path, run: Option<LeftRun>) -> Error {
    if run.is_some_and(LeftRun::is_half) {
        return Error::HalfUpdated { target: target.to_owned() };
    }
    if let Err(error) = target.metadata() {
        return Error::io("read", target, error);
    }
    Error::NoRecord { path: target.to_owned() }
}

fn list(
    site: &Site,
    index: &Index,
    options: &AuditOptions,
    leave_mounts: bool,
    progress: &Arc<Progress>,
) -> Result<Source, Error> {
    let mut xattrs = options.xattrs.clone();
    diff::take_xattrs_of(index, &mut xattrs);
    let listing = DirectoryOptions {
        xattrs,
        one_file_system: options.one_file_system,
        exclude: options.diff.exclude.clone(),
        omit_output: None,
        omit_lost_and_found: false,
        leave_mounts,
        progress: Some(Arc::clone(progress)),
    };
    let listing = listing.unless_in(index);
    progress.enter(Phase::Listing, 0, 0);
    Ok(Source::Directory(DirectorySource::list_open(site.reopen()?, site.path(), &listing, options.diff.jobs)?))
}

/// Drops extra files from the result, and the changed times of the directories that contain them.
fn allow_extra(found: &mut Diff) {
    let is_extra = |difference: &&PathDifference| difference.change == Change::Added;
    let touched: HashSet<Vec<u8>> =
        found.differences.iter().filter(is_extra).map(|extra| extra.path.parent().to_vec()).collect();
    let counts = &mut found.counts;
    found.differences.retain(|difference| {
        let is_directory = difference.new.as_ref().is_some_and(|new| new.file_type == FileType::Directory);
        let is_time =
            is_directory && difference.fields == [Field::Mtime] && touched.contains(&difference.path.to_vec());
        counts.metadata -= u64::from(is_time);
        !is_time && difference.change != Change::Added
    });
    (counts.added, counts.added_bytes) = (0, 0);
}
