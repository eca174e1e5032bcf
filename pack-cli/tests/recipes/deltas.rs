//! Deltas between images: of the size of what changed in them.

use std::process::Command;

use sealift_desk::{has, noise, out, skipped};

use crate::desk::Images;

#[test]
fn a_delta_has_what_changed_in_the_image() {
    let Some(images) = Images::new() else { return };
    images.good("pack 2 -o opaque.sealift --name os --bundle-version 2 --key release --base 1.sealift --trust signers");
    let (delta, opaque) = (images.len("delta.sealift"), images.len("opaque.sealift"));
    assert!(delta * 2 < opaque, "{delta} bytes as a recipe, {opaque} without");
    images.does("unpack 1.sealift tree");
    images.does("unpack delta.sealift tree --update");
    images.has_image("tree/os.squashfs", 2);
    images.does("audit tree");
    images.does("verify --deep delta.sealift --base 1.sealift");
    images.does("verify --deep delta.sealift");
    images.does("unpack delta.sealift new --base 1.sealift");
    images.has_image("new/os.squashfs", 2);
    // A base need not be stored as it was when the delta was made.
    images.good("pack 1 -o flat.sealift --name os --bundle-version 1 --key release");
    images.does("unpack delta.sealift flat --base flat.sealift");
    images.has_image("flat/os.squashfs", 2);
}

#[test]
fn an_appimage_is_a_program_and_an_image() {
    let Some(images) = Images::new() else { return };
    let mut runtime = std::fs::read("/bin/true").unwrap();
    runtime[8..11].copy_from_slice(b"AI\x02");
    for version in 1..=2 {
        let image = images.read(&format!("{version}/os.squashfs"));
        images.write(&format!("app-{version}/x.AppImage"), [&runtime[..], &image].concat());
    }
    let pack = "--name os --key release --recipes";
    images.good(&format!("pack app-1 -o app-1.sealift --bundle-version 1 {pack}"));
    images.good(&format!("pack app-2 -o app-2.sealift --bundle-version 2 {pack} --base app-1.sealift --trust signers"));
    let (delta, of_image) = (images.len("app-2.sealift"), images.len("delta.sealift"));
    assert!(delta < of_image + 1000, "{delta} bytes, and {of_image} without the program");
    images.does("unpack app-1.sealift app");
    images.does("unpack app-2.sealift app --update");
    assert!(images.read("app/x.AppImage") == images.read("app-2/x.AppImage"));
    let listed = images.good("ls app-1.sealift x.AppImage//image//etc");
    assert!(listed.contains("file-3"), "{listed}");
}

#[test]
fn a_slot_is_a_base_of_an_image_s_delta() {
    let Some(images) = Images::new() else { return };
    images.does("unpack 1.sealift image:a");
    images.does("unpack delta.sealift image:b --base image:a");
    images.has_image("b", 2);
    images.does("audit image:b");
}

#[test]
fn a_base_that_lacks_a_part_is_refused_before_anything_is_written() {
    let Some(images) = Images::new() else { return };
    images.does("unpack 1.sealift tree");
    let mut image = images.read("tree/os.squashfs");
    let middle = image.len() / 2;
    image[middle] ^= 1;
    images.write("tree/os.squashfs", &image);
    let line = format!("unpack delta.sealift tree --update --no-check {}", crate::desk::POLICY);
    let (status, said) = images.run(&line);
    assert_eq!(status, Some(4), "{said}");
    assert!(images.read("tree/os.squashfs") == image, "it was changed");
}

/// Compresses the file `first` as no registered encoder does, with a full flush in its middle, and `second` as zlib does.
const TWO_MEMBERS: &str = "\
import sys, zlib
first, second, to = (open(path, mode) for path, mode in zip(sys.argv[1:], ('rb', 'rb', 'wb')))
packer, first = zlib.compressobj(6, wbits=31), first.read()
to.write(packer.compress(first[:50000]) + packer.flush(zlib.Z_FULL_FLUSH) + packer.compress(first[50000:]) + packer.flush())
packer = zlib.compressobj(6, wbits=31)
to.write(packer.compress(second.read()) + packer.flush())
";

#[test]
fn a_block_that_a_base_has_needs_no_encoder() {
    let Some(images) = Images::new() else { return };
    if !has(&["python3"]) {
        skipped("needs python3: makes what no registered encoder makes");
        return;
    }
    let text: String = (0..20_000).map(|line| format!("line {line}, {}\n", line * 7919 % 10_007)).collect();
    images.write("first", noise(7, 100_000));
    for (version, change) in [(1, ""), (2, ".")] {
        // One line differs, and with it all that is compressed behind it.
        images.write("second", text.replacen("line 10,", &format!("line 10{change},"), 1));
        std::fs::create_dir(images.path(&format!("gz-{version}"))).unwrap();
        let paths = ["first", "second", &format!("gz-{version}/x.gz")].map(|name| images.path(name));
        out(Command::new("python3").args(["-c", TWO_MEMBERS]).args(paths));
    }
    let pack = "--name os --key release";
    images.good(&format!("pack gz-1 -o gz-1.sealift --bundle-version 1 {pack} --recipes"));
    let over = format!("--bundle-version 2 {pack} --base gz-1.sealift --trust signers");
    images.good(&format!("pack gz-2 -o opaque.sealift {over}"));
    images.good(&format!("pack gz-2 -o gz-2.sealift {over} --recipes"));
    let (delta, opaque) = (images.len("gz-2.sealift"), images.len("opaque.sealift"));
    assert!(delta * 4 < opaque, "{delta} bytes as a recipe, {opaque} without");
    images.does("unpack gz-1.sealift gz");
    images.does("unpack gz-2.sealift gz --update");
    assert!(images.read("gz/x.gz") == images.read("gz-2/x.gz"));
}
