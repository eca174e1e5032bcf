//! GLib's key file format, which OSTree uses for settings.

use crate::error::RepoFault;

/// Sections, keys and values in file order.
pub(crate) struct KeyFile<'a> {
    pub(crate) entries: Vec<(&'a str, &'a str, &'a str)>,
}

impl<'a> KeyFile<'a> {
    /// Parses the file. A value keeps trailing blanks, as in GLib.
    ///
    /// # Errors
    /// Returns an error if a line is neither a section, a key with a value, nor a comment.
    pub(crate) fn parse(text: &'a str) -> Result<Self, RepoFault> {
        let mut entries = Vec::new();
        let mut section = None;
        for (number, line) in text.lines().enumerate() {
            let line = line.trim_ascii_start();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let name = line.trim_ascii_end().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            if let Some(name) = name.filter(|name| !name.contains(']')) {
                section = Some(name);
                // A section may be empty.
                entries.push((name, "", ""));
                continue;
            }
            match (section, line.split_once('=')) {
                (Some(section), Some((key, value))) => {
                    entries.push((section, key.trim_ascii_end(), value.trim_ascii_start()));
                }
                _ => return Err(RepoFault::ConfigLine { line: number + 1 }),
            }
        }
        Ok(Self { entries })
    }

    /// Returns the last value, as GLib does.
    pub(crate) fn value(&self, section: &str, key: &str) -> Option<&'a str> {
        let found = self.entries.iter().rev().find(|entry| entry.0 == section && entry.1 == key);
        found.map(|entry| entry.2)
    }

    pub(crate) fn boolean(
        &self,
        section: &str,
        key: &str,
        name: &'static str,
        default: bool,
    ) -> Result<bool, RepoFault> {
        let Some(value) = self.value(section, key) else { return Ok(default) };
        boolean(value).ok_or_else(|| RepoFault::Config { key: name, value: value.to_owned() })
    }

    pub(crate) fn number(&self, section: &str, key: &str, name: &'static str, default: u64) -> Result<u64, RepoFault> {
        let Some(value) = self.value(section, key) else { return Ok(default) };
        value.trim_ascii_end().parse().map_err(|_| RepoFault::Config { key: name, value: value.to_owned() })
    }
}

/// Parses a boolean; each value has two spellings.
pub(crate) fn boolean(value: &str) -> Option<bool> {
    match value.trim_ascii_end() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// Decodes a value as a string: `None` for an invalid escape.
pub(crate) fn text(value: &str) -> Option<String> {
    let mut chars = value.chars();
    let mut text = String::new();
    while let Some(char) = chars.next() {
        text.push(if char == '\\' { escaped(chars.next()?)? } else { char });
    }
    Some(text)
}

/// Decodes a value as a list of strings, each followed by a separator, optional after the last: `None` as for [`text`].
pub(crate) fn texts(value: &str, separator: char) -> Option<Vec<String>> {
    let mut chars = value.chars();
    let (mut texts, mut text) = (Vec::new(), String::new());
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next()? {
                char if char == separator => text.push(char),
                char => text.push(escaped(char)?),
            },
            char if char == separator => texts.push(std::mem::take(&mut text)),
            char => text.push(char),
        }
    }
    if !text.is_empty() {
        texts.push(text);
    }
    Some(texts)
}

fn escaped(char: char) -> Option<char> {
    match char {
        's' => Some(' '),
        'n' => Some('\n'),
        't' => Some('\t'),
        'r' => Some('\r'),
        '\\' => Some('\\'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let file = KeyFile::parse("# note\n [a] \t\nx = 1 \r\n  y=\n[b]\nx=2\n[a]\nx=3\n").expect("it is one");
        assert_eq!((file.value("a", "x"), file.value("a", "y")), (Some("3"), Some("")));
        assert_eq!((file.value("b", "x"), file.value("b", "y")), (Some("2"), None));
        let spaced = KeyFile::parse("[a]\nx=true \n").expect("it is one");
        assert_eq!(spaced.value("a", "x"), Some("true "));
        assert!(spaced.boolean("a", "x", "a.x", false).expect("blanks do not count here"));
        for wrong in ["x=1\n", "[a]\nx\n", "[a]b]\n", "[a\n"] {
            assert!(KeyFile::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn values() {
        assert_eq!(text(r"a\sb\\c\t\n\r;d").as_deref(), Some("a b\\c\t\n\r;d"));
        assert!(text(r"a\;b").is_none() && text(r"a\").is_none() && text(r"\x").is_none());
        assert_eq!(texts(r"a;b\;c;\s", ';').expect("texts"), ["a", "b;c", " "]);
        assert_eq!(texts("a,b,", ',').expect("texts"), ["a", "b"]);
        assert_eq!(texts(";", ';').expect("texts"), [""]);
        assert!(texts("", ';').expect("texts").is_empty() && texts(r"a\", ';').is_none());
    }
}
