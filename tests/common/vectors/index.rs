//! The index (core 6).

use super::*;
use crate::bundle::Attributes;
use crate::bytes::Section;

pub(super) fn vectors() -> Vec<Vector> {
    [refs(), order(), paths(), inodes(), attributes(), objects()].into_iter().flatten().collect()
}

/// Returns the small bundle with a fault of the index.
fn bad(name: &str, comment: &str, edit: impl FnOnce(&mut Bundle)) -> Vector {
    reject(name, "index", comment, edit)
}

/// Returns two refs, `a` with a file and `b` with two: inodes 0 and 2 are their roots.
fn two_refs() -> Bundle {
    let a = dir([("x", file("one\n"))]);
    let b = dir([("x", file("two\n")), ("y", file("three\n"))]);
    Bundle::new(&[("a", a), ("b", b)], Packing::default())
}

fn refs() -> Vec<Vector> {
    vec![
        reject_from(two_refs(), "index-refs-order", "index", "ref b stands before ref a", |b| b.index.refs.swap(0, 1)),
        bad("index-ref-name", "a fragment of a ref's name is ..", |b| b.index.refs[0].1 = b"a/../b".to_vec()),
        bad("index-ref-name-slash", "a ref's name ends with a slash", |b| b.index.refs[0].1 = b"a/".to_vec()),
        bad("index-no-refs", "no ref, and nothing else", |b| *b = Bundle::new(&[], Packing::default())),
        reject("index-ref-kind-unknown", "unsupported", "a ref of kind 2", |b| b.index.refs[0].0 = 2),
        reject("index-ref-kind-first", "unsupported", "a ref of kind 2 has a fragment .. in its name", |b| {
            b.index.refs[0] = (2, b"a/../b".to_vec());
        }),
        reject_from(
            two_refs(),
            "index-ref-row-first",
            "index",
            "ref a has a fragment .., and ref b is of kind 2",
            |b| {
                b.index.refs[0].1 = b"a/../b".to_vec();
                b.index.refs[1].0 = 2;
            },
        ),
    ]
}

fn order() -> Vec<Vector> {
    vec![
        bad("index-root-not-directory", "the ref's root is a file", |b| {
            *b = Bundle::new(&[("main", file("one\n"))], Packing::default());
        }),
        bad("index-names-order", "name b stands before name a", |b| b.index.names.swap(0, 1)),
        bad("index-names-twice", "name d/f is there twice", |b| b.index.names[6] = b"f".to_vec()),
        bad("index-link-forward", "b is another name of an inode that comes later", |b| b.index.links[1] = 6),
        bad("index-link-directory", "l is another name of the directory e", |b| {
            // Removes the link's inode, with its attributes and target.
            b.index.links[4] = 4;
            b.index.rows.remove(4);
            b.index.mtimes.remove(4);
            b.index.mtime_ns.remove(4);
            b.index.targets.clear();
            b.index.attributes.pop();
        }),
        reject_from(two_refs(), "index-link-other-ref", "index", "y of ref b is another name of x of ref a", |b| {
            b.index.links[2] = 2;
            b.index.rows.pop();
            b.index.mtimes.pop();
            b.index.mtime_ns.pop();
            b.index.regulars.pop();
            let object = b.index.objects.pop().expect("three");
            b.layout.chunks[0].len -= u32::try_from(object.0).expect("small");
            b.layout.chunks[0].objects -= 1;
            b.layout.members.pop();
            b.store(0, crate::frame::frame(b"one\ntwo\n"));
        }),
        bad("index-entries-left", "an entry that is in no block", |b| {
            b.index.names.push(b"z".to_vec());
            b.index.links.push(2);
        }),
        bad("index-inodes-left", "an inode that no entry takes", |b| {
            b.index.rows.push(1);
            b.index.mtimes.push(0);
            b.index.mtime_ns.push(0);
            b.index.regulars.push(1);
        }),
        bad("index-inodes-short", "an entry without its inode", |b| {
            b.index.rows.pop();
            b.index.mtimes.pop();
            b.index.mtime_ns.pop();
            b.index.regulars.pop();
        }),
        bad("index-entries-short", "the last directory has one child more than there are entries", |b| {
            b.index.children[2] = 1;
        }),
    ]
}

fn paths() -> Vec<Vector> {
    let named = |name: &'static [u8]| move |b: &mut Bundle| b.index.names[6] = name.to_vec();
    let first = |name: &'static [u8]| move |b: &mut Bundle| b.index.names[5] = name.to_vec();
    let any = (1..=255_u8).filter(|byte| *byte != b'/').collect::<Vec<u8>>();
    let tree = dir([])
        .with(&any, file(""))
        .with(b"\x1b[31m\xe2\x80\xae", file(""))
        .with(b"...", file(""))
        .with(b"\\", file(""));
    vec![
        reject("path-empty", "path", "an empty name", first(b"")),
        reject("path-slash", "path", "the name h/i", named(b"h/i")),
        reject("path-nul", "path", "the name h with a NUL byte", named(b"h\0")),
        reject("path-dot", "path", "the name .", first(b".")),
        reject("path-dotdot", "path", "the name ..", first(b"..")),
        reject("path-absolute", "path", "the name /etc", first(b"/etc")),
        accept("path-any-bytes", "all bytes that a name may have", Bundle::new(&[("main", tree)], Packing::default())),
    ]
}

fn inodes() -> Vec<Vector> {
    vec![
        bad("index-nanoseconds", "10^9 nanoseconds", |b| b.index.mtime_ns[1] = 1_000_000_000),
        bad("index-object-forward", "d/f has an object that has not come", |b| b.index.regulars[1] = 3),
        bad("index-objects-left", "an object that no inode takes", |b| {
            b.index.objects.push((6, crate::bytes::hash(b"three\n")));
            b.layout.chunks[0].len += 6;
            b.layout.chunks[0].objects += 1;
            b.layout.members.push(2);
            b.store(0, crate::frame::frame(b"one\ntwo\nthree\n"));
        }),
        bad("index-objects-short", "a file whose object the table does not have", |b| {
            b.index.objects.pop();
            b.layout.chunks[0].len -= 4;
            b.layout.chunks[0].objects -= 1;
            b.layout.members.pop();
            b.store(0, crate::frame::frame(b"one\n"));
        }),
        bad("index-symlink-empty", "an empty target", |b| b.index.targets[0].clear()),
        bad("index-symlink-nul", "a target with a NUL byte", |b| b.index.targets[0] = b"a\0b".to_vec()),
        bad("index-symlink-long", "a target of 4096 bytes", |b| b.index.targets[0] = vec![b'a'; 4096]),
    ]
}

fn attributes() -> Vec<Vector> {
    let xattrs = |xattrs: &[(&[u8], &[u8])]| {
        let xattrs = xattrs.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        move |b: &mut Bundle| b.index.attributes[1].xattrs = xattrs
    };
    vec![
        bad("index-mode-type", "a mode whose type is 0", |b| b.index.attributes[1].mode = 0o644),
        bad("index-xattr-order", "user.b stands before user.a", xattrs(&[(b"user.b", b""), (b"user.a", b"")])),
        bad("index-xattr-twice", "user.a is there twice", xattrs(&[(b"user.a", b""), (b"user.a", b"")])),
        bad("index-xattr-name", "an attribute without a name", xattrs(&[(b"", b"")])),
        bad("index-xattr-nul", "an attribute's name has a NUL byte", xattrs(&[(b"user.\0", b"")])),
        bad("index-xattr-long", "an attribute of 65537 bytes", xattrs(&[(b"user.a", &[0; 65_537])])),
        bad("index-attributes-twice", "the rows of a and d/f are equal", |b| {
            // Gives d/f a separate row after the others.
            let row = b.index.attributes[1].clone();
            b.index.attributes.push(row);
            b.index.rows[5] = 3;
        }),
        bad("index-attributes-order", "the second row is used before the first", |b| {
            b.index.attributes.swap(0, 1);
            let swap = |row: &mut u32| *row = [1, 0, 2][usize::try_from(*row).expect("three rows")];
            b.index.rows.iter_mut().for_each(swap);
        }),
        bad("index-attributes-left", "a row that no inode has", |b| {
            b.index.attributes.push(Attributes { mode: 0x8000, ..Attributes::default() });
        }),
        bad("index-owner-none", "a file of owner 2^32-1", |b| b.index.attributes[1].uid = u32::MAX),
        bad("index-group-none", "a file of group 2^32-1", |b| b.index.attributes[1].gid = u32::MAX),
        bad("index-attributes-short", "an inode whose row is not there", |b| {
            let last = b.index.rows.len() - 1;
            b.index.rows[last] = 3;
        }),
    ]
}

fn objects() -> Vec<Vector> {
    const LARGEST: u64 = (1 << 63) - 1;
    vec![
        bad("index-object-twice", "two objects have one id", |b| b.index.objects[1].1 = b.index.objects[0].1),
        bad("verity-table", "verity(T) is another", |b| b.index.verity[0] ^= 1),
        reject("limit-object-len", "limit", "an object of 2^63 bytes", |b| b.index.objects[1].0 = 1 << 63),
        reject("limit-logical-overflow", "limit", "one object of 2^63 - 1 bytes in three files", |b| {
            *b = Bundle::new(
                &[("main", dir([("a", file("x")), ("b", file("x")), ("c", file("x"))]))],
                Packing::default(),
            );
            b.index.objects[0].0 = LARGEST;
        }),
        bad("index-count", "2^63 inodes", |b| {
            b.edits.index =
                edit(|s: &mut Vec<Section>| s[2].payload[..8].copy_from_slice(&(1_u64 << 63).to_le_bytes()));
        }),
    ]
}
