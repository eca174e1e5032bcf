//! What making objects takes (recipes 2).

use alloc::vec::Vec;

use super::{Encoder, MAKES, Recipes, SegmentKind};
use crate::bytes::Reader;
use crate::error::compare;
use crate::index::Object;
use crate::num::{fit, wide};
use crate::{Error, Part};

/// The numbers of root section 9.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecipeSums {
    /// The number of leaves.
    pub leaves: u64,
    /// The sum of their sizes, in bytes.
    pub leaf_bytes: u64,
    /// The number of recipes.
    pub made: u64,
    /// The sum of the sizes of their objects, in bytes.
    pub made_bytes: u64,
    /// The bytes that views decode.
    pub decoded_bytes: u64,
    /// The bytes of memory that making takes on one thread (recipes 4.2).
    pub memory: u64,
    /// The encoders, ascending, each with the bytes that it encodes.
    pub encoders: Vec<(Encoder, u64)>,
}

impl RecipeSums {
    /// Computes the numbers. `own` are the objects before the leaves.
    ///
    /// # Errors
    /// Returns an error if a sum exceeds 2^64-1.
    pub fn of(recipes: &Recipes, own: &[Object]) -> Result<Self, Error> {
        let mut sums = Self { leaves: wide(recipes.leaves.len()), made: wide(recipes.made.len()), ..Self::default() };
        for leaf in &recipes.leaves {
            add("leaf_bytes", &mut sums.leaf_bytes, leaf.size)?;
        }
        for made in &recipes.made {
            let object = made.object.get(own).or_else(|| recipes.leaf(made.object));
            add("made_bytes", &mut sums.made_bytes, object.map_or(0, |object| object.size))?;
        }
        for segment in &recipes.segments {
            let input = recipes.ranges(segment).iter().fold(0_u64, |sum, range| sum.saturating_add(range.len));
            let held = input.saturating_add(segment.len);
            match &segment.kind {
                SegmentKind::Copied(_) | SegmentKind::Zeros => {}
                SegmentKind::Decoded { codec, .. } => {
                    add("decoded_bytes", &mut sums.decoded_bytes, segment.len)?;
                    sums.memory = sums.memory.max(held.saturating_add(codec.memory()));
                }
                SegmentKind::Encoded { coder, .. } => {
                    let Some(coder) = recipes.coders.get(usize::from(*coder)) else { continue };
                    sums.memory = sums.memory.max(held.saturating_add(coder.memory(input)));
                    let encoder = coder.encoder();
                    let at = match sums.encoders.binary_search_by_key(&encoder, |(encoder, _)| *encoder) {
                        Ok(at) => at,
                        Err(at) => {
                            sums.encoders.insert(at, (encoder, 0));
                            at
                        }
                    };
                    add("the bytes of an encoder", &mut sums.encoders[at].1, input)?;
                }
            }
        }
        Ok(sums)
    }

    /// Returns the bytes that encoders take together.
    #[must_use]
    pub fn encoded_bytes(&self) -> u64 {
        self.encoders.iter().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }

    /// Compares what a root declares with what its layout has, whose objects before the leaves are `own`. A reader that makes no objects compares their
    /// numbers alone.
    pub(crate) fn check(declared: Option<&Self>, recipes: &Recipes, own: &[Object]) -> Result<(), Error> {
        compare(&[("recipes", u64::from(declared.is_some()), u64::from(!recipes.is_empty()))])?;
        let Some(declared) = declared else { return Ok(()) };
        compare(&[
            ("leaves", declared.leaves, wide(recipes.leaves.len())),
            ("recipes", declared.made, wide(recipes.made.len())),
        ])?;
        if !MAKES {
            return Ok(());
        }
        let found = Self::of(recipes, own)?;
        compare(&[
            ("leaf_bytes", declared.leaf_bytes, found.leaf_bytes),
            ("made_bytes", declared.made_bytes, found.made_bytes),
            ("decoded_bytes", declared.decoded_bytes, found.decoded_bytes),
            ("the memory for recipes", declared.memory, found.memory),
            ("the number of encoders", wide(declared.encoders.len()), wide(found.encoders.len())),
        ])?;
        for (declared, found) in declared.encoders.iter().zip(&found.encoders) {
            compare(&[
                ("an encoder", declared.0.number().into(), found.0.number().into()),
                ("the bytes of an encoder", declared.1, found.1),
            ])?;
        }
        Ok(())
    }

    pub(crate) fn parse(mut reader: Reader<'_>) -> Result<Self, Error> {
        let (leaves, leaf_bytes, made) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let mut sums = Self {
            leaves,
            leaf_bytes,
            made,
            made_bytes: reader.u64()?,
            decoded_bytes: reader.u64()?,
            memory: reader.u64()?,
            encoders: Vec::new(),
        };
        if !MAKES {
            return Ok(sums);
        }
        for _ in 0..reader.u16()? {
            let encoder = Encoder::of(Part::Root, reader.u8()?)?;
            if sums.encoders.last().is_some_and(|(last, _)| *last >= encoder) {
                return Err(reader.malformed("encoders do not ascend"));
            }
            sums.encoders.push((encoder, reader.u64()?));
        }
        reader.finish()?;
        Ok(sums)
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>, Error> {
        let Self { leaves, leaf_bytes, made, made_bytes, decoded_bytes, memory, .. } = *self;
        let mut out: Vec<u8> = [leaves, leaf_bytes, made, made_bytes, decoded_bytes, memory]
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .collect();
        out.extend(fit::<u16>(self.encoders.len(), "the number of encoders")?.to_le_bytes());
        for (encoder, bytes) in &self.encoders {
            out.push(encoder.number());
            out.extend(bytes.to_le_bytes());
        }
        Ok(out)
    }
}

fn add(what: &'static str, sum: &mut u64, value: u64) -> Result<(), Error> {
    *sum = sum.checked_add(value).ok_or(Error::Limit { what, declared: u64::MAX, limit: u64::MAX })?;
    Ok(())
}
