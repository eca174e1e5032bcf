//! What the bytes of containers are made of: file systems, disks, archives and compressed files.
//!
//! [`Anatomy::of`] says which bytes of a container are the contents of its members, and which are compressed blocks of them. Everything else is the
//! container's own structure. A member can be a container itself, which [`Content`] reads. What is read here is not trusted: a container that lies
//! is refused with a [`ContainerFault`], in bounded time and memory, and its bytes are then taken as they are.
//!
//! Nothing here opens a file or a device: bytes come from a [`ReadAt`].
#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod anatomy;
mod appimage;
mod ar;
mod archive_path;
mod block;
mod contents;
mod cpio;
mod decode;
mod draft;
mod erofs;
mod ext4;
mod fat;
mod fault;
mod gpt;
mod iso9660;
mod kind;
mod limits;
mod lz4_prefix;
mod mbr;
mod parts;
mod pe;
mod read_at;
mod reader;
mod recognized;
mod squashfs;
mod stream;
pub mod tar;
mod walk;
mod xz_index;
mod zip;
#[cfg_attr(target_arch = "wasm32", path = "zstd_whole.rs")]
mod zstd;
mod zstd_frame;

pub use anatomy::{Anatomy, Link, Member, Part, Symlink, in_tree_order};
pub use block::{Block, BlockCodec, Hint, PlainLen};
pub use contents::{Blocks, Content};
pub use fault::ContainerFault;
pub use kind::Kind;
pub use limits::Limits;
pub use read_at::{ReadAt, Window};
