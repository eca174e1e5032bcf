//! Names as the sections have them (delta 5).

use alloc::vec::Vec;

use crate::Error;
use crate::bytes::Reader;

use super::number;

/// Names, each with a zero byte behind it.
#[derive(Default)]
pub(super) struct Names {
    pub(super) lens: Vec<u8>,
    pub(super) bytes: Vec<u8>,
}

impl Names {
    /// Takes the next name and returns it.
    pub(super) fn take<'a>(&mut self, reader: &mut Reader<'a>) -> Result<&'a [u8], Error> {
        let is_too_long = reader.rest().len() > 256;
        let Some((byte_len, _)) = (0..=u8::MAX).zip(reader.rest()).find(|(_, byte)| **byte == 0) else {
            return Err(match is_too_long {
                true => Error::Path { entry: number(self.lens.len()), what: "has more than 255 bytes" },
                false => reader.malformed("a name does not end"),
            });
        };
        let len = usize::from(byte_len);
        let bytes = reader.take(len + 1)?;
        self.lens.push(byte_len);
        self.bytes.extend(bytes);
        Ok(&bytes[..len])
    }
}

/// Appends a name.
pub(super) fn put_name(names: &mut Vec<u8>, name: &[u8]) {
    names.extend(name);
    names.push(0);
}
