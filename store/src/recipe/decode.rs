//! Decodes what recipes and views name (recipes 5), within the memory that is declared.

use std::io::Read;

use bzip2::bufread::BzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use lzma_rust2::XzReader;
use sealift_format::RecipeCodec;
use sealift_format::num::wide;

/// Returns the `len` bytes that `bytes`, all of them, decode to; `None` if they do not.
#[must_use]
pub fn decode(codec: RecipeCodec, bytes: &[u8], len: usize) -> Option<Vec<u8>> {
    match codec {
        RecipeCodec::Zlib => inflate(true, bytes, len),
        RecipeCodec::Deflate => inflate(false, bytes, len),
        RecipeCodec::XzSmall | RecipeCodec::Xz | RecipeCodec::XzLarge => {
            let most = u32::try_from(codec.memory() >> 10).ok()?;
            let mut rest = bytes;
            let out = read(XzReader::new_mem_limit(&mut rest, false, most), len)?;
            rest.is_empty().then_some(out)
        }
        RecipeCodec::Lz4Block => {
            let mut out = vec![0; len];
            let decoded = lz4_flex::block::decompress_into(bytes, &mut out).ok()?;
            (decoded == len).then_some(out)
        }
        RecipeCodec::Bzip2 => {
            let mut rest = bytes;
            let out = read(BzDecoder::new(&mut rest), len)?;
            rest.is_empty().then_some(out)
        }
        RecipeCodec::Zstd => {
            let mut out = vec![0; len];
            // One frame, and nothing behind it.
            let frame_len = zstd_safe::find_frame_compressed_size(bytes).ok()?;
            let decoded = zstd_safe::decompress(&mut out[..], bytes).ok()?;
            (frame_len == bytes.len() && decoded == len).then_some(out)
        }
        _ => None,
    }
}

fn inflate(has_header: bool, bytes: &[u8], len: usize) -> Option<Vec<u8>> {
    let mut decoder = Decompress::new(has_header);
    let mut out = Vec::with_capacity(len);
    let status = decoder.decompress_vec(bytes, &mut out, FlushDecompress::Finish).ok()?;
    let is_all = status == Status::StreamEnd && decoder.total_in() == wide(bytes.len()) && out.len() == len;
    is_all.then_some(out)
}

/// Returns the `len` bytes that a reader has, to its end; `None` if it fails, or has more or less.
fn read(mut from: impl Read, len: usize) -> Option<Vec<u8>> {
    let mut out = vec![0; len];
    from.read_exact(&mut out).ok()?;
    let is_end = from.read(&mut [0]).is_ok_and(|more| more == 0);
    is_end.then_some(out)
}

#[cfg(all(test, feature = "recipes"))]
mod tests {
    use sealift_format::{Bzip2, Coder, Filled, Lz4, Xz, Zlib, Zstd, ZstdStream};

    use super::*;
    use crate::recipe::encode;

    /// Checks that what a coder makes is decoded, and what is not exactly that is refused.
    #[track_caller]
    fn check(coder: Coder, codec: RecipeCodec) {
        let plain: Vec<u8> = (0_u32..50_000).flat_map(|n| (n / 7).to_le_bytes()).collect();
        let encoded = encode(&coder, &plain, plain.len()).expect("it is there").expect("it is shorter");
        let decodes = |bytes: &[u8], len| decode(codec, bytes, len).is_some_and(|decoded| decoded == plain);
        assert!(decodes(&encoded, plain.len()));
        assert!(!decodes(&encoded[..encoded.len() - 1], plain.len()));
        assert!(!decodes(&[&encoded[..], b"x"].concat(), plain.len()));
        assert!(decode(codec, &encoded, plain.len() - 1).is_none());
        assert!(decode(codec, &encoded, plain.len() + 1).is_none());
        let within = |len| encode(&coder, &plain, len).expect("it is there");
        assert!(within(encoded.len()).is_some_and(|made| made == encoded));
        assert!(within(encoded.len() - 1).is_none());
    }

    #[test]
    fn what_zlib_makes_is_decoded() {
        for (level, is_raw) in [(1, false), (6, true), (9, false)] {
            let codec = if is_raw { RecipeCodec::Deflate } else { RecipeCodec::Zlib };
            check(Coder::Zlib(Zlib { level, window_bits: 15, is_raw, mem_level: 8, strategy: 0 }), codec);
        }
    }

    #[test]
    fn what_liblzma_makes_is_decoded() {
        for filter in [0, 4, 5, 6, 7, 8, 9, 10, 11] {
            check(Coder::Xz(xz(1 << 20, filter)), RecipeCodec::XzSmall);
        }
        check(Coder::Xz(xz(1 << 23, 0)), RecipeCodec::Xz);
        check(Coder::Xz(xz(1 << 26, 4)), RecipeCodec::XzLarge);
    }

    #[test]
    fn dictionaries_beyond_the_declared_memory_are_refused() {
        let encoded = encode(&Coder::Xz(xz((1 << 20) + 1, 0)), &[7; 1000], 1000).expect("it is there");
        let encoded = encoded.expect("it is shorter");
        assert_eq!(decode(RecipeCodec::XzSmall, &encoded, 1000), None);
        assert_eq!(decode(RecipeCodec::Xz, &encoded, 1000), Some(vec![7; 1000]));
    }

    #[test]
    fn what_liblz4_makes_is_decoded() {
        for level in 1..=12 {
            check(Coder::Lz4(Lz4 { is_high: true, level, filled: None }), RecipeCodec::Lz4Block);
            check(Coder::Lz4(Lz4 { is_high: false, level, filled: None }), RecipeCodec::Lz4Block);
        }
    }

    #[test]
    fn what_libzstd_makes_is_decoded() {
        let stream = |is_pledged, has_worker, is_long| {
            Some(ZstdStream {
                is_pledged,
                is_checked: true,
                has_worker,
                is_long,
                is_unsplit: false,
                window_log: if is_long { 24 } else { 0 },
            })
        };
        for stream in [None, stream(false, false, false), stream(true, true, false), stream(false, true, true)] {
            for level in [-1, 3, 9, 19] {
                check(Coder::Zstd157(Zstd { level, stream }), RecipeCodec::Zstd);
                let unsplit = stream.map(|stream| ZstdStream { is_unsplit: true, ..stream });
                check(Coder::Zstd157(Zstd { level, stream: unsplit }), RecipeCodec::Zstd);
                check(Coder::Zstd155(Zstd { level, stream }), RecipeCodec::Zstd);
                check(Coder::Zstd154(Zstd { level, stream }), RecipeCodec::Zstd);
            }
        }
    }

    #[test]
    fn what_libbz2_makes_is_decoded() {
        for level in 1..=9 {
            check(Coder::Bzip2(Bzip2 { level }), RecipeCodec::Bzip2);
        }
    }

    #[test]
    fn liblz4_encodes_what_there_is_room_for() {
        let plain: Vec<u8> = (0_u32..50_000).flat_map(|n| (n / 7).to_le_bytes()).collect();
        for (is_high, is_padded) in [(false, false), (false, true), (true, false), (true, true)] {
            let filled = Some(Filled { room: 4096, is_padded });
            let coder = Coder::Lz4(Lz4 { is_high, level: 1, filled });
            let made = encode(&coder, &plain, 4096).expect("it is there").expect("it fits");
            assert!(made.len() > 4090, "{}", made.len());
            let decoded = lz4_flex::block::decompress(&made, plain.len()).expect("it is a block");
            assert!(plain.starts_with(&decoded), "{is_high} {is_padded}");
        }
    }

    fn xz(dictionary_len: u32, filter: u8) -> Xz {
        Xz { preset: 6, is_extreme: false, dictionary_len, lc: 3, lp: 0, pb: 2, filter, check: Some(1) }
    }
}
