//! The edits of a mutation: each changes one field or column of a decoded structure.

use super::columns;
use super::parts::{Left, Parts, payload, set_payload};
use super::random::Random;
use crate::bundle::{self, Attributes, Index, Layout};
use crate::bytes::Section;
use crate::delta::Difference;
use crate::frame::{RawFrame, frame, frame_with_prefix};
use crate::ostree::{OsTree, sha256};
use crate::recipes::{PartRange, Recipes, Segment, Sums};

/// The maximum length of a name, or of another string with a length in one byte.
const NAME_MAX: usize = 255;
/// The maximum length of a target or value.
const VALUE_MAX: usize = 5000;

/// Makes one edit. `donor` is another bundle, from which the edit may take parts.
pub(super) fn edit(parts: &mut Parts, donor: &Parts, left: &mut Left, random: &mut Random) {
    match random.below(100) {
        0..45 => {
            let edited = if payload(&parts.root, 5).is_some() {
                edit_difference_of(parts, donor, random)
            } else {
                edit_index_of(parts, donor, random)
            };
            if edited.is_none() {
                edit_payload(&mut parts.index, &donor.index, random);
            }
        }
        45..65 => {
            if edit_layout_of(parts, donor, random).is_none() {
                edit_payload(&mut parts.layout, &donor.layout, random);
            }
        }
        65..75 => edit_root(parts, donor, left, random),
        75..83 => edit_chunks(parts, donor, random),
        83..87 => edit_area(parts, donor, random),
        87..90 => edit_payload(&mut parts.index, &donor.index, random),
        90..92 => edit_payload(&mut parts.layout, &donor.layout, random),
        92..94 => edit_payload(&mut parts.root, &donor.root, random),
        94..96 => edit_sections(&mut parts.index, &donor.index, random),
        96..97 => edit_sections(&mut parts.layout, &donor.layout, random),
        97..99 => edit_sections(&mut parts.root, &donor.root, random),
        _ => {
            let at = random.below(32);
            parts.preamble[at] ^= 1 << random.below(8);
            left.root_len = true;
        }
    }
}

fn edit_index_of(parts: &mut Parts, donor: &Parts, random: &mut Random) -> Option<()> {
    let mut index = columns::index(&parts.index)?;
    let other = columns::index(&donor.index).unwrap_or_default();
    edit_index(&mut index, &other, random);
    replace(&mut parts.index, index.sections());
    Some(())
}

fn edit_difference_of(parts: &mut Parts, donor: &Parts, random: &mut Random) -> Option<()> {
    let mut difference = columns::difference(&parts.index)?;
    let other = columns::difference(&donor.index).unwrap_or_default();
    edit_difference(&mut difference, &other, random);
    replace(&mut parts.index, difference.sections());
    Some(())
}

fn edit_layout_of(parts: &mut Parts, donor: &Parts, random: &mut Random) -> Option<()> {
    let mut layout = columns::layout(&parts.layout)?;
    let other = columns::layout(&donor.layout).unwrap_or_default();
    edit_layout(&mut layout, &mut parts.chunks, &other, donor, random);
    replace(&mut parts.layout, layout.sections());
    Some(())
}

/// Gives sections their new payloads; sections without one stay as they are.
fn replace(sections: &mut Vec<Section>, new: Vec<Section>) {
    for section in new {
        match sections.iter_mut().find(|known| known.id == section.id) {
            Some(known) => known.payload = section.payload,
            None => sections.push(section),
        }
    }
}

fn edit_index(index: &mut Index, donor: &Index, random: &mut Random) {
    match random.below(20) {
        0 => random.change_rows(&mut index.refs, &donor.refs, |random, row| {
            if random.once_in(4) {
                row.0 = random.byte() % 3;
            } else {
                random.change_bytes(&mut row.1, NAME_MAX);
            }
        }),
        1..=2 => random.change_rows(&mut index.names, &donor.names, |random, name| random.change_bytes(name, NAME_MAX)),
        3 => random.change_rows(&mut index.links, &donor.links, Random::change32),
        4 => random.change_rows(&mut index.rows, &donor.rows, Random::change32),
        5 => random.change_rows(&mut index.mtimes, &donor.mtimes, Random::change_signed),
        6 => random.change_rows(&mut index.mtime_ns, &donor.mtime_ns, Random::change32),
        7 => random.change_rows(&mut index.children, &donor.children, Random::change32),
        8 => random.change_rows(&mut index.regulars, &donor.regulars, Random::change32),
        9 => random
            .change_rows(&mut index.targets, &donor.targets, |random, target| random.change_bytes(target, VALUE_MAX)),
        10 => random.change_rows(&mut index.devices, &donor.devices, |random, row| random.change32(&mut row.0)),
        11..=12 => random.change_rows(&mut index.attributes, &donor.attributes, edit_attributes),
        13 => random.change_rows(&mut index.objects, &donor.objects, edit_object),
        14 => random.change_hash(&mut index.verity),
        15 => move_entries(index, random),
        _ => match &mut index.ostree {
            Some(ostree) => edit_ostree(ostree, &donor.ostree.clone().unwrap_or_default(), random),
            None => add_entry(index, random),
        },
    }
}

/// Adds a name to the first directory: of a link, or of a file whose row and object exist, so that the result may be valid.
fn add_entry(index: &mut Index, random: &mut Random) {
    let Some(children) = index.children.first_mut() else { return };
    let at = random.below(usize::try_from(*children).unwrap_or(0).min(index.names.len()) + 1);
    *children = children.wrapping_add(1);
    let mut name = index.names.get(at.saturating_sub(1)).cloned().unwrap_or_default();
    name.push(random.byte() | 1);
    name.truncate(NAME_MAX);
    index.names.insert(at.min(index.names.len()), name);
    if random.once_in(2) {
        let link = random.below(index.rows.len() + 2);
        index.links.insert(at.min(index.links.len()), u32::try_from(link).unwrap_or(0));
        return;
    }
    index.links.insert(at.min(index.links.len()), 0);
    // The entry's inode follows those of the preceding entries, which all belong to this block.
    let inode =
        (1 + index.links[..at.min(index.links.len())].iter().filter(|link| **link == 0).count()).min(index.rows.len());
    let row = random.of(&index.rows).copied().unwrap_or(0);
    index.rows.insert(inode, row);
    index.mtimes.insert(inode.min(index.mtimes.len()), 0);
    index.mtime_ns.insert(inode.min(index.mtime_ns.len()), random.byte().into());
    let bits =
        |row: u32| usize::try_from(row).ok().and_then(|row| index.attributes.get(row)).map_or(0, |row| row.mode >> 12);
    let before = index.rows[..inode].iter().filter(|other| bits(**other) == bits(row)).count();
    match bits(row) {
        4 => index.children.insert(before.min(index.children.len()), 0),
        8 => {
            let object = u32::try_from(random.below(index.objects.len() + 1)).unwrap_or(0);
            index.regulars.insert(before.min(index.regulars.len()), object);
        }
        10 => index.targets.insert(before.min(index.targets.len()), b"t".to_vec()),
        2 | 6 => index.devices.push((1, 2)),
        _ => {}
    }
}

/// Moves entries from one directory's block to the next one's.
fn move_entries(index: &mut Index, random: &mut Random) {
    let (from, to) = (random.below(index.children.len()), random.below(index.children.len()));
    if let Some(count) = index.children.get_mut(from) {
        *count = count.wrapping_sub(1);
    }
    if let Some(count) = index.children.get_mut(to) {
        *count = count.wrapping_add(1);
    }
}

fn edit_attributes(random: &mut Random, row: &mut Attributes) {
    match random.below(8) {
        0 => row.mode ^= 1 << random.below(16),
        1 => random.change32(&mut row.uid),
        2 => random.change32(&mut row.gid),
        3 => row.xattrs.push((b"user.z".to_vec(), vec![b'v'; random.below(100)])),
        4 => drop(row.xattrs.pop()),
        _ => {
            let count = row.xattrs.len();
            match row.xattrs.get_mut(random.below(count)) {
                Some((name, _)) if random.once_in(2) => random.change_bytes(name, NAME_MAX),
                Some((_, value)) if random.once_in(20) => value.resize(65_536 + random.below(2), 0),
                Some((_, value)) => random.change_bytes(value, VALUE_MAX),
                None => row.xattrs.push((b"security.a".to_vec(), b"1".to_vec())),
            }
        }
    }
}

fn edit_object(random: &mut Random, row: &mut (u64, [u8; 32])) {
    if random.once_in(2) {
        random.change64(&mut row.0);
    } else {
        random.change_hash(&mut row.1);
    }
}

fn edit_ostree(ostree: &mut OsTree, donor: &OsTree, random: &mut Random) {
    match random.below(11) {
        0..=4 => {
            let at = random.below(ostree.objects.len());
            if let Some((kind, bytes)) = ostree.objects.get_mut(at) {
                if random.once_in(8) {
                    *kind = [2, 3, 4, 6, 5][random.below(5)];
                    return;
                }
                let old = sha256(bytes);
                for _ in 0..=random.below(2) {
                    let byte = random.below(bytes.len());
                    match random.below(4) {
                        0 if !bytes.is_empty() => drop(bytes.remove(byte)),
                        1 => bytes.insert(byte, random.byte()),
                        2 if !bytes.is_empty() => bytes[byte] = bytes[byte].wrapping_add(1),
                        _ if !bytes.is_empty() => bytes[byte] ^= 1 << random.below(8),
                        _ => {}
                    }
                }
                let new = sha256(bytes);
                rename(&mut ostree.objects, old, new);
            }
        }
        5 => {
            random
                .change_rows(&mut ostree.objects, &donor.objects, |random, row| random.change_bytes(&mut row.1, 4096));
        }
        6 => random.change_rows(&mut ostree.rows, &donor.rows, Random::change32),
        7 => random.change_rows(&mut ostree.regulars, &donor.regulars, Random::change32),
        8 => random
            .change_rows(&mut ostree.targets, &donor.targets, |random, target| random.change_bytes(target, VALUE_MAX)),
        9 => random.change_rows(&mut ostree.commits, &donor.commits, Random::change32),
        _ => random.change_rows(&mut ostree.collections, &donor.collections, |random, name| match random.below(3) {
            0 => *name = b"org.example.Os".to_vec(),
            _ => random.change_bytes(name, NAME_MAX),
        }),
    }
}

/// Makes all objects that name one object by its checksum name another instead, and likewise for the objects whose checksums change because of that.
fn rename(objects: &mut [(u8, Vec<u8>)], old: [u8; 32], new: [u8; 32]) {
    let mut pending = vec![(old, new)];
    // Only a deliberately made object could name its own checksum.
    for _ in 0..100 {
        let Some((old, new)) = pending.pop() else { return };
        if old == new {
            continue;
        }
        for (_, bytes) in objects.iter_mut() {
            let before = sha256(bytes);
            let mut changed = false;
            while let Some(at) = bytes.windows(32).position(|window| window[0] == old[0] && window == old) {
                bytes[at..at + 32].copy_from_slice(&new);
                changed = true;
            }
            if changed {
                pending.push((before, sha256(bytes)));
            }
        }
    }
}

fn edit_difference(own: &mut Difference, donor: &Difference, random: &mut Random) {
    let (name, target) = (
        |random: &mut Random, name: &mut Vec<u8>| random.change_bytes(name, NAME_MAX + 45),
        |random: &mut Random, target: &mut Vec<u8>| random.change_bytes(target, VALUE_MAX),
    );
    match random.below(22) {
        0 => random.change32(&mut own.base_objects),
        1 => random
            .change_rows(&mut own.base_refs, &donor.base_refs, |random, row| random.change_bytes(&mut row.1, NAME_MAX)),
        2 => random.change_rows(&mut own.refs, &donor.refs, |random, row| match random.below(3) {
            0 => row.0 = random.byte() % 3,
            1 => random.change_bytes(&mut row.1, NAME_MAX),
            _ => row.2 = u16::from(random.byte() % 4),
        }),
        3..=6 => random.change_rows(&mut own.ops, &donor.ops, |random, op| *op = random.byte() % 18),
        7..=8 => random.change_rows(&mut own.names, &donor.names, name),
        9 => random.change_rows(&mut own.types, &donor.types, |random, kind| *kind = random.byte() % 16),
        10 => random.change_rows(&mut own.rows, &donor.rows, Random::change32),
        11 => random.change_rows(&mut own.mtimes, &donor.mtimes, |random, time| match random.below(2) {
            0 => random.change_signed(&mut time.0),
            _ => random.change32(&mut time.1),
        }),
        12..=13 => random.change_rows(&mut own.blocks, &donor.blocks, Random::change32),
        14 => random.change_rows(&mut own.regulars, &donor.regulars, Random::change32),
        15 => random.change_rows(&mut own.targets, &donor.targets, target),
        16 => random.change_rows(&mut own.devices, &donor.devices, |random, row| random.change32(&mut row.1)),
        17 => random.change_rows(&mut own.links, &donor.links, Random::change32),
        18 => random.change_rows(&mut own.times, &[((0, 0), (1, 2)), ((1_700_000_000, 0), (1, 0))], |random, row| {
            match random.below(4) {
                0 => random.change_signed(&mut row.0.0),
                1 => random.change32(&mut row.0.1),
                2 => random.change_signed(&mut row.1.0),
                _ => random.change32(&mut row.1.1),
            }
        }),
        19 => random.change_rows(&mut own.attributes, &donor.attributes, edit_attributes),
        20 => random.change_rows(&mut own.objects, &donor.objects, edit_object),
        _ => random.change_hash(&mut own.verity),
    }
}

fn edit_layout(layout: &mut Layout, stored: &mut Vec<Vec<u8>>, donor: &Layout, other: &Parts, random: &mut Random) {
    if let Some(recipes) = &mut layout.recipes
        && random.once_in(2)
    {
        return edit_recipes(recipes, donor.recipes.as_ref(), random);
    }
    match random.below(16) {
        0..=4 => {
            let at = random.below(layout.chunks.len());
            let is_last_row = layout.chunks.is_empty() || random.once_in(5);
            if is_last_row {
                // Adds or removes a chunk with its bytes.
                if random.once_in(2) && !layout.chunks.is_empty() && at < stored.len() {
                    layout.chunks.remove(at);
                    stored.remove(at);
                } else if let (Some(row), Some(bytes)) = (donor.chunks.first(), other.chunks.first()) {
                    layout.chunks.push(row.clone());
                    stored.push(bytes.clone());
                }
                return;
            }
            let chunk = &mut layout.chunks[at];
            match random.below(5) {
                0 => chunk.codec = random.byte() % 5,
                1 => random.change32(&mut chunk.len),
                2 => random.change32(&mut chunk.objects),
                3 => {
                    let next = (at + 1) % layout.chunks.len();
                    layout.chunks.swap(at, next);
                    if at < stored.len() && next < stored.len() && random.once_in(2) {
                        stored.swap(at, next);
                    }
                }
                _ => random.change_hash(&mut chunk.digest),
            }
        }
        5..=6 => random.change_rows(&mut layout.members, &donor.members, Random::change32),
        7..=8 => random.change_rows(&mut layout.pieces, &donor.pieces, |random, row| {
            if random.once_in(2) {
                random.change32(&mut row.0);
            } else {
                random.change_hash(&mut row.1);
            }
        }),
        9..=11 => random.change_rows(&mut layout.holes, &donor.holes, |random, row| match random.below(5) {
            0 => random.change32(&mut row.0),
            1 => drop(row.1.pop()),
            2 => row.1.push((random.byte().into(), 16)),
            _ => {
                let count = row.1.len();
                match row.1.get_mut(random.below(count)) {
                    Some(extent) if random.once_in(2) => random.change64(&mut extent.0),
                    Some(extent) => random.change64(&mut extent.1),
                    None => {}
                }
            }
        }),
        12 => {
            let mut landmark = layout.landmark.unwrap_or((0, 0));
            let which = if random.once_in(2) { &mut landmark.0 } else { &mut landmark.1 };
            random.change32(which);
            layout.landmark = (!random.once_in(4)).then_some(landmark);
        }
        13 => {
            let mut files = layout.repository.take().unwrap_or_default();
            random.change_rows(&mut files, &[(1, b"s".to_vec()), (2, b"t".to_vec())], |random, file| {
                file.0 = random.byte() % 6;
            });
            layout.repository = (!random.once_in(4)).then_some(files);
        }
        _ => random.change_rows(&mut layout.prefixes, &donor.prefixes, |random, ranges| match random.below(6) {
            0 => drop(ranges.pop()),
            1 => ranges.push((u32::from(random.byte() % 8), 0, 1)),
            _ => {
                let count = ranges.len();
                if let Some(range) = ranges.get_mut(random.below(count)) {
                    match random.below(3) {
                        0 => random.change32(&mut range.0),
                        1 => random.change64(&mut range.1),
                        _ => random.change64(&mut range.2),
                    }
                }
            }
        }),
    }
}

fn edit_recipes(own: &mut Recipes, donor: Option<&Recipes>, random: &mut Random) {
    let none = Recipes::default();
    let donor = donor.unwrap_or(&none);
    match random.below(14) {
        0 => random.change_rows(&mut own.leaves, &donor.leaves, edit_object),
        1 => random.change_rows(&mut own.coders, &donor.coders, |random, coder| {
            let at = random.below(coder.1.len() + 1);
            match coder.1.get_mut(at) {
                Some(parameter) => *parameter ^= 1 << random.below(8),
                None if random.once_in(2) => coder.0 = random.byte() % 3,
                None => random.change_bytes(&mut coder.1, 8),
            }
        }),
        2 => random.change_rows(&mut own.views, &donor.views, |_, view| view.clear()),
        3 => random.change_rows(&mut own.made, &donor.made, |random, made| random.change32(&mut made.0)),
        _ => {
            let (views, at) = (own.views.len(), random.below(own.views.len() + own.made.len()));
            let other = donor.made.first().map_or(&[][..], |made| &made.1[..]);
            let list = match own.views.get_mut(at) {
                Some(view) => Some(view),
                None => own.made.get_mut(at - views).map(|made| &mut made.1),
            };
            if let Some(list) = list {
                random.change_rows(list, other, edit_segment);
            }
        }
    }
}

fn edit_segment(random: &mut Random, segment: &mut Segment) {
    let count = segment.ranges().len();
    if random.once_in(2)
        && let Some(range) = segment.ranges_mut().get_mut(random.below(count))
    {
        return edit_range(random, range);
    }
    match segment {
        // Readers need not write gigabytes of zeros.
        Segment::Zeros(len) => *len = random.number(*len) % (1 << 24),
        Segment::Copied(range) if random.once_in(2) => *segment = Segment::Zeros(range.len % (1 << 24)),
        Segment::Copied(range) => edit_range(random, range),
        Segment::Encoded { coder, len, ranges } => match random.below(4) {
            0 => *coder ^= 1 << random.below(3),
            1 => random.change32(len),
            _ => random.change_rows(ranges, &[], edit_range),
        },
        Segment::Decoded { codec, len, .. } if random.once_in(2) => {
            *codec = random.byte() % 4;
            if random.once_in(2) {
                random.change32(len);
            }
        }
        Segment::Decoded { len, .. } => random.change32(len),
        Segment::Unknown(kind) => *kind = random.byte() % 6,
    }
}

fn edit_range(random: &mut Random, range: &mut PartRange) {
    match random.below(4) {
        0 => random.change32(&mut range.of),
        1 => random.change64(&mut range.len),
        // This stays within the object more often.
        2 => range.offset = range.offset.wrapping_add(1),
        _ => random.change64(&mut range.offset),
    }
}

fn edit_root(parts: &mut Parts, donor: &Parts, left: &mut Left, random: &mut Random) {
    let edited = match random.below(if payload(&parts.root, 9).is_some() { 13 } else { 10 }) {
        10.. => {
            left.maxima = true;
            edit_part(&mut parts.root, 9, columns::sums, |own| {
                edit_sums(own, random);
                own.encode()
            })
        }
        0..=1 => edit_part(&mut parts.root, 1, columns::identity, |own| {
            match random.below(5) {
                0 => random.change_signed(&mut own.created),
                1 => random.change_signed(&mut own.expires),
                2 => random.change_bytes(&mut own.name, NAME_MAX),
                _ => random.change_rows(&mut own.tags, &[b"a".to_vec(), b"b".to_vec()], |random, tag| {
                    random.change_bytes(tag, NAME_MAX);
                }),
            }
            own.encode()
        }),
        2 => {
            left.contents = true;
            edit_part(&mut parts.root, 2, columns::contents, |own| {
                match random.below(7) {
                    0 => random.change_hash(&mut own.index_digest),
                    1 => random.change64(&mut own.index_len),
                    2 => random.change64(&mut own.index_stored),
                    3 => random.change_hash(&mut own.index_blake3),
                    4 => random.change64(&mut own.layout_len),
                    5 => random.change64(&mut own.layout_stored),
                    _ => random.change_hash(&mut own.layout_blake3),
                }
                own.encode()
            })
        }
        3..=5 => {
            left.maxima = true;
            edit_part(&mut parts.root, 3, columns::maxima, |own| {
                for _ in 0..=random.below(2) {
                    edit_maxima(own, random);
                }
                own.encode()
            })
        }
        6 => edit_part(&mut parts.root, 4, columns::annotations, |own| {
            random.change_rows(own, &[(b"k".to_vec(), b"v".to_vec())], |random, row| {
                let part = if random.once_in(2) { &mut row.0 } else { &mut row.1 };
                random.change_bytes(part, NAME_MAX);
            });
            bundle::encode_annotations(own)
        }),
        7..=8 => edit_part(&mut parts.root, 5, columns::bases, |own| {
            left.contents = true;
            left.maxima = true;
            match random.below(4) {
                0 => random.change64(&mut own.difference_len),
                1 => random.change32(&mut own.prefix_len),
                _ => {
                    let donor = payload(&donor.root, 5).and_then(columns::bases);
                    let donor = donor.map_or(Vec::new(), |bases| bases.bases);
                    random.change_rows(&mut own.bases, &donor, |random, base| match random.below(4) {
                        0 => random.change64(&mut base.version),
                        1 => random.change_bytes(&mut base.name, NAME_MAX),
                        2 => random.change_hash(&mut base.digest),
                        _ => random.change64(&mut base.len),
                    });
                }
            }
            own.encode()
        }),
        _ => edit_part(&mut parts.root, 6, columns::images, |own| {
            random.change_rows(own, &[], |random, image| match random.below(4) {
                0 => image.reference ^= u16::from(random.byte() % 4),
                1 => image.version ^= random.byte() % 4,
                2 => image.algorithm ^= random.byte() % 4,
                _ => random.change_bytes(&mut image.digest, 64),
            });
            bundle::encode_images(own)
        }),
    };
    if edited.is_none() {
        edit_sections(&mut parts.root, &donor.root, random);
    }
}

fn edit_part<T>(
    sections: &mut [Section],
    id: u16,
    decode: impl Fn(&[u8]) -> Option<T>,
    edit: impl FnOnce(&mut T) -> Vec<u8>,
) -> Option<()> {
    let mut value = decode(payload(sections, id)?)?;
    let payload = edit(&mut value);
    set_payload(sections, id, payload);
    Some(())
}

fn edit_sums(own: &mut Sums, random: &mut Random) {
    match random.below(8) {
        0 => random.change64(&mut own.leaves),
        1 => random.change64(&mut own.leaf_bytes),
        2 => random.change64(&mut own.made),
        3 => random.change64(&mut own.made_bytes),
        4 => random.change64(&mut own.decoded_bytes),
        5 => random.change64(&mut own.memory),
        _ => random.change_rows(&mut own.encoders, &[(1, 1)], |random, row| {
            if random.once_in(2) {
                row.0 ^= random.byte() % 4;
            } else {
                random.change64(&mut row.1);
            }
        }),
    }
}

fn edit_maxima(own: &mut bundle::Maxima, random: &mut Random) {
    match random.below(14) {
        0 => own.piece_log2 = [11, 12, 13, 14, 26, 27, 0, 64, 255][random.below(9)],
        1 => own.window_log = [9, 10, 11, 12, 27, 28, 31, 32, 255][random.below(9)],
        2 => own.refs ^= 1 << random.below(16),
        3 => random.change32(&mut own.depth),
        4 => random.change64(&mut own.entries),
        5 => random.change64(&mut own.inodes),
        6 => random.change64(&mut own.objects),
        7 => random.change64(&mut own.logical),
        8 => random.change64(&mut own.disk),
        9 => random.change64(&mut own.chunks),
        10 => random.change64(&mut own.chunks_stored),
        11 => random.change64(&mut own.paths),
        12 => random.change32(&mut own.chunk_len),
        _ => random.change32(&mut own.chunk_stored),
    }
}

fn edit_chunks(parts: &mut Parts, donor: &Parts, random: &mut Random) {
    let at = random.below(parts.chunks.len());
    let rows = payload(&parts.layout, 1).and_then(columns::chunks);
    let Some(mut rows) = rows.filter(|rows| rows.len() == parts.chunks.len() && !rows.is_empty()) else { return };
    let row = &mut rows[at];
    let stored = &mut parts.chunks[at];
    let len = usize::try_from(row.len).unwrap_or(0).min(1 << 17);
    let mut decoded = vec![0; len];
    let decoded = match zstd_safe::decompress(&mut decoded[..], stored) {
        Ok(len) => decoded[..len].to_vec(),
        Err(_) => stored.clone(),
    };
    match random.below(8) {
        0 => {
            *stored = decoded;
            row.codec = 0;
        }
        1..=3 => {
            *stored = odd_frame(&decoded, random);
            row.codec = 1;
        }
        4 => {
            *stored = frame_with_prefix(&decoded, b"a prefix");
            row.codec = 2;
        }
        5 => *stored = donor.chunks.first().cloned().unwrap_or_default(),
        _ => edit_bytes(stored, random),
    }
    if row.codec == 0 && random.once_in(2) {
        row.len = u32::try_from(stored.len()).unwrap_or(0);
    }
    set_payload(&mut parts.layout, 1, bundle::encode_chunks(&rows));
}

/// Returns a frame of these bytes in one of the many forms of RFC 8878, most of which core 8.1 allows.
pub(super) fn odd_frame(content: &[u8], random: &mut Random) -> Vec<u8> {
    let mut raw = RawFrame::of(content);
    match random.below(12) {
        0..=2 => return frame(content),
        3 => raw = raw.with_window(u8::try_from(10 + random.below(12)).unwrap_or(10)),
        4 => {
            // Several blocks, one of which has repeated bytes or is empty.
            let (first, second) = content.split_at(random.below(content.len() + 1));
            let block = |bytes: &[u8]| (0, u32::try_from(bytes.len()).unwrap_or(0), bytes.to_vec());
            raw.blocks = vec![block(first), block(&[]), block(second)];
        }
        5 if !content.is_empty() => {
            let (last, before) = content.split_last().expect("it is not empty");
            let run = before.iter().rev().take_while(|byte| *byte == last).count() + 1;
            let rest = &content[..content.len() - run];
            raw.blocks = vec![
                (0, u32::try_from(rest.len()).unwrap_or(0), rest.to_vec()),
                (1, u32::try_from(run).unwrap_or(0), vec![*last]),
            ];
        }
        6 => {
            raw.descriptor = 0b1110_0000;
            raw.fields = u64::try_from(content.len()).unwrap_or(0).to_le_bytes().to_vec();
        }
        7 => raw.descriptor ^= 1 << random.below(8),
        8 => random.change_bytes(&mut raw.fields, 12),
        9 => raw.blocks[0].0 = u8::try_from(random.below(4)).unwrap_or(0),
        10 => raw.blocks[0].1 ^= 1 << random.below(21),
        _ => {
            let mut bytes = frame(content);
            edit_bytes(&mut bytes, random);
            return bytes;
        }
    }
    raw.encode()
}

fn edit_area(parts: &mut Parts, donor: &Parts, random: &mut Random) {
    let Some(mut envelopes) = columns::envelopes(&parts.area) else { return edit_bytes(&mut parts.area, random) };
    let other = columns::envelopes(&donor.area).unwrap_or_default();
    match random.below(6) {
        0 => return edit_bytes(&mut parts.area, random),
        1 => {
            let len = random.below(200);
            return parts.area.resize(len, 0);
        }
        2 => envelopes.push((random.byte().into(), vec![1; random.below(8)])),
        _ => random.change_rows(&mut envelopes, &other, |random, envelope| {
            if random.once_in(3) {
                envelope.0 = u16::from(random.byte() % 5);
            } else {
                edit_bytes(&mut envelope.1, random);
            }
        }),
    }
    if !random.once_in(8) {
        envelopes.sort();
    }
    let mut area = Vec::new();
    for (kind, body) in envelopes {
        area.extend(kind.to_le_bytes());
        area.extend(u32::try_from(body.len()).unwrap_or(0).to_le_bytes());
        area.extend(body);
    }
    area.extend([0; 2]);
    area.resize(area.len().max(parts.area.len()), 0);
    parts.area = area;
}

/// Changes the section list itself.
fn edit_sections(sections: &mut Vec<Section>, donor: &[Section], random: &mut Random) {
    random.change_rows(sections, donor, |random, section| match random.below(4) {
        0 => section.id = u16::try_from(random.below(18)).unwrap_or(0),
        1 => section.id ^= 1 << random.below(16),
        2 => section.flags ^= 1,
        _ => section.flags ^= 1 << random.below(16),
    });
    if random.once_in(2) {
        sections.sort_by_key(|section| section.id);
    }
}

/// Changes the bytes of a payload, or takes the payload of another bundle.
fn edit_payload(sections: &mut [Section], donor: &[Section], random: &mut Random) {
    let at = random.below(sections.len());
    let Some(section) = sections.get_mut(at) else { return };
    match payload(donor, section.id) {
        Some(other) if random.once_in(4) => section.payload = other.to_vec(),
        // In a difference, the section of commits is only replaced by that of another bundle.
        _ if section.id == 14 => {}
        _ => edit_bytes(&mut section.payload, random),
    }
}

/// Changes bytes of unknown meaning.
pub(super) fn edit_bytes(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(bytes.len());
    match random.below(8) {
        0..=2 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
        3 if !bytes.is_empty() => bytes[at] = random.byte(),
        4 if !bytes.is_empty() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
        5 if !bytes.is_empty() => drop(bytes.remove(at)),
        6 => bytes.truncate(at),
        _ => bytes.insert(at, random.byte()),
    }
}
