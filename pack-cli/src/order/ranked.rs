//! Lists with a rank for each file, by which other programs lay out images: what a profile names first lies first.

use super::profile::OrderProfile;

/// The form of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ranking {
    /// For `mksquashfs -sort` and `genisoimage -sort`: a path and a priority, up to 32767. Whitespace and backslashes in a path have a backslash before
    /// them.
    Priorities,
    /// For `xorrisofs --sort-weight-list`: a weight and an absolute path.
    Weights,
}

/// A list, and what is not in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ranked {
    /// The list.
    pub text: Vec<u8>,
    /// Paths with a newline, which such a list cannot hold.
    pub left_out: u64,
}

/// Returns the files of a profile as a list. Ranges are left out: a list is of whole files.
#[must_use]
pub fn ranked(profile: &OrderProfile, ranking: Ranking) -> Ranked {
    let most: usize = match ranking {
        Ranking::Priorities => 32_767,
        Ranking::Weights => 1 << 28, // above it, xorriso has its own weights
    };
    let files = profile.entries().len();
    let (mut text, mut left_out) = (Vec::new(), 0);
    for (place, entry) in profile.entries().iter().enumerate() {
        // Files share a rank only if there are more of them than ranks.
        let rank = if files <= most { files - place } else { most - place * most / files };
        if entry.path.contains(&b'\n') {
            left_out += 1;
            continue;
        }
        match ranking {
            Ranking::Priorities => {
                // Otherwise, the line would be a comment.
                text.extend_from_slice(if entry.path.starts_with(b"#") { b"\\" } else { b"" });
                for byte in &entry.path {
                    text.extend((byte.is_ascii_whitespace() || matches!(byte, b'\\' | 0x0b)).then_some(b'\\'));
                    text.push(*byte);
                }
                text.extend_from_slice(format!(" {rank}\n").as_bytes());
            }
            Ranking::Weights => {
                text.extend_from_slice(format!("{rank} /").as_bytes());
                text.extend_from_slice(&entry.path);
                text.push(b'\n');
            }
        }
    }
    Ranked { text, left_out }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::OrderEntry;

    fn profile(paths: &[&[u8]]) -> OrderProfile {
        let entry = |path: &&[u8]| OrderEntry { path: path.to_vec(), ranges: vec![0..9, 20..29] };
        OrderProfile::new(paths.iter().map(entry).collect())
    }

    #[test]
    fn lists_have_whole_files_by_descending_rank() {
        let profile = profile(&[b"usr/bin/first", b"#a b\\\x0bc", b"new\nline", b"last"]);
        let list = ranked(&profile, Ranking::Priorities);
        assert_eq!((&list.text[..], list.left_out), (&b"usr/bin/first 4\n\\#a\\ b\\\\\\\x0bc 3\nlast 1\n"[..], 1));
        let list = ranked(&profile, Ranking::Weights);
        assert_eq!((&list.text[..], list.left_out), (&b"4 /usr/bin/first\n3 /#a b\\\x0bc\n1 /last\n"[..], 1));
    }

    #[test]
    fn no_file_of_a_long_profile_has_the_rank_of_unlisted_ones() {
        let names: Vec<Vec<u8>> = (0..100_000).map(|number| format!("{number:06}").into_bytes()).collect();
        let list = ranked(&profile(&names.iter().map(Vec::as_slice).collect::<Vec<_>>()), Ranking::Priorities);
        let text = String::from_utf8(list.text).expect("UTF-8");
        let ranks: Vec<u32> = text.lines().map(|line| line[7..].parse().expect("a number")).collect();
        assert!(ranks.is_sorted_by(|a, b| a >= b) && ranks[0] == 32_767 && ranks[99_999] == 1);
    }
}
