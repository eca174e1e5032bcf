//! What an audit of a sealed tree finds.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::unpack::{ANYBODY, Publisher};
use crate::desk::{Desk, PAGE, noise};

pub(crate) fn damage(desk: &Desk) {
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
    // The same size, and sealed: the kernel keeps it as it is, and says that it is another.
    again("usr/bin/hello", b"#!/bin/sh\necho HELLO\n");
    desk.good("seal audited/usr/bin/hello");
    // The content that it is to have, which nobody keeps as it is.
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
    // Against the bundle itself, which has another reader: the same.
    desk.bad(&format!("audit audited {bundle} --ignore mtime {ANYBODY}"), 1, "1 not sealed");

    // Other digests beside the tree are not believed.
    let digests = desk.path(".audited.sealift-state/fs-verity");
    let mut bytes = fs::read(&digests).expect("they are kept");
    bytes[0] ^= 1;
    fs::remove_file(&digests).expect("nobody can write to them, and their name can go");
    fs::write(&digests, bytes).expect("others are written");
    desk.bad(&format!("audit audited {ANYBODY}"), 2, "not what the index says");
}

/// No content is read: a page that the disk has lost is the kernel's to find, when somebody asks for it.
pub(crate) fn unread(desk: &Desk) {
    // No other file of the disk has these bytes.
    let (publisher, content) = (Publisher::new(desk), noise(9, 200_000));
    publisher.write("usr/lib/large", &content);
    let bundle = publisher.pack(1);
    desk.good(&format!("unpack {bundle} unread --seal require {ANYBODY}"));
    desk.flip(&content[30 * PAGE..31 * PAGE]);
    let sound = desk.good(&format!("audit unread {ANYBODY}"));
    assert!(sound.contains("asking the kernel"), "{sound}");
    desk.bad("digest unread/usr/lib/large", 2, "os error 5");
    // The index beside it is kept as well.
    let index = fs::read(desk.path(".unread.sealift-state/index")).expect("the index");
    if index.len() >= PAGE {
        desk.flip(&index[..PAGE]);
        desk.bad(&format!("audit unread {ANYBODY}"), 2, "os error 5");
    }
}
