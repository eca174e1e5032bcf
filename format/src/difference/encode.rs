//! Writes a difference (delta 5).

use alloc::vec::Vec;

use crate::attributes::{Attributes, FileType};
use crate::bytes::{Widths, put_planes, put_section, put_u32s};
use crate::num::{fit, wide};
use crate::{Error, Object, Row, Table as _};

use super::reference::ReferenceRows;
use super::{Changed, Difference, EditedKind, NewContent, Op, Reference};

/// The codes of [`Op`] (delta 5.4).
pub(super) mod code {
    pub(in super::super) const WITHIN: u8 = 0;
    pub(in super::super) const NAMED: u8 = 1;
    pub(in super::super) const REMOVED: u8 = 2;
    pub(in super::super) const ADDED: u8 = 3;
    pub(in super::super) const REPLACED: u8 = 4;
    pub(in super::super) const LINKED: u8 = 5;
    pub(in super::super) const RELINKED: u8 = 6;
    /// Combined with at least one of the three below.
    pub(in super::super) const CHANGED: u8 = 8;
    pub(in super::super) const ATTRIBUTES: u8 = 1;
    pub(in super::super) const MTIME: u8 = 2;
    pub(in super::super) const CONTENT: u8 = 4;
}

/// The columns of sections 4 to 9. Each has rows only for the edits that need it.
#[derive(Default)]
struct Columns {
    types: Vec<u8>,
    attributes: Vec<Row<Attributes>>,
    mtimes: Vec<i64>,
    mtime_ns: Vec<u32>,
    block_lens: Vec<u32>,
    regulars: Vec<Reference>,
    target_lens: Vec<u16>,
    targets: Vec<u8>,
    majors: Vec<u32>,
    minors: Vec<u32>,
    links: Vec<u32>,
}

impl Columns {
    fn add(&mut self, difference: &Difference, op: Op) -> Result<(), Error> {
        if let Some(file) = op.new_file() {
            self.add_parts(difference, Some(file.attributes), Some(file.mtime), Some(file.content))?;
        }
        if let Op::Changed(changed) = op {
            if changed.attributes.is_none() {
                self.types.push(type_code(changed.file_type));
            }
            self.add_parts(difference, changed.attributes, changed.mtime, changed.content)?;
        }
        self.links.extend(op.link().map(Row::number));
        Ok(())
    }

    fn add_parts(
        &mut self,
        difference: &Difference,
        attributes: Option<Row<Attributes>>,
        mtime: Option<(i64, u32)>,
        content: Option<NewContent>,
    ) -> Result<(), Error> {
        self.attributes.extend(attributes);
        self.mtimes.extend(mtime.map(|mtime| mtime.0));
        self.mtime_ns.extend(mtime.map(|mtime| mtime.1));
        match content {
            Some(NewContent::Regular(object)) => self.regulars.push(object),
            Some(NewContent::Symlink(symlink)) => {
                let target = difference.symlink_target(symlink);
                self.target_lens.push(fit(target.len(), "the length of a symbolic link's target")?);
                self.targets.extend(target);
            }
            Some(NewContent::Device(device)) => {
                self.majors.push(device.major);
                self.minors.push(device.minor);
            }
            Some(NewContent::Directory | NewContent::Plain) | None => {}
        }
        Ok(())
    }
}

/// Returns the code of a type in a column: the type bits of `st_mode`, shifted to the right.
pub(super) fn type_code(file_type: FileType) -> u8 {
    file_type.bits().to_be_bytes()[0] >> 4
}

fn op_code(op: Op) -> u8 {
    match op {
        Op::Within => code::WITHIN,
        Op::Named => code::NAMED,
        Op::Removed => code::REMOVED,
        Op::Added(_) => code::ADDED,
        Op::Replaced(_) => code::REPLACED,
        Op::Linked(_) => code::LINKED,
        Op::Relinked(_) => code::RELINKED,
        Op::Changed(Changed { attributes, mtime, content, .. }) => {
            let flag = |is_there, flag| if is_there { flag } else { 0 };
            code::CHANGED
                | flag(attributes.is_some(), code::ATTRIBUTES)
                | flag(mtime.is_some(), code::MTIME)
                | flag(content.is_some(), code::CONTENT)
        }
    }
}

fn put_times<'a>(out: &mut Vec<u8>, times: impl Iterator<Item = &'a (i64, u32)> + Clone) {
    put_planes(out, times.clone().map(|time| time.0.to_le_bytes()));
    put_planes(out, times.map(|time| time.1.to_le_bytes()));
}

fn put_ref(out: &mut Vec<u8>, widths: &mut Widths, is_commit: bool, name: &str) {
    out.push(u8::from(is_commit));
    out.push(widths.fit(name.len(), "the length of a ref's name"));
    out.extend(name.as_bytes());
}

fn put_ref_count(out: &mut Vec<u8>, widths: &mut Widths, count: usize) {
    out.extend(widths.fit::<u16>(count, "the number of refs").to_le_bytes());
}

impl Difference {
    /// Returns the difference's bytes.
    ///
    /// # Errors
    /// Returns an error if something is longer or more numerous than the format can store.
    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        let mut columns = Columns::default();
        for edit in &self.edits {
            columns.add(self, edit.op)?;
            if edit.op.has_block() {
                columns.block_lens.push(edit.block_len);
            }
        }
        let (mut out, mut widths) = (Vec::new(), Widths::default());
        let object_rows = self.object_rows()?;
        let mut section = |id: u16, write: &dyn Fn(&mut Vec<u8>, &mut Widths)| {
            let mut payload = Vec::new();
            write(&mut payload, &mut widths);
            put_section(&mut out, id, true, &payload);
        };
        section(1, &|p, w| {
            p.extend(self.base_objects.to_le_bytes());
            put_ref_count(p, w, self.base_refs.len());
            self.base_refs.iter().for_each(|base| put_ref(p, w, base.is_commit, &base.name));
        });
        section(2, &|p, w| {
            put_ref_count(p, w, self.refs.len());
            for edited in &self.refs {
                put_ref(p, w, !matches!(edited.kind, EditedKind::Tree(_)), &edited.name);
                p.extend(edited.from.map_or(0, |from| from + 1).to_le_bytes());
            }
        });
        section(3, &|p, _| {
            p.extend(wide(self.edits.len()).to_le_bytes());
            p.extend(self.edits.iter().map(|edit| op_code(edit.op)));
            p.extend(&self.names);
        });
        section(4, &|p, _| {
            p.extend(&columns.types);
            put_u32s(p, columns.attributes.iter().map(|row| row.number()));
            put_planes(p, columns.mtimes.iter().map(|time| time.to_le_bytes()));
            put_u32s(p, columns.mtime_ns.iter().copied());
        });
        section(5, &|p, _| put_u32s(p, columns.block_lens.iter().copied()));
        section(6, &|p, _| object_rows.put(p, columns.regulars.iter().copied()));
        section(7, &|p, _| {
            put_planes(p, columns.target_lens.iter().map(|len| len.to_le_bytes()));
            p.extend(&columns.targets);
        });
        section(8, &|p, _| {
            put_u32s(p, columns.majors.iter().copied());
            put_u32s(p, columns.minors.iter().copied());
        });
        section(9, &|p, _| put_u32s(p, columns.links.iter().copied()));
        section(10, &|p, w| {
            p.extend(w.fit::<u32>(self.times.len(), "the number of changes of time").to_le_bytes());
            put_times(p, self.times.iter().map(|change| &change.from));
            put_times(p, self.times.iter().map(|change| &change.to));
        });
        section(11, &|p, w| {
            p.extend(w.fit::<u32>(self.attributes.len(), "the number of attribute rows").to_le_bytes());
            self.attributes.iter().for_each(|row| row.encode(p));
        });
        section(12, &|p, _| {
            p.extend(wide(self.objects.len()).to_le_bytes());
            put_planes(p, self.objects.iter().map(|object| object.size.to_le_bytes()));
            p.extend(self.objects.iter().flat_map(|object| object.id));
        });
        section(13, &|p, _| p.extend(self.verity));
        if let Some(ostree) = &self.ostree {
            section(14, &|p, w| ostree.encode(self, object_rows, p, w));
        }
        widths.check()?;
        Ok(out)
    }

    fn object_rows(&self) -> Result<ReferenceRows, Error> {
        Ok(ReferenceRows { carried: fit(self.objects.len(), Object::COUNT)?, base: self.base_objects })
    }
}
