//! Collects the differences that a walk over both sides finds.

use std::sync::Arc;

use sealift_format::FileType;

use super::compare::Rules;
use super::moves::find_moves;
use super::names::Names;
use super::side::View;
use super::walk::{Pair, Start};
use crate::{Aspect, Keeps};

use super::{Change, Counts, Diff, DiffOptions, Field, File, PathDifference};

/// Collects the differences.
pub(super) struct Collector<'a> {
    old: Names<'a>,
    new: Names<'a>,
    rules: Rules,
    links: bool,
    /// Whether equal files of the old side may be one on the new side.
    links_duplicates: bool,
    counts: Counts,
    differences: Vec<PathDifference>,
    /// The nodes on either side of each difference.
    nodes: Vec<(Option<u32>, Option<u32>)>,
}

impl<'a> Collector<'a> {
    pub(super) fn new(old: Names<'a>, new: Names<'a>, options: &DiffOptions) -> Self {
        let on_disk = old.view.is_source() || new.view.is_source();
        let rules = Rules { ignore: options.ignore, keeps: options.keeps.unwrap_or(Keeps::ALL), on_disk };
        let (counts, differences, nodes) = Default::default();
        let (links, links_duplicates) = (!options.ignore.links, options.linked_duplicates);
        Self { old, new, rules, links, links_duplicates, counts, differences, nodes }
    }

    pub(super) fn meet(&mut self, start: &Start, met: &Pair) {
        self.counts.compared += u64::from(met.old.is_some() || met.new.is_some());
        let old = met.old.map(|node| self.old.file(node, &met.path));
        let new = met.new.map(|node| self.new.file(node, &met.path));
        let (change, fields) = match (&old, &new) {
            (None, None) => return,
            (Some(file), None) if is_device(file) && !self.rules.keeps.has(Aspect::Devices) => return,
            (Some(_), None) => (Change::Removed, Vec::new()),
            (None, Some(_)) => (Change::Added, Vec::new()),
            (Some(a), Some(b)) => {
                let fields = self.fields(met, a, b);
                if fields.is_empty() {
                    return;
                }
                (change_of(&fields), fields)
            }
        };
        let mut difference = PathDifference {
            change,
            reference: start.reference.clone(),
            path: met.path.clone(),
            from: None,
            old,
            new,
            fields,
            privileged: false,
        };
        difference.privileged = self.is_privileged(&difference);
        if difference.privileged && self.rules.ignore.privileged {
            return;
        }
        self.differences.push(difference);
        self.nodes.push((met.old, met.new));
    }

    fn fields(&mut self, met: &Pair, old: &File, new: &File) -> Vec<Field> {
        // Unpacking without root leaves out privileges; a privilege that was added since is not ignored.
        let has_gained = match (self.old.view, self.new.view) {
            (View::Index(_), View::Source(_)) => Rules::has_gained(old, new),
            (View::Source(_), View::Index(_)) => Rules::has_gained(new, old),
            _ => false,
        };
        let rules = if has_gained { self.rules.with_privileged() } else { self.rules };
        let mut fields = rules.fields(old, new);
        if let (Some(a), Some(b)) = (met.old, met.new)
            && old.file_type == new.file_type
            && (self.old.is_linked(a) || self.new.is_linked(b))
        {
            let is_one = self.old.partner(a, b) == b;
            let first = self.new.partner(b, a);
            let may_be_one = first == a || self.links_duplicates && self.old.view.are_alike(first, a);
            if self.links && !(is_one && may_be_one) {
                fields.push(Field::Links);
            }
        }
        fields
    }

    /// Returns whether the difference can result from unpacking without root.
    fn is_privileged(&self, difference: &PathDifference) -> bool {
        let (expected, there) = match (self.old.view, self.new.view) {
            (View::Index(_), View::Source(_)) => (&difference.old, &difference.new),
            (View::Source(_), View::Index(_)) => (&difference.new, &difference.old),
            _ => return false,
        };
        match (expected, there) {
            (Some(expected), None) => is_device(expected),
            (Some(expected), Some(there)) => {
                difference.change == Change::Metadata
                    && there.metadata.uid != 0
                    && !Rules::has_gained(expected, there)
                    && !difference.fields.contains(&Field::Links)
                    && self.rules.without_privileged().fields(expected, there).is_empty()
            }
            _ => false,
        }
    }

    /// Returns, for each object of the new side's index, whether the old side lacks it.
    pub(super) fn new_objects(&self) -> Vec<bool> {
        let View::Index(index) = self.new.view else { return Vec::new() };
        let known = self.old.ids();
        let met = index.objects().iter().zip(&self.new.met);
        met.map(|(object, met)| *met && known.binary_search(&&object.id).is_err()).collect()
    }

    /// Pairs moved files if requested, and counts.
    pub(super) fn finish(mut self, moves: bool) -> Diff {
        let pairs = if moves { find_moves(&self.differences) } else { Vec::new() };
        let mut is_gone = vec![false; self.differences.len()];
        for (from, to) in pairs {
            is_gone[from] = true;
            let removed = &mut self.differences[from];
            let (path, old) = (std::mem::take(&mut removed.path), removed.old.take());
            let moved = &mut self.differences[to];
            if let (Some(old), Some(new)) = (&old, &moved.new) {
                moved.fields = self.rules.fields(old, new);
            }
            (moved.change, moved.from, moved.old) = (Change::Moved, Some(path), old);
        }
        let (mut differences, nodes) = (std::mem::take(&mut self.differences), std::mem::take(&mut self.nodes));
        for ((difference, nodes), is_gone) in differences.iter().zip(nodes).zip(&is_gone) {
            if !is_gone {
                self.count(difference, nodes);
            }
        }
        // In place: two lists of all names would take twice the memory.
        let mut is_gone = is_gone.into_iter();
        differences.retain(|_| is_gone.next() == Some(false));
        Diff { differences, counts: self.counts, ..Diff::default() }
    }

    fn count(&mut self, difference: &PathDifference, (old, new): (Option<u32>, Option<u32>)) {
        let counts = &mut self.counts;
        let size = |file: &Option<Arc<File>>| file.as_ref().and_then(|file| file.size).unwrap_or(0);
        let (old_size, new_size) = (size(&difference.old), size(&difference.new));
        // The bytes of a file are counted only if all its names were added or removed, and only once.
        let counts_for = |names: &Names<'_>, node: Option<u32>, file: &Option<Arc<File>>| {
            node.zip(file.as_ref()).is_some_and(|(node, file)| names.counts(node, file))
        };
        let first = |file: &Option<Arc<File>>| file.as_ref().is_some_and(|file| file.link.is_none());
        let add = |sum: &mut u64, size: u64| *sum = sum.saturating_add(size);
        counts.privileged += u64::from(difference.privileged);
        match difference.change {
            Change::Added => {
                counts.added += 1;
                if counts_for(&self.new, new, &difference.new) {
                    add(&mut counts.added_bytes, new_size);
                }
            }
            Change::Removed => {
                counts.removed += 1;
                if counts_for(&self.old, old, &difference.old) {
                    add(&mut counts.removed_bytes, old_size);
                }
            }
            Change::Changed => {
                counts.changed += 1;
                add(&mut counts.changed_old_bytes, if first(&difference.old) { old_size } else { 0 });
                add(&mut counts.changed_new_bytes, if first(&difference.new) { new_size } else { 0 });
            }
            Change::Moved => {
                counts.moved += 1;
                add(&mut counts.moved_bytes, if first(&difference.new) { new_size } else { 0 });
            }
            Change::Unsealed => counts.unsealed += 1,
            Change::Metadata => counts.metadata += 1,
        }
    }
}

fn is_device(file: &File) -> bool {
    matches!(file.file_type, FileType::CharDevice | FileType::BlockDevice)
}

/// Returns the kind of change: a difference in anything but metadata makes it `Changed`.
fn change_of(fields: &[Field]) -> Change {
    let is_content = |field: &Field| matches!(field, Field::Type | Field::Content | Field::Target | Field::Device);
    match fields {
        _ if fields.iter().any(is_content) => Change::Changed,
        _ if fields.contains(&Field::Seal) => Change::Unsealed,
        _ => Change::Metadata,
    }
}
