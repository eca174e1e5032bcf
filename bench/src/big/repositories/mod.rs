//! OSTree repositories, checked by libostree's own program: writing runs are killed, fail, lose their disk, or meet a concurrent prune; and damaged
//! repositories are packed.

pub(super) mod damage;
pub(super) mod disks;
pub(super) mod faults;
pub(super) mod kills;
mod pack;
pub(super) mod prunes;
mod sources;
mod target;

const COLLECTION: &str = "org.example.Os";
