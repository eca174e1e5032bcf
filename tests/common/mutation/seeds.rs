//! The bundles that mutations begin with: the vectors, and valid bundles of random trees.

use sealift_format::{Difference, Index};

use super::columns;
use super::parts::{Parts, payload, set_payload};
use super::random::Random;
use super::recipes;
use crate::bundle::{Bundle, Packing, lay_out_without};
use crate::bytes::{Section, narrow, wide};
use crate::delta::{Base, Bases, ByteDifference};
use crate::frame::frame_with_prefix;
use crate::ostree::commit;
use crate::reader::open_whole;
use crate::tree::{Node, What, block_device, char_device, dir, fifo, file, link, paint, socket, symlink};
use crate::vector::{Vector, load};

/// Returns the vectors that have a bundle's form. Signatures are kept only in vectors that test signatures.
pub(super) fn vectors() -> Vec<Parts> {
    let all = load();
    let base = |name: &String| all.iter().find(|vector| vector.name == *name).map(|vector| vector.bytes.clone());
    let bases = |vector: &Vector| vector.bases.iter().filter_map(base).collect::<Vec<_>>();
    // For differences between commits, valid vectors suffice, since their section is not edited.
    let is_of_commits = |vector: &&Vector| vector.name.starts_with("difference-ostree");
    // The second reader checks each signature with a separate process, so a few of these vectors suffice.
    let is_signed = |vector: &&Vector| vector.name.starts_with("signature-") || vector.name.starts_with("trust-");
    // The second reader makes nothing with these encoders.
    let is_beyond = |vector: &&Vector| vector.needs.split(' ').any(|class| ["lz4", "xz", "zstd"].contains(&class));
    let (signed, others): (Vec<_>, Vec<_>) =
        all.iter().filter(|vector| !is_of_commits(vector) && !is_beyond(vector)).partition(is_signed);
    let chosen = others.into_iter().chain(signed.into_iter().take(3));
    chosen.filter_map(|vector| Parts::of(&vector.bytes, &bases(vector))).collect()
}

/// Returns names in ascending order.
const NAMES: [&[u8]; 12] = [
    b"%",
    b".x",
    b"A",
    b"a",
    b"a0",
    b"b",
    b"c\xff",
    b"long-name-of-a-file",
    b"n\nl",
    b"q\"\\",
    b"z",
    "\u{e9}\u{202e}".as_bytes(),
];

/// Returns a tree of a size that a second reader can check in a millisecond.
fn tree(random: &mut Random, depth: usize, inodes: &mut u32, is_commit: bool) -> Node {
    let mut own = dir([]).mode([0o755, 0o700, 0o1777][random.below(3)]);
    let mut files = Vec::new();
    for name in NAMES {
        if !random.once_in(3) || is_commit && std::str::from_utf8(name).is_err() {
            continue;
        }
        let node = match random.below(if is_commit { 7 } else { 12 }) {
            0..=1 if depth < 4 => dir([]),
            0..=4 => file(content(random)),
            5..=6 => symlink(
                ["a", "../b", "/usr/lib/some/where/that/needs/more/than/fifty-nine/bytes/of/a/path"][random.below(3)],
            ),
            7 => char_device(1, u32::from(random.byte())),
            8 => block_device(u32::MAX, 3),
            9 => fifo(),
            10 => socket(),
            _ => match random.of(&files) {
                Some(inode) => link(*inode),
                None => fifo(),
            },
        };
        let node = with_metadata(node, random, is_commit);
        if !matches!(node.what, What::Link(_)) {
            *inodes += 1;
            if !matches!(node.what, What::Directory(_)) {
                files.push(*inodes - 1);
            }
        }
        own = own.with(name, node);
    }
    // Directories come after everything else in this block, as inodes are numbered.
    if let What::Directory(names) = &mut own.what {
        for (_, node) in names.iter_mut() {
            if let What::Directory(below) = &mut node.what
                && let What::Directory(names) = tree(random, depth + 1, inodes, is_commit).what
            {
                *below = names;
            }
        }
    }
    own
}

fn with_metadata(mut node: Node, random: &mut Random, is_commit: bool) -> Node {
    if matches!(node.what, What::Link(_)) {
        return node;
    }
    if random.once_in(3) {
        node = node.owner(u32::from(random.byte()) * 1000, 5);
    }
    if random.once_in(3) && !is_commit {
        node = node.mtime(i64::from(random.byte()) - 100, u32::from(random.byte()));
    }
    if random.once_in(5) {
        let value = vec![random.byte(); random.below(120)];
        node = node.xattr(["security.selinux", "user", "user.\u{e9}"][random.below(3)], &value);
    }
    node
}

/// Contents repeat, so that objects and chunks are shared, and the second reader need not hash each one again.
fn content(random: &mut Random) -> Vec<u8> {
    let seed = u8::try_from(random.below(3)).unwrap_or(0);
    match random.below(12) {
        0 => Vec::new(),
        1..=5 => paint(seed, 1 + random.below(40)),
        6 => paint(seed, [1024, 1025, 4095, 4096][random.below(4)]),
        7 => paint(seed, [4097, 8192, 8200, 12_289][random.below(4)]),
        8 => [paint(seed, 4096), vec![0; 16 * 4096], paint(1, 10)].concat(),
        10 => recipes::container(random),
        9 => vec![0; [16 * 4096, 17 * 4096 + 5, 4096][random.below(3)]],
        _ => b"the same\n".to_vec(),
    }
}

fn packing(random: &mut Random) -> Packing {
    Packing { piece_log2: [12, 12, 13, 20][random.below(4)], group: 1 + random.below(6), raw: random.once_in(4) }
}

fn bundle(random: &mut Random) -> Bundle {
    let mut inodes = 0;
    let mut refs = Vec::new();
    for name in ["a/b", "main", "z.1"] {
        if random.once_in(3) || refs.is_empty() {
            inodes += 1;
            refs.push((name, tree(random, 0, &mut inodes, false)));
        }
    }
    let with_recipes = random.once_in(3);
    let packing = packing(random);
    let mut bundle = if random.once_in(5) {
        let mut commits = Vec::new();
        for _ in 0..=random.below(2) {
            commits.push(commit(tree(random, 2, &mut 0, true)));
        }
        refs.truncate(random.below(2));
        Bundle::with_commits(&refs, &[("os/main", commits)], packing)
    } else {
        Bundle::new(&refs, packing)
    };
    if with_recipes && let Some((leaves, recipes)) = recipes::plan(&bundle.contents, None, random) {
        bundle = bundle.with_recipes(&leaves, recipes, packing);
    }
    if random.once_in(4) {
        bundle.layout.landmark = Some((0, narrow(bundle.layout.chunks.len())));
    }
    if random.once_in(4) {
        bundle.identity.tags = vec![b"arm64".to_vec(), b"x".to_vec()];
        bundle.annotations = vec![(b"note".to_vec(), "\u{e9}".into())];
    }
    bundle
}

/// Returns a valid bundle of a random tree.
pub(super) fn whole(random: &mut Random) -> Option<Parts> {
    Parts::of(&bundle(random).encode(), &[])
}

/// Returns a valid delta bundle between random trees that share contents.
pub(super) fn delta(random: &mut Random) -> Option<Parts> {
    let count = if random.once_in(3) { 2 } else { 1 };
    let bases: Vec<Bundle> = (0..count).map(|_| bundle(random)).collect();
    let mut wanted = bundle(random);
    // All of these trees use the same names and contents, so that some are always kept. Half of them have no commits.
    if random.once_in(2) {
        wanted = of_one_tree(random);
    }
    let contents: Vec<Vec<u8>> = bases.iter().flat_map(|base| base.contents.clone()).collect();
    let rows: Vec<Base> = bases.iter().map(Base::of).collect();
    let bytes: Vec<Vec<u8>> = bases.into_iter().map(Bundle::encode).collect();
    let (wanted_contents, is_commit) = (wanted.contents.clone(), wanted.index.ostree.is_some());
    let file = wanted.encode();
    let head = Parts::of(&file, &bytes)?;
    let wanted = open_whole(&file).ok()?;
    let opened: Vec<Index> =
        bytes.iter().map(|base| open_whole(base).ok().map(|base| base.index)).collect::<Option<_>>()?;
    let others: Vec<&Index> = opened.iter().skip(1).collect();
    let compress = |prefix: &[u8], bytes: &[u8]| Ok(frame_with_prefix(bytes, prefix));
    let difference = Difference::between(&opened[0], &others, &wanted.index, compress).ok()?;
    let index = super::parts::split(&difference.encode().ok()?)?;
    let carried = difference.objects();
    let carried: Vec<Vec<u8>> = carried
        .iter()
        .filter_map(|row| wanted_contents.iter().find(|content| crate::bytes::hash(content) == row.id).cloned())
        .collect();
    let packing = Packing { piece_log2: 12, ..packing(random) };
    let recipes = if random.once_in(2) { recipes::plan(&carried, Some(&contents), random) } else { None };
    let (leaves, recipes) = recipes.map_or((Vec::new(), None), |(leaves, recipes)| (leaves, Some(recipes)));
    let made: Vec<u32> = recipes.iter().flat_map(|own| own.made.iter().map(|made| made.0)).collect();
    let all = [&carried[..], &leaves].concat();
    let (mut layout, mut stored) = lay_out_without(&all, &made, packing, is_commit);
    let views = recipes.as_ref().map_or(Vec::new(), |own| recipes::contents_of_views(own, all.len(), &contents));
    for (chunk, bytes) in layout.chunks.iter_mut().zip(&mut stored) {
        if contents.is_empty() || random.once_in(2) {
            continue;
        }
        let mut plain = vec![0; usize::try_from(chunk.len).ok()?];
        if chunk.codec == 0 {
            plain.clone_from(bytes);
        } else {
            zstd_safe::decompress(&mut plain[..], bytes).ok()?;
        }
        let (prefix, ranges) = prefix(&[&contents[..], &views].concat(), random);
        if ranges.is_empty() {
            continue;
        }
        if random.once_in(2) {
            chunk.codec = 2;
            *bytes = frame_with_prefix(&plain, &prefix);
        } else {
            chunk.codec = 3;
            *bytes = suffix(&plain, &prefix, random).encode();
        }
        layout.prefixes.push(ranges);
    }
    if let Some(mut own) = recipes {
        own.leaves = leaves.iter().map(|leaf| (wide(leaf.len()), crate::bytes::hash(leaf))).collect();
        recipes::drop_unused_views(&mut own, &mut layout.prefixes, all.len(), contents.len());
        if !own.views.is_empty() || !own.made.is_empty() {
            layout.recipes = Some(own);
        }
    }
    let mut parts = Parts::sound(&head, layout.sections(), index, stored);
    let bases = Bases { difference_len: 0, prefix_len: 0, bases: rows };
    parts.root.retain(|section| !matches!(section.id, 5 | 9));
    if let Some(recipes) = &layout.recipes {
        let rows: Vec<_> = carried.iter().map(|content| (wide(content.len()), [0; 32])).collect();
        parts.root.push(Section::critical(9, recipes.sums(&rows).encode()));
    }
    let at = parts.root.iter().position(|section| section.id > 5).unwrap_or(parts.root.len());
    parts.root.insert(at, Section::critical(5, bases.encode()));
    let mut own = payload(&parts.root, 3).and_then(columns::maxima)?;
    own.piece_log2 = 12;
    let longest = layout.chunks.iter().map(|chunk| chunk.len).max().unwrap_or(0).next_power_of_two();
    own.window_log = own.window_log.max(u8::try_from(longest.trailing_zeros()).unwrap_or(0));
    set_payload(&mut parts.root, 3, own.encode());
    let file = parts.assemble(super::parts::Left::default(), crate::frame::frame);
    Parts::of(&file, &bytes)
}

fn of_one_tree(random: &mut Random) -> Bundle {
    let tree = tree(random, 0, &mut 1, false);
    Bundle::new(&[("main", tree)], packing(random))
}

/// Returns a prefix made of objects of the bases, and its ranges.
fn prefix(contents: &[Vec<u8>], random: &mut Random) -> (Vec<u8>, Vec<(u32, u64, u64)>) {
    let (mut prefix, mut ranges) = (Vec::new(), Vec::new());
    for (object, content) in (0..).zip(contents) {
        if content.is_empty() || !random.once_in(3) {
            continue;
        }
        let start = random.below(content.len());
        let end = start + 1 + random.below(content.len() - start);
        prefix.extend(&content[start..end]);
        ranges.push((object, wide(start), wide(end - start)));
    }
    (prefix, ranges)
}

/// Returns a byte difference with one or more runs.
fn suffix(plain: &[u8], prefix: &[u8], random: &mut Random) -> ByteDifference {
    let mut suffix = ByteDifference::default();
    let (mut at, mut place) = (0, 0_usize);
    for run in 0..plain.len().div_ceil(16) {
        let to = random.below(prefix.len() + 1);
        let room = plain.len() - at;
        let add = random.below(room.min(prefix.len() - to) + 1);
        let is_last = run + 1 == plain.len().div_ceil(16) || random.once_in(3);
        let copy = if is_last { room - add } else { random.below(room - add + 1) };
        if add + copy == 0 {
            continue;
        }
        suffix.added.extend(plain[at..at + add].iter().zip(&prefix[to..]).map(|(a, b)| a.wrapping_sub(*b)));
        suffix.copied.extend(&plain[at + add..at + add + copy]);
        let seek = i64::try_from(to).unwrap_or(0) - i64::try_from(place).unwrap_or(0);
        suffix.runs.push((narrow(add), narrow(copy), seek));
        place = to + add;
        at += add + copy;
        if at == plain.len() {
            break;
        }
    }
    suffix
}
