//! Finds the files that have to be read before two sides can be compared.

use sealift_format::num;
use std::collections::HashSet;

use super::DiffOptions;
use super::side::View;
use super::walk::Pair;
use sealift_store::contents::Want;

/// What must be read of each side before the comparison.
pub(super) struct ReadWishes<'a> {
    old: WishList<'a>,
    new: WishList<'a>,
    /// What is needed of two files that differ in size.
    xattrs: Want,
    /// Whether it matters which contents the sides have at other paths.
    elsewhere: bool,
}

struct WishList<'a> {
    view: View<'a>,
    wanted: Vec<Want>,
    /// Contents that the other side does not have at the same path, with their sizes.
    open: Vec<(u32, u64)>,
}

impl<'a> ReadWishes<'a> {
    pub(super) fn new(old: View<'a>, new: View<'a>, options: &DiffOptions, takes: bool) -> Self {
        let list = |view| WishList { view, wanted: Vec::new(), open: Vec::new() };
        Self {
            old: list(old),
            new: list(new),
            xattrs: if options.ignore.xattrs { Want::Nothing } else { Want::Xattrs },
            elsewhere: (options.moves || takes) && (old.is_source() || new.is_source()),
        }
    }

    pub(super) fn meet(&mut self, met: &Pair) {
        let old = met.old.and_then(|node| self.old.view.node(node).content());
        let new = met.new.and_then(|node| self.new.view.node(node).content());
        let want = match (old, new) {
            (Some((_, old)), Some((_, new))) if old == new => Want::Id,
            (Some(_), Some(_)) => self.xattrs,
            _ => Want::Nothing,
        };
        self.old.wish(old, want, self.elsewhere);
        self.new.wish(new, want, self.elsewhere);
    }

    /// Returns what to read of the contents of each side. A content that occurs at another path has the same size there: others need not be read.
    pub(super) fn finish(mut self) -> (Vec<Want>, Vec<Want>) {
        if self.elsewhere {
            let sizes = |list: &WishList<'_>| list.open.iter().map(|(_, size)| *size).collect::<HashSet<u64>>();
            let (old_sizes, new_sizes) = (sizes(&self.old), sizes(&self.new));
            self.old.wish_open(&new_sizes);
            self.new.wish_open(&old_sizes);
        }
        (self.old.wanted, self.new.wanted)
    }
}

impl WishList<'_> {
    fn wish(&mut self, content: Option<(u32, u64)>, want: Want, elsewhere: bool) {
        let Some((content, size)) = content else { return };
        if elsewhere && want != Want::Id {
            self.open.push((content, size));
        }
        if self.view.is_source() {
            self.raise(content, want);
        }
    }

    fn wish_open(&mut self, sizes: &HashSet<u64>) {
        if !self.view.is_source() {
            return;
        }
        for (content, _) in std::mem::take(&mut self.open).into_iter().filter(|(_, size)| sizes.contains(size)) {
            self.raise(content, Want::Id);
        }
    }

    fn raise(&mut self, content: u32, want: Want) {
        let at = num::at(content);
        if self.wanted.len() <= at {
            self.wanted.resize(at + 1, Want::Nothing);
        }
        self.wanted[at] = self.wanted[at].max(want);
    }
}
