//! The opener, which does no I/O itself: it tells which bytes it needs next, and checks them before it parses them (core 2).

use alloc::vec::Vec;
use core::ops::Range;

use crate::frame::FrameDecoder;
use crate::layout::{index_maxima, maxima};
use crate::num::wide;
use crate::recipes::RecipeSums;
use crate::{Bundle, Delta, Difference, Error, Head, Index, Layout, Limits, Object, Objects, Part, Preamble};

/// An opened bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "delta 3 knows these two")]
#[allow(clippy::large_enum_variant, reason = "there is only one at a time")]
pub enum Opened {
    /// A full bundle, which carries all of its objects.
    Whole(Bundle),
    /// A delta bundle, which needs its bases.
    Delta(Delta),
}

impl Opened {
    /// Returns preamble, root and envelopes.
    #[must_use]
    pub fn head(&self) -> &Head {
        match self {
            Self::Whole(bundle) => &bundle.head,
            Self::Delta(delta) => &delta.head,
        }
    }

    /// Returns where the carried objects lie.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        match self {
            Self::Whole(bundle) => &bundle.layout,
            Self::Delta(delta) => &delta.layout,
        }
    }
}

/// What the opener needs next.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a caller's loop handles both")]
pub enum Step {
    /// These bytes of the file, or any leading part of them.
    Need(Range<u64>),
    /// Nothing more: [`Opener::finish`] returns the bundle.
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

/// What is in the place of the index.
#[derive(Debug)]
enum What {
    Index(Index),
    Difference(Difference),
}

/// Reads the parts before the chunks, in the file's order, each byte once.
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

    /// Returns what to do next. Each range follows the one before, so that a pipe can be read like a file. If the length of the input is unknown, a
    /// range may lie beyond its end: [`Self::finish`] then returns the error.
    #[must_use]
    pub fn step(&self) -> Step {
        // `finish` handles an empty part.
        if matches!(self.state, State::Done(_)) || self.part_len == 0 {
            return Step::Done;
        }
        let end = self.part_at.saturating_add(self.part_len);
        let at = self.part_at.saturating_add(wide(self.part.len()));
        match self.file_len {
            // Nothing is left to supply: `finish` reports that the file is truncated.
            Some(len) if at >= len => Step::Done,
            Some(len) => Step::Need(at..end.min(len)),
            None => Step::Need(at..end),
        }
    }

    /// Takes bytes of the file from `at` on, which is the start of the range that [`Self::step`] returned. Bytes that it did not ask for are ignored.
    ///
    /// # Errors
    /// Returns an error if the bytes are not those of a valid bundle.
    pub fn supply(&mut self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        let Step::Need(range) = self.step() else { return Ok(()) };
        if at != range.start {
            return Ok(());
        }
        // If the range is longer than memory can be, all bytes are wanted.
        let wanted = usize::try_from(range.end - range.start).ok().and_then(|wanted| bytes.get(..wanted));
        self.part.extend(wanted.unwrap_or(bytes));
        if matches!(self.state, State::Preamble) {
            // A short file of another kind is no truncated bundle.
            Preamble::check_start(&self.part)?;
        }
        self.advance_as_far_as_it_goes()
    }

    fn advance_as_far_as_it_goes(&mut self) -> Result<(), Error> {
        while !matches!(self.state, State::Done(_)) && wide(self.part.len()) == self.part_len {
            let had_head = self.head.is_some();
            self.advance()?;
            // Callers can judge the signatures before the layout is parsed, even if the layout needs no more bytes.
            if !had_head && self.head.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Returns the head once it has been read, so that signatures can be judged before the rest is.
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
                expected: head.map(|head| head.file_len()),
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
                // The head is parsed as one part, preamble included. Its first bytes, up to the signature area's length, tell how long it is.
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
            self.check_recipes(&layout, difference.objects())?;
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
            self.check_recipes(&layout, index.objects())?;
            (layout, What::Index(index))
        };
        // Checked last: if the root states a wrong length, that is a failure of the root.
        let expected = head.file_len();
        match self.file_len {
            Some(len) if len < expected => return Err(Error::Truncated { len, expected: Some(expected) }),
            Some(len) if len > expected => return Err(Error::Trailing { expected }),
            _ => {}
        }
        self.next_part(State::Done(alloc::boxed::Box::new(parts)), 0);
        Ok(())
    }

    /// Compares what the root says of recipes with those of the layout, whose objects before the leaves are `own`.
    fn check_recipes(&self, layout: &Layout, own: &[Object]) -> Result<(), Error> {
        let declared = self.head.as_ref().and_then(|head| head.root().recipes.as_ref());
        RecipeSums::check(declared, &layout.recipes, own)
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
