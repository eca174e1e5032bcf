//! System calls that fail say nothing about what a file system keeps, and what they leave is cleaned.

use std::fs;

use rustix::fs::{XattrFlags, lsetxattr};
use sealift_desk::{skipped, told};

use crate::installed::Installed;
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

/// Fails, one after the other, those calls of the main thread that `is_it` chooses by their lines in strace's output, on a desk that `begin` makes.
/// Returns what each run printed if it failed.
fn fail_each(
    begin: impl Fn() -> Installed,
    line: &str,
    (call, error): (&str, &str),
    is_it: impl Fn(&str) -> bool,
) -> Option<Vec<String>> {
    let (desk, trace) = (begin(), format!("trace={call}"));
    let (status, said) = told(&mut desk.strace(&["-o", "calls", "-e", &trace], line)?);
    assert_eq!(status, Some(0), "{line}: {said}");
    let calls = desk.text("calls");
    let main = calls.split_whitespace().next().unwrap_or_default();
    let of_main =
        calls.lines().filter(|line| line.starts_with(&format!("{main} ")) && line.contains(&format!("{call}(")));
    let chosen: Vec<usize> = (1..).zip(of_main).filter(|(_, line)| is_it(line)).map(|(number, _)| number).collect();
    assert!(!chosen.is_empty(), "{line} has no such {call}");
    let said = chosen.into_iter().filter_map(|number| {
        let (desk, inject) = (begin(), format!("inject={call}:error={error}:when={number}"));
        let (status, said) = told(&mut desk.strace(&["-e", &trace, "-e", &inject], line)?);
        assert!(matches!(status, Some(0 | 2)), "{inject}: {status:?}: {said}");
        (status == Some(2)).then_some(said)
    });
    Some(said.collect())
}

#[test]
fn the_current_directory_is_named_by_more_than_a_dot() {
    let updated = || {
        let desk = signed();
        desk.good(LINE);
        desk
    };
    let update = LINE.replace("1.sealift", "2.sealift --update");
    let mut messages = Vec::new();
    let cases: [(&dyn Fn() -> Installed, &str); 2] = [(&signed, LINE), (&updated, &update)];
    for (begin, line) in cases {
        let is_dot = |line: &str| line.contains("\".\"");
        let Some(said) = fail_each(begin, line, ("openat", "EIO"), is_dot) else { return };
        messages.extend(said);
    }
    assert!(!messages.is_empty());
    for said in messages {
        assert!(!said.contains(" .: ") && said.contains("Input/output error"), "{said}");
    }
}

#[test]
fn what_cannot_be_looked_at_is_not_taken_for_something_else() {
    let begin = || {
        let desk = signed();
        desk.write("other/etc/motd", "another");
        desk
    };
    for line in [
        "pack tree -o 3.sealift --name os --bundle-version 3 --key release",
        "pack tree -o 3.sealift --force --name os --bundle-version 3 --key release --base other",
        "diff tree other",
    ] {
        println!("{line}");
        let is_source =
            |line: &str| ["tree", "other", "3.sealift"].iter().any(|name| line.contains(&format!("\"{name}\"")));
        let Some(said) = fail_each(begin, line, ("statx", "EIO"), is_source) else { return };
        for said in said {
            assert!(said.contains("Input/output error"), "{line}: {said}");
        }
    }
}

#[test]
fn a_small_attribute_that_finds_no_space_is_a_full_disk() {
    let begin = || {
        let desk = Installed::new();
        let _ = lsetxattr(desk.path("tree/etc/motd"), "user.origin", b"the north", XattrFlags::empty());
        desk.pack(1);
        desk
    };
    let line = "unpack 1.sealift t --allow-unsigned";
    if !begin().out("ls 1.sealift --json").contains("user.origin") {
        return skipped("needs extended attributes on this file system");
    }
    for (error, reason) in [("ENOSPC", "No space left on device"), ("EDQUOT", "Disk quota exceeded")] {
        let Some(said) = fail_each(begin, line, ("fsetxattr", error), |_| true) else { return };
        assert!(!said.is_empty());
        for said in said {
            assert!(said.contains(reason) && !said.contains("cannot hold"), "{said}");
            assert!(!said.contains("pack the tree without"), "{said}");
        }
    }
}
