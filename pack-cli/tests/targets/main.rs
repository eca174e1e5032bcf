//! Targets as devices have them: changed by somebody, left by a run that did not end, short of room.
#![allow(clippy::unwrap_used, reason = "tests")]

mod deltas;
mod desk;
mod joined;
mod kept;
mod mounted;
mod requests;
mod room;
mod stopped;
mod unlike;
mod versions;
