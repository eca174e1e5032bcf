//! The bytes of a Sealift bundle and the structures that they mean.
//!
//! Everything here is pure: no I/O, no clock, no threads. [`Opener`] tells which bytes of the file it needs next, checks them and returns a
//! [`Bundle`]. Parsers are strict: each structure has one encoding, and every other is refused. The format is specified in `spec/`, to whose
//! parts and sections comments refer: "core 6.2" is section 6.2 of `spec/core.md`.
#![no_std]
#![deny(missing_docs)]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod area;
mod attributes;
mod base_object;
mod bundle;
mod byte_difference;
mod bytes;
// Files that are no bundles, which the page does not read: its module stays small without them.
#[cfg(not(target_arch = "wasm32"))]
mod channel;
mod cost;
mod delta;
pub mod difference;
mod digest_map;
mod error;
mod frame;
mod head;
mod hex;
mod image;
mod index;
mod kind;
mod layout;
mod limits;
pub mod name;
pub mod num;
mod opener;
pub mod ostree;
pub mod pieces;
mod preamble;
pub mod recipes;
#[cfg(not(target_arch = "wasm32"))]
mod recovery;
mod request;
mod row;
#[cfg(not(target_arch = "wasm32"))]
mod set_header;
pub mod verity;
#[cfg(not(target_arch = "wasm32"))]
pub mod volume;
pub mod walk;

pub use area::{Envelope, area_len_for};
pub use attributes::{Attributes, FileType, Xattr, XattrIter, XattrRef, Xattrs};
pub use base_object::BaseObject;
pub use bundle::Bundle;
pub use byte_difference::{ByteDifference, Run, encode_byte_difference};
#[cfg(not(target_arch = "wasm32"))]
pub use channel::{BASES_MAX, ChannelList, ListedFile, ROWS_MAX, SignedList};
pub use cost::Cost;
pub use delta::Delta;
pub use difference::Difference;
pub use digest_map::DigestMap;
pub use error::{Error, Part};
pub use frame::{FrameDecoder, check_frame, check_frame_with_prefix, frame_window};
pub use head::{Contents, Head, Identity, Maxima, Root, RootBase, RootBases};
pub use hex::{hex, unhex};
pub use image::Image;
pub use index::{
    Device, Directory, Entry, Index, IndexBuilder, Inode, InodeKind, Node, Object, OfParents, OsTree, OsTreeFile,
    OsTreeKind, OsTreeObject, OsTreeRef, Ref, Symlink,
};
pub use kind::Kind;
pub use layout::{
    BLOCK_LEN, BaseRange, Chunk, Codec, Extent, HOLE_BLOCKS, Holds, Holes, Large, Layout, Objects, Piece,
    RepositoryFile, data_len, data_ranges, maxima,
};
pub use limits::Limits;
pub use opener::{Opened, Opener, Step};
pub use preamble::Preamble;
pub use recipes::{
    Bzip2, CODED_MAX, Coder, DEPTH_MAX, Encoder, Filled, Lz4, Made, PartOf, PartRange, RecipeCodec, RecipeSums,
    Recipes, Segment, SegmentKind, View, Xz, Zlib, Zstd, ZstdStream,
};
#[cfg(not(target_arch = "wasm32"))]
pub use recovery::{Geometry, Recovery, RecoveryHeader};
pub use request::Request;
pub use row::{Row, Rows, Table};
#[cfg(not(target_arch = "wasm32"))]
pub use volume::Volume;
