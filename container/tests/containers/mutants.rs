//! Damaged containers: they are refused or taken apart, within bounded time and memory, and never end a program.

use std::time::{Duration, Instant};

use sealift_container::{Anatomy, Blocks, Content, Kind, Limits, ReadAt};
use sealift_desk::{Desk, noise};

use crate::given::{made, text, zeros};

/// The mutants of each container.
const COUNT: u64 = 5000;
/// The longest time that one may take: a hundred times of what they take.
const LONGEST: Duration = Duration::from_secs(20);

/// Bytes of a container of which some are changed.
struct Mutant<'a> {
    bytes: &'a [u8],
    changes: Vec<(usize, u8)>,
    /// Two blocks of so many bytes that change places.
    swap: Option<(usize, usize, usize)>,
    len: usize,
}

impl<'a> Mutant<'a> {
    /// Half of the changes are where the headers are, and most of them where the bytes are not zero.
    fn new(bytes: &'a [u8], used: &[usize], seed: u64) -> Self {
        let random = noise(seed + 77_000, 64);
        let number =
            |at: usize| usize::from(random[at]) << 16 | usize::from(random[at + 1]) << 8 | usize::from(random[at + 2]);
        let place = |at: usize| match random[at + 3] % 4 {
            0 => used[number(at) % used.len().min(200)],
            1 => used[number(at) % used.len().min(4000)],
            2 => used[number(at) % used.len()],
            _ => number(at) % bytes.len(),
        };
        let count = 1 + usize::from(random[0] % 4);
        let change = |number: usize| {
            let at = 4 + number * 5;
            let bit = 1_u8 << (random[at + 4] % 8);
            (place(at), if random[at + 4] < 100 { bytes[place(at)] ^ bit } else { random[at + 4] })
        };
        let len = if random[1] < 30 { number(50) % bytes.len() } else { bytes.len() };
        let unit = 1 << (random[2] % 13);
        let swap = (random[3] < 60).then(|| (place(40) / unit * unit, place(45) / unit * unit, unit));
        Self { bytes, changes: (0..count).map(change).collect(), swap, len }
    }

    fn byte(&self, at: usize) -> u8 {
        let from = match self.swap {
            Some((one, other, len)) if (one..one + len).contains(&at) => other + (at - one),
            Some((one, other, len)) if (other..other + len).contains(&at) => one + (at - other),
            _ => at,
        };
        let change = self.changes.iter().find(|(place, _)| *place == at);
        change.map_or_else(|| self.bytes.get(from).copied().unwrap_or(0), |(_, byte)| *byte)
    }
}

impl ReadAt for Mutant<'_> {
    fn byte_len(&self) -> std::io::Result<u64> {
        Ok(self.len.try_into().unwrap())
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
        let start = usize::try_from(offset).unwrap();
        assert!(start + buffer.len() <= self.len, "a read beyond the end");
        buffer.copy_from_slice(&self.bytes[start..start + buffer.len()]);
        let affected = self.changes.iter().map(|(at, _)| (*at, 1));
        let swapped = self.swap.into_iter().flat_map(|(one, other, len)| [(one, len), (other, len)]);
        for (from, len) in affected.chain(swapped) {
            for at in from.max(start)..(from + len).min(start + buffer.len()) {
                buffer[at - start] = self.byte(at);
            }
        }
        Ok(())
    }
}

/// Takes mutants of a container apart and reads what is found.
fn check(name: &str, bytes: &[u8]) {
    let kind = Kind::of(&bytes[..bytes.len().min(40_000)]);
    let mut limits = Limits::default();
    (limits.work, limits.memory, limits.decoded) = (64 << 20, 16 << 20, 16 << 20);
    assert!(Anatomy::of(&bytes, &limits).unwrap().is_some(), "{name}");
    let used: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != 0).collect();
    let (mut refused, mut read) = (0, 0);
    for seed in 0..COUNT {
        let mutant = Mutant::new(bytes, &used, seed);
        let begun = Instant::now();
        match Anatomy::of(&mutant, &limits) {
            Ok(Some(anatomy)) => {
                read += u64::from(Some(anatomy.kind) == kind);
                read_members(&mutant, &anatomy);
            }
            Ok(None) => {}
            Err(_) => refused += 1,
        }
        assert!(begun.elapsed() < LONGEST, "{name}: mutant {seed} took {:?}", begun.elapsed());
    }
    assert!(refused > 100 && read > 0, "{name}: {refused} refused, {read} read");
}

/// Reads the first members, and the ends of large ones.
fn read_members(bytes: &dyn ReadAt, anatomy: &Anatomy) {
    let blocks = Blocks::new(bytes, anatomy);
    for member in anatomy.members.iter().take(5) {
        let content = Content::new(&blocks, member);
        let mut buffer = vec![0; usize::try_from(member.len.min(3000)).unwrap()];
        let _ = content.read_exact_at(&mut buffer, 0);
        let _ = content.read_exact_at(&mut buffer, member.len.saturating_sub(3000));
    }
}

/// A small tree with something of everything.
fn small_tree(desk: &Desk) {
    for number in 0..12 {
        desk.write(&format!("tree/many/a-name-that-is-not-so-short-{number:03}"), noise(number, 100));
    }
    desk.write("tree/text", text(20_000));
    desk.write("tree/deep/er/file", noise(99, 5000));
    desk.write("tree/zeros", [vec![0; 20_000], noise(98, 10)].concat());
    std::fs::hard_link(desk.path("tree/text"), desk.path("tree/deep/link")).unwrap();
}

/// Makes a container by a shell line, and checks mutants of it.
fn made_and_checked(lines: &[(&str, u64)]) {
    let desk = Desk::new();
    small_tree(&desk);
    for (line, len) in lines {
        let _ = std::fs::remove_file(desk.path("img"));
        if *len > 0 {
            zeros(&desk, "img", *len);
        }
        if made(&desk, line) {
            check(line, &desk.read("img"));
        }
    }
}

#[test]
fn of_squashfs() {
    let line = |options| format!("mksquashfs tree img -noappend -quiet -no-progress -b 4096 {options}");
    let lines = ["-comp gzip", "-comp xz", "-comp lz4 -noI -noF", "-comp zstd -noD"].map(line);
    made_and_checked(&lines.each_ref().map(|line| (&line[..], 0)));
}

#[test]
fn of_erofs() {
    made_and_checked(&[
        ("mkfs.erofs img tree", 0),
        ("mkfs.erofs -zlz4 -C16384 img tree", 0),
        ("mkfs.erofs -zlz4 -E legacy-compress img tree", 0),
        ("mkfs.erofs -zlz4 -Efragments,ztailpacking,dedupe img tree", 0),
    ]);
}

#[test]
fn of_ext4() {
    made_and_checked(&[
        ("mke2fs -q -F -t ext4 -O ^has_journal -N 64 -d tree img", 256 << 10),
        ("mke2fs -q -F -t ext4 -O ^has_journal,inline_data -I 256 -N 64 -d tree img", 256 << 10),
        ("mke2fs -q -F -t ext2 -N 64 -d tree img", 256 << 10),
    ]);
}

#[test]
fn of_disks() {
    made_and_checked(&[
        ("mkfs.vfat -F 12 img > /dev/null; mcopy -s -i img tree/* ::", 256 << 10),
        ("mkfs.vfat -F 32 -s 1 img > /dev/null; mcopy -s -i img tree/* ::", 34 << 20),
        ("sfdisk -q img <<< $'label: gpt\\nfirst-lba: 64\\nstart=64, size=64\\nstart=256, size=64\\n'", 256 << 10),
        (
            "sfdisk -q img <<< $'label: dos\\nstart=64, size=64\\nstart=128, size=300, type=5\\nstart=200, size=9\\n'",
            256 << 10,
        ),
        ("xorrisofs -quiet -R -o img tree", 0),
        ("xorrisofs -quiet -o img tree", 0),
    ]);
}

#[test]
fn of_programs() {
    // The header of a 64-bit program with two section headers, and what follows these.
    let mut image = vec![0; 64 + 2 * 64];
    let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"\x7fELF\x02\x01\x01\0AI\x02");
    for (at, value) in [(0x28, 64), (0x3a, 64), (0x3c, 2)] {
        put(at, &[value]);
    }
    image.extend(noise(1, 40));
    check("AppImage", &image);
}

#[test]
fn of_archives() {
    made_and_checked(&[
        ("tar -cf img --format=gnu tree", 0),
        ("tar -cf img --format=posix --sparse tree", 0),
        ("cd tree; find . | cpio --quiet -o -H newc > ../img", 0),
        ("cd tree; find . | cpio --quiet -o -H odc > ../img", 0),
        (
            "cd tree; (find . | cpio --quiet -o -H newc > ../early); gzip -c < ../early > ../late; cat ../early ../late > ../img",
            0,
        ),
        ("ar rc img tree/text tree/many/*", 0),
        ("python3 -c \"import shutil; shutil.make_archive('img', 'zip', 'tree')\"; mv img.zip img", 0),
    ]);
}

#[test]
fn of_compressed_files() {
    let lines = [
        "gzip -c",
        "xz -T1 -0 -c",
        "zstd -c -q",
        "zstd --no-content-size -c -q",
        "lz4 -c -q",
        "lz4 -l -c -q",
        "bzip2 -c",
    ];
    let lines = lines.map(|compressor| format!("{compressor} tree/text > img; {compressor} tree/zeros >> img"));
    made_and_checked(&lines.each_ref().map(|line| (&line[..], 0)));
}
