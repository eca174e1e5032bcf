//! Delta bundles for directories: what they bring, what they need, and what happens if a target lacks it.

use std::fs;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use sealift_desk::noise;

use crate::installed::Installed;

/// Returns text that resembles other text with a similar seed.
fn text(seed: u32, lines: u32) -> String {
    let word = |line: u32| (u64::from(line) * 2_654_435 + u64::from(seed) * u64::from(line % 40 == 7)) % 9_973;
    (0..lines).map(|line| format!("{line}: {}\n", word(line))).collect()
}

/// Creates versions 1 and 2 of a tree, and the delta between them; `one` and `two` are the unpacked trees.
pub(crate) fn versions() -> Installed {
    let desk = Installed::new();
    for name in ["usr", "usr/share", "old"] {
        fs::create_dir(desk.path("tree").join(name)).unwrap();
    }
    desk.write("tree/usr/same", noise(2, 300_000));
    desk.write("tree/usr/changed", text(1, 5_000));
    desk.write("tree/usr/libfoo.so.1.2", noise(3, 90_000));
    desk.write("tree/old/moved-and-changed", text(9, 4_000));
    desk.write("tree/old/moved", text(5, 3_000));
    desk.write("tree/empty", "");
    desk.write("tree/gone", text(4, 100));
    // Files that get another time in the next version must not share their old time with others.
    for (name, seconds) in [("tree/usr/same", 1000), ("tree/lib/lib.so", 2000)] {
        let time = UNIX_EPOCH + Duration::from_secs(seconds);
        fs::File::open(desk.path(name)).unwrap().set_modified(time).unwrap();
    }
    desk.install(1, "one");

    desk.write("tree/usr/changed", text(2, 5_000));
    let mut library = noise(3, 90_000);
    library[40_000..40_010].copy_from_slice(b"0123456789");
    fs::remove_file(desk.path("tree/usr/libfoo.so.1.2")).unwrap();
    desk.write("tree/usr/libfoo.so.1.3", library);
    fs::rename(desk.path("tree/old/moved-and-changed"), desk.path("tree/usr/share/other-name")).unwrap();
    desk.write("tree/usr/share/other-name", text(9, 4_000).replace("17:", "seventeen:"));
    fs::rename(desk.path("tree/old/moved"), desk.path("tree/usr/share/moved")).unwrap();
    fs::remove_file(desk.path("tree/gone")).unwrap();
    desk.write("tree/new", noise(6, 1_000));
    desk.install(2, "two");
    desk.delta(&["1.sealift"], "delta.sealift");
    desk
}

impl Installed {
    pub(crate) fn delta(&self, bases: &[&str], to: &str) {
        let bases: String = bases.iter().map(|base| format!(" --base {base}")).collect();
        self.good(&format!("pack tree -o {to} --force --name os --bundle-version 2 --allow-unsigned{bases}"));
    }

    pub(crate) fn len(&self, name: &str) -> u64 {
        fs::metadata(self.path(name)).unwrap().len()
    }
}

#[test]
fn it_brings_what_the_base_lacks() {
    let desk = versions();
    let (delta, full) = (desk.len("delta.sealift"), desk.len("2.sealift"));
    // 1,000 new bytes of noise are most of it.
    assert!(delta < 6_000, "{delta} bytes beside {full}");
    desk.good("unpack delta.sealift one --delete --allow-unsigned");
    desk.assert_same("one", "tree");

    // If a file of it is lost, the base is needed, which is gone.
    fs::remove_file(desk.path("one/usr/changed")).unwrap();
    let said = desk.refused("unpack delta.sealift one --delete --allow-unsigned", 4, "one: ");
    assert!(said.contains("such as usr/changed"), "{said}");
    desk.good("unpack 2.sealift one --update --delete --allow-unsigned");
    desk.assert_same("one", "tree");

    // Running it again, and then with the full bundle, finds nothing to do.
    let (status, said) = desk.run("unpack delta.sealift one --delete --allow-unsigned");
    assert!(status == Some(0) && said.contains("updated from") && said.contains("10 files unchanged"), "{said}");
    desk.says("unpack 2.sealift one --update --delete --allow-unsigned", "10 files unchanged");
}

#[test]
fn a_changed_copy_of_a_file_that_stays_is_found_by_its_content() {
    let desk = Installed::new();
    let mut content = noise(2, 100_000);
    desk.write("tree/original", &content);
    desk.install(1, "one");
    content[50_000..50_010].copy_from_slice(b"0123456789");
    fs::create_dir(desk.path("tree/far")).unwrap();
    desk.write("tree/far/away.bin", content);
    desk.delta(&["1.sealift"], "delta.sealift");
    assert!(desk.len("delta.sealift") < 4_000, "{} bytes", desk.len("delta.sealift"));
    desk.good("unpack delta.sealift one --allow-unsigned");
    desk.assert_same("one", "tree");
}

#[test]
fn a_target_that_kept_nothing_is_hashed() {
    let desk = versions();
    fs::remove_dir_all(desk.path(".one.sealift-state")).unwrap();
    desk.refused("unpack delta.sealift one --delete --allow-unsigned", 2, "to take it over, use --adopt");
    desk.good("unpack delta.sealift one --delete --adopt --yes --allow-unsigned");
    desk.assert_same("one", "tree");
}

#[test]
fn a_directory_is_a_base_as_its_bundle_is() {
    let desk = versions();
    desk.delta(&["one"], "of-directory.sealift");
    assert_eq!(fs::read(desk.path("of-directory.sealift")).unwrap(), fs::read(desk.path("delta.sealift")).unwrap());
}

#[test]
fn what_the_base_lacks_is_named_and_nothing_is_written() {
    let desk = versions();
    let refused = |line: &str, why: &str| {
        desk.refused(line, 4, why);
    };
    refused("unpack delta.sealift absent --allow-unsigned", "it does not exist: a delta can only update");
    assert!(!desk.path("absent").exists());
    desk.unpack(2, "none");
    fs::remove_dir_all(desk.path(".none.sealift-state")).unwrap();
    fs::remove_file(desk.path("none/empty")).unwrap();
    refused(
        "unpack delta.sealift none --adopt --yes --allow-unsigned",
        "the target has no install record, and its content is ",
    );
    desk.write("tree/gone", "other");
    desk.install(3, "three");
    refused("unpack delta.sealift three --allow-unsigned", "; the target is os version 3 (");

    // A file that is needed as a prefix, and one that is only named, were modified.
    for name in ["usr/changed", "old/moved"] {
        let kept = fs::read(desk.path("one").join(name)).unwrap();
        let mut changed = kept.clone();
        changed[1000] ^= 1;
        desk.write(&format!("one/{name}"), &changed);
        refused("unpack delta.sealift one --delete --allow-unsigned", name);
        assert_eq!(fs::read(desk.path("one").join(name)).unwrap(), changed);
        assert!(desk.path("one/gone").exists() && !desk.path(".one.sealift-partial").exists());
        desk.write(&format!("one/{name}"), kept);
    }
    refused("cat delta.sealift usr/changed --allow-unsigned", "is a delta, which needs os version 1 (");
    desk.unpack(1, "again");
    desk.says("pack again -o x.sealift --base 1.sealift --allow-unsigned", "nothing has changed since os version 1");
    assert!(!desk.path("x.sealift").exists());
    refused("pack one -o x.sealift --base delta.sealift --allow-unsigned", "is a delta, which needs os version 1 (");
}

#[test]
fn it_says_that_it_sets_times_of_files_that_it_does_not_list() {
    let desk = Installed::new();
    let touch = |when: &str| {
        let line = format!("find tree -exec touch -d {when} {{}} +");
        assert!(Command::new("sh").args(["-c", &line]).current_dir(desk.path("")).status().unwrap().success());
    };
    touch("2024-01-01");
    desk.pack(1);
    desk.write("tree/etc/motd", "other\n");
    touch("2025-01-01");
    desk.good("pack tree -o delta.sealift --name os --bundle-version 2 --base 1.sealift --allow-unsigned");
    let times = "some unlisted files get another modification time; to list them: sealift diff BASE delta.sealift\n";
    assert!(desk.good("ls delta.sealift").ends_with(times));
    assert_eq!(desk.out("ls delta.sealift"), "M  etc/motd\n");
}

/// Messages say which bundle a delta needs; a tree that was only read has no name.
#[test]
fn it_says_the_name_and_version_of_its_base() {
    let desk = versions();
    let (_, base) = desk.run("info 1.sealift --json");
    let base: serde_json::Value = serde_json::from_str(&base).unwrap();
    let digest = base["identity"]["index_digest"].as_str().unwrap();
    let word = format!("os version 1 ({})", &digest[..12]);
    let (_, info) = desk.run("info delta.sealift");
    assert!(info.contains(&format!("  Base          {word}\n")), "{info}");
    let listed = desk.command("ls delta.sealift").output().unwrap();
    assert!(String::from_utf8_lossy(&listed.stderr).starts_with(&format!("changes to {word}:\n")));
    for quiet in ["--json", "-0"] {
        let listed = desk.command(&format!("ls delta.sealift {quiet}")).output().unwrap();
        assert!(listed.status.success() && listed.stderr.is_empty(), "{quiet}");
    }
    let bases = |line: &str| {
        let said = desk.good(line);
        serde_json::from_str::<serde_json::Value>(&said).unwrap()["delta"]["bases"].clone()
    };
    let named = serde_json::json!([{"name": "os", "version": 1, "index_digest": digest}]);
    assert_eq!(bases("info delta.sealift --json"), named);
    let pack = "pack tree -o again.sealift --name os --bundle-version 2 --allow-unsigned --json --quiet";
    assert_eq!(bases(&format!("{pack} --base 1.sealift")), named);
    // The installed tree gives the same information as its bundle.
    assert_eq!(bases(&format!("{pack} --force --base one")), named);
    fs::remove_dir_all(desk.path(".one.sealift-state")).unwrap();
    assert_eq!(bases(&format!("{pack} --force --base one")), serde_json::json!([{"index_digest": digest}]));
    let (_, info) = desk.run("info again.sealift");
    assert!(info.contains(&format!("  Base          content {}\n", &digest[..12])), "{info}");

    // The message also says what is there instead.
    desk.good("unpack delta.sealift two --allow-unsigned");
    desk.write("tree/new", "three");
    desk.install(3, "three");
    for line in ["unpack delta.sealift three --allow-unsigned", "diff 3.sealift delta.sealift"] {
        let said = desk.refused(line, 4, &format!("wrong base: this delta needs {word}; "));
        assert!(said.contains(" is os version 3 ("), "{line}: {said}");
    }
    desk.refused("diff delta.sealift 3.sealift", 4, &format!("is a delta, which needs {word}: "));
}

#[test]
fn it_is_listed_verified_and_compared_without_its_base() {
    let desk = versions();
    let list = desk.out("ls delta.sealift");
    let expected = ["D  gone", "A  new", "D  old/moved", "D  old/moved-and-changed", "M  usr/changed"];
    for line in expected.into_iter().chain(["D  usr/libfoo.so.1.2", "A  usr/libfoo.so.1.3", "A  usr/share/moved"]) {
        assert!(list.lines().any(|found| found == line), "{line} in:\n{list}");
    }
    assert!(!list.contains("usr/same") && !list.contains("lib/lib.so"), "{list}");
    desk.good("verify delta.sealift --deep --allow-unsigned");
    let info = desk.out("info delta.sealift");
    assert!(info.contains("Base"), "{info}");
    let by_delta = desk.out("diff 1.sealift delta.sealift --json");
    let by_bundle = desk.out("diff 1.sealift 2.sealift --json");
    let entries = |text: &str| text[text.find("\"entries\"").unwrap()..].to_owned();
    assert_eq!(entries(&by_delta), entries(&by_bundle));
}

#[test]
fn it_is_the_same_on_any_number_of_threads() {
    let desk = versions();
    for (jobs, name) in [("1", "a.sealift"), ("5", "b.sealift")] {
        let line = format!("pack tree -o {name} --name os --bundle-version 2 --allow-unsigned --jobs {jobs}");
        desk.good(&format!("{line} --base 1.sealift"));
        assert_eq!(fs::read(desk.path(name)).unwrap(), fs::read(desk.path("delta.sealift")).unwrap(), "{jobs} threads");
    }
}

#[test]
fn large_files_machine_code_and_holes_come_back() {
    let desk = Installed::new();
    let mut code = noise(11, 200_000);
    code[..4].copy_from_slice(b"\x7fELF");
    let mut disk = noise(12, 1_500_000);
    disk[300_000..900_000].fill(0);
    desk.write("tree/program", &code);
    desk.write("tree/disk", &disk);
    desk.write("tree/sparse", [&disk[..], &[0; 400_000]].concat());
    desk.pack(1);
    // Addresses change throughout, and something is inserted.
    code.iter_mut().skip(100).step_by(16).for_each(|byte| *byte = byte.wrapping_add(4));
    code.splice(50_000..50_000, noise(13, 100));
    desk.write("tree/program", &code);
    disk[1_200_000] ^= 1;
    disk[600_000] = 7;
    desk.write("tree/disk", &disk);
    fs::rename(desk.path("tree/sparse"), desk.path("tree/etc/sparse")).unwrap();
    for memory in ["128MiB", "1MiB", "64KiB"] {
        desk.unpack(1, "one");
        let delta = format!("--allow-unsigned --base 1.sealift --delta-memory {memory}");
        desk.good(&format!("pack tree -o delta.sealift --force --name os --bundle-version 2 {delta}"));
        // Differences that are zero except for one byte in sixteen, and a hundred new bytes.
        assert!(memory == "64KiB" || desk.len("delta.sealift") < 12_000, "{memory}: {}", desk.len("delta.sealift"));
        desk.good("unpack delta.sealift one --delete --allow-unsigned");
        desk.assert_same("one", "tree");
        fs::remove_dir_all(desk.path("one")).unwrap();
        fs::remove_dir_all(desk.path(".one.sealift-state")).unwrap();
    }
}

#[test]
fn several_refs_and_a_run_that_was_stopped() {
    let desk = Installed::new();
    desk.write("tree/lib/big", text(1, 60_000));
    desk.good("pack a=tree/lib b=tree/etc -o 1.sealift --name os --bundle-version 1");
    desk.good("unpack 1.sealift one --ref a --allow-unsigned");
    desk.write("tree/lib/big", text(2, 60_000));
    desk.write("tree/lib/copy", text(1, 60_000));
    let refs = "pack a=tree/lib b=tree/etc -o delta.sealift --name os --bundle-version 2";
    desk.good(&format!("{refs} --base 1.sealift --allow-unsigned"));
    // The rest of a run that was killed while it built: one complete file, one truncated, and one with an unknown name.
    let stage = desk.path(".one.sealift-partial/files");
    fs::create_dir_all(&stage).unwrap();
    fs::set_permissions(desk.path(".one.sealift-partial"), std::os::unix::fs::PermissionsExt::from_mode(0o700))
        .unwrap();
    for (name, content) in [("0", text(2, 60_000)), ("1", text(1, 30_000)), ("77", "x".into())] {
        fs::write(stage.join(name), content).unwrap();
    }
    desk.good("unpack delta.sealift one --ref a --delete --allow-unsigned");
    desk.assert_same("one", "tree/lib");
    desk.refused(
        "unpack delta.sealift one --ref b --delete --allow-unsigned",
        4,
        "files that the delta does not carry",
    );
    desk.assert_same("one", "tree/lib");
    assert!(!desk.path(".one.sealift-partial").exists());
}
