//! A folder with container images, made of trees by tar and a few lines of JSON.

use std::ops::Deref;
use std::path::Path;

use sealift_desk::{Desk, noise, out};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// How an image's layers are compressed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gzip => "+gzip",
            Self::Zstd => "+zstd",
        }
    }
}

/// A desk with a key and the layers `base.tar`, `app-1.tar` and `app-2.tar`: the second version of the application differs a little.
pub(crate) struct Images(Desk);

impl Deref for Images {
    type Target = Desk;

    fn deref(&self) -> &Desk {
        &self.0
    }
}

/// The options of every run that unpacks.
pub(crate) const POLICY: &str = "--trust signers --state state --progress none";

/// The digest of bytes, as images write it.
pub(crate) fn digest_of(bytes: &[u8]) -> String {
    let digits: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

/// Where the file with a digest is in a layout.
pub(crate) fn blob(layout: &str, digest: &str) -> String {
    format!("{layout}/blobs/{}", digest.replace(':', "/"))
}

/// The config of an image with these layers.
pub(crate) fn config(diff_ids: &[String]) -> Value {
    json!({
        "created": "2024-01-02T03:04:05.678901234Z",
        "architecture": "amd64",
        "os": "linux",
        "config": { "Cmd": ["/bin/busybox", "cat", "/etc/motd"] },
        "rootfs": { "type": "layers", "diff_ids": diff_ids },
        "x-unknown": [1.5, null],
    })
}

impl Images {
    pub(crate) fn new() -> Self {
        let desk = Self(Desk::with_key());
        if let Some(busybox) = ["/bin/busybox", "/usr/bin/busybox"].iter().find(|path| Path::new(path).exists()) {
            desk.write("base/bin/busybox", std::fs::read(busybox).unwrap());
            desk.set_mode("base/bin/busybox", 0o755);
        }
        desk.write("base/etc/motd", "hello from the base\n");
        desk.write("base/usr/lib/noise", noise(7, 400_000));
        for version in 1..=2 {
            let lines = (0..4000).map(|line| match line {
                2000 => format!("line of version {version}\n"),
                _ => format!("line {line}, {}\n", line * 7919 % 1009),
            });
            desk.write(&format!("app-{version}/app/data"), lines.collect::<String>());
            desk.write(&format!("app-{version}/app/library"), noise(9, 200_000));
        }
        for tree in ["base", "app-1", "app-2"] {
            desk.tar(tree, &format!("{tree}.tar"));
        }
        desk
    }

    /// Makes a layer of a tree.
    pub(crate) fn tar(&self, tree: &str, archive: &str) {
        let fixed = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@1700000000"];
        out(self.command_of("tar").args(fixed).args(["-C", tree, "-cf", archive, "."]));
    }

    /// Adds a file to a layout, and returns its digest.
    pub(crate) fn add_blob(&self, layout: &str, bytes: &[u8]) -> String {
        let digest = digest_of(bytes);
        self.write(&blob(layout, &digest), bytes);
        digest
    }

    /// Adds a document to a layout, and returns a descriptor of it.
    pub(crate) fn add_json(&self, layout: &str, media_type: &str, document: &Value) -> Value {
        let bytes = document.to_string().into_bytes();
        json!({ "mediaType": media_type, "digest": self.add_blob(layout, &bytes), "size": bytes.len() })
    }

    /// Returns a layer as it is stored.
    pub(crate) fn compressed(&self, archive: &str, compression: Compression) -> Vec<u8> {
        let program = match compression {
            Compression::None => return self.read(archive),
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
        };
        let done = self.command_of(program).args(["-c", archive]).output().unwrap();
        assert!(done.status.success());
        done.stdout
    }

    /// Makes a layout of one image with these layers. Returns its manifest.
    pub(crate) fn layout(&self, layout: &str, tag: &str, archives: &[&str], compression: Compression) -> Value {
        let mut diff_ids = Vec::new();
        let layers: Vec<Value> = archives
            .iter()
            .map(|archive| {
                diff_ids.push(digest_of(&self.read(archive)));
                let stored = self.compressed(archive, compression);
                json!({
                    "mediaType": format!("application/vnd.oci.image.layer.v1.tar{}", compression.suffix()),
                    "digest": self.add_blob(layout, &stored),
                    "size": stored.len(),
                    "annotations": { "org.example.kept": archive },
                })
            })
            .collect();
        let config = self.add_json(layout, "application/vnd.oci.image.config.v1+json", &config(&diff_ids));
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": config,
            "layers": layers,
            "annotations": { "org.example.of": "manifest" },
        });
        self.index(layout, &[(tag, &manifest)]);
        manifest
    }

    /// Writes the list of a layout's images, and their manifests.
    pub(crate) fn index(&self, layout: &str, images: &[(&str, &Value)]) {
        let entry = |(tag, manifest): &(&str, &Value)| {
            let mut entry = self.add_json(layout, "application/vnd.oci.image.manifest.v1+json", manifest);
            entry["annotations"] = json!({ "org.opencontainers.image.ref.name": tag });
            entry
        };
        let entries: Vec<Value> = images.iter().map(entry).collect();
        self.write(&format!("{layout}/index.json"), json!({ "schemaVersion": 2, "manifests": entries }).to_string());
        self.write(&format!("{layout}/oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#);
    }

    /// Packs a source as version `version` of `os`.
    pub(crate) fn pack(&self, source: &str, bundle: &str, version: u32, more: &str) -> String {
        self.good(&format!("pack {source} -o {bundle} --name os --bundle-version {version} --key release {more}"))
    }

    pub(crate) fn does(&self, line: &str) -> String {
        self.good(&format!("{line} {POLICY}"))
    }

    pub(crate) fn len(&self, name: &str) -> u64 {
        std::fs::metadata(self.path(name)).unwrap().len()
    }

    /// Returns a JSON document.
    pub(crate) fn parsed(&self, name: &str) -> Value {
        serde_json::from_slice(&self.read(name)).unwrap()
    }

    /// Returns the digest of the manifest of a layout's first image, and the manifest.
    pub(crate) fn manifest(&self, layout: &str) -> (String, Value) {
        let index = self.parsed(&format!("{layout}/index.json"));
        let digest = index["manifests"][0]["digest"].as_str().unwrap().to_owned();
        let manifest = self.parsed(&blob(layout, &digest));
        (digest, manifest)
    }
}
