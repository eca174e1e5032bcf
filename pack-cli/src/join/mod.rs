//! Joins a delta with its bases into the full bundle that it stands for, byte for byte (spec 10.1).
//!
//! A mirror that fetched a delta can serve the full bundle too, with the publisher's signatures. Chunks that a base has are copied as stored; the
//! others are compressed again at the publisher's level. The result is accepted only if it matches what the delta declares.
//!
//! ```no_run
//! # fn main() -> Result<(), sealift::Error> {
//! use sealift::join::{JoinOptions, join};
//! use sealift::pack::Output;
//! use sealift::trust::{Guard, TrustOptions};
//! use sealift::{Input, Limits, Progress};
//!
//! let guard = Guard::load(&TrustOptions::default())?;
//! let base = Input::open("os-8.sealift".as_ref())?;
//! let delta = guard.admit(Input::open("os-8-to-9.sealift".as_ref())?, Limits::default())?;
//! let output = Output::File("os-9.sealift".into());
//! let stats = join(vec![base], delta, &output, &JoinOptions::default(), &Progress::default())?;
//! println!("{} of {} chunks were copied", stats.copied_chunks, stats.root.maxima.chunks);
//! # Ok(())
//! # }
//! ```

mod chunks;
mod objects;

use std::path::Path;

use sealift_format::num::wide;
use sealift_format::{Base as RootBase, Limits, Opened, Root, verity};

use crate::Phase;
use crate::pack::compress::{Compressor, encoder};
use crate::pack::{Output, Spool};
use crate::trust::Trusted;
use crate::{Error, Input, Progress};
use chunks::Joiner;
use objects::Objects;
use sealift_store::base::{Base, Bases, BundleBase, BundleFile};

/// Options of a join.
#[derive(Clone, Debug)]
pub struct JoinOptions {
    /// Limits on the bundles' costs.
    pub limits: Limits,
    /// Number of threads.
    pub jobs: usize,
}

impl Default for JoinOptions {
    /// As many threads as the machine runs in parallel.
    fn default() -> Self {
        Self { limits: Limits::default(), jobs: std::thread::available_parallelism().map_or(1, usize::from) }
    }
}

/// The result of a join.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JoinStats {
    /// The full bundle's root.
    pub root: Root,
    /// Size of the whole file in bytes.
    pub file_bytes: u64,
    /// Chunks that were copied from a base.
    pub copied_chunks: u64,
    /// Their stored bytes.
    pub copied_bytes: u64,
    /// Chunks that were encoded.
    pub encoded_chunks: u64,
    /// Their stored bytes.
    pub encoded_bytes: u64,
}

/// Rebuilds the full bundle that `delta` stands for. `bases` are bundles of all of its bases, in any order. The delta, which is trusted, vouches for
/// them and for the full bundle.
///
/// # Errors
/// Returns an error if the delta is damaged, is no delta bundle, or does not declare which full bundle it stands for; if `bases` are not its bases,
/// or are damaged; if this encoder's output differs from the publisher's; or if the output cannot be written. Nothing is left at the output then.
pub fn join(
    bases: Vec<Input>,
    delta: Trusted,
    output: &Output,
    options: &JoinOptions,
    progress: &Progress,
) -> Result<JoinStats, Error> {
    let path = delta.path().to_owned();
    let failed = |error: Error| error.of_bundle(&path);
    let (delta, opened) = delta.open_any().map_err(failed)?;
    let opened = match opened {
        Opened::Delta(opened) => opened,
        Opened::Whole(_) => {
            return Err(Error::Usage(format!("{} is a full bundle itself: there is nothing to join", path.display())));
        }
    };
    let Some(full) = opened.head.root().full.clone() else { return Err(Error::NoFull { path }) };
    options.limits.check(full.head.root()).map_err(|error| failed(error.into()))?;
    let bases = open_bases(bases, opened.bases(), &options.limits, &path)?;
    let bundle = opened.complete(&bases.indexes()).map_err(|error| failed(error.into()))?;
    let delta = BundleBase::new(BundleFile::new(&delta, bundle)?);
    let objects = Objects::new(&delta, &bases).map_err(failed)?;
    let layout = objects.lay_out(&full.head.root().maxima).map_err(failed)?;

    let other = || Error::OtherEncoder { path: path.clone(), packed: full.encoder.clone(), own: encoder() };
    let (contents, maxima) = (&full.head.root().contents, &full.head.root().maxima);
    let mut compressor = Compressor::for_front(full.level.into())?;
    // The index first: a difference between the encoders shows soonest here.
    let index = compressor.compress(delta.file.bundle.index.bytes())?.to_vec();
    if !is_it(&index, contents.index_stored, &contents.index_blake3) {
        return Err(other());
    }
    progress.enter(Phase::Encoding, maxima.data, 0);
    let mut spool = Spool::create(output)?;
    spool.leave_room(full.head.chunks_at())?;
    let (piece_len, level) = (maxima.piece_len(), full.level.into());
    let joiner = Joiner { objects: &objects, layout: &layout, piece_len, level, progress };
    let made = joiner.run(&full.layouts, spool, options.jobs.max(1))?;

    progress.enter(Phase::Finishing, 0, 0);
    let layout_bytes = made.layout.encode();
    let layout = compressor.compress(&layout_bytes)?;
    let is_same = contents.layout_len == wide(layout_bytes.len())
        && maxima.chunks_stored == made.copied_bytes.saturating_add(made.encoded_bytes)
        && is_it(layout, contents.layout_stored, &contents.layout_blake3);
    if !is_same {
        return Err(other());
    }
    made.spool.finish(&[&full.head.encode(), layout, &index].concat())?;
    Ok(JoinStats {
        root: full.head.root().clone(),
        file_bytes: full.head.file_len(),
        copied_chunks: made.copied_chunks,
        copied_bytes: made.copied_bytes,
        encoded_chunks: made.encoded_chunks,
        encoded_bytes: made.encoded_bytes,
    })
}

/// Returns whether stored bytes are those that the full bundle's root declares.
fn is_it(stored: &[u8], len: u64, blake3: &[u8; 32]) -> bool {
    wide(stored.len()) == len && blake3::hash(stored).as_bytes() == blake3
}

/// Opens the bases and returns them in the order of the delta's root.
fn open_bases(inputs: Vec<Input>, declared: &[RootBase], limits: &Limits, delta: &Path) -> Result<Bases, Error> {
    let mut list: Vec<Option<Base>> = declared.iter().map(|_| None).collect();
    for input in inputs {
        // The delta names its bases, and everything read of one is compared with its name: no other trust is needed.
        let path = input.path().to_owned();
        let opened = input.begin(limits.clone()).and_then(Base::of_known);
        let base = opened.map_err(|error| error.of_bundle(&path))?;
        let digest = verity::digest(base.index.bytes());
        let Some(at) = declared.iter().position(|declared| declared.index_digest == digest) else {
            let problem = sealift_store::wrong_base(declared, format_args!("this bundle is {}", base.named()));
            return Err(Error::MissingBase { path, problem });
        };
        list[at] = Some(base);
    }
    let missing = list.iter().position(Option::is_none).map(|at| &declared[at]);
    match missing {
        None => Ok(Bases::new(list.into_iter().flatten().collect())),
        Some(base) => {
            let problem = format!("this delta needs {base}, which was not given");
            Err(Error::MissingBase { path: delta.to_owned(), problem })
        }
    }
}
