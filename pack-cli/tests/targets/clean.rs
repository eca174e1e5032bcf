//! `sealift clean`: finds what killed runs left, and leaves alone what a running one needs.

use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use sealift_desk::{Desk, program, skipped, told};

/// Creates a desk with a bundle.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.write("tree/file", vec![7; 100_000]);
    desk.good("pack tree -o b.sealift --name os --bundle-version 1 --quiet");
    desk
}

/// Leaves a stage, as does a run whose pipe breaks.
fn begin_unpacking(desk: &Desk, target: &str) {
    let cut = desk.path("cut.sealift");
    let bytes = desk.read("b.sealift");
    fs::write(&cut, &bytes[..bytes.len() - 1]).expect("there is room");
    let line = format!("unpack - {target} --allow-unsigned");
    let (_, said) = told(desk.command(&line).stdin(File::open(cut).expect("it is there")));
    assert!(said.contains("progress was saved: repeat the command to resume"), "{said}");
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[test]
fn what_a_killed_signing_left() {
    let desk = desk();
    let partial = desk.path(".b.sealift.sealift-sign-partial");
    fs::write(&partial, "a copy").expect("there is room");
    let bundle = File::open(desk.path("b.sealift")).expect("it is there");
    bundle.lock().expect("nobody has it");
    desk.refused("clean b.sealift", 2, "another sealift run is using");
    assert!(exists(&partial));
    drop(bundle);
    desk.says("clean b.sealift", "removed 1 unfinished bundle");
    assert!(!exists(&partial));
    desk.says("clean b.sealift", "nothing to clean");
}

#[test]
fn signing_removes_what_a_killed_signing_left() {
    let desk = desk();
    let partial = desk.path(".b.sealift.sealift-sign-partial");
    desk.good("key generate -o key --quiet");
    // The second time, nothing has to be written.
    for _ in 0..2 {
        fs::write(&partial, "a copy").expect("there is room");
        desk.good("sign b.sealift --name os --bundle-version 1 --key key");
        assert!(!exists(&partial));
    }
}

#[test]
fn a_bundle_that_is_being_packed_is_left_alone() {
    let desk = desk();
    let spool = File::create(desk.path(".b.sealift.123.sealift-partial")).expect("there is room");
    spool.lock().expect("nobody has it");
    desk.refused("clean b.sealift", 2, "another sealift run is using .b.sealift.123.sealift-partial");
    desk.refused("clean b.sealift --json", 2, r#"{"error":{"kind":"busy","#);
    drop(spool);
    // A child of another test keeps it open between fork and exec.
    File::open(desk.path(".b.sealift.123.sealift-partial")).expect("it is there").lock().expect("it is left soon");
    desk.says("clean b.sealift", "removed 1 unfinished bundle");
}

#[test]
fn two_runs_do_not_share_a_target() {
    let desk = desk();
    begin_unpacking(&desk, "target");
    let stage = File::open(desk.path(".target.sealift-partial")).expect("it is there");
    stage.lock().expect("nobody has it");
    let unpack = "unpack b.sealift target --allow-unsigned";
    desk.refused(unpack, 2, "another sealift run is using .target.sealift-partial");
    desk.refused(&format!("{unpack} --json"), 2, r#"{"error":{"kind":"busy","#);
    assert!(!desk.run(unpack).1.contains("progress was saved"), "it is not ours");
    desk.refused("clean target", 2, "another sealift run is using");
    drop(stage);
    desk.good(unpack);
}

#[test]
fn two_runs_at_once() {
    let desk = desk();
    let bytes = fs::read(desk.path("b.sealift")).expect("it was packed");
    let (most, last) = bytes.split_at(bytes.len() - 1);
    let mut first = desk.command("unpack - target --allow-unsigned --quiet").stdin(Stdio::piped()).spawn();
    let first = first.as_mut().expect("sealift runs");
    let mut pipe = first.stdin.take().expect("it is piped");
    pipe.write_all(most).expect("it reads");
    let stage = desk.path(".target.sealift-partial/tree");
    while !exists(&stage) {
        assert!(first.try_wait().expect("it is our child").is_none(), "it ended");
        std::thread::sleep(Duration::from_millis(5));
    }
    desk.refused("unpack b.sealift target --allow-unsigned --json", 2, r#"{"error":{"kind":"busy","#);
    desk.refused("clean target", 2, "another sealift run is using .target.sealift-partial");
    pipe.write_all(last).expect("it reads");
    drop(pipe);
    assert!(first.wait().expect("it ends").success() && exists(&desk.path("target/file")));
}

#[test]
fn a_state_without_a_tree_goes() {
    let desk = desk();
    let state = desk.path(".target.sealift-state");
    // As after a run whose last rename failed.
    begin_unpacking(&desk, "target");
    fs::create_dir(&state).expect("a new folder");
    fs::create_dir(desk.path("target")).expect("a new folder");
    desk.good("clean target");
    assert!(!exists(&state) && exists(&desk.path("target")));
    // As after a user has removed the tree.
    desk.good("unpack b.sealift target --allow-unsigned");
    fs::remove_dir_all(desk.path("target")).expect("it is ours");
    assert!(exists(&state));
    let said = desk.good("clean target");
    assert!(
        said.contains("removed the install record of a tree that is gone") && !said.contains("unfinished"),
        "{said}"
    );
    assert!(!exists(&state));
    desk.says("clean target", "nothing to clean");
}

#[test]
fn a_damaged_update_of_a_tree_that_is_gone() {
    let desk = desk();
    for is_there in [true, false] {
        begin_unpacking(&desk, "target");
        let stage = desk.path(".target.sealift-partial");
        fs::create_dir_all(desk.path("target")).expect("a folder");
        let inode = fs::metadata(desk.path("target")).expect("it is there").ino();
        fs::write(stage.join("journal"), format!("keep {inode}\n")).expect("there is room");
        fs::create_dir(stage.join("state")).expect("a new folder");
        fs::write(desk.path("target/file"), "of somebody").expect("there is room");
        if is_there {
            desk.refused("clean target", 1, "has files of two bundles");
        }
        fs::remove_dir_all(desk.path("target")).expect("it is ours");
        assert!(is_there || desk.good("clean target").contains("discarded an unfinished run"));
    }
}

#[test]
fn what_is_no_place_is_refused() {
    let desk = desk();
    desk.refused("clean -", 2, "standard input");
    desk.refused("clean ostree:repo", 2, "no such target, on disk or in the list");
    fs::create_dir(desk.path("repo")).expect("a new folder");
    desk.says("clean ostree:repo", "nothing to clean");
}

#[test]
fn the_directory_that_one_stands_in() {
    let desk = desk();
    desk.good("unpack b.sealift target --allow-unsigned");
    let within = |line: &str| desk.command(line).current_dir(desk.path("target")).output().expect("sealift runs");
    assert!(within("unpack ../b.sealift . --update --allow-unsigned").status.success());
    assert!(within("clean .").status.success());
    fs::remove_file(desk.path("target/file")).expect("it is ours");
    let refused = within("unpack ../b.sealift . --allow-unsigned");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        refused.status.code() == Some(2) && said.contains(". is the working directory, and cannot be replaced"),
        "{said}"
    );
}

#[test]
fn what_others_put_in_our_place() {
    let desk = desk();
    let unpack = "unpack b.sealift target --allow-unsigned";
    let stage = desk.path(".target.sealift-partial");
    symlink("tree", &stage).expect("it can be made");
    desk.refused(unpack, 2, ".target.sealift-partial is a symbolic link, which is not followed; choose another");
    assert!(!desk.run(unpack).1.contains("progress was saved"));
    fs::remove_file(&stage).expect("it is ours");
    fs::create_dir(&stage).expect("a new folder");
    fs::set_permissions(&stage, Permissions::from_mode(0o777)).expect("it is ours");
    desk.refused(unpack, 2, "is writable by other users");
}

/// Runs in a namespace of its own, where any user can mount.
#[test]
fn a_mount_point_is_filled_and_updated() {
    let desk = desk();
    fs::create_dir(desk.path("mounted")).expect("a new folder");
    let sealift = program();
    let line = format!(
        "mount -t tmpfs none mounted && mkdir mounted/lost+found || exit 99; set -e; \
         for options in '' '--update --delete --rehash'; do \
         {sealift} unpack b.sealift mounted --allow-unsigned $options; {sealift} audit mounted --allow-unsigned; \
         {sealift} clean mounted; done; ls -A . mounted"
    );
    let Some(said) = desk.in_namespace(&line) else { return skipped("needs a user namespace: mounts") };
    assert!(said.contains(".sealift\n") && said.contains("lost+found\n") && !said.contains(".mounted."), "{said}");
}
