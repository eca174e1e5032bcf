//! Makes profiles of what other programs recorded.

mod image;
mod lines;
mod nbdkit;
mod paths;
mod readahead;
mod root;
mod sort;
mod strace;

use std::io::BufRead;
use std::path::{Path, PathBuf};

use sealift_store::OrderFault;

use super::profile::{OrderEntry, OrderProfile, relative};
use crate::{Error, FileFault};
use root::Rooted;

/// What can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A list of paths, each ended by a newline or by a zero byte.
    Paths,
    /// The output of strace, with `-y` or without.
    Strace,
    /// The pack file of systemd-readahead.
    Readahead,
    /// The log of nbdkit's filter `log`: the reads of one disk image.
    Nbdkit,
    /// A list of priorities for `mksquashfs -sort` or `genisoimage -sort`.
    Sort,
}

/// What the logged reads of a disk image become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disk {
    /// Ranges of the image, which is a file of the tree at this path.
    Image(Vec<u8>),
    /// Files of the ext4, EROFS or squashfs file system that begins at an offset of this image.
    FileSystem {
        /// The image.
        image: PathBuf,
        /// Where the file system begins, such as a partition.
        offset: u64,
    },
}

/// How to import.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ImportOptions {
    /// The directory that is the tree's root in absolute paths; other absolute paths are left out.
    pub root: PathBuf,
    /// The disk image that was served, for [`Form::Nbdkit`].
    pub disk: Option<Disk>,
}

/// What was imported.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// The profile.
    pub profile: OrderProfile,
    /// How often a path outside the root was named.
    pub outside: u64,
    /// How many lines were skipped that are no paths.
    pub malformed: u64,
    /// For a file system image: how many reads were not of any file's content, but of directories and other tables.
    pub elsewhere: u64,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self { root: "/".into(), disk: None }
    }
}

/// Why an import fails: the input cannot be read, or is at fault.
enum Fault {
    Io(std::io::Error),
    Order(OrderFault),
}

impl Fault {
    fn of(self, path: &Path) -> Error {
        match self {
            Self::Io(source) => Error::io("read", path, source),
            Self::Order(fault) => Error::file(path, FileFault::Order(fault)),
        }
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<OrderFault> for Fault {
    fn from(fault: OrderFault) -> Self {
        Self::Order(fault)
    }
}

/// Imports `input`, which errors call `name`.
///
/// # Errors
/// Returns an error if the input cannot be read, is not of that form, as most of its lines show, or lists no file. For [`Form::Nbdkit`], also
/// returns an error if no image is given, or if the image cannot be read, or its file system is unknown or damaged.
pub fn import(form: Form, input: &mut dyn BufRead, name: &Path, options: &ImportOptions) -> Result<Imported, Error> {
    let none = || Fault::from(OrderFault::Whole("it lists no file")).of(name);
    if input.fill_buf().map_err(|error| Fault::from(error).of(name))?.is_empty() {
        return Err(none());
    }
    let imported = import_some(form, input, name, options)?;
    let Imported { profile, outside, elsewhere, .. } = &imported;
    if profile.entries().is_empty() && outside + elsewhere == 0 { Err(none()) } else { Ok(imported) }
}

/// Imports an input that is not empty.
fn import_some(form: Form, input: &mut dyn BufRead, name: &Path, options: &ImportOptions) -> Result<Imported, Error> {
    let mut rooted = Rooted::new(&options.root);
    let read = match form {
        Form::Paths => paths::read(input, &mut rooted),
        Form::Strace => strace::read(input, &mut rooted),
        Form::Readahead => readahead::read(input, &mut rooted),
        Form::Sort => sort::read(input, &mut rooted),
        Form::Nbdkit => return import_reads(input, name, options),
    };
    let entries = read.and_then(|entries| rooted.check().map(|()| entries)).map_err(|fault| fault.of(name))?;
    let Rooted { outside, malformed, .. } = rooted;
    Ok(Imported { profile: OrderProfile::new(entries), outside, malformed, elsewhere: 0 })
}

/// Imports the reads of a disk image.
fn import_reads(input: &mut dyn BufRead, name: &Path, options: &ImportOptions) -> Result<Imported, Error> {
    let missing = || Error::Usage("the reads of a disk image need that image, or its path in the tree".into());
    let disk = options.disk.as_ref().ok_or_else(missing)?;
    let path = match disk {
        Disk::Image(path) => relative(path).map_err(|what| Error::Usage(format!("the image: {what}")))?,
        Disk::FileSystem { .. } => Vec::new(),
    };
    let reads = nbdkit::read(input).map_err(|fault| fault.of(name))?;
    let (entries, elsewhere) = match disk {
        Disk::Image(_) if path.is_empty() => return Err(missing()),
        Disk::Image(_) => (vec![OrderEntry { path, ranges: reads.into_ranges() }], 0),
        Disk::FileSystem { image, offset } => {
            let found = image::files(image, *offset, &reads)?;
            (found.entries, found.elsewhere)
        }
    };
    Ok(Imported { profile: OrderProfile::new(entries), outside: 0, malformed: 0, elsewhere })
}
