//! Bundles that are accepted.

use super::*;
use crate::bytes::join;
use crate::frame::RawFrame;
use crate::keys::Key;
use crate::tree::{Node, What, block_device, char_device, fifo, paint, socket};

const MIB: Packing = Packing { piece_log2: 20, group: 2, raw: false };

pub(super) fn vectors() -> Vec<Vector> {
    let one = |tree, packing| Bundle::new(&[("main", tree)], packing);
    let raw = Packing { raw: true, ..Packing::default() };
    vec![
        accept("good-empty", "one ref, an empty directory", one(dir([]), MIB)),
        accept("good-example", "one file, and no byte of it compressed", example()),
        accept(
            "good-tree",
            "files of all types, hard links, xattrs, times, names that are not UTF-8",
            one(tree(), MIB),
        ),
        accept("good-deep", "directories below directories, in tree order", one(deep(), MIB)),
        accept("good-two-refs", "two refs that share an object", two_refs()),
        accept("good-pieces", "pieces of 4 KiB, the last ones partial, one chunk for equal pieces", one(pieces(), raw)),
        accept(
            "good-holes",
            "holes in groups and pieces, across pieces, and nothing but holes",
            one(holes(), Packing::default()),
        ),
        accept(
            "good-disk",
            "each kind of inode as it takes a block and as it takes one more",
            one(
                dir([("few", many_names(113)), ("many", many_names(114)), ("runs", runs()), ("small", small_inodes())]),
                MIB,
            ),
        ),
        accept("good-raw-chunk", "chunks that are stored as they are", one(dir([("a", file("x"))]), raw)),
        accept("good-annotations", "annotations, tags, and all that a name may have", annotated()),
        accept("good-pieces-apart", "of a file of four pieces, the third lies before the others", pieces_apart()),
        accept("good-landmark", "the first of two chunks is the hot set", landmark((0, 1))),
        accept("good-landmark-end", "the last of two chunks is the hot set", landmark((1, 1))),
        accept("good-signed", "two keys have signed", small().signed_by(&[Key::Ed25519(1), Key::Ed25519(2)])),
    ]
}

/// Returns the bundle that example.md explains. Its frames have raw blocks, so that the file shows layout and index in their decoded form.
fn example() -> Bundle {
    let tree = dir([("hello", file("Hello, offline world\n"))]);
    let mut bundle = Bundle::new(&[("main", tree)], Packing { raw: true, ..MIB });
    bundle.identity.name = b"example".to_vec();
    let index = join(&bundle.index.sections());
    let layout = join(&bundle.layout.sections());
    bundle.edits.index_frame = edit(move |frame: &mut Vec<u8>| *frame = RawFrame::of(&index).encode());
    bundle.edits.layout_frame = edit(move |frame: &mut Vec<u8>| *frame = RawFrame::of(&layout).encode());
    bundle
}

fn tree() -> Node {
    let bin = dir([("su", file("\x7fELF").mode(0o4755).owner(0, 42)), ("sudo", link(2))]).mode(0o1777);
    let files = dir([
        ("cap", file("x").xattr("security.capability", b"\x01\0\0\x02\0").xattr("user.note", b"")),
        ("empty", file("")),
        ("new", file("y").mtime(i64::MAX, 999_999_999)),
        ("old", file("x").mtime(-1, 1).mode(0).owner(u32::MAX - 1, 65_534)),
    ]);
    let dev = dir([
        ("fifo", fifo()),
        ("null", char_device(1, 3)),
        ("sda", block_device(8, 0)),
        ("sock", socket().owner(1000, 1000)),
        ("zero", symlink("../dev/null")),
    ]);
    let names = dir([("\"quoted\" %41", file("z"))])
        .with(b"caf\xc3\xa9", symlink("\u{1b}]0;title\u{7}"))
        .with(b"caf\xe9", file("z").xattr("user.%", &[0xff; 40]));
    let mut root = dir([("bin", bin), ("dev", dev), ("files", files), ("names", names)]);
    // The hard link counts inodes: root, bin, dev, files, names, then bin's first.
    if let What::Directory(children) = &mut root.what
        && let What::Directory(bin) = &mut children[0].1.what
    {
        bin[1].1 = link(5);
    }
    root
}

fn deep() -> Node {
    let leaf = || dir([("f", file("leaf"))]);
    let b = dir([("a", dir([("a", leaf()), ("b", leaf())])), ("b", dir([])), ("c", file("c"))]);
    dir([("a", dir([("z", leaf())])), ("b", b), ("b.c", leaf()), ("c", file("leaf"))])
}

pub(super) fn two_refs() -> Bundle {
    let debug = dir([("app", file("program\n")), ("app.debug", file("symbols\n"))]);
    let app = dir([("app", file("program\n")), ("licence", file("MIT\n"))]);
    Bundle::new(&[("app/debug", debug), ("app/main", app)], Packing { group: 2, ..Packing::default() })
}

fn pieces() -> Node {
    let block = paint(1, 4096);
    let repeated = [&block[..], &paint(2, 4096), &block, &paint(3, 4096), &paint(4, 100)].concat();
    let aligned = [&paint(5, 4096)[..], &block].concat();
    let other_end = [&block[..], &paint(4, 100)].concat();
    dir([
        ("a", file(repeated)),
        ("b", file("small\n")),
        ("c", file(aligned)),
        ("d", file(block)),
        ("e", file(other_end)),
    ])
}

fn holes() -> Node {
    let zeros = |blocks: usize| vec![0; blocks * 4096];
    // A file with 16 pieces without data and one more byte; one with data at both ends; one with a hole that begins in the middle of its pieces.
    let tail = [&zeros(16)[..], b"x"].concat();
    let ends = [&paint(1, 5000)[..], &zeros(40), &paint(2, 5000)].concat();
    // 15 blocks are too few for a hole.
    let short = [&paint(3, 4096)[..], &zeros(15), &paint(4, 4096)].concat();
    // The hole ends with the last whole block; a partial block of zeros is data.
    let partial = [&zeros(16)[..], &[0; 100]].concat();
    dir([
        ("all", file(zeros(17))),
        ("ends", file(ends)),
        ("partial", file(partial)),
        ("short", file(short)),
        ("tail", file(tail)),
    ])
}

/// Returns a directory of empty files; each name takes 28 bytes.
pub(super) fn many_names(count: usize) -> Node {
    let name = |number| format!("{number:020}").into_bytes();
    (0..count).fold(dir([]), |all, number| all.with(&name(number), file("")))
}

/// Returns contents with holes between their blocks.
pub(super) fn runs() -> Node {
    let runs = |count: usize| [&paint(1, 4096)[..], &vec![0; 16 * 4096]].concat().repeat(count);
    dir([("five", file([&runs(4)[..], b"x"].concat())), ("two", file(runs(2)))])
}

/// Returns links and extended attributes that take no block or one, and ones that are a byte longer.
pub(super) fn small_inodes() -> Node {
    let capability = |value: usize| file("").xattr("security.capability", &[1; 20]).xattr("user.x", &vec![2; value]);
    let link = |len: usize| symlink(&"l".repeat(len));
    dir([
        ("capability", capability(19)),
        ("capability-over", capability(20)),
        ("dir-over", dir([]).xattr("user.note", &[3; 100])),
        ("link-59", link(59)),
        ("link-60", link(60)),
        ("note", file("").xattr("user.note", &[4; 4151])),
        ("note-over", file("").xattr("user.note", &[5; 4152])),
    ])
}

fn annotated() -> Bundle {
    let mut bundle = small();
    bundle.identity.name = b"0-Az.09_+-".to_vec();
    bundle.identity.version = u64::MAX;
    bundle.identity.created = -1;
    bundle.identity.tags = vec![b"board-a".to_vec(), b"board-b+rev2".to_vec()];
    bundle.annotations = vec![
        (b"empty".to_vec(), Vec::new()),
        (b"notes".to_vec(), "Für alle: \u{1b}[31m\n".into()),
        (b"url".to_vec(), b"https://example.com/?a=b".to_vec()),
    ];
    bundle
}

fn pieces_apart() -> Bundle {
    let content: Vec<u8> = (1..5).flat_map(|seed| paint(seed, 4096)).collect();
    let tree = dir([("large", file(content)), ("small", file("small\n"))]);
    let mut bundle = Bundle::new(&[("main", tree)], Packing::default());
    // Of the chunks (0 is the group, 1 to 4 are pieces), chunk 3 becomes the first of the landmark.
    bundle.layout.chunks[..4].rotate_right(1);
    bundle.stored[..4].rotate_right(1);
    for (chunk, _) in &mut bundle.layout.pieces {
        *chunk = match *chunk - 1 {
            3 => 1,
            before @ 0..3 => before + 2,
            behind => behind + 1,
        };
    }
    bundle.layout.landmark = Some((0, 1));
    bundle
}

fn landmark(chunks: (u32, u32)) -> Bundle {
    let tree = dir([("a", file("hot\n")), ("b", file("cold\n"))]);
    let mut bundle = Bundle::new(&[("main", tree)], Packing { group: 1, ..Packing::default() });
    bundle.layout.landmark = Some(chunks);
    bundle
}
