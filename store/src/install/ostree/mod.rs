//! OSTree repositories as targets.
//!
//! [`import`] imports the commits of a bundle into a repository, and [`write_usb`] into one on a medium for devices without Sealift;
//! [`audit`] checks whether it still matches the signed bundles.

mod armor;
mod audit;
mod carried;
mod closure;
mod delta;
mod destination;
mod ed25519;
mod files;
mod import;
mod key_list;
mod look;
mod openpgp;
mod plan;
mod policy;
mod sealing;
mod skeleton;
mod stats;
mod summary;
mod usb;
mod wanted;

pub use audit::audit;
pub use import::import;
pub use stats::OsTreeStats;
pub use usb::write_usb;
