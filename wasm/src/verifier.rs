//! The class that JavaScript sees.

use js_sys::Array;
use sealift_format::{Limits, Step};
use sealift_verify::walk::{Depth, Walker};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::error::misuse;
use crate::number::{natural, to_js};
use crate::object::object;
use crate::report::content_error;
use crate::{options, report};

/// Checks a bundle as its bytes come, and keeps its index and one chunk.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Verifier {
    walker: Walker,
}

#[wasm_bindgen]
impl Verifier {
    /// A verifier for a file of `fileLen` bytes, or for a stream. `depth` is "objects" (the default: every object is
    /// decoded and checked) or "stored" (every byte of the file is).
    ///
    /// # Errors
    /// An argument is none of these.
    #[wasm_bindgen(constructor)]
    pub fn new(
        #[wasm_bindgen(js_name = fileLen)] file_len: Option<f64>,
        #[wasm_bindgen(unchecked_optional_param_type = "\"objects\" | \"stored\"")] depth: Option<String>,
    ) -> Result<Self, JsValue> {
        let whole = |len| natural(len).ok_or_else(|| misuse("fileLen is not a whole number up to 2^53-1"));
        let depth = match depth.as_deref() {
            None | Some("objects") => Depth::Objects,
            Some("stored") => Depth::Stored,
            Some(_) => return Err(misuse("depth is neither \"objects\" nor \"stored\"")),
        };
        Ok(Self { walker: Walker::new(file_len.map(whole).transpose()?, Limits::default(), depth) })
    }

    /// Which bytes are needed next. At the end of a stream there are none to supply, and `finish` is to be told.
    ///
    /// # Errors
    /// They lie beyond what a number can say.
    #[wasm_bindgen(unchecked_return_type = "Step")]
    pub fn next(&self) -> Result<JsValue, JsValue> {
        let Step::Need(range) = self.walker.step() else {
            return Ok(object([("done", true.into())]));
        };
        let what = "an offset in the file";
        let need =
            Array::of2(&to_js(what, range.start)?.into(), &to_js(what, range.end.saturating_sub(range.start))?.into());
        Ok(object([("need", need.into())]))
    }

    /// Takes bytes of the file from the offset that `next` named. What it did not ask for is not looked at.
    ///
    /// # Errors
    /// The bytes are not a bundle's; or the offset is another.
    pub fn supply(&mut self, offset: f64, bytes: &[u8]) -> Result<(), JsValue> {
        let offset = natural(offset).ok_or_else(|| misuse("offset is not a whole number up to 2^53-1"))?;
        if let Step::Need(range) = self.walker.step()
            && range.start != offset
        {
            return Err(misuse(&format!("bytes from {} on are needed, and these begin at {offset}", range.start)));
        }
        self.walker.supply(offset, bytes).map_err(|error| content_error(&error))
    }

    /// What the bundle says of itself, as soon as its head has come.
    ///
    /// # Errors
    /// There are none.
    // A Result comes back as several values. A function that returns one reference and nothing else is what V8 11.3, and
    // with it Node 20, ends the whole process on, when optimized code that called it is given up during the call.
    #[wasm_bindgen(unchecked_return_type = "Head | undefined")]
    pub fn head(&self) -> Result<JsValue, JsValue> {
        Ok(self.walker.head().map_or(JsValue::UNDEFINED, report::head))
    }

    /// Judges the head by an `allowed_signers` file; nothing else waits for it.
    ///
    /// # Errors
    /// The head has not come yet; an option or a file is malformed.
    #[wasm_bindgen(unchecked_return_type = "Verdict")]
    pub fn judge(
        &self,
        #[wasm_bindgen(js_name = allowedSigners)] allowed_signers: &str,
        #[wasm_bindgen(unchecked_optional_param_type = "JudgeOptions")] options: &JsValue,
    ) -> Result<JsValue, JsValue> {
        let policy = options::policy(allowed_signers, options)?;
        let head = self.walker.head().ok_or_else(|| misuse("there is no head yet: supply what is needed first"))?;
        Ok(report::verdict(head, &policy))
    }

    /// Says that the input has ended, and returns what was checked. The verifier is spent then.
    ///
    /// # Errors
    /// The bundle is not whole, or not as its root says.
    #[wasm_bindgen(unchecked_return_type = "Summary")]
    pub fn finish(self) -> Result<JsValue, JsValue> {
        let opened = self.walker.finish().map_err(|error| content_error(&error))?;
        report::summary(&opened)
    }
}
