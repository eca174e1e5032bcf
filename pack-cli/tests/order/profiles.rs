//! Profiles as text, merged and compared.

use std::ops::Range;
use std::process::Command;

use proptest::prelude::{ProptestConfig, Strategy, any, prop, proptest};
use sealift::order::{OrderEntry, OrderProfile, merge};
use sealift_desk::{Desk, out, told};

fn a_name() -> impl Strategy<Value = Vec<u8>> {
    let name = prop::collection::vec(any::<u8>(), 1..12);
    name.prop_filter("a file's name", |name| {
        !name.contains(&0) && !name.contains(&b'/') && name != b"." && name != b".."
    })
}

fn some_ranges() -> impl Strategy<Value = Vec<Range<u64>>> {
    let range = (0..1_u64 << 40, 1..1_u64 << 20).prop_map(|(start, len)| start..start + len);
    prop::collection::vec(range, 0..4)
}

fn a_profile() -> impl Strategy<Value = OrderProfile> {
    let path = prop::collection::vec(a_name(), 1..4).prop_map(|names| names.join(&b'/'));
    let entry = (path, some_ranges()).prop_map(|(path, ranges)| OrderEntry { path, ranges });
    prop::collection::vec(entry, 0..20).prop_map(OrderProfile::new)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_profile_is_read_as_it_was_written(profile in a_profile()) {
        assert_eq!(OrderProfile::parse(profile.to_text().as_bytes()), Ok(profile));
    }

    #[test]
    fn arbitrary_bytes_are_read_or_refused(text in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(profile) = OrderProfile::parse(&text) {
            let again = OrderProfile::parse(profile.to_text().as_bytes()).unwrap();
            assert_eq!(again.entries(), profile.entries());
        }
    }

    #[test]
    fn merging_loses_and_repeats_nothing(a in a_profile(), b in a_profile()) {
        let merged = merge(&[a.clone(), b.clone()]);
        let paths = |profile: &OrderProfile| {
            let mut paths: Vec<_> = profile.entries().iter().map(|entry| entry.path.clone()).collect();
            paths.sort();
            paths
        };
        let mut expected = [paths(&a), paths(&b)].concat();
        expected.sort();
        expected.dedup();
        assert_eq!(paths(&merged), expected);
        assert_eq!(merge(&[merged.clone(), merged.clone()]), merged);
        assert_eq!(merge(std::slice::from_ref(&a)), a);
    }
}

#[test]
fn the_earliest_use_counts() {
    let desk = Desk::new();
    desk.write("a", "# sealift order 1\nboot\nlibc\t0-9\nlate\n");
    desk.write("b", "libc\t20-29\neditor\nicons\nboot\n");
    desk.write("c", "icons\t0-9\neditor\t5-6\n");
    assert_eq!(desk.good("order merge a b"), "# sealift order 1\nboot\nlibc\t20-29,0-9\neditor\nlate\nicons\n");
    desk.good("order merge b c -o merged");
    assert_eq!(desk.text("merged"), "# sealift order 1\nlibc\t20-29\nicons\neditor\nboot\n");
    desk.refused("order merge a -o merged", 2, "use --force");
    assert_eq!(desk.good("order merge a -o merged --force"), "merged: 3 files, 1 range\n");
}

#[test]
fn programs_that_start_in_turn_have_their_profiles_in_turn() {
    let desk = Desk::new();
    desk.write("a", "# sealift order 1\nboot\nlibc\t0-9\nlate\n");
    desk.write("b", "libc\t20-29\neditor\nboot\n");
    let merged = desk.good("order merge --one-after-another a b");
    assert_eq!(merged, "# sealift order 1\nboot\nlibc\t0-9,20-29\nlate\neditor\n");
}

/// mksquashfs and xorriso lay files out by a list that was made from a profile.
#[test]
fn other_programs_lay_out_by_a_profile() {
    let desk = Desk::new();
    let names = ["late", "usual", "b c", "a\\d", "first", "#hash"];
    for (number, name) in (1_u8..).zip(names) {
        desk.write(&format!("os/dir/{name}"), vec![number; 3000]);
    }
    desk.write("order", "dir/first\ndir/gone\ndir/a\\d\ndir/b c\ndir/#hash\ndir/late\n");
    desk.good("pack os -o os.sealift --order order");
    desk.good("order export os.sealift --format sort -o exported.sort");
    desk.good("order merge order --format sort -o merged.sort");
    // xorriso refuses a list of which a file is missing.
    desk.good("order export os.sealift --format weights -o weights");
    assert_eq!(desk.text("exported.sort"), "dir/first 5\ndir/a\\\\d 4\ndir/b\\ c 3\ndir/#hash 2\ndir/late 1\n");
    assert!(desk.good("order import sort exported.sort").starts_with("# sealift order 1\ndir/first\ndir/a"));
    let order = ["first", "a\\d", "b c", "#hash", "late", "usual"];
    for line in [
        "mksquashfs os image -noappend -noD -noF -no-fragments -sort exported.sort",
        "mksquashfs os image -noappend -noD -noF -no-fragments -sort merged.sort",
        "xorrisofs -quiet -R -o image --sort-weight-list weights os",
    ] {
        let _ = std::fs::remove_file(desk.path("image"));
        out(Command::new("sh").args(["-c", line]).current_dir(desk.path("")));
        let bytes = desk.read("image");
        let place = |name: &str| {
            let number = (1_u8..).zip(names).find(|(_, other)| *other == name).unwrap().0;
            bytes.windows(3000).position(|part| part.iter().all(|byte| *byte == number)).unwrap()
        };
        assert!(order.map(place).is_sorted(), "{line}: {:?}", order.map(place));
    }
}

#[test]
fn a_profile_that_names_nothing_is_told() {
    let desk = Desk::new();
    desk.write("os/a", "a");
    desk.write("other", "srv/os/a\nsrv/os/b\n");
    let said = desk.good("pack os -o os.sealift --order other --quiet");
    assert!(said.contains("warning: none of the 2 paths in the order other is a file here"), "{said}");
    desk.write("own", "a\nb\n");
    assert_eq!(desk.good("pack os -o os.sealift --order own --quiet --force"), "");
}

#[test]
fn options_that_would_do_nothing_are_refused() {
    let desk = Desk::new();
    desk.write("a", "one\n");
    for verb in ["record -o b -- true", "import paths a", "merge a", "diff a a"] {
        let (name, rest) = verb.split_once(' ').unwrap();
        desk.refused(&format!("order {name} --limit entries=5 {rest}"), 2, "this verb reads no bundle");
        assert!(!desk.good(&format!("order {name} --help")).contains("--limit"), "{name}");
    }
    desk.says("order export --help", "--limit");
    for line in ["merge a --force", "import paths a --force", "export a --force"] {
        desk.refused(&format!("order {line}"), 2, "--output <PROFILE>");
    }
    for disk in ["--image disk.img", "--filesystem disk.img"] {
        desk.refused(&format!("order import nbdkit a {disk} --root /srv"), 2, "cannot be used with");
    }
}

#[test]
fn a_profile_may_come_from_a_pipe() {
    let desk = Desk::new();
    desk.write("a", "one\n");
    desk.write("b", "two\nthree\n");
    let piped = |line: &str, from: &str| {
        let mut command = desk.command(line);
        command.stdin(std::fs::File::open(desk.path(from)).unwrap());
        told(&mut command)
    };
    assert_eq!(piped("order merge a -", "b"), (Some(0), "# sealift order 1\none\ntwo\nthree\n".into()));
    assert_eq!(piped("order diff - b", "b"), (Some(0), "- -> b: no difference\n".into()));
    for line in ["order diff - -", "order merge - a -"] {
        desk.refused(line, 2, "standard input can be only one of the profiles");
    }
    desk.write("leaves", "a\n..\n");
    let (status, said) = piped("order merge -", "leaves");
    assert!(status == Some(2) && said.contains("standard input: line 2: a path with .."), "{said}");
}

#[test]
fn only_what_moves_is_moved() {
    let desk = Desk::new();
    desk.write("a", "# sealift order 1\none\ntwo\nthree\nfour\t0-9\nfive\n");
    desk.write("b", "# sealift order 1\nnew\nfive\ntwo\nthree\nfour\t0-19\n");
    let expected = "D  1  one\nA  1  new\nR  5 -> 2  five\nr  4 -> 5  four\na -> b: 1 added, 1 removed, 1 moved, 1 with changed ranges\n";
    assert_eq!(desk.good("order diff a b"), expected);
    assert_eq!(desk.run("order diff a b --exit-code --quiet"), (Some(1), String::new()));
    assert_eq!(desk.run("order diff a a --exit-code"), (Some(0), "a -> a: no difference\n".into()));
    let json = desk.json("order diff a b --json");
    assert_eq!(
        json["entries"][2],
        serde_json::json!({"kind": "moved", "path": "five", "old_position": 5, "new_position": 2})
    );
    assert_eq!(json["counts"], serde_json::json!({"added": 1, "removed": 1, "moved": 1, "ranges": 1}));
}

#[test]
fn faults_name_file_and_line() {
    let desk = Desk::new();
    desk.write("os/a", "a");
    desk.write("leaves", "a\n../../etc/shadow\n");
    desk.write("junk", b"a\n\x7fELF\x02\x01\x01\0\0\n");
    for line in ["order merge", "order diff leaves", "pack os -o os.sealift --order"] {
        desk.refused(&format!("{line} leaves"), 2, "leaves: line 2: a path with .. may leave the root");
    }
    desk.refused("order merge junk", 2, "junk: line 2: control characters in a path");
    desk.refused("pack os -o os.sealift --order junk", 2, "junk: line 2");
    desk.write("odd", "a\t0\x01\n");
    desk.refused("order merge odd", 2, "odd: line 1: range 0\\u{1}: write FIRST-LAST");
    desk.write("ranges", "a\t0-9\nb\t9-0\n");
    for line in ["order merge", "order diff ranges", "order import paths", "pack os -o os.sealift --order"] {
        desk.refused(&format!("{line} ranges"), 2, "ranges: line 2: range 9-0: it ends before it begins");
    }
    desk.refused("order merge nowhere", 2, "cannot read nowhere");
    assert!(!desk.path("os.sealift").exists());
}

#[test]
fn names_are_found_however_they_are_written() {
    let desk = Desk::new();
    for name in ["a\\x2db", "b\nc", "gr\u{fc}n", "#d"] {
        desk.write(&format!("os/{name}"), name);
    }
    let found = |profile: &str| {
        desk.write("profile", profile);
        let json = desk.good("pack os -o os.sealift --force --json --order profile");
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        (json["order_matched"].as_u64().unwrap(), json["order_paths"].as_u64().unwrap())
    };
    assert_eq!(found("a\\x2db\nb\\nc\ngr\u{fc}n\n./#d\nnowhere\n"), (4, 5));
    assert_eq!(found("# sealift order 1\na\\\\x2db\t0-5\nb\\nc\ngr\u{fc}n\n./#d\n"), (4, 4));
    assert_eq!(found("a\\\\x2db\nb%0Ac\n"), (2, 2));
}

#[test]
fn a_million_lines_are_merged_in_seconds() {
    let desk = Desk::new();
    let mut text = String::new();
    for number in 0..1_000_000 {
        text.push_str(&format!("usr/share/{}/file-{number}\n", number % 1000));
    }
    desk.write("large", &text);
    let start = std::time::Instant::now();
    assert_eq!(desk.good("order merge large -o merged"), "merged: 1,000,000 files\n");
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
    assert!(desk.text("merged") == format!("# sealift order 1\n{text}"));
}
