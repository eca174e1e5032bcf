//! Block devices and images: they become one file, the same for equal content, and are not read while they are written to.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use sealift::Error;
use sealift::source::{OpenCache, Source, SourceOptions};
use sealift_desk::{Desk, Mounted, add_partition, as_root, has, noise, out, remove_partition, skipped, told};

/// Noise, zeros that a file need not have on the disk, zeros between data, and an end that is no whole block.
const LEN: u64 = (5 << 20) + 3 * 512;

/// A block device with the content of a file, until dropped.
struct Loop(String);

impl Loop {
    fn new(file: &Path) -> Option<Self> {
        let made = as_root("a loop device", || told(Command::new("losetup").args(["-f", "--show"]).arg(file)))?;
        match made {
            (Some(0), device) => Some(Self(device.trim().to_owned())),
            (_, said) => {
                skipped(&format!("needs a loop device: {said}"));
                None
            }
        }
    }

    fn path(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        out(Command::new("losetup").args(["-d", &self.0]));
    }
}

/// A desk with the file `disk.img`, which has holes.
fn desk() -> Desk {
    let desk = Desk::new();
    let file = File::create_new(desk.path("disk.img")).expect("a new file");
    file.set_len(LEN).expect("there is room");
    for (at, content) in [(0, noise(1, 100_000)), (1 << 20, vec![0; 300_000]), (3 << 20, noise(2, 1_000_000))] {
        file.write_all_at(&content, at).expect("there is room");
    }
    file.write_all_at(b"the end", LEN - 7).expect("there is room");
    desk
}

/// Packs a source, and returns the bundle.
#[track_caller]
fn packed(desk: &Desk, source: &str, more: &str) -> Vec<u8> {
    desk.good(&format!("pack {source} -o packed.sealift --force --name disk -q {more}"));
    desk.read("packed.sealift")
}

fn opened(path: &Path) -> Result<Source, Error> {
    Source::open_spec(path.as_os_str(), &SourceOptions::default(), 1)
}

#[test]
fn equal_content_gives_equal_bytes() {
    let desk = desk();
    let first = packed(&desk, "image:disk.img", "");
    let listed = desk.json("ls packed.sealift disk.img --json");
    let found = ["mode", "uid", "gid", "mtime", "mtime_ns", "size"].map(|field| listed[field].as_u64());
    assert_eq!(found, [0o644, 0, 0, 0, 0, LEN].map(Some), "{listed}");
    // Another file, without holes, with other metadata.
    desk.write("other/file", desk.read("disk.img"));
    desk.set_mode("other/file", 0o600);
    assert!(packed(&desk, "image:disk.img=other/file", "") == first, "the bundles differ");
    assert!(packed(&desk, "image:other/file", "") != first, "it has another name");
    // What changes metadata works as for other sources.
    packed(&desk, "os=image:other/file", "--owner 3:4 --mode g=");
    let listed = desk.json("ls packed.sealift file --json");
    assert_eq!(["mode", "uid", "gid"].map(|field| listed[field].as_u64()), [0o604, 3, 4].map(Some), "{listed}");
    assert_eq!(listed["ref"], "os");
}

#[test]
fn a_device_is_packed_as_its_content() {
    let desk = desk();
    let Some(device) = Loop::new(&desk.path("disk.img")) else { return };
    let of_file = packed(&desk, "image:disk.img", "");
    let id = |name: &str| desk.json(&format!("ls packed.sealift {name} --json"))["id"].clone();
    let expected = id("disk.img");
    assert!(packed(&desk, &format!("image:disk.img={}", device.0), "") == of_file, "the bundles differ");
    for spec in [device.0.clone(), format!("image:{}", device.0)] {
        packed(&desk, &spec, "");
        let name = format!("{}.img", device.path().file_name().expect("it is a device").display());
        assert_eq!(id(&name), expected, "{spec}");
    }
    // A link gives it a name that says what it is for.
    symlink(device.path(), desk.path("rootfs")).expect("a new link");
    packed(&desk, "rootfs", "");
    assert_eq!(id("rootfs.img"), expected);
    desk.good("unpack packed.sealift target --allow-unsigned -q");
    assert!(desk.read("target/rootfs.img") == desk.read("disk.img"), "another content");
    desk.says("pack rootfs -o dry.sealift --name disk --dry-run", "1 file, 5.24 MB");
}

#[test]
fn a_device_is_compared() {
    let desk = desk();
    let Some(device) = Loop::new(&desk.path("disk.img")) else { return };
    packed(&desk, "image:disk.img", "");
    let compare = format!("diff packed.sealift image:disk.img={} --exit-code", device.0);
    desk.good(&compare);
    device_file(&device).write_all_at(b"other", 5).expect("it is written");
    desk.refused(&compare, 1, "disk.img");
}

fn device_file(device: &Loop) -> File {
    File::options().write(true).open(device.path()).expect("root may")
}

#[test]
fn what_is_mounted_read_write_is_refused() {
    let desk = Desk::new();
    let Some(()) = as_root("mounts", || ()) else { return };
    if !has(&["mkfs.ext4"]) {
        return;
    }
    File::create_new(desk.path("disk.img")).expect("a new file").set_len(16 << 20).expect("there is room");
    out(Command::new("mkfs.ext4").arg("-q").arg(desk.path("disk.img")));
    let Some(device) = Loop::new(&desk.path("disk.img")) else { return };
    let point = desk.path("a mount");
    fs::create_dir(&point).expect("a new folder");
    let mount = |words: &[&str]| out(Command::new("mount").args(words).arg(&point));
    let pack = format!("pack {} -o packed.sealift --force --name disk -q", device.0);
    let is_refused = |at: &Path| {
        let why = format!(
            "{} is mounted read-write at {}: unmount it, or remount it read-only with  mount -o remount,ro {}",
            device.0,
            at.display(),
            at.display()
        );
        desk.refused(&pack, 2, &why);
    };
    mount(&[&device.0]);
    let mounted = Mounted::at(point.clone());
    is_refused(&point);
    // The file system may be written to, although not here.
    out(Command::new("mount").args(["-o", "remount,bind,ro"]).arg(&point));
    is_refused(&point);
    out(Command::new("mount").args(["-o", "remount,ro"]).arg(&point));
    desk.good(&pack);
    drop(mounted);
    mount(&["-o", "ro", &device.0]);
    let mounted = Mounted::at(point.clone());
    desk.good(&pack);
    drop(mounted);

    // A part of it.
    let sectors = (16 << 20) / 512 - 8;
    let (status, said) = add_partition(&device.0, 1, 8, sectors);
    if status != Some(0) {
        return skipped(&format!("needs partitions of loop devices: {said}"));
    }
    let part = format!("{}p1", device.0);
    out(Command::new("mkfs.ext4").args(["-q", "-F", &part]));
    mount(&[&part]);
    let mounted = Mounted::at(point.clone());
    is_refused(&point);
    drop(mounted);
    assert_eq!(remove_partition(&device.0, 1).0, Some(0));
    desk.good(&pack);
}

#[test]
fn a_device_that_changes_is_reported() {
    let desk = desk();
    let Some(device) = Loop::new(&desk.path("disk.img")) else { return };
    // What waits to be written when it is opened is no change.
    device_file(&device).write_all_at(b"before", 0).expect("it is written");
    let source = opened(device.path()).expect("a source");
    let check = || {
        let content = source.open(0, &mut OpenCache::default()).expect("it is open");
        content.read_at(&mut [0; 4096], 0).and_then(|()| content.finish())
    };
    device_file(&device).sync_all().expect("it is written");
    check().expect("it is the same");
    // Through another name of it, whose times are others.
    let other = desk.path("other-name");
    let stat = rustix::fs::stat(device.path()).expect("it is there");
    let (kind, mode) = (rustix::fs::FileType::BlockDevice, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR);
    rustix::fs::mknodat(rustix::fs::CWD, &other, kind, mode, stat.st_rdev).expect("root may");
    let file = File::options().write(true).open(&other).expect("root may");
    file.write_all_at(b"after", 8192).expect("it is written");
    file.sync_all().expect("it is written");
    assert!(matches!(check(), Err(Error::Changed { .. })));
}

#[test]
fn a_device_that_is_written_to_is_reported_before_that_reaches_it() {
    let desk = desk();
    let Some(device) = Loop::new(&desk.path("disk.img")) else { return };
    let source = opened(device.path()).expect("a source");
    device_file(&device).write_all_at(b"after", 8192).expect("it is in memory");
    let content = source.open(0, &mut OpenCache::default()).expect("it is open");
    assert!(matches!(content.finish(), Err(Error::Changed { .. })));
}

#[test]
fn a_read_error_names_device_and_offset() {
    let desk = Desk::new();
    desk.write("disk.img", noise(3, 5 << 20));
    // The program itself is loaded with such calls, too.
    let failing = ["-P", "disk.img", "-e", "trace=pread64", "-e", "inject=pread64:error=EIO:when=2+"];
    let pack = "pack image:disk.img -o packed.sealift --name disk -q --jobs 1";
    let Some(mut strace) = desk.strace(&failing, pack) else { return };
    let (status, said) = told(&mut strace);
    let why = "cannot read disk.img at byte 2097152: Input/output error";
    assert!(status == Some(2) && said.contains(why), "{status:?} {said}");
    assert!(!desk.path("packed.sealift").exists());
}

/// A part of the device that cannot be read, in the middle of what is read at once.
#[test]
fn a_bad_sector_is_found() {
    let desk = Desk::new();
    desk.write("disk.img", noise(4, 4 << 20));
    let file = desk.path("disk.img");
    let Some(device) = Loop::new(&file) else { return };
    // Without it, what the file lacks reads as zeros.
    if told(Command::new("losetup").args(["--direct-io=on", &device.0])).0 != Some(0) {
        return skipped("needs direct input and output of loop devices");
    }
    File::options().write(true).open(&file).expect("it is ours").set_len(3 << 20).expect("it is ours");
    let why = format!("cannot read {} at byte {}: Input/output error", device.0, 3 << 20);
    desk.refused(&format!("pack {} -o packed.sealift --name disk -q", device.0), 2, &why);
}

#[test]
fn what_has_no_end_is_refused() {
    let desk = Desk::new();
    out(Command::new("mkfifo").arg(desk.path("fifo")));
    let _socket = UnixListener::bind(desk.path("socket")).expect("a new socket");
    fs::create_dir(desk.path("folder")).expect("a new folder");
    let pack = |source: &str| format!("pack {source} -o packed.sealift --name disk");
    for (source, why) in [
        ("/dev/null", "/dev/null is a character device"),
        ("fifo", "fifo is a pipe"),
        ("socket", "socket is neither a directory, a regular file nor a block device"),
    ] {
        desk.refused(&pack(source), 2, why);
        desk.refused(&pack(&format!("image:{source}")), 2, why);
    }
    desk.refused(&pack("image:folder"), 2, "folder is a directory, and an image is a file or a block device");
    desk.refused(&pack("image:"), 2, "not image:FILE or image:NAME=FILE");
    desk.refused(&pack("image:-"), 2, "not standard input");
    desk.refused(&pack("image:nowhere"), 2, "cannot read nowhere: ");
    desk.write("disk.img", "content");
    desk.refused(&pack("image:..=disk.img"), 2, "has a name for the tree that is . or ..");
    packed(&desk, "image:./disk.img", "");
    desk.write("a=b", "content");
    packed(&desk, "image:./a=b", "");
    assert!(desk.good("ls packed.sealift").contains("a=b"));
}

#[test]
fn a_drive_without_a_medium_is_refused() {
    let Some(free) = as_root("a loop device", || told(Command::new("losetup").arg("-f"))) else { return };
    let path = PathBuf::from(free.1.trim());
    if free.0 != Some(0) || !path.exists() {
        return skipped("needs a free loop device");
    }
    match opened(&path) {
        Err(Error::Unexpected { problem, .. }) => assert!(problem.contains("without content"), "{problem}"),
        other => panic!("{}: {other:?}", String::from_utf8_lossy(path.as_os_str().as_bytes())),
    }
}
