//! What is written to a slot.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use crate::desk::{LEN, MIB, Slots, assert_has, partitioned, start_of};

#[test]
fn a_device_takes_an_image_and_is_the_base_of_the_next() {
    let slots = Slots::new();
    let (Some(a), Some(b)) = (slots.device("a", 8 * MIB), slots.device("b", 8 * MIB)) else { return };
    // What lies behind the image stays.
    fs::write(&b.0, vec![0; MIB]).unwrap();
    let behind = |device: &str| start_of(device, 8 * MIB).split_off(LEN);
    slots.does(&format!("unpack 1.sealift {}", a.0));
    assert_has(&a.0, 1);
    assert!(behind(&a.0).iter().all(|byte| *byte == 0));
    let told = slots.tells(&format!("unpack delta.sealift {} --base {}", b.0, a.0));
    assert_has(&b.0, 2);
    assert_has(&a.0, 1);
    let slot = &told["slots"][0];
    assert_eq!(
        (&slot["image"], &slot["bytes"], &slot["discarded_bytes"]),
        (&"root.img".into(), &LEN.into(), &MIB.into())
    );
    assert_eq!((slot["kept_bytes"].as_u64(), slot["resumed"].as_bool()), (Some(0), Some(false)));
    slots.does(&format!("audit {}", b.0));
    // Without --base, the device that holds it is found.
    slots.does(&format!("unpack 1.sealift {} --allow-downgrade", b.0));
    slots.does(&format!("unpack delta.sealift {}", b.0));
    assert_has(&b.0, 2);
    // So is the delta on a stick.
    slots.does(&format!("unpack 1.sealift {} --allow-downgrade", b.0));
    fs::create_dir(slots.path("stick")).unwrap();
    fs::copy(slots.path("delta.sealift"), slots.path("stick/delta.sealift")).unwrap();
    fs::copy(slots.path("2.sealift"), slots.path("stick/whole.sealift")).unwrap();
    let said = slots.does(&format!("unpack stick {}", b.0));
    assert!(said.contains("written from stick/delta.sealift"), "{said}");
    assert_has(&b.0, 2);
}

#[test]
fn a_file_is_made_and_takes_the_length_of_the_image() {
    let slots = Slots::new();
    for prefix in ["image:", "root.img=image:"] {
        slots.does(&format!("unpack 1.sealift {prefix}new"));
        assert_has(slots.path("new"), 1);
        let metadata = fs::metadata(slots.path("new")).unwrap();
        assert_eq!(metadata.len(), u64::try_from(LEN).unwrap());
        assert!(metadata.blocks() * 512 < u64::try_from(LEN - MIB / 2).unwrap(), "the zeros are a hole");
        slots.does("unpack delta.sealift image:second --base image:new");
        assert_has(slots.path("second"), 2);
        slots.does("audit image:second");
        for name in ["new", "second"] {
            fs::remove_file(slots.path(name)).unwrap();
        }
        fs::remove_dir_all(slots.path("state")).unwrap();
    }
    // A file that nothing is known of is a base too, if it is what was packed.
    slots.does("unpack delta.sealift image:third --base image:1/root.img");
    assert_has(slots.path("third"), 2);
    slots.is_refused("unpack delta.sealift image:fourth --base image:2/root.img", 4, "wrong base");
    assert!(!slots.path("fourth").exists());
}

#[test]
fn only_blocks_that_differ_are_written_by_an_update() {
    let slots = Slots::new();
    slots.does("unpack 1.sealift image:slot");
    let told = slots.tells("unpack 2.sealift image:slot --update");
    assert_has(slots.path("slot"), 2);
    let slot = &told["slots"][0];
    // The first megabyte twice, two blocks, and the last one.
    assert_eq!(slot["written_bytes"].as_u64(), u64::try_from(2 * MIB + 2 * 4096 + 1234).ok(), "{told}");
    assert_eq!(slot["discarded_bytes"].as_u64(), Some(0), "{told}");
    // Nothing is written, nor read from the bundle, if it has everything.
    let told = slots.tells("unpack 2.sealift image:slot");
    assert_eq!(
        (told["slots"][0]["written_bytes"].as_u64(), told["stored_bytes"].as_u64()),
        (Some(0), Some(0)),
        "{told}"
    );
    // What changed is found by hash, and restored.
    let mut bytes = slots.read("slot");
    bytes[5 * MIB] ^= 1;
    slots.write("slot", &bytes);
    let told = slots.tells("unpack 2.sealift image:slot");
    assert!(told["slots"][0]["written_bytes"].as_u64() > Some(0), "{told}");
    assert_has(slots.path("slot"), 2);
}

#[test]
fn several_images_go_to_several_devices() {
    let slots = Slots::new();
    slots.write("both/boot/kernel.img", vec![9; 3 * MIB]);
    slots.write("both/root.img", crate::desk::image(1));
    slots.good("pack both -o both.sealift --name os --bundle-version 1 --key release");
    let said = slots.is_refused("unpack both.sealift image:a", 2, "several files");
    assert!(said.contains("root.img=image:a"), "{said}");
    slots.is_refused("unpack both.sealift no.img=image:a", 2, "no.img");
    slots.is_refused("unpack both.sealift boot=image:a", 2, "boot");
    slots.does("unpack both.sealift root.img=image:a boot/kernel.img=image:b root.img=image:c --read-back");
    assert_has(slots.path("a"), 1);
    assert_has(slots.path("c"), 1);
    assert!(slots.read("b") == vec![9; 3 * MIB]);
    let status = slots.does("status");
    for name in ["a", "b", "c"] {
        assert!(status.contains(&format!("image:{}: os version 1", slots.path(name).display())), "{status}");
    }
    slots.is_refused("unpack both.sealift root.img=image:a boot/kernel.img=image:./a", 2, "is given twice");
}

#[test]
fn an_image_that_is_small_empty_or_all_zeros() {
    let slots = Slots::new();
    for (number, content) in
        [vec![], vec![1; 10], vec![0; 3 * MIB], vec![7; MIB], vec![7; MIB + 1]].into_iter().enumerate()
    {
        slots.write("tree/it", &content);
        let bundle = format!("small-{number}.sealift");
        slots.good(&format!("pack tree -o {bundle} --name os --bundle-version 1 --key release"));
        for _ in 0..2 {
            slots.does(&format!("unpack {bundle} image:small-{number} --read-back"));
            assert!(slots.read(&format!("small-{number}")) == content, "{number}");
            slots.does(&format!("audit image:small-{number}"));
        }
    }
}

#[test]
fn a_partition_is_known_by_its_uuid_and_label() {
    let slots = Slots::new();
    let Some((_disk, [a, b])) = partitioned(&slots, "aaaaaaaa") else { return };
    slots.does(&format!(
        "unpack 1.sealift {a} --expect-partlabel root-a --expect-partuuid aaaaaaaa-2222-3333-4444-555555555555"
    ));
    slots.is_refused(
        &format!("unpack 1.sealift {b} --expect-partlabel root-a"),
        2,
        "has the partition label \"root-b\"",
    );
    slots.is_refused(
        &format!("unpack 1.sealift {b} --expect-partuuid aaaaaaaa-2222-3333-4444-555555555555"),
        2,
        "aaaaaaaa-",
    );
    // Each of several slots has its own.
    let two = format!("unpack 1.sealift root.img={a} root.img={b} --adopt");
    for (more, status) in [
        (format!("--expect-partlabel {a}=root-a --expect-partlabel {b}=root-b"), 0),
        (format!("--expect-partlabel {a}=root-a --expect-partlabel {b}=root-a"), 2),
        (format!("--expect-partlabel {a}=root-b"), 2),
        ("--expect-partlabel root-a".to_owned(), 2),
        ("--expect-partlabel root.img=root-a".to_owned(), 2),
        ("--expect-partlabel other.img=root-a".to_owned(), 2),
        (format!("--expect-partuuid {b}=aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee --expect-partlabel {a}=root-a"), 0),
        (format!("--expect-partuuid {a}=aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"), 2),
    ] {
        let (ended, said) = slots.ends(&format!("{two} {more}"));
        assert_eq!(ended, Some(status), "{more}: {said}");
    }
    slots.does(&format!("unpack 1.sealift root.img={a} --expect-partlabel root.img=root-a"));
    slots.is_refused(&format!("unpack 1.sealift root.img={a} --expect-partlabel root.img="), 2, "is empty");
    // Its record is found under any name.
    std::os::unix::fs::symlink(&a, slots.path("by-label")).unwrap();
    slots.does(&format!("audit {}", slots.path("by-label").display()));
    slots.does(&format!("unpack delta.sealift {b}"));
    assert_has(&b, 2);
}

/// A piece of an image may be as large as what may wait to be written.
#[test]
fn pieces_of_any_size() {
    let slots = Slots::new();
    slots.write("large/root.img", sealift_desk::noise(5, 70 * MIB));
    for size in ["4KiB", "64KiB", "8MiB", "16MiB", "32MiB", "64MiB"] {
        slots.good(&format!("pack large -o large.sealift --force --name os --bundle-version 1 --key release --level 1 --chunk-size {size}"));
        slots.does("unpack large.sealift image:large.img --jobs 3 --limit memory=4G");
        assert!(slots.read("large.img") == slots.read("large/root.img"), "{size}");
        fs::remove_file(slots.path("large.img")).unwrap();
        fs::remove_dir_all(slots.path("state")).unwrap();
    }
}

#[test]
fn a_pipe_is_read_once() {
    let slots = Slots::new();
    slots.does("unpack 1.sealift image:a");
    for (bundle, more) in
        [("1.sealift", "--allow-downgrade"), ("2.sealift", "--update"), ("delta.sealift", "--base image:a")]
    {
        let line = format!("sealift unpack - image:b {more} --trust signers < <(cat {bundle})");
        sealift_desk::out(&mut slots.shell(&line));
        assert_has(slots.path("b"), if bundle == "1.sealift" { 1 } else { 2 });
    }
}

#[test]
fn a_delta_of_several_images_is_read_over_several_devices() {
    let slots = Slots::new();
    for version in [1, 2] {
        slots.write(&format!("both-{version}/boot.img"), [sealift_desk::noise(5, 3 * MIB), vec![version]].concat());
        slots.write(&format!("both-{version}/root.img"), crate::desk::image(version));
    }
    slots.good("pack both-1 -o both-1.sealift --name os --bundle-version 1 --key release");
    slots.good("pack both-2 -o both-2.sealift --name os --bundle-version 2 --key release --base both-1.sealift --trust signers");
    slots.does("unpack both-1.sealift boot.img=image:boot-a root.img=image:root-a");
    let targets = "boot.img=image:boot-b root.img=image:root-b";
    slots.is_refused(&format!("unpack both-2.sealift {targets} --base image:root-a"), 4, "boot.img");
    for more in ["", " --base image:root-a --base image:boot-a"] {
        slots.does(&format!("unpack both-2.sealift {targets}{more}"));
        assert_has(slots.path("root-b"), 2);
        assert!(slots.read("boot-b") == slots.read("both-2/boot.img"));
        for name in ["boot-b", "root-b"] {
            fs::remove_file(slots.path(name)).unwrap();
            slots.good(&format!("clean image:{name}"));
        }
    }
}

#[test]
fn what_comes_after_is_run_once_everything_is_written() {
    let slots = Slots::new();
    let line = "sealift unpack 1.sealift image:a --trust signers --then";
    let then = "cmp -n 100 a 1/root.img && echo \"$SEALIFT_TARGET $SEALIFT_NAME $SEALIFT_VERSION\"";
    let said = sealift_desk::out(&mut slots.shell(&format!("{line} '{then}'")));
    assert!(said.ends_with("image:a os 1\n"), "{said}");
    let (status, said) = sealift_desk::told(&mut slots.shell(&format!("{line} 'exit 3'")));
    assert!(status == Some(5) && said.contains("ended with status 3"), "{status:?}: {said}");
    slots.does("audit image:a");
}
