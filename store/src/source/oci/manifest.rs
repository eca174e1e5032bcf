//! The manifest of an image, before and after its layers are uncompressed.

use serde_json::{Map, Value, json};

use crate::error::{ImageFault, shown};
use crate::oci::{Descriptor, Digest, Document, media_type};
use sealift_format::num::wide;

/// Annotations of a layer that say where its files lie in the compressed bytes (eStargz, zstd:chunked).
const OF_COMPRESSED: [&str; 4] = [
    "containerd.io/snapshot/stargz/",
    "io.containers.estargz.",
    "io.containers.zstd-chunked.",
    "io.github.containers.zstd-chunked.",
];

/// What a manifest names.
pub(super) struct Manifest {
    pub(super) config: Descriptor,
    pub(super) layers: Vec<Descriptor>,
}

impl Manifest {
    /// Reads a manifest; `stated` is the type that its descriptor states.
    pub(super) fn of(document: &Document, stated: &str) -> Result<Self, ImageFault> {
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
    pub(super) fn is_plain(&self, document: &Document, diff_ids: &[Digest]) -> bool {
        document.media_type().is_none_or(|own| own == media_type::MANIFEST)
            && self.config.media_type == media_type::CONFIG
            && self.layers.iter().all(|layer| layer.media_type == media_type::LAYER)
            && self.layers.iter().map(|layer| layer.digest).eq(diff_ids.iter().copied())
    }
}

/// Returns the manifest with uncompressed layers, of these digests and lengths; everything else stays.
pub(super) fn with_plain_layers(document: &Document, layers: &[(Digest, u64)]) -> Result<Value, ImageFault> {
    let mut fields = document.fields()?.clone();
    fields.insert("mediaType".into(), media_type::MANIFEST.into());
    let config = fields.get_mut("config").and_then(Value::as_object_mut).ok_or_else(|| document.no("config"))?;
    config.insert("mediaType".into(), media_type::CONFIG.into());
    let before = document.list("layers")?;
    let layers = before.iter().zip(layers).map(|(layer, (digest, size))| {
        let fields = layer.as_object().ok_or_else(|| document.no("layers"))?;
        Ok(plain_layer(fields, *digest, *size))
    });
    let layers = layers.collect::<Result<Vec<_>, ImageFault>>()?;
    fields.insert("layers".into(), layers.into());
    Ok(fields.into())
}

/// Returns a manifest of a config and uncompressed layers.
pub(super) fn new((config, config_len): (Digest, usize), layers: &[(Digest, u64)]) -> Value {
    let layers: Vec<Value> = layers.iter().map(|(digest, size)| plain_layer(&Map::new(), *digest, *size)).collect();
    let config = json!({ "mediaType": media_type::CONFIG, "digest": config.to_string(), "size": wide(config_len) });
    json!({ "schemaVersion": 2, "mediaType": media_type::MANIFEST, "config": config, "layers": layers })
}

/// Returns the descriptor of an uncompressed layer.
fn plain_layer(before: &Map<String, Value>, digest: Digest, size: u64) -> Value {
    let mut fields = before.clone();
    let digest = digest.to_string();
    if fields.get("digest").and_then(Value::as_str) != Some(&digest) {
        // They hold the compressed bytes, or lead to them.
        fields.remove("data");
        fields.remove("urls");
        if let Some(annotations) = fields.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.retain(|key, _| !OF_COMPRESSED.iter().any(|prefix| key.starts_with(prefix)));
        }
    }
    fields.insert("mediaType".into(), media_type::LAYER.into());
    fields.insert("digest".into(), digest.into());
    fields.insert("size".into(), size.into());
    fields.into()
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
