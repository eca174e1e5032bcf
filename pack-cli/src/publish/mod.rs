//! Publishes bundles in a channel: a directory with one signed list (channel.md).
//!
//! Each file is complete under its name before the list names it, and the list is replaced by one rename, last. A run that was killed leaves the list as
//! it was, and perhaps files that no list names, which the next run takes or removes: notes beside the list say which they are.

mod delta;
mod notes;
mod plan;
mod rule;

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock, ioctl_ficlone};
use rustix::io::Errno;
use sealift_format::{ChannelList, Envelope, Head, ListedFile, SignedList};
use sealift_store::fs::found::is_there;
use sealift_store::fs::partial::{PartialFile, remove_stale};
use sealift_verify::trust::{Namespace, SshSignature};

use crate::channel::{self, list_path};
use crate::trust::Guard;
use crate::trust::sign::{Signer, sign_list};
use crate::verify::{Depth, verify};
use crate::{Error, Input, Limits, Phase, Progress};
use notes::Notes;
pub use plan::{DeltaPlan, Made, make_planned, plan};
pub use rule::VersionRule;

/// The file whose lock a run holds.
const LOCK: &str = ".sealift-channel-lock";

/// What a publisher chooses.
#[derive(Debug)]
#[allow(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct PublishOptions<'a> {
    /// The keys that sign the list, and the deltas that are made.
    pub keys: &'a [Signer],
    /// Seconds since 1970-01-01 UTC: when the list is made.
    pub now: i64,
    /// For how many seconds the list is accepted.
    pub lifetime: i64,
    /// The versions from which deltas to the newest are made.
    pub deltas: Option<VersionRule>,
    /// Whether what a plan names is taken.
    pub commit: bool,
    /// The versions that stay in the channel; without a rule, all.
    pub keep: Option<VersionRule>,
    /// The zstd level of deltas.
    pub level: i32,
    /// What reads the bases of deltas.
    pub guard: &'a Guard,
    /// The limits of readers.
    pub limits: Limits,
    /// Number of threads.
    pub jobs: usize,
}

/// What was published.
#[derive(Debug)]
#[non_exhaustive]
pub struct PublishStats {
    /// The list as it is now.
    pub list: SignedList,
    /// Whether the list was replaced. If not, everything was there already.
    pub is_changed: bool,
    /// The names of files that are new.
    pub added: Vec<String>,
    /// The names of deltas that were made.
    pub deltas: Vec<String>,
    /// The names of deltas that were dropped, since they are not smaller than the full bundle.
    pub not_smaller: Vec<String>,
    /// The full bundles to which no delta is made, since they have OSTree commits: their deltas are packed from the repository.
    pub commits: Vec<String>,
    /// What a plan names, and is not there, or is not what was planned.
    pub missing: Vec<Missing>,
    /// The names of files that were removed.
    pub removed: Vec<String>,
}

/// A file of a plan that was not taken.
#[derive(Debug)]
#[allow(clippy::exhaustive_structs, reason = "there is no more to tell")]
pub struct Missing {
    /// Its name.
    pub file: String,
    /// What is wrong with it; `None` if it is not there.
    pub error: Option<Error>,
}

/// Why nothing was published.
#[derive(Debug)]
#[allow(clippy::exhaustive_structs, reason = "there is no more to tell")]
pub struct PublishError {
    /// The bundle that is at fault, if one is.
    pub bundle: Option<PathBuf>,
    /// The reason.
    pub error: Error,
}

impl From<Error> for PublishError {
    fn from(error: Error) -> Self {
        Self { bundle: None, error }
    }
}

/// Publishes bundles in the channel in `directory`, which is made if it is not there. Without bundles, the list is signed again.
///
/// # Errors
/// Returns an error if a bundle is unsigned, damaged or of another name, if another run publishes there, if the list there was signed by others or
/// changes meanwhile, or if something cannot be read or written. The channel is then as it was.
pub fn publish(
    bundles: &[PathBuf],
    directory: &Path,
    options: &PublishOptions<'_>,
    progress: &Progress,
) -> Result<PublishStats, PublishError> {
    if options.keys.is_empty() {
        return Err(Error::Usage("a channel's list needs a key that signs it".into()).into());
    }
    let mut run = Run::begin(directory, options, progress)?;
    let (path, listed) = (list_path(directory), run.listed.clone());
    if let Some(list) = &listed {
        check_ours(&path, list, options)?;
    }
    for bundle in bundles {
        run.add(bundle).map_err(|error| PublishError { bundle: Some(bundle.clone()), error })?;
    }
    if options.commit {
        run.take_plan()?;
    }
    if let Some(rule) = &options.deltas {
        run.add_deltas(rule)?;
    }
    if let Some(rule) = &options.keep {
        run.keep(rule)?;
    }
    Ok(run.finish(bundles.is_empty() && !options.commit)?)
}

/// A run, with the rows of the next list.
struct Run<'a> {
    directory: &'a Path,
    options: &'a PublishOptions<'a>,
    progress: &'a Progress,
    name: Option<String>,
    files: Vec<ListedFile>,
    notes: Notes,
    stats: Done,
    /// The list as it was found, and its bytes.
    listed: Option<SignedList>,
    before: Option<Vec<u8>>,
    /// Excludes other runs on this machine until the end.
    _lock: File,
}

/// What a run did.
#[derive(Debug, Default)]
struct Done {
    added: Vec<String>,
    deltas: Vec<String>,
    not_smaller: Vec<String>,
    commits: Vec<String>,
    missing: Vec<Missing>,
    removed: Vec<String>,
}

impl<'a> Run<'a> {
    /// Locks a channel, which is made if it is not there, and reads its list.
    fn begin(directory: &'a Path, options: &'a PublishOptions<'a>, progress: &'a Progress) -> Result<Self, Error> {
        match std::fs::create_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made.map_err(|error| Error::io("create", directory, error))?,
        }
        let lock = lock(directory)?;
        let path = list_path(directory);
        let before = channel::read(&path)?;
        let listed = before.as_deref().map(SignedList::parse).transpose();
        let listed = listed.map_err(|error| channel::fault(&path, &error))?;
        Ok(Self {
            directory,
            options,
            progress,
            name: listed.as_ref().map(|list| list.list().name.clone()),
            files: listed.as_ref().map(|list| list.list().files.clone()).unwrap_or_default(),
            notes: Notes::read(directory)?,
            stats: Done::default(),
            listed,
            before,
            _lock: lock,
        })
    }
}

impl Run<'_> {
    /// Copies a bundle into the channel, unless it is there. Returns the name of its file.
    fn add(&mut self, path: &Path) -> Result<String, Error> {
        let mut unopened = Input::open(path)?.begin(self.options.limits.clone())?;
        let head = unopened.head().clone();
        let name = &head.root().identity.name;
        if let Some(bound) = self.name.as_ref().filter(|bound| *bound != name) {
            let (target, bound, name) = (self.directory.to_owned(), bound.clone(), name.clone());
            return Err(Error::OtherName { target, bound, name });
        }
        if head.bodies(Envelope::SSH_SIGNATURE).next().is_none() {
            return Err(Error::unexpected(path, "is not signed, and no device would take it"));
        }
        self.name = Some(name.clone());
        let row = row_of(&head, self.name_of(&head, path)?, path)?;
        let (file, place) = (row.file.clone(), self.directory.join(&row.file));
        let is_listed = self.files.contains(&row);
        if is_listed
            && Input::open(&place)
                .and_then(|mut old| old.read_head(self.options.limits.clone()))
                .is_ok_and(|old| old == head)
        {
            tracing::info!(?path, "is in the channel");
            return Ok(file);
        }
        // What is damaged is not published.
        unopened = Input::open(path)?.begin(self.options.limits.clone())?;
        verify(unopened, Depth::Stored, self.options.jobs, self.progress)?;
        if !self.notes.bundles.contains(&file) {
            self.notes.add_unlisted([file.clone()])?;
        }
        self.copy(path, &head, &place)?;
        self.stats.added.push(file.clone());
        self.put(row);
        Ok(file)
    }

    /// Returns the name that a bundle has in the channel.
    fn name_of(&self, head: &Head, path: &Path) -> Result<String, Error> {
        let (root, identity) = (head.root(), &head.root().identity);
        let first = root.bases.as_ref().and_then(|of| of.bases.first());
        let from = match first.map(|first| (&first.identity, short(&first.index_digest))) {
            None => String::new(),
            Some((Some((name, version)), _)) if *name == identity.name => format!("-from-{version}"),
            Some((_, digest)) => format!("-from-{digest}"),
        };
        let stem = format!("{}-{}{from}", identity.name, identity.version);
        let digest = head.root_digest();
        let is_other = |file: &str| self.files.iter().any(|row| row.file == file && row.root_digest != digest);
        // Bundles of one version differ by the devices that they are for.
        let file = Some(format!("{stem}.sealift")).filter(|file| !is_other(file));
        let file = file.unwrap_or_else(|| format!("{stem}-{}.sealift", short(&digest)));
        checked_name(file, path)
    }

    fn copy(&self, path: &Path, head: &Head, place: &Path) -> Result<(), Error> {
        self.progress.enter(Phase::Finishing, head.file_len(), 1);
        let mut from = File::open(path).map_err(|error| Error::io("read", path, error))?;
        let to = PartialFile::create(place, true)?;
        if ioctl_ficlone(to.file(), &from).is_err() {
            let copied = io::copy(&mut from, &mut to.file());
            copied.map_err(|error| Error::io("write", to.path(), error))?;
        }
        let copy = Input::open(to.path())?.read_head(self.options.limits.clone())?;
        let len = to.file().metadata().map_err(|error| Error::io("read", to.path(), error))?.len();
        if copy != *head || len != head.file_len() {
            return Err(Error::Changed { path: path.to_owned() });
        }
        self.progress.check()?;
        to.finish()
    }

    /// Lists a file, in place of one of the same name.
    fn put(&mut self, row: ListedFile) {
        self.files.retain(|old| old.file != row.file);
        self.files.push(row);
        self.files.sort_by(|a, b| a.file.cmp(&b.file));
    }

    /// Drops what the rule does not name. The newest version stays, and of deltas those between versions that stay.
    fn keep(&mut self, rule: &VersionRule) -> Result<(), Error> {
        let full = |row: &&ListedFile| row.bases.is_empty();
        let versions: Vec<(u64, i64)> = self.files.iter().filter(full).map(|row| (row.version, row.created)).collect();
        let mut named = rule.named(&versions);
        named.extend(self.files.iter().map(|row| row.version).max());
        let digests: BTreeSet<[u8; 32]> =
            self.files.iter().filter(|row| named.contains(&row.version)).map(|row| row.index_digest).collect();
        let stays =
            |row: &ListedFile| named.contains(&row.version) && row.bases.iter().all(|base| digests.contains(base));
        let (kept, dropped) = std::mem::take(&mut self.files).into_iter().partition(stays);
        self.files = kept;
        let dropped: Vec<ListedFile> = dropped;
        self.notes.add_unlisted(dropped.into_iter().map(|row| row.file))
    }

    /// Signs the list, and puts it in place, if it differs or has less than half of its time left. Then removes what no list names.
    fn finish(mut self, is_renewed: bool) -> Result<PublishStats, Error> {
        let Some(name) = self.name.clone() else {
            return Err(Error::unexpected(self.directory, "is not a channel yet: give the bundles to publish"));
        };
        let lifetime = self.options.lifetime;
        let is_same = |list: &&SignedList| {
            let has_time = list.list().expires.saturating_sub(self.options.now) >= lifetime / 2;
            list.list().files == self.files && has_time && !is_renewed
        };
        let (list, is_changed) = match self.listed.as_ref().filter(is_same) {
            Some(list) => (list.clone(), false),
            None => (self.replace_list(name)?, true),
        };
        // If another machine has replaced it since, its run removes what is over.
        if channel::read(&list_path(self.directory))?.is_some_and(|now| now == list.encode()) {
            self.tidy()?;
        }
        let Done { added, deltas, not_smaller, commits, missing, removed } = self.stats;
        Ok(PublishStats { list, is_changed, added, deltas, not_smaller, commits, missing, removed })
    }

    fn replace_list(&self, name: String) -> Result<SignedList, Error> {
        let Self { directory, options, .. } = self;
        let path = list_path(directory);
        let last = self.listed.as_ref().map_or(0, |list| list.list().sequence);
        let Some(next) = last.checked_add(1) else {
            return Err(Error::unexpected(&path, "has the highest sequence that there is"));
        };
        let list = ChannelList {
            name,
            // A channel that is made anew does not begin below the sequences that devices remember.
            sequence: next.max(u64::try_from(options.now).unwrap_or(0)),
            created: options.now,
            expires: options.now.saturating_add(options.lifetime),
            files: self.files.clone(),
        };
        let envelopes = sign_list(&list.signed()?, options.keys)?;
        let list = SignedList::new(list, envelopes)?;
        // A run on another machine may have replaced it, or taken our files for those of a killed run: a lock does not reach everywhere.
        if channel::read(&path)? != self.before {
            return Err(Error::Changed { path });
        }
        for file in self.stats.added.iter().chain(&self.stats.deltas) {
            let path = directory.join(file);
            if !is_there(&path)? {
                return Err(Error::Changed { path });
            }
        }
        let file = PartialFile::create(&path, true)?;
        io::Write::write_all(&mut file.file(), &list.encode()).map_err(|error| Error::io("write", &path, error))?;
        file.finish()?;
        Ok(list)
    }

    /// Removes the files that this run dropped or killed runs left, and what the notes need not say any more.
    fn tidy(&mut self) -> Result<(), Error> {
        let Self { files, notes, .. } = self;
        let is_listed = |file: &str| files.iter().any(|row| row.file == file);
        notes.bundles.retain(|file| !is_listed(file));
        let (planned, mut over) = (notes.bundles.clone(), Vec::new());
        let is_there = |file: &str| is_listed(file) || planned.contains(file);
        notes.deltas.retain(|file, delta| {
            let is_awaited = !is_listed(file) && is_there(&delta.from) && is_there(&delta.to);
            over.extend((!is_awaited).then(|| file.clone()));
            is_awaited
        });
        notes.unlisted.extend(over);
        let has = |digest: &[u8; 32]| files.iter().any(|row| row.root_digest == *digest);
        notes.not_smaller.retain(|(_, from, to)| has(from) && has(to));
        let awaited: BTreeSet<String> = notes.deltas.keys().cloned().collect();
        let removed = notes.remove_unlisted(|file| is_there(file) || awaited.contains(file))?;
        self.stats.removed.extend(removed);
        self.notes.write()?;
        remove_stale(&list_path(self.directory)).map(drop)
    }
}

/// Returns the row of a bundle that has this name in the channel; `path` is for messages.
fn row_of(head: &Head, file: String, path: &Path) -> Result<ListedFile, Error> {
    let (root, identity) = (head.root(), &head.root().identity);
    let of = root.bases.iter().flat_map(|of| &of.bases);
    let mut bases: Vec<[u8; 32]> = of.map(|base| base.index_digest).collect();
    bases.sort_unstable();
    if bases.is_empty() && root.bases.is_some() {
        return Err(Error::unexpected(path, "is a delta without a base"));
    }
    if bases.len() > sealift_format::BASES_MAX {
        return Err(Error::unexpected(path, "has more bases than a channel's list can state"));
    }
    Ok(ListedFile {
        file,
        version: identity.version,
        created: identity.created,
        len: head.file_len(),
        root_digest: head.root_digest(),
        index_digest: root.contents.index_digest,
        bases,
    })
}

/// Refuses a name that no file of a channel can have; `path` is for messages.
fn checked_name(file: String, path: &Path) -> Result<String, Error> {
    match sealift_format::name::is_bundle_name(&file) {
        true => Ok(file),
        false => Err(Error::unexpected(path, format!("would be {file} in the channel, which is too long"))),
    }
}

fn short(digest: &[u8; 32]) -> String {
    sealift_format::hex(&digest[..4])
}

/// Excludes other runs on this machine.
fn lock(directory: &Path) -> Result<File, Error> {
    let path = directory.join(LOCK);
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(|error| Error::io("create", &path, error))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(Error::Busy { path: directory.to_owned() }),
        locked => locked.map(|()| file).map_err(|error| Error::io("lock", &path, error)),
    }
}

/// Refuses to sign on what others listed: one of the keys must have signed the list, or one that this machine trusts.
fn check_ours(path: &Path, list: &SignedList, options: &PublishOptions<'_>) -> Result<(), Error> {
    let is_ours = |(kind, body): (u16, &[u8])| {
        let signature = SshSignature::parse_for(Namespace::List, body).ok().filter(|_| kind == Envelope::SSH_SIGNATURE);
        signature.is_some_and(|signature| {
            let key = signature.verify(list.signed());
            key.is_ok_and(|key| options.keys.iter().any(|own| own.public_key() == key))
        })
    };
    if list.envelopes().any(is_ours) || options.guard.judge_list(list).is_ok_and(|verdict| !verdict.unsigned) {
        return Ok(());
    }
    Err(Error::unexpected(path, "was signed by other keys: give one of them as well, or publish in a new directory"))
}
