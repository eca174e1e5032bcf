//! Bundles with a sound index that is wrong about OSTree's objects: the vectors, read by the program.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;

use sealift_desk::{can_chown, noise, out, text};

use crate::repos::{MODES, Repos, plain_tree, write};

const ROOT: &[&str] = &["--owner-uid=0", "--owner-gid=0"];

/// A vector's name, the expected kind of failure, and the bundle.
type Crafted = (String, String, Vec<u8>);

/// Returns the vectors whose objects must be read, by the beginnings of their names.
fn vectors(starts: &[&str]) -> Vec<Crafted> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../spec/vectors");
    let files = fs::read_dir(folder).expect("it can be listed").map(|file| file.expect("a file").path());
    let mut found: Vec<Crafted> = Vec::new();
    for path in files {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let vector = fs::read(&path).expect("it can be read");
        let end = vector.windows(2).position(|pair| pair == b"\n\n");
        let (Some(end), true) = (end, starts.iter().any(|start| name.starts_with(start))) else { continue };
        let header = text(&vector[..end]);
        let expect = header.lines().find_map(|line| line.strip_prefix("expect: ")).expect("each has one");
        if !header.contains("\ncheck: ") {
            found.push((name, expect.to_owned(), vector[end + 2..].to_vec()));
        }
    }
    found.sort();
    found
}

/// Creates a repository that has a commit under the names of the vectors' refs.
fn desk(mode: &str) -> Repos {
    let desk = Repos::new();
    fs::create_dir(desk.path("tree")).expect("a folder");
    write(&desk.path("tree/file"), 0o644, b"as it was");
    desk.init("target", mode);
    desk.commit("target", "main", "./tree", ROOT);
    desk.ostree("target", &["refs", "--create=os/stable", "main"]);
    desk
}

/// Checks that sealift refuses the line because of a fault of this kind in the bundle.
fn is_refused(desk: &Repos, line: &str, input: Stdio, kind: &str) -> String {
    let output = desk.command(line).stdin(input).output().expect("sealift runs");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{line}: {said}");
    let said: serde_json::Value = serde_json::from_str(said.lines().last().expect("a line")).expect("it is JSON");
    assert_eq!(said["error"]["kind"], kind, "{line}: {said}");
    said["error"]["message"].as_str().expect("a text").to_owned()
}

/// The vectors that are wrong about OSTree's objects.
const WRONG: &[&str] = &["ostree-", "piece-chunks-descend", "index-ref-"];

#[test]
fn what_is_wrong_is_not_sound() {
    let desk = Repos::new();
    for (_, kind, bytes) in vectors(WRONG) {
        fs::write(desk.path("os.sealift"), bytes).expect("there is room");
        for jobs in [1, 4] {
            for input in ["os.sealift", "-"] {
                let opened = File::open(desk.path("os.sealift")).expect("a bundle");
                let line = format!("verify {input} --deep --jobs {jobs} --allow-unsigned --json");
                is_refused(&desk, &line, opened.into(), &kind);
            }
        }
    }
}

#[test]
fn what_is_wrong_is_not_taken() {
    for mode in MODES.iter().filter(|mode| **mode != "bare" || can_chown()) {
        let desk = desk(mode);
        let before = desk.snapshot("target");
        for (name, kind, bytes) in vectors(WRONG) {
            fs::write(desk.path("os.sealift"), bytes).expect("there is room");
            let said =
                is_refused(&desk, "unpack os.sealift ostree:target --allow-unsigned --json", Stdio::null(), &kind);
            if kind == "object" {
                desk.run("verify os.sealift --allow-unsigned");
                assert!(said.contains("os.sealift: OSTree file "), "{name}: {said}");
            }
            // Sound objects wait for another copy of the bundle.
            desk.run("clean ostree:target");
            desk.is_as(&before, "target", &name);
        }
        desk.fsck("target");
    }
}

#[test]
fn what_is_right_is_sound_and_taken() {
    for mode in ["bare", "bare-user", "archive"].iter().filter(|mode| **mode != "bare" || can_chown()) {
        let desk = desk(mode);
        for (name, _, bytes) in vectors(&["good-ostree"]) {
            fs::write(desk.path("os.sealift"), bytes).expect("there is room");
            desk.run("verify os.sealift --deep --allow-unsigned");
            desk.import("os.sealift", "target");
            desk.fsck("target");
            assert!(desk.ostree("target", &["refs"]).lines().count() >= 2, "{name}");
        }
    }
}

/// Writes the files for [`large_files_are_hashed_in_order`]: seven pieces of two kinds, twice, and one of each.
fn write_pieces(tree: &Path) {
    let [a, b] = [noise(11, 65_536), noise(12, 65_536)];
    let apart: Vec<u8> = [&a, &a, &b, &a, &b, &b, &a].into_iter().flatten().copied().collect();
    write(&tree.join("apart"), 0o644, &apart);
    write(&tree.join("apart-again"), 0o755, &apart);
    write(&tree.join("behind"), 0o644, &[&b[..], &a].concat());
}

/// Equal pieces are stored once, except that those of a commit are stored again if their order requires it.
#[test]
fn equal_pieces() {
    let desk = Repos::new();
    fs::create_dir(desk.path("tree")).expect("a folder");
    write_pieces(&desk.path("tree"));
    desk.init("source", "bare-user");
    desk.commit("source", "os", "./tree", ROOT);
    for (sources, chunks) in [("tree", 2), ("ostree:source", 5), ("plain=tree ostree:source", 5)] {
        desk.run(&format!("pack --force {sources} -o os.sealift --chunk-size 64K"));
        let info = desk.json("info os.sealift --json");
        assert_eq!(info["contents"]["chunks"], chunks, "{sources}");
        desk.run("verify os.sealift --deep --allow-unsigned");
    }
}

/// With equal pieces that are far apart, holes, and contents that a directory has too, bytes arrive in order, whatever the threads do.
#[test]
fn large_files_are_hashed_in_order() {
    let desk = Repos::new();
    plain_tree(&desk.path("tree"));
    write_pieces(&desk.path("tree"));
    desk.init("source", "bare-user");
    desk.commit("source", "os", "./tree", ROOT);
    desk.run("pack --force plain=tree ostree:source -o os.sealift --chunk-size 64K");
    for jobs in [1, 2, 8] {
        for input in ["os.sealift", "-"] {
            let opened = File::open(desk.path("os.sealift")).expect("a bundle");
            let mut command = desk.command(&format!("verify {input} --deep --jobs {jobs} --allow-unsigned"));
            out(command.stdin(opened));
        }
    }
    desk.init_with("target", "bare-user-only", "os.sealift");
    desk.fsck("target");
    assert_eq!(desk.listed("target", "os"), desk.listed("source", "os"));

    // No thread waits for a damaged piece.
    let good = fs::read(desk.path("os.sealift")).expect("a bundle");
    for part in 2..8 {
        let mut bytes = good.clone();
        bytes[good.len() / 8 * part] ^= 1;
        fs::write(desk.path("bad.sealift"), bytes).expect("there is room");
        is_refused(&desk, "verify bad.sealift --deep --jobs 8 --allow-unsigned --json", Stdio::null(), "chunk");
    }
}
