//! A tree of many small files, and what is reported about the order in which they are read.

use sealift_desk::{Desk, noise, text};

/// The number of small files that `scattered` makes.
pub(crate) const FILES: u64 = 600;

/// An order in the report: its name, seconds, seeks and bytes.
pub(crate) struct Order {
    pub(crate) name: String,
    pub(crate) seconds: f64,
    pub(crate) seeks: u64,
    pub(crate) bytes: u64,
}

/// Creates a desk with a tree of small files in many directories, and a profile that reads every fourth of them in an order unrelated to their
/// names.
pub(crate) fn scattered() -> Desk {
    let desk = Desk::new();
    for file in 0..FILES {
        let len = 8_000 + usize::try_from(file * 7919 % 24_000).unwrap();
        desk.write(&name(file, "tree/"), noise(file, len));
    }
    let mut profile: Vec<u64> = (0..FILES).step_by(4).collect();
    profile.sort_by_key(|file| blake3::hash(&file.to_le_bytes()).to_hex());
    let lines: Vec<String> = profile.into_iter().map(|file| name(file, "")).collect();
    desk.write("profile", lines.join("\n"));
    pack(&desk, "plain.sealift", "--chunk-size 64KiB");
    pack(&desk, "ordered.sealift", "--chunk-size 64KiB --order profile");
    desk
}

#[track_caller]
pub(crate) fn pack(desk: &Desk, bundle: &str, options: &str) {
    let version = if options.contains("--base") { 2 } else { 1 };
    desk.good(&format!("pack tree -o {bundle} --name os --bundle-version {version} --owner 0:0 {options}"));
}

/// Checks that a line is refused, and prints nothing but why.
#[track_caller]
pub(crate) fn refused(desk: &Desk, line: &str, status: i32, why: &str) {
    let done = desk.command(line).output().unwrap();
    let (found, said) = (done.status.code(), text(&done.stderr));
    assert!(found == Some(status) && said.contains(why) && done.stdout.is_empty(), "{line}: {found:?}: {said}");
}

#[track_caller]
pub(crate) fn report(desk: &Desk, line: &str) -> serde_json::Value {
    desk.json(&format!("simulate {line} --json"))
}

/// Returns the orders of a report: as laid out, by path, by hash, one sweep.
#[track_caller]
pub(crate) fn orders(desk: &Desk, line: &str) -> [Order; 4] {
    let order = |row: &serde_json::Value| Order {
        name: row["order"].as_str().unwrap().to_owned(),
        seconds: row["simulated_seconds"].as_f64().unwrap(),
        seeks: row["seeks"].as_u64().unwrap(),
        bytes: row["read_bytes"].as_u64().unwrap(),
    };
    let rows: Vec<Order> = report(desk, line)["orders"].as_array().unwrap().iter().map(order).collect();
    rows.try_into().ok().unwrap()
}

pub(crate) fn name(file: u64, before: &str) -> String {
    format!("{before}dir{:02}/file{file:04}", file % 23)
}
