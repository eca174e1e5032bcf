//! Profiles of access: recorded, imported, merged and compared.
#![allow(clippy::unwrap_used, reason = "tests")]

mod images;
mod imported;
mod kept;
mod profiles;
mod recorded;
