//! Recipes in parts (recipes 2 and 3), which [`crate::bundle`] puts into a bundle: nothing is refused.

use std::collections::BTreeMap;

use sealift_format::{Bzip2, Coder, Lz4, Xz, Zlib, Zstd};
use sealift_store::recipe::encode;

use crate::bundle::{Bundle, Packing, lay_out_without};
use crate::bytes::{byte, hash, narrow, planes16, planes32, planes64, short, wide};

/// Section 8 of the layout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recipes {
    /// Sizes and ids.
    pub leaves: Vec<(u64, [u8; 32])>,
    /// The segments of each view.
    pub views: Vec<Vec<Segment>>,
    /// Objects, and the segments of each.
    pub made: Vec<(u32, Vec<Segment>)>,
    /// Encoders with their parameters.
    pub coders: Vec<(u8, Vec<u8>)>,
}

/// A segment of a recipe or view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Kind 0.
    Copied(PartRange),
    /// Kind 1, with its length.
    Zeros(u64),
    /// Kind 2.
    Encoded {
        /// The row of the coder.
        coder: u16,
        /// The length of the output.
        len: u32,
        /// The input.
        ranges: Vec<PartRange>,
    },
    /// Kind 3.
    Decoded {
        /// What decodes it.
        codec: u8,
        /// The length of the output.
        len: u32,
        /// The input.
        range: PartRange,
    },
    /// Another kind.
    Unknown(u8),
}

/// A range of an object or view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartRange {
    /// The number of the object or view.
    pub of: u32,
    /// The first byte.
    pub offset: u64,
    /// The number of bytes.
    pub len: u64,
}

/// Section 9 of the root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "recipes 2 describes them")]
pub struct Sums {
    pub leaves: u64,
    pub leaf_bytes: u64,
    pub made: u64,
    pub made_bytes: u64,
    pub decoded_bytes: u64,
    pub memory: u64,
    pub encoders: Vec<(u8, u64)>,
}

/// Returns a segment of kind 0.
pub fn copied(of: u32, offset: u64, len: u64) -> Segment {
    Segment::Copied(PartRange { of, offset, len })
}

/// Returns the row of a coder for these parameters.
pub fn zlib(zlib: Zlib) -> (u8, Vec<u8>) {
    row(&Coder::Zlib(zlib))
}

/// Returns the row of a coder (recipes 5).
///
/// # Panics
/// Panics if the specification has no such encoder.
pub fn row(coder: &Coder) -> (u8, Vec<u8>) {
    let flag = |is_set: bool| if is_set { 128 } else { 0 };
    match coder {
        Coder::Zlib(Zlib { level, is_raw, window_bits, mem_level, strategy }) => {
            (1, vec![*level, window_bits | flag(*is_raw), *mem_level, *strategy])
        }
        Coder::Xz(Xz { preset, is_extreme, dictionary_len, lc, lp, pb, filter, check }) => {
            let head = [preset | flag(*is_extreme)];
            let tail = [*lc, *lp, *pb, *filter, check.unwrap_or(255)];
            (2, [&head[..], &dictionary_len.to_le_bytes(), &tail].concat())
        }
        Coder::Lz4(Lz4 { is_high, level, filled }) => {
            let call = u8::from(*is_high) + if filled.is_some() { 2 } else { 0 };
            let (room, is_padded) = filled.map_or((0, false), |filled| (filled.room, filled.is_padded));
            (3, [&[call, *level][..], &room.to_le_bytes(), &[is_padded.into()]].concat())
        }
        Coder::Zstd157(zstd) => (4, zstd_row(zstd)),
        Coder::Zstd155(zstd) => (5, zstd_row(zstd)),
        Coder::Bzip2(Bzip2 { level }) => (6, vec![*level]),
        Coder::Zstd154(zstd) => (7, zstd_row(zstd)),
        _ => panic!("{coder:?}"),
    }
}

fn zstd_row(Zstd { level, stream }: &Zstd) -> Vec<u8> {
    let flags = stream.map_or(0, |stream| {
        let flags = [true, stream.is_pledged, stream.is_checked, stream.has_worker, stream.is_long, stream.is_unsplit];
        flags.into_iter().rev().fold(0, |sum, is_set| 2 * sum + u8::from(is_set))
    });
    vec![level.to_le_bytes()[0], flags, stream.map_or(0, |stream| stream.window_log)]
}

/// Returns what zlib makes of these bytes.
///
/// # Panics
/// Panics if zlib does not know the parameters.
pub fn deflated(zlib: Zlib, plain: &[u8]) -> Vec<u8> {
    encoded(&Coder::Zlib(zlib), plain)
}

/// Returns what an encoder makes of these bytes.
///
/// # Panics
/// Panics if it does not know the parameters.
pub fn encoded(coder: &Coder, plain: &[u8]) -> Vec<u8> {
    let room = 2 * plain.len() + 1000;
    encode(coder, plain, room).expect("the encoder is there").expect("there is room")
}

impl Segment {
    fn kind(&self) -> u8 {
        match self {
            Self::Copied(_) => 0,
            Self::Zeros(_) => 1,
            Self::Encoded { .. } => 2,
            Self::Decoded { .. } => 3,
            Self::Unknown(kind) => *kind,
        }
    }

    /// Returns its ranges.
    pub fn ranges(&self) -> &[PartRange] {
        match self {
            Self::Copied(range) | Self::Decoded { range, .. } => std::slice::from_ref(range),
            Self::Encoded { ranges, .. } => ranges,
            Self::Zeros(_) | Self::Unknown(_) => &[],
        }
    }

    /// Returns its ranges, to be changed.
    pub fn ranges_mut(&mut self) -> &mut [PartRange] {
        match self {
            Self::Copied(range) | Self::Decoded { range, .. } => std::slice::from_mut(range),
            Self::Encoded { ranges, .. } => ranges,
            Self::Zeros(_) | Self::Unknown(_) => &mut [],
        }
    }
}

impl Recipes {
    fn lists(&self) -> impl Iterator<Item = &Vec<Segment>> + Clone {
        self.views.iter().chain(self.made.iter().map(|(_, segments)| segments))
    }

    /// Returns the section's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = narrow(self.leaves.len()).to_le_bytes().to_vec();
        out.extend(planes64(self.leaves.iter().map(|leaf| leaf.0)));
        out.extend(self.leaves.iter().flat_map(|leaf| leaf.1));
        out.extend(narrow(self.views.len()).to_le_bytes());
        out.extend(narrow(self.made.len()).to_le_bytes());
        out.extend(planes32(self.made.iter().map(|made| made.0)));
        out.extend(planes32(self.lists().map(|segments| narrow(segments.len()))));
        let segments: Vec<&Segment> = self.lists().flatten().collect();
        out.extend(segments.iter().map(|segment| segment.kind()));
        let (mut zeros, mut encoded, mut codecs, mut decoded) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for segment in segments {
            match segment {
                Segment::Zeros(len) => zeros.push(*len),
                Segment::Encoded { coder, len, ranges } => encoded.push((*coder, *len, narrow(ranges.len()))),
                Segment::Decoded { codec, len, .. } => {
                    codecs.push(*codec);
                    decoded.push(*len);
                }
                Segment::Copied(_) | Segment::Unknown(_) => {}
            }
        }
        out.extend(planes64(zeros.into_iter()));
        out.extend(planes16(encoded.iter().map(|row| row.0)));
        out.extend(planes32(encoded.iter().map(|row| row.1)));
        out.extend(planes32(encoded.iter().map(|row| row.2)));
        out.extend(codecs);
        out.extend(planes32(decoded.into_iter()));
        let ranges: Vec<PartRange> = self.lists().flatten().flat_map(Segment::ranges).copied().collect();
        out.extend(planes32(ranges.iter().map(|range| range.of)));
        out.extend(planes64(ranges.iter().map(|range| range.offset)));
        out.extend(planes64(ranges.iter().map(|range| range.len)));
        out.extend(short(self.coders.len()).to_le_bytes());
        for (encoder, parameters) in &self.coders {
            out.extend([*encoder, byte(parameters.len())]);
            out.extend(parameters);
        }
        out
    }

    /// Returns what the root says of them, as far as possible with columns that may be wrong. `own` are the objects before the leaves.
    pub fn sums(&self, own: &[(u64, [u8; 32])]) -> Sums {
        let size = |object: &u32| {
            let row = usize::try_from(*object).ok().and_then(|at| own.iter().chain(&self.leaves).nth(at));
            row.map_or(0, |row| row.0)
        };
        let sum = |values: &mut dyn Iterator<Item = u64>| values.fold(0, u64::wrapping_add);
        let mut sums = Sums {
            leaves: wide(self.leaves.len()),
            leaf_bytes: sum(&mut self.leaves.iter().map(|leaf| leaf.0)),
            made: wide(self.made.len()),
            made_bytes: sum(&mut self.made.iter().map(|(object, _)| size(object))),
            ..Sums::default()
        };
        let mut encoders: BTreeMap<u8, u64> = BTreeMap::new();
        for segment in self.lists().flatten() {
            let input = segment.ranges().iter().fold(0, |sum: u64, range| sum.wrapping_add(range.len));
            let (len, own) = match segment {
                Segment::Decoded { codec, len, .. } => {
                    sums.decoded_bytes += u64::from(*len);
                    (*len, memory_of_codec(*codec))
                }
                Segment::Encoded { coder, len, .. } => match self.coders.get(usize::from(*coder)) {
                    Some((encoder, parameters)) => {
                        *encoders.entry(*encoder).or_default() += input;
                        (*len, memory(*encoder, parameters, input))
                    }
                    None => continue,
                },
                _ => continue,
            };
            sums.memory = sums.memory.max(input.wrapping_add(u64::from(len)).wrapping_add(own));
        }
        sums.encoders = encoders.into_iter().collect();
        sums
    }
}

/// Returns the bytes that a decoder takes (recipes 5.6).
fn memory_of_codec(codec: u8) -> u64 {
    match codec {
        1 | 2 => 65_536,
        3 => 1_179_648,
        4 => 8_519_680,
        5 => 67_239_936,
        7 => 262_144,
        8 => 4_194_304,
        _ => 0,
    }
}

/// Returns the bytes that an encoder takes for input of so many (recipes 5).
fn memory(encoder: u8, parameters: &[u8], input: u64) -> u64 {
    match (encoder, parameters) {
        (1, [_, bits, mem_level, _]) => {
            1_u64.wrapping_shl(u32::from(bits & 127) + 2) + 1_u64.wrapping_shl(u32::from(*mem_level) + 9)
        }
        (2, [preset, a, b, c, d, ..]) => {
            let dict_size = u64::from(u32::from_le_bytes([*a, *b, *c, *d]));
            let links = if *preset < 4 { 4 } else { 8 };
            let power = dict_size.next_power_of_two().clamp(1 << 17, 1 << 25);
            dict_size + dict_size / 2 + links * dict_size + 2 * power + (1 << 21)
        }
        (3, [call, _, a, b, c, d, padded]) => {
            let room = u64::from(u32::from_le_bytes([*a, *b, *c, *d]));
            let tables = if call % 2 == 0 { 32_768 } else { 393_216 };
            let room = if *call < 2 { input.saturating_add(input / 255 + 16) } else { room };
            let own = if *padded == 1 { input.saturating_add(65_536) } else { 0 };
            room.saturating_add(tables).saturating_add(own)
        }
        (4 | 5 | 7, [level, flags, window_log]) => memory_of_zstd(level.cast_signed(), *flags, *window_log, input),
        (6, [level]) => 800_000 * u64::from(*level) + 524_288,
        _ => 0,
    }
}

/// The logarithms of window, chains and hash table of each level of libzstd, 0 for those below 0 (`ZSTD_defaultCParameters` of all three versions).
const ZSTD_LEVELS: &str = "19/12/13 19/13/14 20/15/16 21/16/17 21/18/18 21/18/19 21/18/19 21/19/20 21/19/20 22/20/21 22/21/22 22/21/22 \
    22/22/23 22/22/22 22/22/23 22/23/23 22/22/22 23/23/22 23/23/22 23/24/22 25/25/23 26/26/24 27/27/25";

/// Returns the bytes that libzstd takes (recipes 5.4).
fn memory_of_zstd(level: i8, flags: u8, window_log: u8, n: u64) -> u64 {
    let row = ZSTD_LEVELS.split_whitespace().nth(usize::try_from(level).unwrap_or(0)).unwrap_or("0/0/0");
    let logs: Vec<u32> = row.split('/').map(|log| log.parse().expect("a number")).collect();
    let [w, c, h] = logs[..] else { return 0 };
    let (is_stream, is_pledged, has_worker, is_long) = (flags & 1, flags & 2, flags & 8, flags & 16);
    let k = if is_stream == 0 || is_pledged != 0 { n.clamp(1 << 10, 1 << 27).next_power_of_two() } else { 1 << 27 };
    let usual = if is_long == 0 { w } else { 27 };
    let v = k.min(1_u64.wrapping_shl(if window_log == 0 { usual } else { window_log.into() }));
    let tables = 4 * (2 * k).min(1 << c) + 6 * (2 * k).min(1 << h) + (1 << 22);
    let p = if is_long == 0 { (4 * v).max(1 << 20) } else { (1 << (c + 3)).max(1 << 21) };
    let buffers = match (is_stream, has_worker) {
        (0, _) => n.saturating_add(n / 256 + 1024),
        (_, 0) => v + (1 << 19),
        _ => v + 5 * p,
    };
    buffers.saturating_add(tables + if is_long == 0 { 0 } else { v / 4 + (1 << 20) })
}

impl Sums {
    /// Returns the section's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let Self { leaves, leaf_bytes, made, made_bytes, decoded_bytes, memory, .. } = *self;
        let numbers = [leaves, leaf_bytes, made, made_bytes, decoded_bytes, memory];
        let mut out: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        out.extend(short(self.encoders.len()).to_le_bytes());
        for (encoder, bytes) in &self.encoders {
            out.push(*encoder);
            out.extend(bytes.to_le_bytes());
        }
        out
    }
}

impl Bundle {
    /// Stores these leaves, and has recipes in place of the data of the objects that have one. Call it before chunks get a prefix.
    pub fn with_recipes(mut self, leaves: &[Vec<u8>], mut recipes: Recipes, packing: Packing) -> Self {
        let at = |number: &u32| usize::try_from(*number).expect("32 bits");
        let mut contents = match &self.delta {
            Some(delta) => delta.carried.iter().map(|number| self.contents[at(number)].clone()).collect(),
            None => self.contents.clone(),
        };
        contents.extend_from_slice(leaves);
        let made: Vec<u32> = recipes.made.iter().map(|made| made.0).collect();
        (self.layout, self.stored) = lay_out_without(&contents, &made, packing, self.index.ostree.is_some());
        recipes.leaves = leaves.iter().map(|leaf| (wide(leaf.len()), hash(leaf))).collect();
        self.layout.recipes = Some(recipes);
        self
    }

    /// Returns the recipes.
    ///
    /// # Panics
    /// Panics if it has none.
    pub fn recipes(&mut self) -> &mut Recipes {
        self.layout.recipes.as_mut().expect("it has recipes")
    }
}
