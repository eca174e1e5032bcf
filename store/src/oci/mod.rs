//! Container images: the names and JSON documents that OCI layouts and docker archives consist of (OCI image format specification 1.1).

mod descriptor;
mod digest;
mod document;
pub(crate) mod media_type;
mod reference;

pub(crate) use descriptor::Descriptor;
pub(crate) use digest::Digest;
pub(crate) use document::{Document, bytes_of};
pub(crate) use reference::ImageReference;

/// The file that marks a layout, and its content.
pub(crate) const LAYOUT_FILE: &str = "oci-layout";
pub(crate) const LAYOUT: &str = r#"{"imageLayoutVersion":"1.0.0"}"#;
/// The list of a layout's images.
pub(crate) const INDEX_FILE: &str = "index.json";
/// The annotation of a descriptor that has the image's tag.
pub(crate) const REF_NAME: &str = "org.opencontainers.image.ref.name";
