//! Makes profiles of what other programs recorded.

mod lines;
mod nbdkit;
mod paths;
mod readahead;
mod root;
mod strace;

use std::io::BufRead;
use std::path::{Path, PathBuf};

use sealift_store::OrderFault;

use super::profile::{OrderProfile, relative};
use crate::Error;
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
}

/// How to import.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ImportOptions {
    /// The directory that is the tree's root in absolute paths; other absolute paths are left out.
    pub root: PathBuf,
    /// The path in the tree of the disk image that was served, for [`Form::Nbdkit`].
    pub image: Option<Vec<u8>>,
}

/// What was imported.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// The profile.
    pub profile: OrderProfile,
    /// How often a path outside the root was named.
    pub outside: u64,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self { root: "/".into(), image: None }
    }
}

/// Why an import fails: the input cannot be read, or is at fault.
enum Fault {
    Io(std::io::Error),
    Order(OrderFault),
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

/// Imports what `input` has; errors call it `name`.
///
/// # Errors
/// Returns an error if it cannot be read or is not of that form, if a path leaves the root, or if [`Form::Nbdkit`] lacks its image.
pub fn import(form: Form, input: &mut dyn BufRead, name: &Path, options: &ImportOptions) -> Result<Imported, Error> {
    let mut rooted = Rooted::new(&options.root);
    let entries = match form {
        Form::Paths => paths::read(input, &mut rooted),
        Form::Strace => strace::read(input, &mut rooted),
        Form::Readahead => readahead::read(input, &mut rooted),
        Form::Nbdkit => nbdkit::read(input, &image(options)?),
    };
    match entries {
        Ok(entries) => Ok(Imported { profile: OrderProfile::new(entries), outside: rooted.outside }),
        Err(Fault::Io(source)) => Err(Error::Io { doing: "read", path: name.to_owned(), source }),
        Err(Fault::Order(fault)) => Err(Error::Order { path: name.to_owned(), fault }),
    }
}

/// Returns the path of the image in the tree.
fn image(options: &ImportOptions) -> Result<Vec<u8>, Error> {
    let missing = || Error::Usage("the reads of a disk image need the path of that image in the tree".into());
    let image = options.image.as_deref().ok_or_else(missing)?;
    match relative(image) {
        Ok(path) if !path.is_empty() => Ok(path),
        Ok(_) => Err(missing()),
        Err(what) => Err(Error::Usage(format!("the image: {what}"))),
    }
}
