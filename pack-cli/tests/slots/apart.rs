//! A slot is not what the run reads, under any name; and its record is not that of something else that has its name.

use std::fs;

use sealift_desk::{Mounted, has, out};

use crate::desk::{LEN, MIB, Slots, assert_has, image, start_of};

const WHY: &str = "is also the bundle or its base";

#[test]
fn the_base_under_another_name_is_not_overwritten() {
    let slots = Slots::new();
    slots.does("unpack 1.sealift image:a");
    fs::hard_link(slots.path("a"), slots.path("b")).unwrap();
    slots.is_refused("unpack delta.sealift image:b --adopt", 4, "is a delta");
    slots.is_refused("unpack delta.sealift image:b --adopt --base image:a", 2, WHY);
    assert_has(slots.path("a"), 1);
    fs::File::options()
        .write(true)
        .open(slots.path("a"))
        .unwrap()
        .set_len((LEN.next_multiple_of(512)).try_into().unwrap())
        .unwrap();
    let Some(device) = slots.attach("a", &[]) else { return };
    slots.is_refused(&format!("unpack delta.sealift {} --adopt --base image:a", device.0), 2, WHY);
    slots.is_refused(&format!("unpack delta.sealift {} --adopt", device.0), 4, "is a delta");
    assert_has(slots.path("a"), 1);
}

#[test]
fn neither_is_the_bundle() {
    let slots = Slots::new();
    for name in ["1.sealift", "delta.sealift"] {
        let before = slots.read(name);
        fs::copy(slots.path(name), slots.path("w")).unwrap();

        slots.is_refused("unpack w image:w --adopt", 2, WHY);
        assert!(slots.read("w") == before, "{name}");
    }
    fs::copy(slots.path("1.sealift"), slots.path("w")).unwrap();
    slots.is_refused("unpack delta.sealift image:w --base w --adopt", 2, WHY);
    let Some(device) = slots.attach("w", &[]) else { return };
    slots.is_refused(&format!("unpack w {} --adopt", device.0), 2, WHY);
    assert!(slots.read("w") == slots.read("1.sealift"));
}

#[test]
fn a_record_of_something_else_is_no_consent() {
    let slots = Slots::new();
    slots.does("unpack 1.sealift image:a");
    fs::remove_file(slots.path("a")).unwrap();
    let told = slots.tells("unpack 1.sealift image:a --no-check");
    assert!(told["slots"][0]["written_bytes"].as_u64() > Some(0), "{told}");
    assert_has(slots.path("a"), 1);
    // Another file under its name.
    fs::remove_file(slots.path("a")).unwrap();
    slots.write("a", "my precious");
    slots.is_refused("unpack 2.sealift image:a", 2, "--adopt");
    assert_eq!(slots.read("a"), b"my precious");
    // Another loop device.
    let Some(first) = slots.device("first", 8 * MIB) else { return };
    slots.does(&format!("unpack 1.sealift {}", first.0));
    slots.write("second", vec![7; 8 * MIB]);
    out(slots.command_of("losetup").args(["-d", &first.0]));
    if out(slots.command_of("losetup").args(["-f"])).trim() != first.0 {
        return; // another test was faster
    }
    let Some(second) = slots.attach("second", &[]) else { return };
    if second.0 == first.0 {
        slots.is_refused(&format!("unpack 2.sealift {}", second.0), 2, "--adopt");
        assert!(slots.read("second") == vec![7; 8 * MIB]);
    }
    std::mem::forget(first); // the device is the second one's now
}

#[test]
fn a_mounted_file_is_in_use_under_any_name() {
    let slots = Slots::new();
    slots.write("a", vec![0; 16 * MIB]);
    if !has(&["mke2fs"]) {
        return;
    }
    out(slots.command_of("mke2fs").args(["-q", "-F", "a"]));
    let Some(device) = slots.attach("a", &[]) else { return };
    fs::create_dir(slots.path("mounted")).unwrap();
    out(slots.command_of("mount").args([&device.0, "mounted"]));
    let _mounted = Mounted::at(slots.path("mounted"));
    fs::hard_link(slots.path("a"), slots.path("b\n")).unwrap();
    let mut unpack = slots.command("unpack 1.sealift");
    let (status, said) = sealift_desk::told(unpack.arg("image:b\n").args(["--adopt", "--trust", "signers"]));
    assert!(status == Some(2) && said.contains("is attached to"), "{status:?}: {said}");
}

/// A file keeps its length until its start is zeros; a device loses the start of what was there even if the image is shorter.
#[test]
fn nothing_of_before_can_be_mounted() {
    let slots = Slots::new();
    slots.write("short/root.img", &image(2)[..2 * MIB]);
    slots.good("pack short -o short.sealift --name os --bundle-version 3 --key release");
    slots.does("unpack 1.sealift image:a");
    let kill = ["-e", "trace=pwrite64", "-e", "inject=pwrite64:signal=KILL:when=1"];
    if let Some(mut run) = slots.strace(&kill, "unpack short.sealift image:a --trust signers --jobs 1") {
        assert!(!run.output().unwrap().status.success());
        assert_eq!(slots.read("a").len(), LEN);
    }
    slots.write("tiny/root.img", "tiny");
    slots.good("pack tiny -o tiny.sealift --name os --bundle-version 4 --key release");
    slots.write("device", vec![7; 8 * MIB]);
    let Some(device) = slots.attach("device", &[]) else { return };
    slots.does(&format!("unpack tiny.sealift {} --adopt", device.0));
    let start = start_of(&device.0, MIB + 1);
    assert!(start.starts_with(b"tiny") && start[4..MIB].iter().all(|byte| *byte == 0) && start[MIB] == 7);
}

#[test]
fn a_guard_without_a_value_guards_nothing() {
    let slots = Slots::new();
    for option in ["--expect-partlabel", "--expect-partuuid"] {
        let mut command = slots.command("unpack 1.sealift image:a --trust signers");
        let (status, said) = sealift_desk::told(command.args([option, ""]));
        assert!(status == Some(2) && said.contains("is empty"), "{status:?}: {said}");
    }
    assert!(!slots.path("a").exists());
}
