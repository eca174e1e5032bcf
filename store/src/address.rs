//! Refs, paths of a bundle, sources and targets, as users write them.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use sealift_format::{Index, InodeKind, Object, Ref, Row};
use sealift_verify::escape;

use crate::Error;
use crate::error::{ImageFault, path_of};
use crate::oci::{INDEX_FILE, ImageReference, LAYOUT_FILE};

/// The kind of place that a source, a base or a target names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(clippy::exhaustive_enums, reason = "callers have to handle each kind")]
pub enum TargetKind {
    /// A directory, or anything else that is named by its path, or an archive.
    Directory,
    /// An OSTree repository.
    Ostree,
    /// A composefs store.
    Composefs,
    /// A block device, or a file that holds an image.
    Slot,
}

impl TargetKind {
    pub(crate) const ALL: [Self; 4] = [Self::Directory, Self::Ostree, Self::Composefs, Self::Slot];

    /// Parses `PATH`, `ostree:REPO`, `composefs:REPO` or `image:FILE` as a user gives it. The path of a device is that of a slot.
    #[must_use]
    pub fn of(argument: &(impl AsRef<OsStr> + ?Sized)) -> (Self, &Path) {
        let argument = argument.as_ref();
        let named = scheme(argument.as_bytes()).and_then(|(word, path)| {
            let kind = match word {
                b"ostree" => Self::Ostree,
                b"composefs" => Self::Composefs,
                b"image" => Self::Slot,
                _ => return None,
            };
            Some((kind, path_of(path)))
        });
        let kind = if is_device(argument) { Self::Slot } else { Self::Directory };
        named.unwrap_or((kind, Path::new(argument)))
    }

    /// Parses a target `oci:DIR`, a directory for an OCI image layout: returns the directory, and a tag if one follows it.
    #[must_use]
    pub fn image_layout(target: &Path) -> Option<(&Path, Option<&str>)> {
        let (_, rest) = scheme(target.as_os_str().as_bytes()).filter(|(word, _)| *word == b"oci")?;
        let ImageReference { path, tag } = ImageReference::parse(rest, Path::is_dir);
        Some((path, tag))
    }

    /// Formats a place as a user gives it.
    #[must_use]
    pub fn argument(self, path: &Path) -> PathBuf {
        let mut argument = OsString::new();
        match self {
            Self::Directory => {}
            Self::Slot if is_device(path.as_os_str()) => {}
            Self::Slot => argument.push("image:"),
            Self::Ostree | Self::Composefs => {
                argument.push(self.word());
                argument.push(":");
            }
        }
        argument.push(path);
        argument.into()
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::Ostree => "ostree",
            Self::Composefs => "composefs",
            Self::Slot => "slot",
        }
    }
}

/// Returns whether a path names a device, or what would be one: nothing is created in `/dev`, except in its file system for shared memory.
fn is_device(path: &OsStr) -> bool {
    let path = Path::new(path);
    match path.metadata() {
        Ok(metadata) => metadata.file_type().is_block_device() || metadata.file_type().is_char_device(),
        Err(_) => path.starts_with("/dev") && !path.starts_with("/dev/shm"),
    }
}

/// Returns the requested ref, or the only one.
pub fn choose_ref<'a>(index: &'a Index, name: Option<&str>) -> Result<&'a Ref, Error> {
    let refs = index.refs();
    match (name, refs) {
        (None, [only]) => Ok(only),
        (None, _) => Err(Error::SeveralRefs { refs: refs.iter().map(|of| of.name.clone()).collect() }),
        (Some(name), _) => index.find_ref(name).ok_or_else(|| Error::no_ref("ref", name, refs.iter())),
    }
}

/// Returns the word before a colon and what follows, if `spec` has this form.
pub(crate) fn scheme(spec: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = spec.iter().position(|byte| *byte == b':')?;
    let (word, rest) = (&spec[..colon], &spec[colon + 1..]);
    let is_word = word.first()?.is_ascii_alphabetic()
        && word.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-._".contains(byte));
    is_word.then_some((word, rest))
}

/// Checks that a tree is an OCI image layout.
pub(crate) fn check_image_tree(index: &Index, tree: &Ref) -> Result<(), Error> {
    for missing in [LAYOUT_FILE, INDEX_FILE] {
        if object_at(index, tree, missing.as_bytes()).is_none() {
            let fault = Box::new(ImageFault::NotAnImageTree { missing });
            return Err(Error::Image { path: tree.name.clone().into(), fault });
        }
    }
    Ok(())
}

/// Returns whether a tree has a file of any type at this path.
pub fn has_path(index: &Index, tree: &Ref, path: &[u8]) -> bool {
    kind_at(index, tree, path.split(|byte| *byte == b'/').filter(|name| !name.is_empty())).is_some()
}

/// Returns the content of the regular file at a path of a tree.
#[must_use]
pub fn object_at(index: &Index, tree: &Ref, path: &[u8]) -> Option<Row<Object>> {
    match kind_at(index, tree, path.split(|byte| *byte == b'/'))? {
        InodeKind::Regular(object) => Some(object),
        _ => None,
    }
}

/// Follows these names from the root of a tree, and returns what is there.
fn kind_at<'a>(index: &Index, tree: &Ref, mut names: impl Iterator<Item = &'a [u8]>) -> Option<InodeKind> {
    names.try_fold(InodeKind::Directory(tree.directory), |kind, name| {
        let InodeKind::Directory(directory) = kind else { return None };
        let (_, entry) = index.find_entry(index.directory(directory), name)?;
        Some(index.inode(entry.inode).kind)
    })
}

/// Interprets a path that a user wrote, verbatim or escaped, as whichever exists; returns `None` if nothing does.
///
/// # Errors
/// Returns an error if it could mean two files.
pub fn reading(written: &[u8], is_there: impl Fn(&[u8]) -> bool) -> Result<Option<Vec<u8>>, Error> {
    let mut meant = escape::readings(written);
    meant.retain(|path| is_there(path));
    if let [one, other, ..] = &meant[..] {
        let [written, one, other] = [written, one, other].map(|path| String::from_utf8_lossy(path).into_owned());
        return Err(Error::Ambiguous { written, one, other });
    }
    Ok(meant.pop())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        for (argument, kind, path) in [
            ("ostree:repo", TargetKind::Ostree, "repo"),
            ("ostree:", TargetKind::Ostree, ""),
            ("composefs:/a:b", TargetKind::Composefs, "/a:b"),
            ("image:/a:b", TargetKind::Slot, "/a:b"),
            ("/dev/no-such-device", TargetKind::Slot, "/dev/no-such-device"),
            ("/dev/null", TargetKind::Slot, "/dev/null"),
            ("/dev/shm/no-such-file", TargetKind::Directory, "/dev/shm/no-such-file"),
            ("./ostree:repo", TargetKind::Directory, "./ostree:repo"),
            ("OSTREE:repo", TargetKind::Directory, "OSTREE:repo"),
            ("directory:a", TargetKind::Directory, "directory:a"),
            ("tar:a", TargetKind::Directory, "tar:a"),
            ("ostree", TargetKind::Directory, "ostree"),
            ("", TargetKind::Directory, ""),
        ] {
            assert_eq!(TargetKind::of(argument), (kind, Path::new(path)), "{argument}");
            assert_eq!(kind.argument(Path::new(path)), Path::new(argument), "{argument}");
        }
    }
}
