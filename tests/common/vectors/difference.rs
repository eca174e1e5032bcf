//! The difference of a delta bundle: its tables and the edits of trees (delta 5).

use super::delta::{base, base_tree, misfit, of_device, on, reject_delta};
use super::*;
use crate::bundle::{Contents, Maxima};
use crate::bytes::{Section, narrow};
use crate::delta::{Change, Difference, changed, comes, gone, linked, named, within};
use crate::tree::{block_device, fifo};

pub(super) fn vectors() -> Vec<Vector> {
    [sections(), left(), refs(), tables(), edits(), links(), misfits()].into_iter().flatten().collect()
}

fn index(name: &str, comment: &str, change: impl FnOnce(&mut Difference)) -> Vector {
    reject_delta(name, "index", comment, |b| change(b.difference()))
}

/// Returns a delta bundle with these changes of its refs. Its wanted index has the base's first tree and an empty one, so it carries no object.
fn said(changes: &[(u16, Change)]) -> Bundle {
    let refs = [("main", base_tree()), ("new", dir([]))];
    let refs: Vec<_> = refs.into_iter().zip(changes).map(|(named, _)| named).collect();
    let changes: Vec<_> = changes.iter().map(|(from, change)| (*from, Some(change.clone()))).collect();
    Bundle::new(&refs, Packing::default()).relative_to(&[&base()], &changes, Packing::default())
}

/// Returns such a bundle that is rejected.
fn saying(name: &str, comment: &str, changes: &[(u16, Change)]) -> Vector {
    vector(name, "index", comment, said(changes).encode())
}

/// Returns such a bundle with one ref and these edits.
fn editing<const N: usize>(name: &str, comment: &str, edits: [Change; N]) -> Vector {
    saying(name, comment, &[(1, within("", edits))])
}

fn sections() -> Vec<Vector> {
    let reject = |name, kind, comment, change: fn(&mut Vec<Section>)| {
        reject_delta(name, kind, comment, |b| b.delta().edit = edit(change))
    };
    vec![
        reject("difference-section-missing", "index", "the difference has no devices", |s| drop(s.remove(7))),
        reject("difference-section-flag", "index", "the edits need not be understood", |s| s[2].flags = 0),
        reject("difference-section-unknown", "index", "a section 15, which need not be understood", |s| {
            s.push(Section::ignorable(15, b"later".to_vec()));
        }),
        reject("difference-section-critical", "unsupported", "a section 15, which must be understood", |s| {
            s.push(Section::critical(15, b"later".to_vec()));
        }),
        reject("difference-edits-count", "index", "2^40 edits", |s| {
            s[2].payload[..8].copy_from_slice(&(1_u64 << 40).to_le_bytes());
        }),
        reject("difference-name-end", "index", "the zero byte behind the last name is missing", |s| {
            s[2].payload.pop();
        }),
    ]
}

/// Returns for each section a delta bundle in which a byte follows its last field.
fn left() -> Vec<Vector> {
    const NAMES: [&str; 13] = [
        "base",
        "refs",
        "edits",
        "changes",
        "directories",
        "regulars",
        "symlinks",
        "devices",
        "links",
        "times",
        "attributes",
        "objects",
        "verity",
    ];
    let of = |(id, name): (u16, &&str)| {
        let comment = format!("a byte follows the last field of section {id}");
        reject_delta(&format!("difference-left-{name}"), "index", &comment, |b| b.delta().edit = longer(id))
    };
    (1..).zip(&NAMES).map(of).collect()
}

fn refs() -> Vec<Vector> {
    let unknown = |name, comment, change: fn(&mut Difference)| {
        reject_delta(name, "unsupported", comment, |b| change(b.difference()))
    };
    let mut without_base_refs = said(&[(0, comes("", dir([])))]);
    without_base_refs.difference().base_refs.clear();
    let mut without_refs = said(&[(0, comes("", dir([])))]);
    let difference = without_refs.difference();
    *difference = Difference {
        base_objects: difference.base_objects,
        base_refs: difference.base_refs.clone(),
        verity: difference.verity,
        ..Difference::default()
    };
    vec![
        vector("difference-base-no-refs", "index", "a base without a ref", without_base_refs.encode()),
        index("difference-base-refs-order", "the base's refs have changed places", |d| {
            d.base_refs.swap(0, 1);
            d.refs[0].2 = 2;
        }),
        index("difference-base-ref-name", "the name of a ref of the base has a space", |d| {
            d.base_refs[1].1 = b"o d".to_vec();
        }),
        unknown("difference-base-ref-kind", "the base has a ref of kind 2", |d| d.base_refs[1].0 = 2),
        vector("difference-no-refs", "index", "a wanted index without a ref", without_refs.encode()),
        index("difference-refs-order", "ref alpha stands behind ref main", |d| d.refs[1].1 = b"alpha".to_vec()),
        index("difference-ref-name", "the name of a ref has a space", |d| d.refs[1].1 = b"n w".to_vec()),
        unknown("difference-ref-kind", "a ref of kind 2", |d| d.refs[1].0 = 2),
        index("difference-ref-from", "a ref is relative to the third of two", |d| d.refs[0].2 = 3),
        index("difference-ref-from-kind", "a tree is relative to a commit", |d| d.base_refs[0].0 = 1)
            .needs("core delta ostree"),
        saying(
            "difference-ref-from-twice",
            "two refs are relative to the same one",
            &[(1, within("", [gone("l")])), (1, within("", [gone("l")]))],
        ),
    ]
}

fn tables() -> Vec<Vector> {
    let time = |seconds| (seconds, 0);
    vec![
        index("difference-attributes-twice", "the attributes of the last file stand twice", |d| {
            d.attributes.push(d.attributes[3].clone());
            *d.rows.last_mut().expect("it has rows") = 6;
        }),
        index("difference-attributes-order", "the first edit has row 1 of the attributes", |d| {
            d.attributes.swap(0, 1);
            d.rows.swap(0, 1);
            (d.rows[0], d.rows[1]) = (1, 0);
        }),
        index("difference-attributes-short", "the last edit has a row of the attributes that is not there", |d| {
            *d.rows.last_mut().expect("it has rows") = narrow(d.attributes.len());
        }),
        index("difference-attributes-left", "attributes that no edit has", |d| {
            d.attributes.push(crate::bundle::Attributes { mode: 0o100_000, ..Default::default() });
        }),
        index("difference-owner-none", "a file belongs to 2^32-1", |d| d.attributes[0].uid = u32::MAX),
        index("difference-symlink-empty", "a symbolic link to nothing", |d| d.targets[0].clear()),
        index("difference-object-unknown", "a file has object 5 of a base that has five", |d| d.regulars[0] = 9),
        index("difference-objects-many", "the objects of the bases and the carried ones are more than 2^32-1", |d| {
            d.base_objects = u32::MAX;
        }),
        index(
            "difference-object-left",
            "the last file has an object of the base, and nothing the last carried one",
            |d| d.regulars[4] = 4,
        ),
        reject_delta("limit-difference-object-len", "limit", "a carried object of 2^63 bytes", |b| {
            b.difference().objects[0].0 = 1 << 63;
        }),
        index("difference-object-twice", "two carried objects are one", |d| d.objects[3] = d.objects[1]),
        index("difference-times-order", "the changes of times descend", |d| d.times.push((time(1), time(2)))),
        index("difference-times-same", "a time changes to itself", |d| d.times.push((time(i64::MAX), time(i64::MAX)))),
        index("difference-times-nanoseconds", "the nanoseconds of a new time are a second", |d| {
            d.times[0].1.1 = 1_000_000_000;
        }),
    ]
}

fn edits() -> Vec<Vector> {
    let path = |name, comment, own: &[u8]| {
        reject_delta(name, "path", comment, |b| *b.difference().names.last_mut().expect("it has names") = own.to_vec())
    };
    vec![
        index("difference-op", "an edit of op 7", |d| d.ops[12] = 7),
        index("difference-op-nothing", "an edit of op 8, in which nothing is new", |d| d.ops[12] = 8),
        index("difference-type", "a file that stays is of type 3", |d| d.types[0] = 3),
        index("difference-nanoseconds", "the nanoseconds of an edit are a second", |d| d.mtimes[0].1 = 1_000_000_000),
        editing("difference-content-none", "new content of a directory", [changed("d", 4, dir([])).block([gone("g")])]),
        editing(
            "difference-content-attributes",
            "attributes and content of a directory",
            [changed("e", 5, dir([]).mode(0o700)).block([])],
        ),
        editing("difference-content-time", "a time and content of a fifo", [changed("p", 6, fifo())]),
        editing("difference-content-all", "attributes, a time and content of a fifo", [changed("p", 7, fifo())]),
        index("difference-op-over", "an edit of op 16", |d| d.ops[12] = 16),
        reject_from(of_device(), "difference-devices-short", "index", "no row for the device of op 12", |b| {
            b.difference().devices.clear();
        }),
        reject_from(of_device(), "difference-devices-left", "index", "one row more than there are devices", |b| {
            b.difference().devices.push((1, 1));
        }),
        path("difference-name-empty", "the name of an edit below a root is empty", b""),
        path("difference-name-slash", "a slash in a name", b"y/z"),
        path("difference-name-dotdot", "an edit of ..", b".."),
        path("difference-name-long", "a name of 256 bytes", &[b'y'; 256]),
        path("difference-name-longer", "a name of 300 bytes", &[b'y'; 300]),
        index("difference-names-order", "the names of the first two edits of a directory have changed places", |d| {
            d.names.swap(1, 2);
        }),
        index("difference-names-twice", "two edits of one name", |d| d.names[2] = d.names[1].clone()),
        reject_delta("difference-root-missing", "index", "a third ref, and no edit of its root", |b| {
            b.difference().refs.push((0, b"other".to_vec(), 0));
            b.edits.maxima = edit(|maxima: &mut Maxima| maxima.refs += 1);
        }),
        index("difference-root-name", "a root has a name", |d| d.names[0] = b"x".to_vec()),
        saying(
            "difference-root-comes",
            "a root is new where its ref is relative to one of the base",
            &[(1, comes("", dir([])))],
        ),
        saying(
            "difference-root-stays",
            "a root is kept where its ref is relative to nothing",
            &[(0, within("", [gone("l")]))],
        ),
        saying("difference-root-file", "the root of a ref is a fifo", &[(0, comes("", fifo()))]),
        editing("difference-within-empty", "a directory is named of which nothing changes", [within("d", [])]),
        editing(
            "difference-below-new",
            "a name is removed from a new directory",
            [comes("k", dir([])).block([gone("x")])],
        ),
        index("difference-edits-left", "an edit behind the last tree", |d| {
            d.ops.push(2);
            d.names.push(b"z".to_vec());
        }),
        index("difference-edits-short", "the last directory has one edit more than there are", |d| {
            *d.blocks.last_mut().expect("it has blocks") += 1;
        }),
        reject_delta(
            "difference-entries",
            "header",
            "16 edits of names that stay, where the root says 15 entries",
            |b| b.edits.maxima = edit(|maxima: &mut Maxima| maxima.entries = 15),
        ),
    ]
}

fn links() -> Vec<Vector> {
    let time = || changed("a", 2, file(""));
    vec![
        saying(
            "difference-link-other-ref",
            "a link to an edit of another ref",
            &[(1, within("", [time()])), (2, within("", [linked("y", 1)]))],
        ),
        editing("difference-link-forward", "a link to a file that comes later", [linked("y", 2), comes("z", fifo())]),
        editing(
            "difference-link-directory",
            "a link to a directory that stays",
            [changed("e", 2, dir([])), linked("y", 1)],
        ),
        editing("difference-link-new-directory", "a link to a new directory", [comes("k", dir([])), linked("y", 1)]),
        editing("difference-link-gone", "a link to a name that is removed", [gone("l"), linked("y", 1)]),
        editing("difference-link-unknown", "a link to edit 99", [linked("y", 99)]),
        editing("difference-named-alone", "op 1, and no link names the edit", [named("a")]),
    ]
}

/// Returns the faults that only the base reveals.
fn misfits() -> Vec<Vector> {
    let index = |name, comment, change: fn(&mut Difference)| misfit(name, "index", comment, |b| change(b.difference()));
    let editing = |name, comment, edits: Vec<Change>| {
        let root = within("", []).with(edits);
        on(&["good-base"], saying(name, comment, &[(1, root)]))
    };
    vec![
        index("difference-base-objects", "the difference says that the bases have one object more", |d| {
            d.base_objects += 1;
        }),
        index("difference-base-refs", "the base's second ref has another name", |d| {
            d.base_refs[1].1 = b"older".to_vec();
        }),
        index("difference-name-missing", "a name is removed that the base does not have", |d| {
            d.names[12] = b"h".to_vec();
        }),
        index("difference-name-there", "a new name that the base has", |d| d.names[2] = b"b".to_vec()),
        editing("difference-within-file", "a file stays as a directory", vec![within("a", [gone("x")])]),
        editing("difference-named-directory", "a directory stays as a file", vec![named("d"), linked("y", 1)]),
        editing("difference-other-type", "a file stays as a symbolic link", vec![changed("a", 2, symlink("x"))]),
        editing(
            "difference-other-type-attributes",
            "a file gets the attributes and the content of a symbolic link",
            vec![changed("a", 5, symlink("x"))],
        ),
        editing(
            "difference-other-device",
            "a character device gets the numbers of a block device",
            vec![changed("n", 7, block_device(1, 3))],
        ),
        editing(
            "difference-changed-twice",
            "a file changes at two of its names",
            vec![changed("a", 2, file("")), changed("b", 2, file(""))],
        ),
        misfit("difference-objects-order", "index", "two carried objects have changed places", |b| {
            let difference = b.difference();
            difference.objects.swap(1, 2);
            difference.regulars.swap(2, 3);
            (difference.regulars[2], difference.regulars[3]) = (2, 1);
            b.layout.members.swap(1, 2);
        }),
        misfit("difference-verity", "index", "verity(T) of the wanted index is another", |b| {
            b.index.verity[0] ^= 1;
            b.difference().verity[0] ^= 1;
        }),
        misfit("difference-digest", "index", "index_digest is another", |b| {
            b.edits.contents = edit(|c: &mut Contents| c.index_digest[31] ^= 1);
        }),
        misfit("difference-index-len", "index", "index_len is a byte more than the wanted index has", |b| {
            b.edits.contents = edit(|c: &mut Contents| c.index_len += 1);
        }),
        misfit("difference-object-of-base", "index", "an object is carried that the base has", |b| {
            *b = carrying_too_much();
        }),
    ]
}

/// Returns a delta bundle that carries an object of its base and lists it as new.
fn carrying_too_much() -> Bundle {
    let (empty, base) = (Bundle::new(&[("main", dir([]))], Packing::default()), base());
    let wanted = Bundle::new(&[("new", dir([("y", file("one\n"))]))], Packing::default());
    let root = comes("", dir([("y", file("one\n"))]));
    let mut delta = wanted.relative_to(&[&empty], &[(0, Some(root))], Packing::default());
    let of_base = said(&[(0, comes("", dir([])))]);
    let bases = of_base.delta.expect("it is one").bases;
    delta.delta().bases = bases;
    let difference = delta.difference();
    difference.base_objects = narrow(base.index.objects.len());
    difference.base_refs = base.index.refs;
    delta
}
