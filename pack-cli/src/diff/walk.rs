//! Walks two trees at once, name by name, sorted by path component.

use std::iter::Flatten;
use std::sync::Arc;

use sealift_format::walk::{Pairs, pairs};

use super::TreePath;
use super::side::{Children, View};
use crate::{Error, Progress};
use sealift_store::source::Exclude;

/// Where a walk begins: a path, and the node of either side there.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) reference: Option<Arc<str>>,
    pub(super) path: TreePath,
    pub(super) old: Option<u32>,
    pub(super) new: Option<u32>,
}

/// A path, and the node of either side there.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) path: TreePath,
    pub(super) old: Option<u32>,
    pub(super) new: Option<u32>,
}

/// A directory being walked, and its remaining names.
struct Entered<'a> {
    path: TreePath,
    names: Pairs<Names<'a>, Names<'a>>,
}

/// Those of one side, which may have no directory there.
type Names<'a> = Flatten<std::option::IntoIter<Children<'a>>>;

/// The two sides, and what is excluded from both.
#[derive(Clone, Copy)]
pub(super) struct Walk<'a> {
    pub(super) old: View<'a>,
    pub(super) new: View<'a>,
    pub(super) exclude: Option<&'a Exclude>,
    pub(super) progress: &'a Progress,
}

impl<'a> Walk<'a> {
    /// Calls `meet` for the start, and for each name below it on either side: a directory, then everything below it, then its next sibling.
    pub(super) fn run(&self, start: &Start, meet: &mut dyn FnMut(&Pair)) -> Result<(), Error> {
        let first = Pair { path: start.path.clone(), old: start.old, new: start.new };
        meet(&first);
        let mut entered: Vec<Entered<'a>> = self.enter(&first).into_iter().collect();
        while let Some(directory) = entered.last_mut() {
            let Some(met) = directory.next() else {
                entered.pop();
                continue;
            };
            let below = self.enter(&met);
            if self.leaves_out(&met, below.is_some()) {
                continue;
            }
            meet(&met);
            if below.is_some() {
                self.progress.check()?;
            }
            entered.extend(below);
        }
        Ok(())
    }

    fn enter(&self, met: &Pair) -> Option<Entered<'a>> {
        let old = met.old.and_then(|old| self.old.node(old).directory());
        let new = met.new.and_then(|new| self.new.node(new).directory());
        (old.is_some() || new.is_some()).then(|| Entered {
            path: met.path.clone(),
            names: pairs(
                old.map(|old| self.old.children(old)).into_iter().flatten(),
                new.map(|new| self.new.children(new)).into_iter().flatten(),
            ),
        })
    }

    fn leaves_out(&self, met: &Pair, is_directory: bool) -> bool {
        self.exclude.is_some_and(|exclude| exclude.takes(&met.path.to_vec(), is_directory))
    }
}

impl Entered<'_> {
    /// Returns the next name of either side.
    fn next(&mut self) -> Option<Pair> {
        let (name, old, new) = self.names.next()?;
        Some(Pair { path: self.path.join(name), old, new })
    }
}
