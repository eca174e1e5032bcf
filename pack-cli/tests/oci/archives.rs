//! Archives of `docker save`, of its old and its new form.

use std::os::unix::fs::symlink;

use sealift_desk::out;
use serde_json::{Value, json};

use super::desk::{Compression, Images, blob, config, digest_of};

/// Makes an archive of the old form of two images that share their first layer, to which the second has a link.
fn old_archive(desk: &Images) -> Vec<String> {
    let mut ids = Vec::new();
    let mut list = Vec::new();
    for version in 1..=2 {
        let archives = ["base.tar".to_owned(), format!("app-{version}.tar")];
        let mut layers = Vec::new();
        let mut diff_ids = Vec::new();
        for archive in &archives {
            let layer = format!("layer-{version}-{archive}/layer.tar");
            match (version, archive.as_str()) {
                (2, "base.tar") => {
                    desk.write(&format!("saved/{}", layer.replace("layer.tar", "VERSION")), "1.0");
                    symlink("../layer-1-base.tar/layer.tar", desk.path(&format!("saved/{layer}"))).unwrap();
                }
                _ => desk.write(&format!("saved/{layer}"), desk.read(archive)),
            }
            layers.push(layer);
            diff_ids.push(digest_of(&desk.read(archive)));
        }
        let config = config(&diff_ids).to_string();
        let id = digest_of(config.as_bytes());
        let name = format!("{}.json", id.trim_start_matches("sha256:"));
        desk.write(&format!("saved/{name}"), config);
        let tag = if version == 1 { "app:v1" } else { "app:latest" };
        list.push(json!({ "Config": name, "RepoTags": [tag], "Layers": layers }));
        ids.push(id);
    }
    desk.write("saved/manifest.json", Value::from(list).to_string());
    out(desk.command_of("tar").args(["-C", "saved", "-cf", "saved.tar", "."]));
    ids
}

#[test]
fn the_old_form_is_packed() {
    let desk = Images::new();
    let ids = old_archive(&desk);
    desk.refused("pack docker-archive:saved.tar -o x.sealift", 2, "several images: app:v1, app:latest");
    for (name, number) in [("app:v1", 0), ("app:latest", 1), ("app", 1), ("@0", 0)] {
        let said = desk.pack(&format!("docker-archive:saved.tar:{name}"), "x.sealift", 1, "--force");
        assert!(said.contains(&ids[number]), "{said}");
        desk.does("unpack x.sealift out --update --delete");
        let (_, manifest) = desk.manifest("out");
        assert_eq!(manifest["config"]["digest"], ids[number], "{name}");
        let layers = manifest["layers"].as_array().unwrap();
        let archives = ["base.tar".to_owned(), format!("app-{}.tar", number + 1)];
        assert_eq!(layers.len(), 2);
        for (layer, archive) in layers.iter().zip(archives) {
            assert!(desk.read(&blob("out", layer["digest"].as_str().unwrap())) == desk.read(&archive), "{name}");
        }
    }
    let entry = &desk.parsed("out/index.json")["manifests"][0];
    assert_eq!(entry["annotations"]["org.opencontainers.image.ref.name"], "app:v1");
}

#[test]
fn the_new_form_is_packed_also_from_a_pipe() {
    let desk = Images::new();
    let manifest = desk.layout("image", "v1", &["base.tar", "app-1.tar"], Compression::Gzip);
    let path = |entry: &Value| blob("", entry["digest"].as_str().unwrap()).trim_start_matches('/').to_owned();
    let layers: Vec<String> = manifest["layers"].as_array().unwrap().iter().map(path).collect();
    let list = json!([{ "Config": path(&manifest["config"]), "RepoTags": null, "Layers": layers }]);
    desk.write("image/manifest.json", list.to_string());
    out(desk.command_of("tar").args([
        "-C",
        "image",
        "-cf",
        "image.tar",
        "blobs",
        "index.json",
        "manifest.json",
        "oci-layout",
    ]));
    out(&mut desk.shell("cat image.tar | sealift pack docker-archive:- -o piped.sealift --name os"));
    desk.good("pack docker-archive:image.tar -o file.sealift --name os");
    assert!(desk.read("piped.sealift") == desk.read("file.sealift"));
    desk.good("unpack file.sealift out --allow-unsigned");
    assert_eq!(desk.manifest("out").1["config"]["digest"], manifest["config"]["digest"]);
    out(desk.command_of("gzip").args(["-k", "image.tar"]));
    desk.refused(
        "pack docker-archive:image.tar.gz -o x.sealift",
        2,
        "gzip -dc image.tar.gz | sealift pack docker-archive:-",
    );
    desk.refused("pack docker-archive:base.tar -o x.sealift", 2, "it has no manifest.json");
}
