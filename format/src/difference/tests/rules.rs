//! Breaks each rule alone.

use super::*;

/// A difference with an example of most edits. Its edits: root, `a` link, `d` within, `n` new directory, `s` changed; then `d/f` named, `d/g`
/// removed; then `n/x` new.
fn sample() -> (Index, Difference) {
    let mut tree = Tree::default();
    let directory = tree.add_directory(0, b"d", META);
    tree.add_file(directory, b"f", META, What::Regular(1));
    tree.add_file(directory, b"g", META, What::Regular(2));
    tree.add_file(0, b"s", META, What::Regular(3));
    let mut other = tree.clone();
    other.files.iter_mut().for_each(|file| file.0.mtime = (8, 8));
    other.directories.iter_mut().for_each(|directory| directory.0.mtime = (8, 8));
    let base = index(&[("a", &tree), ("b", &other)]);
    tree.directories[0].1.insert(b"a".to_vec(), Child::File(0));
    tree.directories[directory].1.remove(&b"g"[..]);
    tree.files[2] = (Meta { permissions: 1, mtime: (5, 5), ..META }, What::Regular(8));
    let new = tree.add_directory(0, b"n", META);
    tree.add_file(new, b"x", META, What::Regular(9));
    let mut later = other.clone();
    later.files.iter_mut().for_each(|file| file.0.mtime = (9, 9));
    later.directories.iter_mut().for_each(|directory| directory.0.mtime = (9, 9));
    let difference = differ(&base, &index(&[("a", &tree), ("b", &later)]));
    (base, difference)
}

#[test]
fn the_sample_is_as_said() {
    let (_, difference) = sample();
    let expected = ["linked a", "added n", "content s", "named d/f", "removed d/g", "added n/x"];
    assert_eq!(listed(&difference), expected);
    assert_eq!(difference.objects(), [object(8), object(9)]);
    assert_eq!(difference.times(), [TimeChange { from: (8, 8), to: (9, 9) }]);
}

fn refused(change: impl Fn(&mut Difference), rule: &str) {
    let (_, mut difference) = sample();
    change(&mut difference);
    let error = Difference::parse(&difference.encode().expect("it fits"), u64::MAX, u64::MAX).expect_err(rule);
    assert!(alloc::format!("{error}").contains(rule), "{error} is not: {rule}");
}

fn find(difference: &mut Difference, path: &[u8]) -> usize {
    (0..difference.edits.len())
        .find(|own| difference.path(&difference.edits[*own]) == path && difference.edits[*own].parent.is_some())
        .expect("it is there")
}

#[test]
fn rules_of_the_bytes() {
    let set = |path: &'static [u8], op: Op| {
        move |difference: &mut Difference| {
            let own = find(difference, path);
            difference.edits[own].op = op;
        }
    };
    refused(|d| d.refs[1].from = d.refs[0].from, "two refs are relative to one of the base");
    refused(|d| d.refs[1].from = Some(7), "relative to one that the base does not have");
    refused(|d| d.refs[0].name = "c".into(), "refs do not ascend");
    refused(|d| d.refs[0].from = None, "a ref's root");
    refused(set(b"d/g", Op::Named), "lists an unchanged file without a reason");
    refused(
        |d| {
            let own = find(d, b"n/x");
            d.edits[own].op = d.edits[own].op.new_file().map(Op::Replaced).expect("it is new");
        },
        "is below a new directory",
    );
    refused(set(b"a", Op::Linked(Row::FIRST)), "a hard link is not to a file of its ref");
    refused(set(b"a", Op::Linked(Row::new(u32::MAX - 1).expect("a row"))), "a hard link is not to a file of its ref");
    refused(set(b"d/g", Op::Within), "of which nothing changes");
    refused(|d| d.attributes.push(META.attributes(FileType::Fifo)), "unreferenced attributes");
    refused(|d| d.attributes.swap(0, 1), "");
    refused(|d| d.objects.push(object(77)), "an object is carried that no file has");
    refused(|d| d.objects[1].id = d.objects[0].id, "duplicate object id");
    refused(|d| d.base_objects = u32::MAX, "neither base nor difference");
    refused(|d| d.times[0].to = d.times[0].from, "changes of time do not ascend, or one is none");
    refused(|d| d.times.push(d.times[0]), "changes of time do not ascend, or one is none");
    refused(|d| d.times[0].to.1 = 1_000_000_000, "nanoseconds");
    refused(|d| d.names[1] = b'z', "");
    refused(
        |d| {
            let own = find(d, b"s");
            if let Op::Changed(changed) = &mut d.edits[own].op {
                changed.mtime = Some((0, 1_000_000_000));
            }
        },
        "nanoseconds",
    );
    refused(
        |d| {
            let own = find(d, b"s");
            if let Op::Changed(changed) = &mut d.edits[own].op {
                changed.content = Some(NewContent::Regular(Reference::Base(Row::new(3).expect("it is small"))));
            }
        },
        "neither base nor difference",
    );
    refused(
        |d| {
            let own = find(d, b"d");
            d.edits[own].op = Op::Changed(Changed {
                file_type: FileType::Directory,
                attributes: None,
                mtime: None,
                content: Some(NewContent::Plain),
            });
        },
        "the content of a file changes that has none",
    );
    let (_, difference) = sample();
    assert!(matches!(
        Difference::parse(&difference.encode().expect("it fits"), 5, u64::MAX),
        Err(crate::Error::Maximum { found: 6, .. })
    ));
    let mut bytes = difference.encode().expect("it fits");
    bytes.push(0);
    assert!(Difference::parse(&bytes, u64::MAX, u64::MAX).is_err());
}

#[test]
fn rules_of_the_base() {
    let (base, difference) = sample();
    let misfit = |change: &dyn Fn(&mut Difference), rule: &str| {
        let mut difference = difference.clone();
        change(&mut difference);
        let error = difference.apply(&[&base]).expect_err(rule);
        assert!(alloc::format!("{error}").contains(rule), "{error} is not: {rule}");
    };
    misfit(&|d| d.base_objects += 1, "to another base");
    misfit(&|d| d.base_refs[0].name = "x".into(), "to another base");
    let in_other_order = |d: &mut Difference| {
        for edit in &mut d.edits {
            let content = match &mut edit.op {
                Op::Added(file) => Some(&mut file.content),
                Op::Changed(changed) => changed.content.as_mut(),
                _ => None,
            };
            if let Some(NewContent::Regular(Reference::Carried(object))) = content {
                *object = Row::new(1 - object.number()).expect("there are two");
            }
        }
    };
    misfit(&in_other_order, "a carried object is in another place");
    let with = |path: &'static [u8], op: Op| {
        move |d: &mut Difference| {
            let own = find(d, path);
            d.edits[own].op = op;
        }
    };
    misfit(&with(b"a", Op::Removed), "a name is missing there");
    let file = difference.edits[find(&mut difference.clone(), b"n/x")].op.new_file().expect("it is new");
    misfit(&with(b"d/g", Op::Added(file)), "or there already");
    misfit(&with(b"d", Op::Named), "another type");
    misfit(&with(b"d/g", Op::Within), "another type");
}
