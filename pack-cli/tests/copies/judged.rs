//! What is one bundle, and what is another; `verify` of copies.

use super::{Parts, bundle, damage, every_other, lengthen};

const TRUST: &str = "--trust signers --state state";

#[test]
fn verify_reads_all_of_every_copy() {
    let desk = bundle();
    let parts = Parts::of(&desk);
    damage(&desk, "a.sealift", &every_other(&parts, 0));
    damage(&desk, "b.sealift", &[&[&parts.head, &parts.index][..], &every_other(&parts, 1)].concat());
    for depth in ["", "--deep"] {
        let said = desk.good(&format!("verify b.sealift a.sealift {TRUST} {depth}"));
        for why in ["a.sealift: sound, os version 7", "with its copy b.sealift", "warning: a.sealift is damaged: "] {
            assert!(said.contains(why), "{why}: {said}");
        }
        // The index of the second was not needed.
        let said = desk.good(&format!("verify a.sealift b.sealift {TRUST} {depth} -v"));
        let damaged = [&parts.head, &parts.index].into_iter().chain(every_other(&parts, 1));
        let end = |end: usize| sealift_format::num::wide(end);
        for part in damaged {
            let last = format!("to {} differ", grouped(end(part.end - 1)));
            assert!(said.contains(&last), "{last}: {said}");
        }
    }
    // A copy that is not needed is judged alone.
    let said = desk.refused(&format!("verify a.sealift good.sealift {TRUST}"), 1, "a.sealift: chunk 0");
    assert!(said.contains("good.sealift: sound") && !said.contains("a.sealift: sound"), "{said}");
    damage(&desk, "c.sealift", &[&parts.chunks[0]]);
    let said = desk.refused(&format!("verify a.sealift c.sealift {TRUST}"), 1, "chunk 0");
    assert!(said.contains("c.sealift is damaged"), "{said}");
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group));
    groups.collect::<Vec<_>>().join(",")
}

/// Which of them is trusted is a matter of each.
#[test]
fn verify_judges_other_signatures_apart() {
    let desk = bundle();
    lengthen(&desk, "long.sealift");
    desk.good("pack tree -o unsigned.sealift --name os --bundle-version 7 --chunk-size 64KiB");
    let (status, said) = desk.run(&format!("verify good.sealift long.sealift unsigned.sealift {TRUST}"));
    assert!(status == Some(3) && said.matches(": sound").count() == 2, "{said}");
    // What an unsigned copy holds is checked by the digests of the signed one.
    let parts = Parts::of(&desk);
    damage(&desk, "a.sealift", &every_other(&parts, 0));
    desk.good(&format!("unpack unsigned.sealift a.sealift t {TRUST}"));
    desk.assert_same("tree", "t");
    desk.refused(&format!("unpack unsigned.sealift t2 {TRUST}"), 3, "");
}

#[test]
fn another_bundle_is_no_copy() {
    let desk = bundle();
    desk.write("tree/0", "other");
    desk.good("pack tree -o other.sealift --name os --bundle-version 8 --key release --chunk-size 64KiB");
    let parts = Parts::of(&desk);
    damage(&desk, "a.sealift", &[&parts.chunks[0]]);
    let said = desk.good(&format!("unpack a.sealift other.sealift t {TRUST}"));
    assert!(said.contains("passed over a.sealift: other.sealift is newer"), "{said}");
    // A damaged head alone does not make a copy of it.
    let mut junk = desk.read("good.sealift");
    junk.fill(7);
    desk.write("junk.sealift", junk);
    desk.says(&format!("unpack good.sealift junk.sealift u {TRUST} --allow-downgrade"), "passed over junk.sealift: ");
}
