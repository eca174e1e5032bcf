//! Names of the files of volumes and recovery volumes. Numbers have as many digits as there are, so that they sort.

use sealift_format::{Head, Recovery, Volume};
use sealift_store::OpenVolume;

/// Returns the name of a volume's file: `os-7.002-of-005.sealift-volume`.
pub(crate) fn file_name(head: &Head, header: &Volume) -> String {
    let digits = header.count.to_string().len().max(3);
    let Volume { number, count, .. } = header;
    let identity = &head.root().identity;
    let stem = format!("{}-{}", identity.name, identity.version);
    format!("{stem}.{number:0digits$}-of-{count:0digits$}.{}", OpenVolume::EXTENSION)
}

/// Returns the name of a recovery volume's file: `os-7.recovery-001-of-002.sealift-recovery`.
pub(crate) fn recovery_file_name(head: &Head, recovery: &Recovery) -> String {
    let identity = &head.root().identity;
    let digits = recovery.count.to_string().len().max(3);
    let Recovery { number, count, .. } = recovery;
    let stem = format!("{}-{}", identity.name, identity.version);
    format!("{stem}.recovery-{number:0digits$}-of-{count:0digits$}.{}", OpenVolume::RECOVERY_EXTENSION)
}
