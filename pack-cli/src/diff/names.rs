//! The names of one side, in the order of the walk.

use sealift_format::num;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::side::View;
use super::{File, TreePath};
use sealift_store::contents::ContentInfo;

/// The files of one side, and which of their names have been visited.
pub(super) struct Names<'a> {
    pub(super) view: View<'a>,
    found: Vec<ContentInfo>,
    /// Nodes with several names.
    linked: HashSet<u32>,
    /// For each of them, the first visited name, and the file that its other names share.
    first: HashMap<u32, (TreePath, Option<Arc<File>>)>,
    /// Nodes that have a name on both sides.
    kept: HashSet<u32>,
    /// The node of the other side with the same names.
    partner: HashMap<u32, u32>,
    /// Whether each content was visited.
    pub(super) met: Vec<bool>,
}

impl<'a> Names<'a> {
    pub(super) fn new(view: View<'a>, found: Vec<ContentInfo>) -> Self {
        let linked = view.linked();
        let (first, kept, partner, met) = Default::default();
        Self { view, found, linked, first, kept, partner, met }
    }

    /// Returns the file at a path.
    pub(super) fn file(&mut self, node: u32, path: &TreePath) -> Arc<File> {
        let file = || self.view.file(node, &self.found);
        if let Some((content, _)) = self.view.node(node).content() {
            let at = num::at(content);
            self.met.resize(self.met.len().max(at + 1), false);
            self.met[at] = true;
        }
        if !self.linked.contains(&node) {
            return file().into();
        }
        match self.first.entry(node) {
            Entry::Occupied(mut first) => {
                let (link, other) = first.get_mut();
                let other = other.get_or_insert_with(|| Arc::new(File { link: Some(link.clone()), ..file() }));
                Arc::clone(other)
            }
            Entry::Vacant(entry) => {
                entry.insert((path.clone(), None));
                file().into()
            }
        }
    }

    /// Returns whether a file has several names.
    pub(super) fn is_linked(&self, node: u32) -> bool {
        self.linked.contains(&node)
    }

    /// Returns all known object ids of this side, visited or not, sorted.
    pub(super) fn ids(&self) -> Vec<&[u8; 32]> {
        let mut ids: Vec<&[u8; 32]> = match self.view {
            View::Index(index) => index.objects().iter().map(|object| &object.id).collect(),
            View::Source(_) => self.found.iter().filter_map(|found| found.id.as_ref()).collect(),
        };
        ids.sort_unstable();
        ids
    }

    /// Returns the node of the other side that had the first visited name of this node, given one that has another.
    pub(super) fn partner(&mut self, node: u32, other: u32) -> u32 {
        if self.linked.contains(&node) {
            self.kept.insert(node);
        }
        *self.partner.entry(node).or_insert(other)
    }

    /// Returns whether this is the name under which the bytes of a file that only this side has are counted.
    pub(super) fn counts(&self, node: u32, file: &File) -> bool {
        file.link.is_none() && !self.kept.contains(&node)
    }
}
