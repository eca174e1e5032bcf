//! Whose signature counts, for which names, on which devices, and until when.
//!
//! Nothing here reads files, clocks or random numbers.

mod armor;
mod file_error;
mod key_id;
mod key_line;
mod public_key;
mod rsa;
#[cfg(test)]
mod sample;
mod sshsig;
mod wire;

pub use file_error::{LineError, TrustFileError};
pub use key_id::{KeyId, KeyIdError};
pub use public_key::{KeyError, KeyType, PublicKey};
pub use sshsig::{NAMESPACE, SignatureError, SshSignature};
