//! Order profiles: which files a workload reads first, and in which order. They are recorded, imported, merged and compared here; `pack` lays
//! a bundle out by one.

pub mod diff;
#[cfg(feature = "pack")]
pub mod import;
mod kept;
mod merge;
mod profile;
mod ranked;
pub mod record;

pub use merge::{merge, one_after_another};
pub use profile::{OrderEntry, OrderProfile};
pub use ranked::{Ranked, Ranking, ranked};
pub use sealift_store::OrderFault;
pub use sealift_store::kept_order::{KeptOrder, KeptPart};
