//! Type, permissions, owner and extended attributes (core 6.4).

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};

use crate::Error;
use crate::bytes::Reader;
use crate::num::{self, fit};

/// The type of an inode, with its value in `st_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "core 6.4 lists the types")]
pub enum FileType {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
    /// A named pipe.
    Fifo,
    /// A socket's name.
    Socket,
}

impl FileType {
    /// Returns the word for it in JSON and JavaScript.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Regular => "file",
            Self::Directory => "dir",
            Self::Symlink => "symlink",
            Self::CharDevice => "char",
            Self::BlockDevice => "block",
            Self::Fifo => "fifo",
            Self::Socket => "socket",
        }
    }

    /// Returns the type bits of `st_mode`.
    #[must_use]
    pub fn bits(self) -> u16 {
        match self {
            Self::Regular => 0x8000,
            Self::Directory => 0x4000,
            Self::Symlink => 0xa000,
            Self::CharDevice => 0x2000,
            Self::BlockDevice => 0x6000,
            Self::Fifo => 0x1000,
            Self::Socket => 0xc000,
        }
    }

    /// Returns the type in `mode`, if it has a known one.
    #[must_use]
    pub fn of_mode(mode: u16) -> Option<Self> {
        let all = [
            Self::Regular,
            Self::Directory,
            Self::Symlink,
            Self::CharDevice,
            Self::BlockDevice,
            Self::Fifo,
            Self::Socket,
        ];
        all.into_iter().find(|kind| kind.bits() == mode & 0xf000)
    }
}

/// One row of the attribute table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attributes {
    /// Type and permission bits, as in `st_mode`.
    pub mode: u16,
    /// Owner, below 2^32-1.
    pub uid: u32,
    /// Group, below 2^32-1.
    pub gid: u32,
    /// Extended attributes.
    pub xattrs: Xattrs,
}

/// An extended attribute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Xattr {
    /// Its name with the namespace, 1 to 255 bytes without NUL.
    pub name: Vec<u8>,
    /// Its value, at most 65,536 bytes.
    pub value: Vec<u8>,
}

/// An extended attribute of [`Xattrs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_structs, reason = "an attribute has no more")]
pub struct XattrRef<'a> {
    /// Its name with the namespace.
    pub name: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
}

impl XattrRef<'_> {
    /// Returns an owned copy.
    #[must_use]
    pub fn to_owned(self) -> Xattr {
        Xattr { name: self.name.to_vec(), value: self.value.to_vec() }
    }
}

/// Extended attributes in ascending order of their names, in the encoding of an index, which begins with their number: a range of the index's own
/// bytes, or of others, shared by all copies. A few bytes in a bundle can stand for the attributes of thousands of files.
#[derive(Clone, Default)]
pub struct Xattrs(Option<Encoded>);

/// A range of shared bytes.
#[derive(Clone)]
struct Encoded {
    bytes: Arc<Vec<u8>>,
    start: u32,
    len: u32,
}

impl Xattrs {
    pub(crate) fn builder() -> XattrsBuilder {
        XattrsBuilder::default()
    }

    /// Returns the attributes in the order of their names.
    #[must_use]
    pub fn iter(&self) -> XattrIter<'_> {
        XattrIter(self.encoded().get(2..).unwrap_or_default())
    }

    /// Returns the encoding in an index, or nothing if there are none.
    fn encoded(&self) -> &[u8] {
        let Some(Encoded { bytes, start, len }) = &self.0 else { return &[] };
        let start = num::at(*start);
        bytes.get(start..start.saturating_add(num::at(*len))).unwrap_or_default()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns how many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Returns the value of the attribute with this name.
    #[must_use]
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.iter().find(|xattr| xattr.name == name).map(|xattr| xattr.value)
    }
}

impl PartialEq for Xattrs {
    fn eq(&self, other: &Self) -> bool {
        self.encoded() == other.encoded()
    }
}

impl Eq for Xattrs {}

impl PartialOrd for Xattrs {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Xattrs {
    fn cmp(&self, other: &Self) -> Ordering {
        self.encoded().cmp(other.encoded())
    }
}

impl Hash for Xattrs {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.encoded().hash(state);
    }
}

/// An iterator over [`Xattrs`].
#[derive(Clone, Debug)]
pub struct XattrIter<'a>(&'a [u8]);

impl<'a> Iterator for XattrIter<'a> {
    type Item = XattrRef<'a>;

    fn next(&mut self) -> Option<XattrRef<'a>> {
        let (name_len, rest) = self.0.split_first()?;
        let (name, rest) = rest.split_at_checked(usize::from(*name_len))?;
        let (value_len, rest) = rest.split_first_chunk()?;
        let value_len = num::at(u32::from_le_bytes(*value_len));
        let (value, rest) = rest.split_at_checked(value_len)?;
        self.0 = rest;
        Some(XattrRef { name, value })
    }
}

impl<'a> IntoIterator for &'a Xattrs {
    type Item = XattrRef<'a>;
    type IntoIter = XattrIter<'a>;

    fn into_iter(self) -> XattrIter<'a> {
        self.iter()
    }
}

/// Names and values must be as [`Xattr`] states, and names must not repeat.
impl TryFrom<Vec<Xattr>> for Xattrs {
    type Error = Error;

    /// # Errors
    /// Returns an error if there are too many, or one is too long.
    fn try_from(mut list: Vec<Xattr>) -> Result<Self, Error> {
        list.sort_unstable();
        let mut builder = Self::builder();
        for Xattr { name, value } in &list {
            builder.push(XattrRef { name, value })?;
        }
        builder.finish()
    }
}

/// Builds [`Xattrs`] from attributes in ascending order of their names.
#[derive(Debug, Default)]
pub(crate) struct XattrsBuilder {
    count: u16,
    bytes: Vec<u8>,
}

impl XattrsBuilder {
    /// # Errors
    /// Returns an error if there are too many, or this one is too long.
    pub(crate) fn push(&mut self, XattrRef { name, value }: XattrRef<'_>) -> Result<(), Error> {
        self.count = fit(usize::from(self.count) + 1, "the number of extended attributes of a file")?;
        let what = "the length of an extended attribute";
        let value_len = fit::<u32>(value.len(), what)?;
        if value_len > Attributes::XATTR_LEN_MAX {
            return Err(Error::TooLarge { what, len: value_len.into(), max: Attributes::XATTR_LEN_MAX.into() });
        }
        self.bytes.push(fit(name.len(), "the length of an extended attribute's name")?);
        self.bytes.extend(name);
        self.bytes.extend(value_len.to_le_bytes());
        self.bytes.extend(value);
        Ok(())
    }

    /// # Errors
    /// Returns an error if they have more bytes than an index.
    pub(crate) fn finish(self) -> Result<Xattrs, Error> {
        if self.count == 0 {
            return Ok(Xattrs::default());
        }
        let all = [&self.count.to_le_bytes(), &self.bytes[..]].concat();
        let len = fit(all.len(), "the length of the extended attributes of a file")?;
        Ok(Xattrs(Some(Encoded { bytes: Arc::new(all), start: 0, len })))
    }
}

impl fmt::Debug for Xattrs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Attributes {
    /// The length in bytes of the longest value of an extended attribute: Linux's XATTR_SIZE_MAX.
    pub const XATTR_LEN_MAX: u32 = 65_536;

    /// `shared` has the bytes that the reader reads, of which `first` is the position of the first.
    pub(crate) fn parse(reader: &mut Reader<'_>, shared: &Arc<Vec<u8>>, first: usize) -> Result<Self, Error> {
        let mode = reader.u16()?;
        if FileType::of_mode(mode).is_none() {
            return Err(reader.malformed("a mode has no file type"));
        }
        let (uid, gid) = (reader.u32()?, reader.u32()?);
        let start = reader.position();
        let count = reader.u16()?;
        // For chown(2), 2^32-1 means that the owner or group stays as it is.
        if uid == u32::MAX || gid == u32::MAX {
            return Err(reader.malformed("an owner or group is 2^32-1, which is nobody"));
        }
        let mut last: &[u8] = &[];
        for _ in 0..count {
            let name_len = reader.u8()?;
            let name = reader.take(name_len.into())?;
            if name.is_empty() || name.contains(&0) {
                return Err(reader.malformed("the name of an extended attribute is empty or has a NUL byte"));
            }
            if last >= name {
                return Err(reader.malformed("names of extended attributes do not ascend"));
            }
            let value_len = reader.u32()?;
            if value_len > Self::XATTR_LEN_MAX {
                return Err(reader.malformed("an extended attribute is longer than 65536 bytes"));
            }
            reader.take(num::at(value_len))?;
            last = name;
        }
        let what = "the length of an index";
        let (start, len) = (fit(start - first, what)?, fit(reader.position() - start, what)?);
        let encoded = || Encoded { bytes: Arc::clone(shared), start, len };
        Ok(Self { mode, uid, gid, xattrs: Xattrs((count > 0).then(encoded)) })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.mode.to_le_bytes());
        out.extend(self.uid.to_le_bytes());
        out.extend(self.gid.to_le_bytes());
        out.extend(if self.xattrs.is_empty() { &[0, 0] } else { self.xattrs.encoded() });
    }

    /// Returns the type. A row that was parsed has one.
    #[must_use]
    pub fn file_type(&self) -> FileType {
        FileType::of_mode(self.mode).unwrap_or(FileType::Regular)
    }
}
