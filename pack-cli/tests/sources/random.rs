//! Random trees and archives.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use proptest::prelude::*;
use sealift::{Metadata, NewNode, Tree};

use super::archives::*;
use sealift::source::Source;

use super::trees::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Reading a damaged archive always ends, and content that was read can be read again.
    #[test]
    fn damage_never_panics(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), sum: bool) {
        thread_local! { static BYTES: Vec<u8> = small_archive(); }
        let mut bytes = BYTES.with(Clone::clone);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
            if sum {
                // With a correct checksum in the header, parsing gets further.
                let block = at / 512 * 512;
                let mut header = tar::Header::from_byte_slice(&bytes[block..block + 512]).clone();
                header.set_cksum();
                bytes[block..block + 512].copy_from_slice(header.as_bytes());
            }
        }
        if let Ok(source) = tar_bytes(&bytes, &options()) {
            read_again(&source);
        }
    }

    /// The same for a cpio archive.
    #[test]
    fn a_damaged_cpio_archive_never_panics(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = super::cpio::small_archive();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(source) = super::cpio::read(&bytes) {
            read_again(&source);
        }
    }

    /// An archive by another writer, with its members in any order, gives the tree that it was made from.
    #[test]
    fn any_tree_comes_back(tree in any_tree(), order: Vec<prop::sample::Index>) {
        let mut members: Vec<_> = tree.iter().collect();
        for (at, other) in order.iter().enumerate().take(members.len()) {
            let other = other.index(members.len());
            members.swap(at, other);
        }
        let mut builder = tar::Builder::new(Vec::new());
        for (path, item) in members {
            append(&mut builder, path, item);
        }
        let bytes = builder.into_inner().expect("in memory");
        let found = items(&tar_bytes(&bytes, &options()).expect("a source"));
        let mut expected = tree;
        let root = Metadata { permissions: 0o755, ..Metadata::default() };
        let root = Item { metadata: root, file: NewNode::Directory, first: Vec::new(), content: None };
        expected.insert(Vec::new(), root.clone());
        for path in expected.keys().cloned().collect::<Vec<_>>() {
            for (at, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
                let parent = Item { first: path[..at].to_vec(), ..root.clone() };
                expected.entry(path[..at].to_vec()).or_insert(parent);
            }
        }
        compare(&expected, &found, "any tree");
    }
}

fn any_tree() -> impl Strategy<Value = Items> {
    let name = prop_oneof![
        4 => "[a-d]".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>().prop_map(|byte| if b"/\0".contains(&byte) { b'_' } else { byte }), 1..150)
            .prop_filter("a name", |name| name != b"." && name != b".."),
    ];
    let path = prop::collection::vec(name, 1..4).prop_map(|names| names.join(&b'/'));
    prop::collection::btree_map(path, any_item(), 0..20).prop_map(|mut items| {
        // A path with something below it is a directory.
        let paths: Vec<Vec<u8>> = items.keys().cloned().collect();
        for path in &paths {
            for (at, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
                if let Some(item) = items.get_mut(&path[..at]) {
                    item.file = NewNode::Directory;
                    item.content = None;
                }
            }
        }
        for (path, item) in &mut items {
            item.first.clone_from(path);
        }
        items
    })
}

fn any_item() -> impl Strategy<Value = Item> {
    let device = (any::<u16>(), any::<u16>())
        .prop_map(|(major, minor)| sealift_format::Device { major: major.into(), minor: minor.into() });
    let file = prop_oneof![
        Just(NewNode::Directory),
        Just(NewNode::Regular { content: 0 }),
        Just(NewNode::Regular { content: 0 }),
        prop::collection::vec(1_u8.., 1..200).prop_map(|target| NewNode::Symlink(target.into())),
        device.clone().prop_map(NewNode::CharDevice),
        device.prop_map(NewNode::BlockDevice),
        Just(NewNode::Fifo),
    ];
    let xattrs = prop::collection::btree_map("[a-c=\n%]{1,4}", prop::collection::vec(any::<u8>(), 0..20), 0..3);
    let numbers = (0_u16..0o10000, any::<u32>(), any::<u32>(), -10_i64..1 << 40, 0_u32..1_000_000_000);
    (file, numbers, xattrs, prop::collection::vec(any::<u8>(), 0..1500)).prop_map(|(file, numbers, xattrs, bytes)| {
        let (permissions, uid, gid, mtime, mtime_ns) = numbers;
        let xattrs = xattrs
            .into_iter()
            .map(|(name, value)| sealift_format::Xattr { name: format!("user.{name}").into_bytes(), value });
        let xattrs = xattrs.collect::<Vec<_>>().try_into().expect("they fit");
        let content = matches!(file, NewNode::Regular { .. }).then_some(bytes);
        let metadata = Metadata { permissions, uid, gid, mtime, mtime_ns, xattrs };
        Item { metadata, file, first: Vec::new(), content }
    })
}

fn append(builder: &mut tar::Builder<Vec<u8>>, path: &[u8], item: &Item) {
    let metadata = &item.metadata;
    let mut data = record(b"mtime", decimal_time(metadata).as_bytes());
    // The writer cuts long names for their headers as text.
    let by_record = !path.is_ascii();
    if by_record {
        data.extend(record(b"path", path));
    }
    // It also changes targets such as `a//b` and `a/.`.
    let target_by_record = |target: &[u8]| target.contains(&b'/');
    if let NewNode::Symlink(target) = &item.file
        && target_by_record(target)
    {
        data.extend(record(b"linkpath", target));
    }
    for xattr in &metadata.xattrs {
        let name = String::from_utf8(xattr.name.to_vec()).expect("made of text");
        let name = name.replace('%', "%25").replace('=', "%3D");
        data.extend(record(format!("SCHILY.xattr.{name}").as_bytes(), xattr.value));
    }
    let mut extended = tar::Header::new_ustar();
    extended.set_entry_type(tar::EntryType::XHeader);
    extended.set_size(u64::try_from(data.len()).expect("small"));
    extended.set_cksum();
    builder.append(&extended, &data[..]).expect("in memory");

    let mut header = tar::Header::new_gnu();
    header.set_mode(metadata.permissions.into());
    header.set_uid(metadata.uid.into());
    header.set_gid(metadata.gid.into());
    header.set_mtime(0);
    let bytes = item.content.as_deref().unwrap_or_default();
    header.set_size(u64::try_from(bytes.len()).expect("small"));
    let (kind, device) = match &item.file {
        NewNode::Directory => (tar::EntryType::Directory, None),
        NewNode::Symlink(_) => (tar::EntryType::Symlink, None),
        NewNode::CharDevice(device) => (tar::EntryType::Char, Some(device)),
        NewNode::BlockDevice(device) => (tar::EntryType::Block, Some(device)),
        NewNode::Fifo => (tar::EntryType::Fifo, None),
        _ => (tar::EntryType::Regular, None),
    };
    header.set_entry_type(kind);
    if let Some(device) = device {
        header.set_device_major(device.major).expect("GNU's form has it");
        header.set_device_minor(device.minor).expect("GNU's form has it");
    }
    let path = if by_record { Path::new("x") } else { Path::new(OsStr::from_bytes(path)) };
    match &item.file {
        NewNode::Symlink(target) if target_by_record(target) => {
            builder.append_link(&mut header, path, "x").expect("in memory");
        }
        NewNode::Symlink(target) => {
            let target = OsString::from_vec(target.to_vec());
            builder.append_link(&mut header, path, Path::new(&target)).expect("in memory");
        }
        _ => builder.append_data(&mut header, path, bytes).expect("in memory"),
    }
}

/// Returns seconds with a fraction, as POSIX writes them.
fn decimal_time(metadata: &Metadata) -> String {
    let (seconds, nanoseconds) = (metadata.mtime, metadata.mtime_ns);
    if seconds >= 0 || nanoseconds == 0 {
        return format!("{seconds}.{nanoseconds:09}");
    }
    let sign = if seconds == -1 { "-" } else { "" };
    format!("{sign}{}.{:09}", seconds + 1, 1_000_000_000 - nanoseconds)
}

#[test]
fn a_tree_is_visited_in_its_order() {
    let plain = Metadata { permissions: 0o755, ..Metadata::default() };
    let mut tree = Tree::new(plain.clone());
    let node = tree.add(0, b"b", plain.clone(), NewNode::Directory).expect("a name");
    let below = tree.directory_of(node).expect("a directory");
    tree.add(below, b"x", plain.clone(), NewNode::Fifo).expect("a name");
    tree.add(0, b"c", plain, NewNode::Socket).expect("a name");
    let mut paths = Vec::new();
    tree.visit(|visited| paths.push((visited.path, visited.file)));
    let expected: [(&[u8], NewNode); 4] =
        [(b"", NewNode::Directory), (b"b", NewNode::Directory), (b"c", NewNode::Socket), (b"b/x", NewNode::Fifo)];
    assert_eq!(paths, expected.map(|(path, file)| (path.to_vec(), file)));
}

/// Reads the contents of a source, except long ones.
fn read_again(source: &Source) {
    if source.contents().all(|content| source.content_len(content) < 1 << 24) {
        items(source);
    }
}
