//! ar archives, and so Debian packages (deb(5)): with names as GNU's and BSD's programs write them.

use sealift_format::num::wide;

use super::anatomy::Anatomy;
use super::archive_path::archive_path;
use super::block::Hint;
use super::draft::Draft;
use super::fault::ContainerFault;
use super::parts::Parts;
use super::reader::{Reader, size};

const MAGIC: &[u8] = b"!<arch>\n";
const HEADER_LEN: usize = 60;
/// The longest table of long names.
const LONGEST_TABLE: u64 = 16 << 20;
/// The longest name that follows a header.
const LONGEST_NAME: u64 = 4096;

/// Returns whether a container that begins with these bytes is an ar archive.
pub(super) fn is(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// Takes an archive apart.
pub(super) fn read(reader: &Reader<'_>) -> Result<Anatomy, ContainerFault> {
    let mut draft = Draft::new(reader);
    let mut long_names = Vec::new();
    let mut at = wide(MAGIC.len());
    while at < reader.len() {
        let header = reader.bytes(at, HEADER_LEN)?;
        let damaged = |what| reader.damaged(at, what);
        let field = |from: usize, to: usize| header.get(from..to).unwrap_or_default().trim_ascii_end();
        let len = decimal(field(48, 58)).filter(|_| header.ends_with(b"`\n"));
        let len = len.ok_or_else(|| damaged("a header of a file is damaged"))?;
        let start = at + wide(HEADER_LEN);
        let end = start.checked_add(len).filter(|end| *end <= reader.len());
        let end = end.ok_or_else(|| damaged("the archive ends within a file"))?;
        match field(0, 16) {
            // The table of symbols, for linkers.
            b"/" | b"/SYM64/" => {}
            b"//" if len <= LONGEST_TABLE => {
                reader.hold(len)?;
                long_names = reader.bytes(start, size(len))?;
            }
            short => {
                let (name, skip) = name(reader, short, start, len, &long_names)?
                    .ok_or_else(|| damaged("a file has an invalid name"))?;
                let path = archive_path(&name).filter(|path| !path.is_empty());
                let path = path.ok_or_else(|| damaged("a file has an invalid name"))?;
                draft.member(path, Parts::stored(start + skip, len - skip))?;
            }
        }
        at = end.next_multiple_of(2);
    }
    draft.finish(Hint::None)
}

/// Returns the name of a file, and how many bytes of its content the name takes.
fn name(
    reader: &Reader<'_>,
    short: &[u8],
    start: u64,
    len: u64,
    long_names: &[u8],
) -> Result<Option<(Vec<u8>, u64)>, ContainerFault> {
    if let Some(name_len) = short.strip_prefix(b"#1/") {
        let Some(name_len) = decimal(name_len).filter(|name_len| *name_len <= len.min(LONGEST_NAME)) else {
            return Ok(None);
        };
        let mut name = reader.bytes(start, size(name_len))?;
        name.truncate(name.iter().position(|byte| *byte == 0).unwrap_or(name.len()));
        return Ok(Some((name, name_len)));
    }
    if let Some(offset) = short.strip_prefix(b"/") {
        let rest = decimal(offset).and_then(|offset| long_names.get(usize::try_from(offset).ok()?..));
        let name = rest.and_then(|rest| rest.split(|byte| *byte == b'\n').next());
        return Ok(name.filter(|name| wide(name.len()) <= LONGEST_NAME).map(|name| (name.to_vec(), 0)));
    }
    Ok(Some((short.to_vec(), 0)))
}

fn decimal(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?.parse().ok()
}
