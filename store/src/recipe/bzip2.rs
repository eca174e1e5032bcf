//! libbz2 in Rust, whose output is that of 1.0.8 (recipes 5).

use bzip2::{Action, Compress, Compression, Status};
use sealift_format::Bzip2;

use crate::Error;

/// What the programs of bzip2 use (`BZ2_bzCompressInit`).
const WORK_FACTOR: u32 = 30;

/// Returns what libbz2 makes of `bytes`; `None` if that is longer than `len` bytes.
///
/// # Errors
/// Returns an error if libbz2 does.
pub(super) fn encode(parameters: Bzip2, bytes: &[u8], len: usize) -> Result<Option<Vec<u8>>, Error> {
    let mut encoder = Compress::new(Compression::new(parameters.level.into()), WORK_FACTOR);
    // Room for one byte more, so that longer output shows.
    let mut out = Vec::with_capacity(len.saturating_add(1));
    let mut left = bytes;
    loop {
        let before = encoder.total_in();
        let status = encoder.compress_vec(left, &mut out, Action::Finish);
        let status = status.map_err(|error| Error::Usage(format!("libbz2 does not encode: {error}")))?;
        let taken = usize::try_from(encoder.total_in() - before).unwrap_or(usize::MAX);
        left = left.get(taken..).unwrap_or_default();
        match status {
            Status::StreamEnd => return Ok((out.len() <= len).then_some(out)),
            _ if out.len() > len => return Ok(None),
            _ => {}
        }
    }
}
