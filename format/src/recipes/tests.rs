//! What is encoded is parsed, and nothing else.

use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::Part;
use crate::bytes::Reader;

/// The number of objects of the base.
const BASE: u32 = 2;

fn row<T>(number: u32) -> Row<T> {
    Row::new(number).expect("it is small")
}

fn zlib() -> impl Strategy<Value = Coder> {
    let parameters = (1..=9_u8, 9..=15_u8, any::<bool>(), 1..=9_u8, 0..=4_u8);
    parameters.prop_map(|(level, window_bits, is_raw, mem_level, strategy)| {
        Coder::Zlib(Zlib { level, window_bits, is_raw, mem_level, strategy })
    })
}

fn xz() -> impl Strategy<Value = Coder> {
    let bits = (0..=4_u8, 0..=4_u8, 0..=4_u8).prop_filter("at most 4 together", |(lc, lp, _)| lc + lp <= 4);
    let (filter, check) = (prop::sample::select(vec![0_u8, 4, 9, 11]), prop::sample::select(vec![0_u8, 1, 4, 10]));
    let parameters = (0..=9_u8, any::<bool>(), 1_u32 << 12..=1 << 26, bits, filter, prop::option::of(check));
    parameters.prop_map(|(preset, is_extreme, dictionary_len, (lc, lp, pb), filter, check)| {
        Coder::Xz(Xz { preset, is_extreme, dictionary_len, lc, lp, pb, filter, check })
    })
}

fn lz4() -> impl Strategy<Value = Coder> {
    let filled = (1..=1_u32 << 20, any::<bool>()).prop_map(|(room, is_padded)| Filled { room, is_padded });
    let parameters = (any::<bool>(), 1..=12_u8, prop::option::of(filled));
    parameters.prop_map(|(is_high, level, filled)| {
        let level = if filled.is_some() && !is_high { 1 } else { level };
        Coder::Lz4(Lz4 { is_high, level, filled })
    })
}

fn zstd() -> impl Strategy<Value = Coder> {
    let window_log = prop_oneof![Just(0), 10..=27_u8];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let stream =
        (flags, window_log).prop_map(|((is_pledged, is_checked, has_worker, is_long, is_unsplit), window_log)| {
            ZstdStream { is_pledged, is_checked, has_worker, is_long, is_unsplit, window_log }
        });
    let level = prop_oneof![-100..=-1_i8, 1..=22_i8];
    (0..3_u8, level, prop::option::of(stream)).prop_map(|(version, level, mut stream)| {
        if let (1.., Some(stream)) = (version, &mut stream) {
            stream.is_unsplit = false;
        }
        let zstd = Zstd { level, stream };
        match version {
            0 => Coder::Zstd157(zstd),
            1 => Coder::Zstd155(zstd),
            _ => Coder::Zstd154(zstd),
        }
    })
}

fn coder() -> impl Strategy<Value = Coder> {
    let bzip2 = (1..=9_u8).prop_map(|level| Coder::Bzip2(Bzip2 { level }));
    prop_oneof![zlib(), xz(), lz4(), zstd(), bzip2]
}

fn codec() -> impl Strategy<Value = RecipeCodec> {
    use RecipeCodec::{Bzip2, Deflate, Lz4Block, Xz, XzLarge, XzSmall, Zlib, Zstd};
    prop::sample::select(vec![Zlib, Deflate, XzSmall, Xz, XzLarge, Lz4Block, Zstd, Bzip2])
}

/// Gives segments their places, and returns their length.
fn place(segments: &mut [Segment]) -> u64 {
    segments.iter_mut().fold(0, |end, segment| {
        segment.offset = end;
        end + segment.len
    })
}

/// Returns recipes with segments of all kinds, over objects 0 and 1, with the sizes of these. Object 1 is made of object 0, leaf 2, an object of
/// the base and a view.
fn recipes(coder: Coder, codec: RecipeCodec, (offset, len): (u64, u64), lens: [u64; 3]) -> (Recipes, Vec<Object>) {
    let [zeros, encoded, decoded] = lens;
    let range = |of, offset| PartRange { of, offset, len };
    let ranges = vec![
        range(PartOf::Base(row(0)), offset),
        range(PartOf::Base(row(1)), 0),
        range(PartOf::View(row(0)), 0),
        range(PartOf::Object(row(0)), offset),
        // A range that goes back, and one that follows.
        range(PartOf::Object(row(2)), offset),
        range(PartOf::Object(row(2)), 0),
        range(PartOf::Object(row(2)), len),
        range(PartOf::Base(row(1)), offset),
        range(PartOf::View(row(1)), 0),
    ];
    let segment = |len, kind| Segment { offset: 0, len, kind };
    let mut segments = vec![
        segment(len, SegmentKind::Copied(0)),
        segment(decoded, SegmentKind::Decoded { codec, range: 1 }),
        segment(zeros, SegmentKind::Zeros),
        segment(len, SegmentKind::Copied(2)),
        segment(len, SegmentKind::Copied(3)),
        segment(encoded, SegmentKind::Encoded { coder: 0, ranges: 4..7 }),
        segment(zeros, SegmentKind::Zeros),
        segment(len, SegmentKind::Copied(7)),
        segment(len, SegmentKind::Copied(8)),
    ];
    let views =
        [0..3, 3..4].map(|of| View { segments: of.clone(), len: place(&mut segments[at(of.start)..at(of.end)]) });
    let size = place(&mut segments[4..]);
    let object = |size, id| Object { size, id: [id; 32] };
    let recipes = Recipes {
        first_leaf: 2,
        leaves: vec![object(offset + 2 * len, 9)],
        views: views.into(),
        made: vec![Made { object: row(1), segments: 4..9 }],
        segments,
        ranges,
        coders: vec![coder],
        rows: vec![None, Some(row(0)), None],
        ..Recipes::over(BASE)
    };
    (recipes, vec![object(offset + len, 1), object(size, 2)])
}

fn parse(bytes: &[u8], own: &[Object]) -> Result<Recipes, crate::Error> {
    Recipes::parse(Reader::new(Part::Layout, bytes), own, Some(BASE))
}

proptest! {
    #[test]
    fn what_is_encoded_is_parsed(
        coder in coder(),
        codec in codec(),
        range in (0_u64..1 << 40, 1_u64..=CODED_MAX / 3),
        lens in (1_u64..1 << 40, 1..=CODED_MAX, 1..=CODED_MAX),
    ) {
        let (recipes, own) = recipes(coder, codec, range, lens.into());
        let bytes = recipes.encode().expect("it fits");
        let parsed = parse(&bytes, &own);
        prop_assert_eq!(parsed.as_ref(), Ok(&recipes));
        let sums = RecipeSums::of(&recipes, &own).expect("no sum is that long");
        let bytes = sums.encode().expect("it fits");
        let parsed = RecipeSums::parse(Reader::new(Part::Root, &bytes));
        prop_assert_eq!(parsed.as_ref(), Ok(&sums));
        prop_assert_eq!((sums.leaves, sums.made), (1, 1));
        prop_assert_eq!(sums.encoded_bytes(), 3 * range.1);
        let encoded = 3 * range.1 + lens.1 + coder.memory(3 * range.1);
        prop_assert_eq!(sums.memory, encoded.max(range.1 + lens.2 + codec.memory()));
    }
}

proptest! {
    #[test]
    fn coders_are_ordered_as_their_rows(
        one in coder(),
        other in coder(),
    ) {
        let row = |coder: Coder| {
            let mut out = Vec::new();
            coder.encode(&mut out);
            (out[0], out[2..].to_vec())
        };
        prop_assert_eq!(one.cmp(&other), row(one).cmp(&row(other)));
    }
}

/// What is changed is refused, or is other recipes that encode to the changed bytes.
#[test]
fn no_two_encodings_are_parsed_alike() {
    let coder = Coder::Zlib(Zlib { level: 6, window_bits: 15, is_raw: false, mem_level: 8, strategy: 0 });
    let (recipes, own) = recipes(coder, RecipeCodec::Zlib, (5, 100), [70, 80, 90]);
    let bytes = recipes.encode().expect("it fits");
    assert_eq!(parse(&bytes, &own), Ok(recipes));
    for len in 0..bytes.len() {
        assert!(parse(&bytes[..len], &own).is_err(), "cut to {len} bytes");
    }
    assert!(parse(&[&bytes[..], &[0]].concat(), &own).is_err(), "a byte more");
    let mut parsed = 0;
    for place in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[place] ^= 1 << bit;
            if let Ok(other) = parse(&changed, &own) {
                assert_eq!(other.encode().as_ref(), Ok(&changed), "byte {place}");
                parsed += 1;
            }
        }
    }
    // Bits of the id, of parameters, of offsets in objects of the base.
    assert!(parsed > 256, "{parsed}");
}

#[test]
fn an_object_is_made_of_what_its_recipe_uses() {
    let coder = Coder::Zlib(Zlib { level: 1, window_bits: 9, is_raw: true, mem_level: 1, strategy: 4 });
    let (recipes, _) = recipes(coder, RecipeCodec::Deflate, (0, 3), [1, 1, 1]);
    assert_eq!(recipes.stored_of(row(1)), [row(0), row(2)]);
    assert_eq!(recipes.stored_of(row(0)), [row(0)]);
    assert_eq!(coder.memory(7), (1 << 11) + (1 << 10));
}
