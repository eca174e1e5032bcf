//! Finds the encoder and the parameters that make a block, by making it.

use std::collections::HashMap;
use std::ops::Range;

use parking_lot::Mutex;
use sealift_container::{Block, BlockCodec, Hint};
use sealift_format::Coder;
use sealift_format::num::wide;
use sealift_store::recipe::encode;

use super::base_views::BaseViews;
use super::bodies::{Body, bodies_of};

/// What every reader for general use grants for a segment, in bytes (recipes 2).
const MEMORY_MAX: u64 = 1 << 30;

/// A part of a block that an encoder makes: a gzip member has a header and a trailer around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Proved {
    /// `None` if a base has its bytes, so that nothing has to make them.
    pub(super) coder: Option<Coder>,
    /// Its bytes, in bytes of the block.
    pub(super) stored: Range<usize>,
    /// What it encodes, in bytes of what the block decodes to.
    pub(super) plain: Range<usize>,
    /// Bytes that follow in the file: an encoder that fills its output knew them, and they had an effect.
    pub(super) following: Vec<u8>,
}

/// What is known of how blocks were made.
#[derive(Debug, Default)]
pub(super) struct Prover<'a> {
    /// Has the blocks of the bases, if there are any.
    pub(super) bases: Option<&'a BaseViews>,
    /// For each codec, the coders that made bodies, the most recent first.
    coders: Mutex<HashMap<BlockCodec, Vec<Coder>>>,
}

impl<'a> Prover<'a> {
    pub(super) fn new(bases: Option<&'a BaseViews>) -> Self {
        Self { bases: bases.filter(|bases| bases.has_blocks()), coders: Mutex::default() }
    }

    /// Returns what makes a block, whose bytes `all` decode to `plain`; `None` if nothing does. `following` returns what follows in a file that uses it.
    /// With `only_bases`, no encoder is tried.
    pub(super) fn prove(
        &self,
        block: &Block,
        hint: Hint,
        (all, plain): (&[u8], &[u8]),
        following: &dyn Fn() -> Vec<u8>,
        only_bases: bool,
    ) -> Option<Vec<Proved>> {
        bodies_of(block.codec, all, plain.len()).iter().find_map(|bodies| {
            let proved = bodies.iter().map(|body| {
                let (to, from) = (all.get(body.stored.clone())?, plain.get(body.plain.clone())?);
                let Body { stored, plain, .. } = body;
                let proved = |coder, following| {
                    let (stored, plain) = (stored.clone(), plain.clone());
                    Proved { coder, stored, plain, following }
                };
                if self.bases.is_some_and(|bases| bases.block(to).is_some()) {
                    return Some(proved(None, Vec::new()));
                }
                if only_bases {
                    return None;
                }
                let candidates = body.candidates(hint, all, to);
                if let Some(coder) = self.coder(block.codec, &candidates, from, to) {
                    return Some(proved(Some(coder), Vec::new()));
                }
                let following = if body.may_need_following(hint) { following() } else { Vec::new() };
                if following.is_empty() {
                    return None;
                }
                let coder = self.coder(block.codec, &candidates, &[from, &following].concat(), to)?;
                Some(proved(Some(coder), following))
            });
            proved.collect()
        })
    }

    /// Returns the first of the candidates that makes `to`, those first that made others.
    fn coder(&self, codec: BlockCodec, candidates: &[Coder], from: &[u8], to: &[u8]) -> Option<Coder> {
        let mut known = self.coders.lock().get(&codec).cloned().unwrap_or_default();
        known.retain(|coder| candidates.contains(coder));
        let others = candidates.iter().copied().filter(|coder| !known.contains(coder));
        let found = known.iter().copied().chain(others).find(|coder| makes(coder, from, to))?;
        let mut coders = self.coders.lock();
        let known = coders.entry(codec).or_default();
        known.retain(|known| *known != found);
        known.insert(0, found);
        Some(found)
    }
}

fn makes(coder: &Coder, from: &[u8], to: &[u8]) -> bool {
    let memory = coder.memory(wide(from.len())).saturating_add(wide(from.len() + to.len()));
    memory <= MEMORY_MAX && encode(coder, from, to.len()).is_ok_and(|made| made.as_deref() == Some(to))
}
