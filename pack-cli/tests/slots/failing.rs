//! Devices that fail, and bases that change meanwhile.

use sealift_desk::told;

use crate::desk::{MIB, Slots, assert_has, start_of};

#[test]
fn an_error_ends_the_run_and_the_next_one_completes_it() {
    let slots = Slots::new();
    for (call, error, when, why) in [
        ("pwrite64", "EIO", "3", "Input/output error"),
        ("pwrite64", "ENOSPC", "2", "No space left"),
        ("pwrite64", "ENODEV", "3", "No such device"),
        ("fdatasync", "EIO", "2", "Input/output error"),
    ] {
        let trace = format!("inject={call}:error={error}:when={when}");
        let only = format!("trace={call}");
        let Some(mut run) =
            slots.strace(&["-e", &only, "-e", &trace], "unpack 1.sealift image:a --trust signers --jobs 1")
        else {
            return;
        };
        let (status, said) = told(&mut run);
        assert!(
            status == Some(2) && said.contains(why) && said.contains("image:a"),
            "{call} {error}: {status:?} {said}"
        );
        assert!(start_of(slots.path("a"), MIB).iter().all(|byte| *byte == 0), "{call} {error} {when}");
        slots.does("unpack 1.sealift image:a");
        assert_has(slots.path("a"), 1);
        std::fs::remove_file(slots.path("a")).unwrap();
        std::fs::remove_dir_all(slots.path("state")).unwrap();
    }
}

#[test]
fn a_device_that_lies_about_discards_gets_zeros() {
    let slots = Slots::new();
    slots.write("a", vec![0xff; 8 * MIB]);
    let Some(mut run) = slots.strace(
        &["-e", "trace=fallocate", "-e", "inject=fallocate:retval=0"],
        "unpack 1.sealift image:a --adopt --trust signers",
    ) else {
        return;
    };
    let (status, said) = told(&mut run);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("wrote zeros: the device returns old data where it reported a discard"), "{said}");
    assert_has(slots.path("a"), 1);
}

#[test]
fn a_file_system_without_holes_gets_zeros() {
    let slots = Slots::new();
    slots.write("a", vec![0xff; 8 * MIB]);
    let Some(mut run) = slots.strace(
        &["-e", "trace=fallocate", "-e", "inject=fallocate:error=EOPNOTSUPP"],
        "unpack 1.sealift image:a --adopt --trust signers",
    ) else {
        return;
    };
    let (status, said) = told(&mut run);
    assert_eq!(status, Some(0), "{said}");
    assert!(!said.contains("discard"), "{said}");
    assert_has(slots.path("a"), 1);
}

#[test]
fn what_is_read_back_otherwise_is_said() {
    let slots = Slots::new();
    // The first block of each thread's first write gets lost.
    slots.write("a", vec![0; 8 * MIB]);
    let Some(mut run) = slots.strace(
        &["-e", "trace=pwrite64", "-e", "inject=pwrite64:retval=4096:when=1"],
        "unpack 1.sealift image:a --trust signers --read-back --jobs 1",
    ) else {
        return;
    };
    let (status, said) = told(&mut run);
    assert!(status == Some(1) && said.contains("returns other bytes than were written to it"), "{status:?}: {said}");
    assert!(start_of(slots.path("a"), MIB).iter().all(|byte| *byte == 0));
}

/// Runs a line, and `change` after the base was compared, but before anything is read of it for writing.
fn meanwhile(slots: &Slots, line: &str, change: impl FnOnce()) -> Option<(Option<i32>, String)> {
    let delay = ["-e", "trace=fdatasync", "-e", "inject=fdatasync:delay_enter=3s:when=1"];
    let mut run = slots.strace(&delay, &format!("{line} --trust signers --jobs 1"))?;
    let child = run.spawn().unwrap();
    let state = slots.path("state/slots");
    let is_begun = || {
        let folders = std::fs::read_dir(&state).into_iter().flatten().flatten();
        folders.into_iter().any(|folder| folder.path().join("next/mixed").exists())
    };
    sealift_desk::wait("the slot is begun", is_begun);
    std::thread::sleep(std::time::Duration::from_millis(300));
    change();
    Some(sealift_desk::outcome(&child.wait_with_output().unwrap()))
}

#[test]
fn a_base_that_changes_meanwhile_is_found() {
    let slots = Slots::new();
    slots.does("unpack 1.sealift image:a");
    let line = "unpack delta.sealift image:b --base image:a";
    let change = || {
        let mut bytes = slots.read("a");
        bytes[2 * MIB + 9000] ^= 1;
        slots.write("a", bytes);
    };
    let Some((status, said)) = meanwhile(&slots, line, change) else { return };
    assert!(status == Some(4) && said.contains("image:a: it was changed: bytes 2097152 to "), "{status:?}: {said}");
    assert!(start_of(slots.path("b"), MIB).iter().all(|byte| *byte == 0));
    // The right base completes it.
    slots.write("a", crate::desk::image(1));
    slots.does(line);
    assert_has(slots.path("b"), 2);
}

#[test]
fn a_device_whose_file_shrinks_has_all_or_nothing() {
    let slots = Slots::new();
    let Some(device) = slots.device("device", 8 * MIB) else { return };
    let shrink = || {
        std::fs::File::options().write(true).open(slots.path("device")).unwrap().set_len(2 << 20).unwrap();
    };
    let line = format!("unpack 1.sealift {} --read-back", device.0);
    let Some((status, said)) = meanwhile(&slots, &line, shrink) else { return };
    match status {
        Some(0) => assert_has(&device.0, 1),
        _ => assert!(start_of(&device.0, MIB).iter().all(|byte| *byte == 0), "{said}"),
    }
}
