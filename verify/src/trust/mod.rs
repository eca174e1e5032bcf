//! Which signatures count, for which names, on which devices, and until when.
//!
//! Trust is the administrator's: an [`AllowedSigners`] file as OpenSSH and git
//! use it, a [`RevocationList`], [`Thresholds`], a [`Device`] and the [`Floors`]
//! that it keeps make a [`Policy`], which judges a bundle's [`Claims`] and
//! signatures and returns a [`Verdict`] or one [`Error`].
//!
//! Nothing here reads files, clocks or random numbers.

mod allowed_signers;
mod armor;
mod claims;
mod device;
mod error;
mod file_error;
mod floor;
mod head;
mod key_error;
mod key_id;
mod key_line;
mod krl;
#[cfg(not(target_arch = "wasm32"))]
mod list;
mod now;
mod options;
mod pattern;
mod policy;
mod power;
mod proof;
mod public_key;
mod revocation;
mod rsa;
#[cfg(test)]
pub(crate) mod sample;
mod shortfall;
#[cfg(feature = "sign")]
pub mod sign;
mod sign_error;
mod signature_error;
mod since;
mod sshsig;
mod standing;
mod taken;
mod thresholds;
mod time;
mod unknown_signature;
mod verdict;
mod wire;
mod word;

pub use allowed_signers::{AllowedSigners, SignerLine};
pub use claims::Claims;
pub use device::Device;
pub use error::Error;
pub use file_error::{LineError, TrustFileError};
pub use floor::{CREATED_MARGIN, FloorRecord, Floors};
pub use head::unknown_envelopes;
pub use key_error::KeyError;
pub use key_id::{KeyId, KeyIdError};
pub use now::{Now, NowSource};
pub use pattern::PatternList;
pub use policy::{Policy, SIGNATURES_MAX};
pub use public_key::{KeyType, PublicKey};
pub use revocation::RevocationList;
pub use shortfall::Shortfall;
pub use sign_error::SignError;
pub use signature_error::SignatureError;
pub use since::Since;
pub use sshsig::{Namespace, SshSignature};
pub use standing::Standing;
pub use thresholds::Thresholds;
pub use time::{TimeError, Utc};
pub use unknown_signature::{Unaccepted, UnknownSignature};
pub use verdict::{SignatureState, TrustedSigner, Verdict};
