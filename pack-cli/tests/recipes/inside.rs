//! What is in images, archives and compressed files: `IMAGE//PATH`.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use sealift_desk::{has, said, skipped};

use crate::desk::Images;

/// Packs images of both trees into `NAME-1.sealift` and `NAME-2.sealift`.
fn pack(images: &Images, name: &str, options: &str) {
    for version in 1..=2 {
        let pack = format!(
            "pack {version} -o {name}-{version}.sealift --name os --bundle-version {version} --key release {options}"
        );
        images.good(&pack);
    }
}

fn cat(images: &Images, bundle: &str, path: &str) -> Vec<u8> {
    let done = images.command(&format!("cat {bundle} {path} --trust signers --state state")).output().unwrap();
    assert!(done.status.success(), "{path}: {}", said(&done));
    done.stdout
}

#[test]
fn files_in_images_are_listed_read_and_compared_however_they_are_stored() {
    let Some(images) = Images::new() else { return };
    if !has(&["mkfs.ext4", "sfdisk", "tar"]) {
        return skipped("needs mkfs.ext4, sfdisk and tar: makes a disk");
    }
    for version in 1..=2 {
        let make = format!(
            "tar -C tree-{version} -czf {version}/t.tar.gz etc usr && gzip -c tree-{version}/etc/file-9 > {version}/one.gz && mkfs.ext4 -q -d \
             tree-{version} fs 8M && truncate -s 10M {version}/disk.img && echo start=2048 | sfdisk -q --label gpt {version}/disk.img && dd if=fs \
             of={version}/disk.img bs=512 seek=2048 conv=notrunc status=none && rm fs && mkdir {version}/dir && cp tree-{version}/etc/file-9 \
             {version}/dir/"
        );
        assert!(images.shell(&make).status().unwrap().success());
    }
    let places = ["os.squashfs//", "t.tar.gz//", "disk.img//1//"];
    pack(&images, "plain", "");
    pack(&images, "made", "--recipes");
    for name in ["plain", "made"] {
        let (old, new) = (format!("{name}-1.sealift"), format!("{name}-2.sealift"));
        for place in places {
            // Lists have every regular file of the tree, with paths that `cat` takes.
            let listed = images.good(&format!("ls {old} {place}"));
            let listed: BTreeSet<&str> = listed.lines().filter_map(|path| path.strip_prefix(place)).collect();
            for path in ["etc/file-0", "etc/file-199", "usr/lib/large.so", "usr/share/zeros"] {
                assert!(listed.contains(path), "{place}{path}: {listed:?}");
                let read = cat(&images, &old, &format!("{place}{path}"));
                assert!(read == images.read(&format!("tree-1/{path}")), "{name} {place}{path}");
            }
            assert_eq!(listed.len(), if place == "t.tar.gz//" { 205 } else { 206 }, "{place}");
            let below = images.good(&format!("ls -l {old} {place}usr/lib"));
            assert_eq!(below.trim(), format!("240000 {place}usr/lib/large.so"));
            // Comparisons have the files that differ, and no others.
            let changed =
                ["etc/file-123", "etc/file-163", "etc/file-3", "etc/file-43", "etc/file-83", "usr/lib/large.so"];
            let compared = images.json(&format!("diff {old} {new} --path {place} --json"));
            let entries = compared["entries"].as_array().unwrap().iter();
            let found: Vec<&str> = entries.filter_map(|entry| entry["path"].as_str()?.strip_prefix(place)).collect();
            assert_eq!(found, changed, "{place}: {compared}");
            let same = images.good(&format!("diff {old} {old} --path {place} --exit-code"));
            assert!(same.contains("no difference in"), "{same}");
            let refused = images.command(&format!("diff {old} {new} --path {place}etc --exit-code")).output().unwrap();
            assert_eq!(refused.status.code(), Some(1));
        }
        assert!(cat(&images, &old, "one.gz//") == images.read("tree-1/etc/file-9"));
        // Two slashes behind a directory are one.
        assert!(cat(&images, &old, "dir//file-9") == images.read("tree-1/etc/file-9"));
    }
}

#[test]
fn what_is_not_there_or_is_no_container_is_said() {
    let Some(images) = Images::new() else { return };
    images.write("1/plain", "no container");
    images.write("1/broken.gz", [&[0x1f, 0x8b, 8, 0][..], &[7; 60]].concat());
    pack(&images, "made", "--recipes");
    for (path, words) in [
        ("os.squashfs//nothing", "has no file os.squashfs//nothing"),
        ("os.squashfs//etc", "has no file os.squashfs//etc"),
        ("os.squashfs//usr/link", "os.squashfs//usr/link is a symbolic link to ../etc/file-3"),
        ("os.squashfs//etc/file-3//x", "os.squashfs//etc/file-3 is no image, archive or compressed file"),
        ("plain//x", "plain is no image, archive or compressed file"),
        ("nothing//x", "has no file nothing//x"),
    ] {
        let done =
            images.command(&format!("cat made-1.sealift {path} --trust signers --state state")).output().unwrap();
        let said = said(&done);
        assert!(!done.status.success() && done.stdout.is_empty() && said.contains(words), "{path}: {said}");
    }
    let done = images.command("cat made-1.sealift broken.gz// --trust signers --state state").output().unwrap();
    assert!(!done.status.success() && done.stdout.is_empty(), "{}", said(&done));
    // A pipe can be read only once.
    let pipe = std::fs::File::open(images.path("made-1.sealift")).unwrap();
    let mut cat = Command::new("cat").stdin(pipe).stdout(Stdio::piped()).spawn().unwrap();
    let done = images.command("ls - os.squashfs//").stdin(cat.stdout.take().unwrap()).output().unwrap();
    assert!(!done.status.success() && done.stdout.is_empty(), "{}", said(&done));
    cat.wait().unwrap();
}

#[test]
fn a_delta_is_looked_into_over_its_base() {
    let Some(images) = Images::new() else { return };
    let read = images
        .command("cat delta.sealift os.squashfs//etc/file-3 --base 1.sealift --trust signers --state state")
        .output()
        .unwrap();
    assert!(read.status.success() && read.stdout == images.read("tree-2/etc/file-3"));
    let listed = images.good("ls delta.sealift os.squashfs//etc --base 1.sealift");
    assert_eq!(listed.lines().count(), 200);
    // The old side serves as the base.
    let compared = images.good("diff 1.sealift delta.sealift --path os.squashfs//etc");
    assert!(compared.contains("5 changed"), "{compared}");
}
