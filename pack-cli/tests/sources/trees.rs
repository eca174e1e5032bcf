//! Trees to pack, and what a source reports about them.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, XattrFlags, lsetxattr, makedev, mknodat};
use sealift::source::{
    ArchiveFormat, ArchiveSource, DirectoryOptions, DirectorySource, OpenCache, Source, SourceOptions, XattrFilter,
};
use sealift::{Error, Metadata, NewNode};
use sealift_desk::{can_chown, out, set_mtime, skipped};

/// Everything that a source reports about a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) metadata: Metadata,
    /// The node, without the number of its content, which differs between sources.
    pub(crate) file: NewNode,
    /// The first path of the same node.
    pub(crate) first: Vec<u8>,
    pub(crate) content: Option<Vec<u8>>,
}

pub(crate) type Items = BTreeMap<Vec<u8>, Item>;

pub(crate) fn items(source: &Source) -> Items {
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
            let known = metadata.xattrs.iter().map(sealift_format::XattrRef::to_owned);
            metadata.xattrs = known.chain(xattrs).collect::<Vec<_>>().try_into().expect("they fit");
            *number = 0;
        }
        assert!(items.insert(visited.path, Item { metadata, file, first, content }).is_none());
    });
    assert!(source.contents().eq(0..next));
    items
}

/// Reads a content in pieces of an odd size.
pub(crate) fn read(source: &Source, number: u32, cache: &mut OpenCache) -> (Vec<u8>, Vec<sealift_format::Xattr>) {
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

pub(crate) fn everything() -> DirectoryOptions {
    let mut xattrs = XattrFilter::default();
    xattrs.add(b"trusted.*");
    DirectoryOptions { xattrs, ..DirectoryOptions::default() }
}

pub(crate) fn directory(path: &Path) -> Source {
    Source::Directory(DirectorySource::list(path, &everything(), 2).expect("the directory is listed"))
}

pub(crate) fn options() -> SourceOptions {
    SourceOptions { directory: everything(), ..SourceOptions::default() }
}

/// Returns options with which nothing can be copied to a spool.
pub(crate) fn without_spool() -> SourceOptions {
    SourceOptions { spool_dir: "/nowhere".into(), ..options() }
}

pub(crate) fn tar_bytes(bytes: &[u8], options: &SourceOptions) -> Result<Source, Error> {
    ArchiveSource::of_pipe(bytes, Path::new("-"), tar(), options).map(Source::Archive)
}

pub(crate) fn open_tar(path: &Path, options: &SourceOptions) -> Result<Source, Error> {
    ArchiveSource::open(path, tar(), options).map(Source::Archive)
}

fn tar() -> &'static ArchiveFormat {
    ArchiveFormat::of("tar:".as_ref()).expect("it is known")
}

pub(crate) fn compare(expected: &Items, found: &Items, what: &str) {
    for (path, item) in expected {
        let found = found.get(path).unwrap_or_else(|| panic!("{what}: {} is missing", path.escape_ascii()));
        let said = |item: &Item| format!("{:?} {:?} {:?}", item.metadata, item.file, item.first.escape_ascii());
        assert_eq!(said(found), said(item), "{what}: {}", path.escape_ascii());
        assert!(found.content == item.content, "{what}: the content of {}", path.escape_ascii());
    }
    let more: Vec<_> = found.keys().filter(|path| !expected.contains_key(*path)).collect();
    assert!(more.is_empty(), "{what}: {more:?}");
}

/// Creates what every form of tar can hold.
pub(crate) fn make_plain(root: &Path) {
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
    if can_chown() {
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

/// Creates what ustar introduced.
pub(crate) fn make_special(root: &Path) {
    let special = root.join("special");
    fs::create_dir(&special).expect("made");
    mknodat(CWD, special.join("fifo"), FileType::Fifo, Mode::from_raw_mode(0o640), 0).expect("made");
    if can_chown() {
        let node = |name, kind, device| mknodat(CWD, special.join(name), kind, Mode::from_raw_mode(0o600), device);
        node("null", FileType::CharacterDevice, makedev(1, 3)).expect("made");
        node("disk", FileType::BlockDevice, makedev(259, 70_000)).expect("made");
    } else {
        skipped("needs root: device nodes");
    }
    let deep = special.join("d".repeat(80)).join("e".repeat(50));
    fs::create_dir_all(&deep).expect("made");
    fs::write(deep.join("f".repeat(99)), "deep").expect("written");
    set_mtime(&special, 1_500_000_000, 0);
}

/// Creates what only the extended forms can hold.
pub(crate) fn make_extended(root: &Path) {
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
    if can_chown() {
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

pub(crate) fn make_sparse(path: &Path, segments: &[(u64, u16)], len: u64) {
    let file = File::create(path).expect("made");
    file.set_len(len).expect("grown");
    for (at, segment_len) in segments {
        let bytes: Vec<u8> = (0..*segment_len).map(|at| u8::try_from(at % 255 + 1).expect("small")).collect();
        file.write_all_at(&bytes, *at).expect("written");
    }
}

pub(crate) fn make_xattrs(root: &Path) {
    let set = |path: &str, name: &str, value: &[u8]| lsetxattr(root.join(path), name, value, XattrFlags::empty());
    // With the rights 1 and 3, the value contains a newline.
    let capability = *b"\x01\0\0\x02\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    if let Err(error) = set("one", "user.note", b"line\n12 size=99\n\0\xff") {
        return skipped(&format!("needs extended attributes ({error})"));
    }
    set("d", "user.a=b%3D", b"=").expect("set");
    set("empty", "user.empty", b"").expect("set");
    set("d/long", "user.long", &[b'x'; 3000]).expect("set");
    let acl = b"\x02\0\0\0\x01\0\x06\0\xff\xff\xff\xff\x02\0\x04\0\xe8\x03\0\0\x04\0\x04\0\xff\xff\xff\xff\
                \x10\0\x06\0\xff\xff\xff\xff\x20\0\x04\0\xff\xff\xff\xff";
    set("block", "system.posix_acl_access", acl).expect("set");
    set("d/e", "system.posix_acl_default", acl).expect("set");
    if can_chown() {
        set("more", "security.capability", &capability).expect("set");
        set("link", "trusted.note", b"of the link").expect("set");
    }
}

pub(crate) fn run(program: &str, arguments: &[&str], tree: &Path, archive: &Path) {
    let mut command = Command::new(program);
    command.args(arguments).arg("-cf").arg(archive).arg("-C").arg(tree).arg(".").stderr(Stdio::piped());
    out(&mut command);
}

/// Removes what a form of tar cannot hold.
pub(crate) fn reduced(mut items: Items, nanoseconds: bool, xattrs: bool) -> Items {
    for item in items.values_mut() {
        if !nanoseconds {
            item.metadata.mtime_ns = 0;
        }
        if !xattrs {
            item.metadata.xattrs = sealift_format::Xattrs::default();
        }
    }
    items
}

pub(crate) struct Scratch {
    pub(crate) directory: tempfile::TempDir,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a scratch directory") }
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.directory.path().join("tree")
    }

    pub(crate) fn archive(&self) -> PathBuf {
        self.directory.path().join("archive.tar")
    }

    /// Makes an archive, and reads it from the file and through a pipe.
    pub(crate) fn packed(&self, program: &str, arguments: &[&str]) -> Items {
        run(program, arguments, &self.tree(), &self.archive());
        let source = open_tar(&self.archive(), &without_spool());
        let whole = items(&source.unwrap_or_else(|error| panic!("{program} {arguments:?}: {error}")));
        let piped = tar_bytes(&fs::read(self.archive()).expect("read"), &options()).expect("a source");
        compare(&whole, &items(&piped), "a pipe is as a file");
        whole
    }
}
