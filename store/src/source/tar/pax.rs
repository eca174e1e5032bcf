//! Extended headers: POSIX.1-2001's records, and those that GNU tar, star and libarchive add.

use std::collections::BTreeMap;

use base64ct::{Base64Unpadded, Encoding};
use sealift_container::tar::{Extent, decimal, records};
use sealift_format::{Attributes, Xattr, Xattrs};

use crate::acl;
use crate::source::XattrFilter;
use crate::source::archive::{ArchiveFault, shown};

/// The maximum length of a path or link target.
pub(super) const PATH_LEN_MAX: usize = 65_535;

/// The extended headers of one member.
#[derive(Clone, Debug, Default)]
pub(super) struct Pax {
    pub(super) path: Option<Vec<u8>>,
    pub(super) link_path: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    pub(super) uid: Option<u32>,
    pub(super) gid: Option<u32>,
    pub(super) major: Option<u32>,
    pub(super) minor: Option<u32>,
    /// Seconds and nanoseconds.
    pub(super) mtime: Option<(i64, u32)>,
    pub(super) sparse: Sparse,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// ACLs in text form, by their attribute.
    acls: BTreeMap<&'static [u8], Vec<u8>>,
}

/// GNU's records for sparse files.
#[derive(Clone, Debug, Default)]
pub(super) struct Sparse {
    pub(super) name: Option<Vec<u8>>,
    pub(super) real_size: Option<u64>,
    pub(super) version: (Option<u64>, Option<u64>),
    /// The segments, in versions 0.0 and 0.1.
    pub(super) extents: Option<Vec<Extent>>,
    /// Version 0.0: the offset of a segment whose length follows.
    begin: Option<u64>,
}

impl Sparse {
    pub(super) fn is_used(&self) -> bool {
        self.name.is_some() || self.real_size.is_some() || self.version != (None, None) || self.extents.is_some()
    }
}

impl Pax {
    /// Applies a member's own extended header; of two records with one keyword the later wins.
    pub(super) fn read(&mut self, data: &[u8], filter: &XattrFilter) -> Result<(), ArchiveFault> {
        records(data).try_for_each(|record| {
            let (keyword, value) = record?;
            self.apply(keyword, value, filter)
        })
    }

    /// Applies a header for all members that follow.
    pub(super) fn read_global(&mut self, data: &[u8], filter: &XattrFilter) -> Result<(), ArchiveFault> {
        records(data).try_for_each(|record| {
            let (keyword, value) = record?;
            // Programs differ over these in a global header: what one reads as content is a header to another.
            let one_member = matches!(keyword, b"path" | b"linkpath" | b"size" | b"SCHILY.realsize");
            if one_member || keyword.starts_with(b"GNU.sparse.") {
                return Err(ArchiveFault::PaxGlobal { keyword: shown(keyword) });
            }
            self.apply(keyword, value, filter)
        })
    }

    fn apply(&mut self, keyword: &[u8], value: &[u8], filter: &XattrFilter) -> Result<(), ArchiveFault> {
        let wrong = || ArchiveFault::PaxValue { keyword: shown(keyword) };
        let path = || match value {
            [] => Ok(None),
            value if value.len() <= PATH_LEN_MAX => Ok(Some(value.to_vec())),
            _ => Err(wrong()),
        };
        let number = || optional(value, decimal).map_err(|()| wrong());
        let number32 = || optional(value, |value| u32::try_from(decimal(value)?).ok()).map_err(|()| wrong());
        match keyword {
            b"path" => self.path = path()?,
            b"linkpath" => self.link_path = path()?,
            b"size" => self.size = number()?,
            b"uid" => self.uid = number32()?,
            b"gid" => self.gid = number32()?,
            b"SCHILY.devmajor" => self.major = number32()?,
            b"SCHILY.devminor" => self.minor = number32()?,
            b"mtime" => self.mtime = optional(value, time).map_err(|()| wrong())?,
            b"GNU.sparse.name" => self.sparse.name = path()?,
            b"GNU.sparse.size" | b"GNU.sparse.realsize" => self.sparse.real_size = number()?,
            b"GNU.sparse.major" => self.sparse.version.0 = number()?,
            b"GNU.sparse.minor" => self.sparse.version.1 = number()?,
            b"GNU.sparse.map" => self.sparse.extents = Some(map(value).ok_or(ArchiveFault::SparseMap)?),
            b"GNU.sparse.offset" if self.sparse.begin.is_none() => {
                self.sparse.begin = Some(decimal(value).ok_or(ArchiveFault::SparseMap)?);
            }
            b"GNU.sparse.numbytes" => {
                let begin = self.sparse.begin.take().ok_or(ArchiveFault::SparseMap)?;
                let len = decimal(value).ok_or(ArchiveFault::SparseMap)?;
                self.sparse.extents.get_or_insert_default().push((begin, len));
            }
            b"GNU.sparse.numblocks" => {}
            b"SCHILY.acl.access" => self.set_acl(acl::ACCESS, value, filter),
            b"SCHILY.acl.default" => self.set_acl(acl::DEFAULT, value, filter),
            // As the kernel returns it: with the NUL.
            b"RHT.security.selinux" => self.set_xattr(b"security.selinux".into(), [value, b"\0"].concat(), filter)?,
            // Other programs' sparse files, and ACLs that Linux does not support: they must not be lost silently.
            b"SCHILY.realsize" | b"SCHILY.acl.ace" => return Err(wrong()),
            _ if keyword.starts_with(b"GNU.sparse.") => return Err(ArchiveFault::SparseVersion),
            _ => {
                if let Some(name) = keyword.strip_prefix(b"SCHILY.xattr.") {
                    self.set_xattr(percent_decoded(name, &[b"3D", b"25"]), value.to_vec(), filter)?;
                } else if let Some(name) = keyword.strip_prefix(b"LIBARCHIVE.xattr.") {
                    let value = base64(value).ok_or_else(wrong)?;
                    self.set_xattr(percent_decoded(name, &[]), value, filter)?;
                }
            }
        }
        Ok(())
    }

    fn set_acl(&mut self, name: &'static [u8], text: &[u8], filter: &XattrFilter) {
        if filter.takes(name) {
            self.acls.insert(name, text.to_vec());
        }
    }

    fn set_xattr(&mut self, name: Vec<u8>, value: Vec<u8>, filter: &XattrFilter) -> Result<(), ArchiveFault> {
        let value_fits = u32::try_from(value.len()).is_ok_and(|len| len <= Attributes::XATTR_LEN_MAX);
        if name.is_empty() || name.len() > 255 || name.contains(&0) || !value_fits {
            return Err(ArchiveFault::PaxValue { keyword: shown(&name) });
        }
        if filter.takes(&name) {
            self.xattrs.insert(name, value);
        }
        Ok(())
    }

    /// Returns the extended attributes, including ACLs.
    pub(super) fn into_xattrs(mut self) -> Result<Xattrs, ArchiveFault> {
        for (name, text) in std::mem::take(&mut self.acls) {
            // `tar --acls --xattrs` writes both forms; the attribute is exact.
            if !self.xattrs.contains_key(name)
                && let Some(value) = acl::from_text(&text, name)?
            {
                self.xattrs.insert(name.to_vec(), value);
            }
        }
        let fits = |name: &Vec<u8>| !name.is_empty() && !name.contains(&0);
        if !self.xattrs.keys().all(fits) {
            return Err(ArchiveFault::Xattrs);
        }
        let xattrs: Vec<Xattr> = self.xattrs.into_iter().map(|(name, value)| Xattr { name, value }).collect();
        xattrs.try_into().map_err(|_| ArchiveFault::Xattrs)
    }
}

/// Parses a value; an empty one cancels an earlier record (POSIX).
fn optional<T>(value: &[u8], parse: impl Fn(&[u8]) -> Option<T>) -> Result<Option<T>, ()> {
    if value.is_empty() { Ok(None) } else { parse(value).map(Some).ok_or(()) }
}

/// Parses `[-]SECONDS[.FRACTION]`, rounding down to a nanosecond.
fn time(value: &[u8]) -> Option<(i64, u32)> {
    let (negative, value) = value.strip_prefix(b"-").map_or((false, value), |rest| (true, rest));
    let mut parts = value.splitn(2, |byte| *byte == b'.');
    let seconds = i64::try_from(decimal(parts.next()?)?).ok()?;
    let fraction = parts.next().unwrap_or_default();
    if !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = fraction.iter().chain(std::iter::repeat(&b'0')).take(9);
    let mut nanoseconds = digits.fold(0, |value, digit| value * 10 + u32::from(digit - b'0'));
    if !negative {
        return Some((seconds, nanoseconds));
    }
    if fraction.iter().skip(9).any(|digit| *digit != b'0') {
        nanoseconds += 1;
    }
    Some(if nanoseconds == 0 { (-seconds, 0) } else { (-seconds - 1, 1_000_000_000 - nanoseconds) })
}

/// Parses `OFFSET,LENGTH,OFFSET,LENGTH...`.
fn map(value: &[u8]) -> Option<Vec<Extent>> {
    if value.is_empty() {
        return Some(Vec::new());
    }
    let mut numbers = value.split(|byte| *byte == b',').map(decimal);
    let mut extents = Vec::new();
    while let Some(begin) = numbers.next() {
        extents.push((begin?, numbers.next()??));
    }
    Some(extents)
}

/// Decodes `%XX`: only the codes in `only`, or all if that is empty.
fn percent_decoded(text: &[u8], only: &[&[u8]]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|code| *first == b'%' && (only.is_empty() || only.contains(code)));
        if let Some(byte) = code.and_then(hexadecimal) {
            decoded.push(byte);
            rest = &after[2..];
        } else {
            decoded.push(*first);
            rest = after;
        }
    }
    decoded
}

fn hexadecimal(digits: &[u8]) -> Option<u8> {
    digits.iter().try_fold(0_u8, |value, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        value.checked_mul(16)?.checked_add(u8::try_from(digit).ok()?)
    })
}

/// Decodes base64 as libarchive writes it, without padding; padding is accepted.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?;
    Base64Unpadded::decode_vec(text.trim_end_matches('=')).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(data: &[u8]) -> Result<Pax, ArchiveFault> {
        let mut pax = Pax::default();
        pax.read(data, &XattrFilter::default()).map(|()| pax)
    }

    #[test]
    fn times() {
        let table = [
            ("1", Some((1, 0))),
            ("1.5", Some((1, 500_000_000))),
            ("1.0000000019", Some((1, 1))),
            ("1.", Some((1, 0))),
            ("-1", Some((-1, 0))),
            ("-1.5", Some((-2, 500_000_000))),
            ("-0.0000000001", Some((-1, 999_999_999))),
            ("-0.9999999999", Some((-1, 0))),
            ("1.x", None),
            (".5", None),
        ];
        for (text, value) in table {
            assert_eq!(time(text.as_bytes()), value, "{text}");
        }
    }

    #[test]
    fn values_hold_newlines() {
        let value = b"x\n9 size=1\n";
        let data = [b"35 SCHILY.xattr.user.a=", &value[..], b"\n9 size=7\n"].concat();
        let pax = read(&data).expect("the records are right");
        assert_eq!(pax.size, Some(7));
        let xattrs = pax.into_xattrs().expect("no ACLs");
        assert_eq!((xattrs.len(), xattrs.get(b"user.a")), (1, Some(&value[..])));
    }

    #[test]
    fn attributes_that_no_file_can_have_are_refused() {
        let with = |count: usize, name_len: usize| {
            let name = |number: usize| [format!("{number:06}").into_bytes(), vec![b'a'; name_len]].concat();
            let xattrs = (0..count).map(|number| (name(number), Vec::new())).collect();
            Pax { xattrs, ..Pax::default() }.into_xattrs()
        };
        assert!(with(65_535, 0).is_ok() && with(1, 249).is_ok());
        assert!(
            matches!(with(65_536, 0), Err(ArchiveFault::Xattrs)) && matches!(with(1, 250), Err(ArchiveFault::Xattrs))
        );
    }

    #[test]
    fn a_later_record_wins() {
        assert_eq!(read(b"9 size=1\n9 size=2\n").expect("good").size, Some(2));
        assert_eq!(read(b"9 size=1\n8 size=\n\0\0\0").expect("good").size, None);
        assert!(matches!(read(b"9 size=x\n"), Err(ArchiveFault::PaxValue { .. })));
        let mut global = Pax::default();
        assert!(matches!(
            global.read_global(b"9 size=1\n", &XattrFilter::default()),
            Err(ArchiveFault::PaxGlobal { .. })
        ));
    }

    #[test]
    fn encodings() {
        assert_eq!(percent_decoded(b"a%3Db%25%41", &[b"3D", b"25"]), b"a=b%%41");
        assert_eq!(percent_decoded(b"a%41%zz%4", &[]), b"aA%zz%4");
        assert_eq!(base64(b"AQAAAg"), Some(vec![1, 0, 0, 2]));
        assert_eq!(base64(b"YWJj"), Some(b"abc".to_vec()));
        assert_eq!(base64(b"YWI="), Some(b"ab".to_vec()));
        assert_eq!(base64(b"Y"), None);
        assert_eq!(base64(b"Y-"), None);
        assert_eq!(base64(b""), Some(Vec::new()));
    }
}
