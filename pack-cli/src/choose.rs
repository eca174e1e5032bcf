//! Chooses among several bundles: the newest that the device accepts, as a delta if there is one for it.
//!
//! Reads nothing but heads, and trusts nothing in them before they are judged.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use sealift_store::fs::found::{found_at, is_directory};
use sealift_store::{OpenVolume, VolumeSet, by_set, is_address};

use crate::channel::{Edge, cheapest};
use crate::trust::Guard;
use crate::{Error, Head, Input, Limits, is_damaged_copy};

/// A bundle that the device may install, as far as its head tells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Candidate {
    /// The bundle's path, or that of its first volume.
    pub path: PathBuf,
    /// The paths of other copies of it, with the same signed bytes: [`Input::open_copies`] reads from them what is damaged here.
    pub copies: Vec<PathBuf>,
    /// The files of its volumes, if it was split and they were found apart from each other or among others.
    pub volumes: Vec<PathBuf>,
    /// The bundle's name.
    pub name: String,
    /// The bundle's version.
    pub version: u64,
    /// Whether it is a delta bundle, which needs a base.
    pub is_delta: bool,
    /// Whether the declared base is neither what the target installed last nor among the examined bundles. A repository may still have it among its
    /// commits.
    pub lacks_base: bool,
    /// The examined bundles that are the declared bases, if the target did not install these last. If there are several copies of one, there is a
    /// candidate for each.
    pub bases: Vec<PathBuf>,
    /// The examined bundles that have to be installed before it, one after the other, since nothing leads to it in one step.
    pub before: Vec<PathBuf>,
    /// Size of the file in bytes, with those of the ones before.
    pub file_bytes: u64,
}

/// A bundle that this device does not accept.
#[derive(Debug)]
#[non_exhaustive]
pub struct PassedOver {
    /// The bundle's path.
    pub path: PathBuf,
    /// The declared version, if it can be read.
    pub version: Option<u64>,
    /// The reason.
    pub error: Error,
}

/// The result of choosing among several bundles.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Choice {
    /// The bundles that may be installed, the best first. If one turns out to be damaged, or to be a delta for another base, the caller tries the
    /// next.
    pub candidates: Vec<Candidate>,
    /// The others, highest version first.
    pub passed_over: Vec<PassedOver>,
}

/// A bundle with its copies, the first of which has a head that the device accepts; or its volumes, of which there are no copies.
struct Group {
    paths: Vec<PathBuf>,
    volumes: Vec<PathBuf>,
    head: Head,
}

/// Examines bundles: files, and the files named `*.sealift` and `*.sealift-volume`, in any case, in directories. The volumes of a bundle that was split are
/// one bundle, wherever they are. With `name`, only bundles of that name are candidates. `held` lists the
/// digests of the indexes that the target has installed: of one version, a delta whose base is among them comes first, then the full bundle, then a
/// delta whose base is among the examined bundles, and last one whose base is neither. If nothing is known of the target, a delta whose base is not
/// among the examined bundles ranks as if it were installed. With `chains`, a version that nothing leads to in one step is reached by several bundles,
/// which the caller installs one after the other.
///
/// Copies of one bundle are one candidate if the device accepts one of them. Those that it does not accept, for their signatures, are passed over, and
/// still serve as copies. So does a file with a damaged head that is as long and has the layout or the index.
///
/// # Errors
/// Returns an error if a directory or the state of the device cannot be read.
pub fn choose(
    paths: &[PathBuf],
    name: Option<&str>,
    held: &[[u8; 32]],
    chains: bool,
    guard: &Guard,
    limits: Limits,
) -> Result<Choice, Error> {
    let mut choice = Choice::default();
    let Heads { read: heads, unread } = Heads::read(paths, &limits)?;
    let at_hand = copies(&heads, guard)?;
    let (mut groups, mut refused): (Vec<Group>, Vec<_>) = (Vec::new(), Vec::new());
    let mut accepted = Vec::new();
    for (path, volumes, head) in heads {
        let identity = &head.root().identity;
        let refusal = match (name, guard.judge(&head)) {
            (Some(wanted), _) if wanted != identity.name => {
                Some(Error::OtherName { target: path.clone(), bound: wanted.to_owned(), name: identity.name.clone() })
            }
            (_, Err(error)) if error.kind().is_none() => return Err(error), // the device's state is at fault, not the bundle
            (_, judged) => judged.err(),
        };
        let is_same = |group: &&mut Group| group.head.signed() == head.signed() && group.volumes.is_empty();
        match (refusal, groups.iter_mut().find(is_same).filter(|_| volumes.is_empty())) {
            (Some(error), _) => refused.push((path, head, error)),
            (None, Some(group)) => group.paths.push(path),
            (None, None) => groups.push(Group { paths: vec![path], volumes, head }),
        }
    }
    for (path, head, error) in refused {
        // What follows the head is as good in a copy that lacks a signature.
        let is_same = |group: &&mut Group| group.head.signed() == head.signed() && group.volumes.is_empty();
        let group = groups.iter_mut().find(is_same);
        group.into_iter().for_each(|group| group.paths.push(path.clone()));
        let version = Some(head.root().identity.version);
        choice.passed_over.push(PassedOver { version, path, error });
    }
    for (path, error) in unread {
        let is_same = |group: &&mut Group| {
            group.volumes.is_empty()
                && !is_address(&path)
                && is_damaged_copy(&path, &group.head).is_ok_and(|is_copy| is_copy)
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.paths.push(path),
            None => choice.passed_over.push(PassedOver { path, version: None, error }),
        }
    }
    for Group { paths, volumes, head } in groups {
        let Some((path, others)) = paths.split_first() else { continue };
        let bases = if holds_base(&head, held) { vec![Vec::new()] } else { bases_of(&head, &at_hand) };
        let candidate = |bases| Candidate {
            path: path.clone(),
            copies: others.to_vec(),
            volumes: volumes.clone(),
            name: head.root().identity.name.clone(),
            version: head.root().identity.version,
            is_delta: head.root().bases.is_some(),
            lacks_base: false,
            bases,
            before: Vec::new(),
            file_bytes: head.file_len(),
        };
        if bases.is_empty() {
            let lacks_base = !held.is_empty();
            choice.candidates.push(Candidate { lacks_base, ..candidate(Vec::new()) });
        }
        choice.candidates.extend(bases.iter().cloned().map(candidate));
        let is_sure = holds_base(&head, held) || !bases.is_empty();
        let path = path.clone();
        accepted.push(Accepted { path, copies: others.to_vec(), volumes, head, is_sure });
    }
    if chains {
        choice.candidates.extend(chains_of(&accepted, held));
    }
    let rank = |candidate: &Candidate| {
        let is_over = !candidate.bases.is_empty();
        let is_single = candidate.before.is_empty();
        (
            Reverse(candidate.version),
            candidate.lacks_base,
            is_over,
            !candidate.is_delta,
            is_single,
            candidate.file_bytes,
        )
    };
    choice.candidates.sort_by_key(rank);
    choice.passed_over.sort_by_key(|passed| Reverse(passed.version));
    Ok(choice)
}

/// A bundle: its path, or that of its first volume, and the paths of its volumes if it was split.
type ReadHead = (PathBuf, Vec<PathBuf>, Head);

/// The heads of bundles, and why others could not be read.
struct Heads {
    read: Vec<ReadHead>,
    unread: Vec<(PathBuf, Error)>,
}

impl Heads {
    fn read(paths: &[PathBuf], limits: &Limits) -> Result<Self, Error> {
        let (mut read, mut unread) = (Vec::new(), Vec::new());
        for mut volumes in by_set(files(paths)?) {
            let Some(path) = volumes.first().cloned() else { continue };
            let input = match volumes.len() {
                1 if paths.len() > 1 => Input::open_mirror(&path),
                1 => Input::open(&path),
                _ => VolumeSet::of_files(&volumes).map(|set| Input::volumes(&path, set)),
            };
            if volumes.len() == 1 {
                volumes.clear();
            }
            match input.and_then(|mut input| input.read_head(limits.clone())) {
                Ok(head) => read.push((path, volumes, head)),
                Err(error) => unread.push((path, error)),
            }
        }
        Ok(Self { read, unread })
    }
}

/// Bundles by their names.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Named {
    /// For each name, the files of the bundles that have it, whoever signed them.
    pub files: BTreeMap<String, Vec<PathBuf>>,
    /// Files whose heads cannot be read, and why. They may be damaged copies of the others.
    pub unread: Vec<(PathBuf, Error)>,
}

/// Looks for bundles as [`choose`] does, and returns them by their names, without judging them.
///
/// # Errors
/// Returns an error if a directory cannot be read.
pub fn by_name(paths: &[PathBuf], limits: &Limits) -> Result<Named, Error> {
    let Heads { read, unread } = Heads::read(paths, limits)?;
    let mut named = Named { unread, ..Named::default() };
    for (path, volumes, head) in read {
        let files = named.files.entry(head.root().identity.name.clone()).or_default();
        files.extend(if volumes.is_empty() { vec![path] } else { volumes });
    }
    Ok(named)
}

/// A bundle that the device accepts.
struct Accepted {
    path: PathBuf,
    copies: Vec<PathBuf>,
    volumes: Vec<PathBuf>,
    head: Head,
    /// Whether it can be installed in one step.
    is_sure: bool,
}

/// Returns a candidate for each version that nothing leads to in one step, but several bundles one after the other do.
fn chains_of(accepted: &[Accepted], held: &[[u8; 32]]) -> Vec<Candidate> {
    let digest_of = |own: &Accepted| own.head.root().contents.index_digest;
    let bases: Vec<Vec<[u8; 32]>> = accepted
        .iter()
        .map(|own| own.head.root().bases.iter().flat_map(|of| &of.bases).map(|base| base.index_digest).collect())
        .collect();
    let edges: Vec<Edge<'_>> = accepted
        .iter()
        .zip(&bases)
        .map(|(own, bases)| Edge { bases, result: digest_of(own), len: own.head.file_len() })
        .collect();
    let mut chains: Vec<Candidate> = Vec::new();
    for own in accepted {
        let goal = digest_of(own);
        if accepted.iter().any(|other| other.is_sure && digest_of(other) == goal) {
            continue;
        }
        let Some(way) = cheapest(&edges, held, goal) else { continue };
        let way: Vec<&Accepted> = way.into_iter().filter_map(|step| accepted.get(step)).collect();
        let Some((last, before)) = way.split_last().filter(|(last, _)| last.path == own.path) else { continue };
        chains.push(Candidate {
            path: last.path.clone(),
            copies: last.copies.clone(),
            volumes: last.volumes.clone(),
            name: last.head.root().identity.name.clone(),
            version: last.head.root().identity.version,
            is_delta: true,
            lacks_base: false,
            bases: Vec::new(),
            before: before.iter().map(|step| step.path.clone()).collect(),
            file_bytes: way.iter().map(|step| step.head.file_len()).fold(0, u64::saturating_add),
        });
    }
    chains
}

/// Returns whether the target has what a bundle needs: all its bases, or already what it installs.
fn holds_base(head: &Head, held: &[[u8; 32]]) -> bool {
    let root = head.root();
    let Some(bases) = &root.bases else { return true };
    held.contains(&root.contents.index_digest) || bases.bases.iter().all(|base| held.contains(&base.index_digest))
}

/// Returns the full bundles by the digests of their indexes; of those with one digest, first those that trusted keys signed. The others serve as
/// bases too, since what is read of them is compared with the delta's digests, but anyone can make a bundle that claims a digest.
fn copies(heads: &[ReadHead], guard: &Guard) -> Result<HashMap<[u8; 32], Vec<PathBuf>>, Error> {
    let mut copies: HashMap<[u8; 32], Vec<(bool, PathBuf)>> = HashMap::new();
    for (path, _, head) in heads.iter().filter(|(.., head)| head.root().bases.is_none()) {
        let is_trusted = match guard.judge_base(head) {
            Err(error) if error.kind().is_none() => return Err(error),
            judged => judged.is_ok(),
        };
        copies.entry(head.root().contents.index_digest).or_default().push((is_trusted, path.clone()));
    }
    let sorted = |mut copies: Vec<(bool, PathBuf)>| {
        copies.sort_by_key(|(is_trusted, _)| !is_trusted);
        copies.into_iter().map(|(_, path)| path).collect()
    };
    Ok(copies.into_iter().map(|(digest, copies)| (digest, sorted(copies))).collect())
}

/// Returns the bundles that are the bases of a delta, by the digests of their indexes: first the best copy of each, then the next ones in case one
/// turns out to be damaged. None if a base is missing.
fn bases_of(head: &Head, at_hand: &HashMap<[u8; 32], Vec<PathBuf>>) -> Vec<Vec<PathBuf>> {
    let bases = head.root().bases.iter().flat_map(|bases| &bases.bases);
    let copies: Option<Vec<&Vec<PathBuf>>> = bases.map(|base| at_hand.get(&base.index_digest)).collect();
    let copies = copies.unwrap_or_default();
    let turns = copies.iter().map(|copies| copies.len()).max().unwrap_or(0);
    let turn = |turn: usize| copies.iter().filter_map(|copies| copies.get(turn).or(copies.last()).cloned()).collect();
    (0..turns).map(turn).collect()
}

/// Returns the given files and those in the given directories, sorted by name.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut files: Vec<PathBuf> = Vec::new();
    for path in paths {
        if !is_directory(path)? {
            files.push(path.clone());
            continue;
        }
        let failed = |error| Error::io("read", path, error);
        let mut found = Vec::new();
        for entry in std::fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?.path();
            let is_named = |ending: &str| entry.extension().is_some_and(|own| own.eq_ignore_ascii_case(ending));
            if (is_named("sealift") || is_named(OpenVolume::EXTENSION)) && is_file(&entry)? {
                found.push(entry);
            }
        }
        found.sort();
        files.append(&mut found);
    }
    Ok(files)
}

/// Returns whether this is a regular file: opening a pipe would block.
fn is_file(path: &Path) -> Result<bool, Error> {
    Ok(found_at(path)?.is_some_and(|found| found.is_file()))
}
