//! Images in OSTree repositories, composefs stores and mounted bundles.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::process::Command;

use sealift_desk::{has, is_root, noise, out, peak_of, skipped, wait};

use crate::desk::{Images, POLICY};

/// What the program itself takes, in bytes: the build for tests is large.
const MORE: u64 = 32 << 20;

/// Bytes of the large image's files.
const LEN: usize = 192 << 20;

/// Runs ostree(1) on the desk.
fn ostree(images: &Images, arguments: &[&str]) -> String {
    let mut command = images.command_of("ostree");
    command.args(arguments);
    out(&mut command)
}

#[test]
fn a_commit_s_image_is_made_again_in_a_repository() {
    let Some(images) = Images::new().filter(|_| has(&["ostree"])) else { return };
    ostree(&images, &["init", "--repo=source", "--mode=archive"]);
    for version in ["1", "2"] {
        let tree = format!("--tree=dir={version}");
        let commit = ["commit", "--repo=source", "--branch=os", "--owner-uid=0", "--owner-gid=0", "--no-xattrs", &tree];
        ostree(&images, &commit);
        let base = if version == "2" { "--base c1.sealift --trust signers" } else { "" };
        images.good(&format!(
            "pack ostree:source -o c{version}.sealift --name os --bundle-version {version} --key release --recipes {base}"
        ));
    }
    for mode in ["archive", "bare-user"] {
        let repo = format!("to-{mode}");
        ostree(&images, &["init", &format!("--repo={repo}"), &format!("--mode={mode}")]);
        ostree(&images, &["config", &format!("--repo={repo}"), "set", "core.min-free-space-percent", "0"]);
        for version in ["1", "2"] {
            let line = format!("unpack c{version}.sealift ostree:{repo}");
            images.does(&line);
            ostree(&images, &["fsck", &format!("--repo={repo}")]);
            let mut cat = images.command_of("ostree");
            let read = cat.args(["cat", &format!("--repo={repo}"), "os", "/os.squashfs"]).output().unwrap();
            assert!(read.stdout == images.read(&format!("{version}/os.squashfs")), "{line}");
        }
        images.does(&format!("audit ostree:{repo}"));
        images.good("trust reset os --state state");
    }
    // The delta is of the size of what changed.
    assert!(images.len("c2.sealift") < images.len("c1.sealift") / 4, "{} bytes", images.len("c2.sealift"));
}

#[test]
fn an_image_is_made_again_in_a_composefs_store() {
    let Some(images) = Images::new() else { return };
    for (version, base) in [(1, ""), (2, "--base s1.sealift --trust signers")] {
        images.good(&format!(
            "pack {version} -o s{version}.sealift --name os --bundle-version {version} --key release --composefs --recipes {base}"
        ));
    }
    for version in 1..=2 {
        images.does(&format!("unpack s{version}.sealift composefs:store"));
        images.does("audit composefs:store");
        let wanted = images.read(&format!("{version}/os.squashfs"));
        assert!(objects(&images).contains(&wanted), "no object is image {version}");
    }
}

/// The contents of the store's objects.
fn objects(images: &Images) -> Vec<Vec<u8>> {
    let folders = fs::read_dir(images.path("store/objects")).unwrap();
    let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    files.map(|file| fs::read(file.unwrap().path()).unwrap()).collect()
}

#[test]
fn a_mounted_bundle_makes_what_is_read() {
    let Some(images) = Images::new() else { return };
    if !is_root() || !fs::exists("/dev/fuse").unwrap() {
        return skipped("needs root and /dev/fuse: mounts");
    }
    fs::create_dir(images.path("mnt")).unwrap();
    for (line, version) in [("1.sealift", 1), ("1.sealift delta.sealift", 2)] {
        let mut server = images.command(&format!("mount {line} mnt --trust signers --state state")).spawn().unwrap();
        wait("the image is there", || fs::exists(images.path("mnt/os.squashfs")).unwrap_or(false));
        images.has_image("mnt/os.squashfs", version);
        // From its end to its start, so that each part is made by itself.
        let (file, wanted) =
            (fs::File::open(images.path("mnt/os.squashfs")).unwrap(), images.read(&format!("{version}/os.squashfs")));
        for (at, part) in wanted.chunks(50_000).enumerate().rev() {
            let mut found = vec![0; part.len()];
            file.read_exact_at(&mut found, u64::try_from(at * 50_000).unwrap()).unwrap();
            assert!(found == part, "{line}: part {at}");
        }
        drop(file);
        out(Command::new("umount").arg(images.path("mnt")));
        assert!(server.wait().unwrap().success());
    }
}

#[test]
fn making_takes_the_memory_that_is_declared() {
    let Some(images) = Images::new() else { return };
    // Digits that repeat far away, so that they are made fast and yet compressed. Whoever held the image would take more than is declared.
    let digits: String = noise(7, 8 << 20).iter().map(|byte| format!("{byte:02x}")).collect();
    for version in ["1", "2"] {
        let files = images.path(&format!("large-{version}"));
        fs::create_dir_all(files.join("image")).unwrap();
        images.write(&format!("large-{version}/files/etc"), version);
        images.write(&format!("large-{version}/files/digits"), digits.repeat(LEN / digits.len()));
        images.squash(&format!("large-{version}/files"), &format!("large-{version}/image/os.squashfs"), "gzip");
        let base = if version == "2" { "--base l1.sealift --trust signers" } else { "" };
        images.good(&format!(
            "pack large-{version}/image -o l{version}.sealift --name os --bundle-version {version} --key release --level 1 --recipes {base}"
        ));
    }
    let image = images.read("large-2/image/os.squashfs");
    assert!(image.len() > 3 * LEN / 8, "{} bytes", image.len());
    for (line, bundle) in [
        ("unpack l1.sealift tree", "l1.sealift"),
        ("unpack l2.sealift new --base tree", "l2.sealift"),
        ("unpack l2.sealift tree", "l2.sealift"),
    ] {
        let info = images.json(&format!("info {bundle} --trust signers --state state --json"));
        let declared = info["cost"]["memory_bytes"].as_u64().unwrap();
        let peak = peak_of(&mut images.command(&format!("{line} {POLICY}")));
        assert!(peak > 0 && peak <= declared + MORE, "{line}: {} MiB, declared {} MiB", peak >> 20, declared >> 20);
    }
    assert!(images.read("new/os.squashfs") == image, "new");
    assert!(images.read("tree/os.squashfs") == image, "tree");
}
