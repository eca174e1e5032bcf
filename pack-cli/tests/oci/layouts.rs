//! Layouts that are packed, and unpacked again.

use std::os::unix::fs::MetadataExt as _;

use serde_json::json;

use super::desk::{Compression, Images, blob, digest_of};

const LAYERS: [&str; 2] = ["base.tar", "app-1.tar"];

#[test]
fn layers_are_uncompressed_and_the_image_keeps_its_id() {
    let desk = Images::new();
    let before = desk.layout("image", "v1", &LAYERS, Compression::Gzip);
    let (old_manifest, _) = desk.manifest("image");
    let said = desk.pack("oci:image:v1", "os.sealift", 1, "");
    desk.does("unpack os.sealift oci:out");
    let (manifest, after) = desk.manifest("out");
    for told in [&manifest, &old_manifest, before["config"]["digest"].as_str().unwrap()] {
        assert!(said.contains(told), "{told}: {said}");
    }
    // The config is the same file, and all else of the manifest is kept.
    assert_eq!(after["config"], before["config"]);
    assert_eq!(after["annotations"], before["annotations"]);
    let config = blob("out", after["config"]["digest"].as_str().unwrap());
    assert_eq!(desk.read(&config), desk.read(&config.replacen("out", "image", 1)));
    for (layer, archive) in after["layers"].as_array().unwrap().iter().zip(LAYERS) {
        let expected = json!({
            "mediaType": "application/vnd.oci.image.layer.v1.tar",
            "digest": digest_of(&desk.read(archive)),
            "size": desk.len(archive),
            "annotations": { "org.example.kept": archive },
        });
        assert_eq!(*layer, expected);
        assert!(desk.read(&blob("out", layer["digest"].as_str().unwrap())) == desk.read(archive));
    }
    assert_eq!(digest_of(&desk.read(&blob("out", &manifest))), manifest);
    let entry = &desk.parsed("out/index.json")["manifests"][0];
    assert_eq!(entry["annotations"]["org.opencontainers.image.ref.name"], "v1");
    assert_eq!(entry["size"], desk.len(&blob("out", &manifest)));
    assert_eq!(desk.text("out/oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#);
    assert_eq!(desk.names("out/blobs/sha256").len(), 4, "config, manifest and two layers");
    for name in ["out", "out/blobs", "out/index.json", &config] {
        let stat = std::fs::metadata(desk.path(name)).unwrap();
        let mode = if stat.is_dir() { 0o755 } else { 0o644 };
        assert_eq!((stat.mode() & 0o7777, stat.mtime()), (mode, 1_704_164_645), "{name}");
    }
}

#[test]
fn one_image_gives_one_bundle_however_its_layers_are_compressed() {
    let desk = Images::new();
    let mut bundles = Vec::new();
    for (name, compression) in [("gz", Compression::Gzip), ("zst", Compression::Zstd), ("plain", Compression::None)] {
        desk.layout(name, "v1", &LAYERS, compression);
        let bundle = format!("{name}.sealift");
        let said = desk.pack(&format!("oci:{name}"), &bundle, 1, "");
        assert_eq!(said.contains("note: "), compression != Compression::None, "{said}");
        bundles.push(desk.read(&bundle));
    }
    // What was unpacked is packed as it is, too.
    desk.does("unpack gz.sealift out");
    desk.pack("oci:out", "again.sealift", 1, "");
    bundles.push(desk.read("again.sealift"));
    assert!(bundles.windows(2).all(|pair| pair[0] == pair[1]));
    desk.says("diff oci:gz oci:zst", "no difference");
    desk.says("diff gz.sealift oci:plain:v1 --exclude none", "no difference");
}

#[test]
fn json_has_the_digests_and_no_note() {
    let desk = Images::new();
    desk.layout("image", "v1", &LAYERS, Compression::Gzip);
    let (before, manifest) = desk.manifest("image");
    let line = "pack oci:image -o os.sealift --name os --json";
    let found = &desk.json(line)["images"];
    desk.does("unpack os.sealift out --allow-unsigned");
    let (after, _) = desk.manifest("out");
    let id = &manifest["config"]["digest"];
    assert_eq!(*found, json!([{ "ref": "main", "id": id, "manifest": after, "previous_manifest": before }]));
    let (_, said) = desk.run("pack oci:image -o os.sealift --name os --quiet --force");
    assert_eq!(said, "");
}

#[test]
fn a_tag_chooses_one_of_several_images() {
    let desk = Images::new();
    let one = desk.layout("images", "v1", &["base.tar"], Compression::Gzip);
    let other = desk.layout("images", "v2", &LAYERS, Compression::Gzip);
    desk.index("images", &[("v1", &one), ("v2", &other)]);
    desk.refused("pack oci:images -o x.sealift", 2, "several images: v1, v2; name one behind a colon");
    desk.refused("pack oci:images:v3 -o x.sealift", 2, "no image v3; it has v1, v2");
    desk.refused("pack oci:nowhere -o x.sealift", 2, "nowhere");
    desk.refused("pack oci: -o x.sealift", 2, "oci:DIR");
    for (place, image) in [("images:v1", &one), ("images:v2", &other), ("images:@1", &other)] {
        desk.good(&format!("pack oci:{place} -o x.sealift --force"));
        desk.good("unpack x.sealift out --allow-unsigned --update --delete");
        let (_, found) = desk.manifest("out");
        assert_eq!(found["config"], image["config"], "{place}");
    }
    // Only this image's files are in the bundle.
    assert_eq!(desk.names("out/blobs/sha256").len(), 4);
    desk.refused("pack oci:images:v1 -o y.sealift --exclude etc", 2, "packed unchanged");
    desk.refused("pack oci:images:v1 -o y.sealift --owner 1:1", 2, "packed unchanged");
}
