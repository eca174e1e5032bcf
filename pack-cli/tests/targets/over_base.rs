//! Delta bundles that are read over a given base, wherever a full bundle can be read.

use std::fs;

use sealift_desk::{kill_after, noise};

use crate::deltas::versions;
use crate::installed::Installed;

/// Holders of the base: its bundle, and a directory that was unpacked from it.
const BASES: [&str; 2] = ["1.sealift", "one"];

impl Installed {
    /// Checks that a verb prints the same about the full bundle of version 2 and about the delta over each base.
    fn says_the_same(&self, line: &str) {
        let full = self.good(&line.replace("BUNDLE", "2.sealift"));
        for base in BASES {
            assert_eq!(
                self.good(&line.replace("BUNDLE", &format!("delta.sealift --base {base}"))),
                full,
                "{line}: {base}"
            );
        }
    }
}

#[test]
fn it_is_listed_and_read_as_the_full_bundle() {
    let desk = versions();
    desk.says_the_same("ls BUNDLE -l");
    desk.says_the_same("ls BUNDLE --json");
    for name in ["usr/changed", "usr/same", "usr/share/moved", "new", "empty", "usr/libfoo.so.1.3"] {
        let line = format!("cat delta.sealift {name} --base 1.sealift --allow-unsigned");
        assert!(
            desk.command(&line).output().unwrap().stdout == fs::read(desk.path("tree").join(name)).unwrap(),
            "{name}"
        );
    }
    desk.refused("cat delta.sealift new --allow-unsigned", 4, "is a delta, which needs os version 1");
    assert_eq!(desk.good("diff 2.sealift delta.sealift --base one -q --exit-code"), "");
    assert_eq!(desk.good("diff delta.sealift tree --base 1.sealift -q --exit-code"), "");
    desk.good("audit two delta.sealift --base 1.sealift --allow-unsigned");
    desk.refused("audit one delta.sealift --base 1.sealift --allow-unsigned", 1, "differs");
}

#[test]
fn all_of_its_content_is_verified() {
    let desk = versions();
    for base in BASES {
        let said = desk.good(&format!("verify delta.sealift --deep --base {base} --allow-unsigned"));
        assert!(said.contains("every byte and the content of 10 objects"), "{said}");
    }
    // A file that the delta keeps, and one that it needs as a prefix.
    for name in ["usr/same", "usr/changed"] {
        let path = desk.path("one").join(name);
        let kept = fs::read(&path).unwrap();
        let mut other = kept.clone();
        other[77] ^= 1;
        fs::write(&path, other).unwrap();
        desk.refused("verify delta.sealift --deep --base one --allow-unsigned", 4, name);
        desk.refused("unpack delta.sealift three --base one --allow-unsigned", 4, name);
        assert!(!desk.path("three").exists());
        fs::write(&path, kept).unwrap();
    }
}

#[test]
fn a_new_target_is_made_of_both() {
    let desk = versions();
    for (number, base) in BASES.iter().enumerate() {
        let target = format!("new-{number}");
        desk.good(&format!("unpack delta.sealift {target} --base {base} --allow-unsigned"));
        desk.assert_same(&target, "tree");
        assert!(
            desk.good(&format!("unpack delta.sealift {target} --base {base} --allow-unsigned"))
                .contains("already unpacked")
        );
        // The record is that of the version: its full bundle finds nothing to do.
        desk.says(&format!("unpack 2.sealift {target} --update --allow-unsigned"), "10 files unchanged");
        desk.good(&format!("audit {target} --allow-unsigned"));
    }
    // A part of it, and a target that holds another bundle.
    desk.good("unpack delta.sealift part --path usr --base 1.sealift --allow-unsigned");
    assert_eq!(fs::read(desk.path("part/usr/same")).unwrap(), fs::read(desk.path("tree/usr/same")).unwrap());
    desk.write("tree/elsewhere", noise(8, 5_000));
    fs::remove_file(desk.path("tree/usr/same")).unwrap();
    desk.good("pack tree -o other.sealift --name os --bundle-version 1");
    desk.good("unpack other.sealift four --allow-unsigned");
    desk.good("unpack delta.sealift four --update --delete --base 1.sealift --allow-unsigned");
    desk.assert_same("four", "two");
    desk.good("unpack delta.sealift five --dry-run --base 1.sealift --allow-unsigned");
    assert!(!desk.path("five").exists());
    // A target that already holds the result needs no base; the given one may even be this target.
    desk.good("unpack delta.sealift one --update --delete --base one --allow-unsigned");
    desk.good("unpack delta.sealift one --update --delete --base one --allow-unsigned");
}

#[test]
fn an_object_larger_than_a_piece_stays_sparse() {
    let desk = Installed::new();
    let sparse = fs::File::create(desk.path("tree/sparse")).unwrap();
    sparse.set_len(64 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"in the middle", 32 << 20).unwrap();
    desk.write("tree/large", noise(3, 9 << 20));
    desk.install(1, "one");
    desk.write("tree/new", "new");
    desk.pack(2);
    desk.delta(&["1.sealift"], "delta.sealift");
    for (number, base) in BASES.iter().enumerate() {
        let target = format!("new-{number}");
        desk.good(&format!("unpack delta.sealift {target} --base {base} --allow-unsigned"));
        desk.assert_same(&target, "tree");
        let blocks = std::os::unix::fs::MetadataExt::blocks(&fs::metadata(desk.path(&target).join("sparse")).unwrap());
        assert!(blocks * 512 <= 1 << 20, "{blocks} blocks");
    }
}

#[test]
fn what_is_no_base_of_it_is_refused() {
    let desk = versions();
    desk.refused("ls delta.sealift --base 2.sealift", 4, "2.sealift: wrong base: this delta needs os version 1 (");
    desk.refused("ls delta.sealift --base two", 4, "two: wrong base");
    desk.refused("ls delta.sealift --base absent", 2, "absent");
    desk.refused("ls 2.sealift --base 1.sealift", 2, "2.sealift is a full bundle, which has no base");
    desk.refused("ls delta.sealift --base ostree:one", 2, "one");
    desk.refused("unpack delta.sealift 2.sealift six --base one --allow-unsigned", 2, "--base is for a single delta");
    // Each of several bases is needed.
    fs::create_dir(desk.path("etc")).unwrap();
    desk.write("etc/hosts", noise(4, 20_000));
    desk.good("pack etc -o etc.sealift --name etc --bundle-version 1");
    fs::copy(desk.path("etc/hosts"), desk.path("tree/hosts")).unwrap();
    desk.delta(&["1.sealift", "etc.sealift"], "both.sealift");
    desk.refused("ls both.sealift --base 1.sealift", 4, "both.sealift: it needs etc version 1 (");
    desk.good("verify both.sealift --deep --base etc.sealift --base one --allow-unsigned");
    desk.good("unpack both.sealift both --base etc.sealift --base one --allow-unsigned");
    desk.assert_same("both", "tree");
    // A directory without a record is hashed; its ref may have the name of its bundle.
    desk.good("verify both.sealift --deep --base etc --base one --allow-unsigned");
    desk.good("pack --force etc=etc -o etc.sealift --name etc --bundle-version 1");
    desk.delta(&["1.sealift", "etc.sealift"], "named.sealift");
    desk.good("verify named.sealift --deep --base one --base etc --allow-unsigned");
    desk.refused("ls named.sealift --base one --base tree", 4, "tree: wrong base: this delta needs os version 1 (");
}

/// Each delta uses its own bases.
#[test]
fn several_bundles_share_the_given_bases() {
    let desk = versions();
    desk.write("tree/newer", noise(7, 1_000));
    desk.good("pack tree -o 3.sealift --name os --bundle-version 3");
    desk.good("pack tree -o next.sealift --name os --bundle-version 3 --base 2.sealift --allow-unsigned");

    let bases = "--base 1.sealift --base 2.sealift";
    // They differ only in what has to be transferred.
    let differences = |line: &str| desk.good(line).split_once("\ndelta.sealift -> ").unwrap().0.to_owned();
    let said = differences(&format!("diff delta.sealift next.sealift {bases}"));
    assert!(said.ends_with("A  1.00 kB  newer"), "{said}");
    assert_eq!(differences("diff delta.sealift 3.sealift --base 1.sealift"), said);
    // The index that the old side makes is the base of the new side, whether it is also given or not.
    for bases in [bases, "--base 1.sealift"] {
        desk.refused(&format!("diff delta.sealift next.sealift {bases} --exit-code"), 1, "newer");
    }
    desk.good("diff 2.sealift next.sealift");
    desk.good("diff 2.sealift next.sealift --base two");
    desk.refused("diff delta.sealift next.sealift --base 2.sealift", 4, "this delta needs os version 1 (");
    let unused = "1.sealift is not a base of any bundle here";
    desk.refused("diff 2.sealift next.sealift --base 1.sealift", 2, unused);
    desk.refused("diff 2.sealift 3.sealift --base 1.sealift", 2, unused);
    desk.refused("diff tree 3.sealift --base 1.sealift", 2, unused);

    let all = "verify delta.sealift 3.sealift next.sealift --deep --allow-unsigned";
    let said = desk.good(&format!("{all} {bases}"));
    for objects in ["content of 10 objects", "content of 11 objects"] {
        assert!(said.contains(objects), "{said}");
    }
    desk.good(&format!("{all} --base 2.sealift --base one"));
    desk.refused(&format!("{all} --base 1.sealift"), 4, "next.sealift: it needs os version 2 (");
    for both in ["next.sealift nowhere", "nowhere next.sealift"] {
        desk.refused(&format!("verify {both} --allow-unsigned --base 1.sealift"), 2, "this delta needs os version 2 (");
    }
    desk.refused(&format!("{all} {bases} --base 3.sealift"), 2, "3.sealift is not a base of any bundle here");
    desk.refused("verify 2.sealift 3.sealift --base 1.sealift --allow-unsigned", 2, unused);
    desk.refused(
        "verify 2.sealift --base 1.sealift --allow-unsigned",
        2,
        "2.sealift is a full bundle, which has no base",
    );
}

/// Missing parts of a base are found before anything is written, and the message names the base.
#[test]
fn a_part_of_the_base_is_not_enough() {
    let desk = versions();
    desk.good("unpack 1.sealift part --path usr --allow-unsigned");
    for more in ["", " --dry-run"] {
        let line = format!("unpack delta.sealift new --base part --allow-unsigned{more}");
        desk.refused(&line, 4, "part: the delta needs files of its base");
        assert!(!desk.path("new").exists() && !desk.path(".new.sealift-partial").exists());
    }
    // A directory without a record is hashed, under the name that the delta has for its ref.
    fs::remove_dir_all(desk.path(".one.sealift-state")).unwrap();
    desk.good("unpack delta.sealift new --base one --allow-unsigned");
    desk.assert_same("new", "tree");
    // The error names the base whose record is damaged.
    desk.write(".part.sealift-state/index", "no index");
    desk.refused("verify delta.sealift --deep --base part --allow-unsigned", 1, "part: ");
    desk.refused("audit new --base 1.sealift --allow-unsigned", 2, "a delta given as BUNDLE");
}

/// A killed run is resumed, whatever it had copied from the base.
#[test]
fn a_killed_run_is_resumed() {
    let desk = Installed::new();
    for number in 0..40 {
        desk.write(&format!("tree/lib/{number}"), noise(number, 200_000));
    }
    desk.write("tree/large", noise(99, 9 << 20));
    desk.install(1, "one");
    desk.write("tree/new", noise(98, 3 << 20));
    desk.pack(2);
    desk.delta(&["1.sealift"], "delta.sealift");
    let mut was_left = false;
    for (number, base) in (0..24).zip(BASES.iter().cycle()) {
        let target = format!("target-{number}");
        let line = format!("unpack delta.sealift {target} --base {base} --allow-unsigned --durability none");
        kill_after(std::time::Duration::from_millis(4 * (number / 2)), &mut desk.command(&line));
        was_left |= desk.path(&format!(".{target}.sealift-partial")).exists() && !desk.path(&target).exists();
        desk.good(&line);
        desk.assert_same(&target, "tree");
        fs::remove_dir_all(desk.path(&target)).unwrap();
    }
    assert!(was_left, "no run was killed while it was at work");
}
