//! Container images: the names and JSON documents that OCI layouts and docker archives consist of (OCI image format specification 1.1).

mod descriptor;
mod digest;
mod document;
mod manifest;
pub(crate) mod media_type;
mod reference;

pub(crate) use descriptor::Descriptor;
pub(crate) use digest::Digest;
pub(crate) use document::{Document, bytes_of};
pub(crate) use manifest::Manifest;
pub(crate) use reference::ImageReference;

/// The file that marks a layout, and its content.
pub(crate) const LAYOUT_FILE: &str = "oci-layout";
pub(crate) const LAYOUT: &str = r#"{"imageLayoutVersion":"1.0.0"}"#;
/// The list of a layout's images.
pub(crate) const INDEX_FILE: &str = "index.json";
/// The annotation of a descriptor in which containerd keeps an image's whole name.
pub(crate) const CONTAINERD_NAME: &str = "io.containerd.image.name";
/// The annotation of a descriptor that has the image's tag.
pub(crate) const REF_NAME: &str = "org.opencontainers.image.ref.name";
