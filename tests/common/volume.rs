//! A volume as its fields, with which tests make sound and broken ones (volumes 2).

use sealift_format::Head;

use crate::bytes::{hash, wide};
use crate::reader::open;

/// The parts of a volume's file.
#[derive(Clone, Debug)]
pub struct Volume {
    /// The magic.
    pub magic: [u8; 8],
    /// The version of the form.
    pub version: u32,
    /// The kind.
    pub kind: u16,
    /// The reserved bytes.
    pub reserved: u16,
    /// The volume's number.
    pub number: u16,
    /// How many volumes there are.
    pub count: u16,
    /// The length of the bundle's head.
    pub head_len: u32,
    /// Where the slice begins.
    pub offset: u64,
    /// The length of the slice.
    pub len: u64,
    /// The length of the bundle.
    pub file_len: u64,
    /// The name of the set.
    pub set: [u8; 32],
    /// Head and stored layout.
    pub front: Vec<u8>,
    /// The bundle's bytes in it.
    pub slice: Vec<u8>,
}

impl Volume {
    /// Splits a bundle: each volume but the first, which has the index, has `chunks` chunks.
    ///
    /// # Panics
    /// Panics if it is not a bundle.
    pub fn split(bundle: &[u8], chunks: usize) -> Vec<Self> {
        let (head, _) = Head::parse_first(bundle).expect("it is a bundle");
        let opened = open(bundle, &[usize::MAX]).expect("it is sound");
        let layout = opened.layout();
        let at = |offset: u64| usize::try_from(offset).expect("vectors are small");
        let front = at(head.head_len() + head.root().contents.layout_stored);
        let starts = layout.chunks.iter().map(|chunk| at(head.chunks_at() + chunk.offset));
        let mut cuts = vec![front];
        cuts.extend(starts.step_by(chunks));
        cuts.push(bundle.len());
        let count = u16::try_from(cuts.len() - 1).expect("vectors are small");
        let volume = |(number, slice): (u16, &[usize])| Self {
            magic: *b"\x89SLVL\r\n\x1a",
            version: 0,
            kind: 0,
            reserved: 0,
            number,
            count,
            head_len: u32::try_from(head.head_len()).expect("it fits"),
            offset: wide(slice[0]),
            len: wide(slice[1] - slice[0]),
            file_len: wide(bundle.len()),
            set: hash(head.signed()),
            front: bundle[..front].to_vec(),
            slice: bundle[slice[0]..slice[1]].to_vec(),
        };
        (1..=count).zip(cuts.windows(2)).map(volume).collect()
    }

    /// Returns the bytes of the header.
    pub fn header(&self) -> Vec<u8> {
        let numbers = [self.kind, self.reserved, self.number, self.count];
        header(self.magic, self.version, numbers, self.head_len, [self.offset, self.len, self.file_len], self.set)
    }

    /// Returns the bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        [&self.header()[..], &self.front, &self.slice].concat()
    }
}

/// Returns the bytes of the header of a volume or recovery file: kind, reserved bytes, number and count; offset, length and the bundle's length.
pub fn header(
    magic: [u8; 8],
    version: u32,
    numbers: [u16; 4],
    head_len: u32,
    lens: [u64; 3],
    set: [u8; 32],
) -> Vec<u8> {
    let mut out = magic.to_vec();
    out.extend(version.to_le_bytes());
    out.extend(numbers.iter().flat_map(|field| field.to_le_bytes()));
    out.extend(head_len.to_le_bytes());
    out.extend(lens.iter().flat_map(|field| field.to_le_bytes()));
    out.extend(set);
    out.extend(hash(&out));
    out
}
