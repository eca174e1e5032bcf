//! OSTree repositories, which libostree's own program judges: written to by runs that are killed, fail, lose their disk, or meet somebody
//! who prunes; and packed when they are damaged.

pub(super) mod damage;
pub(super) mod disks;
pub(super) mod faults;
pub(super) mod kills;
mod pack;
pub(super) mod prunes;
mod sources;
mod target;

const COLLECTION: &str = "org.example.Os";
