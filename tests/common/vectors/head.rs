//! The whole file, preamble, section lists, root and signature area (core 2 to 5).

use super::good::{many_names, runs, small_inodes};
use super::*;
use crate::bundle::{Contents, Maxima};
use crate::bytes::{Section, narrow};

pub(super) fn vectors() -> Vec<Vector> {
    [file_len(), preamble(), sections(), left(), root(), area()].into_iter().flatten().collect()
}

/// Returns the small bundle with a fault of the header.
fn bad(name: &str, comment: &str, edit: impl FnOnce(&mut Bundle)) -> Vector {
    reject(name, "header", comment, edit)
}

/// Removes the last `len` bytes of the file.
fn cut(len: usize) -> impl FnOnce(&mut Bundle) {
    move |b| b.edits.file = edit(move |file: &mut Vec<u8>| file.truncate(file.len() - len))
}

/// Returns the length of the stored chunks, and of the stored chunks and index.
fn tails() -> (usize, usize) {
    let file = small().encode();
    let head = crate::reader::open_whole(&file).expect("it is sound").head;
    let len = |len: u64| usize::try_from(len).expect("vectors are small");
    let chunks = len(head.root().maxima.chunks_stored);
    (chunks, chunks + len(head.root().contents.index_stored))
}

fn file_len() -> Vec<Vector> {
    let (chunks, index) = tails();
    vec![
        reject("file-trailing-byte", "trailing", "a zero byte follows the last chunk", |b| {
            b.edits.file = edit(|file: &mut Vec<u8>| file.push(0));
        }),
        reject("file-cut-in-chunk", "truncated", "the last chunk's last byte is missing", cut(1)),
        reject("file-cut-in-index", "truncated", "the index's last byte is missing", cut(chunks + 1)),
        reject("file-cut-in-layout", "truncated", "the layout's last byte is missing", cut(index + 1)),
        reject("file-cut-in-head", "truncated", "the file ends within the root", |b| {
            b.edits.file = edit(|file: &mut Vec<u8>| file.truncate(100));
        }),
        reject("file-cut-in-magic", "truncated", "the file ends within the magic", |b| {
            b.edits.file = edit(|file: &mut Vec<u8>| file.truncate(3));
        }),
        bad("file-short-other", "a text of two bytes", |b| {
            b.edits.file = edit(|file: &mut Vec<u8>| *file = b"hi".to_vec());
        }),
        reject("file-empty", "truncated", "no byte at all", |b| b.edits.file = edit(|file: &mut Vec<u8>| file.clear())),
    ]
}

fn preamble() -> Vec<Vector> {
    let put = |at: usize, bytes: &'static [u8]| {
        move |b: &mut Bundle| {
            b.edits.preamble =
                edit(move |preamble: &mut Vec<u8>| preamble[at..at + bytes.len()].copy_from_slice(bytes));
        }
    };
    vec![
        bad("preamble-magic", "the line end of a text transfer", put(5, &[0x0a, 0x1a])),
        reject("preamble-version", "unsupported", "version 1", put(8, &[1])),
        bad("preamble-root-len-zero", "root_len is 0", put(12, &[0, 0, 0, 0])),
        bad("preamble-root-len-over", "root_len is 65537", put(12, &[1, 0, 1, 0])),
        bad("preamble-reserved", "the last reserved byte is 1", put(31, &[1])),
    ]
}

fn sections() -> Vec<Vector> {
    let root = |change: fn(&mut Vec<Section>)| move |b: &mut Bundle| b.edits.root = edit(change);
    let layout = |change: fn(&mut Vec<Section>)| move |b: &mut Bundle| b.edits.layout = edit(change);
    let index = |change: fn(&mut Vec<Section>)| move |b: &mut Bundle| b.edits.index = edit(change);
    let reserved = {
        let mut bundle = small();
        bundle.area_len = 128;
        bundle.envelopes = vec![Box::new(|_| (3, b"later".to_vec()))];
        bundle
    };
    let ignorable = {
        let mut bundle = small();
        bundle.edits.root = edit(|s: &mut Vec<Section>| s.push(Section::ignorable(700, b"later".to_vec())));
        bundle.edits.layout = edit(|s: &mut Vec<Section>| s.push(Section::ignorable(700, b"later".to_vec())));
        bundle
    };
    vec![
        bad("sections-order", "sections 1 and 2 of the root have changed places", root(|s| s.swap(0, 1))),
        bad("sections-twice", "section 3 of the root is there twice", root(|s| s.push(s[2].clone()))),
        bad("root-section-missing", "the root has no maxima", root(|s| drop(s.remove(2)))),
        reject("layout-section-missing", "layout", "the layout has no holes", layout(|s| drop(s.remove(3)))),
        reject("index-section-missing", "index", "the index has no devices", index(|s| drop(s.remove(6)))),
        reject(
            "sections-flag-cleared",
            "layout",
            "the layout's groups need not be understood",
            layout(|s| s[1].flags = 0),
        ),
        reject("sections-flag-set", "layout", "the landmark must be understood", |b| {
            b.layout.landmark = Some((0, 1));
            b.edits.layout = edit(|s: &mut Vec<Section>| s[4].flags = 1);
        }),
        reject("sections-flag-unknown", "index", "bit 1 of a section's flags is set", index(|s| s[4].flags = 3)),
        reject(
            "sections-unknown-critical",
            "unsupported",
            "an unknown section of the root must be understood",
            root(|s| s.push(Section::critical(700, Vec::new()))),
        ),
        accept("sections-reserved", "an envelope of the reserved kind 3, which nobody knows yet", reserved),
        accept("sections-unknown-ignorable", "root and layout each have an unknown section", ignorable),
        reject(
            "index-section-unknown",
            "index",
            "the index has an twelfth section, which need not be understood",
            index(|s| s.push(Section::ignorable(12, b"later".to_vec()))),
        ),
        reject(
            "index-section-critical",
            "unsupported",
            "the index has an twelfth section, which must be understood",
            index(|s| s.push(Section::critical(12, b"later".to_vec()))),
        ),
        reject("fields-short", "layout", "the holes' count has three bytes", layout(|s| s[3].payload.truncate(3))),
        bad("fields-section-len", "the last section's length passes the root's end by one byte", |b| {
            b.edits.root_bytes = edit(|root: &mut Vec<u8>| {
                let maxima_len = 80;
                let len_at = root.len() - maxima_len - 8;
                root[len_at] += 1;
            });
        }),
    ]
}

/// Returns for each section a bundle in which a byte follows its last field.
fn left() -> Vec<Vector> {
    const ROOT: [&str; 4] = ["identity", "contents", "maxima", "annotations"];
    const INDEX: [&str; 10] = [
        "refs",
        "entries",
        "inodes",
        "directories",
        "regulars",
        "symlinks",
        "devices",
        "attributes",
        "objects",
        "verity",
    ];
    const LAYOUT: [&str; 5] = ["chunks", "groups", "pieces", "holes", "landmark"];
    let bundle = || {
        let mut bundle = small();
        bundle.annotations = vec![(b"a".to_vec(), Vec::new())];
        bundle.layout.landmark = Some((0, 1));
        bundle
    };
    let of = |kind: &'static str, names: &'static [&str], change: fn(&mut Bundle, u16)| {
        (1..).zip(names).map(move |(id, name)| {
            let comment = format!("a byte follows the last field of section {id}");
            reject_from(bundle(), &format!("fields-left-{name}"), kind, &comment, |b| change(b, id))
        })
    };
    let root = of("header", &ROOT, |b, id| b.edits.root = longer(id));
    let index = of("index", &INDEX, |b, id| b.edits.index = longer(id));
    let layout = of("layout", &LAYOUT, |b, id| b.edits.layout = longer(id));
    root.chain(index).chain(layout).collect()
}

fn root() -> Vec<Vector> {
    let annotated = |annotations: &[(&[u8], &[u8])]| {
        let annotations = annotations.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        move |b: &mut Bundle| b.annotations = annotations
    };
    vec![
        bad("root-name-empty", "the name is empty", |b| b.identity.name.clear()),
        bad("root-name-bytes", "the name has a slash", |b| b.identity.name = b"a/b".to_vec()),
        bad("root-name-long", "the name has 129 bytes", |b| b.identity.name = vec![b'a'; 129]),
        bad("root-tag-bytes", "a tag begins with a full stop", |b| b.identity.tags = vec![b".a".to_vec()]),
        bad("root-tags-order", "tag b stands before tag a", |b| b.identity.tags = vec![b"b".to_vec(), b"a".to_vec()]),
        bad("annotations-order", "key b stands before key a", annotated(&[(b"b", b""), (b"a", b"")])),
        bad("annotations-utf8", "a value is half a character", annotated(&[(b"a", b"\xc3")])),
        bad("annotations-key", "a key has a space", annotated(&[(b"a b", b"")])),
        bad("annotations-empty", "a section of no annotations", |b| {
            b.edits.root = edit(|s: &mut Vec<Section>| s.push(Section::ignorable(4, vec![0, 0])));
        }),
        reject("layout-blake3", "layout", "layout_blake3 is another", |b| {
            b.edits.contents = edit(|c: &mut Contents| c.layout_blake3[31] ^= 1);
        }),
        reject("index-blake3", "index", "index_blake3 is another", |b| {
            b.edits.contents = edit(|c: &mut Contents| c.index_blake3[31] ^= 1);
        }),
        reject("index-digest", "index", "index_digest is another", |b| {
            b.edits.contents = edit(|c: &mut Contents| c.index_digest[31] ^= 1);
        }),
    ]
    .into_iter()
    .chain(maxima())
    .collect()
}

fn maxima() -> Vec<Vector> {
    let set = |change: fn(&mut Maxima)| move |b: &mut Bundle| b.edits.maxima = edit(change);
    let contents = |change: fn(&mut Contents)| move |b: &mut Bundle| b.edits.contents = edit(change);
    let disk = |name, comment, tree, change: fn(&mut Maxima)| {
        let from = Bundle::new(&[("main", tree)], Packing::default());
        reject_from(from, &format!("maxima-disk-{name}"), "header", comment, set(change))
    };
    vec![
        bad("maxima-piece-log2-under", "pieces of 2048 bytes", set(|m| m.piece_log2 = 11)),
        bad("maxima-piece-log2-over", "pieces of 128 MiB", set(|m| m.piece_log2 = 27)),
        bad("maxima-window-log-under", "a window of 512 bytes", set(|m| m.window_log = 9)),
        bad("maxima-window-log-over", "a window of 4 GiB", set(|m| m.window_log = 32)),
        reject("limit-window", "limit", "a window of 256 MiB", set(|m| m.window_log = 28)),
        bad("maxima-refs", "one ref more than there is", set(|m| m.refs += 1)),
        bad("maxima-depth", "one component more than there is", set(|m| m.depth += 1)),
        bad("maxima-entries", "one entry less than there is", set(|m| m.entries -= 1)),
        bad("maxima-paths", "one byte of paths more than there is", set(|m| m.paths += 1)),
        bad("maxima-inodes", "one inode less than there is", set(|m| m.inodes -= 1)),
        bad("maxima-objects", "one object more than there is", set(|m| m.objects += 1)),
        bad("maxima-logical", "one byte more than there is", set(|m| m.logical += 1)),
        bad("maxima-disk", "one block less than there is", set(|m| m.disk -= 4096)),
        disk("holes", "a hole of 16 blocks counts", runs(), |m| m.disk += 65_536),
        disk("directory", "113 names of 20 bytes take a block more", many_names(113), |m| m.disk += 4096),
        disk("wide-directory", "114 names of 20 bytes take one block", many_names(114), |m| m.disk -= 4096),
        disk("symlink", "a link of 59 bytes takes a block", small_inodes(), |m| m.disk += 4096),
        disk("xattrs", "extended attributes of 65 bytes in all are counted as nothing", small_inodes(), |m| {
            m.disk -= 4096;
        }),
        bad("maxima-chunks", "one chunk more than there is", set(|m| m.chunks += 1)),
        bad("maxima-chunks-stored", "one byte more than the chunks have", set(|m| m.chunks_stored += 1)),
        bad("maxima-chunk-len", "a longer chunk than there is", set(|m| m.chunk_len += 1)),
        bad("maxima-chunk-stored", "a longer stored chunk than there is", set(|m| m.chunk_stored += 1)),
        reject("limit-index-len", "limit", "an index of 1 TiB", contents(|c| c.index_len = 1 << 40)),
        reject("limit-layout-len", "limit", "a layout of 1 TiB", contents(|c| c.layout_len = 1 << 40)),
        reject("limit-index-stored", "limit", "an index stored in 1 TiB", contents(|c| c.index_stored = 1 << 40)),
        reject("limit-layout-stored", "limit", "a layout stored in 1 TiB", contents(|c| c.layout_stored = 1 << 40)),
        reject("limit-chunk-stored", "limit", "a chunk stored in 4 GiB", set(|m| m.chunk_stored = u32::MAX)),
        reject("limit-chunk-len", "limit", "a chunk of 4 GiB", set(|m| m.chunk_len = u32::MAX)),
        reject("limit-file-len", "limit", "the file's length passes 2^64-1", set(|m| m.chunks_stored = u64::MAX)),
    ]
}

fn area() -> Vec<Vector> {
    let bodies = |bodies: &'static [(u16, &'static [u8])]| {
        move |b: &mut Bundle| {
            b.area_len = 128;
            b.edits.area = edit(move |area: &mut Vec<u8>| {
                let mut envelopes = Vec::new();
                for (kind, body) in bodies {
                    envelopes.extend(kind.to_le_bytes());
                    envelopes.extend(narrow(body.len()).to_le_bytes());
                    envelopes.extend(*body);
                }
                area[4..4 + envelopes.len()].copy_from_slice(&envelopes);
            });
        }
    };
    let area = |change: fn(&mut Vec<u8>)| move |b: &mut Bundle| b.edits.area = edit(change);
    let unknown = {
        let mut bundle = small();
        bodies(&[(3, b"reserved"), (700, b"later")])(&mut bundle);
        bundle
    };
    vec![
        bad("area-len-under", "area_len is 63", area(|area| area[..4].copy_from_slice(&63_u32.to_le_bytes()))),
        bad(
            "area-len-over",
            "area_len is 1048577",
            area(|area| area[..4].copy_from_slice(&1_048_577_u32.to_le_bytes())),
        ),
        bad("area-order", "kind 701 before kind 700", bodies(&[(701, b"x"), (700, b"x")])),
        bad("area-twice", "an envelope twice", bodies(&[(700, b"x"), (700, b"x")])),
        bad("area-fill", "the last byte of the fill is 1", area(|area| *area.last_mut().expect("it has fill") = 1)),
        bad(
            "area-overrun",
            "an envelope of 23 bytes where 22 are left",
            area(|area| area[4..10].copy_from_slice(&[0xbc, 2, 23, 0, 0, 0])),
        ),
        bad(
            "area-no-end",
            "an envelope fills the area to its BLAKE3, without an end",
            area(|area| area[4..10].copy_from_slice(&[0xbc, 2, 22, 0, 0, 0])),
        ),
        bad("area-blake3", "area_blake3 is another", |b| {
            b.edits.file = edit(|file: &mut Vec<u8>| {
                let root_len = u32::from_le_bytes([file[12], file[13], file[14], file[15]]);
                let end = 32 + usize::try_from(root_len).expect("32 bits") + 64;
                file[end - 1] ^= 1;
            });
        }),
        accept("area-unknown-kind", "two envelopes of kinds that nobody knows", unknown),
    ]
}
