//! Chooses among several bundles: the newest that the device accepts, as a delta if there is one for it.
//!
//! Reads nothing but heads, and believes nothing in them before they are judged.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use crate::trust::Guard;
use crate::{Error, Head, Input, Limits};

/// A bundle that may be taken, as far as its head tells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Candidate {
    /// Where it lies.
    pub path: PathBuf,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: u64,
    /// Whether it takes a base to unpack it.
    pub is_delta: bool,
    /// Whether that base, as it says, is not what the target took last. It may be there all the same, in the commits of a repository.
    pub lacks_base: bool,
    /// Bytes of its file.
    pub file_bytes: u64,
}

/// A bundle that is not for this device.
#[derive(Debug)]
#[non_exhaustive]
pub struct PassedOver {
    /// Where it lies.
    pub path: PathBuf,
    /// The version that it says, where it can be read.
    pub version: Option<u64>,
    /// Why.
    pub error: Error,
}

/// What became of several bundles.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Choice {
    /// Those that may be taken, the best first. One may turn out damaged when it is read, or a delta to be of another base: then it is
    /// the next one's turn.
    pub candidates: Vec<Candidate>,
    /// The others, those of higher versions first.
    pub passed_over: Vec<PassedOver>,
}

/// Looks at bundles: files, and those in directories, which are called `*.sealift`. With `name` only those of that name are candidates. `held`
/// are the contents, by the digests of their indexes, that the target took: of one version, a delta whose base is among them comes first, and
/// one whose base is not comes last. Where nothing is known of the target, each delta is worth trying.
///
/// # Errors
/// A directory cannot be read, or the state of the device.
pub fn choose(
    paths: &[PathBuf],
    name: Option<&str>,
    held: &[[u8; 32]],
    guard: &Guard,
    limits: Limits,
) -> Result<Choice, Error> {
    let mut choice = Choice::default();
    for path in files(paths)? {
        let head = match Input::open(&path).and_then(|mut input| input.read_head(limits.clone())) {
            Ok(head) => head,
            Err(error) => {
                choice.passed_over.push(PassedOver { path, version: None, error });
                continue;
            }
        };
        let identity = &head.root().identity;
        let refused = match (name, guard.judge(&head)) {
            (Some(wanted), _) if wanted != identity.name => {
                Some(Error::OtherName { target: path.clone(), bound: wanted.to_owned(), name: identity.name.clone() })
            }
            (_, Err(error)) if error.kind().is_none() => return Err(error), // the device's state, not the bundle
            (_, judged) => judged.err(),
        };
        match refused {
            Some(error) => choice.passed_over.push(PassedOver { version: Some(identity.version), path, error }),
            None => choice.candidates.push(Candidate {
                name: identity.name.clone(),
                version: identity.version,
                is_delta: head.root().bases.is_some(),
                lacks_base: lacks_base(&head, held),
                file_bytes: head.file_len(),
                path,
            }),
        }
    }
    let rank = |candidate: &Candidate| {
        (Reverse(candidate.version), candidate.lacks_base, !candidate.is_delta, candidate.file_bytes)
    };
    choice.candidates.sort_by_key(rank);
    choice.passed_over.sort_by_key(|passed| Reverse(passed.version));
    Ok(choice)
}

/// Whether a bundle is a delta of what is not among `held`, as far as that is known.
fn lacks_base(head: &Head, held: &[[u8; 32]]) -> bool {
    let root = head.root();
    let Some(bases) = root.bases.as_ref().filter(|_| !held.is_empty()) else { return false };
    !held.contains(&root.contents.index_digest) && bases.bases.iter().any(|base| !held.contains(&base.index_digest))
}

/// The files themselves and those in the directories, in the order of their names.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut files: Vec<PathBuf> = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let failed = |error| Error::io("read", path, error);
        let mut found = Vec::new();
        for entry in std::fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?.path();
            if entry.extension().is_some_and(|extension| extension == "sealift") && is_file(&entry) {
                found.push(entry);
            }
        }
        found.sort();
        files.append(&mut found);
    }
    Ok(files)
}

/// A pipe on a stick would be waited for.
fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file())
}
