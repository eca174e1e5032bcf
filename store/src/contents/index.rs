//! Builds the index of a source from what was found of its contents.

use std::collections::HashMap;

use sealift_format::num;
use sealift_format::walk::TreeOrder;
use sealift_format::{Attributes, Error as FormatError, Index, IndexBuilder, Inode, Node, Object, Row, Xattrs, verity};

use super::{ContentInfo, Want, hash_contents};
use crate::source::Source;
use crate::tree::{NodeKind, Tree, mode_beside};
use crate::{Error, Progress};

/// Builds the index of a source, as a tree of the ref `name`, by reading all of it.
///
/// # Errors
/// Returns an error if a file cannot be read or changes meanwhile, or if the result is not a valid index.
pub fn index_by_reading(name: &str, source: &Source, jobs: usize, progress: &Progress) -> Result<Index, Error> {
    let wanted = vec![Want::Digests; source.content_count()];
    let found = hash_contents(source, &wanted, jobs, progress)?;
    Ok(index_of(name, source, &found)?)
}

/// Builds the index of a source, as a tree of the ref `name`, from what was found of each content. A content that was not hashed gets an object of
/// its own; the fs-verity digests are left out if one is unknown.
///
/// # Errors
/// Returns an error if the result is not a valid index.
pub(crate) fn index_of(name: &str, source: &Source, contents: &[ContentInfo]) -> Result<Index, FormatError> {
    let mut rows: HashMap<[u8; 32], Row<Object>> = HashMap::new();
    let (mut objects, mut object_of) = (Vec::new(), Vec::with_capacity(contents.len()));
    for (content, found) in (0..).zip(contents) {
        let id = found.id.unwrap_or_else(|| stand_in(content));
        let new = Row::after(objects.len())?;
        let object = *rows.entry(id).or_insert(new);
        if object == new {
            objects.push((Object { id, size: source.content_len(content) }, found.verity));
        }
        object_of.push(object.number());
    }
    let mut builder = IndexBuilder::default();
    builder.begin_ref(name);
    add_to_index(&mut builder, source, |content| (*row(&object_of, content), Some(&row(contents, content).xattrs)))?;
    let rows: Vec<_> = builder.contents().iter().map(|&object| *row(&objects, object)).collect();
    let digests: Option<Vec<[u8; 32]>> = rows.iter().map(|(_, verity)| *verity).collect();
    let verity = digests.map_or([0; 32], |digests| verity::digest(digests.as_flattened()));
    Index::parse(builder.finish(rows.iter().map(|(object, _)| *object), &verity)?, u64::MAX)
}

/// Returns a placeholder for the id of a content that was not hashed.
fn stand_in(content: u32) -> [u8; 32] {
    *blake3::hash(&[&b"sealift: not hashed "[..], &content.to_le_bytes()].concat()).as_bytes()
}

/// Returns a row of a table by its number.
pub fn row<T>(rows: &[T], number: u32) -> &T {
    &rows[num::at(number)]
}

/// Adds a source's tree to the index in tree order (core 6.1).
///
/// # Errors
/// Returns an error if a directory has more names than the format can store.
pub fn add_to_index<'a>(
    builder: &mut IndexBuilder,
    source: &Source,
    content: impl Fn(u32) -> (u32, Option<&'a Xattrs>),
) -> Result<(), FormatError> {
    let tree = source.tree();
    let mut inode_of = vec![None; tree.node_count()];
    let inode = |builder: &mut IndexBuilder, node: u32| add_inode(builder, tree, node, &content);
    inode(builder, 0)?;
    let mut order = TreeOrder::new(0);
    while let Some(directory) = order.pop() {
        for child in tree.children(directory) {
            let slot: &mut Option<Row<Inode>> = &mut inode_of[num::at(child.node)];
            builder.entry(tree.child_name(child), *slot);
            if slot.is_none() {
                *slot = Some(inode(builder, child.node)?);
            }
            if let NodeKind::Directory(directory) = tree.node(child.node).kind {
                order.push(directory);
            }
        }
    }
    Ok(())
}

fn add_inode<'a>(
    builder: &mut IndexBuilder,
    tree: &Tree,
    node: u32,
    content: impl Fn(u32) -> (u32, Option<&'a Xattrs>),
) -> Result<Row<Inode>, FormatError> {
    let node = tree.node(node);
    let attributes = tree.attributes(node);
    let mtime = (node.mtime, node.mtime_ns);
    let what = match node.kind {
        NodeKind::Directory(directory) => Node::Directory {
            children: num::fit(tree.children(directory).len(), "the number of names of a directory")?,
        },
        NodeKind::Symlink(target) => Node::Symlink(tree.target(target)),
        NodeKind::Device(device) => Node::Device(device),
        NodeKind::Plain => Node::Plain,
        NodeKind::Regular { content: number } => {
            let (object, xattrs) = content(number);
            if let Some(xattrs) = xattrs.filter(|xattrs| !xattrs.is_empty()) {
                let mode = mode_beside(attributes.mode, xattrs);
                let attributes = Attributes { mode, xattrs: xattrs.clone(), ..attributes.clone() };
                return Ok(builder.inode(&attributes, mtime, Node::Regular { content: object }));
            }
            Node::Regular { content: object }
        }
    };
    Ok(builder.inode(attributes, mtime, what))
}
