//! The number of seeks that reading files takes.

use std::ops::Range;

/// A gap of up to so many bytes is not a seek: a device reads across it.
const NEAR: u64 = 128 << 10;

/// Returns the number of seeks when files are read in turn, each given by its extents. `None` stands for files that are not written yet; consecutive
/// ones lie together.
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
