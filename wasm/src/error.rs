//! What JavaScript catches.

use js_sys::{Error, Reflect, TypeError};
use sealift_format::Kind;
use wasm_bindgen::JsValue;

/// The bundle is at fault: an `Error` with a `code`.
pub(crate) fn refusal(kind: Kind, fact: &impl ToString) -> JsValue {
    with_code(kind.word(), fact)
}

/// The administrator's text is at fault: the program's word for it, too.
pub(crate) fn unusable(fact: &impl ToString) -> JsValue {
    with_code("trust-file", fact)
}

fn with_code(code: &str, fact: &impl ToString) -> JsValue {
    let error = Error::new(&fact.to_string());
    // A new object takes any property.
    let _ = Reflect::set(&error, &"code".into(), &code.into());
    error.into()
}

/// The caller is at fault.
pub(crate) fn misuse(what: &str) -> JsValue {
    TypeError::new(what).into()
}
