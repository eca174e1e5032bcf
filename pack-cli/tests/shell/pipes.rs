//! A reader that closes the pipe early: lists end quietly, content fails to be written, and a verdict stays the same.

use std::fs;

use sealift_desk::{Desk, noise, told};

/// Returns the exit status of the first program of a pipeline, and its standard error.
fn first(desk: &Desk, line: &str) -> (Option<i32>, String) {
    told(&mut desk.shell(&format!("{line}; exit ${{PIPESTATUS[0]}}")))
}

/// Creates a tree whose listing exceeds the capacity of a pipe, and a target in which all files differ.
fn large() -> Desk {
    let desk = crate::new_desk();
    for number in 0..2000 {
        desk.write(&format!("os/a-name-of-some-length-so-that-they-are-many-bytes-in-all-{number}"), "content");
    }
    desk.write("os/large", noise(7, 1 << 20));
    desk.good("pack os -o os.sealift --name os --bundle-version 7 --key release --quiet");
    desk.good("unpack os.sealift tree --trust signers --quiet");
    for entry in fs::read_dir(desk.path("tree")).unwrap() {
        fs::write(entry.unwrap().path(), "other").unwrap();
    }
    desk
}

#[test]
fn a_verdict_stays_what_it_is() {
    let desk = large();
    for line in [
        "sealift audit tree --trust signers",
        "sealift audit tree --trust signers --json",
        "sealift diff os.sealift tree --exit-code",
        "sealift diff os.sealift tree --exit-code --json",
    ] {
        for reader in ["head -c 1", "head -1", "grep -q a", "true"] {
            let (status, said) = first(&desk, &format!("{line} | {reader}"));
            assert_eq!(status, Some(1), "{line} | {reader}: {said}");
        }
    }
    // The verdict of a sound bundle does not depend on its reader.
    assert_eq!(first(&desk, "sealift verify os.sealift --trust signers | true").0, Some(0));
    assert_ne!(first(&desk, "sealift verify os.sealift 2>&1 | true").0, Some(0));
    assert_eq!(first(&desk, "sealift diff os.sealift tree | head -1").0, Some(0));
}

#[test]
fn content_that_nobody_took_is_an_error() {
    let desk = large();
    for line in [
        "sealift pack os -o - --name os --level 1",
        "sealift cat os.sealift large --trust signers",
        "sealift request os -o -",
    ] {
        let (status, said) = first(&desk, &format!("{line} | true"));
        assert_eq!(status, Some(2), "{line}: {said}");
        assert!(said.contains("Broken pipe"), "{line}: {said}");
    }
    for line in ["sealift pack os -o - --name os --level 1", "sealift cat os.sealift large --trust signers"] {
        let (status, said) = first(&desk, &format!("{line} | head -c 100 >/dev/null"));
        assert_eq!(status, Some(2), "{line}: {said}");
    }
}

#[test]
fn lists_end_quietly() {
    let desk = large();
    for line in
        ["ls os.sealift", "ls --json os.sealift", "ls -l os.sealift", "info os.sealift", "--help", "completions bash"]
    {
        for reader in ["head -c 1 >/dev/null", "true"] {
            let (status, said) = first(&desk, &format!("sealift {line} | {reader}"));
            assert_eq!((status, said.as_str()), (Some(0), ""), "{line} | {reader}");
        }
    }
}
