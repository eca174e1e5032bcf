//! Images that are written as docker archives, and to directories given as `oci:DIR`.

use sealift_desk::{out, told};
use serde_json::json;

use super::desk::{Compression, Images, POLICY, blob};

#[test]
fn a_docker_archive_has_the_image() {
    let desk = Images::new();
    let manifest = desk.layout("image", "v1", &["base.tar", "app-1.tar"], Compression::Gzip);
    desk.pack("oci:image", "os.sealift", 1, "");
    desk.does("unpack os.sealift docker-archive:os.tar");
    out(desk.command_of("mkdir").arg("found"));
    out(desk.command_of("tar").args(["-C", "found", "-xf", "os.tar"]));
    assert_eq!(desk.names("found"), ["blobs", "manifest.json"]);
    desk.does("unpack os.sealift out");
    let (_, plain) = desk.manifest("out");
    let path = |digest: &serde_json::Value| blob("", digest.as_str().unwrap()).trim_start_matches('/').to_owned();
    let layers: Vec<String> = plain["layers"].as_array().unwrap().iter().map(|layer| path(&layer["digest"])).collect();
    let config = path(&manifest["config"]["digest"]);
    assert_eq!(
        desk.parsed("found/manifest.json"),
        json!([{ "Config": config, "RepoTags": ["os:v1"], "Layers": layers }])
    );
    for file in layers.iter().chain([&config]) {
        assert!(desk.read(&format!("found/{file}")) == desk.read(&format!("out/{file}")), "{file}");
    }
    // A pipe gets the same, and an existing file is kept.
    out(&mut desk.shell(&format!("sealift unpack os.sealift docker-archive:- {POLICY} > piped.tar")));
    assert!(desk.read("piped.tar") == desk.read("os.tar"));
    desk.refused(&format!("unpack os.sealift docker-archive:os.tar {POLICY}"), 2, "already exists");
    // It can be packed again, and gives the same image.
    desk.pack("docker-archive:os.tar", "again.sealift", 1, "");
    desk.does("unpack again.sealift again");
    assert_eq!(desk.manifest("again").1["config"]["digest"], manifest["config"]["digest"]);
    assert_eq!(desk.names("again/blobs/sha256").len(), 4);
    let found = desk.json(&format!("unpack os.sealift docker-archive:dry.tar --dry-run --json {POLICY}"));
    assert_eq!(found["files"], 4, "config, manifest and two layers: {found}");
    assert!(!std::fs::exists(desk.path("dry.tar")).unwrap());
}

#[test]
fn policy_holds_and_nothing_is_remembered() {
    let desk = Images::new();
    desk.layout("image", "v1", &["base.tar"], Compression::Gzip);
    for version in 1..=3 {
        desk.pack("oci:image", &format!("{version}.sealift"), version, "");
    }
    desk.does("unpack 3.sealift docker-archive:3.tar");
    desk.does("unpack 1.sealift docker-archive:1.tar");
    desk.does("unpack 2.sealift oci:image-2");
    desk.refused(&format!("unpack 1.sealift docker-archive:2.tar {POLICY}"), 3, "version 1");
    desk.write("nobody", "");
    desk.refused("unpack 2.sealift docker-archive:2.tar --state state --trust nobody", 3, "");
    assert!(!std::fs::exists(desk.path("2.tar")).unwrap());
}

#[test]
fn only_images_become_docker_archives() {
    let desk = Images::new();
    desk.pack("base", "tree.sealift", 1, "");
    for target in ["docker-archive:x", "oci:x"] {
        desk.refused(&format!("unpack tree.sealift {target} {POLICY}"), 2, "not an OCI image layout");
    }
    // A layout that was packed as a plain directory may have compressed layers, or lack some.
    let manifest = desk.layout("image", "v1", &["base.tar"], Compression::Gzip);
    desk.pack("image", "gzip.sealift", 1, "");
    desk.refused(&format!("unpack gzip.sealift docker-archive:x {POLICY}"), 2, "not an uncompressed tar archive");
    desk.layout("plain", "v1", &["base.tar"], Compression::None);
    let config = blob("plain", manifest["config"]["digest"].as_str().unwrap());
    std::fs::remove_file(desk.path(&config)).unwrap();
    desk.pack("plain", "lacking.sealift", 1, "");
    desk.refused(&format!("unpack lacking.sealift docker-archive:x {POLICY}"), 2, "is missing");
    assert!(!std::fs::exists(desk.path("x")).unwrap());
}

#[test]
fn a_layout_at_a_target_is_updated_unless_it_holds_others() {
    let desk = Images::new();
    let one = desk.layout("one", "v1", &["base.tar", "app-1.tar"], Compression::Gzip);
    let two = desk.layout("two", "v2", &["base.tar", "app-2.tar"], Compression::Gzip);
    desk.pack("oci:one", "1.sealift", 1, "");
    desk.pack("oci:two", "2.sealift", 2, "");
    desk.refused(&format!("unpack 1.sealift oci:out:v1 {POLICY}"), 2, "give oci:out");
    desk.does("unpack 1.sealift oci:out");
    desk.does("unpack 2.sealift oci:out --update --delete");
    let (_, found) = desk.manifest("out");
    assert_eq!(found["config"], two["config"]);
    assert_eq!(desk.names("out/blobs/sha256").len(), 4);
    // Another program adds an image.
    desk.index("out", &[("v2", &found), ("mine", &one)]);
    let before = desk.read("out/index.json");
    let line = format!("unpack 1.sealift oci:out --update --allow-downgrade {POLICY}");
    let (status, said) = told(&mut desk.command(&line));
    assert!(status == Some(2) && said.contains("other images: v2, mine"), "{said}");
    assert_eq!(desk.read("out/index.json"), before);
}
