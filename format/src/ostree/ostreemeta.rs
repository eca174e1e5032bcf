//! The extended attribute [`NAME`] in which a `bare-user` repository keeps what its files do not have: `(uuua(ayay))`, as a dirmeta.

use alloc::vec::Vec;

use super::{Malformed, attributes, file};
use crate::Attributes;

/// The attribute's name.
pub const NAME: &str = "user.ostreemeta";

/// Parses the attribute of a file object.
///
/// # Errors
/// Returns an error if it is not in normal form, not that of a regular file or symbolic link, or has what [`Attributes`] cannot hold.
pub fn parse(bytes: &[u8]) -> Result<Attributes, Malformed> {
    file::of_file(attributes::parse(bytes)?)
}

/// Encodes the attribute of a file object.
#[must_use]
pub fn encode(attributes: &Attributes) -> Vec<u8> {
    attributes::encode(attributes)
}
