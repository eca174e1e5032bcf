//! JavaScript objects, built from pairs.

use js_sys::{Object, Reflect};
use wasm_bindgen::JsValue;

/// Returns an object with these properties, except those that are undefined.
pub(crate) fn object(properties: &[(&str, JsValue)]) -> JsValue {
    let object = Object::new();
    for (name, value) in properties.iter().filter(|(_, value)| !value.is_undefined()) {
        // A new object accepts any property.
        let _ = Reflect::set(&object, &(*name).into(), value);
    }
    object.into()
}
