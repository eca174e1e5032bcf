//! What tests of several crates share: a folder, the programs that run in it, and how a test says that it cannot run here.
//!
//! It runs Sealift's program and uses none of its libraries, whose own tests use it too.

mod desk;
mod interrupted;
mod memory;
mod mounted;
mod noise;
mod partition;
mod run;
mod skipped;
mod times;
mod users;
mod wait;

pub use desk::{Desk, program};
pub use memory::folder_in_memory;
pub use mounted::Mounted;
pub use noise::noise;
pub use partition::{add_partition, remove_partition};
pub use run::{kill_after, out, outcome, peak_of, said, text, told};
pub use skipped::{has, skipped};
pub use times::set_mtime;
pub use users::{NOBODY, as_root, can_chown, is_root};
pub use wait::wait;
