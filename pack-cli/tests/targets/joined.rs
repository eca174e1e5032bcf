//! Full bundles that are made of deltas and their bases, byte for byte.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::process::{Command, Stdio};

use sealift::{Head, Input, Limits};
use sealift_format::Codec;
use sealift_verify::content::ChunkDecoder;

use crate::desk::{Desk, noise, said};

/// Lines that compress, of which some differ with the seed.
fn text(seed: u32, lines: u32) -> String {
    let word = |line: u32| (u64::from(line) * 2_654_435 + u64::from(seed) * u64::from(line % 40 == 7)) % 9_973;
    (0..lines).map(|line| format!("{line}: {}\n", word(line))).collect()
}

/// Options of all bundles here beside their names.
const OS: [&str; 5] = ["--name", "os", "--allow-unsigned", "--owner", "0:0"];

impl Desk {
    /// Packs `source` with the options of `line` beside the usual ones.
    fn pack_as(&self, source: &str, to: &str, version: &str, line: &str) {
        let mut arguments = vec!["pack", source, "-o", to, "--force", "--bundle-version", version];
        arguments.extend(OS.iter().copied().chain(line.split_whitespace()));
        self.run(&arguments);
    }

    /// Joins, and says how it ended.
    fn join_as(&self, line: &str) -> (Option<i32>, String) {
        let arguments: Vec<&str> = ["join"].into_iter().chain(line.split(' ')).collect();
        let done = self.command(&arguments).output().unwrap();
        (done.status.code(), said(&done))
    }

    fn assert_joins(&self, bases: &str, delta: &str, full: &str) -> String {
        for jobs in ["1", "3"] {
            let (status, said) =
                self.join_as(&format!("{bases} {delta} -o joined --force --allow-unsigned --jobs {jobs}"));
            assert_eq!(status, Some(0), "{said}");
            assert!(self.bytes("joined") == self.bytes(full), "{jobs} threads: {said}");
        }
        self.join_as(&format!("{bases} {delta} -o joined --force --allow-unsigned")).1
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// Nothing that was begun is left.
    fn assert_no_output(&self, name: &str) {
        assert!(!self.path(name).exists(), "{name} is there");
        let left = fs::read_dir(self.path("")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let left: Vec<String> = left.filter(|left| left.contains("partial") || left.contains("assembled")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// A tree of many small files, and of large ones with and without holes.
fn tree() -> Desk {
    let desk = Desk::new();
    for number in 0..60 {
        desk.write(&format!("tree/lib/text{number}"), text(number, 400 + number));
    }
    desk.write("tree/lib/library", noise(3, 700_000));
    desk.write("tree/lib/log", text(77, 60_000));
    let mut disk = noise(4, 1_500_000);
    disk[300_000..900_000].fill(0);
    desk.write("tree/disk", disk);
    desk.write("tree/zeros", vec![0; 400_000]);
    desk.write("tree/empty", "");
    desk
}

fn change(desk: &Desk) {
    desk.write("tree/lib/text7", text(700, 410));
    desk.write("tree/lib/text8", text(9, 409)); // what another file is
    desk.write("tree/lib/new", text(800, 3_000));
    fs::remove_file(desk.path("tree/lib/text30")).unwrap();
    fs::File::options().write(true).open(desk.path("tree/lib/library")).unwrap().write_at(b"changed", 500_000).unwrap();
    fs::File::options().write(true).open(desk.path("tree/disk")).unwrap().write_at(b"x", 600_000).unwrap();
    desk.write("tree/zeros", vec![0; 500_000]);
}

#[test]
fn it_is_the_publishers_file() {
    let desk = tree();
    fs::write(desk.path("hot"), "disk\nlib/text50\nlib/new\nlib/text3\n").unwrap();
    let ways = ["", "--level 19 --chunk-size 256KiB", "--level 7 --chunk-size 64KiB --order hot", "--chunk-size 4KiB"];
    for (number, _) in ways.iter().enumerate() {
        let base = ways[number];
        desk.pack_as("tree", &format!("base{number}"), "1", base);
    }
    change(&desk);
    for (number, way) in ways.into_iter().enumerate() {
        let (base, full) = (format!("base{number}"), format!("full{number}"));
        desk.pack_as("tree", &full, "2", way);
        // The delta's own level and chunks are others.
        desk.pack_as("tree", "delta", "2", &format!("--base {base} --full {full}"));
        let said = desk.assert_joins(&base, "delta", &full);
        assert!(number == 0 || !said.contains(" 0 chunks copied"), "{way}: {said}");
        // Of a base that was packed otherwise no chunk is copied.
        let other = format!("base{}", (number + 1) % ways.len());
        desk.assert_joins(&other, "delta", &full);
        desk.pack_as("tree", "delta", "2", &format!("--base {other} --full {full}"));
        desk.assert_joins(&base, "delta", &full);
    }
}

#[test]
fn pieces_of_a_changed_file_are_copied() {
    let desk = Desk::new();
    let mut disk = noise(5, 3_000_000);
    desk.write("tree/disk", &disk);
    desk.pack_as("tree", "base", "1", "--chunk-size 256KiB");
    disk[1_000_000] ^= 1;
    desk.write("tree/disk", &disk);
    desk.pack_as("tree", "full", "2", "--chunk-size 256KiB");
    desk.pack_as("tree", "delta", "2", "--base base --full full");
    let said = desk.assert_joins("base", "delta", "full");
    assert!(said.contains("12 chunks copied, 1 compressed again"), "{said}");

    let info = String::from_utf8(desk.run(&["info", "delta", "--json"]).stdout).unwrap();
    let root = desk.run(&["root", "full"]).stdout;
    let full = format!("\"file_bytes\":{},\"root_blake3\":\"{}\"", wide(desk.bytes("full").len()), blake3::hash(&root));
    assert!(info.contains(&full) && info.contains("\"level\":3"), "{info}");
    let info = String::from_utf8(desk.run(&["info", "delta"]).stdout).unwrap();
    assert!(info.contains("Joins to") && info.contains("packed at level 3"), "{info}");
}

#[test]
fn sources_signatures_and_pipes() {
    let desk = tree();
    for name in ["one", "two"] {
        desk.run(&["key", "generate", "-o", name]);
    }
    // In an archive files stand in another order than in a tree.
    let archive = |desk: &Desk, name: &str| {
        let files = ["tree/zeros", "tree/lib", "tree/disk", "tree/etc", "tree/empty"];
        let done = Command::new("tar").arg("-cf").arg(desk.path(name)).args(files).current_dir(desk.path("")).status();
        assert!(done.unwrap().success());
    };
    archive(&desk, "one.tar");
    desk.pack_as("tar:one.tar", "base", "1", "");
    change(&desk);
    archive(&desk, "two.tar");
    desk.pack_as(
        "tar:two.tar",
        "full",
        "2",
        "--key one --key two --expires 2100-01-01 --annotate url=x --compatible a",
    );
    desk.pack_as("tar:two.tar", "delta", "2", "--base base --full full --key one");
    desk.assert_joins("base", "delta --compatible a", "full");

    // The delta is judged, and what comes out has all signatures.
    let line = |name: &str| format!("os namespaces=\"sealift\" {}", fs::read_to_string(desk.path(name)).unwrap());
    desk.write("signers", line("one.pub"));
    desk.write("others", line("two.pub"));
    let (status, said) = desk.join_as("base delta -o signed --trust others");
    assert!(status == Some(3) && said.contains("delta: "), "{said}");
    desk.assert_no_output("signed");
    let (status, said) = desk.join_as("base delta -o signed --trust signers");
    assert_eq!(status, Some(0), "{said}");
    desk.run(&["verify", "signed", "--deep", "--trust", "others", "--compatible", "a"]);
    // Through a pipe nothing else than the bundle goes.
    let done = desk.command(&["join", "base", "delta", "-o", "-", "--trust", "signers"]).output().unwrap();
    assert!(done.status.success() && done.stdout == desk.bytes("full"));
    assert!(said.contains("signed: rebuilt, identical to the publisher's os version 2"), "{said}");
    let json = desk.run(&["join", "base", "delta", "-o", "signed", "--force", "--trust", "signers", "--json"]).stdout;
    assert!(String::from_utf8_lossy(&json).contains("\"copied_chunks\":"));
    // A delta is read at many places.
    let mut child = desk.command(&["join", "base", "/dev/stdin", "-o", "x", "--trust", "signers"]);
    let mut child = child.stdin(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), &desk.bytes("delta")).unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.code() == Some(2) && crate::desk::said(&done).contains("this is a pipe"));
}

#[test]
fn several_bases_come_in_any_order() {
    let desk = tree();
    desk.pack_as("tree/lib", "lib", "1", "");
    desk.pack_as("tree", "base", "1", "");
    change(&desk);
    desk.pack_as("tree/etc", "etc", "1", "");
    desk.pack_as("tree", "full", "2", "");
    desk.pack_as("tree", "delta", "2", "--base etc --base lib --base base --full full");
    desk.assert_joins("lib base etc", "delta", "full");
    let (status, said) = desk.join_as("lib etc delta -o x --allow-unsigned");
    assert!(status == Some(4) && said.contains("was not given"), "{said}");
    desk.assert_no_output("x");
}

#[test]
fn what_cannot_be_joined_is_said() {
    let desk = tree();
    desk.pack_as("tree", "base", "1", "--chunk-size 64KiB");
    change(&desk);
    desk.pack_as("tree", "full", "2", "--chunk-size 64KiB");
    desk.pack_as("tree", "delta", "2", "--base base --full full");
    desk.pack_as("tree", "plain", "2", "--base base");
    let refused = |line: &str, wanted: i32, why: &str| {
        let (status, said) = desk.join_as(&format!("{line} -o x --allow-unsigned"));
        assert!(status == Some(wanted) && said.contains(why), "{line}: {said}");
        desk.assert_no_output("x");
    };
    refused("base plain", 2, "plain does not name the full bundle it can be joined to");
    refused("base full", 2, "full is a full bundle itself");
    refused("full delta", 4, "full: wrong base: this delta needs os version 1 (");
    refused("delta delta", 4, "is a delta, which needs os version 1 (");
    refused("tree delta", 2, "is a directory");
    refused("absent delta", 2, "cannot read absent");

    // Damage is found where it is: in a chunk that would be copied, in one that is read, and in the delta.
    let damage = |name: &str, to: &str, from_end: usize| {
        let mut bytes = desk.bytes(name);
        let at = bytes.len() - from_end;
        bytes[at] ^= 1;
        desk.write(to, bytes);
    };
    let len = desk.bytes("base").len();
    for from_end in [1, len / 4, len / 2] {
        damage("base", "damaged", from_end);
        refused("damaged delta", 1, "damaged: chunk ");
    }
    damage("delta", "damaged", 1);
    refused("base damaged", 1, "damaged: chunk ");
    let mut cut = desk.bytes("base");
    cut.truncate(cut.len() - 1);
    desk.write("damaged", cut);
    refused("damaged delta", 1, "damaged: the bundle is truncated");

    // What is there stays there.
    desk.write("x", "kept");
    let (status, _) = desk.join_as("base plain -o x --allow-unsigned");
    assert!(status == Some(2) && desk.bytes("x") == b"kept");
}

/// Writes a bundle again, with its first chunk stored as it is.
fn store_raw(desk: &Desk, name: &str) {
    let mut input = Input::open(&desk.path(name)).unwrap();
    let mut bundle = input.open_bundle(Limits::default()).unwrap();
    let mut stored = Vec::new();
    let (before, chunks_at) = (desk.bytes(name), bundle.head.chunks_at());
    input.read_chunk(&bundle.head, &bundle.layout.chunks[0], &mut stored).unwrap();
    let decoded = ChunkDecoder::default().decode(&bundle, 0, &stored, &[]).unwrap().to_vec();
    let chunk = &mut bundle.layout.chunks[0];
    (chunk.codec, chunk.stored_len, chunk.digest) = (Codec::Raw, chunk.len, *blake3::hash(&decoded).as_bytes());
    let layout = bundle.layout.encode();
    let mut frame = vec![0; zstd_safe::compress_bound(layout.len())];
    let len = zstd_safe::compress(&mut frame[..], &layout, 6).unwrap();
    frame.truncate(len);
    let mut root = bundle.head.root().clone();
    (root.contents.layout_stored, root.contents.layout_blake3) = (wide(len), *blake3::hash(&frame).as_bytes());
    root.maxima.chunks_stored += wide(decoded.len() - stored.len());
    root.maxima.chunk_stored = root.maxima.chunk_stored.max(root.maxima.chunk_len);
    let (layout_stored, index_stored) = (bundle.head.root().contents.layout_stored, root.contents.index_stored);
    let index_at = usize::try_from(chunks_at - index_stored).unwrap();
    assert_eq!(wide(index_at) - layout_stored, u64::from(bundle.head.preamble().head_len()));
    let head = Head::new(root, Vec::new(), bundle.head.preamble().area_len).unwrap();
    let (index, chunks) = before[index_at..].split_at(usize::try_from(index_stored).unwrap());
    desk.write(name, [&head.encode(), &frame[..], index, &decoded, &chunks[stored.len()..]].concat());
}

fn wide(len: usize) -> u64 {
    u64::try_from(len).unwrap()
}

#[test]
fn another_encoder_says_so() {
    let desk = tree();
    desk.pack_as("tree", "base", "1", "");
    change(&desk);
    desk.pack_as("tree", "full", "2", "");
    desk.pack_as("tree", "delta", "2", "--base base --full full");
    // To this one it is as if another had packed the full bundle, whether by chunks or by the index already.
    let delta = desk.bytes("delta");
    let head = Input::open(&desk.path("delta")).unwrap().read_head(Limits::default()).unwrap();
    for level in [1, 19] {
        let mut root = head.root().clone();
        let full = root.full.as_mut().unwrap();
        (full.level, full.encoder) = (level, full.encoder.replace("zstd 1", "zstd 9"));
        let other = Head::new(root, Vec::new(), head.preamble().area_len).unwrap().encode();
        desk.write("other", [&other, &delta[other.len()..]].concat());
        desk.run(&["verify", "other", "--allow-unsigned"]);
        let (status, said) = desk.join_as("base other -o x --allow-unsigned");
        assert!(status == Some(2) && said.contains("zstd 1.") && said.contains("zstd 9."), "{said}");
        assert!(said.contains("get the full bundle itself"), "{said}");
        desk.assert_no_output("x");
        let done = desk.command(&["join", "base", "other", "-o", "x", "--allow-unsigned", "--json"]).output().unwrap();
        assert!(crate::desk::said(&done).contains("\"kind\":\"encoder\""));
    }
}

#[test]
fn a_full_bundle_that_does_not_fit_is_refused() {
    let desk = tree();
    desk.pack_as("tree", "base", "1", "");
    desk.pack_as("tree", "other", "2", "");
    change(&desk);
    let refused = |full: &str, status: i32, why: &str| {
        let line = ["pack", "tree", "-o", "x", "--bundle-version", "2", "--base", "base", "--full", full];
        let done = desk.command(&[&line[..], &OS].concat()).output().unwrap();
        assert!(done.status.code() == Some(status) && said(&done).contains(why), "{}", said(&done));
        desk.assert_no_output("x");
    };
    refused("other", 2, "has other content than this delta");
    desk.pack_as("tree", "delta", "2", "--base base");
    refused("delta", 4, "is a delta, which needs os version 1 (");
    // The same files in other bytes, as another encoder makes them.
    desk.pack_as("tree", "full", "2", "");
    store_raw(&desk, "full");
    desk.run(&["verify", "full", "--deep", "--allow-unsigned"]);
    refused("full", 2, "does not make its bytes at any level");
    let line = ["pack", "tree", "-o", "x", "--full", "full"];
    let done = desk.command(&[&line[..], &OS].concat()).output().unwrap();
    assert!(done.status.code() == Some(2) && said(&done).contains("--base"), "{}", said(&done));
}
