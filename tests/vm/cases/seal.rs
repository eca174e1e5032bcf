//! Sealing files, and reading their digests.

use std::fs::{self, File};
use std::io::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::io::{FdFlags, fcntl_setfd};
use sealift::seal::{FileHasher, Parameters};
use sealift_verify::fsverity::{self, KernelError, SealMetadata};

use crate::disk::Disk;

/// Lengths around the edges of blocks and tree levels.
const LENS: [usize; 8] = [0, 1, 4095, 4096, 4097, 128 * 4096, 128 * 4096 + 1, 1_200_001];

pub(crate) fn digests(desk: &Disk) {
    for parameters in ["", "--hash-alg sha512", "--salt 01020304", "--hash-alg sha512 --salt ff --block-size 4096"] {
        let names = LENS.map(|len| format!("digest-{len}"));
        for ((name, len), seed) in names.iter().zip(LENS).zip(0..) {
            desk.write_noise(name, seed, len);
        }
        let names = names.join(" ");
        let ours = desk.good(&format!("digest {parameters} {names}"));
        desk.bad(&format!("measure {names}"), 1, "not sealed");
        desk.good(&format!("seal {parameters} {names}"));
        assert_eq!(desk.good(&format!("measure {names}")), ours, "{parameters}");
        // Sealed content reads like any other.
        assert_eq!(desk.good(&format!("digest {parameters} {names}")), ours, "{parameters}");
        for name in names.split(' ') {
            fs::remove_file(desk.path(name)).expect("it can be removed");
        }
    }
}

pub(crate) fn metadata(desk: &Disk) {
    let content = desk.write_noise("metadata", 1, 300_000);
    let salted = Parameters::new(Default::default(), 4096, b"salt").expect("they are good");
    let file = File::open(desk.path("metadata")).expect("it is there");
    assert!(matches!(fsverity::measure(&file), Err(KernelError::NotSealed)));
    fsverity::seal(&file, &salted, None).expect("it is sealed");

    let mut hasher = FileHasher::new(&salted);
    hasher.update(&content);
    fsverity::check(&file, &hasher.finish()).expect("it is the digest");
    let other = [7; 32].into();
    assert!(matches!(fsverity::check(&file, &other), Err(KernelError::OtherDigest { .. })));

    let mut tree = vec![0; 1 << 20];
    match fsverity::read_metadata(&file, SealMetadata::Tree, 0, &mut tree) {
        // A block with the hashes of 74 blocks; it is the root.
        Ok(len) => assert_eq!(len, 4096),
        Err(error) => {
            assert!(desk.kind() == "btrfs" && matches!(error, KernelError::Unsupported), "{error}");
            return;
        }
    }
    assert_eq!(fsverity::parameters(&file).expect("the kernel says"), Some(salted));
    assert_eq!(fsverity::signature(&file).expect("the kernel says"), None);
}

pub(crate) fn trees(desk: &Disk) {
    fs::create_dir_all(desk.path("tree/below")).expect("directories");
    for number in 0..40 {
        desk.write_noise(&format!("tree/{number}"), number, 1000);
        desk.write_noise(&format!("tree/below/{number}"), number + 100, 9000);
    }
    std::os::unix::fs::symlink("/etc/passwd", desk.path("tree/link")).expect("a link");
    let modified = || fs::metadata(desk.path("tree/1")).expect("it is there").modified().expect("it has a time");
    let before = modified();
    let first = desk.good("seal tree --json");
    assert_eq!(modified(), before, "sealing is no modification");
    assert!(first.contains(r#""files":80,"files_before":0,"others":1,"logical_bytes":400000"#), "{first}");
    let again = desk.good("seal tree tree/1 --json");
    assert!(again.contains(r#""files":0,"files_before":81,"others":1,"logical_bytes":0"#), "{again}");
    desk.good("measure tree/0 tree/below/39");
    fs::remove_dir_all(desk.path("tree")).expect("it can be removed");
}

pub(crate) fn other_parameters(desk: &Disk) {
    desk.write_noise("other", 2, 10_000);
    desk.good("seal other");
    desk.bad("seal --hash-alg sha512 other", 2, "already sealed, with sha256");
    // btrfs returns no descriptor, and its digest does not reveal the salt.
    if desk.kind() == "ext4" {
        desk.bad("seal --salt 00 other", 2, "already sealed, with sha256, blocks of 4096 bytes and no salt");
    }
    desk.good("seal other");
}

pub(crate) fn writers(desk: &Disk) {
    // An emulated machine can be slow: what is waited for is told apart from what the program takes here anyway.
    desk.write_noise("nobody-writes", 1, 10);
    let start = Instant::now();
    desk.good("seal nobody-writes");
    let bound = Duration::from_secs(5) + 2 * start.elapsed();
    for (millis, is_sealed) in [(400, true), (600_000, false)] {
        let name = format!("writers-{millis}");
        let mut file = File::create(desk.path(&name)).expect("a file");
        file.write_all(b"content").expect("it is written");
        // Simulates the moment between fork and exec: a child holds the descriptor that its parent closes.
        fcntl_setfd(&file, FdFlags::empty()).expect("it is inherited");
        let mut child = Command::new("/init").args(["hold", &millis.to_string()]).spawn().expect("a child");
        drop(file);
        let start = Instant::now();
        if is_sealed {
            desk.good(&format!("seal {name}"));
        } else {
            desk.bad(&format!("seal {name}"), 2, "open for writing");
        }
        assert!(start.elapsed() < bound, "it was waited for too long: {:?} of {bound:?}", start.elapsed());
        child.kill().expect("the child may have ended");
        child.wait().expect("it ends");
        desk.good(&format!("seal {name}"));
    }
}

pub(crate) fn sealed_files(desk: &Disk) {
    let content = desk.write_noise("sealed", 3, 50_000);
    desk.good("seal sealed");
    let refused = File::options().write(true).open(desk.path("sealed")).expect_err("nobody writes to it");
    assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
    fs::hard_link(desk.path("sealed"), desk.path("sealed-2")).expect("it may have another name");
    fs::copy(desk.path("sealed"), desk.path("copy")).expect("it can be copied");
    desk.bad("measure copy", 1, "not sealed");
    desk.drop_caches();
    assert_eq!(fs::read(desk.path("sealed-2")).expect("it can be read"), content);
    for name in ["sealed", "sealed-2", "copy"] {
        fs::remove_file(desk.path(name)).expect("it can be removed");
    }
}
