//! Names in the sections of a difference (delta 5).

use alloc::vec::Vec;

use crate::Error;
use crate::bytes::Reader;

use super::number;

/// Names, each followed by a zero byte.
#[derive(Default)]
pub(super) struct Names {
    pub(super) lens: Vec<u8>,
    pub(super) bytes: Vec<u8>,
}

impl Names {
    /// Reads the next name and returns it.
    pub(super) fn take<'a>(&mut self, reader: &mut Reader<'a>) -> Result<&'a [u8], Error> {
        let end = reader.rest().iter().take(256).position(|byte| *byte == 0);
        let Some((len, byte_len)) = end.and_then(|len| Some((len, u8::try_from(len).ok()?))) else {
            if reader.rest().contains(&0) {
                return Err(Error::Path { entry: number(self.lens.len())?, what: "has more than 255 bytes" });
            }
            return Err(reader.malformed("a name does not end"));
        };
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

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::{Kind, Part};

    /// A name that is too long is distinguished from one without an end, however long it is.
    #[test]
    fn a_long_name_is_told_from_one_that_does_not_end() {
        for (len, expected) in [(255, None), (256, Some(Kind::Path)), (257, Some(Kind::Path)), (5000, Some(Kind::Path))]
        {
            let mut bytes = vec![b'a'; len];
            let mut reader = Reader::new(Part::Index, &bytes);
            let found = Names::default().take(&mut reader).map_err(|error| error.kind());
            assert_eq!(found, Err(Kind::Index), "{len} bytes without an end");
            bytes.push(0);
            let mut reader = Reader::new(Part::Index, &bytes);
            let found = Names::default().take(&mut reader).map(<[u8]>::len).map_err(|error| error.kind());
            assert_eq!(found, expected.map_or(Ok(len), Err), "{len} bytes");
        }
    }
}
