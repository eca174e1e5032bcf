//! An import that was interrupted goes on with the objects that it has, and reads only what is missing.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::PathBuf;

use sealift_desk::{can_chown, noise};

use crate::repos::{MODES, Repos, full_tree, plain_tree, write};

const TRUST: &str = "--allow-unsigned";

/// A repository `source` with many files, and its bundle.
fn packed(mode: &str) -> Repos {
    let desk = Repos::new();
    let tree = if mode == "bare" { full_tree } else { plain_tree };
    tree(&desk.path("tree"));
    (0..150).for_each(|number| {
        let bits = [0o644, 0o755, 0o600][number % 3];
        write(&desk.path(&format!("tree/usr/f{number:03}")), bits, &noise(number, 20_000));
    });
    desk.init("source", "archive");
    let owners = ["--owner-uid=0", "--owner-gid=0"];
    desk.commit("source", "os", "./tree", if mode == "bare" { &[] } else { &owners });
    desk.run("pack --force ostree:source -o os.sealift --name os --bundle-version 1 --chunk-size 64KiB");
    desk
}

/// Kills an import into the new repository `target` when it has this share of the bundle.
fn kill_amid(desk: &Repos, mode: &str, percent: usize) {
    desk.init("target", mode);
    let bytes = desk.read("os.sealift");
    desk.kill_amid(&format!("unpack - ostree:target {TRUST}"), &bytes[..bytes.len() * percent / 100], "target/tmp");
}

/// Returns the files in the stages of killed runs.
fn staged(desk: &Repos) -> Vec<PathBuf> {
    let is_staged = |path: &PathBuf| {
        let name = path.to_string_lossy();
        name.contains("/staging-") && (name.ends_with(".file") || name.ends_with(".filez"))
    };
    desk.snapshot("target").into_keys().filter(is_staged).collect()
}

#[test]
fn a_killed_import_goes_on() {
    for mode in MODES.iter().filter(|mode| **mode != "bare" || can_chown()) {
        let desk = packed(mode);
        desk.init("whole", mode);
        let unpack = format!("unpack os.sealift ostree:target {TRUST} --json");
        let Some(fresh) = desk.bytes_read("os.sealift", &unpack.replace("target", "whole")) else { return };
        kill_amid(&desk, mode, 60);
        assert!(desk.try_ostree("target", &["rev-parse", "os"]).is_err(), "{mode}");
        assert!(!staged(&desk).is_empty());
        assert!(desk.run("status ostree:target").contains("incomplete: repeat the command"), "{mode}");

        let dry = desk.json(&format!("{unpack} --dry-run"));
        let resumed = dry["resumed_objects"].as_u64().unwrap_or(0);
        assert!(resumed > 50, "{mode}: {dry}");
        let read = desk.bytes_read("os.sealift", &format!("{unpack} -q")).expect("there is strace");
        assert!(read * 10 < fresh * 6, "{mode}: {read} bytes of {fresh}");
        assert!(read >= dry["stored_bytes"].as_u64().expect("it is there"), "{mode}: {read} {dry}");
        desk.fsck("target");
        assert_eq!(desk.files("target"), desk.files("whole"), "{mode}");
        assert_eq!(desk.listed("target", "os"), desk.listed("whole", "os"), "{mode}");
        for path in desk.files("whole").into_iter().filter(|path| path.starts_with("objects")) {
            let stat = |repo: &str| fs::symlink_metadata(desk.path(repo).join(&path)).expect("it is there");
            let kept = |repo: &str| {
                let stat = stat(repo);
                let time = (*mode != "archive").then(|| stat.modified().expect("it has one"));
                (stat.permissions().mode(), time.filter(|_| path.extension().is_some_and(|end| end == "file")))
            };
            assert!(stat("whole").is_symlink() || kept("target") == kept("whole"), "{mode}: {}", path.display());
        }
    }
}

#[test]
fn the_report_says_what_was_reused() {
    let desk = packed("archive");
    kill_amid(&desk, "archive", 60);
    let count = staged(&desk).len();
    let dry = desk.run(&format!("unpack os.sealift ostree:target {TRUST} --dry-run"));
    assert!(dry.contains("would reuse "), "{dry}");
    assert_eq!(staged(&desk).len(), count, "a dry run takes nothing away");
    let said = desk.run(&format!("unpack os.sealift ostree:target {TRUST}"));
    assert!(said.contains("reused "), "{said}");
    let said = desk.run(&format!("unpack os.sealift ostree:target {TRUST}"));
    assert!(!said.contains("reused"), "{said}");
}

/// What is not whole, or not as it was signed, is imported again.
#[test]
fn only_whole_objects_are_taken() {
    for mode in MODES.iter().filter(|mode| **mode != "bare" || can_chown()) {
        let desk = packed(mode);
        kill_amid(&desk, mode, 60);
        let left = staged(&desk);
        let large: Vec<_> = left.iter().filter(|path| fs::metadata(path).is_ok_and(|stat| stat.len() > 9000)).collect();
        let open = |number: usize| File::options().write(true).open(large[number]).expect("it is ours");
        open(0).set_len(5000).expect("it can be cut");
        open(1).write_all_at(b"other", 7000).expect("there is room");
        open(2).set_len(0).expect("it can be cut");
        fs::rename(large[3], large[4]).expect("it is ours");
        fs::remove_file(large[5]).expect("it is ours");
        std::os::unix::fs::symlink("/etc/passwd", large[5]).expect("a link");
        // No checksum covers these bits everywhere.
        fs::set_permissions(large[6], fs::Permissions::from_mode(0o400)).expect("it is ours");
        let done = desk.import("os.sealift", "target");
        let resumed = done["resumed_objects"].as_u64().expect("it is there");
        let count = u64::try_from(left.len()).expect("few");
        assert!((count - 8..=count - 6).contains(&resumed), "{mode}: {resumed} of {count}: {done}");
        desk.fsck("target");
        desk.init_with("whole", mode, "os.sealift");
        assert_eq!(desk.files("target"), desk.files("whole"), "{mode}");
        assert_eq!(desk.listed("target", "os"), desk.listed("whole", "os"), "{mode}");
    }
}

#[test]
fn after_a_bad_copy_a_good_one_is_read_only_where_it_is_needed() {
    let desk = packed("archive");
    let mut bytes = desk.read("os.sealift");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    desk.write("bad.sealift", bytes);
    desk.init("target", "archive");
    desk.init("whole", "archive");
    let unpack = format!("unpack os.sealift ostree:target {TRUST}");
    let Some(fresh) = desk.bytes_read("os.sealift", &unpack.replace("target", "whole")) else { return };
    let said = desk.refused(&unpack.replace("os.sealift", "bad.sealift --jobs 1"));
    let clean = "repeat the command with a good copy to resume, or discard it: sealift clean ostree:target";
    assert!(said.contains(clean), "{said}");
    let read = desk.bytes_read("os.sealift", &unpack).expect("there is strace");
    assert!(read * 10 < fresh * 7, "{read} bytes of {fresh}");
    desk.fsck("target");
    assert_eq!(desk.files("target"), desk.files("whole"));
}

#[test]
fn what_is_left_can_be_discarded() {
    let desk = packed("archive");
    kill_amid(&desk, "archive", 60);
    assert!(desk.run("clean ostree:target").contains("discarded an unfinished run"));
    assert!(staged(&desk).is_empty());
    assert!(desk.run("clean ostree:target").contains("nothing to clean"));
    let done = desk.import("os.sealift", "target");
    assert_eq!(done["resumed_objects"], 0);

    // The import of another bundle removes what it does not want.
    fs::create_dir(desk.path("other")).expect("a new folder");
    write(&desk.path("other/file"), 0o644, b"of another bundle");
    desk.init("small", "archive");
    desk.commit("small", "app", "./other", &[]);
    desk.run("pack --force ostree:small -o app.sealift --name app --bundle-version 1");
    fs::remove_dir_all(desk.path("target")).expect("it is ours");
    kill_amid(&desk, "archive", 60);
    assert_eq!(desk.import("app.sealift", "target")["resumed_objects"], 0);
    assert!(staged(&desk).is_empty());
}

/// libostree takes nothing in a stage for an object, and a prune or a commit meanwhile does no harm.
#[test]
fn libostree_works_beside_what_is_left() {
    let desk = packed("archive");
    kill_amid(&desk, "archive", 60);
    desk.ostree("target", &["prune", "--refs-only"]);
    desk.fsck("target");
    fs::create_dir(desk.path("other")).expect("a new folder");
    write(&desk.path("other/file"), 0o644, b"of another commit");
    desk.commit("target", "other", "./other", &[]);
    desk.import("os.sealift", "target");
    desk.fsck("target");
    assert_eq!(desk.listed("target", "os"), desk.listed("source", "os"));
    desk.ostree("target", &["prune", "--refs-only"]);
    desk.fsck("target");
}
