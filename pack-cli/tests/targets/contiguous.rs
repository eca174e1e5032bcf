//! Where the files that are read first lie on ext4, as the kernel tells it (FIEMAP, by filefrag).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sealift_skipped::skipped;

use crate::desk::{Desk, is_root, noise};

const FILES: u64 = 1500;
const UPDATES: u64 = 5;
/// What lies closer is one place: a disk reads ahead as far.
const NEAR: u64 = 128 << 10;

/// The most places of what an update brings.
const PLACES: usize = 3;

/// An ext4 in an image, until it is dropped.
struct Ext4(PathBuf);

impl Ext4 {
    fn mount(desk: &Desk) -> Self {
        let (image, point) = (desk.path("image"), desk.path("disk"));
        fs::File::create_new(&image).unwrap().set_len(512 << 20).unwrap();
        fs::create_dir(&point).unwrap();
        run(Command::new("mkfs.ext4").arg("-q").arg(&image));
        run(Command::new("mount").args(["-o", "loop"]).args([&image, &point]));
        Self(point)
    }
}

impl Drop for Ext4 {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

fn run(command: &mut Command) -> String {
    let done = command.output().unwrap();
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

fn name(file: u64) -> String {
    format!("dir{:02}/sub{}/file{file:04}", file % 37, file % 3)
}

fn write(desk: &Desk, file: u64, version: u64) {
    let path = desk.path("tree").join(name(file));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, noise(file << 8 | version, 5_000 + usize::try_from(file * 7919 % 40_000).unwrap())).unwrap();
}

/// The files that change with a version: one in twenty.
fn changed(version: u64) -> Vec<u64> {
    let chance = |file: u64| blake3::hash(&[file.to_le_bytes(), version.to_le_bytes()].concat()).as_bytes()[0];
    (0..FILES).filter(|file| chance(*file) < 13).collect()
}

/// The places of files on the disk: how many that are apart, the distance from the first byte to the last, and the bytes.
fn places(root: &Path, files: &[u64]) -> (usize, u64, u64) {
    let paths = files.iter().map(|file| root.join(name(*file)));
    let said = run(Command::new("filefrag").args(["-v", "-b1"]).args(paths));
    // "   0:        0..    8191:     165888..    174079:   8192:             last,eof"
    let extent = |line: &str| {
        let mut fields = line.split(':');
        fields.next()?.trim().parse::<u64>().ok()?;
        let (first, last) = fields.nth(1)?.split_once("..")?;
        Some(first.trim().parse::<u64>().ok()?..last.trim().parse::<u64>().ok()? + 1)
    };
    let mut extents: Vec<_> = said.lines().filter_map(extent).collect();
    assert!(extents.len() >= files.len(), "{said}");
    extents.sort_by_key(|extent| extent.start);
    let apart = extents.windows(2).filter(|pair| pair[1].start > pair[0].end + NEAR).count();
    let bytes = extents.iter().map(|extent| extent.end - extent.start).sum();
    (apart + 1, extents.last().unwrap().end - extents[0].start, bytes)
}

#[test]
fn what_is_read_first_lies_together_and_what_an_update_brings_of_it_too() {
    if !is_root() {
        return skipped("needs root: an ext4");
    }
    let desk = Desk::new();
    (0..FILES).for_each(|file| write(&desk, file, 1));
    let mut hot: Vec<u64> = (0..FILES).step_by(10).collect();
    hot.sort_by_key(|file| blake3::hash(&file.to_le_bytes()).to_hex());
    desk.write("profile", hot.iter().map(|file| name(*file)).collect::<Vec<_>>().join("\n"));
    let disk = Ext4::mount(&desk);
    let target = disk.0.join("target");
    let pack = ["pack", "tree", "--name", "os", "--allow-unsigned", "--force", "--bundle-version"];
    desk.run(&[&pack[..], &["1", "-o", "1.sealift", "--order", "profile"]].concat());
    desk.run(&["unpack", "1.sealift", "disk/target", "--allow-unsigned"]);
    let (apart, span, bytes) = places(&target, &hot);
    assert!(apart == 1 && span < bytes + bytes / 10, "{apart} places, {bytes} bytes over {span}");
    // Of all files, as many lie as far apart as there is.
    let (_, far, _) = places(&target, &(1..FILES).step_by(10).collect::<Vec<_>>());
    assert!(far > span * 3, "{far} {span}");

    for version in 2..=UPDATES + 1 {
        let (base, number) = (format!("{}.sealift", version - 1), version.to_string());
        changed(version).into_iter().for_each(|file| write(&desk, file, version));
        desk.run(&[&pack[..], &[&number, "-o", "delta.sealift", "--base", &base]].concat());
        desk.run(&[&pack[..], &[&number, "-o", &format!("{number}.sealift"), "--order-from", &base]].concat());
        desk.run(&["unpack", "delta.sealift", "disk/target", "--update", "--allow-unsigned"]);
        let new: BTreeSet<u64> = changed(version).into_iter().collect();
        let new: Vec<u64> = hot.iter().copied().filter(|file| new.contains(file)).collect();
        let (apart, span, bytes) = places(&target, &new);
        // Small files that processors write out at one time have a place for each.
        assert!(new.len() > 3 && apart <= PLACES, "{apart} places, {bytes} bytes over {span}");
    }
    // What changes leaves the others where they were: each update adds its places.
    let (apart, _, _) = places(&target, &hot);
    assert!(apart <= 1 + PLACES * usize::try_from(UPDATES).unwrap(), "{apart} places");
}
