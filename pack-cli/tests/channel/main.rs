//! Channels: what is published, and what devices take of it.
#![allow(clippy::unwrap_used, reason = "tests")]

mod addresses;
mod chains;
mod devices;
mod killed;
mod mirrors;
mod planned;
mod published;
mod read;
mod server;

use std::fmt::Write as _;

use sealift_desk::Desk;

/// Seconds since 1970: the first version was made then.
const DAY_ONE: i64 = 1_790_000_000;

/// A folder with a key.
fn new_desk() -> Desk {
    Desk::with_key()
}

/// Packs a version of a tree of which little changes, a day after the one before.
fn pack(desk: &Desk, version: u32, more: &str) {
    let mut text = String::new();
    for line in 0..20_000_u32 {
        writeln!(text, "{}", line.wrapping_mul(2_654_435_761)).unwrap();
    }
    // A delta is of the same tree as the full bundle, whose times count.
    if desk.path("os/version").exists() && has(desk, "os") == format!("version {version}") {
        return pack_tree(desk, version, more);
    }
    desk.write("os/large", &text);
    desk.write("os/version", format!("version {version}"));
    pack_tree(desk, version, more);
}

fn pack_tree(desk: &Desk, version: u32, more: &str) {
    let mut command = desk.command(&format!(
        "pack os -o os-{version}.sealift --force --name os --bundle-version {version} --key release --trust signers -q {more}"
    ));
    command.env("SOURCE_DATE_EPOCH", (DAY_ONE + i64::from(version) * 86_400).to_string());
    let (status, said) = sealift_desk::told(&mut command);
    assert_eq!(status, Some(0), "{said}");
}

/// Packs versions and publishes each, with deltas from the one before.
fn publish(desk: &Desk, versions: std::ops::RangeInclusive<u32>, more: &str) {
    for version in versions {
        pack(desk, version, "");
        desk.good(&format!("publish os-{version}.sealift channel --key release {more}"));
    }
}

/// Returns what the target has.
fn has(desk: &Desk, target: &str) -> String {
    desk.text(&format!("{target}/version"))
}
