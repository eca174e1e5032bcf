//! Packs trees into one signed file, verifies it, and unpacks it elsewhere.
#![deny(missing_docs)]

mod beneath;
mod error;
pub mod source;
mod tree;

pub use error::Error;
pub use tree::{DirId, Metadata, NewNode, NodeId, Tree};
