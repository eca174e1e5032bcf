//! Without the feature `composefs`: no images are stated.

use sealift_format::verity::Algorithm;
use sealift_format::{Image, Index};

use super::PackOptions;
use super::sequence::PackedObject;
use crate::Error;

/// Refuses every image.
pub(super) fn check(images: &[Algorithm]) -> Result<(), Error> {
    match images {
        [] => Ok(()),
        _ => Err(Error::NoComposefs),
    }
}

/// Returns no images.
pub(super) fn state(_: &Index, _: &[PackedObject], options: &PackOptions) -> Result<Vec<Image>, Error> {
    check(&options.images).map(|()| Vec::new())
}
