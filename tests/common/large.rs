//! Bundles with very many rows in a single table: reading them must take no more than their roots declare.

use std::path::{Path, PathBuf};

use sealift_format::{Zlib, verity};

use crate::bundle::{Attributes, Bundle, Packing, lay_out};
use crate::bytes::{hash, narrow, wide};
use crate::ostree::{Grown, nested};
use crate::recipes::{PartRange, Recipes, Segment, copied, deflated, zlib};
use crate::tree::{dir, file};

const PIPE: u16 = 0x11a4;
const FILE: u16 = 0x81a4;
const LINK: u16 = 0xa1ff;
const DIRECTORY: u16 = 0x41ed;

fn empty() -> Bundle {
    Bundle::new(&[("main", dir([]))], Packing::default())
}

fn of_mode(mode: u16) -> Attributes {
    Attributes { mode, ..Attributes::default() }
}

/// Returns one file that is made of this many ranges, each of a leaf of its own.
pub fn leaves(count: u32, letter: char) -> Bundle {
    let leaves: Vec<Vec<u8>> = (0..count).map(|number| format!("{letter}{number:07}").into_bytes()).collect();
    let segments = (1..).zip(&leaves).map(|(of, leaf)| copied(of, 0, wide(leaf.len()))).collect();
    of_recipe(leaves.concat(), &leaves, segments, Vec::new(), 20)
}

/// Returns one file that is made of this many ranges of one leaf, in any order.
pub fn ranges(count: u32, letter: char) -> Bundle {
    let leaf: Vec<u8> = (0..=u8::MAX).chain(letter.to_string().into_bytes()).collect();
    let place = |number: u32| usize::try_from(number.wrapping_mul(0x9e37_79b9) >> 24).expect("it is below 256");
    let bytes = (0..count).map(|number| leaf[place(number)]).collect();
    let segments = (0..count).map(|number| copied(1, wide(place(number)), 1)).collect();
    of_recipe(bytes, &[leaf], segments, Vec::new(), 20)
}

/// Returns one file of this many zeros, which a recipe of a few bytes makes, in pieces of 64 MiB.
pub fn zeros(len: usize, letter: char) -> Bundle {
    let leaf = letter.to_string().into_bytes();
    let segments = vec![copied(1, 0, 1), Segment::Zeros(wide(len))];
    of_recipe([&leaf[..], &vec![0; len]].concat(), &[leaf], segments, Vec::new(), 26)
}

/// Returns one file that zlib makes of 64 MiB, which are one range of a leaf that is a hole.
pub fn encoded(letter: char) -> Bundle {
    let (own, plain) = (letter.to_string().into_bytes(), vec![0; 1 << 26]);
    let coder = Zlib { level: 1, window_bits: 15, is_raw: true, mem_level: 9, strategy: 3 };
    let block = deflated(coder, &plain);
    let ranges = vec![PartRange { of: 2, offset: 0, len: 1 << 26 }];
    let segments = vec![copied(1, 0, 1), Segment::Encoded { coder: 0, len: narrow(block.len()), ranges }];
    of_recipe([&own[..], &block].concat(), &[own, plain], segments, vec![zlib(coder)], 26)
}

fn of_recipe(
    content: Vec<u8>,
    leaves: &[Vec<u8>],
    segments: Vec<Segment>,
    coders: Vec<(u8, Vec<u8>)>,
    piece_log2: u8,
) -> Bundle {
    let packing = Packing { piece_log2, group: 100_000, raw: false };
    let recipes = Recipes { made: vec![(0, segments)], coders, ..Recipes::default() };
    Bundle::new(&[("main", dir([("image", file(content))]))], packing).with_recipes(leaves, recipes, packing)
}

/// Returns one directory with this many names, each of its own inode with a row of `rows`.
fn wide_directory(count: usize, letter: char, rows: impl Iterator<Item = u32>) -> Bundle {
    let mut bundle = empty();
    let index = &mut bundle.index;
    index.names = (0..count).map(|number| format!("{letter}{number:07}").into_bytes()).collect();
    index.links = vec![0; count];
    index.rows = std::iter::once(0).chain(rows).collect();
    index.mtimes = vec![0; count + 1];
    index.mtime_ns = vec![0; count + 1];
    index.children = vec![narrow(count)];
    bundle
}

/// Returns a directory of named pipes.
pub fn pipes(count: usize, letter: char) -> Bundle {
    let mut bundle = wide_directory(count, letter, std::iter::repeat_n(1, count));
    bundle.index.attributes.push(of_mode(PIPE));
    bundle
}

/// Returns named pipes, each with a unique owner and unique extended attributes.
pub fn xattrs(count: usize, letter: char) -> Bundle {
    let mut bundle = wide_directory(count, letter, 1..=narrow(count));
    let value = |number: usize| format!("{letter}{number:07}").into_bytes();
    let row = |number| Attributes { xattrs: vec![(b"user.a".to_vec(), value(number))], ..of_mode(PIPE) };
    bundle.index.attributes.extend((0..count).map(row));
    bundle
}

/// Returns one file with very many extended attributes.
pub fn one_of_xattrs(count: usize, letter: char) -> Bundle {
    let mut bundle = wide_directory(1, letter, std::iter::once(1));
    let name = |number: usize| format!("user.{letter}{number:06}").into_bytes();
    let xattrs = (0..count).map(|number| (name(number), Vec::new())).collect();
    bundle.index.attributes.push(Attributes { xattrs, ..of_mode(PIPE) });
    bundle
}

/// Returns a directory of symbolic links.
pub fn symlinks(count: usize, letter: char) -> Bundle {
    let mut bundle = wide_directory(count, letter, std::iter::repeat_n(1, count));
    bundle.index.attributes.push(of_mode(LINK));
    bundle.index.targets = (0..count).map(|number| format!("{number}").into_bytes()).collect();
    bundle
}

/// Returns files of a few bytes with distinct contents.
pub fn files(count: usize, letter: char) -> Bundle {
    let mut bundle = wide_directory(count, letter, std::iter::repeat_n(1, count));
    let contents: Vec<Vec<u8>> = (0..count).map(|number| format!("{letter}{number}").into_bytes()).collect();
    let index = &mut bundle.index;
    index.attributes.push(of_mode(FILE));
    index.regulars = vec![0; count];
    index.objects = contents.iter().map(|content| (wide(content.len()), hash(content))).collect();
    let digests: Vec<u8> = contents.iter().flat_map(|content| verity::digest(content)).collect();
    index.verity = verity::digest(&digests);
    let packing = Packing { group: 50_000, raw: true, ..Packing::default() };
    (bundle.layout, bundle.stored) = lay_out(&contents, packing, false);
    bundle.contents = contents;
    bundle
}

/// Returns one file with this many names.
pub fn hard_links(count: usize, letter: char) -> Bundle {
    let mut bundle = wide_directory(count, letter, std::iter::once(1));
    let index = &mut bundle.index;
    index.attributes.push(of_mode(PIPE));
    index.links[1..].fill(2);
    index.mtimes.truncate(2);
    index.mtime_ns.truncate(2);
    bundle
}

/// Returns a directory of directories.
pub fn directories(count: usize, letter: char) -> Bundle {
    let mut bundle = wide_directory(count, letter, std::iter::repeat_n(0, count));
    bundle.index.children.extend(std::iter::repeat_n(0, count));
    bundle
}

/// Returns nested directories with names of maximum length.
pub fn deep(levels: usize, letter: char) -> Bundle {
    let mut bundle = wide_directory(levels, letter, std::iter::repeat_n(0, levels));
    bundle.index.names = vec![letter.to_string().repeat(255).into_bytes(); levels];
    bundle.index.children = [vec![1; levels], vec![0]].concat();
    bundle.index.attributes[0].mode = DIRECTORY;
    bundle
}

/// Returns a commit in which each directory contains the next one twice.
pub fn doubling(levels: u32, names: [&[u8]; 2]) -> Bundle {
    let mut bundle = nested(usize::try_from(levels).expect("32 bits"), &names);
    let entries = (2 << u64::from(levels)) - 2;
    // At each level, a path has one byte more for its name and one for a slash.
    let paths = (1..=u64::from(levels)).map(|level| (2 * level - 1) << level).sum();
    let ostree = bundle.index.ostree.as_mut().expect("it has a commit");
    ostree.grown =
        Grown { entries, paths, inodes: entries + 1, depth: levels, disk: 4096 * (entries + 1), ..Grown::default() };
    bundle
}

/// Returns a commit of nested directories with names of maximum length.
pub fn deep_commit(levels: u32, letter: char) -> Bundle {
    let name = letter.to_string().repeat(255);
    let mut bundle = nested(usize::try_from(levels).expect("32 bits"), &[name.as_bytes()]);
    let ostree = bundle.index.ostree.as_mut().expect("it has a commit");
    let (entries, inodes) = (u64::from(levels), u64::from(levels) + 1);
    let paths = (1..=entries).map(|level| 256 * level - 1).sum();
    ostree.grown = Grown { entries, paths, inodes, depth: levels, disk: 4096 * inodes, ..Grown::default() };
    bundle
}

/// Returns nested directories with names of maximum length, and many names in the last of them.
pub fn comb(levels: usize, names: usize) -> Bundle {
    let mut bundle = deep(levels, 'd');
    let index = &mut bundle.index;
    index.names.extend((0..names).map(|number| format!("{number:07}").into_bytes()));
    index.links.resize(levels + names, 0);
    index.rows.extend(std::iter::repeat_n(1, names));
    index.mtimes.resize(levels + names + 1, 0);
    index.mtime_ns.resize(levels + names + 1, 0);
    *index.children.last_mut().expect("there is one") = narrow(names);
    index.attributes.push(of_mode(PIPE));
    bundle
}

/// Returns one empty tree under very many names.
pub fn refs(count: usize) -> Bundle {
    let mut bundle = empty();
    let index = &mut bundle.index;
    index.refs = (0..count).map(|number| (0, format!("r{number:05}").into_bytes())).collect();
    index.rows.resize(count, 0);
    index.mtimes.resize(count, 0);
    index.mtime_ns.resize(count, 0);
    index.children.resize(count, 0);
    bundle
}

/// Returns named pipes with long extended attributes.
pub fn long_xattrs(count: usize, letter: char) -> Bundle {
    let mut bundle = xattrs(count, letter);
    for (number, row) in bundle.index.attributes.iter_mut().enumerate().skip(1) {
        let value = format!("{number:08}").into_bytes().repeat(60_000 / 8);
        row.xattrs.push((b"user.b".to_vec(), value));
    }
    bundle
}

/// Returns the folder of the bundles for the reader in Node.
pub fn node_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../wasm/tests/bundles")
}

/// Returns bundles of a few bytes that take more memory than the JavaScript engine has, or much of it.
pub fn for_node() -> [(&'static str, Vec<u8>); 3] {
    [
        ("doubling.sealift", doubling(23, [b"a", b"b"]).encode()),
        ("doubling-less.sealift", doubling(19, [b"a", b"b"]).encode()),
        ("xattrs.sealift", xattrs(20_000, 'a').encode()),
    ]
}
