//! Compares two files of one path field by field.

use sealift_format::{FileType, XattrRef, Xattrs};

use super::{Field, File, Ignore};
use crate::{Aspect, Keeps};

/// The set-user-id and set-group-id bits.
const SET_IDS: u16 = 0o6000;

/// The attribute that grants capabilities to a program.
const CAPABILITY: &[u8] = b"security.capability";

/// The rules of a comparison.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) ignore: Ignore,
    /// What the new side keeps of the old side's metadata.
    pub(super) keeps: Keeps,
    /// One side is a file system, which has no permissions for symbolic links.
    pub(super) on_disk: bool,
}

impl Rules {
    /// Returns the same rules, including what only root can set.
    pub(super) fn with_privileged(self) -> Self {
        Self { ignore: Ignore { privileged: false, ..self.ignore }, keeps: Keeps::ALL, ..self }
    }

    /// Returns the same rules, without what only root can set.
    pub(super) fn without_privileged(self) -> Self {
        Self { ignore: Ignore { privileged: true, ..self.ignore }, ..self }
    }

    /// Returns the fields that differ, except links, which cannot be told from the files alone.
    pub(super) fn fields(self, old: &File, new: &File) -> Vec<Field> {
        if old.file_type != new.file_type {
            return vec![Field::Type];
        }
        let (ignore, keeps, a, b) = (self.ignore, self.keeps, &old.metadata, &new.metadata);
        let mode_mask = if ignore.privileged { !SET_IDS } else { u16::MAX };
        let no_mode = ignore.mode || (self.on_disk && old.file_type == FileType::Symlink);
        let permissions = keeps.permissions(a.permissions, &a.xattrs);
        let has_owner = !ignore.owner && keeps.has(Aspect::Owners);
        let mtime = keeps.time((a.mtime, a.mtime_ns));
        let fields = [
            // A content that was not read differs in size, which is enough.
            (Field::Content, old.size != new.size || old.id != new.id),
            (Field::Seal, [old, new].into_iter().any(|file| file.is_sealed == Some(false))),
            (Field::Target, old.target != new.target),
            (Field::Device, old.device != new.device),
            (Field::Mode, !no_mode && permissions.is_some_and(|kept| (kept ^ b.permissions) & mode_mask != 0)),
            (Field::Owner, has_owner && !ignore.privileged && (a.uid, a.gid) != (b.uid, b.gid)),
            (Field::Mtime, !ignore.mtime && mtime.is_some_and(|kept| kept != (b.mtime, b.mtime_ns))),
            (Field::Xattrs, !ignore.xattrs && !self.same_xattrs(&a.xattrs, &b.xattrs)),
        ];
        fields.into_iter().filter(|(_, differs)| *differs).map(|(field, _)| field).collect()
    }

    /// Returns whether a file has a privilege that it should not have: unpacking without root cannot cause that.
    pub(super) fn has_gained(expected: &File, there: &File) -> bool {
        let (expected, there) = (&expected.metadata, &there.metadata);
        let new = |xattr: XattrRef<'_>| {
            xattr.name == CAPABILITY
                && !expected.xattrs.iter().any(|other| (other.name, other.value) == (xattr.name, xattr.value))
        };
        there.permissions & !expected.permissions & SET_IDS != 0 || there.xattrs.iter().any(new)
    }

    fn same_xattrs(self, old: &Xattrs, new: &Xattrs) -> bool {
        let counts = |xattr: &XattrRef<'_>| !self.ignore.privileged || !is_privileged(xattr.name);
        let expected = old.iter().filter(|xattr| self.keeps.has_xattr(xattr.name));
        let found = new.iter().filter(|xattr| self.keeps.counts_xattr(xattr.name));
        expected.filter(counts).eq(found.filter(counts))
    }
}

/// Returns whether only root may set an attribute of this name.
fn is_privileged(name: &[u8]) -> bool {
    name.starts_with(b"security.") || name.starts_with(b"trusted.")
}
