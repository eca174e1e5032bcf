//! Builds the index and layout of packed contents.

use std::collections::HashMap;

use sealift_format::num;
use sealift_format::verity;
use sealift_format::{Holds, Holes, Index, IndexBuilder, Large, Layout, Object, Piece};

use super::PackRef;
use super::sequence::{PackedObject, Sequenced};
use super::writer::ChunkWriter;
use crate::Error;
use sealift_store::contents::{Commits, lay_down, row};
use sealift_store::source::Source;

/// Builds the index. Returns it with each packed object's number in the index's object table.
pub(super) fn build_index(refs: &[PackRef<'_>], packed: &Sequenced) -> Result<(Index, Vec<u32>), Error> {
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
        lay_down(&mut builder, from.source, |content| {
            let object = object_of[num::at(content)];
            (object, xattrs.get(&(number, content)).copied())
        });
    }
    commits.lay_down(&mut builder, |source, content| *row(&packed.object_of[source], content));
    let rows: Vec<&PackedObject> =
        builder.contents().iter().map(|&packed_number| row(&packed.objects, packed_number)).collect();
    let mut digests = Vec::with_capacity(rows.len() * 32);
    digests.extend(rows.iter().flat_map(|object| object.verity));
    let mut numbers = vec![u32::MAX; packed.objects.len()];
    for (number, &packed_number) in (0..).zip(builder.contents()) {
        numbers[num::at(packed_number)] = number;
    }
    let objects = rows.iter().map(|object| Object { id: object.id, size: object.size });
    let bytes = builder.finish(objects, &verity::digest(&digests))?;
    // An index that the parser would refuse is not written.
    Ok((Index::parse(bytes, u64::MAX)?, numbers))
}

/// Builds the layout; `numbers` are those of [`build_index`].
pub(super) fn build_layout(
    packed: &Sequenced,
    writer: ChunkWriter,
    numbers: &[u32],
    hot_set: bool,
) -> (Layout, super::Spool) {
    let number = |object: u32| *row(numbers, object);
    let mut layout = Layout {
        grouped: writer.grouped.iter().map(|object| number(*object)).collect(),
        chunks: writer.chunks,
        ..Layout::default()
    };
    let mut order: Vec<(u32, &PackedObject)> = numbers.iter().copied().zip(&packed.objects).collect();
    order.sort_by_key(|(number, _)| *number);
    for (object, from) in order {
        if !from.pieces.is_empty() {
            let first_piece = u32::try_from(layout.pieces.len()).unwrap_or(u32::MAX);
            layout.large.push(Large { object, first_piece });
            layout.pieces.extend(from.pieces.iter().map(|(job, chaining_value)| Piece {
                chunk: job.map(|job| *row(&writer.chunk_of_job, job)),
                chaining_value: *chaining_value,
            }));
        }
        holes_of(&mut layout, object, from);
    }
    if hot_set {
        layout.landmark = Some(landmark(packed, &writer.chunk_of_job));
    }
    debug_assert!(layout.chunks.iter().all(|chunk| chunk.holds != Holds::Group(0..0)), "groups have objects");
    (layout, writer.spool)
}

/// Adds the holes of an object to the layout.
pub(super) fn holes_of(layout: &mut Layout, object: u32, from: &PackedObject) {
    if !from.holes.is_empty() {
        let first = u32::try_from(layout.extents.len()).unwrap_or(u32::MAX);
        layout.extents.extend(&from.holes);
        let end = u32::try_from(layout.extents.len()).unwrap_or(u32::MAX);
        layout.holes.push(Holes { object, extents: first..end });
    }
}

/// Returns the number of chunks of the jobs before the end of the hot set.
fn landmark(packed: &Sequenced, chunk_of_job: &[u32]) -> u32 {
    let jobs = packed.landmark.map_or(chunk_of_job.len(), num::at);
    chunk_of_job.iter().take(jobs).map(|chunk| chunk + 1).max().unwrap_or(0)
}
