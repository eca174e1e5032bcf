//! What an error is about: whether the bundle is at fault, and the error in one word, for programs.

use std::path::Path;

use sealift_format::Kind;
use sealift_verify::fsverity::KernelError;

use super::{Class, Error, FileFault, SlotFault, VolumeFault};

impl Error {
    /// Returns the same error with the bundle at `path`, if it is about the bundle and does not name it yet.
    pub fn of_bundle(self, path: &Path) -> Self {
        match self {
            Self::Bundle { .. } | Self::Volumes { .. } => self,
            _ if self.kind().is_some() => Self::Bundle { path: path.to_owned(), source: Box::new(self) },
            _ => self,
        }
    }

    /// Returns the bundle's fault, in one word; `None` if the bundle is not at fault.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Self::Format(error) => Some(error.kind()),
            Self::Content(error) => Some(error.kind()),
            Self::Trust(error) => Some(error.kind()),
            Self::Bundle { source, .. } => source.kind(),
            Self::Volumes { fault, .. } => fault.kind(),
            Self::File { fault: FileFault::Signature(_) | FileFault::KernelSignature(_), .. } => Some(Kind::Signature),
            _ => None,
        }
    }

    /// Returns the error in one word, the same in JSON, in the format's vectors and in JavaScript: that of its [`Kind`] if the bundle is at fault,
    /// else one of `usage`, `exists`, `io`, `busy`, `space`, `room`, `changed`, `other-name`, `not-ours`, `half-updated`, `folded-name`,
    /// `trust-file`, `state`, `repository`, `verity`, `not-sealed`, `other-digest`, `key`, `archive`, `order`, `unfit`, `foreign`, `delta`, `base`
    /// and `cancelled`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        if let Some(kind) = self.kind() {
            return kind.word();
        }
        match self {
            _ if self.class() == Class::DiskFull => "space",
            Self::Volumes { fault, .. } if matches!(**fault, VolumeFault::Unrepairable { .. }) => "unrepairable",
            Self::Usage(_)
            | Self::Unexpected { .. }
            | Self::Unusable { .. }
            | Self::SeveralRefs { .. }
            | Self::NoRef { .. }
            | Self::NoFile { .. }
            | Self::Ambiguous { .. }
            | Self::SameRef { .. }
            | Self::NoCollection { .. }
            | Self::NoCommit
            | Self::NoComposefs
            | Self::UnlistedKey { .. }
            | Self::NoRecord { .. }
            | Self::NotEmpty { .. }
            | Self::DirectoryInPlace { .. }
            | Self::Needed { .. }
            | Self::NoImages
            | Self::NoImage { .. }
            | Self::OverLimit { .. }
            | Self::NoStateDirectory
            | Self::Volumes { .. } => "usage",
            Self::Exists { .. } => "exists",
            Self::Busy { .. } | Self::Mounted { .. } => "busy",
            Self::Foreign { .. } | Self::OtherDirectory { .. } => "foreign",
            Self::NoRoom { .. } => "room",
            Self::Changed { .. } | Self::Changing { .. } | Self::Exchanged { .. } => "changed",
            Self::OtherName { .. } => "other-name",
            Self::NotOurs { .. } => "not-ours",
            Self::FoldedName { .. } => "folded-name",
            Self::HalfUpdated { .. } | Self::GivenUp { .. } => "half-updated",
            Self::Recovery(_) => "unrepairable",
            Self::File { fault, .. } => match fault {
                FileFault::Order(_) => "order",
                FileFault::Trust(_) => "trust-file",
                _ => "key",
            },
            Self::Slot { fault, .. } => match **fault {
                SlotFault::InUse(_) => "busy",
                SlotFault::TooSmall { .. } => "space",
                SlotFault::ReadOnly | SlotFault::ReadsOther { .. } => "io",
                SlotFault::Unfinished => "half-updated",
                SlotFault::Record(_) => "not-ours",
                _ => "usage",
            },
            Self::State { .. } | Self::Floor { .. } => "state",
            Self::Repository { .. } | Self::NoStore { .. } | Self::Store { .. } | Self::DamagedStore { .. } => {
                "repository"
            }
            Self::Kernel { source, .. } => match **source {
                KernelError::NotSealed => "not-sealed",
                KernelError::OtherDigest { .. } => "other-digest",
                _ => "verity",
            },
            Self::StoreObject { .. } => "other-digest",
            Self::SignatureRefused { .. } => "verity",
            Self::Agent { .. } => "key",
            Self::Archive { .. } | Self::Image { .. } => "archive",
            Self::Unfit { .. } | Self::Unstorable { .. } | Self::NotKept { .. } => "unfit",
            Self::IsDelta { .. } => "delta",
            Self::MissingBase { .. } => "base",
            Self::Cancelled => "cancelled",
            _ => "io",
        }
    }
}
