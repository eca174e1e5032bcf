//! Sealift's verifier for JavaScript: thin bindings on the machine that checks a bundle as its bytes come.
//!
//! JavaScript owns all reading: [`Verifier::next`] says which bytes of the file are wanted, [`Verifier::supply`] takes them.
//! An `Error` about the bundle has the word for its kind as `code` (spec 11); one without `code` is about the call.
#![deny(missing_docs)]
#![allow(unsafe_code, reason = "what #[wasm_bindgen] expands to; there is none of our own")]

#[cfg(all(target_arch = "wasm32", not(target_feature = "simd128")))]
compile_error!(
    "simd128 is off, and hashing would take twice as long: RUSTFLAGS displaces .cargo/config.toml; unset it"
);

mod error;
mod number;
mod object;
mod options;
mod report;
mod verifier;

pub use verifier::Verifier;
