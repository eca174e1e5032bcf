//! The superblock before a hash tree (cryptsetup: docs/on-disk-format of dm-verity, version 1).

use sealift_format::verity::Algorithm;

use super::le;

/// What a hash tree is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Superblock {
    /// Whether the salt is hashed before each block (format 1); in Chrome OS's format 0 it is hashed behind.
    pub is_salt_first: bool,
    /// The tree's UUID.
    pub uuid: [u8; 16],
    /// The hash algorithm.
    pub algorithm: Algorithm,
    /// Bytes of a data block.
    pub data_block_len: u32,
    /// Bytes of a block of the tree.
    pub hash_block_len: u32,
    /// The number of data blocks.
    pub data_blocks: u64,
    /// The salt, which may be empty.
    pub salt: Vec<u8>,
}

/// Why a superblock, or the tree that it describes, cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SuperblockError {
    /// The magic bytes are not there, or it is cut.
    #[error("it is not a superblock of dm-verity")]
    Magic,
    /// A version that does not exist yet.
    #[error("its superblock has version {version}; only version 1 is known")]
    Version {
        /// The version.
        version: u64,
    },
    /// A format that does not exist yet.
    #[error("its hash format {hash_type} is unknown")]
    HashType {
        /// The number of the format.
        hash_type: u64,
    },
    /// A hash algorithm that is not supported here.
    #[error("its hash algorithm {name} is not supported; sha256 and sha512 are")]
    Algorithm {
        /// The name; what is not a name is left out.
        name: String,
    },
    /// A block length that the kernel does not accept.
    #[error("its {what} blocks have {len} bytes; a power of two from 512 to 524288 is allowed")]
    BlockLen {
        /// `data` or `hash`.
        what: &'static str,
        /// The length.
        len: u64,
    },
    /// A salt that does not fit.
    #[error("its salt has {len} bytes; at most 256 are possible")]
    Salt {
        /// The length in bytes.
        len: u64,
    },
    /// The data blocks are none, or more than there are.
    #[error("its superblock states {blocks} data blocks, and there are {found}")]
    Data {
        /// The number stated.
        blocks: u64,
        /// The number of blocks in the data.
        found: u64,
    },
    /// The tree is cut.
    #[error("its hash tree ends after {needed} bytes of its file, which has {found}")]
    Cut {
        /// Where the tree ends, in bytes.
        needed: u64,
        /// The bytes of the file.
        found: u64,
    },
}

const MAGIC: &[u8; 8] = b"verity\0\0";
const SALT_AT: usize = 88;
const SALT_LEN_MAX: u64 = 256;
/// cryptsetup: lib/verity/verity.h, `VERITY_BLOCK_SIZE_OK`.
const BLOCK_LENS: std::ops::RangeInclusive<u64> = 512..=512 << 10;

impl Superblock {
    /// Its length in bytes.
    pub const LEN: usize = 512;

    /// Returns whether a superblock begins here, of any version.
    #[must_use]
    pub fn is_at(bytes: &[u8]) -> bool {
        bytes.len() >= Self::LEN && bytes.starts_with(MAGIC)
    }

    /// Parses a superblock.
    ///
    /// # Errors
    /// Returns an error if it is not one that `veritysetup` writes, or if its algorithm is not supported.
    pub fn parse(bytes: &[u8]) -> Result<Self, SuperblockError> {
        if !Self::is_at(bytes) {
            return Err(SuperblockError::Magic);
        }
        let version = le::<4>(bytes, 8);
        if version != 1 {
            return Err(SuperblockError::Version { version });
        }
        let hash_type = le::<4>(bytes, 12);
        if hash_type > 1 {
            return Err(SuperblockError::HashType { hash_type });
        }
        let name = bytes[32..64].split(|byte| *byte == 0).next().unwrap_or_default();
        let algorithm = Algorithm::ALL.into_iter().find(|algorithm| algorithm.name().as_bytes() == name);
        let algorithm = algorithm.ok_or_else(|| SuperblockError::Algorithm { name: printable(name) })?;
        let salt_len = le::<2>(bytes, 80);
        let salt = usize::try_from(salt_len).ok().filter(|_| salt_len <= SALT_LEN_MAX);
        let salt = salt.and_then(|len| bytes.get(SALT_AT..SALT_AT + len));
        let mut uuid = [0; 16];
        uuid.copy_from_slice(&bytes[16..32]);
        Ok(Self {
            is_salt_first: hash_type == 1,
            uuid,
            algorithm,
            data_block_len: block_len("data", le::<4>(bytes, 64))?,
            hash_block_len: block_len("hash", le::<4>(bytes, 68))?,
            data_blocks: le::<8>(bytes, 72),
            salt: salt.ok_or(SuperblockError::Salt { len: salt_len })?.to_vec(),
        })
    }
}

fn block_len(what: &'static str, len: u64) -> Result<u32, SuperblockError> {
    let fitting = u32::try_from(len).ok().filter(|_| BLOCK_LENS.contains(&len) && len.is_power_of_two());
    fitting.ok_or(SuperblockError::BlockLen { what, len })
}

/// Returns a name for messages: none has other letters.
fn printable(name: &[u8]) -> String {
    name.iter().copied().filter(u8::is_ascii_graphic).map(char::from).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the bytes of a superblock.
    pub(in crate::dm_verity) fn encode(superblock: &Superblock) -> Vec<u8> {
        let mut bytes = vec![0; Superblock::LEN];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8] = 1;
        bytes[12] = u8::from(superblock.is_salt_first);
        bytes[16..32].copy_from_slice(&superblock.uuid);
        let name = superblock.algorithm.name().as_bytes();
        bytes[32..32 + name.len()].copy_from_slice(name);
        bytes[64..68].copy_from_slice(&superblock.data_block_len.to_le_bytes());
        bytes[68..72].copy_from_slice(&superblock.hash_block_len.to_le_bytes());
        bytes[72..80].copy_from_slice(&superblock.data_blocks.to_le_bytes());
        let salt = &superblock.salt;
        bytes[80..82].copy_from_slice(&u16::try_from(salt.len()).expect("it is short").to_le_bytes());
        bytes[SALT_AT..SALT_AT + salt.len()].copy_from_slice(salt);
        bytes
    }

    pub(in crate::dm_verity) fn superblock() -> impl Strategy<Value = Superblock> {
        let salt = proptest::collection::vec(any::<u8>(), 0..=256);
        let uuid = proptest::array::uniform16(any::<u8>());
        (any::<bool>(), uuid, 0..2_usize, 9..20_u32, 9..20_u32, any::<u64>(), salt).prop_map(
            |(is_salt_first, uuid, algorithm, data, hash, data_blocks, salt)| Superblock {
                is_salt_first,
                uuid,
                algorithm: Algorithm::ALL[algorithm],
                data_block_len: 1 << data,
                hash_block_len: 1 << hash,
                data_blocks,
                salt,
            },
        )
    }

    pub(in crate::dm_verity) fn usual() -> Superblock {
        Superblock {
            is_salt_first: true,
            uuid: [7; 16],
            algorithm: Algorithm::Sha256,
            data_block_len: 4096,
            hash_block_len: 4096,
            data_blocks: 9,
            salt: vec![1; 32],
        }
    }

    #[test]
    fn what_veritysetup_does_not_write_is_refused() {
        use SuperblockError::{Algorithm, BlockLen, HashType, Magic, Salt, Version};
        assert_eq!(Superblock::parse(&encode(&usual())), Ok(usual()));
        for (at, bytes, error) in [
            (0, &b"V"[..], Magic),
            (6, &[1], Magic),
            (8, &[2], Version { version: 2 }),
            (8, &[0], Version { version: 0 }),
            (12, &[2], HashType { hash_type: 2 }),
            (32, b"blake2b\0", Algorithm { name: "blake2b".into() }),
            (32, b"sha256sum\0", Algorithm { name: "sha256sum".into() }),
            (32, &[b'\x1b'; 32], Algorithm { name: String::new() }),
            (64, &[0, 0, 0, 0], BlockLen { what: "data", len: 0 }),
            (64, &[0, 1, 0, 0], BlockLen { what: "data", len: 256 }),
            (64, &[0, 12, 0, 0], BlockLen { what: "data", len: 3072 }),
            (68, &[0, 0, 16, 0], BlockLen { what: "hash", len: 1 << 20 }),
            (68, &[0xff; 4], BlockLen { what: "hash", len: u32::MAX.into() }),
            (80, &[1, 1], Salt { len: 257 }),
            (80, &[0xff; 2], Salt { len: 65_535 }),
        ] {
            let mut superblock = encode(&usual());
            superblock[at..at + bytes.len()].copy_from_slice(bytes);
            assert_eq!(Superblock::parse(&superblock), Err(error));
        }
        assert_eq!(Superblock::parse(&encode(&usual())[..511]), Err(Magic));
    }

    proptest! {
        /// Parsing returns what was written, and no other bytes cause a panic.
        #[test]
        fn superblocks_are_read_as_they_were_written(
            superblock in superblock(),
            noise in proptest::collection::vec((0..Superblock::LEN, any::<u8>()), 0..8),
        ) {
            let mut bytes = encode(&superblock);
            prop_assert_eq!(Superblock::parse(&bytes), Ok(superblock));
            noise.into_iter().for_each(|(at, byte)| bytes[at] = byte);
            let _ = Superblock::parse(&bytes);
        }
    }
}
