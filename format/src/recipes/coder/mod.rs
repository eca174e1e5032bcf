//! Encoders with their parameters (recipes 5).

mod bzip2;
mod lz4;
mod xz;
mod zlib;
mod zstd;

use core::cmp::Ordering;
use core::fmt;

use alloc::vec::Vec;

use crate::bytes::Reader;
use crate::{Error, Part};

pub use bzip2::Bzip2;
pub use lz4::{Filled, Lz4};
pub use xz::Xz;
pub use zlib::Zlib;
pub use zstd::{Zstd, ZstdStream};

/// A library whose output for given parameters never changes (recipes 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Encoder {
    /// zlib 1.2.11 and later, as its authors publish it.
    Zlib,
    /// liblzma 5.4 and later.
    Xz,
    /// liblz4 1.9.4 and later.
    Lz4,
    /// libzstd 1.5.7.
    Zstd157,
    /// libzstd 1.5.5.
    Zstd155,
    /// libbz2 1.0.8.
    Bzip2,
    /// libzstd 1.5.4, which makes what 1.5.5 makes at all levels but 5 to 12.
    Zstd154,
}

/// An encoder with its parameters. They are ordered as their rows are (recipes 3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Coder {
    /// Deflate by zlib.
    Zlib(Zlib),
    /// xz by liblzma.
    Xz(Xz),
    /// lz4 blocks by liblz4.
    Lz4(Lz4),
    /// zstd by libzstd 1.5.7.
    Zstd157(Zstd),
    /// zstd by libzstd 1.5.5.
    Zstd155(Zstd),
    /// bzip2 by libbz2.
    Bzip2(Bzip2),
    /// zstd by libzstd 1.5.4.
    Zstd154(Zstd),
}

impl Encoder {
    /// Returns its number.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Zlib => 1,
            Self::Xz => 2,
            Self::Lz4 => 3,
            Self::Zstd157 => 4,
            Self::Zstd155 => 5,
            Self::Bzip2 => 6,
            Self::Zstd154 => 7,
        }
    }

    pub(crate) fn of(part: Part, number: u8) -> Result<Self, Error> {
        match number {
            1 => Ok(Self::Zlib),
            2 => Ok(Self::Xz),
            3 => Ok(Self::Lz4),
            4 => Ok(Self::Zstd157),
            5 => Ok(Self::Zstd155),
            6 => Ok(Self::Bzip2),
            7 => Ok(Self::Zstd154),
            _ => Err(Error::Unsupported { part, what: "encoder", found: number.into() }),
        }
    }
}

impl fmt::Display for Encoder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Zlib => "zlib",
            Self::Xz => "xz",
            Self::Lz4 => "lz4",
            Self::Zstd157 => "zstd 1.5.7",
            Self::Zstd155 => "zstd 1.5.5",
            Self::Bzip2 => "bzip2",
            Self::Zstd154 => "zstd 1.5.4",
        })
    }
}

impl Coder {
    /// Returns its encoder.
    #[must_use]
    pub fn encoder(&self) -> Encoder {
        match self {
            Self::Zlib(_) => Encoder::Zlib,
            Self::Xz(_) => Encoder::Xz,
            Self::Lz4(_) => Encoder::Lz4,
            Self::Zstd157(_) => Encoder::Zstd157,
            Self::Zstd155(_) => Encoder::Zstd155,
            Self::Bzip2(_) => Encoder::Bzip2,
            Self::Zstd154(_) => Encoder::Zstd154,
        }
    }

    /// Returns the bytes of memory that its encoder takes besides input and output, for input of so many.
    #[must_use]
    pub fn memory(&self, input: u64) -> u64 {
        match self {
            Self::Zlib(zlib) => zlib.memory(),
            Self::Xz(xz) => xz.memory(),
            Self::Lz4(lz4) => lz4.memory(input),
            Self::Zstd157(zstd) | Self::Zstd155(zstd) | Self::Zstd154(zstd) => zstd.memory(input),
            Self::Bzip2(bzip2) => bzip2.memory(),
        }
    }

    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let (encoder, len) = (reader.u8()?, reader.u8()?);
        let encoder = Encoder::of(Part::Layout, encoder)?;
        let params = reader.take(len.into())?;
        let known = match encoder {
            Encoder::Zlib => Zlib::parse(params).map(Self::Zlib),
            Encoder::Xz => Xz::parse(params).map(Self::Xz),
            Encoder::Lz4 => Lz4::parse(params).map(Self::Lz4),
            Encoder::Zstd157 => Zstd::parse(params).map(Self::Zstd157),
            Encoder::Zstd155 => Zstd::parse_older(params).map(Self::Zstd155),
            Encoder::Bzip2 => Bzip2::parse(params).map(Self::Bzip2),
            Encoder::Zstd154 => Zstd::parse_older(params).map(Self::Zstd154),
        };
        let found = encoder.number().into();
        known.ok_or(Error::Unsupported { part: Part::Layout, what: "parameters of encoder", found })
    }

    fn params(&self) -> Vec<u8> {
        match self {
            Self::Zlib(zlib) => zlib.params(),
            Self::Xz(xz) => xz.params(),
            Self::Lz4(lz4) => lz4.params(),
            Self::Zstd157(zstd) | Self::Zstd155(zstd) | Self::Zstd154(zstd) => zstd.params(),
            Self::Bzip2(bzip2) => bzip2.params(),
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let params = self.params();
        out.push(self.encoder().number());
        // Parameters are a few bytes.
        out.push(u8::try_from(params.len()).unwrap_or(u8::MAX));
        out.extend(params);
    }
}

impl Ord for Coder {
    fn cmp(&self, other: &Self) -> Ordering {
        let number = |coder: &Self| coder.encoder().number();
        number(self).cmp(&number(other)).then_with(|| self.params().cmp(&other.params()))
    }
}

impl PartialOrd for Coder {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses an encoder with parameters.
    fn parsed(encoder: u8, params: &[u8]) -> Result<Coder, Error> {
        let row = [&[encoder, u8::try_from(params.len()).unwrap_or(u8::MAX)], params].concat();
        Coder::parse(&mut Reader::new(Part::Layout, &row))
    }

    #[test]
    fn a_window_that_is_not_stated_is_that_of_the_level_or_of_long_matches() {
        let memory = |is_long, window_log| {
            let (is_pledged, is_checked, has_worker, is_unsplit) = (false, false, false, false);
            let stream = ZstdStream { is_pledged, is_checked, has_worker, is_long, is_unsplit, window_log };
            Zstd { level: 1, stream: Some(stream) }.memory(1)
        };
        assert_eq!(memory(false, 0), memory(false, 19));
        assert_eq!(memory(true, 0), memory(true, 27));
    }

    #[test]
    fn parameters_that_section_5_does_not_allow_are_unsupported() {
        // Each with, for each byte, values that it must not have.
        type Row<'a> = (u8, &'a [u8], &'a [&'a [u8]]);
        let rows: [Row<'_>; 9] = [
            (1, &[6, 15, 8, 0], &[&[0, 10], &[8, 16], &[0, 10], &[5]]),
            (
                2,
                &[6, 0, 0, 16, 0, 3, 0, 2, 4, 1],
                &[&[10, 138], &[], &[], &[0], &[4, 255], &[5], &[2], &[5], &[1, 3, 12], &[2, 3, 11, 254]],
            ),
            (3, &[0, 1, 0, 0, 0, 0, 0], &[&[2, 4], &[0], &[1], &[], &[], &[1], &[1]]),
            (3, &[3, 12, 0, 16, 0, 0, 1], &[&[1, 4], &[0, 13], &[], &[0], &[17], &[1], &[2]]),
            (4, &[3, 0, 0], &[&[0, 23, 127, 128, 155], &[2, 4, 32, 64], &[10]]),
            (4, &[255, 63, 27], &[&[0, 23], &[30, 32, 64, 127], &[9, 28]]),
            (5, &[22, 1, 10], &[&[0], &[0, 32, 33], &[9, 28]]),
            (6, &[9], &[&[0, 10]]),
            (7, &[5, 3, 10], &[&[0, 23], &[0, 32, 35], &[9, 28]]),
        ];
        for (encoder, params, wrong) in rows {
            let coder = parsed(encoder, params).expect("it is in the registry");
            let mut encoded = Vec::new();
            coder.encode(&mut encoded);
            assert_eq!(encoded[2..], *params, "{coder:?}");
            assert!(parsed(encoder, &params[1..]).is_err() && parsed(encoder, &[params, &[0]].concat()).is_err());
            for (place, values) in wrong.iter().enumerate() {
                for value in *values {
                    let mut params = params.to_vec();
                    params[place] = *value;
                    let found = parsed(encoder, &params);
                    assert!(matches!(found, Err(Error::Unsupported { .. })), "{encoder} {params:?}");
                }
            }
        }
        assert!(parsed(8, &[0]).is_err());
    }
}
