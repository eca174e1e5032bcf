//! Completes a delta bundle with its bases: checks the wanted index, and each carried object (delta 9.2).

use std::collections::BTreeMap;

use sealift::Bundle;
use sealift_format::{Delta, Object, PartOf, Row};
use sealift_verify::carried::{CarriedChecker, prefix_of};
use sealift_verify::content::{ChunkDecoder, Content, ContentError};
use sealift_verify::objects::{Checked, VerityTable};
use sealift_verify::ostree::OsTreeFiles;
use sealift_verify::read_plan::ReadPlan;

use crate::bytes::{hash, wide};
use crate::made::{Sources, check_all_made, stored_chunks, stored_contents};
use crate::reader::open_whole;

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
        (Err(ContentError::Object { .. } | ContentError::Piece { .. }), Ok(()))
            if bundle.layout.recipes.made.is_empty() =>
        {
            panic!("what it carries is taken")
        }
        _ => {}
    }
    whole.map(|()| bundle)
}

/// Checks the carried objects by themselves.
fn check_carried(delta: &Delta, file: &[u8], contents: &[Vec<u8>]) -> Result<(), ContentError> {
    let mut checker = CarriedChecker::new(delta);
    let sources = Sources { recipes: &delta.layout.recipes, bundle: None, bases: contents };
    for (number, stored) in stored_chunks(delta.head.chunks_at(), &delta.layout, file) {
        checker.check(delta, number, stored, &sources.prefix(prefix_of(delta, number))?)?;
    }
    while checker.check_bare(delta)?.is_some() {}
    Ok(())
}

/// Checks all objects of the completed bundle.
fn check_all(bundle: &Bundle, file: &[u8], contents: &[Vec<u8>]) -> Result<(), ContentError> {
    let (plan, files) = (ReadPlan::all(bundle.into()), OsTreeFiles::new(bundle));
    let mut table = VerityTable::new(bundle);
    let mut large: BTreeMap<_, _> = files.large(bundle).into_iter().collect();
    let mut decoder = ChunkDecoder::default();
    let sources = Sources { recipes: &bundle.layout.recipes, bundle: None, bases: contents };
    for (number, stored) in stored_chunks(bundle.head.chunks_at(), &bundle.layout, file) {
        let chunk = &bundle.layout.chunks[number.at()];
        let prefix = sources.prefix(bundle.layout.prefix_of(chunk))?;
        let decoded = decoder.decode(bundle, number, stored, &prefix)?;
        for content in plan.contents(bundle.into(), number, decoded) {
            let content = content?;
            if let (Some(piece), Some(files)) = (content.portion.piece, large.get_mut(&content.portion.object)) {
                files.take(bundle, piece, decoded);
            }
            table.take(Checked::new(bundle, &files, &content)?);
        }
    }
    for portion in plan.without_data(bundle.into()).into_iter().filter(|portion| is_at_hand(bundle, portion.object)) {
        table.take(Checked::new(bundle, &files, &Content::check(bundle.into(), portion, &[])?)?);
    }
    for mut files in large.into_values() {
        while files.take_bare(bundle) {}
        files.check(bundle)?;
    }
    // What the chunks hold is checked first.
    check_all_made(bundle, file, contents)?.into_iter().for_each(|checked| table.take(checked));
    let of_bases = |number| !bundle.layout.is_stored(number) && bundle.layout.recipes.of(number).is_none();
    for (number, object) in Row::all(bundle.index.objects()).filter(|(number, _)| of_bases(*number)) {
        let content = contents.iter().find(|content| hash(content) == object.id).expect("a base has it");
        let mut of_it = files.of(bundle, number);
        of_it.push(content);
        of_it.check(bundle)?;
        table.take(Checked::Object { object: number, digest: sealift_format::verity::digest(content) });
    }
    table.check(bundle).map(drop)
}

/// Returns whether an object or a leaf is in the bundle.
fn is_at_hand(bundle: &Bundle, object: Row<Object>) -> bool {
    object.at() >= bundle.index.objects().len() || bundle.layout.is_stored(object)
}

/// Returns the content of each object of a bundle that carries all its objects.
fn contents(bundle: &Bundle, file: &[u8]) -> Vec<Vec<u8>> {
    let stored = stored_contents(bundle, file, &[]).expect("a base is sound");
    let sources = Sources { recipes: &bundle.layout.recipes, bundle: Some((bundle, &stored)), bases: &[] };
    let content = |(number, object): (Row<Object>, &Object)| {
        let mut content = Vec::new();
        sources.read(PartOf::Object(number), 0..object.size, &mut content).expect("a base is sound");
        content
    };
    let contents: Vec<Vec<u8>> = Row::all(bundle.index.objects()).map(content).collect();
    let is_sound = contents.iter().zip(bundle.index.objects()).all(|(content, object)| hash(content) == object.id);
    assert!(is_sound && wide(contents.len()) == bundle.head.root().maxima.objects, "a base is sound");
    contents
}
