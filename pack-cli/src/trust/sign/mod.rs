//! The publisher's side: keys, and signing bundles.
//!
//! A key that never leaves its token or vault signs the bytes of [`Head::signed`](crate::Head::signed) with `ssh-keygen -Y sign -n sealift`, and
//! [`sign_bundle`] attaches the signature. A [`KernelSigner`] signs the index for kernels that have its certificate, which does not affect trust.
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/bundle.rs"));
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = signed_bundle()?;
//! # let folder = folder.path();
//! use sealift::Progress;
//! use sealift::trust::sign::{SignChange, Signer, generate_key, sign_bundle};
//!
//! generate_key(&folder.join("second"), None, "second@example.org")?;
//! let keys = [Signer::open(&folder.join("second"), &|_| unreachable!("the key has no passphrase"))?];
//! let change = SignChange { keys: &keys, ..SignChange::default() };
//! let stats = sign_bundle(&folder.join("os.sealift"), &change, &Progress::default())?;
//! assert_eq!((stats.added.len(), stats.head.envelopes().count()), (1, 2));
//! # Ok(())
//! # }
//! ```

mod agent;
mod area;
mod attach;
mod bundle;
mod generate;
mod kernel;
mod signer;

pub use area::KernelChange;
pub use attach::read_signature;
pub use bundle::{SignChange, SignStats, sign_bundle, sign_copy};
pub use generate::generate_key;
pub use kernel::KernelSigner;
pub use sealift_verify::kernel_signature::signed_bytes;
#[cfg(feature = "pack")]
pub(crate) use signer::sign_list;
pub use signer::{AskPassphrase, Signer, sign_head, sign_root};
pub use zeroize::Zeroizing;
