//! Commits of an OSTree repository as a source: their objects, the tree of the newest one, and the contents of all files.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use sealift_format::num::{at, size};
use sealift_format::ostree::{Checksum, Commit, Dictionary, DirTree, dirmeta};
use sealift_format::{Attributes, RepositoryFile, name::is_collection_id};

use super::{SourceOptions, content_number};
use crate::Error;
use crate::fs::parent::shown_directory;
use crate::fs::unnamed::unnamed_file;
use crate::ostree::{FileBytes, FileContent, ObjectType, Repo};
use crate::threads::parallel::map;
use crate::tree::{Metadata, NewNode, Tree};

/// What to read of a repository.
#[derive(Clone, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct OstreeOptions {
    /// The refs, as `REF` or `COLLECTION:REF`; if empty, all.
    pub refs: Vec<String>,
    /// The number of ancestors to include with each ref's commit, as far as the repository has them.
    pub depth: u32,
}

/// A ref of a repository.
#[derive(Debug)]
pub struct OstreeSource {
    repo: Arc<Repo>,
    pub(super) tree: Tree,
    /// The commits, newest first.
    pub(crate) commits: Vec<CommitObjects>,
    /// Dirtrees and dirmetas.
    pub(crate) metadata: HashMap<Checksum, Vec<u8>>,
    pub(crate) files: Vec<FileObject>,
    pub(crate) file_of: HashMap<Checksum, usize>,
    /// The collection of the ref; empty if none.
    pub collection: String,
    /// The files of the repository itself that are packed with it.
    pub(crate) repository_files: Arc<[(RepositoryFile, Vec<u8>)]>,
    contents: Vec<ContentObject>,
    spool_dir: PathBuf,
}

/// A commit with its metadata, as carried in a bundle.
#[derive(Debug)]
pub(crate) struct CommitObjects {
    pub(crate) checksum: Checksum,
    pub(crate) bytes: Vec<u8>,
    pub(crate) beside: Option<Vec<u8>>,
}

/// A file object.
#[derive(Debug)]
pub(crate) struct FileObject {
    pub(crate) attributes: Attributes,
    pub(crate) kind: FileKind,
}

#[derive(Debug)]
pub(crate) enum FileKind {
    /// The number of its content.
    Regular(u32),
    Symlink(Box<[u8]>),
}

/// The content of a regular file object.
#[derive(Debug)]
struct ContentObject {
    checksum: Checksum,
    /// The index of the file.
    file: usize,
    size: u64,
    /// The whole content of a large one, once it is known to be correct.
    whole: Mutex<Option<Arc<File>>>,
}

/// A content that is open for reading and verified.
#[derive(Debug)]
pub enum OstreeContent {
    /// All of it.
    Bytes(Vec<u8>),
    /// A file that holds it.
    File(Arc<File>),
}

/// Contents up to this many bytes are read at once.
const SMALL: u64 = 4 << 20;
/// Bytes per read.
const BUFFER_LEN: usize = 128 << 10;

impl OstreeSource {
    /// Reads the commits of a ref, and the headers of all of their files, on `jobs` threads.
    ///
    /// # Errors
    /// Returns an error if the repository has no such ref, if an object is missing or does not match its checksum, or if the caller requests a stop.
    pub(super) fn open(
        repo: &Arc<Repo>,
        reference: &str,
        ostree: &OstreeOptions,
        options: &SourceOptions,
        jobs: usize,
    ) -> Result<Self, Error> {
        let tip = repo.resolve(reference)?;
        // A mirrored ref belongs to the collection in its name, others to the repository's own.
        let collection = match reference.split_once(':') {
            Some((collection, _)) if is_collection_id(collection) => Some(collection.to_owned()),
            _ => repo.config().collection_id.clone(),
        };
        let mut source = Self::of_commit(repo, tip, ostree.depth, options, jobs)?;
        source.collection = collection.unwrap_or_default();
        Ok(source)
    }

    /// Reads a commit, up to `depth` ancestors as far as they exist, and the headers of all of their files. The result belongs to no collection, and
    /// has no files of the repository itself.
    pub(crate) fn of_commit(
        repo: &Arc<Repo>,
        tip: Checksum,
        depth: u32,
        options: &SourceOptions,
        jobs: usize,
    ) -> Result<Self, Error> {
        let mut source = Self {
            repo: Arc::clone(repo),
            tree: Tree::new(Metadata::default()),
            commits: Vec::new(),
            metadata: HashMap::new(),
            files: Vec::new(),
            file_of: HashMap::new(),
            collection: String::new(),
            repository_files: Arc::new([]),
            contents: Vec::new(),
            spool_dir: match options.spool_dir.as_os_str().is_empty() {
                true => std::env::temp_dir(),
                false => options.spool_dir.clone(),
            },
        };
        let mut files = Vec::new();
        let mut next = Some(tip);
        for generation in 0..=depth {
            let Some(checksum) = next.take() else { break };
            // Parents of the newest commit may have been pruned.
            if generation > 0 && !repo.has(ObjectType::Commit, &checksum)? {
                break;
            }
            next = source.add_commit(checksum, &mut files)?;
        }
        source.open_files(&files, options, jobs)?;
        source.build_tree()?;
        Ok(source)
    }

    /// Adds a commit with its dirtrees and dirmetas, and collects new files. Returns its parent.
    fn add_commit(&mut self, checksum: Checksum, files: &mut Vec<Checksum>) -> Result<Option<Checksum>, Error> {
        let bytes = self.repo.load_metadata(ObjectType::Commit, &checksum)?;
        let beside = self.repo.load_commitmeta(&checksum)?;
        if let Some(bytes) = &beside {
            Dictionary::parse(bytes).map_err(|fault| self.repo.wrong(ObjectType::CommitMeta, &checksum, fault))?;
        }
        let commit = Commit::parse(&bytes).map_err(|fault| self.repo.wrong(ObjectType::Commit, &checksum, fault))?;
        let parent = commit.parent.copied();
        let (root, meta) = (*commit.root_tree, *commit.root_meta);
        self.load(ObjectType::DirMeta, meta)?;
        let mut pending = vec![root];
        while let Some(dirtree) = pending.pop() {
            if self.load(ObjectType::DirTree, dirtree)? {
                let named = self.read_dirtree(&dirtree)?;
                for file in named.files {
                    let next = files.len();
                    if *self.file_of.entry(file).or_insert(next) == next {
                        files.push(file);
                    }
                }
                for meta in named.metas {
                    self.load(ObjectType::DirMeta, meta)?;
                }
                pending.extend(named.below.into_iter().rev());
            }
        }
        self.commits.push(CommitObjects { checksum, bytes, beside });
        Ok(parent)
    }

    /// Returns the checksums in a dirtree.
    fn read_dirtree(&self, dirtree: &Checksum) -> Result<Named, Error> {
        let bytes = self.metadata.get(dirtree).map_or(&[][..], Vec::as_slice);
        let fault = |fault| self.repo.wrong(ObjectType::DirTree, dirtree, fault);
        let tree = DirTree::parse(bytes).map_err(fault)?;
        Ok(Named {
            files: tree.files.iter().map(|(_, file)| **file).collect(),
            metas: tree.directories.iter().map(|(_, _, meta)| **meta).collect(),
            below: tree.directories.iter().map(|(_, below, _)| **below).collect(),
        })
    }

    /// Loads a metadata object. Returns whether it is new.
    fn load(&mut self, kind: ObjectType, checksum: Checksum) -> Result<bool, Error> {
        if self.metadata.contains_key(&checksum) {
            return Ok(false);
        }
        let bytes = self.repo.load_metadata(kind, &checksum)?;
        self.metadata.insert(checksum, bytes);
        Ok(true)
    }

    /// Reads the header of each file.
    fn open_files(&mut self, files: &[Checksum], options: &SourceOptions, jobs: usize) -> Result<(), Error> {
        let found = map(jobs, files, |file| {
            options.advance(0, 1)?;
            let (attributes, content) = self.repo.open_file(file)?;
            let header = match content {
                FileContent::Symlink(target) => Header::Symlink(target.into_bytes().into()),
                FileContent::Regular(reader) => Header::Regular(reader.size()),
            };
            Ok((attributes, header))
        })?;
        for (checksum, (attributes, header)) in files.iter().zip(found) {
            let kind = match header {
                Header::Symlink(target) => FileKind::Symlink(target),
                Header::Regular(size) => {
                    let whole = Mutex::default();
                    let content = content_number(self.contents.len())?;
                    self.contents.push(ContentObject { checksum: *checksum, file: self.files.len(), size, whole });
                    FileKind::Regular(content)
                }
            };
            self.files.push(FileObject { attributes, kind });
        }
        Ok(())
    }

    /// Builds the tree of the newest commit.
    fn build_tree(&mut self) -> Result<(), Error> {
        let Some(tip) = self.commits.first() else { return Ok(()) };
        let fault = |kind, checksum: &Checksum| {
            let (repo, checksum) = (&self.repo, *checksum);
            move |fault| repo.wrong(kind, &checksum, fault)
        };
        let commit = Commit::parse(&tip.bytes).map_err(fault(ObjectType::Commit, &tip.checksum))?;
        let attributes = |meta: &Checksum| {
            let bytes = self.metadata.get(meta).map_or(&[][..], Vec::as_slice);
            dirmeta::parse(bytes).map_err(fault(ObjectType::DirMeta, meta))
        };
        let mut tree = Tree::new(Metadata::of(&attributes(commit.root_meta)?, (0, 0)));
        let mut pending = vec![(0, *commit.root_tree)];
        while let Some((directory, dirtree)) = pending.pop() {
            let bytes = self.metadata.get(&dirtree).map_or(&[][..], Vec::as_slice);
            let names = DirTree::parse(bytes).map_err(fault(ObjectType::DirTree, &dirtree))?;
            let bad_name = |fault: &str| {
                Error::unexpected(self.repo.path(), format!("has a name in an OSTree directory that {fault}"))
            };
            for (name, checksum) in &names.files {
                let Some(file) = self.file_of.get(*checksum).and_then(|file| self.files.get(*file)) else { continue };
                let node = match &file.kind {
                    FileKind::Regular(content) => NewNode::Regular { content: *content },
                    FileKind::Symlink(target) => NewNode::Symlink(target.clone()),
                };
                tree.add(directory, name, Metadata::of(&file.attributes, (0, 0)), node).map_err(bad_name)?;
            }
            for (name, below, meta) in &names.directories {
                let node = tree.add(directory, name, Metadata::of(&attributes(meta)?, (0, 0)), NewNode::Directory);
                pending.extend(tree.directory_of(node.map_err(bad_name)?).map(|directory| (directory, **below)));
            }
        }
        tree.sort();
        self.tree = tree;
        Ok(())
    }

    pub(crate) fn content_len(&self, content: u32) -> u64 {
        self.contents.get(at(content)).map_or(0, |content| content.size)
    }

    pub(crate) fn content_count(&self) -> usize {
        self.contents.len()
    }

    /// Opens a content after comparing its checksum.
    pub(super) fn open_content(&self, content: u32) -> Result<OstreeContent, Error> {
        let Some(object) = self.contents.get(at(content)) else { return Ok(OstreeContent::Bytes(Vec::new())) };
        if object.size <= SMALL {
            let mut bytes = Vec::with_capacity(size(object.size));
            let read = self.open_object(object)?.read_to_end(&mut bytes);
            read.map_err(|error| self.repo.unread(&object.checksum, error))?;
            return Ok(OstreeContent::Bytes(bytes));
        }
        let mut whole = object.whole.lock();
        if let Some(file) = &*whole {
            return Ok(OstreeContent::File(Arc::clone(file)));
        }
        let file = match self.repo.is_compressed() {
            false => self.read_whole(object, |_| Ok(()))?.into_plain(),
            // Packing reads it at several offsets at once, which compressed data does not allow.
            true => {
                let shown = shown_directory(&self.spool_dir);
                let failed = |error| Error::io("create a file in", &shown, error);
                let mut spool = unnamed_file(&self.spool_dir).map_err(failed)?;
                self.read_whole(object, |part| {
                    spool.write_all(part).map_err(|error| Error::io("write to a file in", &shown, error))
                })?;
                Some(spool)
            }
        };
        let Some(file) = file.map(Arc::new) else { return Ok(OstreeContent::Bytes(Vec::new())) };
        *whole = Some(Arc::clone(&file));
        Ok(OstreeContent::File(file))
    }

    /// Returns the checksum of the file object that has a content.
    pub(crate) fn content_checksum(&self, content: u32) -> Option<&Checksum> {
        self.contents.get(at(content)).map(|content| &content.checksum)
    }

    /// Reads a content from start to end, and passes it to `take` part by part.
    pub(crate) fn read_content(&self, content: u32, take: impl FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        self.contents.get(at(content)).map_or(Ok(()), |object| self.read_whole(object, take).map(drop))
    }

    fn open_object(&self, object: &ContentObject) -> Result<FileBytes, Error> {
        self.repo.open_content(&object.checksum, &self.files[object.file].attributes, object.size)
    }

    /// Reads all of a content, which the repository compares with its checksum.
    fn read_whole(
        &self,
        object: &ContentObject,
        mut take: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<FileBytes, Error> {
        let mut content = self.open_object(object)?;
        let mut buffer = vec![0; BUFFER_LEN];
        loop {
            match content.read(&mut buffer).map_err(|error| self.repo.unread(&object.checksum, error))? {
                0 => return Ok(content),
                len => take(buffer.get(..len).unwrap_or_default())?,
            }
        }
    }
}

/// The objects that a dirtree names.
struct Named {
    files: Vec<Checksum>,
    metas: Vec<Checksum>,
    below: Vec<Checksum>,
}

enum Header {
    Regular(u64),
    Symlink(Box<[u8]>),
}

impl OstreeContent {
    pub(super) fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        match self {
            Self::File(file) => {
                file.read_exact_at(buffer, offset).map_err(|error| Error::io("read", "a file object", error))
            }
            Self::Bytes(bytes) => {
                let start = size(offset);
                let part = bytes.get(start..start.saturating_add(buffer.len()));
                match part {
                    Some(part) => buffer.copy_from_slice(part),
                    None => buffer.fill(0),
                }
                Ok(())
            }
        }
    }
}
