//! A delta bundle with its bases: the wanted index, and each object that it carries (spec 4.6, 6.7, 7.5 and 8).

use std::collections::BTreeMap;
use std::ops::Range;

use sealift::Bundle;
use sealift_format::{BaseRange, Delta, Holds, Layout, data_ranges};
use sealift_verify::carried::{CarriedChecker, prefix_of};
use sealift_verify::content::{ChunkDecoder, ContentError, group_objects, piece_range};
use sealift_verify::objects::{Bare, Checked, PieceMap, VerityTable, check_bare, check_chunk, without_data};
use sealift_verify::ostree::OsTreeFiles;

use crate::bytes::{hash, wide};
use crate::reader::open_whole;

fn at(number: impl TryInto<usize>) -> usize {
    number.try_into().ok().expect("vectors are small")
}

/// Completes the delta bundle of this file with bundles that are its bases, and checks all objects, those of the bases included.
///
/// # Errors
/// The difference does not fit its bases, or an object is not what it is to be.
pub fn complete(delta: Delta, file: &[u8], bases: &[&[u8]]) -> Result<Bundle, ContentError> {
    let opened: Vec<Bundle> = bases.iter().map(|file| open_whole(file).expect("a base is taken")).collect();
    let contents: Vec<Vec<u8>> = opened.iter().zip(bases).flat_map(|(base, file)| contents(base, file)).collect();
    let bundle = delta.clone().complete(&opened.iter().map(|base| &base.index).collect::<Vec<_>>())?;
    let (whole, carried) = (check_all(&bundle, file, &contents), check_carried(&delta, file, &contents));
    // Who has no wanted index finds what is wrong with an object all the same.
    match (&whole, &carried) {
        (Ok(()), Err(error)) => panic!("what it carries is refused where what it makes is sound: {error}"),
        (Err(ContentError::Object { .. } | ContentError::Piece { .. }), Ok(())) => panic!("what it carries is taken"),
        _ => {}
    }
    whole.map(|()| bundle)
}

/// Checks what the delta carries, by itself.
fn check_carried(delta: &Delta, file: &[u8], contents: &[Vec<u8>]) -> Result<(), ContentError> {
    let mut checker = CarriedChecker::new(delta);
    for (number, stored) in stored_chunks(delta.head.chunks_at(), &delta.layout, file) {
        checker.check(delta, number, stored, &prefix(prefix_of(delta, number), contents))?;
    }
    while checker.check_bare(delta)?.is_some() {}
    Ok(())
}

/// Checks all objects of the completed bundle.
fn check_all(bundle: &Bundle, file: &[u8], contents: &[Vec<u8>]) -> Result<(), ContentError> {
    let (pieces, files) = (PieceMap::new(bundle), OsTreeFiles::new(bundle));
    let mut table = VerityTable::new(bundle);
    let mut large: BTreeMap<_, _> = files.large(bundle).into_iter().collect();
    for (number, object) in (0..).zip(bundle.index.objects()) {
        if !bundle.layout.is_carried(number) {
            let content = contents.iter().find(|content| hash(content) == object.id).expect("a base has it");
            table.take(Checked::Object { object: number, digest: sealift_format::verity::digest(content) });
            large.remove(&number);
        }
    }
    let mut decoder = ChunkDecoder::default();
    for (number, stored) in stored_chunks(bundle.head.chunks_at(), &bundle.layout, file) {
        let chunk = &bundle.layout.chunks[at(number)];
        let prefix = prefix(bundle.layout.prefix_of(chunk), contents);
        let decoded = decoder.decode(bundle, number, stored, &prefix)?;
        check_chunk(bundle, &pieces, &files, number, decoded, |checked| {
            if let Checked::Piece { object, piece, .. } = checked
                && let Some(files) = large.get_mut(&object)
            {
                files.take(bundle, piece, decoded);
            }
            table.take(checked);
        })?;
    }
    for bare in without_data(bundle) {
        let (Bare::Object(object) | Bare::Piece(object, _)) = bare;
        if bundle.layout.is_carried(object) {
            table.take(check_bare(bundle, &files, bare)?);
        }
    }
    for mut files in large.into_values() {
        while files.take_bare(bundle) {}
        files.check(bundle)?;
    }
    table.check(bundle)
}

fn stored_chunks<'a>(chunks_at: u64, layout: &'a Layout, file: &'a [u8]) -> impl Iterator<Item = (u32, &'a [u8])> {
    let stored = move |offset: u64, len: u32| &file[at(chunks_at + offset)..at(chunks_at + offset) + at(len)];
    (0..).zip(layout.chunks.iter().map(move |chunk| stored(chunk.offset, chunk.stored_len)))
}

fn prefix(ranges: &[BaseRange], contents: &[Vec<u8>]) -> Vec<u8> {
    let part = |range: &BaseRange| &contents[at(range.object)][at(range.offset)..at(range.offset + range.len)];
    ranges.iter().flat_map(part).copied().collect()
}

/// The content of each object of a bundle that carries all of them.
fn contents(bundle: &Bundle, file: &[u8]) -> Vec<Vec<u8>> {
    let mut decoder = ChunkDecoder::default();
    let chunks: Vec<Vec<u8>> = stored_chunks(bundle.head.chunks_at(), &bundle.layout, file)
        .map(|(number, stored)| decoder.decode(bundle, number, stored, &[]).expect("a base is sound").to_vec())
        .collect();
    let mut contents: Vec<Vec<u8>> = bundle.index.objects().iter().map(|object| vec![0; at(object.size)]).collect();
    let mut put = |object: u32, within: Range<u64>, mut data: &[u8]| {
        for range in data_ranges(bundle.layout.holes_of(object), within) {
            let (part, rest) = data.split_at(at(range.end - range.start));
            contents[at(object)][at(range.start)..at(range.end)].copy_from_slice(part);
            data = rest;
        }
    };
    for (chunk, decoded) in bundle.layout.chunks.iter().zip(&chunks) {
        if let Holds::Group(range) = &chunk.holds {
            for (object, data) in group_objects(bundle, bundle.layout.group(range), decoded) {
                put(object, 0..bundle.index.object(object).size, data);
            }
        }
    }
    for large in &bundle.layout.large {
        for (number, piece) in (0..).zip(bundle.layout.pieces_of(large.object)) {
            if let Some(chunk) = piece.chunk {
                put(large.object, piece_range(bundle, large.object, number), &chunks[at(chunk)]);
            }
        }
    }
    let is_sound = contents.iter().zip(bundle.index.objects()).all(|(content, object)| hash(content) == object.id);
    assert!(is_sound && wide(contents.len()) == bundle.head.root().maxima.objects, "a base is sound");
    contents
}
