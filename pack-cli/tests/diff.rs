//! Differences between trees: bundles, directories, and installed targets.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{XattrFlags, setxattr};
use sealift::Output;
use sealift::audit::{AuditOptions, audit};
use sealift::diff::{Change, Diff, DiffOptions, Ignore, Side, diff, take_xattrs_of};
use sealift::pack::{PackOptions, PackRef, pack};
use sealift::source::{DirectoryOptions, DirectorySource, Exclude, Source, XattrFilter};
use sealift::trust::{Guard, TrustOptions, TrustPaths};
use sealift::unpack::unpack;
use sealift::{Bundle, Error, Identity, Input, Limits, Progress};
use sealift::{Durability, InstallOptions, TreeOptions};
use sealift_desk::{can_chown, set_mtime, skipped};
use sealift_format::Kind;
use tempfile::TempDir;

/// Two similar trees in a folder.
struct Pair {
    folder: TempDir,
}

impl Pair {
    /// Fills `old`, copies it to `new`, and changes `new`.
    fn new(fill: impl Fn(&Path), change: impl Fn(&Path)) -> Self {
        let desk = Self { folder: tempfile::tempdir().expect("a folder") };
        for tree in ["old", "new"] {
            fs::create_dir(desk.path(tree)).expect("made");
            fill(&desk.path(tree));
        }
        change(&desk.path("new"));
        for tree in ["old", "new"] {
            set_times(&desk.path(tree));
        }
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Packs trees as refs.
    fn pack(&self, name: &str, refs: &[(&str, &str)]) -> PathBuf {
        self.pack_sources(name, refs.iter().map(|(reference, tree)| (*reference, list(&self.path(tree)))).collect())
    }

    fn pack_sources(&self, name: &str, sources: Vec<(&str, Source)>) -> PathBuf {
        let refs: Vec<PackRef<'_>> = sources.iter().map(|(name, source)| PackRef { name, source }).collect();
        let options = PackOptions {
            chunk_len: 65_536,
            jobs: 2,
            ..PackOptions::new(Identity {
                name: "os".into(),
                version: 1,
                created: 1,
                expires: None,
                compatible: vec![],
            })
        };
        let file = self.path(name);
        pack(&refs, &Output::File(file.clone()), &options, &|_| Ok(vec![]), &Progress::default()).expect("packed");
        file
    }

    fn bundle(&self, tree: &str) -> Bundle {
        open(&self.pack(&format!("{tree}.sealift"), &[("main", tree)]))
    }

    /// Returns the differences of the two trees, which are the same whatever form the trees have.
    fn compare(&self, options: &DiffOptions) -> Diff {
        let (old, new) = (self.bundle("old"), self.bundle("new"));
        let (old_tree, new_tree) = (list(&self.path("old")), list(&self.path("new")));
        let bundles = run(Side::Bundle(&old), Side::Bundle(&new), options);
        let forms = [
            run(Side::Bundle(&old), Side::Source(&new_tree), options),
            run(Side::Source(&old_tree), Side::Bundle(&new), options),
            run(Side::Source(&old_tree), Side::Source(&new_tree), options),
            run(Side::Index(&old.index), Side::Index(&new.index), options),
        ];
        for other in &forms {
            assert_eq!(said(other), said(&bundles));
            let mut counts = other.counts;
            counts.privileged = 0;
            assert_eq!(counts, bundles.counts);
        }
        assert_eq!(forms[1].take, bundles.take, "a directory is read as far as that takes");
        assert_eq!((forms[0].take, forms[2].take, forms[3].take), (None, None, None));
        bundles
    }

    fn unpack(&self, bundle: &Path, target: &str) {
        let tree = TreeOptions { durability: Durability::None, ..TreeOptions::default() };
        let options = InstallOptions { jobs: 2, tree, ..InstallOptions::default() };
        let bundle =
            guard(true).admit(Input::open(bundle).expect("it opens"), Limits::default()).expect("it is admitted");
        unpack(bundle, &self.path(target), &options, &Progress::default()).expect("unpacked");
    }

    fn audit(&self, target: &str, options: &AuditOptions) -> Result<Diff, Error> {
        let progress = Arc::new(Progress::default());
        audit(&self.path(target), None, options, Limits::default(), &guard(true), &progress).map(|(diff, _)| diff)
    }
}

/// Returns a guard that trusts no key, and accepts unsigned bundles if requested.
fn guard(allow_unsigned: bool) -> Guard {
    let nowhere = PathBuf::from("/nonexistent");
    let places = TrustPaths { user_config: None, system_config: nowhere.clone(), state: Some(nowhere) };
    let options = TrustOptions { allow_unsigned, ..TrustOptions::default() };
    Guard::load_from(&options, places).expect("there are no files")
}

fn options() -> DiffOptions {
    DiffOptions { moves: true, jobs: 2, ..DiffOptions::default() }
}

fn audit_options() -> AuditOptions {
    AuditOptions { diff: options(), ..AuditOptions::default() }
}

fn run(old: Side<'_>, new: Side<'_>, options: &DiffOptions) -> Diff {
    diff(old, new, options, &Progress::default()).expect("they are compared")
}

fn list(path: &Path) -> Source {
    Source::Directory(DirectorySource::list(path, &DirectoryOptions::default(), 2).expect("it is listed"))
}

fn open(path: &Path) -> Bundle {
    Input::open(path).and_then(|mut input| input.open_bundle(Limits::default())).expect("it opens")
}

/// Describes each difference: a letter, the path, and the old path or what differs.
fn said(diff: &Diff) -> Vec<String> {
    let line = |difference: &sealift::diff::PathDifference| {
        let letter = match difference.change {
            Change::Added => 'A',
            Change::Removed => 'D',
            Change::Changed => 'M',
            Change::Moved => 'R',
            Change::Unsealed => 'U',
            Change::Metadata => 'm',
        };
        let reference = difference.reference.as_ref().map(|name| format!("{name}:")).unwrap_or_default();
        let from =
            difference.from.as_ref().map(|from| format!(" from {}", from.to_vec().escape_ascii())).unwrap_or_default();
        let fields = if difference.fields.is_empty() { String::new() } else { format!(" {:?}", difference.fields) };
        format!("{letter} {reference}{}{from}{fields}", difference.path.to_vec().escape_ascii())
    };
    diff.differences.iter().map(line).collect()
}

fn set_time(path: &Path, seconds: i64) {
    set_mtime(path, seconds, 5);
}

/// Sets one time for all, except for files whose name begins with `late`.
fn set_times(path: &Path) {
    if path.symlink_metadata().expect("it is there").is_dir() {
        for entry in fs::read_dir(path).expect("a folder") {
            set_times(&entry.expect("an entry").path());
        }
    }
    let late = path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"late"));
    set_time(path, if late { 200 } else { 100 });
}

fn write(root: &Path, name: &str, content: impl AsRef<[u8]>) {
    fs::create_dir_all(root.join(name).parent().expect("it has one")).expect("made");
    fs::write(root.join(name), content).expect("written");
}

fn fill(root: &Path) {
    write(root, "etc/os-release", "version 1");
    write(root, "usr/bin/tool", [7; 200_000]);
    write(root, "usr/lib/libx.so.1", "a library");
    write(root, "usr/empty", "");
    symlink("bin/tool", root.join("usr/link")).expect("linked");
    fs::create_dir(root.join("var")).expect("made");
}

#[test]
fn equal_trees_do_not_differ() {
    let found = Pair::new(fill, |_| {}).compare(&options());
    assert!(found.is_empty(), "{:?}", said(&found));
    assert_eq!(found.counts.compared, 11);
    assert_eq!(found.take.expect("it is a bundle").objects, 0);
}

#[test]
fn what_came_went_and_changed() {
    let found = Pair::new(fill, |new| {
        write(new, "etc/os-release", "version 2");
        write(new, "usr/bin/tool", [7; 200_001]);
        fs::remove_file(new.join("usr/empty")).expect("removed");
        write(new, "usr/share/new", "1234");
        fs::remove_file(new.join("usr/link")).expect("removed");
        symlink("lib/tool", new.join("usr/link")).expect("linked");
    })
    .compare(&options());
    let expected = [
        "M etc/os-release [Content]",
        "M usr/bin/tool [Content]",
        "D usr/empty",
        "M usr/link [Target]",
        "A usr/share",
        "A usr/share/new",
    ];
    assert_eq!(said(&found), expected);
    let counts = &found.counts;
    assert_eq!((counts.added, counts.removed, counts.changed), (2, 1, 3));
    assert_eq!((counts.added_bytes, counts.removed_bytes), (4, 0));
    assert_eq!((counts.changed_old_bytes, counts.changed_new_bytes), (200_009, 200_010));
    let take = found.take.expect("it is a bundle");
    assert_eq!((take.objects, take.logical_bytes), (3, 9 + 200_001 + 4));
    assert!(take.stored_bytes > 0);
}

#[test]
fn what_moved_is_found_once_each() {
    let fill = |root: &Path| {
        for name in ["a/x", "a/y", "a/z"] {
            write(root, name, "the same");
        }
        write(root, "a/other", "another");
        write(root, "a/empty", "");
    };
    let desk = Pair::new(fill, |new| {
        fs::rename(new.join("a"), new.join("b")).expect("renamed");
        fs::rename(new.join("b/x"), new.join("b/n")).expect("renamed");
        fs::remove_file(new.join("b/z")).expect("removed");
    });
    let found = desk.compare(&options());
    let expected =
        ["D a", "D a/empty", "D a/z", "A b", "A b/empty", "R b/n from a/x", "R b/other from a/other", "R b/y from a/y"];
    assert_eq!(said(&found), expected);
    assert_eq!((found.counts.moved, found.counts.moved_bytes, found.counts.removed_bytes), (3, 8 + 7 + 8, 8));
    assert_eq!(found.take.expect("it is a bundle").objects, 0);
    let without = desk.compare(&DiffOptions { moves: false, ..options() });
    assert_eq!((without.counts.moved, without.counts.added, without.counts.removed), (0, 5, 6));
}

#[test]
fn a_moved_file_with_other_metadata_says_so() {
    let found = Pair::new(fill, |new| {
        fs::rename(new.join("usr/lib/libx.so.1"), new.join("usr/lib/libx.so.2")).expect("renamed");
        fs::set_permissions(new.join("usr/lib/libx.so.2"), fs::Permissions::from_mode(0o755)).expect("set");
    })
    .compare(&options());
    assert_eq!(said(&found), ["R usr/lib/libx.so.2 from usr/lib/libx.so.1 [Mode]"]);
}

#[test]
fn each_metadata_field_is_named_and_can_be_ignored() {
    let fill = |root: &Path| {
        for name in ["late", "mode", "xattr", "one"] {
            write(root, name, name);
        }
        fs::hard_link(root.join("one"), root.join("two")).expect("linked");
    };
    let has_xattrs = {
        let probe = tempfile::NamedTempFile::new().expect("a file");
        setxattr(probe.path(), "user.note", b"1", XattrFlags::empty()).is_ok()
    };
    if !has_xattrs {
        skipped("needs extended attributes on this file system");
    }
    let desk = Pair::new(fill, |new| {
        fs::set_permissions(new.join("mode"), fs::Permissions::from_mode(0o4711)).expect("set");
        if has_xattrs {
            setxattr(new.join("xattr"), "user.note", b"1", XattrFlags::empty()).expect("set");
        }
        fs::remove_file(new.join("two")).expect("removed");
        write(new, "two", "one");
        if can_chown() {
            chown(new.join("one"), Some(1234), Some(5678)).expect("given");
            chown(new.join("two"), Some(1234), Some(5678)).expect("given");
        }
    });
    // Both trees got their times from the names of the files.
    set_time(&desk.path("new/late"), 201);
    let found = desk.compare(&options());
    let mut expected = vec!["m late [Mtime]".to_owned(), "m mode [Mode]".into()];
    if can_chown() {
        expected.push("m one [Owner]".into());
    }
    expected.push(if can_chown() { "m two [Owner, Links]".into() } else { "m two [Links]".into() });
    if has_xattrs {
        expected.push("m xattr [Xattrs]".into());
    }
    assert_eq!(said(&found), expected);
    let ignore = Ignore { mode: true, owner: true, mtime: true, xattrs: true, links: true, privileged: false };
    assert!(desk.compare(&DiffOptions { ignore, ..options() }).is_empty());
    for (ignore, path) in [
        (Ignore { mode: false, ..ignore }, "m mode [Mode]"),
        (Ignore { mtime: false, ..ignore }, "m late [Mtime]"),
        (Ignore { links: false, ..ignore }, "m two [Links]"),
    ] {
        assert_eq!(said(&desk.compare(&DiffOptions { ignore, ..options() })), [path]);
    }
}

#[test]
fn bytes_of_hard_links_count_once() {
    let fill = |root: &Path| {
        write(root, "a", "12345");
        fs::hard_link(root.join("a"), root.join("b")).expect("linked");
    };
    let desk = Pair::new(fill, |new| {
        fs::remove_file(new.join("a")).expect("removed");
        fs::hard_link(new.join("b"), new.join("c")).expect("linked");
        write(new, "x", "123");
        fs::hard_link(new.join("x"), new.join("y")).expect("linked");
    });
    let found = desk.compare(&DiffOptions { moves: false, ..options() });
    assert_eq!(said(&found), ["D a", "A c", "A x", "A y"]);
    assert_eq!((found.counts.added_bytes, found.counts.removed_bytes), (3, 0), "b keeps the content");
    let links: Vec<Option<Vec<u8>>> = found
        .differences
        .iter()
        .map(|difference| difference.new.as_ref()?.link.as_ref().map(sealift::diff::TreePath::to_vec))
        .collect();
    assert_eq!(links, [None, Some(b"b".to_vec()), None, Some(b"x".to_vec())]);
}

#[test]
fn names_of_any_bytes() {
    let name = b"red\x1b[31m \xff\n";
    let found = Pair::new(|_| {}, |new| write_bytes(new, name)).compare(&options());
    assert_eq!(found.differences.len(), 1);
    assert_eq!(found.differences[0].path.to_vec(), name);
}

fn write_bytes(root: &Path, name: &[u8]) {
    fs::write(root.join(OsStr::from_bytes(name)), "x").expect("written");
}

#[test]
fn a_type_that_changes_takes_what_is_below_with_it() {
    let found = Pair::new(fill, |new| {
        fs::remove_dir_all(new.join("usr/bin")).expect("removed");
        write(new, "usr/bin", "a file now");
        fs::remove_file(new.join("usr/empty")).expect("removed");
        write(new, "usr/empty/inside", "inside");
        fs::remove_file(new.join("etc/os-release")).expect("removed");
        symlink("../usr/os-release", new.join("etc/os-release")).expect("linked");
    })
    .compare(&options());
    let expected =
        ["M etc/os-release [Type]", "M usr/bin [Type]", "D usr/bin/tool", "M usr/empty [Type]", "A usr/empty/inside"];
    assert_eq!(said(&found), expected);
}

#[test]
fn several_refs_are_compared_one_by_one() {
    let desk = Pair::new(fill, |new| write(new, "etc/os-release", "version 2"));
    let a = open(&desk.pack("a.sealift", &[("docs", "old"), ("os", "old")]));
    let b = open(&desk.pack("b.sealift", &[("apps", "old"), ("os", "new")]));
    let found = run(Side::Bundle(&a), Side::Bundle(&b), &options());
    let lines = said(&found);
    assert_eq!(lines.len(), 11 + 11 + 1, "{lines:?}");
    assert_eq!((&*lines[0], &*lines[11], &*lines[22]), ("A apps:", "D docs:", "M os:etc/os-release [Content]"));
    let take = found.take.expect("it is a bundle");
    assert_eq!(take.objects, 1, "what another ref has is there");

    let below = DiffOptions { prefix: b"os:/etc/".to_vec(), ..options() };
    assert_eq!(said(&run(Side::Bundle(&a), Side::Bundle(&b), &below)), ["M os:etc/os-release [Content]"]);
    let chosen = DiffOptions { reference: Some("os".into()), ..options() };
    assert_eq!(said(&run(Side::Bundle(&a), Side::Bundle(&b), &chosen)), ["M etc/os-release [Content]"]);
    let tree = list(&desk.path("new"));
    assert_eq!(said(&run(Side::Bundle(&a), Side::Source(&tree), &chosen)), ["M etc/os-release [Content]"]);
    let error = diff(Side::Bundle(&a), Side::Source(&tree), &options(), &Progress::default()).expect_err("which?");
    assert!(matches!(&error, Error::SeveralRefs { refs } if *refs == ["docs", "os"]), "{error}");
    let nowhere = DiffOptions { prefix: b"os:nowhere".to_vec(), ..options() };
    let error = diff(Side::Bundle(&a), Side::Bundle(&b), &nowhere, &Progress::default()).expect_err("nothing there");
    assert!(matches!(error, Error::Usage(_)), "{error}");
}

#[test]
fn a_prefix_and_a_pattern_restrict_both_sides() {
    let desk = Pair::new(fill, |new| {
        write(new, "etc/os-release", "version 2");
        write(new, "usr/bin/tool", "2");
        fs::remove_file(new.join("usr/lib/libx.so.1")).expect("removed");
    });
    let below = DiffOptions { prefix: b"./usr".to_vec(), ..options() };
    assert_eq!(said(&desk.compare(&below)), ["M usr/bin/tool [Content]", "D usr/lib/libx.so.1"]);
    let file = DiffOptions { prefix: b"etc/os-release".to_vec(), ..options() };
    let found = desk.compare(&file);
    assert_eq!((said(&found).len(), found.counts.compared), (1, 1));
    let exclude = Exclude::new(["lib/", "etc"].into_iter()).expect("patterns");
    let without = DiffOptions { exclude: Some(exclude), ..options() };
    assert_eq!(said(&desk.compare(&without)), ["M usr/bin/tool [Content]"]);
}

#[test]
fn what_was_just_unpacked_does_not_differ() {
    let desk = Pair::new(fill, |new| {
        fs::hard_link(new.join("usr/bin/tool"), new.join("usr/bin/again")).expect("linked");
        write_bytes(new, b"\xff");
        fs::set_permissions(new.join("var"), fs::Permissions::from_mode(0o1777)).expect("set");
        // A capability and an owner stay if root unpacks; otherwise they are not packed in the first place.
        if can_chown() {
            chown(new.join("etc/os-release"), Some(12), Some(34)).expect("given");
        }
    });
    let file = desk.pack("new.sealift", &[("main", "new")]);
    desk.unpack(&file, "target");
    let (bundle, tree) = (open(&file), list(&desk.path("target")));
    let found = run(Side::Bundle(&bundle), Side::Source(&tree), &options());
    assert!(found.is_empty(), "{:?}", said(&found));
    let audited = desk.audit("target", &audit_options()).expect("it is audited");
    assert!(audited.is_empty(), "{:?}", said(&audited));
}

#[test]
fn an_audit_finds_what_happened_to_a_tree() {
    let desk = Pair::new(fill, |_| {});
    desk.unpack(&desk.pack("new.sealift", &[("main", "new")]), "target");
    let target = desk.path("target");
    // Size and time are the same: only the content differs.
    write(&target, "etc/os-release", "version 9");
    set_time(&target.join("etc/os-release"), 100);
    fs::rename(target.join("usr/lib/libx.so.1"), target.join("usr/lib/libx.so.2")).expect("renamed");
    fs::remove_dir(target.join("var")).expect("removed");
    symlink("etc", target.join("var")).expect("swapped");
    let found = desk.audit("target", &audit_options()).expect("it is audited");
    let expected = [
        "m  [Mtime]",
        "M etc/os-release [Content]",
        "m usr/lib [Mtime]",
        "D usr/lib/libx.so.1",
        "A usr/lib/libx.so.2",
        "M var [Type]",
    ];
    assert_eq!(said(&found), expected);

    let lenient = AuditOptions { allow_extra: true, ..audit_options() };
    let found = desk.audit("target", &lenient).expect("it is audited");
    assert_eq!(said(&found), ["m  [Mtime]", "M etc/os-release [Content]", "D usr/lib/libx.so.1", "M var [Type]"]);
    assert_eq!((found.counts.added, found.counts.metadata), (0, 1));
}

#[test]
fn an_audit_believes_only_the_signed_index() {
    let desk = Pair::new(fill, |_| {});
    desk.unpack(&desk.pack("new.sealift", &[("main", "new")]), "target");
    let progress = Arc::new(Progress::default());
    let refused = audit(&desk.path("target"), None, &audit_options(), Limits::default(), &guard(false), &progress);
    assert_eq!(refused.expect_err("nobody signed it").kind(), Some(Kind::Untrusted));

    let index = desk.path(".target.sealift-state/index");
    let mut bytes = fs::read(&index).expect("it is kept");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&index, &bytes).expect("written");
    let error = desk.audit("target", &audit_options()).expect_err("the index is not the signed one");
    assert_eq!((error.kind().map(Kind::word), error.exit_status()), (Some("index"), 1));
    bytes[last] ^= 1;
    bytes.push(0);
    fs::write(&index, &bytes).expect("written");
    assert_eq!(desk.audit("target", &audit_options()).expect_err("too long").exit_status(), 1);

    fs::remove_dir_all(desk.path(".target.sealift-state")).expect("removed");
    assert!(matches!(desk.audit("target", &audit_options()), Err(Error::NoRecord { .. })));
}

#[test]
fn what_only_root_can_set_is_told_apart() {
    if !can_chown() {
        return;
    }
    let desk = Pair::new(fill, |new| {
        // As if a user had unpacked it.
        for name in ["", "etc", "etc/os-release", "usr", "usr/bin", "usr/lib", "usr/lib/libx.so.1", "var"] {
            chown(new.join(name), Some(1000), Some(1000)).expect("given");
        }
        fs::set_permissions(new.join("usr/bin/tool"), fs::Permissions::from_mode(0o600)).expect("set");
    });
    let (bundle, tree) = (desk.bundle("old"), list(&desk.path("new")));
    let found = run(Side::Bundle(&bundle), Side::Source(&tree), &options());
    assert_eq!((found.counts.metadata, found.counts.privileged), (9, 8));
    let ignore = Ignore { privileged: true, ..Ignore::default() };
    let rest = run(Side::Bundle(&bundle), Side::Source(&tree), &DiffOptions { ignore, ..options() });
    assert_eq!(said(&rest), ["m usr/bin/tool [Mode]"]);
}

#[test]
fn attributes_that_the_bundle_has_are_looked_for() {
    let desk = Pair::new(fill, |_| {});
    let file = desk.path("new/etc/os-release");
    if !can_chown() {
        return skipped("needs root: trusted attributes");
    }
    if let Err(error) = setxattr(&file, "trusted.note", b"1", XattrFlags::empty()) {
        return skipped(&format!("needs trusted attributes ({error})"));
    }
    let list = |tree: &str, xattrs: XattrFilter| {
        let everything = DirectoryOptions { xattrs, ..DirectoryOptions::default() };
        Source::Directory(DirectorySource::list(&desk.path(tree), &everything, 1).expect("listed"))
    };
    let mut filter = XattrFilter::default();
    filter.add(b"trusted.*");
    let bundle = open(&desk.pack_sources("b.sealift", vec![("main", list("new", filter))]));
    let mut filter = XattrFilter::default();
    take_xattrs_of(&bundle.index, &mut filter);
    assert!(filter.takes(b"trusted.note") && !filter.takes(b"trusted.other"));
    let compare = |tree: &str| run(Side::Bundle(&bundle), Side::Source(&list(tree, filter.clone())), &options());
    assert!(compare("new").is_empty());
    assert_eq!(said(&compare("old")), ["m etc/os-release [Xattrs]"]);
}

#[test]
fn a_comparison_stops_when_asked() {
    let desk = Pair::new(fill, |_| {});
    let (bundle, tree, progress) = (desk.bundle("old"), list(&desk.path("new")), Progress::default());
    progress.cancel();
    let stopped = diff(Side::Bundle(&bundle), Side::Source(&tree), &options(), &progress);
    assert!(matches!(stopped, Err(Error::Cancelled)));
}

#[test]
fn a_file_that_became_a_link_meanwhile_is_not_followed() {
    let desk = Pair::new(fill, |_| {});
    let (bundle, tree) = (desk.bundle("old"), list(&desk.path("new")));
    fs::remove_dir_all(desk.path("new/usr/bin")).expect("removed");
    symlink(desk.path("old/usr/bin"), desk.path("new/usr/bin")).expect("swapped");
    let error = diff(Side::Bundle(&bundle), Side::Source(&tree), &options(), &Progress::default());
    assert!(error.is_err(), "the content of another place is not this tree's");
}
