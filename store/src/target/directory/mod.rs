//! Unpacking: a bundle into a new directory, or onto one that is there.
//!
//! A new directory appears by one rename when it is complete. An update first builds beside the target what it lacks, and then moves
//! it there. The next run resumes one that was stopped or killed, and `sealift clean` discards what is left of it. What a target took
//! is kept beside it, as [`InstallRecord`](crate::directory::InstallRecord).

mod adopt;
mod apply;
mod census;
mod changes;
mod deletions;
mod delta;
mod files;
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
use crate::base::Bases;
use crate::delivery::Delivery;
use crate::fs::writeback::with_writeback;
use crate::input::Input;
use crate::progress::Phase;
use crate::seal::KernelSignature;
pub use crate::seal::Seal;
use crate::trust::{Admission, TargetPlace, Trusted};
use crate::{Error, Progress};

use crate::directory::stage::{Leftovers, StageKind};
use crate::directory::state::{self, NewRecord};
use crate::directory::{Stage, Target, stage};
pub use census::Census;
use files::{Builder, WorkerState};
use gather::gather_new;
use installed::Installed;
pub use journal::{Interrupted, complete};
use metadata::Privilege;
use plan::Place;
pub(crate) use plan::Selection;
use sealing::Sealing;

/// How a bundle is unpacked.
#[derive(Clone, Debug, Default)]
pub struct UnpackOptions {
    /// The ref that is unpacked; needed where there are several.
    pub reference: Option<String>,
    /// Only what lies at or below this path is unpacked, which may be written as lists have it.
    pub prefix: Vec<u8>,
    /// The target may be there already; it becomes what is unpacked, and only what it lacks is read. Its files are compared with its install
    /// record by size, times and inode number; what differs is read, and made again where it is another.
    pub update: bool,
    /// A directory that this program did not make is taken over by an update.
    pub adopt: bool,
    /// An update removes what the bundle does not have.
    pub delete: bool,
    /// An update hashes the target, and does not rely on what was kept when it took the last bundle.
    pub rehash: bool,
    /// An update relies on the install record alone, and looks at nothing of the files but their names and kinds.
    pub trust_record: bool,
    /// Where an update has to look at the target's files, size and time tell whether they are the bundle's.
    pub trust_mtime: bool,
    /// Whether the kernel is to keep files as they are. Where files that are there are sealed for the first time, they are hashed before.
    pub seal: Seal,
    /// When the medium has to have everything.
    pub durability: Durability,
    /// Equal files with equal metadata become one file with several names.
    pub hardlink_duplicates: bool,
    /// The stats name all that is deleted, and not only how much.
    pub list_deletions: bool,
    /// Find out what would be done, and do nothing.
    pub dry_run: bool,
    /// Threads; 0 is 1.
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
    /// Those of them that are symbolic links.
    pub symlinks: u64,
    /// Bytes of all regular files.
    pub logical_bytes: u64,
    /// Bytes that all of it takes on the target, as ext4 with such blocks lays it out.
    pub disk_bytes: u64,
    /// Stored bytes that were read for it.
    pub stored_bytes: u64,
    /// Files that a run before this one had made, and that were right.
    pub resumed_files: u64,
    /// Whether the target was there, and was updated.
    #[serde(skip)]
    pub is_update: bool,
    /// Whether it had been unpacked from this very bundle, and nothing was left to do.
    pub was_complete: bool,
    /// Files that an update left as they are.
    pub kept_files: u64,
    /// Files whose content an update left, and whose metadata it set.
    pub metadata_files: u64,
    /// Files that an update made from what the target had, under this name or another.
    pub copied_files: u64,
    /// What an update deleted, with all that was below it.
    pub deleted: Census,
    /// Its paths in the target, directories' with a slash behind them, where that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "paths")]
    pub deletions: Vec<PathBuf>,
    /// What stood in places where an update made something anew.
    pub replaced: Census,
    /// Whether the target was a directory that this program had not made.
    #[serde(rename = "adopted")]
    pub was_adopted: bool,
    /// Files that an update compared with their record: by size, times and inode number, or by reading them.
    pub checked_files: u64,
    /// Those of them that were not as their record says, or missing.
    pub changed_files: u64,
    /// Whether all files of the target were hashed, since nothing that was kept describes them, or since that was asked for.
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
    /// What became of the signature for the kernel that the bundle carries, when the index that is kept was sealed.
    pub kernel_signature: KernelSignature,
    /// Files that did not get their owner, for want of privilege.
    pub owners_skipped: u64,
    /// Files that did not get their set-id bits, since they did not get their owner.
    pub set_ids_skipped: u64,
    /// Extended attributes that could not be set, for want of privilege.
    pub xattrs_skipped: u64,
    /// Devices that were not made, for want of privilege.
    pub devices_skipped: u64,
}

/// Whether an update may take over a directory that this program did not make: told what that would replace and delete, with the names
/// of all that would be deleted. With an error the directory stays as it is.
pub type Consent<'a> = dyn Fn(&UnpackStats) -> Result<(), Error> + 'a;

/// Paths as JSON has names (docs/json.md).
fn paths<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| escape::bytes(path.as_os_str().as_bytes()).to_string()))
}

/// Unpacks a bundle into `target`, which is new and appears by one rename when it is complete.
///
/// The device remembers that it took the bundle before the first of its files can be reached. What a run left that was killed, or could not read on, is hashed, and not done again where
/// it is right. Where all of this very bundle is kept as unpacked, nothing is done, and the files count as kept.
///
/// # Errors
/// The bundle is refused or damaged, the target exists or has no room, or a file cannot be made. The target is not there then.
pub fn unpack(
    bundle: Trusted,
    target: &Path,
    options: &UnpackOptions,
    progress: &Progress,
) -> Result<UnpackStats, Error> {
    unpack_with(bundle, target, options, progress, None)
}

/// As [`unpack`]. Where a directory would be taken over ([`UnpackOptions::adopt`]), `consent` is asked when it has been compared, and before
/// anything is written.
///
/// # Errors
/// As [`unpack`], and whatever `consent` returns.
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
    // Who is asked is asked before anything is written.
    let is_asked = consent.is_some() && site.is_nonempty_dir()? && installed::check_ours(site, options)?;
    let (unopened, admission) = bundle.install(options.dry_run || is_asked)?;
    let sealing = Sealing::plan(options.seal, site)?;
    admission.check_bound(site)?;
    // What the target kept is read meanwhile.
    let (opened, kept) = std::thread::scope(|scope| {
        let kept = options.update.then(|| scope.spawn(|| Installed::kept(site, options)));
        let opened = unopened.open_any();
        (opened, kept.and_then(|kept| kept.join().ok()?.ok()?))
    });
    let (mut input, opened) = opened?;
    let (bundle, bases, kept) = match opened {
        Opened::Whole(bundle) => (bundle, Bases::default(), kept),
        // A delta is for what is there.
        Opened::Delta(delta) => delta::complete(delta, site, options, progress)?,
    };
    let options = &UnpackOptions { update: options.update || bundle.head.root().bases.is_some(), ..options.clone() };
    let for_updates = options.delete || options.rehash || options.trust_mtime || options.trust_record || options.adopt;
    if !options.update && for_updates {
        return Err(Error::Usage(
            "to adopt, delete, rehash, or trust a record or times is for an update or a delta bundle".into(),
        ));
    }
    if options.trust_record && options.rehash {
        return Err(Error::Usage("to rehash and to trust the record exclude each other".into()));
    }
    // What the kernel keeps as it is shall be what was signed.
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

/// What is the same for all steps of an unpacking.
struct Job<'a> {
    site: &'a Site,
    admission: &'a Admission,
    bundle: &'a Bundle,
    /// Of a delta bundle.
    bases: &'a Bases,
    reference: &'a str,
    sealing: &'a Sealing,
    /// Those of the target's file system.
    blocks: Blocks,
    options: &'a UnpackOptions,
    progress: &'a Progress,
    /// Asked before a directory is taken over.
    consent: Option<&'a Consent<'a>>,
}

impl Job<'_> {
    /// What making the selection comes to.
    fn expected(&self, selection: &Selection) -> UnpackStats {
        UnpackStats {
            is_sealed: self.sealing.is_on,
            disk_bytes: self.disk(selection),
            ..expected(self.bundle, selection)
        }
    }

    /// Bytes that the selection takes on the target.
    fn disk(&self, selection: &Selection) -> u64 {
        let disk = selection.disk(self.bundle, self.blocks, self.options.hardlink_duplicates);
        disk.saturating_add(self.sealing.room(&self.bundle.index, &selection.regulars))
    }

    /// Bytes of what is kept beside a new target.
    fn state_len(&self) -> u64 {
        let (head, index) = (&self.bundle.head, &self.bundle.index);
        let lens = [
            head.preamble().head_len().into(),
            head.root().contents.index_len,
            StatCache::encoded_len(index.entries().len()),
        ];
        lens.iter().map(|len| self.blocks.file(&[], *len)).fold(0, u64::saturating_add)
    }

    /// Compares what is needed with what the target's file system has, and what the stage has of it already: for the selection, and
    /// `beside` bytes. Returns the free bytes.
    fn check_room(&self, stage: &Stage, selection: &Selection, beside: u64) -> Result<u64, Error> {
        let held = stage.held(&self.bundle.index, &selection.directories)?;
        self.compare_room(selection, beside, &held)
    }

    /// The same before a stage is made.
    fn expect_room(&self, selection: &Selection, beside: u64) -> Result<u64, Error> {
        match crate::Stage::is_left(self.site.place())? {
            // What a run before this one left there is not looked at, and takes some of what is needed.
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
            return Err(Error::NoSpace { path: path.to_owned(), needed, free: room.bytes });
        }
        Ok(room.bytes)
    }

    /// What a target keeps that took this very bundle: a run that was killed had come to its end, or somebody repeats it.
    fn complete(&self) -> Result<Option<Installed>, Error> {
        if self.sealing.is_on && !self.sealing.is_done(&self.bundle.head) {
            return Ok(None);
        }
        let installed = Installed::kept(self.site, self.options)?;
        Ok(installed.filter(|installed| installed.is_of(&self.bundle.head, self.reference)))
    }

    /// Builds in the stage what is selected; `all` are the regular files that it holds then, some of which may be there already.
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
        // An update has looked before it copied what the target has.
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

    /// Takes over what a run before this one left in the stage.
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
        tracing::info!(files = stats.resumed_files, "an interrupted run had made these");
        selection.take_away(self.bundle, |entry| adopted.entries.contains(&entry), adopted.pieces);
        Ok(())
    }

    /// What the target, a directory of this inode, is going to keep.
    ///
    /// # Errors
    /// What was sealed is not what the index says.
    fn took(&self, inode: u64) -> Result<NewRecord<'_>, Error> {
        Ok(NewRecord {
            bundle: self.bundle,
            record: Record {
                reference: self.reference.to_owned(),
                prefix: self.options.prefix.clone(),
                inode,
                as_root: rustix::process::geteuid().is_root(),
            },
            sealed: self.sealing.table(&self.bundle.index)?,
            signature: self.sealing.signature(&self.bundle.head),
        })
    }

    /// Finds out whether the kernel takes the bundle's signature for it, where it has to, before content is read.
    fn try_signature(&self, stage: &Stage) -> Result<(), Error> {
        match self.sealing.signature(&self.bundle.head) {
            Some(signature) if signature.is_required => state::try_signature(stage, self.bundle, signature),
            _ => Ok(()),
        }
    }

    /// Lets the device remember that the target takes the bundle.
    fn commit(&self) -> Result<(), Error> {
        self.admission.commit(Some(&TargetPlace::of_directory(self.site)?))
    }

    /// Makes what was built, and the state that goes with it, durable. The state gets its name before the tree does: a tree
    /// without its state would be bound to no name. Returns what became of the signature for the kernel.
    fn write_record(&self, stage: &Stage, selection: &Selection) -> Result<KernelSignature, Error> {
        let durable = self.options.durability != Durability::None;
        let failed = |error| Error::io("look at", stage.target(), error);
        let tree = identity(stage.root()).map_err(failed)?;
        let kernel_signature = state::write(stage, &self.took(tree.1)?, false)?;
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
        // What is to come is complete and checked. From here on the device knows that it took this version.
        self.commit()?;
        state::replace(stage, self.site).map(|()| kernel_signature)
    }
}

/// After an error, the stage stays if running again may go on from it.
fn abandon(stage: Stage, error: Error) -> Error {
    let keeps = journal::is_set(&stage)
        || match &error {
            // Nothing was added.
            Error::NoSpace { .. } | Error::NoInodes { .. } => stage.is_resumed(),
            error => may_get_further(error),
        };
    if !keeps {
        // What cannot be removed is a rest that is named as one, and the next run removes it.
        let _ = stage.remove();
    }
    error
}

/// Whether the same run may get further when it is run again, as far as the error tells.
fn may_get_further(error: &Error) -> bool {
    match error {
        Error::Cancelled => true,
        // Room may be made for what is missing.
        Error::NoSpace { .. } | Error::NoInodes { .. } => true,
        // The system drops what the medium did not take, and may show it all the same: hashing would not tell.
        Error::Io { doing: "sync", .. } => false,
        Error::Io { source, .. } => !is_lasting(source),
        Error::Format(error) => error.kind() == Kind::Truncated,
        _ => false,
    }
}

/// Whether a system call fails in the same way as often as it is tried: the file system has no such thing, or not so many or so long, or
/// it is not allowed. Neither is a full disk kept full.
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

/// Whether a run that ended with `error` left something beside `target` from which the next one goes on.
#[must_use]
pub fn may_go_on(target: &Path, error: &Error) -> bool {
    match error {
        // What is there is that run's.
        Error::Busy { .. } => false,
        error => is_half_updated(target) || is_unfinished(target) && may_get_further(error),
    }
}

/// Whether a run left something beside `target` from which the next one goes on.
#[must_use]
pub fn is_unfinished(target: &Path) -> bool {
    crate::Place::resolve(target).is_ok_and(|place| crate::Stage::is_left(&place).unwrap_or(true))
}

/// Whether an update had begun to change `target`, and did not end: some of its files are old, and some new.
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

/// How xfs calls itself (statfs(2)).
const XFS: rustix::fs::FsWord = 0x5846_5342;

/// What a file system has left.
struct Room {
    bytes: u64,
    /// `None` where inodes are made as they are needed.
    inodes: Option<u64>,
    /// What a new inode takes of the bytes.
    inode_len: u64,
    blocks: Blocks,
}

fn room(site: &Site) -> Result<Room, Error> {
    let failed = |error| Error::io("look at", site.place().parent_path(), error);
    let room = rustix::fs::fstatvfs(site.place().parent()).map_err(failed)?;
    // One that has no blocks, as ramfs, has no bounds either.
    let bytes = if room.f_blocks == 0 { u64::MAX } else { room.f_bavail.saturating_mul(room.f_frsize) };
    let inodes = (room.f_files > 0).then_some(room.f_favail);
    let kind = rustix::fs::fstatfs(site.place().parent()).map_err(failed)?.f_type;
    // xfs counts as free inodes what it would make of free blocks.
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
    for &place in &selection.others {
        builder.make_other(&mut hand, place)?;
    }
    let mut from = WorkerState::default();
    for link in &selection.links {
        builder.link(&mut from, &mut hand, link)?;
    }
    Ok(())
}
