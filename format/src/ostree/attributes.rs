//! Owner, mode and extended attributes, as encoded in dirmetas, headers and the attribute `user.ostreemeta`.

use alloc::vec::Vec;

use super::Malformed;
use super::framing::{Elements, Shape, Writer, members};
use crate::{Attributes, FileType, XattrRef, Xattrs};

/// Encodes `(uuua(ayay))`.
pub(super) fn encode(attributes: &Attributes) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.put_u32(attributes.uid);
    writer.put_u32(attributes.gid);
    writer.put_u32(attributes.mode.into());
    writer.put(Shape::BYTES, &encode_xattrs(&attributes.xattrs));
    writer.tuple()
}

/// Parses `(uuua(ayay))`.
pub(super) fn parse(bytes: &[u8]) -> Result<Attributes, Malformed> {
    let [uid, gid, mode, xattrs] = members(bytes, [Shape::U32, Shape::U32, Shape::U32, Shape::BYTES])?;
    from_members(uid, gid, mode, xattrs)
}

/// Returns the attributes for the members that all these forms share.
pub(super) fn from_members(uid: &[u8], gid: &[u8], mode: &[u8], xattrs: &[u8]) -> Result<Attributes, Malformed> {
    let (uid, gid) = (number(uid)?, number(gid)?);
    // For chown(2), 2^32-1 means that the owner or group stays as it is.
    if uid == u32::MAX || gid == u32::MAX {
        return Err(Malformed::new("an owner or group is 2^32-1, which is nobody"));
    }
    let mode = u16::try_from(number(mode)?).map_err(|_| Malformed::new("a mode has bits above 0xffff"))?;
    if FileType::of_mode(mode).is_none() {
        return Err(Malformed::new("a mode has no file type"));
    }
    Ok(Attributes { mode, uid, gid, xattrs: parse_xattrs(xattrs)? })
}

/// Parses a number, which OSTree stores with the highest byte first.
pub(super) fn number(bytes: &[u8]) -> Result<u32, Malformed> {
    bytes.try_into().map(u32::from_be_bytes).map_err(|_| Malformed::new("a number is not four bytes long"))
}

/// Encodes `a(ayay)`.
pub(super) fn encode_xattrs(xattrs: &Xattrs) -> Vec<u8> {
    let mut array = Writer::default();
    for xattr in xattrs {
        let mut pair = Writer::default();
        pair.put(Shape::BYTES, &[xattr.name, &[0]].concat());
        pair.put(Shape::BYTES, xattr.value);
        array.put(Shape::BYTES, &pair.tuple());
    }
    array.array()
}

fn parse_xattrs(bytes: &[u8]) -> Result<Xattrs, Malformed> {
    let (mut xattrs, mut last): (_, &[u8]) = (Xattrs::builder(), &[]);
    for pair in Elements::of(bytes, 1)? {
        let [name, value] = members(pair?, [Shape::BYTES; 2])?;
        let name = match name.split_last() {
            Some((0, name)) if !name.is_empty() && !name.contains(&0) => name,
            _ => {
                return Err(Malformed::new(
                    "the name of an extended attribute is empty or does not end with its one NUL byte",
                ));
            }
        };
        if name.len() > 255 {
            return Err(Malformed::new("the name of an extended attribute has more than 255 bytes"));
        }
        if last >= name {
            return Err(Malformed::new("names of extended attributes do not ascend"));
        }
        let pushed = xattrs.push(XattrRef { name, value });
        pushed.map_err(|_| {
            Malformed::new("there are more than 65535 extended attributes, or one has over 65536 bytes")
        })?;
        last = name;
    }
    xattrs.finish().map_err(|_| Malformed::new("the extended attributes of a file are longer than an index"))
}
