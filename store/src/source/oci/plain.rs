//! The manifest of an image whose layers are uncompressed.

use serde_json::{Map, Value, json};

use crate::error::ImageFault;
use crate::oci::{Digest, Document, media_type};
use sealift_format::num::wide;

/// Annotations of a layer that say where its files lie in the compressed bytes (eStargz, zstd:chunked).
const OF_COMPRESSED: [&str; 4] = [
    "containerd.io/snapshot/stargz/",
    "io.containers.estargz.",
    "io.containers.zstd-chunked.",
    "io.github.containers.zstd-chunked.",
];

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
pub(super) fn manifest((config, config_len): (Digest, usize), layers: &[(Digest, u64)]) -> Value {
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
