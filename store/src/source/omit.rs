//! Leaves out the output of the run: the bundle that it makes, what an interrupted run left of it, and the bundles beside it.

use std::ffi::CStr;
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::{FileType, Mode, OFlags, Stat, openat};
use rustix::io::Errno;
use sealift_format::{Preamble, Volume};

use crate::error::path_of;
use crate::fs::found::found_at;
use crate::fs::parent::parent_of;
use crate::{Error, inode_id};

/// The place of an output that may be inside the packed tree. Clones share it.
#[derive(Clone, Debug)]
pub struct OmitOutput {
    /// Device and inode of its directory.
    directory: (u64, u64),
    name: Box<[u8]>,
    left_out: Arc<Mutex<Vec<PathBuf>>>,
}

impl OmitOutput {
    /// Uses the directory of `output` as it is now; `None` if there is none, which is reported when the output is written.
    ///
    /// # Errors
    /// Returns an error if it cannot be determined which it is.
    pub fn of(output: &Path) -> Result<Option<Self>, Error> {
        let (Some(directory), Some(name)) = (found_at(parent_of(output))?, output.file_name()) else {
            return Ok(None);
        };
        let directory = (directory.dev(), directory.ino());
        Ok(Some(Self { directory, name: name.as_bytes().into(), left_out: Arc::default() }))
    }

    /// Returns what was left out of the trees listed since, by path below their roots. Unfinished files are not reported.
    #[must_use]
    pub fn left_out(&self) -> Vec<PathBuf> {
        let mut paths = self.left_out.lock().clone();
        paths.sort();
        paths
    }

    /// Returns whether this is the output's directory.
    pub(super) fn is_in(&self, directory: BorrowedFd<'_>) -> Result<bool, Errno> {
        inode_id(directory).map(|id| id == self.directory)
    }

    /// Returns whether a file of the output's directory is left out. `path` is its path below the packed root.
    pub(super) fn takes(&self, directory: BorrowedFd<'_>, name: &CStr, stat: &Stat, path: &[u8]) -> bool {
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return false;
        }
        if self.is_partial(name.to_bytes()) {
            return true;
        }
        let takes = *name.to_bytes() == *self.name || is_bundle(directory, name);
        if takes {
            self.left_out.lock().push(path_of(path).to_owned());
        }
        takes
    }

    /// Returns whether the name has the form of an unfinished output, such as `.NAME.N.sealift-partial`.
    fn is_partial(&self, name: &[u8]) -> bool {
        let rest = name.strip_prefix(b".").and_then(|rest| rest.strip_prefix(&*self.name));
        rest.is_some_and(|rest| rest.ends_with(b".sealift-partial") || rest.ends_with(b".assembled"))
    }
}

/// Returns whether a file is a bundle, or a volume of one, by its name and its first bytes.
fn is_bundle(directory: BorrowedFd<'_>, name: &CStr) -> bool {
    let ends_with = |ending: &[u8]| {
        let start = name.to_bytes().len().checked_sub(ending.len());
        start.and_then(|start| name.to_bytes().get(start..)).is_some_and(|own| own.eq_ignore_ascii_case(ending))
    };
    let magic = match () {
        () if ends_with(b".sealift") => Preamble::MAGIC,
        () if ends_with(b".sealift-volume") => Volume::MAGIC,
        () => return false,
    };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = openat(directory, name, flags, Mode::empty()) else { return false }; // reported when it is packed
    let mut start = [0; Preamble::MAGIC.len()];
    File::from(file).read_exact_at(&mut start, 0).is_ok() && start == magic
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::source::{DirectoryOptions, DirectorySource, Source};

    #[test]
    fn the_output_and_bundles_beside_it_are_left_out() {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        let at = |name: &str| scratch.path().join(name);
        fs::create_dir(at("sub")).expect("made");
        let bundle = [&Preamble::MAGIC[..], b"rest"].concat();
        let files: [(&str, &[u8]); 8] = [
            ("OS-6.SEALIFT", &bundle),
            ("os-8.sealift", b"whatever it is"),
            ("os-7.sealift", &bundle),
            (".os-8.sealift.17.sealift-partial", b"half"),
            ("page.sealift", b"not one"),
            ("bundle", &bundle),
            // Bundles elsewhere in the tree belong to it.
            ("sub/os-8.sealift", b"kept"),
            ("sub/os-7.sealift", &bundle),
        ];
        for (name, content) in files {
            fs::write(at(name), content).expect("written");
        }
        let omit = OmitOutput::of(&at("os-8.sealift")).expect("it can be told").expect("the directory is there");
        let options = DirectoryOptions { omit_output: Some(omit.clone()), ..DirectoryOptions::default() };
        let source = Source::Directory(DirectorySource::list(scratch.path(), &options, 2).expect("listed"));
        let mut paths = Vec::new();
        source.tree().visit(|visited| paths.push(String::from_utf8_lossy(&visited.path).into_owned()));
        paths.sort();
        assert_eq!(paths, ["", "bundle", "page.sealift", "sub", "sub/os-7.sealift", "sub/os-8.sealift"]);
        assert_eq!(omit.left_out(), ["OS-6.SEALIFT", "os-7.sealift", "os-8.sealift"].map(Path::new));
    }
}
