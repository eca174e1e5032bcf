//! Content that does not compress.

use std::fmt::Debug;

/// Returns incompressible bytes, the same for the same seed. Blocks of them differ from each other and from those of other seeds.
///
/// # Panics
///
/// Panics if the seed is negative.
#[must_use]
pub fn noise(seed: impl TryInto<u64, Error: Debug>, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let seed = seed.try_into().expect("it is not negative");
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}
