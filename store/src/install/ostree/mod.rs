//! OSTree repositories as targets.
//!
//! [`import`] imports the commits of a bundle into a repository, and [`write_usb`] into one on a medium for devices without Sealift;
//! [`crate::audit::ostree`] checks whether it still matches the signed bundles.

mod closure;
mod delta;
mod destination;
mod files;
mod import;
mod plan;
mod sealing;
mod skeleton;
mod stats;
mod summary;
mod usb;

pub use import::import;
pub use skeleton::PATH as USB_PATH;
pub use stats::OsTreeStats;
pub use usb::write_usb;
