//! Compares what the encoders make with what the programs of a Linux system made: all blocks, in containers of any depth.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs::{self, File};
use std::process::Command;

use sealift_container::{Anatomy, Blocks, Content, Kind, Limits, ReadAt};
use sealift_desk::{has, noise, out, skipped};
use sealift_format::num::up_to;

use tempfile::TempDir;

use super::HEAD_LEN;
use super::dissect::Dissection;
use super::prove::Prover;
use crate::Progress;

/// Returns a folder with a tree of text, programs and what cannot be compressed.
fn planted() -> TempDir {
    let desk = TempDir::new().unwrap();
    let tree = desk.path().join("tree");
    fs::create_dir(&tree).unwrap();
    for number in 0..60_u32 {
        let lines = (0..number * 40).map(|line| format!("line {line} of file {number}, {}\n", line * 7919 % 101));
        fs::write(tree.join(format!("file-{number}")), lines.collect::<String>()).unwrap();
    }
    fs::copy("/bin/bash", tree.join("bash")).unwrap();
    let numbers: Vec<u8> = (0..400_000_u32).flat_map(|n| (n / 5 * 3).to_le_bytes()).collect();
    fs::write(tree.join("numbers"), numbers).unwrap();
    fs::write(tree.join("noise"), noise(5, 300_000)).unwrap();
    fs::write(tree.join("zeros"), vec![0; 400_000]).unwrap();
    shell(&desk, "tar --sort=name --mtime=@1 -cf tree.tar tree");
    desk
}

#[track_caller]
fn shell(desk: &TempDir, line: &str) {
    out(Command::new("sh").args(["-ec", line]).current_dir(desk.path()));
}

/// Makes a container by a command that writes the file `made`, and checks that all its compressed blocks, at least `least`, are made again.
#[track_caller]
fn check(desk: &TempDir, line: &str, least: usize) {
    let program = line.split([' ', ';']).next().unwrap_or_default();
    if !has(&[program]) {
        skipped(&format!("needs {program}: makes what is made again"));
        return;
    }
    shell(desk, &format!("rm -f made; {line}"));
    let (all, unmade_len) = count(&File::open(desk.path().join("made")).unwrap());
    assert!(all >= least, "{line}: {all} blocks, expected {least}");
    assert!(unmade_len == 0, "{line}: {unmade_len} bytes of {all} blocks are not made again");
}

/// Returns how many blocks there are, and the bytes of those that are not made again.
fn count(bytes: &dyn ReadAt) -> (usize, u64) {
    let anatomy = Anatomy::of(bytes, &Limits::default()).expect("it is sound");
    let Some(anatomy) = anatomy else { return (0, 0) };
    let dissection = Dissection::new(bytes, &anatomy, &Prover::default(), 2, &Progress::default()).unwrap();
    let all_len: u64 = anatomy.blocks.iter().map(|block| block.stored_len).sum();
    let (mut all, mut unmade_len) = (anatomy.blocks.len(), all_len - dissection.made_len());
    let blocks = Blocks::new(bytes, &anatomy);
    for member in &anatomy.members {
        let content = Content::new(&blocks, member);
        let mut head = vec![0; up_to(member.len, HEAD_LEN)];
        content.read_exact_at(&mut head, 0).unwrap();
        if Kind::of(&head).is_some() {
            let (of_member, unmade_of_member) = count(&content);
            (all, unmade_len) = (all + of_member, unmade_len + unmade_of_member);
        }
    }
    (all, unmade_len)
}

/// Makes what `dpkg-deb -b deb` needs.
const PACKAGE: &str = "mkdir -p deb/DEBIAN && cp -r tree deb/ && \
    printf 'Package: made\\nVersion: 1\\nArchitecture: all\\nMaintainer: a\\nDescription: b\\n' > deb/DEBIAN/control";
const MKSQUASHFS: &str = "mksquashfs tree made -quiet -no-progress -comp";

#[test]
fn zlib_makes_what_programs_made() {
    let desk = planted();
    check(&desk, &format!("{MKSQUASHFS} gzip"), 40);
    check(
        &desk,
        &format!("{MKSQUASHFS} gzip -Xcompression-level 1 -Xwindow-size 9 -Xstrategy default,huffman_only"),
        40,
    );
    check(&desk, "python3 -c 'import gzip; gzip.open(\"made\", \"w\").write(open(\"tree.tar\", \"rb\").read())'", 1);
}

#[test]
fn liblzma_makes_what_squashfs_tools_made() {
    let desk = planted();
    check(&desk, &format!("{MKSQUASHFS} xz"), 40);
    check(&desk, &format!("{MKSQUASHFS} xz -Xbcj x86,arm -Xdict-size 50% -b 256K"), 20);
}

#[test]
fn liblzma_makes_what_programs_made() {
    let desk = planted();
    for options in ["-6", "-1 -T2 --block-size=1MiB", "-9 --check=none", "-0e --check=crc32", "-3 --check=sha256"] {
        check(&desk, &format!("xz {options} -c tree.tar > made"), 1);
    }
    check(&desk, "xz --x86 --lzma2=preset=6,dict=1MiB,lc=1,lp=2,pb=0 -c tree/bash > made", 1);
    shell(&desk, PACKAGE);
    check(&desk, "dpkg-deb -Zxz --root-owner-group -b deb made", 2);
}

#[test]
fn liblz4_makes_what_programs_made() {
    let desk = planted();
    check(&desk, &format!("{MKSQUASHFS} lz4"), 40);
    check(&desk, &format!("{MKSQUASHFS} lz4 -Xhc -b 64K"), 60);
    for options in ["lz4", "lz4hc", "lz4hc,12", "lz4 -C65536", "lz4hc,4 -C16384"] {
        check(&desk, &format!("mkfs.erofs -z{options} made tree"), 60);
    }
}

#[test]
fn libzstd_makes_what_squashfs_tools_made() {
    let desk = planted();
    for level in [1, 3, 15, 22] {
        check(&desk, &format!("{MKSQUASHFS} zstd -Xcompression-level {level}"), 40);
    }
}

#[test]
fn libzstd_makes_what_programs_made() {
    let desk = planted();
    for options in ["-3", "-1 --single-thread", "-15 --no-check", "-19"] {
        check(&desk, &format!("zstd {options} -q tree.tar -o made"), 1);
        check(&desk, &format!("zstd {options} -q -c < tree.tar > made"), 1);
    }
    check(&desk, "zstd -3 --long=24 --single-thread -q -c < tree.tar > made", 1);
    shell(&desk, PACKAGE);
    check(&desk, "dpkg-deb -Zzstd --root-owner-group -b deb made", 2);
}

#[test]
fn libbz2_makes_what_programs_made() {
    let desk = planted();
    for level in 1..=9 {
        check(&desk, &format!("bzip2 -{level} -c tree.tar > made"), 1);
    }
}
