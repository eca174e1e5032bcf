//! The objects that the commits of an index need.

use std::collections::{HashMap, HashSet};

use sealift_format::name::join;
use sealift_format::ostree::{Checksum, Commit, DirTree};
use sealift_format::{Index, OsTree, OsTreeFile, OsTreeKind, Ref};

use crate::Error;
use crate::ostree::object::ObjectType;
use crate::ostree::repo::Repo;

/// A required object.
pub(super) struct Wanted<'a> {
    pub(super) kind: ObjectType,
    pub(super) checksum: Checksum,
    pub(super) what: WantedContent<'a>,
    pub(super) tree: &'a Ref,
    /// Its first path in the tree; `None` for a commit.
    pub(super) path: Option<Vec<u8>>,
}

/// What the object should be.
pub(super) enum WantedContent<'a> {
    /// The bytes of a commit, dirtree or dirmeta.
    Metadata(&'a [u8]),
    File(&'a OsTreeFile),
}

/// Traverses what commits name, and lists each object once.
pub(super) struct Walk<'a> {
    repo: &'a Repo,
    metadata: HashMap<(OsTreeKind, Checksum), &'a [u8]>,
    files: HashMap<Checksum, &'a OsTreeFile>,
    seen: HashSet<(ObjectType, Checksum)>,
    pub(super) wanted: Vec<Wanted<'a>>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(repo: &'a Repo, index: &'a Index, ostree: &'a OsTree) -> Self {
        let objects = ostree.objects().iter();
        Self {
            repo,
            metadata: objects.map(|object| ((object.kind, object.checksum), index.ostree_bytes(object))).collect(),
            files: ostree.files().iter().map(|file| (file.checksum, file)).collect(),
            seen: HashSet::new(),
            wanted: Vec::new(),
        }
    }

    /// Lists a commit of a ref with everything that it names. Returns its parent, unless the commit is already listed or not in the index.
    pub(super) fn add_commit(&mut self, tree: &'a Ref, commit: Checksum) -> Result<Option<Checksum>, Error> {
        let Some(bytes) = self.add_metadata(OsTreeKind::Commit, commit, tree, None) else { return Ok(None) };
        let fault = |fault| self.repo.wrong(ObjectType::Commit, &commit, fault);
        let parsed = Commit::parse(bytes).map_err(fault)?;
        self.add_metadata(OsTreeKind::DirMeta, *parsed.root_meta, tree, Some(b""));
        let mut pending = vec![(*parsed.root_tree, Vec::new())];
        while let Some((dirtree, path)) = pending.pop() {
            let Some(bytes) = self.add_metadata(OsTreeKind::DirTree, dirtree, tree, Some(&path)) else { continue };
            let named = DirTree::parse(bytes);
            let named = named.map_err(|fault| self.repo.wrong(ObjectType::DirTree, &dirtree, fault))?;
            for (name, file) in named.files {
                self.add_file(*file, tree, &path, name);
            }
            for (name, below, meta) in named.directories {
                let path = join(&path, name);
                self.add_metadata(OsTreeKind::DirMeta, *meta, tree, Some(&path));
                pending.push((*below, path));
            }
        }
        Ok(parsed.parent.copied())
    }

    /// Returns the bytes of an object that was not listed before.
    fn add_metadata(
        &mut self,
        kind: OsTreeKind,
        checksum: Checksum,
        tree: &'a Ref,
        path: Option<&[u8]>,
    ) -> Option<&'a [u8]> {
        let bytes = *self.metadata.get(&(kind, checksum))?;
        let kind = match kind {
            OsTreeKind::Commit => ObjectType::Commit,
            OsTreeKind::CommitMeta => ObjectType::CommitMeta,
            OsTreeKind::DirTree => ObjectType::DirTree,
            OsTreeKind::DirMeta => ObjectType::DirMeta,
        };
        self.seen.insert((kind, checksum)).then(|| {
            let path = path.map(<[u8]>::to_vec);
            self.wanted.push(Wanted { kind, checksum, what: WantedContent::Metadata(bytes), tree, path });
            bytes
        })
    }

    fn add_file(&mut self, checksum: Checksum, tree: &'a Ref, folder: &[u8], name: &[u8]) {
        if let Some(file) = self.files.get(&checksum)
            && self.seen.insert((ObjectType::File, checksum))
        {
            let (what, path) = (WantedContent::File(file), Some(join(folder, name)));
            self.wanted.push(Wanted { kind: ObjectType::File, checksum, what, tree, path });
        }
    }
}
