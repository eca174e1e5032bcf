//! Images of one base: in one bundle, and as a delta.

use super::desk::{Compression, Images, POLICY};

#[test]
fn images_of_one_base_share_its_objects() {
    let desk = Images::new();
    // The same files in layers that differ, as two builds of a base give them.
    desk.write("base/etc/motd", "hello from the second build\n");
    desk.tar("base", "base-2.tar");
    desk.layout("one", "v1", &["base.tar", "app-1.tar"], Compression::Gzip);
    desk.layout("two", "v2", &["base-2.tar", "app-2.tar"], Compression::Zstd);
    desk.pack("oci:one", "one.sealift", 1, "--recipes");
    desk.pack("one=oci:one two=oci:two", "both.sealift", 1, "--recipes");
    let (one, both) = (desk.len("one.sealift"), desk.len("both.sealift"));
    assert!(both < one + one / 10, "{both} of {one}");
    for (name, tag) in [("one", "v1"), ("two", "v2")] {
        desk.does(&format!("unpack both.sealift oci:from-{name} --ref {name}"));
        let (_, found) = desk.manifest(&format!("from-{name}"));
        let (_, before) = desk.manifest(name);
        assert_eq!(found["config"], before["config"]);
        desk.says(&format!("diff oci:from-{name}:{tag} oci:{name}"), "no difference");
        desk.does(&format!("unpack both.sealift docker-archive:{name}.tar --ref {name}"));
        desk.good(&format!("pack docker-archive:{name}.tar -o from-archive.sealift --force"));
        desk.good(&format!("unpack from-archive.sealift archive-{name} --allow-unsigned"));
        assert_eq!(desk.manifest(&format!("archive-{name}")).1["config"], before["config"]);
    }
    desk.refused(&format!("unpack both.sealift docker-archive:x.tar {POLICY}"), 2, "several refs");
}

#[test]
fn the_next_image_is_a_small_delta() {
    let desk = Images::new();
    desk.layout("one", "v1", &["base.tar", "app-1.tar"], Compression::Gzip);
    let two = desk.layout("two", "v2", &["base.tar", "app-2.tar"], Compression::Gzip);
    desk.pack("oci:one", "1.sealift", 1, "--recipes");
    desk.pack("oci:two", "2.sealift", 2, "--recipes");
    desk.pack("oci:two", "delta.sealift", 2, "--recipes --base 1.sealift --trust signers");
    let (full, delta) = (desk.len("2.sealift"), desk.len("delta.sealift"));
    assert!(delta < 8000, "{delta} of {full}");
    desk.does("unpack 1.sealift oci:device");
    desk.does("unpack delta.sealift docker-archive:two.tar --base 1.sealift");
    desk.does("unpack 2.sealift docker-archive:full.tar");
    assert!(desk.read("two.tar") == desk.read("full.tar"));
    desk.does("unpack delta.sealift oci:device --delete");
    assert_eq!(desk.manifest("device").1["config"], two["config"]);
    desk.says("diff oci:device oci:two", "no difference");
}
