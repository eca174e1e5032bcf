//! Takes a container apart, and compares.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use sealift_container::{Anatomy, Blocks, Content, Kind, Limits, Part, ReadAt};

use crate::given::{Contents, LONG_TARGET};

/// Takes a file apart, which is a container of this kind.
pub(crate) fn anatomy(bytes: &dyn ReadAt, kind: Kind) -> Anatomy {
    let anatomy = Anatomy::of(bytes, &Limits::default()).unwrap().expect("it is a container");
    assert_eq!(anatomy.kind, kind);
    anatomy
}

/// Returns the content of all members, links included.
pub(crate) fn contents(bytes: &dyn ReadAt, anatomy: &Anatomy) -> Contents {
    let blocks = Blocks::new(bytes, anatomy);
    let mut found = BTreeMap::new();
    let links = anatomy.links.iter().map(|link| &link.path);
    for path in anatomy.members.iter().map(|member| &member.path).chain(links) {
        let content = Content::new(&blocks, anatomy.find(path).expect("it has this name"));
        let mut bytes = vec![0; usize::try_from(content.byte_len().unwrap()).unwrap()];
        content.read_exact_at(&mut bytes, 0).unwrap();
        found.insert(String::from_utf8(path.clone()).unwrap(), bytes);
    }
    found
}

/// Compares the members of a container with what they should be, and returns what it is made of.
pub(crate) fn check(path: &Path, kind: Kind, expected: &Contents) -> Anatomy {
    let file = File::open(path).unwrap();
    let anatomy = anatomy(&file, kind);
    let found = contents(&file, &anatomy);
    let missing = expected.keys().filter(|path| !found.contains_key(*path)).collect::<Vec<_>>();
    let added = found.keys().filter(|path| !expected.contains_key(*path)).collect::<Vec<_>>();
    assert!(missing.is_empty() && added.is_empty(), "missing: {missing:?}, added: {added:?}");
    if expected.contains_key("usr/bin/zweitname")
        && matches!(kind, Kind::Squashfs | Kind::Erofs | Kind::Ext4 | Kind::Tar | Kind::Cpio)
    {
        let links: Vec<(&[u8], &[u8])> =
            anatomy.symlinks.iter().map(|link| (&link.path[..], &link.target[..])).collect();
        let long = LONG_TARGET.as_bytes();
        assert_eq!(links, [(&b"etc/long"[..], long), (b"usr/bin/link", b"tool")]);
    }
    for (path, content) in expected {
        assert!(found[path] == *content, "{path} differs: {} bytes of {}", found[path].len(), content.len());
    }
    // Every block decodes.
    let blocks = Blocks::new(&file, &anatomy);
    for (number, block) in (0..).zip(&anatomy.blocks) {
        if block.plain.most() <= sealift_container::Block::LONGEST_DECODED {
            blocks.decoded(number).unwrap_or_else(|fault| panic!("block {number}, {block:?}: {fault}"));
        }
    }
    drop(blocks);
    anatomy
}

/// Returns the bytes of a container that are neither in a member nor in a block.
pub(crate) fn structure_len(anatomy: &Anatomy, len: u64) -> u64 {
    let mut ranges: Vec<_> = anatomy.blocks.iter().map(|block| (block.offset, block.end())).collect();
    for part in anatomy.members.iter().flat_map(|member| &member.parts) {
        if let Part::Stored { offset, len } = *part {
            ranges.push((offset, offset + len));
        }
    }
    ranges.sort_unstable();
    let (mut end, mut structure) = (0, 0);
    for (from, to) in ranges {
        structure += from.saturating_sub(end);
        end = end.max(to);
    }
    structure + (len - end)
}
