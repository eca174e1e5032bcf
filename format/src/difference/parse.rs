//! Parses a difference strictly, without its base (delta 5).

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::bytes::{Reader, SectionRule, read_sections};
use crate::index::{
    Symlink, column, parse_attributes, parse_devices, parse_objects, parse_ref, parse_targets, row_fault,
    use_attributes,
};
use crate::num::wide;
use crate::{Error, Part, Rows};

use super::names::Names;
use super::reference::ReferenceRows;
use super::shape::{Contents, Shape, count, parse_changes};
use super::used::Used;
use super::{BaseRef, Difference, TimeChange, number, ostree};

const RULES: [SectionRule; 14] = {
    let mut rules = [SectionRule::Required; 14];
    rules[13] = SectionRule::Optional;
    rules
};

impl Difference {
    /// Parses a decoded difference, which must have matched its digest. `entries` is the root's maximum, and `index_len` the length
    /// of the wanted index.
    ///
    /// # Errors
    /// Returns an error if it does not conform to delta 5, or results in more entries than `entries`.
    pub fn parse(bytes: &[u8], entries: u64, index_len: u64) -> Result<Self, Error> {
        // Positions in it are stored in 32 bits.
        if u32::try_from(bytes.len()).is_err() {
            return Err(Error::Limit { what: "index_len", declared: wide(bytes.len()), limit: u32::MAX.into() });
        }
        let sections = read_sections(Part::Index, bytes, &RULES)?;
        let has_ostree = sections[13].is_some();
        let empty = || Reader::new(Part::Index, &[]);
        let [
            base,
            refs,
            edits,
            changes,
            directories,
            regulars,
            symlinks,
            devices,
            links,
            times,
            attributes,
            objects,
            verity,
            commits_section,
        ] = sections.map(|section| section.unwrap_or_else(empty));

        let (base_objects, base_refs) = parse_base(base)?;
        let refs = parse_refs(refs, &base_refs)?;
        let objects = parse_objects(objects)?;
        let rows = EditRows::parse(edits)?;
        let shared = Arc::new(attributes.rest().to_vec());
        let first = attributes.position();
        let attributes = parse_attributes(attributes, &shared, first)?;
        let mut verity = verity;
        let verity_digest = verity.array()?;
        verity.finish()?;

        let commits = refs.iter().filter(|parsed| parsed.is_commit).count();
        if (commits > 0) != has_ostree {
            return Err(row_fault("the OSTree section is there without a commit, or a commit without it", 0));
        }
        let mut used = Used::default();
        let shapes = parse_changes(changes, &rows.ops, &attributes, &mut used)?;
        let mut targets = symlinks;
        let (symlinks, target_bytes) = parse_targets(&mut targets, count(&shapes, Shape::has_symlink))?;
        targets.finish()?;
        let steps = column(regulars, count(&shapes, Shape::has_regular))?;
        let object_rows = ReferenceRows { carried: number(objects.len())?, base: base_objects };
        let contents = Contents {
            block_lens: column(directories, count(&shapes, Shape::has_block))?.into_iter(),
            regulars: used.objects(object_rows, steps)?.into_iter(),
            symlinks: Rows::new(0..u32::MAX),
            devices: parse_devices(devices, count(&shapes, Shape::has_device))?.into_iter(),
            links: column(links, count(&shapes, Shape::is_link))?.into_iter(),
        };
        let mut difference = Self {
            base_objects,
            base_refs,
            refs: Vec::new(),
            edits: Vec::new(),
            names: rows.names,
            symlinks,
            targets: target_bytes,
            times: parse_times(times)?,
            attributes,
            objects,
            verity: verity_digest,
            ostree: None,
        };
        if has_ostree {
            let section = ostree::Section::parse(commits_section, &difference.attributes, commits, index_len)?;
            for (own, file) in section.difference.files().iter().enumerate() {
                use_attributes(&mut used.attributes, Some(file.attributes), &difference.attributes, own)?;
            }
            let objects = used.objects(object_rows, section.object_steps)?;
            let (symlinks_before, targets_before) =
                (number(difference.symlinks.len())?, number(difference.targets.len())?);
            let symlinks = section.symlinks.iter();
            difference.symlinks.extend(symlinks.map(|link| Symlink { at: link.at + targets_before, ..*link }));
            difference.targets.extend(section.targets);
            let own = difference.ostree.insert(section.difference);
            own.give_contents(&difference.attributes, objects, symlinks_before);
        }
        used.finish(&difference)?;
        difference.read_trees(refs, &rows.name_lens, &shapes, contents)?;
        difference.check_links()?;
        // Names are checked after everything else, since they have another kind of failure.
        difference.check_names()?;
        difference.check_entries(entries)?;
        Ok(difference)
    }
}

/// A ref of the wanted index, before its root is found.
pub(super) struct ParsedRef {
    pub(super) name: String,
    pub(super) from: Option<u16>,
    pub(super) is_commit: bool,
}

fn parse_base(mut reader: Reader<'_>) -> Result<(u32, Vec<BaseRef>), Error> {
    let objects = reader.u32()?;
    let mut refs: Vec<BaseRef> = Vec::new();
    for _ in 0..reader.u16()? {
        let (is_commit, name) = parse_ref(&mut reader, refs.last().map(|last| &last.name))?;
        refs.push(BaseRef { name, is_commit });
    }
    if refs.is_empty() {
        return Err(reader.malformed("there is no ref"));
    }
    reader.finish()?;
    Ok((objects, refs))
}

fn parse_refs(mut reader: Reader<'_>, base_refs: &[BaseRef]) -> Result<Vec<ParsedRef>, Error> {
    let mut refs: Vec<ParsedRef> = Vec::new();
    let mut is_taken = alloc::vec![false; base_refs.len()];
    for _ in 0..reader.u16()? {
        let (is_commit, name) = parse_ref(&mut reader, refs.last().map(|last| &last.name))?;
        let from = reader.u16()?.checked_sub(1);
        if let Some(from) = from {
            let from = usize::from(from);
            if base_refs.get(from).is_none_or(|base| base.is_commit != is_commit) {
                return Err(
                    reader.malformed("a ref is relative to one that the base does not have, or of another kind")
                );
            }
            // Therefore the result is never larger than base and difference together.
            if core::mem::replace(&mut is_taken[from], true) {
                return Err(reader.malformed("two refs are relative to one of the base"));
            }
        }
        refs.push(ParsedRef { name, from, is_commit });
    }
    if refs.is_empty() {
        return Err(reader.malformed("there is no ref"));
    }
    reader.finish()?;
    Ok(refs)
}

/// Section 3.
struct EditRows {
    ops: Vec<u8>,
    name_lens: Vec<u8>,
    names: Vec<u8>,
}

impl EditRows {
    fn parse(mut reader: Reader<'_>) -> Result<Self, Error> {
        let count = reader.count()?;
        let ops = reader.take(count)?.to_vec();
        let mut names = Names::default();
        for _ in 0..count {
            names.take(&mut reader)?;
        }
        reader.finish()?;
        Ok(Self { ops, name_lens: names.lens, names: names.bytes })
    }
}

fn parse_times(mut reader: Reader<'_>) -> Result<Vec<TimeChange>, Error> {
    let count = reader.count32()?;
    let mut times = || -> Result<_, Error> {
        let seconds = reader.planes::<8>(count)?.i64s();
        Ok(seconds.zip(reader.planes::<4>(count)?.u32s()))
    };
    let (from, to) = (times()?, times()?);
    reader.finish()?;
    let mut changes: Vec<TimeChange> = Vec::with_capacity(count);
    for (own, (from, to)) in from.zip(to).enumerate() {
        if from.1 >= 1_000_000_000 || to.1 >= 1_000_000_000 {
            return Err(row_fault("nanoseconds of a time reach a second", own));
        }
        if from == to || changes.last().is_some_and(|last| last.from >= from) {
            return Err(row_fault("changes of time do not ascend, or one is none", own));
        }
        changes.push(TimeChange { from, to });
    }
    Ok(changes)
}
