//! What skopeo reads and writes.

use sealift_desk::{has, out};

use super::desk::{Compression, Images};

fn skopeo(desk: &Images, line: &str) -> String {
    out(desk.command_of("skopeo").args(line.split_whitespace()))
}

#[test]
fn skopeo_reads_what_was_unpacked() {
    if !has(&["skopeo"]) {
        return;
    }
    let desk = Images::new();
    let manifest = desk.layout("image", "v1", &["base.tar", "app-1.tar"], Compression::Zstd);
    desk.pack("oci:image", "os.sealift", 1, "");
    desk.does("unpack os.sealift oci:out");
    desk.does("unpack os.sealift docker-archive:out.tar");
    let raw = skopeo(&desk, "inspect --config --raw oci:image:v1");
    assert_eq!(skopeo(&desk, "inspect --config --raw oci:out:v1"), raw);
    assert_eq!(skopeo(&desk, "inspect --config --raw docker-archive:out.tar"), raw);
    let found: serde_json::Value = serde_json::from_str(&skopeo(&desk, "inspect --raw oci:out:v1")).unwrap();
    assert_eq!(found["config"], manifest["config"]);
    // Copying checks every digest.
    for (number, source) in ["oci:out:v1", "docker-archive:out.tar", "docker-archive:out.tar:os:v1"].iter().enumerate()
    {
        skopeo(&desk, &format!("copy --quiet {source} dir:copy-{number}"));
    }
    assert_eq!(desk.parsed("copy-0/manifest.json")["config"]["digest"], manifest["config"]["digest"]);
}

#[test]
fn what_skopeo_writes_is_packed() {
    if !has(&["skopeo"]) {
        return;
    }
    let desk = Images::new();
    let manifest = desk.layout("image", "v1", &["base.tar", "app-1.tar"], Compression::Gzip);
    let id = manifest["config"]["digest"].as_str().unwrap();
    skopeo(&desk, "copy --quiet oci:image:v1 docker-archive:saved.tar:example.org/app:v1");
    skopeo(&desk, "copy --quiet --dest-compress-format zstd oci:image:v1 oci:copied:v1");
    skopeo(&desk, "copy --quiet --format v2s2 docker-archive:saved.tar dir:docker");
    for (number, source) in
        ["docker-archive:saved.tar", "docker-archive:saved.tar:example.org/app:v1", "oci:copied:v1"].iter().enumerate()
    {
        let said = desk.pack(source, &format!("{number}.sealift"), 1, "");
        assert!(said.contains(id), "{source}: {said}");
        desk.does(&format!("unpack {number}.sealift out-{number}"));
        let (_, found) = desk.manifest(&format!("out-{number}"));
        assert_eq!(found["config"]["digest"], id, "{source}");
    }
    desk.says("diff oci:out-1 docker-archive:saved.tar", "no difference");
    let entry = &desk.parsed("out-0/index.json")["manifests"][0];
    assert_eq!(entry["annotations"]["org.opencontainers.image.ref.name"], "example.org/app:v1");
    desk.does("unpack 0.sealift docker-archive:named.tar");
    skopeo(&desk, "copy --quiet docker-archive:named.tar:example.org/app:v1 dir:named");
}
