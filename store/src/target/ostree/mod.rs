//! OSTree repositories as targets.
//!
//! [`import`] imports the commits of a bundle into a repository, and [`write_usb`] into one on a medium for devices without Sealift;
//! [`audit`] checks whether it still matches the signed bundles.

mod armor;
mod audit;
mod carried;
mod closure;
mod delta;
mod ed25519;
mod files;
mod import;
mod key_list;
mod look;
mod openpgp;
mod options;
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
pub use options::{Destination, ImportOptions};
pub use stats::ImportStats;
pub use usb::{UsbOptions, write_usb};
