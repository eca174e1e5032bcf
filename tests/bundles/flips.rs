//! Any modification of a signed bundle is rejected: every changed byte, every truncation, every added byte.

use sealift::Input;
use sealift_format::Opened;
use sealift_tests::bundle::{Bundle, Packing};
use sealift_tests::keys::Key;
use sealift_tests::reader::{Portions, is_trusted, judge, read};
use sealift_tests::tree::{dir, file, paint, symlink};
use sealift_tests::vector::{Check, Trust, load};

/// Returns a signed bundle with a group, pieces, a hole, and optionally raw chunks.
fn signed(raw: bool) -> Vec<u8> {
    let mut holey = vec![0; 16 * 4096];
    holey.extend(b"end");
    let tree = dir([("a", file("one\n")), ("b", file(paint(1, 5000))), ("c", file(holey)), ("l", symlink("a"))]);
    let bundle = Bundle::new(&[("main", tree)], Packing { raw, ..Packing::default() });
    bundle.signed_by(&[Key::Ed25519(1)]).encode()
}

fn trust() -> Trust {
    Trust { signers: vec![Key::Ed25519(1).allowed("test")], ..Trust::default() }
}

/// Verifies a file with these bytes, without checking objects.
fn verifies(bytes: &[u8], folder: &std::path::Path) -> bool {
    let path = folder.join("bundle");
    std::fs::write(&path, bytes).expect("there is room");
    read(Input::open(&path).expect("it was written"), Check::Verify, Some(&trust())).is_ok()
}

fn verifies_from_a_pipe(bytes: &[u8]) -> bool {
    read(Input::pipe("pipe", Box::new(Portions::new(bytes, &[4096]))), Check::Verify, Some(&trust())).is_ok()
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

#[test]
fn it_is_taken_as_it_is() {
    let folder = folder();
    for raw in [false, true] {
        let good = signed(raw);
        assert!(verifies(&good, folder.path()));
        assert!(verifies_from_a_pipe(&good));
        let opened = read(Input::pipe("pipe", Box::new(Portions::new(&good, &[1]))), Check::Deep, None).expect("sound");
        assert!(is_trusted(&judge(opened.head(), Some(&trust())).expect("trusted")));
    }
}

#[test]
fn every_changed_byte_is_found() {
    let folder = folder();
    let good = signed(false);
    let mut bad = good.clone();
    for at in 0..good.len() {
        for flip in [1, 0x80] {
            bad[at] ^= flip;
            assert!(!verifies_from_a_pipe(&bad), "byte {at} ^ {flip:#x}, from a pipe");
            bad[at] ^= flip;
        }
        bad[at] ^= 1;
        assert!(!verifies(&bad, folder.path()), "byte {at}");
        bad[at] ^= 1;
    }
    assert_eq!(bad, good);
}

#[test]
fn every_cut_is_found() {
    let folder = folder();
    let good = signed(false);
    for len in 0..good.len() {
        assert!(!verifies(&good[..len], folder.path()), "cut to {len} bytes");
        assert!(!verifies_from_a_pipe(&good[..len]), "cut to {len} bytes, from a pipe");
    }
}

#[test]
fn an_added_byte_is_found() {
    let folder = folder();
    let good = signed(false);
    for at in 0..=good.len() {
        let mut bad = good.clone();
        // Inserting a byte equal to its neighbour still shifts everything after it.
        bad.insert(at, good.get(at).copied().unwrap_or(0));
        assert!(!verifies_from_a_pipe(&bad), "a byte added at {at}, from a pipe");
    }
    assert!(!verifies(&[&good[..], &[0]].concat(), folder.path()));
}

/// The bundle has no bases and no signature: the BLAKE3 of the area covers the head.
#[test]
fn every_changed_byte_of_a_delta_bundle_is_found() {
    let names = ["good-delta", "good-delta-suffix", "good-delta-ostree", "good-delta-recipes"];
    for vector in load().iter().filter(|vector| names.contains(&vector.name.as_str())) {
        let verifies = |bytes: &[u8]| {
            let opened = read(Input::pipe("pipe", Box::new(Portions::new(bytes, &[4096]))), Check::Verify, None);
            opened.is_ok_and(|opened| matches!(opened, Opened::Delta(_)))
        };
        assert!(verifies(&vector.bytes), "{}", vector.name);
        let mut bad = vector.bytes.clone();
        for at in 0..bad.len() {
            for flip in [1, 0x80] {
                bad[at] ^= flip;
                assert!(!verifies(&bad), "{}: byte {at} ^ {flip:#x}", vector.name);
                bad[at] ^= flip;
            }
        }
    }
}
