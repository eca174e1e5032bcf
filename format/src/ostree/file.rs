//! Headers of file objects.
//!
//! The checksum of a file object is the SHA-256 of its header, followed by its content if it is a regular file. The header is the length of a
//! variant in four bytes, highest byte first, then four zero bytes, and the variant: `(uuuusa(ayay))` with owner, group, mode, device, target and
//! extended attributes. In an archive repository, the variant begins with the content's length: `(tuuuusa(ayay))`.

use alloc::vec::Vec;

use sha2::{Digest as _, Sha256};

use super::framing::{Shape, Writer, members, text};
use super::{Checksum, METADATA_LEN_MAX, Malformed, attributes};
use crate::num::wide;
use crate::{Attributes, FileType};

/// Bytes before the variant of a header.
pub const PREFIX_LEN: usize = 8;

/// The content of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// The attributes of a regular file or a symbolic link.
    pub attributes: Attributes,
    /// The target of a symbolic link; empty for a regular file.
    pub target: &'a str,
}

/// The content of a header in an archive repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveHeader<'a> {
    /// The length in bytes of the content, which follows the header, compressed with raw deflate. Zero for a symbolic link, which has no content.
    pub size: u64,
    /// The rest of the header.
    pub header: Header<'a>,
}

/// Computes the checksum of a file object from its header and the bytes of its content, in order.
#[derive(Clone, Debug)]
pub struct FileObjectHasher(Sha256);

impl FileObjectHasher {
    /// Returns a hasher that has taken the header. `target` is the target of a symbolic link, and empty for a regular file.
    #[must_use]
    pub fn new(attributes: &Attributes, target: &str) -> Self {
        Self(Sha256::new_with_prefix(encode_header(attributes, target)))
    }

    /// Takes the next bytes of the content.
    pub fn update(&mut self, content: &[u8]) {
        self.0.update(content);
    }

    /// Returns the checksum.
    #[must_use]
    pub fn finish(self) -> Checksum {
        self.0.finalize().into()
    }
}

/// Encodes a header. `target` is the target of a symbolic link, and empty for a regular file.
#[must_use]
pub fn encode_header(attributes: &Attributes, target: &str) -> Vec<u8> {
    prefixed(put(Writer::default(), attributes, target))
}

/// Encodes a header for an archive repository.
#[must_use]
pub fn encode_archive_header(size: u64, attributes: &Attributes, target: &str) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.put_u64(size);
    prefixed(put(writer, attributes, target))
}

/// Returns the length of the variant, which follows the first bytes of a header.
///
/// # Errors
/// Returns an error if the four bytes after the length are not zero, or the length exceeds the maximum for metadata.
pub fn variant_len(prefix: [u8; PREFIX_LEN]) -> Result<usize, Malformed> {
    let [len, zeros] = [prefix.first_chunk::<4>(), prefix.last_chunk::<4>()];
    if zeros != Some(&[0; 4]) {
        return Err(Malformed::new("the length of a header is not followed by zeros"));
    }
    let len = len.map_or(0, |len| u32::from_be_bytes(*len));
    match usize::try_from(len) {
        Ok(fits) if u64::from(len) <= METADATA_LEN_MAX => Ok(fits),
        _ => Err(Malformed::new("a header is longer than 128 MiB")),
    }
}

/// Parses a whole header.
///
/// # Errors
/// Returns an error if it is not in normal form, is not for a regular file or a symbolic link, or contains something that [`Attributes`] cannot hold.
pub fn parse_header(bytes: &[u8]) -> Result<Header<'_>, Malformed> {
    let shapes = [Shape::U32, Shape::U32, Shape::U32, Shape::U32, Shape::BYTES, Shape::BYTES];
    let [uid, gid, mode, device, target, xattrs] = members(variant(bytes)?, shapes)?;
    let attributes = attributes::from_members(uid, gid, mode, xattrs)?;
    header(attributes, device, target)
}

/// Parses a whole header from an archive repository.
///
/// # Errors
/// Returns the errors of [`parse_header`], and an error if a symbolic link has content.
pub fn parse_archive_header(bytes: &[u8]) -> Result<ArchiveHeader<'_>, Malformed> {
    let shapes = [Shape::U64, Shape::U32, Shape::U32, Shape::U32, Shape::U32, Shape::BYTES, Shape::BYTES];
    let [size, uid, gid, mode, device, target, xattrs] = members(variant(bytes)?, shapes)?;
    let size = size.try_into().map(u64::from_be_bytes);
    let size = size.map_err(|_| Malformed::new("a size is not eight bytes long"))?;
    let header = header(attributes::from_members(uid, gid, mode, xattrs)?, device, target)?;
    if size != 0 && !header.target.is_empty() {
        return Err(Malformed::new("a symbolic link has content"));
    }
    Ok(ArchiveHeader { size, header })
}

/// Returns the attributes, if a file object may have them.
pub(super) fn of_file(attributes: Attributes) -> Result<Attributes, Malformed> {
    match attributes.file_type() {
        FileType::Regular | FileType::Symlink => Ok(attributes),
        _ => Err(Malformed::new("a file object is neither a regular file nor a symbolic link")),
    }
}

fn header<'a>(attributes: Attributes, device: &[u8], target: &'a [u8]) -> Result<Header<'a>, Malformed> {
    let attributes = of_file(attributes)?;
    if attributes::number(device)? != 0 {
        return Err(Malformed::new("a file object has a device number"));
    }
    let target = text(target)?;
    if target.is_empty() == (attributes.file_type() == FileType::Symlink) {
        return Err(Malformed::new("a symbolic link has no target, or a regular file has one"));
    }
    Ok(Header { attributes, target })
}

fn variant(bytes: &[u8]) -> Result<&[u8], Malformed> {
    let ends = Malformed::new("a header ends too early, or is followed by bytes");
    let (prefix, variant) = bytes.split_first_chunk().ok_or(ends)?;
    if variant_len(*prefix)? == variant.len() { Ok(variant) } else { Err(ends) }
}

fn put(mut writer: Writer, attributes: &Attributes, target: &str) -> Vec<u8> {
    writer.put_u32(attributes.uid);
    writer.put_u32(attributes.gid);
    writer.put_u32(attributes.mode.into());
    writer.put_u32(0);
    writer.put_text(target);
    writer.put(Shape::BYTES, &attributes::encode_xattrs(&attributes.xattrs));
    writer.tuple()
}

fn prefixed(variant: Vec<u8>) -> Vec<u8> {
    // The low four bytes of eight. A longer variant has no valid header, and readers refuse it.
    let len = wide(variant.len()).to_be_bytes();
    [&len[4..], &[0; 4], &variant].concat()
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;
    use crate::Xattr;
    use crate::ostree::tests::{hex, some_attributes, sum};

    fn plain(mode: u16) -> Attributes {
        Attributes { mode, uid: 0, gid: 0, xattrs: crate::Xattrs::default() }
    }

    #[test]
    fn a_regular_file() {
        let header = encode_header(&plain(0o100_644), "");
        assert_eq!(hex(&header), "00000012000000000000000000000000000081a4000000000011");
        assert_eq!(sum(&header), "cc700d46f407c6c5ab2d5dde474366a928b7398277e61162e7f8ec06f469f07e");
        let with = [&*header, b"foo\n"].concat();
        assert_eq!(sum(&with), "3af11ec5cb8961214224eb336d2418783a941c925225b6cf64e6231325b749f2");
        let mut hasher = FileObjectHasher::new(&plain(0o100_644), "");
        hasher.update(b"fo");
        hasher.update(b"o\n");
        assert_eq!(hex(&hasher.finish()), sum(&with));
        let with = [&*encode_header(&plain(0o100_755), ""), b"foo\n"].concat();
        assert_eq!(sum(&with), "ff8dc506df8fb49eae3bb76e1d36a4c861348e42247c68d10e4b5f5f5048348f");
        assert_eq!(parse_header(&header), Ok(Header { attributes: plain(0o100_644), target: "" }));
    }

    #[test]
    fn a_symbolic_link() {
        let header = encode_header(&plain(0o120_777), "target");
        assert_eq!(hex(&header), "000000180000000000000000000000000000a1ff000000007461726765740017");
        assert_eq!(sum(&header), "a6b40a5400ed082fbe067d2c8397aab54046a089768651c392a36db46d24c1cd");
        assert_eq!(parse_header(&header), Ok(Header { attributes: plain(0o120_777), target: "target" }));
        assert!(parse_header(&encode_header(&plain(0o120_777), "")).is_err());
        assert!(parse_header(&encode_header(&plain(0o100_644), "target")).is_err());
        assert!(parse_header(&encode_header(&plain(0o020_644), "")).is_err());
    }

    #[test]
    fn extended_attributes() {
        let xattr = |name: &[u8], value: &[u8]| Xattr { name: name.to_vec(), value: value.to_vec() };
        let xattrs = vec![xattr(b"user.a", b"1"), xattr(b"user.b", b"2")];
        let attributes =
            Attributes { mode: 0o100_755, uid: 1000, gid: 1000, xattrs: xattrs.try_into().expect("they fit") };
        let header = encode_header(&attributes, "");
        let variant = "000003e8000003e8000081ed0000000000757365722e61003107757365722e62003207091211";
        assert_eq!(hex(&header[8..]), variant);
        let with = [&*header, b"foo\n"].concat();
        assert_eq!(sum(&with), "076f825e5707b6cd162e0eae3af3800b05b0577cb51e43f6a3d01f2653258d6b");
        assert_eq!(parse_header(&header), Ok(Header { attributes, target: "" }));
    }

    #[test]
    fn an_archive() {
        let header = encode_archive_header(4, &plain(0o100_644), "");
        assert_eq!(hex(&header), "0000001a0000000000000000000000040000000000000000000081a4000000000019");
        let expected = ArchiveHeader { size: 4, header: Header { attributes: plain(0o100_644), target: "" } };
        assert_eq!(parse_archive_header(&header), Ok(expected));
        assert!(parse_archive_header(&encode_archive_header(1, &plain(0o120_777), "target")).is_err());
    }

    #[test]
    fn lengths() {
        assert_eq!(variant_len([0, 0, 1, 2, 0, 0, 0, 0]), Ok(258));
        assert!(variant_len([0, 0, 1, 2, 0, 0, 0, 1]).is_err());
        assert!(variant_len([8, 0, 0, 1, 0, 0, 0, 0]).is_err());
        let header = encode_header(&plain(0o100_644), "");
        assert!(parse_header(&[&*header, b"\0"].concat()).is_err());
        assert!((0..header.len()).all(|len| parse_header(&header[..len]).is_err()));
    }

    proptest! {
        #[test]
        fn any_file_comes_back(attributes in some_attributes(0o100_000), size: u64) {
            let header = encode_header(&attributes, "");
            prop_assert_eq!(parse_header(&header).map(|header| header.attributes), Ok(attributes.clone()));
            let header = encode_archive_header(size, &attributes, "");
            let back = ArchiveHeader { size, header: Header { attributes, target: "" } };
            prop_assert_eq!(parse_archive_header(&header), Ok(back));
        }

        #[test]
        fn no_other_bytes_are_taken(
            attributes in some_attributes(0o120_000), target in ".{1,20}", at in any::<prop::sample::Index>(), byte: u8,
        ) {
            let mut bytes = encode_header(&attributes, &target);
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(parsed) = parse_header(&bytes) {
                prop_assert_eq!(encode_header(&parsed.attributes, parsed.target), bytes);
            }
        }

        #[test]
        fn arbitrary_bytes(mut bytes in prop::collection::vec(prop_oneof![Just(0), 0..40_u8, any::<u8>()], 8..80)) {
            let len = u8::try_from(bytes.len() - 8).expect("it is short");
            bytes[..8].copy_from_slice(&[0, 0, 0, len, 0, 0, 0, 0]);
            if let Ok(parsed) = parse_header(&bytes) {
                prop_assert_eq!(encode_header(&parsed.attributes, parsed.target), bytes);
            } else if let Ok(ArchiveHeader { size, header }) = parse_archive_header(&bytes) {
                prop_assert_eq!(encode_archive_header(size, &header.attributes, header.target), bytes);
            }
        }
    }
}
