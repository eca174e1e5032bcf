//! An image as a scratch root: writes go elsewhere, and flushes cost nothing.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::desk::{Desk, has, noise, wait};

/// The number of flushes that the test requests.
const FLUSHES: usize = 20;

#[test]
fn what_is_written_over_an_image_leaves_the_bundle_as_it_is() {
    if !has(&["nbdkit", "nbdsh"]) {
        return;
    }
    let desk = Desk::new();
    desk.write("disk.img", noise(1, 1 << 20));
    desk.pack("disk.img", "os.sealift");
    let bundle = desk.read("os.sealift");
    // Writes and reads of the client begin and end inside blocks.
    let script = "
before = open('disk.img', 'rb').read()
assert h.pread(200000, 100000) == before[100000:300000]
new = b'new' * 33333
h.pwrite(new, 150001)
h.flush()
after = before[:150001] + new + before[150001 + len(new):]
assert h.pread(200000, 100000) == after[100000:300000]
assert h.pread(1 << 19, 1 << 19) == before[1 << 19:]
";
    for _ in 0..2 {
        // The writes are gone with nbdkit.
        let serving = desk.serve(&["--filter=cow"], &["os.sealift"]);
        desk.nbdsh(&serving.uri(), script);
        assert_eq!(serving.end(), "");
    }
    assert!(desk.read("os.sealift") == bundle);
}

/// Loop-mounted file systems, unmounted on drop.
struct Mounts<'a> {
    desk: &'a Desk,
}

impl Drop for Mounts<'_> {
    fn drop(&mut self) {
        for (program, place) in [("umount", "root"), ("umount", "fuse")] {
            // They may already be unmounted, or never have been mounted.
            let _ = Command::new(program).arg("--lazy").arg(self.desk.path(place)).output();
        }
    }
}

#[test]
fn an_image_is_a_root_whose_flushes_reach_no_disk() {
    if !has(&["nbdkit", "nbdfuse", "strace"]) {
        return;
    }
    let is_root = rustix::process::geteuid().is_root();
    if !is_root || !["/dev/fuse", "/dev/loop-control"].iter().all(|device| Path::new(device).exists()) {
        return sealift_skipped::skipped("needs root, /dev/fuse and /dev/loop-control: mounts an image");
    }
    let desk = Desk::new();
    desk.write("tree/etc/os-release", "ID=example\n");
    desk.write("tree/usr/lib/library", noise(1, 3 << 20));
    desk.good("mkfs.ext4", &["-q", "-d", "tree", "disk.img", "64M"]);
    desk.pack("disk.img", "os.sealift");
    let bundle = desk.read("os.sealift");
    fs::create_dir(desk.path("fuse")).unwrap();
    fs::create_dir(desk.path("root")).unwrap();

    let options = ["--filter=stats", "--filter=cow"];
    let serving = desk.serve(&options, &["os.sealift", "statsfile=stats"]);
    let calls = Calls::of(&desk, &serving);
    let mounts = Mounts { desk: &desk };
    let mut fuse = desk.command("nbdfuse").args(["fuse/disk", &serving.uri()]).spawn().unwrap();
    wait(|| desk.path("fuse/disk").exists());
    desk.good("mount", &["-o", "loop", "fuse/disk", "root"]);
    assert_eq!(desk.read("root/etc/os-release"), b"ID=example\n");
    for number in 0..FLUSHES {
        let mut file = File::create(desk.path(&format!("root/{number}"))).unwrap();
        file.write_all(&noise(2, 100_000)).and_then(|()| file.sync_all()).unwrap();
    }
    desk.good("umount", &["root"]);
    desk.good("mount", &["-o", "loop", "fuse/disk", "root"]);
    assert!(desk.read("root/7") == noise(2, 100_000));
    assert!(desk.read("root/usr/lib/library") == noise(1, 3 << 20));
    desk.good("umount", &["root"]);
    desk.good("umount", &["fuse"]);
    fuse.wait().unwrap();
    drop(mounts);
    assert_eq!(serving.end(), "");

    let stats = String::from_utf8(desk.read("stats")).unwrap();
    let flushes = stats.lines().find_map(|line| line.strip_prefix("flush: ")?.split(' ').next()?.parse().ok());
    assert!(flushes.is_some_and(|flushes: usize| flushes >= FLUSHES), "{stats}");
    assert_eq!(calls.end(), "", "no flush goes further than nbdkit");
    assert!(desk.read("os.sealift") == bundle);
}

/// The system calls by which nbdkit writes to a disk permanently.
struct Calls {
    strace: std::process::Child,
    log: PathBuf,
}

impl Calls {
    fn of(desk: &Desk, serving: &crate::desk::Serving) -> Self {
        let log = desk.path("calls");
        let mut strace = desk.command("strace");
        strace.args(["--quiet=all", "--follow-forks", "--trace=fsync,fdatasync,msync,sync_file_range,syncfs,sync"]);
        strace.arg("--signal=none").arg("--output").arg(&log).arg(format!("--attach={}", serving.pid()));
        let strace = strace.spawn().unwrap();
        let status = format!("/proc/{}/status", serving.pid());
        wait(|| !fs::read_to_string(&status).unwrap().contains("TracerPid:\t0\n"));
        Self { strace, log }
    }

    /// Returns them when the process has ended.
    fn end(mut self) -> String {
        self.strace.wait().unwrap();
        fs::read_to_string(&self.log).unwrap()
    }
}
