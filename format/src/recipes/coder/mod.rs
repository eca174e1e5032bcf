//! Encoders with their parameters, and the forms that are decoded (recipes 5).

use core::fmt;

use alloc::vec::Vec;

use crate::bytes::Reader;
use crate::{Error, Part};

/// A library whose output for given parameters never changes (recipes 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Encoder {
    /// zlib 1.2.11 and later, as its authors publish it.
    Zlib,
}

/// An encoder with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Coder {
    /// Deflate by zlib.
    Zlib(Zlib),
}

/// The parameters of `deflateInit2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_structs, reason = "recipes 5 lists them")]
pub struct Zlib {
    /// 1 to 9.
    pub level: u8,
    /// 9 to 15.
    pub window_bits: u8,
    /// Without zlib's header and checksum.
    pub is_raw: bool,
    /// 1 to 9.
    pub mem_level: u8,
    /// 0 to 4.
    pub strategy: u8,
}

/// The form of bytes that are decoded (recipes 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Codec {
    /// A zlib stream (RFC 1950).
    Zlib,
    /// A deflate stream (RFC 1951).
    Deflate,
}

const RAW: u8 = 128;

impl Encoder {
    /// Returns its number.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Zlib => 1,
        }
    }

    pub(crate) fn of(part: Part, number: u8) -> Result<Self, Error> {
        match number {
            1 => Ok(Self::Zlib),
            _ => Err(Error::Unsupported { part, what: "encoder", found: number.into() }),
        }
    }
}

impl fmt::Display for Encoder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Zlib => "zlib",
        })
    }
}

impl Coder {
    /// Returns its encoder.
    #[must_use]
    pub fn encoder(&self) -> Encoder {
        match self {
            Self::Zlib(_) => Encoder::Zlib,
        }
    }

    /// Returns the bytes of memory that its encoder takes besides input and output.
    #[must_use]
    pub fn memory(&self) -> u64 {
        match self {
            Self::Zlib(Zlib { window_bits, mem_level, .. }) => (1 << (window_bits + 2)) + (1 << (mem_level + 9)),
        }
    }

    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let (encoder, len) = (reader.u8()?, reader.u8()?);
        let params = reader.take(len.into())?;
        let unsupported = |what, found: u8| Error::Unsupported { part: Part::Layout, what, found: found.into() };
        match (Encoder::of(Part::Layout, encoder)?, params) {
            (Encoder::Zlib, &[level, bits, mem_level, strategy]) => {
                let window_bits = bits & !RAW;
                let is_known = (1..=9).contains(&level)
                    && (9..=15).contains(&window_bits)
                    && (1..=9).contains(&mem_level)
                    && strategy <= 4;
                if !is_known {
                    return Err(unsupported("parameter of zlib", level));
                }
                Ok(Self::Zlib(Zlib { level, window_bits, is_raw: bits & RAW != 0, mem_level, strategy }))
            }
            (Encoder::Zlib, _) => Err(unsupported("number of parameters of zlib", len)),
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Zlib(Zlib { level, window_bits, is_raw, mem_level, strategy }) => {
                let bits = window_bits | if is_raw { RAW } else { 0 };
                out.extend([Encoder::Zlib.number(), 4, level, bits, mem_level, strategy]);
            }
        }
    }
}

impl Codec {
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Zlib => 1,
            Self::Deflate => 2,
        }
    }

    pub(super) fn of(number: u8) -> Result<Self, Error> {
        match number {
            1 => Ok(Self::Zlib),
            2 => Ok(Self::Deflate),
            _ => Err(Error::Unsupported { part: Part::Layout, what: "codec of a recipe", found: number.into() }),
        }
    }
}
