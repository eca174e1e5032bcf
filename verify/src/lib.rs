//! Decides which bundles may be trusted, and checks what they hold.
//!
//! [`trust`] answers one question: may this root be used, for this name, on
//! this device, now? It reads no file and no clock; its callers pass the bytes.
//!
//! ```
//! use sealift_verify::trust::{AllowedSigners, Claims, Now, Policy};
//!
//! let mut policy = Policy::at(Now::exactly(1_800_000_000));
//! // The administrator's file: which keys count, for which names.
//! policy.signers = Some(AllowedSigners::parse(b"# nobody yet\n")?);
//!
//! let claims = Claims { name: "os".into(), version: 7, ..Claims::default() };
//! let error = policy.judge(&claims, b"preamble and root", &[], &[]).unwrap_err();
//! assert_eq!(error.kind().word(), "untrusted");
//! # Ok::<(), sealift_verify::trust::TrustFileError>(())
//! ```
//!
//! With the feature `fsverity`, the module of that name asks Linux to seal files and for their digests (fs-verity): the only part that makes system calls.
#![deny(missing_docs)]
#![cfg_attr(not(feature = "fsverity"), forbid(unsafe_code))]

pub mod carried;
pub mod checker;
pub mod content;
pub mod dm_verity;
pub mod escape;
#[cfg(all(feature = "fsverity", target_os = "linux"))]
pub mod fsverity;
pub mod kernel_signature;
pub mod objects;
pub mod ostree;
pub mod read_plan;
pub mod trust;

pub use trust::Error;
