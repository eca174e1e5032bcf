//! Names and types of POSIX in the records of an ISO 9660 file system (IEEE P1281 and P1282).

use sealift_format::num::at;

use super::SECTOR;
use crate::fault::ContainerFault;
use crate::reader::{Reader, le32, size};

/// The most continuations of a record.
const MOST: u32 = 64;

/// What the fields of a record say.
pub(super) struct RockRidge {
    pub(super) name: Option<Vec<u8>>,
    /// The block of the directory in whose place this record stands.
    pub(super) child: Option<u32>,
    /// Whether this is a directory that was moved here.
    pub(super) is_moved: bool,
    pub(super) is_regular: bool,
}

impl Default for RockRidge {
    fn default() -> Self {
        Self { name: None, child: None, is_moved: false, is_regular: true }
    }
}

/// Returns how many bytes to skip in each record's field, if that of the root directory's own record says that these fields are used.
pub(super) fn skip(system_use: &[u8]) -> Option<usize> {
    let is_used = system_use.starts_with(b"SP") && system_use.get(4..6) == Some(&[0xbe, 0xef]);
    system_use.get(6).filter(|_| is_used).copied().map(usize::from)
}

impl RockRidge {
    /// Reads a record's field, and those that continue it elsewhere.
    pub(super) fn read(reader: &Reader<'_>, system_use: &[u8]) -> Result<Self, ContainerFault> {
        let mut found = Self::default();
        let mut fields = system_use.to_vec();
        for _ in 0..MOST {
            let Some((block, offset, len)) = found.take(&fields) else { return Ok(found) };
            let place = u64::from(block) * SECTOR + u64::from(offset);
            fields = reader.bytes(place, size(u64::from(len).min(SECTOR)))?;
        }
        Err(reader.limit("a record of a directory has too many continuations"))
    }

    /// Takes fields in, and returns where they are continued: block, offset and length.
    fn take(&mut self, mut fields: &[u8]) -> Option<(u32, u32, u32)> {
        let mut continued = None;
        while let [one, other, len, _, ..] = *fields {
            let Some((field, rest)) = fields.split_at_checked(usize::from(len)).filter(|_| len >= 4) else { break };
            fields = rest;
            match &[one, other] {
                b"NM" => {
                    // The first byte has flags; with some of them the name is that of . or ..
                    let name = field.get(5..).unwrap_or_default();
                    self.name.get_or_insert_default().extend(name);
                }
                b"PX" => self.is_regular = le32(field, 4) & 0o170_000 == 0o100_000,
                b"CL" => self.child = Some(le32(field, 4)),
                b"RE" => self.is_moved = true,
                b"CE" => continued = Some((le32(field, 4), le32(field, 12), le32(field, 20))),
                b"ST" => break,
                _ => {}
            }
        }
        // A name longer than this is none, and is refused later.
        if let Some(name) = &mut self.name {
            name.truncate(at(1024));
        }
        continued
    }
}
