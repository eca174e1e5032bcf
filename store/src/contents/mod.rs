//! The contents of a source: their object ids, read and hashed on several threads, and the index that is built from them.

mod commits;
mod index;
mod ostree;
mod repository;
pub mod tasks;

use parking_lot::{Mutex, MutexGuard};
use sealift_format::num::{self, at};
use sealift_format::verity::{self, VerityHasher, block_hashes};
use sealift_format::{Xattrs, pieces};

use crate::seal::Digests;
use crate::source::{OpenCache, Source};
use crate::threads::parallel::map_with;
use crate::threads::team::team;
use crate::{Error, Phase, Progress};
pub use commits::{CommitRef, HashedCommits};
pub(crate) use index::index_of;
pub use index::{add_to_index, index_by_reading, row};
pub use ostree::Commits;
pub use repository::CommonFiles;
use tasks::{Item, Part, Plan, Task};

/// What to read of a content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[allow(clippy::exhaustive_enums, reason = "a caller chooses one")]
pub enum Want {
    /// Nothing: it is not opened.
    #[default]
    Nothing,
    /// The extended attributes that come with the content.
    Xattrs,
    /// The object id, and the extended attributes.
    Id,
    /// The fs-verity digest, and all of the above.
    Digests,
}

/// What was found of a content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContentInfo {
    /// BLAKE3 of its bytes, if requested.
    pub id: Option<[u8; 32]>,
    /// Its fs-verity digest, if requested.
    pub verity: Option<[u8; 32]>,
    /// The extended attributes that come with it and are not in the source's tree, by name.
    pub xattrs: Xattrs,
    /// Whether it is sealed, if that was checked.
    pub is_sealed: Option<bool>,
}

impl Want {
    fn is_read(self) -> bool {
        matches!(self, Self::Id | Self::Digests)
    }
}

/// Contents larger than this are hashed in pieces of this size, by several threads.
const PIECE_LEN: u64 = 4 << 20;

/// Reads what is wanted of each content of a source, on `jobs` threads. `wanted` and the result are indexed by the contents' numbers; contents
/// beyond the end of `wanted` are not read.
///
/// # Errors
/// Returns an error if a file cannot be read or changed since it was listed, or if the caller requested a stop.
pub fn hash_contents(
    source: &Source,
    wanted: &[Want],
    jobs: usize,
    progress: &Progress,
) -> Result<Vec<ContentInfo>, Error> {
    find(source, wanted, None, jobs, progress)
}

/// As [`hash_contents`], for a tree that was sealed: a content is not read if `digests` has the digest that the kernel reports.
pub fn find(
    source: &Source,
    wanted: &[Want],
    digests: Option<&Digests>,
    jobs: usize,
    progress: &Progress,
) -> Result<Vec<ContentInfo>, Error> {
    let mut items: Vec<Item> = source
        .contents()
        .zip(wanted)
        .filter(|(_, want)| **want != Want::Nothing)
        .map(|(content, want)| Item {
            source: 0,
            content,
            len: if want.is_read() { source.content_len(content) } else { 0 },
        })
        .collect();
    let files = num::wide(items.len());
    progress.enter(Phase::Hashing, items.iter().map(|item| item.len).sum(), files);
    let mut found = vec![ContentInfo::default(); source.content_count()];
    if let Some(digests) = digests {
        let asked: Vec<Item> = items.iter().filter(|item| wanted[at(item.content)] == Want::Id).copied().collect();
        for (content, answer) in measure(source, &asked, digests, jobs, progress)? {
            found[at(content)] = answer;
        }
        items.retain(|item| found[at(item.content)].id.is_none());
    }
    let parts = items.into_iter().map(|item| Part::whole(item, PIECE_LEN)).collect();
    let state = State { plan: Plan::new(parts, 0, PIECE_LEN), found, pieces: Vec::new(), failed: None };
    let run = Run { source, wanted, progress, state: Mutex::new(state) };
    team(jobs.min(num::size(files)), || run.work());
    run.state.into_inner().finish()
}

/// Asks the kernel for the digests of sealed contents. Returns what is known from them.
fn measure(
    source: &Source,
    items: &[Item],
    digests: &Digests,
    jobs: usize,
    progress: &Progress,
) -> Result<Vec<(u32, ContentInfo)>, Error> {
    map_with(jobs, items, OpenCache::default, |cache, item| {
        progress.check()?;
        let content = source.open(item.content, cache)?;
        let digest = content.measure()?;
        let mut answer = ContentInfo { is_sealed: Some(digest.is_some()), ..ContentInfo::default() };
        answer.id = digest.and_then(|digest| digests.object(&digest));
        if answer.id.is_some() {
            answer.xattrs = content.xattrs()?.try_into()?;
            content.finish()?;
            progress.add(item.len, 1);
        }
        Ok((item.content, answer))
    })
}

struct Run<'a> {
    source: &'a Source,
    wanted: &'a [Want],
    progress: &'a Progress,
    state: Mutex<State>,
}

struct State {
    plan: Plan,
    found: Vec<ContentInfo>,
    pieces: Vec<Piece>,
    failed: Option<Error>,
}

/// A piece of a large content. Ordering by these fields puts a content's pieces in sequence.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    content: u32,
    number: u64,
    chaining_value: [u8; 32],
    len: u64,
    /// Filled if the fs-verity digest is wanted.
    block_hashes: Vec<[u8; 32]>,
}

/// The result of a task.
#[derive(Default)]
struct Done {
    found: Vec<(u32, ContentInfo)>,
    piece: Option<Piece>,
}

impl Run<'_> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn next(&self) -> Option<Task> {
        let mut state = self.lock();
        if state.failed.is_some() {
            return None;
        }
        state.plan.next_task().map(|(task, _)| task)
    }

    fn work(&self) {
        let (mut cache, mut buffer) = (OpenCache::default(), Vec::new());
        while let Some(task) = self.next() {
            let done = self.read(&task, &mut cache, &mut buffer);
            let mut state = self.lock();
            match done.and_then(|done| self.progress.check().map(|()| done)) {
                Ok(done) => state.take(done),
                Err(error) => {
                    state.failed.get_or_insert(error);
                }
            }
        }
    }

    fn read(&self, task: &Task, cache: &mut OpenCache, buffer: &mut Vec<u8>) -> Result<Done, Error> {
        let mut done = Done::default();
        match task {
            Task::Batch(items) => {
                for item in items {
                    self.progress.check()?;
                    done.found.push((item.content, self.read_whole(*item, cache, buffer)?));
                    self.progress.add(item.len, 1);
                }
            }
            Task::Piece { item, number } => {
                let (found, piece) = self.read_piece(*item, *number, cache, buffer)?;
                done.found.extend((*number == 0).then_some((item.content, found)));
                done.piece = Some(piece);
                self.progress.add(task.len(PIECE_LEN), u64::from(*number == 0));
            }
        }
        Ok(done)
    }

    fn read_whole(&self, item: Item, cache: &mut OpenCache, buffer: &mut Vec<u8>) -> Result<ContentInfo, Error> {
        let content = self.source.open(item.content, cache)?;
        let want = self.wanted[at(item.content)];
        buffer.resize(num::size(item.len), 0);
        content.read_at(buffer, 0)?;
        let xattrs = content.xattrs()?.try_into()?;
        content.finish()?;
        let id = want.is_read().then(|| *blake3::hash(buffer).as_bytes());
        let verity = (want == Want::Digests).then(|| verity::digest(buffer));
        Ok(ContentInfo { id, verity, xattrs, is_sealed: None })
    }

    fn read_piece(
        &self,
        item: Item,
        number: u64,
        cache: &mut OpenCache,
        buffer: &mut Vec<u8>,
    ) -> Result<(ContentInfo, Piece), Error> {
        let content = self.source.open(item.content, cache)?;
        let start = number * PIECE_LEN;
        buffer.resize(num::size(PIECE_LEN.min(item.len - start)), 0);
        content.read_at(buffer, start)?;
        let xattrs = if number == 0 { content.xattrs()?.try_into()? } else { Xattrs::default() };
        // Each piece checks that the file is still the one that was listed: so all are of one version.
        content.finish()?;
        let chaining_value = pieces::chaining_value(start, std::iter::once(&buffer[..]));
        let is_sealable = self.wanted[at(item.content)] == Want::Digests;
        let block_hashes = if is_sealable { block_hashes(buffer) } else { Vec::new() };
        let len = PIECE_LEN.min(item.len - start);
        let piece = Piece { content: item.content, number, chaining_value, len, block_hashes };
        Ok((ContentInfo { xattrs, ..ContentInfo::default() }, piece))
    }
}

impl State {
    fn take(&mut self, done: Done) {
        for (content, found) in done.found {
            let is_sealed = self.found[at(content)].is_sealed;
            self.found[at(content)] = ContentInfo { is_sealed, ..found };
        }
        self.pieces.extend(done.piece);
    }

    fn finish(mut self) -> Result<Vec<ContentInfo>, Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.pieces.sort_unstable();
        for pieces in self.pieces.chunk_by(|a, b| a.content == b.content) {
            let values: Vec<[u8; 32]> = pieces.iter().map(|piece| piece.chaining_value).collect();
            let found = &mut self.found[at(pieces[0].content)];
            found.id = pieces::object_id(&values);
            if pieces.iter().all(|piece| !piece.block_hashes.is_empty()) {
                let mut hasher = VerityHasher::new();
                pieces.iter().for_each(|piece| hasher.update_hashed(piece.len, &piece.block_hashes));
                found.verity = Some(hasher.finish());
            }
        }
        Ok(self.found)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::source::{DirectoryOptions, DirectorySource};

    /// Files with lengths around the edges of pieces, in the order of their contents' numbers.
    const LENS: [(&str, usize); 6] =
        [("a", 0), ("b", 1), ("c", 4 << 20), ("d", (4 << 20) + 1), ("e", 9 << 20), ("f", 100)];

    fn bytes(len: usize) -> Vec<u8> {
        (0..251).cycle().take(len).collect()
    }

    fn list(path: &Path) -> Source {
        Source::Directory(DirectorySource::list(path, &DirectoryOptions::default(), 1).expect("it is listed"))
    }

    fn filled() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, len) in LENS {
            std::fs::write(folder.path().join(name), bytes(len)).expect("written");
        }
        folder
    }

    #[test]
    fn ids_are_those_of_the_whole_contents() {
        let folder = filled();
        let source = list(folder.path());
        for jobs in [1, 3] {
            let progress = Progress::default();
            let found = hash_contents(&source, &[Want::Id; LENS.len()], jobs, &progress).expect("they are read");
            for (found, (name, len)) in found.iter().zip(LENS) {
                assert_eq!(found.id, Some(*blake3::hash(&bytes(len)).as_bytes()), "{name}");
            }
            let (seen, total) = (progress.snapshot(), LENS.iter().map(|(_, len)| *len).sum::<usize>());
            assert_eq!((seen.phase, seen.files, seen.files_total), (Phase::Hashing, 6, 6));
            assert_eq!((seen.bytes, seen.bytes_total), (seen.bytes_total, u64::try_from(total).expect("small")));
        }
    }

    #[test]
    fn what_is_not_wanted_is_not_opened() {
        let folder = filled();
        let source = list(folder.path());
        std::fs::remove_file(folder.path().join("a")).expect("removed");
        let wanted = [Want::Nothing, Want::Id, Want::Xattrs];
        let found = hash_contents(&source, &wanted, 2, &Progress::default()).expect("they are read");
        let known: Vec<bool> = found.iter().map(|found| found.id.is_some()).collect();
        assert_eq!(known, [false, true, false, false, false, false]);
    }

    #[test]
    fn a_file_that_changed_is_named() {
        let folder = filled();
        let source = list(folder.path());
        std::fs::write(folder.path().join("e"), "other").expect("written");
        let error = hash_contents(&source, &[Want::Id; LENS.len()], 2, &Progress::default()).expect_err("it changed");
        assert!(matches!(&error, Error::Changed { path } if path.ends_with("e")), "{error}");
    }

    #[test]
    fn it_stops_when_asked() {
        let folder = filled();
        let (source, progress) = (list(folder.path()), Progress::default());
        progress.cancel();
        let stopped = hash_contents(&source, &[Want::Id; LENS.len()], 2, &progress);
        assert!(matches!(stopped, Err(Error::Cancelled)));
    }
}
