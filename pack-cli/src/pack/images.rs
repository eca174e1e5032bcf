//! The composefs images that a bundle declares for its trees (images 2).

use std::collections::HashMap;

use sealift_format::verity::{Algorithm, FileDigest, FileHasher};
use sealift_format::{Image, Index, Object, Row};
use sealift_store::composefs::{ImageContent, make_image};

use super::PackOptions;
use super::image_wish::parameters;
use super::sequence::PackedObject;
use crate::Error;

/// Refuses a hash that is asked for twice.
pub(super) fn check(images: &[Algorithm]) -> Result<(), Error> {
    match images {
        [a, b, ..] if a == b || images.len() > 2 => Err(Error::Usage("the same image is requested twice".into())),
        _ => Ok(()),
    }
}

/// Builds the image of each ref's tree with each requested hash, and returns the digests.
pub(super) fn state(index: &Index, packed: &[PackedObject], options: &PackOptions) -> Result<Vec<Image>, Error> {
    if options.images.is_empty() {
        return Ok(Vec::new());
    }
    let by_id: HashMap<&[u8; 32], &PackedObject> = packed.iter().map(|object| (&object.id, object)).collect();
    let packed_of = |object: Row<Object>| by_id.get(&index.object(object).id).copied();
    let sha256: HashMap<_, FileDigest> = Row::all(index.objects())
        .filter_map(|(number, _)| Some((number, FileDigest::from(packed_of(number)?.verity))))
        .collect();
    let mut algorithms = options.images.clone();
    algorithms.sort_by_key(|algorithm| algorithm.number());
    let mut images = Vec::new();
    for (reference, tree) in (0..).zip(index.refs()) {
        for &algorithm in &algorithms {
            let image = make_image(index, tree, Image::VERSION_MAX, algorithm, &|object| {
                let found = packed_of(object)?;
                if index.object(object).size <= Image::WITHIN_LEN_MAX {
                    return Some(ImageContent::Within(found.images().map_or(&[], |images| &images.within)));
                }
                let digest = match algorithm {
                    Algorithm::Sha256 => sha256.get(&object),
                    Algorithm::Sha512 => found.images().and_then(|images| images.sha512.as_ref()),
                };
                digest.map(ImageContent::Named)
            })?;
            let mut hasher = FileHasher::new(&parameters(algorithm));
            hasher.update(&image);
            images.push(Image { reference, version: Image::VERSION_MAX, digest: hasher.finish() });
        }
    }
    Ok(images)
}
