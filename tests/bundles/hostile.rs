//! Malicious bundles: nothing is written outside the target, no unfinished file remains, and no memory is allocated because of a claim alone.

use std::io::Read;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use sealift::inspect::Cost;
use sealift::unpack::{UnpackStats, unpack};
use sealift::verify::{Depth, verify};
use sealift::{Durability, InstallOptions, TreeOptions};
use sealift::{Error, Input, Limits, Progress};
use sealift_format::{Difference, Index, Kind, Layout, Objects, Opened, Opener, Root, Step};
use sealift_tests::bundle::{Attributes, Bundle, Packing};
use sealift_tests::content::of_bundle;
use sealift_tests::ostree::{Grown, nested};
use sealift_tests::reader::{Portions, anyones, judge, open, open_whole, read};
use sealift_tests::targets::{ENTRIES_MAX, INDEX_LEN};
use sealift_tests::tree::{Node, char_device, dir, file, link, paint, symlink};
use sealift_tests::vector::{Check, Vector, load};
use tempfile::TempDir;

fn options() -> InstallOptions {
    InstallOptions {
        jobs: 2,
        tree: TreeOptions { durability: Durability::None, ..TreeOptions::default() },
        ..InstallOptions::default()
    }
}

/// A folder with the bundle, and beside it a folder in which only the target may appear.
struct Folder {
    folder: TempDir,
    bundle: PathBuf,
}

impl Folder {
    fn new(bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let bundle = folder.path().join("bundle");
        std::fs::write(&bundle, bytes).expect("there is room");
        std::fs::create_dir(folder.path().join("out")).expect("a folder");
        Self { folder, bundle }
    }

    fn target(&self) -> PathBuf {
        self.folder.path().join("out/target")
    }

    fn unpack(&self) -> Result<UnpackStats, Error> {
        unpack(anyones(Input::open(&self.bundle)?)?, &self.target(), &options(), &Progress::default())
    }

    /// Returns the names in the folder of the target, and those beside that folder.
    fn found(&self) -> Vec<String> {
        let names = |folder: &Path| -> Vec<String> {
            let files = std::fs::read_dir(folder).expect("it can be listed");
            files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned()).collect()
        };
        let mut found = names(&self.folder.path().join("out"));
        found.extend(names(self.folder.path()).into_iter().filter(|name| !matches!(name.as_str(), "bundle" | "out")));
        found.sort();
        found
    }
}

fn one(tree: Node) -> Bundle {
    Bundle::new(&[("main", tree)], Packing::default())
}

#[test]
fn nothing_stays_of_a_bundle_that_is_refused() {
    // Unpacking to a directory checks neither verity(T) nor the checksums of OSTree's files.
    let is_seen = |vector: &Vector| match vector.expect.as_str() {
        "ok" => false,
        "object" => !vector.name.starts_with("ostree-file-"),
        _ => vector.name != "verity-table" && vector.name != "recipes-verity",
    };
    // Nor does it read the chunks of a delta bundle whose bases are missing.
    let is_delta = |vector: &Vector| matches!(open(&vector.bytes, &[usize::MAX]), Ok(Opened::Delta(_)));
    for vector in load().iter().filter(|vector| is_seen(vector) && !is_delta(vector)) {
        let Vector { name, trust, bytes, .. } = vector;
        let place = Folder::new(bytes);
        let take = || {
            let head = Input::open(&place.bundle)?.read_head(Limits::default())?;
            judge(&head, trust.as_ref())?;
            place.unpack()
        };
        let kind = take().expect_err(name).kind().map(Kind::word);
        assert_eq!(kind, Some(vector.expect.as_str()), "{name}");
        assert_eq!(place.found(), [""; 0], "{name} left something");
    }
}

#[test]
fn names_are_shown_without_control_characters() {
    for vector in load().iter().filter(|vector| vector.expect == "ok") {
        let Opened::Whole(bundle) = open(&vector.bytes, &[usize::MAX]).expect("it is taken") else { continue };
        let shown = of_bundle(&bundle);
        let hides = |c: char| c != '\n' && c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c);
        assert!(!shown.contains(hides), "{}", vector.name);
    }
}

#[test]
fn links_are_made_and_not_followed() {
    // A directory cannot have the same name as a link, since names are unique. Links that lead outside, also in two steps, and a second name of a
    // link are possible.
    let deep = dir([("out", symlink("../up")), ("x", file("x"))]);
    let tree = dir([("d", deep), ("l", symlink("../../outside")), ("m", link(2)), ("up", symlink(".."))]);
    let place = Folder::new(&one(tree).encode());
    std::fs::create_dir(place.folder.path().join("outside")).expect("a folder");
    place.unpack().expect("links may lead anywhere");
    let outside = std::fs::read_dir(place.folder.path().join("outside")).expect("it is there");
    assert_eq!(outside.count(), 0);
    assert_eq!(place.found(), [".target.sealift-state", "outside", "target"]);
    let metadata = |name: &str| std::fs::symlink_metadata(place.target().join(name)).expect("it was made");
    assert!(metadata("l").is_symlink() && metadata("m").is_symlink());
    assert_eq!((metadata("l").ino(), metadata("l").nlink()), (metadata("m").ino(), 2));
    assert!(metadata("d/out").is_symlink());
}

/// A pipe that looks through a folder before each portion, as long as bytes are left: until all content has been read, no file may have set-id bits
/// or be a device.
struct Watched {
    pipe: Portions,
    left: usize,
    folder: PathBuf,
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut pending = if self.left > 0 { vec![self.folder.clone()] } else { Vec::new() };
        while let Some(path) = pending.pop() {
            for file in std::fs::read_dir(path)? {
                let file = file?;
                let (path, metadata) = (file.path(), file.metadata()?);
                assert_eq!(metadata.mode() & 0o6000, 0, "{} has its set-id bits early", path.display());
                assert!(!metadata.file_type().is_char_device(), "{} is there early", path.display());
                if metadata.is_dir() {
                    pending.push(path);
                }
            }
        }
        let len = self.pipe.read(buffer)?;
        self.left -= len;
        Ok(len)
    }
}

#[test]
fn set_id_bits_and_devices_come_after_the_content() {
    let pieces = dir([("large", file(paint(1, 6000)).mode(0o6755)), ("null", char_device(1, 3))]);
    let group = dir([("null", char_device(1, 3)), ("small", file("x").mode(0o4755))]).mode(0o2755);
    for tree in [pieces, group] {
        let good = one(tree).encode();
        for (bytes, is_good) in [(good.clone(), true), (flipped(&good, 1), false)] {
            let place = Folder::new(&bytes);
            let folder = place.folder.path().join("out");
            let watched = Watched { pipe: Portions::new(&bytes, &[64]), left: bytes.len(), folder };
            let bundle = anyones(Input::pipe("pipe", Box::new(watched))).expect("it is admitted");
            let done = unpack(bundle, &place.target(), &options(), &Progress::default());
            assert_eq!(done.is_ok(), is_good);
            assert_eq!(place.found(), if is_good { &[".target.sealift-state", "target"][..] } else { &[] });
        }
    }
}

/// The same bytes, with the first of the last `back` bytes changed.
fn flipped(bytes: &[u8], back: usize) -> Vec<u8> {
    let mut bad = bytes.to_vec();
    let at = bad.len() - back;
    bad[at] ^= 1;
    bad
}

#[test]
fn what_changes_after_the_head_was_judged_is_found() {
    let good = one(dir([("a", file("one\n")), ("b", file(paint(1, 9000)))])).encode();
    let other = one(dir([("a", file("two\n")), ("b", file(paint(2, 9000)))])).encode();
    assert_eq!(good.len(), other.len(), "only then is the change of the content alone");
    let head_len =
        32 + usize::try_from(u32::from_le_bytes([good[12], good[13], good[14], good[15]])).expect("small") + 64;
    let mixed = [&good[..head_len], &other[head_len..]].concat();
    for (bad, what) in [(&other, "another bundle"), (&mixed, "another body"), (&flipped(&good, 1), "one byte")] {
        let place = Folder::new(&good);
        let input = || Input::open(&place.bundle).expect("it was written");
        let bundle = anyones(input()).expect("it is admitted");
        std::fs::write(&place.bundle, bad).expect("there is room");
        let done = unpack(bundle, &place.target(), &options(), &Progress::default());
        assert!(done.is_err_and(|error| error.kind().is_some()), "{what}");
        assert_eq!(place.found(), [""; 0], "{what}");

        std::fs::write(&place.bundle, &good).expect("there is room");
        let unopened = input().begin(Limits::default()).expect("it has a head");
        std::fs::write(&place.bundle, bad).expect("there is room");
        let done = verify(unopened, Depth::Stored, 1, &Progress::default());
        assert!(done.is_err_and(|error| error.kind().is_some()), "{what}");
    }
}

#[test]
fn a_file_that_shrinks_is_cut() {
    let good = one(dir([("a", file(paint(1, 9000)))])).encode();
    let place = Folder::new(&good);
    let bundle = anyones(Input::open(&place.bundle).expect("it was written")).expect("it is admitted");
    std::fs::write(&place.bundle, &good[..good.len() - 1]).expect("there is room");
    let done = unpack(bundle, &place.target(), &options(), &Progress::default());
    assert_eq!(done.expect_err("it is cut").kind(), Some(Kind::Truncated));
    // A stick that was pulled can return, so the stage is kept and resumed.
    assert_eq!(place.found(), [".target.sealift-partial"]);
    std::fs::write(&place.bundle, &good).expect("there is room");
    place.unpack().expect("it goes on");
    assert_eq!(place.found(), [".target.sealift-state", "target"]);
}

#[test]
fn sums_are_held_against_the_free_space_before_the_first_write() {
    // 100,000 files that share one object of 16 MiB: 1.6 TB from a bundle of some kilobytes.
    let tree = dir([("a", file(vec![b'x'; 16 << 20]))]);
    let mut bundle = Bundle::new(&[("main", tree)], Packing { piece_log2: 24, ..Packing::default() });
    let count = 100_000;
    bundle.index.children[0] = count;
    bundle.index.names = (0..count).map(|n| format!("{n:06}").into_bytes()).collect();
    bundle.index.links = vec![0; bundle.index.names.len()];
    bundle.index.rows = [&[0][..], &vec![1; bundle.index.names.len()]].concat();
    bundle.index.mtimes = vec![0; bundle.index.rows.len()];
    bundle.index.mtime_ns = vec![0; bundle.index.rows.len()];
    bundle.index.regulars = [&[0][..], &vec![1; bundle.index.names.len() - 1]].concat();
    let bytes = bundle.encode();
    assert!(bytes.len() < 1 << 20);
    let place = Folder::new(&bytes);
    let error = place.unpack().expect_err("there is no such room");
    assert!(matches!(error, Error::NoSpace { needed, .. } if needed > 1 << 40), "{error}");
    assert_eq!(place.found(), [""; 0]);
}

/// A chain of directories, each inside the one before.
fn chain(depth: usize) -> Bundle {
    let mut bundle = one(dir([]));
    bundle.index.names = vec![b"d".to_vec(); depth];
    bundle.index.links = vec![0; depth];
    bundle.index.rows = vec![0; depth + 1];
    bundle.index.mtimes = vec![0; depth + 1];
    bundle.index.mtime_ns = vec![0; depth + 1];
    bundle.index.children = [&vec![1; depth][..], &[0]].concat();
    bundle
}

#[test]
fn trees_may_be_deep_and_wide_up_to_a_limit() {
    let too_deep = chain(100_001).encode();
    assert_eq!(open(&too_deep, &[usize::MAX]).expect_err("it is too deep").kind(), Kind::Limit);
    // A bundle that declares a smaller depth must not overflow the stack either.
    let mut hidden = chain(100_001);
    hidden.edits.maxima = Some(Box::new(|maxima| (maxima.depth, maxima.paths) = (3, 9)));
    assert_eq!(open(&hidden.encode(), &[usize::MAX]).expect_err("it lies").kind(), Kind::Header);

    let mut wide = chain(0);
    wide.index.names = (0..200_000).map(|n| format!("{n:06}").into_bytes()).collect();
    wide.index.links = vec![0; 200_000];
    wide.index.rows = [&[0][..], &vec![1; 200_000]].concat();
    wide.index.mtimes = vec![0; 200_001];
    wide.index.mtime_ns = vec![0; 200_001];
    wide.index.children = vec![200_000];
    wide.index.attributes.push(Attributes { mode: 0x1000, ..Attributes::default() });
    let bundle = open_whole(&wide.encode()).expect("it is wide, and sound");
    assert_eq!(bundle.index.entries().len(), 200_000);
}

#[test]
fn commits_may_be_deep_up_to_a_limit() {
    let chain = |depth: u32| {
        let mut bundle = nested(usize::try_from(depth).expect("32 bits"), &[b"d"]);
        let ostree = bundle.index.ostree.as_mut().expect("it has a commit");
        let inodes = u64::from(depth) + 1;
        let (entries, paths) = (u64::from(depth), u64::from(depth).pow(2));
        ostree.grown = Grown { entries, paths, inodes, depth, disk: 4096 * inodes, ..Grown::default() };
        bundle
    };
    let bundle = open_whole(&chain(4096).encode()).expect("it is deep, and sound");
    assert_eq!(bundle.index.entries().len(), 4096);
    assert_eq!(open(&chain(100_001).encode(), &[usize::MAX]).expect_err("it is too deep").kind(), Kind::Limit);
    let mut hidden = chain(100_001);
    hidden.edits.maxima = Some(Box::new(|maxima| (maxima.depth, maxima.paths) = (3, 9)));
    assert_eq!(open(&hidden.encode(), &[usize::MAX]).expect_err("it lies").kind(), Kind::Header);
}

/// Numbers at the limits of the integer types.
const EDGES: [u64; 8] = [0, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, u64::MAX];

#[test]
fn numbers_at_the_edges_are_no_panic() {
    let vectors = load();
    for name in ["good-tree", "good-holes", "good-pieces", "good-annotations", "good-ostree", "good-recipes"] {
        let vector = vectors.iter().find(|vector| vector.name == name).expect("it is there");
        let (mut root, mut index, mut layout) = decoded(&vector.bytes);
        let bundle = open_whole(&vector.bytes).expect("it is taken");
        each_edge(&mut root, |bytes| drop(Root::parse(bytes)));
        each_edge(&mut index, |bytes| drop(Index::parse(bytes.to_vec(), ENTRIES_MAX)));
        let piece_log2 = bundle.head.root().maxima.piece_log2;
        each_edge(&mut layout, |bytes| drop(Layout::parse(bytes, &Objects::from(&bundle.index), piece_log2)));
    }
}

#[test]
fn numbers_at_the_edges_of_delta_bundles_are_no_panic() {
    let vectors = load();
    for name in ["good-delta", "good-delta-suffix", "good-delta-ostree", "good-delta-recipes"] {
        let vector = vectors.iter().find(|vector| vector.name == name).expect("it is there");
        let base = vectors.iter().find(|base| base.name == vector.bases[0]).expect("it is there");
        let base = open_whole(&base.bytes).expect("it is taken").index;
        let Opened::Delta(delta) = open(&vector.bytes, &[usize::MAX]).expect("it is taken") else { panic!("{name}") };
        each_edge(&mut delta.head.signed()[32..].to_vec(), |bytes| drop(Root::parse(bytes)));
        each_edge(&mut delta.difference.encode().expect("it fits"), |bytes| {
            let parsed = Difference::parse(bytes, ENTRIES_MAX, INDEX_LEN);
            drop(parsed.and_then(|difference| difference.apply(&[&base])));
        });
        let (piece_log2, objects) = (delta.head.root().maxima.piece_log2, Objects::from(&delta.difference));
        each_edge(&mut delta.layout.encode().expect("it fits"), |bytes| {
            drop(Layout::parse(bytes, &objects, piece_log2));
        });
    }
}

/// Returns root, index and layout, decoded as a reader parses them.
fn decoded(file: &[u8]) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let bundle = open_whole(file).expect("it is taken");
    let root = bundle.head.signed()[32..].to_vec();
    (root, bundle.index.bytes().to_vec(), bundle.layout.encode().expect("it fits"))
}

fn each_edge(bytes: &mut [u8], parse: impl Fn(&[u8])) {
    for at in 0..bytes.len().saturating_sub(8) {
        let before: [u8; 8] = bytes[at..at + 8].try_into().expect("eight bytes");
        for width in [4, 8] {
            for edge in EDGES {
                bytes[at..at + width].copy_from_slice(&edge.to_le_bytes()[..width]);
                parse(bytes);
            }
            bytes[at..at + 8].copy_from_slice(&before);
        }
    }
}

/// Returns a bundle with two objects of 50 MB in one chunk of a few kilobytes.
fn bomb() -> Vec<u8> {
    let tree = dir([("a", file(vec![b'x'; 50 << 20])), ("b", file(vec![b'y'; 50 << 20]))]);
    Bundle::new(&[("main", tree)], Packing { piece_log2: 26, ..Packing::default() }).encode()
}

const CHILD: &str = "SEALIFT_TESTS_BOMB";

/// Not a test by itself: [`memory_stays_within_what_is_stated`] runs it in a separate process.
#[test]
#[ignore = "run by memory_stays_within_what_is_stated"]
fn child_that_verifies() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let input = Input::open(Path::new(&path)).expect("it was written");
    let unopened = input.begin(Limits::default()).expect("it has a head");
    verify(unopened, Depth::Objects, 1, &Progress::default()).expect("it is sound");
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux says");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the peak of memory");
    println!("peak{}", peak.trim().trim_end_matches(" kB"));
}

#[test]
fn memory_stays_within_what_is_stated() {
    let bytes = bomb();
    assert!(bytes.len() < 100_000);
    let place = Folder::new(&bytes);
    let stated = Cost::of(open_whole(&bytes).expect("it is sound").head.root(), 1).memory;
    let test = std::env::current_exe().expect("this test");
    let output = std::process::Command::new(test)
        .args(["--exact", "hostile::child_that_verifies", "--ignored", "--nocapture"])
        .env(CHILD, &place.bundle)
        .output()
        .expect("it runs again");
    let text = String::from_utf8_lossy(&output.stdout);
    let peak = text.split("peak").nth(1).and_then(|rest| rest.split_whitespace().next()).and_then(|kb| kb.parse().ok());
    let peak: u64 = peak.unwrap_or_else(|| panic!("the child says: {text}"));
    assert!(peak * 1024 <= stated, "{} MiB, and {} are stated", peak >> 10, stated >> 20);
}

#[test]
fn claims_cost_nothing() {
    // An opener keeps no more than the bytes that it was given and the decoded parts, whatever preamble and root claim.
    let vectors = load();
    let claims = [
        "limit-index-len",
        "limit-layout-len",
        "limit-chunk-len",
        "limit-file-len",
        "limit-object-len",
        "piece-rows-none",
        "limit-prefix-len",
        "limit-base-index-len",
        "limit-difference-len",
        "limit-recipes-leaves",
        "limit-recipes-memory",
        "recipes-count",
        "recipes-segments-sum",
        "recipes-ranges-sum",
    ];
    for vector in vectors.iter().filter(|vector| claims.contains(&vector.name.as_str())) {
        let mut opener = Opener::new(None, Limits::default());
        let mut asked = 0;
        let mut failed = None;
        while let Step::Need(range) = opener.step() {
            asked = asked.max(range.end);
            let at = |offset: u64| usize::try_from(offset).expect("it lies in the input");
            if at(range.end) > vector.bytes.len() {
                break;
            }
            if let Err(error) = opener.supply(range.start, &vector.bytes[at(range.start)..at(range.end)]) {
                failed = Some(error.kind().word());
                break;
            }
        }
        assert_eq!(failed, Some(vector.expect.as_str()), "{}", vector.name);
        assert!(asked <= 65_536, "{} makes the opener ask for {asked} bytes", vector.name);
    }
}

/// A layout without bytes is complete as soon as the head is, but is still judged after the signatures.
#[test]
fn signatures_are_judged_before_an_empty_layout() {
    for (envelope, kind) in [(b"no signature".to_vec(), Kind::Signature), (Vec::new(), Kind::Layout)] {
        let mut bundle = Bundle::new(&[("main", dir([]))], Packing::default());
        bundle.edits.contents = Some(Box::new(|contents| contents.layout_stored = 0));
        if !envelope.is_empty() {
            bundle.envelopes.push(Box::new(move |_| (2, envelope.clone())));
        }
        bundle.area_len = 128;
        let input = Input::pipe("pipe", Box::new(Portions::new(&bundle.encode(), &[4096])));
        assert_eq!(read(input, Check::Deep, None).err(), Some(kind));
    }
}
