//! The directories of a container, of which its anatomy has only paths.

use sealift_container::{Anatomy, in_tree_order};

/// More directories than this are not listed: each name of a path costs more here than in the path.
const MOST_DIRECTORIES: usize = 200_000;

/// The directories of a container. The first one is its root.
pub(crate) struct Tree {
    pub(crate) directories: Vec<Directory>,
}

/// A directory, of which some file's path has the name.
#[derive(Default)]
pub(crate) struct Directory {
    /// Its path; empty for the root.
    pub(crate) path: Vec<u8>,
    /// What is in it, by name.
    pub(crate) children: Vec<Child>,
}

pub(crate) struct Child {
    pub(crate) name: Vec<u8>,
    pub(crate) what: What,
}

#[derive(Clone, Copy)]
pub(crate) enum What {
    /// A directory, by its number in the tree.
    Directory(usize),
    /// A file, by the number of the member.
    File(usize),
    /// A symbolic link, by its number in the anatomy.
    Symlink(usize),
}

impl Tree {
    /// Returns the directories of a container; `None` if there are too many.
    pub(crate) fn of(anatomy: &Anatomy) -> Option<Self> {
        let members = anatomy.members.iter().enumerate().map(|(number, member)| (&member.path[..], What::File(number)));
        let links = anatomy
            .links
            .iter()
            .filter_map(|link| Some((&link.path[..], What::File(usize::try_from(link.member).ok()?))));
        let symlinks =
            anatomy.symlinks.iter().enumerate().map(|(number, link)| (&link.path[..], What::Symlink(number)));
        let mut all: Vec<(&[u8], What)> = members.chain(links).chain(symlinks).collect();
        all.sort_by(|(one, _), (other, _)| in_tree_order(one, other));
        let mut tree = Self { directories: vec![Directory::default()] };
        // The directories on the way to the last path, with the lengths of their paths in it.
        let mut way: Vec<(usize, usize)> = vec![(0, 0)];
        let mut last: &[u8] = b"";
        for (at, &(path, what)) in all.iter().enumerate() {
            // Of a path that is there several times, the last one counts.
            if all.get(at + 1).is_some_and(|(next, _)| *next == path) {
                continue;
            }
            while way.len() > 1
                && way.last().is_some_and(|(_, len)| !is_below(path, last.get(..*len).unwrap_or_default()))
            {
                way.pop();
            }
            let parent_len = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
            while let Some(&(within, len)) = way.last()
                && len < parent_len
            {
                let start = if len == 0 { 0 } else { len + 1 };
                let name_len = path.get(start..)?.iter().position(|byte| *byte == b'/')?;
                let number = tree.directories.len();
                if number >= MOST_DIRECTORIES {
                    return None;
                }
                let end = start + name_len;
                tree.directories.push(Directory { path: path.get(..end)?.to_vec(), children: Vec::new() });
                let name = path.get(start..end)?.to_vec();
                tree.directories.get_mut(within)?.children.push(Child { name, what: What::Directory(number) });
                way.push((number, end));
            }
            let (within, len) = way.last().copied()?;
            let name = path.get(if len == 0 { 0 } else { len + 1 }..)?.to_vec();
            tree.directories.get_mut(within)?.children.push(Child { name, what });
            last = path;
        }
        Some(tree)
    }
}

fn is_below(path: &[u8], directory: &[u8]) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use sealift_container::{Anatomy, Limits};

    use super::{Tree, What};

    /// Returns a cpio archive with these files, and one byte in each.
    fn archive(paths: &[&str]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (path, len) in paths.iter().map(|path| (*path, 1)).chain([("TRAILER!!!", 0)]) {
            let number = |value: usize| format!("{value:08X}");
            let fields = [0, 0o100_644, 0, 0, 1, 0, len, 0, 0, 0, 0, path.len() + 1, 0].map(number).concat();
            bytes.extend([&b"070701"[..], fields.as_bytes(), path.as_bytes(), b"\0"].concat());
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes.resize((bytes.len() + len).next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn directories_are_found_in_paths() {
        let bytes = archive(&["b/c/d", "a", "b/a", "b-", "b/c-/x", "b/a"]);
        let anatomy = Anatomy::of(&&bytes[..], &Limits::default()).expect("it is sound").expect("it is an archive");
        let tree = Tree::of(&anatomy).expect("there are few");
        let listed = |number: usize| {
            let line = |name: &[u8], what| {
                let name = String::from_utf8_lossy(name);
                match what {
                    What::Directory(number) => format!("{name}/ {number}"),
                    What::File(_) => name.into_owned(),
                    What::Symlink(_) => format!("{name} ->"),
                }
            };
            let children = tree.directories[number].children.iter();
            children.map(|child| line(&child.name, child.what)).collect::<Vec<_>>()
        };
        assert_eq!(listed(0), ["a", "b/ 1", "b-"]);
        assert_eq!(listed(1), ["a", "c/ 2", "c-/ 3"]);
        assert_eq!((listed(2), listed(3)), (vec!["d".to_owned()], vec!["x".to_owned()]));
        assert_eq!(tree.directories[3].path, b"b/c-");
        assert_eq!(tree.directories.len(), 4);
    }
}
