//! A plain tree that a bundle was unpacked into: how it is reached, and what it keeps of that bundle.

pub(crate) mod stage;
pub mod state;
pub(crate) mod target;
pub(crate) mod walk;

pub use stage::Stage;
pub use state::InstallRecord;
pub(crate) use state::kept_head;
pub(crate) use target::{Target, TargetWalk};
