//! The surroundings of a target belong to a user who exchanges files in them while root updates: nothing elsewhere may be written or removed.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::process::Command;

use sealift::unpack::{UnpackStats, unpack};
use sealift::{Durability, InstallOptions, TreeOptions};
use sealift::{Error, Input, Progress};
use sealift_desk::{as_root, noise, out, program, said, skipped};

use crate::installed::{Installed, anyones};

/// Creates bundles 7 and 8 that differ in all files, `target` with version 7, and `secret`, which must not be touched and contains all names that a
/// run uses.
fn desk() -> Installed {
    let desk = Installed::new();
    desk.write("tree/lib/lib.so", noise(7, 3_000_000));
    desk.pack(7);
    desk.write("tree/lib/lib.so", noise(8, 3_000_000));
    desk.write("tree/etc/motd", "hello again\n");
    fs::remove_file(desk.path("tree/etc/issue")).unwrap();
    desk.pack(8);
    desk.unpack(7, "target");
    fs::create_dir(desk.path("secret")).unwrap();
    for name in ["head", "index", "record", "journal", "precious"] {
        desk.write(&format!("secret/{name}"), "nobody may touch this\n");
    }
    for name in ["state", "old-state", "removed", "files", "tree", "lib", "etc"] {
        fs::create_dir(desk.path(&format!("secret/{name}"))).unwrap();
        desk.write(&format!("secret/{name}/inside"), "nor this\n");
    }
    desk
}

/// Returns everything in `secret`, by path.
fn listing(desk: &Installed, of: &str) -> Vec<u8> {
    let find = "find . -mindepth 1 -printf '%p %y %m %U %s %T@\\n' | sort; find . -type f | sort | xargs cat";
    Command::new("sh").args(["-c", find]).current_dir(desk.path(of)).output().unwrap().stdout
}

/// Updates `to` to version 8, or unpacks it there; `spring` runs when all of its content except one byte has been read.
fn sprung(desk: &Installed, to: &str, spring: impl FnOnce() + Send + 'static) -> Result<UnpackStats, Error> {
    take(desk, desk.trapped(8, 1, spring), to)
}

fn take(desk: &Installed, input: Input, to: &str) -> Result<UnpackStats, Error> {
    let tree = TreeOptions { update: true, delete: true, durability: Durability::None, ..TreeOptions::default() };
    let options = InstallOptions { jobs: 2, tree, ..InstallOptions::default() };
    unpack(anyones(input)?, &desk.path(to), &options, &Progress::default())
}

/// The names that may be exchanged, for a link to `secret` or for that directory itself.
const NAMES: [&str; 4] = ["target", ".target.sealift-partial", ".target.sealift-state", "new"];

#[test]
fn what_is_exchanged_while_content_is_read_ends_the_run() {
    for name in NAMES {
        for is_link in [true, false] {
            let desk = desk();
            let (was, old) = (listing(&desk, "secret"), listing(&desk, "target"));
            let (root, to) = (desk.path(""), if name == "new" { "new" } else { "target" });
            let done = sprung(&desk, to, move || {
                let _ = fs::rename(root.join(name), root.join("moved")); // the new tree is not there yet
                match is_link {
                    true => symlink("secret", root.join(name)).unwrap(),
                    false => fs::rename(root.join("secret"), root.join(name)).unwrap(),
                }
            });
            let error = done.expect_err(name);
            let secret = if is_link { "secret" } else { name };
            assert!(listing(&desk, secret) == was, "{name}, {is_link}: {error}");
            if to == "target" {
                let target = if name == "target" { "moved" } else { "target" };
                assert!(listing(&desk, target) == old, "{name}, {is_link}: the target was changed: {error}");
            }
            assert_eq!(error.exit_status(), 2, "{name}: {error}");
        }
    }
}

#[test]
fn what_is_exchanged_while_the_index_is_read_ends_the_run() {
    for is_link in [true, false] {
        let desk = desk();
        let (was, root) = (listing(&desk, "secret"), desk.path(""));
        let input = desk.trapped(8, desk.len_behind_head(8), move || {
            fs::rename(root.join("target"), root.join("moved")).unwrap();
            match is_link {
                true => symlink("secret", root.join("target")).unwrap(),
                false => fs::rename(root.join("secret"), root.join("target")).unwrap(),
            }
        });
        let error = take(&desk, input, "target").expect_err("it is another one");
        assert!(listing(&desk, if is_link { "secret" } else { "target" }) == was, "{error}");
        assert!(error.to_string().contains("was replaced while sealift was running"), "{error}");
    }
}

#[test]
fn a_journal_is_of_the_directory_that_it_was_written_for() {
    let desk = desk();
    desk.unpack(8, "whole");
    desk.leave_update("target", "whole");
    let was = listing(&desk, "secret");
    fs::rename(desk.path("target"), desk.path("moved")).unwrap();
    fs::rename(desk.path("secret"), desk.path("target")).unwrap();
    let unpack = "unpack 8.sealift target --update --delete --allow-unsigned";
    let done = desk.command(unpack).output().unwrap();
    assert_eq!(done.status.code(), Some(2), "{}", said(&done));
    assert!(listing(&desk, "target") == was, "{}", said(&done));
    // Once it is back, the update completes.
    fs::rename(desk.path("target"), desk.path("secret")).unwrap();
    fs::rename(desk.path("moved"), desk.path("target")).unwrap();
    desk.good("clean target");
    desk.assert_same("target", "tree");
}

#[test]
fn links_that_lie_where_a_run_keeps_its_own_are_not_followed() {
    for name in [".target.sealift-partial", ".target.sealift-state"] {
        let desk = desk();
        let was = listing(&desk, "secret");
        let _ = fs::rename(desk.path(name), desk.path("moved"));
        symlink("secret", desk.path(name)).unwrap();
        for line in [
            "unpack 8.sealift target --update --delete --allow-unsigned",
            "clean target",
            "audit target --allow-unsigned",
        ] {
            let done = desk.command(line).output().unwrap();
            // Cleaning uses no record, and an audit no stage.
            let is_used = match line.split(' ').next().unwrap() {
                "clean" => name.ends_with("partial"),
                "audit" => name.ends_with("state"),
                _ => true,
            };
            assert_eq!(done.status.success(), !is_used, "{name}, {line}: {}", said(&done));
            assert!(listing(&desk, "secret") == was, "{line}: {}", said(&done));
        }
    }
}

#[test]
fn all_names_of_a_target_are_one() {
    let desk = desk();
    symlink("target", desk.path("link")).unwrap();
    desk.good("pack tree -o app.sealift --name app --bundle-version 9");
    for spelling in ["target", "target/", "link", "link/", "link/.", "./link/etc/.."] {
        let line = format!("unpack app.sealift {spelling} --update --allow-unsigned");
        let done = desk.command(&line).output().unwrap();
        assert!(said(&done).contains("\"os\"") && said(&done).contains("\"app\""), "{spelling}: {}", said(&done));
        assert!(!done.status.success(), "{spelling}");
    }
    // There is one lock: while a run holds the target by one name, no other can begin by another name.
    let (link, slash) = (desk.path("link"), desk.path("link/"));
    let bundle = desk.path("8.sealift");
    sprung(&desk, "target", move || {
        for other in [link, slash] {
            let tree = TreeOptions { update: true, ..TreeOptions::default() };
            let options = InstallOptions { tree, ..InstallOptions::default() };
            let taken = anyones(Input::open(&bundle).unwrap()).unwrap();
            let done = unpack(taken, &other, &options, &Progress::default());
            assert!(matches!(done, Err(Error::Busy { .. })), "{done:?}");
        }
    })
    .unwrap();
    desk.assert_same("link", "tree");
    let kept = desk.names("");
    let records = kept.iter().filter(|name| name.contains("sealift-state"));
    assert_eq!(records.count(), 1, "{kept:?}");
}

#[test]
fn a_bind_mount_is_the_same_target() {
    let desk = desk();
    let sealift = program();
    fs::create_dir_all(desk.path("other/target")).unwrap();
    let line = format!(
        "mount --bind target other/target || exit 99; exec 9<target; flock -x 9; \
         {sealift} unpack 8.sealift other/target --update --allow-unsigned; echo $?"
    );
    let done = desk.in_namespace(&line);
    let Some(said) = done else { return skipped("needs a user namespace: mounts") };
    assert!(said.contains("another sealift run is using") && said.ends_with("\n2\n"), "{said}");
}

#[test]
fn a_record_of_another_user_is_not_believed() {
    let Some(desk) = as_root("gives files away", desk) else { return };
    for change in ["owner", "mode"] {
        let record = desk.path(".target.sealift-state");
        match change {
            "owner" => chown(&record, Some(1000), None).unwrap(),
            _ => fs::set_permissions(&record, fs::Permissions::from_mode(0o777)).unwrap(),
        }
        for line in ["unpack 8.sealift target --update --allow-unsigned", "audit target --allow-unsigned"] {
            desk.refused(line, 2, ".target.sealift-state");
        }
        chown(&record, Some(0), None).unwrap();
    }
}

#[test]
fn nobody_else_may_write_to_what_is_kept_whatever_the_umask() {
    let desk = desk();
    let sealift = program();
    let line = format!("umask 000; {sealift} unpack 8.sealift open --allow-unsigned");
    out(Command::new("sh").args(["-c", &line]).current_dir(desk.path("")));
    for name in ["", "/head", "/index", "/record"] {
        let mode = fs::metadata(desk.path(&format!(".open.sealift-state{name}"))).unwrap().mode();
        assert_eq!(mode & 0o022, 0, "{name}: {mode:o}");
    }
}

/// A file that only gets another time vanishes while content is read: all else is updated, and nothing has to be finished.
#[test]
fn what_is_changed_meanwhile_is_named_and_leaves_no_update_unfinished() {
    let desk = Installed::new();
    desk.pack(7);
    desk.write("tree/lib/lib.so", noise(8, 3_000_000));
    let touched = Command::new("touch").args(["-d", "2001-02-03"]).arg(desk.path("tree/etc/issue")).status();
    assert!(touched.unwrap().success());
    desk.pack(8);
    desk.unpack(7, "target");
    let path = desk.path("target/etc/issue");
    let error = sprung(&desk, "target", move || fs::remove_file(path).unwrap()).expect_err("it vanished");
    assert!(error.to_string().contains("target/etc/issue"), "{error}");
    assert!(!desk.path(".target.sealift-partial").exists());
    let status = desk.good("status target --allow-unsigned");
    assert!(status.contains("target: os version 8") && !status.contains("partly"), "{status}");
    let audit = desk.command("audit target --allow-unsigned").output().unwrap();
    assert!(audit.status.code() == Some(1) && said(&audit).contains("etc/issue"), "{}", said(&audit));
    desk.update(8, "target").unwrap();
    desk.assert_same("target", "tree");
}
