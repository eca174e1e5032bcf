//! Volumes (volumes.md).

use super::*;
use crate::bytes::{hash, wide};
use crate::volume::Volume;

/// Returns a bundle of three chunks, one for each object.
pub(super) fn three() -> Bundle {
    let tree = dir([("a", file("one\n")), ("b", file("two\n")), ("c", file("three\n"))]);
    Bundle::new(&[("main", tree)], Packing { group: 1, ..Packing::default() })
}

/// Returns its volumes: one with the index alone, and one for each chunk.
pub(super) fn split() -> Vec<Volume> {
    Volume::split(&three().encode(), 1)
}

fn of(name: &str, expect: &str, comment: &str, bytes: Vec<u8>) -> Vector {
    vector(name, expect, comment, bytes).check(Check::Volume)
}

/// Returns volume 2 with one fault.
fn bad(name: &str, kind: &str, comment: &str, edit: impl FnOnce(&mut Volume)) -> Vector {
    let mut volume = split().swap_remove(1);
    edit(&mut volume);
    of(name, kind, comment, volume.encode())
}

/// Returns volume 2 of a bundle with one fault.
fn bad_bundle(name: &str, kind: &str, comment: &str, edit: impl FnOnce(&mut Bundle)) -> Vector {
    // What the volume says fits the bundle, and the bundle that is split is sound.
    let (mut bundle, mut volume) = (three(), split().swap_remove(1));
    edit(&mut bundle);
    let bytes = bundle.encode();
    let root_len = u32::from_le_bytes(bytes[12..16].try_into().expect("4 bytes"));
    let signed = 32 + usize::try_from(root_len).expect("vectors are small");
    let longer = wide(bytes.len()).wrapping_sub(volume.file_len);
    let front = volume.front.len() + bytes.len() - usize::try_from(volume.file_len).expect("vectors are small");
    volume.set = hash(&bytes[..signed]);
    volume.front = bytes[..front].to_vec();
    volume.offset = volume.offset.wrapping_add(longer);
    volume.file_len = wide(bytes.len());
    of(name, kind, comment, volume.encode())
}

/// Returns volume `number` in a set with others.
fn set(name: &str, expect: &str, comment: &str, bytes: Vec<u8>, with: &[&str]) -> Vector {
    let mut vector = of(name, expect, comment, bytes);
    vector.bases = with.iter().map(|name| (*name).to_owned()).collect();
    vector
}

pub(super) fn vectors() -> Vec<Vector> {
    let volumes = split();
    let [one, two, three_, four] = [0, 1, 2, 3].map(|at| volumes[at].clone());
    let mut flipped = two.encode();
    flipped[100] ^= 1;
    let mut trailing = two.encode();
    trailing.push(0);
    let mut cut = two.encode();
    cut.pop();
    let mut layout = two.encode();
    layout.truncate(112 + two.front.len() - 1);
    let mut index = one.clone();
    *index.slice.last_mut().expect("the index is there") ^= 1;
    let other = Volume::split(&reversion().encode(), 1);
    let signed = Volume::split(&roomier().encode(), 1);
    let halves = Volume::split(&three().encode(), 2);
    let mut gap = three_.clone();
    (gap.offset, gap.len, gap.slice) = (two.offset, two.len + gap.len, [&two.slice[..], &gap.slice].concat());
    let (mut longer, mut shorter) = (two.clone(), three_.clone());
    longer.slice.push(shorter.slice.remove(0));
    (longer.len, shorter.len, shorter.offset) = (longer.len + 1, shorter.len - 1, shorter.offset + 1);
    vec![
        of("good-volume-1", "ok", "volume 1 of 4, which has the index and no chunk", one.encode()),
        of("good-volume-2", "ok", "volume 2 of 4, of one chunk", two.encode()),
        of("good-volume-3", "ok", "volume 3 of 4", three_.encode()),
        of("good-volume-4", "ok", "volume 4 of 4, which ends with the bundle", four.encode()),
        of("good-volume-only", "ok", "the only volume of a bundle", whole().encode()),
        set(
            "good-volumes",
            "ok",
            "volume 3 with all others, in another order",
            three_.encode(),
            &["good-volume-4", "good-volume-1", "good-volume-2"],
        ),
        bad("volume-magic", "header", "a bundle's magic", |it| it.magic = *b"\x89SLFT\r\n\x1a"),
        of("volume-cut-in-header", "truncated", "60 bytes of a volume", two.encode()[..60].to_vec()),
        bad("volume-version", "unsupported", "version 1", |it| it.version = 1),
        of("volume-header-blake3", "header", "a flipped bit of header_blake3", flipped),
        bad("volume-kind", "unsupported", "kind 2", |it| it.kind = 2),
        bad("volume-reserved", "header", "a reserved byte that is not zero", |it| it.reserved = 1),
        bad("volume-number-zero", "header", "volume 0", |it| it.number = 0),
        bad("volume-number-over", "header", "volume 5 of 4", |it| it.number = 5),
        bad("volume-slice-empty", "header", "a slice of no bytes", |it| {
            (it.len, it.slice) = (0, Vec::new());
        }),
        bad("volume-slice-over", "header", "a slice that passes the bundle's end", |it| it.offset = it.file_len),
        bad("volume-slice-overflow", "header", "a slice whose end is more than 2^64-1", |it| it.offset = u64::MAX),
        bad("volume-last", "header", "volume 2 of 2 ends before the bundle does", |it| it.count = 2),
        {
            let mut last = four.clone();
            last.count = 5;
            of("volume-not-last", "header", "volume 4 of 5 ends where the bundle does", last.encode())
        },
        of("volume-cut-in-head", "truncated", "200 bytes of a volume", two.encode()[..200].to_vec()),
        bad("volume-set", "header", "the set of another bundle", |it| it.set[0] ^= 1),
        bad("volume-head-len-over", "header", "head_len is a byte more than the head has", |it| it.head_len += 1),
        bad("volume-head-len-under", "header", "head_len is a byte less than the head has", |it| it.head_len -= 1),
        bad("volume-file-len", "header", "file_len is not that of the root", |it| it.file_len += 1),
        bad("volume-area-blake3", "header", "a flipped bit of the signature area", |it| {
            let at = usize::try_from(it.head_len).expect("it fits") - 1;
            it.front[at] ^= 1;
        }),
        {
            let mut first = one.clone();
            (first.offset, first.len) = (first.offset + 1, first.len - 1);
            first.slice.remove(0);
            of("volume-first-offset", "header", "volume 1 begins a byte behind the front", first.encode())
        },
        {
            let mut first = one.clone();
            first.len -= 1;
            first.slice.pop();
            of("volume-first-short", "header", "volume 1 lacks the last byte of the index", first.encode())
        },
        {
            let mut second = two.clone();
            (second.offset, second.len) = (second.offset - 1, second.len + 1);
            second.slice.insert(0, *one.slice.last().expect("the index is there"));
            of("volume-index-again", "header", "volume 2 begins with the last byte of the index", second.encode())
        },
        bad_bundle("volume-limit", "limit", "a layout of more than 2^30 bytes", |it| {
            it.edits.contents = edit(|contents: &mut crate::bundle::Contents| contents.layout_len = (1 << 30) + 1);
        }),
        of("volume-cut-in-layout", "truncated", "the last byte of the layout is missing, and the slice", layout),
        bad_bundle("volume-layout-blake3", "layout", "the root has another layout_blake3", |it| {
            it.edits.contents = edit(|contents: &mut crate::bundle::Contents| contents.layout_blake3[0] ^= 1);
        }),
        bad_bundle("volume-layout-list", "layout", "the layout has no section 2", |it| {
            it.edits.layout = edit(|sections: &mut Vec<Section>| {
                sections.remove(1);
            });
        }),
        bad_bundle("volume-layout-chunk", "layout", "the layout has a chunk of no bytes", |it| {
            it.layout.chunks[2].len = 0;
        }),
        bad_bundle("volume-layout-left", "layout", "a byte behind section 1 of the layout", |it| {
            it.edits.layout = super::longer(1);
        }),
        bad_bundle("volume-layout-codec", "unsupported", "a chunk of codec 4", |it| it.layout.chunks[2].codec = 4),
        bad_bundle("volume-chunks", "header", "the root declares another number of chunks", |it| {
            it.edits.maxima = edit(|maxima: &mut crate::bundle::Maxima| maxima.chunks += 1);
        }),
        bad("volume-cut-begin", "header", "the slice begins within a chunk", |it| {
            (it.offset, it.len) = (it.offset + 1, it.len - 1);
            it.slice.remove(0);
        }),
        bad("volume-cut-end", "header", "the slice ends within a chunk", |it| {
            it.len -= 1;
            it.slice.pop();
        }),
        of("volume-short", "truncated", "the last byte of the slice is missing", cut),
        of("volume-trailing", "trailing", "a byte behind the slice", trailing),
        of("volume-index-blake3", "index", "a flipped bit of the index", index.encode()),
        bad("volume-chunk-digest", "chunk", "a flipped bit of the chunk", |it| it.slice[0] ^= 1),
        set("volumes-missing", "truncated", "volume 3 is not there", two.encode(), &["good-volume-1", "good-volume-4"]),
        set(
            "volumes-twice",
            "header",
            "volume 2 is there twice",
            two.encode(),
            &["good-volume-1", "good-volume-2", "good-volume-3", "good-volume-4"],
        ),
        set(
            "volumes-other-set",
            "header",
            "volume 2 of another version",
            other[1].encode(),
            &["good-volume-1", "good-volume-3", "good-volume-4"],
        ),
        set(
            "volumes-other-signatures",
            "header",
            "volume 2 of a copy with another signature area",
            signed[1].encode(),
            &["good-volume-1", "good-volume-3", "good-volume-4"],
        ),
        set(
            "volumes-other-count",
            "header",
            "volume 2 of the same bundle, split into 3",
            halves[1].encode(),
            &["good-volume-1", "good-volume-3", "good-volume-4"],
        ),
        set(
            "volumes-overlap",
            "header",
            "volume 3 begins where volume 2 does",
            gap.encode(),
            &["good-volume-1", "good-volume-2", "good-volume-4"],
        ),
        set(
            "volumes-cut",
            "header",
            "volume 2 has the first byte of the chunk of volume 3",
            longer.encode(),
            &["volume-cut-begin-3", "good-volume-1", "good-volume-4"],
        ),
        of("volume-cut-begin-3", "header", "volume 3 begins within a chunk", shorter.encode()),
        set(
            "volumes-short",
            "truncated",
            "the last byte of volume 2 is missing",
            two.encode()[..two.encode().len() - 1].to_vec(),
            &["good-volume-1", "good-volume-3", "good-volume-4"],
        ),
    ]
}

/// Returns another version of the bundle.
fn reversion() -> Bundle {
    let mut bundle = three();
    bundle.identity.version += 1;
    bundle
}

/// Returns the bundle with a longer signature area.
fn roomier() -> Bundle {
    let mut bundle = three();
    bundle.area_len = 128;
    bundle
}

/// Returns the only volume of a bundle.
fn whole() -> Volume {
    let mut volumes = split();
    let mut only = volumes.remove(0);
    only.count = 1;
    for volume in volumes {
        only.slice.extend(volume.slice);
        only.len += volume.len;
    }
    only
}
