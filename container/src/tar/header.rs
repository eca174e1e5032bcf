//! The 512-byte header of each member of a tar archive: POSIX.1-1988 (ustar), GNU and V7.

use std::ops::Range;

use super::fault::TarFault;

/// A tar archive consists of blocks of this many bytes.
pub const BLOCK_LEN: u64 = 512;

const NAME: Range<usize> = 0..100;
const MODE: Range<usize> = 100..108;
const UID: Range<usize> = 108..116;
const GID: Range<usize> = 116..124;
const SIZE: Range<usize> = 124..136;
const MTIME: Range<usize> = 136..148;
const CHECKSUM: Range<usize> = 148..156;
const TYPE: usize = 156;
const LINK_NAME: Range<usize> = 157..257;
const MAGIC: Range<usize> = 257..265;
const MAJOR: Range<usize> = 329..337;
const MINOR: Range<usize> = 337..345;
const PREFIX: Range<usize> = 345..500;
// GNU's own field, at the place of ustar's prefix.
const SPARSE: Range<usize> = 386..482;
const SPARSE_GOES_ON: usize = 482;
const REAL_SIZE: Range<usize> = 483..495;
// A block that continues the list of segments.
const MORE_SPARSE: Range<usize> = 0..504;
const MORE_SPARSE_GOES_ON: usize = 504;

/// A member's header with a correct checksum.
#[derive(Clone, Debug)]
pub struct Header {
    block: Block,
}

/// A block of the archive.
pub type Block = [u8; 512];

/// The offset of a segment in a sparse file, and its length, both in bytes.
pub type Extent = (u64, u64);

impl Header {
    /// Parses the header in a block.
    ///
    /// # Errors
    /// Returns an error if its checksum is wrong or no number.
    pub fn parse(block: &Block) -> Result<Self, TarFault> {
        let header = Self { block: *block };
        let stated = header.number("checksum", CHECKSUM)?;
        let counted = |byte: &u8| i64::from(*byte);
        let signed = |byte: &u8| i64::from(i8::from_ne_bytes([*byte]));
        // Some old systems summed signed bytes.
        if stated == header.sum(counted) || stated == header.sum(signed) { Ok(header) } else { Err(TarFault::Checksum) }
    }

    /// Returns the sum of the bytes, with the checksum itself counted as spaces.
    fn sum(&self, value: impl Fn(&u8) -> i64) -> i64 {
        let spaces = i64::from(b' ') * 8;
        self.block[..CHECKSUM.start].iter().chain(&self.block[CHECKSUM.end..]).map(value).sum::<i64>() + spaces
    }

    /// Returns the letter of the member's type.
    #[must_use]
    pub fn type_flag(&self) -> u8 {
        self.block[TYPE]
    }

    /// Returns the member's name, with ustar's prefix.
    #[must_use]
    pub fn name(&self) -> Vec<u8> {
        let (name, prefix) = (self.text(NAME), self.text(PREFIX));
        if self.is_posix() && !prefix.is_empty() { [prefix, name].join(&b'/') } else { name.to_vec() }
    }

    /// Returns the name of the member to which a link leads.
    #[must_use]
    pub fn link_name(&self) -> &[u8] {
        self.text(LINK_NAME)
    }

    /// Returns the permissions, with the bits for set-user-ID, set-group-ID and sticky.
    ///
    /// # Errors
    /// Returns an error if the field is malformed or out of range.
    pub fn permissions(&self) -> Result<u16, TarFault> {
        let mode = self.number("mode", MODE)?;
        u16::try_from(mode & 0o7777).map_err(|_| TarFault::Number { field: "mode" })
    }

    /// Returns the owner's number.
    ///
    /// # Errors
    /// Returns an error if the field is malformed or out of range.
    pub fn uid(&self) -> Result<u32, TarFault> {
        self.number32("uid", UID)
    }

    /// Returns the group's number.
    ///
    /// # Errors
    /// Returns an error if the field is malformed or out of range.
    pub fn gid(&self) -> Result<u32, TarFault> {
        self.number32("gid", GID)
    }

    /// Returns the time of the last change, in seconds since 1970.
    ///
    /// # Errors
    /// Returns an error if the field is malformed or out of range.
    pub fn mtime(&self) -> Result<i64, TarFault> {
        self.number("mtime", MTIME)
    }

    /// Returns the number of the member's bytes that follow in the archive.
    ///
    /// # Errors
    /// Returns an error if the field is blank, malformed or out of range.
    pub fn size(&self) -> Result<u64, TarFault> {
        // A blank does not count as 0: the start of the next member must not be guessed.
        let blank = self.text(SIZE).iter().all(|byte| *byte == b' ');
        let size = u64::try_from(self.number("size", SIZE)?).ok();
        size.filter(|_| !blank).ok_or(TarFault::Number { field: "size" })
    }

    /// Returns the major number of a device.
    ///
    /// # Errors
    /// Returns an error if the field is malformed or out of range.
    pub fn major(&self) -> Result<u32, TarFault> {
        self.number32("device number", MAJOR)
    }

    /// Returns the minor number of a device.
    ///
    /// # Errors
    /// Returns an error if the field is malformed or out of range.
    pub fn minor(&self) -> Result<u32, TarFault> {
        self.number32("device number", MINOR)
    }

    fn is_posix(&self) -> bool {
        self.block[MAGIC].starts_with(b"ustar\0")
    }

    /// Returns whether GNU tar or a program like it wrote the header.
    #[must_use]
    pub fn is_gnu(&self) -> bool {
        self.block[MAGIC] == *b"ustar  \0"
    }

    /// Returns the length in bytes of a sparse file in GNU's old format.
    ///
    /// # Errors
    /// Returns an error if the field is malformed or out of range.
    pub fn real_size(&self) -> Result<u64, TarFault> {
        let size = self.number("size", REAL_SIZE)?;
        u64::try_from(size).map_err(|_| TarFault::Number { field: "size" })
    }

    /// Adds the header's segments of a sparse file, and returns whether more blocks of them follow.
    ///
    /// # Errors
    /// Returns an error if an offset or a length is malformed.
    pub fn sparse(&self, extents: &mut Vec<Extent>) -> Result<bool, TarFault> {
        add_extents(&self.block[SPARSE], extents)?;
        Ok(self.block[SPARSE_GOES_ON] != 0)
    }

    fn text(&self, field: Range<usize>) -> &[u8] {
        until_nul(&self.block[field])
    }

    fn number(&self, name: &'static str, field: Range<usize>) -> Result<i64, TarFault> {
        number(&self.block[field]).ok_or(TarFault::Number { field: name })
    }

    fn number32(&self, name: &'static str, field: Range<usize>) -> Result<u32, TarFault> {
        u32::try_from(self.number(name, field)?).map_err(|_| TarFault::Number { field: name })
    }
}

/// Adds the segments of a block that continues a header, and returns whether another follows.
///
/// # Errors
/// Returns an error if an offset or a length is malformed.
pub fn more_sparse(block: &Block, extents: &mut Vec<Extent>) -> Result<bool, TarFault> {
    add_extents(&block[MORE_SPARSE], extents)?;
    Ok(block[MORE_SPARSE_GOES_ON] != 0)
}

fn add_extents(fields: &[u8], extents: &mut Vec<Extent>) -> Result<(), TarFault> {
    for pair in fields.chunks_exact(24) {
        let (at, len) = pair.split_at(12);
        if len.first() == Some(&0) {
            break;
        }
        let field = |field| number(field).and_then(|number| u64::try_from(number).ok());
        extents.push((field(at).ok_or(TarFault::SparseMap)?, field(len).ok_or(TarFault::SparseMap)?));
    }
    Ok(())
}

/// Returns the bytes before the first NUL.
#[must_use]
pub fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Parses a number in octal digits, or in GNU's binary form for larger values.
fn number(field: &[u8]) -> Option<i64> {
    match field.split_first() {
        Some((first, rest)) if first & 0x80 != 0 => {
            let sign = if first & 0x40 == 0 { 0 } else { -0x40 };
            rest.iter().try_fold(i64::from(first & 0x3f) + sign, |value, byte| {
                value.checked_mul(256)?.checked_add(i64::from(*byte))
            })
        }
        _ => until_nul(field).trim_ascii().iter().try_fold(0, |value: i64, byte| match byte {
            b'0'..=b'7' => value.checked_mul(8)?.checked_add(i64::from(byte - b'0')),
            _ => None,
        }),
    }
}

/// Parses a number of decimal digits and nothing else.
#[must_use]
pub fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0, |value: u64, byte| match byte {
        b'0'..=b'9' => value.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        let table: [(&[u8], Option<i64>); 13] = [
            (b"0000644\0", Some(0o644)),
            (b"   644 \0", Some(0o644)),
            (b"77777777777\0", Some(0o77_777_777_777)),
            (b"777777777777", Some(0o777_777_777_777)), // no room for the end
            (b"\0\0\0\0\0\0\0\0", Some(0)),
            (b"        ", Some(0)),
            (b"00008\0\0\0", None),
            (b"12 34\0\0\0", None),
            (b"-1\0\0\0\0\0\0", None),
            (b"\x80\0\0\0\0\0\0\x02\0\0\0\0", Some(1 << 33)),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", Some(-1)),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0", Some(-256)),
            (b"\x80\0\0\x01\0\0\0\0\0\0\0\0", None),
        ];
        for (field, value) in table {
            assert_eq!(number(field), value, "{}", field.escape_ascii());
        }
    }
}
