//! The tree that is put into containers, and the programs that do so.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use sealift_desk::{Desk, has, noise, out};

/// Contents by path.
pub(crate) type Contents = BTreeMap<String, Vec<u8>>;

/// A target that an inode of ext4 has no room for.
pub(crate) const LONG_TARGET: &str = "../usr/share/a/directory/that/does/not/exist/and/a/name/that/is/long/enough";

/// Creates a tree: small and large files, content that compresses and content that does not, empty files, holes, hard and symbolic links, and deep
/// directories.
pub(crate) fn tree(desk: &Desk) {
    for number in 0..300 {
        desk.write(&format!("tree/many/a-name-that-is-not-so-short-{number:03}"), noise(number, 500));
    }
    for number in 0..20 {
        desk.write(&format!("tree/texts/{number}"), text(900 + number * 373));
    }
    desk.write("tree/usr/lib/large", noise(1000, 3 << 20));
    desk.write("tree/usr/lib/zeros", vec![0; 700_000]);
    desk.write("tree/usr/bin/tool", [text(400_000), noise(1001, 70_000), text(9000)].concat());
    desk.write("tree/usr/share/text", text(2_000_000));
    desk.write("tree/etc/empty", "");
    desk.write("tree/etc/one", "1");
    desk.write("tree/etc/blocks", noise(1003, 8192));
    desk.write("tree/etc/inline", noise(1004, 150));
    // Blocks that are not written are holes.
    let file = fs::File::create(desk.path("tree/etc/holes")).unwrap();
    for at in [300_000, 900_000, 1_500_001] {
        std::os::unix::fs::FileExt::write_all_at(&file, &noise(at, 70_000), at).unwrap();
    }
    file.set_len(1_800_000).unwrap();
    desk.write("tree/etc/hole", "");
    fs::File::options().write(true).open(desk.path("tree/etc/hole")).unwrap().set_len(1 << 20).unwrap();
    let deep = (0..20).fold("tree/deep".to_owned(), |path, number| format!("{path}/{number}"));
    desk.write(&format!("{deep}/file"), text(50));
    fs::create_dir(desk.path("tree/nothing")).unwrap();
    fs::hard_link(desk.path("tree/usr/bin/tool"), desk.path("tree/usr/bin/zweitname")).unwrap();
    fs::hard_link(desk.path("tree/etc/one"), desk.path("tree/a-second-name")).unwrap();
    std::os::unix::fs::symlink("tool", desk.path("tree/usr/bin/link")).unwrap();
    std::os::unix::fs::symlink(LONG_TARGET, desk.path("tree/etc/long")).unwrap();
}

/// Returns text that compresses.
pub(crate) fn text(len: usize) -> Vec<u8> {
    (0..).flat_map(|number: u64| format!("line {}\n", number * 7919 % 10_007).into_bytes()).take(len).collect()
}

/// Returns the content of all regular files below a directory.
pub(crate) fn files(root: &Path) -> Contents {
    let mut found = Contents::new();
    let mut left = vec![root.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                left.push(entry.path());
            } else if kind.is_file() {
                let path = entry.path().strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                found.insert(path, fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

/// Runs a shell line in the folder. Returns whether the program that it begins with is installed.
pub(crate) fn made(desk: &Desk, line: &str) -> bool {
    // Lines that begin with a word of the shell are of cpio.
    let program = line.split(' ').next().filter(|word| !matches!(*word, "cd" | "for")).unwrap_or("cpio");
    if !has(&[program]) {
        return false;
    }
    out(desk.command_of("bash").args(["-ec", line]));
    true
}

/// Creates a file of zeros.
pub(crate) fn zeros(desk: &Desk, name: &str, len: u64) {
    fs::File::create(desk.path(name)).unwrap().set_len(len).unwrap();
}
