//! Encoders and codecs of recipes besides those of zlib (recipes 5).

use sealift_format::{Bzip2, Coder, Filled, Lz4, Xz, Zstd, ZstdStream};

use super::delta::on;
use super::recipes::{Draft, MIB, text};
use super::*;
use crate::bytes::wide;
use crate::delta::{comes, within};
use crate::recipes::{PartRange, Recipes, Segment, copied, encoded, row};

const XZ: Xz =
    Xz { preset: 6, is_extreme: false, dictionary_len: 1 << 12, lc: 3, lp: 0, pb: 2, filter: 0, check: Some(1) };
const LZ4: Lz4 = Lz4 { is_high: false, level: 1, filled: None };
const FILLED: Filled = Filled { room: 500, is_padded: false };
const ZSTD: Zstd = Zstd { level: 3, stream: None };
const STREAM: ZstdStream = ZstdStream {
    is_pledged: false,
    is_checked: false,
    has_worker: false,
    is_long: false,
    is_unsplit: false,
    window_log: 0,
};

pub(super) fn vectors() -> Vec<Vector> {
    let parameters = [parameters_of_xz(), parameters_of_lz4(), parameters_of_zstd(), parameters_of_bzip2()];
    [encoders()].into_iter().chain(parameters).chain([codecs()]).flatten().collect()
}

/// Returns what each of these coders makes of one leaf.
fn by(mut coders: Vec<Coder>) -> Bundle {
    let leaf: Vec<u8> = [text(16, 900), text(17, 150).repeat(4), vec![b'x'; 700], text(16, 800)].concat();
    coders.sort_unstable();
    let mut image = Draft::of(&[(1, &leaf)]);
    for (row, coder) in (0..).zip(&coders) {
        image = image.encode_by(row, coder, &[(1, 0, wide(leaf.len()))], |_| {});
    }
    let coders = coders.iter().map(row).collect();
    let recipes = Recipes { made: vec![(0, image.segments)], coders, ..Recipes::default() };
    Bundle::new(&[("main", dir([("image", file(image.bytes))]))], MIB).with_recipes(&[leaf], recipes, MIB)
}

fn with_xz() -> Bundle {
    let presets = (0..=9).flat_map(|preset| [false, true].map(|is_extreme| Xz { preset, is_extreme, ..XZ }));
    let lens = [5000, 1 << 16, 1 << 17, 3 << 15].map(|dictionary_len| Xz { dictionary_len, ..XZ });
    let bits = [(0, 0, 0), (4, 0, 4), (0, 4, 1), (2, 2, 3), (1, 3, 2)].map(|(lc, lp, pb)| Xz { lc, lp, pb, ..XZ });
    let filters = (4..=11).map(|filter| Xz { filter, ..XZ });
    let checks = [Some(0), Some(4), Some(10), None].map(|check| Xz { check, ..XZ });
    by(presets.chain(lens).chain(bits).chain(filters).chain(checks).map(Coder::Xz).collect())
}

fn with_lz4() -> Bundle {
    let usual = [1, 2, 17, 255].map(|level| Lz4 { level, ..LZ4 });
    let high = (1..=12).map(|level| Lz4 { is_high: true, level, ..LZ4 });
    let filled =
        [(500, false), (500, true), (1 << 20, false)].map(|(room, is_padded)| Some(Filled { room, is_padded }));
    let filled = filled.into_iter().flat_map(|filled| [false, true].map(|is_high| Lz4 { is_high, filled, ..LZ4 }));
    let levels = (2..=12).map(|level| Lz4 { is_high: true, level, filled: Some(FILLED) });
    by(usual.into_iter().chain(high).chain(filled).chain(levels).map(Coder::Lz4).collect())
}

fn with_zstd() -> Bundle {
    let levels = [-100, -1].into_iter().chain(1..=22).map(|level| Zstd { level, ..ZSTD });
    let flags = (0..32_u8).map(|flags| ZstdStream {
        is_pledged: flags & 1 != 0,
        is_checked: flags & 2 != 0,
        has_worker: flags & 4 != 0,
        is_long: flags & 8 != 0,
        is_unsplit: flags & 16 != 0,
        window_log: 17,
    });
    let windows = [0, 10, 27].map(|window_log| ZstdStream { window_log, ..STREAM });
    let streams = flags.chain(windows).map(|stream| Zstd { stream: Some(stream), ..ZSTD });
    let all: Vec<Zstd> = levels.chain(streams).collect();
    let older: Vec<Zstd> =
        all.iter().filter(|zstd| zstd.stream.is_none_or(|stream| !stream.is_unsplit)).copied().collect();
    let coders = all.into_iter().map(Coder::Zstd157);
    by(coders.chain([Coder::Zstd155, Coder::Zstd154].iter().flat_map(|of| older.iter().copied().map(of))).collect())
}

fn encoders() -> Vec<Vector> {
    let bzip2 = by((1..=9).map(|level| Coder::Bzip2(Bzip2 { level })).collect());
    vec![
        accept("good-recipes-xz", "each value of liblzma's parameters", with_xz()).needs("core recipes xz"),
        accept("good-recipes-lz4", "each call of liblz4, with each level", with_lz4()).needs("core lz4 recipes"),
        accept("good-recipes-zstd", "each level and flag of libzstd 1.5.7, 1.5.5 and 1.5.4", with_zstd())
            .needs("core recipes zstd"),
        accept("good-recipes-bzip2", "each level of libbz2", bzip2).needs("core recipes"),
    ]
}

/// Returns the bundle of one coder, with other parameters in its row.
fn unknown(of: Coder, name: &str, comment: &str, change: impl FnOnce(&mut Vec<u8>)) -> Vector {
    reject_from(by(vec![of]), name, "unsupported", comment, |b| change(&mut b.recipes().coders[0].1))
}

fn parameters_of_xz() -> Vec<Vector> {
    let of = |name, comment, xz: Xz| {
        let (_, parameters) = row(&Coder::Xz(xz));
        unknown(Coder::Xz(XZ), name, comment, |row| *row = parameters)
    };
    let at = |name, comment, place: usize, value: u8| unknown(Coder::Xz(XZ), name, comment, |row| row[place] = value);
    vec![
        of("recipes-xz-preset", "liblzma's preset 10", Xz { preset: 10, ..XZ }),
        of("recipes-xz-dictionary-under", "a dictionary of 2^12-1 bytes", Xz { dictionary_len: 4095, ..XZ }),
        of("recipes-xz-dictionary-over", "a dictionary of 2^26+1 bytes", Xz { dictionary_len: (1 << 26) + 1, ..XZ }),
        of("recipes-xz-lc", "five bits lc", Xz { lc: 5, ..XZ }),
        of("recipes-xz-lp", "five bits lp", Xz { lc: 0, lp: 5, ..XZ }),
        of("recipes-xz-lc-lp", "five bits lc and lp together", Xz { lc: 2, lp: 3, ..XZ }),
        of("recipes-xz-pb", "five bits pb", Xz { pb: 5, ..XZ }),
        of("recipes-xz-filter-under", "filter 3, which has a parameter", Xz { filter: 3, ..XZ }),
        of("recipes-xz-filter-over", "filter 12", Xz { filter: 12, ..XZ }),
        at("recipes-xz-check", "check 2, which nobody has defined", 8, 2),
        unknown(Coder::Xz(XZ), "recipes-xz-parameters-short", "a parameter less", |row| {
            row.pop();
        }),
        unknown(Coder::Xz(XZ), "recipes-xz-parameters-long", "a parameter more", |row| row.push(0)),
    ]
    .into_iter()
    .map(|vector| vector.needs("core recipes xz"))
    .collect()
}

fn parameters_of_lz4() -> Vec<Vector> {
    let of = |name, comment, lz4: Lz4| {
        let (_, parameters) = row(&Coder::Lz4(lz4));
        unknown(Coder::Lz4(LZ4), name, comment, |row| *row = parameters)
    };
    let at = |name, comment, place: usize, value: u8| unknown(Coder::Lz4(LZ4), name, comment, |row| row[place] = value);
    let (high, filled) = (Lz4 { is_high: true, ..LZ4 }, Lz4 { filled: Some(FILLED), ..LZ4 });
    let with_room = |room| Lz4 { filled: Some(Filled { room, ..FILLED }), ..LZ4 };
    vec![
        at("recipes-lz4-call", "call 4", 0, 4),
        of("recipes-lz4-acceleration", "acceleration 0", Lz4 { level: 0, ..LZ4 }),
        of("recipes-lz4-level-zero", "level 0", Lz4 { level: 0, ..high }),
        of("recipes-lz4-level-over", "level 13", Lz4 { level: 13, ..high }),
        of("recipes-lz4-level-filled", "level 2 of call 2", Lz4 { level: 2, ..filled }),
        of("recipes-lz4-level-filled-over", "level 13 of call 3", Lz4 { is_high: true, level: 13, ..filled }),
        of("recipes-lz4-room-zero", "no room", with_room(0)),
        of("recipes-lz4-room-over", "a room of 2^20+1 bytes", with_room((1 << 20) + 1)),
        at("recipes-lz4-room-unused", "a room of a call that encodes everything", 2, 1),
        at("recipes-lz4-padded-unused", "zeros after the input of a call that encodes everything", 6, 1),
        unknown(Coder::Lz4(filled), "recipes-lz4-padded", "another value than 0 or 1", |row| row[6] = 2),
        unknown(Coder::Lz4(LZ4), "recipes-lz4-parameters-short", "a parameter less", |row| {
            row.pop();
        }),
        unknown(Coder::Lz4(LZ4), "recipes-lz4-parameters-long", "a parameter more", |row| row.push(0)),
    ]
    .into_iter()
    .map(|vector| vector.needs("core lz4 recipes"))
    .collect()
}

fn parameters_of_zstd() -> Vec<Vector> {
    let level = |of: fn(Zstd) -> Coder, name, comment, level| {
        let (_, parameters) = row(&of(Zstd { level, ..ZSTD }));
        unknown(of(ZSTD), name, comment, |row| *row = parameters)
    };
    let stream = |name, comment, stream| {
        let (_, parameters) = row(&Coder::Zstd157(Zstd { stream: Some(stream), ..ZSTD }));
        unknown(Coder::Zstd157(ZSTD), name, comment, |row| *row = parameters)
    };
    let at =
        |name, comment, place: usize, value: u8| unknown(Coder::Zstd157(ZSTD), name, comment, |row| row[place] = value);
    let with_window = |window_log| ZstdStream { window_log, ..STREAM };
    vec![
        level(Coder::Zstd157, "recipes-zstd-level-zero", "level 0, which is another by its number", 0),
        level(Coder::Zstd157, "recipes-zstd-level-over", "level 23", 23),
        level(Coder::Zstd157, "recipes-zstd-level-under", "level -101", -101),
        level(Coder::Zstd155, "recipes-zstd-older-level-over", "level 23 of libzstd 1.5.5", 23),
        level(Coder::Zstd154, "recipes-zstd-oldest-level-over", "level 23 of libzstd 1.5.4", 23),
        at("recipes-zstd-flag", "a flag that nobody has defined", 1, 65),
        unknown(Coder::Zstd155(ZSTD), "recipes-zstd-older-unsplit", "libzstd 1.5.5 is to split no blocks", |row| {
            row[1] = 33;
        }),
        at("recipes-zstd-flag-unused", "a checksum without a stream", 1, 4),
        at("recipes-zstd-window-unused", "a window without a stream", 2, 20),
        stream("recipes-zstd-window-under", "a window of 2^9 bytes", with_window(9)),
        stream("recipes-zstd-window-over", "a window of 2^28 bytes", with_window(28)),
        unknown(Coder::Zstd157(ZSTD), "recipes-zstd-parameters-short", "a parameter less", |row| {
            row.pop();
        }),
        unknown(Coder::Zstd157(ZSTD), "recipes-zstd-parameters-long", "a parameter more", |row| row.push(0)),
    ]
    .into_iter()
    .map(|vector| vector.needs("core recipes zstd"))
    .collect()
}

fn parameters_of_bzip2() -> Vec<Vector> {
    let of = Coder::Bzip2(Bzip2 { level: 9 });
    vec![
        unknown(of, "recipes-bzip2-level-zero", "blocks of no bytes", |row| row[0] = 0),
        unknown(of, "recipes-bzip2-level-over", "blocks of 1,000,000 bytes", |row| row[0] = 10),
        unknown(of, "recipes-bzip2-parameters-short", "no parameter", Vec::clear),
        unknown(of, "recipes-bzip2-parameters-long", "a parameter more", |row| row.push(0)),
    ]
    .into_iter()
    .map(|vector| vector.needs("core recipes"))
    .collect()
}

/// What the file `image` of the base consists of, and the codec of each part.
struct Streams {
    plain: Vec<u8>,
    /// The codec, and bytes that are decoded.
    parts: Vec<(u8, Vec<u8>)>,
}

impl Streams {
    fn new() -> Self {
        let plain = text(18, 700);
        let of = |dictionary_len, check| encoded(&Coder::Xz(Xz { dictionary_len, check, ..XZ }), &plain);
        let parts = vec![
            (3, of(1 << 20, Some(1))),
            (4, of(1 << 23, Some(4))),
            (5, of(1 << 26, Some(10))),
            (3, of(1 << 12, Some(0))),
            (6, encoded(&Coder::Lz4(LZ4), &plain)),
            (7, encoded(&Coder::Zstd157(ZSTD), &plain)),
            (8, encoded(&Coder::Bzip2(Bzip2 { level: 1 }), &plain)),
        ];
        Self { plain, parts }
    }

    /// Returns offset and length of a part.
    fn place(&self, part: usize) -> (u64, u64) {
        let lens: Vec<u64> = self.parts.iter().map(|(_, bytes)| wide(bytes.len())).collect();
        (lens[..part].iter().sum(), lens[part])
    }

    fn bytes(&self) -> Vec<u8> {
        let parts = self.parts.iter().flat_map(|(_, bytes)| bytes).copied();
        parts.chain(*b"tail").chain(self.frame_of_dictionary()).chain(self.skippable()).collect()
    }

    /// Returns where what follows the parts begins.
    fn end(&self) -> u64 {
        self.parts.iter().map(|(_, bytes)| wide(bytes.len())).sum::<u64>() + 4
    }

    /// Returns a zstd frame that states the id of a dictionary (RFC 8878, section 3.1.1.1), which it does not need.
    fn frame_of_dictionary(&self) -> Vec<u8> {
        let mut frame = encoded(&Coder::Zstd157(ZSTD), &self.plain);
        frame[4] |= 1;
        // A frame of a single segment states no window.
        frame.insert(5, 7);
        frame
    }

    /// Returns a skippable frame (RFC 8878, section 3.1.2), and a zstd frame.
    fn skippable(&self) -> Vec<u8> {
        [b"\x50\x2a\x4d\x18\x02\0\0\0no".to_vec(), encoded(&Coder::Zstd157(ZSTD), &self.plain)].concat()
    }
}

fn base_of(bytes: Vec<u8>) -> Bundle {
    Bundle::new(&[("main", dir([("a", file("one\n")), ("image", file(bytes))]))], MIB)
}

/// Returns a delta whose file `n` is what the parts of the base's image decode to. Object 0 is that file, 1 and 2 are the base's objects, and views follow.
fn delta() -> Bundle {
    let streams = Streams::new();
    let image = streams.bytes();
    let (mut views, mut made) = (Vec::new(), Draft::default());
    for (number, (codec, _)) in (0_u32..).zip(&streams.parts) {
        let (offset, len) = streams.place(views.len());
        views.push(Draft::default().decode(*codec, 2, offset, len, &streams.plain).segments);
        made.parts.insert(3 + number, streams.plain.clone());
        made = made.copy(3 + number, 50 * u64::from(number), 300);
    }
    let n = made.bytes;
    let recipes = Recipes { views, made: vec![(0, made.segments)], ..Recipes::default() };
    let tree = dir([("a", file("one\n")), ("image", file(image.clone())), ("n", file(n.clone()))]);
    let root = within("", [comes("n", file(n))]);
    let delta = Bundle::new(&[("main", tree)], MIB).relative_to(&[&base_of(image)], &[(1, Some(root))], MIB);
    delta.with_recipes(&[], recipes, MIB)
}

/// Returns a delta whose file `n` is what codec 5 makes of an xz stream that states a dictionary of 2^26+2^25 bytes, and its base.
fn of_large_dictionary() -> (Bundle, Bundle) {
    let plain = text(18, 700);
    let mut stream = encoded(&Coder::Xz(Xz { dictionary_len: 1 << 26, ..XZ }), &plain);
    // The header of the first block: its length, flags, the lengths of the block, the filter, its number of bytes, and these (xz file format, 3.1 and 5.3.1).
    let header = 12..12 + (usize::from(stream[12]) + 1) * 4;
    let dictionary = stream[header.clone()].windows(2).position(|pair| pair == [0x21, 1]).expect("LZMA2");
    stream[header.start + dictionary + 2] += 1;
    let sum = crc32(&stream[header.start..header.end - 4]);
    stream[header.end - 4..header.end].copy_from_slice(&sum.to_le_bytes());
    let view = Draft::default().decode(5, 2, 0, wide(stream.len()), &plain).segments;
    let recipes = Recipes { views: vec![view], made: vec![(0, vec![copied(3, 0, 700)])], ..Recipes::default() };
    let base = base_of(stream.clone());
    let tree = dir([("a", file("one\n")), ("image", file(stream)), ("n", file(plain.clone()))]);
    let root = within("", [comes("n", file(plain))]);
    let delta = Bundle::new(&[("main", tree)], MIB).relative_to(&[&base], &[(1, Some(root))], MIB);
    (base, delta.with_recipes(&[], recipes, MIB))
}

/// The checksum of gzip and xz (RFC 1952, section 8).
fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
    !bytes.iter().fold(u32::MAX, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), step))
}

fn codecs() -> Vec<Vector> {
    let base = "good-recipes-streams";
    let changed = |name, comment, view: usize, change: fn(&mut u8, &mut u32, &mut PartRange)| {
        let edit = |b: &mut Bundle| {
            if let Segment::Decoded { codec, len, range } = &mut b.recipes().views[view][0] {
                change(codec, len, range);
            }
        };
        on(&[base], reject_from(delta(), name, "object", comment, edit))
    };
    let (large_base, large) = of_large_dictionary();
    let mut vectors = vec![
        accept(
            base,
            "a file of xz streams, an lz4 block, zstd frames and a bzip2 stream",
            base_of(Streams::new().bytes()),
        )
        .needs("core"),
        on(&[base], accept("good-delta-recipes-codecs", "views of all codecs but those of zlib", delta())),
        changed("recipes-xz-over", "an xz stream decodes to a byte more than is stated", 0, |_, len, _| *len -= 1),
        changed("recipes-xz-short", "an xz stream decodes to a byte less than is stated", 0, |_, len, _| *len += 1),
        changed("recipes-xz-left", "a byte follows the xz stream", 0, |_, _, range| range.len += 1),
        changed("recipes-xz-cut", "the xz stream lacks its last byte", 0, |_, _, range| range.len -= 1),
        changed("recipes-xz-two", "two xz streams", 0, |_, len, range| {
            let (first, second) = (Streams::new().place(0), Streams::new().place(1));
            (*len, range.len) = (1400, first.1 + second.1);
        }),
        changed("recipes-xz-dictionary-small", "a dictionary of more than 2^20 bytes", 1, |codec, _, _| *codec = 3),
        changed("recipes-xz-dictionary", "a dictionary of more than 2^23 bytes", 2, |codec, _, _| *codec = 4),
        accept("good-recipes-stream-large", "an xz stream that states a dictionary of 96 MiB", large_base)
            .needs("core"),
        on(
            &["good-recipes-stream-large"],
            vector("recipes-xz-dictionary-large", "object", "a dictionary of more than 2^26 bytes", large.encode()),
        ),
        changed("recipes-lz4-over", "an lz4 block decodes to a byte more than is stated", 4, |_, len, _| *len -= 1),
        changed("recipes-lz4-short", "an lz4 block decodes to a byte less than is stated", 4, |_, len, _| *len += 1),
        changed("recipes-lz4-left", "a byte follows the lz4 block", 4, |_, _, range| range.len += 1),
        changed("recipes-lz4-cut", "the lz4 block lacks its last byte", 4, |_, _, range| range.len -= 1),
        changed("recipes-zstd-over", "a zstd frame decodes to a byte more than is stated", 5, |_, len, _| *len -= 1),
        changed("recipes-zstd-short", "a zstd frame decodes to a byte less than is stated", 5, |_, len, _| *len += 1),
        changed("recipes-zstd-left", "a byte follows the zstd frame", 5, |_, _, range| range.len += 1),
        changed("recipes-zstd-cut", "the zstd frame lacks its last byte", 5, |_, _, range| range.len -= 1),
        changed("recipes-zstd-dictionary", "a zstd frame that states a dictionary", 5, |_, _, range| {
            let streams = Streams::new();
            (range.offset, range.len) = (streams.end(), wide(streams.frame_of_dictionary().len()));
        }),
        changed("recipes-zstd-skippable", "a skippable frame before the zstd frame", 5, |_, _, range| {
            let streams = Streams::new();
            let before = wide(streams.frame_of_dictionary().len());
            (range.offset, range.len) = (streams.end() + before, wide(streams.skippable().len()));
        }),
        changed("recipes-bzip2-over", "a bzip2 stream decodes to a byte more than is stated", 6, |_, len, _| *len -= 1),
        changed("recipes-bzip2-short", "a bzip2 stream decodes to a byte less than is stated", 6, |_, len, _| {
            *len += 1;
        }),
        changed("recipes-bzip2-left", "a byte follows the bzip2 stream", 6, |_, _, range| range.len += 1),
        changed("recipes-bzip2-cut", "the bzip2 stream lacks its last byte", 6, |_, _, range| range.len -= 1),
    ];
    for vector in vectors.iter_mut().filter(|vector| vector.needs.is_empty()) {
        vector.needs = "core delta recipes".into();
    }
    vectors
}
