//! Digests with any parameters of fs-verity: hash algorithm, block size and salt.

use alloc::vec::Vec;
use core::fmt;

use sha2::{Digest as _, Sha256, Sha512};

use super::tree::Tree;
use crate::hex;
use crate::num;

/// A hash algorithm of fs-verity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "the kernel knows no other")]
pub enum Algorithm {
    /// SHA-256, which Sealift uses for files and for its index.
    #[default]
    Sha256,
    /// SHA-512, for stores that use it.
    Sha512,
}

/// The parameters with which a file is sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    algorithm: Algorithm,
    block_len: u32,
    salt: Vec<u8>,
}

/// Why no file can be sealed with these parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParametersError {
    /// The block length is not a power of two, or a block holds fewer than two hashes.
    #[error("blocks of {block_len} bytes: their length is a power of two from {min}, such as 4096")]
    BlockLen {
        /// The requested length of a block in bytes.
        block_len: u32,
        /// The length of the smallest block for this hash algorithm.
        min: u32,
    },
    /// The salt is too long.
    #[error("a salt of {len} bytes: {max} are the most")]
    Salt {
        /// The length of the salt in bytes.
        len: usize,
        /// The length of the longest salt.
        max: usize,
    },
}

/// An fs-verity digest, with its hash algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileDigest {
    algorithm: Algorithm,
    bytes: Vec<u8>,
}

/// Computes digests piece by piece, with any parameters. Updates may have any length.
///
/// ```
/// use sealift_format::verity::{Algorithm, FileHasher, Parameters};
///
/// let parameters = Parameters::new(Algorithm::Sha256, 4096, &[1, 2, 3, 4])?;
/// let mut hasher = FileHasher::new(&parameters);
/// hasher.update(b"foo");
/// hasher.update(b"\n");
/// let digest = "sha256:774462bed179b7a0a7ff51438c19ab227e18ed46be1dfaaf9976a64cce3d72c6";
/// assert_eq!(hasher.finish().to_string(), digest);
/// # Ok::<(), sealift_format::verity::ParametersError>(())
/// ```
#[derive(Clone, Debug)]
pub struct FileHasher {
    parameters: Parameters,
    tree: AnyTree,
}

#[derive(Clone, Debug)]
enum AnyTree {
    Sha256(Tree<Sha256>),
    Sha512(Tree<Sha512>),
}

impl Algorithm {
    /// All algorithms, in the order of the kernel's numbers.
    pub const ALL: [Self; 2] = [Self::Sha256, Self::Sha512];

    /// Returns the kernel's number for it.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Sha256 => 1,
            Self::Sha512 => 2,
        }
    }

    /// Returns the algorithm with this number.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| u16::from(algorithm.number()) == number)
    }

    /// Returns the length of a hash in bytes.
    #[must_use]
    pub fn digest_len(self) -> u8 {
        match self {
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }

    /// Returns the name that the kernel and `fsverity` use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    fn hash(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha256 => Sha256::digest(bytes).to_vec(),
            Self::Sha512 => Sha512::digest(bytes).to_vec(),
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Default for Parameters {
    /// Returns SHA-256, blocks of 4096 bytes and no salt.
    fn default() -> Self {
        Self { algorithm: Algorithm::Sha256, block_len: 4096, salt: Vec::new() }
    }
}

impl Parameters {
    /// The length in bytes of the longest salt.
    pub const SALT_LEN_MAX: usize = 32;
    /// The length in bytes of a descriptor.
    pub const DESCRIPTOR_LEN: usize = 256;

    /// Checks the parameters. Which of these block lengths are supported depends on the kernel; 4096 bytes always are.
    ///
    /// # Errors
    /// Returns an error if the salt is too long, or if the block length is not a power of two or is too small.
    pub fn new(algorithm: Algorithm, block_len: u32, salt: &[u8]) -> Result<Self, ParametersError> {
        let min = 2 * u32::from(algorithm.digest_len());
        if !block_len.is_power_of_two() || block_len < min {
            return Err(ParametersError::BlockLen { block_len, min });
        }
        if salt.len() > Self::SALT_LEN_MAX {
            return Err(ParametersError::Salt { len: salt.len(), max: Self::SALT_LEN_MAX });
        }
        Ok(Self { algorithm, block_len, salt: salt.to_vec() })
    }

    /// Returns the hash algorithm.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the length in bytes of a data block and of a block of the tree.
    #[must_use]
    pub fn block_len(&self) -> u32 {
        self.block_len
    }

    /// Returns the salt, without padding. It is hashed before each block.
    #[must_use]
    pub fn salt(&self) -> &[u8] {
        &self.salt
    }

    /// Returns the parameters and the digest of a file with this descriptor; `None` if the descriptor is not valid. The length of a signature is not
    /// part of the digest.
    #[must_use]
    pub fn of_descriptor(descriptor: &[u8; Self::DESCRIPTOR_LEN]) -> Option<(Self, FileDigest)> {
        let [version, number, log_block_len, salt_len, ..] = *descriptor;
        let algorithm = Algorithm::from_number(number.into()).filter(|_| version == 1)?;
        let salt = descriptor[80..].get(..usize::from(salt_len))?;
        let parameters = Self::new(algorithm, 1_u32.checked_shl(log_block_len.into())?, salt).ok()?;
        let len = u64::from_le_bytes(*descriptor[8..].first_chunk()?);
        let digest = parameters.digest_of_tree(len, &descriptor[16..16 + usize::from(algorithm.digest_len())]);
        Some((parameters, digest))
    }

    /// Returns the digest of a file of `len` bytes whose Merkle tree has this root hash.
    pub(super) fn digest_of_tree(&self, len: u64, root: &[u8]) -> FileDigest {
        let descriptor = descriptor(self.algorithm, self.block_len, &self.salt, len, root);
        FileDigest { algorithm: self.algorithm, bytes: self.algorithm.hash(&descriptor) }
    }

    /// Returns the bytes that are hashed before each block: the salt, padded to the input block of the hash algorithm, or nothing without a salt.
    fn padded_salt(&self) -> Vec<u8> {
        let mut padded = self.salt.clone();
        if !padded.is_empty() {
            padded.resize(2 * usize::from(self.algorithm.digest_len()), 0);
        }
        padded
    }
}

impl FileDigest {
    /// Returns a digest from its bytes; `None` if they do not have the length of this hash algorithm.
    #[must_use]
    pub fn new(algorithm: Algorithm, bytes: &[u8]) -> Option<Self> {
        (bytes.len() == usize::from(algorithm.digest_len())).then(|| Self { algorithm, bytes: bytes.to_vec() })
    }

    /// Returns the hash algorithm.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the bytes that a built-in signature signs: the kernel's `fsverity_formatted_digest`.
    #[must_use]
    pub fn formatted(&self) -> Vec<u8> {
        let len = u16::from(self.algorithm.digest_len());
        let mut formatted = b"FSVerity".to_vec();
        formatted.extend(u16::from(self.algorithm.number()).to_le_bytes());
        formatted.extend(len.to_le_bytes());
        formatted.extend(&self.bytes);
        formatted
    }
}

/// The form that `fsverity` prints: the hash algorithm, a colon, and hexadecimal digits.
impl fmt::Display for FileDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm, hex(&self.bytes))
    }
}

impl From<[u8; 32]> for FileDigest {
    /// Returns the digest of a file that is sealed with the default parameters.
    fn from(bytes: [u8; 32]) -> Self {
        Self { algorithm: Algorithm::Sha256, bytes: bytes.to_vec() }
    }
}

impl FileHasher {
    /// Returns a hasher that has taken no bytes.
    #[must_use]
    pub fn new(parameters: &Parameters) -> Self {
        let salt = parameters.padded_salt();
        let block_len = num::at(parameters.block_len);
        let tree = match parameters.algorithm {
            Algorithm::Sha256 => AnyTree::Sha256(Tree::new(Sha256::new_with_prefix(salt), block_len)),
            Algorithm::Sha512 => AnyTree::Sha512(Tree::new(Sha512::new_with_prefix(salt), block_len)),
        };
        Self { parameters: parameters.clone(), tree }
    }

    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.tree {
            AnyTree::Sha256(tree) => tree.update(bytes),
            AnyTree::Sha512(tree) => tree.update(bytes),
        }
    }

    /// Takes the bytes that another hasher with the same parameters took, at most 2^n blocks. The bytes before must be a multiple of 2^n blocks, and
    /// only the last block of the file may be incomplete. In this way, the pieces of a file can be hashed in any order, with little memory for each.
    pub fn append(&mut self, next: &Self) {
        match (&mut self.tree, &next.tree) {
            (AnyTree::Sha256(tree), AnyTree::Sha256(next)) => tree.append(next),
            (AnyTree::Sha512(tree), AnyTree::Sha512(next)) => tree.append(next),
            _ => debug_assert!(false, "the hashers have the same parameters"),
        }
    }

    /// Returns the digest.
    #[must_use]
    pub fn finish(self) -> FileDigest {
        let (len, root) = match self.tree {
            AnyTree::Sha256(tree) => (tree.len(), tree.finish()),
            AnyTree::Sha512(tree) => (tree.len(), tree.finish()),
        };
        self.parameters.digest_of_tree(len, &root)
    }
}

/// Returns the bytes whose hash is the digest (kernel documentation, `struct fsverity_descriptor`).
pub(super) fn descriptor(algorithm: Algorithm, block_len: u32, salt: &[u8], len: u64, root: &[u8]) -> [u8; 256] {
    let mut descriptor = [0; Parameters::DESCRIPTOR_LEN];
    descriptor[0] = 1; // version
    descriptor[1] = algorithm.number();
    descriptor[2] = u8::try_from(block_len.trailing_zeros()).unwrap_or(0);
    descriptor[3] = u8::try_from(salt.len()).unwrap_or(0);
    descriptor[8..16].copy_from_slice(&len.to_le_bytes());
    descriptor[16..][..root.len()].copy_from_slice(root);
    descriptor[80..][..salt.len()].copy_from_slice(salt);
    descriptor
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;
    use alloc::vec;

    use proptest::prelude::*;

    fn digest(parameters: &Parameters, parts: impl Iterator<Item = Vec<u8>>) -> FileDigest {
        let mut hasher = FileHasher::new(parameters);
        parts.for_each(|part| hasher.update(&part));
        hasher.finish()
    }

    /// Returns what `fsverity digest` (fsverity-utils 1.5) prints for bytes, and a salt.
    #[rustfmt::skip] // a table
    fn known() -> [(Vec<u8>, &'static [u8], &'static str); 8] {
        [
            (vec![], &[], "sha256:3d248ca542a24fc62d1c43b916eae5016878e2533c88238480b26128a1f1af95"),
            (b"foo\n".to_vec(), &[1, 2, 3, 4], "sha256:774462bed179b7a0a7ff51438c19ab227e18ed46be1dfaaf9976a64cce3d72c6"),
            (vec![b'A'; 4097], &[], "sha256:7319937c445f61df1a8f310eb4d6da157618d80713972a78d70a7528fc1a6f32"),
            (vec![b'A'; 524_289], &[], "sha256:a7abb76568871169a79104d00679fae6521dfdb2a2648e380c02b10e96e217ff"),
            (vec![], &[], "sha512:ccf9e5aea1c2a64efa2f2354a6024b90dffde6bbc017825045dce374474e13d10adb9dadcc6ca8e17a3c075fbd31336e8f266ae6fa93a6c3bed66f9e784e5abf"),
            (b"foo\n".to_vec(), &[], "sha512:d7b622982ca278c82cc650cf67639a4f7e61d95f19ab3ce77ebece7cd7edc4a7bfc397e85b6b50d8b1d8fe86f91fd73d9949037ba205c6f6fe12393367267943"),
            (vec![b'A'; 4097], &[], "sha512:6e635c539643f51051de01115da81bb9867ffa2ce96e706d80819cd6d4a151b60870f3c88646bdda25dbbb8a6a57194d6247962da3b932133b9fa45aa11a7f13"),
            (vec![b'A'; 524_289], &[], "sha512:e957e494d3c66366a8a13f50a5a2cbb8e457eb88337ea6da3c750b9c06e20cff073e3f60bb152c4f314c9b093506c666ec09ccf320f2c8723685a477de02ea38"),
        ]
    }

    #[test]
    fn known_answers() {
        for (content, salt, answer) in known() {
            let algorithm = Algorithm::ALL.into_iter().find(|algorithm| answer.starts_with(algorithm.name()));
            let parameters = Parameters::new(algorithm.expect("a name"), 4096, salt).expect("they are good");
            let len = content.len();
            assert_eq!(digest(&parameters, [content].into_iter()).to_string(), answer, "{len} bytes, salt {salt:?}");
        }
    }

    #[test]
    fn parameters_that_no_file_has_are_refused() {
        let of = |algorithm, block_len, salt: &[u8]| Parameters::new(algorithm, block_len, salt);
        for block_len in [0, 1, 32, 63, 4095, 4097] {
            let refused = ParametersError::BlockLen { block_len, min: 64 };
            assert_eq!(of(Algorithm::Sha256, block_len, &[]), Err(refused));
        }
        assert!(of(Algorithm::Sha256, 64, &[0; 32]).is_ok());
        assert!(of(Algorithm::Sha512, 64, &[]).is_err());
        assert_eq!(of(Algorithm::Sha256, 4096, &[0; 33]), Err(ParametersError::Salt { len: 33, max: 32 }));
    }

    #[test]
    fn the_formatted_digest_is_the_kernels() {
        let digest = FileDigest::new(Algorithm::Sha256, &[7; 32]).expect("of that length");
        assert_eq!(digest.formatted(), [&b"FSVerity\x01\0\x20\0"[..], &[7; 32]].concat());
        assert_eq!(FileDigest::new(Algorithm::Sha512, &[7; 32]), None);
    }

    fn parameters() -> impl Strategy<Value = Parameters> {
        let salt = proptest::collection::vec(any::<u8>(), 0..=Parameters::SALT_LEN_MAX);
        (0..2_usize, 7..14_u32, salt).prop_map(|(algorithm, log_block_len, salt)| {
            Parameters::new(Algorithm::ALL[algorithm], 1 << log_block_len, &salt).expect("they are good")
        })
    }

    proptest! {
        /// The digest does not depend on the lengths of the parts in which content is passed, even if they have one byte or none.
        #[test]
        fn parts_of_any_lengths_give_the_same(
            parameters in parameters(),
            content in proptest::collection::vec(any::<u8>(), 0..20_000),
            lens in proptest::collection::vec(0..5000_usize, 1..50),
            step in 1..5000_usize,
        ) {
            let whole = digest(&parameters, [content.clone()].into_iter());
            prop_assert_eq!(&digest(&parameters, content.chunks(step).map(<[u8]>::to_vec)), &whole);
            let mut rest = &content[..];
            let uneven = lens.iter().cycle().map_while(|len| {
                let (part, after) = rest.split_at(rest.len().min(*len));
                let is_over = rest.is_empty() || lens.iter().all(|len| *len == 0);
                rest = after;
                (!is_over).then(|| part.to_vec())
            });
            let uneven: Vec<Vec<u8>> = uneven.collect();
            let missing = content[uneven.iter().map(Vec::len).sum()..].to_vec();
            prop_assert_eq!(&digest(&parameters, uneven.into_iter().chain([missing])), &whole);
        }

        /// Pieces of 2^n blocks that were hashed separately give the same digest.
        #[test]
        fn pieces_give_the_same(
            parameters in parameters(),
            content in proptest::collection::vec(any::<u8>(), 0..60_000),
            log_blocks in 0..5_u32,
        ) {
            let whole = digest(&parameters, [content.clone()].into_iter());
            let piece_len = usize::try_from(parameters.block_len()).expect("32 bits") << log_blocks;
            let mut hasher = FileHasher::new(&parameters);
            for piece in content.chunks(piece_len) {
                let mut own = FileHasher::new(&parameters);
                own.update(piece);
                hasher.append(&own);
            }
            prop_assert_eq!(hasher.finish(), whole);
        }

        /// Parsing a descriptor returns what it was made from, and no other bytes cause a panic.
        #[test]
        fn descriptors_are_read_as_they_were_made(
            parameters in parameters(),
            len in any::<u64>(),
            root in proptest::collection::vec(any::<u8>(), 64),
            noise in proptest::collection::vec(any::<u8>(), Parameters::DESCRIPTOR_LEN),
        ) {
            let root = &root[..usize::from(parameters.algorithm.digest_len())];
            let bytes = descriptor(parameters.algorithm, parameters.block_len, &parameters.salt, len, root);
            let digest = parameters.digest_of_tree(len, root);
            prop_assert_eq!(Parameters::of_descriptor(&bytes), Some((parameters, digest)));
            let _ = Parameters::of_descriptor(noise.first_chunk().expect("that many"));
        }
    }
}
