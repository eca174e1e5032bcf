//! composefs stores with sealed objects, and trees mounted from them: the kernel verifies each byte.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::mount::{UnmountFlags, unmount};
use sealift_desk::noise;
use sealift_verify::fsverity;

use super::unpack::{ANYBODY, Publisher, assert_sealed};
use crate::disk::{Disk, PAGE};

/// EIO
const IO_ERROR: i32 = 5;
const MOUNTED: &str = "/tmp/mounted";

/// A mounted tree, unmounted on drop.
struct Mount;

impl Mount {
    /// Mounts with `sealift`, which must print `says` about who checked the objects.
    fn new(desk: &Disk, store: &str, says: &str) -> Self {
        fs::create_dir_all(MOUNTED).expect("a directory");
        let said = desk.good(&format!("mount composefs:{store} os {MOUNTED} {ANYBODY}"));
        let mount = Self;
        assert!(said.contains(says), "{said}");
        mount
    }

    fn read(path: &str) -> std::io::Result<Vec<u8>> {
        fs::read(Path::new(MOUNTED).join(path))
    }

    /// Returns the kernel's mount information, such as options.
    fn options() -> String {
        let mounts = fs::read_to_string("/proc/self/mounts").expect("the kernel says");
        mounts.lines().find(|line| line.contains(MOUNTED)).expect("it is mounted").to_owned()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = unmount(MOUNTED, UnmountFlags::empty());
    }
}

/// Checks that a mount is refused, and nothing is mounted.
fn assert_refused(desk: &Disk, store: &str, status: i32, why: &str) {
    fs::create_dir_all(MOUNTED).expect("a directory");
    desk.bad(&format!("mount composefs:{store} os {MOUNTED} {ANYBODY}"), status, why);
    assert_eq!(fs::read_dir(MOUNTED).expect("a directory").count(), 0);
}

const SEALED: &str = "the kernel checks each byte";

pub(crate) fn stores(desk: &Disk) {
    for hash in ["sha256", "sha512"] {
        let publisher = Publisher::new(desk);
        let store = format!("store-{hash}");
        let pack = |version: u64| {
            let bundle = format!("/tmp/{version}.sealift");
            let options = format!("--name os --level 1 --quiet --composefs={hash}");
            desk.good(&format!("pack --force /tmp/tree -o {bundle} --bundle-version {version} {options}"));
            bundle
        };
        desk.good(&format!("unpack {} composefs:{store} --seal require {ANYBODY}", pack(1)));
        assert_sealed(&desk.path(&store).join("objects"), true);
        let mount = Mount::new(desk, &store, SEALED);
        assert!(Mount::options().contains("verity=require"), "{}", Mount::options());
        for path in ["usr/bin/hello", "usr/lib/large", "usr/lib/small", "usr/lib/linked", "etc/os-release", "etc/empty"]
        {
            let packed = fs::read(Path::new("/tmp/tree").join(path)).expect("a file");
            assert!(Mount::read(path).expect("a file") == packed, "{path}");
        }
        drop(mount);

        // Sealed objects are kept, and new ones are sealed as well.
        publisher.write("usr/lib/small", &noise(9, 20_000));
        desk.good(&format!("unpack {} composefs:{store} {ANYBODY}", pack(2)));
        assert_sealed(&desk.path(&store).join("objects"), true);
        let mount = Mount::new(desk, &store, SEALED);
        assert!(Mount::read("usr/lib/small").expect("a file") == noise(9, 20_000));
        drop(mount);
        fs::remove_dir_all(desk.path(&store)).expect("removed");
    }
}

/// Imports a tree with a file of this content into a new store, and returns the file's object.
pub(crate) fn take(desk: &Disk, store: &str, content: &[u8]) -> PathBuf {
    let publisher = Publisher::new(desk);
    publisher.write("usr/lib/object", content);
    // A name that is unique among the images on the disk.
    publisher.write(&format!("etc/{store}"), b"");
    let options = "--name os --bundle-version 1 --level 1 --quiet --composefs";
    desk.good(&format!("pack --force /tmp/tree -o /tmp/store.sealift {options}"));
    desk.good(&format!("unpack /tmp/store.sealift composefs:{store} --seal require {ANYBODY}"));
    let line = format!("digest {}", Path::new("/tmp/tree/usr/lib/object").display());
    let said = desk.good(&line);
    let digest = said.strip_prefix("sha256:").and_then(|text| text.get(..64)).expect("a digest");
    desk.path(store).join("objects").join(&digest[..2]).join(&digest[2..])
}

/// Writes to the disk below the file system: mounted content is right or unreadable.
pub(crate) fn tampered(desk: &Disk) {
    let content = noise(2004, 300_000);
    let object = take(desk, "tampered-store", &content);
    assert!(object.exists());
    desk.flip(&content[10 * PAGE..11 * PAGE]);
    let mount = Mount::new(desk, "tampered-store", SEALED);
    assert_eq!(Mount::read("usr/lib/object").expect_err("a page is changed").raw_os_error(), Some(IO_ERROR));
    assert_eq!(Mount::read("etc/os-release").expect("others are as they were"), b"ID=example\n");
    drop(mount);
    let mut changed = content[10 * PAGE..11 * PAGE].to_vec();
    changed[100] ^= 1;
    desk.flip(&changed);
    let mount = Mount::new(desk, "tampered-store", SEALED);
    assert!(Mount::read("usr/lib/object").expect("it is whole again") == content);
    drop(mount);

    // The image itself; its pages contain names.
    let image = fs::read(desk.path("tampered-store/images/refs/os/main")).expect("an image");
    let page = image.chunks(PAGE).find(|page| contains(page, b"tampered-store")).expect("names lie in a page");
    desk.flip(page);
    assert_refused(desk, "tampered-store", 2, "os error 5");
    fs::remove_dir_all(desk.path("tampered-store")).expect("removed");
}

/// A writer of the store replaces an object.
pub(crate) fn replaced(desk: &Disk) {
    let content = noise(2005, 30_000);
    let object = take(desk, "replaced-store", &content);
    let replace = |with: &[u8], is_sealed: bool| {
        fs::remove_file(&object).expect("removed");
        fs::write(&object, with).expect("a file");
        if is_sealed {
            desk.good(&format!("seal {}", object.display()));
        }
    };
    // While mounted: the kernel does not open it.
    let mount = Mount::new(desk, "replaced-store", SEALED);
    replace(&noise(2006, 30_000), true);
    desk.drop_caches();
    assert_eq!(Mount::read("usr/lib/object").expect_err("it is another").raw_os_error(), Some(IO_ERROR));
    drop(mount);
    // Before mounting: only this object cannot be opened, even if nothing but its seal is missing.
    for (with, is_sealed) in [(noise(2006, 30_000), true), (noise(2006, 30_000), false), (content.clone(), false)] {
        replace(&with, is_sealed);
        let mount = Mount::new(desk, "replaced-store", SEALED);
        assert_eq!(Mount::read("usr/lib/object").expect_err("it is not as named").raw_os_error(), Some(IO_ERROR));
        assert_eq!(Mount::read("etc/os-release").expect("others are as they were"), b"ID=example\n");
        drop(mount);
    }
    // Unpacking again replaces wrong objects, and seals unsealed ones.
    replace(&noise(2006, 30_000), true);
    desk.good(&format!("unpack /tmp/store.sealift composefs:replaced-store --rehash {ANYBODY}"));
    fsverity::measure(File::open(&object).expect("it can be opened")).expect("it is sealed");
    let mount = Mount::new(desk, "replaced-store", SEALED);
    assert!(Mount::read("usr/lib/object").expect("a file") == content);
    drop(mount);
    fs::remove_dir_all(desk.path("replaced-store")).expect("removed");
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
