//! Reproducible randomness.

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Returns the generator for one of the numbered inputs of a run.
    pub fn new(seed: u64, number: u64) -> Self {
        let mut random = Self(seed);
        Self(random.next() ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Returns 64 random bits.
    #[allow(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`, or 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).expect("64 bits").max(1);
        usize::try_from(self.next() % end).expect("it is below a usize")
    }

    /// Returns true once in `times`, on average.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Returns one of the values.
    pub fn of<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }

    /// Returns a byte.
    pub fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    /// Returns a number near `value`, or one that is known to cause trouble in readers: small ones, powers of two, the largest.
    pub fn number(&mut self, value: u64) -> u64 {
        let power = 1_u64 << self.below(64);
        match self.below(10) {
            0..=1 => value.wrapping_add(1),
            2 => value.wrapping_sub(1),
            3 => 0,
            4 => u64::from(self.byte() % 8),
            5 => value ^ power,
            6 => power,
            7 => power.wrapping_sub(1),
            8 => [u8::MAX.into(), u16::MAX.into(), u32::MAX.into(), u64::MAX, 1 << 63, 1 << 31][self.below(6)],
            _ => value.wrapping_add(value).wrapping_add(u64::from(self.byte())),
        }
    }

    /// Changes a number of 32 bits.
    pub fn change32(&mut self, value: &mut u32) {
        let [a, b, c, d, ..] = self.number(u64::from(*value)).to_le_bytes();
        *value = u32::from_le_bytes([a, b, c, d]);
    }

    /// Changes a number of 64 bits.
    pub fn change64(&mut self, value: &mut u64) {
        *value = self.number(*value);
    }

    /// Changes a signed number.
    pub fn change_signed(&mut self, value: &mut i64) {
        *value = i64::from_le_bytes(self.number(u64::from_le_bytes(value.to_le_bytes())).to_le_bytes());
    }

    /// Changes a byte string, which then has at most `max` bytes.
    pub fn change_bytes(&mut self, bytes: &mut Vec<u8>, max: usize) {
        const NAMES: [&[u8]; 12] =
            [b"", b".", b"..", b"...", b"a/b", b"\0", b"/", b"a", b"\xff", b"security.x", "\u{202e}".as_bytes(), b"%"];
        let at = self.below(bytes.len());
        match self.below(8) {
            0 => *bytes = NAMES[self.below(NAMES.len())].to_vec(),
            1..=2 if !bytes.is_empty() => bytes[at] ^= 1 << self.below(8),
            3 if !bytes.is_empty() => bytes[at] = self.byte(),
            4 if !bytes.is_empty() => drop(bytes.remove(at)),
            5 => bytes.insert(at, self.byte()),
            6 if self.once_in(4) => bytes.resize([max, 255, 256, 4095, 4096][self.below(5)], b'a'),
            _ => bytes.push(b"az.09-_/\0"[self.below(9)]),
        }
        bytes.truncate(max);
    }

    /// Changes a hash.
    pub fn change_hash(&mut self, hash: &mut [u8; 32]) {
        if self.once_in(4) {
            *hash = [0; 32];
        } else {
            hash[self.below(32)] ^= 1 << self.below(8);
        }
    }

    /// Changes a column: one of its rows, or the set of its rows. `donor` is the same column of another bundle.
    pub fn change_rows<T: Clone>(&mut self, rows: &mut Vec<T>, donor: &[T], change: impl FnOnce(&mut Self, &mut T)) {
        let (at, other) = (self.below(rows.len()), self.below(rows.len()));
        match self.below(10) {
            0 if !rows.is_empty() => drop(rows.remove(at)),
            1 if !rows.is_empty() => rows.insert(other, rows[at].clone()),
            2 if !rows.is_empty() => rows.swap(at, other),
            3 if !donor.is_empty() => rows.insert(at, donor[self.below(donor.len())].clone()),
            4 if !donor.is_empty() && !rows.is_empty() => rows[at] = donor[self.below(donor.len())].clone(),
            5 if self.once_in(4) => rows.truncate(at),
            _ => {
                if let Some(row) = rows.get_mut(at) {
                    change(self, row);
                }
            }
        }
    }
}
