//! Parameters of liblz4.

use alloc::vec::Vec;

/// The most bytes of output for which there is room in a call that fills it.
const ROOM_MAX: u32 = 1 << 20;

/// A call of liblz4 with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_structs, reason = "recipes 5 lists them")]
pub struct Lz4 {
    /// Whether it is a call of the compressor that takes longer (`HC`).
    pub is_high: bool,
    /// The level of that compressor, 1 to 12, or the acceleration of the other, 1 to 255: 1 if it fills its output.
    pub level: u8,
    /// How the output is filled; `None` if all input is encoded.
    pub filled: Option<Filled>,
}

/// How a call encodes as much as there is room for (`destSize`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_structs, reason = "recipes 5 lists them")]
pub struct Filled {
    /// The room for output in bytes: 1 to 2^20.
    pub room: u32,
    /// Whether [`Lz4::PADDING_LEN`] zeros follow the input.
    pub is_padded: bool,
}

impl Lz4 {
    /// The zeros after padded input, in bytes: with them, it is not short, for which the compressor has another table.
    pub const PADDING_LEN: u32 = 1 << 16;

    pub(super) fn parse(params: &[u8]) -> Option<Self> {
        let &[call, level, a, b, c, d, padded] = params else { return None };
        let (is_high, fills, room) = (call & 1 != 0, call & 2 != 0, u32::from_le_bytes([a, b, c, d]));
        let has_level = match (is_high, fills) {
            (true, _) => (1..=12).contains(&level),
            (false, true) => level == 1,
            (false, false) => level >= 1,
        };
        let has_room = if fills { (1..=ROOM_MAX).contains(&room) && padded <= 1 } else { room == 0 && padded == 0 };
        let filled = fills.then_some(Filled { room, is_padded: padded == 1 });
        (call <= 3 && has_level && has_room).then_some(Self { is_high, level, filled })
    }

    pub(super) fn params(&self) -> Vec<u8> {
        let (room, is_padded) = self.filled.map_or((0, false), |filled| (filled.room, filled.is_padded));
        let call = u8::from(self.is_high) | if self.filled.is_some() { 2 } else { 0 };
        let mut params = Vec::from([call, self.level]);
        params.extend(room.to_le_bytes());
        params.push(is_padded.into());
        params
    }

    pub(super) fn memory(&self, input: u64) -> u64 {
        let tables = if self.is_high { (1 << 18) + (1 << 17) } else { 1 << 15 };
        let buffers = match self.filled {
            None => input.saturating_add(input / 255 + 16),
            Some(Filled { room, is_padded: false }) => room.into(),
            Some(Filled { room, is_padded: true }) => {
                input.saturating_add(u64::from(Self::PADDING_LEN) + u64::from(room))
            }
        };
        buffers.saturating_add(tables)
    }
}
