//! The tree that results from the members, one after the other, before it is sorted.

use std::collections::BTreeMap;

use sealift_format::Device;
use sealift_format::name::{component_fault, join};
use sealift_format::walk::TreeOrder;

use crate::error::path_of;
use crate::error::{ArchiveFault, shown};
use crate::source::{DirectoryOptions, content_number};
use crate::{Error, Metadata, NewNode, NodeId, Tree};

/// The maximum length of a symbolic link's target (core 6.3).
const TARGET_LEN_MAX: usize = 4095;

/// The number of a file in a draft.
pub(in crate::source) type FileId = usize;
type DirectoryId = usize;

/// A member of the archive.
#[derive(Debug)]
pub(in crate::source) struct Member {
    /// The offset of its header.
    pub(in crate::source) offset: u64,
    /// Its name as stored in the archive.
    pub(in crate::source) path: Vec<u8>,
    pub(in crate::source) metadata: Metadata,
    pub(in crate::source) kind: MemberKind,
}

#[derive(Debug)]
pub(in crate::source) enum MemberKind {
    Directory,
    Regular(Stored),
    /// The path of an earlier member.
    HardLink(Vec<u8>),
    /// An earlier member.
    OtherName(FileId),
    Symlink(Vec<u8>),
    CharDevice(Device),
    BlockDevice(Device),
    Fifo,
    Socket,
}

/// The location of a content in the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::source) enum Stored {
    Whole { offset: u64, len: u64 },
    Sparse { len: u64, segments: Box<[Segment]> },
}

/// A run of a sparse file's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source) struct Segment {
    /// Its offset in the file.
    pub(in crate::source) at: u64,
    pub(in crate::source) len: u64,
    /// Its offset in the archive.
    pub(in crate::source) offset: u64,
}

impl Stored {
    pub(in crate::source) fn len(&self) -> u64 {
        match self {
            Self::Whole { len, .. } | Self::Sparse { len, .. } => *len,
        }
    }
}

/// Files and their names. Files that have lost their names remain, but do not enter the tree.
#[derive(Debug)]
pub(in crate::source) struct Draft {
    files: Vec<File>,
    directories: Vec<BTreeMap<Box<[u8]>, FileId>>,
}

#[derive(Debug)]
struct File {
    metadata: Metadata,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Directory(DirectoryId),
    Regular(Stored),
    Other(NewNode),
}

const ROOT: FileId = 0;

impl Draft {
    pub(in crate::source) fn new() -> Self {
        let mut draft = Self { files: Vec::new(), directories: Vec::new() };
        draft.new_directory(unnamed_directory());
        draft
    }

    fn new_directory(&mut self, metadata: Metadata) -> FileId {
        self.directories.push(BTreeMap::new());
        self.push(metadata, Kind::Directory(self.directories.len() - 1))
    }

    fn push(&mut self, metadata: Metadata, kind: Kind) -> FileId {
        self.files.push(File { metadata, kind });
        self.files.len() - 1
    }

    pub(in crate::source) fn add(&mut self, member: Member) -> Result<FileId, ArchiveFault> {
        let Member { path, metadata, kind, .. } = member;
        let components = components(&path)?;
        let Some((name, parents)) = components.split_last() else {
            // The root: `./`.
            return match kind {
                MemberKind::Directory => {
                    self.files[ROOT].metadata = metadata;
                    Ok(ROOT)
                }
                _ => Err(ArchiveFault::ReplacesDirectory { path: shown(&path) }),
            };
        };
        let directory = self.make_directories(parents, &path)?;
        let existing = self.directories[directory].get(*name).copied();
        if let Some(existing) = existing
            && let Kind::Directory(below) = self.files[existing].kind
        {
            if matches!(kind, MemberKind::Directory) {
                self.files[existing].metadata = metadata;
                return Ok(existing);
            }
            if !self.directories[below].is_empty() {
                return Err(ArchiveFault::ReplacesDirectory { path: shown(&path) });
            }
        }
        let file = match kind {
            MemberKind::Directory => self.new_directory(metadata),
            MemberKind::HardLink(target) => self.link_target(&path, &target)?,
            MemberKind::OtherName(file) => file,
            MemberKind::Regular(stored) => self.push(metadata, Kind::Regular(stored)),
            MemberKind::Symlink(target) => self.push(metadata, Kind::Other(symlink(&path, target)?)),
            MemberKind::CharDevice(device) => self.push(metadata, Kind::Other(NewNode::CharDevice(device))),
            MemberKind::BlockDevice(device) => self.push(metadata, Kind::Other(NewNode::BlockDevice(device))),
            MemberKind::Fifo => self.push(metadata, Kind::Other(NewNode::Fifo)),
            MemberKind::Socket => self.push(metadata, Kind::Other(NewNode::Socket)),
        };
        self.directories[directory].insert((*name).into(), file);
        Ok(file)
    }

    /// Returns the content of a regular file.
    pub(in crate::source) fn content(&mut self, file: FileId) -> Option<&mut Stored> {
        match &mut self.files[file].kind {
            Kind::Regular(stored) => Some(stored),
            _ => None,
        }
    }

    /// Descends, creating missing directories.
    fn make_directories(&mut self, names: &[&[u8]], path: &[u8]) -> Result<DirectoryId, ArchiveFault> {
        let mut here = ROOT;
        for (depth, name) in names.iter().enumerate() {
            let directory = self.directory(here, || names[..depth].join(&b'/'), path)?;
            here = match self.directories[directory].get(*name) {
                Some(file) => *file,
                None => {
                    let file = self.new_directory(unnamed_directory());
                    self.directories[directory].insert((*name).into(), file);
                    file
                }
            };
        }
        self.directory(here, || names.join(&b'/'), path)
    }

    fn directory(&self, file: FileId, parent: impl Fn() -> Vec<u8>, path: &[u8]) -> Result<DirectoryId, ArchiveFault> {
        match self.files[file].kind {
            Kind::Directory(directory) => Ok(directory),
            // A link is not followed: it could lead anywhere.
            _ => Err(ArchiveFault::NotDirectory { path: shown(path), parent: shown(&parent()) }),
        }
    }

    fn link_target(&self, path: &[u8], target: &[u8]) -> Result<FileId, ArchiveFault> {
        let mut here = Some(ROOT);
        for name in components(target)? {
            here = here.and_then(|file| match self.files[file].kind {
                Kind::Directory(directory) => self.directories[directory].get(name).copied(),
                _ => None,
            });
        }
        let names = || (shown(path), shown(target));
        let file = here.ok_or_else(|| {
            let (path, target) = names();
            ArchiveFault::LinkToNothing { path, target }
        })?;
        if matches!(self.files[file].kind, Kind::Directory(_)) {
            let (path, target) = names();
            return Err(ArchiveFault::LinkToDirectory { path, target });
        }
        Ok(file)
    }

    /// Puts what is not excluded into a tree, in tree order, which numbers the contents.
    pub(in crate::source) fn finish(self, options: &DirectoryOptions) -> Result<(Tree, Vec<Stored>), Error> {
        let Self { files, directories } = self;
        let mut files: Vec<Option<File>> = files.into_iter().map(Some).collect();
        let mut nodes: Vec<NodeId> = vec![0; files.len()];
        let root = files[ROOT].take().map_or_else(unnamed_directory, |root| root.metadata);
        let mut tree = Tree::new(root);
        let mut contents = Vec::new();
        let mut order = TreeOrder::new((0, 0, Vec::new()));
        while let Some((from, to, path)) = order.pop() {
            for (name, file) in &directories[from] {
                let path = join(&path, name);
                let named = |fault| Error::unexpected(shown(&path), format!("has a name that {fault}"));
                let is_directory = matches!(&files[*file], Some(File { kind: Kind::Directory(_), .. }));
                if options.excludes(|| path.clone(), is_directory) {
                    tracing::debug!(path = ?path_of(&path), "excluded by a pattern");
                    continue;
                }
                let Some(File { metadata, kind }) = files[*file].take() else {
                    // Already added: another name of it.
                    tree.add_link(to, name, nodes[*file]).map_err(named)?;
                    continue;
                };
                let (new, directory) = match kind {
                    Kind::Directory(directory) => (NewNode::Directory, Some(directory)),
                    Kind::Other(node) => (node, None),
                    Kind::Regular(stored) => {
                        let content = content_number(contents.len())?;
                        contents.push(stored);
                        (NewNode::Regular { content }, None)
                    }
                };
                let node = tree.add(to, name, metadata, new).map_err(named)?;
                nodes[*file] = node;
                if let (Some(from), Some(to)) = (directory, tree.directory_of(node)) {
                    order.push((from, to, path));
                }
            }
        }
        Ok((tree, contents))
    }
}

/// Returns the metadata of a directory that no member describes.
fn unnamed_directory() -> Metadata {
    Metadata { permissions: 0o755, ..Metadata::default() }
}

/// Returns the names in a path; none for the root.
fn components(path: &[u8]) -> Result<Vec<&[u8]>, ArchiveFault> {
    let wrong = |fault| ArchiveFault::Name { path: shown(path), fault };
    if path.is_empty() {
        return Err(wrong("is empty"));
    }
    let names = path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
    names.map(|name| component_fault(name).map_or(Ok(name), |fault| Err(wrong(fault)))).collect()
}

fn symlink(path: &[u8], target: Vec<u8>) -> Result<NewNode, ArchiveFault> {
    let wrong = |fault| Err(ArchiveFault::Target { path: shown(path), fault });
    match target.len() {
        0 => wrong("is empty"),
        len if len > TARGET_LEN_MAX => wrong("has more than 4095 bytes"),
        _ if target.contains(&0) => wrong("contains a NUL byte"),
        _ => Ok(NewNode::Symlink(target.into())),
    }
}
