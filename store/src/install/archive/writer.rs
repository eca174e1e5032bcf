//! Lays out the members of an archive, and writes their headers: the sizes of all contents are known before one of them is read.

use std::collections::HashMap;

use sealift_format::num;
use sealift_format::{Bundle, FileType, Inode, InodeKind, Object, Ref, Row};

use super::encoder::{ArchiveEncoder, Ending, Member, Unfit};
use super::layout::Layout;
use super::stats::ArchiveStats;
use crate::Error;
use crate::error::shown;

/// Takes bytes to write at an offset.
pub(super) type Put<'a> = dyn FnMut(u64, &[u8]) -> Result<(), Error> + 'a;

/// Lays out a tree, the root first and each directory before what is in it, and passes each header with its offset to `put`.
///
/// # Errors
/// Returns an error if the format cannot hold a member, and any error that `put` returns.
pub(super) fn lay_out(
    bundle: &Bundle,
    tree: &Ref,
    encoder: &ArchiveEncoder,
    stats: &mut ArchiveStats,
    put: &mut Put<'_>,
) -> Result<Layout, Error> {
    let index = &bundle.index;
    let mut names = vec![0_u32; index.inodes().len()];
    for entry in tree.directories().flat_map(|directory| index.directory(directory).entries()) {
        names[index.entry(entry).inode.at()] += 1;
    }
    let mut writer = Writer {
        bundle,
        encoder,
        names,
        first: HashMap::new(),
        layout: Layout::default(),
        replaced: Vec::new(),
        header: Vec::new(),
        stats,
        put,
    };
    writer.add(b"", index.directory(tree.directory).inode)?;
    // What is in a directory follows it at once: programs set the directory's time as soon as another member follows.
    let mut path = Vec::new();
    let mut open = vec![(index.directory(tree.directory).entries(), 0)];
    while let Some((entries, len)) = open.last_mut() {
        path.truncate(*len);
        let Some(entry) = entries.next() else {
            open.pop();
            continue;
        };
        let entry = index.entry(entry);
        path.extend_from_slice(index.name(entry));
        writer.add(&path, entry.inode)?;
        if let InodeKind::Directory(directory) = index.inode(entry.inode).kind {
            path.push(b'/');
            open.push((index.directory(directory).entries(), path.len()));
        }
    }
    let Writer { mut layout, replaced, stats, put, .. } = writer;
    layout.members_len = layout.len;
    put(layout.len, encoder.end)?;
    layout.len += num::wide(encoder.end.len());
    let mut behind = layout.len;
    for object in replaced {
        layout.contents.push((object, behind));
        behind += index.object(object).size;
    }
    layout.contents.sort_unstable();
    stats.archive_bytes = layout.len;
    Ok(layout)
}

struct Writer<'a> {
    bundle: &'a Bundle,
    encoder: &'a ArchiveEncoder,
    /// How many names each inode has in the tree.
    names: Vec<u32>,
    /// The first name of each inode that has several.
    first: HashMap<Row<Inode>, Vec<u8>>,
    layout: Layout,
    /// Contents that are not members.
    replaced: Vec<Row<Object>>,
    header: Vec<u8>,
    stats: &'a mut ArchiveStats,
    put: &'a mut Put<'a>,
}

impl Writer<'_> {
    fn add(&mut self, path: &[u8], number: Row<Inode>) -> Result<(), Error> {
        let (index, encoder) = (&self.bundle.index, self.encoder);
        let inode = index.inode(number);
        let is_replaced = |ending: &Ending| ending.replaced.iter().any(|name| name.as_bytes() == path);
        if let InodeKind::Regular(object) = inode.kind
            && encoder.ending.as_ref().is_some_and(is_replaced)
        {
            self.replaced.push(object);
            return Ok(());
        }
        let names = self.names[number.at()];
        let first = self.first.get(&number).map(Vec::as_slice);
        let (mut content, mut target, mut device) = (None, &b""[..], None);
        match inode.kind {
            InodeKind::Regular(object) => content = Some(object).filter(|_| first.is_none()),
            InodeKind::Symlink(to) => target = index.symlink_target(to),
            InodeKind::CharDevice(row) | InodeKind::BlockDevice(row) => device = Some(index.device(row)),
            InodeKind::Socket if !encoder.has_sockets => {
                self.stats.sockets_skipped += 1;
                return Ok(());
            }
            InodeKind::Directory(_) | InodeKind::Fifo | InodeKind::Socket => {}
        }
        let (attributes, size) = (index.attributes(inode), content.map_or(0, |object| index.object(object).size));
        let member = Member { path, number, inode, names, first, attributes, size, target, device };
        self.header.clear();
        (encoder.header)(&member, &mut self.header).map_err(|Unfit(what)| Error::Unfit {
            scheme: encoder.scheme,
            member: shown(path),
            what,
        })?;
        if !encoder.has_xattrs {
            self.stats.xattrs_skipped += num::wide(attributes.xattrs.len());
        }
        self.stats.members += 1;
        (self.put)(self.layout.len, &self.header)?;
        self.layout.len += num::wide(self.header.len());
        if let Some(object) = content {
            self.stats.files += 1;
            self.stats.install.logical_bytes += size;
            if size > 0 {
                self.layout.contents.push((object, self.layout.len));
            }
            self.layout.len += size.next_multiple_of(encoder.align);
        }
        if names > 1 && first.is_none() && attributes.file_type() != FileType::Directory {
            self.first.insert(number, path.to_vec());
        }
        Ok(())
    }
}
