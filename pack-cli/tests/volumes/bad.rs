//! What is wrong with volumes is said by number and label, and nothing is installed.

use std::fs;

use crate::desk::{POLICY, Volumes};

/// A desk with the volumes of the bundle in `parts`, and their paths.
fn split() -> (Volumes, Vec<String>) {
    let desk = Volumes::new();
    desk.good("split os.sealift --size 256KiB -o parts");
    let paths = desk.volumes("parts").iter().map(|name| format!("parts/{name}")).collect();
    (desk, paths)
}

/// Checks that the volumes in `parts` are refused by a verb that shows and by one that installs.
#[track_caller]
fn refused(desk: &Volumes, why: &str) {
    desk.refused("ls parts", 1, why);
    desk.refused(&format!("verify parts {POLICY}"), 1, why);
    desk.refused(&format!("unpack parts target {POLICY}"), 1, "");
    assert!(!desk.path("target").exists());
}

#[test]
fn what_is_missing_is_said_by_number() {
    let (desk, paths) = split();
    fs::remove_file(desk.path(&paths[1])).unwrap();
    refused(&desk, &format!("parts has no volume 2 of {} of os version 7", paths.len()));
    fs::remove_file(desk.path(&paths[0])).unwrap();
    refused(&desk, &format!("parts has no volumes 1 and 2 of {} of os version 7", paths.len()));
    let list = paths[2..].join(" ");
    desk.refused(&format!("verify {list} {POLICY}"), 1, "has no volumes 1 and 2 of");
}

#[test]
fn a_number_that_is_there_twice_is_refused() {
    let (desk, paths) = split();
    fs::copy(desk.path(&paths[1]), desk.path("parts/copy.sealift-volume")).unwrap();
    refused(&desk, &format!("is os version 7, volume 2 of {}, and so is parts/copy.sealift-volume", paths.len()));
}

#[test]
fn a_cut_volume_and_a_longer_one_are_refused() {
    let (desk, paths) = split();
    let bytes = desk.read(&paths[2]);
    let label = format!("is os version 7, volume 3 of {}", paths.len());
    desk.write(&paths[2], &bytes[..bytes.len() - 1]);
    refused(&desk, &format!("{label}, and truncated: it has {} of {} bytes", bytes.len() - 1, bytes.len()));
    desk.write(&paths[2], [&bytes[..], b"x"].concat());
    refused(&desk, &format!("{label}, and continues after its end, at byte {}", bytes.len()));
    desk.write(&paths[2], &bytes[..500]);
    refused(&desk, &paths[2]);
    desk.write(&paths[2], &bytes[..50]);
    refused(&desk, &paths[2]);
    desk.write(&paths[2], &bytes);
    desk.does("verify parts");
}

#[test]
fn a_volume_of_another_set_is_refused() {
    let (desk, paths) = split();
    desk.good("pack tree -o other.sealift --name os --bundle-version 8 --key release --chunk-size 64KiB");
    desk.good("split other.sealift --size 256KiB -o other");
    fs::rename(desk.path(&paths[1]), desk.path("own")).unwrap();
    let other = paths[1].replace("parts/os-7", "other/os-8");
    fs::copy(desk.path(&other), desk.path(&paths[1])).unwrap();
    desk.refused("ls parts", 2, "parts has volumes of several sets");
    // Given as one of them, the others beside it are looked for.
    desk.refused(&format!("ls {}", paths[0]), 1, "has no volume 2 of");
    // A copy that was signed differently is another set too.
    desk.make_key("second");
    desk.good("sign os.sealift --key second");
    desk.good("split os.sealift --size 256KiB -o signed");
    fs::copy(desk.path(&paths[1].replace("parts", "signed")), desk.path(&paths[1])).unwrap();
    desk.refused("ls parts", 2, &format!("volume 2 of {} of os version 7", paths.len()));
    fs::rename(desk.path("own"), desk.path(&paths[1])).unwrap();
    desk.good("ls parts");
}

#[test]
fn every_damaged_byte_is_found() {
    let (desk, paths) = split();
    for path in &paths {
        let bytes = desk.read(path);
        for at in [9, 60, 111, 112, 150, 900, bytes.len() / 2, bytes.len() - 1] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            desk.write(path, &damaged);
            let (status, said) = desk.run(&format!("verify {path} {POLICY}"));
            // The front of other volumes than the first is not read from them, except for the head.
            let is_front = (112..2000).contains(&at) && !path.contains(".001-");
            assert!(status == Some(1) || is_front, "{path} at byte {at}: {status:?}: {said}");
        }
        desk.write(path, &bytes);
    }
    desk.does("verify parts");
}

#[test]
fn a_bundle_that_is_one_file_is_wanted_for_signing() {
    let (desk, paths) = split();
    desk.refused(&format!("sign {} --key release", paths[0]), 1, "a volume of a bundle that was split, not a bundle");
    desk.refused("ls tree", 2, "tree is a directory without volumes, and a bundle is a file");
}
