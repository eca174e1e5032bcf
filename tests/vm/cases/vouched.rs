//! The index of a bundle, sealed with the bundle's kernel signature.

use std::fs::{self, File};
use std::path::Path;

use sealift_tests::bundle::{Bundle, Packing};
use sealift_tests::ostree::commit;
use sealift_tests::tree::{Node, dir, file};
use sealift_verify::fsverity;

use super::signatures::{clear_trust, trust};
use super::unpack::{ANYBODY, Publisher, assert_sealed};
use crate::disk::Disk;

/// Signs a bundle for kernels with this key's certificate.
fn sign(desk: &Disk, bundle: &str, key: &str) {
    desk.good(&format!("sign {bundle} --kernel-key /data/{key}.key --kernel-cert /data/{key}.crt"));
}

/// Checks that an index is sealed with this signature, if the file system reports it.
fn assert_signed(desk: &Disk, index: &Path, signature: Option<&[u8]>) {
    let file = File::open(index).expect("it can be opened");
    fsverity::measure(&file).expect("it is sealed");
    match fsverity::signature(&file).expect("the kernel says") {
        None if desk.kind() == "btrfs" => {}
        found => assert_eq!(found.as_deref(), signature),
    }
}

const TAKEN: &str = r#""kernel_signature":"taken""#;
const REFUSED: &str = r#""kernel_signature":"refused""#;
const NO_KEY: &str = "no certificate in the kernel's keyring";

pub(crate) fn directories(desk: &Disk) {
    let publisher = Publisher::new(desk);
    let first = publisher.pack(1);
    sign(desk, &first, "foreign");
    // With a key that the kernel does not know, unpacking fails and writes nothing.
    for options in ["", "--dry-run "] {
        let line = format!("unpack {first} vouched --seal require {options}{ANYBODY}");
        if options.is_empty() {
            desk.bad(&line, 2, NO_KEY);
        } else {
            desk.good(&line);
        }
        for name in ["vouched", ".vouched.sealift-partial", ".vouched.sealift-state"] {
            assert!(!desk.path(name).exists(), "{name}");
        }
    }
    sign(desk, &first, "good");
    let said = desk.good(&format!("unpack {first} vouched --seal require {ANYBODY} --json"));
    assert!(said.contains(TAKEN), "{said}");
    let state = |name: &str| desk.path(".vouched.sealift-state").join(name);
    let signature = || fs::read(state("index.p7s")).ok();
    assert!(signature().is_some());
    assert_signed(desk, &state("index"), signature().as_deref());
    let sound = desk.good(&format!("audit vouched {ANYBODY} --json"));
    assert!(sound.contains(r#""sound":true"#) && sound.contains(r#""kernel_signature":true"#), "{sound}");

    // A delta's signature covers the resulting index.
    publisher.write("etc/os-release", b"ID=example\nVERSION_ID=2\n");
    let delta = "/tmp/delta.sealift";
    desk.good(&format!(
        "pack --force /tmp/tree -o {delta} --name os --bundle-version 2 --base {first} --quiet {ANYBODY}"
    ));
    sign(desk, delta, "ec");
    let said = desk.good(&format!("unpack {delta} vouched --delete {ANYBODY} --json"));
    assert!(said.contains(TAKEN), "{said}");
    assert_signed(desk, &state("index"), signature().as_deref());

    // If the previous index was sealed with a signature, the next one's signature, if any, must be valid for the kernel.
    publisher.write("etc/os-release", b"ID=example\nVERSION_ID=3\n");
    let third = publisher.pack(3);
    sign(desk, &third, "foreign");
    for seal in ["", "--seal require"] {
        desk.bad(&format!("unpack {third} vouched --update {seal} {ANYBODY}"), 2, "--seal try");
        assert!(!desk.path(".vouched.sealift-partial").exists());
    }
    assert_eq!(fs::read(desk.path("vouched/etc/os-release")).expect("a file"), b"ID=example\nVERSION_ID=2\n");
    assert!(desk.good(&format!("audit vouched {ANYBODY}")).contains("os version 2"));
    let said = desk.good(&format!("unpack {third} vouched --update --seal try {ANYBODY} --json"));
    assert!(said.contains(REFUSED), "{said}");
    assert_signed(desk, &state("index"), None);
    let sound = desk.good(&format!("audit vouched {ANYBODY} --json"));
    assert!(sound.contains(r#""kernel_signature":false"#), "{sound}");
    // A kernel signature that the kernel rejects does not by itself prevent unpacking.
    let said = desk.good(&format!("unpack {third} vouched --update {ANYBODY} --json"));
    assert!(said.contains(r#""sealed":true"#), "{said}");
    // The same bundle again, now with a signature required.
    desk.bad(&format!("unpack {third} vouched --update --seal require {ANYBODY}"), 2, NO_KEY);
    sign(desk, &third, "good");
    let said = desk.good(&format!("unpack {third} vouched --update --seal require {ANYBODY} --json"));
    assert!(said.contains(TAKEN), "{said}");
    assert_signed(desk, &state("index"), signature().as_deref());
    assert_sealed(&desk.path("vouched"), true);

    // After a reboot the kernel has no certificate, and opens no index sealed with a signature.
    clear_trust();
    desk.change_disk(|_| {});
    desk.bad(&format!("audit vouched {ANYBODY}"), 2, "keyctl padd asymmetric");
    desk.bad(&format!("unpack {third} vouched --update {ANYBODY}"), 2, "keyctl padd asymmetric");
    trust("/data/good.der");
    trust("/data/ec.der");
    desk.good(&format!("audit vouched {ANYBODY}"));
}

/// A repository's copy of a bundle's metadata is sealed in the same way.
pub(crate) fn repositories(desk: &Disk) {
    let repo = desk.path("vouched-repo");
    for folder in ["objects", "refs/heads", "refs/remotes", "tmp", "state", "extensions"] {
        fs::create_dir_all(repo.join(folder)).expect("a folder");
    }
    fs::write(repo.join("config"), "[core]\nrepo_version=1\nmode=archive-z2\n").expect("a file");
    let (bundle, to) = ("/tmp/commit.sealift", format!("ostree:vouched-repo {ANYBODY} --json"));
    let pack = |version: u64, tree: Node, key: &str| {
        let mut packed = Bundle::with_commits(&[], &[("main", vec![commit(tree)])], Packing::default());
        packed.identity.version = version;
        packed.area_len = 1024;
        fs::write(bundle, packed.encode()).expect("a file");
        sign(desk, bundle, key);
    };
    let one = || dir([("a", file("one\n"))]);
    pack(1, one(), "foreign");
    desk.bad(&format!("unpack {bundle} {to} --seal require"), 2, NO_KEY);
    assert!(!repo.join("refs/heads/main").exists() && !repo.join("extensions/sealift").exists());
    pack(1, one(), "ec");
    let said = desk.good(&format!("unpack {bundle} {to} --seal require"));
    assert!(said.contains(TAKEN), "{said}");
    assert_sealed(&repo.join("objects"), true);
    let index = repo.join("extensions/sealift/test/index");
    let signature_of_it = repo.join("extensions/sealift/test/index.p7s");
    let signature = fs::read(&signature_of_it).expect("it is kept");
    assert_signed(desk, &index, Some(&signature));
    let measured = desk.good(&format!("measure {}", index.display()));
    let info = desk.good(&format!("info {bundle} --json"));
    let (digest, _) = measured.strip_prefix("sha256:").and_then(|text| text.split_once(' ')).expect("a digest");
    assert!(info.contains(digest), "{measured} {info}");

    let two = || dir([("a", file("two\n"))]);
    let tip = || fs::read(repo.join("refs/heads/main")).expect("a ref");
    let before = tip();
    pack(2, two(), "foreign");
    desk.bad(&format!("unpack {bundle} {to}"), 2, NO_KEY);
    assert_eq!(tip(), before);
    let said = desk.good(&format!("unpack {bundle} {to} --seal try"));
    assert!(said.contains(REFUSED), "{said}");
    assert_ne!(tip(), before);
    // The signature of the previous index was removed.
    assert_signed(desk, &index, None);
    assert!(!signature_of_it.exists());
    pack(2, two(), "good");
    let said = desk.good(&format!("unpack {bundle} {to} --seal require"));
    assert!(said.contains(TAKEN), "{said}");
    assert_signed(desk, &index, fs::read(&signature_of_it).ok().as_deref());
}
