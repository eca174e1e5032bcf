//! Mutated bundles. A bundle is decoded down to its fields, some of these are changed, and everything above a change is made consistent again:
//! hashes, lengths and maxima. Readers therefore judge the change, and not a hash.

mod columns;
mod edits;
mod parts;
mod random;
mod recipes;
mod seeds;

use parts::Left;
pub use parts::Parts;
pub use random::Random;

use crate::frame::{RawFrame, frame};

/// A bundle, and the bundles that are its bases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// The bytes of the file.
    pub bytes: Vec<u8>,
    /// The bytes of the bases.
    pub bases: Vec<Vec<u8>>,
}

/// The number of random bundles of each kind among the seeds.
const GROWN: usize = 250;
/// The number of mutations after which new random bundles are made.
const GENERATION: u64 = 20_000;

/// The bundles that mutations begin with.
#[derive(Clone, Debug)]
pub struct Seeds {
    vectors: Vec<Parts>,
    grown: Vec<Parts>,
    deltas: Vec<Parts>,
    seed: u64,
    generation: u64,
}

impl Seeds {
    /// Returns the seeds for the mutations of this random seed.
    pub fn new(seed: u64) -> Self {
        let mut seeds =
            Self { vectors: seeds::vectors(), grown: Vec::new(), deltas: Vec::new(), seed, generation: u64::MAX };
        seeds.renew(0);
        seeds
    }

    fn renew(&mut self, generation: u64) {
        if self.generation == generation {
            return;
        }
        self.generation = generation;
        let mut random = Random::new(self.seed ^ 0x5eed, generation);
        self.grown = (0..GROWN).filter_map(|_| seeds::whole(&mut random)).collect();
        self.deltas = (0..GROWN).filter_map(|_| seeds::delta(&mut random)).collect();
    }

    fn any(&self, random: &mut Random) -> &Parts {
        let from = match random.below(10) {
            0..=2 => &self.vectors,
            3..=6 => &self.grown,
            _ => &self.deltas,
        };
        random.of(from).expect("there are some of each")
    }

    /// Returns the mutation with this number.
    pub fn mutation(&mut self, number: u64) -> Input {
        self.renew(number / GENERATION);
        let mut random = Random::new(self.seed, number);
        let mut parts = self.any(&mut random).clone();
        let mut left = Left::random(&mut random);
        let donor = self.any(&mut random);
        let edits = [0, 1, 1, 1, 1, 1, 2, 2, 3, 6][random.below(10)];
        for _ in 0..edits {
            edits::edit(&mut parts, donor, &mut left, &mut random);
        }
        let is_odd = random.once_in(20);
        let mut bytes = parts.assemble(left, |content| match random.below(4) {
            _ if is_odd => edits::odd_frame(content, &mut random),
            0 => frame(content),
            // Faster, and just as good for this.
            _ => RawFrame::of(content).encode(),
        });
        if random.once_in(40) {
            edits::edit_bytes(&mut bytes, &mut random);
        }
        Input { bytes, bases: parts.bases }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::join;
    use crate::reader::walk;
    use crate::vector::{Check, load};

    /// Taking a bundle apart and putting it together without edits gives the same bytes, columns included.
    #[test]
    fn nothing_is_lost() {
        let mut parted = 0;
        for vector in load().iter().filter(|vector| vector.expect == "ok") {
            let parts = Parts::of(&vector.bytes, &[]).expect("it is sound");
            let left = Left { maxima: true, ..Left::default() };
            // The frames of the example have raw blocks, so that people can read them.
            let raw = |content: &[u8]| RawFrame::of(content).encode();
            let bytes = parts.assemble(left, if vector.name == "good-example" { raw } else { frame });
            assert_eq!(bytes, vector.bytes, "{}", vector.name);
            let is_delta = parts::payload(&parts.root, 5).is_some();
            let mut layout = columns::layout(&parts.layout).expect("it is sound").sections();
            layout.extend(parts.layout.iter().filter(|section| section.id > 8).cloned());
            assert_eq!(join(&layout), join(&parts.layout), "{}", vector.name);
            let mut index = if is_delta {
                columns::difference(&parts.index).expect("it is sound").sections()
            } else {
                columns::index(&parts.index).expect("it is sound").sections()
            };
            // The section of commits in a difference is not decoded.
            index.extend(parts.index.iter().filter(|section| is_delta && section.id == 14).cloned());
            assert_eq!(join(&index), join(&parts.index), "{}", vector.name);
            parted += 1;
        }
        assert!(parted > 40, "{parted} vectors");
    }

    /// Mutations begin with bundles that are read to their end, and many of these have recipes and views.
    #[test]
    fn what_mutations_begin_with_is_sound() {
        let seeds = Seeds::new(7);
        let (mut with_recipes, mut with_views) = (0, 0);
        for parts in seeds.grown.iter().chain(&seeds.deltas) {
            let bytes = parts.assemble(Left::default(), frame);
            let opened = walk(&bytes, &[usize::MAX], Check::Deep);
            let opened = opened.unwrap_or_else(|kind| panic!("it is {kind}"));
            let recipes = &opened.layout().recipes;
            with_recipes += usize::from(!recipes.made.is_empty());
            with_views += usize::from(!recipes.views.is_empty());
        }
        assert!(with_recipes > 100 && with_views > 20, "{with_recipes} with recipes, {with_views} with views");
    }

    #[test]
    fn a_number_gives_the_same_mutation_in_any_order() {
        let (mut seeds, mut others) = (Seeds::new(7), Seeds::new(7));
        let there: Vec<Input> = (0..20).map(|number| seeds.mutation(number)).collect();
        let back: Vec<Input> = (0..20).rev().map(|number| others.mutation(number)).collect();
        assert!(there.iter().eq(back.iter().rev()));
    }
}
