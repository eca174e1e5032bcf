//! Publishes bundles in a channel: a directory with one signed list (channel.md).
//!
//! Each file is complete under its name before the list names it, and the list is replaced by one rename, last. A run that was killed leaves the list as
//! it was, and perhaps files that no list names, which the next run replaces.

mod delta;
mod rule;

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock, ioctl_ficlone};
use rustix::io::Errno;
use sealift_format::{ChannelList, Envelope, Head, ListedFile, SignedList};
use sealift_store::fs::partial::PartialFile;
use sealift_verify::trust::{Namespace, SshSignature};

use crate::channel::{self, list_path};
use crate::trust::Guard;
use crate::trust::sign::{Signer, sign_list};
use crate::verify::{Depth, verify};
use crate::{Error, Input, Limits, Phase, Progress};
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
    /// The names of files that were removed.
    pub removed: Vec<String>,
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
    match std::fs::create_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => made.map_err(|error| Error::io("create", directory, error))?,
    }
    let _lock = lock(directory)?;
    let path = list_path(directory);
    let before = channel::read(&path)?;
    let listed = before.as_deref().map(SignedList::parse).transpose();
    let listed = listed.map_err(|error| channel::fault(&path, &error))?;
    if let Some(list) = &listed {
        check_ours(&path, list, options)?;
    }
    let mut run = Run {
        directory,
        options,
        progress,
        name: listed.as_ref().map(|list| list.list().name.clone()),
        files: listed.as_ref().map(|list| list.list().files.clone()).unwrap_or_default(),
        stats: Made::default(),
    };
    for bundle in bundles {
        run.add(bundle).map_err(|error| PublishError { bundle: Some(bundle.clone()), error })?;
    }
    if let Some(rule) = &options.deltas {
        run.add_deltas(rule)?;
    }
    if let Some(rule) = &options.keep {
        run.keep(rule);
    }
    Ok(run.finish(listed, before, bundles.is_empty())?)
}

/// A run, with the rows of the next list.
struct Run<'a> {
    directory: &'a Path,
    options: &'a PublishOptions<'a>,
    progress: &'a Progress,
    name: Option<String>,
    files: Vec<ListedFile>,
    stats: Made,
}

/// What a run did.
#[derive(Default)]
struct Made {
    added: Vec<String>,
    deltas: Vec<String>,
    not_smaller: Vec<String>,
    commits: Vec<String>,
    removed: Vec<String>,
}

impl Run<'_> {
    /// Copies a bundle into the channel, unless it is there.
    fn add(&mut self, path: &Path) -> Result<(), Error> {
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
        let row = self.row(&head, path)?;
        let place = self.directory.join(&row.file);
        let is_listed = self.files.contains(&row);
        if is_listed
            && Input::open(&place)
                .and_then(|mut old| old.read_head(self.options.limits.clone()))
                .is_ok_and(|old| old == head)
        {
            tracing::info!(?path, "is in the channel");
            return Ok(());
        }
        // What is damaged is not published.
        unopened = Input::open(path)?.begin(self.options.limits.clone())?;
        verify(unopened, Depth::Stored, self.options.jobs, self.progress)?;
        self.copy(path, &head, &place)?;
        self.stats.added.push(row.file.clone());
        self.put(row);
        Ok(())
    }

    /// Returns the row of a bundle.
    fn row(&self, head: &Head, path: &Path) -> Result<ListedFile, Error> {
        let (root, identity) = (head.root(), &head.root().identity);
        let mut bases: Vec<[u8; 32]> = Vec::new();
        let mut from = String::new();
        if let Some(of) = &root.bases {
            bases.extend(of.bases.iter().map(|base| base.index_digest));
            bases.sort_unstable();
            let Some(first) = of.bases.first() else {
                return Err(Error::unexpected(path, "is a delta without a base"));
            };
            from = match &first.identity {
                Some((name, version)) if *name == identity.name => format!("-from-{version}"),
                _ => format!("-from-{}", short(&first.index_digest)),
            };
        }
        if bases.len() > sealift_format::BASES_MAX {
            return Err(Error::unexpected(path, "has more bases than a channel's list can state"));
        }
        let stem = format!("{}-{}{from}", identity.name, identity.version);
        let digest = head.root_digest();
        let is_other = |file: &str| self.files.iter().any(|row| row.file == file && row.root_digest != digest);
        // Bundles of one version differ by the devices that they are for.
        let file = Some(format!("{stem}.sealift")).filter(|file| !is_other(file));
        let file = file.unwrap_or_else(|| format!("{stem}-{}.sealift", short(&digest)));
        if !sealift_format::name::is_bundle_name(&file) {
            return Err(Error::unexpected(path, format!("would be {file} in the channel, which is too long")));
        }
        Ok(ListedFile {
            file,
            version: identity.version,
            created: identity.created,
            len: head.file_len(),
            root_digest: digest,
            index_digest: root.contents.index_digest,
            bases,
        })
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
    fn keep(&mut self, rule: &VersionRule) {
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
        self.stats.removed = dropped.into_iter().map(|row| row.file).collect();
    }

    /// Signs the list, and puts it in place, if it differs or has less than half of its time left.
    fn finish(
        self,
        listed: Option<SignedList>,
        before: Option<Vec<u8>>,
        is_renewed: bool,
    ) -> Result<PublishStats, Error> {
        let Self { directory, options, name, files, stats, .. } = self;
        let Some(name) = name else {
            return Err(Error::unexpected(directory, "is not a channel yet: give the bundles to publish"));
        };
        let Made { added, deltas, not_smaller, commits, removed } = stats;
        let done = |list, is_changed| PublishStats { list, is_changed, added, deltas, not_smaller, commits, removed };
        let path = list_path(directory);
        if let Some(list) = &listed {
            let has_time = list.list().expires.saturating_sub(options.now) >= options.lifetime / 2;
            if list.list().files == files && has_time && !is_renewed {
                return Ok(done(list.clone(), false));
            }
        }
        let last = listed.as_ref().map_or(0, |list| list.list().sequence);
        let Some(next) = last.checked_add(1) else {
            return Err(Error::unexpected(&path, "has the highest sequence that there is"));
        };
        let list = ChannelList {
            name,
            // A channel that is made anew does not begin below the sequences that devices remember.
            sequence: next.max(u64::try_from(options.now).unwrap_or(0)),
            created: options.now,
            expires: options.now.saturating_add(options.lifetime),
            files,
        };
        let envelopes = sign_list(&list.signed()?, options.keys)?;
        let list = SignedList::new(list, envelopes)?;
        // A run on another machine may have replaced it: a lock does not reach everywhere.
        if channel::read(&path)? != before {
            return Err(Error::Changed { path });
        }
        let file = PartialFile::create(&path, true)?;
        io::Write::write_all(&mut file.file(), &list.encode()).map_err(|error| Error::io("write", &path, error))?;
        file.finish()?;
        let done = done(list, true);
        for file in &done.removed {
            let file = directory.join(file);
            match std::fs::remove_file(&file) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed.map_err(|error| Error::io("remove", &file, error))?,
            }
        }
        Ok(done)
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
