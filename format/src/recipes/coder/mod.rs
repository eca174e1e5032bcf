//! Encoders with their parameters (recipes 5).

mod lz4;
mod xz;
mod zlib;

use core::cmp::Ordering;
use core::fmt;

use alloc::vec::Vec;

use crate::bytes::Reader;
use crate::{Error, Part};

pub use lz4::{Filled, Lz4};
pub use xz::Xz;
pub use zlib::Zlib;

/// A library whose output for given parameters never changes (recipes 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Encoder {
    /// zlib 1.2.11 and later, as its authors publish it.
    Zlib,
    /// liblzma 5.6 and later.
    Xz,
    /// liblz4 1.9.4 and later.
    Lz4,
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
}

impl Encoder {
    /// Returns its number.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Zlib => 1,
            Self::Xz => 2,
            Self::Lz4 => 3,
        }
    }

    pub(crate) fn of(part: Part, number: u8) -> Result<Self, Error> {
        match number {
            1 => Ok(Self::Zlib),
            2 => Ok(Self::Xz),
            3 => Ok(Self::Lz4),
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
        }
    }

    /// Returns the bytes of memory that its encoder takes besides input and output, for input of so many.
    #[must_use]
    pub fn memory(&self, input: u64) -> u64 {
        match self {
            Self::Zlib(zlib) => zlib.memory(),
            Self::Xz(xz) => xz.memory(),
            Self::Lz4(lz4) => lz4.memory(input),
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
        };
        let found = encoder.number().into();
        known.ok_or(Error::Unsupported { part: Part::Layout, what: "parameters of encoder", found })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let params = self.params();
        out.push(self.encoder().number());
        // Parameters are a few bytes.
        out.push(u8::try_from(params.len()).unwrap_or(u8::MAX));
        out.extend(params);
    }

    fn params(&self) -> Vec<u8> {
        match self {
            Self::Zlib(zlib) => zlib.params(),
            Self::Xz(xz) => xz.params(),
            Self::Lz4(lz4) => lz4.params(),
        }
    }
}

impl Ord for Coder {
    fn cmp(&self, other: &Self) -> Ordering {
        self.encoder().cmp(&other.encoder()).then_with(|| self.params().cmp(&other.params()))
    }
}

impl PartialOrd for Coder {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
