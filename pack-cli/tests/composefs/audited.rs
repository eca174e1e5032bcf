//! What an audit of a store finds.

use std::fs;
use std::os::unix::fs::{FileExt as _, symlink};

use serde_json::Value;

use crate::store::Store;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Returns the entries of an audit that finds something, without the digests that it names.
fn entries(desk: &Store, options: &[&str]) -> Vec<(String, String, String)> {
    let said = desk.audit(&[options, &["--json"]].concat()).differs();
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    let all = json(&said.out)["entries"].as_array().unwrap().clone();
    all.iter().map(|entry| (text(entry, "kind"), text(entry, "name"), text(entry, "path"))).collect()
}

#[test]
fn a_sound_store() {
    for hash in ["sha256", "sha512"] {
        let desk = Store::new();
        desk.nasty_tree("os");
        desk.pack("os", "os.sealift", 1, &[&*format!("--composefs={hash}")]);
        desk.unpack("os.sealift", &[]).good();
        desk.audit(&[]).good().has("sound, os version 1").has("hashed");
        desk.audit(&["--quiet"]).good();
        let found = json(&desk.audit(&["--json"]).good().out);
        let objects = u64::try_from(desk.objects().len()).unwrap() + 1;
        assert_eq!(found["counts"]["objects"], objects);
        assert_eq!(found["counts"]["hashed"].as_u64().unwrap() + found["counts"]["vouched"].as_u64().unwrap(), objects);
        assert_eq!((&found["sound"], &found["extra_known"]), (&Value::Bool(true), &Value::Bool(true)));
        assert_eq!(found["trees"], serde_json::json!(["os/main"]));
        // Comparing with the bundle itself needs nothing from the record.
        let bundle = ["audit", "composefs:store", "os.sealift", "--allow-unsigned"];
        desk.sealift(&bundle).good().has("compared with os.sealift");
        fs::remove_dir_all(desk.path("store/sealift")).unwrap();
        desk.sealift(&bundle).good();
        desk.audit(&[]).refused(2, "no install record for");
    }
}

#[test]
fn each_kind_of_damage() {
    let desk = Store::unpacked();
    let objects = desk.objects();
    let [first, second, .., last] = &objects[..] else { panic!("there are several") };
    let name = |object: &str| object.strip_prefix("store/").unwrap().to_owned();
    // Changed with the same size, changed with another size, removed, and one that is not from a bundle.
    fs::File::options().write(true).open(desk.path(first)).unwrap().write_all_at(b"evil", 0).unwrap();
    fs::write(desk.path(second), "short").unwrap();
    fs::remove_file(desk.path(last)).unwrap();
    let extra = format!("objects/00/{}", "e".repeat(62));
    fs::create_dir_all(desk.path("store/objects/00")).unwrap();
    fs::write(desk.path("store").join(&extra), "extra").unwrap();
    let found = entries(&desk, &[]);
    let kind_of = |object: &str| found.iter().find(|(_, found, _)| *found == object).map(|(kind, ..)| &**kind);
    assert_eq!(found.len(), 4, "{found:?}");
    assert_eq!(kind_of(&name(first)), Some("changed"));
    assert_eq!(kind_of(&name(second)), Some("changed"));
    assert_eq!(kind_of(&name(last)), Some("missing"));
    assert_eq!(kind_of(&extra), Some("extra"));
    // The entry names the object's first path in the tree.
    let path = &found.iter().find(|(_, found, _)| *found == name(last)).unwrap().2;
    assert_eq!(path, "etc/sparse");
    desk.audit(&[]).differs().has("os/main:etc/sparse").has("1 missing, 1 extra, 2 changed");
    assert_eq!(entries(&desk, &["--allow-extra"]).len(), 3);
    desk.audit(&["--quiet"]).refused(1, "1 missing, 1 extra, 2 changed");
    // Unpacking again repairs everything except objects that are not from the bundle.
    desk.unpack("os.sealift", &["--rehash"]).good();
    desk.audit(&["--allow-extra"]).good();
    assert_eq!(entries(&desk, &[]), [("extra".to_owned(), extra, String::new())]);
}

#[test]
fn images_and_names() {
    let desk = Store::unpacked();
    let link = desk.path("store/images/refs/os/main");
    let to = fs::read_link(&link).unwrap();
    let image = to.file_name().unwrap().to_str().unwrap().to_owned();
    fs::remove_file(&link).unwrap();
    symlink(format!("../../{}", "0".repeat(64)), &link).unwrap();
    let renamed = ("changed".to_owned(), "images/refs/os/main".to_owned(), String::new());
    assert_eq!(entries(&desk, &[]), [renamed]);
    fs::remove_file(&link).unwrap();
    let gone = ("missing".to_owned(), "images/refs/os/main".to_owned(), String::new());
    assert_eq!(entries(&desk, &[]), [gone]);
    symlink(&to, &link).unwrap();
    desk.audit(&[]).good();

    // If the image is missing, the objects that it names are still checked.
    let object = desk.path("store/objects").join(&image[..2]).join(&image[2..]);
    let bytes = fs::read(&object).unwrap();
    fs::remove_file(&object).unwrap();
    let big = desk.objects().pop().unwrap();
    fs::write(desk.path(&big), "short").unwrap();
    let found = entries(&desk, &[]);
    let kinds: Vec<&str> = found.iter().map(|(kind, ..)| &**kind).collect();
    assert!(kinds.len() == 2 && kinds.contains(&"missing") && kinds.contains(&"changed"), "{found:?}");
    // A different image in its place is not trusted.
    let mut other = bytes;
    other[2000] ^= 1;
    fs::write(&object, other).unwrap();
    let found = entries(&desk, &[]);
    assert!(found.len() == 2 && found.iter().all(|(kind, ..)| kind == "changed"), "{found:?}");
}

/// With several bundles in a store, one can be chosen; the objects of the others are not reported.
#[test]
fn several_bundles() {
    let desk = Store::unpacked();
    desk.pack("os/bin", "app.sealift", 3, &["--composefs"]);
    desk.unpack("app.sealift", &[]).good();
    desk.audit(&[]).good().has("app version 3").has("os version 1");
    desk.audit(&["--name", "app"]).good().has("app version 3").has("extra objects not checked");
    desk.audit(&["--name", "tv"]).refused(2, "has no bundle named tv; it has app, os");
    desk.audit(&["--ref", "none"]).refused(2, "no composefs image of none");
    let object = desk.objects().into_iter().find(|object| fs::read(desk.path(object)).unwrap().len() == 65).unwrap();
    fs::remove_file(desk.path(&object)).unwrap();
    desk.audit(&["--name", "app"]).good();
    desk.audit(&["--name", "os"]).differs().has("1 missing");
    // An update keeps the previous image, which may name any object.
    desk.unpack("os.sealift", &[]).good();
    fs::write(desk.path("os/etc/small"), "another\n").unwrap();
    desk.pack("os", "os-2.sealift", 2, &["--composefs"]);
    desk.unpack("os-2.sealift", &[]).good();
    let found = json(&desk.audit(&["--json"]).good().out);
    assert_eq!(found["extra_known"], Value::Bool(false));
}

#[test]
fn what_is_refused() {
    let desk = Store::unpacked();
    desk.sealift(&["audit", "composefs:store"]).refused(3, "trusted key");
    desk.sealift(&["audit", "composefs:nowhere", "--allow-unsigned"]).refused(2, "no composefs store");
    for option in [&["--path", "etc"][..], &["--ignore", "mtime"], &["--exclude", "x"], &["--one-file-system"]] {
        desk.audit(option).refused(2, "is for installed trees");
    }
    desk.sealift(&["diff", "composefs:store", "os.sealift"]).refused(2, "use `sealift audit`");
    let pack = ["pack", "os", "-o", "no.sealift", "--name", "os", "--bundle-version", "9", "--base", "composefs:store"];
    desk.sealift(&pack).refused(2, "a store cannot be a base for pack");
    // A record is only trusted as far as it is signed.
    let kept = desk.path("store/sealift/state/os/index");
    let mut bytes = fs::read(&kept).unwrap();
    let at = bytes.len() / 3;
    bytes[at] ^= 1;
    fs::write(&kept, bytes).unwrap();
    desk.audit(&[]).refused(1, "the file is damaged");
}

#[test]
fn a_store_without_its_objects() {
    let desk = Store::unpacked();
    fs::remove_dir_all(desk.path("store/objects")).unwrap();
    desk.audit(&[]).differs().has("missing");
    assert!(!desk.path("store/objects").exists(), "reading a store changes nothing in it");
    desk.unpack("os.sealift", &[]).good();
    desk.audit(&[]).good();
}
