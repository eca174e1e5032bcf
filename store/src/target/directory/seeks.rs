//! How often a device goes to another place.

use std::ops::Range;

/// What lies closer is one place: a device reads on as far.
const NEAR: u64 = 128 << 10;

/// Returns how often a device goes to another place when it reads files in turn: `None` for one that is not written yet.
pub(super) fn seeks<'e>(files: impl Iterator<Item = Option<&'e [Range<u64>]>>) -> u64 {
    let (mut seeks, mut last) = (0, None);
    for file in files {
        let Some(extents) = file else {
            seeks += u64::from(matches!(last, Some(Some(_))));
            last = Some(None);
            continue;
        };
        for extent in extents {
            seeks += u64::from(match last {
                None => false,
                Some(None) => true,
                Some(Some(end)) => extent.start.abs_diff(end) > NEAR,
            });
            last = Some(Some(extent.end));
        }
    }
    seeks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seek_is_a_way_beyond_what_is_read_ahead() {
        let (start, next, far) = (0..4096, 4096..8192, 1 << 20..2 << 20);
        let [start, next, far] = [&start, &next, &far].map(|extent| Some(std::slice::from_ref(extent)));
        let count = |files: &[Option<&[Range<u64>]>]| seeks(files.iter().copied());
        assert_eq!(count(&[start, next]), 0);
        assert_eq!(count(&[start, far, next]), 2);
        assert_eq!(count(&[start, None, None, next, None]), 3);
        assert_eq!(count(&[None, None]), 0);
    }
}
