//! The command of `--then`: when it is run, what it is told, and how it ends.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use sealift_desk::{Desk, noise, outcome, program, said, text, told, wait};

const NEW: &str = "unpack 7.sealift target --trust signers";
const UPDATE: &str = "unpack 8.sealift target --update --trust signers";
/// Writes what it is told to the end of the file `told`.
const TELL: &str = r#"echo "$SEALIFT_NAME $SEALIFT_VERSION $SEALIFT_TARGET $SEALIFT_DIGEST" >> told"#;

/// Creates versions 7 and 8 of a tree, and the bundles of both.
fn desk() -> Desk {
    let desk = Desk::with_key();
    for version in [7, 8] {
        desk.write("os/hello", format!("hello {version}"));
        desk.good(&format!("pack os -o {version}.sealift --name os --bundle-version {version} --key release -q"));
    }
    desk
}

/// What [`TELL`] writes about a bundle of this version.
fn line(desk: &Desk, version: u32, target: &str) -> String {
    let info = desk.json(&format!("info {version}.sealift --json"));
    format!("os {version} {target} {}\n", info["identity"]["index_digest"].as_str().unwrap())
}

/// Runs a line with the command, and checks that it was told about this version and target, once.
#[track_caller]
fn tells(desk: &Desk, words: &str, version: u32, target: &str) {
    let (status, said) = desk.run_then(words, TELL);
    assert_eq!(status, Some(0), "{words}: {said}");
    assert_eq!(desk.text("told"), line(desk, version, target), "{words}");
    fs::remove_file(desk.path("told")).unwrap();
}

fn json(text: &[u8]) -> serde_json::Value {
    serde_json::from_slice(text).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(text)))
}

#[test]
fn a_command_is_told_what_was_installed() {
    let desk = desk();
    tells(&desk, NEW, 7, "target");
    // It may have been killed before its command.
    tells(&desk, NEW, 7, "target");
    tells(&desk, UPDATE, 8, "target");
    tells(&desk, UPDATE, 8, "target");
    tells(&desk, "unpack 7.sealift ./other/ --trust signers --allow-downgrade", 7, "./other/");
    desk.good(
        "pack os -o delta.sealift --base 7.sealift --name os --bundle-version 8 --key release --trust signers -q",
    );
    tells(&desk, "unpack delta.sealift other --trust signers", 8, "other");
    for archive in ["tar:8.tar", "cpio:8.cpio"] {
        tells(&desk, &format!("unpack 8.sealift {archive} --trust signers"), 8, archive);
    }
    // Several bundles, and a stick.
    tells(&desk, "unpack 7.sealift 8.sealift several --trust signers", 8, "several");
    desk.write("stick/8.sealift", desk.read("8.sealift"));
    desk.write("stick/7.sealift", desk.read("7.sealift"));
    tells(&desk, "unpack stick of-stick --trust signers -q", 8, "of-stick");
}

#[test]
fn an_archive_on_standard_output_stays_clean() {
    let desk = desk();
    let done = desk.command("unpack 8.sealift tar:- --trust signers").args(["--then", "echo noise"]).output().unwrap();
    assert!(done.status.success() && text(&done.stderr).contains("noise\n"), "{}", text(&done.stderr));
    desk.good("unpack 8.sealift tar:8.tar --trust signers");
    assert!(done.stdout == desk.read("8.tar"), "it is another archive");
}

#[test]
fn json_says_how_it_ended_and_stays_clean() {
    let desk = desk();
    let ran = |then: &str| desk.command(NEW).args(["--json", "--then", then]).output().unwrap();
    let done = ran("echo noise; echo more >&2");
    assert_eq!(json(&done.stdout)["then"], serde_json::json!({"exit_status": 0, "signal": null}));
    assert_eq!(text(&done.stderr), "noise\nmore\n");
    let done = ran("exit 7");
    assert_eq!(json(&done.stdout)["then"], serde_json::json!({"exit_status": 7, "signal": null}));
    assert_eq!((done.status.code(), &json(&done.stderr)["error"]["kind"]), (Some(5), &"then".into()));
    let done = ran("kill -9 $$");
    assert_eq!(json(&done.stdout)["then"], serde_json::json!({"exit_status": null, "signal": 9}));
    let without = desk.json(&format!("{NEW} --json"));
    assert!(without["then"].is_null() && without["was_complete"] == true, "{without}");
}

#[test]
fn a_failure_leaves_the_bundle_installed() {
    let desk = desk();
    for (then, how) in [
        ("exit 7", "ended with status 7"),
        ("no-such-program", "ended with status 127"),
        ("kill -15 $$", "was ended by signal 15"),
        ("'", "ended with status 2"), // no shell understands it
    ] {
        let (status, said) = desk.run_then(NEW, then);
        let why = format!("the bundle is installed; the command of --then {how}: ");
        assert!(status == Some(5) && said.contains(&why), "{then}: {status:?} {said}");
        assert_eq!(desk.text("target/hello"), "hello 7");
    }
    // The next bundle of a stick is not tried.
    desk.write("stick/7.sealift", desk.read("7.sealift"));
    desk.write("stick/8.sealift", desk.read("8.sealift"));
    let (status, said) = desk.run_then("unpack stick target --update --trust signers", "exit 1");
    assert!(status == Some(5) && desk.text("target/hello") == "hello 8", "{status:?} {said}");
    assert!(!said.contains("passed over stick/8.sealift"), "{said}");
}

#[test]
fn it_is_not_run_unless_the_bundle_is_installed() {
    let desk = desk();
    let not_run = |words: &str, status: i32| {
        let (found, said) = desk.run_then(words, TELL);
        assert_eq!((found, desk.path("told").exists()), (Some(status), false), "{words}: {said}");
    };
    not_run(&format!("{NEW} --dry-run"), 0);
    not_run("unpack 8.sealift tar:8.tar --trust signers --dry-run", 0);
    not_run("unpack 7.sealift target", 3);
    not_run("unpack nowhere.sealift target --trust signers", 2);
    let mut damaged = desk.read("8.sealift");
    *damaged.last_mut().unwrap() ^= 1;
    desk.write("damaged.sealift", damaged);
    not_run("unpack damaged.sealift target --trust signers", 1);
    desk.good(NEW);
    not_run("unpack 8.sealift target --trust signers", 2); // without --update
    desk.good(UPDATE);
    not_run("unpack 7.sealift target --update --trust signers", 3);
}

/// The names in a bundle are the publisher's. The shell gets only what the user wrote.
#[test]
fn a_bundle_has_no_word_in_the_shell() {
    let desk = desk();
    let hostile = "$(touch pwned)";
    fs::rename(desk.path("os"), desk.path(hostile)).unwrap();
    symlink("`touch pwned`", desk.path(&format!("{hostile}/;touch pwned"))).unwrap();
    let mut pack = desk.command_of(program());
    pack.args(["pack", hostile, "-o", "file;touch pwned.sealift", "--name", "x--touch-pwned", "--bundle-version", "9"]);
    pack.args(["--annotate", &format!("note={hostile}")]);
    assert_eq!(told(&mut pack).0, Some(0), "{}", told(&mut pack).1);
    let mut unpack = desk.command_of(program());
    unpack.args(["unpack", "file;touch pwned.sealift", "; touch pwned", "--allow-unsigned"]);
    let words = r#"tr '\0' '\n' < /proc/$$/cmdline; eval "echo \"\$SEALIFT_TARGET\"""#;
    let (status, said) = told(unpack.args(["--quiet", "--then", words]));
    let said = said.lines().filter(|line| !line.contains("UNSIGNED")).collect::<Vec<_>>().join("\n");
    assert_eq!((status, said), (Some(0), format!("/bin/sh\n-c\n{words}\n; touch pwned")));

    // A bundle whose name is not one, of the same length.
    let good = desk.read("file;touch pwned.sealift");
    let name = b"x--touch-pwned";
    let at = good.windows(name.len()).position(|window| window == name).expect("the head has the name");
    let mut bad = good;
    bad[at..at + name.len()].copy_from_slice(hostile.as_bytes());
    desk.write("bad.sealift", bad);
    let (status, said) = desk.run_then("unpack bad.sealift bad --allow-unsigned", TELL);
    assert!(status == Some(1) && !desk.path("told").exists(), "{status:?} {said}");
    assert!(!desk.path("pwned").exists());
}

#[test]
fn it_has_nothing_to_read_and_holds_no_lock() {
    let desk = desk();
    // The bundle comes through a pipe, which the command does not get; it may look at the target, and update it.
    let then =
        format!("readlink /proc/self/fd/0 && '{0}' audit target --trust signers -q && '{0}' {UPDATE} -q", program());
    let mut child = desk
        .command("unpack - target --trust signers -q")
        .args(["--then", &then])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&desk.read("7.sealift")).unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(outcome(&done), (Some(0), "/dev/null\n".to_owned()));
    assert_eq!(desk.text("target/hello"), "hello 8");
}

/// Sealift raises the limit of open files for itself.
#[test]
fn it_has_the_limits_of_the_caller() {
    let desk = desk();
    let line = format!("ulimit -Sn 300; sealift {NEW} -q --then 'ulimit -Sn'");
    assert_eq!(told(&mut desk.shell(&line)), (Some(0), "300\n".to_owned()));
}

#[test]
fn it_is_run_even_if_nobody_reads_the_summary() {
    let desk = desk();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let done = desk.command(NEW).args(["--then", TELL]).stdout(full).output().unwrap();
    assert_eq!(done.status.code(), Some(2), "{}", said(&done));
    assert_eq!(desk.text("told"), line(&desk, 7, "target"));
}

/// Starts a run with a command that writes `started`, and sends it this signal then.
fn signalled(desk: &Desk, signal: &str, then: &str) -> Output {
    let then = format!("{then}; touch started; for i in $(seq 1200); do sleep 0.05; done");
    let child = desk.command(NEW).args(["--then", &then]).spawn().unwrap();
    wait("the command starts", || desk.path("started").exists());
    send(&child, signal);
    let done = child.wait_with_output().unwrap();
    fs::remove_file(desk.path("started")).unwrap();
    done
}

fn send(child: &Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn signals_are_passed_on() {
    let desk = desk();
    for (signal, number) in [("-INT", 2), ("-TERM", 15), ("-HUP", 1)] {
        let done = signalled(&desk, signal, ":");
        let why = format!("the bundle is installed; the command of --then was ended by signal {number}: ");
        assert!(done.status.code() == Some(128 + number) && said(&done).contains(&why), "{}", said(&done));
    }
    // It decides what to do about one.
    let done = signalled(&desk, "-TERM", "trap 'echo saved > saved; exit 0' TERM");
    assert_eq!((done.status.code(), desk.text("saved")), (Some(0), "saved\n".to_owned()), "{}", said(&done));
    let done = signalled(&desk, "-TERM", "trap 'exit 3' TERM");
    assert!(done.status.code() == Some(143) && said(&done).contains("ended with status 3"), "{}", said(&done));
    assert_eq!(desk.text("target/hello"), "hello 7");
}

#[test]
fn after_a_signal_it_is_not_run() {
    let desk = Desk::with_key();
    for version in [7, 8] {
        for file in 0..40 {
            desk.write(&format!("os/{file}"), noise(version * 100 + file, 2000));
        }
        desk.good(&format!("pack os -o {version}.sealift --name os --bundle-version {version} --key release -q"));
    }
    desk.good(NEW);
    // -D: the process that is started is the program itself.
    let delayed = ["-D", "-e", "trace=renameat,renameat2", "-e", "inject=renameat,renameat2:delay_enter=20000"];
    let Some(mut strace) = desk.strace(&delayed, UPDATE) else { return };
    let mut child = strace.args(["--then", TELL]).spawn().unwrap();
    let journal = desk.path(".target.sealift-partial/journal");
    while !journal.exists() && child.try_wait().unwrap().is_none() {
        thread::sleep(Duration::from_millis(1));
    }
    send(&child, "-INT");
    let done = child.wait_with_output().unwrap();
    let why = "the bundle is installed; the command of --then was not run, since a signal had arrived: ";
    assert!(done.status.code() == Some(130) && said(&done).contains(why), "{}", said(&done));
    assert!(!desk.path("told").exists() && !desk.path(".target.sealift-partial").exists());
    desk.assert_same("target", "os");
    tells(&desk, UPDATE, 8, "target");
}
