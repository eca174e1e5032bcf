//! Sources of every kind against each other: what GNU tar and bsdtar make of a directory is the directory.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use proptest::prelude::*;
use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags, lsetxattr, makedev, mknodat};
use sealift::source::{
    DirectoryOptions, DirectorySource, Exclude, MetadataOptions, OpenCache, OwnerRule, Source, SourceOptions, TarFault,
    TarSource, XattrFilter,
};
use sealift::{Error, Metadata, NewNode, Progress, Tree};

/// All that a source says of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    metadata: Metadata,
    /// Without the number of its content, which is another source's own.
    file: NewNode,
    /// The first path of the same node.
    first: Vec<u8>,
    content: Option<Vec<u8>>,
}

type Items = BTreeMap<Vec<u8>, Item>;

fn items(source: &Source) -> Items {
    let mut items = Items::new();
    let mut first = HashMap::new();
    let mut cache = OpenCache::default();
    let mut next = 0;
    source.tree().visit(|visited| {
        let (mut metadata, mut file, mut content) = (visited.metadata, visited.file, None);
        let first = first.entry(visited.node).or_insert_with(|| visited.path.clone()).clone();
        if let NewNode::Regular { content: number } = &mut file {
            if first == visited.path {
                assert_eq!(*number, next, "contents are numbered in tree order");
                next += 1;
            }
            let (bytes, xattrs) = read(source, *number, &mut cache);
            content = Some(bytes);
            metadata.xattrs.extend(xattrs);
            *number = 0;
        }
        metadata.xattrs.sort();
        assert!(items.insert(visited.path, Item { metadata, file, first, content }).is_none());
    });
    assert_eq!(next, source.content_count());
    items
}

/// Reads a content in pieces that fit nothing.
fn read(source: &Source, number: u32, cache: &mut OpenCache) -> (Vec<u8>, Vec<sealift_format::Xattr>) {
    let content = source.open(number, cache).expect("the content opens");
    let mut bytes = vec![0xee; usize::try_from(source.content_len(number)).expect("a small file")];
    let mut offset = 0;
    for piece in bytes.chunks_mut(33_333) {
        content.read_at(piece, offset).expect("the content is read");
        offset += u64::try_from(piece.len()).expect("a small piece");
    }
    assert!(content.read_at(&mut [0], offset).is_err(), "nothing follows");
    let xattrs = content.xattrs().expect("the attributes are read");
    content.finish().expect("nothing changed");
    (bytes, xattrs)
}

fn everything() -> DirectoryOptions {
    let mut xattrs = XattrFilter::default();
    xattrs.add(b"trusted.*");
    DirectoryOptions { xattrs, ..DirectoryOptions::default() }
}

fn directory(path: &Path) -> Source {
    Source::Directory(DirectorySource::list(path, &everything(), 2).expect("the directory is listed"))
}

fn options() -> SourceOptions {
    SourceOptions { directory: everything(), ..SourceOptions::default() }
}

/// Options under which nothing can be copied.
fn without_spool() -> SourceOptions {
    SourceOptions { spool_dir: "/nowhere".into(), ..options() }
}

fn tar_bytes(bytes: &[u8], options: &SourceOptions) -> Result<Source, Error> {
    TarSource::of_pipe(bytes, Path::new("-"), options).map(Source::Tar)
}

fn compare(expected: &Items, found: &Items, what: &str) {
    for (path, item) in expected {
        let found = found.get(path).unwrap_or_else(|| panic!("{what}: {} is missing", path.escape_ascii()));
        let said = |item: &Item| format!("{:?} {:?} {:?}", item.metadata, item.file, item.first.escape_ascii());
        assert_eq!(said(found), said(item), "{what}: {}", path.escape_ascii());
        assert!(found.content == item.content, "{what}: the content of {}", path.escape_ascii());
    }
    let more: Vec<_> = found.keys().filter(|path| !expected.contains_key(*path)).collect();
    assert!(more.is_empty(), "{what}: {more:?}");
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn set_mtime(path: &Path, seconds: i64, nanoseconds: i64) {
    let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let times = Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).expect("the time is set");
}

/// What every form of tar can hold.
fn make_plain(root: &Path) {
    fs::create_dir_all(root.join("d/e")).expect("made");
    fs::create_dir(root.join("empty")).expect("made");
    for (name, len) in [("none", 0), ("one", 1), ("block", 512), ("more", 513), ("d/long", 300_000)] {
        let bytes: Vec<u8> = (0..len).map(|at: u32| u8::try_from(at % 251).expect("small")).collect();
        fs::write(root.join(name), bytes).expect("written");
    }
    for (name, mode) in [("suid", 0o4755), ("sgid", 0o2711), ("secret", 0o400), ("all", 0o7777)] {
        fs::write(root.join(name), name).expect("written");
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).expect("set");
    }
    fs::set_permissions(root.join("d/e"), fs::Permissions::from_mode(0o1777)).expect("set");
    fs::set_permissions(root, fs::Permissions::from_mode(0o750)).expect("set");
    fs::write(root.join(OsStr::from_bytes(b"\xff\xfe name\n\x1b[1m")), "odd").expect("written");
    fs::write(root.join("-n"), "dash").expect("written");
    symlink("one", root.join("link")).expect("linked");
    symlink("../nowhere/\u{e4}", root.join("d/dangling")).expect("linked");
    fs::hard_link(root.join("one"), root.join("d/another")).expect("linked");
    fs::hard_link(root.join("one"), root.join("a-first")).expect("linked");
    fs::hard_link(root.join("d/dangling"), root.join("dangling-too")).expect("linked");
    if is_root() {
        chown(root.join("more"), Some(1234), Some(100_000)).expect("given");
        lchown(root.join("link"), Some(7), Some(8)).expect("given");
    }
    set_mtime(&root.join("one"), 1_000_000_000, 123_456_789);
    set_mtime(&root.join("link"), 1_000_000_001, 1);
    set_mtime(&root.join("block"), 0, 0);
    set_mtime(&root.join("d/e"), 1_234_567_890, 999_999_999);
    set_mtime(&root.join("d"), 1_234_567_891, 10);
    set_mtime(root, 1_234_567_892, 500_000_000);
}

/// What came with ustar.
fn make_special(root: &Path) {
    let special = root.join("special");
    fs::create_dir(&special).expect("made");
    mknodat(CWD, special.join("fifo"), FileType::Fifo, Mode::from_raw_mode(0o640), 0).expect("made");
    if is_root() {
        let node = |name, kind, device| mknodat(CWD, special.join(name), kind, Mode::from_raw_mode(0o600), device);
        node("null", FileType::CharacterDevice, makedev(1, 3)).expect("made");
        node("disk", FileType::BlockDevice, makedev(259, 70_000)).expect("made");
    } else {
        eprintln!("skipped: device nodes, without root");
    }
    let deep = special.join("d".repeat(80)).join("e".repeat(50));
    fs::create_dir_all(&deep).expect("made");
    fs::write(deep.join("f".repeat(99)), "deep").expect("written");
    set_mtime(&special, 1_500_000_000, 0);
}

/// What only the extended forms can hold.
fn make_extended(root: &Path) {
    let extended = root.join("extended");
    let mut deep = extended.clone();
    for letter in ["x", "y", "z"] {
        deep.push(letter.repeat(200));
    }
    fs::create_dir_all(&deep).expect("made");
    fs::write(deep.join("n".repeat(255)), "deeper").expect("written");
    fs::hard_link(deep.join("n".repeat(255)), extended.join("near")).expect("linked");
    symlink("t/".repeat(1000), extended.join("far")).expect("linked");
    symlink("t".repeat(100), extended.join("just")).expect("linked");
    fs::write(extended.join("e".repeat(100)), "just").expect("written");
    fs::write(extended.join("early"), "1969").expect("written");
    set_mtime(&extended.join("early"), -2, 500_000_000);
    if is_root() {
        chown(extended.join("near"), Some(4_000_000_000), Some(3_000_000)).expect("given");
    }
    make_sparse(&extended.join("holes"), &[(65_536, 4096), (1 << 20, 8192)], (1 << 20) + 8192);
    make_sparse(&extended.join("tail"), &[(0, 4096)], 3 << 20);
    make_sparse(&extended.join("odd"), &[(131_072, 5000)], 136_072);
    make_sparse(&extended.join("void"), &[], 1 << 20);
    let many: Vec<_> = (0..60).map(|at| (at * 131_072 + 65_536, 4096)).collect();
    make_sparse(&extended.join("many"), &many, 60 * 131_072 + 7);
    set_mtime(&extended, 1_500_000_000, 0);
}

fn make_sparse(path: &Path, segments: &[(u64, u16)], len: u64) {
    let file = File::create(path).expect("made");
    file.set_len(len).expect("grown");
    for (at, segment_len) in segments {
        let bytes: Vec<u8> = (0..*segment_len).map(|at| u8::try_from(at % 255 + 1).expect("small")).collect();
        file.write_all_at(&bytes, *at).expect("written");
    }
}

fn make_xattrs(root: &Path) {
    let set = |path: &str, name: &str, value: &[u8]| lsetxattr(root.join(path), name, value, XattrFlags::empty());
    // Rights 1 and 3 give a newline in the value.
    let capability = *b"\x01\0\0\x02\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    if let Err(error) = set("one", "user.note", b"line\n12 size=99\n\0\xff") {
        eprintln!("skipped: extended attributes ({error})");
        return;
    }
    set("d", "user.a=b%3D", b"=").expect("set");
    set("empty", "user.empty", b"").expect("set");
    set("d/long", "user.long", &[b'x'; 3000]).expect("set");
    let acl = b"\x02\0\0\0\x01\0\x06\0\xff\xff\xff\xff\x02\0\x04\0\xe8\x03\0\0\x04\0\x04\0\xff\xff\xff\xff\
                \x10\0\x06\0\xff\xff\xff\xff\x20\0\x04\0\xff\xff\xff\xff";
    set("block", "system.posix_acl_access", acl).expect("set");
    set("d/e", "system.posix_acl_default", acl).expect("set");
    if is_root() {
        set("more", "security.capability", &capability).expect("set");
        set("link", "trusted.note", b"of the link").expect("set");
    }
}

fn run(program: &str, arguments: &[&str], tree: &Path, archive: &Path) {
    let mut command = Command::new(program);
    command.args(arguments).arg("-cf").arg(archive).arg("-C").arg(tree).arg(".").stderr(Stdio::piped());
    let output = command.output().expect("the program runs");
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Takes away what a form of tar does not hold.
fn reduced(mut items: Items, nanoseconds: bool, xattrs: bool) -> Items {
    for item in items.values_mut() {
        if !nanoseconds {
            item.metadata.mtime_ns = 0;
        }
        if !xattrs {
            item.metadata.xattrs.clear();
        }
    }
    items
}

struct Scratch {
    directory: tempfile::TempDir,
}

impl Scratch {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a scratch directory") }
    }

    fn tree(&self) -> PathBuf {
        self.directory.path().join("tree")
    }

    fn archive(&self) -> PathBuf {
        self.directory.path().join("archive.tar")
    }

    /// Makes an archive and reads it, from the file and through a pipe.
    fn packed(&self, program: &str, arguments: &[&str]) -> Items {
        run(program, arguments, &self.tree(), &self.archive());
        let source = TarSource::open(&self.archive(), &without_spool()).map(Source::Tar);
        let whole = items(&source.unwrap_or_else(|error| panic!("{program} {arguments:?}: {error}")));
        let piped = tar_bytes(&fs::read(self.archive()).expect("read"), &options()).expect("a source");
        compare(&whole, &items(&piped), "a pipe is as a file");
        whole
    }
}

#[test]
fn gnu_tar_of_a_directory_is_the_directory() {
    let scratch = Scratch::new();
    make_plain(&scratch.tree());
    let expected = items(&directory(&scratch.tree()));
    for format in ["--format=v7", "--format=ustar", "--format=gnu", "--format=oldgnu"] {
        compare(&reduced(expected.clone(), false, false), &scratch.packed("tar", &[format]), format);
    }
    make_special(&scratch.tree());
    let expected = items(&directory(&scratch.tree()));
    for format in ["--format=ustar", "--format=gnu"] {
        compare(&reduced(expected.clone(), false, false), &scratch.packed("tar", &[format]), format);
    }
    make_extended(&scratch.tree());
    make_xattrs(&scratch.tree());
    let expected = items(&directory(&scratch.tree()));
    for arguments in [&["--format=gnu"][..], &["--format=gnu", "-S"], &["--format=oldgnu", "-S"]] {
        let found = scratch.packed("tar", arguments);
        compare(&reduced(expected.clone(), false, false), &found, &format!("{arguments:?}"));
    }
    for sparse in ["--sparse-version=0.0", "--sparse-version=0.1", "--sparse-version=1.0", "--no-recursion"] {
        let mut arguments = vec!["--format=posix", "--xattrs", "--xattrs-include=*"];
        if sparse != "--no-recursion" {
            arguments.extend(["-S", sparse]);
        }
        compare(&expected, &scratch.packed("tar", &arguments), sparse);
    }
}

#[test]
fn bsdtar_of_a_directory_is_the_directory() {
    if Command::new("bsdtar").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("skipped: there is no bsdtar (Debian: libarchive-tools)");
        return;
    }
    let scratch = Scratch::new();
    make_plain(&scratch.tree());
    make_special(&scratch.tree());
    let expected = items(&directory(&scratch.tree()));
    for format in ["ustar", "gnutar"] {
        let found = scratch.packed("bsdtar", &["--format", format]);
        compare(&reduced(expected.clone(), false, false), &found, format);
    }
    make_extended(&scratch.tree());
    // libarchive writes a fraction before 1970 as -2.5 where GNU tar writes -1.5.
    set_mtime(&scratch.tree().join("extended/early"), -2, 0);
    make_xattrs(&scratch.tree());
    let expected = items(&directory(&scratch.tree()));
    compare(&expected, &scratch.packed("bsdtar", &["--format", "pax", "--xattrs"]), "pax");
}

#[test]
fn options_hold_for_every_kind() {
    let scratch = Scratch::new();
    make_plain(&scratch.tree());
    make_xattrs(&scratch.tree());
    run("tar", &["--format=posix", "--xattrs"], &scratch.tree(), &scratch.archive());
    let directory = DirectoryOptions {
        exclude: Some(Exclude::new(["/a-first", "e/", "*.o", "/d/long", "!none"].into_iter()).expect("patterns")),
        ..DirectoryOptions::default()
    };
    let metadata = MetadataOptions {
        owner: Some((5, 6)),
        owner_map: vec![OwnerRule::parse("uid:1234=0").expect("a rule")],
        mtime_max: Some(1_000_000_000),
    };
    let options = SourceOptions { directory, metadata, ..without_spool() };
    let open = |spec: &OsStr| items(&Source::open_spec(spec, &options, 2).expect("a source"));
    let of_directory = open(scratch.tree().as_os_str());
    let mut spec = OsString::from("tar:");
    spec.push(scratch.archive());
    compare(&of_directory, &open(&spec), "tar:");
    assert!(!of_directory.contains_key(&b"a-first"[..]) && !of_directory.contains_key(&b"d/e"[..]));
    // The name that stays has what the one that was left out had.
    assert_eq!(of_directory[&b"d/another"[..]].content.as_deref(), Some(&[0][..]));
    for item in of_directory.values() {
        assert!(item.metadata.uid == 5 || (is_root() && item.metadata.uid == 0));
        assert!(item.metadata.gid == 6 && item.metadata.mtime <= 1_000_000_000);
    }
    let file = open(scratch.tree().join("d/long").as_os_str());
    assert_eq!(file.keys().collect::<Vec<_>>(), [&b""[..], b"long"]);
    assert!(file.values().all(|item| item.metadata.gid == 6));
}

#[test]
fn large_sizes_are_told_by_binary_numbers_and_by_records() {
    let scratch = Scratch::new();
    let len = 9 << 30;
    for by_record in [false, true] {
        let file = File::create(scratch.archive()).expect("made");
        let mut head = Vec::new();
        if by_record {
            head.extend(pax(&[(b"size", b"9663676416")]));
        }
        head.extend(header(b"large", b'0', if by_record { 0 } else { len }));
        let begin = u64::try_from(head.len()).expect("small");
        file.write_all_at(&head, 0).expect("written");
        file.write_all_at(b"end", begin + len - 3).expect("written");
        file.write_all_at(&member(b"next", b'0', b"content"), begin + len).expect("written");
        file.set_len(begin + len + 2048).expect("grown");
        let source = TarSource::open(&scratch.archive(), &without_spool()).expect("a source");
        let source = Source::Tar(source);
        assert_eq!((source.content_len(0), source.content_len(1)), (len, 7));
        let content = source.open(0, &mut OpenCache::default()).expect("opened");
        let mut bytes = [1; 5];
        content.read_at(&mut bytes, len - 5).expect("read");
        assert_eq!(&bytes, b"\0\0end");
        assert_eq!(read(&source, 1, &mut OpenCache::default()).0, b"content");
    }
    // A sparse file of this size, as GNU tar writes it.
    fs::create_dir(scratch.tree()).expect("made");
    make_sparse(&scratch.tree().join("large"), &[(len - 8192, 4096)], len);
    for format in ["--format=gnu", "--format=posix"] {
        run("tar", &["-S", format], &scratch.tree(), &scratch.archive());
        let source = TarSource::open(&scratch.archive(), &without_spool()).expect("a source");
        let source = Source::Tar(source);
        let mut bytes = [9; 2];
        let content = source.open(0, &mut OpenCache::default()).expect("opened");
        content.read_at(&mut bytes, len - 8193).expect("read");
        assert_eq!((source.content_len(0), bytes), (len, [0, 1]));
    }
}

// Archives by hand.

fn header(name: &[u8], type_flag: u8, size: u64) -> Vec<u8> {
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

fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn member(name: &[u8], type_flag: u8, data: &[u8]) -> Vec<u8> {
    let len = u64::try_from(data.len()).expect("small");
    padded([header(name, type_flag, len), data.to_vec()].concat())
}

fn link(name: &[u8], type_flag: u8, target: &[u8]) -> Vec<u8> {
    linked_header(name, type_flag, 0, target)
}

fn record(keyword: &[u8], value: &[u8]) -> Vec<u8> {
    let rest = keyword.len() + value.len() + 3;
    let len = (rest..).find(|len| rest + len.to_string().len() == *len).expect("there is one");
    [len.to_string().as_bytes(), b" ", keyword, b"=", value, b"\n"].concat()
}

fn pax(records: &[(&[u8], &[u8])]) -> Vec<u8> {
    let data: Vec<u8> = records.iter().flat_map(|(keyword, value)| record(keyword, value)).collect();
    member(b"PaxHeaders/x", b'x', &data)
}

fn archive(members: &[Vec<u8>]) -> Vec<u8> {
    [members.concat(), vec![0; 1024]].concat()
}

fn fault(bytes: &[u8]) -> (u64, TarFault) {
    match tar_bytes(bytes, &options()) {
        Err(Error::Tar { offset, fault, .. }) => (offset, *fault),
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
    let made = Metadata { permissions: 0o755, uid: 0, gid: 0, mtime: 0, mtime_ns: 0, xattrs: Vec::new() };
    for path in ["", "not", "not/made"] {
        assert_eq!(items[path.as_bytes()].metadata, made, "{path}");
    }
    assert_eq!(items.len(), 12);
}

#[test]
fn records_say_where_the_next_member_begins() {
    // Programs that take the header's size here read the hidden member.
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
    // Of an extended header itself, only its own size counts.
    let long = [member(b"././@LongLink", b'L', b"long\0"), header(b"short", b'0', 0), b"x".to_vec()].concat();
    let bytes = archive(&[pax(&[(b"size", b"1")]), padded(long)]);
    let items = items(&tar_bytes(&bytes, &options()).expect("a source"));
    assert_eq!(items[&b"long"[..]].content.as_deref(), Some(&b"x"[..]));
}

/// What is wrong, the archive, where, and whether this is what is said of it.
type Refused = (&'static str, Vec<u8>, u64, fn(&TarFault) -> bool);

#[test]
fn what_cannot_be_packed_is_refused() {
    use TarFault::*;
    let file = || member(b"f", b'0', b"content");
    let sparse = |map: &'static [u8], size: &'static [u8]| pax(&[(b"GNU.sparse.size", size), (b"GNU.sparse.map", map)]);
    let version1 = |data: &[u8]| {
        let records: [(&[u8], &[u8]); 3] =
            [(b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0"), (b"GNU.sparse.realsize", b"512")];
        archive(&[pax(&records), member(b"f", b'0', data)])
    };
    let sized = |type_flag| archive(&[file(), header(b"a", type_flag, 512), vec![0; 512]]);
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
        ("damage", damaged, 1024, |fault| matches!(fault, Checksum)),
        ("no archive", vec![b'x'; 2048], 0, |fault| matches!(fault, Number { .. } | Checksum)),
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
        ("framing", archive(&[member(b"a", b'x', b"9 path=ab\n"), file()]), 0, |fault| matches!(fault, Pax)),
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
        // Members are named by their first header, headers by themselves.
        assert!(at == offset || at == 0 && bytes.get(156) == Some(&b'x'), "{what}: {at}");
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
        assert!(error.to_string().contains(&format!("`{program} -dc FILE | sealift pack tar:- ...`")), "{error}");
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
    // What is read through a name and is no file goes the same way.
    let scratch = Scratch::new();
    let fifo = scratch.directory.path().join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("made");
    std::thread::scope(|scope| {
        scope.spawn(|| fs::write(&fifo, &bytes).expect("written"));
        let source = TarSource::open(&fifo, &options()).expect("a source");
        assert_eq!(Source::Tar(source).content_count(), 1);
    });
}

#[test]
fn an_archive_that_changes_is_an_error() {
    let scratch = Scratch::new();
    fs::write(scratch.archive(), archive(&[member(b"f", b'0', b"content")])).expect("written");
    let source = TarSource::open(&scratch.archive(), &without_spool()).expect("a source");
    let source = Source::Tar(source);
    let content = source.open(0, &mut OpenCache::default()).expect("opened");
    let mut file = File::options().append(true).open(scratch.archive()).expect("opened");
    file.write_all(b"x").expect("written");
    assert!(matches!(content.finish(), Err(Error::Changed { .. })));
}

/// A small archive with something of everything.
fn small_archive() -> Vec<u8> {
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
            assert!(matches!(read, Err(Error::Tar { .. })), "{cut}: {read:?}");
        }
    }
    // Half of the end will do, as for other programs.
    tar_bytes(&bytes[..end + 512], &options()).expect("the end is told");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a damaged archive holds, reading it ends, and what is read can be read again.
    #[test]
    fn damage_never_panics(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), sum: bool) {
        thread_local! { static BYTES: Vec<u8> = small_archive(); }
        let mut bytes = BYTES.with(Clone::clone);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
            if sum {
                // A header that is right about itself leads further.
                let block = at / 512 * 512;
                let mut header = tar::Header::from_byte_slice(&bytes[block..block + 512]).clone();
                header.set_cksum();
                bytes[block..block + 512].copy_from_slice(header.as_bytes());
            }
        }
        if let Ok(source) = tar_bytes(&bytes, &options()) {
            let mut small = true;
            for content in 0..source.content_count() {
                small &= source.content_len(content) < 1 << 24;
            }
            if small {
                items(&source);
            }
        }
    }

    /// An archive by another writer, its members in any order, is the tree that it was made from.
    #[test]
    fn any_tree_comes_back(tree in any_tree(), order: Vec<prop::sample::Index>) {
        let mut members: Vec<_> = tree.iter().collect();
        for (at, other) in order.iter().enumerate().take(members.len()) {
            let other = other.index(members.len());
            members.swap(at, other);
        }
        let mut builder = tar::Builder::new(Vec::new());
        for (path, item) in members {
            append(&mut builder, path, item);
        }
        let bytes = builder.into_inner().expect("in memory");
        let found = items(&tar_bytes(&bytes, &options()).expect("a source"));
        let mut expected = tree;
        let root = Metadata { permissions: 0o755, uid: 0, gid: 0, mtime: 0, mtime_ns: 0, xattrs: Vec::new() };
        let root = Item { metadata: root, file: NewNode::Directory, first: Vec::new(), content: None };
        expected.insert(Vec::new(), root.clone());
        for path in expected.keys().cloned().collect::<Vec<_>>() {
            for (at, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
                let parent = Item { first: path[..at].to_vec(), ..root.clone() };
                expected.entry(path[..at].to_vec()).or_insert(parent);
            }
        }
        compare(&expected, &found, "any tree");
    }
}

fn any_tree() -> impl Strategy<Value = Items> {
    let name = prop_oneof![
        4 => "[a-d]".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>().prop_map(|byte| if b"/\0".contains(&byte) { b'_' } else { byte }), 1..150)
            .prop_filter("a name", |name| name != b"." && name != b".."),
    ];
    let path = prop::collection::vec(name, 1..4).prop_map(|names| names.join(&b'/'));
    prop::collection::btree_map(path, any_item(), 0..20).prop_map(|mut items| {
        // What has something below it is a directory.
        let paths: Vec<Vec<u8>> = items.keys().cloned().collect();
        for path in &paths {
            for (at, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
                if let Some(item) = items.get_mut(&path[..at]) {
                    item.file = NewNode::Directory;
                    item.content = None;
                }
            }
        }
        for (path, item) in &mut items {
            item.first.clone_from(path);
        }
        items
    })
}

fn any_item() -> impl Strategy<Value = Item> {
    let device = (any::<u16>(), any::<u16>())
        .prop_map(|(major, minor)| sealift_format::Device { major: major.into(), minor: minor.into() });
    let file = prop_oneof![
        Just(NewNode::Directory),
        Just(NewNode::Regular { content: 0 }),
        Just(NewNode::Regular { content: 0 }),
        prop::collection::vec(1_u8.., 1..200).prop_map(|target| NewNode::Symlink(target.into())),
        device.clone().prop_map(NewNode::CharDevice),
        device.prop_map(NewNode::BlockDevice),
        Just(NewNode::Fifo),
    ];
    let xattrs = prop::collection::btree_map("[a-c=\n%]{1,4}", prop::collection::vec(any::<u8>(), 0..20), 0..3);
    let numbers = (0_u16..0o10000, any::<u32>(), any::<u32>(), -10_i64..1 << 40, 0_u32..1_000_000_000);
    (file, numbers, xattrs, prop::collection::vec(any::<u8>(), 0..1500)).prop_map(|(file, numbers, xattrs, bytes)| {
        let (permissions, uid, gid, mtime, mtime_ns) = numbers;
        let xattrs = xattrs
            .into_iter()
            .map(|(name, value)| sealift_format::Xattr { name: format!("user.{name}").into_bytes(), value });
        let mut xattrs: Vec<_> = xattrs.collect();
        xattrs.sort();
        let content = matches!(file, NewNode::Regular { .. }).then_some(bytes);
        let metadata = Metadata { permissions, uid, gid, mtime, mtime_ns, xattrs };
        Item { metadata, file, first: Vec::new(), content }
    })
}

fn append(builder: &mut tar::Builder<Vec<u8>>, path: &[u8], item: &Item) {
    let metadata = &item.metadata;
    let mut data = record(b"mtime", decimal_time(metadata).as_bytes());
    // The writer cuts long names for their headers as text.
    let by_record = !path.is_ascii();
    if by_record {
        data.extend(record(b"path", path));
    }
    // It also makes other targets of `a//b` and `a/.`.
    let target_by_record = |target: &[u8]| target.contains(&b'/');
    if let NewNode::Symlink(target) = &item.file
        && target_by_record(target)
    {
        data.extend(record(b"linkpath", target));
    }
    for xattr in &metadata.xattrs {
        let name = String::from_utf8(xattr.name.clone()).expect("made of text");
        let name = name.replace('%', "%25").replace('=', "%3D");
        data.extend(record(format!("SCHILY.xattr.{name}").as_bytes(), &xattr.value));
    }
    let mut extended = tar::Header::new_ustar();
    extended.set_entry_type(tar::EntryType::XHeader);
    extended.set_size(u64::try_from(data.len()).expect("small"));
    extended.set_cksum();
    builder.append(&extended, &data[..]).expect("in memory");

    let mut header = tar::Header::new_gnu();
    header.set_mode(metadata.permissions.into());
    header.set_uid(metadata.uid.into());
    header.set_gid(metadata.gid.into());
    header.set_mtime(0);
    let bytes = item.content.as_deref().unwrap_or_default();
    header.set_size(u64::try_from(bytes.len()).expect("small"));
    let (kind, device) = match &item.file {
        NewNode::Directory => (tar::EntryType::Directory, None),
        NewNode::Symlink(_) => (tar::EntryType::Symlink, None),
        NewNode::CharDevice(device) => (tar::EntryType::Char, Some(device)),
        NewNode::BlockDevice(device) => (tar::EntryType::Block, Some(device)),
        NewNode::Fifo => (tar::EntryType::Fifo, None),
        _ => (tar::EntryType::Regular, None),
    };
    header.set_entry_type(kind);
    if let Some(device) = device {
        header.set_device_major(device.major).expect("GNU's form has it");
        header.set_device_minor(device.minor).expect("GNU's form has it");
    }
    let path = if by_record { Path::new("x") } else { Path::new(OsStr::from_bytes(path)) };
    match &item.file {
        NewNode::Symlink(target) if target_by_record(target) => {
            builder.append_link(&mut header, path, "x").expect("in memory");
        }
        NewNode::Symlink(target) => {
            let target = OsString::from_vec(target.to_vec());
            builder.append_link(&mut header, path, Path::new(&target)).expect("in memory");
        }
        _ => builder.append_data(&mut header, path, bytes).expect("in memory"),
    }
}

/// Seconds with a fraction, as POSIX writes them.
fn decimal_time(metadata: &Metadata) -> String {
    let (seconds, nanoseconds) = (metadata.mtime, metadata.mtime_ns);
    if seconds >= 0 || nanoseconds == 0 {
        return format!("{seconds}.{nanoseconds:09}");
    }
    let sign = if seconds == -1 { "-" } else { "" };
    format!("{sign}{}.{:09}", seconds + 1, 1_000_000_000 - nanoseconds)
}

#[test]
fn a_tree_is_visited_in_its_order() {
    let plain = Metadata { permissions: 0o755, uid: 0, gid: 0, mtime: 0, mtime_ns: 0, xattrs: Vec::new() };
    let mut tree = Tree::new(plain.clone());
    let node = tree.add(0, b"b", plain.clone(), NewNode::Directory).expect("a name");
    let below = tree.directory_of(node).expect("a directory");
    tree.add(below, b"x", plain.clone(), NewNode::Fifo).expect("a name");
    tree.add(0, b"c", plain, NewNode::Socket).expect("a name");
    let mut paths = Vec::new();
    tree.visit(|visited| paths.push((visited.path, visited.file)));
    let expected: [(&[u8], NewNode); 4] =
        [(b"", NewNode::Directory), (b"b", NewNode::Directory), (b"c", NewNode::Socket), (b"b/x", NewNode::Fifo)];
    assert_eq!(paths, expected.map(|(path, file)| (path.to_vec(), file)));
}
