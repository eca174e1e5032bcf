//! Finds files that are copies of one bundle.

use std::path::{Path, PathBuf};

use sealift_store::fs::found::found_at;

use crate::{Head, Input, Limits, is_damaged_copy};

/// Puts files with equal heads together, in the order in which they are given; [`Input::open_copies`] reads them as one. A file with a damaged head
/// belongs to those that are as long and have its layout or index. Pipes, and whatever cannot be read, stay alone.
#[must_use]
pub fn together(paths: &[PathBuf], limits: &Limits) -> Vec<Vec<PathBuf>> {
    let mut groups: Vec<(Option<Head>, Vec<PathBuf>)> = Vec::new();
    for path in paths {
        let head = head_of(path, limits);
        match groups.iter_mut().find(|(other, _)| head.is_some() && *other == head) {
            Some((_, group)) => group.push(path.clone()),
            None => groups.push((head, vec![path.clone()])),
        }
    }
    let (mut whole, rest): (Vec<_>, Vec<_>) = groups.into_iter().partition(|(head, _)| head.is_some());
    let mut alone = Vec::new();
    for path in rest.into_iter().flat_map(|(_, paths)| paths) {
        let is_copy = |head: &Option<Head>| {
            head.as_ref()
                .is_some_and(|head| is_file(&path) && is_damaged_copy(&path, head).is_ok_and(|is_copy| is_copy))
        };
        match whole.iter_mut().find(|(head, _)| is_copy(head)) {
            Some((_, group)) => group.push(path),
            None => alone.push(vec![path]),
        }
    }
    let mut all: Vec<Vec<PathBuf>> = whole.into_iter().map(|(_, paths)| paths).chain(alone).collect();
    let place = |group: &Vec<PathBuf>| paths.iter().position(|path| group.contains(path));
    all.sort_by_key(place);
    all
}

/// Returns the head of a bundle in one file.
fn head_of(path: &Path, limits: &Limits) -> Option<Head> {
    let mut input = if is_file(path) { Input::open(path).ok()? } else { return None };
    let is_split = input.origin().is_some_and(|origin| origin.volume_set().is_some());
    if is_split { None } else { input.read_head(limits.clone()).ok() }
}

/// Returns whether this is a regular file: what is read of a pipe is gone.
fn is_file(path: &Path) -> bool {
    found_at(path).is_ok_and(|found| found.is_some_and(|found| found.is_file()))
}
