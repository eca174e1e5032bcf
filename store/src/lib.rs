//! TrustPaths on a machine: where objects come from, and where bundles are installed.
//!
//! Everything that changes a place works through open descriptors, never through paths that another process could exchange meanwhile. A path that a
//! user gives is resolved once, to a [`Place`]; after that, it is used only in messages.
//!
//! From the bottom up: [`fs`] and [`threads`]; how each kind of place is read and what it records ([`directory`], [`ostree`], `composefs`,
//! [`slot`]);
//! [`trust`], the device's state and the judge of bundles; [`source`], what can be packed; [`base`], the places that hold the objects which a delta
//! needs; [`delivery`], the path of content out of a bundle; and [`install`], what bundles are installed into.
#![deny(missing_docs)]

mod acl;
pub mod address;
pub mod audit;
pub mod base;
#[cfg(feature = "composefs")]
pub mod composefs;
pub mod contents;
pub mod delivery;
pub mod directory;
mod error;
pub mod fs;
mod input;
pub mod install;
pub mod install_record;
pub mod kept_order;
pub mod kernel;
mod made_spool;
mod medium;
mod oci;
mod origin;
pub mod ostree;
mod progress;
pub mod recipe;
pub mod seal;
pub mod slot;
pub mod source;
pub mod threads;
mod tree;
pub mod trust;
mod xattrs;

pub use error::{
    ArchiveFault, Class, Error, FileFault, ImageFault, OrderFault, RecordFault, RecoveryFault, RepoFault, SlotFault,
    VolumeFault,
};
pub use fs::{
    Aspect, FileStat, InodeId, Keeps, LeftRun, OwnDir, Place, Record, Site, Stage, StatCache, StateDir, StateLock,
    Times, check_may_create, check_own, inode_id,
};
pub use input::{Input, Unopened};
pub use medium::{Medium, OpenBundle};
pub use origin::copies::{CopyStats, DamagedRange, is_damaged_copy};
pub use origin::{
    ChangeMedium, Media, OpenVolume, Origin, VolumeSet, WantedVolume, address_beside, by_set, has_only_volumes,
    is_address, named_recovery, named_volumes, read_at_address, without_secrets,
};
pub use ostree::CommitSpec;
pub use progress::{Phase, Progress, Snapshot};
pub use sealift_container::tar::TarFault;
pub use sealift_format::{Bundle, Head, Kind, Limits, Request};
pub use tree::{Child, DirId, Metadata, NewNode, Node, NodeId, NodeKind, Tree, Visited};
