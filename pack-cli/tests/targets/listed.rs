//! `status` without a target: what is installed where on this device, as each target's record says.

use std::fs;

use crate::installed::Installed;
use crate::versions::{ends, run, signed};

/// Returns the output of `status`, which must end with this exit status.
fn status(desk: &Installed, ends: i32) -> String {
    let (ended, said) = run(desk, "status");
    assert_eq!(ended, Some(ends), "{said}");
    said
}

fn files(desk: &Installed) -> usize {
    fs::read_dir(desk.path("state/targets")).unwrap().count()
}

#[test]
fn each_target_is_listed_once_by_whatever_path() {
    let desk = signed();
    desk.make_home();
    std::os::unix::fs::symlink("slots", desk.path("link")).unwrap();
    fs::create_dir(desk.path("slots")).unwrap();
    for line in ["unpack 1.sealift link/a", "unpack 1.sealift slots/b", "unpack 2.sealift slots/../link/b --update"] {
        ends(&desk, line, 0, "");
    }
    let said = status(&desk, 0);
    let slots = fs::canonicalize(desk.path("slots")).unwrap();
    for (slot, version) in [("a", 1), ("b", 2)] {
        assert!(said.contains(&format!("{}/{slot}: os version {version}\n", slots.display())), "{said}");
    }
    assert_eq!((said.matches("os version").count(), files(&desk)), (2, 2), "{said}");
    assert!(said.ends_with("os: accepts version 2 or newer\n"), "{said}");
    // The target says what it holds; the list only says where to look.
    let (_, json) = run(&desk, "status --json");
    assert!(
        json.contains(&format!(r#"{{"target":"{}/b","name":"os","version":2,"root_digest":"#, slots.display())),
        "{json}"
    );
    assert!(json.ends_with("{\"name\":\"os\",\"version\":2}\n"), "{json}");
}

#[test]
fn a_repeated_unpacking_leaves_the_list_as_it_is() {
    let desk = signed();
    ends(&desk, "unpack 1.sealift a", 0, "");
    let entry = fs::read_dir(desk.path("state/targets")).unwrap().next().unwrap().unwrap().path();
    let before = fs::read_to_string(&entry).unwrap();
    let key = before.lines().find(|line| line.starts_with("keys SHA256:")).unwrap();
    let lines = before.lines().map(|line| line.split(' ').next().unwrap()).collect::<Vec<_>>();
    assert_eq!(lines, ["sealift", "kind", "path", "on", "name", "version", "taken", "state", "keys", "check"], "{key}");
    std::thread::sleep(std::time::Duration::from_millis(1100));
    ends(&desk, "unpack 1.sealift a --update", 0, "");
    assert_eq!(fs::read_to_string(&entry).unwrap(), before);
    ends(&desk, "unpack 2.sealift a --update", 0, "");
    assert_eq!(fs::read_to_string(&entry).unwrap().lines().nth(5), Some("version 2"));
}

#[test]
fn what_is_gone_is_said_until_it_is_cleaned() {
    let desk = signed();
    fs::create_dir(desk.path("disk")).unwrap();
    for target in ["gone", "moved", "disk/os", "taken", "kept"] {
        ends(&desk, &format!("unpack 1.sealift {target}"), 0, "");
    }
    fs::remove_dir_all(desk.path("gone")).unwrap();
    fs::rename(desk.path("moved"), desk.path("elsewhere")).unwrap();
    fs::remove_dir_all(desk.path("disk")).unwrap();
    fs::remove_dir_all(desk.path("taken")).unwrap();
    fs::remove_dir_all(desk.path(".taken.sealift-state")).unwrap();
    fs::create_dir(desk.path("taken")).unwrap();
    desk.write("taken/mine", "mine");
    let said = status(&desk, 0);
    for gone in ["gone", "moved", "disk/os"] {
        assert!(said.contains(&format!("/{gone}: gone; remove it from the list with  sealift clean /")), "{said}");
    }
    assert!(said.contains("/taken: no install record of this bundle"), "{said}");
    assert!(said.contains("/kept: os version 1\n"), "{said}");
    assert_eq!(said.matches("  os version 1, unpacked ").count(), 4, "{said}");
    let (_, json) = run(&desk, "status --json");
    assert_eq!(json.matches(r#""missing":"gone"}"#).count(), 3, "{json}");
    assert_eq!(json.matches(r#""missing":"other"}"#).count(), 1, "{json}");

    for target in ["gone", "moved", "disk/os", "taken"] {
        desk.says(&format!("clean {target}"), "removed from the list");
    }
    // The second time, there is nothing to clean.
    desk.refused("clean disk/os", 2, "");
    assert_eq!(fs::read(desk.path("taken/mine")).unwrap(), b"mine");
    desk.says("clean kept", "nothing to clean");
    let said = status(&desk, 0);
    assert_eq!((said.matches("os version 1").count(), files(&desk)), (1, 1), "{said}");
    // Forgetting versions keeps the targets, and forgetting targets keeps the versions.
    assert!(said.contains("os: accepts version 1 or newer"), "{said}");
    desk.good("trust reset os");
    let said = status(&desk, 0);
    assert!(said.contains("/kept: os version 1\n") && !said.contains("or newer"), "{said}");
}

#[test]
fn another_directory_in_its_place_is_said() {
    let desk = signed();
    ends(&desk, "unpack 1.sealift a", 0, "");
    fs::rename(desk.path("a"), desk.path("b")).unwrap();
    fs::create_dir(desk.path("a")).unwrap();
    let said = status(&desk, 0);
    assert!(said.contains("its install record belongs to another directory"), "{said}");
    // An empty one is nobody's.
    ends(&desk, "unpack 2.sealift a --update", 0, "");
}

#[test]
fn what_did_not_end_is_no_target_yet() {
    let desk = signed();
    ends(&desk, "unpack 1.sealift a", 0, "");
    // As after a kill when the state lists the target, but the tree has no name yet.
    fs::rename(desk.path("a"), desk.path("tree-of-a")).unwrap();
    fs::create_dir(desk.path(".a.sealift-partial")).unwrap();
    let said = status(&desk, 0);
    assert!(
        said.contains("/a: incomplete: repeat the command to resume, or discard it with  sealift clean /"),
        "{said}"
    );
    assert!(run(&desk, "status --json").1.contains(r#""missing":"unfinished"}"#));
}

#[test]
fn what_is_damaged_hides_nothing_else() {
    let desk = signed();
    for target in ["a", "b", "c"] {
        ends(&desk, &format!("unpack 1.sealift {target}"), 0, "");
    }
    desk.write(".a.sealift-state/head", "damaged");
    let of_b = fs::read_dir(desk.path("state/targets")).unwrap().map(|entry| entry.unwrap().path());
    let of_b = of_b.into_iter().find(|path| fs::read_to_string(path).unwrap().contains("/b\n")).unwrap();
    let whole = fs::read(&of_b).unwrap();
    fs::write(&of_b, &whole[..whole.len() - 2]).unwrap();
    let said = status(&desk, 2);
    assert!(said.contains("/c: os version 1\n") && said.contains("os: accepts version 1 or newer"), "{said}");
    assert!(said.contains("head is damaged") && said.contains(of_b.file_name().unwrap().to_str().unwrap()), "{said}");
    // The next bundle writes it again, since nothing depends on it.
    ends(&desk, "unpack 1.sealift b --update", 0, "");
    assert_eq!(fs::read(&of_b).unwrap().len(), whole.len());
}

#[test]
fn a_damaged_floor_hides_no_target() {
    let desk = signed();
    for target in ["a", "b"] {
        ends(&desk, &format!("unpack 1.sealift {target}"), 0, "");
    }
    let key = fs::read_to_string(desk.path("release.pub")).unwrap();
    desk.write("signers", format!("* namespaces=\"sealift\" {key}"));
    desk.good("pack tree -o app.sealift --name app --bundle-version 1 --key release");
    ends(&desk, "unpack app.sealift c", 0, "");
    let whole = fs::read(desk.path("state/floors/os")).unwrap();
    fs::write(desk.path("state/floors/os"), &whole[1..]).unwrap();
    let said = status(&desk, 2);
    assert!(said.contains("/c: app version 1\n"), "{said}");
    assert_eq!(said.matches("floors/os is damaged").count(), 1, "{said}");
    let reset = || desk.good("trust reset os");
    assert_eq!(reset(), "removed the damaged record of os\n");
    assert!(status(&desk, 0).contains("/b: os version 1\n"));
    assert!(reset().contains("no such name"));
}

#[test]
fn what_nobody_signed_leaves_no_trace() {
    let desk = signed();
    desk.good("pack tree -o unsigned.sealift --name os --bundle-version 9");
    desk.good("unpack unsigned.sealift trial --allow-unsigned");
    assert!(!desk.path("state").exists());
    assert_eq!(status(&desk, 0), "no bundles installed: state is empty\n");
    // It is only reported on request.
    let (_, said) = run(&desk, "status trial --allow-unsigned");
    assert!(said.contains("trial: os version 9, UNSIGNED"), "{said}");
    // For a listed target, its present bundle is shown.
    ends(&desk, "unpack 1.sealift a", 0, "");
    desk.good("unpack unsigned.sealift a --update --allow-unsigned");
    let said = status(&desk, 0);
    assert!(said.contains("/a: os version 9\n") && said.contains("not trusted"), "{said}");
}

#[test]
fn a_list_that_cannot_be_kept_leaves_the_target_as_it_was() {
    let desk = signed();
    ends(&desk, "unpack 1.sealift a", 0, "");
    fs::rename(desk.path("state/targets"), desk.path("targets")).unwrap();
    desk.write("state/targets", "no folder");
    for line in ["unpack 2.sealift a --update", "unpack 2.sealift a --update --dry-run", "unpack 1.sealift b"] {
        ends(&desk, line, 2, "");
    }
    assert_eq!(fs::read(desk.path("a/etc/issue")).unwrap(), b"1");
    assert!(!desk.path("b").exists());
    fs::remove_file(desk.path("state/targets")).unwrap();
    // If another user could write it, it is not trusted.
    fs::rename(desk.path("targets"), desk.path("state/targets")).unwrap();
    desk.set_mode("state/targets", 0o777);
    ends(&desk, "status", 2, "");
}
