//! From a bundle into a repository: only what it lacks is read, each object is compared with its checksum, and refs come last.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use sealift_format::ostree::{Checksum, Commit, DirTree};
use sealift_format::{
    Attributes, Bundle, Head, Holds, InodeKind, Limits, OsTree, OsTreeKind, OsTreeObject, Ref, data_len,
};
use sealift_verify::content::{ChunkDecoder, check_object, check_piece, fill_holes, group_objects, piece_range};

use super::create::NewFile;
use super::object::{ObjectType, hex};
use super::policy;
use super::refs::{RefName, RefPlace};
use super::repo::Repo;
use super::transaction::Transaction;
use crate::feed::Feed;
use crate::input::Input;
use crate::parallel::for_each;
use crate::progress::Phase;
use crate::{Error, Progress};

/// Where refs go in a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a caller chooses one")]
pub enum Destination {
    /// `refs/heads`: they are the repository's own, and no remote has a say.
    #[default]
    Heads,
    /// `refs/remotes/NAME`: as if they were pulled from that remote, which the repository has to have, and whose signatures it asks for.
    Remote(String),
    /// `refs/mirrors/COLLECTION` for those of a collection, `refs/heads` for others, as `ostree pull --mirror` does.
    Mirror,
}

/// How a bundle is taken into a repository.
#[derive(Clone, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct ImportOptions {
    /// The refs; none is all that are OSTree commits.
    pub refs: Vec<String>,
    /// Where they go.
    pub destination: Destination,
    /// Find out what would be done, and do nothing.
    pub dry_run: bool,
    /// Threads; 0 is 1.
    pub jobs: usize,
}

/// What was taken, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportStats {
    /// Refs and the commits that they name now, in hexadecimal.
    pub refs: Vec<(String, String)>,
    /// Commits that the repository did not have.
    pub commits: u64,
    /// Dirtrees and dirmetas that it did not have.
    pub metadata: u64,
    /// File objects that it did not have.
    pub files: u64,
    /// Bytes of their contents.
    pub logical_bytes: u64,
    /// Stored bytes that were read for them.
    pub stored_bytes: u64,
}

/// Takes the commits of a bundle into the repository at `target`.
///
/// `judge` decides by the head whether the bundle is to be trusted, before anything behind it is read. Killed at any point, the repository
/// is sound, and another run completes.
///
/// # Errors
/// The bundle is refused or damaged, the repository cannot be used, cannot hold what a commit has, lacks room, or its remote does not accept a
/// commit. No ref is changed then.
pub fn import(
    input: &mut Input,
    target: &Path,
    options: &ImportOptions,
    limits: Limits,
    judge: impl FnOnce(&Head) -> Result<(), Error>,
    progress: &Progress,
) -> Result<ImportStats, Error> {
    let bundle = input.open_bundle(limits, judge)?;
    let repo = Repo::open(target)?;
    take(input, &bundle, &repo, options, progress)
}

/// Takes the commits of a bundle that is open and trusted.
///
/// # Errors
/// As [`import`].
pub(super) fn take(
    input: &mut Input,
    bundle: &Bundle,
    repo: &Repo,
    options: &ImportOptions,
    progress: &Progress,
) -> Result<ImportStats, Error> {
    let carried = Carried::new(bundle)?;
    let refs = choose(bundle, &options.refs)?;
    let names = refs.iter().map(|from| destination(repo, from, &options.destination)).collect::<Result<Vec<_>, _>>()?;
    repo.check_places(&names)?;
    for (from, name) in refs.iter().zip(&names) {
        policy::check(repo, name, &carried.tip(from)?)?;
    }
    let transaction = Transaction::begin(repo)?;
    let mut plan =
        Plan { carried: &carried, repo, wanted: BTreeMap::new(), metadata: Vec::new(), seen: HashSet::new() };
    for (from, name) in refs.iter().zip(&names) {
        plan.add_commits(from, repo.read_ref(name)?)?;
    }
    let mut stats = plan.stats();
    stats.refs = refs
        .iter()
        .zip(&names)
        .map(|(from, name)| Ok((name.to_string(), hex(&carried.tip(from)?.checksum))))
        .collect::<Result<_, Error>>()?;
    let work = Work::new(bundle, &carried, &plan, &transaction, progress);
    stats.stored_bytes = work.stored_bytes();
    // What the mode cannot hold, and what has no room, is known before anything is written.
    work.check()?;
    if options.dry_run {
        return Ok(stats);
    }
    work.run(input, options.jobs.max(1))?;
    input.finish(bundle)?;
    for (kind, object) in &plan.metadata {
        let (checksum, bytes) = (&object.checksum, bundle.index.ostree_bytes(object));
        let is_new = match kind {
            OsTreeKind::Commit => transaction.write_commit(checksum, bytes)?,
            OsTreeKind::CommitMeta => transaction.write_commitmeta(checksum, bytes)?,
            OsTreeKind::DirTree => transaction.write_metadata(ObjectType::DirTree, checksum, bytes)?,
            OsTreeKind::DirMeta => transaction.write_metadata(ObjectType::DirMeta, checksum, bytes)?,
        };
        tracing::trace!(object = %hex(checksum), ?kind, is_new);
    }
    for (from, name) in refs.iter().zip(names) {
        transaction.set_ref(name, carried.tip(from)?.checksum);
    }
    progress.enter(Phase::Syncing, 0, 0);
    transaction.finish()?;
    Ok(stats)
}

/// The refs that were asked for, or all that are commits.
pub(super) fn choose<'a>(bundle: &'a Bundle, names: &[String]) -> Result<Vec<&'a Ref>, Error> {
    let all = || bundle.index.refs().iter().filter(|from| from.ostree.is_some());
    let listed = || all().map(|from| from.name.as_str()).collect::<Vec<_>>().join(", ");
    if all().next().is_none() {
        return Err(Error::Usage("the bundle has no OSTree commit: unpack it to a directory".into()));
    }
    if names.is_empty() {
        return Ok(all().collect());
    }
    let find = |name: &String| {
        all().find(|from| from.name == *name).ok_or_else(|| {
            Error::Usage(format!("the bundle has no OSTree ref {}; it has {}", name.escape_debug(), listed()))
        })
    };
    names.iter().map(find).collect()
}

fn destination(repo: &Repo, from: &Ref, destination: &Destination) -> Result<RefName, Error> {
    let collection = from.ostree.as_ref().map_or("", |ostree| ostree.collection.as_str());
    let place = match destination {
        Destination::Remote(remote) => RefPlace::Remote(remote.clone()),
        // A collection that is the repository's own is not mirrored.
        Destination::Mirror if !collection.is_empty() && repo.config().collection_id.as_deref() != Some(collection) => {
            RefPlace::Mirror(collection.to_owned())
        }
        Destination::Heads | Destination::Mirror => RefPlace::Heads,
    };
    RefName::new(place, &from.name).map_err(|fault| repo.fault(fault))
}

/// The OSTree objects of a bundle, by their checksums.
struct Carried<'a> {
    bundle: &'a Bundle,
    ostree: &'a OsTree,
    objects: HashMap<(OsTreeKind, Checksum), &'a OsTreeObject>,
    files: HashMap<Checksum, u32>,
}

/// The commit that a ref names.
pub(super) struct Tip<'a> {
    pub(super) reference: &'a str,
    pub(super) checksum: Checksum,
    pub(super) bytes: &'a [u8],
    /// Its signatures.
    pub(super) beside: Option<&'a [u8]>,
}

impl<'a> Carried<'a> {
    fn new(bundle: &'a Bundle) -> Result<Self, Error> {
        let Some(ostree) = bundle.index.ostree() else {
            return Err(Error::Usage("the bundle has no OSTree commit: unpack it to a directory".into()));
        };
        let objects = ostree.objects().iter().map(|object| ((object.kind, object.checksum), object)).collect();
        let files = (0..).zip(ostree.files()).map(|(number, file)| (file.checksum, number)).collect();
        Ok(Self { bundle, ostree, objects, files })
    }

    fn find(&self, kind: OsTreeKind, checksum: &Checksum) -> Option<&'a OsTreeObject> {
        self.objects.get(&(kind, *checksum)).copied()
    }

    fn bytes(&self, kind: OsTreeKind, checksum: &Checksum) -> &'a [u8] {
        self.find(kind, checksum).map_or(&[], |object| self.bundle.index.ostree_bytes(object))
    }

    fn tip(&self, from: &'a Ref) -> Result<Tip<'a>, Error> {
        let missing = || Error::Usage(format!("{} is no OSTree commit", from.name));
        let ostree = from.ostree.as_ref().ok_or_else(missing)?;
        let number = usize::try_from(ostree.commit).unwrap_or(usize::MAX);
        let object = self.ostree.objects().get(number).ok_or_else(missing)?;
        Ok(Tip {
            reference: &from.name,
            checksum: object.checksum,
            bytes: self.bundle.index.ostree_bytes(object),
            beside: self
                .find(OsTreeKind::CommitMeta, &object.checksum)
                .map(|beside| self.bundle.index.ostree_bytes(beside)),
        })
    }

    fn dirtree(&self, repo: &Repo, checksum: &Checksum) -> Result<DirTree<'a>, Error> {
        DirTree::parse(self.bytes(OsTreeKind::DirTree, checksum))
            .map_err(|fault| repo.wrong(ObjectType::DirTree, checksum, fault))
    }
}

/// What the repository lacks.
struct Plan<'a> {
    carried: &'a Carried<'a>,
    repo: &'a Repo,
    /// For each object of the bundle the files that it makes; links stand under none.
    wanted: BTreeMap<Option<u32>, Vec<u32>>,
    /// Children before parents.
    metadata: Vec<(OsTreeKind, OsTreeObject)>,
    seen: HashSet<(OsTreeKind, Checksum)>,
}

impl Plan<'_> {
    /// Adds a ref's commit and its parents, as far as they are carried. What `there`, the commit that the ref names in the repository, has
    /// as well need not be looked for.
    fn add_commits(&mut self, from: &Ref, there: Option<Checksum>) -> Result<(), Error> {
        let mut next = Some(self.carried.tip(from)?.checksum);
        while let Some(checksum) = next.take() {
            let Some(object) = self.carried.find(OsTreeKind::Commit, &checksum) else { break };
            let bytes = self.carried.bundle.index.ostree_bytes(object);
            let commit = Commit::parse(bytes).map_err(|fault| self.repo.wrong(ObjectType::Commit, &checksum, fault))?;
            next = commit.parent.copied();
            if !self.seen.insert((OsTreeKind::Commit, checksum)) {
                continue;
            }
            if !self.repo.has_whole_commit(&checksum)? {
                let base = [there, next].into_iter().flatten();
                let base = self.whole_root(base)?;
                self.add_meta(commit.root_meta)?;
                self.add_tree(*commit.root_tree, base)?;
                self.metadata.push((OsTreeKind::Commit, *object));
            }
            let beside = self.carried.find(OsTreeKind::CommitMeta, &checksum);
            self.metadata.extend(beside.map(|object| (OsTreeKind::CommitMeta, *object)));
        }
        Ok(())
    }

    /// The root of the first of these commits that the repository has as a whole.
    fn whole_root(&self, commits: impl Iterator<Item = Checksum>) -> Result<Option<Checksum>, Error> {
        for checksum in commits {
            if self.repo.has_whole_commit(&checksum)? {
                let bytes = self.repo.load_metadata(ObjectType::Commit, &checksum)?;
                let commit =
                    Commit::parse(&bytes).map_err(|fault| self.repo.wrong(ObjectType::Commit, &checksum, fault))?;
                return Ok(Some(*commit.root_tree));
            }
        }
        Ok(None)
    }

    fn add_meta(&mut self, checksum: &Checksum) -> Result<(), Error> {
        if self.seen.insert((OsTreeKind::DirMeta, *checksum))
            && !self.repo.has(ObjectType::DirMeta, checksum)?
            && let Some(object) = self.carried.find(OsTreeKind::DirMeta, checksum)
        {
            self.metadata.push((OsTreeKind::DirMeta, *object));
        }
        Ok(())
    }

    /// Adds a dirtree with all below it. Where `base` is a dirtree that the repository has with all below it, both are gone through side by
    /// side, and what they share is passed over.
    fn add_tree(&mut self, root: Checksum, base: Option<Checksum>) -> Result<(), Error> {
        let mut pending = vec![(root, base)];
        while let Some((dirtree, base)) = pending.pop() {
            if base == Some(dirtree) || !self.seen.insert((OsTreeKind::DirTree, dirtree)) {
                continue;
            }
            let tree = self.carried.dirtree(self.repo, &dirtree)?;
            let old = match base {
                Some(base) => self.repo.load_metadata(ObjectType::DirTree, &base)?,
                None => Vec::new(),
            };
            let old = match base {
                Some(base) => {
                    DirTree::parse(&old).map_err(|fault| self.repo.wrong(ObjectType::DirTree, &base, fault))?
                }
                None => DirTree::default(),
            };
            let known: HashSet<&Checksum> = old.files.iter().map(|(_, file)| *file).collect();
            for (_, file) in tree.files.iter().filter(|(_, file)| !known.contains(file)) {
                self.add_file(file)?;
            }
            let below: HashMap<&[u8], (&Checksum, &Checksum)> =
                old.directories.iter().map(|(name, tree, meta)| (*name, (*tree, *meta))).collect();
            for (name, tree, meta) in &tree.directories {
                let old = below.get(name);
                if old.is_none_or(|(_, old)| old != meta) {
                    self.add_meta(meta)?;
                }
                pending.push((**tree, old.map(|(old, _)| **old)));
            }
            if !self.repo.has(ObjectType::DirTree, &dirtree)?
                && let Some(object) = self.carried.find(OsTreeKind::DirTree, &dirtree)
            {
                self.metadata.push((OsTreeKind::DirTree, *object));
            }
        }
        Ok(())
    }

    fn add_file(&mut self, checksum: &Checksum) -> Result<(), Error> {
        let Some(&number) = self.carried.files.get(checksum) else { return Ok(()) };
        // A file's checksum and a dirtree's are never the same bytes.
        if !self.seen.insert((OsTreeKind::DirTree, *checksum)) || self.repo.has(ObjectType::File, checksum)? {
            return Ok(());
        }
        let object = match self.carried.ostree.files()[usize::try_from(number).unwrap_or(usize::MAX)].kind {
            InodeKind::Regular(object) => Some(object),
            _ => None,
        };
        self.wanted.entry(object).or_default().push(number);
        Ok(())
    }

    fn stats(&self) -> ImportStats {
        let count = |is: &dyn Fn(OsTreeKind) -> bool| {
            u64::try_from(self.metadata.iter().filter(|(kind, _)| is(*kind)).count()).unwrap_or(u64::MAX)
        };
        let size = |object: &Option<u32>| object.map_or(0, |object| self.carried.bundle.index.object(object).size);
        let len = |files: &Vec<u32>| u64::try_from(files.len()).unwrap_or(u64::MAX);
        ImportStats {
            commits: count(&|kind| kind == OsTreeKind::Commit),
            metadata: count(&|kind| matches!(kind, OsTreeKind::DirTree | OsTreeKind::DirMeta)),
            files: self.wanted.values().map(len).sum(),
            logical_bytes: self.wanted.iter().map(|(object, files)| size(object).saturating_mul(len(files))).sum(),
            ..ImportStats::default()
        }
    }
}

/// Making the file objects.
struct Work<'a> {
    bundle: &'a Bundle,
    carried: &'a Carried<'a>,
    plan: &'a Plan<'a>,
    transaction: &'a Transaction<'a>,
    progress: &'a Progress,
    chunks: Vec<u32>,
    /// Of each chunk the pieces that are wanted.
    pieces: BTreeMap<u32, Vec<(u32, u64)>>,
    large: BTreeMap<u32, Large>,
}

/// A large object, which is put together before it is written: its checksum is one of all its bytes in order.
struct Large {
    file: Mutex<Option<File>>,
    missing: AtomicU64,
}

impl<'a> Work<'a> {
    fn new(
        bundle: &'a Bundle,
        carried: &'a Carried<'a>,
        plan: &'a Plan<'a>,
        transaction: &'a Transaction<'a>,
        progress: &'a Progress,
    ) -> Self {
        let mut chunks = Vec::new();
        let mut pieces: BTreeMap<u32, Vec<(u32, u64)>> = BTreeMap::new();
        let mut large = BTreeMap::new();
        let piece_len = bundle.head.root().maxima.piece_len();
        for object in plan.wanted.keys().flatten().filter(|object| bundle.index.object(**object).size > piece_len) {
            let mut missing = 0;
            for (number, piece) in (0..).zip(bundle.layout.pieces_of(*object)) {
                if let Some(chunk) = piece.chunk {
                    pieces.entry(chunk).or_default().push((*object, number));
                    missing += 1;
                }
            }
            large.insert(*object, Large { file: Mutex::default(), missing: AtomicU64::new(missing) });
        }
        for (number, chunk) in (0..).zip(&bundle.layout.chunks) {
            let is_wanted = match &chunk.holds {
                Holds::Group(range) => {
                    bundle.layout.group(range).iter().any(|object| plan.wanted.contains_key(&Some(*object)))
                }
                Holds::Piece => pieces.contains_key(&number),
            };
            if is_wanted {
                chunks.push(number);
            }
        }
        Self { bundle, carried, plan, transaction, progress, chunks, pieces, large }
    }

    fn stored_bytes(&self) -> u64 {
        let chunk = |number: &u32| &self.bundle.layout.chunks[usize::try_from(*number).unwrap_or(usize::MAX)];
        self.chunks.iter().map(|number| u64::from(chunk(number).stored_len)).sum()
    }

    fn attributes(&self, file: u32) -> (&'a Checksum, &'a Attributes, InodeKind) {
        let file = &self.carried.ostree.files()[usize::try_from(file).unwrap_or(usize::MAX)];
        let row = usize::try_from(file.attributes).unwrap_or(usize::MAX);
        (&file.checksum, &self.bundle.index.attribute_rows()[row], file.kind)
    }

    /// Whether the repository's mode holds all files, and there is room for them.
    fn check(&self) -> Result<(), Error> {
        let mut len = 0_u64;
        for (object, files) in &self.plan.wanted {
            let size = object.map_or(0, |object| self.bundle.index.object(object).size);
            for file in files {
                let (checksum, attributes, kind) = self.attributes(*file);
                self.transaction.check_file(checksum, attributes, matches!(kind, InodeKind::Symlink(_)))?;
                len = len.saturating_add(size);
            }
        }
        self.transaction.check_room(len)
    }

    fn run(&self, input: &mut Input, jobs: usize) -> Result<(), Error> {
        let files = self.plan.wanted.values().map(Vec::len).sum::<usize>();
        self.progress.enter(Phase::Unpacking, self.stored_bytes(), u64::try_from(files).unwrap_or(0));
        Feed::new(self.bundle, &self.chunks, input, self.progress).run(
            jobs,
            ChunkDecoder::default,
            |decoder, number, stored| {
                let decoded = decoder.decode(self.bundle, number, stored)?;
                self.take_chunk(number, decoded)
            },
        )?;
        // Links, and files without data, which no chunk brings.
        let rest: Vec<Option<u32>> =
            self.plan.wanted.keys().copied().filter(|object| !self.has_data(*object)).collect();
        for_each(
            jobs,
            &rest,
            || (),
            |(), object| {
                self.progress.check()?;
                match object {
                    None => self.write_links(),
                    Some(object) if self.large.contains_key(object) => {
                        self.check_bare_pieces(*object)?;
                        self.write(*object, &mut |size| Box::new(io::repeat(0).take(size)))
                    }
                    Some(object) => {
                        check_object(self.bundle, *object, &[])?;
                        self.write(*object, &mut |size| Box::new(io::repeat(0).take(size)))
                    }
                }
            },
        )
    }

    fn has_data(&self, object: Option<u32>) -> bool {
        let data = |object| data_len(self.bundle.layout.holes_of(object), 0..self.bundle.index.object(object).size);
        object.is_some_and(|object| data(object) > 0)
    }

    fn take_chunk(&self, number: u32, decoded: &[u8]) -> Result<(), Error> {
        match &self.bundle.layout.chunks[usize::try_from(number).unwrap_or(usize::MAX)].holds {
            Holds::Group(range) => {
                for (object, data) in group_objects(self.bundle, self.bundle.layout.group(range), decoded) {
                    if self.plan.wanted.contains_key(&Some(object)) {
                        check_object(self.bundle, object, data)?;
                        self.write_small(object, data)?;
                    }
                }
                Ok(())
            }
            Holds::Piece => {
                for &(object, piece) in self.pieces.get(&number).map_or(&[][..], Vec::as_slice) {
                    let start = check_piece(self.bundle, object, piece, decoded)?;
                    self.take_piece(object, piece, start, decoded)?;
                }
                Ok(())
            }
        }
    }

    fn write_small(&self, object: u32, data: &[u8]) -> Result<(), Error> {
        let holes = self.bundle.layout.holes_of(object);
        if holes.is_empty() {
            return self.write(object, &mut |_| Box::new(data));
        }
        let mut whole = Vec::new();
        let size = self.bundle.index.object(object).size;
        let Ok(()) = fill_holes(data, holes, 0..size, |part| {
            whole.extend(part);
            Ok::<(), std::convert::Infallible>(())
        });
        self.write(object, &mut |_| Box::new(&whole[..]))
    }

    /// Puts a piece in its place; the last one makes the files.
    fn take_piece(&self, object: u32, piece: u64, start: u64, data: &[u8]) -> Result<(), Error> {
        let Some(large) = self.large.get(&object) else { return Ok(()) };
        let failed = |error: io::Error| self.transaction.unwritten(error);
        let file = {
            let mut slot = large.file.lock().unwrap_or_else(PoisonError::into_inner);
            if slot.is_none() {
                let file = self.transaction.unnamed_file()?;
                file.set_len(self.bundle.index.object(object).size).map_err(failed)?;
                *slot = Some(file);
            }
            slot.as_ref().map(File::try_clone).transpose().map_err(failed)?
        };
        let Some(file) = file else { return Ok(()) };
        let mut data = data;
        for range in
            sealift_format::data_ranges(self.bundle.layout.holes_of(object), piece_range(self.bundle, object, piece))
        {
            let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX).min(data.len());
            let (part, rest) = data.split_at(len);
            file.write_all_at(part, range.start).map_err(failed)?;
            data = rest;
        }
        debug_assert!(start <= self.bundle.index.object(object).size, "a piece lies in its object");
        if large.missing.fetch_sub(1, Ordering::AcqRel) > 1 {
            return Ok(());
        }
        self.check_bare_pieces(object)?;
        let mut clones = Vec::new();
        self.write(object, &mut |_| match file.try_clone() {
            Ok(file) => Box::new(ReadAt { file, at: 0 }),
            Err(error) => {
                clones.push(error.kind());
                Box::new(io::empty())
            }
        })?;
        large.file.lock().unwrap_or_else(PoisonError::into_inner).take();
        clones.pop().map_or(Ok(()), |kind| Err(failed(kind.into())))
    }

    fn check_bare_pieces(&self, object: u32) -> Result<(), Error> {
        for (number, piece) in (0..).zip(self.bundle.layout.pieces_of(object)) {
            if piece.chunk.is_none() {
                check_piece(self.bundle, object, number, &[])?;
            }
        }
        Ok(())
    }

    /// Writes all files of an object, whose content each reads anew.
    fn write<'c>(&self, object: u32, content: &mut dyn FnMut(u64) -> Box<dyn Read + 'c>) -> Result<(), Error> {
        let size = self.bundle.index.object(object).size;
        for file in self.plan.wanted.get(&Some(object)).map_or(&[][..], Vec::as_slice) {
            let (checksum, attributes, _) = self.attributes(*file);
            let new = NewFile::Regular { size, content: &mut *content(size) };
            self.transaction.write_file(checksum, attributes, new)?;
            self.progress.add(0, 1);
        }
        Ok(())
    }

    fn write_links(&self) -> Result<(), Error> {
        for file in self.plan.wanted.get(&None).map_or(&[][..], Vec::as_slice) {
            let (checksum, attributes, kind) = self.attributes(*file);
            let InodeKind::Symlink(link) = kind else { continue };
            let wrong = || Error::Usage("the target of a symbolic link is not UTF-8".into());
            let target = std::str::from_utf8(self.bundle.index.symlink_target(link)).map_err(|_| wrong())?;
            self.transaction.write_file(checksum, attributes, NewFile::Symlink(target))?;
            self.progress.add(0, 1);
        }
        Ok(())
    }
}

/// A file from its start, wherever others read it.
struct ReadAt {
    file: File,
    at: u64,
}

impl Read for ReadAt {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.file.read_at(buffer, self.at)?;
        self.at += u64::try_from(len).unwrap_or(0);
        Ok(len)
    }
}
