//! Looks into images, archives and compressed files for JavaScript: a module of its own, which is loaded only when somebody opens one.
//!
//! JavaScript does all reading: a call that lacks bytes of the file returns the range that it needs, and is repeated with it. The bytes are those of a
//! file of a bundle, which the other module has checked.
#![deny(missing_docs)]
#![allow(unsafe_code, reason = "what #[wasm_bindgen] expands to; there is none of our own")]

mod cache;
mod inside;
mod listing;
mod number;
mod object;
mod tree;

pub use inside::Inside;
