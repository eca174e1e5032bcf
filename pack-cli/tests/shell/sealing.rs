//! `digest`, `measure` and `seal` on any kernel: their output, and what they refuse. `cargo xtask vm` tests kernels with fs-verity.

use std::ffi::OsStr;
use std::fs;
use std::process::Output;

use sealift_desk::{Desk, out, program, skipped, text};

fn run(desk: &Desk, program: &str, arguments: &[&str]) -> Output {
    desk.command_of(program).args(arguments).output().unwrap()
}

/// Creates files around the edges of blocks and of tree levels.
fn files() -> (Desk, Vec<String>) {
    let desk = Desk::new();
    let lens = [0, 1, 4095, 4096, 4097, 128 * 4096, 128 * 4096 + 1, 3_000_001];
    let names = lens.map(|len: usize| {
        let content: Vec<u8> = (0..251).cycle().take(len).collect();
        desk.write(&len.to_string(), content);
        len.to_string()
    });
    (desk, names.to_vec())
}

/// Our output equals that of Debian's own program, byte for byte.
#[test]
fn digests_are_those_of_fsverity() {
    let (desk, names) = files();
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
        let (theirs, ours) = (run(&desk, "fsverity", &arguments), run(&desk, &program(), &arguments));
        assert!(theirs.status.success(), "{options:?}: {}", text(&theirs.stderr));
        assert_eq!(text(&ours.stdout), text(&theirs.stdout), "{options:?}: {}", text(&ours.stderr));
    }
}

#[test]
fn what_fsverity_refuses_is_refused() {
    let (desk, names) = files();
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
        assert!(!run(&desk, "fsverity", &arguments).status.success(), "{options:?}");
        let ours = run(&desk, &program(), &arguments);
        assert_eq!(ours.status.code(), Some(2), "{options:?}");
        assert!(text(&ours.stderr).contains(why), "{options:?}: {}", text(&ours.stderr));
    }
}

/// A name that a terminal would interpret is escaped, and unchanged in JSON.
#[test]
fn names_are_escaped() {
    use std::os::unix::ffi::OsStrExt as _;
    let desk = Desk::new();
    let name = OsStr::from_bytes(b"a\x1b\xff");
    fs::write(desk.path("").join(name), "").unwrap();
    let digest = "3d248ca542a24fc62d1c43b916eae5016878e2533c88238480b26128a1f1af95";
    let ours = |line: &str| out(desk.command(line).arg(name));
    assert_eq!(ours("digest"), format!("sha256:{digest} a\\u{{1b}}\\xff\n"));
    let line = format!("{{\"path\":\"a%1B%FF\",\"algorithm\":\"sha256\",\"digest\":\"{digest}\"}}\n");
    assert_eq!(ours("digest --json"), line);
}

/// If the kernel or the file system has no fs-verity, nothing is done, and the message says what would help.
#[test]
fn what_cannot_be_sealed_is_said() {
    let (desk, names) = files();
    if sealift::seal::is_supported(&desk.path("")).unwrap() {
        return skipped("fs-verity is here");
    }
    for arguments in [&["seal", "."][..], &["seal", &names[1]], &["measure", &names[1]]] {
        let done = run(&desk, &program(), &[arguments, &["--json"]].concat());
        assert_eq!(done.status.code(), Some(2), "{arguments:?}");
        let said = text(&done.stderr);
        assert!(said.starts_with(r#"{"error":{"kind":"verity","message":""#), "{said}");
        assert!(said.contains("mkfs.ext4 -O verity"), "{said}");
    }
}

/// Nothing is written if the requested sealing is impossible.
#[test]
fn what_cannot_be_sealed_is_not_unpacked() {
    let desk = Desk::new();
    if sealift::seal::is_supported(&desk.path("")).unwrap() {
        return skipped("fs-verity is here");
    }
    desk.write("tree/file", "content");
    desk.good("pack tree -o b.sealift --bundle-version 1 --quiet");
    let before = desk.names("");
    for more in ["out", "out --dry-run", "tree --update"] {
        let line = format!("unpack b.sealift --seal require --allow-unsigned --state state --json {more}");
        let said = desk.refused(&line, 2, "");
        assert!(said.starts_with(r#"{"error":{"kind":"verity","#), "{more}: {said}");
        assert_eq!(desk.names(""), before, "{more}");
    }
    desk.says("unpack b.sealift out --seal try --allow-unsigned --state state", "not sealed");
    assert!(!desk.path(".out.sealift-state/fs-verity").exists());
    let audited = desk.out("audit out --allow-unsigned --state state --ignore privileged --json");
    assert!(audited.contains(r#""sealed":false"#), "{audited}");
    assert!(!desk.good("unpack b.sealift out --update --allow-unsigned --state state").contains("sealed"), "as before");
}
