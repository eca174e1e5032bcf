//! tar archives in the pax format (POSIX.1-2001, pax(1)): a ustar header, preceded by records for what does not fit it. Extended attributes are
//! records `SCHILY.xattr.NAME`, as in GNU tar, bsdtar and star; an ACL is a record `SCHILY.acl.access` or `SCHILY.acl.default` as well, since
//! `tar --acls` and bsdtar read only these. Names begin with `./`, as those of `tar -c .` and mmdebstrap do: programs that unpack
//! a root file system leave out parts of it by such names, as Debian's sbuild does with `--exclude=./dev/null`.

use std::io::Write as _;

use sealift_format::num;
use sealift_format::{Device, FileType};

use super::encoder::{ArchiveEncoder, Member, Unfit};
use crate::acl;

pub(super) const BLOCK_LEN: usize = 512;
const NAME_LEN: usize = 100;
/// The largest numbers in 7 and in 11 octal digits.
const SEVEN_DIGITS: u64 = 0o777_7777;
const ELEVEN_DIGITS: u64 = 0o777_7777_7777;

pub(super) const ENCODER: ArchiveEncoder = ArchiveEncoder {
    scheme: "tar",
    header,
    align: 512,
    // Two blocks of zeros.
    end: &[0; 2 * BLOCK_LEN],
    has_sockets: false,
    has_xattrs: true,
    ending: None,
};

fn header(member: &Member<'_>, out: &mut Vec<u8>) -> Result<(), Unfit> {
    header_below(b"./", member, out)
}

/// Appends the header of a member whose name gets this prefix.
pub(super) fn header_below(prefix: &[u8], member: &Member<'_>, out: &mut Vec<u8>) -> Result<(), Unfit> {
    let below_root = |path: &[u8]| [prefix, path].concat();
    let file_type = member.attributes.file_type();
    let name = match (file_type, member.path) {
        (FileType::Directory, path) if !path.is_empty() => [prefix, path, b"/"].concat(),
        (_, path) => below_root(path),
    };
    let type_flag = match file_type {
        _ if member.first.is_some() => b'1',
        FileType::Regular => b'0',
        FileType::Symlink => b'2',
        FileType::CharDevice => b'3',
        FileType::BlockDevice => b'4',
        FileType::Directory => b'5',
        FileType::Fifo => b'6',
        FileType::Socket => return Err(Unfit("sockets")),
    };
    let first = member.first.map(below_root);
    let (target, device, size) = match &first {
        Some(first) => (&first[..], None, 0),
        None => (member.target, member.device, member.size),
    };
    let records = records(member, &name, target, size)?;
    let mtime = u64::try_from(member.inode.mtime).unwrap_or(0).min(ELEVEN_DIGITS);
    let fields = Fields { name: &name, target, type_flag, size: size.min(ELEVEN_DIGITS), mtime, device };
    if !records.is_empty() {
        let base = member.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let name = [&b"PaxHeaders/"[..], &base[..base.len().min(NAME_LEN - 11)]].concat();
        let size = num::wide(records.len());
        let own = Fields { name: &name, target: b"", type_flag: b'x', size, device: None, ..fields };
        own.write((0o644, 0, 0), out)?;
        out.extend_from_slice(&records);
        out.resize(out.len().next_multiple_of(BLOCK_LEN), 0);
    }
    let attributes = member.attributes;
    fields.write((attributes.mode & 0o7777, attributes.uid, attributes.gid), out)
}

/// Appends the header of a regular file of root that everybody may read. `name` has at most 100 bytes, and `size` at most 8 GiB.
pub(super) fn plain_header(name: &[u8], size: u64, mtime: u64, out: &mut Vec<u8>) -> Result<(), Unfit> {
    let fields = Fields { name, target: b"", type_flag: b'0', size, mtime: mtime.min(ELEVEN_DIGITS), device: None };
    fields.write((0o644, 0, 0), out)
}

/// Returns the records of what does not fit the header.
fn records(member: &Member<'_>, name: &[u8], target: &[u8], size: u64) -> Result<Vec<u8>, Unfit> {
    let mut records = Vec::new();
    let attributes = member.attributes;
    let mut add = |key: &[u8], value: &[u8]| record(&mut records, key, value);
    if name.len() > NAME_LEN {
        add(b"path", name);
    }
    if target.len() > NAME_LEN {
        add(b"linkpath", target);
    }
    if size > ELEVEN_DIGITS {
        add(b"size", size.to_string().as_bytes());
    }
    for (key, id) in [(&b"uid"[..], attributes.uid), (b"gid", attributes.gid)] {
        if u64::from(id) > SEVEN_DIGITS {
            add(key, id.to_string().as_bytes());
        }
    }
    if member.inode.mtime_ns != 0 || u64::try_from(member.inode.mtime).map_or(true, |time| time > ELEVEN_DIGITS) {
        add(b"mtime", time(member.inode.mtime, member.inode.mtime_ns).as_bytes());
    }
    // Extended attributes come with the file's first name.
    if member.first.is_none() {
        for xattr in &attributes.xattrs {
            if xattr.name.contains(&b'=') {
                return Err(Unfit("an extended attribute with an equals sign in its name"));
            }
            add(&[&b"SCHILY.xattr."[..], xattr.name].concat(), xattr.value);
            let key = match xattr.name {
                acl::ACCESS => &b"SCHILY.acl.access"[..],
                acl::DEFAULT => b"SCHILY.acl.default",
                _ => continue,
            };
            if let Some(text) = acl::to_text(xattr.value) {
                add(key, text.as_bytes());
            }
        }
    }
    Ok(records)
}

/// Appends `LEN KEY=VALUE\n`, where LEN counts its own digits.
fn record(records: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    let rest = key.len() + value.len() + 3;
    let mut len = rest + 1;
    while len != rest + len.to_string().len() {
        len = rest + len.to_string().len();
    }
    records.extend_from_slice(format!("{len} ").as_bytes());
    records.extend_from_slice(key);
    records.push(b'=');
    records.extend_from_slice(value);
    records.push(b'\n');
}

/// Returns seconds as a decimal number. Nanoseconds count forward, also before 1970.
fn time(seconds: i64, nanoseconds: u32) -> String {
    if nanoseconds == 0 {
        return seconds.to_string();
    }
    let digits = |nanoseconds: u32| format!("{nanoseconds:09}").trim_end_matches('0').to_owned();
    if seconds < 0 {
        let whole = (seconds + 1).unsigned_abs();
        return format!("-{whole}.{}", digits(1_000_000_000 - nanoseconds));
    }
    format!("{seconds}.{}", digits(nanoseconds))
}

/// The fields of a header.
#[derive(Clone, Copy)]
struct Fields<'a> {
    name: &'a [u8],
    target: &'a [u8],
    type_flag: u8,
    size: u64,
    mtime: u64,
    device: Option<Device>,
}

impl Fields<'_> {
    /// Appends the block. Names that are too long are cut, since a record has them.
    fn write(self, (mode, uid, gid): (u16, u32, u32), out: &mut Vec<u8>) -> Result<(), Unfit> {
        let mut block = [0_u8; BLOCK_LEN];
        let mut text = |at: usize, bytes: &[u8]| {
            let len = bytes.len().min(NAME_LEN);
            block[at..at + len].copy_from_slice(&bytes[..len]);
        };
        text(0, self.name);
        text(157, self.target);
        text(257, b"ustar\x0000");
        block[156] = self.type_flag;
        let mut number = |at: usize, digits: usize, value: u64| {
            let mut field = &mut block[at..at + digits];
            let _ = write!(field, "{value:0digits$o}"); // callers give what fits
        };
        number(100, 7, mode.into());
        number(108, 7, u64::from(uid).min(SEVEN_DIGITS));
        number(116, 7, u64::from(gid).min(SEVEN_DIGITS));
        number(124, 11, self.size);
        number(136, 11, self.mtime);
        if let Some(Device { major, minor }) = self.device {
            if u64::from(major.max(minor)) > SEVEN_DIGITS {
                return Err(Unfit("device numbers of more than seven octal digits"));
            }
            number(329, 7, major.into());
            number(337, 7, minor.into());
        }
        // The checksum counts itself as spaces.
        let sum = block.iter().map(|byte| u64::from(*byte)).sum::<u64>() + 8 * u64::from(b' ');
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        out.extend_from_slice(&block);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_counts_its_own_digits() {
        for (value_len, len) in [(0, 5), (4, 9), (5, 11), (92, 98), (93, 99), (94, 101)] {
            let mut records = Vec::new();
            record(&mut records, b"a", &vec![b'v'; value_len]);
            assert_eq!(records.len(), len, "{value_len}");
            assert!(records.starts_with(format!("{len} a=").as_bytes()));
        }
    }

    #[test]
    fn times_are_decimal_numbers() {
        let cases = [
            (7, 0, "7"),
            (7, 500_000_000, "7.5"),
            (0, 1, "0.000000001"),
            (-1, 500_000_000, "-0.5"),
            (-2, 250_000_000, "-1.75"),
            (-2, 0, "-2"),
            (i64::MIN, 1, "-9223372036854775807.999999999"),
        ];
        for (seconds, nanoseconds, text) in cases {
            assert_eq!(time(seconds, nanoseconds), text);
        }
    }
}
