//! Stands in for zlib where the feature `recipes` is off.

use sealift_format::Zlib;

use crate::Error;

/// # Errors
/// Always returns an error.
pub(super) fn encode(_parameters: &Zlib, _bytes: &[u8], _len: usize) -> Result<Option<Vec<u8>>, Error> {
    Err(Error::Usage("this program was built without encoders: it cannot make objects that need zlib".into()))
}
