//! Recognizes containers, and takes them apart.

use super::anatomy::Anatomy;
use super::fault::ContainerFault;
use super::kind::Kind;
use super::limits::Limits;
use super::read_at::ReadAt;
use super::reader::Reader;
use super::{appimage, ar, cpio, erofs, ext4, fat, gpt, iso9660, mbr, pe, squashfs, stream, tar, zip};
use sealift_format::num::up_to;

/// The bytes at the start that tell all kinds apart: ISO 9660 has its mark at 32 KiB.
const HEAD_LEN: usize = 34 << 10;

/// Says whether a container that begins with these bytes is of a kind.
type Recognizes = fn(&[u8]) -> bool;

impl Kind {
    /// Returns what a container that begins with these bytes is, of which there should be 34 KiB; `None` if they are of no known kind.
    #[must_use]
    pub fn of(head: &[u8]) -> Option<Self> {
        if let Some(kind) = stream::kind(head) {
            return Some(kind);
        }
        // What has a mark at its start comes first; last, what has hardly one. An ISO 9660 file system may have a partition table, too.
        let kinds: [(Recognizes, Self); 13] = [
            (squashfs::is, Self::Squashfs),
            (zip::is, Self::Zip),
            (cpio::is, Self::Cpio),
            (ar::is, Self::Ar),
            (pe::is, Self::Pe),
            (appimage::is, Self::AppImage),
            (iso9660::is, Self::Iso9660),
            (tar::is, Self::Tar),
            (erofs::is, Self::Erofs),
            (ext4::is, Self::Ext4),
            (gpt::is, Self::Gpt),
            (fat::is, Self::Fat),
            (mbr::is, Self::Mbr),
        ];
        kinds.iter().find(|(is, _)| is(head)).map(|(_, kind)| *kind)
    }
}

impl Anatomy {
    /// Takes a container apart. Returns `None` if it is of no known kind.
    ///
    /// # Errors
    /// Returns an error if the bytes cannot be read, contradict themselves or their format, use a feature of it that is not known, or exceed the
    /// limits.
    pub fn of(bytes: &dyn ReadAt, limits: &Limits) -> Result<Option<Self>, ContainerFault> {
        let len = bytes.byte_len()?;
        let mut head = vec![0; up_to(len, HEAD_LEN)];
        bytes.read_exact_at(&mut head, 0)?;
        let Some(kind) = Kind::of(&head) else { return Ok(None) };
        let reader = Reader::new(bytes, len, kind, limits);
        let anatomy = match kind {
            Kind::Squashfs => squashfs::read(&reader),
            Kind::Erofs => erofs::read(&reader),
            Kind::Ext4 => ext4::read(&reader),
            Kind::Fat => fat::read(&reader),
            Kind::Gpt => gpt::read(&reader),
            Kind::Mbr => mbr::read(&reader),
            Kind::Iso9660 => iso9660::read(&reader),
            Kind::Cpio => cpio::read(&reader),
            Kind::Tar => tar::read(&reader),
            Kind::Ar => ar::read(&reader),
            Kind::Zip => zip::read(&reader),
            Kind::Pe => pe::read(&reader),
            Kind::AppImage => appimage::read(&reader),
            Kind::Gzip | Kind::Xz | Kind::Zstd | Kind::Lz4 | Kind::Bzip2 => stream::read(&reader),
        };
        anatomy.map(Some)
    }
}
