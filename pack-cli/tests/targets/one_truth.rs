//! What is known of a target is its record, the list of targets, what a run left beside it, and what is there: no verb says what another denies.

use std::fs::{self, File};
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use sealift_desk::{out, said, told};

use crate::installed::Installed;
use crate::versions::{ends, run, signed};

/// Copies a target with its record. Inode numbers stay, as in a snapshot of the file system: the originals are moved there and back.
fn exchange(desk: &Installed, target: &str, with: &str) {
    for (a, b) in [(target.to_owned(), with.to_owned()), (state_of(target), state_of(with))] {
        let (a, b, between) = (desk.path(&a), desk.path(&b), desk.path("between"));
        fs::rename(&a, &between).unwrap();
        fs::rename(&b, &a).unwrap();
        fs::rename(&between, &b).unwrap();
    }
}

/// Creates both versions, and `t` with version 1, whose update was killed before it moved anything.
fn half_updated() -> Installed {
    let desk = signed();
    ends(&desk, "unpack 1.sealift t", 0, "");
    desk.unpack(2, "whole");
    desk.leave_update("t", "whole");
    desk
}

fn state_of(target: &str) -> String {
    format!(".{target}.sealift-state")
}

#[test]
fn an_empty_record_directory_makes_nothing_ours() {
    let desk = signed();
    for folder in ["photos", ".photos.sealift-state"] {
        fs::create_dir(desk.path(folder)).unwrap();
    }
    desk.write("photos/1.jpg", "a photo");
    for more in ["", " --dry-run", " --rehash"] {
        let said = ends(&desk, &format!("unpack 1.sealift photos --update --delete{more}"), 2, "");
        assert!(said.contains("photos has a damaged install record") && said.contains("use --adopt"), "{said}");
    }
    assert_eq!(fs::read(desk.path("photos/1.jpg")).unwrap(), b"a photo");
}

/// A key that may sign an app must not replace the system because its record is damaged.
#[test]
fn a_damaged_head_gives_up_neither_name_nor_version() {
    let desk = signed();
    let key = fs::read_to_string(desk.path("release.pub")).unwrap();
    desk.write("signers", format!("* namespaces=\"sealift\" {key}"));
    desk.good("pack tree -o app.sealift --name app --bundle-version 1 --key release");
    ends(&desk, "unpack 2.sealift t", 0, "");
    desk.write(".t.sealift-state/head", "");
    ends(&desk, "unpack app.sealift t --update", 3, "");
    ends(&desk, "unpack 2.sealift t --update", 2, "");
    ends(&desk, "unpack app.sealift t --update --adopt --yes", 3, "");
    ends(&desk, "unpack app.sealift t --update --adopt --yes --dry-run", 3, "");
    // Without the state, nothing knows what was there: it is taken over only on request.
    fs::remove_dir_all(desk.path("state")).unwrap();
    ends(&desk, "unpack 1.sealift t --update", 2, "");
    ends(&desk, "unpack 1.sealift t --update --dry-run", 2, "");
    assert_eq!(fs::read(desk.path("t/etc/issue")).unwrap(), b"2");
    ends(&desk, "unpack 1.sealift t --update --adopt --yes", 0, "");
}

#[test]
fn a_lost_record_is_said_to_be_lost() {
    let desk = signed();
    ends(&desk, "unpack 2.sealift t", 0, "");
    fs::remove_dir_all(desk.path(".t.sealift-state")).unwrap();
    let said = ends(&desk, "unpack 2.sealift t --update", 2, "");
    assert!(said.contains("t has lost its install record: this device installed os version 2 there"), "{said}");
    ends(&desk, "unpack 2.sealift t --update --adopt --yes", 0, "");
    ends(&desk, "audit t", 0, "sound, os version 2");
}

#[test]
fn every_verb_says_that_a_record_is_damaged() {
    for part in ["head", "index", "record"] {
        let desk = signed();
        ends(&desk, "unpack 1.sealift t", 0, "");
        desk.write(&format!(".t.sealift-state/{part}"), "torn");
        for (line, status) in [
            ("status t", 2),
            ("status", 2),
            ("unpack 2.sealift t --update", 2),
            ("unpack 2.sealift t --update --dry-run", 2),
        ] {
            let said = ends(&desk, line, status, "");
            assert!(said.contains("damaged") && said.contains(".t.sealift-state"), "{part}: {line}: {said}");
        }
        let (status, said) = run(&desk, "audit t");
        assert!(matches!(status, Some(1 | 2)) && said.contains("sealift:"), "{part}: {said}");
        let done = desk.command("request t -o x.request").output().unwrap();
        assert!(!done.status.success() && !desk.path("x.request").exists(), "{part}");
    }
}

#[test]
fn what_went_back_with_its_record_is_not_sound() {
    let desk = signed();
    for line in ["unpack 1.sealift t", "unpack 1.sealift slot", "unpack 2.sealift other"] {
        ends(&desk, line, 0, "");
    }
    // A slot that was never newer, whatever was installed elsewhere.
    for slot in ["t", "slot"] {
        ends(&desk, &format!("audit {slot}"), 0, "sound, os version 1");
        assert!(!ends(&desk, &format!("status {slot}"), 0, "").contains("gone back"));
    }
    // The other slot comes in its place after the update, as the old tree does from a snapshot.
    ends(&desk, "unpack 2.sealift t --update", 0, "");
    ends(&desk, "audit t", 0, "sound, os version 2");
    exchange(&desk, "t", "slot");
    let why = "this device installed version 2";
    for line in ["audit t", "audit t --quiet"] {
        let said = ends(&desk, line, 1, "");
        assert!(said.contains("it has gone back") && said.contains(why) && !said.contains("sound,"), "{line}: {said}");
    }
    let json = ends(&desk, "audit t --json", 1, "");
    assert!(json.contains(r#""gone_back_from":2,"lacks":[],"sound":false"#), "{json}");
    for line in ["status", "status t"] {
        let said = ends(&desk, line, 0, "");
        assert_eq!(said.matches("it has gone back").count(), 1, "{line}: {said}");
        ends(&desk, &format!("{line} --json"), 0, r#""gone_back_from":2"#);
    }
    let asked = desk.good("request t -o t.request --state state");
    assert!(asked.contains("holds os version 1") && asked.contains("it has gone back"), "{asked}");
    // An update heals it and says so, and what is gone does not come back by itself.
    for line in ["unpack 2.sealift t --update --dry-run", "unpack 2.sealift t --update"] {
        let said = ends(&desk, line, 0, "");
        assert!(said.contains("before: it had gone back") && said.contains("had installed version 2"), "{said}");
    }
    assert!(!ends(&desk, "unpack 2.sealift t --update", 0, "").contains("gone back"));
    ends(&desk, "audit t", 0, "sound, os version 2");
    // A downgrade that was asked for is no relapse.
    ends(&desk, "unpack 1.sealift t --update --allow-downgrade", 0, "");
    ends(&desk, "audit t", 0, "sound, os version 1");
}

/// A run that was killed after the device remembered the version, and before it changed anything, installed nothing.
#[test]
fn an_update_that_never_began_is_no_relapse() {
    let desk = signed();
    ends(&desk, "unpack 1.sealift t", 0, "");
    // The move is refused right after the state is written.
    let update = "unpack 2.sealift t --update --trust signers --state state";
    let killed = ["-e", "trace=renameat", "-e", "inject=renameat:signal=KILL:when=2"];
    let Some(mut strace) = desk.strace(&killed, update) else { return };
    strace.output().unwrap();
    let (_, said) = run(&desk, "audit t");
    assert!(!said.contains("gone back"), "{said}");
    desk.good("clean t --state state");
    ends(&desk, "audit t", 0, "sound, os version");
}

/// A directory was to be taken over, and the run failed before it changed anything: it has no record to lose.
#[test]
fn what_was_never_taken_over_has_lost_no_record() {
    let desk = signed();
    fs::create_dir(desk.path("t")).unwrap();
    desk.write("t/mine", "mine");
    let line = "unpack 2.sealift t --update --adopt --yes --trust signers --state state";
    let full = ["-e", "trace=renameat", "-e", "inject=renameat:error=ENOSPC:when=3+"];
    let Some(mut strace) = desk.strace(&full, line) else { return };
    let (status, said) = told(&mut strace);
    assert_eq!(status, Some(2), "{said}");
    let said = ends(&desk, "unpack 2.sealift t --update", 2, "");
    assert!(said.contains("was not unpacked by sealift") && !said.contains("this device installed"), "{said}");
    ends(&desk, "status", 0, "/t: incomplete");
    desk.good("clean t --quiet");
    assert!(!ends(&desk, "status", 0, "").contains("/t"));
    assert_eq!(fs::read(desk.path("t/mine")).unwrap(), b"mine");
}

#[test]
fn a_half_done_move_is_said_by_every_verb() {
    let desk = half_updated();
    for line in ["status", "status t"] {
        ends(&desk, line, 1, "partly updated from os version 1 to version 2");
        let json = ends(&desk, &format!("{line} --json"), 1, "");
        assert!(json.contains(r#""run":"half-updated","next_version":2"#), "{json}");
    }
    ends(&desk, "audit t", 1, "an update of t was interrupted");
    ends(&desk, "audit t --json", 1, r#""run":"half-updated""#);
    ends(&desk, "unpack 2.sealift t --update --dry-run", 0, "an interrupted update would first be finished");
    ends(&desk, "unpack 2.sealift t --update --dry-run --json", 0, r#""run":"half-updated""#);
    for line in ["request t -o x", "pack tree -o x --name os --bundle-version 3 --base t --allow-unsigned"] {
        desk.refused(line, 1, "because an update was interrupted");
    }
    // Even while its record is between two places.
    fs::rename(desk.path(".t.sealift-state"), desk.path(".t.sealift-partial/old-state")).unwrap();
    for line in ["status", "status t"] {
        let said = ends(&desk, line, 1, "");
        assert!(said.contains("partly updated") && said.contains("the update brings os version 2"), "{line}: {said}");
    }
    ends(&desk, "audit t", 1, "because an update was interrupted");
    fs::rename(desk.path(".t.sealift-partial/old-state"), desk.path(".t.sealift-state")).unwrap();
    ends(&desk, "unpack 2.sealift t --update", 0, "finished an interrupted update first");
    ends(&desk, "audit t", 0, "sound, os version 2");
    assert!(!ends(&desk, "status t", 0, "").contains("partly"));
}

/// What was begun could not be finished: until the next update, the target is not what its record says.
#[test]
fn a_mixed_tree_is_said_by_every_verb() {
    for repaired_by in ["1.sealift", "2.sealift"] {
        let desk = half_updated();
        let staged = fs::read_dir(desk.path(".t.sealift-partial/files")).unwrap().next().unwrap().unwrap().path();
        fs::write(&staged, "torn").unwrap();
        desk.refused("clean t", 1, "");
        for line in ["status", "status t"] {
            ends(&desk, line, 1, "partly updated from os version 1: unpack either bundle again");
            ends(&desk, &format!("{line} --json"), 1, r#""run":"half-updated""#);
        }
        ends(&desk, "audit t", 1, "an update of t did not end");
        ends(&desk, "audit t --json", 1, r#""sound":false"#);
        for line in ["request t -o x", "pack tree -o x --name os --bundle-version 3 --base t --allow-unsigned"] {
            desk.refused(line, 1, "");
        }
        let said = ends(&desk, &format!("unpack {repaired_by} t --update --allow-downgrade"), 0, "");
        assert!(!said.contains("finished an interrupted update"), "{said}");
        ends(&desk, "audit t", 0, "sound");
        assert!(!ends(&desk, "status t", 0, "").contains("partly"));
    }
}

#[test]
fn a_running_update_is_not_called_interrupted() {
    let desk = half_updated();
    let stage = File::open(desk.path(".t.sealift-partial")).unwrap();
    stage.lock().unwrap();
    let said = ends(&desk, "audit t", 0, "");
    assert!(said.contains("another sealift run is working on t") && !said.contains("interrupted"), "{said}");
    ends(&desk, "audit t --json", 0, r#""run":"running""#);
    let said = ends(&desk, "status t", 0, "");
    assert!(said.contains("another sealift run is working on it") && !said.contains("partly"), "{said}");
    ends(&desk, "status t --json", 0, r#""run":"running""#);
    for line in ["unpack 2.sealift t --update", "unpack 2.sealift t --update --dry-run"] {
        ends(&desk, line, 2, "another sealift run is using .t.sealift-partial");
    }
    desk.refused("request t -o x", 2, "");
}

#[test]
fn a_first_unpack_that_runs_is_not_called_interrupted() {
    let desk = signed();
    let bundle = fs::read(desk.path("1.sealift")).unwrap();
    let mut unpack = desk.command("unpack - t --trust signers");
    let mut unpack = unpack.stdin(Stdio::piped()).spawn().unwrap();
    let mut pipe = unpack.stdin.take().unwrap();
    pipe.write_all(&bundle[..bundle.len() - 10]).unwrap();
    let start = Instant::now();
    while !desk.path(".t.sealift-partial").exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "no stage");
        sleep(Duration::from_millis(10));
    }
    ends(&desk, "status t", 0, "another sealift run is working on it");
    ends(&desk, "status t --json", 0, r#""missing":"running""#);
    let done = desk.command("clean t").output().unwrap();
    let said = said(&done);
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(said.contains("another sealift run is using .t.sealift-partial"), "{said}");
    pipe.write_all(&bundle[bundle.len() - 10..]).unwrap();
    drop(pipe);
    assert!(unpack.wait().unwrap().success());
    ends(&desk, "status t", 0, "os version 1");
}

#[test]
fn a_stage_that_changed_nothing_is_said_and_is_no_difference() {
    let desk = signed();
    ends(&desk, "unpack 1.sealift t", 0, "");
    fs::create_dir(desk.path(".t.sealift-partial")).unwrap();
    for (line, why) in
        [("audit t", "was interrupted before it changed anything"), ("status t", "a run was interrupted")]
    {
        let said = ends(&desk, line, 0, "");
        assert!(said.contains(why) && said.contains("os version 1"), "{line}: {said}");
        ends(&desk, &format!("{line} --json"), 0, r#""run":"unfinished""#);
    }
}

#[test]
fn whoever_waits_for_the_state_says_so() {
    let desk = signed();
    ends(&desk, "unpack 1.sealift a", 0, "");
    let lock = File::open(desk.path("state/lock")).unwrap();
    lock.lock().unwrap();
    let holder = std::thread::spawn(move || {
        sleep(Duration::from_millis(2500));
        drop(lock);
    });
    ends(&desk, "unpack 2.sealift b", 0, "waiting for another sealift run, which holds state/lock");
    holder.join().unwrap();
    assert!(!ends(&desk, "unpack 2.sealift c", 0, "").contains("waiting"));
}

/// Runs `clean t` so that system calls of this kind fail; `None` without strace.
fn clean_without(desk: &Installed, calls: &str, error: &str) -> Option<(Option<i32>, String)> {
    let failing = ["-e", &format!("trace={calls}"), "-e", &format!("inject={calls}:error={error}")];
    desk.strace(&failing, "clean t --state state").map(|mut strace| told(&mut strace))
}

#[test]
fn an_update_of_a_directory_that_was_replaced_is_discarded() {
    let desk = half_updated();
    let copy = |from: &str, to: &str| {
        let copied = Command::new("cp").arg("-a").args([desk.path(from), desk.path(to)]).status();
        assert!(copied.unwrap().success());
    };
    copy("t", "backup");
    fs::rename(desk.path("t"), desk.path("half")).unwrap();
    copy("backup", "t");
    let said = ends(&desk, "unpack 2.sealift t --update", 2, "");
    assert!(said.contains("t is another directory than the one whose update was interrupted"), "{said}");
    assert!(said.contains("sealift clean t"), "{said}");
    desk.says("clean t --state state", "discarded an unfinished run");
    desk.assert_same("t", "backup");
    ends(&desk, "status t", 0, "no install record");
    ends(&desk, "unpack 2.sealift t --update --adopt --yes", 0, "");
    fs::create_dir(desk.path("mine\n")).unwrap();
    let json = out(desk.command("status --json --state state").arg("mine\n"));
    assert_eq!(json, "{\"target\":\"mine%0A\",\"signers\":[],\"missing\":\"other\"}\n");
}

#[test]
fn clean_gives_up_what_cannot_be_finished_and_nothing_else() {
    let desk = signed();
    fs::create_dir(desk.path("tree/new")).unwrap();
    rustix::fs::setxattr(desk.path("tree/new"), "user.note", b"x", rustix::fs::XattrFlags::empty()).unwrap();
    desk.good("pack tree -o 3.sealift --name os --bundle-version 3 --key release");
    for (calls, error, status) in
        [("renameat", "ENOSPC", 2), ("renameat", "EDQUOT", 2), ("fsetxattr,setxattr,lsetxattr", "EPERM", 0)]
    {
        ends(&desk, "unpack 1.sealift t --allow-downgrade", 0, "");
        desk.unpack(3, "whole");
        desk.leave_update("t", "whole");
        let Some((ended, said)) = clean_without(&desk, calls, error) else { return };
        assert_eq!(ended, Some(status), "{calls} {error}: {said}");
        let is_left = desk.path(".t.sealift-partial/journal").exists();
        assert_eq!(is_left, status == 2, "{calls} {error}: {said}");
        if !is_left {
            ends(&desk, "audit t", 0, "sound, os version 1");
        } else {
            desk.says("clean t --state state", "finished");
            ends(&desk, "audit t", 0, "sound, os version 3");
        }
        for name in ["t", ".t.sealift-state", "whole", ".whole.sealift-state"] {
            fs::remove_dir_all(desk.path(name)).unwrap();
        }
    }
}

/// The administrator put an unsigned bundle of an older version in the place of a signed one.
#[test]
fn an_unsigned_older_bundle_that_was_asked_for_is_no_relapse() {
    let desk = signed();
    desk.good("pack tree -o unsigned.sealift --name os --bundle-version 1");
    ends(&desk, "unpack 2.sealift t", 0, "");
    ends(&desk, "unpack unsigned.sealift t --update --allow-unsigned --allow-downgrade", 0, "");
    let said = ends(&desk, "audit t --allow-unsigned", 0, "");
    assert!(said.contains("sound, os version 1") && !said.contains("gone back"), "{said}");
    ends(&desk, "status", 0, "os: accepts version 2 or newer");
}

/// Nothing of a part of a bundle was moved: it is as it was.
#[test]
fn an_update_of_a_part_is_given_up_like_others() {
    let desk = signed();
    ends(&desk, "unpack 1.sealift t --path etc", 0, "");
    ends(&desk, "unpack 2.sealift whole --path etc", 0, "");
    desk.leave_update("t", "whole");
    let Some((ended, said)) = clean_without(&desk, "renameat", "EIO") else { return };
    assert!(ended == Some(0) && said.contains("discarded an unfinished run"), "{said}");
    ends(&desk, "audit t", 0, "sound, os version 1");
}

/// The disk of the state is full, not that of the target.
#[test]
fn a_full_disk_is_named_by_what_could_not_be_written() {
    let desk = signed();
    ends(&desk, "unpack 1.sealift t", 0, "");
    let line = "unpack 2.sealift t --update --trust signers --state state";
    let full = ["-e", "trace=renameat", "-e", "inject=renameat:error=ENOSPC:when=1"];
    let Some(mut strace) = desk.strace(&full, line) else { return };
    let (status, said) = told(&mut strace);
    assert!(status == Some(2) && said.contains("state/floors/os"), "{said}");
}
