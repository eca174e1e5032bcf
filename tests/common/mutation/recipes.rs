//! Recipes for random contents, of what is found in them.

use sealift_format::Zlib;

use super::random::Random;
use crate::bytes::{narrow, wide};
use crate::recipes::{PartRange, Recipes, Segment, copied, deflated, zlib};
use crate::tree::paint;

const CODERS: [Zlib; 2] = [
    Zlib { level: 6, window_bits: 15, is_raw: false, mem_level: 8, strategy: 0 },
    Zlib { level: 1, window_bits: 9, is_raw: true, mem_level: 1, strategy: 2 },
];
/// The bits above these say what a number counts until all of them are known.
const KIND: u32 = 28;
const LEAF: u32 = 1 << KIND;
const BASE: u32 = 2 << KIND;
const VIEW: u32 = 3 << KIND;

/// Returns what a block decodes to.
fn plain(seed: u8) -> Vec<u8> {
    paint(seed, 300 + 200 * usize::from(seed))
}

/// Returns a content with a compressed block.
pub(super) fn container(random: &mut Random) -> Vec<u8> {
    let block = deflated(CODERS[random.below(2)], &plain(u8::try_from(random.below(3)).unwrap_or(0)));
    let zeros = vec![0; random.below(60)];
    [&paint(7, 1 + random.below(30))[..], &block, &zeros, &paint(8, random.below(30))].concat()
}

/// Returns where a compressed block lies in a content, with its coder and seed.
fn find(content: &[u8]) -> Option<(usize, usize, usize, u8)> {
    let blocks = (0..CODERS.len()).flat_map(|coder| (0..3).map(move |seed| (coder, seed)));
    blocks.into_iter().find_map(|(coder, seed)| {
        let block = deflated(CODERS[coder], &plain(seed));
        let at = content.windows(block.len()).position(|window| window == block)?;
        Some((at, block.len(), coder, seed))
    })
}

struct Plan<'a> {
    own: &'a [Vec<u8>],
    leaves: Vec<Vec<u8>>,
    recipes: Recipes,
}

impl Plan<'_> {
    /// Returns the number of an object or leaf with this content, which is not made; adds a leaf where there is none.
    fn part(&mut self, content: &[u8]) -> Option<u32> {
        if let Some(own) = self.own.iter().position(|own| own == content) {
            let own = narrow(own);
            let is_free = self.recipes.made.iter().all(|made| made.0 != own);
            return is_free.then_some(own);
        }
        let known = self.leaves.iter().position(|leaf| leaf == content);
        Some(
            LEAF + narrow(known.unwrap_or_else(|| {
                self.leaves.push(content.to_vec());
                self.leaves.len() - 1
            })),
        )
    }

    /// Adds what is between two blocks.
    fn plain(&mut self, content: &[u8], segments: &mut Vec<Segment>) -> Option<()> {
        let zeros = content.iter().take_while(|byte| **byte == 0).count();
        if zeros > 0 {
            segments.push(Segment::Zeros(wide(zeros)));
        }
        let rest = &content[zeros..];
        if !rest.is_empty() {
            segments.push(copied(self.part(rest)?, 0, wide(rest.len())));
        }
        Some(())
    }

    fn coder(&mut self, coder: usize) -> u16 {
        let row = zlib(CODERS[coder]);
        let known = self.recipes.coders.iter().position(|known| *known == row);
        let at = known.unwrap_or_else(|| {
            self.recipes.coders.push(row);
            self.recipes.coders.len() - 1
        });
        u16::try_from(at).unwrap_or(0)
    }

    /// Returns a recipe for a content.
    fn recipe(&mut self, content: &[u8], bases: &[Vec<u8>], random: &mut Random) -> Option<Vec<Segment>> {
        let mut segments = Vec::new();
        if let Some((at, len, coder, seed)) = find(content) {
            self.plain(&content[..at], &mut segments)?;
            let wanted = plain(seed);
            let view =
                self.recipes.views.iter().position(
                    |view| matches!(&view[..], [Segment::Decoded { len, .. }] if *len == narrow(wanted.len())),
                );
            let of = match view {
                Some(view) => VIEW + narrow(view),
                None => self.part(&wanted)?,
            };
            let cut = 1 + wide(random.below(wanted.len() - 1));
            let range = |offset, end| PartRange { of, offset, len: end - offset };
            let ranges = vec![range(0, cut), range(cut, wide(wanted.len()))];
            let coder = self.coder(coder);
            segments.push(Segment::Encoded { coder, len: narrow(len), ranges });
            self.plain(&content[at + len..], &mut segments)?;
            return Some(segments);
        }
        let cut = random.below(content.len());
        // The same end may be that of an object of a base.
        let base = bases.iter().position(|base| base.ends_with(&content[cut..]));
        self.plain(&content[..cut], &mut segments)?;
        match base {
            Some(base) => {
                let len = content.len() - cut;
                segments.push(copied(BASE + narrow(base), wide(bases[base].len() - len), wide(len)));
            }
            None => self.plain(&content[cut..], &mut segments)?,
        }
        Some(segments)
    }
}

/// Returns recipes for some of these contents, and the leaves that they need. `bases` are the contents of the bases of a delta bundle.
pub(super) fn plan(own: &[Vec<u8>], bases: Option<&[Vec<u8>]>, random: &mut Random) -> Option<(Vec<Vec<u8>>, Recipes)> {
    let mut plan = Plan { own, leaves: Vec::new(), recipes: Recipes::default() };
    for (base, content) in (0..).zip(bases.unwrap_or_default()) {
        if let Some((at, len, coder, seed)) = find(content) {
            let range = PartRange { of: BASE + base, offset: wide(at), len: wide(len) };
            let codec = if CODERS[coder].is_raw { 2 } else { 1 };
            plan.recipes.views.push(vec![Segment::Decoded { codec, len: narrow(plain(seed).len()), range }]);
        }
    }
    for (object, content) in (0..).zip(own) {
        // What others are made of stays.
        let used =
            plan.recipes.made.iter().flat_map(|made| &made.1).flat_map(Segment::ranges).any(|range| range.of == object);
        if content.is_empty() || content.len() > 5000 || used || !random.once_in(2) {
            continue;
        }
        let before = (plan.leaves.len(), plan.recipes.coders.len());
        match plan.recipe(content, bases.unwrap_or_default(), random) {
            Some(segments) if segments.iter().flat_map(Segment::ranges).all(|range| range.of != object) => {
                plan.recipes.made.push((object, segments));
            }
            // Leaves and coders that nothing uses would be a fault.
            _ => {
                plan.leaves.truncate(before.0);
                plan.recipes.coders.truncate(before.1);
            }
        }
    }
    let Plan { leaves, mut recipes, .. } = plan;
    if recipes.made.is_empty() && recipes.views.is_empty() {
        return None;
    }
    // There are at most two coders, which are to ascend.
    let is_swapped = !recipes.coders.is_sorted();
    recipes.coders.sort_unstable();
    for segment in recipes.made.iter_mut().flat_map(|made| &mut made.1).filter(|_| is_swapped) {
        if let Segment::Encoded { coder, .. } = segment {
            *coder = 1 - *coder;
        }
    }
    let first = |kind: u32| match kind {
        0 => 0,
        1 => own.len(),
        2 => own.len() + leaves.len(),
        _ => own.len() + leaves.len() + bases.map_or(0, <[_]>::len),
    };
    let segments = recipes.views.iter_mut().flatten().chain(recipes.made.iter_mut().flat_map(|made| &mut made.1));
    for range in segments.flat_map(Segment::ranges_mut) {
        range.of = narrow(first(range.of >> KIND)) + range.of % (1 << KIND);
    }
    Some((leaves, recipes))
}

/// Returns what the views of a plan decode to, with `before` objects and leaves.
pub(super) fn contents_of_views(recipes: &Recipes, before: usize, bases: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let base = |range: &PartRange| usize::try_from(range.of).ok()?.checked_sub(before).and_then(|base| bases.get(base));
    let content = |view: &Vec<Segment>| {
        let (_, _, _, seed) = find(base(view.first()?.ranges().first()?)?)?;
        Some(plain(seed))
    };
    recipes.views.iter().filter_map(content).collect()
}

/// Removes the views that neither a recipe nor a prefix uses, with `before` objects and leaves, and `bases` objects of the bases.
pub(super) fn drop_unused_views(
    recipes: &mut Recipes,
    prefixes: &mut [Vec<(u32, u64, u64)>],
    before: usize,
    bases: usize,
) {
    let ranges: Vec<PartRange> =
        recipes.made.iter().flat_map(|made| &made.1).flat_map(Segment::ranges).copied().collect();
    let [in_recipe, in_prefix] = [before + bases, bases].map(narrow::<usize>);
    let is_used = |view: u32| {
        ranges.iter().any(|range| range.of == in_recipe + view)
            || prefixes.iter().flatten().any(|range| range.0 == in_prefix + view)
    };
    let used: Vec<u32> = (0..narrow(recipes.views.len())).filter(|view| is_used(*view)).collect();
    let to = |number: &mut u32, first: u32| {
        if let Some(place) = number.checked_sub(first).and_then(|view| used.iter().position(|used| *used == view)) {
            *number = first + narrow(place);
        }
    };
    recipes
        .made
        .iter_mut()
        .flat_map(|made| &mut made.1)
        .flat_map(Segment::ranges_mut)
        .for_each(|range| to(&mut range.of, in_recipe));
    prefixes.iter_mut().flatten().for_each(|range| to(&mut range.0, in_prefix));
    let mut view = 0..;
    recipes.views.retain(|_| view.next().is_some_and(|view| used.contains(&view)));
}
