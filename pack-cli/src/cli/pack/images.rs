//! What `sealift pack` prints of container images.

use sealift::source::{ManifestChange, Source};
use serde::Serialize;

use crate::show::Show;

/// An image whose manifest was written anew, and the ref that it became.
#[derive(Debug, Serialize)]
pub(super) struct PackedImage {
    #[serde(rename = "ref")]
    reference: String,
    /// The digest of the config.
    id: String,
    /// The digest of the manifest in the bundle.
    manifest: String,
    /// That of the manifest before, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_manifest: Option<String>,
}

impl PackedImage {
    /// Returns those of the sources whose manifests changed.
    pub(super) fn all(sources: &[(String, Source)]) -> Vec<Self> {
        let image = |(name, source): &(String, Source)| {
            let Source::Oci(source) = source else { return None };
            let ManifestChange { before, after, image } = source.manifest_change()?.clone();
            Some(Self { reference: name.clone(), id: image, manifest: after, previous_manifest: before })
        };
        sources.iter().filter_map(image).collect()
    }

    /// Says on standard error that the manifest has another digest, and the image has not.
    pub(super) fn note(&self, show: Show) {
        let Self { reference, id, manifest, .. } = self;
        match &self.previous_manifest {
            Some(before) => show.note(&format!(
                "the layers of {reference} are stored uncompressed, so its manifest has the digest {manifest}, not {before}; the image keeps its id \
                 {id}"
            )),
            None => show.note(&format!("the image {reference} has the id {id} and a new manifest {manifest}")),
        }
    }
}
