//! The sans-io walk over whole bundles: however the input is split, it ends the same.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use sealift::pack::{Output, PackOptions, PackRef, pack};
use sealift::source::{DirectoryOptions, DirectorySource, Source};
use sealift::{Identity, Limits, Progress};
use sealift_format::Step;
use sealift_verify::content::ContentError;
use sealift_verify::walk::{Depth, Walker};

/// A tree with all that chunks can hold: groups, pieces that are shared, with holes or all hole, and nothing.
fn make_tree(root: &Path) {
    let text = |name: &str, content: &[u8]| fs::write(root.join(name), content).expect("a file is written");
    text("empty", b"");
    text("small", b"small");
    text("other", &b"other ".repeat(500));
    // Pieces are of 64 KiB: the last one of each is short, and the two middle ones of the second are equal.
    text("large", &(0_u32..40_000).flat_map(u32::to_le_bytes).collect::<Vec<_>>());
    text("equal", &[&[1; 65_536][..], &[2; 65_536], &[2; 65_536], &[3; 7]].concat());
    let sparse = |name: &str, len: u64, at: &[u64]| {
        let file = fs::File::create(root.join(name)).expect("a file is made");
        file.set_len(len).expect("it becomes longer");
        at.iter().for_each(|at| file.write_all_at(b"data", *at).expect("it is written"));
    };
    sparse("hole", 65_536, &[]);
    sparse("sparse", 65_536, &[4096 * 15]);
    sparse("large-hole", 300_000, &[]);
    sparse("large-sparse", 600_000, &[200_000, 599_000]);
}

fn bundle() -> Vec<u8> {
    let desk = tempfile::tempdir().expect("a folder");
    let (tree, file) = (desk.path().join("tree"), desk.path().join("b.sealift"));
    fs::create_dir(&tree).expect("a folder is made");
    make_tree(&tree);
    let source =
        Source::Directory(DirectorySource::list(&tree, &DirectoryOptions::default(), 1).expect("it is listed"));
    let options = PackOptions {
        chunk_len: 65_536,
        jobs: 1,
        ..PackOptions::new(Identity { name: "os".into(), version: 1, created: 1, expires: None, compatible: vec![] })
    };
    let refs = [PackRef { name: "main", source: &source }];
    pack(&refs, &Output::File(file.clone()), &options, &|_| Ok(vec![]), &Progress::default()).expect("it is packed");
    fs::read(file).expect("it is there")
}

/// Supplies a file, or a pipe if `len` is unknown, in portions of these sizes over and over.
fn walk(bytes: &[u8], len: Option<usize>, depth: Depth, sizes: &[usize]) -> Result<(), ContentError> {
    let wide = |len: usize| u64::try_from(len).expect("it is short");
    let narrow = |len: u64| usize::try_from(len).expect("it is short");
    let mut walker = Walker::new(len.map(wide), Limits::default(), depth);
    let mut sizes = sizes.iter().copied().cycle();
    while let Step::Need(range) = walker.step() {
        let rest = &bytes[narrow(range.start).min(bytes.len())..];
        if rest.is_empty() {
            break;
        }
        let size = sizes.next().unwrap_or(1).min(rest.len());
        // More than was asked for is not looked at.
        if let Err(error) = walker.supply(range.start, &rest[..size]) {
            assert_eq!(walker.supply(range.start, rest), Err(error.clone()), "a failure stays");
            assert_eq!(walker.step(), Step::Done);
            assert_eq!(walker.finish().map(|_| ()), Err(error.clone()));
            return Err(error);
        }
    }
    walker.finish().map(|_| ())
}

const SPLITS: [&[usize]; 5] = [&[usize::MAX], &[1], &[7, 1, 4096], &[65_536, 3], &[1 << 20]];

#[test]
fn any_split_gives_the_same() {
    let good = bundle();
    for depth in [Depth::Stored, Depth::Objects] {
        for sizes in SPLITS {
            assert_eq!(walk(&good, Some(good.len()), depth, sizes), Ok(()), "{depth:?} {sizes:?}");
            assert_eq!(walk(&good, None, depth, sizes), Ok(()), "a pipe, {depth:?} {sizes:?}");
        }
    }
}

#[test]
fn any_split_of_a_bad_bundle_gives_the_same() {
    let good = bundle();
    let step = good.len() / 20;
    for at in (0..good.len()).step_by(step) {
        let mut flipped = good.clone();
        flipped[at] ^= 1;
        let long = [&good[..], b"x"].concat();
        for (what, bad) in [("a flip", &flipped[..]), ("a cut", &good[..at]), ("a byte more", &long)] {
            for len in [Some(bad.len()), None] {
                let errors = [Depth::Stored, Depth::Objects].map(|depth| {
                    let whole = walk(bad, len, depth, SPLITS[0]);
                    for sizes in &SPLITS[1..] {
                        assert_eq!(
                            walk(bad, len, depth, sizes),
                            whole,
                            "{what} at {at}, {len:?}, {depth:?}, {sizes:?}"
                        );
                    }
                    whole.expect_err(what)
                });
                assert_eq!(errors[0], errors[1], "{what} at {at}, {len:?}");
            }
        }
    }
}
