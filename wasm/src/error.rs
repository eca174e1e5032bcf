//! What JavaScript catches.

use js_sys::{Error, Reflect, TypeError};
use sealift_format::Kind;
use wasm_bindgen::JsValue;

/// The bundle is at fault: an `Error` with a `code`.
pub(crate) fn refusal(kind: Kind, fact: &impl ToString) -> JsValue {
    let error = Error::new(&fact.to_string());
    // A new object takes any property.
    let _ = Reflect::set(&error, &"code".into(), &kind.word().into());
    error.into()
}

/// The administrator's text is at fault.
pub(crate) fn unusable(fact: &impl ToString) -> JsValue {
    Error::new(&fact.to_string()).into()
}

/// The caller is at fault.
pub(crate) fn misuse(what: &str) -> JsValue {
    TypeError::new(what).into()
}
