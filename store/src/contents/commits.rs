//! The index of commits in a repository, as packing them would make it.

use std::collections::{HashMap, HashSet};

use sealift_format::num;
use sealift_format::ostree::Checksum;
use sealift_format::verity::{self, VerityHasher};
use sealift_format::{Index, IndexBuilder, Object, Row};

use super::index::row;
use super::ostree::Commits;
use crate::source::OstreeSource;
use crate::threads::parallel::map;
use crate::{Error, Phase, Progress};

/// A ref of such an index.
#[derive(Clone, Copy, Debug)]
pub struct CommitRef<'a> {
    /// A ref's name.
    pub name: &'a str,
    /// The ref's collection; empty if none.
    pub collection: &'a str,
    /// The ref's commits.
    pub source: &'a OstreeSource,
}

/// The hashed contents of commits' file objects.
#[derive(Debug, Default)]
pub struct HashedCommits {
    object_of: HashMap<Checksum, Row<Object>>,
    objects: Vec<Hashed>,
}

/// A content.
#[derive(Clone, Copy, Debug)]
struct Hashed {
    object: Object,
    verity: [u8; 32],
}

impl HashedCommits {
    /// Reads the contents of all file objects, each once, from start to end.
    ///
    /// # Errors
    /// Returns an error if one is missing or damaged, or if the caller requested a stop.
    pub fn read(sources: &[OstreeSource], jobs: usize, progress: &Progress) -> Result<Self, Error> {
        let mut tasks: Vec<(&OstreeSource, u32, &Checksum)> = Vec::new();
        let mut known: HashSet<&Checksum> = HashSet::new();
        for source in sources {
            let contents = (0..=u32::MAX)
                .take(source.content_count())
                .filter_map(|content| Some((content, source.content_checksum(content)?)));
            let new = contents.filter(|(_, checksum)| known.insert(*checksum));
            tasks.extend(new.map(|(content, checksum)| (source, content, checksum)));
        }
        let bytes = tasks.iter().map(|(source, content, _)| source.content_len(*content)).sum();
        progress.enter(Phase::Hashing, bytes, num::wide(tasks.len()));
        let found = map(jobs.max(1), &tasks, |(source, content, checksum)| {
            let (mut id, mut verity) = (blake3::Hasher::new(), VerityHasher::new());
            source.read_content(*content, |part| {
                id.update(part);
                verity.update(part);
                progress.add(num::wide(part.len()), 0);
                progress.check()
            })?;
            progress.add(0, 1);
            let object = Object { id: *id.finalize().as_bytes(), size: source.content_len(*content) };
            Ok((**checksum, Hashed { object, verity: verity.finish() }))
        })?;
        let mut own = Self::default();
        let mut by_id: HashMap<[u8; 32], Row<Object>> = HashMap::new();
        for (checksum, hashed) in found {
            let new = Row::after(own.objects.len())?;
            let object = *by_id.entry(hashed.object.id).or_insert(new);
            if object == new {
                own.objects.push(hashed);
            }
            own.object_of.insert(checksum, object);
        }
        Ok(own)
    }

    /// Builds the index of these refs, which ascend by name and whose contents were all read: with or without the commits' detached metadata.
    ///
    /// # Errors
    /// Returns an error if the result is not a valid index.
    pub fn index(&self, refs: &[CommitRef<'_>], with_commitmeta: bool) -> Result<Index, Error> {
        let mut builder = IndexBuilder::default();
        let mut commits = Commits::of_base(with_commitmeta);
        for (number, from) in refs.iter().enumerate() {
            let known = commits.add(number, from.source)?;
            builder.commit_ref(from.name, known, from.collection);
        }
        commits.add_to(&mut builder, |number, content| {
            let checksum = refs.get(number).and_then(|from| from.source.content_checksum(content));
            checksum.and_then(|checksum| self.object_of.get(checksum)).map_or(0, |object| object.number())
        });
        let rows: Vec<&Hashed> = builder.contents().iter().map(|object| row(&self.objects, *object)).collect();
        let digests: Vec<u8> = rows.iter().flat_map(|hashed| hashed.verity).collect();
        let objects: Vec<Object> = rows.iter().map(|hashed| hashed.object).collect();
        // An index that the parser refuses cannot be a base.
        Ok(Index::parse(builder.finish(objects.into_iter(), &verity::digest(&digests))?, u64::MAX)?)
    }
}
