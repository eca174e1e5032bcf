//! Refuses to pack what readers refuse by default, unless the publisher allows it.

use sealift_format::{Error as FormatError, Limits, Root};
use sealift_verify::escape;

use super::PackRef;
use crate::Error;
use sealift_store::NewNode;

/// Checks what is known before content is read.
pub(super) fn check_sources(refs: &[PackRef<'_>], limits: &Limits) -> Result<(), Error> {
    let (mut entries, mut logical) = (0_u64, 0_u64);
    for PackRef { source, .. } in refs {
        let (depth, path) = source.tree().deepest();
        if depth > limits.depth {
            let path = shortened(&escape::bytes(&path));
            return Err(over(&format!("{path} is {depth} levels deep"), "depth", depth.into(), limits.depth.into()));
        }
        entries = entries.saturating_add(source.tree().entry_count());
        let sizes = source.contents().map(|content| source.content_len(content));
        logical = sizes.fold(logical, u64::saturating_add);
    }
    if entries > limits.entries {
        return Err(over(&format!("there are {entries} entries"), "entries", entries, limits.entries));
    }
    if logical > limits.logical {
        let what = format!("the files have {logical} bytes in total ({} is the largest)", largest(refs));
        return Err(over(&what, "size", logical, limits.logical));
    }
    Ok(())
}

/// Returns the path of the largest file: an archive may declare any size for a file of holes.
fn largest(refs: &[PackRef<'_>]) -> String {
    let contents = refs.iter().flat_map(|from| from.source.contents().map(|content| (from.source, content)));
    let mut path = Vec::new();
    if let Some((source, content)) = contents.max_by_key(|(source, content)| source.content_len(*content)) {
        source.tree().visit(|visited| {
            if visited.file == (NewNode::Regular { content }) {
                path = visited.path;
            }
        });
    }
    shortened(&escape::bytes(&path))
}

/// Checks everything that the root declares.
pub(super) fn check_root(root: &Root, limits: &Limits) -> Result<(), Error> {
    match limits.check(root) {
        Err(FormatError::Limit { what, declared, limit }) => match what {
            "entries" | "depth" | "paths" | "memory" | "size" => {
                Err(over(&format!("its {what} would be {declared}"), what, declared, limit))
            }
            _ => Err(Error::Usage(format!("its {what} would be {declared}, and no reader accepts more than {limit}"))),
        },
        checked => Ok(checked?),
    }
}

fn over(what: &str, name: &str, number: u64, limit: u64) -> Error {
    Error::OverLimit { what: what.to_owned(), name: name.to_owned(), number, limit }
}

/// Shortens a path of thousands of names for display.
fn shortened(path: &str) -> String {
    const SHOWN: usize = 60;
    match path.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &path[..end]),
        None => path.to_owned(),
    }
}
