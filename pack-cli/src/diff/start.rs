//! Decides which trees are compared, and from which path.

use std::collections::BTreeSet;
use std::sync::Arc;

use sealift_format::Index;

use super::side::View;
use super::walk::{Pair, Start};
use super::{DiffOptions, TreePath};
use crate::Error;
use sealift_store::address::choose_ref;
use sealift_store::address::reading;

/// Returns where to begin, and the prefix meant.
pub(super) fn starts(old: View<'_>, new: View<'_>, options: &DiffOptions) -> Result<(Vec<Start>, Vec<u8>), Error> {
    let is_there = |prefix: &[u8]| {
        starts_at(old, new, options, prefix)
            .is_ok_and(|starts| starts.iter().any(|start| start.at.old.is_some() || start.at.new.is_some()))
    };
    match reading(&options.prefix, is_there)? {
        Some(prefix) => Ok((starts_at(old, new, options, &prefix)?, prefix)),
        None => {
            starts_at(old, new, options, &options.prefix)?; // this reports what is wrong with the refs
            let prefix = String::from_utf8_lossy(&options.prefix);
            Err(Error::Usage(format!("neither side has {prefix}")))
        }
    }
}

/// Pairs two indexes, of which one has several refs, ref by ref, unless one is chosen.
fn starts_at(old: View<'_>, new: View<'_>, options: &DiffOptions, prefix: &[u8]) -> Result<Vec<Start>, Error> {
    let (named, path) = split_prefix(old, new, prefix);
    let several = old.refs().len().max(new.refs().len()) > 1;
    let begin = |reference: Option<&str>, old_root: Option<u32>, new_root: Option<u32>| Start {
        reference: reference.map(Arc::from),
        at: Pair {
            path: TreePath::of(&path),
            old: old_root.and_then(|root| old.find(root, &path)),
            new: new_root.and_then(|root| new.find(root, &path)),
        },
    };
    Ok(match (old, new, options.reference.as_deref()) {
        (View::Index(old), View::Index(new), None) if several => {
            let refs = old.refs().iter().chain(new.refs());
            let names: BTreeSet<&str> = refs.map(|r| r.name.as_str()).collect();
            let chosen = names.into_iter().filter(|name| named.is_none_or(|named| named == *name));
            chosen.map(|name| begin(Some(name), root_of(old, name), root_of(new, name))).collect()
        }
        (_, _, reference) => {
            let reference = reference.or(named);
            vec![begin(None, Some(only_root(old, reference)?), Some(only_root(new, reference)?))]
        }
    })
}

/// Splits `[REF:]PATH`, where REF is one of the refs, and returns the path in the index's spelling.
fn split_prefix<'a>(old: View<'_>, new: View<'_>, prefix: &'a [u8]) -> (Option<&'a str>, Vec<u8>) {
    let colon = prefix.iter().position(|byte| *byte == b':');
    let named = colon.and_then(|at| Some((std::str::from_utf8(&prefix[..at]).ok()?, &prefix[at + 1..])));
    let is_ref = |name: &str| old.refs().iter().chain(new.refs()).any(|r| r.name == name);
    let (named, path) = match named.filter(|(name, _)| is_ref(name)) {
        Some((name, path)) => (Some(name), path),
        None => (None, prefix),
    };
    let names = path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
    (named, names.collect::<Vec<_>>().join(&b'/'))
}

fn root_of(index: &Index, name: &str) -> Option<u32> {
    index.find_ref(name).map(|reference| index.directory(reference.directory).inode.number())
}

fn only_root(view: View<'_>, reference: Option<&str>) -> Result<u32, Error> {
    match view {
        View::Index(index) => Ok(index.directory(choose_ref(index, reference)?.directory).inode.number()),
        View::Source(_) => Ok(0),
    }
}
