//! Stands in for the encoders where the feature `recipes` is off.

use sealift_format::{Coder, Encoder};

use crate::Error;

pub(super) fn has(_encoder: Encoder) -> bool {
    false
}

/// # Errors
/// Always returns an error.
pub fn encode(coder: &Coder, _bytes: &[u8], _len: usize) -> Result<Option<Vec<u8>>, Error> {
    let encoder = coder.encoder();
    Err(Error::Usage(format!("this program was built without encoders: it cannot make objects that need {encoder}")))
}
