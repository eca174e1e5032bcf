//! Finds base objects that resemble a carried one: by its path, its name, a name that differs in a version, or its content.

use std::collections::{HashMap, HashSet};

use sealift_format::num;
use sealift_format::{BaseObject, Object, Row, Rows};

use super::{row, similar};
use crate::pack::PackOptions;
use crate::pack::names::{likeness, skeleton, split};
use crate::pack::order::for_each_path;
use crate::pack::recipe::BaseViews;
use crate::pack::sequence::{PackedObject, Sequenced};
use crate::{Error, Progress};
use sealift_store::base::Bases;
use sealift_store::source::Source;

/// Up to this size, a file at a new path is compared with siblings of a similar name: it often began as a copy of one.
const SMALL: u64 = 64 << 10;
/// The most base objects for a small object.
const SEVERAL: usize = 3;

/// A base is far if this number times the bytes of the carried objects is at least its own bytes.
const FAR: u64 = 8;
/// The most base objects of which all are compared by content: each takes 600 bytes of memory for it.
const MOST: usize = 1 << 18;

/// A file of a base.
struct BaseFile {
    path: Vec<u8>,
    object: Row<BaseObject>,
}

/// Files of the bases, indexed by their names.
struct Names<'a> {
    files: &'a [BaseFile],
    by_path: HashMap<&'a [u8], usize>,
    by_name: HashMap<&'a [u8], Vec<usize>>,
    /// By the skeletons of paths and of names.
    by_path_skeleton: HashMap<Vec<u8>, Vec<usize>>,
    by_name_skeleton: HashMap<Vec<u8>, Vec<usize>>,
    by_family: HashMap<Family<'a>, Vec<usize>>,
}

/// What a file's siblings of the same kind have in common with it.
#[derive(PartialEq, Eq, Hash)]
struct Family<'a> {
    directory: &'a [u8],
    /// The end of the name, from the last dot on.
    extension: Option<&'a [u8]>,
}

impl<'a> Family<'a> {
    fn of(path: &'a [u8]) -> Self {
        let (directory, name) = split(path);
        let dot = name.iter().rposition(|byte| *byte == b'.');
        Self { directory, extension: dot.map(|dot| &name[dot..]) }
    }
}

/// Returns, for each carried object, the base objects that resemble it, the best first. By content, objects at new paths are compared with all of a
/// far base, and of a near one those that resemble none by name with what was removed.
pub(super) fn choose(
    sources: &[&Source],
    packed: &Sequenced,
    carried: &[Row<PackedObject>],
    bases: &Bases,
    views: Option<(&BaseViews, u32)>,
    options: &PackOptions,
    progress: &Progress,
) -> Result<Vec<Vec<Row<BaseObject>>>, Error> {
    let mut files = base_files(bases);
    if let Some((views, base_objects)) = views {
        files.extend(views.files().filter_map(|(path, view)| {
            Some(BaseFile { path: path.to_vec(), object: Row::new(base_objects.checked_add(view)?)? })
        }));
    }
    let names = Names::new(&files);
    let paths = paths(sources, packed, carried);
    let mut choice: Vec<Vec<_>> = carried
        .iter()
        .map(|object| {
            let from = row(packed, *object);
            let most = if from.size() <= SMALL { SEVERAL } else { 1 };
            paths.get(object).map_or_else(Vec::new, |path| names.resembling(path, most))
        })
        .collect();
    let mut with: Vec<_> = files.iter().map(|file| file.object).collect();
    with.sort_unstable();
    with.dedup();
    let is_far = is_far(packed, carried, bases, &with);
    if !is_far {
        // Files that were removed and that resemble no file by name may have been moved and changed.
        let taken: HashSet<_> = choice.iter().flatten().copied().collect();
        let known: HashSet<[u8; 32]> = packed.objects.iter().map(|object| object.id).collect();
        let is_gone = |row: &Object| !known.contains(&row.id);
        with.retain(|object| !taken.contains(object) && bases.object(*object).is_some_and(is_gone));
    }
    let is_new = |at: &usize| match paths.get(&carried[*at]) {
        Some(path) if is_far => !names.by_path.contains_key(&path[..]),
        _ => choice[*at].is_empty(),
    };
    let new: Vec<usize> = (0..carried.len()).filter(is_new).collect();
    let objects: Vec<_> = new.iter().map(|at| carried[*at]).collect();
    let found = similar::find(sources, packed, &objects, bases, &with, options.jobs, progress)?;
    for (at, found) in new.into_iter().zip(found) {
        let Some(found) = found else { continue };
        // What they share is known; of the others, only their names.
        let most = if row(packed, carried[at]).size() <= SMALL { SEVERAL } else { 1 };
        choice[at].retain(|other| *other != found);
        choice[at].insert(0, found);
        choice[at].truncate(most);
    }
    Ok(choice)
}

/// Returns whether so much is new that to read all of the bases takes little of the time of compressing it.
fn is_far(packed: &Sequenced, carried: &[Row<PackedObject>], bases: &Bases, with: &[Row<BaseObject>]) -> bool {
    let of_bases: u64 = with.iter().filter_map(|object| bases.object(*object)).map(|row| row.size).sum();
    let new: u64 = carried.iter().map(|object| row(packed, *object).size()).sum();
    with.len() <= MOST && new.saturating_mul(FAR) >= of_bases
}

/// Returns the non-empty, readable regular files of all bases, in order.
fn base_files(bases: &Bases) -> Vec<BaseFile> {
    let mut files = Vec::new();
    let mut of_bases = Rows::new(0..u32::MAX);
    for index in bases.indexes() {
        let of_index: Vec<Row<BaseObject>> = of_bases.by_ref().take(index.objects().len()).collect();
        for (directory, entry, object) in index.refs().iter().flat_map(|tree| index.regulars(tree)) {
            let (size, object) = (index.object(object).size, of_index[object.at()]);
            if size > 0 && bases.is_at_hand(object) {
                files.push(BaseFile { path: index.path(directory, entry), object });
            }
        }
    }
    files
}

/// Returns the first path of each carried object.
fn paths(
    sources: &[&Source],
    packed: &Sequenced,
    carried: &[Row<PackedObject>],
) -> HashMap<Row<PackedObject>, Vec<u8>> {
    let wanted: HashSet<_> = carried.iter().copied().collect();
    let mut paths: HashMap<_, Vec<u8>> = HashMap::new();
    for (number, source) in sources.iter().enumerate() {
        let mut add = |path: &[u8], content: u32| {
            let object = packed.object_of[number][num::at(content)];
            if !wanted.contains(&object) {
                return;
            }
            // Of several paths, always the same one is chosen, whatever the order of the walk.
            let known = paths.entry(object).or_insert_with(|| path.to_vec());
            if path < &known[..] {
                *known = path.to_vec();
            }
        };
        match source {
            Source::Leaves(leaves) => source.contents().for_each(|leaf| add(leaves.path_of(leaf), leaf)),
            _ => for_each_path(source, add),
        }
    }
    paths
}

impl<'a> Names<'a> {
    fn new(files: &'a [BaseFile]) -> Self {
        let mut names = Self {
            files,
            by_path: HashMap::new(),
            by_name: HashMap::new(),
            by_path_skeleton: HashMap::new(),
            by_name_skeleton: HashMap::new(),
            by_family: HashMap::new(),
        };
        for (at, file) in files.iter().enumerate() {
            let (_, name) = split(&file.path);
            names.by_path.entry(&file.path).or_insert(at);
            names.by_name.entry(name).or_default().push(at);
            names.by_path_skeleton.entry(skeleton(&file.path)).or_default().push(at);
            names.by_name_skeleton.entry(skeleton(name)).or_default().push(at);
            names.by_family.entry(Family::of(&file.path)).or_default().push(at);
        }
        names
    }

    /// Returns at most `most` base objects for the file at `path`, the best first. The previous file at the path is enough: with it, siblings cost
    /// more than they save (spec/rationale.md, "What resembles what").
    fn resembling(&self, path: &[u8], most: usize) -> Vec<Row<BaseObject>> {
        if let Some(at) = self.by_path.get(path) {
            return vec![self.files[*at].object];
        }
        let (_, name) = split(path);
        let of = |files: Option<&Vec<usize>>| self.ranked(files.map_or(&[][..], Vec::as_slice), path);
        // From the most reliable to the least.
        let ways: [&dyn Fn() -> Vec<usize>; 4] = [
            &|| of(self.by_path_skeleton.get(&skeleton(path))),
            &|| first_of(of(self.by_name.get(name))),
            &|| first_of(of(self.by_name_skeleton.get(&skeleton(name)))),
            &|| if most > 1 { of(self.by_family.get(&Family::of(path))) } else { Vec::new() },
        ];
        let mut found: Vec<_> = Vec::new();
        for way in ways {
            for at in way() {
                let object = self.files[at].object;
                if found.len() < most && !found.contains(&object) {
                    found.push(object);
                }
            }
            if found.len() == most {
                break;
            }
        }
        found
    }

    /// Returns these files, those of the most similar paths first.
    fn ranked(&self, files: &[usize], path: &[u8]) -> Vec<usize> {
        // A name such as Makefile occurs in thousands of directories: only those nearest in order are compared.
        let near = files.partition_point(|at| &self.files[*at].path[..] < path);
        let start = near.saturating_sub(NEAR);
        let end = files.len().min(near + NEAR);
        let mut files = files[start..end].to_vec();
        files.sort_by_key(|at| (std::cmp::Reverse(likeness(&self.files[*at].path, path)), *at));
        files
    }
}

/// Files compared on either side.
const NEAR: usize = 64;

fn first_of(mut files: Vec<usize>) -> Vec<usize> {
    files.truncate(1);
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_path_had_comes_alone_and_others_by_name() {
        let paths = ["lib/libfoo.so.1.2", "src/one.c", "src/two.c", "src/two.h"];
        let files: Vec<BaseFile> =
            Rows::new(0..4).zip(paths).map(|(object, path)| BaseFile { path: path.into(), object }).collect();
        let names = Names::new(&files);
        let resembling = |path, most| names.resembling(path, most).iter().map(|object| object.at()).collect::<Vec<_>>();
        assert_eq!(resembling(b"src/one.c", SEVERAL), [1], "the same path, and no siblings");
        assert_eq!(resembling(b"lib/libfoo.so.1.3", 1), [0], "another version");
        assert_eq!(resembling(b"elsewhere/two.h", 1), [3], "moved");
        let mut siblings = resembling(b"src/three.c", SEVERAL);
        siblings.sort_unstable();
        assert_eq!(siblings, [1, 2], "new: siblings of its extension");
        assert!(resembling(b"src/three.c", 1).is_empty(), "siblings are for small files");
    }
}
