//! Archives built by hand: unusual ones, and ones that are refused.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::Arc;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use sealift::Output;
use sealift::pack::{PackOptions, PackRef, pack};
use sealift::source::{ArchiveFault, OpenCache, SourceOptions};
use sealift::{Error, Identity, Limits, Metadata, Progress, TarFault};

use super::trees::*;

pub(crate) fn header(name: &[u8], type_flag: u8, size: u64) -> Vec<u8> {
    linked_header(name, type_flag, size, b"")
}

fn linked_header(name: &[u8], type_flag: u8, size: u64, link: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name);
    header.as_mut_bytes()[157..157 + link.len()].copy_from_slice(link);
    header.as_mut_bytes()[156] = type_flag;
    header.set_size(size);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_cksum();
    header.as_bytes().to_vec()
}

pub(crate) fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

pub(crate) fn member(name: &[u8], type_flag: u8, data: &[u8]) -> Vec<u8> {
    let len = u64::try_from(data.len()).expect("small");
    padded([header(name, type_flag, len), data.to_vec()].concat())
}

pub(crate) fn link(name: &[u8], type_flag: u8, target: &[u8]) -> Vec<u8> {
    linked_header(name, type_flag, 0, target)
}

pub(crate) fn record(keyword: &[u8], value: &[u8]) -> Vec<u8> {
    let rest = keyword.len() + value.len() + 3;
    let len = (rest..).find(|len| rest + len.to_string().len() == *len).expect("there is one");
    [len.to_string().as_bytes(), b" ", keyword, b"=", value, b"\n"].concat()
}

pub(crate) fn pax(records: &[(&[u8], &[u8])]) -> Vec<u8> {
    let data: Vec<u8> = records.iter().flat_map(|(keyword, value)| record(keyword, value)).collect();
    member(b"PaxHeaders/x", b'x', &data)
}

pub(crate) fn archive(members: &[Vec<u8>]) -> Vec<u8> {
    [members.concat(), vec![0; 1024]].concat()
}

pub(crate) fn fault(bytes: &[u8]) -> (u64, ArchiveFault) {
    match tar_bytes(bytes, &options()) {
        Err(Error::Archive { offset, fault, .. }) => (offset, *fault),
        Err(other) => panic!("another error: {other}"),
        Ok(source) => panic!("it was read: {:?}", items(&source)),
    }
}

#[test]
fn later_members_replace_earlier_ones() {
    let bytes = archive(&[
        member(b"a", b'0', b"old"),
        link(b"keeps", b'1', b"a"),
        member(b"a", b'0', b"new"),
        member(b"./d/", b'5', b""),
        member(b"d/x", b'0', b"x"),
        member(b"/d", b'5', b""), // the same directory, whose children stay
        member(b"empty", b'5', b""),
        member(b"empty", b'0', b"now a file"),
        link(b"l", b'2', b"d"),
        member(b"l", b'5', b""),
        member(b"l/y", b'0', b"y"),
        link(b"d/z", b'1', b"./l/y"),
        link(b"d/z", b'1', b"d/z"),
        member(b"not//made/./f", b'0', b"f"),
    ]);
    let items = items(&tar_bytes(&bytes, &options()).expect("a source"));
    let content = |path: &str| items[path.as_bytes()].content.as_deref().map(String::from_utf8_lossy);
    assert_eq!(content("a").as_deref(), Some("new"));
    assert_eq!(content("keeps").as_deref(), Some("old"));
    assert_eq!(content("d/x").as_deref(), Some("x"));
    assert_eq!(content("empty").as_deref(), Some("now a file"));
    assert_eq!(items[&b"l/y"[..]].first, b"d/z");
    let made = Metadata { permissions: 0o755, ..Metadata::default() };
    for path in ["", "not", "not/made"] {
        assert_eq!(items[path.as_bytes()].metadata, made, "{path}");
    }
    assert_eq!(items.len(), 12);
}

#[test]
fn records_say_where_the_next_member_begins() {
    // Programs that use the size in the header here read the hidden member.
    let hidden = member(b"hidden", b'0', b"");
    let size = hidden.len().to_string();
    for records in [
        pax(&[(b"size", size.as_bytes())]),
        pax(&[(b"SCHILY.xattr.user.a", b"\n1\n"), (b"size", b"0"), (b"size", size.as_bytes())]),
    ] {
        let bytes = archive(&[records, header(b"outer", b'0', 0), hidden.clone(), member(b"next", b'0', b"next")]);
        let items = items(&tar_bytes(&bytes, &options()).expect("a source"));
        assert_eq!(items.keys().collect::<Vec<_>>(), [&b""[..], b"next", b"outer"]);
        assert_eq!(items[&b"outer"[..]].content.as_ref(), Some(&hidden));
    }
    // For an extended header itself, only the size in its own header counts.
    let long = [member(b"././@LongLink", b'L', b"long\0"), header(b"short", b'0', 0), b"x".to_vec()].concat();
    let bytes = archive(&[pax(&[(b"size", b"1")]), padded(long)]);
    let items = items(&tar_bytes(&bytes, &options()).expect("a source"));
    assert_eq!(items[&b"long"[..]].content.as_deref(), Some(&b"x"[..]));
}

/// A description, the archive, the offset of the fault, and whether the fault is the expected one.
type Refused = (&'static str, Vec<u8>, u64, fn(&ArchiveFault) -> bool);

#[test]
fn what_cannot_be_packed_is_refused() {
    use ArchiveFault::*;
    let file = || member(b"f", b'0', b"content");
    let sparse = |map: &'static [u8], size: &'static [u8]| pax(&[(b"GNU.sparse.size", size), (b"GNU.sparse.map", map)]);
    let version1 = |data: &[u8]| {
        let records: [(&[u8], &[u8]); 3] =
            [(b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0"), (b"GNU.sparse.realsize", b"512")];
        archive(&[pax(&records), member(b"f", b'0', data)])
    };
    let sized = |type_flag| archive(&[file(), header(b"a", type_flag, 512), vec![b'x'; 512]]);
    let mut damaged = archive(&[file(), file()]);
    damaged[1024] ^= 1;
    let table: Vec<Refused> = vec![
        ("dotdot", archive(&[member(b"a/../b", b'0', b"")]), 0, |fault| matches!(fault, Name { .. })),
        ("dotdot in a link", archive(&[file(), link(b"a", b'1', b"../f")]), 1024, |fault| matches!(fault, Name { .. })),
        ("no name", archive(&[member(b"", b'0', b"")]), 0, |fault| matches!(fault, Name { .. })),
        ("long name", archive(&[pax(&[(b"path", &[b'a'; 256])]), file()]), 0, |fault| matches!(fault, Name { .. })),
        ("NUL", archive(&[pax(&[(b"path", b"a\0b")]), file()]), 0, |fault| matches!(fault, Name { .. })),
        ("no target", archive(&[link(b"a", b'2', b"")]), 0, |fault| matches!(fault, Target { .. })),
        ("NUL in a target", archive(&[pax(&[(b"linkpath", b"a\0b")]), link(b"a", b'2', b"x")]), 0, |fault| {
            matches!(fault, Target { .. })
        }),
        ("root", archive(&[member(b"./", b'2', b"")]), 0, |fault| matches!(fault, ReplacesDirectory { .. })),
        (
            "below a link",
            archive(&[link(b"a", b'2', b"/etc"), member(b"a/b", b'0', b"")]),
            512,
            |fault| matches!(fault, NotDirectory { path, parent } if path == "a/b" && parent == "a"),
        ),
        ("below a file", archive(&[file(), member(b"f/b/c", b'0', b"")]), 1024, |fault| {
            matches!(fault, NotDirectory { .. })
        }),
        ("a full directory", archive(&[member(b"a/b", b'0', b""), link(b"a", b'2', b"x")]), 512, |fault| {
            matches!(fault, ReplacesDirectory { .. })
        }),
        (
            "link to nothing",
            archive(&[link(b"a", b'1', b"f"), file()]),
            0,
            |fault| matches!(fault, LinkToNothing { path, target } if path == "a" && target == "f"),
        ),
        ("link to a directory", archive(&[member(b"d/", b'5', b""), link(b"a", b'1', b"d")]), 512, |fault| {
            matches!(fault, LinkToDirectory { .. })
        }),
        ("a link's size", sized(b'1'), 1024, |fault| matches!(fault, SizeWithoutContent { size: 512, .. })),
        ("a symlink's size", sized(b'2'), 1024, |fault| matches!(fault, SizeWithoutContent { .. })),
        ("a directory's size", sized(b'5'), 1024, |fault| matches!(fault, SizeWithoutContent { .. })),
        ("type", archive(&[member(b"a", b'Z', b"")]), 0, |fault| matches!(fault, Type { .. })),
        ("many volumes", archive(&[member(b"a", b'M', b"")]), 0, |fault| matches!(fault, Type { .. })),
        ("damage", damaged, 1024, |fault| matches!(fault, Tar(TarFault::Checksum))),
        ("no archive", vec![b'x'; 2048], 0, |fault| matches!(fault, Tar(_))),
        ("nothing", Vec::new(), 0, |fault| matches!(fault, NoEnd)),
        ("no end", file(), 1024, |fault| matches!(fault, NoEnd)),
        ("two archives", [archive(&[file()]), archive(&[file()])].concat(), 1024, |fault| matches!(fault, BeyondEnd)),
        ("size", archive(&[header(b"a", b'0', 4096)]), 0, |fault| matches!(fault, Truncated)),
        ("huge", archive(&[header(b"a", b'0', u64::MAX >> 1)]), 0, |fault| matches!(fault, Truncated)),
        ("huge record", archive(&[pax(&[(b"size", b"18446744073709551615")]), file()]), 1024, |fault| {
            matches!(fault, Truncated)
        }),
        ("huge extension", archive(&[header(b"a", b'x', 1 << 30)]), 0, |fault| {
            matches!(fault, ExtensionTooLong { .. })
        }),
        ("extension alone", archive(&[pax(&[(b"path", b"a")])]), 1024, |fault| matches!(fault, ExtensionAlone)),
        ("extension twice", archive(&[pax(&[]), pax(&[]), file()]), 512, |fault| matches!(fault, ExtensionTwice)),
        ("framing", archive(&[member(b"a", b'x', b"9 path=ab\n"), file()]), 0, |fault| {
            matches!(fault, Tar(TarFault::Pax))
        }),
        ("global", archive(&[member(b"a", b'g', b"9 size=1\n"), file()]), 0, |fault| matches!(fault, PaxGlobal { .. })),
        ("acl", archive(&[pax(&[(b"SCHILY.acl.access", b"user:ann:rwx")]), file()]), 1024, |fault| {
            matches!(fault, AclName { .. })
        }),
        ("map", archive(&[sparse(b"0,7,4", b"9"), file()]), 1024, |fault| matches!(fault, SparseMap)),
        ("map's order", archive(&[sparse(b"4,3,0,4", b"9"), file()]), 1024, |fault| matches!(fault, SparseMap)),
        ("map's sum", archive(&[sparse(b"0,6", b"9"), file()]), 1024, |fault| matches!(fault, SparseMap)),
        ("map beyond the end", archive(&[sparse(b"3,7", b"9"), file()]), 1024, |fault| matches!(fault, SparseMap)),
        ("map's count", version1(b"99999999999\n0\n5\n"), 1024, |fault| matches!(fault, SparseMap)),
        ("map without end", version1(&[b'1'; 2000]), 1024, |fault| matches!(fault, SparseMap)),
        ("map of nothing", version1(b""), 1024, |fault| matches!(fault, SparseMap)),
        ("version", archive(&[pax(&[(b"GNU.sparse.major", b"2")]), file()]), 1024, |fault| {
            matches!(fault, SparseVersion)
        }),
    ];
    for (what, bytes, offset, expected) in table {
        let (at, fault) = fault(&bytes);
        assert!(expected(&fault), "{what}: {fault:?}");
        // For members, the offset is that of their first header; for headers, their own.
        assert!(at == offset || at == 0 && bytes.get(156) == Some(&b'x'), "{what}: {at}");
    }
}

/// What has no content has none, whatever its header says, as GNU tar unpacks it.
#[test]
fn the_size_of_what_has_no_content_is_ignored() {
    let sized = |name: &[u8], type_flag, target: &[u8]| linked_header(name, type_flag, 512, target);
    let bytes = archive(&[
        member(b"f", b'0', b"content"),
        sized(b"d/", b'5', b""),
        sized(b"hard", b'1', b"f"),
        pax(&[(b"mtime", b"7.5")]),
        sized(b"harder", b'1', b"f"),
        sized(b"soft", b'2', b"f"),
        sized(b"null", b'3', b""),
        sized(b"pipe", b'6', b""),
        member(b"next", b'0', b"next"),
        sized(b"last", b'1', b"f"),
    ]);
    let items = items(&tar_bytes(&bytes, &options()).expect("a source"));
    for name in [&b"hard"[..], b"harder", b"last"] {
        assert_eq!(items[name].content.as_deref(), Some(&b"content"[..]));
    }
    assert_eq!(items[&b"next"[..]].content.as_deref(), Some(&b"next"[..]));
    assert_eq!(items.len(), 10);
    let scratch = Scratch::new();
    fs::create_dir(scratch.tree()).expect("made");
    fs::write(scratch.archive(), &bytes).expect("written");
    let extract = ["-x", "--exclude", "null", "-f", "../archive.tar"];
    let done = Command::new("tar").args(extract).current_dir(scratch.tree()).output().expect("tar runs");
    assert!(done.status.success() && done.stderr.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
    for name in ["hard", "harder", "last", "soft"] {
        assert_eq!(fs::read_to_string(scratch.tree().join(name)).expect("unpacked"), "content", "{name}");
    }
}

#[test]
fn sparse_version_1_with_a_size_record() {
    let data = padded(b"2\n0\n512\n1024\n3\n".to_vec());
    let data = [data, vec![7; 515]].concat();
    let size = data.len().to_string();
    let records: [(&[u8], &[u8]); 5] = [
        (b"GNU.sparse.major", b"1"),
        (b"GNU.sparse.minor", b"0"),
        (b"GNU.sparse.name", b"real"),
        (b"GNU.sparse.realsize", b"2000"),
        (b"size", size.as_bytes()),
    ];
    let body = padded([header(b"GNUSparseFile.0/x", b'0', 1), data].concat());
    let bytes = archive(&[pax(&records), body, member(b"next", b'0', b"next")]);
    let items = items(&tar_bytes(&bytes, &options()).expect("a source"));
    let mut expected = vec![0; 2000];
    expected[..512].fill(7);
    expected[1024..1027].fill(7);
    assert_eq!(items[&b"real"[..]].content.as_ref(), Some(&expected));
    assert!(items.contains_key(&b"next"[..]));
}

#[test]
fn compressed_archives_are_named() {
    for (magic, program) in [(&b"\x1f\x8b\x08"[..], "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ\0", "xz")] {
        let error = tar_bytes(&[magic, &[0; 600]].concat(), &options()).expect_err("it is compressed");
        assert!(error.to_string().ends_with(&format!("it is compressed with {program}")), "{error}");
    }
}

#[test]
fn global_records_hold_until_a_member_has_its_own() {
    let global =
        member(b"g", b'g', &[record(b"uid", b"7"), record(b"mtime", b"5.5"), record(b"comment", b"c")].concat());
    let volume = member(b"a label", b'V', b"");
    let bytes = archive(&[
        volume,
        member(b"a", b'0', b""),
        global,
        member(b"b", b'0', b""),
        pax(&[(b"uid", b"9"), (b"mtime", b"")]),
        member(b"c", b'0', b""),
    ]);
    let items = items(&tar_bytes(&bytes, &options()).expect("a source"));
    let told = |path: &str| {
        let metadata = &items[path.as_bytes()].metadata;
        (metadata.uid, metadata.mtime, metadata.mtime_ns)
    };
    assert_eq!([told("a"), told("b"), told("c")], [(0, 0, 0), (7, 5, 500_000_000), (9, 0, 0)]);
}

#[test]
fn a_pipe_needs_a_place_and_can_be_left() {
    let bytes = archive(&[member(b"a", b'0', b"")]);
    assert!(matches!(tar_bytes(&bytes, &without_spool()), Err(Error::Io { .. })));
    let progress = Arc::new(Progress::default());
    let watched = SourceOptions { progress: Some(Arc::clone(&progress)), ..options() };
    tar_bytes(&bytes, &watched).expect("a source");
    assert_eq!((progress.snapshot().bytes, progress.snapshot().files), (1536, 1));
    progress.cancel();
    assert!(matches!(tar_bytes(&bytes, &watched), Err(Error::Cancelled)));
    // A named pipe, which is given by its path, is handled in the same way.
    let scratch = Scratch::new();
    let fifo = scratch.directory.path().join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("made");
    std::thread::scope(|scope| {
        scope.spawn(|| fs::write(&fifo, &bytes).expect("written"));
        assert_eq!(open_tar(&fifo, &options()).expect("a source").content_count(), 1);
    });
}

#[test]
fn an_archive_that_changes_is_an_error() {
    let scratch = Scratch::new();
    fs::write(scratch.archive(), archive(&[member(b"f", b'0', b"content")])).expect("written");
    let source = open_tar(&scratch.archive(), &without_spool()).expect("a source");
    let content = source.open(0, &mut OpenCache::default()).expect("opened");
    let mut file = File::options().append(true).open(scratch.archive()).expect("opened");
    file.write_all(b"x").expect("written");
    assert!(matches!(content.finish(), Err(Error::Changed { .. })));
}

/// Returns a small archive with a member of each kind.
pub(crate) fn small_archive() -> Vec<u8> {
    let scratch = Scratch::new();
    fs::create_dir(scratch.tree()).expect("made");
    fs::write(scratch.tree().join("n".repeat(120)), "long name").expect("written");
    symlink("t".repeat(120), scratch.tree().join("link")).expect("linked");
    make_sparse(&scratch.tree().join("holes"), &[(65_536, 4096)], 1 << 17);
    let mut bytes = Vec::new();
    for arguments in [&["-S", "--format=gnu"][..], &["-S", "--format=posix"]] {
        run("tar", &[arguments, &["-b1"]].concat(), &scratch.tree(), &scratch.archive());
        let archive = fs::read(scratch.archive()).expect("read");
        bytes.extend(&archive[..archive.len() - 1024]);
    }
    bytes.extend([0; 1024]);
    bytes
}

#[test]
fn a_cut_archive_is_refused_wherever_it_is_cut() {
    let bytes = small_archive();
    tar_bytes(&bytes, &options()).expect("the whole archive is read");
    let end = bytes.len() - 1024;
    for block in (0..=end).step_by(512) {
        for cut in [block, block + 1, block + 511] {
            let read = tar_bytes(&bytes[..cut.min(end)], &options());
            assert!(matches!(read, Err(Error::Archive { .. })), "{cut}: {read:?}");
        }
    }
    // Half of the end marker suffices, as for other programs.
    tar_bytes(&bytes[..end + 512], &options()).expect("the end is told");
}

/// The header of a sparse file can state any size: the archive is refused because of that before content is read.
#[test]
fn a_sparse_file_of_any_size_is_refused_at_once() {
    let sizes: [&[u8]; 2] = [b"4611686018427387904", b"9223372036854775807"];
    for size in sizes {
        let sparse = pax(&[(b"GNU.sparse.size", size), (b"GNU.sparse.map", b"0,9")]);
        let bytes = archive(&[member(b"small", b'0', b"x"), sparse, member(b"holes", b'0', b"123456789")]);
        let source = tar_bytes(&bytes, &options()).expect("a source");
        let identity = Identity { name: "os".into(), version: 1, created: 1, expires: None, compatible: vec![] };
        let scratch = Scratch::new();
        let (output, progress) = (scratch.directory.path().join("b.sealift"), Progress::default());
        let run = |logical| {
            let limits = Limits { logical, ..Limits::default() };
            let options = PackOptions { limits, ..PackOptions::new(identity.clone()) };
            // If it began to hash, the run would notice the request to stop.
            progress.cancel();
            let refs = [PackRef { name: "main", source: &source }];
            pack(&refs, &Output::File(output.clone()), &options, &|_| Ok(vec![]), &progress)
        };
        let error = run(Limits::default().logical).expect_err("it is refused");
        assert!(matches!(&error, Error::OverLimit { name, .. } if name == "size"), "{error}");
        assert!(error.to_string().contains("bytes in total (holes is the largest), which exceeds"), "{error}");
        assert!(matches!(run(u64::MAX), Err(Error::Cancelled)), "who asks for it may wait for it");
        assert!(!output.exists());
    }
}
