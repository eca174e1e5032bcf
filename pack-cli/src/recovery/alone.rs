//! One recovery file without what it is for (recovery 7).

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use sealift_format::num::{at, size};
use sealift_format::{Error as FormatError, Head, Recovery, RecoveryHeader};

use super::code;
use super::file::{Front, RecoveryFile, label, read_front, read_recovery};
use crate::{Error, Limits, Phase, Progress};

/// A recovery file whose header, geometry, head and layout are sound.
#[derive(Debug)]
pub struct LoneRecovery {
    file: RecoveryFile,
    front: Front,
}

impl LoneRecovery {
    /// Opens a file. Returns `None` if it is no recovery file.
    ///
    /// # Errors
    /// Returns an error if it cannot be read, or if it begins like a recovery file and does not conform to recovery 7, steps 1 to 6.
    pub fn open(path: &Path, limits: &Limits) -> Result<Option<Self>, Error> {
        let failed = |error| Error::io("read", path, error);
        let of_it = |error: FormatError| Error::from(error).of_bundle(path);
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() || metadata.len() < Recovery::HEADER_LEN.into() {
            return Ok(None);
        }
        let mut header = vec![0; at(Recovery::HEADER_LEN)];
        file.read_exact_at(&mut header, 0).map_err(failed)?;
        if !RecoveryHeader::is_of_kind(&header) {
            return Ok(None);
        }
        RecoveryHeader::parse(&header).and_then(|header| header.check_len(metadata.len())).map_err(of_it)?;
        let recovery = read_recovery(path, &file, limits)?.map_err(of_it)?;
        code::memory(&recovery.geometry)?;
        let fill = recovery.fill();
        let mut bytes = vec![0; size(fill.end.saturating_sub(fill.start))];
        file.read_exact_at(&mut bytes, fill.start).map_err(failed)?;
        recovery.check_fill(&bytes).map_err(of_it)?;
        let front = read_front(path, &file, &recovery)?.map_err(of_it)?;
        limits.check(front.head.root()).map_err(of_it)?;
        Ok(Some(Self { file: RecoveryFile::of(path, file, recovery), front }))
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Returns the head of the bundle that it is for.
    #[must_use]
    pub fn head(&self) -> &Head {
        &self.front.head
    }

    /// Returns header and geometry.
    #[must_use]
    pub fn recovery(&self) -> &Recovery {
        self.file.recovery()
    }

    /// Returns what it is, for people: `os version 7, recovery 1 of 2`.
    #[must_use]
    pub fn label(&self) -> String {
        label(self.head(), self.recovery())
    }

    /// Checks every record by its checksums, which nobody signed. Returns the length of the file in bytes.
    ///
    /// # Errors
    /// Returns an error if a record is damaged or cannot be read.
    pub fn verify(&self, progress: &Progress) -> Result<u64, Error> {
        progress.enter(Phase::Verifying, self.recovery().own_len(), 0);
        self.file.check_records(self.head(), progress)?;
        Ok(self.recovery().own_len())
    }
}
