//! What the header of a zstd frame says of how it was made (RFC 8878, section 3.1.1.1).

use std::ops::RangeInclusive;

use sealift_container::Hint;
use sealift_format::{Coder, Zstd, ZstdStream};

const MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// All levels, those first that programs use unless they are told otherwise.
const LEVELS: [i8; 22] = [3, 19, 1, 9, 22, 15, 6, 12, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 18, 20, 21];
/// The levels at which libzstd 1.5.4 makes other frames than 1.5.5 (spec/rationale.md).
const ROWS_OF_HASHES: RangeInclusive<i8> = 5..=12;
/// The longest block of a frame, in bytes (RFC 8878, section 3.1.1.2.4); 1.5.6 and 1.5.7 differ where there are several.
const BLOCK_LEN: usize = 128 << 10;
/// A stream that makes what one call makes.
const ONE_CALL: ZstdStream = ZstdStream {
    is_pledged: true,
    is_checked: false,
    has_worker: false,
    is_long: false,
    is_unsplit: false,
    window_log: 0,
};
/// The longest contents, in bytes, for which so many levels are tried.
const FEWER: [(usize, usize); 2] = [(16 << 20, 2), (1 << 20, 5)];
/// Contents of a known length below this are encoded without a worker, in bytes (`ZSTDMT_JOBSIZE_MIN`).
const WORKER_MIN: usize = 512 << 10;

/// What a frame's header says.
struct Header {
    /// The logarithm of the window's length, if it is stated.
    window_log: Option<u8>,
    has_len: bool,
    is_checked: bool,
}

/// Returns the coders to try for a frame, the likeliest first.
pub(super) fn candidates(hint: Hint, frame: &[u8], plain_len: usize) -> Vec<Coder> {
    if let Hint::Zstd { level } = hint {
        return i8::try_from(level).map_or(Vec::new(), |level| versions(Zstd { level, stream: None }, plain_len));
    }
    let Some(header) = header(frame) else { return Vec::new() };
    let fits = |level: &i8| {
        let of_level = Zstd { level: *level, stream: None }.window_log();
        header.window_log.is_none_or(|stated| stated == of_level)
    };
    let mut levels: Vec<(i8, bool)> = LEVELS.iter().filter(|level| fits(level)).map(|level| (*level, false)).collect();
    // Another window than that of any usual level was asked for, with matches in all of it.
    levels.extend(LEVELS.iter().filter(|level| !fits(level)).map(|level| (*level, true)));
    let most = FEWER.iter().find(|(len, _)| plain_len > *len).map_or(LEVELS.len(), |(_, most)| *most);
    let mut found = Vec::new();
    for (level, is_long) in levels.into_iter().take(most) {
        let window_log = if is_long { header.window_log.unwrap_or_default() } else { 0 };
        let stream = |has_worker| ZstdStream {
            is_pledged: header.has_len,
            is_checked: header.is_checked,
            has_worker,
            is_long,
            is_unsplit: false,
            window_log,
        };
        let has_worker = !header.has_len || plain_len >= WORKER_MIN;
        let mut streams = vec![Some(stream(false))];
        if has_worker {
            streams.insert(0, Some(stream(true)));
        }
        if header.has_len && !header.is_checked && !is_long {
            streams.insert(0, None);
        }
        found.extend(streams.into_iter().flat_map(|stream| versions(Zstd { level, stream }, plain_len)));
    }
    found
}

/// Returns a coder for each version of libzstd whose frames differ at a level.
fn versions(zstd: Zstd, plain_len: usize) -> Vec<Coder> {
    let mut coders = vec![Coder::Zstd155(zstd), Coder::Zstd157(zstd)];
    if plain_len > BLOCK_LEN {
        // As 1.5.6 does it.
        let stream = ZstdStream { is_unsplit: true, ..zstd.stream.unwrap_or(ONE_CALL) };
        coders.push(Coder::Zstd157(Zstd { stream: Some(stream), ..zstd }));
    }
    if ROWS_OF_HASHES.contains(&zstd.level) {
        coders.push(Coder::Zstd154(zstd));
    }
    coders
}

fn header(frame: &[u8]) -> Option<Header> {
    let [descriptor, window, ..] = *frame.strip_prefix(MAGIC)? else { return None };
    let is_single = descriptor & 0x20 != 0;
    let has_dictionary = descriptor & 3 != 0;
    let window_log = if is_single { None } else { Some(10 + (window >> 3)) };
    let is_usual = !has_dictionary && (is_single || window & 7 == 0) && window_log.is_none_or(|log| log <= 27);
    let header = Header { window_log, has_len: is_single || descriptor >> 6 != 0, is_checked: descriptor & 4 != 0 };
    is_usual.then_some(header)
}
