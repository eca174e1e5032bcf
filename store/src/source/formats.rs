//! The archive formats that can be packed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use super::{ArchiveFormat, cpio, tar};
use crate::address::scheme;

#[rustfmt::skip] // a table
const FORMATS: &[ArchiveFormat] = &[
    ArchiveFormat { scheme: "tar",  read: tar::read },
    ArchiveFormat { scheme: "cpio", read: cpio::read },
];

impl ArchiveFormat {
    /// Returns the format that a source's prefix names.
    #[must_use]
    pub fn of(spec: &OsStr) -> Option<&'static Self> {
        let (scheme, _) = scheme(spec.as_bytes())?;
        FORMATS.iter().find(|format| format.scheme.as_bytes() == scheme)
    }

    /// Returns all schemes with their colons, for a message.
    pub(super) fn schemes() -> String {
        FORMATS.iter().map(|format| format!("{}:", format.scheme)).collect::<Vec<_>>().join(", ")
    }
}
