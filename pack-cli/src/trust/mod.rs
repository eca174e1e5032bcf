//! Trust as a device keeps it: the administrator's files, the state between bundles, and signing.
//!
//! [`Guard`] judges a bundle's head by the files that [`Places`] finds and by what the [`Store`] remembers; it is
//! asked before any content is handed out, and told when a bundle was committed. [`sign`] is the publisher's side.

mod bound;
mod durable;
mod guard;
mod now;
mod options;
mod places;
mod records;
mod report;
mod settings;
pub mod sign;
mod store;

pub use bound::{bound_name, check_bound};
pub use guard::Guard;
pub use options::TrustOptions;
pub use places::Places;
pub use report::{FloorReport, TrustReport};
pub use sealift_verify::trust::{SignatureState, Standing, TimeError, Utc, Verdict};
pub use store::{Store, reset_floor};
