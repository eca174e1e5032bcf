//! What a target holds before an update: from its record of the last bundle, else by examining it.

use sealift_format::num;
use std::collections::HashSet;

use crate::{Site, StatCache};
use sealift_format::{Head, Index, InodeKind, Limits, Ref, RootBase};
use sealift_verify::escape::readings;

use super::metadata::Privilege;
use super::plan::Selection;
use super::standing::Recorded;
use crate::contents::index_of;
use crate::contents::{Want, hash_contents};
use crate::directory::state::{self, TreeRecord};
use crate::install::options::InstallOptions;
use crate::install_record::{InstallRecord, is_damage};
use crate::kept_order::KeptOrder;
use crate::progress::Phase;
use crate::source::{DirectoryOptions, DirectorySource, Source, XattrFilter};
use crate::tree::NodeKind;
use crate::trust::{DeviceState, Survey};
use crate::{Aspect, Error, Keeps, Progress, RecordFault};

/// An installed tree as an index.
#[derive(Debug)]
pub(super) struct Installed {
    index: Index,
    reference: String,
    /// The head of the installed bundle, if recorded.
    kept: Option<Head>,
    /// The fs-verity digests of the index's objects, if recorded.
    sealed: Option<Vec<[u8; 32]>>,
    /// The stats that identify its files without reading them.
    stats: Option<StatCache>,
    /// The order in which its contents are read, if recorded.
    order: Option<KeptOrder>,
    /// What it keeps, if recorded.
    keeps: Option<Keeps>,
    /// Whether equal files of it may be hard links of each other.
    links_duplicates: bool,
    /// Files that were hashed to determine it.
    pub(super) hashed_files: u64,
}

/// The ref of a tree that was examined.
const LOOKED_AT: &str = "installed";

impl Installed {
    /// Returns the directories of the wanted index that are recorded; `None` if there is no tree.
    pub(super) fn recorded(&self, wanted: &Index, selection: &Selection) -> Option<Recorded> {
        let (index, tree) = self.tree()?;
        let keeps_owners = self.keeps.is_some_and(|keeps| keeps.has(Aspect::Owners));
        Some(Recorded::new(index, tree, self.stats(), keeps_owners, wanted, selection))
    }

    /// Returns the tree, and the index that holds it.
    pub(super) fn tree(&self) -> Option<(&Index, &Ref)> {
        self.index.find_ref(&self.reference).map(|tree| (&self.index, tree))
    }

    pub(super) fn index(&self) -> &Index {
        &self.index
    }

    pub(super) fn reference(&self) -> &str {
        &self.reference
    }

    /// Returns the index's digest, which the record was checked against.
    pub(super) fn digest(&self) -> [u8; 32] {
        let kept = self.kept.as_ref().map(|head| head.root().contents.index_digest);
        kept.unwrap_or_else(|| sealift_format::verity::digest(self.index.bytes()))
    }

    /// Returns the installed bundle as a delta bundle names its base.
    pub(super) fn as_base(&self) -> Option<RootBase> {
        self.kept.as_ref().map(|head| head.root().as_base())
    }

    /// Returns whether equal files of it may be hard links of each other, according to the record.
    pub(super) fn has_linked_duplicates(&self) -> bool {
        self.links_duplicates
    }

    /// Returns whether its files were sealed.
    pub(super) fn is_sealed(&self) -> bool {
        self.sealed.as_ref().is_some_and(|digests| !digests.is_empty())
    }

    /// Returns the order in which its contents are read, if recorded.
    pub(super) fn order(&self) -> Option<&KeptOrder> {
        self.order.as_ref()
    }

    /// Returns the stats that identify its files without reading them.
    pub(super) fn stats(&self) -> Option<&StatCache> {
        self.stats.as_ref()
    }

    /// Returns whether it was examined rather than known from the record.
    pub(super) fn was_hashed(&self) -> bool {
        self.kept.is_none()
    }

    /// Returns whether the target's record is still this one: it was read before the lock was taken.
    pub(super) fn is_current(&self, site: &Site, options: &InstallOptions) -> Result<bool, Error> {
        let Some(head) = &self.kept else { return Ok(false) };
        state::is_kept(site, head, &self.reference, &options.tree.prefix)
    }

    /// Returns the kernel's digests of the index's objects, as far as they were recorded.
    pub(super) fn sealed(&self) -> (&Index, &[[u8; 32]]) {
        (&self.index, self.sealed.as_deref().unwrap_or_default())
    }

    /// Returns whether the record is of this very bundle and ref.
    pub(super) fn is_of(&self, head: &Head, reference: &str) -> bool {
        self.kept.as_ref() == Some(head) && self.reference == reference
    }

    /// Returns whether it is recorded to keep the same as a run with this privilege.
    pub(super) fn keeps_the_same(&self, privilege: &Privilege) -> bool {
        self.keeps.as_ref() == Some(privilege.keeps())
    }

    /// Returns the target's record; `None` if there is none, if it is damaged, of another directory or of another part of a bundle, or if the target
    /// is to be hashed.
    pub(super) fn kept(site: &Site, options: &InstallOptions) -> Result<Option<Self>, Error> {
        if options.rehash {
            return Ok(None);
        }
        let state = match TreeRecord::of(site, Limits::NONE) {
            // It is rebuilt.
            Err(error) if is_damage(&error) => {
                tracing::warn!(%error, "ignored the damaged install record");
                None
            }
            loaded => loaded?.filter(|state| readings(&options.tree.prefix).contains(&state.part.prefix)),
        };
        // It does not apply to a tree that was copied or moved over the unpacked one.
        let state = match state {
            Some(state) if state.is_of(site)? => Some(state),
            _ => None,
        };
        let Some(TreeRecord { installed: InstallRecord { head, index, order }, part, sealed }) = state else {
            return Ok(None);
        };
        let stats = state::kept_stats(site, head.root().contents.index_digest, index.entries().len())?;
        Ok(Some(Self {
            index,
            reference: part.reference,
            kept: Some(head),
            sealed,
            stats,
            order,
            keeps: Some(part.keeps),
            links_duplicates: part.links_duplicates,
            hashed_files: 0,
        }))
    }

    /// Lists the target, and hashes what may be of use for `selection` of the wanted index.
    pub(super) fn by_looking(
        site: &Site,
        wanted: &Index,
        selection: &Selection,
        options: &InstallOptions,
        keeps: &Keeps,
        progress: &Progress,
    ) -> Result<Self, Error> {
        let mut xattrs = XattrFilter::default();
        xattrs.add_names_of(wanted);
        progress.enter(Phase::Listing, 0, 0);
        let listing = DirectoryOptions { xattrs, leave_mounts: true, ..DirectoryOptions::default() }.unless_in(wanted);
        let source =
            Source::Directory(DirectorySource::list_open(site.reopen()?, site.path(), &listing, options.jobs)?);
        let sizes: HashSet<u64> = selection.regulars.iter().map(|place| wanted.object(place.object).size).collect();
        let assumed = if options.tree.assume_mtime { by_time(&source, wanted, selection, keeps) } else { Vec::new() };
        let known = |content: usize| assumed.get(content).copied().flatten();
        let wants: Vec<Want> = source
            .contents()
            .zip(0_usize..)
            .map(|(content, at)| match known(at) {
                Some(_) => Want::Xattrs,
                None if sizes.contains(&source.content_len(content)) => Want::Id,
                None => Want::Nothing,
            })
            .collect();
        let mut contents = hash_contents(&source, &wants, options.jobs, progress)?;
        for (at, found) in contents.iter_mut().enumerate() {
            found.id = known(at).or(found.id);
        }
        Ok(Self {
            index: index_of(LOOKED_AT, &source, &contents)?,
            reference: LOOKED_AT.to_owned(),
            kept: None,
            sealed: None,
            stats: None,
            order: None,
            keeps: None,
            links_duplicates: false,
            hashed_files: num::wide(wants.iter().filter(|want| **want == Want::Id).count()),
        })
    }
}

/// Returns for each content of the source the object that the wanted index has at its path, if size and time agree.
fn by_time(source: &Source, wanted: &Index, selection: &Selection, keeps: &Keeps) -> Vec<Option<[u8; 32]>> {
    let mut ids = vec![None; source.content_count()];
    let tree = source.tree();
    let Some(&root) = selection.directories.first() else { return ids };
    let mut pending = vec![(0, root)];
    while let Some((directory, number)) = pending.pop() {
        for child in tree.children(directory) {
            let Some((_, entry)) = wanted.find_entry(wanted.directory(number), tree.child_name(child)) else {
                continue;
            };
            let (node, inode) = (tree.node(child.node), wanted.inode(entry.inode));
            match (node.kind, inode.kind) {
                (NodeKind::Directory(directory), InodeKind::Directory(number)) => pending.push((directory, number)),
                (NodeKind::Regular { content }, InodeKind::Regular(object)) => {
                    let object = wanted.object(object);
                    let is_same = object.size == source.content_len(content)
                        && keeps.time((inode.mtime, inode.mtime_ns)) == Some((node.mtime, node.mtime_ns));
                    ids[num::at(content)] = is_same.then_some(object.id);
                }
                _ => {}
            }
        }
    }
    ids
}

/// Refuses a directory that is not shown to be this program's, unless it is to be adopted; `kept` is its record, if that has been read and is sound.
/// Returns the reason for which it is adopted.
///
/// # Errors
/// Returns [`Error::NotOurs`], or an error if its record cannot be read.
pub(super) fn check_ours(
    site: &Site,
    state: &DeviceState,
    options: &InstallOptions,
    kept: Option<&Installed>,
) -> Result<Option<RecordFault>, Error> {
    let mut survey = Survey::of_directory(site, Some(state))?;
    if kept.is_none() {
        survey.read_whole(site)?;
    }
    survey.claim(options.adopt)
}
