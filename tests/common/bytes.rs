//! Encodes values as the specification does (core 1 and 3.1), without rejecting anything.

/// A section of a section list.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its id.
    pub id: u16,
    /// Bit 0: must be understood.
    pub flags: u16,
    /// Its payload.
    pub payload: Vec<u8>,
}

impl Section {
    /// Returns a section that must be understood.
    pub fn critical(id: u16, payload: Vec<u8>) -> Self {
        Self { id, flags: 1, payload }
    }

    /// Returns a section that a reader may ignore.
    pub fn ignorable(id: u16, payload: Vec<u8>) -> Self {
        Self { id, flags: 0, payload }
    }
}

/// Returns the bytes of a section list.
pub fn join(sections: &[Section]) -> Vec<u8> {
    let mut out = Vec::new();
    for section in sections {
        out.extend(section.id.to_le_bytes());
        out.extend(section.flags.to_le_bytes());
        out.extend(wide(section.payload.len()).to_le_bytes());
        out.extend(&section.payload);
    }
    out
}

/// `planes(u16, n)`.
pub fn planes16(values: impl Iterator<Item = u16> + Clone) -> Vec<u8> {
    planes(values.map(u16::to_le_bytes))
}

/// `planes(u32, n)`.
pub fn planes32(values: impl Iterator<Item = u32> + Clone) -> Vec<u8> {
    planes(values.map(u32::to_le_bytes))
}

/// `planes(u64, n)`.
pub fn planes64(values: impl Iterator<Item = u64> + Clone) -> Vec<u8> {
    planes(values.map(u64::to_le_bytes))
}

fn planes<const W: usize>(values: impl Iterator<Item = [u8; W]> + Clone) -> Vec<u8> {
    (0..W).flat_map(|byte| values.clone().map(move |value| value[byte])).collect()
}

/// Converts a length in memory to the format's u64.
pub fn wide(len: usize) -> u64 {
    u64::try_from(len).expect("no platform has longer ones")
}

/// Converts a length or number to the format's u32.
pub fn narrow<T: TryInto<u32>>(len: T) -> u32 {
    len.try_into().ok().expect("vectors are small")
}

/// Converts a length to the format's u8.
pub fn byte(len: usize) -> u8 {
    u8::try_from(len).expect("the field has one byte")
}

/// Converts a length to the format's u16.
pub fn short(len: usize) -> u16 {
    u16::try_from(len).expect("the field has two bytes")
}

/// BLAKE3.
pub fn hash(bytes: &[u8]) -> [u8; 32] {
    *blake3::hash(bytes).as_bytes()
}
