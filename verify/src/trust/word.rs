//! The words of a line in the files of OpenSSH.

/// Splits at the first blank, and skips the blanks.
pub(super) fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start_matches([' ', '\t']);
    let end = text.find([' ', '\t']).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    (word, rest.trim_start_matches([' ', '\t']))
}
