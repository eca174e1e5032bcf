//! Computes an object's BLAKE3 from the chaining values of its pieces (core 7.3).

use blake3::hazmat::{ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};

/// Returns the chaining value of a piece that begins at `offset` of its object, given in parts.
/// `offset` must be a multiple of the piece size, and the parts must not be empty.
pub fn chaining_value<'a>(offset: u64, parts: impl Iterator<Item = &'a [u8]>) -> ChainingValue {
    let mut hasher = blake3::Hasher::new();
    hasher.set_input_offset(offset);
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize_non_root()
}

/// Returns the id of the object whose pieces have these chaining values, or `None` if there are fewer than two.
pub fn object_id(values: &[ChainingValue]) -> Option<[u8; 32]> {
    let (left, right) = split(values)?;
    Some(*merge_subtrees_root(&merge(left)?, &merge(right)?, Mode::Hash).as_bytes())
}

fn merge(values: &[ChainingValue]) -> Option<ChainingValue> {
    match values {
        [] => None,
        [value] => Some(*value),
        _ => {
            let (left, right) = split(values)?;
            Some(merge_subtrees_non_root(&merge(left)?, &merge(right)?, Mode::Hash))
        }
    }
}

/// Splits like BLAKE3's tree: the left side gets the largest power of two that leaves something for the right.
fn split(values: &[ChainingValue]) -> Option<(&[ChainingValue], &[ChainingValue])> {
    let half = values.len().div_ceil(2).checked_next_power_of_two()?;
    let (left, right) = values.split_at_checked(half)?;
    (!right.is_empty()).then_some((left, right))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn pieces_merge_to_the_hash_of_the_whole() {
        let content: Vec<u8> = (0..251).cycle().take(4096 * 9 + 17).collect();
        for len in [4097, 8192, 8193, 12_288, 16_384, 16_385, 4096 * 7, 4096 * 9 + 17] {
            let content = &content[..len];
            let mut offset = 0;
            let values: Vec<_> = content
                .chunks(4096)
                .map(|piece| {
                    let value = chaining_value(offset, core::iter::once(piece));
                    offset += 4096;
                    value
                })
                .collect();
            assert_eq!(object_id(&values), Some(*blake3::hash(content).as_bytes()), "{len} bytes");
        }
    }

    #[test]
    fn one_piece_is_no_tree() {
        assert_eq!(object_id(&[]), None);
        assert_eq!(object_id(&[[0; 32]]), None);
    }
}
