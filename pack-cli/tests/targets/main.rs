//! Targets as on real devices: modified by users, left by a run that did not end, short of space.
#![allow(clippy::unwrap_used, reason = "tests")]

mod adopted;
mod apart;
mod archives;
mod classes;
mod clean;
mod contiguous;
mod deltas;
mod exchanged;
mod failing;
mod held;
mod installed;
mod kept;
mod killed;
mod lasting;
mod layered;
mod listed;
mod measured;
mod mount_points;
mod mounted;
mod named;
mod needed;
mod old_kernels;
mod one_truth;
mod over_base;
mod privileged;
mod rechecked;
mod requests;
mod rights;
mod room;
mod stopped;
mod then;
mod unlike;
mod versions;
