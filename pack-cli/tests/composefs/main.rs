//! composefs stores on the command line: what is imported, refused, replaced and mounted. Mounting needs root, erofs and overlayfs; `cargo xtask vm`
//! tests kernels with fs-verity.
#![allow(clippy::unwrap_used, reason = "tests")]

mod audited;
mod resumed;
mod state;
mod sticks;
mod store;

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::process::Command;
use std::time::Duration;

use composefs::fsverity::Sha256HashValue;
use composefs::repository::Repository;
use rustix::fs::CWD;
use sealift::seal::{Algorithm, Parameters, digest};
use sealift::{Head, Input, Limits, Progress};
use sealift_desk::skipped;
use store::{Said, Store};

/// Every kind of file that an image can hold, with contents around the size limits, and a second version of it.
#[test]
fn a_tree_comes_back_as_it_was() {
    for hash in ["sha256", "sha512"] {
        let desk = Store::new();
        desk.nasty_tree("os");
        let images = format!("--composefs={hash}");
        desk.pack("os", "os.sealift", 1, &[&*images]);
        desk.unpack("os.sealift", &[]).good().has(&format!("os/main is {hash}:"));
        desk.mounted("os", |desk| desk.assert_same("os", "mnt"));

        fs::write(desk.path("os/etc/small"), "another\n").unwrap();
        fs::write(desk.path("os/etc/new"), vec![7; 100_000]).unwrap();
        desk.pack("os", "os-2.sealift", 2, &[&*images]);
        desk.unpack("os-2.sealift", &[]).good().has("1 object of ");
        desk.mounted("os/main", |desk| desk.assert_same("os", "mnt"));
        desk.unpack("os-2.sealift", &[]).good().has("no new objects");
    }
}

/// The image has the same bytes as that of composefs's own program for the same files.
#[test]
fn images_are_those_of_mkcomposefs() {
    let Some(program) = std::env::var_os("SEALIFT_MKCOMPOSEFS") else {
        return skipped("needs mkcomposefs in SEALIFT_MKCOMPOSEFS; cargo xtask ci readers fetches one");
    };
    let desk = Store::new();
    desk.nasty_tree("os");
    // That program takes a file with two names for two files.
    fs::remove_file(desk.path("os/bin/linked")).unwrap();
    desk.pack("os", "os.sealift", 1, &["--composefs"]);
    desk.unpack("os.sealift", &[]).good();
    let made = Command::new(program).args(["--min-version=1", "os", "os.img"]).current_dir(desk.path("")).status();
    assert!(made.unwrap().success());
    let ours = fs::read(desk.path("store/images/refs/os/main")).unwrap();
    assert!(ours == fs::read(desk.path("os.img")).unwrap(), "the images differ");
}

/// The digests in the vector are those of the images of its trees.
#[test]
fn the_vectors_images_are_what_they_say() {
    let desk = Store::new();
    let vector = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../spec/vectors/good-images.vec")).unwrap();
    let at = vector.windows(2).position(|pair| pair == b"\n\n").unwrap() + 2;
    fs::write(desk.path("two.sealift"), &vector[at..]).unwrap();
    desk.unpack("two.sealift", &[]).good().has("test/app/debug is sha256:").has("test/app/main is sha256:");
    fs::create_dir(desk.path("other")).unwrap();
    desk.sealift(&["unpack", "two.sealift", "composefs:store", "--allow-unsigned", "--ref", "app/none"])
        .refused(2, "no ref app/none");
}

/// The digest in the root is compared before anything gets a name.
#[test]
fn an_image_that_is_not_the_trees_is_refused() {
    let desk = Store::packed();
    let head = Input::open(&desk.path("os.sealift")).unwrap().open_bundle(Limits::default()).unwrap().head;
    let mut root = head.root().clone();
    let mut other = root.images[0].digest.as_bytes().to_vec();
    other[31] ^= 1;
    root.images[0].digest = sealift::seal::FileDigest::new(Algorithm::Sha256, &other).unwrap();
    let wrong = Head::new(root, Vec::new(), head.area_len()).unwrap().encode();
    let bytes = fs::read(desk.path("os.sealift")).unwrap();
    fs::write(desk.path("wrong.sealift"), [&wrong, &bytes[wrong.len()..]].concat()).unwrap();
    desk.unpack("wrong.sealift", &[]).refused(1, "a composefs image that it records");
    assert_eq!(desk.objects(), Vec::<String>::new());
    assert!(!desk.path("store/images").exists() && !desk.path("store/sealift/state").exists());
    desk.unpack("os.sealift", &[]).good();
}

#[test]
fn a_store_keeps_the_order_of_access() {
    let desk = Store::new();
    for name in ["a", "b", "c"] {
        fs::create_dir_all(desk.path("os")).unwrap();
        fs::write(desk.path("os").join(name), name).unwrap();
    }
    let kept = "# sealift order 1\nc\na\n";
    fs::write(desk.path("order"), kept).unwrap();
    desk.pack("os", "os.sealift", 1, &["--composefs", "--order", "order"]);
    desk.unpack("os.sealift", &[]).good();
    assert_eq!(desk.run(&["order", "export", "composefs:store"]).good().out, kept);
    desk.pack("os", "os-2.sealift", 2, &["--order-from", "composefs:store"]);
    assert_eq!(desk.run(&["order", "export", "os-2.sealift"]).good().out, kept);
    desk.run(&["order", "export", "composefs:nowhere"]).refused(2, "nowhere: there is no composefs store");
}

#[test]
fn what_is_missing_or_wrong_is_said() {
    let desk = Store::new();
    desk.nasty_tree("os");
    desk.pack("os", "bare.sealift", 1, &[]);
    desk.unpack("bare.sealift", &[]).refused(2, "has no composefs image");
    assert!(!desk.path("store").exists());
    desk.pack("os", "os.sealift", 1, &["--composefs"]);
    desk.unpack("os.sealift", &["--update"]).refused(2, "for directories");
    fs::create_dir_all(desk.path("full/thing")).unwrap();
    desk.sealift(&["unpack", "os.sealift", "composefs:full", "--allow-unsigned"]).refused(2, "not a composefs store");
    desk.sealift(&["mount", "composefs:store", "os", "."]).refused(2, "unpack a bundle to it first");
    desk.unpack("os.sealift", &["--dry-run"]).good().has("nothing was written");
    assert!(!desk.path("store").exists());
    desk.unpack("os.sealift", &[]).good();
    desk.pack("os", "other.sealift", 2, &["--composefs=sha512"]);
    desk.unpack("other.sealift", &[]).refused(2, "--composefs=sha256");
    desk.sealift(&["mount", "composefs:store", "app", "."]).refused(2, "installed: os");
    // The bundle has no signature.
    desk.sealift(&["mount", "composefs:store", "os", "."]).refused(3, "trusted key");
}

/// If the file system cannot seal, `require` writes nothing, and `try` says so.
#[test]
fn sealing_is_as_wished() {
    let desk = Store::new();
    if sealift::seal::is_supported(&desk.path(".")).unwrap() {
        return skipped("fs-verity is here");
    }
    desk.nasty_tree("os");
    desk.pack("os", "os.sealift", 1, &["--composefs"]);
    desk.unpack("os.sealift", &["--seal", "require"]).refused(2, "fs-verity");
    assert!(!desk.path("store").exists());
    desk.unpack("os.sealift", &["--seal", "try"]).good().has("not sealed");
}

/// An object with the right name but other content: mounting detects it, and unpacking again replaces it.
#[test]
fn an_object_that_was_changed_is_found_and_replaced() {
    let desk = Store::unpacked();
    let [first, .., last] = &desk.objects()[..] else { panic!("there are several") };
    let file = fs::File::options().write(true).open(desk.path(first)).unwrap();
    file.write_all_at(b"evil", 0).unwrap();
    fs::create_dir(desk.path("mnt")).unwrap();
    let mount = || desk.sealift(&["mount", "composefs:store", "os", "mnt", "--allow-unsigned"]);
    desk.sealift(&["mount", "composefs:store", "os", "mnt", "--cache", "1M"])
        .refused(2, "for a bundle, not for a store");
    mount().refused(1, "fs-verity digest");
    desk.unpack("os.sealift", &["--rehash"]).good().has("1 damaged object replaced");
    fs::write(desk.path(last), "short").unwrap();
    mount().refused(1, "fs-verity digest");
    // Its length reveals the damage.
    desk.unpack("os.sealift", &[]).good().has("1 damaged object replaced");
    fs::remove_file(desk.path(last)).unwrap();
    mount().refused(1, "is missing");
    desk.unpack("os.sealift", &[]).good().has("1 object of ");
    fs::remove_dir(desk.path("mnt")).unwrap();
    desk.mounted("os", |desk| desk.assert_same("os", "mnt"));
}

/// A delta bundle brings what the store lacks; contents that are inside images come from the record.
#[test]
fn a_delta_is_for_a_store_that_holds_its_base() {
    let desk = Store::new();
    desk.nasty_tree("os");
    desk.pack("os", "os-1.sealift", 1, &["--composefs"]);
    let mut big = fs::read(desk.path("os/bin/big")).unwrap();
    big[1_500_000] ^= 1;
    fs::write(desk.path("os/bin/big"), big).unwrap();
    fs::write(desk.path("os/etc/small"), "another\n").unwrap();
    desk.pack("os", "os-2.sealift", 2, &["--composefs", "--base", "os-1.sealift", "--allow-unsigned"]);
    desk.unpack("os-2.sealift", &[]).refused(4, "wrong base: this delta needs os version 1 (");
    desk.unpack("os-1.sealift", &[]).good();
    desk.unpack("os-2.sealift", &[]).good().has("1 object of ");
    desk.mounted("os", |desk| desk.assert_same("os", "mnt"));
    desk.unpack("os-2.sealift", &["--rehash"]).good().has("no new objects");
    // An object of the base that the delta needs was changed.
    let other = Store::new();
    fs::copy(desk.path("os-1.sealift"), other.path("os-1.sealift")).unwrap();
    fs::copy(desk.path("os-2.sealift"), other.path("os-2.sealift")).unwrap();
    other.unpack("os-1.sealift", &[]).good();
    for object in other.objects() {
        let file = fs::File::options().write(true).open(other.path(&object)).unwrap();
        file.write_all_at(b"evil", 0).unwrap();
    }
    other.unpack("os-2.sealift", &[]).refused(4, "use the full bundle");
    // The given base lacks the objects, not the new store.
    let line = ["unpack", "os-2.sealift", "composefs:new", "--base", "composefs:store", "--allow-unsigned"];
    other.sealift(&line).refused(4, "composefs:store: the delta needs files of its base");
    other.sealift(&line.map(|word| if word == "composefs:store" { "os-1.sealift" } else { word })).good();
}

/// If a run is killed at any moment, every object in the store matches its name, and another run completes the import.
#[test]
fn a_run_that_was_killed_is_completed() {
    let desk = Store::new();
    desk.nasty_tree("os");
    for number in 0..400_u32 {
        fs::write(desk.path(&format!("os/etc/{number}")), number.to_string().repeat(2000)).unwrap();
    }
    desk.pack("os", "os.sealift", 1, &["--composefs"]);
    let parameters = Parameters::default();
    for millis in [5, 20, 35, 50, 80, 120, 200] {
        let mut run = desk.command("unpack os.sealift composefs:store --allow-unsigned").spawn().unwrap();
        std::thread::sleep(Duration::from_millis(millis));
        run.kill().unwrap();
        run.wait().unwrap();
        for object in desk.objects() {
            let found = digest(&desk.path(&object), &parameters, &Progress::default()).unwrap().to_string();
            let name = object.strip_prefix("store/objects/").unwrap().replace('/', "");
            assert_eq!(found, format!("sha256:{name}"), "after {millis} ms");
        }
        let image = desk.path("store/images/refs/os/main");
        assert!(image.symlink_metadata().is_err() || fs::read(image).is_ok(), "a name leads nowhere");
    }
    desk.unpack("os.sealift", &[]).good();
    assert_eq!(fs::read_dir(desk.path("store/sealift/tmp")).unwrap().count(), 0, "the stages are gone");
    desk.mounted("os", |desk| desk.assert_same("os", "mnt"));
}

/// Two bundles are in one store, and share equal objects.
#[test]
fn bundles_share_a_store() {
    let desk = Store::packed();
    desk.pack("os", "app.sealift", 1, &["--composefs"]);
    desk.unpack("os.sealift", &[]).good();
    let before = desk.objects();
    let Said { out, .. } = desk.unpack("app.sealift", &[]).good();
    assert!(out.contains("no new objects"), "{out}");
    assert_eq!(desk.objects(), before);
    desk.mounted("app", |desk| desk.assert_same("os", "mnt"));
}

/// An image that was replaced is never parsed, neither by us nor by the kernel; unpacking again restores it.
#[test]
fn an_image_that_was_replaced_is_not_mounted() {
    let desk = Store::unpacked();
    let image = fs::canonicalize(desk.path("store/images/refs/os/main")).unwrap();
    let sound = fs::read(&image).unwrap();
    fs::create_dir(desk.path("mnt")).unwrap();
    let mount = || desk.sealift(&["mount", "composefs:store", "os", "mnt", "--allow-unsigned"]);
    let hostile: Vec<u8> = sound.iter().map(|byte| if *byte == 0 { 0xff } else { *byte }).collect();
    for content in [&hostile[..], &sound[..sound.len() / 2], b"", &[&sound[..], b"more"].concat()] {
        fs::write(&image, content).unwrap();
        mount().refused(1, "fs-verity digest");
    }
    fs::write(&image, &hostile).unwrap();
    desk.unpack("os.sealift", &["--rehash"]).good();
    assert!(fs::read(&image).unwrap() == sound);
}

/// composefs's own code, on which `cfsctl` is built, opens the store, misses nothing, would remove nothing, and detects changed objects.
#[test]
fn composefs_finds_the_store_sound() {
    let desk = Store::unpacked();
    fs::write(desk.path("os/etc/small"), "another, and longer than what an image holds within itself: ".repeat(2))
        .unwrap();
    desk.pack("os", "app.sealift", 1, &["--composefs"]);
    desk.unpack("app.sealift", &[]).good();

    let store = || Repository::<Sha256HashValue>::open_path(CWD, desk.path("store")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let fsck = || runtime.block_on(store().fsck()).unwrap();
    let found = fsck();
    assert!(found.is_ok(), "{:?}", found.errors());
    assert_eq!(found.objects_checked(), u64::try_from(desk.objects().len() + 2).unwrap());
    assert_eq!(found.images_checked(), 2);
    let mut names: Vec<_> = store().list_image_refs("").unwrap().into_iter().map(|(name, _)| name).collect();
    names.sort();
    assert_eq!(names, ["app/main", "os/main"]);
    let garbage = store().gc_dry_run(&[]).unwrap();
    assert_eq!((garbage.objects_removed, garbage.images_pruned), (0, 0));

    let [first, ..] = &desk.objects()[..] else { panic!("there is one") };
    fs::write(desk.path(first), "evil").unwrap();
    assert_eq!(fsck().objects_corrupted(), 1);
}
