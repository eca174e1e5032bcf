//! The order of a bundle, exported and kept by the next one.

use sealift::order::OrderProfile;
use sealift::{Input, Limits, Opened};
use sealift_desk::{Desk, noise};

/// Packs a tree of twenty different files by a profile of seven of them.
fn packed() -> Desk {
    let desk = Desk::new();
    for file in 0..20 {
        desk.write(&format!("tree/dir{}/file{file}", file % 3), format!("file {file}"));
    }
    desk.write("profile", PROFILE);
    desk.good("pack tree -o 1.sealift --name os --bundle-version 1 --order profile");
    desk
}

const PROFILE: &str =
    "# sealift order 1\ndir1/file16\ndir0/file3\ndir2/file8\ndir1/file1\ndir0/file18\ndir2/file2\ndir1/file13\n";

#[test]
fn a_bundle_has_its_profile() {
    let desk = packed();
    assert_eq!(desk.good("order export 1.sealift"), PROFILE);
    desk.good("order export 1.sealift -o again");
    assert_eq!(desk.good("order diff profile again"), "profile -> again: no difference\n");
}

#[test]
fn the_next_version_keeps_the_places_of_what_changed() {
    let desk = packed();
    desk.write("tree/dir2/file8", "changed");
    desk.write("tree/dir0/new", "new");
    std::fs::remove_file(desk.path("tree/dir1/file1")).unwrap();
    let said = desk.good("pack tree -o 2.sealift --name os --bundle-version 2 --order-from 1.sealift");
    assert!(said.contains("found 6 of 7 paths in the order of 1.sealift"), "{said}");
    assert_eq!(desk.good("order export 2.sealift"), PROFILE.replace("dir1/file1\n", ""));
}

#[test]
fn equal_files_stand_together() {
    let desk = packed();
    desk.write("tree/copy", "file 3");
    desk.good("pack tree -o 2.sealift --name os --bundle-version 2 --order-from 1.sealift");
    assert_eq!(desk.good("order export 2.sealift"), PROFILE.replace("dir0/file3\n", "copy\ndir0/file3\n"));
}

#[test]
fn a_bundle_without_an_order_is_refused() {
    let desk = packed();
    desk.good("pack tree -o plain.sealift --name os --bundle-version 2");
    desk.refused("order export plain.sealift", 2, "plain.sealift has no order");
    desk.refused("pack tree -o 2.sealift --order-from plain.sealift", 2, "plain.sealift has no order");
    desk.refused("pack tree -o 2.sealift --order profile --order-from 1.sealift", 2, "cannot be used with");
    desk.write("tree/dir0/file3", "changed");
    desk.good("pack tree -o d.sealift --name os --bundle-version 2 --base 1.sealift --allow-unsigned");
    desk.refused("order export d.sealift", 4, "");
}

#[test]
fn a_delta_has_the_order_of_its_base_with_the_places_of_what_it_brings() {
    let desk = packed();
    desk.good("unpack 1.sealift target --allow-unsigned --state state");
    desk.write("tree/dir2/file8", "changed");
    desk.write("tree/dir0/new", "new");
    std::fs::remove_file(desk.path("tree/dir1/file1")).unwrap();
    desk.good("pack tree -o d.sealift --name os --bundle-version 2 --base 1.sealift --allow-unsigned");
    for base in ["1.sealift", "target"] {
        let exported = desk.good(&format!("order export d.sealift --base {base}"));
        assert_eq!(exported, PROFILE.replace("dir1/file1\n", ""), "{base}");
    }
    desk.refused("pack tree -o 2.sealift --order-from d.sealift", 2, "sealift order export d.sealift --base BASE");
    desk.refused("order export 1.sealift --base 1.sealift", 2, "1.sealift is a full bundle, which has no base");
    desk.refused("order export target --base 1.sealift", 2, "--base is for a delta bundle");
    desk.good("pack tree -o plain.sealift --name os --bundle-version 2");
    desk.write("tree/new", "new");
    desk.good("pack tree -o p.sealift --name os --bundle-version 3 --base plain.sealift --allow-unsigned");
    desk.refused("order export p.sealift --base plain.sealift", 2, "p.sealift has no order");
}

/// Creates a tree with a file of sixteen pieces, of which the profile names three, and another file that it names whole.
fn with_ranges() -> Desk {
    let desk = Desk::new();
    desk.write("tree/a/large", noise(1, 1 << 20));
    desk.write("tree/b/other", noise(2, 200_000));
    desk.write("tree/c/small", "small");
    desk.write("tree/z", "not named");
    desk.write("profile", "# sealift order 1\nc/small\na/large\t600000-600001,0-10,131072-131073\nb/other\n");
    desk.good("pack tree -o 1.sealift --name os --bundle-version 1 --chunk-size 64KiB --order profile");
    desk
}

const WHOLE_PIECES: &str = "# sealift order 1\nc/small\na/large\t589824-655359,0-65535,131072-196607\nb/other\n";

#[test]
fn the_ranges_of_a_large_file_are_early_and_kept() {
    let desk = with_ranges();
    assert_eq!(desk.good("order export 1.sealift"), WHOLE_PIECES);
    let mut changed = noise(1, 1 << 20);
    changed[600_000] ^= 1;
    desk.write("tree/a/large", changed);
    desk.good("pack tree -o 2.sealift --name os --bundle-version 2 --chunk-size 64KiB --order-from 1.sealift");
    assert_eq!(desk.good("order export 2.sealift"), WHOLE_PIECES);
    // With other chunks, the ranges become those of the chunks that contain them.
    desk.good("pack tree -o 3.sealift --name os --bundle-version 3 --chunk-size 256KiB --order-from 1.sealift");
    let wide = WHOLE_PIECES.replace("589824-655359,0-65535,131072-196607", "524288-786431,0-262143");
    assert_eq!(desk.good("order export 3.sealift"), wide);
}

/// As in a disk image whose end is read before its beginning.
#[test]
fn ranges_lie_in_the_order_of_their_first_use() {
    let desk = with_ranges();
    let order = "# sealift order 1\na/large\t589824-655359,0-65535,262144-327679\nc/small\n";
    desk.write("profile", order);
    desk.good("pack tree -o 2.sealift --name os --bundle-version 2 --chunk-size 64KiB --order profile");
    assert_eq!(desk.good("order export 2.sealift"), order);
    let report = desk.json("simulate 2.sealift --profile profile --device hdd --json");
    assert_eq!(report["orders"][0]["seeks"], 0);
    desk.good("unpack 2.sealift target --allow-unsigned --state state");
    assert_eq!(desk.read("target/a/large"), noise(1, 1 << 20));
    assert_eq!(desk.good("order export target"), order);
    desk.good("pack target -o 3.sealift --name os --bundle-version 3 --chunk-size 64KiB --order-from target");
    assert_eq!(desk.good("order export 3.sealift"), order);
}

#[test]
fn what_lies_in_two_places_is_read_as_any_other() {
    let desk = with_ranges();
    desk.good("verify 1.sealift --deep --allow-unsigned");
    desk.good("unpack 1.sealift target --allow-unsigned --state state");
    assert_eq!(desk.read("target/a/large"), noise(1, 1 << 20));
    let report = desk.json("simulate 1.sealift --profile profile --device hdd --json");
    assert_eq!(report["orders"][0]["seeks"], 0);
    let read = report["orders"][0]["read_bytes"].as_u64().unwrap();
    assert!((3 * 65536 + 200_000..500_000).contains(&read), "{read}");
}

#[test]
fn equal_trees_give_equal_bundles_whatever_the_number_of_threads() {
    let desk = with_ranges();
    let mut bundles = ["1", "5"].map(|jobs| {
        let line = format!("pack tree -o j{jobs} --name os --chunk-size 64KiB --order profile --jobs {jobs}");
        desk.good(&line);
        desk.read(&format!("j{jobs}"))
    });
    let [one, five] = &mut bundles;
    assert!(one == five);
}

#[test]
fn a_file_of_a_new_version_has_the_place_of_the_old_one() {
    let desk = Desk::new();
    for (name, content) in
        [("lib/libz.so.1.2", "z"), ("lib/liba.so.4", "a"), ("app-1.0/main", "main"), ("unread-1", "u")]
    {
        desk.write(&format!("tree/{name}"), content);
    }
    desk.write("profile", "lib/libz.so.1.2\napp-1.0/main\nlib/liba.so.4\n");
    desk.good("pack tree -o 1.sealift --name os --bundle-version 1 --order profile");
    std::fs::rename(desk.path("tree/lib/libz.so.1.2"), desk.path("tree/lib/libz.so.1.10")).unwrap();
    std::fs::rename(desk.path("tree/app-1.0"), desk.path("tree/app-1.1")).unwrap();
    std::fs::remove_file(desk.path("tree/lib/liba.so.4")).unwrap();
    desk.write("tree/app-1.1/main", "new");
    desk.write("tree/app-1.1/extra", "is like none");
    desk.write("tree/unread-2", "is like one that is not read first");
    desk.says("pack tree -o 2.sealift --name os --bundle-version 2 --order-from 1.sealift", "found 2 of 3 paths");
    assert_eq!(desk.good("order export 2.sealift"), "# sealift order 1\nlib/libz.so.1.10\napp-1.1/main\n");
    // A profile that is given by hand names exactly its paths.
    desk.says("pack tree -o 3.sealift --name os --bundle-version 3 --order profile", "found 0 of 3 paths");
}

/// Returns the order of the chunks before a delta's landmark.
fn order_of(desk: &Desk, delta: &str, base: &str) -> String {
    let open = |name: &str| Input::open(&desk.path(name)).unwrap().open_any(Limits::default()).unwrap();
    let (Opened::Delta(delta), Opened::Whole(base)) = (open(delta), open(base)) else {
        panic!("they are other bundles")
    };
    let whole = delta.complete(&[&base.index]).unwrap();
    OrderProfile::of_bundle(&whole).map_or_else(String::new, |profile| profile.to_text())
}

#[test]
fn a_delta_has_what_is_read_first_before_all_else() {
    let desk = packed();
    for file in ["dir0/file0", "dir0/file18", "dir1/file16", "dir2/file2", "dir2/file17", "dir1/new"] {
        desk.write(&format!("tree/{file}"), format!("changed {file}"));
    }
    let said = desk.good("pack tree -o d.sealift --name os --bundle-version 2 --base 1.sealift --allow-unsigned");
    assert!(said.contains("found 7 of 7 paths in the order of the base"), "{said}");
    let changed = "# sealift order 1\ndir1/file16\ndir0/file18\ndir2/file2\n";
    assert_eq!(order_of(&desk, "d.sealift", "1.sealift"), changed);
    desk.write("other", "dir2/file2\ndir0/file0\n");
    desk.good("pack tree -o e.sealift --name os --bundle-version 2 --base 1.sealift --allow-unsigned --order other");
    assert_eq!(order_of(&desk, "e.sealift", "1.sealift"), "# sealift order 1\ndir2/file2\ndir0/file0\n");
    desk.good("pack tree -o plain.sealift --name os --bundle-version 1");
    desk.write("tree/dir0/file0", "again");
    desk.good("pack tree -o p.sealift --name os --bundle-version 2 --base plain.sealift --allow-unsigned");
    assert_eq!(order_of(&desk, "p.sealift", "plain.sealift"), "");
}

#[test]
fn a_delta_has_early_ranges_first_and_is_applied_as_any_other() {
    let desk = with_ranges();
    let mut changed = noise(1, 1 << 20);
    changed.iter_mut().step_by(50_000).for_each(|byte| *byte ^= 1);
    desk.write("tree/a/large", &changed);
    desk.write("tree/c/small", "changed");
    desk.write("tree/z", "changed too");
    let options = "--chunk-size 64KiB --delta-memory 256KiB --base 1.sealift --allow-unsigned";
    desk.good(&format!("pack tree -o d.sealift --name os --bundle-version 2 {options}"));
    assert_eq!(order_of(&desk, "d.sealift", "1.sealift"), WHOLE_PIECES.replace("b/other\n", ""));
    desk.good("verify d.sealift --deep --base 1.sealift --allow-unsigned");
    desk.good("unpack 1.sealift target --allow-unsigned --state state");
    desk.good("unpack d.sealift target --update --allow-unsigned --state state");
    assert!(desk.read("target/a/large") == changed);
    assert_eq!(desk.text("target/c/small"), "changed");
}

/// The ranges that a delta brings are added to the earlier ranges of the file.
#[test]
fn ranges_are_kept_beside_those_that_a_delta_brings() {
    let desk = with_ranges();
    desk.good("unpack 1.sealift target --allow-unsigned --state state");
    let packed = |version: u32, profile: &str, len: usize| {
        let mut changed = noise(1, len);
        changed.iter_mut().step_by(50_000).for_each(|byte| *byte ^= u8::try_from(version).unwrap());
        desk.write("tree/a/large", &changed);
        desk.write("profile", profile);
        let options = "--chunk-size 64KiB --delta-memory 256KiB --base target --allow-unsigned --order profile";
        desk.good(&format!("pack tree -o {version}.delta --name os --bundle-version {version} {options}"));
        desk.good(&format!("unpack {version}.delta target --allow-unsigned --state state"));
        desk.good("order export target")
    };
    let united = "589824-655359,0-65535,131072-196607,262144-327679";
    let expected = WHOLE_PIECES.replace("589824-655359,0-65535,131072-196607", united);
    assert_eq!(packed(2, "# sealift order 1\na/large\t131072-131073,262144-262145\n", 1 << 20), expected);
    // A range that no longer exists is dropped.
    let shorter = expected.replace("589824-655359", "589824-599999");
    assert_eq!(packed(3, "# sealift order 1\na/large\t262144-262145\n", 600_000), shorter);
    assert_eq!(packed(4, "a/large\n", 600_000), "# sealift order 1\nc/small\na/large\nb/other\n");
}

#[test]
fn a_file_shorter_than_its_ranges_leaves_the_order() {
    let desk = with_ranges();
    desk.write("profile", "# sealift order 1\nc/small\na/large\t600000-600001\n");
    desk.good("pack tree -o 1.sealift --name os --bundle-version 1 --chunk-size 64KiB --order profile --force");
    desk.good("unpack 1.sealift target --allow-unsigned --state state");
    desk.write("tree/a/large", noise(1, 300_000));
    let left = "# sealift order 1\nc/small\n";
    let options = "--name os --bundle-version 2 --chunk-size 64KiB";
    desk.good(&format!("pack tree -o 2.sealift {options} --order-from 1.sealift"));
    assert_eq!(desk.good("order export 2.sealift"), left);
    desk.good(&format!("pack tree -o d.sealift {options} --delta-memory 256KiB --base 1.sealift --allow-unsigned"));
    assert_eq!(desk.good("order export d.sealift --base 1.sealift"), left);
    desk.good("unpack d.sealift target --update --allow-unsigned --state state");
    assert_eq!(desk.good("order export target"), left);
}

#[test]
fn what_is_read_first_lies_in_smaller_chunks() {
    let desk = Desk::new();
    for file in 0..40 {
        desk.write(&format!("tree/file{file:02}"), noise(file, 20_000));
    }
    let lines: Vec<String> = (0..20).map(|file| format!("file{file:02}")).collect();
    desk.write("profile", lines.join("\n"));
    let chunks = |options: &str| {
        desk.good(&format!("pack tree -o b.sealift --force --chunk-size 1MiB{options}"));
        let bundle = Input::open(&desk.path("b.sealift")).unwrap().open_bundle(Limits::default()).unwrap();
        let lens: Vec<u32> = bundle.layout.chunks.iter().map(|chunk| chunk.len).collect();
        let hot = usize::try_from(bundle.layout.landmark.map_or(0, |hot| hot.end)).unwrap();
        (lens[..hot].to_vec(), lens[hot..].to_vec())
    };
    assert_eq!(chunks(""), (vec![], vec![800_000]));
    let (hot, cold) = chunks(" --order profile --order-chunk-size 64KiB");
    assert!(hot.iter().sum::<u32>() == 400_000 && cold == [400_000], "{hot:?} {cold:?}");
    assert!(hot.iter().all(|len| *len <= 100_000), "{hot:?}");
    assert!(hot[..hot.len() - 1].iter().all(|len| *len >= 40_000), "{hot:?}");
    assert_eq!(chunks(" --order profile --order-chunk-size 4MiB"), (vec![400_000], vec![400_000]));
    desk.refused("pack tree -o c.sealift --order-chunk-size 4095", 2, "less than 4096");
}

#[test]
fn what_is_read_first_may_lie_at_the_end() {
    let desk = with_ranges();
    desk.good("pack tree -o 2.sealift --name os --bundle-version 2 --chunk-size 64KiB --order profile --zone end");
    let layout = |name: &str| {
        let bundle = Input::open(&desk.path(name)).unwrap().open_bundle(Limits::default()).unwrap();
        (bundle.layout.landmark.clone().unwrap(), u32::try_from(bundle.layout.chunks.len()).unwrap())
    };
    let ((start, count), (end, of)) = (layout("1.sealift"), layout("2.sealift"));
    assert!(start.start == 0 && end.end == of && count == of && start.len() == end.len(), "{start:?} {end:?}");
    assert_eq!(desk.good("order export 2.sealift"), WHOLE_PIECES);
    desk.good("verify 2.sealift --deep --allow-unsigned");
    desk.good("unpack 2.sealift target --allow-unsigned --state state");
    assert_eq!(desk.read("target/a/large"), noise(1, 1 << 20));
    let seconds = |name: &str, device: &str| {
        let line = format!("simulate {name} --profile profile --device dvd --json --set {device}");
        let report = desk.json(&line);
        report["orders"][0]["simulated_seconds"].as_f64().unwrap()
    };
    // The end of a disc that the bundle just fills is faster, not counting the first seek.
    let size = std::fs::metadata(desk.path("2.sealift")).unwrap().len();
    let disc = format!(
        "capacity_bytes={size} --set short_seek_ms=0 --set third_seek_ms=0 --set full_seek_ms=0 --set turn_ms=0"
    );
    assert!(seconds("2.sealift", &disc) < seconds("1.sealift", &disc));
    // A delta does the same.
    desk.write("tree/c/small", "changed");
    desk.write("tree/z", "changed too");
    desk.good("pack tree -o d.sealift --name os --bundle-version 3 --base 2.sealift --allow-unsigned --zone end");
    assert_eq!(order_of(&desk, "d.sealift", "2.sealift"), "# sealift order 1\nc/small\n");
    desk.good("unpack d.sealift target --update --allow-unsigned --state state");
    assert_eq!((desk.text("target/c/small"), desk.text("target/z")), ("changed".into(), "changed too".into()));
    // Without an order, there is nothing to move.
    desk.good("pack tree -o plain --name os --bundle-version 3 --zone end");
    desk.refused("pack tree -o plain --zone middle --force", 2, "invalid value");
}

#[test]
fn a_target_keeps_the_order_through_deltas_and_a_pack_from_it_goes_on() {
    let desk = packed();
    desk.good("unpack 1.sealift target --allow-unsigned --state state");
    assert_eq!(desk.good("order export target"), PROFILE);
    desk.write("tree/dir0/file18", "changed");
    desk.write("tree/dir1/file4", "is not read first");
    let delta = |version: u32, base: &str| {
        let pack = format!("pack tree -o {version}.delta --name os --bundle-version {version} --base {base}");
        desk.good(&format!("{pack} --allow-unsigned"))
    };
    // The delta brings one file of the order; the others keep their places.
    delta(2, "1.sealift");
    desk.good("unpack 2.delta target --allow-unsigned --state state");
    assert_eq!(desk.good("order export target"), PROFILE);

    // A directory as the base has the order too, and a file that replaces a removed one takes its place.
    std::fs::rename(desk.path("tree/dir1/file1"), desk.path("tree/dir1/file1.2")).unwrap();
    desk.write("tree/dir1/file1.2", "another version");
    desk.write("tree/dir2/file8", "changed as well");
    let successor = PROFILE.replace("dir1/file1\n", "dir1/file1.2\n");
    assert!(delta(3, "target").contains("found 7 of 7 paths in the order of the base"));
    desk.good("unpack 3.delta target --delete --allow-unsigned --state state");
    assert_eq!(desk.good("order export target"), successor);
    desk.good("unpack 3.delta target --delete --allow-unsigned --state state");
    assert_eq!(desk.good("order export target"), successor);

    let said = desk.good("pack tree -o 4.sealift --name os --bundle-version 4 --order-from target");
    assert!(said.contains("found 7 of 7 paths in the order of target"), "{said}");
    assert_eq!(desk.good("order export 4.sealift"), successor);
    // A new target of a delta and its base has the order as well, and a bundle without an order leaves none.
    desk.good("unpack 2.delta new --base 1.sealift --allow-unsigned --state state");
    assert_eq!(desk.good("order export new"), PROFILE);
    desk.good("pack tree -o plain.sealift --name os --bundle-version 5");
    desk.good("unpack plain.sealift target --update --delete --allow-unsigned --state state");
    desk.refused("order export target", 2, "target has no order");
    desk.refused("pack tree -o 6.sealift --order-from tree", 2, "tree has no order");
}

#[test]
fn a_damaged_order_of_a_target_counts_as_none() {
    let desk = packed();
    desk.good("unpack 1.sealift target --allow-unsigned --state state");
    let record = std::fs::read_dir(desk.path("."))
        .unwrap()
        .map(|entry| entry.unwrap().path().join("order"))
        .find(|path| path.is_file())
        .unwrap();
    let bytes = std::fs::read(&record).unwrap();
    for at in (0..bytes.len()).step_by(7) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 4;
        std::fs::write(&record, flipped).unwrap();
        desk.refused("order export target", 2, "target has no order");
    }
    std::fs::write(&record, &bytes).unwrap();
    assert_eq!(desk.good("order export target"), PROFILE);
}
