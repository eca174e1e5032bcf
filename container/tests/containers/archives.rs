//! Archives: tar, cpio, ar and zip.

use std::fs;

use sealift_container::{BlockCodec, Kind};
use sealift_desk::{Desk, noise};

use crate::checked::{check, contents};
use crate::given::{Contents, files, made, text, tree};

#[test]
fn tar() {
    let desk = Desk::new();
    tree(&desk);
    let long = format!("tree/{}/{}", "directory".repeat(12), "name".repeat(40));
    desk.write(&long, text(3000));
    let mut expected = files(&desk.path("tree"));
    for (line, links) in [
        ("tar -cf img -C tree --format=gnu .", 2),
        ("tar -cf img -C tree --format=posix .", 2),
        ("bsdtar -cf img -C tree --format=gnutar .", 2),
        ("bsdtar -cf img -C tree --format=pax --no-read-sparse .", 2),
        ("tar -cf img -C tree --format=gnu --hard-dereference .", 0),
    ] {
        if made(&desk, line) {
            assert_eq!(check(&desk.path("img"), Kind::Tar, &expected).links.len(), links, "{line}");
        }
    }
    expected.remove(long.strip_prefix("tree/").unwrap());
    made(&desk, "tar -cf img -C tree --format=ustar --exclude=directory* .");
    check(&desk.path("img"), Kind::Tar, &expected);
    // Sparse files are left out.
    expected.remove("etc/holes");
    expected.remove("etc/hole");
    expected.remove("usr/lib/zeros");
    for format in ["gnu", "posix --sparse-version=0.1", "posix --sparse-version=1.0"] {
        made(&desk, &format!("tar -cf img -C tree --sparse --exclude=directory* --exclude=zeros --format={format} ."));
        check(&desk.path("img"), Kind::Tar, &expected);
    }
}

#[test]
fn cpio() {
    let desk = Desk::new();
    tree(&desk);
    let expected = files(&desk.path("tree"));
    for format in ["newc", "odc", "crc"] {
        if !made(&desk, &format!("cd tree && find . | cpio --quiet -o -H {format} > ../img")) {
            return;
        }
        check(&desk.path("img"), Kind::Cpio, &expected);
    }
}

/// A microcode archive, two compressed archives, a plain one, zeros between them, and bytes that are none.
#[test]
fn initrd() {
    let desk = Desk::new();
    tree(&desk);
    desk.write("early/kernel/x86/microcode/GenuineIntel.bin", noise(1, 70_000));
    desk.write("late/etc/late", "late");
    if !made(
        &desk,
        "for name in early tree late; do (cd $name; find . | cpio --quiet -o -H newc > ../$name.cpio); done",
    ) {
        return;
    }
    let mut expected: Contents = files(&desk.path("early"));
    expected.extend(files(&desk.path("late")));
    expected.insert("2".into(), desk.read("tree.cpio"));
    expected.insert("3".into(), desk.read("late.cpio"));
    for compressor in ["gzip -9n", "xz --check=crc32", "zstd -19", "lz4 -l", "lz4", "bzip2"] {
        let line = format!(
            "{compressor} < tree.cpio > 2; gzip -n < late.cpio > 3; truncate -s %512 early.cpio 2 3; head -c 3000 /dev/zero > zeros;
            cat early.cpio zeros 2 3 zeros late.cpio > img; echo rest >> img"
        );
        if !made(&desk, &line) {
            return;
        }
        assert_eq!(check(&desk.path("img"), Kind::Cpio, &expected).blocks.len(), 2, "{compressor}");
    }
}

#[test]
fn ar_and_debian_packages() {
    let desk = Desk::new();
    desk.write("tree/short", text(1001));
    desk.write("tree/a-name-of-more-than-sixteen-bytes", noise(3, 70_001));
    desk.write("tree/another-name-of-more-than-sixteen-bytes", "");
    if !made(&desk, "ar rc img tree/*") {
        return;
    }
    check(&desk.path("img"), Kind::Ar, &files(&desk.path("tree")));
    made(&desk, "bsdtar -cf img --format=arbsd -C tree short a-name-of-more-than-sixteen-bytes");
    let mut expected = files(&desk.path("tree"));
    expected.remove("another-name-of-more-than-sixteen-bytes");
    check(&desk.path("img"), Kind::Ar, &expected);
    let control = "Package: a\nVersion: 1\nArchitecture: all\nMaintainer: a <a@a>\nDescription: a\n";
    desk.write("deb/DEBIAN/control", control);
    desk.write("deb/usr/share/text", text(300_000));
    for compressor in ["xz", "gzip", "zstd", "none"] {
        if !made(&desk, &format!("dpkg-deb --root-owner-group -Z{compressor} -b deb img")) {
            return;
        }
        // A container in a container in a container.
        let file = fs::File::open(desk.path("img")).unwrap();
        let package = crate::checked::anatomy(&file, Kind::Ar);
        let names: Vec<_> = package.members.iter().map(|member| member.path.clone()).collect();
        let data = names.iter().find(|name| name.starts_with(b"data.tar")).expect("a package has data").clone();
        assert_eq!(contents(&file, &package)["debian-binary"], b"2.0\n");
        let bytes = contents(&file, &package)[std::str::from_utf8(&data).unwrap()].clone();
        desk.write("inner", &bytes);
        if compressor != "none" {
            let kind = match compressor {
                "xz" => Kind::Xz,
                "gzip" => Kind::Gzip,
                _ => Kind::Zstd,
            };
            let inner = crate::checked::anatomy(&&bytes[..], kind);
            desk.write("inner", &contents(&&bytes[..], &inner)[""]);
        }
        check(&desk.path("inner"), Kind::Tar, &[("usr/share/text".to_owned(), text(300_000))].into());
    }
}

#[test]
fn zip() {
    let desk = Desk::new();
    tree(&desk);
    let expected = files(&desk.path("tree"));
    let script = "
import os, sys, zipfile
method, level, comment = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
with zipfile.ZipFile('img', 'w', method, compresslevel=level) as archive:
    archive.comment = comment.encode()
    for root, directories, names in os.walk('tree'):
        for name in sorted(names + directories):
            path = os.path.join(root, name)
            if not os.path.islink(path):
                with_zip64 = name == 'tool'
                if with_zip64:
                    with open(path, 'rb') as source, archive.open(os.path.relpath(path, 'tree'), 'w', force_zip64=True) as to:
                        to.write(source.read())
                else:
                    archive.write(path, os.path.relpath(path, 'tree'))
";
    desk.write("zip.py", script);
    for (arguments, codec) in
        [("0 0 ''", None), ("8 6 ''", Some(BlockCodec::Deflate)), ("8 9 comment", Some(BlockCodec::Deflate))]
    {
        if !made(&desk, &format!("python3 zip.py {arguments}")) {
            return;
        }
        let anatomy = check(&desk.path("img"), Kind::Zip, &expected);
        assert_eq!(anatomy.blocks.first().map(|block| block.codec), codec, "{arguments}");
    }
    // Another method: its files are no members.
    made(&desk, "python3 zip.py 14 6 ''");
    check(&desk.path("img"), Kind::Zip, &Contents::new());
}
