//! Type, permissions, owner and extended attributes (spec 6.4).

use alloc::vec::Vec;

use crate::Error;
use crate::bytes::Reader;

/// The type of an inode, with its value in `st_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "spec 6.4 lists the types")]
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
    /// The word for it in what programs read: JSON and JavaScript.
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

    /// The type bits of `st_mode`.
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

    /// The type that `mode` has, if it has one.
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

/// One row of the attributes' table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attributes {
    /// Type and permission bits as in `st_mode`.
    pub mode: u16,
    /// Owner, below 2^32-1.
    pub uid: u32,
    /// Group, below 2^32-1.
    pub gid: u32,
    /// Extended attributes by ascending name.
    pub xattrs: Vec<Xattr>,
}

/// An extended attribute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Xattr {
    /// Its name with the namespace, 1 to 255 bytes without NUL.
    pub name: Vec<u8>,
    /// Its value, at most 65,536 bytes.
    pub value: Vec<u8>,
}

impl Attributes {
    /// Longest value of an extended attribute, in bytes: Linux's XATTR_SIZE_MAX.
    pub const XATTR_LEN_MAX: u32 = 65_536;

    pub(crate) fn parse(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let mode = reader.u16()?;
        if FileType::of_mode(mode).is_none() {
            return Err(reader.malformed("a mode has no file type"));
        }
        let (uid, gid, count) = (reader.u32()?, reader.u32()?, reader.u16()?);
        // chown(2) takes 2^32-1 for "leave it".
        if uid == u32::MAX || gid == u32::MAX {
            return Err(reader.malformed("an owner or group is 2^32-1, which is nobody"));
        }
        let mut xattrs: Vec<Xattr> = Vec::new();
        for _ in 0..count {
            let name_len = reader.u8()?;
            let name = reader.take(name_len.into())?.to_vec();
            if name.is_empty() || name.contains(&0) {
                return Err(reader.malformed("the name of an extended attribute is empty or has a NUL byte"));
            }
            if xattrs.last().is_some_and(|last| last.name >= name) {
                return Err(reader.malformed("names of extended attributes do not ascend"));
            }
            let value_len = reader.u32()?;
            if value_len > Self::XATTR_LEN_MAX {
                return Err(reader.malformed("an extended attribute is longer than 65536 bytes"));
            }
            let value = reader.take(usize::try_from(value_len).unwrap_or(usize::MAX))?.to_vec();
            xattrs.push(Xattr { name, value });
        }
        Ok(Self { mode, uid, gid, xattrs })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.mode.to_le_bytes());
        out.extend(self.uid.to_le_bytes());
        out.extend(self.gid.to_le_bytes());
        out.extend(u16::try_from(self.xattrs.len()).unwrap_or(u16::MAX).to_le_bytes());
        for xattr in &self.xattrs {
            out.push(u8::try_from(xattr.name.len()).unwrap_or(u8::MAX));
            out.extend(&xattr.name);
            out.extend(u32::try_from(xattr.value.len()).unwrap_or(u32::MAX).to_le_bytes());
            out.extend(&xattr.value);
        }
    }

    /// The type. A row that was parsed has one.
    #[must_use]
    pub fn file_type(&self) -> FileType {
        FileType::of_mode(self.mode).unwrap_or(FileType::Regular)
    }
}
