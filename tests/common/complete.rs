//! Completes a delta bundle with its bases: checks the wanted index, and each carried object (delta 9.2).

use std::collections::BTreeMap;

use sealift::Bundle;
use sealift_format::{BaseRange, Chunk, Delta, Layout, Row};
use sealift_verify::carried::{CarriedChecker, prefix_of};
use sealift_verify::content::{ChunkDecoder, Content, ContentError};
use sealift_verify::objects::{Checked, VerityTable};
use sealift_verify::ostree::OsTreeFiles;
use sealift_verify::read_plan::ReadPlan;

use crate::bytes::{hash, wide};
use crate::reader::open_whole;

fn at(number: impl TryInto<usize>) -> usize {
    number.try_into().ok().expect("vectors are small")
}

/// Completes the delta bundle in this file with its bases, and checks all objects, including those of the bases.
///
/// # Errors
/// Returns an error if the difference does not match its bases, or an object does not match.
pub fn complete(delta: Delta, file: &[u8], bases: &[&[u8]]) -> Result<Bundle, ContentError> {
    let opened: Vec<Bundle> = bases.iter().map(|file| open_whole(file).expect("a base is taken")).collect();
    let contents: Vec<Vec<u8>> = opened.iter().zip(bases).flat_map(|(base, file)| contents(base, file)).collect();
    let bundle = delta.clone().complete(&opened.iter().map(|base| &base.index).collect::<Vec<_>>())?;
    let (whole, carried) = (check_all(&bundle, file, &contents), check_carried(&delta, file, &contents));
    // A fault in an object is found even without the wanted index.
    match (&whole, &carried) {
        (Ok(()), Err(error)) => panic!("what it carries is refused where what it makes is sound: {error}"),
        (Err(ContentError::Object { .. } | ContentError::Piece { .. }), Ok(())) => panic!("what it carries is taken"),
        _ => {}
    }
    whole.map(|()| bundle)
}

/// Checks the carried objects by themselves.
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
    let (plan, files) = (ReadPlan::all(bundle.into()), OsTreeFiles::new(bundle));
    let mut table = VerityTable::new(bundle);
    let mut large: BTreeMap<_, _> = files.large(bundle).into_iter().collect();
    large.retain(|object, _| bundle.layout.is_stored(*object));
    let mut decoder = ChunkDecoder::default();
    for (number, stored) in stored_chunks(bundle.head.chunks_at(), &bundle.layout, file) {
        let chunk = &bundle.layout.chunks[number.at()];
        let prefix = prefix(bundle.layout.prefix_of(chunk), contents);
        let decoded = decoder.decode(bundle, number, stored, &prefix)?;
        for content in plan.contents(bundle.into(), number, decoded) {
            let content = content?;
            if let (Some(piece), Some(files)) = (content.portion.piece, large.get_mut(&content.portion.object)) {
                files.take(bundle, piece, decoded);
            }
            table.take(Checked::new(bundle, &files, &content)?);
        }
    }
    for portion in
        plan.without_data(bundle.into()).into_iter().filter(|portion| bundle.layout.is_stored(portion.object))
    {
        table.take(Checked::new(bundle, &files, &Content::check(bundle.into(), portion, &[])?)?);
    }
    for mut files in large.into_values() {
        while files.take_bare(bundle) {}
        files.check(bundle)?;
    }
    // What the chunks hold is checked first.
    for (number, object) in Row::all(bundle.index.objects()).filter(|(number, _)| !bundle.layout.is_stored(*number)) {
        let content = contents.iter().find(|content| hash(content) == object.id).expect("a base has it");
        let mut of_it = files.of(bundle, number);
        of_it.push(content);
        of_it.check(bundle)?;
        table.take(Checked::Object { object: number, digest: sealift_format::verity::digest(content) });
    }
    table.check(bundle).map(drop)
}

fn stored_chunks<'a>(
    chunks_at: u64,
    layout: &'a Layout,
    file: &'a [u8],
) -> impl Iterator<Item = (Row<Chunk>, &'a [u8])> {
    let stored = move |offset: u64, len: u32| &file[at(chunks_at + offset)..at(chunks_at + offset) + at(len)];
    Row::all(&layout.chunks).map(move |(row, chunk)| (row, stored(chunk.offset, chunk.stored_len)))
}

fn prefix(ranges: &[BaseRange], contents: &[Vec<u8>]) -> Vec<u8> {
    let part = |range: &BaseRange| &contents[range.object.at()][at(range.offset)..at(range.offset + range.len)];
    ranges.iter().flat_map(part).copied().collect()
}

/// Returns the content of each object of a bundle that carries all its objects.
fn contents(bundle: &Bundle, file: &[u8]) -> Vec<Vec<u8>> {
    let (mut decoder, plan) = (ChunkDecoder::default(), ReadPlan::all(bundle.into()));
    let mut contents: Vec<Vec<u8>> = bundle.index.objects().iter().map(|object| vec![0; at(object.size)]).collect();
    for (number, stored) in stored_chunks(bundle.head.chunks_at(), &bundle.layout, file) {
        let decoded = decoder.decode(bundle, number, stored, &[]).expect("a base is sound");
        for content in plan.contents(bundle.into(), number, decoded) {
            let content = content.expect("a base is sound");
            for (start, data) in content.extents() {
                contents[content.portion.object.at()][at(start)..][..data.len()].copy_from_slice(data);
            }
        }
    }
    let is_sound = contents.iter().zip(bundle.index.objects()).all(|(content, object)| hash(content) == object.id);
    assert!(is_sound && wide(contents.len()) == bundle.head.root().maxima.objects, "a base is sound");
    contents
}
