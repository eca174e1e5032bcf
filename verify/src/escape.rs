//! Escapes strings from bundles and other untrusted sources before they reach a terminal or a page.
//!
//! A name from a bundle may contain any bytes but `/` and NUL: sequences that move the cursor, set a window's title or make the terminal send input,
//! and marks that reverse the direction of text. Output to a pipe often ends on a terminal too (`| head`), so everything is escaped wherever it goes;
//! JSON and `ls --null` are for programs.

use std::fmt::Write as _;

/// Returns `bytes` as text of one line without anything that a terminal acts on. Invalid UTF-8 becomes `\xNN`, a backslash `\\`, and invisible
/// characters `\n`, `\u{1b}` and the like. Different names have different forms.
#[must_use]
pub fn bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        // Quotation marks are harmless to terminals, but `escape_debug` would escape them.
        for (number, part) in chunk.valid().split('"').enumerate() {
            out.push_str(if number > 0 { "\"" } else { "" });
            for (number, part) in part.split('\'').enumerate() {
                out.push_str(if number > 0 { "'" } else { "" });
                push_part(&mut out, part);
            }
        }
        for byte in chunk.invalid() {
            // Writing to a string does not fail.
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// Undoes the escapes of [`bytes`]. Returns `None` if nothing is escaped, or if an escape is not valid.
#[must_use]
pub fn unescaped(shown: &[u8]) -> Option<Vec<u8>> {
    let mut parts = shown.split(|byte| *byte == b'\\');
    let mut out = parts.next()?.to_vec();
    let mut is_escaped = false;
    while let Some(part) = parts.next() {
        is_escaped = true;
        let (letter, rest) = match part.split_first() {
            Some((letter, rest)) => (*letter, rest),
            // Two backslashes: what follows the second one is not an escape.
            None => (b'\\', parts.next()?),
        };
        let rest = match letter {
            b'\\' => {
                out.push(b'\\');
                rest
            }
            b'n' | b'r' | b't' | b'0' => {
                out.push(match letter {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    _ => 0,
                });
                rest
            }
            b'x' => {
                let (digits, rest) = rest.split_at_checked(2)?;
                out.push(u8::try_from(number(digits)?).ok()?);
                rest
            }
            b'u' => {
                let rest = rest.strip_prefix(b"{")?;
                let end = rest.iter().position(|byte| *byte == b'}')?;
                let character = char::from_u32(number(&rest[..end])?)?;
                out.extend(character.encode_utf8(&mut [0; 4]).bytes());
                &rest[end + 1..]
            }
            _ => return None,
        };
        out.extend(rest);
    }
    is_escaped.then_some(out)
}

/// Parses up to six hexadecimal digits.
fn number(digits: &[u8]) -> Option<u32> {
    let are_digits = (1..=6).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
    let text = core::str::from_utf8(digits).ok().filter(|_| are_digits)?;
    u32::from_str_radix(text, 16).ok()
}

/// The same as [`bytes`] for text.
#[must_use]
pub fn text(text: &str) -> String {
    bytes(text.as_bytes())
}

/// Appends a part without quotation marks. `escape_debug` also escapes a combining mark at a string's start, where Thai or Devanagari text can have
/// one after a quotation mark: a letter is put before it.
fn push_part(out: &mut String, part: &str) {
    let plain = part.bytes().all(|byte| (0x20..0x7f).contains(&byte) && byte != b'\\');
    if plain {
        return out.push_str(part);
    }
    let mut based = String::with_capacity(part.len() + 1);
    based.push('x');
    based.push_str(part);
    for escaped in based.escape_debug().skip(1) {
        out.push(escaped);
    }
}

/// Returns `bytes` in the form of JSON output: valid UTF-8 is unchanged, except for `%`, control characters, and characters that change the direction
/// of text; each byte of these, and each byte of invalid UTF-8, becomes `%` and two upper-case hexadecimal digits. Different names have different
/// forms.
#[must_use]
pub fn percent(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    let escape = |out: &mut String, bytes: &[u8]| {
        for byte in bytes {
            let _ = write!(out, "%{byte:02X}");
        }
    };
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character == '%' || character.is_control() || turns_text(character) {
                escape(&mut out, character.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                out.push(character);
            }
        }
        escape(&mut out, chunk.invalid());
    }
    out
}

/// Returns whether a character changes the direction in which text is shown: the property Bidi_Control of Unicode.
fn turns_text(character: char) -> bool {
    let is_mark = matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}');
    is_mark || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the bytes for which [`percent`] returns `shown`; `None` if there are none.
fn unpercent(shown: &[u8]) -> Option<Vec<u8>> {
    let mut parts = shown.split(|byte| *byte == b'%');
    let mut out = parts.next()?.to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        out.push(u8::try_from(number(digits)?).ok()?);
        out.extend(rest);
    }
    (percent(&out).as_bytes() == shown).then_some(out)
}

/// Returns the names that a written name may mean: itself, and those that [`bytes`] or [`percent`] show like this.
#[must_use]
pub fn readings(written: &[u8]) -> Vec<Vec<u8>> {
    let mut readings = vec![written.to_vec()];
    for other in [unescaped(written), unpercent(written)].into_iter().flatten() {
        if !readings.contains(&other) {
            readings.push(other);
        }
    }
    readings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_acts_on_is_left() {
        let cases: [(&[u8], &str); 12] = [
            (b"usr/bin/init", "usr/bin/init"),
            ("b\u{e4}r \u{4e2d} \u{1f600}".as_bytes(), "b\u{e4}r \u{4e2d} \u{1f600}"),
            (b"say \"hi\", it's me", "say \"hi\", it's me"),
            (b"a\nb\tc\rd", "a\\nb\\tc\\rd"),
            (b"\x1b]0;title\x07", "\\u{1b}]0;title\\u{7}"),
            ("\u{9b}2J".as_bytes(), "\\u{9b}2J"), // the C1 form of ESC [
            ("txt.\u{202e}exe".as_bytes(), "txt.\\u{202e}exe"),
            ("\u{2066}\u{2069}\u{200f}\u{feff}".as_bytes(), "\\u{2066}\\u{2069}\\u{200f}\\u{feff}"),
            ("\u{2028}\u{a0}".as_bytes(), "\\u{2028}\\u{a0}"),
            (b"\xff\xfe latin \xe4", "\\xff\\xfe latin \\xe4"),
            (b"back\\slash", "back\\\\slash"),
            ("'\u{e19}\u{e33} \u{e17}\u{e35}\u{e48}".as_bytes(), "'\u{e19}\u{e33} \u{e17}\u{e35}\u{e48}"),
        ];
        for (name, shown) in cases {
            assert_eq!(bytes(name), shown);
            assert_eq!(unescaped(shown.as_bytes()), (name != shown.as_bytes()).then(|| name.to_vec()), "{shown}");
        }
    }

    #[test]
    fn what_is_nowhere_escaped_so_is_not_unescaped() {
        for shown in [
            "plain",
            "",
            "\\",
            "a\\",
            "\\q",
            "\\x4",
            "\\xg0",
            "\\x+1",
            "\\u{}",
            "\\u{d800}",
            "\\u{110000}",
            "\\u{41",
            "\\u41",
        ] {
            assert_eq!(unescaped(shown.as_bytes()), None, "{shown}");
        }
        for every in 0..=u8::MAX {
            let name = [b'\\', every, b'\\', b'\\', every, b'n'];
            assert_eq!(unescaped(bytes(&name).as_bytes()), Some(name.to_vec()));
        }
    }

    #[test]
    fn every_character_is_printable_or_escaped() {
        for character in (0..=0x10_ffff).filter_map(char::from_u32) {
            let shown = text(&character.to_string());
            assert!(!shown.chars().any(|c| c.is_control() || ('\u{200b}'..='\u{200f}').contains(&c)));
            assert!(
                !shown.contains(|c| ('\u{2028}'..='\u{202e}').contains(&c) || ('\u{2060}'..='\u{206f}').contains(&c))
            );
        }
    }

    #[test]
    fn the_percent_form_is_text_without_control_characters() {
        assert_eq!(percent(b"a/b c~"), "a/b c~");
        assert_eq!(percent(b"100%\n\xff\x7f"), "100%25%0A%FF%7F");
        assert_eq!(percent("\u{fc}\u{85}\u{4e2d}".as_bytes()), "\u{fc}%C2%85\u{4e2d}");
        assert_eq!(percent("txt.\u{202e}exe".as_bytes()), "txt.%E2%80%AEexe");
        assert_eq!(percent(b"\xc3\xbc\xc3\xe2\x82\xed\xa0\x80"), "\u{fc}%C3%E2%82%ED%A0%80");
    }

    #[test]
    fn a_name_is_read_as_both_forms_write_it() {
        let names: [&[u8]; 8] = [
            b"plain",
            "\u{fc}".as_bytes(),
            b"a\\b",
            b"\xff%",
            b"100%25",
            b"\n\x1b",
            b"\\x41",
            "\u{85}\u{202e}".as_bytes(),
        ];
        for name in names {
            for shown in [bytes(name), percent(name)] {
                assert!(readings(shown.as_bytes()).contains(&name.to_vec()), "{shown}");
            }
        }
        // Text that is no escaped form only stands for itself.
        for written in ["100%", "%2", "%20", "%c3", "%C3%BC", "%+1"] {
            assert_eq!(readings(written.as_bytes()), [written.as_bytes()], "{written}");
        }
    }
}
