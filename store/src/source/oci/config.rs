//! The config of an image: what is read of it.

use serde_json::Value;

use crate::error::ImageFault;
use crate::oci::{Digest, Document};
use sealift_verify::trust::Utc;

/// What the config says.
pub(super) struct Config {
    /// The digests of the uncompressed layers.
    pub(super) diff_ids: Vec<Digest>,
    /// When the image was made, in seconds since 1970; 0 if that is not known, or before 1970.
    pub(super) created: i64,
}

impl Config {
    /// Reads a config.
    pub(super) fn of(document: &Document) -> Result<Self, ImageFault> {
        document.fields()?;
        let diff_ids = document.value.pointer("/rootfs/diff_ids").and_then(Value::as_array);
        let diff_ids = diff_ids.ok_or_else(|| document.no("rootfs.diff_ids"))?.iter().map(|digest| {
            let digest = digest.as_str().ok_or_else(|| document.no("rootfs.diff_ids"))?;
            document.digest(digest)
        });
        let created = document.value.get("created").and_then(Value::as_str).and_then(|text| Utc::parse(text).ok());
        Ok(Self { diff_ids: diff_ids.collect::<Result<_, _>>()?, created: created.map_or(0, |utc| utc.0.max(0)) })
    }

    /// Checks that there is one digest for each layer.
    pub(super) fn check_layers(&self, layers: usize) -> Result<(), ImageFault> {
        let diff_ids = self.diff_ids.len();
        if layers == diff_ids { Ok(()) } else { Err(ImageFault::LayerCount { layers, diff_ids }) }
    }
}
