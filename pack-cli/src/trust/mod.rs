//! Trust: the administrator's files, the state between bundles, and signing.
//!
//! [`Guard`] judges a bundle's head by the files that [`TrustPaths`] finds and by the state in [`DeviceState`], and makes
//! it [`Trusted`]: everything that returns content consumes that, and everything that installs content commits its version.
//! [`sign`] is the publisher's side.
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/bundle.rs"));
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = signed_bundle()?;
//! # let folder = folder.path();
//! use sealift::trust::{Guard, TrustOptions};
//! use sealift::{Input, Kind, Limits};
//!
//! let head = Input::open(&folder.join("os.sealift"))?.read_head(Limits::default())?;
//! let options = TrustOptions {
//!     signers: Some(folder.join("allowed_signers")),
//!     state: Some(folder.join("state")),
//!     ..TrustOptions::default()
//! };
//! let verdict = Guard::load(&options)?.judge(&head)?;
//! assert_eq!(verdict.signers.len(), 1);
//!
//! let two = TrustOptions { thresholds: vec!["2".into()], ..options };
//! let refused = Guard::load(&two)?.judge(&head).expect_err("one key signed");
//! assert_eq!(refused.kind(), Some(Kind::Untrusted));
//! # Ok(())
//! # }
//! ```

mod edit;
#[cfg(feature = "sign")]
pub mod sign;
pub(crate) mod sign_partial;

pub use edit::{Added, Exported, GivenKey, Revoked, Withdrawn, add_signer, export_signers, revoke_key};
pub use sealift_store::trust::*;
