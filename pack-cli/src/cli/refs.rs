//! The refs of a bundle and their OSTree commits.

use std::io::{self, Write};

use sealift::Opened;
use sealift::inspect::{NamedRef, RefKind, refs};
use sealift_format::hex;
use serde::Serialize;

use super::escape;
use super::show::fact;

/// Prints each ref's name, and its commit below that.
pub(crate) fn print(out: &mut dyn Write, opened: &Opened) -> io::Result<()> {
    refs(opened).iter().try_for_each(|found| print_one(out, found))
}

fn print_one(out: &mut dyn Write, found: &NamedRef<'_>) -> io::Result<()> {
    let name = escape::text(found.name);
    let RefKind::Commit { checksum, collection } = found.kind else { return fact(out, "", name) };
    match collection {
        "" => fact(out, "", name)?,
        collection => fact(out, "", format!("{name} of collection {}", escape::text(collection)))?,
    }
    match checksum {
        Some(checksum) => fact(out, "", format!("commit {}", hex(&checksum))),
        None => fact(out, "", "a commit that the base has"),
    }
}

/// A ref in JSON.
#[derive(Serialize)]
pub(crate) struct JsonRef<'a> {
    name: &'a str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    #[serde(skip_serializing_if = "str::is_empty")]
    collection: &'a str,
}

impl<'a> JsonRef<'a> {
    /// Returns the refs of a bundle.
    pub(crate) fn all(opened: &'a Opened) -> Vec<Self> {
        refs(opened).iter().map(Self::of).collect()
    }

    fn of(found: &NamedRef<'a>) -> Self {
        let (kind, commit, collection) = match found.kind {
            RefKind::Commit { checksum, collection } => ("commit", checksum.map(|checksum| hex(&checksum)), collection),
            _ => ("tree", None, ""),
        };
        Self { name: found.name, kind, commit, collection }
    }
}
