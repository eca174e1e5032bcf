//! What an install record states about its target: which part of a bundle was unpacked, into which directory, and how much of its metadata the
//! target keeps.
//!
//! ```text
//! sealift record 2
//! ref NAME
//! prefix HEX
//! inode NUMBER
//! lacks nothing|WORD,...
//! times STEP FIRST LAST
//! duplicates apart|linked
//! check BLAKE3
//! ```

use sealift_format::name::is_ref_name;
use sealift_format::{hex, unhex};

use super::keeps::Keeps;

/// What was unpacked, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct Record {
    /// The ref that was unpacked.
    pub reference: String,
    /// Only what lies at or below this path was unpacked.
    pub prefix: Vec<u8>,
    /// The inode number of the target, on the record's file system: a copy of the tree, or another tree under its name, has a different one. The
    /// device number is not recorded, since it changes between boots.
    pub inode: u64,
    /// What the target keeps of the metadata in the index; the rest was left out.
    pub keeps: Keeps,
    /// Whether equal files may be hard links of each other, as `--hardlink-duplicates` makes them.
    pub links_duplicates: bool,
}

const TITLE: &str = "sealift record 2";

impl Record {
    /// The name of the file in an install record.
    pub const FILE: &str = "record";
    /// The file in an install record by whose presence an update to another bundle began to change the target, and did not end. It is gone with the
    /// record, once another one takes its place.
    pub const MIXED: &str = "mixed";
    /// The maximum length of the file: a path takes two digits per byte.
    pub const LEN_MAX: u64 = 1 << 20;

    /// Returns the file's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Self { reference, prefix, inode, keeps, links_duplicates } = self;
        let (prefix, keeps) = (hex(prefix), keeps.encode());
        let duplicates = if *links_duplicates { "linked" } else { "apart" };
        let text =
            format!("{TITLE}\nref {reference}\nprefix {prefix}\ninode {inode}\n{keeps}duplicates {duplicates}\n");
        let check = blake3::hash(text.as_bytes()).to_hex();
        format!("{text}check {check}\n").into_bytes()
    }

    /// Parses what [`Record::encode`] wrote, and nothing else.
    ///
    /// # Errors
    /// Returns a description of what is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = str::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?;
        let mut lines = text.lines();
        let title = lines.next().unwrap_or_default();
        if title != TITLE {
            return Err(format!("its first line is {title:?}, not {TITLE:?}"));
        }
        let mut field = |name: &str| {
            let line = lines.next().and_then(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.strip_prefix(' ')).ok_or_else(|| format!("it has no line {name:?}"))
        };
        let reference = field("ref")?.to_owned();
        let prefix = unhex(field("prefix")?).ok_or("its prefix is not hexadecimal")?;
        let inode = field("inode")?.parse().map_err(|_| "its inode is not a number")?;
        let keeps = Keeps::parse(field("lacks")?, field("times")?).ok_or("what its target keeps is not known")?;
        let links_duplicates = field("duplicates")? == "linked";
        let record = Self { reference, prefix, inode, keeps, links_duplicates };
        // Only the exact encoding is accepted, so a flipped bit does not yield another record.
        if !is_ref_name(&record.reference) || record.encode() != bytes {
            return Err("its check does not match its lines".to_owned());
        }
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::keeps::{Aspect, Times};

    #[test]
    fn what_is_written_is_read_and_no_flipped_bit_is() {
        let mut lacking = Keeps::ALL;
        lacking.times = Times { step: 100, first: -5, last: 5 };
        lacking.set(Aspect::Owners, false);
        let record = Record {
            reference: "os/stable".into(),
            prefix: b"usr/\n\xff".to_vec(),
            inode: 77,
            keeps: Keeps::ALL,
            links_duplicates: true,
        };
        for record in [record.clone(), Record { prefix: Vec::new(), keeps: lacking, links_duplicates: false, ..record }]
        {
            let bytes = record.encode();
            assert_eq!(Record::parse(&bytes), Ok(record));
            for at in 0..bytes.len() {
                assert!(Record::parse(&bytes[..at]).is_err(), "cut at {at}");
                for bit in 0..8 {
                    let mut flipped = bytes.clone();
                    flipped[at] ^= 1 << bit;
                    assert!(Record::parse(&flipped).is_err(), "bit {bit} of byte {at}");
                }
            }
        }
    }
}
