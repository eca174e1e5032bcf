//! SHA-256 of the file, as printed by `sha256sum`. Workers read its parts, and pass the state from one to the next.

use sha2::digest::common::hazmat::{SerializableState as _, SerializedState};
use sha2::{Digest as _, Sha256};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::error::misuse;

/// Hashes the next bytes of the file. `state` is the previous result, and empty at the beginning of the file. With `isLast`, the result is the
/// digest.
///
/// # Errors
/// Returns an error if `state` is invalid.
#[wasm_bindgen(js_name = sha256)]
pub fn take(state: &[u8], bytes: &[u8], #[wasm_bindgen(js_name = isLast)] is_last: bool) -> Result<Vec<u8>, JsValue> {
    let mut hasher = Sha256::new();
    if !state.is_empty() {
        let state = SerializedState::<Sha256>::try_from(state).ok();
        let restored = state.and_then(|state| Sha256::deserialize(&state).ok());
        hasher = restored.ok_or_else(|| misuse("this is not a state that `sha256` returned"))?;
    }
    hasher.update(bytes);
    Ok(if is_last { hasher.finalize().to_vec() } else { hasher.serialize().to_vec() })
}
