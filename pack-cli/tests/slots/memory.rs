//! A delta to a slot takes what its root declares, and at most 64 MiB more, however large the image is.

use sealift_desk::{noise, peak_of};

use crate::desk::{MIB, Slots};

/// The image has several times what may be taken.
const LEN: usize = 168 * MIB;
const MORE: u64 = 64 << 20;

#[test]
fn a_delta_takes_what_is_declared() {
    let slots = Slots::new();
    // Noise that repeats far away, so that it is made fast; in the second version everything has another place.
    let content = noise(11, 24 * MIB).repeat(LEN / (24 * MIB));
    let mut next = b"moved".to_vec();
    next.extend(&content);
    for (version, content) in [(1, content), (2, next)] {
        slots.write(&format!("large-{version}/root.img"), content);
    }
    let pack = "--name os --key release --level 1 --chunk-size 1MiB --quiet";
    slots.good(&format!("pack large-1 -o large-1.sealift --bundle-version 1 {pack}"));
    slots.good(&format!(
        "pack large-2 -o large-2.sealift --bundle-version 2 {pack} --base large-1.sealift --trust signers"
    ));
    slots.does("unpack large-1.sealift image:a");
    for (bundle, more) in [("large-2.sealift", "--base image:a"), ("large-1.sealift", "--adopt --allow-downgrade")] {
        let info = slots.json(&format!("info {bundle} --trust signers --json"));
        let declared = info["cost"]["memory_bytes"].as_u64().unwrap();
        let peak = peak_of(
            &mut slots.command(&format!("unpack {bundle} image:b {more} --trust signers --quiet --progress none")),
        );
        assert!(peak > 0 && peak <= declared + MORE, "{bundle}: {} MiB, declared {} MiB", peak >> 20, declared >> 20);
        let wanted = if bundle == "large-2.sealift" { "large-2/root.img" } else { "large-1/root.img" };
        assert!(slots.read("b") == slots.read(wanted), "{bundle}");
    }
}
