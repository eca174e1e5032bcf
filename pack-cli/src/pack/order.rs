//! The order of access: what an order profile names comes first.

use sealift_format::num;
use std::collections::HashMap;

use sealift_store::NodeKind;
use sealift_store::contents::tasks::Item;
use sealift_store::source::Source;

use crate::order::OrderProfile;

/// How much of a profile matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderStats {
    /// Paths of the profile.
    pub paths: usize,
    /// Paths that name a regular file of the sources.
    pub matched: usize,
}

/// Returns all contents of the sources: first those that the profile names, in its order, then the others in tree order. Also returns how many the
/// profile moved to the front.
pub(super) fn access_order(sources: &[&Source], profile: Option<&OrderProfile>) -> (Vec<Item>, usize, OrderStats) {
    let mut items = Vec::new();
    for (source, from) in sources.iter().enumerate() {
        items.extend(from.contents().map(|content| Item { source, content, len: from.content_len(content) }));
    }
    let Some(profile) = profile else { return (items, 0, OrderStats::default()) };
    let mut ranks = HashMap::new();
    for (rank, entry) in profile.entries().iter().enumerate() {
        for name in profile.names(entry) {
            ranks.entry(name).or_insert(rank);
        }
    }
    let mut hot: Vec<(usize, Item)> = Vec::new();
    let mut is_hot: Vec<Vec<bool>> = sources.iter().map(|s| vec![false; s.content_count()]).collect();
    let mut matched = vec![false; profile.entries().len()];
    for (source, from) in sources.iter().enumerate() {
        for_each_path(from, |path, content| {
            let Some(&rank) = ranks.get(path) else { return };
            matched[rank] = true;
            let seen = &mut is_hot[source][num::at(content)];
            if !std::mem::replace(seen, true) {
                hot.push((rank, Item { source, content, len: from.content_len(content) }));
            }
        });
    }
    hot.sort_by_key(|(rank, item)| (*rank, item.source, item.content));
    let hot_end = hot.len();
    items.retain(|item| !is_hot[item.source][num::at(item.content)]);
    let ordered = hot.into_iter().map(|(_, item)| item).chain(items).collect();
    let stats =
        OrderStats { paths: profile.entries().len(), matched: matched.into_iter().filter(|found| *found).count() };
    (ordered, hot_end, stats)
}

pub(super) fn for_each_path(source: &Source, mut visit: impl FnMut(&[u8], u32)) {
    let tree = source.tree();
    let mut pending = vec![(0, Vec::new())];
    while let Some((directory, prefix)) = pending.pop() {
        for child in tree.children(directory) {
            let mut path: Vec<u8> = prefix.clone();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend(tree.child_name(child));
            match tree.node(child.node).kind {
                NodeKind::Directory(below) => pending.push((below, path)),
                NodeKind::Regular { content } => visit(&path, content),
                _ => {}
            }
        }
    }
}
