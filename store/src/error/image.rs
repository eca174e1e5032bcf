//! Why a container image cannot be packed or written.

/// The reason why a container image cannot be packed or written. Texts of the image in it are escaped, since they are not trusted yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageFault {
    /// The place holds no OCI image layout.
    #[error("not an OCI image layout: it has no {missing}")]
    NotALayout {
        /// The missing file.
        missing: &'static str,
    },
    /// A tree of a bundle is no OCI image layout.
    #[error("the tree is not an OCI image layout: it has no {missing}")]
    NotAnImageTree {
        /// The missing file.
        missing: &'static str,
    },
    /// A layout at a target would lose images.
    #[error("the layout there holds other images: {}", tags.join(", "))]
    WouldLose {
        /// Their tags; `@N` for one without.
        tags: Vec<String>,
    },
    /// An archive has no list of images.
    #[error("not a docker archive: it has no manifest.json")]
    NotADockerArchive,
    /// The layout has an unknown version.
    #[error("its oci-layout states version {version}, and sealift knows 1.0.0")]
    Version {
        /// The version.
        version: String,
    },
    /// There is no image.
    #[error("it holds no image")]
    Empty,
    /// There are several images, and none was chosen.
    #[error("it holds several images: {}", tags.join(", "))]
    Several {
        /// Their tags; `@N` for one without.
        tags: Vec<String>,
    },
    /// No image has a tag.
    #[error("it holds no image {tag}; it has {}", tags.join(", "))]
    NoTag {
        /// The tag.
        tag: String,
        /// The tags of all images; `@N` for one without.
        tags: Vec<String>,
    },
    /// What the tag names is a list of images.
    #[error("it holds an image for each of several platforms: {}", platforms.join(", "))]
    Platforms {
        /// The platforms.
        platforms: Vec<String>,
    },
    /// A manifest of Docker's first schema, which does not name a config.
    #[error("its manifest has the form of schema 1, which names no config")]
    Schema1,
    /// The manifest is not of an image.
    #[error("it holds an artifact of type {media_type}, not an image")]
    Artifact {
        /// The type of the config or the manifest.
        media_type: String,
    },
    /// A document is not valid JSON.
    #[error("{path} is not valid JSON: {problem}")]
    Json {
        /// The document.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A document lacks something, or has it in another form.
    #[error("{path} has no valid {field}")]
    Field {
        /// The document.
        path: String,
        /// What is missing.
        field: String,
    },
    /// A document is too long.
    #[error("{path} has {len} bytes, more than the limit of {max}")]
    TooLong {
        /// The document.
        path: String,
        /// Its length.
        len: u64,
        /// The maximum length.
        max: u64,
    },
    /// A digest that cannot be a file's name or cannot be checked.
    #[error("{path} has the digest {digest}, which is not sha256: and 64 hexadecimal digits")]
    DigestForm {
        /// The document.
        path: String,
        /// The digest.
        digest: String,
    },
    /// A file is missing.
    #[error("{path} is missing")]
    Missing {
        /// The file.
        path: String,
    },
    /// A file has another length than its descriptor says.
    #[error("{path} has {found} bytes, and its descriptor says {expected}")]
    Size {
        /// The file.
        path: String,
        /// What the descriptor says.
        expected: u64,
        /// The length.
        found: u64,
    },
    /// A file has another content than its descriptor says.
    #[error("{path} is damaged: its digest is {found}, not {expected}")]
    Digest {
        /// The file.
        path: String,
        /// What the descriptor says.
        expected: String,
        /// That of its content.
        found: String,
    },
    /// A layer has another content than the config says.
    #[error(
        "{path} is not layer {number} of the image: its content has the digest {found}, and the config says {expected}"
    )]
    DiffId {
        /// The layer's file.
        path: String,
        /// Its number, from 1.
        number: usize,
        /// What the config says.
        expected: String,
        /// That of its uncompressed content.
        found: String,
    },
    /// Manifest and config disagree about the number of layers.
    #[error("the manifest has {layers} layers, and the config has {diff_ids}")]
    LayerCount {
        /// Layers of the manifest.
        layers: usize,
        /// Layers of the config.
        diff_ids: usize,
    },
    /// A layer is encrypted.
    #[error("layer {number} is encrypted ({media_type})")]
    Encrypted {
        /// Its number, from 1.
        number: usize,
        /// Its type.
        media_type: String,
    },
    /// A layer is of an unknown type.
    #[error("layer {number} is of type {media_type}, which is not a tar archive")]
    LayerType {
        /// Its number, from 1.
        number: usize,
        /// Its type.
        media_type: String,
    },
    /// A layer is compressed in a way that images do not use.
    #[error("{path} is compressed with {program}, and layers are compressed with gzip or zstd")]
    Compression {
        /// The layer's file.
        path: String,
        /// The program that decompresses it.
        program: &'static str,
    },
    /// A layer cannot be decompressed.
    #[error("{path} cannot be decompressed: {problem}")]
    Damaged {
        /// The layer's file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The layers are too large.
    #[error("its layers have more than {max} bytes when they are decompressed, the last of them {path}")]
    TooLarge {
        /// The layer's file.
        path: String,
        /// The maximum length.
        max: u64,
    },
    /// An archive that Docker reads holds uncompressed layers.
    #[error("layer {number} is of type {media_type}, and not an uncompressed tar archive")]
    NotPlain {
        /// Its number, from 1.
        number: usize,
        /// Its type.
        media_type: String,
    },
}
