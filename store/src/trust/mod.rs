//! Trust on a device: the administrator's files, and the state kept between bundles.
//!
//! [`Guard`] judges a bundle's head by the files that [`TrustPaths`] finds and by what the [`DeviceState`] remembers, and turns it into a [`Trusted`].
//! Extracting consumes that; installing also commits the bundle's version.

mod admission;
mod bound;
mod guard;
mod now;
mod options;
mod paths;
mod records;
mod report;
mod settings;
mod state;
mod survey;
mod targets;
mod trusted;

pub use crate::address::TargetKind;
pub(crate) use admission::Admission;
pub use bound::bound_name;
pub use guard::{Guard, Judged};
pub use now::build_time;
pub use options::TrustOptions;
pub use paths::{REVOKED, SIGNERS, TrustPaths};
pub use report::{FloorReport, TrustReport};
pub use sealift_verify::kernel_signature::{FormError, KernelSignError};
pub use sealift_verify::trust::{
    Claims, FloorRecord, Floors, KeyError, KeyId, KeyIdError, KeyType, LineError, Namespace, Now, NowSource,
    PatternList, PublicKey, RevocationList, Shortfall, SignError, SignatureError, SignatureState, SignerLine, Since,
    Standing, TimeError, TrustFileError, TrustedSigner, Unaccepted, UnknownSignature, Utc, Verdict,
};
pub use state::{DeviceState, reset_floor};
pub use survey::Survey;
pub use targets::{KnownTarget, TargetId};
pub use trusted::Trusted;
