//! An image in a layout.

use serde_json::Value;

use super::choice::choose;
use super::config::Config;
use super::draft::Draft;
use super::files::Files;
use super::hashed::digest_of;
use super::plain::with_plain_layers;
use super::{ManifestChange, OciSource};
use crate::Error;
use crate::error::{ImageFault, shown};
use crate::oci::{Descriptor, Document, INDEX_FILE, LAYOUT_FILE, Manifest, REF_NAME, bytes_of, media_type};
use crate::source::SourceOptions;
use sealift_format::num::wide;

/// Reads the image with a tag, or the only one.
pub(super) fn read(files: &Files, tag: Option<&str>, options: &SourceOptions) -> Result<OciSource, Error> {
    let fault = |fault| files.error(fault);
    check_version(files)?;
    let index = files.document(INDEX_FILE)?;
    let entry = chosen(&index, tag).map_err(fault)?;
    let stated = Descriptor::of(&index, entry, "the image").map_err(fault)?;
    if media_type::is_schema_1(&stated.media_type) {
        return Err(fault(ImageFault::Schema1));
    }
    let (document, bytes) = checked_document(files, &stated)?;
    let manifest = Manifest::of(&document, &stated.media_type).map_err(fault)?;
    let (config_document, config_bytes) = checked_document(files, &manifest.config)?;
    let config = Config::of(&config_document).map_err(fault)?;
    config.check_layers(manifest.layers.len()).map_err(fault)?;

    let mut draft = Draft::new(files, options)?;
    draft.add(&config_bytes)?;
    let mut layers = Vec::new();
    for ((layer, diff_id), number) in manifest.layers.iter().zip(&config.diff_ids).zip(1..) {
        layers.push((*diff_id, draft.add_layer(&layer.digest.path(), Some(layer), number, *diff_id)?));
    }
    let manifest_bytes = match manifest.is_plain(&document, &config.diff_ids) {
        true => bytes,
        false => bytes_of(&with_plain_layers(&document, &layers).map_err(fault)?),
    };
    let digest = draft.add(&manifest_bytes)?;
    let change = (digest != stated.digest).then(|| ManifestChange {
        before: Some(stated.digest.to_string()),
        after: digest.to_string(),
        image: manifest.config.digest.to_string(),
    });
    let mut entry = entry.as_object().cloned().unwrap_or_default();
    if change.is_some() {
        entry.remove("data");
    }
    entry.insert("mediaType".into(), media_type::MANIFEST.into());
    entry.insert("digest".into(), digest.to_string().into());
    entry.insert("size".into(), wide(manifest_bytes.len()).into());
    draft.finish(&entry.into(), config.created, change)
}

fn check_version(files: &Files) -> Result<(), Error> {
    for missing in [LAYOUT_FILE, INDEX_FILE] {
        if !files.has(missing) {
            return Err(files.error(ImageFault::NotALayout { missing }));
        }
    }
    let layout = files.document(LAYOUT_FILE)?;
    let version = layout.value.get("imageLayoutVersion").and_then(Value::as_str);
    let version = version.ok_or_else(|| files.error(layout.no("imageLayoutVersion")))?;
    match version {
        "1.0.0" => Ok(()),
        other => Err(files.error(ImageFault::Version { version: shown(other.as_bytes()) })),
    }
}

/// Returns the entry of the chosen image.
fn chosen<'a>(index: &'a Document, tag: Option<&str>) -> Result<&'a Value, ImageFault> {
    let manifests = index.list("manifests")?;
    let tag_of = |entry: &'a Value| entry.get("annotations")?.get(REF_NAME)?.as_str();
    let tags: Vec<Vec<&str>> = manifests.iter().map(|entry| tag_of(entry).into_iter().collect()).collect();
    let number = choose(&tags, tag)?;
    manifests.get(number).ok_or(ImageFault::Empty)
}

/// Reads a document, and checks its length and digest.
fn checked_document(files: &Files, stated: &Descriptor) -> Result<(Document, Vec<u8>), Error> {
    let path = stated.digest.path();
    let found = files.len_of(&path)?;
    if found != stated.size {
        return Err(files.error(ImageFault::Size { path, expected: stated.size, found }));
    }
    // A damaged document may not be JSON any more: that it is damaged comes first.
    let bytes = files.bytes(&path)?;
    let found = digest_of(&bytes);
    if found != stated.digest {
        let (expected, found) = (stated.digest.to_string(), found.to_string());
        return Err(files.error(ImageFault::Digest { path, expected, found }));
    }
    let document = Document::parse(&path, &bytes).map_err(|fault| files.error(fault))?;
    Ok((document, bytes))
}
