//! Archives as `docker save` writes them, which podman, skopeo and `docker load` read: an OCI image layout in a tar archive, with a list of the images in
//! `manifest.json` instead of the layout's own.

use sealift_format::num::wide;
use serde_json::{Value, json};

use super::encoder::{ArchiveEncoder, Ending, Member, Unfit};
use super::tar::{self, BLOCK_LEN, header_below, plain_header};
use super::written::Written;
use crate::Error;
use crate::error::{ImageFault, shown};
use crate::oci::{
    CONTAINERD_NAME, Descriptor, Document, INDEX_FILE, LAYOUT_FILE, Manifest, REF_NAME, bytes_of, media_type,
};

/// The list of images.
const MANIFEST_FILE: &str = "manifest.json";

pub(super) const ENCODER: ArchiveEncoder = ArchiveEncoder {
    scheme: "docker-archive",
    header,
    align: 512,
    end: tar::ENCODER.end,
    has_sockets: false,
    has_xattrs: true,
    ending: Some(Ending { replaced: &[LAYOUT_FILE, INDEX_FILE], make: ending }),
};

/// Appends a header. Programs look for the names that `manifest.json` has, without `./` before them.
fn header(member: &Member<'_>, out: &mut Vec<u8>) -> Result<(), Unfit> {
    if member.path.is_empty() { Ok(()) } else { header_below(b"", member, out) }
}

/// Returns `manifest.json` and the end of the archive.
fn ending(written: &Written<'_>) -> Result<Vec<u8>, Error> {
    let index = document(written, INDEX_FILE)?;
    let images = index.list("manifests").map_err(|fault| written.error(fault))?;
    let images = images.iter().map(|entry| image(written, &index, entry)).collect::<Result<Vec<_>, _>>()?;
    let list = bytes_of(&images.into());
    let mut bytes = Vec::new();
    let header = plain_header(MANIFEST_FILE.as_bytes(), wide(list.len()), 0, &mut bytes);
    header.map_err(|Unfit(what)| Error::Unfit { scheme: ENCODER.scheme, member: MANIFEST_FILE.to_owned(), what })?;
    bytes.extend_from_slice(&list);
    bytes.resize(bytes.len().next_multiple_of(BLOCK_LEN), 0);
    bytes.extend_from_slice(ENCODER.end);
    Ok(bytes)
}

fn document(written: &Written<'_>, path: &str) -> Result<Document, Error> {
    Document::parse(path, &written.read(path)?).map_err(|fault| written.error(fault))
}

/// Returns the element of `manifest.json` for an entry of the layout's index.
fn image(written: &Written<'_>, index: &Document, entry: &Value) -> Result<Value, Error> {
    let fault = |fault| written.error(fault);
    let stated = Descriptor::of(index, entry, "an image").map_err(fault)?;
    let manifest = document(written, &stated.digest.path())?;
    let manifest = Manifest::of(&manifest, &stated.media_type).map_err(fault)?;
    let mut files = vec![manifest.config.digest.path()];
    for (layer, number) in manifest.layers.iter().zip(1..) {
        if !media_type::is_plain_layer(&layer.media_type) {
            return Err(fault(ImageFault::NotPlain { number, media_type: layer.shown_type() }));
        }
        files.push(layer.digest.path());
    }
    if let Some(missing) = files.iter().find(|path| !written.has(path)) {
        return Err(fault(ImageFault::Missing { path: shown(missing.as_bytes()) }));
    }
    let layers = files.split_off(1);
    let tags: Vec<String> = repo_tag(entry, &written.bundle.head.root().identity.name).into_iter().collect();
    Ok(json!({ "Config": files.first(), "RepoTags": tags, "Layers": layers }))
}

/// Returns the name of an image: what its index says, if that is a whole name with a tag; otherwise the bundle's name with it as the tag.
fn repo_tag(entry: &Value, bundle: &str) -> Option<String> {
    let annotation = |key| entry.get("annotations")?.get(key)?.as_str();
    let name = annotation(CONTAINERD_NAME).or_else(|| annotation(REF_NAME))?;
    let last = name.rsplit('/').next().unwrap_or(name);
    match (last.contains(':'), name.contains('/')) {
        (true, _) => Some(name.to_owned()),
        (false, true) => Some(format!("{name}:latest")),
        (false, false) => is_repository(bundle).then(|| format!("{bundle}:{name}")),
    }
}

/// Returns whether a bundle's name can be that of a repository: lower-case letters and digits, with single separators between them.
fn is_repository(name: &str) -> bool {
    let is_word =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    name.split(['.', '_', '-']).all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_the_name_that_its_index_says() {
        let named = |name: &str| json!({ "annotations": { REF_NAME: name } });
        for (name, bundle, tag) in [
            ("v1", "app", Some("app:v1")),
            ("v1", "my-app.web", Some("my-app.web:v1")),
            ("v1", "App", None),
            ("v1", "a--b", None),
            ("app:v1", "other", Some("app:v1")),
            ("docker.io/library/app:v1", "other", Some("docker.io/library/app:v1")),
            ("localhost:5000/app", "other", Some("localhost:5000/app:latest")),
        ] {
            assert_eq!(repo_tag(&named(name), bundle).as_deref(), tag, "{name} {bundle}");
        }
        assert_eq!(repo_tag(&json!({}), "app"), None);
        let both = json!({ "annotations": { REF_NAME: "v1", CONTAINERD_NAME: "docker.io/library/app:v1" } });
        assert_eq!(repo_tag(&both, "other").as_deref(), Some("docker.io/library/app:v1"));
    }
}
