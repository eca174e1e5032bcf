//! What a program can do about an error.

use std::io;

use sealift_format::Kind;
use sealift_verify::fsverity::KernelError;

use super::{Error, RepoFault, SlotFault, VolumeFault};

/// What a program can do about an [`Error`], by [`Error::class`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// The bundle, the target or its record of files is damaged, or not as it was signed. If [`Error::kind`] names a fault, the bundle is: get it
    /// again. Otherwise the target is: install the bundle there once more.
    Damaged,
    /// Policy refuses the bundle on this device: its signer, name, version, expiry or tags, or what a repository requires. Another bundle may be
    /// accepted; the same one is not, until an administrator changes the policy.
    Refused,
    /// The bundle is a delta, and its base is not there: get the full bundle.
    BaseMissing,
    /// A file system or a quota has no space, or no inodes, left: free some, then repeat the operation, which goes on from where it ended.
    DiskFull,
    /// The caller cancelled the operation. Nothing is at fault.
    Cancelled,
    /// Another process uses the target or changes what is read: repeat the operation later.
    Busy,
    /// Anything else, which a person has to change: options, a path, rights, a limit, an administrator's file, the device's state, a key, what a file
    /// system supports, or a failing device.
    Setup,
}

impl Error {
    /// Returns what a program can do about the error.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Bundle { source, .. } => source.class(),
            Self::HalfUpdated { .. }
            | Self::GivenUp { .. }
            | Self::Recovery(_)
            | Self::StoreObject { .. }
            | Self::DamagedStore { .. } => Class::Damaged,
            Self::OtherName { .. } => Class::Refused,
            Self::MissingBase { .. } | Self::IsDelta { .. } => Class::BaseMissing,
            Self::NoSpace { .. } | Self::NoInodes { .. } => Class::DiskFull,
            Self::Io { source, .. } | Self::Xattr { source, .. } if is_full(source) => Class::DiskFull,
            Self::Cancelled => Class::Cancelled,
            Self::Busy { .. } | Self::Mounted { .. } | Self::Changing { .. } | Self::Changed { .. } => Class::Busy,
            Self::Kernel { source, .. } => match **source {
                KernelError::NotSealed | KernelError::OtherDigest { .. } => Class::Damaged,
                KernelError::Busy | KernelError::OpenForWriting => Class::Busy,
                _ => Class::Setup,
            },
            Self::Slot { fault, .. } => match **fault {
                SlotFault::InUse(_) => Class::Busy,
                SlotFault::ReadsOther { .. } | SlotFault::Unfinished => Class::Damaged,
                _ => Class::Setup,
            },
            Self::Volumes { fault, .. } if matches!(**fault, VolumeFault::Unrepairable { .. }) => Class::Damaged,
            Self::Repository { fault, .. } => match **fault {
                RepoFault::Refused { .. } => Class::Refused,
                RepoFault::Damaged { .. } | RepoFault::Wrong { .. } | RepoFault::Mismatch { .. } => Class::Damaged,
                RepoFault::Locked { .. } => Class::Busy,
                _ => Class::Setup,
            },
            _ => match self.kind() {
                Some(Kind::Untrusted | Kind::Revoked | Kind::Incompatible | Kind::Expired | Kind::Downgrade) => {
                    Class::Refused
                }
                Some(Kind::Base) => Class::BaseMissing,
                // The bundle may be sound: this reader was told to take no more.
                Some(Kind::Limit) | None => Class::Setup,
                Some(_) => Class::Damaged,
            },
        }
    }

    /// Returns the exit status of a program that ends with this error:
    ///
    /// | status | class |
    /// | --- | --- |
    /// | 1 | [`Class::Damaged`] |
    /// | 2 | any other: undetermined or failed |
    /// | 3 | [`Class::Refused`] |
    /// | 4 | [`Class::BaseMissing`] |
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        match self.class() {
            Class::Damaged => 1,
            Class::Refused => 3,
            Class::BaseMissing => 4,
            Class::DiskFull | Class::Cancelled | Class::Busy | Class::Setup => 2,
        }
    }
}

/// Returns whether a system call failed because the file system or a quota is full.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
