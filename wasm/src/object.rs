//! Objects of JavaScript, made from pairs.

use js_sys::{Array, Object, Reflect};
use wasm_bindgen::JsValue;

/// An object with these properties; those that are undefined are left out.
pub(crate) fn object<const N: usize>(properties: [(&str, JsValue); N]) -> JsValue {
    let object = Object::new();
    for (name, value) in properties.into_iter().filter(|(_, value)| !value.is_undefined()) {
        // A new object takes any property.
        let _ = Reflect::set(&object, &name.into(), &value);
    }
    object.into()
}

/// An array of strings.
pub(crate) fn strings(strings: &[String]) -> JsValue {
    strings.iter().map(|string| JsValue::from_str(string)).collect::<Array>().into()
}
