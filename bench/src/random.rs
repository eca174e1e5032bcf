//! Reproducible randomness.

use std::env;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

/// SplitMix64: small, and uniform enough for this purpose.
pub(crate) struct Random(u64);

impl Random {
    /// Seeds from `SEED`, or with a new seed, and prints it.
    pub(crate) fn new() -> Result<Self> {
        let seed = match env::var("SEED") {
            Ok(text) => text.parse().context("SEED is a number")?,
            Err(_) => u64::from(SystemTime::now().duration_since(UNIX_EPOCH)?.subsec_nanos()),
        };
        println!("   SEED={seed}");
        Ok(Self(seed))
    }

    /// Returns a generator with a fixed seed, for equal trees everywhere.
    pub(crate) fn fixed() -> Self {
        Self(1)
    }

    /// Returns a generator with this seed.
    pub(crate) fn of(number: u64) -> Self {
        Self(number)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number from 0 to `end`, exclusive.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    pub(crate) fn moment(&mut self, end: Duration) -> Duration {
        Duration::from_nanos(self.below(u64::try_from(end.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Returns incompressible bytes.
    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.next().to_le_bytes());
        hasher.finalize_xof().fill(&mut bytes);
        bytes
    }
}
