//! The archive formats that can be written.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::{ArchiveEncoder, cpio, docker, tar};
use crate::address::scheme;

#[rustfmt::skip] // a list
const FORMATS: &[ArchiveEncoder] = &[
    cpio::ENCODER,
    docker::ENCODER,
    tar::ENCODER,
];

impl ArchiveEncoder {
    /// Parses `tar:FILE` and the like as a user gives it: returns the format and the file, or `None` for a target of another kind.
    #[must_use]
    pub fn of(target: &Path) -> Option<(&'static Self, &Path)> {
        let (word, file) = scheme(target.as_os_str().as_bytes())?;
        let format = FORMATS.iter().find(|format| format.scheme.as_bytes() == word)?;
        Some((format, Path::new(OsStr::from_bytes(file))))
    }
}
