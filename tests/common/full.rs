//! The bundle that a delta bundle stands for (spec 4.7 and 7.6), from its parts: nothing is refused.

use crate::bundle::Bundle;
use crate::bytes::{Section, byte, narrow, planes32};

/// Sections 6 of the root and 7 of the layout.
#[derive(Clone, Debug)]
pub struct Full {
    /// zstd's level.
    pub level: u8,
    /// Who made its frames.
    pub encoder: Vec<u8>,
    /// For each base the BLAKE3 of a stored layout, or zeros.
    pub layouts: Vec<[u8; 32]>,
    /// Preamble and root.
    pub signed: Vec<u8>,
    /// Kinds and bodies.
    pub envelopes: Vec<(u16, Vec<u8>)>,
    /// The objects of each chunk; 0: a piece.
    pub objects: Vec<u32>,
    /// The objects in groups.
    pub members: Vec<u32>,
    /// For each piece its chunk + 1.
    pub pieces: Vec<u32>,
    /// The landmark + 1, or 0.
    pub landmark: u32,
}

impl Full {
    /// What is said of a bundle by a delta bundle of so many bases.
    pub fn of(bundle: Bundle, bases: usize) -> Self {
        let objects = bundle.layout.chunks.iter().map(|chunk| chunk.objects).collect();
        let members = bundle.layout.members.clone();
        let pieces = bundle.layout.pieces.iter().map(|piece| piece.0).collect();
        let landmark = bundle.layout.landmark.map_or(0, |landmark| landmark + 1);
        let mut signed = bundle.encode();
        let root_len = u32::from_le_bytes(signed[12..16].try_into().expect("four bytes"));
        signed.truncate(32 + usize::try_from(root_len).expect("32 bits"));
        Self {
            level: 3,
            encoder: b"builder".to_vec(),
            layouts: vec![[0; 32]; bases],
            signed,
            envelopes: Vec::new(),
            objects,
            members,
            pieces,
            landmark,
        }
    }

    /// Section 6 of the root.
    pub fn root_section(&self) -> Section {
        let mut out = vec![self.level, byte(self.encoder.len())];
        out.extend(&self.encoder);
        out.extend(self.layouts.concat());
        out.extend(&self.signed);
        for (kind, body) in &self.envelopes {
            out.extend(kind.to_le_bytes());
            out.extend(narrow(body.len()).to_le_bytes());
            out.extend(body);
        }
        out.extend([0; 2]);
        Section::ignorable(6, out)
    }

    /// Section 7 of the layout.
    pub fn layout_section(&self) -> Section {
        let mut out = narrow(self.objects.len()).to_le_bytes().to_vec();
        out.extend(planes32(self.objects.iter().copied()));
        out.extend(steps(&self.members));
        out.extend(narrow(self.pieces.len()).to_le_bytes());
        out.extend(steps(&self.pieces));
        out.extend(self.landmark.to_le_bytes());
        Section::ignorable(7, out)
    }
}

/// Numbers of which each is the one before it + 1 + step.
fn steps(numbers: &[u32]) -> Vec<u8> {
    let before = [u32::MAX].into_iter().chain(numbers.iter().copied());
    planes32(numbers.iter().zip(before).map(|(number, before)| number.wrapping_sub(before).wrapping_sub(1)))
}
