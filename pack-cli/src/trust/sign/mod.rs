//! The publisher's side: keys, and signatures into a bundle.

mod agent;
mod area;
mod attach;
mod bundle;
mod generate;
mod signer;

pub use attach::read_signature;
pub use bundle::{SignChange, SignStats, sign_bundle};
pub use generate::generate_key;
pub use sealift_verify::trust::sign::SignError;
pub use sealift_verify::trust::{KeyId, PublicKey};
pub use signer::{AskPassphrase, Signer, room_for, sign_head, sign_root};
pub use zeroize::Zeroizing;
