//! The encoder of libzstd 1.5.5 (BSD-3-Clause), with the prefix `sealift_zstd_1_5_5_` before all names, so that a program can link another version beside
//! it. It makes the frames that 1.5.5 makes, and 1.5.4 at all levels but 5 to 12; later versions make others.
//!
//! `zstd` has the files of `lib/common` and `lib/compress` of the release that encoding needs, unchanged, and `rename.h`, which lists the names. There is
//! nothing here for Rust: who links this crate declares what it calls.
#![no_std]
