//! A descriptor: the type, digest and length of another file of the image.

use serde_json::Value;

use super::{Digest, Document};
use crate::error::{ImageFault, shown};

/// What a document says of another file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Descriptor {
    /// The type; empty if there is none.
    pub(crate) media_type: String,
    pub(crate) digest: Digest,
    /// The length in bytes.
    pub(crate) size: u64,
}

impl Descriptor {
    /// Reads a descriptor of a document; `field` is its name there.
    ///
    /// # Errors
    /// Returns an error if it has no digest or no size, or has a digest that is not SHA-256.
    pub(crate) fn of(document: &Document, value: &Value, field: &str) -> Result<Self, ImageFault> {
        let digest = value.get("digest").and_then(Value::as_str);
        let digest = document.digest(digest.ok_or_else(|| document.no(format!("digest of {field}")))?)?;
        let size = value.get("size").and_then(Value::as_u64);
        let size = size.ok_or_else(|| document.no(format!("size of {field}")))?;
        let media_type = value.get("mediaType").and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(Self { media_type, digest, size })
    }

    /// Returns the type, for a message.
    pub(crate) fn shown_type(&self) -> String {
        shown(self.media_type.as_bytes())
    }
}
