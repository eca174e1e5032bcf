//! The findings of an audit of a sealed tree.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use sealift_desk::noise;
use sealift_tests::bundle::{Bundle, Packing};
use sealift_tests::ostree::commit;
use sealift_tests::tree::{dir, file};

use super::composefs::take;
use super::unpack::{ANYBODY, Publisher};
use crate::disk::{Disk, PAGE};

pub(crate) fn damage(desk: &Disk) {
    let bundle = Publisher::new(desk).pack(1);
    desk.good(&format!("unpack {bundle} audited --seal require {ANYBODY}"));
    let at = |name: &str| desk.path("audited").join(name);
    let again = |name: &str, content: &[u8]| {
        fs::remove_file(at(name)).expect("removed");
        fs::write(at(name), content).expect("written");
    };
    assert!(desk.good(&format!("audit audited {ANYBODY}")).contains("sound"));

    fs::remove_file(at("etc/empty")).expect("removed");
    fs::write(at("etc/extra"), "extra").expect("written");
    // Same size, and sealed: the kernel protects it, and reports another digest.
    again("usr/bin/hello", b"#!/bin/sh\necho HELLO\n");
    desk.good("seal audited/usr/bin/hello");
    // The right content, but not sealed.
    again("usr/lib/large", &noise(7, 700_000));
    fs::set_permissions(at("etc/os-release"), fs::Permissions::from_mode(0o666)).expect("its mode");

    let found = desk.bad(&format!("audit audited --ignore mtime {ANYBODY}"), 1, "differs");
    for line in ["D ", "A ", "M ", "U ", "m "] {
        let is_there = found.lines().any(|found| found.starts_with(line));
        assert!(is_there, "{line}: {found}");
    }
    let found = desk.bad(&format!("audit audited --ignore mtime --json {ANYBODY}"), 1, r#""sealed":true"#);
    for entry in [
        r#"{"kind":"missing","path":"etc/empty""#,
        r#"{"kind":"extra","path":"etc/extra""#,
        r#"{"kind":"changed","path":"usr/bin/hello","fields":["content"]"#,
        r#"{"kind":"unsealed","path":"usr/lib/large","fields":["seal"]"#,
        r#"{"kind":"metadata","path":"etc/os-release","fields":["mode"]"#,
        r#""missing":1,"#,
        r#""extra":1,"#,
        r#""changed":1,"#,
        r#""unsealed":1,"#,
        r#""metadata":1,"#,
    ] {
        assert!(found.contains(entry), "{entry}: {found}");
    }
    // The same against the bundle itself, which is read in another way.
    desk.bad(&format!("audit audited {bundle} --ignore mtime {ANYBODY}"), 1, "1 not sealed");

    // Modified digests beside the tree are not trusted.
    let digests = desk.path(".audited.sealift-state/fs-verity");
    let mut bytes = fs::read(&digests).expect("they are kept");
    bytes[0] ^= 1;
    fs::remove_file(&digests).expect("nobody can write to them, and their name can go");
    fs::write(&digests, bytes).expect("others are written");
    desk.bad(&format!("audit audited {ANYBODY}"), 2, "does not match the index");
}

/// No content is read: the kernel detects a damaged page when it is read.
pub(crate) fn unread(desk: &Disk) {
    // The content is unique on the disk.
    let (publisher, content) = (Publisher::new(desk), noise(9, 200_000));
    publisher.write("usr/lib/large", &content);
    let bundle = publisher.pack(1);
    desk.good(&format!("unpack {bundle} unread --seal require {ANYBODY}"));
    desk.flip(&content[30 * PAGE..31 * PAGE]);
    let sound = desk.good(&format!("audit unread {ANYBODY}"));
    assert!(sound.contains("asking the kernel"), "{sound}");
    desk.bad("digest unread/usr/lib/large", 2, "os error 5");
    // The index beside it is sealed as well.
    let index = fs::read(desk.path(".unread.sealift-state/index")).expect("the index");
    if index.len() >= PAGE {
        desk.flip(&index[..PAGE]);
        desk.bad(&format!("audit unread {ANYBODY}"), 2, "os error 5");
    }
}

/// An image that is sealed after it was written is not read, unless it is another one.
pub(crate) fn images(desk: &Disk) {
    let content = noise(31, 300_000);
    fs::remove_dir_all("/tmp/image").unwrap_or_default();
    fs::create_dir_all("/tmp/image").expect("a folder");
    fs::write("/tmp/image/root.img", &content).expect("a file");
    let options = "--name image --level 1 --quiet";
    desk.good(&format!("pack --force /tmp/image -o /tmp/image.sealift --bundle-version 1 {options}"));
    desk.good(&format!("unpack /tmp/image.sealift image:root.img {ANYBODY}"));
    let audit = format!("audit image:root.img {ANYBODY} --json");
    assert!(desk.good(&audit).contains(r#""sealed":false,"#));
    desk.good("seal root.img");
    let found = desk.good(&audit);
    assert!(found.contains(r#""sealed":true,"differing_bytes":0,"#), "{found}");
    // The damaged page is detected when it is read.
    desk.flip(&content[20 * PAGE..21 * PAGE]);
    assert!(desk.good(&audit).contains(r#""sealed":true"#));
    desk.bad("digest root.img", 2, "os error 5");
    let bundle = "/tmp/image-2.sealift";
    fs::write("/tmp/image/root.img", noise(32, 300_000)).expect("a file");
    desk.good(&format!("pack --force /tmp/image -o {bundle} --bundle-version 2 {options}"));
    desk.bad(&format!("unpack {bundle} image:root.img {ANYBODY}"), 2, "is sealed with fs-verity");
}

/// Replaces an object with another file.
fn replace(desk: &Disk, object: &Path, with: &[u8], is_sealed: bool) {
    fs::remove_file(object).expect("removed");
    fs::write(object, with).expect("a file");
    if is_sealed {
        desk.good(&format!("seal {}", object.display()));
    }
}

/// A composefs store: the audit asks the kernel, and finds objects that it does not protect.
pub(crate) fn stores(desk: &Disk) {
    let content = noise(2010, 300_000);
    let object = take(desk, "audited-store", &content);
    let audit = format!("audit composefs:audited-store {ANYBODY}");
    let sound = desk.good(&audit);
    assert!(sound.contains("asking the kernel") && !sound.contains("hashed"), "{sound}");
    // No content is read: the damaged page is detected when it is read.
    let page = &content[20 * PAGE..21 * PAGE];
    desk.flip(page);
    desk.good(&audit);
    desk.bad(&format!("digest {}", object.display()), 2, "os error 5");

    replace(desk, &object, &content, false);
    let found = desk.bad(&format!("{audit} --json"), 1, r#""unsealed":1"#);
    assert!(found.contains(r#""hashed":1,"hashed_bytes":300000,"#), "{found}");
    assert!(found.contains(r#""path":"usr/lib/object"}"#), "{found}");
    desk.good("seal audited-store/objects");
    desk.good(&audit);
    for is_sealed in [true, false] {
        replace(desk, &object, &noise(2011, 300_000), is_sealed);
        desk.bad(&format!("{audit} --json"), 1, r#""changed":1,"unsealed":0"#);
    }
    fs::remove_file(&object).expect("removed");
    desk.bad(&audit, 1, "1 missing");
    desk.good(&format!("unpack /tmp/store.sealift composefs:audited-store --rehash {ANYBODY}"));
    desk.good(&audit);
    fs::remove_dir_all(desk.path("audited-store")).expect("removed");
}

/// Returns the file of a repository's objects that has this content.
fn object_of(repo: &Path, content: &[u8]) -> PathBuf {
    let folders = fs::read_dir(repo.join("objects")).expect("a folder").map(|folder| folder.expect("an entry").path());
    let mut files =
        folders.flat_map(|folder| fs::read_dir(folder).expect("a folder")).map(|entry| entry.expect("an entry").path());
    files.find(|path| fs::read(path).is_ok_and(|bytes| bytes == content)).expect("it is there")
}

/// An OSTree repository. Its index has a single digest over the digests of all contents.
pub(crate) fn repositories(desk: &Disk) {
    let _ = fs::remove_dir_all("/tmp/state"); // left by the previous case
    let (repo, content) = (desk.path("audited-repo"), noise(2012, 200_000));
    for folder in ["objects", "refs/heads", "refs/remotes", "tmp", "state", "extensions"] {
        fs::create_dir_all(repo.join(folder)).expect("a folder");
    }
    fs::write(repo.join("config"), "[core]\nrepo_version=1\nmode=bare-user\n").expect("a file");
    let tree = dir([("large", file(content.clone())), ("small", file("small\n")), ("usr", dir([("none", file(""))]))]);
    let bundle = Bundle::with_commits(&[], &[("main", vec![commit(tree)])], Packing::default());
    fs::write("/tmp/commit.sealift", bundle.encode()).expect("a file");
    desk.good(&format!("unpack /tmp/commit.sealift ostree:audited-repo --seal require {ANYBODY}"));
    let audit = format!("audit ostree:audited-repo {ANYBODY}");
    let sound = desk.good(&audit);
    assert!(sound.contains("asking the kernel") && !sound.contains("hashed"), "{sound}");
    let (large, small) = (object_of(&repo, &content), object_of(&repo, b"small\n"));
    desk.flip(&content[20 * PAGE..21 * PAGE]);
    desk.good(&audit);
    desk.bad(&format!("digest {}", large.display()), 2, "os error 5");
    desk.flip(&flipped(&content[20 * PAGE..21 * PAGE]));

    // A file's attributes are in a separate file, which goes with it.
    let attributes = xattr_of(&small);
    let replace = |with: &[u8], is_sealed: bool| {
        fs::remove_file(&small).expect("removed");
        fs::write(&small, with).expect("a file");
        rustix::fs::setxattr(&small, XATTR, &attributes, rustix::fs::XattrFlags::empty()).expect("it can be set");
        if is_sealed {
            desk.good(&format!("seal {}", small.display()));
        }
    };
    replace(b"small\n", false);
    // One file is read, and it agrees with the kernel's digests of the others.
    desk.bad(
        &format!("{audit} --json"),
        1,
        r#""hashed":1,"hashed_bytes":6,"missing":0,"extra":0,"changed":0,"unsealed":1"#,
    );
    desk.good("seal audited-repo/objects");
    desk.good(&audit);
    for is_sealed in [true, false] {
        replace(b"SMALL\n", is_sealed);
        desk.bad(&format!("{audit} --json"), 1, r#""changed":1,"unsealed":0"#);
    }
    replace(b"small\n", true);
    desk.good(&audit);
    // The same content with other attributes, which no seal covers.
    let mut other = attributes.clone();
    other[11] ^= 1;
    rustix::fs::setxattr(&small, XATTR, &other, rustix::fs::XattrFlags::empty()).expect("it can be set");
    desk.bad(&format!("{audit} --json"), 1, r#""changed":1,"unsealed":0"#);
    fs::remove_dir_all(repo).expect("removed");
}

const XATTR: &str = "user.ostreemeta";

fn xattr_of(path: &Path) -> Vec<u8> {
    let mut value = vec![0; 1024];
    let len = rustix::fs::getxattr(path, XATTR, &mut value).expect("it has it");
    value.truncate(len);
    value
}

/// Returns a page as modified by [`Disk::flip`].
fn flipped(page: &[u8]) -> Vec<u8> {
    let mut page = page.to_vec();
    page[100] ^= 1;
    page
}
