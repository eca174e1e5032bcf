//! Several copies of one bundle, each damaged elsewhere.
#![allow(clippy::unwrap_used, reason = "tests")]

mod judged;
mod read;

use std::ops::Range;

use sealift::{Head, Input, Limits};
use sealift_desk::{Desk, noise};
use sealift_format::num::{at, size};

/// A tree in a signed bundle of many chunks, `good.sealift`.
fn bundle() -> Desk {
    let desk = Desk::with_key();
    for number in 0..40 {
        desk.write(&format!("tree/{number}"), noise(number, 30_000));
    }
    desk.write("tree/large", noise(40, 900_000));
    desk.good("pack tree -o good.sealift --name os --bundle-version 7 --key release --chunk-size 64KiB");
    desk
}

/// Where the parts of `good.sealift` lie.
struct Parts {
    head: Range<usize>,
    layout: Range<usize>,
    index: Range<usize>,
    chunks: Vec<Range<usize>>,
}

impl Parts {
    fn of(desk: &Desk) -> Self {
        let bundle = Input::open(&desk.path("good.sealift")).unwrap().open_bundle(Limits::default()).unwrap();
        let (head, contents) = (size(bundle.head.head_len()), &bundle.head.root().contents);
        let (layout, index) = (head + size(contents.layout_stored), size(bundle.head.chunks_at()));
        let chunk = |start: usize, len: u32| start..start + at(len);
        let chunks = bundle.layout.chunks.iter().map(|found| chunk(index + size(found.offset), found.stored_len));
        Self { head: 0..head, layout: head..layout, index: layout..index, chunks: chunks.collect() }
    }
}

/// Writes a copy of `good.sealift` with a flipped bit in the middle of each of these parts.
fn damage(desk: &Desk, copy: &str, parts: &[&Range<usize>]) {
    let mut bytes = desk.read("good.sealift");
    for part in parts {
        bytes[(part.start + part.end) / 2] ^= 1;
    }
    desk.write(copy, bytes);
}

/// Writes a copy of `good.sealift` whose signature area is longer, so that all that follows lies elsewhere. Returns by how much.
fn lengthen(desk: &Desk, copy: &str) -> usize {
    let bytes = desk.read("good.sealift");
    let (head, rest) = Head::parse_first(&bytes).unwrap();
    let envelopes = head.envelopes().map(Into::into).collect();
    let longer = Head::new(head.root().clone(), envelopes, head.area_len() + 12_345).unwrap().encode();
    desk.write(copy, [&longer, rest].concat());
    12_345
}

/// Returns every other chunk, from the one of this number on.
fn every_other(parts: &Parts, first: usize) -> Vec<&Range<usize>> {
    parts.chunks.iter().skip(first).step_by(2).collect()
}
