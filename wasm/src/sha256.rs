//! SHA-256 of the file, as `sha256sum` prints it. Workers read its parts, and what is known so far goes from one to the next.

use sha2::digest::common::hazmat::{SerializableState as _, SerializedState};
use sha2::{Digest as _, Sha256};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::error::misuse;

/// Takes the next bytes of the file. `state` is what this returned for those before, and nothing at the file's beginning. Of the last ones
/// it returns the digest.
///
/// # Errors
/// `state` is something else.
#[wasm_bindgen(js_name = sha256)]
pub fn take(state: &[u8], bytes: &[u8], #[wasm_bindgen(js_name = isLast)] is_last: bool) -> Result<Vec<u8>, JsValue> {
    let mut hasher = Sha256::new();
    if !state.is_empty() {
        let state = SerializedState::<Sha256>::try_from(state).ok();
        let restored = state.and_then(|state| Sha256::deserialize(&state).ok());
        hasher = restored.ok_or_else(|| misuse("that is not what was returned"))?;
    }
    hasher.update(bytes);
    Ok(if is_last { hasher.finalize().to_vec() } else { hasher.serialize().to_vec() })
}
