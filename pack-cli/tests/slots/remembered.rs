//! What the device remembers of a slot.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use sealift_desk::{Mounted, add_partition, has, out, remove_partition};

use crate::desk::{LEN, Slots, assert_has, attached, image, partitioned, start_of};

#[test]
fn status_audit_request_and_clean_know_a_slot() {
    let slots = Slots::new();
    let Some(device) = slots.device("device", 8 << 20) else { return };
    let device = &device.0;
    slots.is_refused(&format!("audit {device}"), 2, "no install record");
    slots.is_refused(&format!("request {device} -o it.request"), 2, "");
    slots.does(&format!("unpack 1.sealift {device}"));
    let status = slots.does(&format!("status {device}"));
    assert!(status.contains(&format!("{device}: os version 1")), "{status}");
    let told = slots.tells(&format!("audit {device}"));
    assert_eq!((told["name"].as_str(), told["differing_bytes"].as_u64()), (Some("os"), Some(0)), "{told}");
    // A request describes it, and the delta that is packed for it fits.
    slots.good(&format!("request {device} -o it.request"));
    slots.good("pack 2 -o for.sealift --name os --bundle-version 2 --key release --for it.request");
    slots.does(&format!("unpack for.sealift image:other --base {device}"));
    assert_has(slots.path("other"), 2);
    assert!(slots.good(&format!("clean {device}")).contains("nothing to clean"));
    // Other bytes are found, and so is another partition under its name.
    fs::write(device, "overwritten").unwrap();
    slots.is_refused(&format!("audit {device}"), 1, "differs: bytes 0 to ");
    assert!(slots.path("state/slots").exists());
}

#[test]
fn a_lost_record_is_no_consent() {
    let slots = Slots::new();
    slots.does("unpack 1.sealift image:a");
    fs::remove_dir_all(slots.path("state/slots")).unwrap();
    let said = slots.is_refused("unpack 2.sealift image:a", 2, "has lost its install record");
    assert!(said.contains("--adopt"), "{said}");
    slots.does("unpack 2.sealift image:a --adopt --update");
    assert_has(slots.path("a"), 2);
    // A damaged one is told as such by all verbs.
    for file in ["head", "index", "slot", "pieces"] {
        let folder = fs::read_dir(slots.path("state/slots")).unwrap().next().unwrap().unwrap().path();
        let path = folder.join("held").join(file);
        let good = fs::read(&path).unwrap();
        fs::write(&path, &good[1..]).unwrap();
        slots.is_refused("unpack 2.sealift image:a", 2, "has a damaged install record");
        slots.is_refused("audit image:a", 2, "");
        slots.is_refused("unpack delta.sealift image:b --base image:a", 2, "");
        fs::write(&path, &good).unwrap();
    }
    slots.does("audit image:a");
}

#[test]
fn a_slot_that_went_back_with_its_record_is_noticed() {
    let slots = Slots::new();
    slots.does("unpack 1.sealift image:a");
    let before = (slots.read("a"), fs::read_dir(slots.path("state/slots")).unwrap().next().unwrap().unwrap().path());
    let copied = slots.path("copied");
    let copy = |from: &std::path::Path, to: &std::path::Path| {
        out(slots.command_of("cp").arg("-a").arg("--").arg(from).arg(to));
    };
    copy(&before.1, &copied);
    slots.does("unpack 2.sealift image:a");
    fs::remove_dir_all(&before.1).unwrap();
    copy(&copied, &before.1);
    slots.write("a", &before.0);
    slots.is_refused("audit image:a", 1, "gone back");
    assert!(slots.does("status").contains("it has gone back"));
}

#[test]
fn a_slot_is_a_base_for_every_verb_that_reads_a_delta() {
    let slots = Slots::new();
    slots.does("unpack 1.sealift image:a --state elsewhere");
    let base = "--base image:a --state elsewhere";
    let cat = slots.command(&format!("cat delta.sealift root.img --trust signers {base}")).output().unwrap();
    assert!(cat.stdout == image(2), "{}", sealift_desk::said(&cat));
    slots.does(&format!("verify delta.sealift {base}"));
    slots.does(&format!("unpack delta.sealift directory {base}"));
    assert_has(slots.path("directory/root.img"), 2);
    // Without that state it is only a file, and not the one that was packed.
    slots.is_refused("verify delta.sealift --base image:a", 4, "wrong base");
}

#[test]
fn a_slot_that_the_factory_wrote_is_recorded_without_a_write() {
    let slots = Slots::new();
    slots.write("a", image(1));
    let times = || {
        let metadata = fs::metadata(slots.path("a")).unwrap();
        (metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec())
    };
    let before = times();
    let told = slots.tells("unpack --update --adopt 1.sealift image:a");
    let slot = &told["slots"][0];
    assert_eq!((&slot["written_bytes"], &slot["kept_bytes"]), (&0.into(), &LEN.into()), "{told}");
    assert_eq!(times(), before);
    slots.does("audit image:a");
    slots.does("unpack delta.sealift image:b");
    assert_has(slots.path("b"), 2);
    // What was changed since is repaired by the same delta, since its base is there.
    fs::write(slots.path("b"), "changed").unwrap();
    slots.does("unpack delta.sealift image:b");
    assert_has(slots.path("b"), 2);
}

/// A device runs from the slot over which the delta is read.
#[test]
fn a_slot_that_is_mounted_is_audited_and_is_a_base() {
    let slots = Slots::new();
    let (Some(a), Some(b)) = (slots.device("a", 16 << 20), slots.device("b", 16 << 20)) else { return };
    if !has(&["mkfs.ext4", "debugfs"]) {
        return;
    }
    slots.write("ext/root.img", vec![0; 16 << 20]);
    out(slots.command_of("mkfs.ext4").args(["-q", "-F", "-E", "nodiscard", "ext/root.img"]));
    slots.good("pack ext -o ext.sealift --name os --bundle-version 1 --key release");
    slots.does(&format!("unpack ext.sealift {}", a.0));
    slots.write("next/root.img", slots.read("ext/root.img"));
    out(slots.command_of("debugfs").args(["-w", "-R", "write signers signers", "next/root.img"]));
    slots.good(
        "pack next -o ext-delta.sealift --name os --bundle-version 2 --key release --base ext.sealift --trust signers",
    );
    fs::create_dir(slots.path("mounted")).unwrap();
    out(slots.command_of("mount").args(["-o", "ro", &a.0, "mounted"]));
    let _mounted = Mounted::at(slots.path("mounted"));
    slots.does(&format!("audit {}", a.0));
    slots.does(&format!("unpack ext-delta.sealift {}", b.0));
    assert!(start_of(&b.0, 16 << 20) == slots.read("next/root.img"));
    // Its record can be made anew while the device runs from it, but nothing can be written.
    fs::remove_dir_all(slots.path("state")).unwrap();
    slots.does(&format!("unpack --update --adopt ext.sealift {}", a.0));
    slots.does(&format!("audit {}", a.0));
    slots.is_refused(
        &format!("unpack --update --adopt ext-delta.sealift {} --base ext.sealift", a.0),
        2,
        "it is mounted at",
    );
}

#[test]
fn a_file_that_is_gone_is_forgotten() {
    let slots = Slots::new();
    slots.does("unpack 1.sealift image:a");
    fs::remove_file(slots.path("a")).unwrap();
    assert!(slots.good("clean image:a").contains("removed from the list"));
    assert!(!slots.does("status").contains("image:"));
    slots.does("unpack 1.sealift image:a");
    assert_has(slots.path("a"), 1);
}

/// A disk that is attached again as another device: its partitions are found by their UUIDs, whatever their devices are called.
#[test]
fn a_partition_is_found_under_another_name() {
    let slots = Slots::new();
    let Some((disk, [a, _])) = partitioned(&slots, "00000002") else { return };
    slots.does(&format!("unpack 1.sealift {a}"));
    // The old name stays in use, so that the disk gets another one.
    drop(disk);
    let Some(_other) = slots.device("other", 8 << 20) else { return };
    let Some((_disk, [moved, b])) = attached(&slots) else { return };
    if moved == a {
        return; // another test was faster
    }
    let status = slots.does("status");
    assert!(status.contains(&format!("{moved}: os version 1\n  was {a} when it was written\n")), "{status}");
    let told = slots.tells(&format!("status {a}"));
    assert_eq!((told["target"].as_str(), told["was"].as_str()), (Some(&*moved), Some(&*a)), "{told}");
    for line in ["status", "audit", "request -o it.request --force"] {
        let line = line.split_once(' ').map_or(format!("{line} {a}"), |(verb, more)| format!("{verb} {a} {more}"));
        let (status, said) =
            slots.run(&if line.starts_with("request") { line.clone() } else { format!("{line} --trust signers") });
        assert!(status == Some(0) && said.contains(&moved), "{line}: {status:?}: {said}");
    }
    // It is the base of a delta by itself, and under its old name.
    slots.does(&format!("unpack delta.sealift {b}"));
    assert_has(&b, 2);
    slots.does(&format!("unpack delta.sealift image:file --base {a}"));
    assert_has(slots.path("file"), 2);
    // What is written is never found so: the name was meant.
    slots.is_refused(&format!("unpack 2.sealift {a}"), 2, &a);
    // Once it is updated, it is listed once, by its new name.
    slots.does(&format!("unpack 2.sealift {moved}"));
    let status = slots.does("status");
    assert!(status.contains(&format!("{moved}: os version 2")) && !status.contains(&a), "{status}");
}

#[test]
fn a_partition_that_was_resized_is_told_as_such() {
    let slots = Slots::new();
    let Some((disk, [a, _])) = partitioned(&slots, "00000003") else { return };
    slots.does(&format!("unpack 1.sealift {a}"));
    assert_eq!(remove_partition(&disk.0, 1).0, Some(0));
    assert_eq!(add_partition(&disk.0, 1, 2048, 14336).0, Some(0));
    let why = "was resized since sealift wrote it: its partition had 8388608 bytes, and has 7340032";
    let (status, said) = slots.ends(&format!("status {a}"));
    // Words are wrapped.
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(status == Some(0) && said.contains(why), "{said}");
    slots.is_refused(&format!("audit {a}"), 2, why);
    slots.is_refused(&format!("unpack 2.sealift {a}"), 2, why);
    slots.does(&format!("unpack 1.sealift {a} --update --adopt"));
    slots.does(&format!("audit {a}"));
    assert_eq!(slots.does("status").matches(&a).count(), 1);
}
