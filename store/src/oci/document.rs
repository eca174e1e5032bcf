//! A JSON document of an image.

use serde_json::{Map, Value};

use super::Digest;
use crate::error::{ImageFault, shown};

/// A JSON object, with its path for messages.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    /// Where it is in the layout or archive, escaped.
    pub(crate) path: String,
    pub(crate) value: Value,
}

impl Document {
    /// Parses a document.
    ///
    /// # Errors
    /// Returns an error if it is not JSON.
    pub(crate) fn parse(path: &str, bytes: &[u8]) -> Result<Self, ImageFault> {
        let path = shown(path.as_bytes());
        match serde_json::from_slice(bytes) {
            Ok(value) => Ok(Self { path, value }),
            Err(error) => Err(ImageFault::Json { path, problem: error.to_string() }),
        }
    }

    /// Returns the fault that a field is missing or has another form.
    pub(crate) fn no(&self, field: impl Into<String>) -> ImageFault {
        ImageFault::Field { path: self.path.clone(), field: field.into() }
    }

    /// Returns its fields.
    ///
    /// # Errors
    /// Returns an error if it is not an object.
    pub(crate) fn fields(&self) -> Result<&Map<String, Value>, ImageFault> {
        self.value.as_object().ok_or_else(|| self.no("object"))
    }

    /// Returns the elements of an array.
    ///
    /// # Errors
    /// Returns an error if it has no such array.
    pub(crate) fn list(&self, field: &str) -> Result<&[Value], ImageFault> {
        self.value.get(field).and_then(Value::as_array).map(Vec::as_slice).ok_or_else(|| self.no(field))
    }

    /// Returns its own type, if it says one.
    pub(crate) fn media_type(&self) -> Option<&str> {
        self.value.get("mediaType").and_then(Value::as_str)
    }

    /// Parses a digest in it.
    ///
    /// # Errors
    /// Returns an error if it is not a SHA-256 digest.
    pub(crate) fn digest(&self, text: &str) -> Result<Digest, ImageFault> {
        let fault = || ImageFault::DigestForm { path: self.path.clone(), digest: shown(text.as_bytes()) };
        Digest::parse(text).ok_or_else(fault)
    }
}

/// Returns JSON in its one form: without spaces, keys sorted, so that equal values have equal bytes.
pub(crate) fn bytes_of(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_equal_bytes() {
        let document = Document::parse("a", br#"{ "b": [1, "\u00e4/"], "a": {"y": null, "x": 18446744073709551615} }"#);
        let bytes = bytes_of(&document.expect("valid").value);
        assert_eq!(String::from_utf8_lossy(&bytes), r#"{"a":{"x":18446744073709551615,"y":null},"b":[1,"ä/"]}"#);
    }
}
