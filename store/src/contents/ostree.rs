//! OSTree commits in the order of an index (ostree 4).

use std::collections::HashMap;

use sealift_format::num;
use sealift_format::ostree::{Checksum, Commit, DirTree, Malformed};
use sealift_format::{Attributes, IndexBuilder, Node, OsTreeKind};

use crate::Error;
use crate::source::{FileKind, OstreeSource};

/// The commits of all refs, with each object once.
#[derive(Default)]
pub struct Commits<'a> {
    objects: Vec<(OsTreeKind, &'a [u8])>,
    known: HashMap<(OsTreeKind, Checksum), usize>,
    files: Vec<(usize, &'a Attributes, &'a FileKind)>,
    file_of: HashMap<Checksum, usize>,
    /// Whether detached metadata is left out.
    is_bare: bool,
}

impl<'a> Commits<'a> {
    /// Creates an empty list for a base. Detached metadata is left out unless wanted.
    pub fn of_base(with_commitmeta: bool) -> Self {
        Self { is_bare: !with_commitmeta, ..Self::default() }
    }

    /// Adds a ref's commits; `number` is that of its source. Returns the number of its newest commit if an earlier ref has it too.
    pub fn add(&mut self, number: usize, source: &'a OstreeSource) -> Result<Option<u32>, Error> {
        let tip = source.commits.first().map(|commit| (OsTreeKind::Commit, commit.checksum));
        let known = tip.and_then(|tip| self.known.get(&tip).copied());
        for commit in &source.commits {
            if self.known.contains_key(&(OsTreeKind::Commit, commit.checksum)) {
                // Its parents are already listed.
                break;
            }
            self.push(OsTreeKind::Commit, commit.checksum, &commit.bytes);
            if let Some(beside) = commit.beside.as_ref().filter(|_| !self.is_bare) {
                self.objects.push((OsTreeKind::CommitMeta, beside));
            }
            let parsed = Commit::parse(&commit.bytes).map_err(unreadable)?;
            self.meta(source, parsed.root_meta);
            self.tree(number, source, *parsed.root_tree)?;
        }
        Ok(known.map(|known| num::fit(known, "the number of OSTree objects")).transpose()?)
    }

    fn push(&mut self, kind: OsTreeKind, checksum: Checksum, bytes: &'a [u8]) -> bool {
        let next = self.objects.len();
        let is_new = *self.known.entry((kind, checksum)).or_insert(next) == next;
        if is_new {
            self.objects.push((kind, bytes));
        }
        is_new
    }

    fn meta(&mut self, source: &'a OstreeSource, checksum: &Checksum) {
        let bytes = source.metadata.get(checksum).map_or(&[][..], Vec::as_slice);
        self.push(OsTreeKind::DirMeta, *checksum, bytes);
    }

    fn tree(&mut self, number: usize, source: &'a OstreeSource, root: Checksum) -> Result<(), Error> {
        let mut pending = vec![root];
        while let Some(checksum) = pending.pop() {
            let bytes = source.metadata.get(&checksum).map_or(&[][..], Vec::as_slice);
            if !self.push(OsTreeKind::DirTree, checksum, bytes) {
                continue;
            }
            let tree = DirTree::parse(bytes).map_err(unreadable)?;
            for (_, checksum) in &tree.files {
                let next = self.files.len();
                let own = source.file_of.get(*checksum).and_then(|file| source.files.get(*file));
                if let Some(own) = own
                    && *self.file_of.entry(**checksum).or_insert(next) == next
                {
                    self.files.push((number, &own.attributes, &own.kind));
                }
            }
            for (_, _, meta) in &tree.directories {
                self.meta(source, meta);
            }
            pending.extend(tree.directories.iter().rev().map(|(_, below, _)| **below));
        }
        Ok(())
    }

    /// Adds everything to the builder, after the refs and the inodes. `object_of` returns the object of a source's content.
    pub fn add_to(&self, builder: &mut IndexBuilder, object_of: impl Fn(usize, u32) -> u32) {
        for (kind, bytes) in &self.objects {
            builder.ostree_object(*kind, bytes);
        }
        for (source, attributes, kind) in &self.files {
            let node = match kind {
                FileKind::Regular(content) => Node::Regular { content: object_of(*source, *content) },
                FileKind::Symlink(target) => Node::Symlink(target),
            };
            builder.ostree_file(attributes, node);
        }
    }
}

/// Returns the error for an object that no longer parses; the source has parsed it before.
fn unreadable(fault: Malformed) -> Error {
    Error::Usage(fault.to_string())
}
