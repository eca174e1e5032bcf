//! A recovery file as its fields, with which tests make sound and broken ones (recovery 2).

use reed_solomon_simd::engine::DefaultEngine;
use reed_solomon_simd::rate::{HighRateEncoder, RateEncoder as _};
use sealift_format::Geometry;

use crate::bytes::{hash, wide};
use crate::volume::{Volume, header};

/// Bytes of a shard.
const SHARD_LEN: usize = 64;

/// The parts of a recovery file.
#[derive(Clone, Debug)]
pub struct Recovery {
    /// The magic.
    pub magic: [u8; 8],
    /// The version of the form.
    pub version: u32,
    /// The kind.
    pub kind: u16,
    /// The reserved bytes.
    pub reserved: u16,
    /// The file's number.
    pub number: u16,
    /// How many files there are.
    pub count: u16,
    /// The length of the bundle's head.
    pub head_len: u32,
    /// Where the body begins.
    pub offset: u64,
    /// The length of what follows the front, if it is another one.
    pub len: Option<u64>,
    /// The length of the bundle.
    pub file_len: u64,
    /// The name of the set.
    pub set: [u8; 32],
    /// Head and stored layout.
    pub front: Vec<u8>,
    /// Bytes of a shard.
    pub shard_len: u32,
    /// Shards of each column in a codeword.
    pub run: u32,
    /// Recovery shards of a codeword.
    pub parity: u32,
    /// Zeros before a column.
    pub pad: u32,
    /// Where the columns begin.
    pub starts: Vec<u64>,
    /// What is added to the first byte of `geometry_blake3`.
    pub geometry_flip: u8,
    /// The bytes from the geometry to the records.
    pub fill: Vec<u8>,
    /// For each codeword, its recovery shards and checksums, up to the fill.
    pub records: Vec<Vec<u8>>,
}

impl Recovery {
    /// Returns `count` recovery files for the volumes of a bundle, so that any `count` of all can be lost.
    ///
    /// # Panics
    /// Panics if the volumes are not those of a bundle.
    pub fn of(bundle: &[u8], volumes: &[Volume], count: u16, run: u32) -> Vec<Self> {
        let first = volumes.first().expect("there are volumes");
        let geometry = Geometry {
            shard_len: 64,
            run,
            parity: run * u32::from(count),
            pad: u32::try_from((112 + first.front.len()) % SHARD_LEN).expect("it is small"),
            starts: volumes.iter().map(|volume| volume.offset).collect(),
        };
        let of_number = |number| {
            let at = 112 + first.front.len() + 20 + 8 * geometry.starts.len() + 32;
            Self {
                magic: first.magic,
                version: 0,
                kind: 1,
                reserved: 0,
                number,
                count,
                head_len: first.head_len,
                offset: wide(first.front.len()),
                len: None,
                file_len: wide(bundle.len()),
                set: first.set,
                front: first.front.clone(),
                shard_len: geometry.shard_len,
                run: geometry.run,
                parity: geometry.parity,
                pad: geometry.pad,
                starts: geometry.starts.clone(),
                geometry_flip: 0,
                fill: vec![0; at.next_multiple_of(SHARD_LEN) - at],
                records: records(bundle, &geometry, number, count),
            }
        };
        (1..=count).map(of_number).collect()
    }

    /// Returns the bytes of the geometry without their digest.
    fn geometry(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let columns = u32::try_from(self.starts.len()).expect("vectors are small");
        for field in [self.shard_len, self.run, self.parity, self.pad, columns] {
            out.extend(field.to_le_bytes());
        }
        out.extend(self.starts.iter().flat_map(|start| start.to_le_bytes()));
        out
    }

    /// Returns the bytes of the header.
    pub fn header(&self) -> Vec<u8> {
        let len = self.geometry().len() + 32 + self.fill.len() + self.records.iter().map(Vec::len).sum::<usize>();
        let numbers = [self.kind, self.reserved, self.number, self.count];
        let lens = [self.offset, self.len.unwrap_or(wide(len)), self.file_len];
        header(self.magic, self.version, numbers, self.head_len, lens, self.set)
    }

    /// Returns the bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        let (header, geometry) = (self.header(), self.geometry());
        let mut digest = hash(&[&header[..], &geometry].concat());
        digest[0] ^= self.geometry_flip;
        [&header[..], &self.front, &geometry, &digest, &self.fill, &self.records.concat()].concat()
    }
}

/// Returns the records of a file.
fn records(bundle: &[u8], geometry: &Geometry, number: u16, count: u16) -> Vec<Vec<u8>> {
    let (number, count) = (usize::from(number), usize::from(count));
    let (run, parity) = (small(geometry.run), small(geometry.parity));
    let data = run * geometry.starts.len();
    let record = |codeword| {
        let engine = DefaultEngine::new();
        let mut encoder = HighRateEncoder::new(data, parity, SHARD_LEN, engine, None).expect("it is small");
        let mut sums = Vec::new();
        for column in 0..geometry.starts.len() {
            let (range, zeros) = geometry.run_of(codeword, column, wide(bundle.len()));
            let at = |offset: u64| usize::try_from(offset).expect("vectors are small");
            let mut bytes = vec![0; at(zeros)];
            bytes.extend(&bundle[at(range.start)..at(range.end)]);
            bytes.resize(run * SHARD_LEN, 0);
            for shard in bytes.chunks(SHARD_LEN) {
                encoder.add_original_shard(shard).expect("it fits");
                if column % count == number - 1 || (column + 1) % count == number - 1 {
                    sums.extend(crc(shard));
                }
            }
        }
        let made = encoder.encode().expect("all is there");
        let shards: Vec<&[u8]> = made.recovery_iter().skip(number - 1).step_by(count).collect();
        let mut checksums: Vec<u8> = shards.iter().flat_map(|shard| crc(shard)).collect();
        checksums.extend(sums);
        checksums.extend(crc(&checksums));
        checksums.resize(checksums.len().next_multiple_of(SHARD_LEN), 0);
        [shards.concat(), checksums].concat()
    };
    (0..geometry.codewords(wide(bundle.len()))).map(record).collect()
}

fn small(number: u32) -> usize {
    usize::try_from(number).expect("vectors are small")
}

/// The CRC-32 of zlib.
pub fn crc(bytes: &[u8]) -> [u8; 4] {
    let mut crc = libdeflater::Crc::new();
    crc.update(bytes);
    crc.sum().to_le_bytes()
}
