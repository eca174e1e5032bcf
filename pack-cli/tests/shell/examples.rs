//! The programs in examples/, run as their users run them. `cargo test` builds them beside the tests.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// Returns where cargo puts examples: beside the folder of the tests.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().unwrap().with_file_name("examples").join(name);
    assert!(program.exists(), "{} is not built: cargo build --examples", program.display());
    program
}

/// Runs an example, gives it `input`, and returns its exit status and output.
fn run(folder: &Path, name: &str, arguments: &[&str], input: &str) -> (Option<i32>, String) {
    let mut command = Command::new(example(name));
    command.current_dir(folder).args(arguments).env("SOURCE_DATE_EPOCH", "1700000000").env_remove("SSH_AUTH_SOCK");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // An example that reads no input may have ended.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let done = child.wait_with_output().unwrap();
    let text = if done.stdout.is_empty() { done.stderr } else { done.stdout };
    (done.status.code(), String::from_utf8(text).unwrap())
}

/// A folder with a tree, a profile and a key.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("tree/usr/bin")).unwrap();
    fs::write(at("tree/usr/bin/hello"), "hello\n").unwrap();
    fs::write(at("tree/usr/large"), vec![7; 5_000_000]).unwrap();
    std::os::unix::fs::symlink("usr/bin", at("tree/bin")).unwrap();
    fs::write(at("profile"), "usr/bin/hello\nusr/gone\n").unwrap();
    let key = sealift::trust::sign::generate_key(&at("key"), None, "release").unwrap().to_openssh();
    fs::write(at("signers"), format!("os namespaces=\"sealift\" {key}\n")).unwrap();
    folder
}

fn publish(folder: &Path, version: &str) -> String {
    let (status, text) = run(folder, "publish", &["tree", "os.sealift", "key", version, "profile"], "");
    assert_eq!(status, Some(0), "{text}");
    text
}

const UPDATE: &[&str] = &["os.sealift", "target", "signers", "state"];

#[test]
fn publish_is_reproducible() {
    let folder = folder();
    let text = publish(folder.path(), "7");
    assert!(text.contains("content ") && text.contains("1 of 2 paths of the profile found"), "{text}");
    let first = fs::read(folder.path().join("os.sealift")).unwrap();
    assert_eq!(publish(folder.path(), "7"), text);
    assert_eq!(fs::read(folder.path().join("os.sealift")).unwrap(), first);
}

#[test]
fn updater_updates_and_refuses() {
    let folder = folder();
    let folder = folder.path();
    publish(folder, "7");
    assert_eq!(run(folder, "updater", UPDATE, ""), (Some(0), "updated: 2 files new, 0 kept, 0 deleted\n".to_owned()));
    fs::remove_file(folder.join("tree/bin")).unwrap();
    fs::write(folder.join("tree/usr/new"), "new\n").unwrap();
    publish(folder, "8");
    assert_eq!(run(folder, "updater", UPDATE, ""), (Some(0), "updated: 1 files new, 2 kept, 1 deleted\n".to_owned()));
    assert_eq!(fs::read(folder.join("target/usr/new")).unwrap(), b"new\n");
    publish(folder, "7");
    let (status, text) = run(folder, "updater", UPDATE, "");
    assert!(status == Some(3) && text.starts_with("downgrade: "), "{status:?} {text}");
}

#[test]
fn updater_takes_a_pipe() {
    let folder = folder();
    let folder = folder.path();
    publish(folder, "7");
    let line = format!("cat os.sealift | {} /dev/stdin target signers state", example("updater").display());
    sealift_desk::out(Command::new("sh").current_dir(folder).args(["-c", &line]));
    assert_eq!(fs::read(folder.join("target/usr/bin/hello")).unwrap(), b"hello\n");
}

#[test]
fn updater_stops_and_goes_on() {
    let folder = folder();
    let folder = folder.path();
    publish(folder, "7");
    // It waits for the rest of the bundle.
    let mut command = Command::new(example("updater"));
    command.current_dir(folder).args(["/dev/stdin", "target", "signers", "state"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let bundle = fs::read(folder.join("os.sealift")).unwrap();
    let (first, rest) = bundle.split_at(bundle.len() / 2);
    child.stdin.as_mut().unwrap().write_all(first).unwrap();
    let (mut stderr, mut drawn) = (child.stderr.take().unwrap(), [0]);
    stderr.read_exact(&mut drawn).unwrap(); // from now on it stops on a signal
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut said = String::new();
    while !said.contains("stopping") {
        stderr.read_exact(&mut drawn).unwrap();
        said.push(drawn[0].into());
    }
    // It may have ended without it.
    let _ = child.stdin.as_mut().unwrap().write_all(rest);
    let done = child.wait_with_output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.code() == Some(130) && text.starts_with("cancelled: "), "{text}");
    assert!(!folder.join("target").exists());
    assert_eq!(run(folder, "updater", UPDATE, "").0, Some(0));
    assert_eq!(fs::read(folder.join("target/usr/bin/hello")).unwrap(), b"hello\n");
}

#[test]
fn browse_lists_and_reads() {
    let folder = folder();
    let folder = folder.path();
    publish(folder, "7");
    let wishes = "ls\nls usr/bin\ncat usr/bin/hello\ncat usr\n";
    let (status, text) = run(folder, "browse", &["os.sealift", "signers", "state"], wishes);
    let expected = "bin -> usr/bin\nusr/\n  bin/\n    hello  6 bytes\n  large  5000000 bytes\nbin/\n  hello  6 bytes\nhello\n\
                    usr is not a regular file\n";
    assert_eq!((status, &text[..]), (Some(0), expected));
    fs::write(folder.join("signers"), "").unwrap();
    assert_eq!(run(folder, "browse", &["os.sealift", "signers", "state"], wishes).0, Some(3));
}
