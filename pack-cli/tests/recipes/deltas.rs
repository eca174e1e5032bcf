//! Deltas between images: of the size of what changed in them.

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
