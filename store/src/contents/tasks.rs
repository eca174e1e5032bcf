//! Plans which contents are read, in which order, and in which tasks.

use std::ops::Range;

/// A content of one of the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// The number of the source.
    pub source: usize,
    /// The content's number in the source.
    pub content: u32,
    /// The content's length in bytes.
    pub len: u64,
}

/// The part of a content that is read before the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The content.
    pub item: Item,
    /// The numbers of its pieces; a content of at most one piece is read whole.
    pub pieces: Range<u64>,
}

impl Part {
    /// Returns the part that is all of a content.
    #[must_use]
    pub fn whole(item: Item, piece_len: u64) -> Self {
        Self { item, pieces: 0..item.pieces(piece_len) }
    }
}

impl Item {
    /// Returns the number of its pieces.
    #[must_use]
    pub fn pieces(&self, piece_len: u64) -> u64 {
        self.len.div_ceil(piece_len).max(1)
    }
}

/// The work of one thread.
#[derive(Debug)]
pub enum Task {
    /// Small contents, each read whole.
    Batch(Vec<Item>),
    /// A piece of a large content.
    Piece {
        /// The content.
        item: Item,
        /// The piece's number.
        number: u64,
    },
}

impl Task {
    /// Returns the bytes that the task's result holds in memory.
    pub fn len(&self, piece_len: u64) -> u64 {
        match self {
            Self::Batch(items) => items.iter().map(|item| item.len).sum(),
            Self::Piece { item, number } => piece_len.min(item.len - number * piece_len),
        }
    }
}

/// The maximum number of files in a batch: enough to be worth a lock, few enough to spread over the threads.
const BATCH_FILES: usize = 128;

/// Hands out the tasks of a list of contents one by one.
#[derive(Debug)]
pub struct Plan {
    parts: Vec<Part>,
    piece_len: u64,
    /// The number of parts in the hot set.
    hot_end: usize,
    next_part: usize,
    /// How many pieces of the next part were handed out.
    given: u64,
}

impl Plan {
    /// Plans to read `parts` in this order, splitting contents longer than `piece_len` into pieces. No task has contents from both sides of
    /// `hot_end`.
    #[must_use]
    pub fn new(parts: Vec<Part>, hot_end: usize, piece_len: u64) -> Self {
        Self { parts, piece_len, hot_end, next_part: 0, given: 0 }
    }

    /// Returns whether it begins with a hot set.
    #[must_use]
    pub fn has_hot_set(&self) -> bool {
        self.hot_end > 0
    }

    /// Returns the next task, and whether the hot set ends before it.
    pub fn next_task(&mut self) -> Option<(Task, bool)> {
        let Part { item: first, pieces } = self.parts.get(self.next_part)?.clone();
        let at_hot_end = self.next_part == self.hot_end && self.hot_end > 0 && self.given == 0;
        if first.len > self.piece_len {
            let number = pieces.start + self.given;
            self.given += 1;
            if number + 1 >= pieces.end {
                self.given = 0;
                self.next_part += 1;
            }
            return Some((Task::Piece { item: first, number }, at_hot_end));
        }
        let limit = if self.next_part < self.hot_end { self.hot_end } else { self.parts.len() };
        let mut len = 0;
        let batch: Vec<Item> = self.parts[self.next_part..limit]
            .iter()
            .map(|part| part.item)
            .take(BATCH_FILES)
            .take_while(|item| {
                let fits = item.len <= self.piece_len && (len == 0 || len + item.len <= self.piece_len);
                len += item.len;
                fits
            })
            .collect();
        self.next_part += batch.len();
        Some((Task::Batch(batch), at_hot_end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(content: u32, len: u64) -> Item {
        Item { source: 0, content, len }
    }

    fn tasks(parts: Vec<Part>, hot_end: usize) -> Vec<(String, bool)> {
        let mut plan = Plan::new(parts, hot_end, 100);
        std::iter::from_fn(|| plan.next_task())
            .map(|(task, hot_end)| match task {
                Task::Batch(items) => (format!("{:?}", items.iter().map(|i| i.content).collect::<Vec<_>>()), hot_end),
                Task::Piece { item, number } => (format!("{}.{number}", item.content), hot_end),
            })
            .collect()
    }

    fn whole(lens: &[u64]) -> Vec<Part> {
        (0..).zip(lens).map(|(content, len)| Part::whole(item(content, *len), 100)).collect()
    }

    #[test]
    fn small_ones_together_and_large_ones_in_pieces() {
        let found: Vec<String> =
            tasks(whole(&[50, 50, 1, 0, 201, 100, 101]), 0).into_iter().map(|task| task.0).collect();
        assert_eq!(found, ["[0, 1]", "[2, 3]", "4.0", "4.1", "4.2", "[5]", "6.0", "6.1"]);
    }

    #[test]
    fn the_hot_set_ends_a_batch() {
        let found = tasks(whole(&[10, 10, 10, 10]), 2);
        assert_eq!(found, [("[0, 1]".into(), false), ("[2, 3]".into(), true)]);
    }

    #[test]
    fn a_large_one_may_be_read_in_parts() {
        let part = |pieces| Part { item: item(7, 950), pieces };
        let parts = vec![part(4..6), Part::whole(item(1, 10), 100), part(0..1), part(8..10)];
        let found: Vec<_> = tasks(parts, 2);
        let named: Vec<&str> = found.iter().map(|(name, _)| &name[..]).collect();
        assert_eq!(named, ["7.4", "7.5", "[1]", "7.0", "7.8", "7.9"]);
        assert_eq!(found.iter().position(|(_, at_hot_end)| *at_hot_end), Some(3));
    }
}
