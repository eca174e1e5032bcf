//! The objects that the commits of an index need.

use std::collections::{HashMap, HashSet};

use sealift_format::num::at;
use sealift_format::ostree::{Checksum, Commit, DirTree};
use sealift_format::{Index, OsTree, OsTreeFile, OsTreeKind, Ref};

use crate::Error;
use crate::ostree::object::ObjectType;
use crate::ostree::repo::Repo;

/// A required object.
pub(crate) struct Wanted<'a> {
    pub(crate) kind: ObjectType,
    pub(crate) checksum: Checksum,
    pub(crate) what: WantedContent<'a>,
    pub(crate) tree: &'a Ref,
    /// Its first place in the tree; `None` for a commit.
    place: Option<NameIn<'a>>,
}

/// A name in a directory of which the number is known, or a root. Paths are only made of them where they are shown: the paths of nested directories
/// together grow with the square of the depth.
#[derive(Clone, Copy)]
struct NameIn<'a> {
    folder: Option<u32>,
    name: &'a [u8],
}

/// What the object should be.
pub(crate) enum WantedContent<'a> {
    /// The bytes of a commit, dirtree or dirmeta.
    Metadata(&'a [u8]),
    File(&'a OsTreeFile),
}

/// The objects that commits need.
pub(crate) struct WantedObjects<'a> {
    pub(crate) objects: Vec<Wanted<'a>>,
    /// The places of dirtrees.
    folders: Vec<NameIn<'a>>,
}

impl WantedObjects<'_> {
    /// Returns the first path of an object in its tree, unless it is a commit or the path is longer than any that Linux takes at once.
    pub(crate) fn path(&self, wanted: &Wanted<'_>) -> Option<Vec<u8>> {
        const LONGEST: usize = 4095;
        let (mut names, mut len, mut next) = (Vec::new(), 0, Some(wanted.place?));
        while let Some(place) = next {
            if !place.name.is_empty() {
                len += place.name.len() + 1;
                names.push(place.name);
            }
            next = place.folder.and_then(|folder| self.folders.get(at(folder)).copied());
            if len > LONGEST + 1 {
                return None;
            }
        }
        names.reverse();
        Some(names.join(&b'/'))
    }
}

/// Traverses what commits name, and lists each object once.
pub(crate) struct Walk<'a> {
    repo: &'a Repo,
    metadata: HashMap<(OsTreeKind, Checksum), &'a [u8]>,
    files: HashMap<Checksum, &'a OsTreeFile>,
    seen: HashSet<(ObjectType, Checksum)>,
    wanted: WantedObjects<'a>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(repo: &'a Repo, index: &'a Index, ostree: &'a OsTree) -> Self {
        let objects = ostree.objects().iter();
        Self {
            repo,
            metadata: objects.map(|object| ((object.kind, object.checksum), index.ostree_bytes(object))).collect(),
            files: ostree.files().iter().map(|file| (file.checksum, file)).collect(),
            seen: HashSet::new(),
            wanted: WantedObjects { objects: Vec::new(), folders: Vec::new() },
        }
    }

    /// Returns the objects that were listed.
    pub(crate) fn finish(self) -> WantedObjects<'a> {
        self.wanted
    }

    /// Lists a commit of a ref with everything that it names. Returns its parent, unless the commit is already listed or not in the index.
    pub(crate) fn add_commit(&mut self, tree: &'a Ref, commit: Checksum) -> Result<Option<Checksum>, Error> {
        let Some(bytes) = self.add_metadata(OsTreeKind::Commit, commit, tree, None) else { return Ok(None) };
        let fault = |fault| self.repo.wrong(ObjectType::Commit, &commit, fault);
        let parsed = Commit::parse(bytes).map_err(fault)?;
        let root = NameIn { folder: None, name: b"" };
        self.add_metadata(OsTreeKind::DirMeta, *parsed.root_meta, tree, Some(root));
        let mut pending = vec![(*parsed.root_tree, root)];
        while let Some((dirtree, place)) = pending.pop() {
            let Some(bytes) = self.add_metadata(OsTreeKind::DirTree, dirtree, tree, Some(place)) else { continue };
            let named = DirTree::parse(bytes);
            let named = named.map_err(|fault| self.repo.wrong(ObjectType::DirTree, &dirtree, fault))?;
            // There are no more dirtrees than objects in an index.
            let folder = u32::try_from(self.wanted.folders.len()).ok();
            self.wanted.folders.push(place);
            for (name, file) in named.files {
                self.add_file(*file, tree, NameIn { folder, name });
            }
            for (name, below, meta) in named.directories {
                let place = NameIn { folder, name };
                self.add_metadata(OsTreeKind::DirMeta, *meta, tree, Some(place));
                pending.push((*below, place));
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
        place: Option<NameIn<'a>>,
    ) -> Option<&'a [u8]> {
        let bytes = *self.metadata.get(&(kind, checksum))?;
        let kind = match kind {
            OsTreeKind::Commit => ObjectType::Commit,
            OsTreeKind::CommitMeta => ObjectType::CommitMeta,
            OsTreeKind::DirTree => ObjectType::DirTree,
            OsTreeKind::DirMeta => ObjectType::DirMeta,
        };
        self.seen.insert((kind, checksum)).then(|| {
            self.wanted.objects.push(Wanted { kind, checksum, what: WantedContent::Metadata(bytes), tree, place });
            bytes
        })
    }

    fn add_file(&mut self, checksum: Checksum, tree: &'a Ref, place: NameIn<'a>) {
        if let Some(file) = self.files.get(&checksum)
            && self.seen.insert((ObjectType::File, checksum))
        {
            let what = WantedContent::File(file);
            self.wanted.objects.push(Wanted { kind: ObjectType::File, checksum, what, tree, place: Some(place) });
        }
    }
}
