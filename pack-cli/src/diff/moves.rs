//! Finds moved files: removed and added ones with the same content.

use std::collections::{HashMap, VecDeque};

use super::{Change, File, PathDifference};

/// Pairs removed files with added ones of the same ref and object, one to one: first files that kept their name, then the others in tree order. Empty
/// files are all alike, and are not paired.
pub(super) fn find_moves(differences: &[PathDifference]) -> Vec<(usize, usize)> {
    let mut is_paired = vec![false; differences.len()];
    let mut moves = Vec::new();
    for key in [key_with_name, key] {
        let mut removed: HashMap<Key<'_>, VecDeque<usize>> = HashMap::new();
        for (at, difference) in differences.iter().enumerate().filter(|(at, _)| !is_paired[*at]) {
            if let Some(key) = difference.old.as_ref().and_then(|old| key(difference, old))
                && difference.change == Change::Removed
            {
                removed.entry(key).or_default().push_back(at);
            }
        }
        for (at, difference) in differences.iter().enumerate() {
            if difference.change != Change::Added || is_paired[at] {
                continue;
            }
            let key = difference.new.as_ref().and_then(|new| key(difference, new));
            if let Some(from) = key.and_then(|key| removed.get_mut(&key)).and_then(VecDeque::pop_front) {
                moves.push((from, at));
                (is_paired[from], is_paired[at]) = (true, true);
            }
        }
    }
    moves
}

/// What the two files of a pair have in common: ref, object, and the name if it counts.
type Key<'a> = (Option<&'a str>, [u8; 32], &'a [u8]);

fn key<'a>(difference: &'a PathDifference, file: &File) -> Option<Key<'a>> {
    let id = file.id.filter(|_| file.size.is_some_and(|size| size > 0))?;
    Some((difference.reference.as_deref(), id, b""))
}

fn key_with_name<'a>(difference: &'a PathDifference, file: &File) -> Option<Key<'a>> {
    let name = difference.path.name();
    key(difference, file).map(|(reference, id, _)| (reference, id, name))
}

#[cfg(test)]
mod tests {
    use sealift_format::FileType;

    use super::*;
    use crate::Metadata;

    fn difference(change: Change, path: &str, id: u8, size: u64) -> PathDifference {
        let metadata = Metadata {
            permissions: 0o644,
            uid: 0,
            gid: 0,
            mtime: 0,
            mtime_ns: 0,
            xattrs: sealift_format::Xattrs::default(),
        };
        let file = File {
            file_type: FileType::Regular,
            size: Some(size),
            id: Some([id; 32]),
            is_sealed: None,
            target: None,
            device: None,
            metadata,
            link: None,
        };
        let is_old = change == Change::Removed;
        PathDifference {
            change,
            reference: None,
            path: crate::diff::TreePath::of(path.as_bytes()),
            from: None,
            old: is_old.then(|| file.clone().into()),
            new: (!is_old).then_some(file.into()),
            fields: Vec::new(),
            privileged: false,
        }
    }

    #[test]
    fn each_is_paired_once_and_those_of_one_name_first() {
        let differences = [
            difference(Change::Removed, "a/x", 1, 5),
            difference(Change::Removed, "a/y", 1, 5),
            difference(Change::Removed, "a/z", 2, 5),
            difference(Change::Added, "b/n", 1, 5),
            difference(Change::Added, "b/o", 1, 5),
            difference(Change::Added, "b/x", 1, 5),
            difference(Change::Added, "b/z", 3, 5),
        ];
        assert_eq!(find_moves(&differences), [(0, 5), (1, 3)]);
    }

    #[test]
    fn empty_files_are_not_moved() {
        let differences = [difference(Change::Removed, "a", 1, 0), difference(Change::Added, "b", 1, 0)];
        assert_eq!(find_moves(&differences), []);
    }
}
