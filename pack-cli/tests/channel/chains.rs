//! Several deltas in one run, from a stick without a list.

use crate::{has, new_desk, pack};

const TAKE: &str = "unpack stick target --update --delete --trust signers";

/// Makes a stick with version 1, and deltas from each version to the next.
fn stick(desk: &sealift_desk::Desk, last: u32) {
    std::fs::create_dir(desk.path("stick")).unwrap();
    for version in 1..=last {
        pack(desk, version, "");
        let more = format!("--base full-{}.sealift", version - 1);
        std::fs::rename(desk.path(&format!("os-{version}.sealift")), desk.path(&format!("full-{version}.sealift")))
            .unwrap();
        if version > 1 {
            pack(desk, version, &more);
            let delta = desk.path(&format!("stick/d{version}.sealift"));
            std::fs::rename(desk.path(&format!("os-{version}.sealift")), delta).unwrap();
        }
    }
    std::fs::copy(desk.path("full-1.sealift"), desk.path("stick/base.sealift")).unwrap();
}

#[test]
fn a_stick_is_walked_to_the_newest() {
    let desk = new_desk();
    stick(&desk, 4);
    desk.good("unpack full-1.sealift target --trust signers");
    let plan = desk.good(&format!("{TAKE} --dry-run"));
    assert!(plan.contains("would take 3 bundles"), "{plan}");
    desk.good(TAKE);
    assert_eq!(has(&desk, "target"), "version 4");
    // A new target of another device begins with the base.
    let said = desk.good("unpack stick new --trust signers --state elsewhere");
    assert!(said.contains("new: unpacked from stick/base.sealift"), "{said}");
    assert_eq!(has(&desk, "new"), "version 4");
    desk.assert_same("target", "new");
}

#[test]
fn a_chain_without_a_link_ends_before_it() {
    let desk = new_desk();
    stick(&desk, 4);
    desk.good("unpack full-1.sealift target --trust signers");
    std::fs::remove_file(desk.path("stick/d3.sealift")).unwrap();
    desk.good(TAKE);
    assert_eq!(has(&desk, "target"), "version 2");
}
