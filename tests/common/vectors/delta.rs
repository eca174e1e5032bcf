//! Delta bundles: bases, prefixes and byte differences (delta 3, 4 and 6 to 8).

use super::*;

use crate::bundle::Maxima;
use crate::bytes::{Section, hash, narrow, planes32};
use crate::delta::{
    Base, Bases, ByteDifference, Change, changed, comes, gone, linked, named, relinked, replaces, within,
};
use crate::frame::{RawFrame, frame, frame_with_prefix};
use crate::tree::{Node, char_device, fifo, paint, socket};

pub(super) fn vectors() -> Vec<Vector> {
    [good(), bases(), prefixes(), frames(), suffixes()].into_iter().flatten().collect()
}

/// The time of most files in the wanted trees.
const LATER: i64 = 1_700_000_001;

/// Returns the base of the delta bundles here. Objects 0 to 4 are `one`, the tool, `two`, `six` and `three`.
pub(super) fn base() -> Bundle {
    Bundle::new(&[("main", base_tree()), ("old", dir([("x", file("three\n"))]))], Packing::default())
}

pub(super) fn base_tree() -> Node {
    let d = dir([("f", file("two\n")), ("g", file("one\n")), ("x", file("six\n"))]);
    dir([
        ("a", file("one\n")),
        ("b", link(1)),
        ("d", d),
        ("e", dir([])),
        ("l", symlink("a")),
        ("n", char_device(1, 3)),
        ("p", fifo()),
        ("t", file(tool())),
    ])
}

/// Returns a file that changes little from one version to the next.
fn tool() -> Vec<u8> {
    (0..94_u32).flat_map(|part| hash(&part.to_le_bytes())).take(3000).collect()
}

fn new_tool() -> Vec<u8> {
    let mut tool = tool();
    tool[1000] ^= 0xff;
    tool.extend(b"and more");
    tool
}

/// Returns the tree that [`delta`] makes from the first tree of [`base`].
fn wanted() -> Node {
    let later = |node: Node| node.mtime(LATER, 0);
    let a = || file("one\n").mode(0o600).mtime(5, 6);
    let d = dir([("f", later(file("four\n"))), ("x", link(6))]);
    let e = dir([("i", file("new\n"))]).mode(0o700);
    let k = dir([("j", symlink("../a")), ("s", socket())]);
    later(dir([
        ("a", a()),
        ("b", link(1)),
        ("c", link(1)),
        ("d", later(d)),
        ("e", later(e)),
        ("k", k),
        ("l", later(symlink("b"))),
        ("m", later(file("six\n"))),
        ("n", file("two\n")),
        ("p", link(1)),
        ("t", later(file(new_tool()))),
    ]))
}

/// Returns the full bundle of [`delta`].
pub(super) fn whole() -> Bundle {
    Bundle::new(&[("main", wanted()), ("new", dir([("y", file("five\n"))]))], Packing::default())
}

/// Edits 0 to 9 are of the root, `a`, `c`, `d`, `e`, `k`, `l`, `m`, `n` and `p`, 10 is of `t`; 11 to 13 are of `d/f`, `d/g` and `d/x`, 14 is
/// of `e/i`, 15 and 16 of `k/j` and `k/s`. 17 is the root of the second tree and 18 its `y`. Of the carried objects 0 is the new tool,
/// 1 `four`, 2 `new` and 3 `five`.
pub(super) fn delta() -> Bundle {
    let base = base();
    let k = dir([("j", symlink("../a")), ("s", socket())]);
    let main = within(
        "",
        [
            changed("a", 3, file("").mode(0o600).mtime(5, 6)),
            linked("c", 1),
            within("d", [changed("f", 4, file("four\n")), gone("g"), named("x")]),
            changed("e", 1, dir([]).mode(0o700)).block([comes("i", file("new\n"))]),
            comes("k", k),
            changed("l", 4, symlink("b")),
            linked("m", 13),
            replaces("n", file("two\n")),
            relinked("p", 1),
            changed("t", 4, file(new_tool())),
        ],
    );
    let fresh = dir([("y", file("five\n"))]);
    let mut delta = whole().relative_to(&[&base], &[(1, Some(main)), (0, Some(comes("", fresh)))], Packing::default());
    delta.difference().times = vec![((1_700_000_000, 0), (LATER, 0))];
    delta
}

/// Returns the same delta bundle, with a chunk based on the old tool and its successor.
fn with_prefix(codec: u8) -> Bundle {
    let mut delta = delta();
    let stored = match codec {
        2 => frame_with_prefix(&decoded(), &tool()),
        _ => suffix().encode(),
    };
    delta.store_with_prefix(0, codec, stored, &[(1, 0, 3000)]);
    delta
}

/// Returns the only chunk's decoded bytes.
fn decoded() -> Vec<u8> {
    [&new_tool()[..], b"four\nnew\nfive\n"].concat()
}

/// Returns the chunk of the old tool by two runs; the second begins one byte further on.
fn suffix() -> ByteDifference {
    let tail = &decoded()[3000..];
    let copied = [&[new_tool()[1000]], tail].concat();
    ByteDifference { runs: vec![(1000, 1, 0), (1999, 3022 - 3000, 1)], added: vec![0; 2999], copied, tail: Vec::new() }
}

/// Returns the same delta bundle, whose chunk has runs of all kinds: their places in the prefix are 0, 3000, 1001, 0 and 3000.
fn with_runs() -> Bundle {
    let (wanted, old) = (decoded(), tool());
    let tail = narrow(wanted.len()) - 3000;
    let runs = vec![(1000, 0, 0), (0, 1, 2000), (1998, 0, -1999), (0, 1, -2999), (0, tail, 3000)];
    let sums = [(0, 1000), (1001, 2999)].map(|(from, to)| -> Vec<u8> {
        let pairs = wanted[from..to].iter().zip(&old[from..to]);
        pairs.map(|(wanted, old)| wanted.wrapping_sub(*old)).collect()
    });
    let copied = [&wanted[1000..1001], &wanted[2999..]].concat();
    let own = ByteDifference { runs, added: sums.concat(), copied, tail: Vec::new() };
    let mut delta = delta();
    delta.store_with_prefix(0, 3, own.encode(), &[(1, 0, 3000)]);
    delta
}

/// Returns a delta bundle of the first tree of [`base`] with these edits.
fn of_tree(tree: Node, edits: Vec<Change>) -> Bundle {
    let wanted = Bundle::new(&[("main", tree)], Packing::default());
    wanted.relative_to(&[&base()], &[(1, Some(within("", []).with(edits)))], Packing::default())
}

fn of_ops() -> Bundle {
    let d = dir([("f", file("two\n")), ("g", file("one\n")), ("x", file("six\n"))]);
    let a = || file("one\n").mtime(7, 8);
    let e = || dir([]).mode(0o700).mtime(1, 2);
    let l = || symlink("b").owner(3, 4);
    let n = || char_device(4, 64).mtime(-1, 999_999_999);
    let t = || file("seven\n").mode(0o755).mtime(9, 0);
    let tree =
        dir([("a", a()), ("b", link(1)), ("d", d), ("e", e()), ("l", l()), ("n", n()), ("p", fifo()), ("t", t())]);
    let edits = [
        changed("a", 2, a()),
        changed("e", 3, e()).block([]),
        changed("l", 5, l()),
        changed("n", 6, n()),
        changed("t", 7, t()),
    ];
    of_tree(tree, edits.to_vec())
}

pub(super) fn of_device() -> Bundle {
    let d = dir([("f", file("two\n")), ("g", file("one\n")), ("x", file("six\n"))]);
    let n = || char_device(4, 64);
    let tree = dir([
        ("a", file("one\n")),
        ("b", link(1)),
        ("d", d),
        ("e", dir([])),
        ("l", symlink("a")),
        ("n", n()),
        ("p", fifo()),
        ("t", file(tool())),
    ]);
    of_tree(tree, vec![changed("n", 4, n())])
}

fn redundant() -> Bundle {
    let edits = [changed("a", 7, file("one\n")), changed("l", 4, symlink("a")), replaces("n", char_device(1, 3))];
    let mut delta = of_tree(base_tree(), edits.to_vec());
    delta.difference().times = vec![((1, 2), (3, 4))];
    delta
}

/// Returns a delta bundle that is rejected without its bases.
pub(super) fn reject_delta(name: &str, kind: &str, comment: &str, edit: impl FnOnce(&mut Bundle)) -> Vector {
    reject_from(delta(), name, kind, comment, edit)
}

/// Returns a delta bundle that is rejected with its bases.
pub(super) fn misfit(name: &str, kind: &str, comment: &str, edit: impl FnOnce(&mut Bundle)) -> Vector {
    on(&["good-base"], reject_delta(name, kind, comment, edit))
}

/// Returns the same vector with these bases.
pub(super) fn on(bases: &[&str], vector: Vector) -> Vector {
    Vector { check: Check::Apply, bases: bases.iter().map(|base| (*base).to_owned()).collect(), ..vector }
}

/// Returns a delta bundle that is accepted with these bases.
pub(super) fn accept_delta(name: &str, comment: &str, from: Bundle, bases: &[&str]) -> Vector {
    on(bases, accept(name, comment, from))
}

fn good() -> Vec<Vector> {
    let on_base = |name, comment, delta| accept_delta(name, comment, delta, &["good-base"]);
    vec![
        accept("good-base", "to which most delta bundles here are relative", base()).needs("core"),
        on_base("good-delta", "edits of all kinds, and a new ref", delta()),
        on_base("good-delta-suffix", "a byte difference to an object of the base", with_prefix(3)),
        on_base(
            "good-delta-suffix-runs",
            "a byte difference of runs that only copy, only add, go back in the prefix and end where it ends",
            with_runs(),
        ),
        on_base(
            "good-delta-ops",
            "files that stay and change in ops 10, 11 and 13 to 15, a device among them",
            of_ops(),
        ),
        on_base("good-delta-device", "a device that gets other numbers and nothing else", of_device()),
        on_base(
            "good-delta-redundant",
            "edits that say what the base has already, and a row of times that no inode uses",
            redundant(),
        ),
        on_base(
            "good-delta-relinked",
            "a name is linked anew to the file that it has in the base",
            of_tree(base_tree(), vec![named("a"), relinked("b", 1)]),
        ),
        on_base("good-delta-two-chunks", "two chunks with a prefix of one object", of_two_chunks()),
        accept_delta(
            "good-delta-two-bases",
            "objects of two bases, a prefix of parts of both, pieces and a hole",
            of_two_bases(),
            &["good-base", "good-two-refs"],
        ),
        on_base("good-delta-unnamed", "a base of which neither name nor version is known", calling_its_base("", 0)),
        on_base("bases-other-name", "the name and version of the base are another's", calling_its_base("zz", 99)),
        accept_delta(
            "difference-object-of-two",
            "an object that both bases have, named by both of its numbers",
            of_either(),
            &["good-base", "good-signed"],
        ),
    ]
}

/// Returns a delta bundle with this name and version of its base.
fn calling_its_base(name: &str, version: u64) -> Bundle {
    let mut delta = delta();
    let base = &mut delta.delta().bases[0];
    (base.name, base.version) = (name.into(), version);
    delta
}

/// Returns a delta with a new file whose object is in both bases. The file uses its number in the second, and a kept file that in the first.
fn of_either() -> Bundle {
    let (base, other) = (base(), small());
    let root = within("", [comes("y", file("two\n"))]);
    let wanted = Bundle::new(&[("main", base_tree().with(b"y", file("two\n")))], Packing::default());
    let mut delta = wanted.relative_to(&[&base, &other], &[(1, Some(root))], Packing::default());
    // Objects 5 and 6 are those of the second base.
    delta.difference().regulars = vec![6];
    delta
}

/// Returns the files of the bundle [`of_two_bases`], and the content of the last one.
fn two_bases_files() -> ([(&'static str, Node); 3], Vec<u8>) {
    let big = [&paint(7, 4096)[..], &vec![0; 16 * 4096], &paint(8, 100)].concat();
    let own = [&tool()[100..], b"program\n"].concat();
    ([("app", file("program\n")), ("big", file(big)), ("own", file(own.clone()))], own)
}

/// Returns the full bundle of [`of_two_bases`].
pub(super) fn whole_of_two_bases() -> Bundle {
    Bundle::new(&[("main", dir(two_bases_files().0))], Packing::default())
}

/// Returns a delta over two bases. Objects 5 to 7 are those of the second: `program`, `symbols` and `MIT`.
pub(super) fn of_two_bases() -> Bundle {
    let (base, other) = (base(), good::two_refs());
    let (new, own) = two_bases_files();
    let wanted = whole_of_two_bases();
    let root = within(
        "",
        [
            gone("a"),
            comes("app", new[0].1.clone()),
            gone("b"),
            comes("big", new[1].1.clone()),
            gone("d"),
            gone("e"),
            gone("l"),
            gone("n"),
            comes("own", new[2].1.clone()),
            gone("p"),
            gone("t"),
        ],
    );
    let mut delta = wanted.relative_to(&[&base, &other], &[(1, Some(root))], Packing::default());
    let stored = frame_with_prefix(&own, &own);
    delta.store_with_prefix(0, 2, stored, &[(1, 100, 2900), (5, 0, 8)]);
    delta
}

/// Returns a delta bundle of two chunks, each with a prefix.
fn of_two_chunks() -> Bundle {
    let (y, z) = (file("four\n"), file("five\n"));
    let wanted = Bundle::new(
        &[("main", base_tree().with(b"y", y.clone()).with(b"z", z.clone()))],
        Packing { group: 1, ..Packing::default() },
    );
    let root = within("", [comes("y", y), comes("z", z)]);
    let mut delta = wanted.relative_to(&[&base()], &[(1, Some(root))], Packing { group: 1, ..Packing::default() });
    for (chunk, content) in [b"four\n", b"five\n"].into_iter().enumerate() {
        delta.store_with_prefix(chunk, 2, frame_with_prefix(content, &tool()), &[(1, 0, 3000)]);
    }
    delta
}

fn bases() -> Vec<Vector> {
    let reject = |name, kind, comment, change: fn(&mut Bases)| {
        reject_delta(name, kind, comment, |b| b.delta().edit_bases = edit(change))
    };
    let maxima =
        |name, comment, change: fn(&mut Maxima)| misfit(name, "header", comment, |b| b.edits.maxima = edit(change));
    vec![
        reject("bases-none", "header", "no base at all", |bases| bases.bases.clear()),
        reject("bases-twice", "header", "a base is named twice", |bases| bases.bases.push(bases.bases[0].clone())),
        reject_delta("bases-itself", "header", "what the bundle installs is the second base", |b| {
            let wanted = Base::of(b);
            b.delta().bases.push(wanted);
        }),
        reject_delta("bases-left", "header", "a byte follows the last base", |b| b.edits.root = longer(5)),
        reject("bases-name", "header", "a name that no bundle has", |bases| bases.bases[0].name = b"a b".to_vec()),
        reject("bases-version-alone", "header", "a version without a name", |bases| bases.bases[0].name.clear()),
        on(&["good-tree"], reject_delta("bases-other", "base", "another bundle is there than its base", |_| {})),
        on(&["good-base"], vector("bases-missing", "base", "the first of two bases is there", of_two_bases().encode())),
        misfit("bases-index-len", "base", "the base's index_len is a byte more than the base has", |b| {
            b.delta().bases[0].len += 1;
        }),
        reject("maxima-prefix-len", "header", "a prefix of a byte where there is none", |bases| bases.prefix_len = 1),
        reject("limit-prefix-len", "limit", "a prefix of more than 1 GiB", |bases| bases.prefix_len = (1 << 30) + 1),
        reject("limit-base-index-len", "limit", "a base whose index has 1 TiB", |bases| bases.bases[0].len = 1 << 40),
        reject("limit-difference-len", "limit", "a difference of 1 TiB", |bases| bases.difference_len = 1 << 40),
        reject_delta("maxima-delta-refs", "header", "one ref more than there is", |b| {
            b.edits.maxima = edit(|maxima: &mut Maxima| maxima.refs += 1);
        }),
        maxima("maxima-delta-entries", "one entry more than there is", |maxima| maxima.entries += 1),
        maxima("maxima-delta-disk", "a block more than the carried objects take", |maxima| maxima.disk += 4096),
    ]
}

fn prefixes() -> Vec<Vector> {
    let reject = |name, comment, ranges: &[(u32, u64, u64)]| {
        reject_from(with_prefix(2), name, "layout", comment, |b| {
            b.layout.prefixes = vec![ranges.to_vec()];
            // The ranges are judged only if the root's number is within the limit.
            b.delta().edit_bases = edit(|bases: &mut Bases| bases.prefix_len = bases.prefix_len.min(1 << 30));
        })
    };
    vec![
        reject_from(
            with_prefix(2),
            "prefix-section-missing",
            "layout",
            "a chunk of codec 2, and no section of prefixes",
            |b| b.layout.prefixes.clear(),
        ),
        reject_delta("prefix-section-left", "layout", "a section of prefixes without a chunk that has one", |b| {
            b.edits.layout = edit(|s: &mut Vec<Section>| s.push(Section::critical(6, Vec::new())));
        }),
        reject_from(
            of_two_chunks(),
            "prefix-fields-left",
            "layout",
            "a byte follows the last field of section 6",
            |b| b.edits.layout = longer(6),
        ),
        reject("prefix-none", "a chunk of codec 2 whose prefix has no range", &[]),
        reject("prefix-object-twice", "the two halves of one object", &[(1, 0, 1500), (1, 1500, 1500)]),
        reject("prefix-empty", "a range of no bytes follows", &[(1, 0, 3000), (0, 0, 0)]),
        reject("prefix-unknown-object", "object 5, where the base has five", &[(5, 0, 3000)]),
        reject_from(small(), "prefix-without-bases", "layout", "a prefix in a bundle that has no bases", |b| {
            b.store_with_prefix(0, 2, frame_with_prefix(b"one\ntwo\n", b"one\n"), &[(0, 0, 4)]);
        }),
        reject_from(
            of_two_chunks(),
            "prefix-sum",
            "layout",
            "2^32+1 ranges of two chunks in sum, and one range",
            |b| {
                b.layout.prefixes[1].clear();
                b.edits.layout = edit(|s: &mut Vec<Section>| {
                    s[4].payload[..8].copy_from_slice(&planes32([u32::MAX, 2].into_iter()));
                });
            },
        ),
        reject("prefix-overflow", "a range that ends at byte 2^64", &[(1, 1, u64::MAX)]),
        Vector {
            expect: "limit".into(),
            ..reject("limit-prefix-overflow", "two ranges of 2^63 bytes", &[(0, 0, 1 << 63), (1, 0, 1 << 63)])
        },
        on(&["good-base"], reject("prefix-beyond-end", "a byte more than the object has", &[(1, 0, 3001)])),
    ]
}

fn frames() -> Vec<Vector> {
    let frame = |stored: fn() -> Vec<u8>| {
        let mut delta = delta();
        delta.store_with_prefix(0, 2, stored(), &[(1, 0, 3000)]);
        delta
    };
    let mut cut = with_prefix(2);
    cut.layout.prefixes = vec![vec![(1, 1000, 2000)]];
    let window = frame(|| {
        // A window of 4 KiB for a content of 3022 bytes.
        let mut frame = RawFrame::of(&decoded());
        (frame.descriptor, frame.fields) = (0b1000_0000, vec![2 << 3]);
        frame.fields.extend(narrow(decoded().len()).to_le_bytes());
        frame.encode()
    });
    vec![
        reject_delta("object-id-carried", "object", "the last object of the group is `Five`", |b| {
            let mut other = decoded();
            let at = other.len() - 5;
            other[at] = b'F';
            b.store(0, crate::frame::frame(&other));
        }),
        reject_from(
            of_two_bases(),
            "piece-content-carried",
            "object",
            "the first piece of an object is another",
            |b| {
                b.store(1, crate::frame::frame(&paint(9, 4096)));
            },
        ),
        reject_from(of_two_bases(), "piece-content-carried-raw", "object", "the same, as it is", |b| {
            b.layout.chunks[1].codec = 0;
            b.store(1, paint(9, 4096));
        }),
        reject_delta("object-id-carried-raw", "object", "the same, as it is", |b| {
            let mut other = decoded();
            let at = other.len() - 5;
            other[at] = b'F';
            b.layout.chunks[0].codec = 0;
            b.store(0, other);
        }),
        on(
            &["good-base"],
            vector("frame-prefix", "chunk", "the frame reaches a byte that stands before its prefix", cut.encode()),
        ),
        vector(
            "frame-prefix-window",
            "chunk",
            "the window of a frame with a prefix passes its content",
            window.encode(),
        ),
        on(
            &["good-base"],
            reject_from(with_prefix(3), "object-id-delta", "object", "the byte that is copied first is another", |b| {
                let mut other = suffix();
                other.copied[0] ^= 1;
                b.layout.prefixes.clear();
                b.store_with_prefix(0, 3, other.encode(), &[(1, 0, 3000)]);
            }),
        ),
    ]
}

fn suffixes() -> Vec<Vector> {
    let stored = |name, comment, stored: Vec<u8>| {
        reject_from(delta(), name, "chunk", comment, |b| b.store_with_prefix(0, 3, stored, &[(1, 0, 3000)]))
    };
    let reject = |name, comment, change: fn(&mut ByteDifference)| {
        let mut own = suffix();
        change(&mut own);
        stored(name, comment, own.encode())
    };
    let cut = {
        let mut bytes = suffix().encode();
        bytes.pop();
        bytes
    };
    vec![
        reject("suffix-none", "no run, and all bytes in the last frame", |s| {
            *s = ByteDifference { copied: decoded(), ..ByteDifference::default() };
        }),
        reject("suffix-runs-many", "190 runs, one for less than 16 bytes each, where 189 may be", |s| {
            s.runs[0] = (1000 - 188, 1, 0);
            s.runs.splice(0..0, [(1, 0, 0); 188]);
        }),
        reject("suffix-frame", "all bytes are added, and a frame of none follows", |s| {
            let base = [&tool()[..], &tool()].concat();
            let added = decoded().iter().zip(base).map(|(wanted, base)| wanted.wrapping_sub(base)).collect();
            *s = ByteDifference {
                runs: vec![(3000, 0, 0), (22, 0, -3000)],
                added,
                tail: frame(b""),
                ..ByteDifference::default()
            };
        }),
        reject("suffix-window", "the last frame has a window of 16 MiB, where the root says less", |s| {
            s.tail = RawFrame::of(&std::mem::take(&mut s.copied)).with_window(24).encode();
        }),
        reject("suffix-run-empty", "a run of no bytes between two others", |s| s.runs.insert(1, (0, 0, 0))),
        reject("suffix-seek-under", "the first run moves to the byte before the prefix, and adds none there", |s| {
            s.runs.insert(0, (0, 1, -1));
            s.runs[1].2 = 1;
            s.runs[2].1 -= 1;
        }),
        reject(
            "suffix-seek-over",
            "the last run moves a byte behind the end of the prefix, and adds none there",
            |s| {
                s.runs[1].1 -= 1;
                s.runs.push((0, 1, 1));
            },
        ),
        reject("suffix-beyond-prefix", "a byte is added to the one behind the prefix", |s| {
            (s.runs[1].0, s.runs[1].1) = (2000, 21);
            s.added.push(0);
            s.copied.pop();
        }),
        reject("suffix-added", "the runs add a byte less than is declared, and copy one more", |s| {
            (s.runs[1].0, s.runs[1].1) = (1998, 23);
        }),
        reject("suffix-len", "the runs copy a byte more than the chunk has", |s| s.runs[1].1 += 1),
        stored("suffix-cut", "the last frame lacks its last byte", cut),
        reject("suffix-left", "a byte follows the last frame", |s| s.tail = vec![0]),
    ]
}
