//! Recipes and views in delta bundles (recipes.md).

use super::delta::on;
use super::recipes::{Draft, FREE, WITH_HEADER, WITHOUT, full, text};
use super::*;
use crate::bytes::wide;
use crate::delta::{changed, comes, within};
use crate::frame::frame_with_prefix;
use crate::recipes::{PartRange, Recipes, Segment, copied, deflated, zlib};
use crate::tree::Node;

pub(super) fn vectors() -> Vec<Vector> {
    [good(), views(), ranges(), made()].into_iter().flatten().collect()
}

/// What the file `image` of the base is made of: a head, a zlib stream, a deflate stream, a zlib stream with a wrong checksum, and a tail.
struct Image {
    head: Vec<u8>,
    /// What the zlib stream decodes to. Its end is a deflate stream.
    outer: Vec<u8>,
    /// What that decodes to.
    inner: Vec<u8>,
    /// What the deflate stream decodes to.
    other: Vec<u8>,
}

const HEAD_LEN: u64 = 64;
const TEXT_LEN: u64 = 1500;

impl Image {
    fn new() -> Self {
        let inner = text(13, 400);
        let outer = [text(11, 1500), deflated(WITHOUT, &inner)].concat();
        Self { head: text(10, 64), outer, inner, other: text(12, 900) }
    }

    fn streams(&self) -> [Vec<u8>; 3] {
        let mut broken = deflated(WITH_HEADER, &self.other);
        *broken.last_mut().expect("it has a checksum") ^= 1;
        [deflated(WITH_HEADER, &self.outer), deflated(WITHOUT, &self.other), broken]
    }

    /// Returns offset and length of a stream.
    fn place(&self, stream: usize) -> (u64, u64) {
        let lens = self.streams().map(|stream| wide(stream.len()));
        (HEAD_LEN + lens[..stream].iter().sum::<u64>(), lens[stream])
    }

    fn bytes(&self) -> Vec<u8> {
        [&self.head[..], &self.streams().concat(), b"tail"].concat()
    }
}

fn base_tree(image: Node) -> Node {
    dir([("a", file("one\n")), ("image", image), ("t", file(text(9, 2000)))])
}

/// Returns the base of most delta bundles here. Objects 0 to 2 are `one`, the image and a text.
fn base() -> Bundle {
    Bundle::new(&[("main", base_tree(file(Image::new().bytes())))], Packing::default())
}

/// Returns the new file `n`.
fn new_file() -> Vec<u8> {
    let mut bytes = Image::new().outer;
    bytes[700] ^= 1;
    bytes.extend(b"and more");
    bytes
}

/// Returns a delta of the new file and of an image that is made. Carried object 0 is the image, of seven segments, and 1 the file; 2 is a leaf, 3 to 5 are
/// the objects of the base, and 6 to 12 the views. The first, the third and the fifth decode a part of the base's image, and the others copy.
fn without_prefix() -> Bundle {
    let (image, leaf, new) = (Image::new(), text(14, 150), new_file());
    let (bytes, t) = (image.bytes(), text(9, 2000));
    let streams = [0, 1].map(|stream| image.place(stream));
    let of_base = || Draft::of(&[(3, b"one\n"), (4, &bytes), (5, &t)]);
    let mut views: Vec<Draft> = Vec::new();
    let inner_len = wide(image.outer.len()) - TEXT_LEN;
    for view in 0..7 {
        let mut draft = of_base();
        draft.parts.extend((6..).zip(views.iter().map(|view| view.bytes.clone())));
        views.push(match view {
            0 => draft.copy(4, 0, HEAD_LEN).zeros(10),
            1 => draft.decode(1, 4, streams[0].0, streams[0].1, &image.outer),
            2 => draft.decode(2, 4, streams[1].0, streams[1].1, &image.other),
            3 => draft.copy(7, 100, 200).copy(5, 0, 50).copy(6, 60, 10),
            4 => draft.decode(2, 7, TEXT_LEN, inner_len, &image.inner),
            5 => draft.copy(10, 0, 100).copy(9, 0, 20),
            _ => draft.copy(11, 10, 50),
        });
    }
    let mut draft = of_base();
    draft.parts.extend([(1, new.clone()), (2, leaf.clone())]);
    draft.parts.extend((6..).zip(views.iter().map(|view| view.bytes.clone())));
    let made = draft
        .copy(4, 0, HEAD_LEN)
        .encode(0, WITH_HEADER, &[(7, 0, 700), (2, 0, 100), (1, 0, 30)])
        .copy(8, 100, 200)
        .copy(12, 0, 50)
        .zeros(20)
        .copy(2, 100, 50)
        .copy(5, 1000, 100);
    let recipes = Recipes {
        views: views.into_iter().map(|view| view.segments).collect(),
        made: vec![(0, made.segments)],
        coders: vec![zlib(WITH_HEADER)],
        ..Recipes::default()
    };
    over_base(file(made.bytes), &new).with_recipes(&[leaf], recipes, Packing::default())
}

/// Returns a delta of an image and of the new file.
fn over_base(image: Node, new: &[u8]) -> Bundle {
    let tree = dir([("a", file("one\n")), ("image", image.clone()), ("n", file(new)), ("t", file(text(9, 2000)))]);
    let root = within("", [changed("image", 4, image), comes("n", file(new))]);
    let wanted = Bundle::new(&[("main", tree)], Packing::default());
    wanted.relative_to(&[&base()], &[(1, Some(root))], Packing::default())
}

/// Returns the same delta, whose only chunk has a prefix of the second view and of the base's image.
fn delta() -> Bundle {
    let mut delta = without_prefix();
    let image = Image::new();
    let prefix = [&image.outer[..1500], &image.head[..]].concat();
    let stored = frame_with_prefix(&[new_file(), text(14, 150)].concat(), &prefix);
    delta.store_with_prefix(0, 2, stored, &[(3 + 1, 0, TEXT_LEN), (1, 0, HEAD_LEN)]);
    delta
}

/// Returns a delta with a view and without a recipe.
fn of_views() -> Bundle {
    let image = Image::new();
    let (offset, len) = image.place(0);
    let view = Draft::default().decode(1, 1 + 1, offset, len, &image.outer);
    let recipes = Recipes { views: vec![view.segments], ..Recipes::default() };
    let tree = base_tree(file(image.bytes()));
    let tree = Bundle::new(&[("main", with_new_file(tree))], Packing::default());
    let root = within("", [comes("n", file(new_file()))]);
    let mut delta = tree.relative_to(&[&base()], &[(1, Some(root))], Packing::default());
    delta = delta.with_recipes(&[], recipes, Packing::default());
    delta.store_with_prefix(0, 2, frame_with_prefix(&new_file(), &image.outer), &[(3, 0, wide(image.outer.len()))]);
    delta
}

/// Returns the tree with the new file before its last name.
fn with_new_file(tree: Node) -> Node {
    let crate::tree::What::Directory(mut names) = tree.what else { return tree };
    names.insert(2, (b"n".to_vec(), file(new_file())));
    Node { what: crate::tree::What::Directory(names), ..dir([]) }
}

/// Returns a delta over [`full`], whose image is made: of the image, of what a block of it decodes to, and in a prefix.
fn over_made() -> Bundle {
    let base = full();
    let image = base.contents[1].clone();
    let plain = [&text(1, 600)[100..], &text(2, 300), b"one\n"].concat();
    let len = wide(deflated(WITH_HEADER, &plain).len());
    let view = Draft::default().decode(1, 2 + 1, 154, len, &plain);
    let made = Draft::of(&[(2 + 1, &image), (5, &view.bytes)]).copy(2 + 1, 20, 300).copy(5, 3, 500);
    let new = [&image[..200], b"and more"].concat();
    let recipes = Recipes { views: vec![view.segments], made: vec![(0, made.segments)], ..Recipes::default() };
    let (made, n) = (file(made.bytes), file(new.clone()));
    let tree = dir([("a", file("one\n")), ("image", made.clone()), ("n", n.clone()), ("z", file("two\n"))]);
    let root = within("", [changed("image", 4, made), comes("n", n)]);
    let wanted = Bundle::new(&[("main", tree)], Packing::default());
    let delta = wanted.relative_to(&[&base], &[(1, Some(root))], Packing::default());
    let mut delta = delta.with_recipes(&[], recipes, Packing::default());
    delta.store_with_prefix(0, 2, frame_with_prefix(&new, &image), &[(1, 0, wide(image.len()))]);
    delta
}

fn good() -> Vec<Vector> {
    let of = |name, comment, delta, base: &str| on(&[base], accept(name, comment, delta));
    vec![
        accept("good-recipes-base", "a file with a zlib stream and a deflate stream, one of them in the other", base())
            .needs("core"),
        of(
            "good-delta-recipes",
            "views of all kinds, four deep, a prefix and a recipe of them",
            delta(),
            "good-recipes-base",
        ),
        of("good-delta-recipes-views", "a view, and no recipe", of_views(), "good-recipes-base"),
        of("good-delta-recipes-made", "of an object that the base makes by a recipe", over_made(), "good-recipes"),
    ]
}

/// Returns the delta with a fault of the layout.
fn bad(name: &str, comment: &str, edit: impl FnOnce(&mut Bundle)) -> Vector {
    reject_from(delta(), name, "layout", comment, edit)
}

/// Returns the delta with a fault that the base reveals.
fn misfit(name: &str, kind: &str, comment: &str, edit: impl FnOnce(&mut Bundle)) -> Vector {
    on(&["good-recipes-base"], reject_from(delta(), name, kind, comment, edit))
}

/// Views (recipes 3.2 to 3.5).
fn views() -> Vec<Vector> {
    let decoded = |name, comment, change: fn(&mut u32, &mut PartRange)| {
        bad(name, comment, |b| {
            if let Segment::Decoded { len, range, .. } = &mut b.recipes().views[1][0] {
                change(len, range);
            }
        })
    };
    vec![
        bad("recipes-view-unused", "a view that nothing names", |b| b.recipes().views.push(vec![Segment::Zeros(1)])),
        bad("recipes-view-object", "a view names a carried object", |b| b.recipes().views[3].push(copied(1, 0, 10))),
        bad("recipes-view-leaf", "a view names a leaf", |b| b.recipes().views[3].push(copied(2, 0, 10))),
        bad("recipes-view-itself", "a view names itself", |b| b.recipes().views[0][0] = copied(6, 0, HEAD_LEN)),
        bad("recipes-view-later", "a view names the next one", |b| b.recipes().views[0][0] = copied(7, 0, HEAD_LEN)),
        bad("recipes-view-depth", "views that are five deep", |b| {
            let recipes = b.recipes();
            recipes.views.push(vec![copied(12, 0, 10)]);
            recipes.made[0].1[3] = copied(12, 0, 40);
            recipes.made[0].1.insert(4, copied(13, 0, 10));
        }),
        bad("recipes-view-len", "a view of more than 2^64-1 bytes", |b| {
            b.recipes().views[3].extend([copied(5, 0, u64::MAX), copied(4, 0, u64::MAX)]);
        }),
        bad("recipes-encoded-in-view", "a view encodes", |b| {
            let ranges = vec![PartRange { of: 3, offset: 0, len: 4 }];
            b.recipes().views[0][1] = Segment::Encoded { coder: 0, len: 10, ranges };
        }),
        reject_from(delta(), "recipes-codec", "unsupported", "a codec of recipes that nobody knows", |b| {
            if let Segment::Decoded { codec, .. } = &mut b.recipes().views[1][0] {
                *codec = FREE;
            }
        }),
        bad("recipes-decoded-none", "a range decodes to nothing", |b| {
            let range = PartRange { of: 4, offset: 0, len: 4 };
            b.recipes().views[1].push(Segment::Decoded { codec: 1, len: 0, range });
        }),
        decoded("recipes-decoded-long", "2^27+1 bytes are decoded", |len, _| *len = (1 << 27) + 1),
        decoded("recipes-decoded-input-long", "a range of 2^27+1 bytes is decoded", |_, range| {
            range.len = (1 << 27) + 1;
        }),
        bad("recipes-prefix-unknown-view", "a prefix of the eighth view, and there are seven", |b| {
            b.layout.prefixes[0][0].0 = 3 + 7;
        }),
    ]
}

/// Ranges (recipes 3.3).
fn ranges() -> Vec<Vector> {
    vec![
        bad("recipes-range-unknown-view", "a range of the eighth view, and there are seven", |b| {
            b.recipes().made[0].1[4] = copied(13, 0, 20);
        }),
        bad("recipes-range-of-view-beyond", "a range that ends a byte behind its view", |b| {
            b.recipes().made[0].1[3] = copied(12, 1, 50);
        }),
        bad("recipes-range-of-base-wraps", "a range of an object of the base that ends at byte 2^64", |b| {
            b.recipes().views[3].push(copied(5, 1, u64::MAX));
        }),
        misfit("recipes-range-of-base-beyond", "layout", "a byte more than the base's object has", |b| {
            b.recipes().made[0].1[6] = copied(5, 1901, 100);
        }),
        misfit("recipes-view-of-base-beyond", "layout", "the same in a view", |b| {
            b.recipes().views[3][1] = copied(5, 1951, 50);
        }),
        misfit("recipes-prefix-of-view-beyond", "layout", "a prefix of a byte more than the view has", |b| {
            b.layout.prefixes[0][0].2 = wide(Image::new().outer.len()) + 1;
        }),
    ]
}

/// What is made (recipes 4.1).
fn made() -> Vec<Vector> {
    let decoded = |name, comment, change: fn(&mut u8, &mut u32, &mut PartRange)| {
        misfit(name, "object", comment, |b| {
            if let Segment::Decoded { codec, len, range } = &mut b.recipes().views[2][0] {
                change(codec, len, range);
            }
        })
    };
    vec![
        reject_from(without_prefix(), "recipes-leaf-id-carried", "object", "a leaf of a delta has another id", |b| {
            b.recipes().leaves[0].1[0] ^= 1;
        }),
        misfit("recipes-id-carried", "object", "a carried object that is made has another id", |b| {
            b.difference().objects[0].1[0] ^= 1;
            b.index.objects[1].1[0] ^= 1;
        }),
        decoded("recipes-decoded-over", "a stream decodes to a byte more than is stated", |_, len, _| *len -= 1),
        decoded("recipes-decoded-short", "a stream decodes to a byte less than is stated", |_, len, _| *len += 1),
        decoded("recipes-decoded-left", "a byte follows the stream", |_, _, range| range.len += 1),
        decoded("recipes-decoded-cut", "the stream lacks its last byte", |_, _, range| range.len -= 1),
        decoded("recipes-decoded-other", "a deflate stream where a zlib stream is due", |codec, _, _| *codec = 1),
        decoded("recipes-decoded-checksum", "a zlib stream has a wrong checksum", |codec, _, range| {
            *codec = 1;
            (range.offset, range.len) = Image::new().place(2);
        }),
        on(
            &["good-recipes-base"],
            reject_from(of_views(), "recipes-decoded-prefix", "object", "the view of a prefix does not decode", |b| {
                if let Segment::Decoded { codec, .. } = &mut b.recipes().views[0][0] {
                    *codec = 2;
                }
            }),
        ),
    ]
}
