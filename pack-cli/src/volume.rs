//! Checks one volume of a bundle, without the others (volumes 3).
//!
//! ```no_run
//! # fn main() -> Result<(), sealift::Error> {
//! # let path = std::path::Path::new("os-7.002-of-005.sealift-volume");
//! use sealift::volume::verify_volume;
//! use sealift::{Limits, OpenVolume, Progress};
//!
//! if let Some(volume) = OpenVolume::open(path)? {
//!     let checked = verify_volume(&volume, &Limits::default(), &Progress::default())?;
//!     println!("{}: {} sound chunks", volume.label(), checked.chunks);
//! }
//! # Ok(())
//! # }
//! ```

use sealift_format::{Row, num};
use sealift_store::OpenVolume;
use sealift_verify::content::check_stored;

use crate::{Error, Limits, Phase, Progress};

/// The result of checking one volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VolumeStats {
    /// The number of its first chunk in the bundle, or of the next one if it has none.
    pub first_chunk: u64,
    /// How many chunks it has.
    pub chunks: u64,
    /// The length of its file in bytes.
    pub file_bytes: u64,
}

/// Checks every byte of a volume: header, head, layout, the index if it is there, and the volume's chunks. Who signed the bundle is for the caller to
/// judge, from [`OpenVolume::head`].
///
/// # Errors
/// Returns an error if the volume is damaged or cannot be read.
pub fn verify_volume(volume: &OpenVolume, limits: &Limits, progress: &Progress) -> Result<VolumeStats, Error> {
    let of_it = |error: Error| error.of_bundle(volume.path());
    let chunks = volume.chunks(limits)?;
    volume.check_len()?;
    progress.enter(Phase::Verifying, volume.header().len, 0);
    volume.check_index()?;
    let carried = volume.header().chunks(volume.head(), &chunks).map_err(|error| of_it(error.into()))?;
    let mut stored = Vec::new();
    for (number, chunk) in Row::all(&chunks).skip(carried.start).take(carried.len()) {
        progress.check()?;
        volume.read_chunk(chunk, &mut stored)?;
        check_stored(number, chunk, &stored).map_err(|error| of_it(error.into()))?;
        progress.add(chunk.stored_len.into(), 0);
    }
    Ok(VolumeStats {
        first_chunk: num::wide(carried.start),
        chunks: num::wide(carried.len()),
        file_bytes: volume.header().own_len(volume.head()),
    })
}
