//! An image in an archive of `docker save`: its `manifest.json` lists the images and the paths of their files. Archives of Docker 25 and later are OCI
//! layouts as well.

use serde_json::{Value, json};

use super::choice::choose;
use super::config::Config;
use super::draft::Draft;
use super::files::Files;
use super::hashed::digest_of;
use super::{ManifestChange, OciSource, plain};
use crate::Error;
use crate::error::{ImageFault, shown};
use crate::oci::{Digest, Document, REF_NAME, bytes_of, media_type};
use crate::source::SourceOptions;
use sealift_format::num::wide;

/// The list of images.
const MANIFEST_FILE: &str = "manifest.json";

/// Reads the image with a name, or the only one.
pub(super) fn read(files: &Files, name: Option<&str>, options: &SourceOptions) -> Result<OciSource, Error> {
    let fault = |fault| files.error(fault);
    if !files.has(MANIFEST_FILE) {
        return Err(fault(ImageFault::NotADockerArchive));
    }
    let list = files.document(MANIFEST_FILE)?;
    let images = list.value.as_array().ok_or_else(|| fault(list.no("list of images")))?;
    let tags: Vec<Vec<&str>> = images.iter().map(tags_of).collect();
    let latest = name.map(|name| format!("{name}:latest"));
    let named = |tag: &str| tags.iter().any(|tags| tags.contains(&tag));
    let wanted = match (name, latest.as_deref()) {
        (Some(name), Some(latest)) if !named(name) && named(latest) => Some(latest),
        (name, _) => name,
    };
    let number = choose(&tags, wanted).map_err(fault)?;
    let image = images.get(number).ok_or_else(|| fault(ImageFault::Empty))?;
    let tag = wanted.filter(|wanted| !wanted.starts_with('@'));
    let tag = tag.or_else(|| tags.get(number)?.first().copied());

    let path = text(&list, image, "Config").map_err(fault)?;
    let config_bytes = files.bytes(path)?;
    let config_digest = digest_of(&config_bytes);
    check_name(files, path, config_digest)?;
    let config_document = Document::parse(path, &config_bytes).map_err(fault)?;
    let config = Config::of(&config_document).map_err(fault)?;
    let paths = image.get("Layers").and_then(Value::as_array).ok_or_else(|| fault(list.no("Layers")))?;
    config.check_layers(paths.len()).map_err(fault)?;

    let mut draft = Draft::new(files, options)?;
    draft.add(&config_bytes)?;
    let mut layers = Vec::new();
    for ((path, diff_id), number) in paths.iter().zip(&config.diff_ids).zip(1..) {
        let path = path.as_str().ok_or_else(|| fault(list.no("Layers")))?;
        layers.push((*diff_id, draft.add_layer(path, None, number, *diff_id)?));
    }
    let manifest = bytes_of(&plain::manifest((config_digest, config_bytes.len()), &layers));
    let digest = draft.add(&manifest)?;
    let mut entry = json!({
        "mediaType": media_type::MANIFEST,
        "digest": digest.to_string(),
        "size": wide(manifest.len()),
    });
    if let (Some(tag), Some(fields)) = (tag, entry.as_object_mut()) {
        fields.insert("annotations".into(), json!({ REF_NAME: tag }));
    }
    let change = ManifestChange { before: None, after: digest.to_string(), image: config_digest.to_string() };
    draft.finish(&entry, config.created, Some(change))
}

/// Returns the names of an image. There may be none.
fn tags_of(image: &Value) -> Vec<&str> {
    let tags = image.get("RepoTags").and_then(Value::as_array);
    tags.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn text<'a>(list: &Document, image: &'a Value, field: &str) -> Result<&'a str, ImageFault> {
    image.get(field).and_then(Value::as_str).ok_or_else(|| list.no(field))
}

/// Checks a config whose name is its digest. Layers need no check of their names: the config has the digests of their contents.
fn check_name(files: &Files, path: &str, found: Digest) -> Result<(), Error> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = name.strip_suffix(".json").unwrap_or(name);
    match Digest::of_hex(name).filter(|expected| *expected != found) {
        None => Ok(()),
        Some(expected) => {
            let (path, expected, found) = (shown(path.as_bytes()), expected.to_string(), found.to_string());
            Err(files.error(ImageFault::Digest { path, expected, found }))
        }
    }
}
