//! Walks two trees at once, name by name, sorted by path component.

use std::collections::BTreeSet;
use std::sync::Arc;

use sealift_format::walk::pairs;

use super::TreePath;
use super::side::View;
use crate::{Error, Progress};
use sealift_store::source::Exclude;

/// Where a walk begins.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) reference: Option<Arc<str>>,
    pub(super) at: Pair,
}

/// A path, and the node of either side there.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) path: TreePath,
    pub(super) old: Option<u32>,
    pub(super) new: Option<u32>,
}

/// The two sides, and what is excluded from both.
#[derive(Clone, Copy)]
pub(super) struct Walk<'a> {
    pub(super) old: View<'a>,
    pub(super) new: View<'a>,
    pub(super) exclude: Option<&'a Exclude>,
    pub(super) left_out: &'a BTreeSet<Vec<u8>>,
    pub(super) progress: &'a Progress,
}

impl<'a> Walk<'a> {
    /// Calls `meet` for the start, and for each name below it on either side: a directory, then everything below it, then its next sibling.
    pub(super) fn run(&self, start: &Pair, meet: &mut dyn FnMut(&Pair)) -> Result<(), Error> {
        meet(start);
        // The directories being walked, and the remaining names of each.
        let mut entered = Vec::new();
        entered.extend(self.names(start).map(|names| (start.path.clone(), names)));
        while let Some((path, names)) = entered.last_mut() {
            let Some((name, old, new)) = names.next() else {
                entered.pop();
                continue;
            };
            let met = Pair { path: path.join(name), old, new };
            let below = self.names(&met);
            let is_excluded = || self.exclude.is_some_and(|exclude| exclude.takes(&met.path.to_vec(), below.is_some()));
            if !self.left_out.is_empty() && self.left_out.contains(&met.path.to_vec()) || is_excluded() {
                continue;
            }
            meet(&met);
            if let Some(below) = below {
                self.progress.check()?;
                entered.push((met.path, below));
            }
        }
        Ok(())
    }

    /// Returns the names in what was met, if it is a directory on either side.
    fn names(&self, met: &Pair) -> Option<impl Iterator<Item = (&'a [u8], Option<u32>, Option<u32>)> + use<'a>> {
        let children = |view: View<'a>, node: Option<u32>| Some(view.children(view.node(node?).directory()?));
        let (old, new) = (children(self.old, met.old), children(self.new, met.new));
        (old.is_some() || new.is_some()).then(|| pairs(old.into_iter().flatten(), new.into_iter().flatten()))
    }
}
