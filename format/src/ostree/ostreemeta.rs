//! The extended attribute [`NAME`] in which a `bare-user` repository keeps the attributes of its files: `(uuua(ayay))`, like a dirmeta.

use alloc::vec::Vec;

use super::{Malformed, attributes, file};
use crate::Attributes;

/// The attribute's name.
pub const NAME: &str = "user.ostreemeta";

/// Parses the attribute of a file object.
///
/// # Errors
/// Returns an error if it is not in normal form, not for a regular file or symbolic link, or contains something that [`Attributes`] cannot hold.
pub fn parse(bytes: &[u8]) -> Result<Attributes, Malformed> {
    file::of_file(attributes::parse(bytes)?)
}

/// Encodes the attribute of a file object.
#[must_use]
pub fn encode(attributes: &Attributes) -> Vec<u8> {
    attributes::encode(attributes)
}
