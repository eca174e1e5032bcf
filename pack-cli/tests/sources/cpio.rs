//! cpio archives, as GNU cpio and libarchive write them, and archives that are refused.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use sealift::source::{ArchiveFault, ArchiveFormat, ArchiveSource, Source, SourceOptions};
use sealift::{Error, NewNode};

use super::trees::*;

pub(crate) fn read(bytes: &[u8]) -> Result<Source, Error> {
    let format = ArchiveFormat::of("cpio:".as_ref()).expect("it is known");
    ArchiveSource::of_pipe(
        bytes,
        Path::new("-"),
        format,
        &SourceOptions { spool_dir: std::env::temp_dir(), ..options() },
    )
    .map(Source::Archive)
}

/// Returns the output of a shell command in the tree.
fn written(tree: &Path, line: &str) -> Vec<u8> {
    let done = Command::new("sh").args(["-c", line]).current_dir(tree).stdin(Stdio::null()).output().expect("sh runs");
    assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
    done.stdout
}

#[test]
fn what_programs_write_is_the_directory() {
    let scratch = Scratch::new();
    make_plain(&scratch.tree());
    // In an archive, two names of a symbolic link are two links.
    fs::remove_file(scratch.tree().join("dangling-too")).expect("removed");
    make_special(&scratch.tree());
    let expected = reduced(items(&directory(&scratch.tree())), false, false);
    for line in [
        "find . -print0 | cpio --quiet -0 -o -H newc",
        "find . -print0 | cpio --quiet -0 -o -H crc",
        "bsdtar -c -f - --format newc .",
    ] {
        let bytes = written(&scratch.tree(), line);
        compare(&expected, &items(&read(&bytes).expect("a source")), line);
    }
}

#[test]
fn archives_that_follow_one_another_are_one_source() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.tree()).expect("made");
    fs::write(scratch.tree().join("first"), "first").expect("written");
    fs::hard_link(scratch.tree().join("first"), scratch.tree().join("linked")).expect("linked");
    let mut bytes = written(&scratch.tree(), "find . | cpio --quiet -o -H newc");
    fs::remove_file(scratch.tree().join("linked")).expect("removed");
    fs::write(scratch.tree().join("first"), "second").expect("written");
    bytes.extend([0; 8]);
    bytes.extend(written(&scratch.tree(), "find . | cpio --quiet -o -H newc"));
    let found = items(&read(&bytes).expect("a source"));
    let content = |name: &[u8]| found[name].content.clone().expect("a file");
    assert_eq!((content(b"first"), content(b"linked")), (b"second".to_vec(), b"first".to_vec()));

    let offset = bytes.len();
    bytes.extend(b"\x28\xb5\x2f\xfd and so on");
    let said = read(&bytes).expect_err("it is compressed").to_string();
    assert!(said.contains(&format!("offset {offset}")) && said.contains("compressed with zstd"), "{said}");
}

/// Returns a member with this mode, inode, number of links, content and name; its other fields are 0.
fn member(mode: u32, inode: u32, links: u32, content: &[u8], name: &[u8]) -> Vec<u8> {
    let fields = [
        inode,
        mode,
        0,
        0,
        links,
        0,
        u32::try_from(content.len()).expect("small"),
        0,
        0,
        0,
        0,
        u32::try_from(name.len()).expect("short") + 1,
        0,
    ];
    let mut bytes = b"070701".to_vec();
    fields.iter().for_each(|field| bytes.extend(format!("{field:08X}").bytes()));
    bytes.extend([name, b"\0"].concat());
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

const FILE: u32 = 0o100_644;

fn archive(members: &[Vec<u8>]) -> Vec<u8> {
    [members.concat(), member(0, 0, 1, b"", b"TRAILER!!!")].concat()
}

/// Returns an archive with a member of each kind.
pub(crate) fn small_archive() -> Vec<u8> {
    let file = |name: &[u8], content: &[u8]| member(FILE, 7, 2, content, name);
    let special = [(0o040_755, &b"d"[..], &b""[..]), (0o120_777, b"d/link", b"target"), (0o020_600, b"null", b"")];
    let special = special.map(|(mode, name, content)| member(mode, 1, 1, content, name));
    archive(&[special.concat(), file(b"d/a", b""), file(b"d/b", b"content")])
}

#[test]
fn the_content_comes_with_any_name() {
    for full in 0..3 {
        let names = [b"a", b"b", b"c"];
        let members = (0..3).map(|at| member(FILE, 7, 3, if at == full { b"content" } else { b"" }, names[at]));
        let found = items(&read(&archive(&members.collect::<Vec<_>>())).expect("a source"));
        for name in names {
            assert_eq!(found[&name[..]].content.as_deref(), Some(&b"content"[..]));
            assert_eq!(found[&name[..]].first, b"a");
        }
    }
    let device = |name: &[u8]| member(0o020_600, 3, 2, b"", name);
    let found = items(&read(&archive(&[device(b"null"), device(b"other")])).expect("a source"));
    assert!(matches!(found[&b"other"[..]].file, NewNode::CharDevice(_)) && found[&b"other"[..]].first == b"null");
}

/// As the kernel's gen_init_cpio does (with --data-align for the names), and pax -x sv4cpio.
#[test]
fn padding_and_repeated_contents_are_read() {
    let padded = [&b"file"[..], &[0; 3000]].concat();
    let link = |name: &[u8]| member(FILE, 7, 3, b"content", name);
    let members = [
        member(FILE, 1, 1, b"aligned", &padded),
        member(0o120_777, 2, 1, b"usr/bin/sh\0", b"init"),
        member(0o120_777, 3, 1, b"usr/lib\0\0\0", b"lib"),
        link(b"a"),
        link(b"b"),
        member(FILE, 7, 3, b"", b"c"),
    ];
    let found = items(&read(&archive(&members)).expect("a source"));
    assert_eq!(found[&b"file"[..]].content.as_deref(), Some(&b"aligned"[..]));
    assert_eq!(found[&b"init"[..]].file, NewNode::Symlink(b"usr/bin/sh".to_vec().into()));
    assert_eq!(found[&b"lib"[..]].file, NewNode::Symlink(b"usr/lib".to_vec().into()));
    for name in [b"a", b"b", b"c"] {
        assert_eq!(
            (found[&name[..]].first.as_slice(), found[&name[..]].content.as_deref()),
            (&b"a"[..], Some(&b"content"[..]))
        );
    }
}

#[test]
fn what_cannot_be_packed_is_refused() {
    let file = || member(FILE, 1, 1, b"content", b"file");
    let summed = |sum: &[u8]| {
        let mut bytes = file();
        bytes[..6].copy_from_slice(b"070702");
        bytes[102..110].copy_from_slice(sum);
        archive(&[bytes])
    };
    read(&summed(b"000002FB")).expect("the sum is right");
    let name_len = |digits: &[u8]| {
        let mut bytes = archive(&[file()]);
        bytes[94..102].copy_from_slice(digits);
        bytes
    };
    let whole = archive(&[file()]);
    let cases: [(&str, Vec<u8>, &str); 18] = [
        ("nothing", Vec::new(), "is truncated"),
        ("no trailer", file(), "TRAILER!!!"),
        ("another form", b"070707".iter().chain(&[b'0'; 200]).copied().collect(), "cpio -o -H newc"),
        ("a digit", [&b"070701 "[..], &whole[7..]].concat(), "cpio -o -H newc"),
        ("a sum", summed(b"000002FC"), "does not match the checksum"),
        ("no name", name_len(b"00000000"), "name length"),
        ("a long name", name_len(b"00001001"), "name length"),
        ("a name without its end", name_len(b"00000004"), "does not end with a NUL byte"),
        ("a name with more after its end", archive(&[member(FILE, 1, 1, b"", b"a\0b")]), "a: a name goes on after"),
        ("nothing but NUL bytes", archive(&[member(FILE, 1, 1, b"", b"\0\0")]), "a name is empty"),
        ("a name beyond the end", name_len(b"00000FFF"), "truncated"),
        ("a parent", archive(&[member(FILE, 1, 1, b"", b"../up")]), "../up"),
        ("a type", archive(&[member(0o010, 1, 1, b"", b"odd")]), "cannot be packed"),
        ("a device with content", archive(&[member(0o020_600, 1, 1, b"x", b"null")]), "cannot have content"),
        (
            "two contents",
            archive(&[member(FILE, 1, 2, b"x", b"a"), member(FILE, 1, 2, b"y", b"b")]),
            "b is a hard link",
        ),
        (
            "two lengths",
            archive(&[member(FILE, 1, 2, b"x", b"a"), member(FILE, 1, 2, b"xx", b"b")]),
            "b is a hard link",
        ),
        ("a target with NUL", archive(&[member(0o120_777, 1, 1, b"a\0b", b"link")]), "contains a NUL byte"),
        ("bytes behind", [&whole[..], b"more"].concat(), "not a cpio archive in newc format"),
    ];
    for (what, bytes, why) in cases {
        match read(&bytes) {
            Err(Error::Archive { fault, .. }) => assert!(fault.to_string().contains(why), "{what}: {fault}"),
            other => panic!("{what}: {other:?}"),
        }
    }
    // The last three bytes are the padding after the name.
    for cut in 1..whole.len() - 3 {
        let read = read(&whole[..cut]);
        assert!(matches!(&read, Err(Error::Archive { .. })), "{cut}: {read:?}");
    }
    let compressed = read(b"\x1f\x8b\x08 and so on").expect_err("it is compressed").to_string();
    assert!(compressed.contains("it is compressed with gzip"), "{compressed}");
    let target = archive(&[member(0o120_777, 1, 1, &[b'x'; 5000], b"link")]);
    assert!(
        matches!(read(&target), Err(Error::Archive { fault, .. }) if matches!(*fault, ArchiveFault::Target { .. }))
    );
}
