//! Index and layout of what was packed.

use std::collections::HashMap;

use sealift_format::verity;
use sealift_format::{
    Attributes, Error as FormatError, Holds, Holes, Index, IndexBuilder, Large, Layout, Node, Object, Piece, Xattrs,
};

use super::PackRef;
use super::ostree::Commits;
use super::sequence::{PackedObject, Sequenced};
use super::writer::ChunkWriter;
use crate::progress::Phase;
use crate::source::Source;
use crate::tree::{NodeKind, Tree};
use crate::{Error, Progress};

/// Builds the index. Returns it with the number in its object table of each packed object.
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
            let object = object_of[usize::try_from(content).unwrap_or(usize::MAX)];
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
        numbers[usize::try_from(packed_number).unwrap_or(usize::MAX)] = number;
    }
    let objects = rows.iter().map(|object| Object { id: object.id, size: object.size });
    let bytes = builder.finish(objects, &verity::digest(&digests));
    // What the parser would refuse is not written.
    Ok((Index::parse(bytes, u64::MAX)?, numbers))
}

/// Builds the index of one source, as a tree of the ref `name`, by reading all of it.
pub(crate) fn index_by_reading(name: &str, source: &Source, jobs: usize, progress: &Progress) -> Result<Index, Error> {
    let sources = [source];
    let (items, ..) = super::order::access_order(&sources, None);
    let bytes = items.iter().map(|item| item.len).sum();
    progress.enter(Phase::Hashing, bytes, u64::try_from(items.len()).unwrap_or(0));
    let options = super::PackOptions { jobs, ..super::PackOptions::new(super::nobody()) };
    let plan = super::plan::Plan::new(items, 0, options.chunk_len);
    let (packed, _) = super::pipeline::Pipeline::new(&sources, plan, None, &options, progress).run(jobs.max(1))?;
    Ok(build_index(&[PackRef { name, source }], &packed)?.0)
}

/// Builds the index of one source, as a tree of the ref `name`, from the object id and the extended attributes of each content. The
/// fs-verity digests are left open.
pub(crate) fn index_of(name: &str, source: &Source, contents: &[([u8; 32], Xattrs)]) -> Result<Index, FormatError> {
    let mut numbers: HashMap<[u8; 32], u32> = HashMap::new();
    let mut objects = Vec::new();
    let object_of: Vec<u32> = (0..)
        .zip(contents)
        .map(|(content, (id, _))| {
            *numbers.entry(*id).or_insert_with(|| {
                objects.push(Object { id: *id, size: source.content_len(content) });
                u32::try_from(objects.len() - 1).unwrap_or(u32::MAX)
            })
        })
        .collect();
    let mut builder = IndexBuilder::default();
    builder.begin_ref(name);
    lay_down(&mut builder, source, |content| (*row(&object_of, content), Some(&row(contents, content).1)));
    let rows: Vec<Object> = builder.contents().iter().map(|&object| *row(&objects, object)).collect();
    Index::parse(builder.finish(rows.into_iter(), &[0; 32]), u64::MAX)
}

pub(super) fn row<T>(rows: &[T], number: u32) -> &T {
    &rows[usize::try_from(number).unwrap_or(usize::MAX)]
}

/// Lays a source's tree down in tree order (spec 6.1).
fn lay_down<'a>(builder: &mut IndexBuilder, source: &Source, content: impl Fn(u32) -> (u32, Option<&'a Xattrs>)) {
    let tree = source.tree();
    let mut inode_of = vec![None; tree.node_count()];
    let inode = |builder: &mut IndexBuilder, node: u32| add_inode(builder, tree, node, &content);
    inode(builder, 0);
    let mut pending = vec![0];
    while let Some(directory) = pending.pop() {
        let below = pending.len();
        for child in tree.children(directory) {
            let slot: &mut Option<u32> = &mut inode_of[usize::try_from(child.node).unwrap_or(usize::MAX)];
            builder.entry(tree.child_name(child), *slot);
            if slot.is_none() {
                *slot = Some(inode(builder, child.node));
            }
            if let NodeKind::Directory(directory) = tree.node(child.node).kind {
                pending.push(directory);
            }
        }
        pending[below..].reverse();
    }
}

fn add_inode<'a>(
    builder: &mut IndexBuilder,
    tree: &Tree,
    node: u32,
    content: impl Fn(u32) -> (u32, Option<&'a Xattrs>),
) -> u32 {
    let node = tree.node(node);
    let attributes = tree.attributes(node);
    let mtime = (node.mtime, node.mtime_ns);
    let what = match node.kind {
        NodeKind::Directory(directory) => {
            Node::Directory { children: u32::try_from(tree.children(directory).len()).unwrap_or(u32::MAX) }
        }
        NodeKind::Symlink(target) => Node::Symlink(tree.target(target)),
        NodeKind::Device(device) => Node::Device(device),
        NodeKind::Plain => Node::Plain,
        NodeKind::Regular { content: number } => {
            let (object, xattrs) = content(number);
            if let Some(xattrs) = xattrs.filter(|xattrs| !xattrs.is_empty()) {
                let attributes = Attributes { xattrs: xattrs.clone(), ..attributes.clone() };
                return builder.inode(&attributes, mtime, Node::Regular { content: object });
            }
            Node::Regular { content: object }
        }
    };
    builder.inode(attributes, mtime, what)
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

/// Gives an object its holes.
pub(super) fn holes_of(layout: &mut Layout, object: u32, from: &PackedObject) {
    if !from.holes.is_empty() {
        let first = u32::try_from(layout.extents.len()).unwrap_or(u32::MAX);
        layout.extents.extend(&from.holes);
        let end = u32::try_from(layout.extents.len()).unwrap_or(u32::MAX);
        layout.holes.push(Holes { object, extents: first..end });
    }
}

/// The chunks of the jobs before the hot set's end.
fn landmark(packed: &Sequenced, chunk_of_job: &[u32]) -> u32 {
    let jobs = packed.landmark.map_or(chunk_of_job.len(), |jobs| usize::try_from(jobs).unwrap_or(usize::MAX));
    chunk_of_job.iter().take(jobs).map(|chunk| chunk + 1).max().unwrap_or(0)
}
