//! Two trees at once, in tree order (spec 6.1), name by name.

use std::cmp::Ordering;

use super::side::View;
use crate::source::Exclude;
use crate::{Error, Progress};

/// Where a walk begins: a path, and the node that either side has there.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) reference: Option<String>,
    pub(super) path: Vec<u8>,
    pub(super) old: Option<u32>,
    pub(super) new: Option<u32>,
}

/// A name, and the node that either side has under it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Met<'a> {
    directory: &'a [u8],
    name: &'a [u8],
    pub(super) old: Option<u32>,
    pub(super) new: Option<u32>,
}

impl Met<'_> {
    pub(super) fn path(&self) -> Vec<u8> {
        if self.directory.is_empty() { self.name.to_vec() } else { [self.directory, self.name].join(&b'/') }
    }
}

/// A directory that is still to be entered.
struct Pending {
    path: Vec<u8>,
    old: Option<u32>,
    new: Option<u32>,
}

/// The two sides, and what is left out of both.
#[derive(Clone, Copy)]
pub(super) struct Walk<'a> {
    pub(super) old: View<'a>,
    pub(super) new: View<'a>,
    pub(super) exclude: Option<&'a Exclude>,
    pub(super) progress: &'a Progress,
}

impl Walk<'_> {
    /// Calls `meet` for the start, and for each name below it that a side has.
    pub(super) fn run(&self, start: &Start, meet: &mut dyn FnMut(Met<'_>)) -> Result<(), Error> {
        let first = Met { directory: &[], name: &start.path, old: start.old, new: start.new };
        meet(first);
        let mut pending: Vec<Pending> = self.below(&first).into_iter().collect();
        while let Some(directory) = pending.pop() {
            self.progress.check()?;
            let below = pending.len();
            self.enter(&directory, &mut |met| {
                if !self.leaves_out(&met) {
                    meet(met);
                    pending.extend(self.below(&met));
                }
            });
            pending[below..].reverse();
        }
        Ok(())
    }

    /// Merges the names of a directory of each side.
    fn enter(&self, directory: &Pending, meet: &mut dyn FnMut(Met<'_>)) {
        let olds = directory.old.map(|old| self.old.children(old)).unwrap_or_default();
        let news = directory.new.map(|new| self.new.children(new)).unwrap_or_default();
        let (mut olds, mut news) = (olds.into_iter().peekable(), news.into_iter().peekable());
        loop {
            let order = match (olds.peek(), news.peek()) {
                (None, None) => return,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((old, _)), Some((new, _))) => old.cmp(new),
            };
            let old = if order.is_le() { olds.next() } else { None };
            let new = if order.is_ge() { news.next() } else { None };
            let name = old.or(new).map(|(name, _)| name).unwrap_or_default();
            let (old, new) = (old.map(|(_, node)| node), new.map(|(_, node)| node));
            meet(Met { directory: &directory.path, name, old, new });
        }
    }

    fn below(&self, met: &Met<'_>) -> Option<Pending> {
        let old = met.old.and_then(|old| self.old.node(old).directory());
        let new = met.new.and_then(|new| self.new.node(new).directory());
        (old.is_some() || new.is_some()).then(|| Pending { path: met.path(), old, new })
    }

    fn leaves_out(&self, met: &Met<'_>) -> bool {
        let Some(exclude) = self.exclude else { return false };
        exclude.takes(&met.path(), self.below(met).is_some())
    }
}
