//! Unpacks a bundle into a new directory, or onto an existing one.
//!
//! A new directory appears by one rename when it is complete. An update first builds beside the target what it lacks, and then moves
//! it there. The next run resumes one that was stopped or killed, and `sealift clean` discards what is left of it. What a target took
//! is kept beside it, as [`TreeRecord`](crate::directory::TreeRecord).

mod adopt;
mod apply;
mod census;
mod changes;
mod deletions;
mod delta;
mod files;
mod from_base;
mod gather;
mod installed;
mod journal;
mod local;
mod metadata;
mod plan;
mod recheck;
mod release;
mod sealing;
mod update;

use sealift_format::num;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::fs::stat_cache::{StatCache, next_moment};
use crate::{Record, Site, identity};
use rustix::io::Errno;
use sealift_format::{Blocks, Bundle, InodeKind, Kind, Opened};
use sealift_verify::escape;
use serde::{Serialize, Serializer};

use crate::address::{choose_ref, has_path, reading};
use crate::base::{Bases, GivenBases};
use crate::delivery::Delivery;
use crate::fs::writeback::with_writeback;
use crate::input::Input;
use crate::progress::Phase;
use crate::seal::KernelSignature;
pub use crate::seal::Seal;
use crate::trust::{Admission, TargetPlace, Trusted};
use crate::{Error, Progress};

use crate::directory::stage::{Leftovers, StageKind};
use crate::directory::state;
use crate::directory::{Stage, Target, stage};
use crate::install_record::{self, NewRecord};
pub use census::Census;
use files::{Builder, WorkerState};
use gather::gather_new;
use installed::Installed;
pub use journal::{Interrupted, complete};
use metadata::Privilege;
use plan::Place;
pub(crate) use plan::Selection;
use sealing::Sealing;

/// Options of unpacking.
#[derive(Clone, Debug, Default)]
pub struct UnpackOptions {
    /// The ref to unpack; required if there are several.
    pub reference: Option<String>,
    /// Where the bases of a delta bundle are, unless the target holds its base.
    pub bases: GivenBases,
    /// Unpack only what lies at or below this path, which may be written as lists print it.
    pub prefix: Vec<u8>,
    /// Update an existing target: it becomes the unpacked tree, and only what it lacks is read. Its files are compared with its install record by
    /// size, times and inode number; those that differ are read, and rebuilt if their content differs.
    pub update: bool,
    /// Let an update adopt a directory that this program did not make.
    pub adopt: bool,
    /// Let an update remove what the bundle does not have.
    pub delete: bool,
    /// Let an update hash the target instead of relying on its install record.
    pub rehash: bool,
    /// Let an update rely on the install record alone, and check only the names and kinds of files.
    pub trust_record: bool,
    /// If an update has to examine the target's files, decide by size and time whether they are the bundle's.
    pub trust_mtime: bool,
    /// Whether to seal files. Existing files that are sealed for the first time are hashed before.
    pub seal: Seal,
    /// When data must be durable.
    pub durability: Durability,
    /// Turn equal files with equal metadata into hard links.
    pub hardlink_duplicates: bool,
    /// List all deletions in the stats, not only their number.
    pub list_deletions: bool,
    /// Report what would be done, and do nothing.
    pub dry_run: bool,
    /// Threads; 0 counts as 1.
    pub jobs: usize,
}

/// When data must be durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a caller chooses one")]
pub enum Durability {
    /// Whenever the system writes it back.
    None,
    /// Before the target gets its name.
    #[default]
    End,
    /// After each file, for systems where one large flush would starve others.
    Each,
}

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
    /// Bytes of all regular files.
    pub logical_bytes: u64,
    /// Bytes that everything needs on the target, as ext4 with such blocks stores it.
    pub disk_bytes: u64,
    /// Stored bytes read for it.
    pub stored_bytes: u64,
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
    /// Bytes free on the target's file system before.
    pub free_bytes: u64,
    /// Bytes shared between equal files.
    pub shared_bytes: u64,
    /// Whether the target's files are sealed.
    #[serde(rename = "sealed")]
    pub is_sealed: bool,
    /// Files that were sealed by this run.
    pub sealed_files: u64,
    /// What happened to the bundle's signature for the kernel when the recorded index was sealed.
    pub kernel_signature: KernelSignature,
    /// Files that did not get their owner, for lack of privilege.
    pub owners_skipped: u64,
    /// Files that did not get their set-id bits, because they did not get their owner.
    pub set_ids_skipped: u64,
    /// Extended attributes that could not be set, for lack of privilege.
    pub xattrs_skipped: u64,
    /// Devices that were not made, for lack of privilege.
    pub devices_skipped: u64,
}

/// Decides whether an update may adopt a directory that this program did not make. It receives what would be replaced and deleted, with the names
/// of all deletions. If it returns an error, the directory stays unchanged.
pub type Consent<'a> = dyn Fn(&UnpackStats) -> Result<(), Error> + 'a;

/// Serializes paths as JSON names (docs/json.md).
fn paths<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| escape::bytes(path.as_os_str().as_bytes()).to_string()))
}

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
    options: &UnpackOptions,
    progress: &Progress,
) -> Result<UnpackStats, Error> {
    unpack_with(bundle, target, options, progress, None)
}

/// As [`unpack`], but if a directory would be adopted ([`UnpackOptions::adopt`]), `consent` is asked after the comparison and before anything is
/// written.
///
/// # Errors
/// As [`unpack`], and any error that `consent` returns.
pub fn unpack_asking(
    bundle: Trusted,
    target: &Path,
    options: &UnpackOptions,
    progress: &Progress,
    consent: &Consent<'_>,
) -> Result<UnpackStats, Error> {
    unpack_with(bundle, target, options, progress, Some(consent))
}

fn unpack_with(
    bundle: Trusted,
    target: &Path,
    options: &UnpackOptions,
    progress: &Progress,
    consent: Option<&Consent<'_>>,
) -> Result<UnpackStats, Error> {
    let (given, site) = (target, &Arc::new(Site::resolve(target)?));
    let consent = consent.filter(|_| options.adopt && !options.dry_run);
    // Consent is asked for before anything is written.
    let is_asked = consent.is_some() && site.is_nonempty_dir()? && installed::check_ours(site, options)?;
    let (unopened, admission) = bundle.install(options.dry_run || is_asked)?;
    let sealing = Sealing::plan(options.seal, site)?;
    admission.check_bound(site)?;
    // The target's record is read meanwhile.
    let (opened, kept) = std::thread::scope(|scope| {
        let kept = options.update.then(|| scope.spawn(|| Installed::kept(site, options)));
        let opened = unopened.open_any();
        (opened, kept.and_then(|kept| kept.join().ok()?.ok()?))
    });
    let (mut input, opened) = opened?;
    let is_delta = matches!(opened, Opened::Delta(_));
    let wanted = opened.head().root().contents.index_digest;
    // A target that holds the result needs no base.
    let is_done = kept.as_ref().is_some_and(|kept| kept.digest() == wanted);
    let from = if is_done { &GivenBases::default() } else { &options.bases };
    let (bundle, bases, kept) = match from.complete(opened, input.path(), progress)? {
        (Opened::Whole(bundle), bases) => (bundle, bases, kept),
        // Its base is the existing target.
        (Opened::Delta(delta), _) => delta::complete(delta, site, options, progress)?,
    };
    let is_onto_target = is_delta && options.bases.places.is_empty();
    let options = &UnpackOptions { update: options.update || is_onto_target, ..options.clone() };
    let for_updates = options.delete || options.rehash || options.trust_mtime || options.trust_record || options.adopt;
    if !options.update && for_updates {
        return Err(Error::Usage(
            "adopt, delete, rehash, trust-record and trust-mtime are for updates of a target".into(),
        ));
    }
    if options.trust_record && options.rehash {
        return Err(Error::Usage("rehash and trust-record cannot be combined".into()));
    }
    // Only content that was signed may be frozen by the kernel.
    let options = &UnpackOptions { rehash: options.rehash || sealing.is_new(), ..options.clone() };
    let kept = kept.filter(|_| !options.rehash);
    let tree = choose_ref(&bundle.index, options.reference.as_deref())?;
    let Some(prefix) = reading(&options.prefix, |prefix| has_path(&bundle.index, tree, prefix))? else {
        let prefix = String::from_utf8_lossy(&options.prefix);
        return Err(Error::Usage(format!("the bundle has no file {prefix}")));
    };
    let options = &UnpackOptions { prefix, ..options.clone() };
    let selection = Selection::new(&bundle, tree, &options.prefix);
    let reference = &tree.name;
    let (input, bases, sealing, blocks) = (&mut input, &bases, &sealing, room(site)?.blocks);
    let job = Job {
        site,
        admission: &admission,
        bundle: &bundle,
        bases,
        reference,
        sealing,
        blocks,
        options,
        progress,
        consent,
    };
    if options.update && site.is_nonempty_dir()? {
        return job.update(input, selection, kept);
    }
    if site.is_nonempty_dir()? {
        Stage::remove_finished(site)?;
        if let Some(kept) = job.complete()? {
            return job.update(input, selection, Some(kept));
        }
        return Err(Error::NotEmpty { path: site.path().to_owned() });
    }
    stage::check_replaceable(site, given)?;
    let mut stats = job.expected(&selection);
    delta::check_bases(&job, site.path(), &selection)?;
    if options.dry_run {
        site.place().check_writable()?;
        stats.free_bytes = job.expect_room(&selection, job.state_len())?;
        return Ok(stats);
    }
    let stage = Stage::open(site, StageKind::Tree)?;
    let all_selected = selection.clone();
    let built = job.check_room(&stage, &selection, job.state_len()).and_then(|free| {
        stats.free_bytes = free;
        job.try_signature(&stage)?;
        let all = selection.regulars.clone();
        job.build(input, &stage, selection, &all, &mut stats)?;
        stats.sealed_files = sealing.files();
        Ok(())
    });
    match built.and_then(|()| job.write_record(&stage, &all_selected)) {
        Ok(kernel_signature) => stats.kernel_signature = kernel_signature,
        Err(error) => return Err(abandon(stage, error)),
    }
    stage.finish(site, options.durability != Durability::None)?;
    Ok(stats)
}

/// The settings common to all steps of unpacking.
struct Job<'a> {
    site: &'a Site,
    admission: &'a Admission,
    bundle: &'a Bundle,
    /// The bases of a delta bundle.
    bases: &'a Bases,
    reference: &'a str,
    sealing: &'a Sealing,
    /// The blocks of the target's file system.
    blocks: Blocks,
    options: &'a UnpackOptions,
    progress: &'a Progress,
    /// Asked before a directory is adopted.
    consent: Option<&'a Consent<'a>>,
}

impl Job<'_> {
    /// Returns the expected stats of making the selection.
    fn expected(&self, selection: &Selection) -> UnpackStats {
        UnpackStats {
            is_sealed: self.sealing.is_on,
            disk_bytes: self.disk(selection),
            ..expected(self.bundle, selection)
        }
    }

    /// Returns the bytes that the selection needs on the target.
    fn disk(&self, selection: &Selection) -> u64 {
        let disk = selection.disk(self.bundle, self.blocks, self.options.hardlink_duplicates);
        disk.saturating_add(self.sealing.room(&self.bundle.index, &selection.regulars))
    }

    /// Returns the bytes of a new target's record.
    fn state_len(&self) -> u64 {
        let (head, index) = (&self.bundle.head, &self.bundle.index);
        let lens = [head.head_len(), head.root().contents.index_len, StatCache::encoded_len(index.entries().len())];
        lens.iter().map(|len| self.blocks.file(&[], *len)).fold(0, u64::saturating_add)
    }

    /// Checks that the target's file system has the space needed for the selection and `beside` bytes, less what the stage already holds. Returns
    /// the free bytes.
    fn check_room(&self, stage: &Stage, selection: &Selection, beside: u64) -> Result<u64, Error> {
        let held = stage.held(&self.bundle.index, &selection.directories)?;
        self.compare_room(selection, beside, &held)
    }

    /// Checks the same before a stage is made.
    fn expect_room(&self, selection: &Selection, beside: u64) -> Result<u64, Error> {
        match crate::Stage::is_left(self.site.place())? {
            // What an interrupted run left there is not examined, and already covers some of the need.
            true => room(self.site).map(|room| room.bytes),
            false => self.compare_room(selection, beside, &Leftovers::default()),
        }
    }

    fn compare_room(&self, selection: &Selection, beside: u64, held: &Leftovers) -> Result<u64, Error> {
        let room = room(self.site)?;
        let needed = selection.inodes().saturating_sub(held.inodes);
        let path = self.site.place().parent_path();
        if let Some(free) = room.inodes.filter(|free| *free < needed) {
            return Err(Error::NoInodes { path: path.to_owned(), needed, free });
        }
        let of_inodes = needed.saturating_mul(room.inode_len);
        let needed = self.disk(selection).saturating_add(beside).saturating_sub(held.bytes).saturating_add(of_inodes);
        if room.bytes < needed {
            return Err(Error::NoSpace { path: path.to_owned(), needed, free: room.bytes, reserved: 0 });
        }
        Ok(room.bytes)
    }

    /// Returns the record of a target that holds this very bundle: a killed run had finished, or the command is repeated.
    fn complete(&self) -> Result<Option<Installed>, Error> {
        if self.sealing.is_on && !self.sealing.is_done(&self.bundle.head) {
            return Ok(None);
        }
        let installed = Installed::kept(self.site, self.options)?;
        Ok(installed.filter(|installed| installed.is_of(&self.bundle.head, self.reference)))
    }

    /// Builds the selection in the stage; `all` are the regular files that it then holds, some of which may exist already.
    fn build(
        &self,
        input: &mut Input,
        stage: &Stage,
        mut selection: Selection,
        all: &[Place],
        stats: &mut UnpackStats,
    ) -> Result<(), Error> {
        let failed = |error| Error::io("look at", stage.target(), error);
        let privilege = Privilege::of_process(stage.root()).map_err(failed)?;
        // An update checked this before it copied from the target.
        if stage.is_resumed() && stage.layout() == StageKind::Tree {
            self.adopt(stage, &mut selection, &privilege, stats)?;
            stats.stored_bytes = selection.reads.stored_bytes();
        }
        let files = as_u64(selection.regulars.len() + selection.others.len());
        self.progress.enter(Phase::Unpacking, selection.reads.stored_bytes(), files);
        let builder = Builder::new(self.bundle, &selection, stage, &privilege, self.progress, self.options);
        let mut build = || {
            build(&builder, input, self.bases, self.options)?;
            if self.sealing.is_on {
                self.sealing.seal_staged(&builder, all, self.options.jobs)?;
            }
            builder.finish_directories(&mut WorkerState::default())
        };
        match self.options.durability {
            Durability::End => with_writeback(|| stage.sync(), build)?,
            Durability::None | Durability::Each => build()?,
        }
        input.finish(&self.bundle.head)?;
        stats.shared_bytes = builder.duplicate_bytes.load(Ordering::Relaxed);
        let skipped = privilege.skipped();
        stats.owners_skipped = skipped.owners.load(Ordering::Relaxed);
        stats.set_ids_skipped = skipped.set_ids.load(Ordering::Relaxed);
        stats.xattrs_skipped = skipped.xattrs.load(Ordering::Relaxed);
        stats.devices_skipped = skipped.devices.load(Ordering::Relaxed);
        Ok(())
    }

    /// Adopts what an interrupted run left in the stage.
    fn adopt(
        &self,
        stage: &Stage,
        selection: &mut Selection,
        privilege: &Privilege,
        stats: &mut UnpackStats,
    ) -> Result<(), Error> {
        self.progress.enter(Phase::Hashing, 0, 0);
        let builder = Builder::new(self.bundle, selection, stage, privilege, self.progress, self.options);
        let adopted = adopt::adopt(&builder)?;
        stats.resumed_files = as_u64(adopted.entries.len());
        self.progress.keep(stats.resumed_files);
        tracing::info!(files = stats.resumed_files, "reused files from an interrupted run");
        selection.take_away(self.bundle, |entry| adopted.entries.contains(&entry), adopted.pieces);
        Ok(())
    }

    /// Returns the record for the target, a directory with this inode.
    ///
    /// # Errors
    /// Returns an error if what was sealed does not match the index.
    fn write_state(&self, stage: &Stage, inode: u64, durable: bool) -> Result<KernelSignature, Error> {
        let part = Record {
            reference: self.reference.to_owned(),
            prefix: self.options.prefix.clone(),
            inode,
            as_root: rustix::process::geteuid().is_root(),
        };
        let sealed = self.sealing.table(&self.bundle.index)?;
        let new = NewRecord {
            bundle: self.bundle,
            files: state::files(&part, sealed.as_deref()),
            is_sealed: sealed.is_some(),
            signature: self.sealing.signature(&self.bundle.head),
            durable,
        };
        new.write(&stage.new_state()?)
    }

    /// Checks before content is read that the kernel accepts the bundle's signature, if that is required. The actual record replaces what it writes.
    fn try_signature(&self, stage: &Stage) -> Result<(), Error> {
        match self.sealing.signature(&self.bundle.head) {
            Some(signature) if signature.is_required => {
                install_record::try_signature(&stage.new_state()?, self.bundle, signature)
            }
            _ => Ok(()),
        }
    }

    /// Makes the device remember that the target holds the bundle.
    fn commit(&self) -> Result<(), Error> {
        self.admission.commit(Some(&TargetPlace::of_directory(self.site)?))
    }

    /// Makes the built tree and its record durable. The record gets its name before the tree does: a tree without its record would be bound to no
    /// name. Returns what happened to the signature for the kernel.
    fn write_record(&self, stage: &Stage, selection: &Selection) -> Result<KernelSignature, Error> {
        let durable = self.options.durability != Durability::None;
        let failed = |error| Error::io("look at", stage.target(), error);
        let tree = identity(stage.root()).map_err(failed)?;
        let kernel_signature = self.write_state(stage, tree.1, false)?;
        if let Some(state) = stage.state()? {
            let since = next_moment(stage.own().fd()).map_err(failed)?;
            let built = Target::staged(stage.target(), stage.root(), &self.bundle.index)?;
            let of = self.bundle.head.root().contents.index_digest;
            let stats = gather_new(&built, of, selection, since, self.options.jobs)?;
            state::write_stats(&state, &stats)?;
        }
        self.progress.enter(Phase::Syncing, 0, 0);
        if durable {
            stage.sync()?;
        }
        stage.check(self.site)?;
        // All new content is complete and checked. From here on the device remembers this version.
        self.commit()?;
        state::replace(stage, self.site).map(|()| kernel_signature)
    }
}

/// Keeps the stage after an error if a new run may resume from it.
fn abandon(stage: Stage, error: Error) -> Error {
    let keeps = journal::is_set(&stage)
        || match &error {
            // Nothing was added.
            Error::NoSpace { .. } | Error::NoInodes { .. } => stage.is_resumed(),
            error => may_get_further(error),
        };
    if !keeps {
        // What cannot be removed is named as a leftover, and the next run removes it.
        let _ = stage.remove();
    }
    error
}

/// Returns whether a repeated run may get further, as far as the error tells.
fn may_get_further(error: &Error) -> bool {
    match error {
        Error::Cancelled => true,
        // Space may be freed.
        Error::NoSpace { .. } | Error::NoInodes { .. } => true,
        // The system drops data that failed to sync, and may still show it: hashing would not tell.
        Error::Io { doing: "sync", .. } => false,
        Error::Io { source, .. } => !is_lasting(source),
        Error::Format(error) => error.kind() == Kind::Truncated,
        _ => false,
    }
}

/// Returns whether a system call fails in the same way each time: the file system does not support it or has reached a limit, or it is not
/// permitted. A full disk counts too: the stage would keep it full.
fn is_lasting(error: &io::Error) -> bool {
    let lasting = [
        Errno::MLINK,
        Errno::NOTSUP,
        Errno::OPNOTSUPP,
        Errno::NOSYS,
        Errno::INVAL,
        Errno::NAMETOOLONG,
        Errno::TOOBIG,
        Errno::RANGE,
        Errno::FBIG,
        Errno::OVERFLOW,
        Errno::ILSEQ,
        Errno::PERM,
        Errno::ACCESS,
        Errno::ROFS,
    ];
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
        || Errno::from_io_error(error).is_some_and(|errno| lasting.contains(&errno))
}

/// Returns whether a run that ended with `error` left something beside `target` that the next one can resume.
#[must_use]
pub fn may_go_on(target: &Path, error: &Error) -> bool {
    match error {
        // What is there belongs to that run.
        Error::Busy { .. } => false,
        error => is_half_updated(target) || is_unfinished(target) && may_get_further(error),
    }
}

/// Returns whether a run left something beside `target` that the next one can resume.
#[must_use]
pub fn is_unfinished(target: &Path) -> bool {
    crate::Place::resolve(target).is_ok_and(|place| crate::Stage::is_left(&place).unwrap_or(true))
}

/// Returns whether an update began to change `target` and did not end: some of its files are old, and some new.
#[must_use]
pub fn is_half_updated(target: &Path) -> bool {
    crate::Place::resolve(target).is_ok_and(|place| journal::is_left(&place).unwrap_or(false))
}

fn as_u64(len: usize) -> u64 {
    num::wide(len)
}

fn expected(bundle: &Bundle, selection: &Selection) -> UnpackStats {
    let mut objects: Vec<u32> = selection.regulars.iter().map(|place| place.object).collect();
    objects.dedup();
    let kind = |place: &Place| bundle.index.inode(bundle.index.entry(place.entry).inode).kind;
    let is_symlink = |place: &&Place| matches!(kind(place), InodeKind::Symlink(_));
    UnpackStats {
        files: as_u64(selection.regulars.len()),
        objects: as_u64(objects.len()),
        directories: as_u64(selection.directories.len()),
        links: as_u64(selection.links.len()),
        others: as_u64(selection.others.len()),
        symlinks: as_u64(selection.others.iter().filter(|place| is_symlink(place)).count()),
        logical_bytes: selection
            .regulars
            .iter()
            .map(|place| bundle.index.object(place.object).size)
            .fold(0, u64::saturating_add),
        stored_bytes: selection.reads.stored_bytes(),
        inodes: selection.inodes(),
        ..UnpackStats::default()
    }
}

/// The magic number of xfs (statfs(2)).
const XFS: rustix::fs::FsWord = 0x5846_5342;

/// The free space of a file system.
struct Room {
    bytes: u64,
    /// `None` if inodes are allocated on demand.
    inodes: Option<u64>,
    /// The bytes that a new inode needs.
    inode_len: u64,
    blocks: Blocks,
}

fn room(site: &Site) -> Result<Room, Error> {
    let failed = |error| Error::io("look at", site.place().parent_path(), error);
    let room = rustix::fs::fstatvfs(site.place().parent()).map_err(failed)?;
    // A file system without blocks, such as ramfs, has no limit either.
    let bytes = if room.f_blocks == 0 { u64::MAX } else { room.f_bavail.saturating_mul(room.f_frsize) };
    let inodes = (room.f_files > 0).then_some(room.f_favail);
    let kind = rustix::fs::fstatfs(site.place().parent()).map_err(failed)?.f_type;
    // xfs counts as free the inodes that it could make from free blocks.
    let inode_len = if kind == XFS { 512 } else { 0 };
    Ok(Room { bytes, inodes, inode_len, blocks: Blocks::new(room.f_frsize) })
}

fn build(builder: &Builder<'_>, input: &mut Input, bases: &Bases, options: &UnpackOptions) -> Result<(), Error> {
    let (bundle, selection) = (builder.bundle, builder.selection);
    let mut hand = WorkerState::default();
    builder.make_directories(&mut hand)?;
    builder.make_large(&mut hand)?;
    Delivery::new((bundle, bases), &selection.reads, options.jobs, builder.progress).run(
        input,
        WorkerState::default,
        |hand, content| builder.take(hand, content),
        |hand, object| builder.finish_large(hand, object),
    )?;
    from_base::copy(builder, bases, options.jobs)?;
    for &place in &selection.others {
        builder.make_other(&mut hand, place)?;
    }
    let mut from = WorkerState::default();
    for link in &selection.links {
        builder.link(&mut from, &mut hand, link)?;
    }
    Ok(())
}
