//! Unpacks a bundle into a new directory, or onto an existing one.
//!
//! A new directory appears by one rename when it is complete. An update first builds beside the target what it lacks, and then moves
//! it there; so does filling an empty mount point, whose stage and record are inside. The next run resumes one that was stopped or killed, and `sealift clean` discards what is left of it. What a target holds is recorded
//! beside it, as [`TreeRecord`](crate::directory::TreeRecord).

mod apply;
mod build;
mod census;
mod changes;
mod compare;
mod deletions;
mod delta;
mod disk;
mod files;
mod finished;
mod from_base;
mod give_up;
mod hot_files;
mod hot_set;
mod image_layout;
mod installed;
mod job;
mod journal;
mod local;
mod metadata;
mod needed;
mod new_tree;
mod plan;
mod premade;
mod recheck;
mod recorded_stats;
mod release;
mod resume;
mod rewrite;
mod sealing;
mod seeks;
mod staged;
mod standing;
mod stats;
mod stretch;
mod trial;
mod update;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::Builder;

use sealift_format::{Bundle, Index, Opened, Ref};

use crate::address::{TargetKind, choose_ref, has_path, reading};
use crate::base::GivenBases;
use crate::directory::{TreeStage, stage};
use crate::install::options::InstallOptions;
use crate::trust::{Admission, Survey, Trusted};
use crate::{Error, Input, LeftRun, Progress, Site, Unopened};

pub use census::Census;
use delta::Completed;
use disk::Blocks;
use finished::Finished;
pub use give_up::give_up;
use installed::{Installed, check_ours};
use job::Job;
pub use journal::{Interrupted, complete, is_of_another};
pub(crate) use plan::Selection;
pub use resume::{is_half_updated, is_unfinished, may_go_on};
use sealing::Sealing;
pub use stats::{Consent, UnpackStats};
pub use trial::NotKept;
use update::update;

/// Unpacks a bundle into `target`, which is new and appears by one rename when it is complete.
///
/// The device remembers the bundle before the first of its files can be reached. What a killed or failed run left is hashed, and reused if it is
/// correct. If the record says that this very bundle is fully unpacked, nothing is done, and the files count as kept.
///
/// # Errors
/// Returns an error if the bundle is refused or damaged, if the target exists or lacks space, or if a file cannot be made. The target does not
/// exist then.
pub fn unpack(
    bundle: Trusted,
    target: &Path,
    options: &InstallOptions,
    progress: &Progress,
) -> Result<UnpackStats, Error> {
    unpack_with(bundle, target, options, progress, None)
}

/// As [`unpack`], but if a directory would be adopted ([`InstallOptions::adopt`]), `consent` is called after the
/// comparison and before anything is written.
///
/// # Errors
/// As [`unpack`], and any error that `consent` returns.
pub fn unpack_asking(
    bundle: Trusted,
    target: &Path,
    options: &InstallOptions,
    progress: &Progress,
    consent: &Consent<'_>,
) -> Result<UnpackStats, Error> {
    unpack_with(bundle, target, options, progress, Some(consent))
}

fn unpack_with(
    bundle: Trusted,
    target: &Path,
    options: &InstallOptions,
    progress: &Progress,
    consent: Option<&Consent<'_>>,
) -> Result<UnpackStats, Error> {
    let site = &Arc::new(Site::resolve(target)?);
    let consent = consent.filter(|_| options.adopt && !options.dry_run);
    let survey = &Survey::of_directory(site, Some(bundle.state()))?;
    // Consent is asked for before anything is written.
    let is_asked = consent.is_some() && check_ours(site, bundle.state(), options, None)?.is_some();
    let (unopened, admission) = bundle.install(options.dry_run || is_asked)?;
    let admission = &admission;
    let sealing = &Sealing::plan(options.seal, site)?;
    admission.check_bound(survey, site.path())?;
    if options.dry_run && survey.run == Some(LeftRun::Running) {
        return Err(site.busy()?);
    }
    let (mut input, opened, kept) = open(unopened, site, options)?;
    let is_delta = matches!(opened, Opened::Delta(_));
    let needed = needed(admission, &input, options);
    let wanted = opened.head().root().contents.index_digest;
    // A target that holds the result needs no base.
    let is_done = kept.as_ref().is_some_and(|kept| kept.digest() == wanted);
    let from = if is_done { &GivenBases::default() } else { &options.bases };
    let Completed { bundle, bases, kept } = match from.complete(opened, input.path(), progress)? {
        (Opened::Whole(bundle), bases) => Completed { bundle, bases, kept },
        // Its base is the existing target.
        (Opened::Delta(delta), _) => delta::complete(delta, kept, site, admission, options, &needed, progress)?,
    };
    let bases = bases.making(&bundle, &mut input, options.jobs)?;
    let same = kept.as_ref().filter(|kept| kept.digest() == wanted);
    let order = bases.order_of(&bundle, same.and_then(Installed::order));
    let options = &chosen(options, is_delta, sealing, &bundle)?;
    let tree = choose_ref(&bundle.index, options.refs.first().map(String::as_str))?;
    check_root(site, &bundle.index, tree)?;
    if options.tree.image_layout {
        image_layout::check(site, &bundle.index, tree)?;
    }
    let selection = Selection::new(&bundle, tree, &options.tree.prefix);
    let job = Job {
        site,
        admission,
        bundle: &bundle,
        bases: &bases,
        order: order.as_ref(),
        reference: &tree.name,
        sealing,
        blocks: Blocks::of(&site.free_space()?),
        finished: Finished::default(),
        options,
        progress,
        needed,
        consent,
        survey,
    };
    bring(job, target, &mut input, selection, kept.filter(|_| !options.rehash))
}

/// Opens the bundle, and reads the target's record meanwhile if there will be an update.
fn open(
    unopened: Unopened,
    site: &Site,
    options: &InstallOptions,
) -> Result<(Input, Opened, Option<Installed>), Error> {
    std::thread::scope(|scope| {
        let read = || Installed::kept(site, options);
        let thread = options.tree.update.then(|| Builder::new().spawn_scoped(scope, read));
        let (input, opened) = unopened.open_any()?;
        let kept = thread.and_then(|thread| match thread {
            Ok(thread) => thread.join().ok()?.ok()?,
            // No thread could be started.
            Err(_) => read().ok()?,
        });
        Ok((input, opened, kept))
    })
}

/// Returns the options with what follows from the bundle, with at most one ref, and with a prefix that the tree has.
fn chosen(
    options: &InstallOptions,
    is_delta: bool,
    sealing: &Sealing,
    bundle: &Bundle,
) -> Result<InstallOptions, Error> {
    let mut options = options.clone();
    options.tree.update |= is_delta && options.bases.places.is_empty();
    check_options(&options)?;
    // Only content that was signed may be frozen by the kernel.
    options.rehash |= sealing.is_new();
    if options.refs.len() > 1 {
        return Err(Error::Usage("a directory can hold only one ref".into()));
    }
    let tree = choose_ref(&bundle.index, options.refs.first().map(String::as_str))?;
    match reading(&options.tree.prefix, |prefix| has_path(&bundle.index, tree, prefix))? {
        Some(prefix) => options.tree.prefix = prefix,
        None => return Err(Error::NoFile { path: options.tree.prefix }),
    }
    Ok(options)
}

/// Makes the target, which was `given` by this name, or updates the one that is there, of which `kept` is the record.
fn bring(
    job: Job<'_>,
    given: &Path,
    input: &mut Input,
    selection: Selection,
    kept: Option<Installed>,
) -> Result<UnpackStats, Error> {
    let site = job.site;
    if !site.is_nonempty_dir()? {
        if site.is_mount_point() {
            return update(&job, input, selection, None);
        }
        stage::check_replaceable(site, given)?;
        return new_tree::make(job, input, selection);
    }
    if job.options.tree.update {
        return update(&job, input, selection, kept);
    }
    TreeStage::remove_finished(site)?;
    if let Some(kept) = job.complete()? {
        return update(&job, input, selection, Some(kept));
    }
    if site.record()?.is_none() && journal::is_left(site)? {
        return update(&job, input, selection, None); // a killed run had begun to fill it
    }
    Err(Error::NotEmpty { path: site.path().to_owned() })
}

/// Refuses a tree whose root has the name of the folder in which a mount point keeps its stage and its record.
fn check_root(site: &Site, index: &Index, tree: &Ref) -> Result<(), Error> {
    let root = index.directory(tree.directory);
    if site.is_mount_point() && index.find_entry(root, Site::FOLDER.as_bytes()).is_some() {
        let problem = "is in the bundle, and is where a mount point keeps its install record";
        return Err(Error::unexpected(site.path().join(Site::FOLDER), problem));
    }
    Ok(())
}

/// Returns the files and folders that the run needs: those by which the bundle was judged, the bundle, and what its bases are read from.
fn needed(admission: &Admission, input: &Input, options: &InstallOptions) -> Vec<PathBuf> {
    let bases = options.bases.places.iter().map(|place| TargetKind::of(place).1.to_owned());
    admission.paths().into_iter().chain([input.path().to_owned()]).chain(bases).collect()
}

/// Refuses options that exclude each other.
fn check_options(InstallOptions { rehash, no_check, tree, adopt, .. }: &InstallOptions) -> Result<(), Error> {
    let for_updates = [
        (*adopt, "--adopt"),
        (tree.delete, "--delete"),
        (*rehash, "--rehash"),
        (*no_check, "--no-check"),
        (tree.assume_mtime, "--assume-mtime"),
    ];
    if let Some((_, option)) = for_updates.iter().find(|(is_set, _)| *is_set && !tree.update) {
        return Err(Error::Usage(format!("{option} requires --update")));
    }
    if *no_check && *rehash {
        return Err(Error::Usage("--rehash and --no-check cannot be combined".into()));
    }
    Ok(())
}
