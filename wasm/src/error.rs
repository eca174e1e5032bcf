//! Errors thrown to JavaScript.

use js_sys::{Error, Reflect, TypeError};
use sealift_format::Kind;
use wasm_bindgen::JsValue;

/// Returns an error for a fault of the bundle: an `Error` with a `code`.
pub(crate) fn refusal(kind: Kind, fact: &impl ToString) -> JsValue {
    with_code(kind.word(), fact)
}

/// Returns an error for a fault in the administrator's text, with the program's code for it.
pub(crate) fn unusable(fact: &impl ToString) -> JsValue {
    with_code("trust-file", fact)
}

fn with_code(code: &str, fact: &impl ToString) -> JsValue {
    let error = Error::new(&fact.to_string());
    // A new object accepts any property.
    let _ = Reflect::set(&error, &"code".into(), &code.into());
    error.into()
}

/// Returns an error for misuse by the caller.
pub(crate) fn misuse(what: &str) -> JsValue {
    TypeError::new(what).into()
}
