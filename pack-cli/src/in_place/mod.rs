//! Reads the files of a bundle in place, at any offset and from many threads: for servers, such as [`mount`](crate::mount) and the nbdkit plugin.
//!
//! Every chunk is compared with its digest before a byte of it is handed out. Decoded chunks stay in a cache of bounded size, and during
//! sequential reads the next ones are read ahead. Damage and a failing medium are reported; the same content can be read again later.
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/bundle.rs"));
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = signed_bundle()?;
//! # let folder = folder.path();
//! use sealift::in_place::{InPlace, ReadOptions};
//! use sealift::inspect::{InodeKind, find};
//! use sealift::trust::{Guard, TrustOptions};
//! use sealift::{GivenBases, Input, Limits, Progress};
//!
//! let guard = Guard::load(&TrustOptions {
//!     signers: Some(folder.join("allowed_signers")),
//!     state: Some(folder.join("state")),
//!     ..TrustOptions::default()
//! })?;
//! let bundle = guard.admit(Input::open(&folder.join("os.sealift"))?, Limits::default())?;
//! let bundle = InPlace::open(bundle, &GivenBases::default(), &Progress::default())?;
//! let InodeKind::Regular(object) = find(bundle.bundle(), b"etc/os-release")?.inode.kind else { unreachable!() };
//! let reader = bundle.start(&ReadOptions::default(), Box::new(|fault| eprintln!("{fault}")))?;
//! let bytes = reader.read(object, 3..10).expect("it is not damaged");
//! assert_eq!(&bytes.get()[..], b"example");
//! # Ok(())
//! # }
//! ```

mod blocks;
mod cache;
mod faults;
mod pages;
mod reader;

use std::io;
use std::path::Path;

use rustix::fs::Advice;
use sealift_format::Bundle;
use sealift_store::OpenBundle;
use sealift_store::base::GivenBases;

use crate::trust::Trusted;
use crate::{Error, Progress};
use blocks::Blocks;
use faults::Faults;
pub use faults::{Fault, Report};
pub use reader::{Bytes, Reader};

/// How to read a bundle in place.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct ReadOptions {
    /// Threads that read and decode; 0 counts as 1.
    pub jobs: usize,
    /// Bytes of decoded content that are kept in memory.
    pub cache_bytes: u64,
}

impl ReadOptions {
    /// The default limit of decoded content in memory, in bytes.
    pub const CACHE_BYTES: u64 = 64 << 20;
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { jobs: 1, cache_bytes: Self::CACHE_BYTES }
    }
}

/// A bundle that is open, before its content is read: a process that forks has to do so before [`Self::start`], which starts threads.
#[derive(Debug)]
pub struct InPlace(Blocks);

impl InPlace {
    /// Opens a bundle, or a delta bundle over its bases.
    ///
    /// # Errors
    /// Returns an error if the bundle is damaged or comes through a pipe, or if the bases are not those of the delta.
    pub fn open(bundle: Trusted, bases: &GivenBases, progress: &Progress) -> Result<Self, Error> {
        let (input, bundle, bases) = bases.open(bundle.into_unopened(), progress)?;
        // The reader itself decides what to read ahead.
        let own = OpenBundle::new(&input, bundle, Advice::Random)?;
        Blocks::new(own, bases).map(Self)
    }

    /// Returns the bundle.
    #[must_use]
    pub fn bundle(&self) -> &Bundle {
        &self.0.own().bundle
    }

    /// Returns the path of its file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.own().medium.path()
    }

    /// Starts the threads that read. What cannot be read is passed to `report`: damage once for each place, and a failing medium once until it can be
    /// read again.
    pub fn start(self, options: &ReadOptions, report: Report) -> io::Result<Reader> {
        Reader::start(self.0, Faults::new(report), options.jobs, options.cache_bytes)
    }
}
