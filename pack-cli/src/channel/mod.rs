//! Channels: directories of bundles with one signed list (channel.md), and the ways from what a target holds to a version.

mod chain;
mod directory;
mod way;

pub use chain::{Chain, head_of};
pub use directory::Channel;
#[cfg(all(feature = "pack", feature = "sign"))]
pub(crate) use directory::{fault, list_path, read};
pub use sealift_format::{ChannelList, ListedFile, SignedList};
pub use way::{Edge, cheapest};
