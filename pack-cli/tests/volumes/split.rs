//! Splitting, and what comes out.

use std::time::Instant;

use sealift_desk::kill_after;

use crate::desk::Volumes;

/// Length of a header and of the fields in it (volumes 2).
const HEADER: usize = 112;

fn number(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()).try_into().unwrap()
}

#[test]
fn what_volumes_carry_is_the_bundle_byte_for_byte() {
    let desk = Volumes::new();
    desk.good("split os.sealift --size 256KiB -o parts");
    let bundle = desk.read("os.sealift");
    let names = desk.volumes("parts");
    assert!(names.len() > 3, "{names:?}");
    let mut joined: Vec<u8> = Vec::new();
    for name in &names {
        let volume = desk.read(&format!("parts/{name}"));
        assert!(volume.len() <= 256 << 10, "{name} has {} bytes", volume.len());
        let (offset, len) = (number(&volume, 24), number(&volume, 32));
        if joined.is_empty() {
            joined.extend(&volume[HEADER..HEADER + offset]);
        }
        assert_eq!(joined.len(), offset);
        joined.extend(&volume[volume.len() - len..]);
    }
    assert!(joined == bundle);
    desk.does("verify parts");
    desk.does("unpack parts target");
    desk.assert_same("tree", "target");
}

#[test]
fn equal_bundles_and_sizes_give_equal_volumes_and_volumes_can_be_split_again() {
    let desk = Volumes::new();
    desk.good("split os.sealift --size 256KiB -o one");
    desk.good("split os.sealift --size 256KiB -o two");
    // Again into the same directory, also over a damaged volume.
    let names = desk.volumes("one");
    desk.write(&format!("two/{}", names[1]), "damaged");
    desk.good("split os.sealift --size 256KiB -o two");
    desk.assert_equal("one", "two");
    desk.good("split one --size 128KiB -o smaller");
    desk.good(&format!("split smaller/{} --size 256KiB -o back", desk.volumes("smaller")[0]));
    desk.assert_equal("one", "back");
}

#[test]
fn a_directory_with_other_volumes_of_the_bundle_is_refused() {
    let desk = Volumes::new();
    desk.good("split os.sealift --size 256KiB -o parts");
    let names = desk.volumes("parts");
    let refused = |line: &str| {
        desk.refused(line, 2, "is in the way: the volumes of os version 7 do not include it");
        assert_eq!(desk.names("parts"), names, "{line}");
    };
    refused("split os.sealift --size 128KiB -o parts");
    desk.make_key("second");
    desk.good("sign os.sealift --key second");
    refused("split os.sealift --size 256KiB -o parts");
}

#[test]
fn the_smallest_size_is_said_and_it_is_enough() {
    let desk = Volumes::new();
    let (status, said) = desk.run("split os.sealift --size 1000 -o parts");
    assert_eq!(status, Some(2), "{said}");
    let needed: u64 = said.split("it needs ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(!desk.path("parts").exists());
    desk.refused(&format!("split os.sealift --size {} -o parts", needed - 1), 2, &format!("use {needed} or more"));
    let split = desk.json(&format!("split os.sealift --size {needed} -o parts --json"));
    let sizes: Vec<u64> =
        split["volumes"].as_array().unwrap().iter().map(|volume| volume["file_bytes"].as_u64().unwrap()).collect();
    assert_eq!(sizes.iter().max(), Some(&needed));
    desk.does("verify parts");
    // One byte more than the bundle needs, and one less.
    let whole = desk.json("split os.sealift --size fat32 -o one --json")["volumes"][0]["file_bytes"].as_u64().unwrap();
    for (size, count) in [(whole, 1), (whole - 1, 2)] {
        desk.good(&format!("split os.sealift --size {size} -o at-{size}"));
        assert_eq!(desk.volumes(&format!("at-{size}")).len(), count);
        desk.does(&format!("verify at-{size}"));
    }
    desk.refused("split os.sealift --size usb -o parts", 2, "write cd, dvd, bd or fat32");
    desk.refused("split - --size dvd -o parts", 1, "empty");
}

#[test]
fn a_damaged_bundle_is_not_split() {
    let desk = Volumes::new();
    let mut bytes = desk.read("os.sealift");
    let at = bytes.len() - 5;
    bytes[at] ^= 1;
    desk.write("os.sealift", &bytes);
    desk.refused("split os.sealift --size 128KiB -o parts", 1, "os.sealift: chunk ");
    assert!(!desk.path("parts").exists());
}

#[test]
fn a_bundle_without_chunks_is_one_volume() {
    let desk = Volumes::new();
    std::fs::create_dir(desk.path("empty")).unwrap();
    desk.pack("empty", "nothing", 1);
    desk.good("split nothing.sealift --size 64KiB -o parts");
    assert_eq!(desk.volumes("parts"), ["nothing-1.001-of-001.sealift-volume"]);
    desk.good("verify parts --deep --allow-unsigned --state state");
}

#[test]
fn killed_at_any_moment_no_volume_is_half_written() {
    let desk = Volumes::new();
    desk.good("split os.sealift --size 128KiB -o wanted");
    let start = Instant::now();
    desk.good("split os.sealift --size 128KiB -o parts");
    let whole = start.elapsed();
    for part in 0..10 {
        std::fs::remove_dir_all(desk.path("parts")).unwrap();
        kill_after(whole * part / 9, &mut desk.command("split os.sealift --size 128KiB -o parts"));
        let there = if desk.path("parts").exists() { desk.volumes("parts") } else { Vec::new() };
        for name in there {
            assert!(desk.read(&format!("parts/{name}")) == desk.read(&format!("wanted/{name}")), "{name}");
        }
        desk.good("split os.sealift --size 128KiB -o parts");
        desk.assert_equal("wanted", "parts");
    }
}

#[test]
fn pack_splits_what_it_packs_and_leaves_its_volumes_out() {
    let desk = Volumes::new();
    desk.good("split os.sealift --size 256KiB -o wanted");
    let pack =
        "pack tree -o parts/os.sealift --name os --bundle-version 7 --key release --chunk-size 64KiB --split 256KiB";
    std::fs::create_dir(desk.path("parts")).unwrap();
    let lines = desk.out(&format!("{pack} --json"));
    assert_eq!(lines.lines().count(), 2, "{lines}");
    assert_eq!(desk.names("parts"), desk.names("wanted"));
    desk.does("verify parts");
    // If it cannot be split, the bundle stays.
    desk.refused(
        "pack tree -o whole.sealift --name os --bundle-version 8 --key release --split 1000",
        2,
        "volumes of 1000 bytes are too small",
    );
    desk.does("verify whole.sealift");
    // Volumes beside the output are no part of the tree.
    std::fs::copy(
        desk.path(&format!("parts/{}", desk.names("parts")[0])),
        desk.path("tree/os-7.001-of-005.sealift-volume"),
    )
    .unwrap();
    desk.says(
        "pack tree -o tree/new.sealift --name os --bundle-version 9 --key release",
        "excluded os-7.001-of-005.sealift-volume",
    );
}
