//! Sealift's reader for JavaScript: thin bindings to the opener and the chunk checkers.
//!
//! JavaScript does all reading: [`Reader::next`] returns the bytes needed until the index is read, and then chunks
//! are checked in any order, by one reader per worker. An `Error` about the bundle has the kind of failure as its `code`
//! (core 11.1); one without `code` is about the call.
#![deny(missing_docs)]
#![allow(unsafe_code, reason = "what #[wasm_bindgen] expands to; there is none of our own")]

#[cfg(all(target_arch = "wasm32", not(target_feature = "simd128")))]
compile_error!(
    "simd128 is off, and hashing would take twice as long: RUSTFLAGS displaces .cargo/config.toml; unset it"
);

mod base;
mod check;
mod compare;
mod content;
mod error;
mod hit;
mod listing;
mod number;
mod object;
mod options;
mod picture;
mod place;
mod reader;
mod report;
mod sha256;

pub use options::check as check_policy;
pub use reader::Reader;
pub use sha256::take as sha256;
