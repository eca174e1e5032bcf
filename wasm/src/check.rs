//! The check of chunks in one reader.

use sealift_format::num;
use sealift_format::{Bundle, Error as FormatError, Opened, Part, Row};
use sealift_verify::carried::CarriedChecker;
use sealift_verify::checker::{Depth, ObjectChecker};
use sealift_verify::content::{ContentError, Portion, check_stored};
use sealift_verify::objects::{Checked, VerityTable};

use crate::base::Bases;

/// Bytes of holes that are hashed in one call: between two calls, a worker answers the page's queries.
const BARE_LEN: u64 = 2 << 20;

/// A check that has begun.
#[derive(Debug)]
pub(crate) enum Check {
    /// Compares each chunk with its digest.
    Stored,
    /// For a delta bundle: also checks what the chunks hold, as far as possible without its bases.
    Alone(Box<CarriedChecker>),
    /// Also checks what the chunks hold; for a delta bundle over its bases, also what the bases hold.
    Objects(Box<Objects>),
}

#[derive(Debug)]
pub(crate) struct Objects {
    checker: ObjectChecker,
    /// Only the reader that collects the results of all readers has it.
    table: Option<VerityTable>,
    /// The portions without data that are still to be checked, in reverse order.
    bare: Option<Vec<Portion>>,
}

impl Check {
    pub(crate) fn new(opened: &Opened, depth: Depth) -> Self {
        match (depth, opened) {
            (Depth::Stored, _) => Self::Stored,
            (Depth::Objects, Opened::Delta(delta)) => Self::Alone(Box::new(CarriedChecker::new(delta))),
            (Depth::Objects, Opened::Whole(bundle)) => {
                Self::Objects(Box::new(Objects { checker: ObjectChecker::new(bundle), table: None, bare: None }))
            }
        }
    }

    /// Returns the chunks that the reader that finishes must check itself, in this order.
    pub(crate) fn in_order(&self) -> Vec<u32> {
        match self {
            Self::Objects(objects) => objects.checker.in_order().into_iter().map(Row::number).collect(),
            Self::Stored | Self::Alone(_) => Vec::new(),
        }
    }

    /// Checks the chunks from `first` on, given their stored bytes, and appends the results to `found`. A chunk with a prefix must come alone; of one
    /// whose prefix cannot be read, what is stored is checked.
    pub(crate) fn run(
        &mut self,
        opened: &Opened,
        first: u32,
        mut bytes: &[u8],
        bases: &Bases,
        found: &mut Vec<u8>,
    ) -> Result<(), ContentError> {
        let mut number = first;
        while !bytes.is_empty() {
            let known = Row::new(number).and_then(|row| Some((row, row.get(&opened.layout().chunks)?)));
            let whole = known.and_then(|(_, chunk)| bytes.split_at_checked(num::at(chunk.stored_len)));
            let (Some((row, chunk)), Some((stored, rest))) = (known, whole) else {
                return Err(FormatError::Digest { part: Part::Chunk(number) }.into());
            };
            match (&mut *self, opened) {
                (Self::Objects(objects), Opened::Whole(bundle)) if bases.lack(bundle.layout.prefix_of(chunk)) => {
                    objects.checker.check_stored(bundle, row, stored)?;
                }
                (Self::Objects(objects), Opened::Whole(bundle)) => {
                    objects.checker.check(bundle, row, stored, bases.prefix(), |checked| checked.save(found))?;
                }
                (Self::Alone(checker), Opened::Delta(delta)) => checker.check_alone(delta, row, stored)?,
                _ => check_stored(row, chunk, stored)?,
            }
            (number, bytes) = (number + 1, rest);
        }
        Ok(())
    }

    /// Takes the results of this reader or of another one. Returns false if `run` did not append them.
    pub(crate) fn take(&mut self, opened: &Opened, mut found: &[u8]) -> bool {
        let (Self::Objects(objects), Opened::Whole(bundle)) = (self, opened) else { return found.is_empty() };
        let table = objects.table.get_or_insert_with(|| VerityTable::new(bundle));
        while !found.is_empty() {
            let Some((checked, rest)) = Checked::restore(found) else { return false };
            table.take(checked);
            found = rest;
        }
        true
    }

    /// Checks some of the portions without a chunk, and returns whether more may be left.
    pub(crate) fn run_bare(&mut self, opened: &Opened) -> Result<bool, ContentError> {
        let mut len = 0;
        if let (Self::Alone(checker), Opened::Delta(delta)) = (&mut *self, opened) {
            while len < BARE_LEN {
                let Some(next) = checker.check_bare(delta)? else { return Ok(false) };
                len += next.max(256);
            }
            return Ok(true);
        }
        let (Self::Objects(objects), Opened::Whole(bundle)) = (self, opened) else { return Ok(false) };
        let Objects { checker, table, bare } = &mut **objects;
        let table = table.get_or_insert_with(|| VerityTable::new(bundle));
        let bare = bare.get_or_insert_with(|| {
            let mut all = checker.without_data(bundle);
            all.reverse();
            all
        });
        while len < BARE_LEN {
            let Some(next) = bare.pop() else { return Ok(false) };
            len += bare_len(bundle, next);
            table.take(checker.check_bare(bundle, next)?);
        }
        Ok(true)
    }

    /// Compares all results with the index, and returns the objects' fs-verity digests, if all objects were checked.
    pub(crate) fn finish(self, opened: &Opened, bases: &Bases) -> Result<Vec<[u8; 32]>, ContentError> {
        let (Self::Objects(objects), Opened::Whole(bundle)) = (self, opened) else { return Ok(Vec::new()) };
        objects.checker.finish(bundle)?;
        if bases.have_recipes(bundle) {
            return Ok(Vec::new());
        }
        let mut table = objects.table.unwrap_or_else(|| VerityTable::new(bundle));
        bases.add_digests(&mut table);
        table.check(bundle)
    }
}

/// Returns the bytes to be hashed, as an estimate of the time: an empty object takes some time, too.
fn bare_len(bundle: &Bundle, bare: Portion) -> u64 {
    match bare.piece {
        None => bundle.index.object(bare.object).size.max(256),
        Some(_) => bundle.head.root().maxima.piece_len(),
    }
}
