//! Finds the encoder and the parameters that make a block, by making it.

use std::collections::HashMap;
use std::ops::Range;

use parking_lot::Mutex;
use sealift_format::Coder;
use sealift_format::num::wide;
use sealift_store::container::{Block, BlockCodec, Hint};
use sealift_store::recipe::encode;

use super::bodies::{Body, bodies_of};

/// Bodies of one codec that could not be made, after which only the coders that made others are tried.
const GIVE_UP: u32 = 16;
/// What every reader for general use grants for a segment, in bytes (recipes 2).
const MEMORY_MAX: u64 = 1 << 30;

/// A part of a block that an encoder makes: a gzip member has a header and a trailer around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Proved {
    pub(super) coder: Coder,
    /// Its bytes, in bytes of the block.
    pub(super) stored: Range<usize>,
    /// What it encodes, in bytes of what the block decodes to.
    pub(super) plain: Range<usize>,
    /// Bytes that follow in the file: an encoder that fills its output knew them, and they had an effect.
    pub(super) following: Vec<u8>,
}

/// What is known of how the blocks of a container were made.
#[derive(Debug, Default)]
pub(super) struct Prover {
    state: Mutex<HashMap<BlockCodec, Known>>,
}

#[derive(Debug, Default)]
struct Known {
    /// The coders that made bodies, the most recent first.
    coders: Vec<Coder>,
    failed: u32,
}

impl Prover {
    /// Returns what makes a block, whose stored bytes decode to `plain`; `None` if nothing does. `following` returns what follows in a file that uses it.
    pub(super) fn prove(
        &self,
        block: &Block,
        hint: Hint,
        (stored, plain): (&[u8], &[u8]),
        following: &dyn Fn() -> Vec<u8>,
    ) -> Option<Vec<Proved>> {
        bodies_of(block.codec, stored, plain.len()).iter().find_map(|bodies| {
            let proved = bodies.iter().map(|body| {
                let (to, from) = (stored.get(body.stored.clone())?, plain.get(body.plain.clone())?);
                let Body { stored, plain, .. } = body;
                let proved = |coder, following| {
                    let (stored, plain) = (stored.clone(), plain.clone());
                    Proved { coder, stored, plain, following }
                };
                let candidates = body.candidates(hint, to);
                if let Some(coder) = self.coder(block.codec, &candidates, from, to) {
                    return Some(proved(coder, Vec::new()));
                }
                let following = if body.may_need_following(hint) { following() } else { Vec::new() };
                if following.is_empty() {
                    return None;
                }
                let coder = self.coder(block.codec, &candidates, &[from, &following].concat(), to)?;
                Some(proved(coder, following))
            });
            proved.collect()
        })
    }

    /// Returns the first of the candidates that makes `to`, those first that made others.
    fn coder(&self, codec: BlockCodec, candidates: &[Coder], from: &[u8], to: &[u8]) -> Option<Coder> {
        let (mut known, may_be_others) = {
            let state = self.state.lock();
            let known = state.get(&codec);
            let coders = known.map_or_else(Vec::new, |known| known.coders.clone());
            (coders, known.is_none_or(|known| known.failed < GIVE_UP))
        };
        known.retain(|coder| candidates.contains(coder));
        let others = candidates.iter().copied().filter(|coder| may_be_others && !known.contains(coder));
        let found = known.iter().copied().chain(others).find(|coder| makes(coder, from, to));
        let mut state = self.state.lock();
        let known = state.entry(codec).or_default();
        match found {
            Some(coder) => {
                known.coders.retain(|known| *known != coder);
                known.coders.insert(0, coder);
            }
            None => known.failed = known.failed.saturating_add(1),
        }
        found
    }
}

fn makes(coder: &Coder, from: &[u8], to: &[u8]) -> bool {
    let memory = coder.memory(wide(from.len())).saturating_add(wide(from.len() + to.len()));
    memory <= MEMORY_MAX && encode(coder, from, to.len()).is_ok_and(|made| made.as_deref() == Some(to))
}
