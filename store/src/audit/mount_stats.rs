//! What a mount reports.

/// The result of a mount.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MountStats {
    /// The tree's name in the store.
    pub name: String,
    /// The image, as `sha256:` and hexadecimal digits.
    pub image: String,
    /// Objects that the image names.
    pub objects: u64,
    /// How they were checked.
    pub checked: ImageChecked,
    /// Bytes read and hashed for the check.
    pub hashed_bytes: u64,
}

/// How objects were found to match the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "there is nobody else")]
pub enum ImageChecked {
    /// By the kernel, which opens only sealed objects with the digests that the image names, and checks each byte that it returns.
    Kernel,
    /// By reading them before the mount; anyone with write access to the store can change them afterwards.
    Hashed,
}
