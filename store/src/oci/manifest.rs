//! The manifest of an image.

use serde_json::Value;

use super::{Descriptor, Digest, Document, media_type};
use crate::error::{ImageFault, shown};

/// What a manifest names.
pub(crate) struct Manifest {
    pub(crate) config: Descriptor,
    pub(crate) layers: Vec<Descriptor>,
}

impl Manifest {
    /// Reads a manifest; `stated` is the type that its descriptor states.
    pub(crate) fn of(document: &Document, stated: &str) -> Result<Self, ImageFault> {
        document.fields()?;
        let own = document.media_type().unwrap_or(stated);
        let version = document.value.get("schemaVersion").and_then(Value::as_u64);
        if media_type::is_schema_1(own) || version == Some(1) {
            return Err(ImageFault::Schema1);
        }
        if media_type::is_index(own) {
            return Err(ImageFault::Platforms { platforms: platforms(document) });
        }
        if !own.is_empty() && !media_type::is_manifest(own) {
            return Err(ImageFault::Artifact { media_type: shown(own.as_bytes()) });
        }
        if version != Some(2) {
            return Err(document.no("schemaVersion"));
        }
        let config = document.value.get("config").ok_or_else(|| document.no("config"))?;
        let config = Descriptor::of(document, config, "the config")?;
        if !media_type::is_config(&config.media_type) {
            return Err(ImageFault::Artifact { media_type: config.shown_type() });
        }
        let layers = document.list("layers")?.iter().zip(1..).map(|(layer, number)| {
            let layer = Descriptor::of(document, layer, &format!("layer {number}"))?;
            check_type(&layer, number)?;
            Ok(layer)
        });
        Ok(Self { config, layers: layers.collect::<Result<_, _>>()? })
    }

    /// Returns whether it is the same with uncompressed layers.
    pub(crate) fn is_plain(&self, document: &Document, diff_ids: &[Digest]) -> bool {
        document.media_type().is_none_or(|own| own == media_type::MANIFEST)
            && self.config.media_type == media_type::CONFIG
            && self.layers.iter().all(|layer| layer.media_type == media_type::LAYER)
            && self.layers.iter().map(|layer| layer.digest).eq(diff_ids.iter().copied())
    }
}

fn check_type(layer: &Descriptor, number: usize) -> Result<(), ImageFault> {
    if media_type::is_encrypted(&layer.media_type) {
        return Err(ImageFault::Encrypted { number, media_type: layer.shown_type() });
    }
    if !media_type::is_layer(&layer.media_type) {
        return Err(ImageFault::LayerType { number, media_type: layer.shown_type() });
    }
    Ok(())
}

/// Returns the platforms of a list of manifests, for a message.
fn platforms(document: &Document) -> Vec<String> {
    let manifests = document.list("manifests").unwrap_or_default();
    let platform = |manifest: &Value| {
        let platform = manifest.get("platform")?;
        let names = ["os", "architecture", "variant"].map(|field| platform.get(field).and_then(Value::as_str));
        let names: Vec<&str> = names.into_iter().flatten().collect();
        // Attestations of builds are listed beside images, for no platform.
        (!names.contains(&"unknown")).then(|| shown(names.join("/").as_bytes()))
    };
    manifests.iter().filter_map(platform).collect()
}
