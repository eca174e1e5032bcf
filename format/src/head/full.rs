//! The bundle that a delta bundle stands for, and is joined to with its bases (spec 4.7).

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::area::{put_envelopes, read_envelopes};
use crate::bytes::Reader;
use crate::num;
use crate::{Contents, Error, Head, Preamble, Root, area_len_for};

/// What makes a full bundle of a delta bundle and its bases, beside its layout (spec 7.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Full {
    /// The level of zstd with which its frames were made, 1 to 22.
    pub level: u8,
    /// Name and version of what made them, for people: at most 255 bytes.
    pub encoder: String,
    /// For each base the BLAKE3 of the stored layout of a bundle of it, which stores as the full bundle does what both have in one chunk.
    pub layouts: Vec<Option<[u8; 32]>>,
    /// The full bundle's head.
    pub head: Box<Head>,
}

impl Full {
    /// Parses the section of a root with these contents and so many bases.
    pub(crate) fn parse(mut reader: Reader<'_>, contents: &Contents, bases: usize) -> Result<Self, Error> {
        let level = reader.u8()?;
        if !(1..=22).contains(&level) {
            return Err(reader.malformed("the full bundle's level is none of zstd's"));
        }
        let encoder_len = reader.u8()?;
        let Ok(encoder) = core::str::from_utf8(reader.take(encoder_len.into())?) else {
            return Err(reader.malformed("the name of the full bundle's encoder is not UTF-8"));
        };
        let mut layouts = Vec::new();
        for _ in 0..bases {
            let layout: [u8; 32] = reader.array()?;
            layouts.push((layout != [0; 32]).then_some(layout));
        }
        let head = Box::new(parse_head(&mut reader)?);
        let full = &head.root().contents;
        if full.index_digest != contents.index_digest || full.index_len != contents.index_len {
            return Err(reader.malformed("the full bundle has another index"));
        }
        reader.finish()?;
        Ok(Self { level, encoder: encoder.into(), layouts, head })
    }

    /// Returns the section. The encoder's name is cut after 255 bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let encoder_len = u8::try_from(self.encoder.floor_char_boundary(255)).unwrap_or(u8::MAX);
        let mut out = alloc::vec![self.level, encoder_len];
        out.extend(self.encoder.bytes().take(encoder_len.into()));
        out.extend(self.layouts.iter().flat_map(|layout| layout.unwrap_or_default()));
        out.extend(self.head.signed());
        put_envelopes(&mut out, self.head.envelopes().iter());
        out.extend([0; 2]);
        out
    }
}

/// Reads preamble, root, envelopes and their end: the head without what follows from it.
fn parse_head(reader: &mut Reader<'_>) -> Result<Head, Error> {
    let start = reader.clone();
    let preamble = Preamble::parse(reader.take(32)?).map_err(|error| match error {
        Error::Magic => start.malformed("the full bundle does not begin with the magic bytes"),
        other => other,
    })?;
    let root = reader.take(num::at(preamble.root_len))?;
    let root = Root::parse_whole(root)?;
    let signed = start.rest().get(..num::at(preamble.signed_len())).unwrap_or_default();
    let envelopes = read_envelopes(reader)?;
    if area_len_for(&envelopes) > num::at(preamble.area_len) {
        return Err(reader.malformed("the full bundle's envelopes are longer than its signature area"));
    }
    Ok(Head::of_parts(signed.to_vec(), preamble, root, envelopes))
}
