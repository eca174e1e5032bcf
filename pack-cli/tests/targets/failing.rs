//! System calls that fail say nothing about what a file system keeps, and what they leave is cleaned.

use std::fs;

use sealift_desk::told;

use crate::versions::signed;

/// Calls of the kinds with which a run tries what is kept, and then sets it.
const CALLS: u32 = 8;
const LINE: &str = "unpack 1.sealift t --trust signers --state state";

#[test]
fn a_failing_disk_is_not_one_that_keeps_less() {
    for call in ["fchmod", "fchown", "utimensat"] {
        for error in ["EIO", "EROFS"] {
            for when in 1..=CALLS {
                let desk = signed();
                let failing = format!("inject={call}:error={error}:when={when}");
                let trace = format!("trace={call}");
                let Some(mut strace) = desk.strace(&["-e", &trace, "-e", &failing], LINE) else {
                    return;
                };
                let (status, said) = told(&mut strace);
                assert!(!said.contains("does not store") && !said.contains("refuses"), "{failing}: {said}");
                assert!(matches!(status, Some(0 | 2)), "{failing}: {said}");
            }
        }
    }
}

#[test]
fn the_trial_beside_a_target_is_cleaned() {
    for failure in ["error=EIO", "signal=KILL"] {
        for when in 1..=CALLS {
            let desk = signed();
            let failing = format!("inject=unlinkat:{failure}:when={when}");
            let Some(mut strace) = desk.strace(&["-e", "trace=unlinkat", "-e", &failing], LINE) else {
                return;
            };
            strace.output().unwrap();
            desk.good("clean t --quiet");
            let left = fs::read_dir(desk.path(".")).unwrap().filter_map(Result::ok).map(|entry| entry.file_name());
            let left: Vec<_> = left.filter(|name| name.to_string_lossy().contains("t.sealift-trial")).collect();
            assert!(left.is_empty(), "{failing}: {left:?}");
        }
    }
}
