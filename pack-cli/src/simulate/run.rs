//! Moves the head of a device from one range to the next, and reads them.

use std::ops::Range;

use super::device::Model;

/// The result of reading in one order.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Run {
    /// The time in seconds.
    pub seconds: f64,
    /// How often the head moved.
    pub seeks: u64,
    /// Bytes that the device read: whole blocks, and gaps that were too small to seek over.
    pub bytes: u64,
    /// What was read and when, in order; reads that follow each other on the device are one.
    pub strokes: Vec<Stroke>,
}

/// One uninterrupted read.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Stroke {
    /// The range of the bundle's file that is read.
    pub range: Range<u64>,
    /// When the head leaves the previous place, in seconds.
    pub left: f64,
    /// When the read begins.
    pub start: f64,
    /// When it ends.
    pub end: f64,
}

/// Reads ranges of a file in this order. At first, the head is at the file's start.
pub(super) fn run(model: &Model, reads: &[Range<u64>]) -> Run {
    let place = whole(model.place);
    let (block, read_ahead) = (whole(model.block), whole(model.read_ahead));
    let mut head = Head { at: place / block * block, in_run: 0, now: 0.0 };
    let mut run = Run::default();
    for read in reads.iter().filter(|read| !read.is_empty()) {
        let wanted = (place + read.start) / block * block..(place + read.end).div_ceil(block) * block;
        let start = match wanted.start {
            // The block that both share has been read.
            start if start < head.at && head.at - start <= block => head.at,
            start => start,
        };
        if start >= wanted.end {
            if let Some(stroke) = run.strokes.last_mut() {
                stroke.range.end = stroke.range.end.max(read.end);
            }
            continue;
        }
        let gap = start.wrapping_sub(head.at); // huge if it lies before
        let seek = model.seek(real(head.at), real(start));
        let left = head.now;
        let is_on = gap == 0 || gap <= read_ahead && model.transfer(real(head.at), real(gap)) <= seek;
        let from = if is_on {
            head.at
        } else {
            run.seeks += 1;
            head = Head { at: start, in_run: 0, now: head.now + seek };
            start
        };
        let began = head.now;
        head.pass(model, wanted.end - from);
        run.bytes += wanted.end - from;
        match run.strokes.last_mut().filter(|_| is_on) {
            Some(stroke) => (stroke.range.end, stroke.end) = (read.end, head.now / 1000.0),
            None => run.strokes.push(Stroke {
                range: read.start..read.end,
                left: left / 1000.0,
                start: began / 1000.0,
                end: head.now / 1000.0,
            }),
        }
    }
    run.seconds = head.now / 1000.0;
    run
}

/// Reads so many bytes without interruption, from the file's start.
pub(super) fn sweep(model: &Model, bytes: u64) -> Run {
    run(model, std::slice::from_ref(&(0..bytes)))
}

struct Head {
    at: u64,
    /// Bytes read since it last moved.
    in_run: u64,
    now: f64,
}

impl Head {
    /// Reads on without moving.
    fn pass(&mut self, model: &Model, bytes: u64) {
        let requests = |bytes: u64| bytes.div_ceil(whole(model.read_ahead));
        let more = requests(self.in_run + bytes) - requests(self.in_run);
        self.now += model.transfer(real(self.at), real(bytes)) + real(more) * model.request;
        self.in_run += bytes;
        self.at += bytes;
    }
}

/// Converts a number of bytes below 2^53, which a float holds exactly.
#[allow(clippy::as_conversions, reason = "device.rs and the capacity limit it")]
pub(super) fn real(bytes: u64) -> f64 {
    bytes as f64
}

#[allow(clippy::as_conversions, reason = "parameters are whole numbers from 0 to 2^53")]
fn whole(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::SimulatedDevice;

    fn model(settings: &[(&str, f64)]) -> Model {
        let mut device = SimulatedDevice::of("hdd").expect("a device");
        for (name, value) in settings {
            device.set(name, *value).expect("a parameter");
        }
        device.model()
    }

    #[test]
    fn reads_that_follow_each_other_are_one() {
        let model = model(&[("request_ms", 1.0)]);
        let whole = run(&model, std::slice::from_ref(&(0..1 << 20)));
        let parts: Vec<_> = (0..1 << 20).step_by(1000).map(|start| start..(1 << 20).min(start + 1000)).collect();
        let parts = run(&model, &parts);
        assert_eq!((parts.seeks, parts.bytes, parts.strokes.len()), (0, 1 << 20, 1));
        assert_eq!(parts.strokes[0].range, whole.strokes[0].range);
        assert!((parts.seconds - whole.seconds).abs() < 1e-9, "{} {}", parts.seconds, whole.seconds);
        // 8 requests of 128 KiB
        assert!(whole.seconds > 0.008 && whole.seconds < 0.008 + 1.1 * f64::from(1 << 20) / 64_800_000.0);
    }

    #[test]
    fn a_small_gap_is_passed_and_a_large_one_is_not() {
        let model = model(&[]);
        let near = run(&model, &[0..4096, 69_632..73_728]);
        assert_eq!((near.seeks, near.bytes, near.strokes.len()), (0, 73_728, 1));
        let far = run(&model, &[0..4096, 1 << 30..(1 << 30) + 4096]);
        assert_eq!((far.seeks, far.bytes, far.strokes.len()), (1, 8192, 2));
        let back = run(&model, &[0..4096, 8192..12_288, 4096..8192]);
        assert_eq!(back.seeks, 1);
        assert!(back.strokes[1].start - back.strokes[1].left >= 0.001 + 0.0111 / 2.0, "{back:?}");
    }

    #[test]
    fn a_block_in_which_two_reads_meet_is_read_once() {
        let model = model(&[]);
        let met = run(&model, &[0..5000, 5000..5001, 5001..9000]);
        assert_eq!((met.seeks, met.bytes), (0, 12_288));
    }

    #[test]
    fn a_longer_way_takes_longer() {
        let model = model(&[]);
        let mut before = 0.0;
        for distance in [1 << 20, 1 << 24, 1 << 28, 1 << 32, 1 << 36, 1 << 38] {
            let seek = model.seek(0.0, real(distance));
            assert!(seek > before, "{distance}: {seek} {before}");
            before = seek;
        }
    }
    /// Simulated disks of other programs have one formula for all distances.
    #[test]
    fn a_device_whose_time_grows_with_the_root_of_the_distance_agrees() {
        const SIZE: f64 = 1_073_741_824.0;
        let (min, max, rate) = (8.0, 25.0, 104_857_600.0);
        let model = model(&[
            ("capacity_bytes", SIZE),
            ("start_rate", rate),
            ("end_rate", rate),
            ("short_seek_ms", min),
            ("third_seek_ms", min + (max - min) * (1.0f64 / 3.0).sqrt()),
            ("full_seek_ms", max),
            ("turn_ms", 0.0),
            ("request_ms", 0.0),
        ]);
        // Stored in the sequence of a full period modulo 2^14, in blocks of 64 KiB.
        let places = std::iter::successors(Some(1u64), |place| Some((place * 4093 + 4099) % 16_384));
        let reads: Vec<_> = places.take(500).map(|place| place * 65_536..(place + 1) * 65_536).collect();
        let (mut at, mut expected) = (0, 0.0);
        for read in &reads {
            let distance = real(read.start.abs_diff(at));
            if distance > 0.0 {
                expected += min + (max - min) * (distance / SIZE).sqrt();
            }
            expected += 65_536.0 / rate * 1000.0;
            at = read.end;
        }
        let found = run(&model, &reads);
        let ratio = found.seconds * 1000.0 / expected;
        assert!(found.seeks > 450 && (0.95..1.05).contains(&ratio), "{} {ratio}", found.seeks);
    }
}
