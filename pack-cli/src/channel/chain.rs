//! Bundles that are read together: a full bundle, and deltas that lead from it to a newer version.

use std::path::{Path, PathBuf};

use sealift_store::fs::found::found_at;
use sealift_store::is_address;

use crate::{Error, Head, Input, Limits, RootBase};

/// A bundle with those that it is over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "callers make it of what a channel lists")]
pub struct Chain {
    /// The bundle to which the others lead.
    pub newest: PathBuf,
    /// The others: places of its bases.
    pub bases: Vec<PathBuf>,
}

impl Chain {
    /// Finds out which of several bundles, in any order, is over the others. With `has_bases`, there are other places that may have what deltas need.
    /// Whether the bundles are sound is not looked at.
    ///
    /// # Errors
    /// Returns an error if a head cannot be read, if a link is missing, or if the bundles do not lead to one version.
    pub fn of(bundles: &[PathBuf], has_bases: bool, limits: &Limits) -> Result<Self, Error> {
        let mut heads = Vec::with_capacity(bundles.len());
        for path in bundles {
            let head = Input::open(path).and_then(|mut input| input.read_head(limits.clone()));
            heads.push((path, head.map_err(|error| error.of_bundle(path))?));
        }
        let results: Vec<[u8; 32]> = heads.iter().map(|(_, head)| result_of(head)).collect();
        for (path, head) in heads.iter().filter(|_| !has_bases) {
            if let Some(lacking) = bases_of(head).find(|base| !results.contains(&base.index_digest)) {
                let problem = format!("a link is missing: it needs {lacking}, to which no other bundle here leads");
                return Err(Error::MissingBase { path: path.to_path_buf(), problem });
            }
        }
        let is_base = |head: &Head| {
            heads.iter().any(|(_, other)| bases_of(other).any(|base| base.index_digest == result_of(head)))
        };
        let ends: Vec<&PathBuf> = heads.iter().filter(|(_, head)| !is_base(head)).map(|(path, _)| *path).collect();
        let newest = match (&ends[..], bundles) {
            ([newest], _) => *newest,
            // Deltas that lead around in a circle: the order says what is meant.
            ([], [.., last]) => last,
            ([one, other, ..], _) => {
                let (one, other) = (one.display(), other.display());
                return Err(Error::Usage(format!(
                    "{one} and {other}: neither leads to the other: give a full bundle, and the deltas from it to one version"
                )));
            }
            ([], []) => return Err(Error::Usage("give a bundle".into())),
        };
        let bases = bundles.iter().filter(|path| *path != newest).cloned().collect();
        Ok(Self { newest: newest.clone(), bases })
    }

    /// Returns how many of these arguments, from the first on, are bundles that are read together: those that are bundles, if one of them is a delta;
    /// otherwise the first alone.
    #[must_use]
    pub fn length(arguments: &[PathBuf], limits: &Limits) -> usize {
        let Some((first, others)) = arguments.split_first() else { return 0 };
        let heads: Vec<Head> = others.iter().map_while(|path| head_of(path, limits)).collect();
        let is_delta = |head: &Head| head.root().bases.is_some();
        let is_chain =
            heads.iter().any(is_delta) || (!heads.is_empty() && head_of(first, limits).as_ref().is_some_and(is_delta));
        if is_chain { 1 + heads.len() } else { 1 }
    }

    /// Returns those of these bundles that a delta among them needs, with the ones that those need; nothing for a full bundle, or if a link is
    /// missing.
    #[must_use]
    pub fn below(path: &Path, bundles: &[(PathBuf, Head)]) -> Vec<PathBuf> {
        let Some((_, own)) = bundles.iter().find(|(other, _)| other == path) else { return Vec::new() };
        let (mut needed, mut found): (Vec<&RootBase>, Vec<PathBuf>) = (bases_of(own).collect(), Vec::new());
        while let Some(base) = needed.pop() {
            let is_it = |(other, head): &&(PathBuf, Head)| result_of(head) == base.index_digest && other != path;
            // A full bundle needs nothing else.
            let best = bundles.iter().filter(is_it).min_by_key(|(_, head)| head.root().bases.is_some());
            let Some((place, head)) = best else { return Vec::new() };
            if !found.contains(place) {
                found.push(place.clone());
                needed.extend(bases_of(head));
            }
        }
        found
    }
}

fn result_of(head: &Head) -> [u8; 32] {
    head.root().contents.index_digest
}

fn bases_of(head: &Head) -> impl Iterator<Item = &RootBase> {
    head.root().bases.iter().flat_map(|of| &of.bases)
}

/// Returns the head of a bundle in a file or at an address; `None` if it is none. Only files are opened: what is read of a pipe is gone.
pub fn head_of(path: &Path, limits: &Limits) -> Option<Head> {
    let is_file = || matches!(found_at(path), Ok(Some(found)) if found.is_file());
    if !is_address(path) && !is_file() {
        return None;
    }
    Input::open(path).and_then(|mut input| input.read_head(limits.clone())).ok()
}
