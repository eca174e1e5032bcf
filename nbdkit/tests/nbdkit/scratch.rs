//! An image as a scratch root: writes go elsewhere, and flushes cost nothing.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use sealift_desk::{Desk, Mounted, has, is_root, noise, out, skipped, wait};

use crate::served::{desk, nbdsh, pack, serve};

/// The number of flushes that the test requests.
const FLUSHES: usize = 20;

#[test]
fn what_is_written_over_an_image_leaves_the_bundle_as_it_is() {
    let Some(desk) = has(&["nbdkit", "nbdsh"]).then(desk) else { return };
    desk.write("disk.img", noise(1, 1 << 20));
    pack(&desk, "disk.img", "os.sealift");
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
        let serving = serve(&desk, &["--filter=cow"], &["os.sealift"]);
        nbdsh(&desk, &serving.uri(), script);
        assert_eq!(serving.end(), "");
    }
    assert!(desk.read("os.sealift") == bundle);
}

#[test]
fn an_image_is_a_root_whose_flushes_reach_no_disk() {
    if !has(&["nbdkit", "nbdfuse", "strace"]) {
        return;
    }
    if !is_root() || !["/dev/fuse", "/dev/loop-control"].iter().all(|device| Path::new(device).exists()) {
        return skipped("needs root, /dev/fuse and /dev/loop-control: mounts an image");
    }
    let desk = desk();
    desk.write("tree/etc/os-release", "ID=example\n");
    desk.write("tree/usr/lib/library", noise(1, 3 << 20));
    out(desk.command_of("mkfs.ext4").args(["-q", "-d", "tree", "disk.img", "64M"]));
    pack(&desk, "disk.img", "os.sealift");
    let bundle = desk.read("os.sealift");
    fs::create_dir(desk.path("fuse")).unwrap();
    fs::create_dir(desk.path("root")).unwrap();

    let options = ["--filter=stats", "--filter=cow"];
    let serving = serve(&desk, &options, &["os.sealift", "statsfile=stats"]);
    let calls = Calls::of(&desk, &serving);
    // They are unmounted whatever happens.
    let mounts = ["root", "fuse"].map(|place| Mounted::at(desk.path(place)));
    let mut fuse = desk.command_of("nbdfuse").args(["fuse/disk", &serving.uri()]).spawn().unwrap();
    wait("it is mounted", || desk.path("fuse/disk").exists());
    out(desk.command_of("mount").args(["-o", "loop", "fuse/disk", "root"]));
    assert_eq!(desk.read("root/etc/os-release"), b"ID=example\n");
    for number in 0..FLUSHES {
        let mut file = File::create(desk.path(&format!("root/{number}"))).unwrap();
        file.write_all(&noise(2, 100_000)).and_then(|()| file.sync_all()).unwrap();
    }
    out(desk.command_of("umount").args(["root"]));
    out(desk.command_of("mount").args(["-o", "loop", "fuse/disk", "root"]));
    assert!(desk.read("root/7") == noise(2, 100_000));
    assert!(desk.read("root/usr/lib/library") == noise(1, 3 << 20));
    out(desk.command_of("umount").args(["root"]));
    out(desk.command_of("umount").args(["fuse"]));
    fuse.wait().unwrap();
    drop(mounts);
    assert_eq!(serving.end(), "");

    let stats = desk.text("stats");
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
    fn of(desk: &Desk, serving: &crate::served::Serving) -> Self {
        let log = desk.path("calls");
        let mut strace = desk.command_of("strace");
        strace.args(["--quiet=all", "--follow-forks", "--trace=fsync,fdatasync,msync,sync_file_range,syncfs,sync"]);
        strace.arg("--signal=none").arg("--output").arg(&log).arg(format!("--attach={}", serving.pid()));
        let strace = strace.spawn().unwrap();
        let status = format!("/proc/{}/status", serving.pid());
        wait("strace is attached", || !fs::read_to_string(&status).unwrap().contains("TracerPid:\t0\n"));
        Self { strace, log }
    }

    /// Returns them when the process has ended.
    fn end(mut self) -> String {
        self.strace.wait().unwrap();
        fs::read_to_string(&self.log).unwrap()
    }
}
