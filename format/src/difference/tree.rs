//! Reads the edits in tree order, and checks the rules of their trees (delta 5.4).

use alloc::vec::Vec;

use crate::attributes::FileType;
use crate::name::component_fault;
use crate::num::wide;
use crate::walk::TreeOrder;
use crate::{Error, Row, Rows};

use crate::index::row_fault;

use super::parse::ParsedRef;
use super::shape::{Contents, Shape};
use super::{Difference, Edit, EditedKind, EditedRef, NewContent, Op, number};

impl Difference {
    /// Walks the trees of edits in tree order (core 6.1).
    pub(super) fn read_trees(
        &mut self,
        refs: Vec<ParsedRef>,
        name_lens: &[u8],
        shapes: &[Shape],
        mut contents: Contents,
    ) -> Result<(), Error> {
        let mut rows = shapes.iter().zip(name_lens);
        let mut name_at = 0;
        let mut next = |parent: Option<Row<Edit>>| {
            let (shape, name_len) = rows.next()?;
            let edit = Edit {
                name_at,
                name_len: *name_len,
                parent,
                first_edit: 0,
                block_len: if shape.has_block() { contents.block_lens.next().unwrap_or(0) } else { 0 },
                op: contents.op(shape),
            };
            name_at += u32::from(*name_len) + 1;
            Some(edit)
        };
        let mut commit_refs = 0..;
        for ParsedRef { name, from, is_commit } in refs {
            if is_commit {
                let kind = EditedKind::Commit(commit_refs.next().unwrap_or(0));
                self.refs.push(EditedRef { name, from, kind });
                continue;
            }
            let root = Row::after(self.edits.len())?;
            let Some(edit) = next(None) else {
                return Err(row_fault("the root of a ref is missing", self.edits.len()));
            };
            let fits = match edit.op {
                Op::Added(_) => from.is_none(),
                Op::Within | Op::Changed(_) => from.is_some(),
                _ => false,
            };
            if !fits || !edit.op.has_block() || edit.name_len != 0 {
                return Err(row_fault(
                    "a ref's root is no directory, has a name, or is not as its base says",
                    root.at(),
                ));
            }
            self.edits.push(edit);
            let mut order = TreeOrder::new(root);
            while let Some(parent) = order.pop() {
                let first = number(self.edits.len())?;
                let block_len = self.edits[parent.at()].block_len;
                if block_len > 0 {
                    self.edits[parent.at()].first_edit = first;
                }
                for own in Rows::new(first..first.saturating_add(block_len)) {
                    let Some(edit) = next(Some(parent)) else {
                        return Err(row_fault("a directory's block passes the end of the edits", parent.at()));
                    };
                    self.check_edit(own.at(), &edit, own.number() == first)?;
                    if edit.op.has_block() {
                        order.push(own);
                    }
                    self.edits.push(edit);
                }
            }
            self.refs.push(EditedRef { name, from, kind: EditedKind::Tree(root) });
        }
        if self.edits.len() != shapes.len() {
            return Err(row_fault("edits are left after the last tree", self.edits.len()));
        }
        Ok(())
    }

    /// Checks an edit below a root, alone and together with the one before it in its block.
    fn check_edit(&self, own: usize, edit: &Edit, is_first: bool) -> Result<(), Error> {
        let name = self.name(edit);
        let before = self.edits.last().filter(|_| !is_first);
        if before.is_some_and(|before| self.name(before) >= name) {
            return Err(row_fault("the names of a directory's edits do not ascend", own));
        }
        if edit.op == Op::Within && edit.block_len == 0 {
            return Err(row_fault("a directory is named of which nothing changes", own));
        }
        let parent = edit.parent.map(|parent| self.edit(parent).op);
        if edit.op.is_of_base() && parent.is_some_and(|parent| parent.new_file().is_some()) {
            return Err(row_fault("an edit of what the base has is below a new directory", own));
        }
        Ok(())
    }

    /// Checks that each link is to a kept file of its ref or to a new one before it, and that an unchanged file is listed only if a name is linked to
    /// it.
    pub(super) fn check_links(&self) -> Result<(), Error> {
        let mut is_linked = alloc::vec![false; self.edits.len()];
        let starts: Vec<usize> = self.trees().map(|(root, _)| root.at()).collect();
        let ends = starts.iter().skip(1).copied().chain([self.edits.len()]);
        for (start, end) in starts.iter().copied().zip(ends) {
            for own in start..end {
                let Some(link) = self.edits[own].op.link() else { continue };
                let link = link.at();
                let fits = (start..end).contains(&link)
                    && match self.edits[link].op {
                        Op::Named => true,
                        Op::Changed(changed) => changed.file_type != FileType::Directory,
                        Op::Added(file) | Op::Replaced(file) => link < own && file.content != NewContent::Directory,
                        _ => false,
                    };
                if !fits {
                    return Err(row_fault("a hard link is not to a file of its ref that comes or stays", own));
                }
                is_linked[link] = true;
            }
        }
        match self.edits.iter().zip(is_linked).position(|(edit, is_linked)| edit.op == Op::Named && !is_linked) {
            Some(own) => Err(row_fault("the delta lists an unchanged file without a reason", own)),
            None => Ok(()),
        }
    }

    pub(super) fn check_names(&self) -> Result<(), Error> {
        let below = (0..).zip(&self.edits).filter(|(_, edit)| edit.parent.is_some());
        let mut faults = below.map(|(entry, edit)| (entry, component_fault(self.name(edit))));
        match faults.find_map(|(entry, what)| Some(Error::Path { entry, what: what? })) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    pub(super) fn check_entries(&self, entries_max: u64) -> Result<(), Error> {
        let names = self.edits.iter().filter(|edit| edit.parent.is_some() && edit.op != Op::Removed).count();
        if wide(names) > entries_max {
            return Err(Error::Maximum { what: "entries", declared: entries_max, found: wide(names) });
        }
        Ok(())
    }
}
