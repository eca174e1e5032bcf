//! What is wrong with the volumes of a bundle.

use std::path::PathBuf;

use sealift_format::Kind;

/// What is wrong with a volume, or with a set of them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VolumeFault {
    /// Some volumes of a bundle are not there.
    #[error("has no {} of {count} of {bundle}", numbers(missing))]
    Missing {
        /// Name and version of the bundle.
        bundle: String,
        /// How many volumes it was split into.
        count: u16,
        /// The numbers of those that are missing.
        missing: Vec<u16>,
    },
    /// Two files are the same volume.
    #[error("is {label}, and so is {}", other.display())]
    Twice {
        /// What the volume is.
        label: String,
        /// The other file.
        other: PathBuf,
    },
    /// Volumes of different bundles, or of one bundle that was split or signed differently, are together.
    #[error("is {label}, and not of the same set as {}, which is {other_label}{}", other.display(), same_name(label, other_label))]
    OtherSet {
        /// What the volume is.
        label: String,
        /// A volume of the wanted set.
        other: PathBuf,
        /// What that volume is.
        other_label: String,
    },
    /// A directory has volumes of several sets.
    #[error("has volumes of several sets: {}", sets.join("; "))]
    Several {
        /// The sets, each with what is there of it.
        sets: Vec<String>,
    },
    /// A directory has no volumes.
    #[error("is a directory without volumes, and a bundle is a file")]
    None,
    /// A volume ends too early.
    #[error("is {label}, and truncated: it has {len} of {expected} bytes")]
    Truncated {
        /// What the volume is.
        label: String,
        /// The file's length in bytes.
        len: u64,
        /// The length that its header states.
        expected: u64,
    },
    /// A volume continues after its end.
    #[error("is {label}, and continues after its end, at byte {expected}")]
    Trailing {
        /// What the volume is.
        label: String,
        /// The length that its header states.
        expected: u64,
    },
    /// The bundle's bytes in one volume do not follow those in the one before.
    #[error("is {label}, and does not begin where the volume before it ends")]
    Gap {
        /// What the volume is.
        label: String,
    },
    /// A part of a recovery file does not match its checksums.
    #[error("is {label}, and damaged in record {record} of {records}, at byte {offset}")]
    Record {
        /// What the recovery file is.
        label: String,
        /// The number of the record, from 1.
        record: u64,
        /// How many records there are.
        records: u64,
        /// Where it begins in the file.
        offset: u64,
    },
    /// More is lost of some volumes than the recovery volumes can make again.
    #[error("has too little recovery for {} of {bundle}: {}; {made}", numbers(&lost.iter().map(|(number, _)| *number).collect::<Vec<_>>()), lacking(lost))]
    Unrepairable {
        /// Name and version of the bundle.
        bundle: String,
        /// The numbers of the volumes, and how many bytes each lacks.
        lost: Vec<(u16, u64)>,
        /// What was made whole nevertheless, in words.
        made: String,
    },
    /// A directory for volumes has others of the same bundle already.
    #[error("is in the way: the volumes of {bundle} do not include it")]
    InTheWay {
        /// Name and version of the bundle that is being split.
        bundle: String,
    },
}

impl VolumeFault {
    /// Returns the kind of failure (volumes 3 and 4), if volumes are at fault, and not how they were given.
    pub(super) fn kind(&self) -> Option<Kind> {
        match self {
            Self::Missing { .. } | Self::Truncated { .. } => Some(Kind::Truncated),
            Self::Trailing { .. } => Some(Kind::Trailing),
            Self::Twice { .. } | Self::OtherSet { .. } | Self::Gap { .. } => Some(Kind::Header),
            Self::Record { .. } => Some(Kind::Chunk),
            Self::Several { .. } | Self::None | Self::InTheWay { .. } | Self::Unrepairable { .. } => None,
        }
    }
}

/// How many numbers are listed before the rest is only counted.
const LISTED: usize = 20;

/// Returns numbers of volumes in words: `volume 2`, `volumes 2, 3 and 7`.
pub(crate) fn numbers(numbers: &[u16]) -> String {
    let (listed, rest) = numbers.split_at(numbers.len().min(LISTED));
    let mut words: Vec<String> = listed.iter().map(u16::to_string).collect();
    if !rest.is_empty() {
        words.push(format!("{} more", rest.len()));
    }
    let last = words.pop().unwrap_or_default();
    match words.is_empty() {
        true => format!("volume {last}"),
        false => format!("volumes {} and {last}", words.join(", ")),
    }
}

/// Returns how much volumes lack: `volume 3 lacks 4096 bytes, volume 5 lacks 2048 bytes`.
fn lacking(lost: &[(u16, u64)]) -> String {
    let (listed, rest) = lost.split_at(lost.len().min(LISTED));
    let mut words: Vec<String> =
        listed.iter().map(|(number, bytes)| format!("volume {number} lacks {bytes} bytes")).collect();
    if !rest.is_empty() {
        words.push(format!("{} more", rest.len()));
    }
    words.join(", ")
}

/// Returns why two volumes are not of one set although their labels name the same bundle.
fn same_name(label: &str, other: &str) -> &'static str {
    let bundle = |label: &str| label.split_once(", ").map(|(bundle, _)| bundle.to_owned());
    match bundle(label) == bundle(other) {
        true => " of another split, or of a copy with other content or signatures",
        false => "",
    }
}
