//! `unpack DIR composefs:REPO` and `status`: the newest of several bundles that a store accepts is installed, and the store's bundles are listed.

use std::fs;

use crate::state::desk;
use crate::store::{Said, Store};

/// Creates a stick with versions 1 and 2 as full bundles, and version 3 as a full bundle and as a delta to 2; one bundle is unsigned.
fn stick() -> Store {
    let desk = desk();
    fs::create_dir(desk.path("stick")).unwrap();
    fs::write(desk.path("os/etc/version"), "3".repeat(500)).unwrap();
    let signed = ["--composefs", "--key", "key", "--expires", "2090-01-01"];
    desk.pack("os", "os-3.sealift", 3, &signed);
    desk.pack("os", "os-delta.sealift", 3, &[&signed[..], &["--base", "os-2.sealift", "--trust", "allowed"]].concat());
    desk.pack("os", "os-unsigned.sealift", 9, &["--composefs"]);
    for name in ["1", "2", "3", "delta", "unsigned"] {
        fs::copy(desk.path(&format!("os-{name}.sealift")), desk.path(&format!("stick/{name}.sealift"))).unwrap();
    }
    desk
}

fn take(desk: &Store, bundle: &str, store: &str) -> Said {
    let (store, state) = (format!("composefs:{store}"), format!("{store}-state"));
    desk.run(&["unpack", bundle, &store, "--trust", "allowed", "--name", "os", "--state", &state])
}

#[test]
fn the_newest_is_taken_by_delta_where_its_base_is() {
    let desk = stick();
    // There is no store yet: the delta is tried, and the full bundle is installed.
    let first = take(&desk, "stick", "store").good().has("composefs:store: imported stick/3.sealift");
    let first = first.said("passed over stick/delta.sealift: ");
    let first = first.said("passed over stick/unsigned.sealift: \"os\" needs the signature of 1 trusted key");
    first.said("passed over stick/2.sealift: stick/3.sealift is newer, version 3");
    // A store that has version 2 installs the delta.
    take(&desk, "os-2.sealift", "second").good();
    let second = take(&desk, "stick", "second").good().has("composefs:second: imported stick/delta.sealift");
    second.said("passed over stick/3.sealift: stick/delta.sealift is the same version");
    // A store that has version 1 installs the full bundle without trying the delta.
    take(&desk, "os-1.sealift", "third").good();
    let third = take(&desk, "stick", "third").good().has("composefs:third: imported stick/3.sealift");
    third.said("passed over stick/delta.sealift: stick/3.sealift is the same version");
    // Without the full bundle, the delta is installed over version 2, which is beside it.
    fs::remove_file(desk.path("stick/3.sealift")).unwrap();
    take(&desk, "os-1.sealift", "fourth").good();
    take(&desk, "stick", "fourth").good().has("composefs:fourth: imported stick/delta.sealift");
    take(&desk, "stick", "new").good().has("composefs:new: imported stick/delta.sealift");
    desk.run(&["audit", "composefs:new", "--trust", "allowed", "--state", "new-state"]).good();
    // Without version 2 too, the next best bundle is installed.
    fs::remove_file(desk.path("stick/2.sealift")).unwrap();
    take(&desk, "os-1.sealift", "fifth").good();
    let fifth = take(&desk, "stick", "fifth").good().has("composefs:fifth: ");
    fifth.said("passed over stick/delta.sealift: ");
}

#[test]
fn status_tells_of_stores() {
    let desk = stick();
    take(&desk, "os-2.sealift", "store").good();
    let store = fs::canonicalize(desk.path("store")).unwrap();
    let status =
        |more: &[&str]| desk.run(&[&["status", "--trust", "allowed", "--state", "store-state"], more].concat());
    status(&["composefs:store"]).good().has("composefs:store: os version 2\n").has("signed by SHA256:");
    let listed = status(&[]).good().has(&format!("composefs:{}: os version 2\n", store.display()));
    listed.has("os: accepts version 2 or newer\n");
    fs::rename(desk.path("store"), desk.path("moved")).unwrap();
    status(&[]).good().has("store: gone; remove it from the list with  sealift clean composefs:/");
    desk.run(&["clean", "composefs:store", "--state", "store-state"]).good().has("removed from the list");
    assert!(!status(&[]).good().out.contains("composefs:"));
}

#[test]
fn a_command_is_told_of_stores() {
    let desk = stick();
    let then = r#"echo "$SEALIFT_NAME $SEALIFT_VERSION $SEALIFT_TARGET" >> told"#;
    for (bundle, version) in [("os-2.sealift", 2), ("os-2.sealift", 2), ("stick", 3)] {
        let (status, said) = desk.run_then(&format!("unpack {bundle} composefs:store --trust allowed --name os"), then);
        assert_eq!((status, desk.text("told")), (Some(0), format!("os {version} composefs:store\n")), "{said}");
        fs::remove_file(desk.path("told")).unwrap();
    }
    let (status, said) = desk.run_then("unpack stick composefs:other --trust allowed --name os --dry-run", then);
    assert_eq!((status, desk.path("told").exists()), (Some(0), false), "{said}");
}
