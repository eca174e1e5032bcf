//! OpenSSH's binary key revocation list (PROTOCOL.krl). Bundles are signed by
//! plain keys, so sections about certificates are parsed but ignored.

use super::KeyId;
use super::wire::{Malformed, Reader};

pub(super) const MAGIC: &[u8; 8] = b"SSHKRL\n\0";
const VERSION: u32 = 1;

const CERTIFICATES: u8 = 1;
const EXPLICIT_KEY: u8 = 2;
const FINGERPRINT_SHA1: u8 = 3;
const SIGNATURE: u8 = 4;
const FINGERPRINT_SHA256: u8 = 5;
const EXTENSION: u8 = 255;

const CERT_EXTENSION: u8 = 0x39;

/// The keys in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) ids: Vec<KeyId>,
    pub(super) sha1s: Vec<[u8; 20]>,
}

pub(super) fn parse(file: &[u8]) -> Result<Listed, Malformed> {
    let mut reader = Reader::new(file);
    if reader.take(MAGIC.len())? != MAGIC {
        return Err(Malformed("it does not begin with SSHKRL"));
    }
    if reader.u32()? != VERSION {
        return Err(Malformed("its version is not 1"));
    }
    let _list_version = reader.u64()?;
    let _generated = reader.u64()?;
    let _flags = reader.u64()?;
    let _reserved = reader.string()?;
    let _comment = reader.string()?;

    let mut list = Listed::default();
    while !reader.is_empty() {
        let kind = reader.byte()?;
        section(kind, Reader::new(reader.string()?), &mut list)?;
    }
    Ok(list)
}

fn section(kind: u8, mut data: Reader<'_>, list: &mut Listed) -> Result<(), Malformed> {
    match kind {
        CERTIFICATES => return certificates(data),
        EXTENSION => return extension(data),
        SIGNATURE => return Err(Malformed("it is signed, which is not supported")),
        EXPLICIT_KEY | FINGERPRINT_SHA1 | FINGERPRINT_SHA256 => {}
        _ => return Err(Malformed("a section is of an unknown kind")),
    }
    if data.is_empty() {
        return Err(Malformed("a section has no entry"));
    }
    while !data.is_empty() {
        let entry = data.string()?;
        match kind {
            EXPLICIT_KEY => list.ids.push(KeyId::of_blob(entry)),
            FINGERPRINT_SHA1 => list.sha1s.push(hash(entry)?),
            _ => list.ids.push(KeyId::from_bytes(hash(entry)?)),
        }
    }
    Ok(())
}

fn hash<const N: usize>(entry: &[u8]) -> Result<[u8; N], Malformed> {
    entry.try_into().map_err(|_| Malformed("a fingerprint has the wrong length"))
}

fn certificates(mut data: Reader<'_>) -> Result<(), Malformed> {
    let _authority = data.string()?;
    let _reserved = data.string()?;
    while !data.is_empty() {
        let kind = data.byte()?;
        let body = Reader::new(data.string()?);
        match kind {
            // Serial numbers as list, range and bitmap; key ids.
            0x20..=0x23 => {}
            CERT_EXTENSION => extension(body)?,
            _ => return Err(Malformed("a section of certificates is of an unknown kind")),
        }
    }
    Ok(())
}

fn extension(mut data: Reader<'_>) -> Result<(), Malformed> {
    let _name = data.string()?;
    let critical = data.byte()? != 0;
    let _contents = data.string()?;
    data.finish()?;
    if critical {
        return Err(Malformed("it has an unknown critical extension"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::sample::strings;
    use super::super::wire::put_string;
    use super::*;

    fn krl(sections: &[(u8, &[u8])]) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(VERSION.to_be_bytes());
        out.extend([0; 24]);
        put_string(&mut out, b"");
        put_string(&mut out, b"a comment");
        for (kind, data) in sections {
            out.push(*kind);
            put_string(&mut out, data);
        }
        out
    }

    #[test]
    fn keys_and_fingerprints_are_taken() {
        let extension = [&strings(&[b"x@y"])[..], &[0], &strings(&[b""])].concat();
        let serials = strings(&[&[0; 16]]);
        let certificates = [&strings(&[b"", b""])[..], &[0x21], &serials].concat();
        let file = krl(&[
            (EXTENSION, &extension),
            (CERTIFICATES, &certificates),
            (EXPLICIT_KEY, &strings(&[b"one", b"two"])),
            (FINGERPRINT_SHA1, &strings(&[&[1; 20]])),
            (FINGERPRINT_SHA256, &strings(&[&[2; 32]])),
        ]);
        let list = parse(&file).expect("a good list");
        assert!(list.ids.contains(&KeyId::of_blob(b"one")));
        assert!(list.ids.contains(&KeyId::of_blob(b"two")));
        assert!(list.ids.contains(&KeyId::from_bytes([2; 32])));
        assert!(!list.ids.contains(&KeyId::from_bytes([1; 32])));
        assert!(list.sha1s.contains(&[1; 20]));
        for end in 0..file.len() {
            assert_ne!(parse(&file[..end]), Ok(list.clone()), "cut at {end}");
        }
    }

    #[test]
    fn what_is_unknown_or_malformed_is_refused() {
        let critical = [&strings(&[b"x@y"])[..], &[1], &strings(&[b""])].concat();
        let cases: &[(u8, &[u8])] = &[
            (0, b""),
            (6, b""),
            (SIGNATURE, b""),
            (EXPLICIT_KEY, b""),
            (FINGERPRINT_SHA1, &strings(&[&[1; 32]])),
            (FINGERPRINT_SHA256, &strings(&[&[1; 20]])),
            (EXTENSION, &critical),
            (CERTIFICATES, b""),
            (CERTIFICATES, &[&strings(&[b"", b""])[..], &[0x24], &strings(&[b""])].concat()),
        ];
        for (kind, data) in cases {
            assert!(parse(&krl(&[(*kind, data)])).is_err(), "section {kind}");
        }
    }
}
