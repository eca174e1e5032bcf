//! Disks, FAT, ISO 9660, and programs in PE format.

use std::fs;

use sealift_container::{Anatomy, Blocks, Content, Kind, Limits};
use sealift_desk::{Desk, noise, out};

use crate::checked::{anatomy, check, contents};
use crate::given::{Contents, files, made, text, tree, zeros};

#[test]
fn fat() {
    let desk = Desk::new();
    tree(&desk);
    for link in ["tree/usr/bin/link", "tree/etc/long"] {
        fs::remove_file(desk.path(link)).unwrap();
    }
    desk.write("tree/UPPER.TXT", "short");
    desk.write("tree/lower.txt", "short, with flags of case");
    desk.write("tree/A name with a dot. and thirteen un", "a long name");
    desk.write("tree/größere Grüße", "not ASCII");
    let expected = files(&desk.path("tree"));
    for (options, len) in [("-F 12 -s 8", 14 << 20), ("-F 16", 64 << 20), ("-F 32", 64 << 20), ("-F 32 -s 1", 40 << 20)]
    {
        zeros(&desk, "img", len);
        if !made(&desk, &format!("mkfs.vfat {options} img")) || !made(&desk, "mcopy -s -i img tree/* ::") {
            return;
        }
        // Files that were deleted leave gaps and records.
        made(
            &desk,
            "mdel -i img ::texts/3 ::etc/one; mcopy -i img tree/texts/3 ::texts/; mcopy -i img tree/etc/one ::etc/",
        );
        check(&desk.path("img"), Kind::Fat, &expected);
    }
}

#[test]
fn disks_with_partitions() {
    let desk = Desk::new();
    let partition = |desk: &Desk, at: usize, content: &[u8]| {
        std::os::unix::fs::FileExt::write_all_at(
            &fs::File::options().write(true).open(desk.path("img")).unwrap(),
            content,
            at.try_into().unwrap(),
        )
        .unwrap();
    };
    let tables = [
        (
            Kind::Gpt,
            "label: gpt\nstart=2048, size=2048\nstart=8192, size=64, name=\"a name\"\n",
            &[(1, 2048, 2048), (2, 8192, 64)][..],
        ),
        (
            Kind::Mbr,
            "label: dos\nstart=2048, size=2048, type=83\nstart=4096, size=8192, type=5\nstart=6144, size=64\nstart=9000, size=99\n",
            &[(1, 2048, 2048), (5, 6144, 64), (6, 9000, 99)],
        ),
    ];
    for (kind, script, partitions) in tables {
        zeros(&desk, "img", 16 << 20);
        desk.write("script", script);
        if !made(&desk, "sfdisk -q img < script") {
            return;
        }
        let mut expected = Contents::new();
        for (number, start, sectors) in partitions {
            let content = noise(*number, sectors * 512);
            partition(&desk, start * 512, &content);
            expected.insert(number.to_string(), content);
        }
        check(&desk.path("img"), kind, &expected);
    }
}

/// A squashfs image with a disk with a file system in it.
#[test]
fn containers_in_containers() {
    let desk = Desk::new();
    tree(&desk);
    let expected = files(&desk.path("tree"));
    zeros(&desk, "root.img", 64 << 20);
    let lines = [
        "mke2fs -q -F -d tree root.img",
        "sfdisk -q outer/disk.img < script",
        "dd if=root.img of=outer/disk.img bs=1M seek=1 conv=notrunc status=none",
        "mksquashfs outer img -noappend -quiet -no-progress -comp zstd -Xcompression-level 1",
    ];
    fs::create_dir(desk.path("outer")).unwrap();
    zeros(&desk, "outer/disk.img", 80 << 20);
    desk.write("script", "label: gpt\nstart=2048, size=131072\n");
    for line in lines {
        if !made(&desk, line) {
            return;
        }
    }
    let file = fs::File::open(desk.path("img")).unwrap();
    let squashfs = anatomy(&file, Kind::Squashfs);
    let blocks = Blocks::new(&file, &squashfs);
    let disk = Content::new(&blocks, squashfs.find(b"disk.img").unwrap());
    let gpt = anatomy(&disk, Kind::Gpt);
    let blocks = Blocks::new(&disk, &gpt);
    let partition = Content::new(&blocks, gpt.find(b"1").unwrap());
    let ext4 = anatomy(&partition, Kind::Ext4);
    assert!(contents(&partition, &ext4) == expected);
}

#[test]
fn iso9660() {
    let desk = Desk::new();
    tree(&desk);
    desk.write(&format!("tree/{}", "a-long-name-".repeat(20)), "long");
    let expected = files(&desk.path("tree"));
    for options in ["-R", "-R -J", "-R -iso-level 3", "-R -D"] {
        if !made(&desk, &format!("xorrisofs -quiet {options} -o img tree")) {
            return;
        }
        check(&desk.path("img"), Kind::Iso9660, &expected);
    }
    // Without Rock Ridge.
    desk.write("plain/SHORT.TXT", "short");
    desk.write("plain/BELOW/A", text(70_000));
    made(&desk, "xorriso -as mkisofs -quiet --norock -o img plain");
    check(&desk.path("img"), Kind::Iso9660, &files(&desk.path("plain")));
    // A disk image at the same time.
    out(desk.command_of("xorrisofs").args(["-quiet", "-R", "-partition_offset", "16", "-o", "img", "tree"]));
    check(&desk.path("img"), Kind::Iso9660, &expected);
}

#[test]
fn app_images() {
    let desk = Desk::new();
    tree(&desk);
    if !made(&desk, "mksquashfs tree squash -quiet -no-progress") {
        return;
    }
    let image = [runtime(), desk.read("squash")].concat();
    desk.write("img", &image);
    check(&desk.path("img"), Kind::AppImage, &[("image".to_owned(), desk.read("squash"))].into());
    // Without anything behind the program.
    desk.write("img", runtime());
    let bytes = fs::File::open(desk.path("img")).unwrap();
    assert!(Anatomy::of(&bytes, &Limits::default()).is_err());
}

/// Returns a program with the mark of AppImage's, which is in padding.
fn runtime() -> Vec<u8> {
    let mut program = fs::read("/bin/true").unwrap();
    program[8..11].copy_from_slice(b"AI\x02");
    program
}

#[test]
fn unified_kernel_images() {
    let desk = Desk::new();
    let sections = [
        (".osrel", text(200)),
        (".cmdline", b"quiet".to_vec()),
        (".linux", noise(1, 100_001)),
        (".initrd", noise(2, 50_000)),
    ];
    // As ukify and objcopy write it: headers, a table of sections, and each section's content at a multiple of 512.
    let mut image = vec![0; 512];
    let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"MZ");
    put(0x3c, &0x40_u32.to_le_bytes());
    put(0x40, b"PE\0\0\x64\x86\x04\0");
    put(0x40 + 20, &16_u16.to_le_bytes());
    let mut place = 512;
    for (number, (name, content)) in sections.iter().enumerate() {
        let at = 0x40 + 24 + 16 + number * 40;
        let padded = content.len().next_multiple_of(512);
        put(at, name.as_bytes());
        for (field, value) in [(8, content.len()), (16, padded), (20, place)] {
            put(at + field, &u32::try_from(value).unwrap().to_le_bytes());
        }
        place += padded;
    }
    for (_, content) in &sections {
        image.extend(content);
        image.resize(image.len().next_multiple_of(512), 0);
    }
    desk.write("img", &image);
    check(&desk.path("img"), Kind::Pe, &sections.map(|(name, content)| (name.to_owned(), content)).into());
}
