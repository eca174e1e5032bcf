//! Order profiles: the paths that a workload reads, in order.

use sealift_format::num;
use std::collections::HashMap;

use sealift_store::NodeKind;
use sealift_store::contents::tasks::Item;
use sealift_store::source::Source;

/// The paths of a profile, relative to the packed root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderProfile {
    paths: Vec<Vec<u8>>,
}

/// How much of a profile matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderStats {
    /// Paths of the profile.
    pub paths: usize,
    /// Paths that name a regular file of the sources.
    pub matched: usize,
}

impl OrderProfile {
    /// Parses a profile with one path per line. Empty lines and lines that begin with `#` are skipped, and a leading `/` or `./` is dropped.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        let lines = text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let paths = lines.filter(|line| !line.is_empty() && !line.starts_with(b"#")).map(|line| {
            let path = line.strip_prefix(b".").filter(|rest| rest.starts_with(b"/")).unwrap_or(line);
            let start = path.iter().position(|byte| *byte != b'/').unwrap_or(path.len());
            path[start..].to_vec()
        });
        Self { paths: paths.collect() }
    }
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
    for (rank, path) in profile.paths.iter().enumerate() {
        ranks.entry(&path[..]).or_insert(rank);
    }
    let mut hot: Vec<(usize, Item)> = Vec::new();
    let mut is_hot: Vec<Vec<bool>> = sources.iter().map(|s| vec![false; s.content_count()]).collect();
    let mut matched = vec![false; profile.paths.len()];
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
    let stats = OrderStats { paths: profile.paths.len(), matched: matched.into_iter().filter(|found| *found).count() };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_lines_of_paths() {
        let profile = OrderProfile::parse(b"# boot\n/usr/bin/init\n./etc/fstab\r\n\n.hidden\n//a/b");
        let paths: [&[u8]; 4] = [b"usr/bin/init", b"etc/fstab", b".hidden", b"a/b"];
        assert_eq!(profile.paths, paths.map(<[u8]>::to_vec));
    }
}
