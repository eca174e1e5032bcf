//! The kinds of containers.

use std::fmt;

/// What a container is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A squashfs 4.0 file system.
    Squashfs,
    /// An EROFS file system.
    Erofs,
    /// An ext2, ext3 or ext4 file system.
    Ext4,
    /// A FAT12, FAT16 or FAT32 file system.
    Fat,
    /// A disk with a GUID partition table.
    Gpt,
    /// A disk with a master boot record.
    Mbr,
    /// An ISO 9660 file system.
    Iso9660,
    /// One cpio archive or several, as in an initrd.
    Cpio,
    /// A tar archive.
    Tar,
    /// An ar archive, such as a Debian package.
    Ar,
    /// A zip archive, such as a Python wheel.
    Zip,
    /// A gzip file.
    Gzip,
    /// An xz file.
    Xz,
    /// A zstd file.
    Zstd,
    /// An lz4 file.
    Lz4,
    /// A bzip2 file.
    Bzip2,
    /// A PE program with sections, such as a unified kernel image.
    Pe,
    /// An AppImage of type 2.
    AppImage,
}

impl Kind {
    /// Returns the name as messages and JSON have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Squashfs => "squashfs",
            Self::Erofs => "erofs",
            Self::Ext4 => "ext4",
            Self::Fat => "fat",
            Self::Gpt => "gpt",
            Self::Mbr => "mbr",
            Self::Iso9660 => "iso9660",
            Self::Cpio => "cpio",
            Self::Tar => "tar",
            Self::Ar => "ar",
            Self::Zip => "zip",
            Self::Gzip => "gzip",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
            Self::Lz4 => "lz4",
            Self::Bzip2 => "bzip2",
            Self::Pe => "pe",
            Self::AppImage => "appimage",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
