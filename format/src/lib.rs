//! The bytes of a Sealift bundle and the structures that they mean.
#![no_std]
#![deny(missing_docs)]
#![forbid(unsafe_code)]

extern crate alloc;

mod kind;

pub use kind::Kind;
