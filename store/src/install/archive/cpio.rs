//! cpio archives in the newc format, as the kernel unpacks them (Documentation/driver-api/early-userspace/buffer-format.rst).

use sealift_format::num;
use sealift_format::{Device, FileType};

use super::encoder::{ArchiveEncoder, Member, Unfit};

/// Header, name and content end at multiples of this.
const ALIGN: usize = 4;

pub(super) const ENCODER: ArchiveEncoder = ArchiveEncoder {
    scheme: "cpio",
    header,
    align: 4,
    end: b"07070100000000000000000000000000000000000000010000000000000000\
           000000000000000000000000000000000000000B00000000TRAILER!!!\0\0\0\0",
    has_sockets: true,
    has_xattrs: false,
    ending: None,
};

fn header(member: &Member<'_>, out: &mut Vec<u8>) -> Result<(), Unfit> {
    let name = if member.path.is_empty() { b"." } else { member.path };
    // The first name of a file comes with its content, and each name of a symbolic link with its target.
    let Device { major, minor } = member.device.unwrap_or(Device { major: 0, minor: 0 });
    let size =
        u32::try_from(member.size + num::wide(member.target.len())).map_err(|_| Unfit("files of 4 GiB or more"))?;
    let mtime = u32::try_from(member.inode.mtime).map_err(|_| Unfit("times before 1970 or after 2106"))?;
    let name_len = u32::try_from(name.len() + 1).map_err(|_| Unfit("a path of this length"))?;
    let links = if member.attributes.file_type() == FileType::Directory { 2 } else { member.names };
    let attributes = member.attributes;
    let start = out.len();
    out.extend_from_slice(b"070701");
    // Inode numbers start at 1, since 0 stands for none. They and the device 0:0 have a meaning only within this archive.
    let fields = [
        member.number.number() + 1,
        attributes.mode.into(),
        attributes.uid,
        attributes.gid,
        links,
        mtime,
        size,
        0,
        0,
        major,
        minor,
        name_len,
        0,
    ];
    for field in fields {
        out.extend_from_slice(format!("{field:08X}").as_bytes());
    }
    out.extend_from_slice(name);
    out.push(0);
    align(out, start);
    out.extend_from_slice(member.target);
    align(out, start);
    Ok(())
}

fn align(out: &mut Vec<u8>, start: usize) {
    out.resize(start + (out.len() - start).next_multiple_of(ALIGN), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trailer_is_a_member() {
        let (header, name) = ENCODER.end.split_at(110);
        assert!(header.starts_with(b"070701"));
        assert_eq!((&header[94..102], name), (&b"0000000B"[..], &b"TRAILER!!!\0\0\0\0"[..]));
        assert_eq!(ENCODER.end.len() % ALIGN, 0);
    }
}
