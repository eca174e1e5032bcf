//! Packs trees into one signed file, verifies it, and unpacks it elsewhere.
#![deny(missing_docs)]

pub mod audit;
mod beneath;
pub mod cat;
pub mod clean;
pub mod diff;
mod error;
mod feed;
pub mod hash;
mod input;
pub mod inspect;
pub mod pack;
mod parallel;
mod progress;
pub mod source;
mod tree;
pub mod trust;
pub mod unpack;
pub mod verify;

pub use error::Error;
pub use input::Input;
pub use progress::{Phase, Progress, Snapshot};
pub use sealift_format::{Bundle, Head, Identity, Limits, Root};
pub use tree::{DirId, Metadata, NewNode, NodeId, Tree, Visited};
