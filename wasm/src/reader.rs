//! The class that JavaScript sees.

use js_sys::{Array, Uint32Array};
use sealift_format::{Bundle, Delta, Error as FormatError, Head, Limits, Opened, Opener, Step};
use sealift_verify::checker::Depth;
use sealift_verify::content::ContentError;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::base::Base;
use crate::check::Check;
use crate::error::misuse;
use crate::number::{natural, rounded, to_js};
use crate::object::object;
use crate::report::content_error;
use crate::{compare, content, hit, listing, options, picture, report};

/// Opens a bundle as its bytes come, and then keeps its index and layout.
// Each function returns a Result, which comes back as several values. One that returns a reference and nothing else is what
// V8 11.3, and with it Node 20, ends the whole process on, when optimized code that called it is given up during the call.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Reader {
    stage: Stage,
    /// Bytes that the bundle may take: what it declares is compared with them before anything of it is kept.
    memory: u64,
}

/// Bytes that one reader takes at most: a 32-bit memory ends at four times that, and then without a word.
const MEMORY: u64 = 1 << 30;

#[derive(Debug)]
enum Stage {
    Opening(Box<Opener>),
    Open(Box<Open>),
    Failed(ContentError),
}

#[derive(Debug)]
struct Open {
    opened: Opened,
    /// Of a delta bundle that is checked over it.
    base: Option<Base>,
    check: Check,
}

#[wasm_bindgen]
impl Reader {
    /// A reader of a file of `fileLen` bytes, or of a stream. A bundle that declares to take more than `memory` bytes is refused; and so is
    /// one of more than 1 GiB.
    ///
    /// # Errors
    /// `fileLen` or `memory` is not such a number.
    #[wasm_bindgen(constructor)]
    pub fn new(#[wasm_bindgen(js_name = fileLen)] file_len: Option<f64>, memory: Option<f64>) -> Result<Self, JsValue> {
        let whole = |what: &str, number: Option<f64>| match number.map(natural) {
            Some(None) => Err(misuse(&format!("{what} is not a whole number up to 2^53-1"))),
            number => Ok(number.flatten()),
        };
        let opener = Opener::new(whole("fileLen", file_len)?, Limits::default());
        let memory = whole("memory", memory)?.unwrap_or(MEMORY).min(MEMORY);
        Ok(Self { stage: Stage::Opening(Box::new(opener)), memory })
    }

    /// Which bytes are needed next to open the bundle; `done` when `open` is to be called.
    ///
    /// # Errors
    /// They lie beyond what a number can say.
    #[wasm_bindgen(unchecked_return_type = "Step")]
    pub fn next(&self) -> Result<JsValue, JsValue> {
        let Stage::Opening(opener) = &self.stage else { return Ok(object([("done", true.into())])) };
        let Step::Need(range) = opener.step() else { return Ok(object([("done", true.into())])) };
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
        let opener = match &mut self.stage {
            Stage::Opening(opener) => opener,
            Stage::Open(_) => return Ok(()),
            Stage::Failed(error) => return Err(content_error(error)),
        };
        if let Step::Need(range) = opener.step()
            && range.start != offset
        {
            return Err(misuse(&format!("bytes from {} on are needed, and these begin at {offset}", range.start)));
        }
        let had_head = opener.head().is_some();
        opener.supply(offset, bytes).map_err(|error| content_error(&ContentError::from(error)))?;
        // Where memory ends within the engine, no error of ours comes of it.
        let declared = opener.head().filter(|_| !had_head).map_or(0, |head| report::memory(head.root()));
        if declared > self.memory {
            let error = ContentError::from(FormatError::Limit { what: "memory", declared, limit: self.memory });
            let thrown = content_error(&error);
            self.stage = Stage::Failed(error);
            return Err(thrown);
        }
        Ok(())
    }

    /// Bytes that the limit leaves beside this bundle, for another in the same memory.
    ///
    /// # Errors
    /// The bundle is not open.
    #[wasm_bindgen(js_name = memoryLeft)]
    pub fn memory_left(&self) -> Result<f64, JsValue> {
        Ok(rounded(self.memory.saturating_sub(report::memory(self.opened()?.opened.head().root()))))
    }

    /// What the bundle says of itself, as soon as its head has come.
    ///
    /// # Errors
    /// There are none.
    #[wasm_bindgen(unchecked_return_type = "Head | undefined")]
    pub fn head(&self) -> Result<JsValue, JsValue> {
        Ok(self.read_head().map_or(JsValue::UNDEFINED, report::head))
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
        let head = self.read_head().ok_or_else(|| misuse("there is no head yet: supply what is needed first"))?;
        Ok(report::verdict(head, &policy))
    }

    /// Ends the opening: the index is there, or the input has ended.
    ///
    /// # Errors
    /// The input ended before the index did.
    #[wasm_bindgen(unchecked_return_type = "Places")]
    pub fn open(&mut self) -> Result<JsValue, JsValue> {
        if let Stage::Opening(opener) = &mut self.stage {
            let opener = std::mem::replace(&mut **opener, Opener::new(None, Limits::default()));
            self.stage = match opener.finish() {
                Ok(opened) => Stage::Open(Box::new(Open { opened, base: None, check: Check::Stored })),
                Err(error) => Stage::Failed(error.into()),
            };
        }
        report::places(&self.opened()?.opened)
    }

    /// Begins a check. Returns the chunks that the reader which finishes it is to check itself, in this order.
    ///
    /// # Errors
    /// The bundle is not open; there is no such `depth`, or no base.
    #[wasm_bindgen(unchecked_return_type = "Uint32Array")]
    pub fn begin(
        &mut self,
        #[wasm_bindgen(unchecked_param_type = "\"objects\" | \"over\" | \"stored\"")] depth: &str,
    ) -> Result<JsValue, JsValue> {
        let open = self.opened_mut()?;
        open.check = match depth {
            "objects" => Check::new(&open.opened, Depth::Objects),
            "stored" => Check::new(&open.opened, Depth::Stored),
            "over" if open.base.is_some() => Check::over(&open.opened),
            "over" => return Err(no_base()),
            _ => return Err(misuse("there is no such depth")),
        };
        Ok(Uint32Array::from(&open.check.in_order()[..]).into())
    }

    /// Checks the chunks from number `first` on, whose bytes these are. What it returns is for `take` of the reader that finishes.
    ///
    /// # Errors
    /// One of them is not as the root says.
    pub fn check(&mut self, first: u32, bytes: &[u8]) -> Result<Vec<u8>, JsValue> {
        let Open { opened, base, check } = self.opened_mut()?;
        let mut found = Vec::new();
        let prefix = base.as_ref().map_or(&[][..], Base::prefix);
        check.run(opened, first, bytes, prefix, &mut found).map_err(|error| content_error(&error))?;
        Ok(found)
    }

    /// Takes what a reader found.
    ///
    /// # Errors
    /// It is not what `check` returned.
    pub fn take(&mut self, found: &[u8]) -> Result<(), JsValue> {
        let open = self.opened_mut()?;
        if open.check.take(&open.opened, found) { Ok(()) } else { Err(misuse("that is not what was returned")) }
    }

    /// Checks some of what no chunk brings: files that are empty, or all hole. Says whether there is more.
    ///
    /// # Errors
    /// One of them is not as the index says.
    #[wasm_bindgen(js_name = checkBare)]
    pub fn check_bare(&mut self) -> Result<bool, JsValue> {
        let open = self.opened_mut()?;
        open.check.run_bare(&open.opened).map_err(|error| content_error(&error))
    }

    /// Ends a check, when all readers' findings were taken: the input had `fileLen` bytes, or more.
    ///
    /// # Errors
    /// The bundle is not whole, or not as its root says.
    #[wasm_bindgen(unchecked_return_type = "Summary")]
    pub fn finish(&mut self, #[wasm_bindgen(js_name = fileLen)] file_len: f64) -> Result<JsValue, JsValue> {
        let len = natural(file_len).ok_or_else(|| misuse("fileLen is not a whole number up to 2^53-1"))?;
        let open = self.opened_mut()?;
        let expected = open.opened.head().file_len();
        if len < expected {
            return Err(content_error(&FormatError::Truncated { len, expected }.into()));
        }
        if len > expected {
            return Err(content_error(&FormatError::Trailing { expected }.into()));
        }
        let check = std::mem::replace(&mut open.check, Check::Stored);
        check.finish(&open.opened).map_err(|error| content_error(&error))?;
        Ok(report::summary(&open.opened))
    }

    /// From now on a delta bundle is checked over its base, whose own check says what it leaves in place.
    ///
    /// # Errors
    /// It is no delta bundle of this base alone; the two take more memory than there is for them.
    #[wasm_bindgen(js_name = checkOver)]
    pub fn check_over(&mut self, base: &Reader) -> Result<(), JsValue> {
        let limit = self.memory;
        let (open, base) = (self.opened_mut()?, base.opened()?);
        let (Opened::Delta(delta), Opened::Whole(base)) = (&open.opened, &base.opened) else { return Err(no_base()) };
        let [own, other] = [delta.head.root(), base.head.root()];
        // The base was opened, and so its index is the one of its root.
        if !matches!(delta.bases(), [wanted] if wanted.index_digest == other.contents.index_digest) {
            return Err(no_base());
        }
        let prefix_len = own.bases.as_ref().map_or(0, |bases| bases.prefix_len.into());
        let declared = report::memory(own).saturating_add(report::memory(other)).saturating_add(prefix_len);
        if declared > limit {
            return Err(content_error(&FormatError::Limit { what: "memory", declared, limit }.into()));
        }
        open.base = Some(Base::new(base));
        Ok(())
    }

    /// The chunks of the base that it takes to decode a chunk: number, and where in the base's file it lies.
    ///
    /// # Errors
    /// The bundle is not checked over this base.
    #[wasm_bindgen(js_name = beginPrefix, unchecked_return_type = "[chunk: number, place: [offset: number, length: number]][]")]
    pub fn begin_prefix(&mut self, base: &Reader, chunk: u32) -> Result<JsValue, JsValue> {
        let (own, delta, base) = self.over(base)?;
        Ok(own.begin_prefix(delta, base, chunk)?.into())
    }

    /// Takes the stored bytes of chunk `number` of the base, for chunk `chunk`, which is checked when all of them were taken.
    ///
    /// # Errors
    /// The bundle is not checked over this base; the bytes are not what the base's root says.
    #[wasm_bindgen(js_name = fillPrefix)]
    pub fn fill_prefix(&mut self, base: &Reader, chunk: u32, number: u32, stored: &[u8]) -> Result<(), JsValue> {
        let (own, delta, base) = self.over(base)?;
        own.fill_prefix(delta, base, chunk, number, stored).map_err(|error| content_error(&error))
    }

    /// The files that a damaged chunk or object hits: how many, and the names of the first `limit`.
    ///
    /// # Errors
    /// The bundle is not open.
    #[wasm_bindgen(unchecked_return_type = "Damage")]
    pub fn hit(&self, chunk: Option<u32>, object: Option<u32>, limit: u32) -> Result<JsValue, JsValue> {
        Ok(hit::files(&self.opened()?.opened, chunk, object, limit))
    }

    /// The named trees; of a delta bundle none.
    ///
    /// # Errors
    /// The bundle is not open.
    #[wasm_bindgen(unchecked_return_type = "Ref[]")]
    pub fn refs(&self) -> Result<JsValue, JsValue> {
        Ok(listing::refs(&self.opened()?.opened))
    }

    /// Some entries of a directory, by its number; `count` of them from `from` on.
    ///
    /// # Errors
    /// The bundle is not open; there is no such directory.
    #[wasm_bindgen(unchecked_return_type = "Entry[]")]
    pub fn children(&self, directory: u32, from: u32, count: u32) -> Result<JsValue, JsValue> {
        listing::children(&self.opened()?.opened, directory, from, count)
    }

    /// Entries by their numbers.
    ///
    /// # Errors
    /// The bundle is not open; there is no such entry.
    #[wasm_bindgen(unchecked_return_type = "Entry[]")]
    pub fn entries(&self, numbers: &[u32]) -> Result<JsValue, JsValue> {
        listing::entries(&self.opened()?.opened, numbers)
    }

    /// The numbers of the entries whose names have this text in them; with a slash in it, whose paths do. Letters A to Z are as
    /// good as a to z.
    ///
    /// # Errors
    /// The bundle is not open.
    pub fn search(&self, text: &str) -> Result<Vec<u32>, JsValue> {
        Ok(listing::search(&self.opened()?.opened, text))
    }

    /// The number of the entry at `[REF:]PATH`.
    ///
    /// # Errors
    /// There is none; there are several refs and the path names none.
    pub fn find(&self, path: &[u8]) -> Result<u32, JsValue> {
        listing::find(&self.opened()?.opened, path)
    }

    /// What a delta bundle says of names.
    ///
    /// # Errors
    /// The bundle is not open.
    #[wasm_bindgen(unchecked_return_type = "Edit[]")]
    pub fn edits(&self) -> Result<JsValue, JsValue> {
        Ok(listing::edits(&self.opened()?.opened))
    }

    /// What this bundle changes of an older one; at most `limit` changes are listed, and all counted.
    ///
    /// # Errors
    /// One of the bundles is not open, or is a delta bundle.
    #[wasm_bindgen(unchecked_return_type = "Comparison")]
    pub fn compare(&self, older: &Reader, limit: u32) -> Result<JsValue, JsValue> {
        compare::compare(&older.opened()?.opened, &self.opened()?.opened, limit)
    }

    /// What lies where in the file.
    ///
    /// # Errors
    /// The bundle is not open.
    #[wasm_bindgen(unchecked_return_type = "Picture")]
    pub fn picture(&self, columns: u32) -> Result<JsValue, JsValue> {
        Ok(picture::picture(&self.opened()?.opened, columns))
    }

    /// Where the content of a regular file lies, by its entry's number.
    ///
    /// # Errors
    /// It is not a regular file of a bundle that carries it.
    #[wasm_bindgen(unchecked_return_type = "Content")]
    pub fn content(&self, entry: u32) -> Result<JsValue, JsValue> {
        content::places(&self.opened()?.opened, entry)
    }

    /// Returns a part of an object, from the stored bytes of the chunk that `content` names for it.
    ///
    /// # Errors
    /// They are not what the root says.
    #[wasm_bindgen(js_name = contentPart)]
    pub fn content_part(&self, object: u32, part: u32, stored: &[u8]) -> Result<Vec<u8>, JsValue> {
        content::part(&self.opened()?.opened, object, part, stored)
    }
}

impl Reader {
    fn read_head(&self) -> Option<&Head> {
        match &self.stage {
            Stage::Opening(opener) => opener.head(),
            Stage::Open(open) => Some(open.opened.head()),
            Stage::Failed(_) => None,
        }
    }

    fn over<'a>(&'a mut self, base: &'a Reader) -> Result<(&'a mut Base, &'a Delta, &'a Bundle), JsValue> {
        let Open { opened, base: own, .. } = self.opened_mut()?;
        match (own, &*opened, &base.opened()?.opened) {
            (Some(own), Opened::Delta(delta), Opened::Whole(base)) => Ok((own, delta, base)),
            _ => Err(no_base()),
        }
    }

    fn opened(&self) -> Result<&Open, JsValue> {
        match &self.stage {
            Stage::Open(open) => Ok(open),
            Stage::Failed(error) => Err(content_error(error)),
            Stage::Opening(_) => Err(misuse("the bundle is not open yet")),
        }
    }

    fn opened_mut(&mut self) -> Result<&mut Open, JsValue> {
        match &mut self.stage {
            Stage::Open(open) => Ok(open),
            Stage::Failed(error) => Err(content_error(error)),
            Stage::Opening(_) => Err(misuse("the bundle is not open yet")),
        }
    }
}

fn no_base() -> JsValue {
    misuse("a delta bundle is checked over its only base")
}
