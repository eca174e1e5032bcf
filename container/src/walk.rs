//! Visits the files of a file system.

use std::collections::HashMap;

use sealift_format::num::wide;

use super::anatomy::{LONGEST_PATH, Part, is_name};
use super::draft::Draft;
use super::fault::ContainerFault;
use super::parts::Parts;
use super::reader::{Reader, STEP, size};

/// Approximate memory of a name or an inode besides its bytes.
const EACH: u64 = 64;

/// Returns the target of a symbolic link that consists of these parts. One that is too long, or compressed, is not read.
pub(super) fn target(parts: Parts, reader: &Reader<'_>) -> Result<Node, ContainerFault> {
    let mut target = Vec::new();
    for part in parts.into_list() {
        match part {
            Part::Stored { offset, len } if wide(target.len()) + len <= wide(LONGEST_PATH) => {
                target.extend(reader.bytes(offset, size(len))?);
            }
            _ => return Ok(Node::Other),
        }
    }
    Ok(Node::Symlink(target))
}

/// Names in a directory, and the numbers of their inodes.
pub(super) type Names = Vec<(Vec<u8>, u64)>;

/// What an inode is.
pub(super) enum Node {
    Directory(Names),
    /// A regular file with this content.
    File(Parts),
    /// A symbolic link with this target.
    Symlink(Vec<u8>),
    Other,
}

/// A file system whose inodes have numbers.
pub(super) trait FileSystem {
    fn root(&self) -> u64;

    /// Reads an inode, and adds the blocks of a regular file to the draft.
    fn node(&mut self, inode: u64, draft: &mut Draft<'_>) -> Result<Node, ContainerFault>;
}

/// Adds all files of a file system to a draft, each by its first name in tree order.
pub(super) fn walk(of: &mut dyn FileSystem, reader: &Reader<'_>, draft: &mut Draft<'_>) -> Result<(), ContainerFault> {
    // For each inode, the number of the member if it is a regular file.
    let mut seen: HashMap<u64, Option<u32>> = HashMap::from([(of.root(), None)]);
    let Node::Directory(names) = of.node(of.root(), draft)? else {
        return Err(reader.damaged(0, "the root of the file system is not a directory"));
    };
    // For each directory on the way, the names that are left in it and the length of its path.
    let mut way = vec![(in_turn(names, reader)?, 0)];
    let mut path: Vec<u8> = Vec::new();
    while let Some((names, len)) = way.last_mut() {
        path.truncate(*len);
        let Some((name, inode)) = names.pop() else {
            way.pop();
            continue;
        };
        reader.release(cost(&name));
        reader.pay(STEP)?;
        if !is_name(&name) || path.len() + 1 + name.len() > LONGEST_PATH {
            return Err(reader.damaged(0, "the file system has an invalid name, or a path that is too long"));
        }
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend(&name);
        if let Some(known) = seen.get(&inode) {
            if let Some(member) = known {
                draft.link(path.clone(), *member)?;
            }
            continue;
        }
        let mut number = None;
        match of.node(inode, draft)? {
            Node::Directory(names) => way.push((in_turn(names, reader)?, path.len())),
            Node::File(parts) => number = Some(draft.member(path.clone(), parts)?),
            Node::Symlink(target) => draft.symlink(path.clone(), target)?,
            Node::Other => {}
        }
        reader.hold(EACH)?;
        seen.insert(inode, number);
    }
    Ok(())
}

/// Sorts names in reverse, so that `pop` returns the first one.
fn in_turn(mut names: Names, reader: &Reader<'_>) -> Result<Names, ContainerFault> {
    reader.hold(names.iter().map(|(name, _)| cost(name)).sum())?;
    names.sort_unstable();
    names.reverse();
    Ok(names)
}

fn cost(name: &[u8]) -> u64 {
    EACH + wide(name.len())
}
