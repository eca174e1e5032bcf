//! The steps that a deep check cannot do without, each by itself: the bound of its speed. A module like the page's own, built for `bare.js`.
#![allow(unsafe_code, reason = "what #[wasm_bindgen] expands to; there is none of our own")]

use sealift_format::{Bundle, Chunk, Codec, FrameDecoder, Holds, Limits, Opened, Opener, Part, Row, Step, num, verity};
use sealift_verify::content::ObjectRows;
use wasm_bindgen::JsError;
use wasm_bindgen::prelude::wasm_bindgen;

/// An open bundle, and one of its chunks.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Bare {
    bundle: Bundle,
    decoder: FrameDecoder,
    number: u32,
    stored: Vec<u8>,
    decoded: Vec<u8>,
}

#[wasm_bindgen]
impl Bare {
    /// Opens the bundle whose bytes before the chunks these are.
    ///
    /// # Errors
    /// Returns an error if they are not those of a full bundle.
    #[wasm_bindgen(constructor)]
    pub fn new(bytes: &[u8]) -> Result<Self, JsError> {
        let mut opener = Opener::new(None, Limits::default());
        while let Step::Need(range) = opener.step() {
            let part = usize::try_from(range.start).ok().and_then(|start| bytes.get(start..));
            opener.supply(range.start, part.ok_or_else(|| JsError::new("bytes are missing"))?)?;
        }
        let Opened::Whole(bundle) = opener.finish()? else { return Err(JsError::new("it is a delta bundle")) };
        Ok(Self { bundle, decoder: FrameDecoder::new(), number: 0, stored: Vec::new(), decoded: Vec::new() })
    }

    /// Returns the stored length of each chunk.
    pub fn lengths(&self) -> Vec<u32> {
        self.bundle.layout.chunks.iter().map(|chunk| chunk.stored_len).collect()
    }

    /// Takes the stored bytes of a chunk.
    pub fn take(&mut self, number: u32, stored: &[u8]) {
        self.number = number;
        self.stored.clear();
        self.stored.extend(stored);
    }

    /// Decodes the chunk, unless it is stored as it is.
    ///
    /// # Errors
    /// Returns an error if it does not decode.
    pub fn zstd(&mut self) -> Result<(), JsError> {
        let Self { bundle, decoder, number, stored, decoded } = self;
        let chunk = chunk_of(bundle, *number)?;
        let window_log = bundle.head.root().maxima.window_log;
        if chunk.codec == Codec::Zstd {
            decoder.decode(Part::Chunk(*number), stored, chunk.len.into(), window_log, decoded)?;
        }
        Ok(())
    }

    /// Hashes the chunk's stored bytes, and each object in it.
    ///
    /// # Errors
    /// Returns an error if there is no such chunk.
    pub fn blake3(&self) -> Result<u8, JsError> {
        let [mut sum, ..] = *blake3::hash(&self.stored).as_bytes();
        self.objects()?.into_iter().for_each(|data| sum ^= blake3::hash(data).as_bytes()[0]);
        Ok(sum)
    }

    /// Hashes the blocks of each object in the chunk, as fs-verity does.
    ///
    /// # Errors
    /// Returns an error if there is no such chunk.
    pub fn sha256(&self) -> Result<u8, JsError> {
        Ok(verity::digests(&self.objects()?).iter().fold(0, |sum, digest| sum ^ digest[0]))
    }

    fn objects(&self) -> Result<Vec<&[u8]>, JsError> {
        let chunk = chunk_of(&self.bundle, self.number)?;
        let data = if chunk.codec == Codec::Zstd { &self.decoded[..num::at(chunk.len)] } else { &self.stored };
        Ok(match &chunk.holds {
            Holds::Piece => vec![data],
            Holds::Group(range) => {
                let objects = ObjectRows::from(&self.bundle).group(self.bundle.layout.group(range), data);
                objects.map(|(_, data)| data).collect()
            }
        })
    }
}

fn chunk_of(bundle: &Bundle, number: u32) -> Result<&Chunk, JsError> {
    let chunk = Row::new(number).and_then(|row| row.get(&bundle.layout.chunks));
    chunk.ok_or_else(|| JsError::new("there is no such chunk"))
}
