//! Dirtrees, the entries of directories: `(a(say)a(sayay))` (libostree: `OSTREE_TREE_GVARIANT_FORMAT`).

use alloc::vec::Vec;

use super::framing::{Elements, Shape, Writer, members, text};
use super::{Checksum, Malformed};
use crate::name::component_fault;

/// The entries of a directory. In each list names ascend by their bytes, and no name is in both lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirTree<'a> {
    /// Name and file object of regular files and symbolic links.
    pub files: Vec<(&'a [u8], &'a Checksum)>,
    /// Name, dirtree and dirmeta of directories.
    pub directories: Vec<(&'a [u8], &'a Checksum, &'a Checksum)>,
}

impl<'a> DirTree<'a> {
    /// Parses a dirtree object.
    ///
    /// # Errors
    /// Returns an error if it is not in normal form, or if its names are not in order or invalid. Names are UTF-8 of 1 to 255 bytes without `/`, and
    /// not `.` or `..`.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let [files, directories] = members(bytes, [Shape::BYTES; 2])?;
        let mut tree = Self::default();
        for entry in Elements::of(files, 1)? {
            let [name, file] = members(entry?, [Shape::BYTES; 2])?;
            let name = next_name(name, tree.files.last().map(|entry| entry.0))?;
            tree.files.push((name, checksum(file)?));
        }
        for entry in Elements::of(directories, 1)? {
            let [name, tree_sum, meta_sum] = members(entry?, [Shape::BYTES; 3])?;
            let name = next_name(name, tree.directories.last().map(|entry| entry.0))?;
            tree.directories.push((name, checksum(tree_sum)?, checksum(meta_sum)?));
        }
        tree.check_names()?;
        Ok(tree)
    }

    /// Encodes the dirtree object. The rules of [`Self::parse`] are not checked: readers refuse an object that breaks them.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut files = Writer::default();
        for (name, file) in &self.files {
            files.put(Shape::BYTES, &encode_entry(name, &[file]));
        }
        let mut directories = Writer::default();
        for (name, tree, meta) in &self.directories {
            directories.put(Shape::BYTES, &encode_entry(name, &[tree, meta]));
        }
        let mut writer = Writer::default();
        writer.put(Shape::BYTES, &files.array());
        writer.put(Shape::BYTES, &directories.array());
        writer.tuple()
    }

    fn check_names(&self) -> Result<(), Malformed> {
        let mut directories = self.directories.iter().map(|entry| entry.0).peekable();
        for (file, _) in &self.files {
            while directories.next_if(|name| name < file).is_some() {}
            if directories.peek() == Some(file) {
                return Err(Malformed::new("a name is that of a file and of a directory"));
            }
        }
        Ok(())
    }
}

fn next_name<'a>(bytes: &'a [u8], last: Option<&[u8]>) -> Result<&'a [u8], Malformed> {
    let name = text(bytes)?.as_bytes();
    if component_fault(name).is_some() {
        return Err(Malformed::new("a name is empty, . or .., has a slash, or more than 255 bytes"));
    }
    if last.is_some_and(|last| last >= name) {
        return Err(Malformed::new("names do not ascend"));
    }
    Ok(name)
}

/// Converts bytes to a checksum.
pub(super) fn checksum(bytes: &[u8]) -> Result<&Checksum, Malformed> {
    bytes.try_into().map_err(|_| Malformed::new("a checksum is not 32 bytes long"))
}

fn encode_entry(name: &[u8], checksums: &[&Checksum]) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.put(Shape::BYTES, &[name, &[0]].concat());
    for checksum in checksums {
        writer.put(Shape::BYTES, *checksum);
    }
    writer.tuple()
}

#[cfg(test)]
mod tests {
    use alloc::collections::{BTreeMap, BTreeSet};
    use alloc::string::String;

    use proptest::prelude::*;

    use super::*;
    use crate::ostree::tests::{hex, sum, unhex};

    #[test]
    fn nothing() {
        let empty = DirTree::default();
        assert_eq!(empty.encode(), [0]);
        assert_eq!(sum(&empty.encode()), "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
        assert_eq!(DirTree::parse(&[0]), Ok(empty));
        assert!(DirTree::parse(&[]).is_err() && DirTree::parse(&[0, 0]).is_err());
    }

    #[test]
    fn a_file_and_a_directory() {
        let foo = unhex("3af11ec5cb8961214224eb336d2418783a941c925225b6cf64e6231325b749f2");
        let sub = unhex("6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
        let meta = unhex("446a0ef11b7cc167f3b603e585c7eeeeb675faa412d5ec73f62988eb0b6c5488");
        let tree =
            DirTree { files: [(&b"foo"[..], &foo)].to_vec(), directories: [(&b"sub"[..], &sub, &meta)].to_vec() };
        let bytes = tree.encode();
        assert_eq!(bytes.len(), 110);
        assert_eq!(hex(&bytes[106..]), "24044626");
        assert_eq!(sum(&bytes), "7f59b259fb9f1b146addb3204ed99e5f9fd5d122c016d217e7bc2f416b1bcd4b");
        assert_eq!(DirTree::parse(&bytes), Ok(tree));
    }

    #[test]
    fn names() {
        let files = |names: &[&'static [u8]]| {
            let files = names.iter().map(|name| (*name, &[7; 32])).collect();
            DirTree::parse(&DirTree { files, directories: Vec::new() }.encode()).map(drop)
        };
        assert_eq!(files(&[b"A", b"a", &[b'x'; 255], b"\xc3\xa4"]), Ok(()));
        for bad in [&b""[..], b".", b"..", b"a/b", b"a\0b", b"\xff", &[b'x'; 256]] {
            assert!(files(&[bad]).is_err(), "{bad:?}");
        }
        assert!(files(&[b"a", b"a"]).is_err() && files(&[b"b", b"a"]).is_err());
        let both = DirTree {
            files: [(&b"b"[..], &[7; 32])].to_vec(),
            directories: [(&b"a"[..], &[7; 32], &[7; 32]), (&b"b"[..], &[7; 32], &[7; 32])].to_vec(),
        };
        assert!(DirTree::parse(&both.encode()).is_err());
    }

    #[test]
    fn checksums() {
        let mut writer = Writer::default();
        writer.put_text("a");
        writer.put(Shape::BYTES, &[7; 31]);
        let mut files = Writer::default();
        files.put(Shape::BYTES, &writer.tuple());
        let mut tree = Writer::default();
        tree.put(Shape::BYTES, &files.array());
        tree.put(Shape::BYTES, &[]);
        assert_eq!(DirTree::parse(&tree.tuple()).expect_err("it is short").reason(), "a checksum is not 32 bytes long");
    }

    proptest! {
        #[test]
        fn any_tree_comes_back(
            files in prop::collection::btree_map("[^/\0]{1,20}", any::<[u8; 32]>(), 0..20),
            directories in prop::collection::btree_map("[^/\0]{1,20}", any::<[[u8; 32]; 2]>(), 0..20),
        ) {
            let directories: BTreeMap<_, _> = directories.into_iter().filter(|(name, _)| !files.contains_key(name)).collect();
            prop_assume!(files.keys().chain(directories.keys()).all(|name| name != "." && name != ".."));
            let tree = DirTree {
                files: files.iter().map(|(name, file)| (name.as_bytes(), file)).collect(),
                directories: directories.iter().map(|(name, [tree, meta])| (name.as_bytes(), tree, meta)).collect(),
            };
            let bytes = tree.encode();
            prop_assert_eq!(DirTree::parse(&bytes), Ok(tree));
        }

        #[test]
        fn no_other_bytes_are_taken(
            names in prop::collection::btree_set("[ab]{1,3}", 0..5), at in any::<prop::sample::Index>(), byte: u8, cut in 0..3_usize,
        ) {
            let names: BTreeSet<String> = names;
            let tree = DirTree {
                files: names.iter().map(|name| (name.as_bytes(), &[7; 32])).collect(),
                directories: [(&b"c"[..], &[7; 32], &[8; 32])].to_vec(),
            };
            let mut bytes = tree.encode();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            bytes.truncate(bytes.len() - cut);
            if let Ok(parsed) = DirTree::parse(&bytes) {
                prop_assert_eq!(parsed.encode(), bytes);
            }
        }

        #[test]
        fn arbitrary_bytes(bytes in prop::collection::vec(prop_oneof![Just(0), 0..40_u8, any::<u8>()], 0..80)) {
            if let Ok(parsed) = DirTree::parse(&bytes) {
                prop_assert_eq!(parsed.encode(), bytes);
            }
        }
    }
}
