//! The composefs images of a bundle's trees, as the publisher states them (images 2).

use alloc::vec::Vec;

use crate::bytes::Reader;
use crate::num::fit;
use crate::verity::{Algorithm, FileDigest};
use crate::{Error, Part};

/// The composefs image of a tree (images 2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The tree, by the number of its ref in the index.
    pub reference: u16,
    /// The version of the image format, by composefs' numbers: 0 or 1.
    pub version: u8,
    /// The image's fs-verity digest. The image names contents by the same hash algorithm.
    pub digest: FileDigest,
}

impl Image {
    /// The latest version.
    pub const VERSION_MAX: u8 = 1;

    /// Contents of at most this many bytes are stored inside the image (images 3).
    pub const WITHIN_LEN_MAX: u64 = 64;

    fn key(&self) -> (u16, u8, u8) {
        (self.reference, self.version, self.digest.algorithm().number())
    }

    fn parse(reader: &mut Reader<'_>, refs: u16) -> Result<Self, Error> {
        let unsupported = |what, found: u8| Error::Unsupported { part: Part::Root, what, found: found.into() };
        let (reference, version, number) = (reader.u16()?, reader.u8()?, reader.u8()?);
        if version > Self::VERSION_MAX {
            return Err(unsupported("image version", version));
        }
        let Some(algorithm) = Algorithm::from_number(number.into()) else {
            return Err(unsupported("image algorithm", number));
        };
        if reference >= refs {
            return Err(reader.malformed("an image is of a ref that the bundle does not have"));
        }
        let Some(digest) = FileDigest::new(algorithm, reader.take(algorithm.digest_len().into())?) else {
            return Err(reader.malformed("an image's digest has another length")); // it was taken with that length
        };
        Ok(Self { reference, version, digest })
    }
}

/// Parses the section of a root with `refs` refs.
pub(crate) fn parse_images(mut reader: Reader<'_>, refs: u16) -> Result<Vec<Image>, Error> {
    let count = reader.u16()?;
    if count == 0 {
        return Err(reader.malformed("the list of images is empty"));
    }
    let mut images: Vec<Image> = Vec::new();
    for _ in 0..count {
        let image = Image::parse(&mut reader, refs)?;
        if images.last().is_some_and(|last| last.key() >= image.key()) {
            return Err(reader.malformed("images do not ascend"));
        }
        images.push(image);
    }
    reader.finish()?;
    Ok(images)
}

pub(crate) fn encode_images(images: &[Image]) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    out.extend(fit::<u16>(images.len(), "the number of images")?.to_le_bytes());
    for image in images {
        out.extend(image.reference.to_le_bytes());
        out.extend([image.version, image.digest.algorithm().number()]);
        out.extend(image.digest.as_bytes());
    }
    Ok(out)
}
