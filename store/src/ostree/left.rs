//! File objects that killed or failed imports left in their stages. The next import reads each that it wants, and takes it if it matches its checksum:
//! nothing else says that a file was written to its end.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;

use rustix::fs::{Mode as Permissions, OFlags, renameat};
use sealift_format::Attributes;
use sealift_format::num;
use sealift_format::ostree::Checksum;

use super::config::Mode;
use super::create::complete;
use super::object::{ObjectType, parse_checksum};
use super::read::FileContent;
use super::stage::{LeftFile, LeftStages};
use super::transaction::Transaction;
use crate::fs::confined::open_beneath;
use crate::progress::Phase;
use crate::threads::parallel::map_with;
use crate::{Error, Progress};

/// A whole file object in the stage of an earlier run.
#[derive(Debug)]
pub(crate) struct LeftObject {
    pub(crate) checksum: Checksum,
    attributes: Attributes,
    file: LeftFile,
}

/// Bytes per read.
const READ_LEN: usize = 1 << 18;

impl Transaction<'_> {
    /// Returns those of the wanted regular files that earlier runs left whole.
    ///
    /// # Errors
    /// Returns an error if the stages cannot be listed, or if the run is cancelled.
    pub(crate) fn find_left(
        &self,
        wanted: &HashSet<Checksum>,
        jobs: usize,
        progress: &Progress,
    ) -> Result<Vec<LeftObject>, Error> {
        let left = self.left.lock();
        let left = &*left;
        let files = left.files().map_err(|error| Error::io("read", self.tmp_path(), error))?;
        let named = files.into_iter().filter_map(|file| Some((self.checksum_of(&file)?, file)));
        let candidates: Vec<_> = named.filter(|(checksum, _)| wanted.contains(checksum)).collect();
        if candidates.is_empty() {
            return Ok(Vec::new());
        }
        progress.enter(Phase::Hashing, 0, num::wide(candidates.len()));
        let read = map_with(
            jobs,
            &candidates,
            || vec![0; READ_LEN],
            |buffer, (checksum, file)| {
                progress.check()?;
                let attributes = self.attributes_of_whole(left, checksum, file, buffer);
                progress.add(0, 1);
                Ok(attributes)
            },
        )?;
        // Two runs may have left the same object.
        let mut found = HashMap::new();
        for ((checksum, file), attributes) in candidates.into_iter().zip(read) {
            if let Some(attributes) = attributes {
                found.entry(checksum).or_insert(LeftObject { checksum, attributes, file });
            }
        }
        Ok(found.into_values().collect())
    }

    /// Removes everything that earlier runs left, except these objects. Their space is free from here on.
    ///
    /// # Errors
    /// Returns an error if something cannot be removed.
    pub(crate) fn discard_left_but(&self, kept: &[LeftObject]) -> Result<(), Error> {
        let left = self.left.lock();
        if left.is_empty() {
            return Ok(());
        }
        let failed = |error| Error::io("remove files in", self.tmp_path(), error);
        let kept: HashSet<&LeftFile> = kept.iter().map(|object| &object.file).collect();
        let files = left.files().map_err(failed)?;
        files.iter().filter(|file| !kept.contains(file)).try_for_each(|file| left.discard(file)).map_err(failed)?;
        self.measure_room()
    }

    /// Moves these objects into the stage of this transaction.
    ///
    /// # Errors
    /// Returns an error if one cannot be moved.
    pub(crate) fn take_left(&self, objects: &[LeftObject]) -> Result<(), Error> {
        let left = self.left.lock();
        for LeftObject { checksum, attributes, file } in objects {
            let take = |name: &str| {
                let from = left.directory_of(file)?;
                let opened = open_beneath(from, file.path.as_bytes(), OFlags::RDONLY, Permissions::empty())?;
                complete(self.repo.config().mode, &File::from(opened), attributes)?;
                renameat(from, &*file.path, self.stage.directory(), name)
            };
            let failed = |error| Error::io("write", self.repo.object_path(ObjectType::File, checksum), error);
            self.stage_object(ObjectType::File, checksum, |name| take(name).map_err(failed))?;
        }
        Ok(())
    }

    fn tmp_path(&self) -> PathBuf {
        self.repo.path().join("tmp")
    }

    /// Returns the checksum that a file's name in the stage gives; `None` if it is no file object.
    fn checksum_of(&self, file: &LeftFile) -> Option<Checksum> {
        let name = file.path.trim_start_matches('.').replacen('/', "", 1);
        let end = if self.repo.config().mode == Mode::Archive { ".filez" } else { ".file" };
        parse_checksum(name.strip_suffix(end)?)
    }

    /// Reads a file object to its end; returns its attributes if all of it matches the checksum.
    fn attributes_of_whole(
        &self,
        left: &LeftStages,
        checksum: &Checksum,
        file: &LeftFile,
        buffer: &mut [u8],
    ) -> Option<Attributes> {
        let from = left.directory_of(file).ok()?;
        let (attributes, content) = self.repo.open_file_at(from, &file.path, checksum).ok()?;
        let FileContent::Regular(mut content) = content else { return None };
        loop {
            match content.read(buffer) {
                Ok(0) => return Some(attributes),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}
