//! `unpack --into FILE`: bundles of several names in one run.

use sealift_desk::{Desk, has, skipped};

const TAKE: &str = "unpack stick --into targets --trust signers";

/// A device that trusts a key for every name, and a stick.
fn device() -> Desk {
    let desk = Desk::with_key();
    desk.write("signers", format!("* namespaces=\"sealift\" {}", desk.text("release.pub")));
    std::fs::create_dir_all(desk.path("stick")).unwrap();
    desk
}

/// Packs a version of a tree onto the stick.
fn pack(desk: &Desk, name: &str, version: u32) {
    desk.write(&format!("{name}/hello"), format!("{name} {version}"));
    let output = format!("stick/{name}-{version}.sealift");
    desk.good(&format!("pack {name} -o {output} --name {name} --bundle-version {version} --key release -q"));
}

/// Writes the file, in which `@` is the folder.
fn lines(desk: &Desk, text: &str) {
    desk.write("targets", text.replace('@', desk.path("").to_str().unwrap().trim_end_matches('/')));
    desk.set_mode("targets", 0o644);
}

/// Returns the last line of JSON.
fn summary(desk: &Desk, line: &str) -> (Option<i32>, serde_json::Value) {
    let done = desk.command(&format!("{line} --json")).output().unwrap();
    let out = sealift_desk::text(&done.stdout);
    (done.status.code(), serde_json::from_str(out.lines().last().unwrap_or_default()).unwrap_or_default())
}

#[test]
fn each_name_goes_to_its_target() {
    let desk = device();
    for (name, version) in [("os", 1), ("apps", 4), ("firmware", 2)] {
        pack(&desk, name, version);
    }
    lines(
        &desk,
        "# name  target\n\nos @/srv/os --update --delete\napps '@/srv/my apps' --update  # with a blank\ndocs @/srv/docs\n",
    );
    std::fs::create_dir(desk.path("srv")).unwrap();
    let said = desk.good(TAKE);
    for what in [
        "srv/os: unpacked from stick/os-1.sealift",
        "srv/my apps: unpacked from stick/apps-4.sealift",
        "targets: 2 of 3 lines done",
        "unchanged no bundle here has the name docs; ",
        "left      firmware: no line has this name",
    ] {
        assert!(said.contains(what), "{what}: {said}");
    }
    assert!(!said.contains("passed over"), "{said}");
    assert_eq!((desk.text("srv/os/hello"), desk.text("srv/my apps/hello")), ("os 1".into(), "apps 4".into()));
    assert!(!desk.path("srv/docs").exists());
    // The next stick has an update of one name, by a delta, and nothing for the other.
    pack(&desk, "os", 2);
    desk.good(
        "pack os -o stick/delta.sealift --name os --bundle-version 3 --key release --base stick/os-2.sealift --trust signers -q",
    );
    for name in ["os-1", "apps-4", "firmware-2"] {
        std::fs::remove_file(desk.path(&format!("stick/{name}.sealift"))).unwrap();
    }
    let (status, json) = summary(&desk, TAKE);
    let outcomes: Vec<_> = json["into"].as_array().unwrap().iter().map(|row| row["outcome"].clone()).collect();
    assert_eq!(
        (status, &outcomes[..]),
        (Some(0), &["done".into(), "no-bundle".into(), "no-bundle".into()][..]),
        "{json}"
    );
    assert_eq!((&json["into"][0]["line"], &json["into"][0]["name"]), (&3.into(), &"os".into()));
    assert_eq!((desk.text("srv/os/hello"), desk.text("srv/my apps/hello")), ("os 2".into(), "apps 4".into()));
}

#[test]
fn the_exit_status_is_of_the_worst() {
    let desk = device();
    for name in ["a", "b", "c"] {
        pack(&desk, name, 1);
    }
    lines(&desk, "a @/a.new\nb @/b.new\nc @/c.new --then 'exit 7'\n");
    desk.write("signers", desk.text("signers").replacen("* ", "!a,* ", 1));
    // Refused by policy; the others are installed, and the command of one fails.
    let (status, said) = desk.run(TAKE);
    assert_eq!(status, Some(3), "{said}");
    assert!(said.contains("failed    a to ") && said.contains("(untrusted)") && said.contains("(then)"), "{said}");
    assert!(said.contains("done      b to ") && desk.text("b.new/hello") == "b 1" && desk.text("c.new/hello") == "c 1");
    // What is damaged is worse, wherever its line is.
    pack(&desk, "b", 2);
    std::fs::remove_file(desk.path("stick/b-1.sealift")).unwrap();
    let mut bytes = desk.read("stick/b-2.sealift");
    *bytes.last_mut().unwrap() ^= 1;
    desk.write("stick/b-2.sealift", bytes);
    lines(&desk, "a @/a.new\nb @/b.new --update\nc @/c.new --update\n");
    let (status, json) = summary(&desk, TAKE);
    assert_eq!((status, &json["into"][1]["kind"]), (Some(1), &"chunk".into()), "{json}");
    assert_eq!(json["into"][2]["outcome"], "done");
    assert_eq!(desk.text("b.new/hello"), "b 1");
    // A command that fails is an error of its own.
    lines(&desk, "c @/c.new --update --then 'exit 7'\n");
    let said = desk.refused(TAKE, 5, "(then)");
    assert_eq!(said.matches("the command of --then ended with status 7").count(), 1, "{said}");
    let (status, json) = summary(&desk, TAKE);
    assert!(json["into"][0]["message"].as_str().unwrap().contains("ended with status 7"), "{status:?} {json}");
}

#[test]
fn the_kinds_of_targets() {
    if !has(&["ostree"]) {
        return skipped("needs ostree: makes commits");
    }
    let desk = device();
    let ostree = |arguments: &[&str]| sealift_desk::out(desk.command_of("ostree").args(arguments));
    for repo in ["repo", "own"] {
        ostree(&["init", &format!("--repo={repo}"), "--mode=archive"]);
    }
    for name in ["os", "app"] {
        desk.write(&format!("{name}/hello"), name);
        let (branch, tree) = (format!("--branch={name}"), format!("--tree=dir={name}"));
        ostree(&["commit", "--repo=repo", &branch, &tree, "--owner-uid=0", "--owner-gid=0", "--no-xattrs"]);
        let pack = format!("--ref {name} --name {name} --bundle-version 1 --key release -q");
        desk.good(&format!("pack ostree:repo -o stick/{name}.sealift {pack}"));
    }
    pack(&desk, "tree", 1);
    desk.write("root.img", sealift_desk::noise(1, 5000));
    desk.good("pack root.img -o stick/slot.sealift --name slot --bundle-version 1 --key release -q");
    lines(&desk, "tree @/tree.new\nslot root.img=image:@/slot\nos ostree:@/own\napp ostree:@/own\n");
    let (status, json) = summary(&desk, TAKE);
    let outcomes: Vec<_> =
        json["into"].as_array().unwrap().iter().map(|row| row["outcome"].as_str().unwrap()).collect();
    assert_eq!((status, &outcomes[..]), (Some(0), &["done"; 4][..]), "{json}");
    assert_eq!(ostree(&["refs", "--repo=own"]).lines().count(), 2);
    assert_eq!(desk.text("tree.new/hello"), "tree 1");
    assert_eq!(desk.read("slot")[..5000], desk.read("root.img"));
    ostree(&["fsck", "--repo=own", "--quiet"]);
}

#[test]
fn a_channel_is_for_its_name() {
    let desk = device();
    for version in 1..=2 {
        pack(&desk, "os", version);
        desk.good(&format!("publish stick/os-{version}.sealift channel --key release --deltas last:2"));
        std::fs::remove_file(desk.path(&format!("stick/os-{version}.sealift"))).unwrap();
    }
    pack(&desk, "apps", 1);
    lines(&desk, "os @/os.new --update\napps @/apps.new --update\n");
    let both = "unpack channel stick --into targets --trust signers";
    let said = desk.good(both);
    assert!(said.contains("os.new: unpacked from channel/os-2.sealift") && said.contains("2 of 2 lines"), "{said}");
    assert_eq!((desk.text("os.new/hello"), desk.text("apps.new/hello")), ("os 2".into(), "apps 1".into()));
    desk.says(both, "os.new: unchanged, holds os version 2");
    // A stick with a channel for each name; a list that is damaged is passed over.
    desk.write("both/other/channel.sealift-list", "damaged");
    desk.good("publish stick/apps-1.sealift both/apps --key release");
    desk.good("publish channel/os-2.sealift both/os --key release");
    lines(&desk, "os @/os.two\napps @/apps.two\n");
    // Its lists were signed in the same second as those of the first channel, so that a device may have taken a later one.
    let said = desk.good("unpack both --into targets --trust signers --state other");
    assert!(said.contains("passed over both/other/channel.sealift-list") && said.contains("2 of 2 lines"), "{said}");
    assert_eq!((desk.text("os.two/hello"), desk.text("apps.two/hello")), ("os 2".into(), "apps 1".into()));
    let said = desk.good("unpack channel --into targets --trust signers --state other");
    assert!(said.contains("1 of 2 lines") && said.contains("no bundle here has the name apps"), "{said}");
}

#[test]
fn a_signal_stops_before_the_next_line() {
    let desk = device();
    for name in ["a", "b"] {
        pack(&desk, name, 1);
    }
    lines(&desk, "a @/a.new --then 'kill -TERM $PPID; sleep 1'\nb @/b.new\n");
    let (status, json) = summary(&desk, TAKE);
    assert_eq!((status, &json["into"][1]["outcome"]), (Some(143), &"not-tried".into()), "{json}");
    assert!(desk.path("a.new").exists() && !desk.path("b.new").exists());
}

#[test]
fn damaged_files_and_empty_sticks() {
    let desk = device();
    lines(&desk, "os @/os.new --update\napps @/apps.new\n");
    desk.refused(TAKE, 2, "stick: no *.sealift files here");
    desk.write("stick/x.sealift", "not a bundle at all, whatever its name says, and long enough for a preamble");
    desk.refused(TAKE, 1, "stick: no bundle that this device can install");
    // Beside a good bundle, it is passed over, and said once.
    pack(&desk, "os", 1);
    pack(&desk, "apps", 1);
    let said = desk.good(TAKE);
    assert_eq!(said.matches("passed over stick/x.sealift").count(), 1, "{said}");
    // Two copies of which one has a damaged head are one bundle.
    pack(&desk, "os", 2);
    let mut copy = desk.read("stick/os-2.sealift");
    copy[20] ^= 1;
    desk.write("stick/copy.sealift", &copy);
    let mut damaged = desk.read("stick/os-2.sealift");
    *damaged.last_mut().unwrap() ^= 1;
    desk.write("stick/os-2.sealift", &damaged);
    lines(&desk, "os @/os.new --update\n");
    desk.says(TAKE, "stick/os-2.sealift is damaged");
    assert_eq!(desk.text("os.new/hello"), "os 2");
}

#[test]
fn trust_can_be_given_for_one_name() {
    let desk = device();
    pack(&desk, "os", 1);
    desk.make_key("other");
    desk.write("other-signers", format!("* namespaces=\"sealift\" {}", desk.text("other.pub")));
    desk.write("apps/hello", "apps");
    desk.good("pack apps -o stick/apps.sealift --name apps --bundle-version 1 --key other -q");
    desk.write("signers", format!("* namespaces=\"sealift\" {}", desk.text("release.pub")));
    lines(&desk, "os @/os.new\napps @/apps.new\n");
    desk.refused(TAKE, 3, "1 of 2 lines done");
    lines(&desk, "apps @/apps.new --trust @/other-signers\n");
    desk.good(TAKE);
    // Nothing that a line says waives a check.
    lines(&desk, "os @/os.two --allow-unsigned\n");
    desk.refused(TAKE, 2, "targets:1: --allow-unsigned holds for all lines");
}

#[test]
fn errors_say_the_line_and_come_before_anything_is_done() {
    let desk = device();
    pack(&desk, "os", 1);
    for (text, why) in [
        ("", "targets: has no line"),
        ("os @/a\n\nos @/b\n", "targets:3: os is the name of line 1 already"),
        ("os @/a\napps @/a/\n", "is the target of line 1 already"),
        ("os @/a\napps @/a/b\n", "targets:2: "),
        ("os a\n", "targets:1: a: give an absolute path"),
        ("os @/a --updat\n", "targets:1: unexpected argument '--updat'"),
        ("os @/a --seal maybe\n", "targets:1: invalid value 'maybe'"),
        ("os\n", "targets:1: "),
        ("os @/a 'b\n", "targets:1: a quotation mark is not closed"),
    ] {
        lines(&desk, text);
        desk.refused(TAKE, 2, why);
        assert!(!desk.path("a").exists(), "{text}");
    }
    // A link leads to the same target.
    std::os::unix::fs::symlink(".", desk.path("link")).unwrap();
    lines(&desk, "os @/a\napps @/link/a\n");
    desk.refused(TAKE, 2, "is the target of line 1 already");
    // A file that others can write says nothing.
    lines(&desk, "os @/a\n");
    desk.set_mode("targets", 0o666);
    let said = desk.refused(TAKE, 2, "targets");
    assert!(said.contains("0666") && !desk.path("a").exists(), "{said}");
    desk.refused("unpack stick --into nothing --trust signers", 2, "nothing: there is no such file");
    desk.refused("unpack stick --into targets --update", 2, "cannot be used with");
    desk.set_mode("targets", 0o600);
    desk.refused("unpack - --into targets --trust signers", 2, "not standard input");
    desk.says(&format!("{TAKE} --dry-run"), "1 of 1 line would be done");
    assert!(!desk.path("a").exists());
}
