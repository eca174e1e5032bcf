//! The files of an OSTree repository that travel with its commits (ostree 2.1).

use alloc::vec::Vec;

use crate::Error;
use crate::bytes::Reader;
use crate::num::{at, fit};

/// A file of the repository itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(clippy::exhaustive_enums, reason = "ostree 2.1 lists them")]
pub enum RepositoryFile {
    /// `summary`
    Summary,
    /// `summary.sig`
    SummarySignature,
    /// `summary.idx`
    SummaryIndex,
    /// `summary.idx.sig`
    SummaryIndexSignature,
}

impl RepositoryFile {
    /// All of them, in ascending order.
    pub const ALL: [Self; 4] = [Self::Summary, Self::SummarySignature, Self::SummaryIndex, Self::SummaryIndexSignature];

    /// Returns its name in a repository.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::SummarySignature => "summary.sig",
            Self::SummaryIndex => "summary.idx",
            Self::SummaryIndexSignature => "summary.idx.sig",
        }
    }

    fn code(self) -> u8 {
        match self {
            Self::Summary => 1,
            Self::SummarySignature => 2,
            Self::SummaryIndex => 3,
            Self::SummaryIndexSignature => 4,
        }
    }
}

/// Reads the files, whose kinds ascend.
pub(super) fn parse_repository(mut reader: Reader<'_>) -> Result<Vec<(RepositoryFile, Vec<u8>)>, Error> {
    let count = reader.u8()?;
    if count == 0 {
        return Err(reader.malformed("the repository has no files"));
    }
    let mut kinds = RepositoryFile::ALL.into_iter();
    let mut files = Vec::new();
    for _ in 0..count {
        let code = reader.u8()?;
        let Some(kind) = kinds.find(|kind| kind.code() == code) else {
            return Err(reader.malformed("the repository's files do not ascend, or there is no such file"));
        };
        let len = reader.u32()?;
        files.push((kind, reader.take(at(len))?.to_vec()));
    }
    reader.finish()?;
    Ok(files)
}

/// Writes the files, which ascend.
pub(super) fn encode_repository(files: &[(RepositoryFile, Vec<u8>)]) -> Result<Vec<u8>, Error> {
    let mut out = [fit(files.len(), "the number of files of the repository")?].to_vec();
    for (kind, bytes) in files {
        out.push(kind.code());
        out.extend(fit::<u32>(bytes.len(), "the length of a file of the repository")?.to_le_bytes());
        out.extend(bytes);
    }
    Ok(out)
}
