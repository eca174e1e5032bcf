//! Bytes as the specification writes them (spec 1, 3.1), with nothing refused.

/// A section of a section list.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its id.
    pub id: u16,
    /// Bit 0: must be understood.
    pub flags: u16,
    /// What it holds.
    pub payload: Vec<u8>,
}

impl Section {
    /// A section that must be understood.
    pub fn critical(id: u16, payload: Vec<u8>) -> Self {
        Self { id, flags: 1, payload }
    }

    /// A section that a reader may pass over.
    pub fn ignorable(id: u16, payload: Vec<u8>) -> Self {
        Self { id, flags: 0, payload }
    }
}

/// The bytes of a section list.
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

/// A length in memory as a number of the format.
pub fn wide(len: usize) -> u64 {
    u64::try_from(len).expect("no platform has longer ones")
}

/// A length or number that has 32 bits in the format.
pub fn narrow<T: TryInto<u32>>(len: T) -> u32 {
    len.try_into().ok().expect("vectors are small")
}

/// A length that has one byte in the format.
pub fn byte(len: usize) -> u8 {
    u8::try_from(len).expect("the field has one byte")
}

/// A length that has two bytes in the format.
pub fn short(len: usize) -> u16 {
    u16::try_from(len).expect("the field has two bytes")
}

/// BLAKE3.
pub fn hash(bytes: &[u8]) -> [u8; 32] {
    *blake3::hash(bytes).as_bytes()
}
