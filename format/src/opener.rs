//! The sans-io opener: says which bytes it needs next, and checks them before it reads them (core 2).

use alloc::vec::Vec;
use core::ops::Range;

use crate::frame::FrameDecoder;
use crate::layout::{index_maxima, maxima};
use crate::num::wide;
use crate::{Bundle, Delta, Difference, Error, Head, Index, Layout, Limits, Objects, Part, Preamble};

/// What was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "delta 3 knows these two")]
#[allow(clippy::large_enum_variant, reason = "there is one of it")]
pub enum Opened {
    /// A bundle that carries all of its objects.
    Whole(Bundle),
    /// One that needs its bases.
    Delta(Delta),
}

impl Opened {
    /// Preamble, root and envelopes.
    #[must_use]
    pub fn head(&self) -> &Head {
        match self {
            Self::Whole(bundle) => &bundle.head,
            Self::Delta(delta) => &delta.head,
        }
    }

    /// Returns where the objects lie that it carries.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        match self {
            Self::Whole(bundle) => &bundle.layout,
            Self::Delta(delta) => &delta.layout,
        }
    }
}

/// What the opener wants.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a caller's loop handles both")]
pub enum Step {
    /// These bytes of the file; any first part of them will do.
    Need(Range<u64>),
    /// Nothing more: [`Opener::finish`] has the bundle.
    Done,
}

#[derive(Debug)]
enum State {
    Preamble,
    Head,
    Layout,
    Index { layout: Vec<u8> },
    Done(alloc::boxed::Box<(Layout, What)>),
}

/// What stands in the index's place.
#[derive(Debug)]
enum What {
    Index(Index),
    Difference(Difference),
}

/// Reads the parts before the chunks, in the file's order and each byte once.
///
/// ```
/// # fn open(file: &[u8]) -> Result<sealift_format::Opened, sealift_format::Error> {
/// use sealift_format::{Limits, Opener, Step};
///
/// let mut opener = Opener::new(Some(file.len() as u64), Limits::default());
/// while let Step::Need(range) = opener.step() {
///     let bytes = &file[range.start as usize..range.end as usize];
///     opener.supply(range.start, bytes)?;
/// }
/// opener.finish()
/// # }
/// # assert!(open(b"").is_err());
/// ```
#[derive(Debug)]
pub struct Opener {
    file_len: Option<u64>,
    limits: Limits,
    head: Option<Head>,
    state: State,
    /// The part that is being read, and where it begins.
    part: Vec<u8>,
    part_at: u64,
    part_len: u64,
}

impl Opener {
    /// Returns an opener for a file of `file_len` bytes, or for a pipe.
    #[must_use]
    pub fn new(file_len: Option<u64>, limits: Limits) -> Self {
        Self {
            file_len,
            limits,
            head: None,
            state: State::Preamble,
            part: Vec::new(),
            part_at: 0,
            part_len: Preamble::LEN.into(),
        }
    }

    /// Returns what to do next. Ranges ascend and follow each other, so that a pipe serves as well as a file; a range may
    /// pass the end of a file that is cut, which is then to be said with [`Self::finish`].
    #[must_use]
    pub fn step(&self) -> Step {
        // An empty part is for `finish` to judge.
        if matches!(self.state, State::Done(_)) || self.part_len == 0 {
            return Step::Done;
        }
        let end = self.part_at.saturating_add(self.part_len);
        let at = self.part_at.saturating_add(wide(self.part.len()));
        match self.file_len {
            // Nothing is left to supply: `finish` says that the file is cut.
            Some(len) if at >= len => Step::Done,
            Some(len) => Step::Need(at..end.min(len)),
            None => Step::Need(at..end),
        }
    }

    /// Takes bytes of the file that begin at `at`, the start of the range of [`Self::step`]. Bytes that it did not ask for are
    /// not looked at.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a bundle's.
    pub fn supply(&mut self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        let Step::Need(range) = self.step() else { return Ok(()) };
        if at != range.start {
            return Ok(());
        }
        // What is longer than memory is wanted whole.
        let wanted = usize::try_from(range.end - range.start).ok().and_then(|wanted| bytes.get(..wanted));
        self.part.extend(wanted.unwrap_or(bytes));
        self.advance_as_far_as_it_goes()
    }

    fn advance_as_far_as_it_goes(&mut self) -> Result<(), Error> {
        while !matches!(self.state, State::Done(_)) && wide(self.part.len()) == self.part_len {
            let had_head = self.head.is_some();
            self.advance()?;
            // Signatures are judged before the layout, even where that has no bytes to wait for.
            if !had_head && self.head.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Returns the head, as soon as it has been read: for judging signatures before the rest is.
    #[must_use]
    pub fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// Returns the bundle.
    ///
    /// # Errors
    /// Returns an error if the input ended before the index did.
    pub fn finish(mut self) -> Result<Opened, Error> {
        self.advance_as_far_as_it_goes()?;
        match (self.state, self.head) {
            (State::Done(parts), Some(head)) => Ok(match *parts {
                (layout, What::Index(index)) => Opened::Whole(Bundle { head, layout, index }),
                (layout, What::Difference(difference)) => Opened::Delta(Delta { head, layout, difference }),
            }),
            (_, head) => Err(Error::Truncated {
                len: self.part_at.saturating_add(wide(self.part.len())),
                expected: head.map_or(self.part_at.saturating_add(self.part_len), |head| head.file_len()),
            }),
        }
    }

    fn next_part(&mut self, state: State, len: u64) -> Vec<u8> {
        self.state = state;
        self.part_at = self.part_at.saturating_add(self.part_len);
        self.part_len = len;
        core::mem::take(&mut self.part)
    }

    fn advance(&mut self) -> Result<(), Error> {
        match core::mem::replace(&mut self.state, State::Preamble) {
            State::Preamble => {
                // The head is parsed as one piece of memory, preamble included: first as far as the signature area's length.
                self.state = if self.part_len == Preamble::LEN.into() { State::Preamble } else { State::Head };
                self.part_len = Head::len_from(&self.part)?.into();
                Ok(())
            }
            State::Head => self.read_head(),
            State::Layout => self.read_layout(),
            State::Index { layout } => self.read_index(&layout),
            done @ State::Done(_) => {
                self.state = done;
                Ok(())
            }
        }
    }

    fn read_head(&mut self) -> Result<(), Error> {
        let head = Head::parse(&self.part)?;
        self.limits.check(head.root())?;
        head.root().file_len(head.head_len())?;
        self.next_part(State::Layout, head.root().contents.layout_stored);
        self.head = Some(head);
        Ok(())
    }

    fn read_layout(&mut self) -> Result<(), Error> {
        let Some(head) = &self.head else { return Ok(()) };
        let contents = head.root().contents.clone();
        let decoded = self.decode(Part::Layout, &contents.layout_blake3, contents.layout_len)?;
        self.next_part(State::Index { layout: decoded }, contents.index_stored);
        Ok(())
    }

    fn read_index(&mut self, layout: &[u8]) -> Result<(), Error> {
        let Some(head) = &self.head else { return Ok(()) };
        let (contents, declared) = (&head.root().contents, &head.root().maxima);
        let parts = if let Some(bases) = &head.root().bases {
            let decoded = self.decode(Part::Index, &contents.index_blake3, bases.difference_len)?;
            let difference = Difference::parse(&decoded, declared.entries, contents.index_len)?;
            declared.check_refs(difference.refs().len())?;
            let layout = Layout::parse(layout, &Objects::from(&difference), declared.piece_log2)?;
            crate::delta::check_layout(declared, bases, &layout)?;
            (layout, What::Difference(difference))
        } else {
            let decoded = self.decode(Part::Index, &contents.index_blake3, contents.index_len)?;
            if crate::verity::digest(&decoded) != contents.index_digest {
                return Err(Error::Digest { part: Part::Index });
            }
            let index = Index::parse(decoded, declared.entries)?;
            declared.check_index(&index_maxima(&index)?)?;
            let layout = Layout::parse(layout, &Objects::from(&index), declared.piece_log2)?;
            declared.check(&maxima(&index, &layout, declared.piece_log2, declared.window_log)?)?;
            (layout, What::Index(index))
        };
        // Last: a length that the root states wrongly is the root's failure.
        let expected = head.file_len();
        match self.file_len {
            Some(len) if len < expected => return Err(Error::Truncated { len, expected }),
            Some(len) if len > expected => return Err(Error::Trailing { expected }),
            _ => {}
        }
        self.next_part(State::Done(alloc::boxed::Box::new(parts)), 0);
        Ok(())
    }

    fn decode(&self, part: Part, blake3: &[u8; 32], len: u64) -> Result<Vec<u8>, Error> {
        if blake3::hash(&self.part).as_bytes() != blake3 {
            return Err(Error::Digest { part });
        }
        let window_log = self.head.as_ref().map_or(0, |head| head.root().maxima.window_log);
        let mut decoded = Vec::new();
        FrameDecoder::new().decode(part, &self.part, len, window_log, &mut decoded)?;
        Ok(decoded)
    }
}
