//! The state is written before content, and a store's own record acts as a floor: a refused bundle changes no image, no name and no record.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use sealift_desk::{Mounted, as_root, is_root, told};

use crate::store::Store;

/// Creates two signed versions.
pub(crate) fn desk() -> Store {
    let desk = Store::new();
    desk.nasty_tree("os");
    desk.good("key generate -o key");
    desk.write("allowed", format!("* namespaces=\"sealift\" {}", desk.text("key.pub")));
    for version in 1..=2 {
        fs::write(desk.path("os/etc/version"), format!("{version}").repeat(500)).unwrap();
        let options = ["--composefs", "--key", "key", "--expires", "2090-01-01"];
        desk.pack("os", &format!("os-{version}.sealift"), version, &options);
    }
    desk
}

fn unpack(desk: &Store, bundle: &str, options: &[&str]) -> crate::store::Said {
    desk.run(&[&["unpack", bundle, "composefs:store", "--trust", "allowed"], options].concat())
}

/// Returns names, links and bytes below a folder.
fn listing(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(path) = pending.pop() {
        let name = path.to_string_lossy().into_owned();
        if path.is_symlink() {
            found.push((name, fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()));
        } else if path.is_dir() {
            pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            found.push((name, Vec::new()));
        } else {
            found.push((name, fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn a_state_that_cannot_be_kept_changes_nothing() {
    let desk = desk();
    fs::write(desk.path("file"), "no folder").unwrap();
    let new = ["--state", "file"];
    unpack(&desk, "os-1.sealift", &new).refused(2, "file");
    assert!(!desk.path("store").exists());
    unpack(&desk, "os-1.sealift", &["--state", "good"]).good();
    let before = listing(&desk.path("store"));
    for state in ["file", "file/state", "/proc/sealift"] {
        unpack(&desk, "os-2.sealift", &["--state", state]).refused(2, "");
        assert!(before == listing(&desk.path("store")), "{state}");
    }
    unpack(&desk, "os-2.sealift", &["--state", "good"]).good();
    assert!(before != listing(&desk.path("store")));
}

#[test]
fn what_the_store_keeps_is_a_floor_and_is_its_own() {
    let desk = desk();
    unpack(&desk, "os-2.sealift", &["--state", "good"]).good();
    let before = listing(&desk.path("store"));
    let older = unpack(&desk, "os-1.sealift", &["--state", "other"]);
    assert!(older.is_refused_with("version 1") && before == listing(&desk.path("store")));
    let records = desk.path("store/sealift/state");
    fs::set_permissions(&records, fs::Permissions::from_mode(0o777)).unwrap();
    unpack(&desk, "os-2.sealift", &["--state", "good"]).refused(2, "is writable by other users");
    fs::set_permissions(&records, fs::Permissions::from_mode(0o700)).unwrap();
    unpack(&desk, "os-1.sealift", &["--state", "other", "--allow-downgrade"]).good();
    fs::rename(records.join("os"), records.join("app")).unwrap();
    desk.run(&["audit", "composefs:store", "--trust", "allowed", "--state", "good"]).refused(1, "of another name");
}

/// The message says how objects were checked.
#[test]
fn complete_means_looked_at() {
    let desk = desk();
    let unpack = |options: &[&str]| unpack(&desk, "os-1.sealift", &[&["--state", "good"], options].concat());
    unpack(&[]).good();
    let objects = desk.objects();
    let path = desk.path(objects.last().unwrap());
    fs::write(&path, "short").unwrap();
    unpack(&["--no-check"]).good().has("were not checked");
    desk.audit(&[]).differs();
    unpack(&[]).good().has("1 damaged object replaced");
    desk.audit(&[]).good();
    let mut bytes = fs::read(&path).unwrap();
    bytes[100] ^= 1;
    fs::write(&path, bytes).unwrap();
    unpack(&[]).good().has("checked by size");
    desk.audit(&[]).differs();
    unpack(&["--rehash"]).good().has("objects hashed").has("1 damaged object replaced");
    desk.audit(&[]).good();
}

#[test]
fn a_store_of_a_lower_layer_takes_updates() {
    let Some(desk) = as_root("mounts", desk) else { return };
    let unpack = |bundle: &str, store: &str| desk.run(&["unpack", bundle, store, "--trust", "allowed"]).good();
    let _disk = Mounted::new(desk.path("disk"), "tmpfs", "");
    fs::create_dir(desk.path("disk/lower")).unwrap();
    unpack("os-1.sealift", "composefs:disk/lower/store");
    let _merged = Mounted::overlay(desk.path("merged"), &desk.path("disk"));
    unpack("os-2.sealift", "composefs:merged/store");
    // Its record, a directory of the lower layer, has the files of the new one.
    desk.run(&["audit", "composefs:merged/store", "--trust", "allowed"]).good();
}

/// A file system without blocks has no limit.
#[test]
fn a_store_in_ramfs_has_room() {
    let Some(desk) = as_root("mounts", desk) else { return };
    let _disk = Mounted::new(desk.path("disk"), "ramfs", "");
    for more in [&["--dry-run"][..], &[]] {
        desk.run(&[&["unpack", "os-1.sealift", "composefs:disk/store", "--trust", "allowed"], more].concat()).good();
    }
    desk.run(&["unpack", "os-2.sealift", "composefs:disk/store", "--trust", "allowed"]).good();
}

/// A store whose owner is another user, or that another user can write to, is refused: its folders may lead anywhere.
#[test]
fn a_store_of_another_user_is_refused() {
    let desk = desk();
    unpack(&desk, "os-1.sealift", &["--state", "good"]).good();
    fs::create_dir(desk.path("elsewhere")).unwrap();
    let objects = || fs::read_dir(desk.path("store/objects")).unwrap().map(|entry| entry.unwrap().path());
    let first = objects().next().unwrap();
    let before = listing(&desk.path("store"));
    for path in [desk.path("store"), desk.path("store/objects"), desk.path("store/images"), first.clone()] {
        let mode = fs::metadata(&path).unwrap().permissions();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        for dry_run in [&[][..], &["--dry-run"]] {
            let options = [&["--state", "good"][..], dry_run].concat();
            unpack(&desk, "os-2.sealift", &options).refused(2, "is writable by other users");
        }
        fs::set_permissions(&path, mode).unwrap();
        if is_root() {
            std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
            unpack(&desk, "os-2.sealift", &["--state", "good"]).refused(2, "belongs to user 12345");
            std::os::unix::fs::chown(&path, Some(0), None).unwrap();
        }
        assert!(before == listing(&desk.path("store")), "{}", path.display());
    }
    // A link is followed by nobody, whoever owns it.
    for folder in objects().collect::<Vec<_>>() {
        fs::remove_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink(desk.path("elsewhere"), &folder).unwrap();
    }
    unpack(&desk, "os-2.sealift", &["--state", "good"]).refused(2, "is not a directory");
    assert_eq!(fs::read_dir(desk.path("elsewhere")).unwrap().count(), 0);
}

/// A damaged record is no consent, and neither is a lost one.
#[test]
fn a_record_that_is_damaged_or_lost_is_adopted_on_request() {
    let desk = desk();
    for part in ["head", "index", "objects", ""] {
        let state = ["--state", "good"];
        unpack(&desk, "os-1.sealift", &[&state[..], &["--allow-downgrade", "--adopt"]].concat()).good();
        let record = desk.path("store/sealift/state/os");
        match part {
            "" => fs::remove_dir_all(record).unwrap(),
            part => fs::write(record.join(part), "torn").unwrap(),
        }
        let before = listing(&desk.path("store"));
        for more in [&[][..], &["--dry-run"], &["--rehash"]] {
            unpack(&desk, "os-2.sealift", &[&state[..], more].concat()).refused(2, "install record");
        }
        assert!(before == listing(&desk.path("store")), "{part}");
        unpack(&desk, "os-2.sealift", &[&state[..], &["--adopt"]].concat()).good();
        unpack(&desk, "os-2.sealift", &state).good();
        let audit = ["audit", "composefs:store", "--trust", "allowed", "--allow-extra"];
        desk.run(&[&audit[..], &state].concat()).good().has("sound, os version 2");
    }
}

#[test]
fn a_store_that_went_back_with_its_record_is_not_sound() {
    let desk = desk();
    let state = ["--state", "good"];
    let audit =
        |more: &[&str]| desk.run(&[&["audit", "composefs:store", "--trust", "allowed"], &state[..], more].concat());
    unpack(&desk, "os-1.sealift", &state).good();
    assert!(Command::new("cp").arg("-a").args([desk.path("store"), desk.path("old")]).status().unwrap().success());
    unpack(&desk, "os-2.sealift", &state).good();
    audit(&["--allow-extra"]).good().has("sound");
    fs::rename(desk.path("store"), desk.path("new")).unwrap();
    fs::rename(desk.path("old"), desk.path("store")).unwrap();
    audit(&[]).differs().has("this device installed version 2 there");
    audit(&["--json"]).differs().has(r#""gone_back_from":2"#);
    let status = ["status", "composefs:store", "--trust", "allowed", "--state", "good"];
    desk.run(&status).good().has("it has gone back");
    unpack(&desk, "os-2.sealift", &state).good().has("before: it had gone back");
    audit(&["--allow-extra"]).good().has("sound");
}

/// An import that was killed has left objects that no image names yet: they are no findings.
#[test]
fn an_import_that_did_not_end_is_said() {
    let desk = desk();
    let state = ["--state", "good"];
    let audit =
        |more: &[&str]| desk.run(&[&["audit", "composefs:store", "--trust", "allowed"], &state[..], more].concat());
    unpack(&desk, "os-1.sealift", &state).good();
    audit(&[]).good();
    fs::create_dir_all(desk.path("store/objects/ff")).unwrap();
    fs::write(desk.path("store/objects/ff/another"), "of version 2").unwrap();
    audit(&[]).differs();
    let stage = desk.path("store/sealift/tmp/staging-boot-sealift-0123456789ab");
    fs::create_dir(&stage).unwrap();
    let lock = fs::File::create(stage.with_file_name("staging-boot-sealift-0123456789ab-lock")).unwrap();
    audit(&[]).good().has("extra objects not checked: an import is not complete").said("was interrupted");
    audit(&["--json"]).good().has(r#""run":"unfinished""#);
    let status = ["status", "composefs:store", "--trust", "allowed", "--state", "good"];
    desk.run(&status).good().has("a run was interrupted");
    rustix::fs::fcntl_lock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    audit(&[]).good().said("another sealift run is working on composefs:store");
    desk.run(&status).good().has("another sealift run is working on it");
    drop(lock);
    fs::remove_file(desk.path("store/objects/ff/another")).unwrap();
    // The next import removes what the killed one left.
    unpack(&desk, "os-2.sealift", &state).good();
    assert!(!stage.exists());
}

/// The first bundle of a name fails after the device has remembered it: it was never installed, so no record is lost.
#[test]
fn an_import_that_did_not_end_is_repeated_without_consent() {
    let desk = desk();
    desk.pack("os", "app.sealift", 1, &["--composefs", "--key", "key", "--expires", "2090-01-01"]);
    desk.run(&["sign", "app.sealift", "--name", "app", "--bundle-version", "1", "--key", "key"]).good();
    unpack(&desk, "app.sealift", &[]).good();
    if !without_links(&desk, "os-1.sealift", 1) {
        return;
    }
    desk.run(&["status"]).good().has("incomplete: repeat the command");
    unpack(&desk, "os-1.sealift", &[]).good();
}

/// Unpacks a bundle, but a link is not created: the one of this number. Returns whether that could be tried.
fn without_links(desk: &Store, bundle: &str, number: usize) -> bool {
    let fail = format!("inject=symlinkat:error=ENOSPC:when={number}");
    let line = format!("unpack {bundle} composefs:store --trust allowed");
    let Some(mut strace) = desk.strace(&["-e", "trace=symlinkat", "-e", &fail], &line) else { return false };
    let (status, said) = told(strace.env("SEALIFT_STATE", desk.path("home/state")));
    assert_eq!(status, Some(2), "{said}");
    true
}

/// An import failed before the name led to the new image, with the old record in its place or the new one.
#[test]
fn a_half_done_import_is_said_by_every_verb() {
    for number in 1..=2 {
        let desk = desk();
        unpack(&desk, "os-1.sealift", &[]).good();
        if !without_links(&desk, "os-2.sealift", number) {
            return;
        }
        for target in [&["status"][..], &["status", "composefs:store"]] {
            let said = desk.run(&[target, &["--trust", "allowed"]].concat()).differs();
            said.has(&format!("partly updated from os version {number}: unpack either bundle again"));
        }
        desk.run(&["audit", "composefs:store", "--trust", "allowed"]).differs();
        unpack(&desk, "os-2.sealift", &[]).good();
        desk.run(&["status", "--trust", "allowed"]).good().has("os version 2");
        desk.run(&["audit", "composefs:store", "--trust", "allowed"]).good();
    }
}

/// A folder that a name lies in.
#[test]
fn a_folder_of_names_of_somebody_else_is_refused() {
    let desk = desk();
    unpack(&desk, "os-1.sealift", &[]).good();
    let folder = desk.path("store/images/refs/os");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    let before = listing(&desk.path("store"));
    unpack(&desk, "os-2.sealift", &[]).refused(2, "is writable by other users");
    assert!(before == listing(&desk.path("store")));
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    // A store that others could change is not changed by looking at it.
    unpack(&desk, "os-2.sealift", &[]).good();
    fs::rename(desk.path("store/objects"), desk.path("objects")).unwrap();
    fs::set_permissions(desk.path("store"), fs::Permissions::from_mode(0o777)).unwrap();
    desk.run(&["audit", "composefs:store", "--trust", "allowed"]).differs().has("missing");
    assert!(!desk.path("store/objects").exists());
}
