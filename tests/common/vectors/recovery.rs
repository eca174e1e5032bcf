//! Recovery files (recovery.md).

use super::*;
use crate::bytes::hash;
use crate::recovery::{Recovery, crc};
use crate::vectors::volume::{split, three};

fn of(name: &str, expect: &str, comment: &str, bytes: Vec<u8>) -> Vector {
    vector(name, expect, comment, bytes).check(Check::Recovery)
}

/// Returns the recovery files of the vectors' volumes, of which any two can be lost.
fn two() -> Vec<Recovery> {
    Recovery::of(&three().encode(), &split(), 2, 1)
}

/// Returns the first of them with one fault.
fn bad(name: &str, kind: &str, comment: &str, edit: impl FnOnce(&mut Recovery)) -> Vector {
    let mut recovery = two().swap_remove(0);
    edit(&mut recovery);
    of(name, kind, comment, recovery.encode())
}

/// Returns one of a bundle whose root declares a layout that is too long.
fn limit() -> Vector {
    let mut over = three();
    over.edits.contents = edit(|contents: &mut crate::bundle::Contents| contents.layout_len = (1 << 30) + 1);
    let bytes = over.encode();
    let root_len = u32::from_le_bytes(bytes[12..16].try_into().expect("4 bytes"));
    let signed = 32 + usize::try_from(root_len).expect("vectors are small");
    bad("recovery-limit", "limit", "a layout of more than 2^30 bytes", |it| {
        let front = bytes[..it.front.len()].to_vec();
        assert_eq!(bytes.len(), three().encode().len(), "the root has another length");
        (it.set, it.front) = (hash(&bytes[..signed]), front);
    })
}

/// Returns a recovery file with others, and volumes.
fn set(name: &str, expect: &str, comment: &str, bytes: Vec<u8>, with: &[&str]) -> Vector {
    let mut vector = of(name, expect, comment, bytes);
    vector.bases = with.iter().map(|name| (*name).to_owned()).collect();
    vector
}

pub(super) fn vectors() -> Vec<Vector> {
    let bundle = three().encode();
    let [one, other] = two().try_into().expect("there are two");
    let runs = Recovery::of(&bundle, &split(), 1, 2).swap_remove(0);
    let whole = Recovery { starts: vec![one.offset], ..Recovery::of(&bundle, &split()[..1], 1, 5).swap_remove(0) };
    let mut flipped = one.encode();
    flipped[100] ^= 1;
    let mut trailing = one.encode();
    trailing.push(0);
    let mut cut = one.encode();
    cut.pop();
    let at_crc = 64;
    let mut lies = one.clone();
    for record in &mut lies.records {
        // Another shard, with a checksum that agrees.
        record[5] ^= 1;
        let sum = crc(&record[..64]);
        record[at_crc..at_crc + 4].copy_from_slice(&sum);
        let end = at_crc + 4 * 5;
        let sum = crc(&record[at_crc..end]);
        record[end..end + 4].copy_from_slice(&sum);
    }
    vec![
        of("good-recovery-1", "ok", "recovery file 1 of 2, of volumes", one.encode()),
        of("good-recovery-2", "ok", "recovery file 2 of 2", other.encode()),
        of("good-recovery-runs", "ok", "the only recovery file, of runs of two shards", runs.encode()),
        of("good-recovery-whole", "ok", "the only recovery file of a bundle that is one column", whole.encode()),
        set(
            "good-recovery-repair",
            "ok",
            "volumes 2 and 4 are lost",
            one.encode(),
            &["good-recovery-2", "good-volume-1", "good-volume-3"],
        ),
        set(
            "good-recovery-first",
            "ok",
            "volume 1 is lost, and a byte of volume 2 has changed, in another shard of each codeword",
            one.encode(),
            &["good-recovery-2", "volume-chunk-digest", "good-volume-3", "good-volume-4"],
        ),
        set(
            "good-recovery-run",
            "ok",
            "volume 3 is lost, of runs of two shards",
            runs.encode(),
            &["good-volume-1", "good-volume-2", "good-volume-4"],
        ),
        set(
            "good-recovery-apart",
            "ok",
            "volumes 2 and 4 are lost, whose shards are in different codewords, and there is one recovery file",
            one.encode(),
            &["good-volume-1", "good-volume-3"],
        ),
        bad("recovery-magic", "header", "a bundle's magic", |it| it.magic = *b"\x89SLFT\r\n\x1a"),
        of("recovery-cut-in-header", "truncated", "60 bytes of a recovery file", one.encode()[..60].to_vec()),
        bad("recovery-version", "unsupported", "version 1", |it| it.version = 1),
        of("recovery-header-blake3", "header", "a flipped bit of header_blake3", flipped),
        bad("recovery-kind", "unsupported", "kind 2", |it| it.kind = 2),
        bad("recovery-reserved", "header", "a reserved byte that is not zero", |it| it.reserved = 1),
        bad("recovery-number-zero", "header", "recovery file 0", |it| it.number = 0),
        bad("recovery-number-over", "header", "recovery file 3 of 2", |it| it.number = 3),
        bad("recovery-offset-under", "header", "the body begins where the head ends, and not behind it", |it| {
            it.offset = it.head_len.into();
        }),
        bad("recovery-offset-over", "header", "the body begins where the bundle ends", |it| it.offset = it.file_len),
        bad("recovery-len-overflow", "header", "a length that a file cannot have", |it| it.len = Some(u64::MAX)),
        of("recovery-short", "truncated", "the last byte is missing", cut),
        of("recovery-trailing", "trailing", "a byte behind the records", trailing),
        bad("recovery-geometry-blake3", "header", "a flipped bit of geometry_blake3", |it| it.geometry_flip = 1),
        bad("recovery-shard-len-zero", "header", "shards of no bytes", |it| (it.shard_len, it.pad) = (0, 0)),
        bad("recovery-shard-len-odd", "header", "shards of 96 bytes", |it| it.shard_len = 96),
        bad("recovery-shard-len-over", "header", "shards of 65,600 bytes", |it| it.shard_len = 65_600),
        bad("recovery-run-zero", "header", "runs of no shards", |it| it.run = 0),
        bad("recovery-parity-under", "header", "fewer recovery shards than files", |it| it.parity = 1),
        bad("recovery-pad", "header", "64 zeros before a column", |it| it.pad = 64),
        bad("recovery-first-start", "header", "the first column begins a byte behind the front", |it| {
            it.starts[0] += 1;
        }),
        bad("recovery-starts-order", "header", "two columns begin at one place", |it| it.starts[1] = it.starts[0]),
        bad("recovery-start-over", "header", "the last column begins where the bundle ends", |it| {
            *it.starts.last_mut().expect("there are columns") = it.file_len;
        }),
        bad("recovery-no-column", "header", "no column", |it| {
            it.starts.clear();
            it.fill = vec![0; 32 + it.fill.len()];
        }),
        bad("recovery-points", "header", "65,537 points", |it| (it.run, it.parity) = (16_384, 1 << 15)),
        bad("recovery-len", "header", "a record that the geometry does not have", |it| {
            it.records.push(it.records[0].clone());
        }),
        bad("recovery-fill", "header", "a byte between geometry and records is not zero", |it| {
            *it.fill.last_mut().expect("there is a fill") = 1;
        }),
        bad("recovery-set", "header", "the set of another bundle", |it| it.set[0] ^= 1),
        bad("recovery-head-len", "header", "head_len is a byte less than the head has", |it| it.head_len -= 1),
        bad("recovery-file-len", "header", "file_len is not that of the root", |it| it.file_len -= 1),
        bad("recovery-offset", "header", "the body begins a byte behind the layout", |it| {
            (it.offset, it.starts[0]) = (it.offset + 1, it.starts[0] + 1);
            it.front.push(it.fill.pop().expect("there is a fill"));
        }),
        limit(),
        bad("recovery-area-blake3", "header", "a flipped bit of the signature area", |it| {
            let at = usize::try_from(it.head_len).expect("it fits") - 1;
            it.front[at] ^= 1;
        }),
        bad("recovery-layout-blake3", "layout", "a flipped bit of the layout", |it| {
            *it.front.last_mut().expect("there is a front") ^= 1;
        }),
        bad("recovery-shard", "chunk", "a flipped bit of a recovery shard", |it| it.records[0][0] ^= 1),
        bad("recovery-checksum", "chunk", "a flipped bit of a shard's checksum", |it| it.records[0][at_crc] ^= 1),
        bad("recovery-record-fill", "chunk", "the last byte of a record is not zero", |it| {
            *it.records[0].last_mut().expect("there is a fill") = 1;
        }),
        set(
            "recovery-too-little",
            "truncated",
            "volumes 1 and 2 are lost, which have shards in one codeword, and there is one recovery file",
            one.encode(),
            &["good-volume-3", "good-volume-4"],
        ),
        set(
            "recovery-lies",
            "chunk",
            "volume 2 is lost, and the recovery shards are others, with checksums that agree",
            lies.encode(),
            &["good-volume-1", "good-volume-3", "good-volume-4"],
        ),
    ]
}
