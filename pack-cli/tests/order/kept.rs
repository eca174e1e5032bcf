//! The order of a bundle, taken from it and kept by the next.

use crate::desk::Desk;

/// A tree of twenty files that differ, packed by a profile of seven of them.
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
    assert!(said.contains("found 6 of the 7 paths in the order of 1.sealift"), "{said}");
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
    desk.refused("order export plain.sealift", "plain.sealift has no order");
    desk.refused("pack tree -o 2.sealift --order-from plain.sealift", "plain.sealift has no order");
    desk.refused("pack tree -o 2.sealift --order profile --order-from 1.sealift", "cannot be used with");
    desk.write("tree/dir0/file3", "changed");
    desk.good("pack tree -o d.sealift --name os --bundle-version 2 --base 1.sealift --allow-unsigned");
    let (status, said) = desk.run(desk.command("order export d.sealift"));
    assert_eq!(status, Some(4), "{said}");
}
