//! Plans which contents are read, in which order, and in which tasks.

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

/// Hands out the tasks of a list of items one by one.
#[derive(Debug)]
pub struct Plan {
    items: Vec<Item>,
    piece_len: u64,
    /// The number of items in the hot set.
    hot_end: usize,
    next_item: usize,
    next_piece: u64,
}

impl Plan {
    /// Plans to read `items` in this order, splitting those longer than `piece_len` into pieces. No task has items from both sides of `hot_end`.
    #[must_use]
    pub fn new(items: Vec<Item>, hot_end: usize, piece_len: u64) -> Self {
        Self { items, piece_len, hot_end, next_item: 0, next_piece: 0 }
    }

    /// Returns the next task, and whether the hot set ends before it.
    pub fn next_task(&mut self) -> Option<(Task, bool)> {
        let first = *self.items.get(self.next_item)?;
        let at_hot_end = self.next_item == self.hot_end && self.hot_end > 0 && self.next_piece == 0;
        if first.len > self.piece_len {
            let number = self.next_piece;
            self.next_piece += 1;
            if self.next_piece * self.piece_len >= first.len {
                self.next_piece = 0;
                self.next_item += 1;
            }
            return Some((Task::Piece { item: first, number }, at_hot_end));
        }
        let limit = if self.next_item < self.hot_end { self.hot_end } else { self.items.len() };
        let mut len = 0;
        let batch: Vec<Item> = self.items[self.next_item..limit]
            .iter()
            .take(BATCH_FILES)
            .take_while(|item| {
                let fits = item.len <= self.piece_len && (len == 0 || len + item.len <= self.piece_len);
                len += item.len;
                fits
            })
            .copied()
            .collect();
        self.next_item += batch.len();
        Some((Task::Batch(batch), at_hot_end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(lens: &[u64], hot_end: usize) -> Vec<(String, bool)> {
        let items = (0..).zip(lens).map(|(content, len)| Item { source: 0, content, len: *len }).collect();
        let mut plan = Plan::new(items, hot_end, 100);
        std::iter::from_fn(|| plan.next_task())
            .map(|(task, hot_end)| match task {
                Task::Batch(items) => (format!("{:?}", items.iter().map(|i| i.content).collect::<Vec<_>>()), hot_end),
                Task::Piece { item, number } => (format!("{}.{number}", item.content), hot_end),
            })
            .collect()
    }

    #[test]
    fn small_ones_together_and_large_ones_in_pieces() {
        let found: Vec<String> = tasks(&[50, 50, 1, 0, 201, 100, 101], 0).into_iter().map(|task| task.0).collect();
        assert_eq!(found, ["[0, 1]", "[2, 3]", "4.0", "4.1", "4.2", "[5]", "6.0", "6.1"]);
    }

    #[test]
    fn the_hot_set_ends_a_batch() {
        let found = tasks(&[10, 10, 10, 10], 2);
        assert_eq!(found, [("[0, 1]".into(), false), ("[2, 3]".into(), true)]);
    }
}
