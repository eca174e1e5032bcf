//! The class exported to JavaScript.

use js_sys::{Array, Uint32Array};
use sealift_format::num::at;
use sealift_format::{BaseRange, Error as FormatError, Head, Limits, Opened, Opener, Part, Row, Step};
use sealift_verify::checker::Depth;
use sealift_verify::content::ContentError;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::base::Bases;
use crate::check::Check;
use crate::error::misuse;
use crate::number::{natural, rounded, to_js};
use crate::object::object;
use crate::report::content_error;
use crate::{compare, content, hit, listing, options, picture, report};

/// Opens a bundle from its bytes as they arrive, and then keeps its index and layout.
// Each function returns a Result, which JavaScript receives as several values. V8 11.3, and so Node 20, aborts the process when optimized code that
// called a function with a single reference result is deoptimized during the call.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Reader {
    stage: Stage,
    /// The memory limit in bytes: the bundle's declared sizes are checked against it before anything is kept.
    memory: u64,
}

/// The memory limit of one reader in bytes. A 32-bit memory ends at four times that, and running out of it gives no error message.
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
    /// The memory that it declares, with the bases, in bytes.
    taken: u64,
    /// The bases of a delta bundle that were added so far.
    bases: Bases,
    check: Check,
    /// The objects' fs-verity digests, once a check has compared them.
    digests: Vec<[u8; 32]>,
}

#[wasm_bindgen]
impl Reader {
    /// Returns a reader for a file of `fileLen` bytes, or for a stream. A bundle that declares a memory use over `memory` bytes or over 1 GiB
    /// is rejected.
    ///
    /// # Errors
    /// Returns an error if `fileLen` or `memory` is not a valid number.
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

    /// Returns the bytes needed next to open the bundle, or `done` if `open` can be called.
    ///
    /// # Errors
    /// Returns an error if they lie beyond the range of a number.
    #[wasm_bindgen(unchecked_return_type = "Step")]
    pub fn next(&self) -> Result<JsValue, JsValue> {
        let Stage::Opening(opener) = &self.stage else { return Ok(object(&[("done", true.into())])) };
        let Step::Need(range) = opener.step() else { return Ok(object(&[("done", true.into())])) };
        let what = "an offset in the file";
        let need =
            Array::of2(&to_js(what, range.start)?.into(), &to_js(what, range.end.saturating_sub(range.start))?.into());
        Ok(object(&[("need", need.into())]))
    }

    /// Supplies bytes of the file from the offset that `next` returned. Excess bytes are ignored.
    ///
    /// # Errors
    /// Returns an error if the bytes are not part of a valid bundle, or the offset is wrong.
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
        // If the engine itself ran out of memory, it would not report that as an error of the bundle.
        let declared = opener.head().filter(|_| !had_head).map_or(0, |head| report::memory(head.root()));
        if declared > self.memory {
            let error = ContentError::from(FormatError::Limit { what: "memory", declared, limit: self.memory });
            let thrown = content_error(&error);
            self.stage = Stage::Failed(error);
            return Err(thrown);
        }
        Ok(())
    }

    /// Returns the memory that the limit leaves beside this bundle, for another reader in the same memory.
    ///
    /// # Errors
    /// Returns an error if the bundle is not open.
    #[wasm_bindgen(js_name = memoryLeft)]
    pub fn memory_left(&self) -> Result<f64, JsValue> {
        Ok(rounded(self.memory.saturating_sub(self.opened()?.taken)))
    }

    /// Returns the bundle's head, or `undefined` if it has not been read yet.
    ///
    /// # Errors
    /// None are returned.
    #[wasm_bindgen(unchecked_return_type = "Head | undefined")]
    pub fn head(&self) -> Result<JsValue, JsValue> {
        Ok(self.read_head().map_or(JsValue::UNDEFINED, report::head))
    }

    /// Judges the head by an `allowed_signers` file, before the rest is read.
    ///
    /// # Errors
    /// Returns an error if the head has not been read yet, or an option or a file is malformed.
    #[wasm_bindgen(unchecked_return_type = "Verdict")]
    pub fn judge(
        &self,
        #[wasm_bindgen(js_name = allowedSigners)] allowed_signers: &str,
        #[wasm_bindgen(unchecked_optional_param_type = "JudgeOptions")] options: &JsValue,
    ) -> Result<JsValue, JsValue> {
        let policy = options::policy(allowed_signers, options)?;
        let head = self.read_head().ok_or_else(|| misuse("there is no head yet: supply more bytes first"))?;
        Ok(report::verdict(head, &policy))
    }

    /// Finishes opening, after the index was read or the input ended.
    ///
    /// # Errors
    /// Returns an error if the input ended before the index did.
    #[wasm_bindgen(unchecked_return_type = "Places")]
    pub fn open(&mut self) -> Result<JsValue, JsValue> {
        if let Stage::Opening(opener) = &mut self.stage {
            let opener = std::mem::replace(&mut **opener, Opener::new(None, Limits::default()));
            self.stage = match opener.finish() {
                Ok(opened) => Stage::Open(Box::new(Open::new(opened))),
                Err(error) => Stage::Failed(error.into()),
            };
        }
        let open = self.opened()?;
        report::places(&open.opened, open.taken)
    }

    /// Begins a check. Returns the chunks that the finishing reader must check itself, in this order.
    ///
    /// # Errors
    /// Returns an error if the bundle is not open, or `depth` is invalid.
    #[wasm_bindgen(unchecked_return_type = "Uint32Array")]
    pub fn begin(
        &mut self,
        #[wasm_bindgen(unchecked_param_type = "\"objects\" | \"stored\"")] depth: &str,
    ) -> Result<JsValue, JsValue> {
        let open = self.opened_mut()?;
        let depth = match depth {
            "objects" => Depth::Objects,
            "stored" => Depth::Stored,
            _ => return Err(misuse("there is no such depth")),
        };
        open.check = Check::new(&open.opened, depth);
        if let (Depth::Objects, Opened::Whole(bundle)) = (depth, &open.opened) {
            open.bases.begin_renamed(bundle);
        }
        Ok(Uint32Array::from(&open.check.in_order()[..]).into())
    }

    /// Checks the chunks from number `first` on, given their bytes. The result is for `take` of the finishing reader.
    ///
    /// # Errors
    /// Returns an error if one of them does not match the root.
    pub fn check(&mut self, first: u32, bytes: &[u8]) -> Result<Vec<u8>, JsValue> {
        let Open { opened, bases, check, .. } = self.opened_mut()?;
        let mut found = Vec::new();
        check.run(opened, first, bytes, bases, &mut found).map_err(|error| content_error(&error))?;
        Ok(found)
    }

    /// Adds a reader's results.
    ///
    /// # Errors
    /// Returns an error if `check` did not return them.
    pub fn take(&mut self, found: &[u8]) -> Result<(), JsValue> {
        let open = self.opened_mut()?;
        if open.check.take(&open.opened, found) { Ok(()) } else { Err(misuse("these are not results of `check`")) }
    }

    /// Checks some of the portions without a chunk: files that are empty or all hole. Returns whether more are left.
    ///
    /// # Errors
    /// Returns an error if one of them does not match the index.
    #[wasm_bindgen(js_name = checkBare)]
    pub fn check_bare(&mut self) -> Result<bool, JsValue> {
        let open = self.opened_mut()?;
        open.check.run_bare(&open.opened).map_err(|error| content_error(&error))
    }

    /// Finishes a check, after all readers' results were added. `fileLen` is the length of the input or, if that goes on after the bundle, any length
    /// greater than the bundle's.
    ///
    /// # Errors
    /// Returns an error if the bundle is incomplete, or does not match its root.
    #[wasm_bindgen(unchecked_return_type = "Summary")]
    pub fn finish(&mut self, #[wasm_bindgen(js_name = fileLen)] file_len: f64) -> Result<JsValue, JsValue> {
        let len = natural(file_len).ok_or_else(|| misuse("fileLen is not a whole number up to 2^53-1"))?;
        let open = self.opened_mut()?;
        let expected = open.opened.head().file_len();
        if len < expected {
            return Err(content_error(&FormatError::Truncated { len, expected: Some(expected) }.into()));
        }
        if len > expected {
            return Err(content_error(&FormatError::Trailing { expected }.into()));
        }
        let check = std::mem::replace(&mut open.check, Check::Stored);
        open.digests = check.finish(&open.opened, &open.bases).map_err(|error| content_error(&error))?;
        Ok(report::summary(&open.opened, &open.bases))
    }

    /// Returns the fs-verity digests of the objects, if a finished check compared all of them: a delta bundle over this base needs them.
    ///
    /// # Errors
    /// Returns an error if the bundle is not open.
    pub fn digests(&self) -> Result<Vec<u8>, JsValue> {
        Ok(self.opened()?.digests.as_flattened().to_vec())
    }

    /// Takes the next base of a delta bundle, in the order of its root. `digests` are those of the base's own check; only the reader that finishes
    /// the check needs them.
    ///
    /// # Errors
    /// Returns an error if it is another base, or all together exceed the memory limit.
    #[wasm_bindgen(js_name = addBase)]
    pub fn add_base(&mut self, base: Reader, digests: Vec<u8>) -> Result<(), JsValue> {
        let limit = self.memory;
        let open = self.opened_mut()?;
        let (Opened::Delta(delta), Stage::Open(base)) = (&open.opened, base.stage) else { return Err(no_base()) };
        let Opened::Whole(bundle) = base.opened else { return Err(no_base()) };
        // The base was opened, so its index matches its root.
        let wanted = delta.bases().get(open.bases.len()).map(|wanted| wanted.index_digest);
        if wanted != Some(bundle.head.root().contents.index_digest) {
            return Err(no_base());
        }
        let mut declared = open.taken.saturating_add(base.taken);
        if let (0, Some(bases)) = (open.bases.len(), &delta.head.root().bases) {
            // The wanted index is in memory beside the difference and, while it is made, both as tables and as bytes.
            let index_len = delta.head.root().contents.index_len;
            declared = declared.saturating_add(bases.prefix_len.into()).saturating_add(index_len.saturating_mul(3));
        }
        if declared > limit {
            return Err(content_error(&FormatError::Limit { what: "memory", declared, limit }.into()));
        }
        open.taken = declared;
        open.bases.push(bundle, digests);
        Ok(())
    }

    /// Completes a delta bundle with its bases, all of which were added. From then on, this is a reader of the full bundle that results.
    ///
    /// # Errors
    /// Returns an error if a base is missing, or the result does not match the root.
    #[wasm_bindgen(unchecked_return_type = "Places")]
    pub fn complete(&mut self) -> Result<JsValue, JsValue> {
        if !matches!(&self.stage, Stage::Open(open) if matches!(open.opened, Opened::Delta(_))) {
            return Err(no_base());
        }
        let unknown = FormatError::Digest { part: Part::Base };
        let Stage::Open(open) = std::mem::replace(&mut self.stage, Stage::Failed(unknown.into())) else {
            return Err(no_base());
        };
        let Open { opened: Opened::Delta(delta), mut bases, taken, .. } = *open else { return Err(no_base()) };
        self.stage = match delta.complete(&bases.indexes()) {
            Ok(bundle) => {
                bases.find_objects(&bundle);
                let open = Open { taken, bases, ..Open::new(Opened::Whole(bundle)) };
                Stage::Open(Box::new(open))
            }
            Err(error) => Stage::Failed(error.into()),
        };
        self.open()
    }

    /// Returns the base chunks needed to decode a chunk: for each, the number of the base, its number there, and its place in the base's file. There are
    /// none if recipes make a part of what it is decoded with.
    ///
    /// # Errors
    /// Returns an error if an offset is not a valid number.
    #[wasm_bindgen(js_name = beginPrefix, unchecked_return_type = "[base: number, chunk: number, place: [offset: number, length: number]][]")]
    pub fn begin_prefix(&mut self, chunk: u32) -> Result<JsValue, JsValue> {
        let open = self.opened_mut()?;
        Ok(open.bases.begin_prefix(ranges(&open.opened, chunk))?.into())
    }

    /// Supplies the stored bytes of chunk `number` of a base for chunk `chunk`, which is checked after all of them were supplied.
    ///
    /// # Errors
    /// Returns an error if the bytes do not match the base's root.
    #[wasm_bindgen(js_name = fillPrefix)]
    pub fn fill_prefix(&mut self, chunk: u32, base: u32, number: u32, stored: &[u8]) -> Result<(), JsValue> {
        let open = self.opened_mut()?;
        let number = Row::new(number).ok_or_else(|| misuse("there is no such chunk"))?;
        let filled = open.bases.fill_prefix(ranges(&open.opened, chunk), base, number, stored);
        filled.map_err(|error| content_error(&error))
    }

    /// Returns the base and the place of the next base chunk that `checkRenamed` needs, or `undefined` if none is left: OSTree files may give an object
    /// of a base a new owner or mode.
    ///
    /// # Errors
    /// Returns an error if an offset is not a valid number.
    #[wasm_bindgen(js_name = nextRenamed, unchecked_return_type = "[base: number, place: [offset: number, length: number]] | undefined")]
    pub fn next_renamed(&self) -> Result<JsValue, JsValue> {
        self.opened()?.bases.next_renamed()
    }

    /// Checks the OSTree files whose content this chunk of a base holds, given its stored bytes.
    ///
    /// # Errors
    /// Returns an error if a checksum differs, or the bytes do not match the base's root.
    #[wasm_bindgen(js_name = checkRenamed)]
    pub fn check_renamed(&mut self, stored: &[u8]) -> Result<(), JsValue> {
        let Open { opened, bases, .. } = self.opened_mut()?;
        let Opened::Whole(bundle) = opened else { return Err(no_base()) };
        bases.check_renamed(bundle, stored).map_err(|error| content_error(&error))
    }

    /// Returns the changes from the first base to a delta bundle, once that is completed.
    ///
    /// # Errors
    /// Returns an error if it is not completed.
    #[wasm_bindgen(unchecked_return_type = "Comparison")]
    pub fn changes(&self, limit: u32) -> Result<JsValue, JsValue> {
        let open = self.opened()?;
        compare::indexes(open.bases.first().ok_or_else(no_base)?, listing::index(&open.opened)?, limit)
    }

    /// Returns the files affected by a damaged chunk or object: their number, and the names of the first `limit`.
    ///
    /// # Errors
    /// Returns an error if the bundle is not open.
    #[wasm_bindgen(unchecked_return_type = "Damage")]
    pub fn hit(&self, chunk: Option<u32>, object: Option<u32>, limit: u32) -> Result<JsValue, JsValue> {
        Ok(hit::files(&self.opened()?.opened, chunk, object, limit))
    }

    /// Returns the named trees; empty for a delta bundle.
    ///
    /// # Errors
    /// Returns an error if the bundle is not open.
    #[wasm_bindgen(unchecked_return_type = "Ref[]")]
    pub fn refs(&self) -> Result<JsValue, JsValue> {
        Ok(listing::refs(&self.opened()?.opened))
    }

    /// Returns how many entries the trees have, and the bytes of their files.
    ///
    /// # Errors
    /// Returns an error if the bundle is not open, or is a delta bundle.
    #[wasm_bindgen(unchecked_return_type = "Listed")]
    pub fn listed(&self) -> Result<JsValue, JsValue> {
        listing::listed(&self.opened()?.opened)
    }

    /// Returns `count` entries of a directory, by its number, from `from` on.
    ///
    /// # Errors
    /// Returns an error if the bundle is not open, or there is no such directory.
    #[wasm_bindgen(unchecked_return_type = "Entry[]")]
    pub fn children(&self, directory: u32, from: u32, count: u32) -> Result<JsValue, JsValue> {
        listing::children(&self.opened()?.opened, directory, from, count)
    }

    /// Returns entries by their numbers.
    ///
    /// # Errors
    /// Returns an error if the bundle is not open, or there is no such entry.
    #[wasm_bindgen(unchecked_return_type = "Entry[]")]
    pub fn entries(&self, numbers: &[u32]) -> Result<JsValue, JsValue> {
        listing::entries(&self.opened()?.opened, numbers)
    }

    /// Returns the numbers of the entries whose names contain this text; if it contains a slash, whose paths do. ASCII letters match
    /// case-insensitively.
    ///
    /// # Errors
    /// Returns an error if the bundle is not open.
    pub fn search(&self, text: &str) -> Result<Vec<u32>, JsValue> {
        Ok(listing::search(&self.opened()?.opened, text))
    }

    /// Returns the number of the entry at `[REF:]PATH`.
    ///
    /// # Errors
    /// Returns an error if there is none, or there are several refs and the path names none.
    pub fn find(&self, path: &[u8]) -> Result<u32, JsValue> {
        listing::find(&self.opened()?.opened, path)
    }

    /// Returns what a delta bundle changes without listing names, which are known only with its bases; `undefined` for other bundles.
    ///
    /// # Errors
    /// Returns an error if the bundle is not open.
    #[wasm_bindgen(unchecked_return_type = "Unlisted | undefined")]
    pub fn unlisted(&self) -> Result<JsValue, JsValue> {
        Ok(listing::unlisted(&self.opened()?.opened))
    }

    /// Returns the names that a delta bundle adds, changes or removes.
    ///
    /// # Errors
    /// Returns an error if the bundle is not open.
    #[wasm_bindgen(unchecked_return_type = "Edit[]")]
    pub fn edits(&self) -> Result<JsValue, JsValue> {
        Ok(listing::edits(&self.opened()?.opened))
    }

    /// Returns the changes from an older bundle to this one. All are counted, and at most `limit` are listed.
    ///
    /// # Errors
    /// Returns an error if one of the bundles is not open, or is a delta bundle.
    #[wasm_bindgen(unchecked_return_type = "Comparison")]
    pub fn compare(&self, older: &Reader, limit: u32) -> Result<JsValue, JsValue> {
        compare::compare(&older.opened()?.opened, &self.opened()?.opened, limit)
    }

    /// Returns what the chunks hold, for a picture of the file.
    ///
    /// # Errors
    /// Returns an error if the bundle is not open.
    #[wasm_bindgen(unchecked_return_type = "{ classes: Uint8Array, saved: number, largest: Uint32Array }")]
    pub fn picture(&self) -> Result<JsValue, JsValue> {
        Ok(picture::picture(&self.opened()?.opened))
    }

    /// Returns the place of a regular file's content, by its entry's number.
    ///
    /// # Errors
    /// Returns an error if it is not a regular file, if its content is known only with a base, or if a recipe makes it.
    #[wasm_bindgen(unchecked_return_type = "Content")]
    pub fn content(&self, entry: u32) -> Result<JsValue, JsValue> {
        let open = self.opened()?;
        content::places(&open.opened, &open.bases, entry)
    }

    /// Returns a part of an object, from the stored bytes of the chunk that `content` returned for it. The prefix of a chunk that has one must be
    /// filled first.
    ///
    /// # Errors
    /// Returns an error if they do not match the root.
    #[wasm_bindgen(js_name = contentPart)]
    pub fn content_part(&self, object: u32, part: u32, stored: &[u8]) -> Result<Vec<u8>, JsValue> {
        let open = self.opened()?;
        content::part(&open.opened, &open.bases, object, part, stored)
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

impl Open {
    fn new(opened: Opened) -> Self {
        let taken = report::memory(opened.head().root());
        Self { opened, taken, bases: Bases::default(), check: Check::Stored, digests: Vec::new() }
    }
}

/// Returns the ranges of base objects that make a chunk's prefix.
fn ranges(opened: &Opened, chunk: u32) -> &[BaseRange] {
    let layout = opened.layout();
    layout.chunks.get(at(chunk)).map_or(&[], |chunk| layout.prefix_of(chunk))
}

fn no_base() -> JsValue {
    misuse("a delta bundle needs its bases, in the order of its root")
}
