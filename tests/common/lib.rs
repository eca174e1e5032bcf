//! Shared test code: a builder of bundles with exactly one fault, the vectors that it makes, the Rust reader for vectors, and the bodies of the fuzz
//! targets.

pub mod bundle;
pub mod bytes;
pub mod complete;
pub mod content;
pub mod corpus;
pub mod delta;
pub mod differential;
mod disk;
pub mod ed25519;
pub mod frame;
pub mod keys;
pub mod large;
pub mod made;
pub mod mutation;
pub mod ostree;
pub mod pkcs7;
pub mod reader;
pub mod recipes;
pub mod recovery;
pub mod rsa;
pub mod targets;
pub mod tree;
pub mod vector;
pub mod vectors;
pub mod volume;
