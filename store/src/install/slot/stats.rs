//! What writing images to slots did. It is serialized for programs under these names.

use serde::Serialize;

use crate::install::stats::InstallStats;

/// What was written to slots, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SlotsStats {
    /// What all targets report.
    #[serde(flatten)]
    pub install: InstallStats,
    /// Each slot.
    pub slots: Vec<SlotStats>,
}

/// What was written to a slot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SlotStats {
    /// The slot, as the user named it, with `%` escapes for bytes that are not UTF-8.
    pub slot: String,
    /// The path of the image in the bundle, with the same escapes.
    pub image: String,
    /// The image's size.
    pub bytes: u64,
    /// Bytes written to the slot; more than its size if its first bytes were overwritten with zeros before.
    pub written_bytes: u64,
    /// Bytes of holes that the device was told to discard.
    pub discarded_bytes: u64,
    /// Bytes that were there already.
    pub kept_bytes: u64,
    /// Whether this completes what an interrupted run began.
    pub resumed: bool,
    /// Whether the device kept data that it reported as discarded, so that zeros were written instead.
    pub discards_lie: bool,
    /// Whether all of it was read again and compared.
    pub read_back: bool,
}
