//! The sans-io check of a whole bundle: says which bytes it needs next, and checks each byte as it comes.

use std::ops::Range;

use sealift_format::{Bundle, Error as FormatError, Head, Limits, Opened, Opener, Part, Step};

use crate::checker::ObjectChecker;
use crate::content::{ContentError, check_shape, check_stored};
use crate::objects::VerityTable;

/// How thoroughly a bundle is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a caller chooses one")]
pub enum Depth {
    /// Each byte of the file is covered: head, layout, index, and the digest of each chunk.
    Stored,
    /// Each chunk is also decoded, and each object checked against its id, its fs-verity digest and the checksums of OSTree's files. Of a
    /// delta bundle, whose objects can be made where its bases are, the shape of each chunk is checked.
    Objects,
}

/// Checks a bundle in one pass, in the file's order and each byte once. Keeps the index, the layout and one chunk.
///
/// That its root is trusted is for somebody else to say, as soon as there is a [`Self::head`]. However the input is split, the
/// result is the same.
///
/// ```
/// # fn walk(file: &[u8]) -> Result<sealift_format::Opened, sealift_verify::content::ContentError> {
/// use sealift_format::{Limits, Step};
/// use sealift_verify::walk::{Depth, Walker};
///
/// let mut walker = Walker::new(Some(file.len() as u64), Limits::default(), Depth::Objects);
/// while let Step::Need(range) = walker.step() {
///     let bytes = &file[range.start as usize..range.end as usize];
///     walker.supply(range.start, bytes)?;
/// }
/// walker.finish()
/// # }
/// # assert!(walk(b"").is_err());
/// ```
#[derive(Debug)]
pub struct Walker {
    file_len: Option<u64>,
    depth: Depth,
    stage: Stage,
    failure: Option<ContentError>,
}

#[derive(Debug)]
enum Stage {
    Opening(Box<Opener>),
    Chunks(Box<Chunks>),
}

impl Walker {
    /// Bytes that are asked for at a time at most: a caller who reads them all at once still needs little memory.
    pub const READ_LEN: u64 = 8 << 20;

    /// A walker over a file of `file_len` bytes, or over a pipe.
    #[must_use]
    pub fn new(file_len: Option<u64>, limits: Limits, depth: Depth) -> Self {
        let stage = Stage::Opening(Box::new(Opener::new(file_len, limits)));
        Self { file_len, depth, stage, failure: None }
    }

    /// What to do next. Ranges ascend and follow each other, and any first part of one will do. Where the input has ended instead,
    /// [`Self::finish`] is to be told.
    #[must_use]
    pub fn step(&self) -> Step {
        if self.failure.is_some() {
            return Step::Done;
        }
        let range = match &self.stage {
            Stage::Opening(opener) => match opener.step() {
                Step::Need(range) => range,
                Step::Done => return Step::Done,
            },
            Stage::Chunks(chunks) => chunks.needs(self.file_len),
        };
        if range.is_empty() {
            return Step::Done;
        }
        Step::Need(range.start..range.end.min(range.start.saturating_add(Self::READ_LEN)))
    }

    /// Takes bytes of the file that begin at `at`, the start of the range of [`Self::step`]. Bytes that it did not ask for are
    /// not looked at.
    ///
    /// # Errors
    /// The bytes are not a bundle's. It stays so.
    pub fn supply(&mut self, at: u64, bytes: &[u8]) -> Result<(), ContentError> {
        if let Some(error) = &self.failure {
            return Err(error.clone());
        }
        let Step::Need(range) = self.step() else { return Ok(()) };
        if at != range.start {
            return Ok(());
        }
        let wanted = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let result = self.take(at, &bytes[..bytes.len().min(wanted)]);
        self.failure = result.clone().err();
        result
    }

    fn take(&mut self, at: u64, bytes: &[u8]) -> Result<(), ContentError> {
        let opener = match &mut self.stage {
            Stage::Chunks(chunks) => return chunks.take(bytes),
            Stage::Opening(opener) => opener,
        };
        opener.supply(at, bytes)?;
        let end = at.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        if opener.head().is_some_and(|head| head.chunks_at() == end) {
            let opener = std::mem::replace(&mut **opener, Opener::new(None, Limits::default()));
            self.stage = Stage::Chunks(Box::new(Chunks::new(opener.finish()?, self.depth)));
        }
        Ok(())
    }

    /// The head, as soon as it has been read: for judging signatures before the rest is.
    #[must_use]
    pub fn head(&self) -> Option<&Head> {
        match &self.stage {
            Stage::Opening(opener) => opener.head(),
            Stage::Chunks(chunks) => Some(chunks.opened.head()),
        }
    }

    /// The bundle, as soon as its index has been read. Of its chunks nothing is known then.
    #[must_use]
    pub fn opened(&self) -> Option<&Opened> {
        match &self.stage {
            Stage::Chunks(chunks) => Some(&chunks.opened),
            Stage::Opening(_) => None,
        }
    }

    /// Says that the input has ended, and returns the bundle, every byte of which is as its root says.
    ///
    /// # Errors
    /// The input ended before the bundle did, or is not a bundle's.
    pub fn finish(self) -> Result<Opened, ContentError> {
        match (self.failure, self.stage) {
            (Some(error), _) => Err(error),
            (None, Stage::Chunks(chunks)) => chunks.finish(),
            (None, Stage::Opening(opener)) => Chunks::new(opener.finish()?, self.depth).finish(),
        }
    }
}

/// What follows the index.
#[derive(Debug)]
struct Chunks {
    opened: Opened,
    /// The chunk that is being read.
    number: u32,
    /// How much of it has come.
    taken: usize,
    /// How much of the file has come.
    at: u64,
    check: Check,
}

#[derive(Debug)]
enum Check {
    Stored(Box<blake3::Hasher>),
    Objects(Box<Objects>),
    /// Of a delta bundle: what has come of the chunk.
    Shape(Vec<u8>),
}

#[derive(Debug)]
struct Objects {
    /// What has come of the chunk.
    stored: Vec<u8>,
    checker: ObjectChecker,
    table: VerityTable,
}

impl Chunks {
    fn new(opened: Opened, depth: Depth) -> Self {
        let check = match (depth, &opened) {
            (Depth::Stored, _) => Check::Stored(Box::default()),
            (Depth::Objects, Opened::Whole(bundle)) => Check::Objects(Box::new(Objects::new(bundle))),
            (Depth::Objects, Opened::Delta(_)) => Check::Shape(Vec::new()),
        };
        Self { number: 0, taken: 0, at: opened.head().chunks_at(), check, opened }
    }

    /// A pipe is also asked for a byte behind the bundle, which it should not have.
    fn needs(&self, file_len: Option<u64>) -> Range<u64> {
        let end = self.opened.head().file_len();
        self.at..if file_len.is_none() && self.at == end { end.saturating_add(1) } else { end }
    }

    fn take(&mut self, mut bytes: &[u8]) -> Result<(), ContentError> {
        while !bytes.is_empty() {
            let number = usize::try_from(self.number).unwrap_or(usize::MAX);
            let Some(chunk) = self.opened.layout().chunks.get(number) else {
                return Err(FormatError::Trailing { expected: self.opened.head().file_len() }.into());
            };
            let stored_len = usize::try_from(chunk.stored_len).unwrap_or(usize::MAX);
            let (part, rest) = bytes.split_at(bytes.len().min(stored_len - self.taken));
            bytes = rest;
            self.taken += part.len();
            self.at = self.at.saturating_add(u64::try_from(part.len()).unwrap_or(u64::MAX));
            let is_whole = self.taken == stored_len;
            self.check.take(&self.opened, self.number, part, is_whole)?;
            if is_whole {
                (self.number, self.taken) = (self.number + 1, 0);
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Opened, ContentError> {
        let expected = self.opened.head().file_len();
        if self.at < expected {
            return Err(FormatError::Truncated { len: self.at, expected }.into());
        }
        if let (Check::Objects(objects), Opened::Whole(bundle)) = (self.check, &self.opened) {
            objects.finish(bundle)?;
        }
        Ok(self.opened)
    }
}

impl Check {
    /// Takes the next part of chunk `number`, the last one if the chunk `is_whole` with it.
    fn take(&mut self, opened: &Opened, number: u32, part: &[u8], is_whole: bool) -> Result<(), ContentError> {
        let chunk = &opened.layout().chunks[usize::try_from(number).unwrap_or(usize::MAX)];
        match self {
            Self::Stored(hasher) => {
                hasher.update(part);
                if !is_whole {
                    return Ok(());
                }
                let found = hasher.finalize();
                hasher.reset();
                if found.as_bytes() == &chunk.digest {
                    return Ok(());
                }
                Err(FormatError::Digest { part: Part::Chunk(number) }.into())
            }
            Self::Objects(objects) => match opened {
                Opened::Whole(bundle) => objects.take(bundle, number, part, is_whole),
                Opened::Delta(_) => Ok(()),
            },
            Self::Shape(stored) => {
                stored.extend(part);
                if is_whole {
                    check_stored(number, chunk, stored)?;
                    check_shape(opened.head(), opened.layout(), number, stored)?;
                    stored.clear();
                }
                Ok(())
            }
        }
    }
}

impl Objects {
    fn new(bundle: &Bundle) -> Self {
        Self { stored: Vec::new(), checker: ObjectChecker::new(bundle), table: VerityTable::new(bundle) }
    }

    fn take(&mut self, bundle: &Bundle, number: u32, part: &[u8], is_whole: bool) -> Result<(), ContentError> {
        let Self { stored, checker, table } = self;
        // A chunk that comes in one part is not copied.
        let whole = match (is_whole, stored.is_empty()) {
            (true, true) => part,
            _ => {
                stored.extend(part);
                &stored[..]
            }
        };
        if is_whole {
            checker.check(bundle, number, whole, |checked| table.take(checked))?;
            stored.clear();
        }
        Ok(())
    }

    fn finish(self, bundle: &Bundle) -> Result<(), ContentError> {
        self.checker.finish_all(bundle, self.table)
    }
}
