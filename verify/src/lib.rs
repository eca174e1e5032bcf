//! Decides what of a Sealift bundle may be trusted.
//!
//! [`trust`] answers one question: may this root be used, for this name, on
//! this device, now? It reads no file and no clock; the shells hand it bytes.
//!
//! ```
//! use sealift_verify::trust::{AllowedSigners, Claims, Now, Policy};
//!
//! let mut policy = Policy::at(Now::exactly(1_800_000_000));
//! // The administrator's file: whose signature counts, for which names.
//! policy.signers = Some(AllowedSigners::parse(b"# nobody yet\n")?);
//!
//! let claims = Claims { name: "os".into(), version: 7, ..Claims::default() };
//! let error = policy.judge(&claims, b"preamble and root", &[], &[]).unwrap_err();
//! assert_eq!(error.kind().word(), "untrusted");
//! # Ok::<(), sealift_verify::trust::TrustFileError>(())
//! ```
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod checker;
pub mod content;
mod error;
pub mod escape;
pub mod objects;
pub mod ostree;
pub mod trust;
pub mod walk;

pub use error::Error;
