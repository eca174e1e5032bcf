//! Images that lie, or that cannot be packed: each is refused with what is wrong, and nothing is written.

use serde_json::{Value, json};

use super::desk::{Compression, Images, blob, digest_of};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Makes an image, changes its manifest, and expects this reason.
#[track_caller]
fn refused(desk: &Images, why: &str, change: impl FnOnce(&Images, &mut Value)) {
    let _ = std::fs::remove_dir_all(desk.path("image"));
    let mut manifest = desk.layout("image", "v1", &["base.tar", "app-1.tar"], Compression::Gzip);
    change(desk, &mut manifest);
    desk.index("image", &[("v1", &manifest)]);
    is_refused(desk, why);
}

#[track_caller]
fn is_refused(desk: &Images, why: &str) {
    let said = desk.refused("pack oci:image -o x.sealift", 2, why);
    assert!(said.starts_with("sealift: ") && said.trim_end().lines().count() == 1, "{said}");
    assert!(desk.names("").iter().all(|name| !name.contains("x.sealift")), "{said}");
}

fn flip(desk: &Images, file: &str) {
    let mut bytes = desk.read(file);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    desk.write(file, bytes);
}

/// Replaces the config.
fn set_config(desk: &Images, manifest: &mut Value, config: &[u8]) {
    manifest["config"]["digest"] = desk.add_blob("image", config).into();
    manifest["config"]["size"] = config.len().into();
}

#[test]
fn manifests_that_cannot_be_followed() {
    let desk = Images::new();
    let digits = "0".repeat(64);
    for (digest, why) in [
        ("sha256:../../../../etc/passwd", "which is not sha256:"),
        ("/etc/passwd", "which is not sha256:"),
        ("sha512:abc", "which is not sha256:"),
        (&format!("sha256:{digits}"), "is missing: copy the image again"),
    ] {
        refused(&desk, why, |_, manifest| manifest["layers"][1]["digest"] = digest.into());
        refused(&desk, why, |_, manifest| manifest["config"]["digest"] = digest.into());
    }
    refused(&desk, "no valid digest of layer 1", |_, manifest| manifest["layers"][0]["digest"] = json!(1));
    refused(&desk, "no valid size of layer 2", |_, manifest| manifest["layers"][1]["size"] = json!(-1));
    refused(&desk, "and its descriptor says 1", |_, manifest| manifest["layers"][0]["size"] = json!(1));
    refused(&desk, "no valid layers", |_, manifest| manifest["layers"] = json!({}));
    refused(&desk, "no valid config", |_, manifest| drop(manifest.as_object_mut().unwrap().remove("config")));
    refused(&desk, "no valid object", |_, manifest| *manifest = json!([]));
    refused(&desk, "layer 1 is encrypted", |_, manifest| {
        manifest["layers"][0]["mediaType"] = "application/vnd.oci.image.layer.v1.tar+gzip+encrypted".into();
    });
    refused(&desk, "layer 2 is of type text/html", |_, manifest| {
        manifest["layers"][1]["mediaType"] = "text/html".into();
    });
    refused(&desk, "form of schema 1, which names no config: convert it", |_, manifest| {
        manifest["schemaVersion"] = json!(1);
    });
    refused(&desk, "an artifact of type application/x-chart", |_, manifest| {
        manifest["config"]["mediaType"] = "application/x-chart".into();
    });
    refused(&desk, "platforms: linux/amd64, linux/arm/v7: choose one, as in `skopeo copy", |_, manifest| {
        *manifest = json!({ "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [
            { "platform": { "os": "linux", "architecture": "amd64" } },
            { "platform": { "os": "linux", "architecture": "arm", "variant": "v7" } },
            { "platform": { "os": "unknown", "architecture": "unknown" } },
        ] });
    });
}

#[test]
fn configs_that_lie() {
    let desk = Images::new();
    refused(&desk, "is not valid JSON", |desk, manifest| set_config(desk, manifest, b"{ cut"));
    refused(&desk, "is not valid JSON", |desk, manifest| set_config(desk, manifest, &[b'['; 100_000]));
    refused(&desk, "no valid rootfs.diff_ids", |desk, manifest| set_config(desk, manifest, b"{}"));
    refused(&desk, "has the digest sha256:1, which is not", |desk, manifest| {
        set_config(desk, manifest, br#"{"rootfs":{"diff_ids":["sha256:1"]}}"#);
    });
    let ids = |desk: &Images, archives: &[&str]| {
        let ids: Vec<String> = archives.iter().map(|archive| digest_of(&desk.read(archive))).collect();
        super::desk::config(&ids).to_string().into_bytes()
    };
    refused(&desk, "the manifest has 2 layers, and the config has 1", |desk, manifest| {
        set_config(desk, manifest, &ids(desk, &["base.tar"]));
    });
    refused(&desk, "the manifest has 2 layers, and the config has 3", |desk, manifest| {
        set_config(desk, manifest, &ids(desk, &["base.tar", "app-1.tar", "app-1.tar"]));
    });
    refused(&desk, "is not layer 2 of the image", |desk, manifest| {
        set_config(desk, manifest, &ids(desk, &["base.tar", "app-2.tar"]));
    });
}

#[test]
fn files_that_are_damaged() {
    let desk = Images::new();
    refused(&desk, ": copy the image again", |desk, manifest| {
        flip(desk, &blob("image", manifest["layers"][0]["digest"].as_str().unwrap()));
    });
    refused(&desk, "is damaged: its digest is", |desk, manifest| {
        flip(desk, &blob("image", manifest["config"]["digest"].as_str().unwrap()));
    });
    let manifest = desk.layout("image", "v1", &["base.tar"], Compression::Gzip);
    let path = blob("image", &digest_of(manifest.to_string().as_bytes()));
    flip(&desk, &path);
    is_refused(&desk, "is damaged: its digest is");
    // A symbolic link to a blob leads nowhere outside of the layout.
    std::fs::rename(desk.path(&path), desk.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(desk.path("elsewhere"), desk.path(&path)).unwrap();
    is_refused(&desk, "is missing");
    // What is compressed otherwise, or cut.
    let mut layers = vec![(b"\xfd7zXZ\0and more".to_vec(), "compressed with xz")];
    let whole = desk.compressed("base.tar", Compression::Gzip);
    layers.push((whole[..whole.len() - 9].to_vec(), "cannot be decompressed"));
    let whole = desk.compressed("base.tar", Compression::Zstd);
    layers.push((whole[..whole.len() - 9].to_vec(), "cannot be decompressed"));
    layers.push(([&whole[..], b"more"].concat(), "cannot be decompressed"));
    for (layer, why) in layers {
        refused(&desk, why, |desk, manifest| {
            manifest["layers"][0]["digest"] = desk.add_blob("image", &layer).into();
            manifest["layers"][0]["size"] = layer.len().into();
        });
    }
}

#[test]
fn layouts_that_are_none() {
    let desk = Images::new();
    let manifest = desk.layout("image", "v1", &["base.tar"], Compression::Gzip);
    let index = desk.read("image/index.json");
    for (text, why) in [
        ("", "index.json is not valid JSON"),
        ("{}", "index.json has no valid manifests"),
        (r#"{"manifests":[]}"#, "it holds no image"),
        (r#"{"manifests":[{}]}"#, "index.json has no valid digest of the image"),
    ] {
        desk.write("image/index.json", text);
        is_refused(&desk, why);
    }
    // Names of an image do not write to the terminal as they are.
    desk.index("image", &[("\u{1b}[2Jone", &manifest), ("two", &manifest)]);
    let said = desk.refused("pack oci:image -o x.sealift", 2, "several images");
    assert!(!said.contains('\u{1b}'), "{said:?}");
    let entry = desk.add_json("image", "application/vnd.docker.distribution.manifest.v1+prettyjws", &json!({}));
    desk.write("image/index.json", json!({ "manifests": [entry] }).to_string());
    is_refused(&desk, "schema 1");
    let mut long = desk.add_json("image", MANIFEST, &json!({ "a": " ".repeat(17 << 20) }));
    desk.write("image/index.json", json!({ "manifests": [long] }).to_string());
    is_refused(&desk, "more than the limit of 16777216");
    long = desk.add_json("image", MANIFEST, &json!("text"));
    desk.write("image/index.json", json!({ "manifests": [long] }).to_string());
    is_refused(&desk, "no valid object");
    desk.write("image/index.json", index);
    desk.write("image/oci-layout", r#"{"imageLayoutVersion":"2.0.0"}"#);
    is_refused(&desk, "states version 2.0.0");
    std::fs::remove_file(desk.path("image/oci-layout")).unwrap();
    is_refused(&desk, "not an OCI image layout: it has no oci-layout: copy the image into a layout");
}
