//! Reading costs are counted, not timed: each byte of the input is read once, each chunk is decoded once, and nothing is examined
//! unnecessarily, regardless of the references in a bundle's tables.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sealift::inspect::{entries, entries_below, find};
use sealift::unpack::unpack;
use sealift::verify::{Depth, verify};
use sealift::{Durability, InstallOptions, TreeOptions};
use sealift::{Error, FormatError, Input, Limits, Progress};
use sealift_format::{FrameDecoder, Kind, Part, Row};
use sealift_tests::bundle::{Bundle, Packing};
use sealift_tests::frame::{RawFrame, frame};
use sealift_tests::large::{deep, files};
use sealift_tests::reader::{anyones, open_whole, walk};
use sealift_tests::tree::{dir, file, paint};
use sealift_tests::vector::Check;
use sealift_verify::checker::ObjectChecker;
use sealift_verify::objects::Checked;

/// Counts the bytes that each thread allocates.
struct Counting;

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

fn allocated() -> usize {
    ALLOCATED.with(Cell::get)
}

fn count_allocated(len: usize) {
    // A terminating thread is no longer counted.
    let _ = ALLOCATED.try_with(|allocated| allocated.set(allocated.get() + len));
}

#[allow(unsafe_code, reason = "an allocator has no other form; all calls go on to the system's")]
// SAFETY: each call is forwarded unchanged to the system's allocator; counting neither allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_allocated(layout.size());
        // SAFETY: the caller's guarantees.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's guarantees.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, len: usize) -> *mut u8 {
        count_allocated(len);
        // SAFETY: the caller's guarantees.
        unsafe { System.realloc(block, layout, len) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A pipe that counts the bytes read from it.
struct Counted {
    bytes: std::io::Cursor<Vec<u8>>,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = self.bytes.read(buffer)?;
        self.read.fetch_add(u64::try_from(len).expect("64 bits"), Ordering::Relaxed);
        Ok(len)
    }
}

fn counted(bytes: &[u8]) -> (Input, Arc<AtomicU64>) {
    let read = Arc::new(AtomicU64::new(0));
    let pipe = Counted { bytes: std::io::Cursor::new(bytes.to_vec()), read: Arc::clone(&read) };
    (Input::pipe("counted", Box::new(pipe)), read)
}

fn unpacked(input: Input, target: &Path) -> Result<u64, Error> {
    let tree = TreeOptions { durability: Durability::None, ..TreeOptions::default() };
    let options = InstallOptions { jobs: 2, tree, ..InstallOptions::default() };
    unpack(anyones(input)?, target, &options, &Progress::default()).map(|stats| stats.files)
}

/// Checks that reading a pipe, whose bytes arrive only once, does no more work than necessary.
fn read_once(bytes: &[u8], found: u64) {
    let len = u64::try_from(bytes.len()).expect("64 bits");
    let (input, read) = counted(bytes);
    let unopened = input.begin(Limits::default()).expect("it has a head");
    verify(unopened, Depth::Objects, 2, &Progress::default()).expect("it is sound");
    assert_eq!(read.load(Ordering::Relaxed), len);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (input, read) = counted(bytes);
    assert_eq!(unpacked(input, &folder.path().join("target")).expect("it is sound"), found);
    assert_eq!(read.load(Ordering::Relaxed), len);
}

/// Returns the number of chunks passed to a checker, and of results.
fn checked(bytes: &[u8]) -> (usize, usize) {
    let bundle = open_whole(bytes).expect("it is sound");
    let mut checker = ObjectChecker::new(&bundle);
    let mut at = usize::try_from(bundle.head.chunks_at()).expect("it lies in memory");
    let (mut chunks, mut found) = (0, 0);
    for (number, chunk) in Row::all(&bundle.layout.chunks) {
        let end = at + usize::try_from(chunk.stored_len).expect("it lies in memory");
        let take = |_: Checked| found += 1;
        checker.check(&bundle, number, &bytes[at..end], &[], take).expect("it is sound");
        (at, chunks) = (end, chunks + 1);
    }
    (chunks, found)
}

#[test]
fn one_chunk_of_many_objects_is_read_and_decoded_once() {
    let bytes = files(4000, 'a').encode();
    assert_eq!(checked(&bytes), (1, 4000));
    read_once(&bytes, 4000);
}

#[test]
fn one_chunk_that_many_pieces_use_is_read_and_decoded_once() {
    // A thousand equal pieces in each of twenty files with different ends.
    let named: Vec<String> = (0..20_u8).map(|number| format!("f{number:02}")).collect();
    let content = |number: u8| [vec![7; 1000 << 12], vec![number; 10]].concat();
    let tree =
        (0..20).zip(&named).fold(dir([]), |tree, (number, name)| tree.with(name.as_bytes(), file(content(number))));
    let bytes = Bundle::new(&[("main", tree)], Packing::default()).encode();
    // One chunk for the equal pieces, and one for each end.
    assert_eq!(checked(&bytes), (21, 20 * 1001));
    read_once(&bytes, 20);
}

#[test]
fn a_path_is_listed_without_a_look_at_the_others() {
    let shallow = files(3000, 'a').encode();
    let bundle = open_whole(&shallow).expect("it is sound");
    let found = find(&bundle, b"a0000005").expect("it is there");
    assert_eq!(entries_below(&bundle, found).count(), 1);
    let chain = open_whole(&deep(100, 'd').encode()).expect("it is sound");
    let top = |levels: usize| vec!["d".repeat(255); levels].join("/").into_bytes();
    for levels in [0, 1, 50, 100] {
        let found = find(&chain, &top(levels)).expect("it is there");
        assert_eq!(entries_below(&chain, found).count(), 101 - levels, "{levels}");
    }
    // The result must equal a filter over all names.
    let leaf = || dir([("x", file("x")), ("y", file("y"))]);
    let tree = dir([("a", dir([("a", leaf()), ("b", leaf())])), ("ab", leaf()), ("b", file("b"))]);
    let bundle = open_whole(&Bundle::new(&[("main", tree)], Packing::default()).encode()).expect("it is sound");
    for path in ["", "a", "a/a", "a/b", "ab", "b", "a/b/y"] {
        let is_below = |found: &[u8]| {
            let rest = found.strip_prefix(path.as_bytes());
            path.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        let all: Vec<Vec<u8>> = entries(&bundle).map(|entry| entry.path()).filter(|found| is_below(found)).collect();
        let top = find(&bundle, path.as_bytes()).expect("it is there");
        let below: Vec<Vec<u8>> = entries_below(&bundle, top).map(|entry| entry.path()).collect();
        assert_eq!(below, all, "{path}");
    }
}

/// Counts all allocations when unpacking one path: building a path for each name, or scanning a list for each, would quadruple the memory
/// when the number of names doubles.
#[test]
fn one_path_of_many_is_unpacked_in_one_pass() {
    let taken = |bundle: Bundle, path: &[u8], is_there: bool| {
        let (bytes, folder) = (bundle.encode(), tempfile::tempdir().expect("a temporary folder"));
        let tree = TreeOptions { prefix: path.to_vec(), durability: Durability::None, ..TreeOptions::default() };
        let options = InstallOptions { jobs: 1, tree, ..InstallOptions::default() };
        let trusted = anyones(counted(&bytes).0).expect("it has a head");
        let before = allocated();
        let done = unpack(trusted, &folder.path().join("target"), &options, &Progress::default());
        assert_eq!(done.is_ok(), is_there, "{done:?}");
        allocated() - before
    };
    let path = |levels: usize| vec!["d".repeat(255); levels].join("/").into_bytes();
    type Case<'a> = (&'a str, usize, &'a dyn Fn(usize) -> usize);
    let cases: [Case<'_>; 5] = [
        ("none of many names", 4000, &|count| taken(files(count, 'a'), b"none", false)),
        ("one of many names", 4000, &|count| taken(files(count, 'a'), b"a0000005", true)),
        ("none of deep names", 100, &|levels| taken(deep(levels, 'd'), b"none", false)),
        ("none below deep names", 100, &|levels| taken(deep(levels, 'd'), &[&path(3)[..], b"/none"].concat(), false)),
        ("the first of deep names", 100, &|levels| taken(deep(levels, 'd'), &path(1), true)),
    ];
    for (what, count, taken) in cases {
        let [one, two, four] = [1, 2, 4].map(|times| taken(count * times));
        // Fixed costs cancel in the differences: their ratio is 2 for linear growth, and 4 for quadratic growth.
        let (first, second) = (two - one, four - two);
        assert!(second < 3 * first, "{what}: {one}, {two}, {four}");
    }
}

/// Hostile names and ids cannot cause collisions in maps: the parsing readers use sorted tables only, and the program's maps use the standard
/// library's randomly keyed hash. Collisions under an unknown hash key cannot be constructed, so the test checks which hash
/// is used.
#[test]
fn no_map_can_be_flooded() {
    fn sources(folder: &Path, all: &mut Vec<(String, String)>) {
        for file in std::fs::read_dir(folder).expect("it is a folder").map(|file| file.expect("a file").path()) {
            if file.is_dir() {
                sources(&file, all);
            } else if file.extension().is_some_and(|extension| extension == "rs") {
                all.push((file.display().to_string(), std::fs::read_to_string(&file).expect("it is text")));
            }
        }
    }
    const OTHER_HASHES: [&str; 13] = [
        "with_hasher",
        "with_capacity_and_hasher",
        "BuildHasherDefault",
        "DefaultHasher",
        "ahash",
        "fxhash",
        "FxHash",
        "rustc_hash",
        "foldhash",
        "hashbrown::HashMap",
        "hashbrown::HashSet",
        "DefaultHashBuilder",
        "indexmap",
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (part, forbidden) in [
        ("format/src", &["HashMap", "HashSet"][..]),
        ("verify/src", &["HashMap", "HashSet"]),
        ("wasm/src", &["HashMap", "HashSet"]),
        ("wasm/inside/src", &["HashMap", "HashSet"]),
        ("container/src", &OTHER_HASHES),
        ("store/src", &OTHER_HASHES),
        ("pack-cli/src", &OTHER_HASHES),
    ] {
        let mut all = Vec::new();
        sources(&root.join(part), &mut all);
        assert!(all.len() > 5, "{part}");
        for (name, text) in all {
            assert!(!forbidden.iter().any(|word| text.contains(word)), "{name}");
            // A table gets its hashes from its caller.
            assert!(!text.contains("hashbrown") || text.contains("RandomState"), "{name}");
        }
    }
}

/// Hostile input 7: bombs, large windows, wrong sizes, and many or empty frames.
#[test]
fn a_frame_is_refused_for_what_it_declares_before_it_is_decoded() {
    let zeros = vec![0; 64 << 20];
    let (bomb, small) = (frame(&zeros), frame(b"small"));
    let empty = RawFrame::of(b"").encode();
    let window = |log: u8| RawFrame::of(b"small").with_window(log).encode();
    assert!(bomb.len() < 8192);
    let cases: [(&str, Vec<u8>, u64, u8); 8] = [
        ("a bomb that says so", bomb.clone(), 5, 27),
        ("a bomb for which its window is too large", bomb, 64 << 20, 20),
        ("two frames", [&small[..], &small].concat(), 10, 27),
        ("two frames that are one by their size", [&small[..], &small].concat(), 5, 27),
        ("an empty frame behind", [&small[..], &empty].concat(), 5, 27),
        ("an empty frame before", [&empty[..], &small].concat(), 5, 27),
        ("many empty frames", empty.repeat(10_000), 5, 27),
        ("a window of 2 GiB", window(31), 5, 27),
    ];
    for (what, stored, len, window_log) in cases {
        let mut decoded = Vec::new();
        let error = FrameDecoder::new().decode(Part::Chunk(0), &stored, len, window_log, &mut decoded);
        assert_eq!(error.map_err(|error| error.kind()), Err(Kind::Chunk), "{what}");
        assert_eq!(decoded.capacity(), 0, "{what}: nothing is decoded");
    }
    let mut decoded = Vec::new();
    FrameDecoder::new().decode(Part::Chunk(0), &window(10), 5, 27, &mut decoded).expect("it is as it says");
    assert_eq!(decoded, b"small");
}

/// Hostile input 27: a file of 8 EiB that is one hole.
#[test]
fn a_file_of_eight_exbibytes_is_refused_by_its_declaration() {
    let tree = dir([("hole", file(vec![0; 17 << 12])), ("other", file("other"))]);
    let mut bundle = Bundle::new(&[("main", tree)], Packing { piece_log2: 26, ..Packing::default() });
    // The same file, one bit larger, with a hole of the same length.
    let size = (1 << 62) + (17 << 12);
    bundle.index.objects[0].0 = size;
    bundle.layout.holes[0].1 = vec![(0, size >> 12)];
    let bytes = bundle.encode();
    let (input, read) = counted(&bytes);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let error = unpacked(input, &folder.path().join("target")).expect_err("it is refused");
    assert_eq!(error.kind(), Some(Kind::Limit), "{error}");
    assert!(matches!(&error, Error::Format(FormatError::Limit { what: "size", .. })), "{error}");
    assert!(read.load(Ordering::Relaxed) < 1024, "nothing behind the head was read");
    assert_eq!(std::fs::read_dir(folder.path()).expect("it is there").count(), 0);
}

/// Hostile input 28: objects that share a chunk cannot affect each other's bytes.
#[test]
fn a_shared_chunk_cannot_be_poisoned() {
    let (one, other) = (paint(1, 300), paint(2, 300));
    let tree = || dir([("a", file(one.clone())), ("b", file(other.clone()))]);
    let bundle = || Bundle::new(&[("main", tree())], Packing::default());
    assert!(walk(&bundle().encode(), &[usize::MAX], Check::Deep).is_ok());
    let mut changed = other.clone();
    changed[0] ^= 1;
    // Signed and with a correct digest: the chunk matches layout and root, but not the index.
    for joined in [[one.clone(), changed], [other.clone(), one.clone()]] {
        let mut poisoned = bundle();
        poisoned.store(0, frame(&joined.concat()));
        let bytes = poisoned.encode();
        assert_eq!(walk(&bytes, &[usize::MAX], Check::Deep).map(|_| ()), Err(Kind::Object));
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (input, _) = counted(&bytes);
        let error = unpacked(input, &folder.path().join("target")).expect_err("it is refused");
        assert_eq!(error.kind(), Some(Kind::Object), "{error}");
        assert!(!folder.path().join("target").exists());
    }
    // A dictionary would be shared by all chunks, so no frame may name one.
    let named =
        RawFrame { descriptor: 0b1010_0001, fields: [&[7][..], &600_u32.to_le_bytes()].concat(), ..RawFrame::of(&[]) };
    let mut poisoned = bundle();
    poisoned.store(0, RawFrame { blocks: vec![(0, 600, [one, other].concat())], ..named }.encode());
    assert_eq!(walk(&poisoned.encode(), &[usize::MAX], Check::Deep).map(|_| ()), Err(Kind::Chunk));
}
