//! `digest`, `measure` and `seal` on any kernel: their output, and what they refuse. `cargo xtask vm` tests kernels with fs-verity.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use sealift_skipped::skipped;

const SEALIFT: &str = env!("CARGO_BIN_EXE_sealift");

fn run(program: &str, folder: &Path, arguments: &[&str]) -> Output {
    let done = Command::new(program).args(arguments).current_dir(folder).output();
    done.unwrap_or_else(|error| panic!("{program}: {error}"))
}

fn said(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Creates files around the edges of blocks and of tree levels.
fn files() -> (tempfile::TempDir, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let lens = [0, 1, 4095, 4096, 4097, 128 * 4096, 128 * 4096 + 1, 3_000_001];
    let names = lens.map(|len: usize| {
        let content: Vec<u8> = (0..251).cycle().take(len).collect();
        fs::write(folder.path().join(len.to_string()), content).unwrap();
        len.to_string()
    });
    (folder, names.to_vec())
}

/// Our output equals that of Debian's own program, byte for byte.
#[test]
fn digests_are_those_of_fsverity() {
    let (folder, names) = files();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for options in [
        &[][..],
        &["--hash-alg=sha512"],
        &["--salt=00"],
        &["--salt=0123456789abcdefABCDEF"],
        &["--hash-alg=sha512", "--salt=000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"],
        &["--block-size=1024"],
        &["--block-size=64", "--salt=ff"],
        &["--hash-alg=sha512", "--block-size=65536"],
        &["--compact"],
        &["--for-builtin-sig"],
        &["--for-builtin-sig", "--compact", "--hash-alg=sha512"],
    ] {
        let arguments = [&["digest"], options, &names[..]].concat();
        let (theirs, ours) = (run("fsverity", folder.path(), &arguments), run(SEALIFT, folder.path(), &arguments));
        assert!(theirs.status.success(), "{options:?}: {}", said(&theirs.stderr));
        assert_eq!(said(&ours.stdout), said(&theirs.stdout), "{options:?}: {}", said(&ours.stderr));
    }
}

#[test]
fn what_fsverity_refuses_is_refused() {
    let (folder, names) = files();
    for (options, why) in [
        (&["--block-size=4095"][..], "power of two"),
        (&["--block-size=32"], "from 64"),
        (&["--hash-alg=sha512", "--block-size=64"], "from 128"),
        (&["--salt=012"], "two hexadecimal digits"),
        (&["--salt=zz"], "two hexadecimal digits"),
        (&["--salt=000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"], "33 bytes"),
        (&["--hash-alg=md5"], "sha256"),
        (&["."], "not a regular file"),
        (&["missing"], "No such file"),
    ] {
        let arguments = [&["digest"], options, &[&*names[0]]].concat();
        assert!(!run("fsverity", folder.path(), &arguments).status.success(), "{options:?}");
        let ours = run(SEALIFT, folder.path(), &arguments);
        assert_eq!(ours.status.code(), Some(2), "{options:?}");
        assert!(said(&ours.stderr).contains(why), "{options:?}: {}", said(&ours.stderr));
    }
}

/// A name that a terminal would interpret is escaped, and unchanged in JSON.
#[test]
fn names_are_escaped() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = tempfile::tempdir().unwrap();
    let name = OsStr::from_bytes(b"a\x1b\xff");
    fs::write(folder.path().join(name), "").unwrap();
    let digest = "3d248ca542a24fc62d1c43b916eae5016878e2533c88238480b26128a1f1af95";
    let ours = |json: &[&str]| {
        Command::new(SEALIFT).arg("digest").args(json).arg(name).current_dir(folder.path()).output().unwrap().stdout
    };
    assert_eq!(said(&ours(&[])), format!("sha256:{digest} a\\u{{1b}}\\xff\n"));
    let line = format!("{{\"path\":\"a%1B%FF\",\"algorithm\":\"sha256\",\"digest\":\"{digest}\"}}\n");
    assert_eq!(said(&ours(&["--json"])), line);
}

/// If the kernel or the file system has no fs-verity, nothing is done, and the message says what would help.
#[test]
fn what_cannot_be_sealed_is_said() {
    let (folder, names) = files();
    if sealift::seal::is_supported(folder.path()).unwrap() {
        return skipped("fs-verity is here");
    }
    for arguments in [&["seal", "."][..], &["seal", &names[1]], &["measure", &names[1]]] {
        let done = run(SEALIFT, folder.path(), &[arguments, &["--json"]].concat());
        assert_eq!(done.status.code(), Some(2), "{arguments:?}");
        let text = said(&done.stderr);
        assert!(text.starts_with(r#"{"error":{"kind":"verity","message":""#), "{text}");
        assert!(text.contains("mkfs.ext4 -O verity"), "{text}");
    }
}

/// Nothing is written if the requested sealing is impossible.
#[test]
fn what_cannot_be_sealed_is_not_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    if sealift::seal::is_supported(folder.path()).unwrap() {
        return skipped("fs-verity is here");
    }
    fs::create_dir(folder.path().join("tree")).unwrap();
    fs::write(folder.path().join("tree/file"), "content").unwrap();
    let good = |line: &str| {
        let done = run(SEALIFT, folder.path(), &line.split(' ').collect::<Vec<_>>());
        assert!(done.status.success(), "{line}: {}", said(&done.stderr));
        said(&done.stdout).to_owned()
    };
    good("pack tree -o b.sealift --bundle-version 1 --quiet");
    let names = || {
        let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    };
    let before = names();
    for more in [&["out"][..], &["out", "--dry-run"], &["tree", "--update"]] {
        let options = ["unpack", "b.sealift", "--seal", "require", "--allow-unsigned", "--state", "state", "--json"];
        let done = run(SEALIFT, folder.path(), &[&options, more].concat());
        assert_eq!(done.status.code(), Some(2), "{more:?}");
        assert!(said(&done.stderr).starts_with(r#"{"error":{"kind":"verity","#), "{more:?}: {}", said(&done.stderr));
        assert_eq!(names(), before, "{more:?}");
    }
    assert!(good("unpack b.sealift out --seal try --allow-unsigned --state state").contains("not sealed"));
    assert!(!folder.path().join(".out.sealift-state/fs-verity").exists());
    let audited = good("audit out --allow-unsigned --state state --ignore privileged --json");
    assert!(audited.contains(r#""sealed":false"#), "{audited}");
    assert!(!good("unpack b.sealift out --update --allow-unsigned --state state").contains("sealed"), "as before");
}
