//! Targets as devices have them: changed by somebody, left by a run that did not end, short of room.
#![allow(clippy::unwrap_used, reason = "tests")]

mod adopted;
mod archives;
mod clean;
mod contiguous;
mod deltas;
mod desk;
mod exchanged;
mod kept;
mod killed;
mod lasting;
mod listed;
mod measured;
mod mounted;
mod named;
mod over_base;
mod privileged;
mod rechecked;
mod requests;
mod room;
mod stopped;
mod unlike;
mod versions;
