//! Answers of a server that trickles.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use sealift_format::num::wide;

use super::Patience;

/// A server that sends fewer bytes than this in that time counts as one that sends nothing.
const SLOW: u64 = 32 << 10;

/// An answer that ends with an error if it trickles. Only the time in which its bytes are waited for counts.
pub(super) struct Paced<R> {
    answer: R,
    patience: Patience,
    waited: Duration,
    came: u64,
}

impl<R> Paced<R> {
    pub(super) fn new(answer: R, patience: Patience) -> Self {
        Self { answer, patience, waited: Duration::ZERO, came: 0 }
    }
}

impl<R: Read> Read for Paced<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let start = Instant::now();
        let len = self.answer.read(buffer)?;
        self.waited += start.elapsed();
        self.came += wide(len);
        if self.came >= SLOW {
            (self.waited, self.came) = (Duration::ZERO, 0);
        } else if self.waited > self.patience.silence() && len > 0 {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the server sent next to nothing for too long"));
        }
        Ok(len)
    }
}
