//! What is refused before the first byte is written.

use std::fs;

use sealift_desk::{Mounted, has, noise, out, told};

use crate::desk::{LEN, MIB, Slots, assert_has, partitioned, start_of};

#[test]
fn a_device_that_is_too_small_by_a_sector() {
    let slots = Slots::new();
    let needed = LEN.next_multiple_of(512);
    let (Some(fits), Some(small)) = (slots.device("fits", needed), slots.device("small", needed - 512)) else { return };
    slots.does(&format!("unpack 1.sealift {}", fits.0));
    assert_has(&fits.0, 1);
    let why = format!("is too small: it has {} bytes, and the image {LEN}", needed - 512);
    for more in ["", " --dry-run"] {
        slots.is_refused(&format!("unpack 1.sealift {}{more}", small.0), 2, &why);
    }
    assert!(start_of(&small.0, needed - 512).iter().all(|byte| *byte == 0));
}

#[test]
fn a_device_that_is_used() {
    let slots = Slots::new();
    let Some(device) = slots.device("device", 16 * MIB) else { return };
    let unpack = format!("unpack 1.sealift {} --adopt", device.0);
    out(slots.command_of("mke2fs").args(["-q", "-F", &device.0]));
    fs::create_dir(slots.path("mounted")).unwrap();
    out(slots.command_of("mount").args([&device.0, "mounted"]));
    let mounted = Mounted::at(slots.path("mounted"));
    let why = format!("is in use: it is mounted at {}", mounted.path().display());
    slots.is_refused(&unpack, 2, &why);
    slots.is_refused(&format!("{unpack} --dry-run"), 2, &why);
    drop(mounted);
    slots.is_refused("unpack 1.sealift image:device --adopt", 2, &format!("it is attached to {}", device.0));
    out(slots.command_of("mkswap").args(["-q", "-f", &device.0]));
    if told(slots.command_of("swapon").arg(&device.0)).0 == Some(0) {
        slots.is_refused(&unpack, 2, "is in use: it is swap space");
        out(slots.command_of("swapoff").arg(&device.0));
    }
    slots.does(&unpack);
    assert_has(&device.0, 1);
}

#[test]
fn a_disk_whose_partition_is_mounted() {
    let slots = Slots::new();
    let Some((disk, [a, _])) = partitioned(&slots, "00000001") else { return };
    out(slots.command_of("mke2fs").args(["-q", "-F", &a]));
    fs::create_dir(slots.path("mounted")).unwrap();
    out(slots.command_of("mount").args([&a, "mounted"]));
    let _mounted = Mounted::at(slots.path("mounted"));
    slots.is_refused(&format!("unpack 1.sealift {} --adopt", disk.0), 2, "is in use: its partition ");
}

#[test]
fn a_read_only_device() {
    let slots = Slots::new();
    slots.write("file", vec![0; 8 * MIB]);
    let Some(device) = slots.attach("file", &["-r"]) else { return };
    slots.is_refused(&format!("unpack 1.sealift {}", device.0), 2, "is read-only");
    slots.is_refused(&format!("unpack 1.sealift {} --dry-run", device.0), 2, "is read-only");
}

#[test]
fn what_sealift_did_not_write() {
    let slots = Slots::new();
    let held = [
        ("ext", "mke2fs -q -F ext", "an ext2, ext3 or ext4 file system"),
        ("squash", "rm squash; mksquashfs 1 squash -quiet -no-progress", "a squashfs file system"),
        ("swap", "mkswap -q swap", "swap space"),
        ("table", "echo 'label: gpt' | sfdisk -q table", "a GPT partition table"),
        ("mbr", "echo 'label: dos\n2048,2048' | sfdisk -q mbr", "an MBR partition table"),
        ("text", "echo text > text", "data"),
    ];
    for (file, make, what) in held {
        if !has(&[make.split([' ', ';']).find(|word| has_program(word)).unwrap_or("sh")]) {
            continue;
        }
        slots.write(file, vec![0; 16 * MIB]);
        out(slots.command_of("sh").args(["-c", make]));
        let before = slots.read(file);
        for more in ["", " --dry-run", " --update"] {
            let said = slots.is_refused(
                &format!("unpack 1.sealift image:{file}{more}"),
                2,
                &format!("holds {what}, which sealift did not write"),
            );
            assert!(said.contains("--adopt"), "{said}");
        }
        assert!(slots.read(file) == before, "{file}");
        slots.does(&format!("unpack 1.sealift image:{file} --adopt"));
        assert_has(slots.path(file), 1);
    }
}

fn has_program(word: &str) -> bool {
    matches!(word, "mke2fs" | "mksquashfs" | "mkswap" | "sfdisk")
}

#[test]
fn what_is_no_slot() {
    let slots = Slots::new();
    slots.is_refused("unpack 1.sealift /dev/null", 2, "/dev/null is a character device");
    slots.is_refused("unpack 1.sealift /dev/no-such-device", 2, "/dev/no-such-device");
    assert!(!std::path::Path::new("/dev/no-such-device").exists());
    slots.is_refused("unpack 1.sealift image:1", 2, "is a directory");
    out(slots.command_of("mkfifo").arg("pipe"));
    slots.is_refused("unpack 1.sealift image:pipe", 2, "is a pipe");
    slots.is_refused("unpack 1.sealift image:no/folder/file", 2, "no/folder");
    std::os::unix::fs::symlink("/dev/gone", slots.path("link")).unwrap();
    slots.is_refused("unpack 1.sealift image:link", 2, "link");
    for option in [
        "--delete",
        "--path x",
        "--rehash",
        "--seal try",
        "--durability none",
        "--no-same-owner",
        "--hardlink-duplicates",
    ] {
        slots.is_refused(&format!("unpack 1.sealift image:it {option}"), 2, "not for a block device");
    }
    for option in ["--read-back", "--expect-partlabel x", "--expect-partuuid x"] {
        slots.is_refused(&format!("unpack 1.sealift directory {option}"), 2, "are for block devices");
    }
    for name in ["it", "directory"] {
        assert!(!slots.path(name).exists());
    }
}

#[test]
fn a_base_that_is_the_target_or_was_changed() {
    let slots = Slots::new();
    slots.does("unpack 1.sealift image:a");
    slots.is_refused("unpack delta.sealift image:a --base image:a", 2, "is also the bundle or its base");
    slots.is_refused("unpack delta.sealift image:a", 4, "is a delta");
    assert_has(slots.path("a"), 1);
    // The first range that differs is told, and nothing is written.
    let mut bytes = slots.read("a");
    bytes[5 * MIB + 7] ^= 1;
    slots.write("a", &bytes);
    slots.write("b", "");
    slots.is_refused("unpack delta.sealift image:b --base image:a", 4, "bytes 4194304 to 6291456 differ");
    assert_eq!(slots.read("b"), b"");
    slots.is_refused("audit image:a", 1, "differs: bytes ");
    let (_, told) = slots.ends("audit image:a --json");
    assert!(told.contains("\"differing\":[[4194304,6291456]]"), "{told}");
}

#[test]
fn trust_floor_name_and_tags_hold_as_for_a_tree() {
    let slots = Slots::new();
    slots.does("unpack 2.sealift image:a");
    slots.is_refused("unpack 1.sealift image:b", 3, "is older than version 2");
    slots.is_refused("unpack 1.sealift image:a", 3, "is older than version 2");
    assert!(!slots.path("b").exists());
    slots.write("signers", format!("* namespaces=\"sealift\" {}", slots.text("release.pub")));
    slots.good("pack 1 -o app.sealift --name app --bundle-version 9 --key release");
    slots.is_refused("unpack app.sealift image:a", 3, "refusing to replace it with \"app\"");
    slots.good("pack 1 -o tagged.sealift --name os --bundle-version 9 --key release --compatible other");
    slots.is_refused("unpack tagged.sealift image:a --compatible this", 3, "");
    slots.good("pack 1 -o unsigned.sealift --name os --bundle-version 9");
    slots.is_refused("unpack unsigned.sealift image:a", 3, "");
    assert_has(slots.path("a"), 2);
    slots.does("unpack unsigned.sealift image:a --allow-unsigned");
    assert_has(slots.path("a"), 1);
    assert!(slots.does("status").contains("os: accepts version 2 or newer"));
}

#[test]
fn two_runs_at_once() {
    let slots = Slots::new();
    slots.write("large/root.img", noise(3, 64 * MIB));
    slots.good("pack large -o large.sealift --name os --bundle-version 1 --key release --level 1");
    let Some(mut slow) = slots.strace(
        &["-e", "trace=pwrite64", "-e", "inject=pwrite64:delay_enter=300ms"],
        "unpack large.sealift image:a --trust signers",
    ) else {
        return;
    };
    let mut first = slow.spawn().unwrap();
    sealift_desk::wait("the first run writes", || slots.path("a").metadata().is_ok_and(|metadata| metadata.len() > 0));
    slots.is_refused("unpack large.sealift image:a", 2, "another sealift run is using");
    assert!(slots.ends("status image:a").1.contains("another sealift run is working on it"));
    assert_eq!(first.wait().unwrap().code(), Some(0));
    assert!(slots.read("a") == noise(3, 64 * MIB));
}

#[test]
fn a_base_of_which_nothing_is_known() {
    let slots = Slots::new();
    let (Some(a), Some(b)) = (slots.device("a", 8 * MIB), slots.device("b", 8 * MIB)) else { return };
    fs::write(&a.0, crate::desk::image(1)).unwrap();
    let line = format!("unpack delta.sealift {}", b.0);
    slots.is_refused(&line, 4, "is a delta");
    slots.is_refused(&format!("{line} --base {}", a.0), 4, "this device has no record of what was written to it");
    // Its bundle records it, and writes nothing.
    let told = slots.tells(&format!("unpack 1.sealift {} --update --adopt", a.0));
    assert_eq!(told["slots"][0]["written_bytes"].as_u64(), Some(0), "{told}");
    slots.does(&line);
    assert_has(&b.0, 2);
}
