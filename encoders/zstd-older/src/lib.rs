//! The encoders of libzstd 1.5.5 and 1.5.4 (BSD-3-Clause), with the prefixes `sealift_zstd_1_5_5_` and `sealift_zstd_1_5_4_` before all names, so that a
//! program can link another version beside them. They make the frames that these versions make; at levels 5 to 12, 1.5.4 makes others than all later ones.
//!
//! `zstd` has the files of `lib/common` and `lib/compress` of 1.5.5 that encoding needs, and `rename.h`, which lists the names. They are unchanged but
//! where `SEALIFT_IS_1_5_4`, `SEALIFT_TAG_BYTES` or `SEALIFT_TAG_OFFSET` stands: there, 1.5.4's search by rows of hashes differs from 1.5.5's, and
//! nothing else in its encoder changes what it makes. There is nothing here for Rust: who links this crate declares what it calls.
#![no_std]
