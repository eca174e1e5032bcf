//! The listing of a bundle, as specified in tests/reference/README.md.

use std::fmt::Write as _;

use sealift::Bundle;
use sealift::inspect::{Listed, What, entries};
use sha2::{Digest as _, Sha256};

/// Returns the SHA-256 of the listing.
pub fn listing_digest(bundle: &Bundle) -> String {
    hex(&Sha256::digest(listing(bundle)))
}

/// Returns one JSON object per line for each file, including the refs' roots.
pub fn listing(bundle: &Bundle) -> String {
    let mut out = String::new();
    for entry in entries(bundle) {
        line(&mut out, &entry).expect("a String takes everything");
    }
    out
}

fn line(out: &mut String, entry: &Listed<'_>) -> std::fmt::Result {
    let (attributes, inode, path) = (entry.attributes, entry.inode, entry.path());
    let path = if entry.parent.is_none() { b"." } else { &path[..] };
    let kind = match entry.what {
        What::Directory => "dir",
        What::Regular { .. } => "file",
        What::Symlink(_) => "symlink",
        What::CharDevice(_) => "char",
        What::BlockDevice(_) => "block",
        What::Fifo => "fifo",
        What::Socket => "socket",
        _ => "unknown",
    };
    write!(out, "{{\"ref\":{},\"path\":{}", quoted(entry.reference.name.as_bytes()), quoted(path))?;
    write!(out, ",\"type\":\"{kind}\",\"mode\":{}", attributes.mode & 0o7777)?;
    write!(out, ",\"uid\":{},\"gid\":{}", attributes.uid, attributes.gid)?;
    write!(out, ",\"mtime\":{},\"mtime_ns\":{}", inode.mtime, inode.mtime_ns)?;
    match entry.what {
        What::Regular { object, .. } => write!(out, ",\"size\":{},\"id\":\"{}\"", object.size, hex(&object.id))?,
        What::Symlink(target) => write!(out, ",\"target\":{}", quoted(target))?,
        What::CharDevice(device) | What::BlockDevice(device) => {
            write!(out, ",\"major\":{},\"minor\":{}", device.major, device.minor)?;
        }
        _ => {}
    }
    if !attributes.xattrs.is_empty() {
        let pairs = attributes.xattrs.iter().map(|xattr| format!("{}:\"{}\"", quoted(xattr.name), hex(xattr.value)));
        write!(out, ",\"xattrs\":{{{}}}", pairs.collect::<Vec<_>>().join(","))?;
    }
    writeln!(out, ",\"inode\":{}}}", entry.number)
}

/// Returns a name as a JSON string. Control characters, bidirectional controls, `%` and invalid UTF-8 become `%` and two digits per byte.
fn quoted(name: &[u8]) -> String {
    let mut out = String::from("\"");
    let escape = |out: &mut String, bytes: &[u8]| bytes.iter().for_each(|byte| out.push_str(&format!("%{byte:02X}")));
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' | '\\' => out.extend(['\\', character]),
                '%'
                | '\0'..='\x1f'
                | '\x7f'..='\u{9f}'
                | '\u{61c}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}' => {
                    escape(&mut out, character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                character => out.push(character),
            }
        }
        escape(&mut out, chunk.invalid());
    }
    out.push('"');
    out
}

/// Returns lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
