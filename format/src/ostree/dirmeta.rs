//! Dirmetas, the metadata of directories: `(uuua(ayay))` (libostree: `OSTREE_DIRMETA_GVARIANT_FORMAT`).

use alloc::vec::Vec;

use super::{Malformed, attributes};
use crate::{Attributes, FileType};

/// Parses a dirmeta object.
///
/// # Errors
/// Returns an error if it is not in normal form, not for a directory, or contains something that [`Attributes`] cannot hold.
pub fn parse(bytes: &[u8]) -> Result<Attributes, Malformed> {
    let attributes = attributes::parse(bytes)?;
    match attributes.file_type() {
        FileType::Directory => Ok(attributes),
        _ => Err(Malformed::new("a dirmeta is not that of a directory")),
    }
}

/// Encodes the dirmeta object of a directory with these attributes.
#[must_use]
pub fn encode(attributes: &Attributes) -> Vec<u8> {
    attributes::encode(attributes)
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::super::framing::{Shape, Writer};
    use super::*;
    use crate::ostree::tests::{hex, some_attributes, sum};

    #[test]
    fn the_usual_directory() {
        let usual = Attributes { mode: 0o40755, uid: 0, gid: 0, xattrs: crate::Xattrs::default() };
        let bytes = encode(&usual);
        assert_eq!(hex(&bytes), "0000000000000000000041ed");
        assert_eq!(sum(&bytes), "446a0ef11b7cc167f3b603e585c7eeeeb675faa412d5ec73f62988eb0b6c5488");
        assert_eq!(parse(&bytes), Ok(usual));
    }

    #[test]
    fn what_attributes_cannot_hold() {
        let usual = Attributes { mode: 0o40755, uid: 0, gid: 0, xattrs: crate::Xattrs::default() };
        let with = |at: usize, value: u8| {
            let mut bytes = encode(&usual);
            bytes[at] = value;
            parse(&bytes).expect_err("it cannot be held").reason()
        };
        assert_eq!(with(9, 1), "a mode has bits above 0xffff");
        assert_eq!(with(10, 0x81), "a dirmeta is not that of a directory");
        assert_eq!(with(10, 0x01), "a mode has no file type");
        let xattr = |name: usize, value: usize| {
            let (mut pair, mut pairs, mut writer) = (Writer::default(), Writer::default(), Writer::default());
            pair.put(Shape::BYTES, &[&vec![b'a'; name][..], &[0]].concat());
            pair.put(Shape::BYTES, &vec![0; value]);
            pairs.put(Shape::BYTES, &pair.tuple());
            [0, 0, 0o40755].into_iter().for_each(|number| writer.put_u32(number));
            writer.put(Shape::BYTES, &pairs.array());
            parse(&writer.tuple())
        };
        assert!(xattr(255, 65_536).is_ok());
        assert!(xattr(256, 0).is_err() && xattr(1, 65_537).is_err() && xattr(0, 0).is_err());
        assert!(parse(b"").is_err() && parse(&[0; 11]).is_err());
    }

    proptest! {
        #[test]
        fn any_attributes_come_back(attributes in some_attributes(0o040_000)) {
            prop_assert_eq!(parse(&encode(&attributes)), Ok(attributes));
        }

        #[test]
        fn no_other_bytes_are_taken(attributes in some_attributes(0o040_000), at in any::<prop::sample::Index>(), byte: u8) {
            let mut bytes = encode(&attributes);
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(parsed) = parse(&bytes) {
                prop_assert_eq!(encode(&parsed), bytes);
            }
        }

        #[test]
        fn arbitrary_bytes(bytes in prop::collection::vec(prop_oneof![Just(0), 0..40_u8, any::<u8>()], 0..64)) {
            if let Ok(parsed) = parse(&bytes) {
                prop_assert_eq!(encode(&parsed), bytes);
            }
        }
    }
}
