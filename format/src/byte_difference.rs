//! Chunks of codec 3: their bytes are sums of parts of a prefix and stored bytes, and copies of stored bytes (delta 8).

use alloc::vec::Vec;

use crate::bytes::{Reader, put_planes};
use crate::frame::check_frame;
use crate::num::{self, fit, wide};
use crate::{Error, FrameDecoder, Part};

/// The encoded length of a run in bytes. A chunk has at most one run for every so many bytes of its own.
const RUN_LEN: u32 = 16;

/// One run: where in the prefix it begins, how many bytes it adds there, and how many it copies after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The distance from the end of the run before to the start of this run in the prefix.
    pub seek: i64,
    /// Bytes that are sums of bytes of the prefix and added ones.
    pub add: u32,
    /// Bytes that are copied unchanged.
    pub copy: u32,
}

/// A parsed chunk of codec 3, whose runs match the lengths of the chunk and of its prefix.
#[derive(Clone, Debug)]
pub struct ByteDifference<'a> {
    part: Part,
    window_log: u8,
    runs: Vec<Run>,
    added_len: u64,
    added: &'a [u8],
    copied_len: u64,
    copied: &'a [u8],
}

impl<'a> ByteDifference<'a> {
    /// Parses the stored bytes of a chunk of `len` bytes whose prefix has `prefix_len`. They must have matched their digest.
    ///
    /// # Errors
    /// Returns an error if they do not conform to delta 8; the error is about `part`.
    pub fn parse(
        part: Part,
        stored: &'a [u8],
        len: u32,
        prefix_len: u64,
        window_log: u8,
        decoder: &mut FrameDecoder,
    ) -> Result<Self, Error> {
        let fault = |what| Error::Malformed { part, what, at: 0 };
        let mut reader = Reader::new(part, stored);
        let (count, added_len, control_stored, added_stored) =
            (reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?);
        let control = reader.take(num::at(control_stored))?;
        let added = reader.take(num::at(added_stored))?;
        let copied = reader.rest();
        // A run takes 16 bytes, so the chunk's length limits what is allocated for runs.
        if count == 0 || count > len.div_ceil(RUN_LEN) || added_len > len {
            return Err(fault("a byte difference has no run, or more than its chunk is long enough for"));
        }
        let (copied_len, added_len) = (u64::from(len - added_len), u64::from(added_len));
        let mut decoded = Vec::new();
        decoder.decode(part, control, u64::from(count) * u64::from(RUN_LEN), window_log, &mut decoded)?;
        let runs = parse_runs(part, &decoded, num::at(count))?;
        check_part(part, added, added_len, window_log)?;
        check_part(part, copied, copied_len, window_log)?;
        let suffix = Self { part, window_log, runs, added_len, added, copied_len, copied };
        suffix.check_runs(prefix_len)?;
        Ok(suffix)
    }

    fn check_runs(&self, prefix_len: u64) -> Result<(), Error> {
        let fault = |what, row| Err(Error::Row { part: self.part, what, row: wide(row) });
        let (mut at, mut added, mut copied) = (0_u64, 0_u64, 0_u64);
        for (row, run) in self.runs.iter().enumerate() {
            if run.add == 0 && run.copy == 0 {
                return fault("a run makes nothing", row);
            }
            added += u64::from(run.add);
            copied += u64::from(run.copy);
            match at.checked_add_signed(run.seek) {
                Some(start) if start <= prefix_len => at = start + u64::from(run.add),
                _ => return fault("a run moves out of the prefix", row),
            }
            if at > prefix_len {
                return fault("a run passes the end of the prefix", row);
            }
        }
        if (added, copied) != (self.added_len, self.copied_len) {
            return fault("the runs make another number of bytes than was declared", 0);
        }
        Ok(())
    }

    /// Decodes the chunk with its prefix. Its bytes replace the content of `out`.
    ///
    /// # Errors
    /// Returns an error if a frame does not decode, or the prefix is too short for the runs.
    pub fn apply(&self, prefix: &[u8], decoder: &mut FrameDecoder, out: &mut Vec<u8>) -> Result<(), Error> {
        let (mut added, mut copied) = (Vec::new(), Vec::new());
        decode_part(self.part, self.added, self.added_len, self.window_log, decoder, &mut added)?;
        decode_part(self.part, self.copied, self.copied_len, self.window_log, decoder, &mut copied)?;
        let other = || Error::Malformed { part: self.part, what: "its prefix has another length", at: 0 };
        let len = |bytes: u32| num::at(bytes);
        let (mut added, mut copied, mut at) = (&added[..], &copied[..], 0_u64);
        out.clear();
        for run in &self.runs {
            at = at.saturating_add_signed(run.seek);
            let start = usize::try_from(at).map_err(|_| other())?;
            let base = prefix.get(start..).and_then(|rest| rest.get(..len(run.add))).ok_or_else(other)?;
            let (sums, rest) = added.split_at_checked(len(run.add)).ok_or_else(other)?;
            out.extend(base.iter().zip(sums).map(|(base, sum)| base.wrapping_add(*sum)));
            added = rest;
            let (bytes, rest) = copied.split_at_checked(len(run.copy)).ok_or_else(other)?;
            out.extend(bytes);
            copied = rest;
            at = at.saturating_add(run.add.into());
        }
        Ok(())
    }
}

/// Returns the stored bytes of a chunk, made from its runs, the bytes that they add, and those that they copy. `compress` returns a frame.
///
/// # Errors
/// Returns the errors of `compress`, and an error if a part is longer than the format can store.
pub fn encode_byte_difference<E: From<Error>>(
    runs: &[Run],
    added: &[u8],
    copied: &[u8],
    mut compress: impl FnMut(&[u8]) -> Result<Vec<u8>, E>,
) -> Result<Vec<u8>, E> {
    let mut control = Vec::new();
    put_planes(&mut control, runs.iter().map(|run| run.add.to_le_bytes()));
    put_planes(&mut control, runs.iter().map(|run| run.copy.to_le_bytes()));
    put_planes(&mut control, runs.iter().map(|run| run.seek.to_le_bytes()));
    let control = compress(&control)?;
    let mut frame_of = |bytes: &[u8]| if bytes.is_empty() { Ok(Vec::new()) } else { compress(bytes) };
    let added_frame = frame_of(added)?;
    let copied_frame = frame_of(copied)?;
    let mut out = Vec::with_capacity(16 + control.len() + added_frame.len() + copied_frame.len());
    for len in [runs.len(), added.len(), control.len(), added_frame.len()] {
        out.extend(fit::<u32>(len, "the length of a part of a chunk")?.to_le_bytes());
    }
    out.extend(control);
    out.extend(added_frame);
    out.extend(copied_frame);
    Ok(out)
}

fn parse_runs(part: Part, control: &[u8], count: usize) -> Result<Vec<Run>, Error> {
    let mut reader = Reader::new(part, control);
    let adds = reader.planes::<4>(count)?.u32s();
    let copies = reader.planes::<4>(count)?.u32s();
    let seeks = reader.planes::<8>(count)?.i64s();
    Ok(adds.zip(copies).zip(seeks).map(|((add, copy), seek)| Run { add, copy, seek }).collect())
}

fn check_part(part: Part, stored: &[u8], len: u64, window_log: u8) -> Result<(), Error> {
    match (stored, len) {
        ([], 0) => Ok(()),
        (_, 0) => Err(Error::Frame { part, what: "frame that decodes to nothing" }),
        _ => check_frame(part, stored, len, window_log),
    }
}

fn decode_part(
    part: Part,
    stored: &[u8],
    len: u64,
    window_log: u8,
    decoder: &mut FrameDecoder,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    if stored.is_empty() { Ok(()) } else { decoder.decode(part, stored, len, window_log, out) }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn stored(runs: &[Run], added: &[u8], copied: &[u8]) -> Vec<u8> {
        encode_byte_difference(runs, added, copied, |bytes| {
            let mut out = vec![0; zstd_safe::compress_bound(bytes.len())];
            let len = zstd_safe::CCtx::create().compress(&mut out[..], bytes, 3).map(|len| {
                out.truncate(len);
                out
            });
            Ok::<_, Error>(len.expect("zstd compresses"))
        })
        .expect("it fits")
    }

    fn parse<'a>(stored: &'a [u8], len: u32, prefix_len: u64) -> Result<ByteDifference<'a>, Error> {
        ByteDifference::parse(Part::Chunk(0), stored, len, prefix_len, 20, &mut FrameDecoder::new())
    }

    #[test]
    fn runs_add_copy_and_move() {
        let runs = [Run { seek: 0, add: 2, copy: 12 }, Run { seek: -1, add: 3, copy: 0 }];
        let bytes = stored(&runs, &[0, 1, 0, 255, 0], b"hello, world");
        let mut out = Vec::new();
        let suffix = parse(&bytes, 17, 4).expect("it is sound");
        suffix.apply(b"abcd", &mut FrameDecoder::new(), &mut out).expect("the prefix fits");
        assert_eq!(out, b"achello, worldbbd");
        assert!(suffix.apply(b"abc", &mut FrameDecoder::new(), &mut out).is_err());
    }

    #[test]
    fn each_rule_of_a_run() {
        type Case<'a> = (&'a [Run], &'a [u8], &'a [u8], u32, &'a str);
        let run = |seek, add, copy| Run { seek, add, copy };
        let cases: [Case<'_>; 8] = [
            (&[run(0, 5, 0)], &[0; 5], b"", 5, "passes the end"),
            (&[run(0, 1, 15), run(-2, 1, 0)], &[0; 2], &[0; 15], 17, "moves out"),
            (&[run(0, 1, 15), run(4, 1, 0)], &[0; 2], &[0; 15], 17, "moves out"),
            (&[run(i64::MIN, 1, 0)], &[0; 1], b"", 1, "moves out"),
            (&[run(i64::MAX, 1, 0)], &[0; 1], b"", 1, "moves out"),
            (&[run(0, 0, 8), run(0, 0, 8)], b"", &[0; 16], 16, "no run, or more"),
            (&[run(0, 0, 17), run(0, 0, 0)], b"", &[0; 17], 17, "makes nothing"),
            (&[run(0, 2, 0)], &[0; 1], b"x", 2, "another number"),
        ];
        for (runs, added, copied, len, rule) in cases {
            let bytes = stored(runs, added, copied);
            let error = parse(&bytes, len, 4).expect_err(rule);
            assert!(alloc::format!("{error}").contains(rule), "{error} is not: {rule}");
        }
    }

    #[test]
    fn no_cut_is_taken() {
        let bytes = stored(&[Run { seek: 0, add: 2, copy: 2 }], &[1, 2], b"xy");
        assert!((0..bytes.len()).all(|len| parse(&bytes[..len], 4, 2).is_err()));
        let longer = [&bytes[..], b"x"].concat();
        assert!(parse(&longer, 4, 2).is_err());
    }
}
