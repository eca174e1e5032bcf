//! Images of squashfs, EROFS and ext4.

use sealift_container::{BlockCodec, Hint, Kind};
use sealift_desk::{Desk, noise};

use crate::checked::{check, structure_len};
use crate::given::{files, made, tree, zeros};

#[test]
fn squashfs() {
    let desk = Desk::new();
    tree(&desk);
    let expected = files(&desk.path("tree"));
    let zlib = |level, window_bits, strategies| Hint::Zlib { level, window_bits, strategies };
    let images = [
        ("-comp gzip", BlockCodec::Zlib, zlib(9, 15, 0)),
        ("-comp gzip -Xcompression-level 3 -Xwindow-size 14 -Xstrategy huffman_only", BlockCodec::Zlib, zlib(3, 14, 4)),
        ("-comp gzip -no-fragments", BlockCodec::Zlib, zlib(9, 15, 0)),
        // While it looks for duplicates, mksquashfs 4.5.1 overwrites fragments of such small blocks: unsquashfs cannot read them either.
        ("-comp gzip -b 4096 -always-use-fragments -no-duplicates", BlockCodec::Zlib, zlib(9, 15, 0)),
        ("-comp gzip -no-exports -no-xattrs -noF -noD", BlockCodec::Zlib, zlib(9, 15, 0)),
        ("-comp xz", BlockCodec::Xz, Hint::Xz { dictionary_len: 131_072, filters: 0 }),
        ("-comp xz -Xbcj x86 -Xdict-size 50%", BlockCodec::Xz, Hint::Xz { dictionary_len: 65_536, filters: 1 }),
        ("-comp lz4", BlockCodec::Lz4Block, Hint::Lz4 { is_high: false }),
        ("-comp lz4 -Xhc -b 1M", BlockCodec::Lz4Block, Hint::Lz4 { is_high: true }),
        ("-comp zstd -Xcompression-level 3", BlockCodec::Zstd, Hint::Zstd { level: 3 }),
        ("-comp zstd", BlockCodec::Zstd, Hint::Zstd { level: 15 }),
    ];
    for (options, codec, hint) in images {
        if !made(&desk, &format!("mksquashfs tree img -noappend -quiet -no-progress -xattrs {options}")) {
            return;
        }
        let anatomy = check(&desk.path("img"), Kind::Squashfs, &expected);
        assert_eq!((anatomy.hint, anatomy.links.len()), (hint, 2), "{options}");
        assert!(anatomy.blocks.iter().all(|block| block.codec == codec), "{options}");
        // All tables are blocks: headers of blocks, pointers, the superblock and padding are left.
        let len = std::fs::metadata(desk.path("img")).unwrap().len();
        let structure = structure_len(&anatomy, len);
        assert!(structure < 4096 + 500, "{options}: {structure} of {len}");
    }
    made(&desk, "mksquashfs tree img -noappend -quiet -no-progress -noI -noId -noX");
    check(&desk.path("img"), Kind::Squashfs, &expected);
}

#[test]
fn erofs() {
    let desk = Desk::new();
    tree(&desk);
    let expected = files(&desk.path("tree"));
    let images = [
        "",
        "--chunksize=4096",
        "-zlz4",
        "-zlz4hc",
        "-zlz4hc,12 -C65536",
        "-zlz4 -C1048576",
        "-zlz4 -E legacy-compress",
        "-zlz4 -C16384 -E legacy-compress",
        "-zlz4 -Eztailpacking",
        "-zlz4hc -Eztailpacking -C32768",
        "-zlz4 -Eztailpacking,legacy-compress",
        "-zlz4 -Efragments",
        "-zlz4 -Eall-fragments",
        "-zlz4 -Efragments -C65536",
        "-zlz4 -Ededupe",
        "-zlz4hc -Efragments,ztailpacking,dedupe -C65536",
        "-zlz4 -Eforce-inode-extended",
    ];
    for options in images {
        let line = format!("mkfs.erofs {options} img tree").replace("  ", " ");
        desk.write("img", "");
        std::fs::remove_file(desk.path("img")).unwrap();
        if !made(&desk, &line) {
            return;
        }
        let anatomy = check(&desk.path("img"), Kind::Erofs, &expected);
        assert_eq!(anatomy.blocks.is_empty(), !options.contains("-z"), "{options}");
        assert_eq!(anatomy.links.len(), 2, "{options}");
    }
}

#[test]
fn ext4() {
    let desk = Desk::new();
    tree(&desk);
    let expected = files(&desk.path("tree"));
    let images = [
        "-t ext4",
        "-t ext4 -b 1024",
        "-t ext4 -O ^64bit,^metadata_csum -I 128",
        "-t ext4 -O sparse_super2,bigalloc",
        "-t ext3",
        "-t ext2 -b 1024",
        "-t ext2 -O none",
    ];
    for options in images {
        zeros(&desk, "img", 64 << 20);
        if !made(&desk, &format!("mke2fs -q -F {options} -d tree img")) {
            return;
        }
        let anatomy = check(&desk.path("img"), Kind::Ext4, &expected);
        assert!(anatomy.blocks.is_empty() && anatomy.links.len() == 2, "{options}");
    }
    // Revision 0, in the superblock: not every mke2fs makes it.
    made(&desk, "mke2fs -q -F -t ext2 -O none -I 128 -d tree img");
    let mut image = desk.read("img");
    image[1024 + 0x4c..1024 + 0x50].fill(0);
    desk.write("img", &image);
    check(&desk.path("img"), Kind::Ext4, &expected);
}

/// The inode of a small file holds its content. Trees with holes are left out: `mke2fs -d` damages these.
#[test]
fn ext4_with_inline_data() {
    let desk = Desk::new();
    for len in [0, 1, 59, 60, 61, 100, 150, 700, 900, 5000] {
        desk.write(&format!("tree/{len}"), noise(len, len));
        desk.write(&format!("tree/directory/{len}"), noise(len + 1, len));
    }
    (0..30).for_each(|number| desk.write(&format!("tree/longer/a name {number}"), ""));
    let expected = files(&desk.path("tree"));
    for inode_len in [256, 1024] {
        zeros(&desk, "img", 16 << 20);
        if !made(&desk, &format!("mke2fs -q -F -t ext4 -O inline_data -I {inode_len} -d tree img")) {
            return;
        }
        check(&desk.path("img"), Kind::Ext4, &expected);
    }
}
