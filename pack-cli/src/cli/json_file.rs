//! A file of any type in JSON.

use sealift_format::{Xattrs, hex};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use super::escape;

/// A file of any type in JSON.
#[derive(Serialize)]
pub(crate) struct JsonFile<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) mode: u16,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) mtime: i64,
    pub(crate) mtime_ns: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) major: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) minor: Option<u32>,
    #[serde(skip_serializing_if = "has_none", serialize_with = "xattrs")]
    pub(crate) xattrs: &'a Xattrs,
}

fn has_none(xattrs: &&Xattrs) -> bool {
    xattrs.is_empty()
}

/// Extended attributes as one object: names, and values in hexadecimal digits.
fn xattrs<S: Serializer>(xattrs: &Xattrs, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for xattr in xattrs {
        map.serialize_entry(&escape::percent(xattr.name), &hex(xattr.value))?;
    }
    map.end()
}
