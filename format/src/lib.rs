//! The bytes of a Sealift bundle and the structures that they mean.
//!
//! Everything here is pure: no I/O, no clock, no threads. [`Opener`] says which bytes of the file it needs next, checks them and gives a
//! [`Bundle`]; the structures parse strictly and encode to the one form that the parser takes. The format is specified in
//! `spec/sealift.md`, whose sections the items name.
#![no_std]
#![deny(missing_docs)]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod area;
mod bytes;
mod cost;
mod delta;
pub mod difference;
mod error;
mod frame;
mod full;
mod head;
mod image;
mod index;
mod kind;
mod layout;
mod limits;
pub mod name;
mod opener;
pub mod ostree;
pub mod pieces;
mod preamble;
mod request;
mod root;
mod suffix;
pub mod verity;

pub use area::{Envelope, area_len_for, encode_area, parse_area};
pub use cost::Cost;
pub use delta::Delta;
pub use difference::Difference;
pub use error::{Error, Part};
pub use frame::{FrameDecoder, check_frame, check_frame_with_prefix, frame_window};
pub use full::Full;
pub use head::Head;
pub use image::Image;
pub use index::{
    Attributes, Device, Directory, Entry, FileType, Index, IndexBuilder, Inode, InodeKind, Node, Object, OsTree,
    OsTreeFile, OsTreeKind, OsTreeObject, OsTreeRef, Ref, RepositoryFile, Xattr, XattrIter, XattrRef, Xattrs,
};
pub use kind::Kind;
pub use layout::{
    BLOCK_LEN, BaseRange, Chunk, Codec, Extent, FullLayout, HOLE_BLOCKS, Holds, Holes, Large, Layout, Objects, Piece,
    data_len, data_ranges, maxima,
};
pub use limits::Limits;
pub use opener::{Bundle, Opened, Opener, Step};
pub use preamble::Preamble;
pub use request::Request;
pub use root::{Base, Bases, Contents, Identity, Maxima, Root};
pub use suffix::{Run, Suffix, encode_suffix};
