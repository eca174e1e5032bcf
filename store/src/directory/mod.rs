//! A plain tree that a bundle was unpacked into: access to it, and its install record.

pub(crate) mod stage;
pub mod state;
pub(crate) mod target;
pub(crate) mod walk;

pub use stage::TreeStage;
pub use state::TreeRecord;
pub(crate) use state::kept_head;
pub(crate) use target::{Target, TargetWalk};
