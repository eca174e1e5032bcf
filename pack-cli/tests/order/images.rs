//! Reads of real images, as nbdkit logs them, and the files that they belong to.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use sealift_desk::{Desk, noise, out};

/// The size of a file that is large, does not compress, and can be read in part.
const LARGE: usize = 3 << 20;

/// Creates a tree: small files in directories, one of which is large enough for a hash tree, a hard link, a symbolic link, a hole, and text that
/// compresses.
fn tree(desk: &Desk) {
    for number in 0..400 {
        desk.write(&format!("tree/many/a-name-that-is-not-so-short-{number:03}"), noise(number, 5000));
    }
    desk.write("tree/usr/lib/large", noise(1000, LARGE));
    desk.write("tree/usr/bin/tool", noise(1001, 70_000));
    let text: String = (0..60_000).fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "line {}", number * 7919 % 10_007);
        text
    });
    desk.write("tree/usr/share/text", text);
    desk.write("tree/etc/empty", "");
    desk.write("tree/etc/holes", [vec![0; 300_000], noise(1002, 300_000)].concat());
    fs::hard_link(desk.path("tree/usr/bin/tool"), desk.path("tree/usr/bin/zweitname")).unwrap();
    std::os::unix::fs::symlink("tool", desk.path("tree/usr/bin/link")).unwrap();
}

/// Makes an image of the tree. Returns whether the program is installed.
fn made(desk: &Desk, line: &str) -> bool {
    let (program, rest) = line.split_once(' ').unwrap();
    let Ok(done) = Command::new(program).args(rest.split(' ')).current_dir(desk.path(".")).output() else {
        sealift_desk::skipped(&format!("needs {program}"));
        return false;
    };
    assert!(done.status.success(), "{line}: {done:?}");
    true
}

/// Writes a log of reads.
fn log(desk: &Desk, reads: &[(usize, usize)]) {
    let line = |(offset, count): &(usize, usize)| {
        format!("2024-05-06 07:08:09.1 connection=1 Read id=1 offset={offset:#x} count={count:#x} ...\n")
    };
    desk.write("log", reads.iter().map(line).collect::<String>());
}

fn find(image: &[u8], content: &[u8]) -> usize {
    let first = &content[..512];
    (0..image.len()).step_by(512).find(|at| image[*at..].starts_with(first)).unwrap()
}

#[test]
fn files_of_an_ext4_image() {
    let desk = Desk::new();
    tree(&desk);
    for options in ["", "-b 1024 ", "-O ^64bit,^metadata_csum -I 128 "] {
        fs::write(desk.path("img"), "").unwrap();
        fs::File::options().write(true).open(desk.path("img")).unwrap().set_len(32 << 20).unwrap();
        if !made(&desk, &format!("mkfs.ext4 -q -F {options}-d tree img")) {
            return;
        }
        check_plain(&desk);
    }
}

#[test]
fn files_of_an_erofs_image() {
    let desk = Desk::new();
    tree(&desk);
    for options in ["", "--chunksize=4096 "] {
        if !made(&desk, &format!("mkfs.erofs {options}img tree")) {
            return;
        }
        check_plain(&desk);
    }
}

/// Reads a part of the large file, and small ones in an order that is not that of the image.
fn check_plain(desk: &Desk) {
    let image = desk.read("img");
    let large = find(&image, &noise(1000, LARGE)[1 << 20..]);
    let (tool, last) = (find(&image, &noise(1001, 70_000)), find(&image, &noise(333, 5000)));
    // The first read is only of the superblock.
    log(desk, &[(1024, 512), (large, 4096), (last, 100), (tool + 65_536, 512), (large + 4096, 4096), (last, 4096)]);
    let expected = "# sealift order 1\nusr/lib/large\t1048576-1056767\nmany/a-name-that-is-not-so-short-333\nusr/bin/tool\n  ignored 1 read outside file contents\n";
    assert_eq!(desk.good("order import nbdkit log --filesystem img"), expected);
    // The same image in a partition.
    desk.write("disk", [vec![0; 1 << 20], image].concat());
    let moved = [(1024, 512), (large, 4096), (last, 100), (tool + 65_536, 512), (large + 4096, 4096)];
    log(desk, &moved.map(|(offset, count)| (offset + (1 << 20), count)));
    assert_eq!(desk.good("order import nbdkit log --filesystem disk --offset 1048576"), expected);
    // A read of the whole image.
    log(desk, &[(0, 1 << 30)]);
    let all = desk.good("order import nbdkit log --filesystem img --quiet");
    assert_eq!(all.lines().count() - 1, 404, "{all}");
}

/// Finds where the files of a compressed image are from what the kernel reads, if it mounts the image, and otherwise from the output of the image's
/// own program.
#[test]
fn files_of_compressed_images() {
    let desk = Desk::new();
    tree(&desk);
    let images = [
        "mksquashfs tree img -noappend -quiet -no-progress -comp gzip",
        "mksquashfs tree img -noappend -quiet -no-progress -comp zstd -b 1M",
        "mksquashfs tree img -noappend -quiet -no-progress -comp xz -Xbcj x86",
        "mksquashfs tree img -noappend -quiet -no-progress -comp lz4 -Xhc",
        "mksquashfs tree img -noappend -quiet -no-progress -comp gzip -no-fragments",
        "mksquashfs tree img -noappend -quiet -no-progress -noI -noD -noF",
        "mkfs.erofs -zlz4 img tree",
        "mkfs.erofs -zlz4 -C65536 img tree",
        "mkfs.erofs -zlz4 -E legacy-compress img tree",
        "mkfs.erofs -zlz4 -C16384 -E legacy-compress img tree",
        "mkfs.erofs -zlz4 -Efragments,ztailpacking,dedupe -C65536 img tree",
    ];
    for line in images {
        if !made(&desk, line) {
            return;
        }
        // The whole image, in two halves: only existing files are listed, and all files with content.
        let image = desk.read("img");
        log(&desk, &[(0, image.len() / 2), (image.len() / 2, image.len())]);
        let all = desk.good("order import nbdkit log --filesystem img --quiet");
        let packs_small_files = line.contains("fragments,ztail");
        assert!(packs_small_files || all.lines().count() - 1 == 404, "{line}: {all}");
        assert!(packs_small_files || !all.contains('\t') && all.contains("usr/share/text\n"), "{line}: {all}");
        // Incompressible content is stored as it is, or nearly: a read within it belongs to this file alone.
        let large = find_within(&image, &noise(1000, LARGE)[2_100_000..2_100_064]);
        log(&desk, &[(large, 64)]);
        let part = desk.good("order import nbdkit log --filesystem img --quiet");
        let (path, range) = part.trim().rsplit_once('\n').unwrap().1.split_once('\t').unwrap();
        let (first, last) = range.split_once('-').unwrap();
        let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
        assert_eq!(path, "usr/lib/large", "{line}");
        assert!(first <= 2_100_000 && 2_100_063 <= last && last - first < 1 << 20, "{line}: {part}");
    }
}

fn find_within(image: &[u8], content: &[u8]) -> usize {
    image.windows(content.len()).position(|part| part == content).unwrap()
}

#[test]
fn a_real_log() {
    if ["nbdkit", "nbdcopy"].iter().any(|program| Command::new(program).arg("--version").output().is_err()) {
        return sealift_desk::skipped("needs nbdkit and nbdcopy");
    }
    let desk = Desk::new();
    tree(&desk);
    fs::File::create(desk.path("img")).unwrap().set_len(32 << 20).unwrap();
    let Some(image) = made(&desk, "mkfs.ext4 -q -F -d tree img").then(|| desk.read("img")) else { return };
    for content in [noise(7, 5000), noise(1001, 70_000), noise(3, 5000)] {
        let line = format!(
            "--unix - --filter=offset --filter=log file img logfile=log logappend=1 range=512 offset={} --run",
            find(&image, &content)
        );
        let mut nbdkit = Command::new("nbdkit");
        nbdkit.args(line.split(' ')).arg("nbdcopy \"$uri\" null:").current_dir(desk.path("."));
        out(&mut nbdkit);
    }
    let names = ["many/a-name-that-is-not-so-short-007", "usr/bin/tool", "many/a-name-that-is-not-so-short-003"];
    let profile = desk.good("order import nbdkit log --filesystem img");
    assert_eq!(profile, format!("# sealift order 1\n{}\n", names.join("\n")), "{}", desk.text("log"));
}

/// Damaged images are read or refused within a time limit.
#[test]
fn damaged_images_are_refused_or_read() {
    let desk = Desk::new();
    for number in 0..40 {
        desk.write(&format!("tree/many/{number}"), noise(number, 3000));
    }
    desk.write("tree/large", "text ".repeat(100_000));
    fs::File::create(desk.path("ext4")).unwrap().set_len(2 << 20).unwrap();
    let lines = [
        ("ext4", "mkfs.ext4 -q -F -d tree ext4"),
        ("squashfs", "mksquashfs tree squashfs -noappend -quiet -no-progress -noI"),
        ("erofs", "mkfs.erofs -zlz4 -C65536 erofs tree"),
    ];
    log(&desk, &[(0, 1 << 30)]);
    for (name, line) in lines {
        let Some(whole) = made(&desk, line).then(|| desk.read(name)) else { return };
        // The bytes that are not 0, of which one is changed at a time.
        let used: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] != 0).collect();
        let mut refused = 0;
        for number in 0..150_u64 {
            let mut image = whole.clone();
            for byte in noise(number + 5000, 8).chunks(2) {
                let at = usize::from(byte[0]) << 8 | usize::from(byte[1]);
                // Half of the changes are in the first part, where the superblock is.
                let at = if number % 2 == 0 { used[at % used.len().min(600)] } else { used[at % used.len()] };
                image[at] = image[at].wrapping_add(byte[1] | 1);
            }
            image.truncate(if number % 5 == 0 { image.len() / 2 } else { image.len() });
            refused += u64::from(!is_read(&desk, &image));
        }
        assert!(refused > 20, "{name}: {refused}");
        desk.write("image", &whole[..1030]);
        desk.refused("order import nbdkit log --filesystem image", 2, "image: ");
    }
    desk.write("image", "neither");
    desk.refused("order import nbdkit log --filesystem image", 2, "no ext4, EROFS or squashfs");
    desk.refused("order import nbdkit log --filesystem nowhere", 2, "nowhere");
    desk.refused("order import nbdkit log --filesystem image --image a", 2, "--image");
    desk.refused("order import nbdkit log --image a --offset 1", 2, "--offset");
}

fn is_read(desk: &Desk, image: &[u8]) -> bool {
    use sealift::order::import::{Disk, Form, ImportOptions, import};
    desk.write("image", image);
    let mut options = ImportOptions::default();
    options.disk = Some(Disk::FileSystem { image: desk.path("image"), offset: 0 });
    let log = desk.read("log");
    import(Form::Nbdkit, &mut &log[..], Path::new("log"), &options).is_ok()
}
