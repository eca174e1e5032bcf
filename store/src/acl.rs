//! POSIX ACLs: from the text in archives to the attribute that Linux stores, and back.

use std::fmt::Write as _;

use crate::error::{ArchiveFault, shown};

/// The attribute of an access ACL.
pub(crate) const ACCESS: &[u8] = b"system.posix_acl_access";
/// The attribute of a directory's default ACL.
pub(crate) const DEFAULT: &[u8] = b"system.posix_acl_default";

/// The version of the attribute's format.
const VERSION: u32 = 2;
/// The id of entries without a name.
const NOBODY: u32 = u32::MAX;

/// Converts `user::rwx,user:1000:r--,mask::rwx...`, separated by newlines or commas. Returns `None` if it adds nothing to the permission bits.
pub(crate) fn from_text(text: &[u8], attribute: &[u8]) -> Result<Option<Vec<u8>>, ArchiveFault> {
    let mut entries: Vec<(u16, u32, u16)> = Vec::new();
    for line in text.split(|byte| matches!(byte, b'\n' | b',')) {
        let line = line.split(|byte| *byte == b'#').next().unwrap_or_default().trim_ascii();
        if !line.is_empty() {
            entries.push(entry(line, attribute)?);
        }
    }
    let named = entries.iter().any(|(tag, _, _)| matches!(tag, 0x02 | 0x08 | 0x10));
    if entries.is_empty() || (attribute == ACCESS && !named) {
        return Ok(None);
    }
    entries.sort_unstable();
    let mut value = VERSION.to_le_bytes().to_vec();
    for (tag, id, permissions) in entries {
        value.extend(tag.to_le_bytes());
        value.extend(permissions.to_le_bytes());
        value.extend(id.to_le_bytes());
    }
    Ok(Some(value))
}

/// Converts the attribute to text with numeric ids, one entry per line; `None` if it is not as Linux stores it.
pub(crate) fn to_text(value: &[u8]) -> Option<String> {
    let entries = value.strip_prefix(&VERSION.to_le_bytes())?;
    let (entries, rest) = entries.as_chunks::<8>();
    let mut text = String::new();
    for entry in entries {
        let [tag, 0, permissions @ 0..=7, 0, id @ ..] = entry else { return None };
        let (tag, has_id) = match tag {
            0x01 => ("user", false),
            0x02 => ("user", true),
            0x04 => ("group", false),
            0x08 => ("group", true),
            0x10 => ("mask", false),
            0x20 => ("other", false),
            _ => return None,
        };
        let who = if has_id { u32::from_le_bytes(*id).to_string() } else { String::new() };
        let letter = |bit, letter| if permissions & bit == 0 { '-' } else { letter };
        let (read, write, execute) = (letter(4, 'r'), letter(2, 'w'), letter(1, 'x'));
        let _ = writeln!(text, "{tag}:{who}:{read}{write}{execute}"); // a String takes everything
    }
    rest.is_empty().then_some(text)
}

/// Returns the permissions of a file with an access ACL: Linux stores the ACL's mask in the group bits, where libarchive writes the group's own.
pub(crate) fn permissions(permissions: u16, acl: &[u8]) -> u16 {
    let Some(entries) = acl.strip_prefix(&VERSION.to_le_bytes()) else { return permissions };
    let bits = |wanted: u8| {
        let mut entries = entries.chunks_exact(8);
        entries.find_map(|entry| match entry {
            [tag, 0, bits @ 0..=7, 0, ..] if *tag == wanted => Some(u16::from(*bits)),
            _ => None,
        })
    };
    match (bits(0x01), bits(0x10).or(bits(0x04)), bits(0x20)) {
        (Some(user), Some(group), Some(other)) => permissions & 0o7000 | user << 6 | group << 3 | other,
        _ => permissions,
    }
}

/// Parses `TAG:[WHO]:PERMISSIONS[:NUMBER]`; star and libarchive add the number.
fn entry(line: &[u8], attribute: &[u8]) -> Result<(u16, u32, u16), ArchiveFault> {
    let wrong = || ArchiveFault::PaxValue { keyword: shown(attribute) };
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b':').collect();
    let (tag, who, permissions, number) = match *fields {
        [tag, who, permissions] => (tag, who, permissions, who),
        [tag, who, permissions, number] => (tag, who, permissions, number),
        _ => return Err(wrong()),
    };
    let tag = match (tag, who.is_empty()) {
        (b"user" | b"u", true) => 0x01,
        (b"user" | b"u", false) => 0x02,
        (b"group" | b"g", true) => 0x04,
        (b"group" | b"g", false) => 0x08,
        (b"mask" | b"m", true) => 0x10,
        (b"other" | b"o", true) => 0x20,
        _ => return Err(wrong()),
    };
    let id = match number_of(number) {
        _ if who.is_empty() => NOBODY,
        Some(id) => id,
        None => return Err(ArchiveFault::AclName { who: shown(who) }),
    };
    let permissions = permissions.iter().try_fold(0, |bits, letter| match letter {
        b'r' => Ok(bits | 4),
        b'w' => Ok(bits | 2),
        b'x' => Ok(bits | 1),
        b'-' => Ok(bits),
        _ => Err(wrong()),
    })?;
    Ok((tag, id, permissions))
}

/// Parses an id of decimal digits and nothing else.
fn number_of(digits: &[u8]) -> Option<u32> {
    let digits = std::str::from_utf8(digits).ok()?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_the_kernel_stores_it() {
        let text = b"user::rw-\nuser:1000:r--\nuser:daemon:rw-:1\ngroup::r--\nmask::rw-\nother::r--\n";
        let value = from_text(text, ACCESS).expect("the text is right").expect("it has named entries");
        // The output of getfattr for the file.
        let stored = "0200000001000600ffffffff020006000100000002000400e803000004000400ffffffff10000600ffffffff\
                      20000400ffffffff";
        assert_eq!(value.iter().map(|byte| format!("{byte:02x}")).collect::<String>(), stored);
        let numbers = "user::rw-\nuser:1:rw-\nuser:1000:r--\ngroup::r--\nmask::rw-\nother::r--\n";
        assert_eq!(to_text(&value).as_deref(), Some(numbers));
        assert_eq!(from_text(numbers.as_bytes(), ACCESS), Ok(Some(value.clone())));
        for bad in [&value[1..], &value[..value.len() - 1], b"", &[value.as_slice(), &[3; 8]].concat()] {
            assert_eq!(to_text(bad), None);
        }
    }

    #[test]
    fn the_mask_is_the_group() {
        let acl = from_text(b"user::rw-,user:1:rwx,group::r--,mask::rwx,other::---", ACCESS);
        let acl = acl.expect("the text is right").expect("it has a named entry");
        assert_eq!(permissions(0o4644, &acl), 0o4670);
        assert_eq!(permissions(0o4644, &acl[..acl.len() - 8]), 0o4644);
        assert_eq!(permissions(0o4644, b""), 0o4644);
    }

    #[test]
    fn permission_bits_are_no_attribute() {
        assert_eq!(from_text(b"user::rwx\ngroup::r-x\nother::r-x\n", ACCESS), Ok(None));
        assert!(from_text(b"user::rwx,group::r-x,other::r-x", DEFAULT).is_ok_and(|value| value.is_some()));
    }

    #[test]
    fn names_are_refused() {
        let named = from_text(b"user:ann:rwx", ACCESS);
        assert_eq!(named, Err(ArchiveFault::AclName { who: "ann".into() }));
        for bad in ["user", "user:1:rwx:2:3", "mask:1:rwx", "user:1:rwz", "world::rwx"] {
            assert!(matches!(from_text(bad.as_bytes(), ACCESS), Err(ArchiveFault::PaxValue { .. })), "{bad}");
        }
    }
}
