//! Objects that killed or failed imports left in their stages. The next import reads each, and takes it if its digest is its name and it is an object of
//! the bundle: nothing else says that a file was written to its end.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read as _};

use rustix::fs::{Mode as Permissions, OFlags, renameat};
use sealift_format::num;
use sealift_format::verity::{FileDigest, FileHasher};
use sealift_format::{Image, Index, Object, Row, unhex};

use super::records::KnownObjects;
use super::repo::Repo;
use super::transaction::{TMP, Transaction, WITHIN, hash_with};
use crate::fs::confined::open_beneath;
use crate::ostree::{LeftFile, LeftStages};
use crate::progress::Phase;
use crate::threads::parallel::map;
use crate::{Error, Progress};

/// What earlier runs left of the objects that an import wants.
#[derive(Debug, Default)]
pub(crate) struct LeftObjects {
    stages: LeftStages,
    files: Vec<LeftObject>,
    /// What is known of these objects, and of those within images.
    pub(crate) known: KnownObjects,
}

#[derive(Debug)]
struct LeftObject {
    digest: FileDigest,
    file: LeftFile,
}

/// The wanted objects, by their ids.
type Wanted<'a> = HashMap<&'a [u8; 32], Row<Object>>;

impl LeftObjects {
    /// Looks for the wanted objects.
    ///
    /// # Errors
    /// Returns an error if the stages cannot be listed, or if the run is cancelled.
    pub(crate) fn find(
        repo: &Repo,
        index: &Index,
        wanted: &[bool],
        jobs: usize,
        progress: &Progress,
    ) -> Result<Self, Error> {
        let failed = |error| Error::io("read", repo.path().join(TMP), error);
        let stages = LeftStages::find_below(repo.root(), TMP).map_err(failed)?;
        let files = stages.files().map_err(failed)?;
        if files.is_empty() {
            return Ok(Self { stages, ..Self::default() });
        }
        let is_wanted = |row: &Row<Object>| wanted.get(row.at()).is_some_and(|is_wanted| *is_wanted);
        let wanted: Wanted<'_> = Row::all(index.objects())
            .filter(|(row, _)| is_wanted(row))
            .map(|(row, object)| (&object.id, row))
            .collect();
        let mut left = Self { stages, ..Self::default() };
        let (within, named): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| file.path == WITHIN);
        for file in &within {
            // What cannot be read is imported again.
            let _ = left.read_within(repo, file, &wanted);
        }
        let named = named.into_iter().filter_map(|file| Some((digest_of(&file, repo)?, file)));
        let named: Vec<(FileDigest, LeftFile)> = named.collect();
        progress.enter(Phase::Hashing, 0, num::wide(named.len()));
        let read = map(jobs, &named, |(digest, file)| {
            progress.check()?;
            let object = left.object_in(repo, digest, file, &wanted);
            progress.add(0, 1);
            Ok(object)
        })?;
        for ((digest, file), object) in named.into_iter().zip(read) {
            // Two runs may have left the same object.
            if let Some(object) = object.filter(|object| !left.known.digests.contains_key(object)) {
                left.known.digests.insert(object, digest.clone());
                left.files.push(LeftObject { digest, file });
            }
        }
        Ok(left)
    }

    /// Returns the number of objects, except those within images.
    pub(crate) fn count(&self) -> u64 {
        num::wide(self.files.len())
    }

    /// Removes everything that earlier runs left, except these objects. Their space is free from here on.
    ///
    /// # Errors
    /// Returns an error if something cannot be removed.
    pub(crate) fn discard_rest(&self, repo: &Repo) -> Result<(), Error> {
        let failed = |error| Error::io("remove files in", repo.path().join(TMP), error);
        let kept: HashSet<&LeftFile> = self.files.iter().map(|object| &object.file).collect();
        let files = self.stages.files().map_err(failed)?;
        let mut rest = files.iter().filter(|file| !kept.contains(file) && file.path != WITHIN);
        rest.try_for_each(|file| self.stages.discard(file)).map_err(failed)
    }

    /// Moves these objects into the stage of a transaction.
    ///
    /// # Errors
    /// Returns an error if one cannot be moved.
    pub(crate) fn take(&self, transaction: &Transaction<'_>, repo: &Repo) -> Result<(), Error> {
        for LeftObject { digest, file } in &self.files {
            let Some(name) = transaction.reserve(digest)? else { continue };
            let directory = self.stages.directory_of(file);
            let moved = directory.and_then(|from| renameat(from, &*file.path, transaction.stage(), &*name));
            moved.map_err(|error| {
                transaction.give_up(digest, &name);
                Error::io("write", repo.object_path(digest), error)
            })?;
        }
        self.known.within.values().try_for_each(|content| transaction.note_within(content))
    }

    /// Removes what is left of the stages. What cannot be removed stays for the next run.
    pub(crate) fn remove(self) {
        let _ = self.stages.remove();
    }

    fn open(&self, file: &LeftFile) -> io::Result<File> {
        let from = self.stages.directory_of(file)?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        Ok(File::from(open_beneath(from, file.path.as_bytes(), flags, Permissions::empty())?))
    }

    /// Returns the wanted object that a file is, if it also matches its name.
    fn object_in(&self, repo: &Repo, digest: &FileDigest, file: &LeftFile, wanted: &Wanted<'_>) -> Option<Row<Object>> {
        let mut id = blake3::Hasher::new();
        let hashed = hash_with(&mut self.open(file).ok()?, repo, |part| {
            id.update(part);
        });
        (hashed.ok()? == *digest).then(|| wanted.get(id.finalize().as_bytes()).copied())?
    }

    /// Reads the contents that are stored within images. A record that a killed run did not complete is no wanted object.
    fn read_within(&mut self, repo: &Repo, file: &LeftFile, wanted: &Wanted<'_>) -> io::Result<()> {
        let len_max = (1 + Image::WITHIN_LEN_MAX).saturating_mul(num::wide(wanted.len()));
        let mut bytes = Vec::new();
        self.open(file)?.take(len_max).read_to_end(&mut bytes)?;
        let mut rest = &bytes[..];
        while let Some((len, after)) = rest.split_first() {
            let Some((content, next)) = after.split_at_checked(usize::from(*len)) else { break };
            rest = next;
            if let Some(object) = wanted.get(blake3::hash(content).as_bytes()) {
                let mut tree = FileHasher::new(repo.parameters());
                tree.update(content);
                self.known.digests.insert(*object, tree.finish());
                self.known.within.insert(*object, content.to_vec());
            }
        }
        Ok(())
    }
}

/// Returns the digest that a file's name gives; `None` if it is no object.
fn digest_of(file: &LeftFile, repo: &Repo) -> Option<FileDigest> {
    let name = file.path.trim_start_matches('.').replacen('/', "", 1);
    FileDigest::new(repo.algorithm(), &unhex(&name)?)
}
