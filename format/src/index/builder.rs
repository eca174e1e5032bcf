//! Builds an index (core 6).

use alloc::vec::Vec;

use sha2::{Digest as _, Sha256};

use crate::bytes::{Widths, put_planes, put_u32s, write_section};
use crate::digest_map::DigestMap;
use crate::num::{self, wide};
use crate::{Error, Row};

use super::ostree::Columns;
use super::{Device, Inode, Object, OsTreeKind};
use crate::attributes::Attributes;

/// The type of a new inode, and what depends on it, for [`IndexBuilder::inode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "core 6.4 lists the types")]
pub enum Node<'a> {
    /// A directory.
    Directory {
        /// The number of entries in its block.
        children: u32,
    },
    /// A regular file.
    Regular {
        /// The caller's number for its content.
        content: u32,
    },
    /// A symbolic link with this target.
    Symlink(&'a [u8]),
    /// A block or character device.
    Device(Device),
    /// A fifo or a socket.
    Plain,
}

/// Takes refs, inodes and entries in tree order (core 6.1), and returns the index's bytes.
#[derive(Debug, Default)]
pub struct IndexBuilder {
    refs: Vec<u8>,
    ref_count: usize,
    name_lens: Vec<u8>,
    links: Vec<Option<Row<Inode>>>,
    names: Vec<u8>,
    inode_attributes: Vec<Row<Attributes>>,
    mtimes: Vec<i64>,
    mtime_ns: Vec<u32>,
    children: Vec<u32>,
    regulars: Vec<Option<Row<Object>>>,
    target_lens: Vec<u16>,
    targets: Vec<u8>,
    devices: Vec<Device>,
    /// The rows, by the SHA-256 of their encoding.
    attributes: DigestMap,
    attribute_rows: Vec<u8>,
    object_of: Vec<Option<Row<Object>>>,
    contents: Vec<u32>,
    ostree: Columns,
    widths: Widths,
}

impl IndexBuilder {
    /// Begins a ref. Its root directory is the next [`Self::inode`].
    pub fn begin_ref(&mut self, name: &str) {
        self.add_ref(0, name);
    }

    /// Adds a ref that is an OSTree commit (ostree 4). `commit` is the number of a commit that an earlier ref names, or `None` for the next new one.
    pub fn commit_ref(&mut self, name: &str, commit: Option<u32>, collection: &str) {
        self.add_ref(1, name);
        self.ostree.add_ref(commit, collection, &mut self.widths);
    }

    /// Adds an OSTree metadata object, in the order of ostree 4, and returns its number.
    pub fn ostree_object(&mut self, kind: OsTreeKind, bytes: &[u8]) -> u32 {
        self.ostree.add_object(kind, bytes, &mut self.widths)
    }

    /// Adds an OSTree file object, in the order of ostree 4, after all inodes: a regular file or a symbolic link.
    pub fn ostree_file(&mut self, attributes: &Attributes, node: Node<'_>) {
        let row = self.attribute_row(attributes);
        match node {
            Node::Regular { content } => {
                let object = self.known_object(content);
                self.ostree.add_regular(row, object);
            }
            Node::Symlink(target) => self.ostree.add_symlink(row, target, &mut self.widths),
            Node::Directory { .. } | Node::Device(_) | Node::Plain => {}
        }
    }

    fn add_ref(&mut self, kind: u8, name: &str) {
        self.refs.push(kind);
        self.refs.push(self.widths.fit(name.len(), "the length of a ref's name"));
        self.refs.extend(name.as_bytes());
        self.ref_count += 1;
    }

    /// Adds an entry to the current block. With `link`, it is another name of that inode; otherwise its inode is the one that
    /// the next call of [`Self::inode`] adds.
    pub fn entry(&mut self, name: &[u8], link: Option<Row<Inode>>) {
        self.name_lens.push(self.widths.fit(name.len(), "the length of a name"));
        self.names.extend(name);
        self.links.push(link);
    }

    /// Adds an inode and returns its number.
    pub fn inode(&mut self, attributes: &Attributes, mtime: (i64, u32), node: Node<'_>) -> Row<Inode> {
        let own = self.widths.row(self.mtimes.len());
        let row = self.attribute_row(attributes);
        self.inode_attributes.push(row);
        self.mtimes.push(mtime.0);
        self.mtime_ns.push(mtime.1);
        match node {
            Node::Directory { children } => self.children.push(children),
            Node::Regular { content } => {
                let object = self.known_object(content);
                self.regulars.push(object);
            }
            Node::Symlink(target) => {
                self.target_lens.push(self.widths.fit(target.len(), "the length of a symbolic link's target"));
                self.targets.extend(target);
            }
            Node::Device(device) => self.devices.push(device),
            Node::Plain => {}
        }
        own
    }

    fn attribute_row(&mut self, attributes: &Attributes) -> Row<Attributes> {
        let start = self.attribute_rows.len();
        attributes.encode(&mut self.attribute_rows);
        let digest = Sha256::digest(&self.attribute_rows[start..]).into();
        if let Some(row) = self.attributes.get(&digest).and_then(Row::new) {
            self.attribute_rows.truncate(start);
            return row;
        }
        let row = self.widths.row(self.attributes.len());
        self.attributes.insert(digest, row.number());
        row
    }

    /// Returns the object of this content if an earlier file has it, and otherwise notes it as the next new object.
    fn known_object(&mut self, content: u32) -> Option<Row<Object>> {
        let at = num::at(content);
        if at >= self.object_of.len() {
            self.object_of.resize(at + 1, None);
        }
        let new = self.widths.row(self.contents.len());
        let known = self.object_of[at];
        if known.is_none() {
            self.object_of[at] = Some(new);
            self.contents.push(content);
        }
        known
    }

    /// Returns the caller's content numbers in the order of the object table.
    #[must_use]
    pub fn contents(&self) -> &[u32] {
        &self.contents
    }

    /// Returns the index's bytes. `objects` has a row for each of [`Self::contents`], and `verity` is the digest of section 10.
    ///
    /// # Errors
    /// Returns an error if something is longer or more numerous than the format can store.
    pub fn finish(
        mut self,
        objects: impl ExactSizeIterator<Item = Object> + Clone,
        verity: &[u8; 32],
    ) -> Result<Vec<u8>, Error> {
        let ref_count: u16 = self.widths.fit(self.ref_count, "the number of refs");
        let attribute_count: u32 = self.widths.fit(self.attributes.len(), "the number of attribute rows");
        let mut ostree = Vec::new();
        if !self.ostree.is_empty() {
            self.ostree.encode(&mut ostree, &mut self.widths);
        }
        self.widths.check()?;
        // About what follows. Growing it instead would take the memory of several copies.
        let inodes = 16 * self.mtimes.len() + 4 * (self.children.len() + self.regulars.len());
        let others = self.refs.len() + self.targets.len() + self.attribute_rows.len() + ostree.len();
        let mut out = Vec::with_capacity(
            1024 + self.names.len()
                + 5 * self.links.len()
                + inodes
                + 10 * self.devices.len()
                + others
                + 40 * objects.len(),
        );
        let mut section = |id: u16, write: &dyn Fn(&mut Vec<u8>)| write_section(&mut out, id, true, write);
        section(1, &|p| {
            p.extend(ref_count.to_le_bytes());
            p.extend(&self.refs);
        });
        section(2, &|p| {
            p.extend(wide(self.links.len()).to_le_bytes());
            p.extend(&self.name_lens);
            put_u32s(p, self.links.iter().map(|link| Row::column(*link)));
            p.extend(&self.names);
        });
        section(3, &|p| {
            p.extend(wide(self.mtimes.len()).to_le_bytes());
            put_u32s(p, self.inode_attributes.iter().map(|row| row.number()));
            put_planes(p, self.mtimes.iter().map(|t| t.to_le_bytes()));
            put_u32s(p, self.mtime_ns.iter().copied());
        });
        section(4, &|p| put_u32s(p, self.children.iter().copied()));
        section(5, &|p| put_u32s(p, self.regulars.iter().map(|object| Row::column(*object))));
        section(6, &|p| {
            put_planes(p, self.target_lens.iter().map(|len| len.to_le_bytes()));
            p.extend(&self.targets);
        });
        section(7, &|p| {
            put_u32s(p, self.devices.iter().map(|device| device.major));
            put_u32s(p, self.devices.iter().map(|device| device.minor));
        });
        section(8, &|p| {
            p.extend(attribute_count.to_le_bytes());
            p.extend(&self.attribute_rows);
        });
        section(9, &|p| {
            p.extend(wide(objects.len()).to_le_bytes());
            put_planes(p, objects.clone().map(|object| object.size.to_le_bytes()));
            p.extend(objects.clone().flat_map(|object| object.id));
        });
        section(10, &|p| p.extend(verity));
        if !ostree.is_empty() {
            section(11, &|p| p.extend(&ostree));
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::Xattr;
    use crate::{Index, Xattrs};

    fn directory() -> Attributes {
        Attributes { mode: 0o40_755, uid: 0, gid: 0, xattrs: Xattrs::default() }
    }

    #[test]
    fn a_ref_is_found_by_its_name() {
        let mut builder = IndexBuilder::default();
        for name in ["a", "b"] {
            builder.begin_ref(name);
            builder.inode(&directory(), (0, 0), Node::Directory { children: 0 });
        }
        let bytes = builder.finish([].into_iter(), &[0; 32]).expect("it fits");
        let index = Index::parse(bytes, 0).expect("it is sound");
        let found = |name| index.find_ref(name).map(|found| found.name.as_str());
        assert_eq!(["a", "b", "c"].map(found), [Some("a"), Some("b"), None]);
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let finish = |builder: IndexBuilder| builder.finish([].into_iter(), &[0; 32]);
        let too_large = |what, len, max| Err(Error::TooLarge { what, len, max });
        let directory = directory();
        let begun = |name: &str| {
            let mut builder = IndexBuilder::default();
            builder.begin_ref(name);
            builder.inode(&directory, (0, 0), Node::Directory { children: 1 });
            builder
        };
        let long = "n".repeat(256);
        assert!(finish(begun(&long[1..])).is_ok());
        assert_eq!(finish(begun(&long)), too_large("the length of a ref's name", 256, 255));
        let mut builder = begun("main");
        builder.entry(long.as_bytes(), None);
        builder.inode(&directory, (0, 0), Node::Symlink(&[b'a'; 65_536]));
        // The first fault is reported.
        assert_eq!(finish(builder), too_large("the length of a name", 256, 255));
        let mut builder = begun("main");
        builder.inode(&directory, (0, 0), Node::Symlink(&[b'a'; 65_536]));
        assert_eq!(finish(builder), too_large("the length of a symbolic link's target", 65_536, 65_535));
        let mut builder = IndexBuilder::default();
        (0..65_536).for_each(|_| builder.begin_ref("r"));
        assert_eq!(finish(builder), too_large("the number of refs", 65_536, 65_535));
    }

    #[test]
    fn extended_attributes_that_do_not_fit_are_an_error() {
        let made = |name: usize, value: usize, count: usize| {
            let one = |number: usize| Xattr {
                name: alloc::vec![b'a'; name],
                value: alloc::vec![number.to_le_bytes()[0]; value],
            };
            Xattrs::try_from((0..count).map(one).collect::<Vec<_>>()).map(|xattrs| xattrs.len())
        };
        assert_eq!(made(255, 65_536, 2), Ok(2));
        assert!(matches!(made(256, 1, 1), Err(Error::TooLarge { len: 256, max: 255, .. })));
        assert!(matches!(made(1, 65_537, 1), Err(Error::TooLarge { len: 65_537, max: 65_536, .. })));
        assert!(matches!(made(1, 1, 65_536), Err(Error::TooLarge { len: 65_536, max: 65_535, .. })));
    }
}
