//! A run that is killed leaves the old slot untouched, and the new one complete or with zeros at its start; the next run completes it.

use sealift_desk::noise;

use crate::desk::{LEN, MIB, Slots, assert_has, image, start_of};

/// System calls before which the run is killed, and how often each is tried.
const CALLS: [(&str, usize); 5] =
    [("pwrite64", 12), ("fdatasync", 6), ("fsync", 14), ("renameat2", 5), ("fallocate", 3)];

#[test]
fn at_any_system_call_that_changes_something() {
    let slots = Slots::new();
    slots.does("unpack 1.sealift image:a");
    // Something else, so that nothing is right unless it was written.
    let before = noise(99, LEN);
    let (mut killed, mut unbootable) = (0, 0);
    for (call, times) in CALLS {
        for when in 1..=times {
            let _ = std::fs::remove_file(slots.path("b"));
            slots.write("b", &before);
            let trace = [&format!("trace={call}"), &format!("inject={call}:signal=SIGKILL:when={when}")]
                .map(|text| ["-e".to_owned(), text.clone()])
                .concat();
            let trace: Vec<&str> = trace.iter().map(String::as_str).collect();
            let line = "unpack delta.sealift image:b --base image:a --trust signers --adopt --jobs 1";
            let Some(mut run) = slots.strace(&trace, line) else { return };
            if run.output().unwrap().status.success() {
                continue;
            }
            killed += 1;
            assert_has(slots.path("a"), 1);
            let held = slots.read("b");
            let (is_whole, is_untouched) = (held == image(2), held == before);
            // The first block comes last of all: without it, nothing recognizes what follows, which is zeros or complete.
            let (first, rest) = held[..MIB].split_at(4096);
            let is_rest_right = rest.iter().all(|byte| *byte == 0) || held[4096..] == image(2)[4096..];
            let is_unbootable = first.iter().all(|byte| *byte == 0) && is_rest_right;
            assert!(is_whole || is_unbootable || is_untouched, "{call} {when}");
            unbootable += usize::from(is_unbootable);
            let (_, said) = slots.ends("status image:b");
            assert!(!is_unbootable || said.contains("incomplete"), "{call} {when}: {said}");
            // A base that is not complete is none.
            if !is_whole {
                slots.is_refused("unpack delta.sealift image:c --base image:b", 4, "");
            }
            slots.does(&line.replace(" --trust signers", ""));
            assert_has(slots.path("b"), 2);
            slots.does("audit image:b");
            std::fs::remove_dir_all(slots.path("state")).unwrap();
            slots.does("unpack 1.sealift image:a --adopt");
        }
    }
    assert!(killed > 15 && unbootable > 5, "{killed} killed, {unbootable} unbootable");
}

/// What a killed run overwrote needs no consent after `clean`: not even when only the first block of the new image is missing, or only its record.
#[test]
fn what_is_given_up_is_begun_again() {
    let slots = Slots::new();
    slots.does("unpack 1.sealift image:a");
    let (mut finished, mut discarded, mut kept) = (0, 0, 0);
    for (call, times) in CALLS {
        for when in 1..=times {
            slots.does("unpack 1.sealift image:b --allow-downgrade");
            let trace = [format!("trace={call}"), format!("inject={call}:signal=SIGKILL:when={when}")];
            let trace = ["-e", &*trace[0], "-e", &*trace[1]];
            let line = "unpack delta.sealift image:b --base image:a";
            let Some(mut run) = slots.strace(&trace, &format!("{line} --trust signers --jobs 1")) else { return };
            if run.output().unwrap().status.success() {
                continue;
            }
            let is_whole = slots.read("b") == image(2);
            let said = slots.good("clean image:b");
            let (_, status) = slots.ends("status image:b");
            if status.contains("os version 2\n") {
                // It may have been complete but for the device's list.
                finished += usize::from(said.contains("finished an interrupted"));
                assert!(is_whole, "{call} {when}: {status}");
                slots.does("audit image:b");
                assert!(slots.does("status").contains("b: os version 2\n"), "{call} {when}");
            } else if status.contains("os version 1\n") {
                kept += 1;
                slots.does("audit image:b");
            } else {
                discarded += 1;
                assert!(start_of(slots.path("b"), MIB).iter().all(|byte| *byte == 0), "{call} {when}");
            }
            slots.does(line);
            assert_has(slots.path("b"), 2);
            slots.does("audit image:b");
        }
    }
    assert!(finished > 1 && discarded > 5 && kept > 5, "{finished} finished, {discarded} discarded, {kept} kept");
}

#[test]
fn what_was_written_before_is_kept_and_another_version_replaces_it() {
    let slots = Slots::new();
    for version in [1, 2] {
        let mut content = noise(3, 48 * MIB);
        content[40 * MIB] = version;
        slots.write(&format!("large-{version}/root.img"), content);
        slots.good(&format!("pack large-{version} -o large-{version}.sealift --name os --bundle-version {version} --key release --level 1"));
    }
    let kill = ["-e", "trace=pwrite64", "-e", "inject=pwrite64:signal=SIGKILL:when=9"];
    let Some(mut run) = slots.strace(&kill, "unpack large-1.sealift image:a --trust signers --jobs 1") else { return };
    assert!(!run.output().unwrap().status.success());
    for status in ["status image:a", "status"] {
        let said = slots.ends(status).1;
        assert!(said.contains("incomplete: repeat the command"), "{status}: {said}");
    }
    slots.is_refused("audit image:a", 1, "");
    let told = slots.tells("unpack large-1.sealift image:a");
    assert_eq!(told["slots"][0]["resumed"].as_bool(), Some(true), "{told}");
    assert!(told["slots"][0]["kept_bytes"].as_u64() > Some(20 << 20), "{told}");
    assert!(slots.read("a") == slots.read("large-1/root.img"));
    let Some(mut run) = slots.strace(&kill, "unpack large-2.sealift image:a --trust signers --jobs 1") else { return };
    assert!(!run.output().unwrap().status.success());
    let said = slots.ends("status image:a").1;
    assert!(said.contains("incomplete: writing version 2 of os was interrupted"), "{said}");
    slots.does("unpack large-2.sealift image:a");
    assert!(slots.read("a") == slots.read("large-2/root.img"));
    slots.does("audit image:a");
    // What is given up is forgotten: it is no base, and nothing is said to be there.
    let Some(mut run) = slots.strace(&kill, "unpack large-2.sealift image:b --trust signers --jobs 1") else { return };
    assert!(!run.output().unwrap().status.success());
    let said = slots.good("clean image:b");
    assert!(said.contains("discarded an unfinished run"), "{said}");
    assert!(!slots.does("status").contains("image:b"));
    slots.does("unpack large-2.sealift image:b");
    assert!(slots.read("b") == slots.read("large-2/root.img"));
}
