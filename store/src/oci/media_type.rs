//! The types of an image's files.

/// A manifest.
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// A list of manifests.
pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// A config.
pub(crate) const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// An uncompressed layer.
pub(crate) const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// Docker's types of the same.
const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";
/// All manifests of Docker's first schema have this beginning.
const DOCKER_SCHEMA_1: &str = "application/vnd.docker.distribution.manifest.v1+";

/// All types of a layer without the suffix that names its compression.
const LAYERS: [&str; 4] = [
    LAYER,
    "application/vnd.oci.image.layer.nondistributable.v1.tar",
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.foreign.diff.tar",
];

/// Returns whether it is a manifest of an image.
pub(crate) fn is_manifest(media_type: &str) -> bool {
    [MANIFEST, DOCKER_MANIFEST].contains(&media_type)
}

/// Returns whether it is a list of manifests.
pub(crate) fn is_index(media_type: &str) -> bool {
    [INDEX, DOCKER_INDEX].contains(&media_type)
}

/// Returns whether it is a manifest of Docker's first schema.
pub(crate) fn is_schema_1(media_type: &str) -> bool {
    media_type.starts_with(DOCKER_SCHEMA_1)
}

/// Returns whether it is the config of an image.
pub(crate) fn is_config(media_type: &str) -> bool {
    [CONFIG, DOCKER_CONFIG].contains(&media_type)
}

/// Returns whether it is a layer, compressed or not.
pub(crate) fn is_layer(media_type: &str) -> bool {
    let compressions = ["+gzip", "+zstd", ".gzip", ".zstd"];
    let plain = compressions.iter().find_map(|suffix| media_type.strip_suffix(suffix)).unwrap_or(media_type);
    LAYERS.contains(&plain)
}

/// Returns whether it is an uncompressed layer.
pub(crate) fn is_plain_layer(media_type: &str) -> bool {
    LAYERS.contains(&media_type)
}

/// Returns whether it is an encrypted layer (ocicrypt).
pub(crate) fn is_encrypted(media_type: &str) -> bool {
    media_type.ends_with("+encrypted")
}
