//! The layout (core 7).

use super::*;
use crate::bundle::Chunk;
use crate::bytes::{Section, hash, planes32};
use crate::frame::frame;
use crate::tree::paint;

pub(super) fn vectors() -> Vec<Vector> {
    [holes(), chunks(), groups(), pieces(), landmark()].into_iter().flatten().collect()
}

/// Returns the small bundle with a fault of the layout.
fn bad(name: &str, comment: &str, edit: impl FnOnce(&mut Bundle)) -> Vector {
    reject(name, "layout", comment, edit)
}

/// Returns object 0 with 40 blocks, of which blocks 4 to 23 are a hole (in a group, since pieces have 1 MiB), and object 1 without a hole.
pub(super) fn sparse() -> Bundle {
    let mut content = paint(1, 40 * 4096);
    content[4 * 4096..24 * 4096].fill(0);
    let tree = dir([("a", file(content)), ("b", file("two\n"))]);
    Bundle::new(&[("main", tree)], Packing { piece_log2: 20, ..Packing::default() })
}

/// Object 0 is `small`, in a group; object 1 has 17 blocks and 100 bytes: piece 0 is data, 1 to 16 are a hole, 17 is data. Object 2 has
/// 3 pieces. Chunk 0 is the group, 1 and 2 are pieces of object 1, 3 to 5 of object 2.
pub(super) fn large() -> Bundle {
    let mut holey = paint(1, 4096);
    holey.resize(17 * 4096, 0);
    holey.extend(paint(2, 100));
    let tree = dir([("a", file("small\n")), ("b", file(holey)), ("c", file(paint(3, 2 * 4096 + 700)))]);
    Bundle::new(&[("main", tree)], Packing::default())
}

fn holes() -> Vec<Vector> {
    let extents = |extents: &'static [(u64, u64)]| move |b: &mut Bundle| b.layout.holes[0].1 = extents.to_vec();
    let reject =
        |name, comment, edit: Box<dyn FnOnce(&mut Bundle)>| reject_from(sparse(), name, "layout", comment, edit);
    vec![
        reject(
            "holes-objects-order",
            "the holes of object 0 are listed twice",
            Box::new(|b| b.layout.holes.push(b.layout.holes[0].clone())),
        ),
        reject("holes-object-missing", "holes of object 2", Box::new(|b| b.layout.holes[0].0 = 2)),
        reject("holes-none", "an object of no holes", Box::new(|b| b.layout.holes.push((1, Vec::new())))),
        reject("holes-short", "a hole of 15 blocks", Box::new(extents(&[(4, 15)]))),
        reject("holes-beyond-end", "a hole up to block 41", Box::new(extents(&[(21, 20)]))),
        reject("holes-overflow", "a hole whose end passes 2^64-1", Box::new(extents(&[(u64::MAX - 3, 20)]))),
        {
            let mut content = paint(1, 40 * 4096);
            content[4 * 4096..36 * 4096].fill(0);
            let packing = Packing { piece_log2: 20, ..Packing::default() };
            let bundle = Bundle::new(&[("main", dir([("a", file(content))]))], packing);
            reject_from(bundle, "holes-touching", "layout", "a hole of 32 blocks is listed in two halves", |b| {
                b.layout.holes[0].1 = vec![(4, 16), (20, 16)];
            })
        },
        {
            let content = [&paint(1, 4 * 4096)[..], &[0; 16 * 4096 + 100]].concat();
            let packing = Packing { piece_log2: 20, ..Packing::default() };
            let bundle = Bundle::new(&[("main", dir([("a", file(content))]))], packing);
            let comment = "a hole of 17 blocks, of which the last one is the object's partial block";
            reject_from(bundle, "holes-partial-block", "layout", comment, |b| {
                b.layout.holes[0].1 = vec![(4, 17)];
                b.layout.chunks[0].len = 4 * 4096;
                b.store(0, frame(&paint(1, 4 * 4096)));
            })
        },
        reject(
            "holes-sum",
            "extents of two objects, 2^32+1 in sum, and one extent",
            Box::new(|b| {
                b.layout.holes.push((1, Vec::new()));
                b.edits.layout = edit(|s: &mut Vec<Section>| {
                    s[3].payload[12..20].copy_from_slice(&planes32([u32::MAX, 2].into_iter()));
                });
            }),
        ),
        reject("holes-descending", "the second hole stands before the first", Box::new(extents(&[(20, 16), (0, 16)]))),
    ]
}

fn chunks() -> Vec<Vector> {
    vec![
        bad("chunk-empty", "a piece's chunk that decodes to nothing", |b| {
            let stored = frame(b"");
            b.layout.chunks.push(Chunk { codec: 1, digest: hash(&stored), ..Chunk::default() });
            b.stored.push(Vec::new());
            b.store(1, stored);
        }),
        bad("chunk-stored-empty", "a chunk without stored bytes", |b| b.store(0, Vec::new())),
        bad("chunk-raw-len", "a raw chunk of 8 bytes that decodes to 8, with 9 stored", |b| {
            b.layout.chunks[0].codec = 0;
            b.store(0, b"one\ntwo\n\0".to_vec());
        }),
        reject("chunk-codec", "unsupported", "a chunk of codec 4", |b| b.layout.chunks[0].codec = 4),
    ]
}

fn groups() -> Vec<Vector> {
    vec![
        bad("group-missing-object", "object 1 is in no group", |b| {
            b.layout.members.pop();
            b.layout.chunks[0].objects = 1;
            b.layout.chunks[0].len = 4;
            b.store(0, frame(b"one\n"));
        }),
        bad("group-object-twice", "object 1 is in the group twice", |b| {
            b.layout.members.push(1);
            b.layout.chunks[0].objects = 3;
            b.layout.chunks[0].len = 12;
            b.store(0, frame(b"one\ntwo\ntwo\n"));
        }),
        reject_from(large(), "group-large-object", "layout", "object 2, of three pieces, is in a group too", |b| {
            let content = paint(3, 2 * 4096 + 700);
            b.layout.members.push(2);
            b.layout.chunks[0].objects = 2;
            b.layout.chunks[0].len = 6 + 2 * 4096 + 700;
            b.store(0, frame(&[b"small\n", &content[..]].concat()));
        }),
        bad("group-empty-object", "an object without data is in a group", |b| {
            *b = Bundle::new(&[("main", dir([("a", file("")), ("b", file("x"))]))], Packing::default());
            b.layout.members = vec![0, 1];
            b.layout.chunks[0].objects = 2;
        }),
        bad("group-unknown-object", "a group has an object that the index has not", |b| {
            b.layout.members.push(2);
            b.layout.chunks[0].objects = 3;
        }),
        bad("group-len", "a group that is one byte longer than its objects", |b| {
            b.layout.chunks[0].len = 9;
            b.store(0, frame(b"one\ntwo\n\n"));
        }),
        reject_from(large(), "group-sum", "layout", "groups of 2^32+1 objects in sum, and one step", |b| {
            (b.layout.chunks[0].objects, b.layout.chunks[1].objects) = (u32::MAX, 2);
        }),
        bad("group-steps-short", "one step less than the groups have objects", |b| {
            b.layout.members.pop();
        }),
    ]
}

fn pieces() -> Vec<Vector> {
    let reject = |name, comment, edit: fn(&mut Bundle)| reject_from(large(), name, "layout", comment, edit);
    vec![
        reject("piece-chunk-unused", "a chunk that no piece names", |b| {
            let stored = frame(b"x");
            b.layout.chunks.push(Chunk { codec: 1, len: 1, digest: hash(&stored), ..Chunk::default() });
            b.stored.push(Vec::new());
            b.store(6, stored);
        }),
        reject("piece-len", "the last piece of object 2 names the chunk of its first", |b| {
            let last = b.layout.pieces.len() - 1;
            b.layout.pieces[last].0 = b.layout.pieces[last - 2].0;
            b.layout.chunks.pop();
            b.stored.pop();
        }),
        reject("piece-hole-with-chunk", "a piece that is all hole names a chunk", |b| b.layout.pieces[5].0 = 2),
        reject("piece-data-without-chunk", "a piece with data names no chunk", |b| {
            let last = b.layout.pieces.len() - 1;
            b.layout.pieces[last].0 = 0;
            b.layout.chunks.pop();
            b.stored.pop();
        }),
        reject("piece-in-group", "a piece of 100 bytes names a group of 100 bytes", |b| {
            let mut holey = paint(1, 4096);
            holey.resize(17 * 4096, 0);
            holey.extend(paint(2, 100));
            let tree = dir([("a", file(paint(2, 100))), ("b", file(holey))]);
            *b = Bundle::new(&[("main", tree)], Packing::default());
            b.layout.pieces[17].0 = 1;
            b.layout.chunks.pop();
            b.stored.pop();
        }),
        reject("piece-unknown-chunk", "a piece names a chunk that is not there", |b| {
            let last = b.layout.pieces.len() - 1;
            b.layout.pieces[last].0 += 1;
        }),
        reject("piece-rows-short", "a row less than the objects have pieces", |b| {
            b.layout.pieces.pop();
        }),
        reject("piece-rows-none", "an object of 4 TiB that is one hole, without rows", |b| {
            *b = Bundle::new(&[("main", dir([("a", file("x"))]))], Packing { piece_log2: 26, ..Packing::default() });
            b.index.objects[0].0 = 1 << 42;
            b.layout = crate::bundle::Layout { holes: vec![(0, vec![(0, 1 << 30)])], ..Default::default() };
            b.stored.clear();
        }),
        reject("piece-chaining-values", "the chaining values of two pieces have changed places", |b| {
            let (one, other) = (b.layout.pieces[18].1, b.layout.pieces[19].1);
            b.layout.pieces[18].1 = other;
            b.layout.pieces[19].1 = one;
        }),
    ]
}

fn landmark() -> Vec<Vector> {
    vec![
        bad("landmark-over", "the landmark has two chunks, and there is one", |b| b.layout.landmark = Some((0, 2))),
        bad("landmark-start", "the landmark has no chunk, behind the only one", |b| b.layout.landmark = Some((2, 0))),
        bad("landmark-wraps", "start and count of the landmark add up to 2^32 + 1", |b| {
            b.layout.landmark = Some((u32::MAX, 2));
        }),
        bad("layout-count", "2^31 chunks", |b| {
            b.edits.layout =
                edit(|s: &mut Vec<Section>| s[0].payload[..4].copy_from_slice(&(1_u32 << 31).to_le_bytes()));
        }),
    ]
}
