//! Objects made by recipes (recipes.md), in full bundles.

use std::collections::BTreeMap;

use sealift_format::{Coder, Zlib};

use super::*;
use crate::bytes::{Section, hash, planes32, wide};
use crate::frame::frame;
use crate::ostree::commit;
use crate::recipes::{PartRange, Recipes, Segment, Sums, copied, encoded, zlib};

/// A number of an encoder, a codec or a kind that nobody will give a meaning.
pub(super) const FREE: u8 = 0xff;
/// The coders of most bundles here.
pub(super) const WITH_HEADER: Zlib = Zlib { level: 6, window_bits: 15, is_raw: false, mem_level: 8, strategy: 0 };
pub(super) const WITHOUT: Zlib = Zlib { level: 9, window_bits: 12, is_raw: true, mem_level: 9, strategy: 1 };

pub(super) const MIB: Packing = Packing { piece_log2: 20, group: 100, raw: false };

pub(super) fn vectors() -> Vec<Vector> {
    [good(), sums(), sections(), leaves(), segments(), ranges(), coders(), placed(), made()]
        .into_iter()
        .flatten()
        .collect()
}

/// Returns a text that shrinks when it is compressed.
pub(super) fn text(seed: u8, len: usize) -> Vec<u8> {
    let digits = (0..=u8::MAX).flat_map(|part| hash(&[seed, part]));
    digits.flat_map(|byte| [b'a' + byte % 8, b'-']).take(len).collect()
}

/// A recipe or view, with the bytes that it makes.
#[derive(Default)]
pub(super) struct Draft {
    /// The contents of what ranges may name, by number.
    pub parts: BTreeMap<u32, Vec<u8>>,
    pub segments: Vec<Segment>,
    pub bytes: Vec<u8>,
}

impl Draft {
    pub(super) fn of(parts: &[(u32, &[u8])]) -> Self {
        Self { parts: parts.iter().map(|(of, bytes)| (*of, bytes.to_vec())).collect(), ..Self::default() }
    }

    fn part(&self, range: PartRange) -> &[u8] {
        let at = |number: u64| usize::try_from(number).expect("vectors are small");
        &self.parts[&range.of][at(range.offset)..at(range.offset + range.len)]
    }

    pub(super) fn copy(mut self, of: u32, offset: u64, len: u64) -> Self {
        let bytes = self.part(PartRange { of, offset, len }).to_vec();
        self.bytes.extend(bytes);
        self.segments.push(copied(of, offset, len));
        self
    }

    pub(super) fn zeros(mut self, len: u16) -> Self {
        self.bytes.resize(self.bytes.len() + usize::from(len), 0);
        self.segments.push(Segment::Zeros(len.into()));
        self
    }

    pub(super) fn encode(self, coder: u16, zlib: Zlib, ranges: &[(u32, u64, u64)]) -> Self {
        self.encode_as(coder, zlib, ranges, |_| {})
    }

    /// Does the same, and states other bytes than the encoder makes.
    pub(super) fn encode_as(
        self,
        coder: u16,
        zlib: Zlib,
        ranges: &[(u32, u64, u64)],
        change: impl FnOnce(&mut Vec<u8>),
    ) -> Self {
        self.encode_by(coder, &Coder::Zlib(zlib), ranges, change)
    }

    /// Adds what any encoder makes, changed.
    pub(super) fn encode_by(
        mut self,
        row: u16,
        coder: &Coder,
        ranges: &[(u32, u64, u64)],
        change: impl FnOnce(&mut Vec<u8>),
    ) -> Self {
        let ranges: Vec<_> = ranges.iter().map(|&(of, offset, len)| PartRange { of, offset, len }).collect();
        let plain: Vec<u8> = ranges.iter().flat_map(|range| self.part(*range)).copied().collect();
        let mut bytes = encoded(coder, &plain);
        change(&mut bytes);
        let len = u32::try_from(bytes.len()).expect("vectors are small");
        self.bytes.extend(bytes);
        self.segments.push(Segment::Encoded { coder: row, len, ranges });
        self
    }

    /// Adds what a range decodes to: `plain`.
    pub(super) fn decode(mut self, codec: u8, of: u32, offset: u64, len: u64, plain: &[u8]) -> Self {
        let range = PartRange { of, offset, len };
        self.bytes.extend(plain);
        let len = u32::try_from(plain.len()).expect("vectors are small");
        self.segments.push(Segment::Decoded { codec, len, range });
        self
    }
}

/// Returns the bundle that most vectors here edit, of these two leaves: object 0 is `one` and object 2 `two`, followed by nothing. Object 1 has a
/// recipe of eight segments, of which the last has 5 bytes of leaf 4.
fn full_of(leaves: &[Vec<u8>], two: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Bundle {
    let image = Draft::of(&[(0, b"one\n"), (2, two), (3, &leaves[0]), (4, &leaves[1])])
        .copy(3, 0, 100)
        .copy(0, 0, 4)
        .zeros(50)
        .encode_as(0, WITH_HEADER, &[(3, 100, 500), (4, 0, 300), (0, 0, 4)], change)
        .encode(1, WITHOUT, &[(2, 0, 4), (4, 0, 300), (4, 0, 300)])
        .copy(2, 1, 2)
        .copy(4, 10, 10)
        .copy(4, 0, 5);
    let tree = dir([("a", file("one\n")), ("image", file(image.bytes)), ("z", file(two))]);
    let recipes = Recipes {
        made: vec![(1, image.segments)],
        coders: vec![zlib(WITH_HEADER), zlib(WITHOUT)],
        ..Recipes::default()
    };
    Bundle::new(&[("main", tree)], MIB).with_recipes(leaves, recipes, MIB)
}

fn texts() -> Vec<Vec<u8>> {
    vec![text(1, 600), text(2, 300)]
}

pub(super) fn full() -> Bundle {
    full_of(&texts(), b"two\n", |_| {})
}

/// Returns objects that are made of each other: of leaf 3, leaf 4 is made, of that, object 2, of that, object 1, and of that, object 0.
fn deep() -> Bundle {
    let leaf = text(3, 200);
    let of = |of: u32, bytes: &[u8]| {
        let last = wide(bytes.len()) - 1;
        Draft::of(&[(of, bytes)]).copy(of, last, 1).copy(of, 0, last)
    };
    let four = of(3, &leaf);
    let two = of(4, &four.bytes);
    let one = of(2, &two.bytes);
    let none = of(1, &one.bytes);
    let tree = dir([("a", file(none.bytes.clone())), ("b", file(one.bytes.clone())), ("c", file(two.bytes.clone()))]);
    let made = vec![(4, four.segments), (2, two.segments), (1, one.segments), (0, none.segments)];
    let recipes = Recipes { made, ..Recipes::default() };
    Bundle::new(&[("main", tree)], MIB).with_recipes(&[leaf, four.bytes], recipes, MIB)
}

/// Returns objects in pieces of 4 KiB: object 0 is made, with zeros that would be a hole if it were stored; object 1 is made of its middle. Leaf 2 has
/// three pieces, of which the first is also that of object 0.
fn in_pieces() -> Bundle {
    let leaf: Vec<u8> = text(4, 8192).into_iter().zip(text(5, 8192)).flat_map(|(a, b)| [a, b]).take(9000).collect();
    let image = Draft::of(&[(2, &leaf)])
        .copy(2, 0, 5000)
        .zeros(35_000)
        .zeros(35_000)
        .encode(0, WITH_HEADER, &[(2, 0, 9000)])
        .copy(2, 4000, 5000);
    let bytes = image.bytes.clone();
    let part = Draft::of(&[(0, &bytes)]).copy(0, 4000, 2000).copy(0, 69_000, 4000);
    let tree = dir([("a", file(image.bytes)), ("b", file(part.bytes))]);
    let recipes = Recipes {
        made: vec![(0, image.segments), (1, part.segments)],
        coders: vec![zlib(WITH_HEADER)],
        ..Recipes::default()
    };
    Bundle::new(&[("main", tree)], Packing::default()).with_recipes(&[leaf], recipes, Packing::default())
}

/// Returns what zlib makes of one leaf, with each value of each parameter.
fn with_all_parameters() -> Bundle {
    let leaf: Vec<u8> = [text(6, 2000), text(7, 300).repeat(4), vec![b'x'; 700], text(6, 1000)].concat();
    let usual = WITH_HEADER;
    let mut all: Vec<Zlib> = Vec::new();
    all.extend((1..=9).map(|level| Zlib { level, ..usual }));
    all.extend((9..=14).map(|window_bits| Zlib { window_bits, ..usual }));
    all.extend((9..=15).map(|window_bits| Zlib { window_bits, is_raw: true, ..usual }));
    all.extend([1, 2, 3, 4, 5, 6, 7, 9].map(|mem_level| Zlib { mem_level, ..usual }));
    all.extend((1..=4).map(|strategy| Zlib { strategy, ..usual }));
    all.sort_unstable_by_key(|zlib| Coder::Zlib(*zlib));
    let mut image = Draft::of(&[(1, &leaf)]);
    for (row, zlib) in (0..).zip(&all) {
        image = image.encode(row, *zlib, &[(1, 0, wide(leaf.len()))]);
    }
    let recipes =
        Recipes { made: vec![(0, image.segments)], coders: all.into_iter().map(zlib).collect(), ..Recipes::default() };
    let tree = dir([("image", file(image.bytes))]);
    Bundle::new(&[("main", tree)], MIB).with_recipes(&[leaf], recipes, MIB)
}

/// Returns an OSTree commit of a file in pieces that is made.
fn of_commit() -> Bundle {
    let leaf = text(15, 6000);
    let image = Draft::of(&[(1, &leaf)]).copy(1, 0, 5000).zeros(5000).copy(1, 1000, 5000);
    let tree = dir([("image", file(image.bytes).mtime(0, 0))]);
    let recipes = Recipes { made: vec![(0, image.segments)], ..Recipes::default() };
    let bundle = Bundle::with_commits(&[], &[("os/main", vec![commit(tree)])], Packing::default());
    bundle.with_recipes(&[leaf], recipes, Packing::default())
}

fn good() -> Vec<Vector> {
    vec![
        accept("good-recipes-ostree", "a file of a commit, in pieces that are made", of_commit())
            .needs("core ostree recipes"),
        accept("good-recipes", "an object of ranges, zeros and two encoded blocks", full()),
        accept("good-recipes-deep", "objects that are made of each other, four deep, in any order", deep()),
        accept("good-recipes-pieces", "objects in pieces that are made, and a leaf in pieces", in_pieces()),
        accept("good-recipes-zlib", "each value of each of zlib's parameters", with_all_parameters()),
    ]
}

/// Returns the full bundle with a fault.
fn bad(name: &str, kind: &str, comment: &str, edit: impl FnOnce(&mut Bundle)) -> Vector {
    reject_from(full(), name, kind, comment, edit)
}

/// Returns the full bundle with a fault of the layout.
fn bad_layout(name: &str, comment: &str, edit: impl FnOnce(&mut Bundle)) -> Vector {
    bad(name, "layout", comment, edit)
}

fn cut(id: u16) -> Edit<Vec<Section>> {
    edit(move |sections: &mut Vec<Section>| {
        let section = sections.iter_mut().find(|section| section.id == id);
        section.expect("the section is there").payload.pop();
    })
}

/// The root (recipes 2).
fn sums() -> Vec<Vector> {
    let header = |name, comment, change: fn(&mut Sums)| bad(name, "header", comment, |b| b.edits.sums = edit(change));
    let limit = |name, comment, change: fn(&mut Sums)| bad(name, "limit", comment, |b| b.edits.sums = edit(change));
    vec![
        bad("recipes-sums-flag", "header", "section 9 of the root need not be understood", |b| {
            b.edits.root = edit(|s: &mut Vec<Section>| s.last_mut().expect("it is there").flags = 0);
        }),
        bad("recipes-sums-left", "header", "a byte follows the last encoder", |b| b.edits.root = longer(9)),
        bad("recipes-sums-short", "header", "the last byte of the last encoder is missing", |b| b.edits.root = cut(9)),
        header("recipes-encoders-twice", "an encoder is there twice", |sums| sums.encoders.push(sums.encoders[0])),
        bad("recipes-encoder-of-root", "unsupported", "the root has an encoder that nobody knows", |b| {
            b.edits.sums = edit(|sums: &mut Sums| sums.encoders.push((FREE, 0)));
        }),
        limit("limit-recipes-leaves", "more than 2^24 leaves", |sums| sums.leaves = (1 << 24) + 1),
        limit("limit-recipes-leaf-bytes", "leaves of more than 4 TiB", |sums| sums.leaf_bytes = (1 << 42) + 1),
        limit("limit-recipes-made-bytes", "more than 4 TiB are made", |sums| sums.made_bytes = (1 << 42) + 1),
        limit("limit-recipes-decoded-bytes", "more than 4 TiB are decoded", |sums| sums.decoded_bytes = (1 << 42) + 1),
        limit("limit-recipes-encoded-bytes", "more than 4 TiB are encoded", |sums| sums.encoders[0].1 = (1 << 42) + 1),
        limit("limit-recipes-memory", "more than 1 GiB of memory", |sums| sums.memory = (1 << 30) + 1),
        header("recipes-sums-leaves", "one leaf more than there is", |sums| sums.leaves += 1),
        header("recipes-sums-leaf-bytes", "leaves of a byte more than they have", |sums| sums.leaf_bytes += 1),
        header("recipes-sums-made", "one recipe more than there is", |sums| sums.made += 1),
        header("recipes-sums-made-bytes", "a byte more is made than the object has", |sums| sums.made_bytes += 1),
        header("recipes-sums-decoded-bytes", "a byte is decoded where there is no view", |sums| sums.decoded_bytes = 1),
        header("recipes-sums-memory", "a byte of memory more than is needed", |sums| sums.memory += 1),
        header("recipes-sums-encoded-bytes", "a byte more is encoded", |sums| sums.encoders[0].1 += 1),
        header("recipes-sums-encoder-missing", "the only encoder is not listed", |sums| sums.encoders.clear()),
        reject_from(deep(), "recipes-sums-encoder-left", "header", "an encoder that no segment uses", |b| {
            b.edits.sums = edit(|sums: &mut Sums| sums.encoders.push((1, 0)));
        }),
        bad("recipes-sums-missing", "header", "the layout has recipes, and the root does not say so", |b| {
            b.edits.root = edit(|s: &mut Vec<Section>| drop(s.pop()));
        }),
        reject("recipes-section-missing", "header", "the root says that there are recipes, and there are none", |b| {
            b.edits.root = edit(|s: &mut Vec<Section>| s.push(Section::critical(9, Sums::default().encode())));
        }),
    ]
}

/// The section's form (recipes 3).
fn sections() -> Vec<Vector> {
    vec![
        bad_layout("recipes-section-flag", "section 8 of the layout need not be understood", |b| {
            b.edits.root = edit(|s: &mut Vec<Section>| drop(s.pop()));
            b.edits.layout = edit(|s: &mut Vec<Section>| s.last_mut().expect("it is there").flags = 0);
        })
        .needs("core"),
        bad_layout("recipes-left", "a byte follows the last coder", |b| b.edits.layout = longer(8)),
        bad_layout("recipes-short", "the last byte of the last coder is missing", |b| b.edits.layout = cut(8)),
        bad_layout("recipes-count", "2^31 leaves", |b| {
            b.edits.layout = edit(|s: &mut Vec<Section>| {
                let section = s.last_mut().expect("it is there");
                section.payload[..4].copy_from_slice(&(1_u32 << 31).to_le_bytes());
            });
        }),
        reject("recipes-none", "layout", "neither a recipe nor a view", |b| {
            b.layout.recipes = Some(Recipes::default());
        }),
        reject_from(deep(), "recipes-segments-sum", "layout", "2^32+1 segments in sum", |b| {
            b.edits.layout = edit(|s: &mut Vec<Section>| {
                // They follow two leaves, two counts and four objects.
                let at = 4 + 2 * 40 + 8 + 4 * 4;
                let counts = planes32([u32::MAX, 2, 0, 0].into_iter());
                s.last_mut().expect("it is there").payload[at..at + 16].copy_from_slice(&counts);
            });
        }),
        bad_layout("recipes-ranges-sum", "2^32+1 ranges of two segments in sum", |b| {
            b.edits.layout = edit(|s: &mut Vec<Section>| {
                // They follow two leaves, two counts, one object with eight segments, zeros, and two rows of coders and of lengths.
                let at = 4 + 2 * 40 + 8 + 4 + 4 + 8 + 8 + 2 * 2 + 2 * 4;
                let counts = planes32([u32::MAX, 2].into_iter());
                s.last_mut().expect("it is there").payload[at..at + 8].copy_from_slice(&counts);
            });
        }),
    ]
}

/// Leaves, and what has a recipe (recipes 3.1 and 3.4).
fn leaves() -> Vec<Vector> {
    let [long, short] = [text(1, 600), text(2, 300)];
    let of = |name, comment, bundle: Bundle| vector(name, "layout", comment, bundle.encode());
    let none = |_: &mut Vec<u8>| {};
    vec![
        of("recipes-leaf-twice", "two equal leaves", full_of(&[long.clone(), long.clone()], b"two\n", none)),
        of("recipes-leaf-of-index", "a leaf is an object of the index", full_of(&texts(), &short, none)),
        of("recipes-leaf-unused", "a leaf in no recipe", full_of(&[long, short, text(3, 9)], b"two\n", none)),
        of("recipes-leaf-empty", "a leaf of no bytes", full_of(&[texts(), vec![Vec::new()]].concat(), b"two\n", none)),
        bad_layout("recipes-view-in-full", "a view, and there are no bases", |b| {
            let recipes = b.recipes();
            recipes.views.push(vec![Segment::Zeros(5)]);
            recipes.made[0].1[7] = copied(5, 0, 5);
        }),
        bad_layout("recipes-object-unknown", "a recipe of object 5, and there are five", |b| {
            b.recipes().made.push((5, vec![Segment::Zeros(1)]));
        }),
        bad_layout("recipes-object-twice", "an object has two recipes", |b| {
            let recipes = b.recipes();
            recipes.made.push(recipes.made[0].clone());
        }),
        reject_from(deep(), "recipes-forward", "layout", "a recipe names an object of which the next one is", |b| {
            b.recipes().made.swap(1, 2);
        }),
        bad_layout("recipes-itself", "a recipe names its own object", |b| b.recipes().made[0].1[7] = copied(1, 0, 5)),
        reject_from(deep(), "recipes-depth", "layout", "recipes that are five deep", |b| {
            // Leaf 5 is made of leaf 4, and object 2 of that.
            let last = text(8, 200);
            let leaves: Vec<Vec<u8>> = vec![text(3, 200), text(9, 200), last];
            let mut recipes = b.layout.recipes.take().expect("it has recipes");
            recipes.made.insert(1, (5, vec![copied(4, 0, 200)]));
            recipes.made[2].1 = vec![copied(5, 0, 200)];
            let empty = Bundle::new(&[("main", dir([]))], MIB);
            *b = std::mem::replace(b, empty).with_recipes(&leaves, recipes, MIB);
        }),
    ]
}

/// Segments (recipes 3.4).
fn segments() -> Vec<Vector> {
    let push = |name, comment, segment: Segment| bad_layout(name, comment, |b| b.recipes().made[0].1.push(segment));
    let last = |name, comment, segment: Segment| bad_layout(name, comment, |b| b.recipes().made[0].1[7] = segment);
    let range = PartRange { of: 4, offset: 0, len: 5 };
    vec![
        bad_layout("recipes-segments-none", "a recipe without segments, of an object without bytes", |b| {
            *b = Bundle::new(&[("main", dir([("a", file(""))]))], MIB);
            b.layout.recipes = Some(Recipes { made: vec![(0, Vec::new())], ..Recipes::default() });
        }),
        push("recipes-kind", "a segment of kind 255", Segment::Unknown(FREE)),
        push("recipes-zeros-none", "zeros, but none", Segment::Zeros(0)),
        last("recipes-decoded-in-recipe", "a recipe decodes", Segment::Decoded { codec: 1, len: 5, range }),
        last(
            "recipes-inputs-none",
            "a segment encodes no range",
            Segment::Encoded { coder: 0, len: 5, ranges: vec![] },
        ),
        push("recipes-encoded-none", "a block of no bytes", Segment::Encoded { coder: 0, len: 0, ranges: vec![range] }),
        bad_layout("recipes-encoded-long", "a block of 2^27+1 bytes", |b| {
            // Of an object of as many pieces as it then has.
            b.recipes().made[0].1[7] = Segment::Encoded { coder: 0, len: (1 << 27) + 1, ranges: vec![range] };
            let object = &mut b.index.objects[1];
            object.0 += (1 << 27) + 1 - 5;
            let values: Vec<[u8; 32]> =
                (0..object.0.div_ceil(1 << 20)).map(|piece| hash(&piece.to_le_bytes())).collect();
            object.1 = sealift_format::pieces::object_id(&values).expect("several pieces");
            b.layout.pieces = values.into_iter().map(|value| (0, value)).collect();
        }),
        bad_layout("recipes-input-long", "2^27+1 bytes are encoded", |b| {
            let recipes = b.layout.recipes.clone().expect("it has recipes");
            // Leaf 5 is one hole of 16 MiB.
            let leaves = [texts(), vec![vec![0; 1 << 24]]].concat();
            let empty = Bundle::new(&[("main", dir([]))], MIB);
            *b = std::mem::replace(b, empty).with_recipes(&leaves, recipes, MIB);
            let hole = PartRange { of: 5, offset: 0, len: 1 << 24 };
            let ranges = [vec![hole; 8], vec![PartRange { of: 0, offset: 0, len: 1 }]].concat();
            b.recipes().made[0].1[7] = Segment::Encoded { coder: 0, len: 5, ranges };
        }),
        push("recipes-len-over", "segments of a byte more than the object", Segment::Zeros(1)),
        last("recipes-len-under", "segments of a byte less than the object", copied(4, 0, 4)),
        push("recipes-len-wraps", "segments of 2^64 bytes more than the object", Segment::Zeros(u64::MAX)),
    ]
}

/// Ranges (recipes 3.3).
fn ranges() -> Vec<Vector> {
    let last = |name, comment, segment: Segment| bad_layout(name, comment, |b| b.recipes().made[0].1[7] = segment);
    vec![
        last("recipes-range-unknown", "a range of object 5, and there are five", copied(5, 0, 5)),
        last("recipes-range-beyond", "a range that ends a byte behind its leaf", copied(4, 296, 5)),
        last("recipes-range-wraps", "a range that ends at byte 2^64 and then 3", copied(4, u64::MAX - 1, 5)),
        bad_layout("recipes-range-of-index-beyond", "a range that ends a byte behind its object", |b| {
            b.recipes().made[0].1[5] = copied(2, 3, 2);
        }),
        bad_layout("recipes-range-empty", "a range of no bytes among those that are encoded", |b| {
            if let Segment::Encoded { ranges, .. } = &mut b.recipes().made[0].1[3] {
                ranges.push(PartRange { of: 4, offset: 0, len: 0 });
            }
        }),
    ]
}

/// Coders (recipes 3.6 and 5).
fn coders() -> Vec<Vector> {
    let unknown = |name, comment, at: usize, value: u8| {
        bad(name, "unsupported", comment, |b| b.recipes().coders[1].1[at] = value)
    };
    vec![
        bad_layout("recipes-coder-beyond", "coder 2, and there are two", |b| {
            let ranges = vec![PartRange { of: 4, offset: 0, len: 5 }];
            b.recipes().made[0].1[2] = Segment::Encoded { coder: 2, len: 50, ranges };
        }),
        bad_layout("recipes-coder-unused", "a coder that no segment uses", |b| {
            b.recipes().coders.push(zlib(Zlib { strategy: 2, ..WITHOUT }));
        }),
        bad_layout("recipes-coder-twice", "two equal coders", |b| {
            let recipes = b.recipes();
            recipes.coders[1] = recipes.coders[0].clone();
        }),
        bad_layout("recipes-coders-order", "the larger of two coders is the first", |b| {
            let recipes = b.recipes();
            recipes.coders.swap(0, 1);
            for segment in recipes.made.iter_mut().flat_map(|(_, segments)| segments) {
                if let Segment::Encoded { coder, .. } = segment {
                    *coder = 1 - *coder;
                }
            }
        }),
        bad("recipes-encoder", "unsupported", "a coder with an encoder that nobody knows", |b| {
            b.recipes().coders[1].0 = FREE;
            // The root has the numbers of a known one.
            let mut sound = full();
            let own = sound.index.objects.clone();
            let wanted = sound.recipes().sums(&own);
            b.edits.sums = edit(|sums: &mut Sums| *sums = wanted);
        }),
        unknown("recipes-zlib-level-zero", "zlib's level 0", 0, 0),
        unknown("recipes-zlib-level-over", "zlib's level 10", 0, 10),
        unknown("recipes-zlib-window-under", "a window of 2^8 bytes", 1, 128 + 8),
        unknown("recipes-zlib-window-over", "a window of 2^16 bytes", 1, 128 + 16),
        unknown("recipes-zlib-window-bit", "another bit beside those of the window", 1, 64 + 15),
        unknown("recipes-zlib-memory-zero", "zlib's memLevel 0", 2, 0),
        unknown("recipes-zlib-memory-over", "zlib's memLevel 10", 2, 10),
        unknown("recipes-zlib-strategy", "zlib's strategy 5", 3, 5),
        bad("recipes-zlib-parameters-short", "unsupported", "three parameters of zlib", |b| {
            b.recipes().coders[1].1.pop();
        }),
        bad("recipes-zlib-parameters-long", "unsupported", "five parameters of zlib", |b| {
            b.recipes().coders[1].1.push(0);
        }),
    ]
}

/// Objects with a recipe in the rest of the layout (recipes 3.1).
fn placed() -> Vec<Vector> {
    vec![
        bad_layout("recipes-grouped", "an object with a recipe is in a group too", |b| {
            let members: Vec<usize> = vec![0, 2];
            let own = members.into_iter().map(|object| b.contents[object].clone());
            let all: Vec<u8> = own.chain(texts()).chain([b.contents[1].clone()]).flatten().collect();
            b.layout.members.push(1);
            b.layout.chunks[0].objects += 1;
            b.layout.chunks[0].len = u32::try_from(all.len()).expect("it is small");
            b.store(0, frame(&all));
        }),
        reject_from(in_pieces(), "recipes-holes", "layout", "an object with a recipe has a hole", |b| {
            b.layout.holes = vec![(0, vec![(2, 16)])];
        }),
        reject_from(
            in_pieces(),
            "recipes-piece-chunk",
            "layout",
            "a piece of an object with a recipe has a chunk",
            |b| {
                // Of the leaf, whose first piece has the same bytes.
                let first = b.layout.pieces.iter().map(|piece| piece.0).find(|chunk| *chunk > 0);
                b.layout.pieces[0].0 = first.expect("the leaf has chunks");
            },
        ),
    ]
}

/// What is made (recipes 4.1).
fn made() -> Vec<Vector> {
    let object = |name, comment, bundle: Bundle| vector(name, "object", comment, bundle.encode());
    let encoded = |change: fn(&mut Vec<u8>)| full_of(&texts(), b"two\n", change);
    vec![
        object("recipes-leaf-id", "a leaf has another id", {
            let mut bundle = full();
            bundle.recipes().leaves[1].1[0] ^= 1;
            bundle
        }),
        object("recipes-id", "an object that is made has another id", {
            let mut bundle = full();
            bundle.index.objects[1].1[0] ^= 1;
            bundle
        }),
        object("recipes-leaf-made-id", "a leaf that is made has another id", {
            let mut bundle = deep();
            bundle.recipes().leaves[1].1[0] ^= 1;
            bundle
        }),
        object("recipes-piece", "a piece that is made has another chaining value", {
            let mut bundle = in_pieces();
            let count = bundle.contents[0].len().div_ceil(4096);
            bundle.layout.pieces[count - 1].1[0] ^= 1;
            let values: Vec<[u8; 32]> = bundle.layout.pieces[..count].iter().map(|piece| piece.1).collect();
            bundle.index.objects[0].1 = sealift_format::pieces::object_id(&values).expect("several pieces");
            bundle
        }),
        object("recipes-encoded-short", "the encoder makes a byte less than is stated", encoded(|bytes| bytes.push(0))),
        object(
            "recipes-encoded-over",
            "the encoder makes a byte more than is stated",
            encoded(|bytes| bytes.truncate(bytes.len() - 1)),
        ),
        bad("recipes-verity", "index", "verity(T) is another", |b| b.index.verity[0] ^= 1),
    ]
}
