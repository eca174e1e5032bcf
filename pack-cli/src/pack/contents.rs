//! Builds the index and layout of packed contents.

use std::collections::HashMap;

use sealift_format::num;
use sealift_format::verity;
use sealift_format::{Holds, Holes, IndexBuilder, Large, Layout, Object, Piece, Row, Rows};

use super::PackRef;
use super::recipe::{Containers, Numbers, add_recipes};
use super::sequence::{PackedObject, Sequenced};
use super::writer::ChunkWriter;
use crate::Error;
use crate::output::Spool;
use sealift_store::contents::{Commits, add_to_index};
use sealift_store::source::Source;

/// The packed object of each row of an object table.
pub(super) type PackedRows = Vec<Row<PackedObject>>;

/// Builds the index. Returns its bytes, and the packed objects in the order of its object table.
pub(super) fn index_bytes(refs: &[PackRef<'_>], packed: &Sequenced) -> Result<(Vec<u8>, PackedRows), Error> {
    let mut builder = IndexBuilder::default();
    let xattrs: HashMap<(usize, u32), _> =
        packed.xattrs.iter().map(|(item, xattrs)| ((item.source, item.content), xattrs)).collect();
    let mut commits = Commits::default();
    for (number, from) in refs.iter().enumerate() {
        if let Source::Ostree(source) = from.source {
            let known = commits.add(number, source)?;
            builder.commit_ref(from.name, known, &source.collection);
            continue;
        }
        builder.begin_ref(from.name);
        let object_of = &packed.object_of[number];
        add_to_index(&mut builder, from.source, |content| {
            let object = object_of[num::at(content)];
            (object.number(), xattrs.get(&(number, content)).copied())
        })?;
    }
    commits.add_to(&mut builder, |source, content| packed.object_of[source][num::at(content)].number());
    let order: PackedRows = builder.contents().iter().filter_map(|content| Row::new(*content)).collect();
    let rows = || order.iter().map(|object| &packed.objects[object.at()]);
    let mut digests = verity::VerityHasher::default();
    rows().for_each(|object| digests.update(&object.verity));
    let objects = rows().map(PackedObject::row);
    let bytes = builder.finish(objects, &digests.finish())?;
    Ok((bytes, order))
}

/// Builds the layout; `order` is that of [`index_bytes`].
pub(super) fn build_layout(
    packed: &Sequenced,
    mut writer: ChunkWriter,
    order: &[Row<PackedObject>],
    containers: Option<&Containers>,
    hot_set: bool,
) -> Result<(Layout, Spool), Error> {
    let mut row_of: Vec<Option<Row<Object>>> = vec![None; packed.objects.len()];
    for (row, object) in Rows::new(0..u32::MAX).zip(order) {
        row_of[object.at()] = Some(row);
    }
    let leaves = containers.map_or_else(Vec::new, |_| leaves_of(packed, order.len(), &mut row_of));
    let order = &[order, &leaves].concat();
    let made = containers.map(|containers| containers.segments(packed)).unwrap_or_default();
    let hot = writer.close()?;
    let mut layout = Layout {
        landmark: hot_set.then_some(hot),
        grouped: writer.grouped.iter().filter_map(|object| row_of[object.at()]).collect(),
        chunks: writer.chunks,
        ..Layout::default()
    };
    for (object, number) in Rows::new(0..u32::MAX).zip(order) {
        let from = &packed.objects[number.at()];
        if !from.pieces().is_empty() {
            let first_piece = num::fit(layout.pieces.len(), "the number of pieces")?;
            layout.large.push(Large { object, first_piece });
            layout.pieces.extend(from.pieces().iter().map(|(job, chaining_value)| Piece {
                chunk: job.map(|job| writer.chunk_of_job[job]),
                chaining_value: *chaining_value,
            }));
        }
        if !made.contains_key(number) {
            holes_of(&mut layout, object, from)?;
        }
    }
    if let Some(containers) = containers {
        layout.recipes.first_leaf = num::fit(order.len() - leaves.len(), "the number of objects")?;
        layout.recipes.leaves = leaves.iter().map(|leaf| packed.objects[leaf.at()].row()).collect();
        let numbers = Numbers { packed, row_of: &row_of, views: HashMap::new() };
        add_recipes(&mut layout, containers, &made, &numbers)?;
    }
    debug_assert!(layout.chunks.iter().all(|chunk| chunk.holds != Holds::Group(0..0)), "groups have objects");
    Ok((layout, writer.spool))
}

/// Returns the packed objects that only recipes use, and numbers them from `first` on.
fn leaves_of(packed: &Sequenced, first: usize, row_of: &mut [Option<Row<Object>>]) -> PackedRows {
    let mut leaves = PackedRows::new();
    let mut rows = Rows::new(0..u32::MAX).skip(first);
    for object in packed.object_of.last().map_or(&[][..], Vec::as_slice) {
        if row_of[object.at()].is_none() {
            row_of[object.at()] = rows.next();
            leaves.push(*object);
        }
    }
    leaves
}

const HOLES: &str = "the number of holes";

/// Adds the holes of an object to the layout.
pub(super) fn holes_of(layout: &mut Layout, object: Row<Object>, from: &PackedObject) -> Result<(), Error> {
    if !from.holes().is_empty() {
        let first = num::fit(layout.extents.len(), HOLES)?;
        layout.extents.extend(from.holes());
        let end = num::fit(layout.extents.len(), HOLES)?;
        layout.holes.push(Holes { object, extents: first..end });
    }
    Ok(())
}
