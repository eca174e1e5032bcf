//! The base objects in the file objects of an OSTree repository.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use sealift_format::num::{self, at};
use sealift_format::ostree::Checksum;
use sealift_format::{Index, InodeKind, Object, OsTree, OsTreeFile, Row};
use sealift_verify::content::overlap;

use super::parts::KnownParts;
use super::{Base, Holder, ObjectReader, path_of_object};
use crate::contents::{CommitRef, HashedCommits};
use crate::ostree::records::order_of;
use crate::ostree::{CommitSpec, FileBytes, ObjectType, RefName, RefOwner, Repo, object_name};
use crate::source::{OstreeSource, PackRef, Source, SourceOptions};
use crate::{Error, Phase, Progress, RepoFault};

/// A repository that holds the commits of an index.
#[derive(Debug)]
pub(super) struct OstreeBase {
    repo: Arc<Repo>,
    /// The files of the index for each object, by ascending object.
    files: Vec<(Row<Object>, u32)>,
    /// For each object, one more than the number of the file that was compared with its id; 0 if none was.
    found: Vec<AtomicU32>,
    /// The parts of those.
    known: KnownParts,
    /// Compressed files that were read up to some place, the most recent last. Several threads read parts of one file by turns.
    streams: Mutex<Vec<Stream>>,
}

/// A compressed file that was verified before, and is read from its start.
#[derive(Debug)]
struct Stream {
    file: u32,
    content: FileBytes,
    /// The bytes that were read.
    place: u64,
}

/// The state of one thread.
#[derive(Debug)]
pub(super) struct CommitReader<'a> {
    base: &'a OstreeBase,
    index: &'a Index,
    buffer: Vec<u8>,
}

/// Bytes per read.
const READ_LEN: usize = 256 << 10;
/// Compressed files that stay open, each with its place.
const STREAMS: usize = 8;

impl Base {
    /// Opens a commit of an OSTree repository as a base: `ostree:REPO:REF`, where REF may be the checksum of a commit; without REF, the ref with the
    /// name `name` or else that of the only commit of `packed`, or else the repository's only ref. The index is the one that packing it would make,
    /// with detached metadata and without parents. Its ref has the name `name`, or else that of REF, or for a
    /// checksum that of the only commit of `packed`. The commit in `packed` with the same name, or else its only one, determines the collection.
    ///
    /// # Errors
    /// Returns an error if the repository lacks the commit or one of its objects, or if an object does not match its checksum.
    pub fn of_commit(
        spec: &OsStr,
        name: Option<&str>,
        packed: &[PackRef<'_>],
        jobs: usize,
        progress: &Progress,
    ) -> Result<Self, Error> {
        let CommitSpec { repo, reference } = CommitSpec::parse(spec)?;
        let repo = Arc::new(Repo::open(repo)?);
        let commits: Vec<(&str, &OstreeSource)> = packed
            .iter()
            .filter_map(|from| match from.source {
                Source::Ostree(source) => Some((from.name, &**source)),
                _ => None,
            })
            .collect();
        let only = match &commits[..] {
            [only] => Some(only),
            _ => None,
        };
        let (tip, found) = match reference {
            Some(text) => repo.find_commit(text)?,
            None => only_commit(&repo, name.or(only.map(|(name, _)| *name)))?,
        };
        let own = name.or(found.as_ref().map(RefName::name)).or(only.map(|(name, _)| *name));
        let own = own
            .ok_or_else(|| Error::Usage(format!("{}: several refs could be meant by this checksum", spec.display())))?;
        let collection =
            match (commits.iter().find(|(name, _)| *name == own).or(only), found.as_ref().map(RefName::place)) {
                (Some((_, source)), _) => source.collection.clone(),
                (None, Some(RefOwner::Mirror(id))) => id.clone(),
                (None, _) => repo.config().collection_id.clone().unwrap_or_default(),
            };
        progress.enter(Phase::Listing, 0, 0);
        let source = OstreeSource::of_commit(&repo, tip, 0, &SourceOptions::default(), jobs)?;
        let hashed = HashedCommits::read(std::slice::from_ref(&source), jobs, progress)?;
        let refs = [CommitRef { name: own, collection: &collection, source: &source }];
        Ok(Self::of_repository(&repo, hashed.index(&refs, true)?))
    }

    /// Uses a repository, which holds the commits of `index`, as a base.
    pub(crate) fn of_repository(repo: &Arc<Repo>, index: Index) -> Self {
        let mut files: Vec<(Row<Object>, u32)> = (0..)
            .zip(index.ostree().map_or(&[][..], OsTree::files))
            .filter_map(|(number, file)| match file.kind {
                InodeKind::Regular(object) => Some((object, number)),
                _ => None,
            })
            .collect();
        files.sort_unstable();
        let found = index.objects().iter().map(|_| AtomicU32::new(0)).collect();
        let order = order_of(repo, &index);
        let (known, streams) = (KnownParts::default(), Mutex::default());
        let holder = Arc::new(OstreeBase { repo: Arc::clone(repo), files, found, known, streams });
        Self { index, holder, identity: None, compatible: None, order }
    }
}

/// Returns the commit of the ref with this name, or else of the only ref.
fn only_commit(repo: &Repo, name: Option<&str>) -> Result<(Checksum, Option<RefName>), Error> {
    let refs = repo.refs()?;
    let mut named = refs.iter().filter(|(found, _)| name.is_some_and(|name| found.name() == name));
    match (named.next(), named.next(), &refs[..]) {
        (Some((name, checksum)), None, _) | (None, _, [(name, checksum)]) => Ok((*checksum, Some(name.clone()))),
        _ => Err(repo.fault(RepoFault::SeveralRefs { refs: refs.iter().map(|(name, _)| name.to_string()).collect() })),
    }
}

impl OstreeBase {
    /// Returns the file that was verified to have an object.
    fn found(&self, object: Row<Object>) -> Option<u32> {
        self.found[object.at()].load(Ordering::Acquire).checked_sub(1)
    }

    /// Takes the stream of a file that has come nearest to `place`, and not beyond.
    fn stream(&self, file: u32, place: u64) -> Option<Stream> {
        let mut streams = self.streams.lock();
        let fit = (0..).zip(&*streams).filter(|(_, stream)| stream.file == file && stream.place <= place);
        let (at, _): (usize, _) = fit.max_by_key(|(_, stream)| stream.place)?;
        Some(streams.remove(at))
    }

    fn keep(&self, stream: Stream) {
        let mut streams = self.streams.lock();
        if streams.len() == STREAMS {
            streams.remove(0);
        }
        streams.push(stream);
    }

    /// Returns the files that should have an object.
    fn files_of(&self, object: Row<Object>) -> impl Iterator<Item = u32> {
        let start = self.files.partition_point(|(of, _)| *of < object);
        self.files[start..].iter().take_while(move |(of, _)| *of == object).map(|(_, file)| *file)
    }
}

impl Stream {
    /// Fills a buffer from an offset that was not passed yet. Damage is reported as an end that comes too early.
    fn read_at(&mut self, part: &mut [u8], at: u64) -> io::Result<()> {
        let mut read = || {
            let skipped = at.saturating_sub(self.place);
            self.place += io::copy(&mut (&mut self.content).take(skipped), &mut io::sink())?;
            self.content.read_exact(part)?;
            self.place += num::wide(part.len());
            Ok(())
        };
        read().map_err(|error: io::Error| match error.kind() {
            ErrorKind::InvalidData | ErrorKind::InvalidInput => ErrorKind::UnexpectedEof.into(),
            _ => error,
        })
    }
}

impl Holder for OstreeBase {
    fn reader<'a>(&'a self, index: &'a Index) -> Box<dyn ObjectReader + 'a> {
        Box::new(CommitReader::new(self, index))
    }

    fn rest(&self) {
        self.streams.lock().clear();
    }
}

impl<'a> CommitReader<'a> {
    pub(super) fn new(base: &'a OstreeBase, index: &'a Index) -> Self {
        Self { base, index, buffer: Vec::new() }
    }

    fn file(&self, number: u32) -> Option<&'a OsTreeFile> {
        self.index.ostree().and_then(|ostree| ostree.files().get(at(number)))
    }

    /// Opens a file object; `None` if it is missing or damaged.
    fn open_file(&self, file: &OsTreeFile, object: Row<Object>) -> Result<Option<FileBytes>, Error> {
        let size = self.index.object(object).size;
        match self.base.repo.open_content(&file.checksum, self.index.ostree_attributes(file), size) {
            Err(Error::Repository { .. }) => Ok(None),
            opened => opened.map(|content| Some(content).filter(|content| content.size() == size)),
        }
    }

    /// Reads a file object to its end, passes its bytes to `take`, and compares them with the object's id. Returns whether they match.
    fn read_file(&mut self, number: u32, object: Row<Object>, mut take: impl FnMut(&[u8])) -> Result<bool, Error> {
        let Some(file) = self.file(number) else { return Ok(false) };
        let Some(mut content) = self.open_file(file, object)? else { return Ok(false) };
        let mut comparison = self.base.known.compare(object, self.index.object(object));
        self.buffer.resize(READ_LEN, 0);
        loop {
            let len = match content.read(&mut self.buffer) {
                Ok(0) => break,
                Err(error) if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::InvalidInput) => {
                    return Ok(false);
                }
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
                read => read.map_err(|error| self.base.repo.unread(&file.checksum, error))?,
            };
            comparison.take(&self.buffer[..len]);
            take(&self.buffer[..len]);
        }
        let is_right = comparison.finish();
        if is_right {
            self.base.found[object.at()].store(number + 1, Ordering::Release);
        }
        Ok(is_right)
    }

    /// Reads a part of a file object that was verified before. Returns whether it is still what it was.
    fn read_part(
        &self,
        number: u32,
        object: Row<Object>,
        range: &Range<u64>,
        out: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        let (base, row) = (self.base, self.index.object(object));
        let Some(file) = self.file(number) else { return Ok(false) };
        let failed = |error| base.repo.unread(&file.checksum, error);
        let mut stream = match base.stream(number, KnownParts::start_of(range)) {
            Some(stream) => stream,
            None => match self.open_file(file, object)? {
                None => return Ok(false),
                Some(content) => match content.plain() {
                    Some(plain) => {
                        let read = |part: &mut [u8], at| plain.read_exact_at(part, at);
                        return base.known.read(object, row, read, range, out).map_err(failed);
                    }
                    None => Stream { file: number, content, place: 0 },
                },
            },
        };
        let is_right = base.known.read(object, row, |part, at| stream.read_at(part, at), range, out);
        let is_right = is_right.map_err(failed)?;
        if is_right && stream.place < row.size {
            base.keep(stream);
        }
        Ok(is_right)
    }

    fn missing(&self, object: Row<Object>) -> Error {
        let file = self.base.files_of(object).next().and_then(|file| self.file(file));
        let name = file.map_or_else(String::new, |file| object_name(ObjectType::File, &file.checksum));
        let path = path_of_object(self.index, object);
        let problem = format!("its object {name}, the content of {path}, is missing or damaged");
        Error::missing_base(self.base.repo.path(), problem)
    }
}

impl ObjectReader for CommitReader<'_> {
    fn holds(&mut self, object: Row<Object>, progress: &Progress) -> Result<bool, Error> {
        progress.add(self.index.object(object).size, 0);
        if self.base.found(object).is_some() {
            return Ok(true);
        }
        for file in self.base.files_of(object) {
            if self.read_file(file, object, |_| {})? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn read(&mut self, object: Row<Object>, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), Error> {
        let start = out.len();
        let is_whole = range.start == 0 && range.end == self.index.object(object).size;
        if let Some(found) = self.base.found(object).filter(|_| !is_whole)
            && self.read_part(found, object, &range, out)?
        {
            return Ok(());
        }
        for file in self.base.files_of(object) {
            let mut place = 0;
            out.truncate(start);
            let is_right = self.read_file(file, object, |part| {
                out.extend(overlap(part, place, &range));
                place += num::wide(part.len());
            })?;
            if is_right {
                return Ok(());
            }
        }
        Err(self.missing(object))
    }

    fn open(&mut self, object: Row<Object>) -> Result<Option<Box<dyn Read>>, Error> {
        for number in self.base.found(object).into_iter().chain(self.base.files_of(object)) {
            if let Some(file) = self.file(number)
                && let Some(content) = self.open_file(file, object)?
            {
                return Ok(Some(Box::new(content)));
            }
        }
        Err(self.missing(object))
    }
}
