//! Recovery files, and bundles that are repaired with them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod damaged;
mod refused;
mod unreadable;
mod volumes;

use std::ops::Range;

use sealift::{Input, Limits};
use sealift_desk::{Desk, noise};
use sealift_format::num::size;

/// A bundle of 4 MB of noise, `good.sealift`, with recovery files of `percent` in all.
fn protected(percent: u32, files: &[&str]) -> Desk {
    let desk = Desk::with_key();
    for number in 0..40 {
        desk.write(&format!("tree/{number}"), noise(number, 50_000));
    }
    desk.write("tree/large", noise(40, 2_000_000));
    desk.good("pack tree -o good.sealift --name os --bundle-version 7 --key release --chunk-size 256KiB");
    let outputs: Vec<String> = files.iter().map(|file| format!("-o {file}")).collect();
    desk.good(&format!("recovery good.sealift {} --percent {percent}", outputs.join(" ")));
    desk
}

/// Writes `bad.sealift`, a copy of the good bundle in which these bytes are noise.
fn damage(desk: &Desk, ranges: impl IntoIterator<Item = Range<usize>>) {
    let mut bytes = desk.read("good.sealift");
    for range in ranges {
        let len = range.len();
        bytes[range.clone()].copy_from_slice(&noise(u64::try_from(range.start).unwrap(), len));
    }
    desk.write("bad.sealift", bytes);
}

/// Returns where the body begins, and the bundle's length.
fn body(desk: &Desk) -> Range<usize> {
    let head = Input::open(&desk.path("good.sealift")).unwrap().read_head(Limits::default()).unwrap();
    size(head.head_len() + head.root().contents.layout_stored)..size(head.file_len())
}

/// Repairs `bad.sealift`, and compares the result with the good bundle. Returns the report.
#[track_caller]
fn repaired(desk: &Desk, recovery: &str) -> serde_json::Value {
    let report = desk.json(&format!("repair bad.sealift {recovery} -o repaired.sealift --force --json"));
    assert!(desk.read("repaired.sealift") == desk.read("good.sealift"), "{report}");
    report
}
