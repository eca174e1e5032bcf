//! Delta bundles for a store that holds their base: its install records give the indexes, its objects the contents.

use std::path::Path;
use std::sync::Arc;

use sealift_format::{Bundle, Delta};

use crate::Error;
use crate::base::{Base, Bases};
use crate::composefs::records::StoreRecord;
use crate::composefs::repo::Repo;

/// Completes a delta to a whole bundle with what a store holds; `kept` is the record of the bundle's own name. Returns it with its bases: none if
/// the store already holds exactly the result of the delta.
///
/// # Errors
/// Returns an error if the store does not hold the bases or cannot be read.
pub(super) fn complete(
    delta: Delta,
    repo: Option<&Arc<Repo>>,
    target: &Path,
    kept: Option<&StoreRecord>,
) -> Result<(Bundle, Bases), Error> {
    let missing = |held: &str| Error::wrong_base(target, delta.bases(), held);
    let Some(repo) = repo else { return Err(missing("there is no store")) };
    let held = kept.map_or_else(
        || "the store has no bundle of this name".to_owned(),
        |kept| format!("the store has {}", kept.head.root().as_base()),
    );
    if let Some(kept) = kept
        && kept.digest() == delta.head.root().contents.index_digest
    {
        return Ok((delta.complete_with(kept.index.clone())?, Bases::default()));
    }
    let mut bases = StoreRecord::load_all(repo)?;
    let mut found = Vec::new();
    for wanted in delta.bases() {
        let Some(at) = bases.iter().position(|kept| kept.digest() == wanted.index_digest) else {
            return Err(missing(&held));
        };
        found.push(bases.swap_remove(at));
    }
    let bundle = delta.complete(&found.iter().map(|kept| &kept.index).collect::<Vec<_>>())?;
    let bases = found.into_iter().map(|kept| Base::of_store(repo, kept));
    Ok((bundle, Bases::new(bases.collect())))
}
