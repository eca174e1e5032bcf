//! What a directory that is given as `oci:DIR` requires.

use std::fs::File;
use std::io::Read as _;

use sealift_format::{Index, Ref};
use serde_json::Value;

use crate::address::check_image_tree;
use crate::error::{ImageFault, shown};
use crate::oci::{Document, INDEX_FILE, REF_NAME};
use crate::{Error, Site};

/// The most bytes of an existing list of images that are read.
const INDEX_MAX: u64 = 16 << 20;

/// Checks that the tree is a layout, and that the target's layout has at most one image: the list of images is a file like any other, so an update
/// replaces it.
pub(super) fn check(site: &Site, index: &Index, tree: &Ref) -> Result<(), Error> {
    check_image_tree(index, tree)?;
    let mut bytes = Vec::new();
    // What is no list of images is left to the update, as any other file.
    let Ok(file) = File::open(site.path().join(INDEX_FILE)) else { return Ok(()) };
    let Ok(_) = file.take(INDEX_MAX).read_to_end(&mut bytes) else { return Ok(()) };
    let Ok(list) = Document::parse(INDEX_FILE, &bytes) else { return Ok(()) };
    let images = list.list("manifests").unwrap_or_default();
    if images.len() < 2 {
        return Ok(());
    }
    let tag = |(number, entry): (usize, &Value)| {
        let tag = entry.get("annotations").and_then(|annotations| annotations.get(REF_NAME)?.as_str());
        tag.map_or_else(|| format!("@{number}"), |tag| shown(tag.as_bytes()))
    };
    let fault = Box::new(ImageFault::WouldLose { tags: images.iter().enumerate().map(tag).collect() });
    Err(Error::Image { path: site.path().to_owned(), fault })
}
