//! The Reed-Solomon code of recovery 4, and what a codeword takes.

use std::ops::Range;

use reed_solomon_simd::engine::DefaultEngine;
use reed_solomon_simd::rate::{HighRateDecoder, HighRateEncoder, RateDecoder as _, RateEncoder as _};
use sealift_format::num::{at, size, wide};
use sealift_format::{Error as FormatError, Geometry};

use crate::Error;

pub(super) type Encoder = HighRateEncoder<DefaultEngine>;
pub(super) type Decoder = HighRateDecoder<DefaultEngine>;

/// The most bytes that all threads together keep of codewords.
const MEMORY: u64 = 256 << 20;

/// Returns how many data shards a codeword has.
pub(super) fn data_shards(geometry: &Geometry) -> usize {
    geometry.starts.len().saturating_mul(at(geometry.run))
}

/// Returns the bytes that a thread keeps of a codeword: the shards on which the code works, and the shards of one column and of one record.
///
/// # Errors
/// Returns an error if they are more than this program keeps.
pub(super) fn memory(geometry: &Geometry) -> Result<u64, Error> {
    let parity = wide(at(geometry.parity).next_power_of_two());
    let shards = wide(data_shards(geometry)).saturating_add(parity).next_power_of_two();
    let around = 2 * u64::from(geometry.run) + u64::from(geometry.parity);
    let declared = shards.saturating_add(around).saturating_mul(geometry.shard_len.into());
    match declared <= MEMORY {
        true => Ok(declared),
        false => Err(FormatError::Limit { what: "the bytes of a codeword", declared, limit: MEMORY }.into()),
    }
}

/// Returns how many threads work on codewords, of those that the caller allows.
///
/// # Errors
/// As [`memory`].
pub(super) fn jobs(geometry: &Geometry, jobs: usize) -> Result<usize, Error> {
    Ok(jobs.min(size(MEMORY / memory(geometry)?.max(1))).max(1))
}

/// Cuts the codewords into shares of neighbours, which threads work on one after the other: so that media are read in long runs, and so few that
/// they take no memory to speak of.
pub(super) fn shares(codewords: u64) -> Vec<Range<u64>> {
    let len = codewords.div_ceil(1 << 16).max(1);
    let share = |number: u64| number * len..codewords.min((number + 1) * len);
    (0..codewords.div_ceil(len)).map(share).collect()
}

pub(super) fn encoder(geometry: &Geometry) -> Result<Encoder, Error> {
    let (data, parity, len) = (data_shards(geometry), at(geometry.parity), at(geometry.shard_len));
    Encoder::new(data, parity, len, DefaultEngine::new(), None).map_err(failed)
}

pub(super) fn decoder(geometry: &Geometry) -> Result<Decoder, Error> {
    let (data, parity, len) = (data_shards(geometry), at(geometry.parity), at(geometry.shard_len));
    Decoder::new(data, parity, len, DefaultEngine::new(), None).map_err(failed)
}

/// Makes the decoder forget its shards.
pub(super) fn begin_again(decoder: &mut Decoder, geometry: &Geometry) -> Result<(), Error> {
    decoder.reset(data_shards(geometry), at(geometry.parity), at(geometry.shard_len)).map_err(failed)
}

/// A geometry that was checked gives the library no reason to fail.
pub(super) fn failed(error: reed_solomon_simd::Error) -> Error {
    Error::Usage(format!("the Reed-Solomon code failed: {error}"))
}

/// Returns the checksum of a shard.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = libdeflater::Crc::new();
    crc.update(bytes);
    crc.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASIS: [u16; 16] = [
        0x0001, 0xacca, 0x3c0e, 0x163e, 0xc582, 0xed2e, 0x914c, 0x4012, 0x6c98, 0x10d8, 0x6a72, 0xb900, 0xfdb8, 0xfb34,
        0xff38, 0x991e,
    ];

    fn times(mut a: u16, mut b: u16) -> u16 {
        let mut product = 0;
        while b != 0 {
            if b & 1 == 1 {
                product ^= a;
            }
            a = a << 1 ^ if a >> 15 == 1 { 0x002d } else { 0 };
            b >>= 1;
        }
        product
    }

    fn inverse(a: u16) -> u16 {
        // a^(2^16 - 2)
        (1..16).fold((a, 1), |(power, product), _| (times(power, power), times(product, times(power, power)))).1
    }

    /// The element that a number means.
    fn element(number: u16) -> u16 {
        (0..16).filter(|bit| number >> bit & 1 == 1).fold(0, |sum, bit| sum ^ BASIS[bit])
    }

    /// The number that means an element, by search.
    fn number(of: u16) -> u16 {
        (0..=u16::MAX).find(|number| element(*number) == of).expect("the basis spans the field")
    }

    #[test]
    fn shares_are_all_codewords() {
        for codewords in [0, 1, 2, 65_535, 65_536, 65_537, 200_001] {
            let shares = shares(codewords);
            assert!(shares.iter().flat_map(Clone::clone).eq(0..codewords), "{codewords}");
            assert!(shares.len() <= 1 << 16 && shares.iter().all(|share| !share.is_empty()), "{codewords}");
        }
        assert_eq!(shares(u64::MAX / 2).last().map(|last| last.end), Some(u64::MAX / 2));
    }

    /// Recovery 4, as it is written there: interpolation by Lagrange, symbol by symbol.
    fn recovery(data: &[u16], parity: u16) -> Vec<u16> {
        let m = parity.next_power_of_two();
        let blocks = u16::try_from(data.len()).expect("few").div_ceil(m);
        let symbol = |point: u16| data.get(usize::from(point - m)).copied().map_or(0, element);
        let at = |r: u16| {
            let mut sum = 0;
            for j in 1..=blocks {
                for i in j * m..j * m + m {
                    let others = (j * m..j * m + m).filter(|other| *other != i);
                    let weight = others.fold(1, |product, other| {
                        let below = inverse(element(i) ^ element(other));
                        times(product, times(element(r) ^ element(other), below))
                    });
                    sum ^= times(symbol(i), weight);
                }
            }
            number(sum)
        };
        (0..parity).map(at).collect()
    }

    #[test]
    fn the_library_has_the_code_of_the_specification() {
        for (data, parity) in [(1, 1), (4, 2), (7, 3), (5, 8), (13, 4)] {
            let geometry = Geometry { shard_len: 64, run: data, parity, pad: 0, starts: vec![1] };
            let shard = |seed: u32| *blake3::hash(&seed.to_le_bytes()).as_bytes();
            let shards: Vec<Vec<u8>> = (0..data).map(|seed| [shard(seed), shard(seed + 100)].concat()).collect();
            let mut encoder = encoder(&geometry).expect("it is sound");
            shards.iter().for_each(|shard| encoder.add_original_shard(shard).expect("it fits"));
            let made = encoder.encode().expect("all is there");
            let made: Vec<&[u8]> = made.recovery_iter().collect();
            for symbol in [0, 1, 31] {
                let of = |shard: &[u8]| u16::from_le_bytes([shard[symbol], shard[symbol + 32]]);
                let data: Vec<u16> = shards.iter().map(|shard| of(shard)).collect();
                let expected = recovery(&data, parity.try_into().expect("few"));
                assert_eq!(made.iter().map(|shard| of(shard)).collect::<Vec<_>>(), expected, "{data:?} {parity}");
            }
        }
    }

    #[test]
    fn checksums_are_those_of_zlib() {
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
    }
}
