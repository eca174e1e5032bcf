//! Installs delta bundles onto a directory that holds their base: its record, or its files, supply the index and the objects.

use std::path::PathBuf;
use std::sync::Arc;

use crate::Site;
use sealift_format::{Bundle, Chunk, Delta, Object, Row, verity};

use super::installed::{Installed, check_ours};
use super::job::Job;
use super::journal::{self, Interrupted};
use super::plan::Selection;
use crate::base::{self, Base, Bases};
use crate::contents::index_by_reading;
use crate::directory::stage::TreeStage;
use crate::install::options::InstallOptions;
use crate::progress::Phase;
use crate::source::{DirectoryOptions, DirectorySource, Source};
use crate::trust::Admission;
use crate::{Error, Progress};

/// A bundle that is whole.
pub(super) struct Completed {
    pub(super) bundle: Bundle,
    /// The bases of a delta bundle.
    pub(super) bases: Bases,
    /// The target's record.
    pub(super) kept: Option<Installed>,
}

/// Completes a delta to a whole bundle with what the target at `site` holds; `kept` is its record, if it was read already.
pub(super) fn complete(
    delta: Delta,
    kept: Option<Installed>,
    site: &Arc<Site>,
    admission: &Admission,
    options: &InstallOptions,
    needed: &[PathBuf],
    progress: &Progress,
) -> Result<Completed, Error> {
    let target = site.path();
    if !site.is_nonempty_dir()? {
        return Err(Error::missing_base(target, "it does not exist: a delta can only update an existing target"));
    }
    // An unfinished update is completed first: only then is it known what the target holds.
    let stage = if options.dry_run { None } else { TreeStage::find(site)? };
    let found = match stage {
        Some(stage) => journal::complete(&stage, site, needed, options.jobs, progress)?,
        None => Interrupted::Nothing,
    };
    let kept = match kept {
        Some(kept) if found == Interrupted::Nothing && kept.is_current(site, options)? => Some(kept),
        _ => Installed::kept(site, options)?,
    };
    check_ours(site, admission.state(), options, kept.as_ref())?;
    let (wanted, bases) = (delta.head.root().contents.index_digest, delta.bases().to_vec());
    if let Some(kept) = kept {
        let digest = kept.digest();
        if digest == wanted {
            let bundle = delta.complete_with(kept.index().clone())?;
            return Ok(Completed { bundle, bases: Bases::default(), kept: Some(kept) });
        }
        if base::is_the_only(&bases, &digest) {
            let (index, reference) = (kept.index().clone(), kept.reference());
            let base = Base::of_directory(Arc::clone(site), index, reference).read_by(kept.order().cloned());
            return with_base(delta, base, Some(kept));
        }
        let held = kept.as_base().map_or_else(|| format!("content {}", base::short(&digest)), |held| held.to_string());
        return Err(Error::wrong_base(target, &bases, format_args!("the target is {held}")));
    }
    let [named] = delta.difference.base_refs() else {
        return Err(Error::missing_base(target, "it has no install record, and the base has several refs"));
    };
    tracing::info!("no usable install record: hashing the target");
    progress.enter(Phase::Listing, 0, 0);
    let reference = named.name.clone();
    let source = Source::Directory(DirectorySource::list_open(
        site.reopen()?,
        target,
        &DirectoryOptions::default(),
        options.jobs,
    )?);
    let index = index_by_reading(&reference, &source, options.jobs, progress)?;
    let digest = verity::digest(index.bytes());
    if digest == wanted {
        return Ok(Completed { bundle: delta.complete_with(index)?, bases: Bases::default(), kept: None });
    }
    if base::is_the_only(&bases, &digest) {
        return with_base(delta, Base::of_directory(Arc::clone(site), index, &reference), None);
    }
    let held = format!("the target has no install record, and its content is {}", base::short(&digest));
    Err(Error::wrong_base(target, &bases, held))
}

fn with_base(delta: Delta, base: Base, kept: Option<Installed>) -> Result<Completed, Error> {
    let bundle = delta.complete(&[&base.index])?;
    Ok(Completed { bundle, bases: Bases::new(vec![base]), kept })
}

/// Checks that the target still has each object of the bases that `pending` needs, before anything is written.
pub(super) fn check_bases(job: &Job<'_>, pending: &Selection) -> Result<(), Error> {
    let (bundle, bases) = (job.bundle, job.bases);
    if bundle.layout.carried.is_none() {
        return Ok(());
    }
    if bases.indexes().is_empty() {
        return check_no_prefix(job, pending);
    }
    let objects = pending.regulars.iter().map(|place| place.object);
    let needed = base::needed(bundle, bases, pending.reads.chunks(), objects);
    base::check(bases, &needed, job.options.bases.place_or(job.site.path()), job.options.jobs, job.progress)
}

/// Reports which file of a fully installed target has to be rebuilt and cannot be, because the target no longer holds the base.
fn check_no_prefix(job: &Job<'_>, pending: &Selection) -> Result<(), Error> {
    let (index, layout) = (&job.bundle.index, &job.bundle.layout);
    let needs_base = |chunk: &Row<Chunk>| !layout.chunks[chunk.at()].prefix.is_empty();
    let objects = pending.regulars.iter().map(|place| place.object);
    let is_needed = pending.reads.chunks().iter().any(needs_base)
        || !base::needed(job.bundle, job.bases, &[], objects.filter(|object| layout.recipes.of(*object).is_some()))
            .is_empty();
    let Some(place) = pending.regulars.first().filter(|_| is_needed) else { return Ok(()) };
    let path = index.path(place.directory, place.entry);
    let problem = format!(
        "files that this delta installed are missing or changed, such as {}, and their base is gone",
        String::from_utf8_lossy(&path)
    );
    Err(Error::missing_base(job.site.path(), problem))
}

/// Reports what is pending that neither the delta nor the target has. Bases that were given have all of it.
pub(super) fn check_brought(job: &Job<'_>, pending: &Selection) -> Result<(), Error> {
    let bundle = job.bundle;
    if !job.options.bases.places.is_empty() {
        return Ok(());
    }
    let is_lacking = |object: Row<Object>| {
        let is_elsewhere = !bundle.layout.is_stored(object) && bundle.layout.recipes.of(object).is_none();
        is_elsewhere && bundle.index.object(object).size > 0
    };
    let mut lacking = pending.regulars.iter().filter(|place| is_lacking(place.object)).peekable();
    let Some(first) = lacking.peek() else { return Ok(()) };
    let path = bundle.index.path(first.directory, first.entry);
    let problem = format!(
        "files that the delta does not carry are missing or changed: {}, such as {}",
        lacking.count(),
        String::from_utf8_lossy(&path)
    );
    Err(Error::missing_base(job.site.path(), problem))
}
