//! A mounted tree is the one that was packed.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};

use rustix::fs::{CWD, FileType, Mode, SeekFrom, XattrFlags, makedev, mknodat, seek, setxattr};
use rustix::process::Signal;
use sealift_desk::{Desk, noise};

use crate::mounted::{can_mount, desk, mount, pack, refused};

/// An access list that lets user 1234 read: version 2, then tag, permissions and id of each entry.
const ACL: &[u8] = b"\x02\0\0\0\
    \x01\0\x06\0\xff\xff\xff\xff\x02\0\x04\0\xd2\x04\0\0\x04\0\x04\0\xff\xff\xff\xff\
    \x10\0\x04\0\xff\xff\xff\xff\x20\0\0\0\xff\xff\xff\xff";

/// Creates a tree with everything that a bundle can hold.
fn everything(desk: &Desk) {
    let at = |path: &str| desk.path("tree").join(path);
    desk.write("tree/bin/big", noise(1, 5_000_000));
    for len in [0, 1, 4095, 4096, 4097, 70_000] {
        desk.write(&format!("tree/etc/len-{len}"), noise(2, len));
        desk.write(&format!("tree/a b/\u{fc}/same-{len}"), noise(2, len));
    }
    // More names than fit into one answer to the kernel.
    for number in 0..2000 {
        desk.write(&format!("tree/many/a-name-of-some-length-{number}"), number.to_string());
    }
    for folder in ["empty", "dev"] {
        fs::create_dir(at(folder)).unwrap();
    }
    fs::hard_link(at("bin/big"), at("etc/linked")).unwrap();
    symlink("../x", at("bin/link")).unwrap();
    symlink("y".repeat(4000), at("bin/long-link")).unwrap();
    File::create(at("etc/hole")).unwrap().set_len(3 << 20).unwrap();
    File::create(at("etc/sparse")).unwrap().write_all_at(b"end", 6 << 20).unwrap();
    for (name, value) in
        [("user.note", &b"value"[..]), ("trusted.overlay.opaque", b"y"), ("system.posix_acl_access", ACL)]
    {
        setxattr(at("etc/len-4096"), name, value, XattrFlags::empty()).unwrap();
    }
    let node = |path: &str, kind, device| {
        mknodat(CWD, at(path), kind, Mode::from_raw_mode(0o644), device).unwrap();
    };
    node("dev/fifo", FileType::Fifo, 0);
    node("dev/socket", FileType::Socket, 0);
    node("dev/null", FileType::CharacterDevice, makedev(1, 3));
    node("dev/loop", FileType::BlockDevice, makedev(7, 300));
    fs::set_permissions(at("bin/big"), fs::Permissions::from_mode(0o4755)).unwrap();
    std::os::unix::fs::lchown(at("etc/len-70000"), Some(100_000), Some(5)).unwrap();
    let long_ago = std::time::UNIX_EPOCH - std::time::Duration::new(1000, 500);
    File::open(at("etc/len-1")).unwrap().set_modified(long_ago).unwrap();
}

#[test]
fn a_mounted_tree_is_the_one_that_was_packed() {
    let Some(desk) = can_mount().then(desk) else { return };
    everything(&desk);
    pack(&desk, "os.sealift", 7, "tree --xattrs trusted.*");
    for options in ["", "--cache 0 --jobs 1", "--jobs 8"] {
        let mounted = mount(&desk, format!("os.sealift {options}").trim_end());
        desk.assert_same("tree", "mnt");
        desk.assert_same("mnt", "tree");
        mounted.assert_no_faults();
    }
    let _mounted = mount(&desk, "os.sealift");
    for path in ["etc", "etc/hole", "etc/len-1", "bin/big", "bin/link", "dev/loop", "many", "a b"] {
        let [is, was] = ["mnt", "tree"].map(|tree| fs::symlink_metadata(desk.path(tree).join(path)).unwrap());
        assert_eq!(is.mode(), was.mode(), "{path}");
        assert_eq!((is.mtime(), is.mtime_nsec(), is.rdev()), (was.mtime(), was.mtime_nsec(), was.rdev()), "{path}");
        if !is.is_dir() {
            assert_eq!((is.nlink(), is.size()), (was.nlink(), was.size()), "{path}");
        }
    }
    let subdirectories = fs::read_dir(desk.path("mnt")).unwrap().count();
    assert_eq!(fs::metadata(desk.path("mnt")).unwrap().nlink(), 2 + u64::try_from(subdirectories).unwrap());
    assert!(fs::symlink_metadata(desk.path("mnt/dev/socket")).unwrap().file_type().is_socket());
    let inode = |path: &str| fs::metadata(desk.path("mnt").join(path)).unwrap().ino();
    assert_eq!(inode("bin/big"), inode("etc/linked"));
}

#[test]
fn holes_are_holes() {
    let Some(desk) = can_mount().then(desk) else { return };
    everything(&desk);
    pack(&desk, "os.sealift", 7, "tree");
    let _mounted = mount(&desk, "os.sealift");
    let sparse = File::open(desk.path("mnt/etc/sparse")).unwrap();
    assert_eq!(sparse.metadata().unwrap().blocks(), 8);
    assert_eq!(seek(&sparse, SeekFrom::Data(5)).unwrap(), 6 << 20);
    assert_eq!(seek(&sparse, SeekFrom::Hole(5)).unwrap(), 5);
    assert_eq!(seek(&sparse, SeekFrom::Hole(6 << 20)).unwrap(), (6 << 20) + 3);
    let hole = File::open(desk.path("mnt/etc/hole")).unwrap();
    assert_eq!(hole.metadata().unwrap().blocks(), 0);
    assert!(seek(&hole, SeekFrom::Data(0)).is_err());
}

#[test]
fn one_ref_is_the_root_and_several_are_directories() {
    let Some(desk) = can_mount().then(desk) else { return };
    for (name, content) in [("a", "first"), ("b", "second"), ("c", "third")] {
        desk.write(&format!("{name}/file"), content);
    }
    pack(&desk, "os.sealift", 7, "app/x86/main=a app/main=b os=c");
    let mounted = mount(&desk, "os.sealift");
    for (path, tree) in [("app/x86/main", "a"), ("app/main", "b"), ("os", "c")] {
        desk.assert_same(tree, &format!("mnt/{path}"));
        let inode = |path: &std::path::Path| fs::metadata(path).unwrap().ino();
        let at = desk.path("mnt").join(path);
        assert_eq!(inode(&at.join("..")), inode(at.parent().unwrap()), "{path}");
    }
    assert_eq!(desk.names("mnt"), ["app", "os"]);
    assert_eq!(desk.names("mnt/app"), ["main", "x86"]);
    assert!(fs::read(desk.path("mnt/app/none")).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound));
    mounted.signal(Signal::TERM);
    mounted.ends_well();

    let mounted = mount(&desk, "os.sealift --ref app/main");
    desk.assert_same("b", "mnt");
    drop(mounted);
    let mounted = mount(&desk, "os.sealift --ref app/main --ref os");
    assert_eq!(desk.names("mnt"), ["app", "os"]);
    assert_eq!(desk.names("mnt/app"), ["main"]);
    drop(mounted);
    let mounted = mount(&desk, "os.sealift --ref os --ref os");
    desk.assert_same("c", "mnt");
    drop(mounted);
    refused(&desk, "mount os.sealift mnt --trust signers --ref none", 2, "the bundle has no ref none");
}

/// The kernel has 12 bits for a major number: 4104 must not become 8, which would be a disk.
#[test]
fn a_device_that_linux_cannot_have_is_no_other_one() {
    let Some(desk) = can_mount().then(desk) else { return };
    let mut archive = tar::Builder::new(Vec::new());
    for (name, major) in [("disk", 8), ("none", 4104)] {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Block);
        header.set_device_major(major).unwrap();
        header.set_device_minor(0).unwrap();
        header.set_mode(0o600);
        header.set_size(0);
        archive.append_data(&mut header, name, &[][..]).unwrap();
    }
    desk.write("tree.tar", archive.into_inner().unwrap());
    pack(&desk, "os.sealift", 7, "tar:tree.tar");
    for options in ["", " --dev-suid"] {
        let mounted = mount(&desk, &format!("os.sealift{options}"));
        let device = |name: &str| fs::symlink_metadata(desk.path("mnt").join(name)).unwrap().rdev();
        assert_eq!((device("disk"), device("none")), (makedev(8, 0), makedev(0xfff, 0xf_ffff)));
        assert!(File::open(desk.path("mnt/none")).is_err());
        drop(mounted);
    }
}

#[test]
fn a_delta_is_mounted_over_its_base() {
    let Some(desk) = can_mount().then(desk) else { return };
    everything(&desk);
    pack(&desk, "2.sealift", 2, "tree --xattrs trusted.*");
    desk.good("unpack 2.sealift target --trust signers --state floors");
    let mut big = noise(1, 5_000_000);
    big[3_000_000] ^= 1;
    desk.write("tree/bin/big", &big);
    desk.write("tree/etc/new", "new");
    pack(&desk, "3.sealift", 3, "tree --xattrs trusted.* --base 2.sealift --trust signers");
    for arguments in
        ["2.sealift 3.sealift", "3.sealift 2.sealift", "3.sealift --base 2.sealift", "3.sealift --base target"]
    {
        let mounted = mount(&desk, arguments);
        desk.assert_same("tree", "mnt");
        mounted.assert_no_faults();
    }
    refused(&desk, "mount 3.sealift mnt --trust signers", 4, "is a delta");
    refused(&desk, "mount 2.sealift mnt --base target --trust signers", 2, "is a full bundle");
}

#[test]
fn many_read_at_once() {
    let Some(desk) = can_mount().then(desk) else { return };
    for number in 0..40 {
        desk.write(&format!("tree/{number}"), noise(number, 200_000));
    }
    pack(&desk, "os.sealift", 7, "tree --chunk-size 256KiB");
    // The cache holds less than two chunks: blocks are decoded again and again.
    let mounted = mount(&desk, "os.sealift --cache 300k --jobs 3");
    std::thread::scope(|scope| {
        for reader in 0..8 {
            let desk = &desk;
            scope.spawn(move || {
                for step in 0..40 {
                    let number = (step * 7 + reader * 5) % 40;
                    assert!(desk.read(&format!("mnt/{number}")) == noise(number, 200_000), "{number}");
                }
            });
        }
    });
    mounted.assert_no_faults();
}
