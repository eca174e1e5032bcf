//! Recordings of other programs.

use std::process::Command;

use proptest::prelude::{ProptestConfig, any, prop, proptest};
use sealift::order::OrderProfile;
use sealift::order::import::{Disk, Form, ImportOptions, import};
use sealift_desk::Desk;

/// Pieces of files to import, which are combined at random.
const PIECES: [&str; 22] = [
    "openat(",
    "AT_FDCWD</a>",
    ", ",
    "\"/b",
    "\"",
    "\\3",
    "\\",
    ") = 3",
    "</c",
    ">",
    " <unfinished ...>\n",
    "[pid 7] ",
    "<... openat resumed>",
    "mmap(NULL, 9",
    "0xffffffffffffffff",
    "pread64(3",
    "Read id=1 offset=",
    " count=0x10",
    "x;VERSION=2\nS",
    "/d\n",
    "\0",
    "\n",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_imported_is_a_profile_or_refused(
        pieces in prop::collection::vec((0..PIECES.len(), prop::collection::vec(any::<u8>(), 0..3)), 0..30),
    ) {
        let bytes: Vec<u8> = pieces.iter().flat_map(|(piece, more)| [PIECES[*piece].as_bytes(), &more[..]].concat()).collect();
        let mut options = ImportOptions::default();
        for form in [Form::Paths, Form::Strace, Form::Readahead, Form::Nbdkit, Form::Sort] {
            options.disk = (form == Form::Nbdkit).then(|| Disk::Image(b"image".to_vec()));
            if let Ok(imported) = import(form, &mut &bytes[..], "log".as_ref(), &options) {
                assert_eq!(OrderProfile::parse(imported.profile.to_text().as_bytes()), Ok(imported.profile));
            }
        }
    }
}

#[test]
fn lists_end_their_paths_with_newlines_or_zeros() {
    let desk = Desk::new();
    desk.write("lines", "/srv/os/b\n/srv/os/./a\n/srv/other/c\nd\n");
    assert_eq!(
        desk.good("order import paths lines --root /srv/os"),
        "# sealift order 1\nb\na\nd\n  left out 1 path outside the root\n"
    );
    desk.write("zeros", b"/b\nc\0./a\\x41\0\xff\0");
    assert_eq!(desk.good("order import paths zeros"), "# sealift order 1\nb\\nc\na\\\\x41\n\\xff\n");
    for (list, why) in [
        (&b"a\0b\nc\n"[..], "zeros: path 2: it does not end with NUL"),
        (b"a\0\0b\0", "zeros: path 2: it is empty"),
        (&[&[b'a'; 256][..], b"/b\0"].concat(), "zeros: path 1: it is longer than a path may be"),
        (&[&[b'/'; 4096][..], b"\0"].concat(), "zeros: path 1: it is longer than a path may be"),
    ] {
        desk.write("zeros", list);
        desk.refused("order import paths zeros", 2, why);
    }
    desk.write("zeros", [&[b'a'; 255][..], b"/b\0"].concat());
    assert!(desk.good("order import paths zeros").ends_with("aa/b\n"));
    desk.write("zeros", b"a\0../b\0usr//bin/../bin/ls\0");
    let left_out = "  left out 1 path outside the root\n";
    assert_eq!(desk.good("order import paths zeros"), format!("# sealift order 1\na\nusr/bin/ls\n{left_out}"));
    desk.write("os/b", "b");
    let os = desk.path("os").canonicalize().unwrap();
    desk.write("lines", format!("{}/b\n/srv/os/a\n", os.display()));
    assert_eq!(
        desk.good("order import paths lines --root ./os/../os"),
        "# sealift order 1\nb\n  left out 1 path outside the root\n"
    );
    // A line that is no path does not cost the others.
    desk.write("lines", "a\nb\x01\nc\t9-5\nd\ne\n");
    assert_eq!(desk.good("order import paths lines"), "# sealift order 1\na\nd\ne\n  skipped 2 lines without a path\n");
    desk.write("lines", "a\nb\x01\nc\t9-5\n");
    desk.refused("order import paths lines", 2, "lines: line 2: control characters in a path");
    desk.refused("order import paths lines --image a", 2, "--image");
}

#[test]
fn strace_of_a_real_command() {
    if Command::new("strace").arg("-V").output().is_err() {
        return sealift_desk::skipped("needs strace");
    }
    let desk = Desk::new();
    for name in ["a", "b c", "\u{fc}\"<"] {
        desk.write(&format!("os/{name}"), name);
    }
    let mut traced = Command::new("strace");
    traced.args(["-f", "-y", "-e", "trace=open,openat,execve,mmap,read,pread64", "-o", "log", "sh", "-c"]);
    traced.arg("cat 'os/b c' nowhere; cat os/a & wait; cd os; cat '\u{fc}\"<' a").current_dir(desk.path("."));
    let done = traced.output().unwrap();
    if !desk.path("log").exists() || desk.text("log").lines().count() < 10 {
        return sealift_desk::skipped("needs ptrace: strace");
    }
    let root = desk.path("os").canonicalize().unwrap();
    let profile = desk.good(&format!("order import strace log --quiet --root {}", root.display()));
    assert_eq!(profile, "# sealift order 1\nb c\na\n\u{fc}\"<\n", "{done:?}: {}", desk.text("log"));
    // With the whole machine as root, the program and its libraries are listed too.
    let profile = desk.good("order import strace log --quiet");
    assert!(profile.contains("libc.so.6") && !profile.contains("nowhere"), "{profile}");
}

#[test]
fn a_pack_file_of_systemd_readahead() {
    let desk = Desk::new();
    let record = |path: &str, pages: &[(u32, u32)]| {
        let mut bytes = [path.as_bytes(), b"\n", &7_u64.to_le_bytes()].concat();
        for (first, end) in pages.iter().chain(&[(0, 0)]) {
            bytes.extend([first.to_le_bytes(), end.to_le_bytes()].concat());
        }
        bytes
    };
    let head = b"x86_64-pc-linux-gnu;VERSION=2\nS".to_vec();
    let records =
        [record("/usr/lib/libc.so", &[(0, 16), (256, 272)]), record("/etc/passwd", &[]), record("/b", &[(1, 2)])];
    let pack = [head.clone(), records.concat()].concat();
    desk.write("pack", &pack);
    assert_eq!(
        desk.good("order import readahead pack"),
        "# sealift order 1\nusr/lib/libc.so\t0-65535,1048576-1114111\netc/passwd\nb\t4096-8191\n"
    );
    desk.write("pack", &pack[..pack.len() - 1]);
    let offset = head.len() + records[..2].concat().len();
    desk.refused("order import readahead pack", 2, &format!("pack: offset {offset}: the pack file ends within"));
    desk.write("pack", [head, record("/a", &[(5, 5)])].concat());
    desk.refused("order import readahead pack", 2, "offset 31: a range of pages ends before it begins");
    desk.write("pack", b"\x7fELF\n");
    desk.refused("order import readahead pack", 2, "not a pack file of systemd-readahead");
}

#[test]
fn a_log_of_nbdkit() {
    let desk = Desk::new();
    desk.write(
        "log",
        "1 connection=1 Read id=1 offset=0x1000 count=0x200 ...\n1 connection=1 Read id=2 offset=0x0 count=0x200 ...\n",
    );
    assert_eq!(
        desk.good("order import nbdkit log --image images/vm.img"),
        "# sealift order 1\nimages/vm.img\t4096-4607,0-511\n"
    );
    desk.refused("order import nbdkit log", 2, "--image");
    desk.refused("order import nbdkit log --image ../a", 2, "..");
    desk.write("log", "1 connection=1 Read id=1 offset=4096 count=0x200 ...\n");
    desk.refused("order import nbdkit log --image a", 2, "log: line 1: a read without offset and count");
}

#[test]
fn a_list_for_mksquashfs() {
    let desk = Desk::new();
    desk.write("sort", "# first\nusr/bin/late 5\n\nusr/bin/first\t32767\na\\ b\\\\ 5\nlast -3\nusual 0\n/c 6\n");
    assert_eq!(desk.good("order import sort sort"), "# sealift order 1\nusr/bin/first\nc\nusr/bin/late\na b\\\\\n");
    desk.write("sort", "a 1\nb 32768\n");
    desk.refused("order import sort sort", 2, "sort: line 2: expected a path and a priority");
    desk.write("sort", "../a 1\nb 1\nc 2\nd\n");
    assert_eq!(
        desk.good("order import sort sort"),
        "# sealift order 1\nc\nb\n  left out 1 path outside the root\n  skipped 1 line without a path\n"
    );
}

#[test]
fn what_lists_no_file_is_refused() {
    let desk = Desk::new();
    desk.write("empty", "");
    for form in ["paths", "strace", "readahead", "nbdkit --image a", "sort"] {
        desk.refused(&format!("order import {form} empty -o profile"), 2, "empty: it lists no file");
    }
    desk.write("comments", "# none\n\n");
    desk.refused("order import paths comments", 2, "comments: it lists no file");
    desk.refused("order import sort comments", 2, "comments: it lists no file");
    desk.write("failed", "openat(AT_FDCWD</>, \"/a\", O_RDONLY) = -1 ENOENT (No such file or directory)\n");
    desk.refused("order import strace failed", 2, "failed: it lists no file");
    assert!(!desk.path("profile").exists());
    // These inputs list only files elsewhere.
    desk.write("elsewhere", "/srv/other/a\n/etc/b\n");
    let said = desk.good("order import paths elsewhere --root /srv/os");
    assert_eq!(said, "# sealift order 1\n  left out 2 paths outside the root\n");
}

#[test]
fn junk_is_none_of_them() {
    let desk = Desk::new();
    let junk: Vec<u8> =
        (0..100_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24).to_le_bytes()[0]).collect();
    desk.write("junk", junk);
    desk.refused("order import paths junk", 2, "junk: path ");
    desk.write("program", std::fs::read(env!("CARGO_BIN_EXE_sealift")).unwrap());
    desk.refused("order import paths program", 2, "program: path ");
    desk.refused("order import strace junk", 2, "junk: not the output of strace");
    desk.refused("order import nbdkit junk --image a", 2, "junk: no reads in it");
    desk.refused("order import readahead junk", 2, "not a pack file");
    desk.write("long", vec![b'a'; 3 << 20]);
    desk.refused("order import strace long", 2, "long: line 1: not a text file");
}
