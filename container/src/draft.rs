//! An anatomy while its container is read.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use sealift_format::num::{at, wide};

use super::anatomy::{Anatomy, LONGEST_PATH, Link, Member, Part, Symlink, in_tree_order};
use super::block::{Block, Hint, PlainLen};
use super::fault::ContainerFault;
use super::parts::Parts;
use super::reader::Reader;

/// Approximate memory of a block, a member or a link besides its bytes.
const EACH: u64 = 96;
/// What was found of a container, in the order in which it was found.
pub(super) struct Draft<'a> {
    reader: &'a Reader<'a>,
    blocks: Vec<Block>,
    /// The blocks' numbers by their offsets.
    numbers: HashMap<u64, u32>,
    members: Vec<Member>,
    links: Vec<Link>,
    symlinks: Vec<Symlink>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(reader: &'a Reader<'a>) -> Self {
        Self {
            reader,
            blocks: Vec::new(),
            numbers: HashMap::new(),
            members: Vec::new(),
            links: Vec::new(),
            symlinks: Vec::new(),
        }
    }

    /// Adds a block, unless it is known, and returns its number for parts. What several users say of a block must agree.
    pub(super) fn block(&mut self, block: Block) -> Result<u32, ContainerFault> {
        match self.numbers.entry(block.offset) {
            Entry::Vacant(entry) => {
                let number = u32::try_from(self.blocks.len()).ok();
                let number = number.ok_or_else(|| self.reader.limit("it has too many blocks"))?;
                self.reader.hold(EACH)?;
                self.blocks.push(block);
                Ok(*entry.insert(number))
            }
            Entry::Occupied(entry) => {
                let number = *entry.get();
                let known = self.blocks.get_mut(at(number));
                let known = known.filter(|known| (known.stored_len, known.codec) == (block.stored_len, block.codec));
                let known =
                    known.ok_or_else(|| self.reader.damaged(block.offset, "two uses of a compressed block differ"))?;
                known.plain = match (known.plain, block.plain) {
                    (PlainLen::AtMost(most), PlainLen::AtMost(other)) => PlainLen::AtMost(most.max(other)),
                    (PlainLen::AtMost(_), exact) | (exact, PlainLen::AtMost(_)) => exact,
                    (PlainLen::Exactly(one), PlainLen::Exactly(other)) => PlainLen::Exactly(one.max(other)),
                };
                Ok(number)
            }
        }
    }

    /// Adds a member and returns its number, for links. If it has more than one part, the caller has counted their memory.
    pub(super) fn member(&mut self, path: Vec<u8>, parts: Parts) -> Result<u32, ContainerFault> {
        let number = u32::try_from(self.members.len()).map_err(|_| self.reader.limit("it has too many members"))?;
        self.reader.hold(EACH + wide(path.len()))?;
        self.members.push(Member { path, len: parts.len(), parts: parts.into_list() });
        Ok(number)
    }

    /// Adds another name of a member.
    pub(super) fn link(&mut self, path: Vec<u8>, member: u32) -> Result<(), ContainerFault> {
        self.reader.hold(EACH + wide(path.len()))?;
        self.links.push(Link { path, member });
        Ok(())
    }

    /// Adds a symbolic link. One whose target is longer than a path can be is left out.
    pub(super) fn symlink(&mut self, path: Vec<u8>, target: Vec<u8>) -> Result<(), ContainerFault> {
        if target.len() <= LONGEST_PATH {
            self.reader.hold(EACH + wide(path.len() + target.len()))?;
            self.symlinks.push(Symlink { path, target });
        }
        Ok(())
    }

    /// Gives a member that was added without content its content.
    pub(super) fn fill(&mut self, member: u32, parts: Parts) {
        if let Some(member) = self.members.get_mut(at(member)) {
            member.len = parts.len();
            member.parts = parts.into_list();
        }
    }

    /// Puts everything in order and checks it.
    pub(super) fn finish(self, hint: Hint) -> Result<Anatomy, ContainerFault> {
        let Self { reader, blocks, numbers: _, mut members, mut links, symlinks } = self;
        let (blocks, renumbered) = sorted(blocks, |one, other| one.offset.cmp(&other.offset));
        for part in members.iter_mut().flat_map(|member| &mut member.parts) {
            if let Part::Inflated { block, .. } = part {
                *block = renumbered.get(at(*block)).copied().unwrap_or(u32::MAX);
            }
        }
        let (members, renumbered) = sorted(members, |one, other| in_tree_order(&one.path, &other.path));
        for link in &mut links {
            link.member = renumbered.get(at(link.member)).copied().unwrap_or(u32::MAX);
        }
        let (links, _) = sorted(links, |one, other| in_tree_order(&one.path, &other.path));
        let (symlinks, _) = sorted(symlinks, |one, other| in_tree_order(&one.path, &other.path));
        let anatomy = Anatomy { kind: reader.kind(), hint, blocks, members, links, symlinks };
        anatomy.checked(reader.len())
    }
}

/// Sorts a list, and returns for each old number the new one. Equal items keep their order.
fn sorted<T>(items: Vec<T>, compare: impl Fn(&T, &T) -> std::cmp::Ordering) -> (Vec<T>, Vec<u32>) {
    let mut numbered: Vec<(u32, T)> = (0..).zip(items).collect();
    numbered.sort_by(|(_, one), (_, other)| compare(one, other));
    let mut renumbered = vec![0; numbered.len()];
    for (new, (old, _)) in (0..).zip(&numbered) {
        if let Some(slot) = renumbered.get_mut(at(*old)) {
            *slot = new;
        }
    }
    (numbered.into_iter().map(|(_, item)| item).collect(), renumbered)
}
