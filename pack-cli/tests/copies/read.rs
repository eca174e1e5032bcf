//! Each part is read from a copy that has it whole, and what is damaged is told.

use serde_json::Value;

use super::{Parts, bundle, damage, every_other, lengthen};

const TRUST: &str = "--trust signers --state state";

/// Returns the JSON objects of this name among the lines.
fn told(said: &str, name: &str) -> Vec<Value> {
    let lines = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter_map(|line| line.get(name).cloned()).collect()
}

#[test]
fn two_damaged_copies_are_one_good_source() {
    let desk = bundle();
    let parts = Parts::of(&desk);
    damage(&desk, "a.sealift", &[&[&parts.layout][..], &every_other(&parts, 0)].concat());
    damage(&desk, "b.sealift", &[&[&parts.index][..], &every_other(&parts, 1)].concat());
    for copy in ["a", "b"] {
        desk.refused(&format!("unpack {copy}.sealift alone {TRUST}"), 1, "");
    }
    let said = desk.good(&format!("unpack a.sealift b.sealift t {TRUST} --json"));
    desk.assert_same("tree", "t");
    let copies = told(&said, "copy");
    assert_eq!(copies.len(), 2, "{said}");
    for (copy, (name, part, first)) in copies.iter().zip([("a", &parts.layout, 0), ("b", &parts.index, 1)]) {
        assert_eq!(copy["path"], format!("{name}.sealift"), "{said}");
        let damaged: Vec<(u64, u64, bool)> = copy["damaged"]
            .as_array()
            .unwrap()
            .iter()
            .map(|range| {
                let bytes = |end: &str| range[end].as_u64().unwrap();
                (bytes("start"), bytes("end"), range["unreadable"].as_bool().unwrap())
            })
            .collect();
        let expected = [part].into_iter().chain(every_other(&parts, first));
        let is_expected = |part: &&std::ops::Range<usize>| {
            damaged.contains(&(part.start.try_into().unwrap(), part.end.try_into().unwrap(), false))
        };
        let missing: Vec<_> = expected.filter(|part| !is_expected(part)).collect();
        // The second copy is read only where the first is damaged.
        let read = if name == "a" { 0 } else { missing.len() };
        assert_eq!(missing.len(), read, "{missing:?}: {said}");
    }
    let bytes: u64 = copies.iter().map(|copy| copy["read_bytes"].as_u64().unwrap()).sum();
    assert_eq!(bytes, parts.chunks.iter().map(|chunk| u64::try_from(chunk.len()).unwrap()).sum::<u64>(), "{said}");

    let said = desk.good(&format!("unpack a.sealift b.sealift other {TRUST}"));
    assert!(said.contains("warning: a.sealift is damaged: bytes "), "{said}");
}

#[test]
fn a_good_copy_is_all_that_is_read() {
    let desk = bundle();
    let parts = Parts::of(&desk);
    damage(&desk, "b.sealift", &every_other(&parts, 0));
    let said = desk.good(&format!("unpack good.sealift b.sealift t {TRUST} --json"));
    let copies = told(&said, "copy");
    assert_eq!((copies[0]["damaged"].as_array().unwrap().len(), &copies[1]["read_bytes"]), (0, &0.into()), "{said}");
    desk.assert_same("tree", "t");
}

#[test]
fn copies_on_a_stick_are_found_whatever_is_damaged() {
    let desk = bundle();
    let parts = Parts::of(&desk);
    // A cut copy, one that is too long, and one with a damaged head.
    let mut bytes = desk.read("good.sealift");
    bytes.truncate(parts.chunks[2].start + 5);
    desk.write("stick/cut.sealift", &bytes);
    damage(&desk, "stick/head.sealift", &[&[&parts.head][..], &every_other(&parts, 0)].concat());
    damage(&desk, "stick/long.sealift", &every_other(&parts, 1));
    let long = [desk.read("stick/long.sealift"), b"more".to_vec()].concat();
    desk.write("stick/long.sealift", long);
    let said = desk.good(&format!("unpack stick t {TRUST}"));
    desk.assert_same("tree", "t");
    for copy in ["cut", "head", "long"] {
        assert!(said.contains(&format!("warning: stick/{copy}.sealift is damaged: ")), "{copy}: {said}");
    }
    assert!(!said.contains("passed over"), "{said}");
}

#[test]
fn signature_areas_may_differ_in_length() {
    let desk = bundle();
    let parts = Parts::of(&desk);
    let by = lengthen(&desk, "long.sealift");
    let mut long = desk.read("long.sealift");
    every_other(&parts, 0).iter().for_each(|chunk| long[chunk.start + by] ^= 1);
    desk.write("long.sealift", long);
    damage(&desk, "b.sealift", &every_other(&parts, 1));
    for (target, order) in [("t", "b.sealift long.sealift"), ("u", "long.sealift b.sealift")] {
        desk.good(&format!("unpack {order} {target} {TRUST}"));
        desk.assert_same("tree", target);
    }
}

#[test]
fn what_the_system_cannot_read_comes_from_another_copy() {
    let desk = bundle();
    let parts = Parts::of(&desk);
    damage(&desk, "b.sealift", &[&parts.chunks[0]]);
    std::fs::copy(desk.path("good.sealift"), desk.path("a.sealift")).unwrap();
    let a = desk.path("a.sealift");
    // The first reads are those that choose among the bundles.
    for (number, when) in ["4+2", "7", "8+3", "9..30", "12"].iter().enumerate() {
        let fail = format!("inject=pread64:error=EIO:when={when}");
        let options = ["-P", a.to_str().unwrap(), "-e", "trace=pread64", "-e", &fail];
        let line = format!("unpack {} good.sealift t-{number} {TRUST} --jobs 1 --json", a.display());
        let Some(mut run) = desk.strace(&options, &line) else { return };
        let (status, said) = sealift_desk::told(&mut run);
        assert_eq!(status, Some(0), "{when}: {said}");
        assert!(said.contains(r#""unreadable":true"#), "{when}: {said}");
        desk.assert_same("tree", &format!("t-{number}"));
    }
}

#[test]
fn a_chunk_that_no_copy_has_is_an_error() {
    let desk = bundle();
    let parts = Parts::of(&desk);
    damage(&desk, "a.sealift", &every_other(&parts, 0));
    damage(&desk, "b.sealift", &[&parts.chunks[4]]);
    let said = desk.refused(&format!("unpack a.sealift b.sealift t {TRUST}"), 1, "chunk 4");
    assert!(said.contains("a.sealift is damaged") && said.contains("b.sealift is damaged"), "{said}");
    assert!(!desk.path("t").exists(), "{said}");
}
