//! Bundles in which what is new lies in chunks of its own.

use sealift_desk::{Desk, noise};

const PACK: &str = "--name os --key release --chunk-size 256KiB --force -q";

/// Writes 100 files of 50 kB, of which `changed` are those of a later version.
fn write(desk: &Desk, changed: impl Iterator<Item = u64>) {
    for file in 0..100_u64 {
        desk.write(&format!("os/{:02}/{file:02}", file / 10), noise(file, 50_000));
    }
    changed.for_each(|file| desk.write(&format!("os/{:02}/{file:02}", file / 10), noise(1000 + file, 50_000)));
}

/// Returns the bytes that an update of a copy of a target would read.
fn read_of(desk: &Desk, bundle: &str, target: &str) -> u64 {
    let plan = desk.json(&format!("unpack {bundle} {target} --update --trust signers --dry-run --json"));
    plan["stored_bytes"].as_u64().unwrap()
}

#[test]
fn a_device_with_the_version_before_reads_what_is_new() {
    let desk = Desk::with_key();
    write(&desk, std::iter::empty());
    desk.good(&format!("pack os -o 1.sealift --bundle-version 1 {PACK}"));
    desk.good("unpack 1.sealift one --trust signers");
    write(&desk, (0..100).step_by(10));
    desk.good(&format!("pack os -o 2.sealift --bundle-version 2 {PACK} --apart-from 1.sealift"));
    desk.good("unpack 1.sealift two --trust signers");
    desk.good("unpack 2.sealift two --update --trust signers");
    write(&desk, (0..100).filter(|file| file % 10 == 0 || file % 10 == 5));

    desk.good(&format!("pack os -o plain.sealift --bundle-version 3 {PACK}"));
    let versions = "--apart-from 2.sealift --apart-from 1.sealift";
    desk.good(&format!("pack os -o 3.sealift --bundle-version 3 {PACK} {versions}"));
    let again =
        format!("pack os -o again.sealift --bundle-version 3 {PACK} --apart-from 1.sealift --apart-from 2.sealift");
    desk.good(&again);
    // The order in which they are given does not count.
    let chunks = |name: &str| desk.json(&format!("info {name} --json"))["chunks"].clone();
    assert_eq!(chunks("3.sealift"), chunks("again.sealift"));

    // Ten files are new since version 2 and twenty since version 1; a chunk at each end of them may have others.
    let (two, one) = (read_of(&desk, "3.sealift", "two"), read_of(&desk, "3.sealift", "one"));
    assert!((500_000..=500_000 + 800_000).contains(&two), "{two}");
    assert!((1_000_000..=1_000_000 + 800_000).contains(&one), "{one}");
    let plain = read_of(&desk, "plain.sealift", "two");
    assert!(two * 2 < plain, "{two} of {plain}");
    for target in ["one", "two"] {
        desk.good(&format!("unpack 3.sealift {target} --update --trust signers"));
        desk.assert_same("os", target);
    }
}

#[test]
fn only_full_bundles_are_compared() {
    let desk = Desk::with_key();
    write(&desk, std::iter::empty());
    desk.good(&format!("pack os -o 1.sealift --bundle-version 1 {PACK}"));
    write(&desk, 0..1);
    desk.good(&format!("pack os -o delta.sealift --bundle-version 2 {PACK} --base 1.sealift --trust signers"));
    let pack = format!("pack os -o 3.sealift --bundle-version 3 {PACK}");
    desk.refused(&format!("{pack} --apart-from delta.sealift"), 2, "delta");
    desk.refused(&format!("{pack} --apart-from signers"), 1, "not a Sealift bundle");
    desk.refused(&format!("{pack} --apart-from missing"), 2, "missing");
    desk.refused(&format!("{pack} --apart-from 1.sealift --base 1.sealift --trust signers"), 2, "--base");
    assert!(!desk.path("3.sealift").exists());
}
