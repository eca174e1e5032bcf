//! The options in a line of the allowed signers.

use super::key_line::begins_with_key;
use super::pattern::PatternList;
use super::{LineError, time};

/// What the options restrict a key to. An absent option restricts nothing, but
/// without `namespaces` nothing is granted at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) namespaces: Option<PatternList>,
    pub(super) after: Option<i64>,
    pub(super) before: Option<i64>,
}

impl Options {
    /// Parses the options, if there are any, and returns what follows them.
    pub(super) fn split_off(text: &str) -> Result<(Self, &str), LineError> {
        let mut options = Self::default();
        if text.is_empty() {
            return Err(LineError::NoKey);
        }
        if begins_with_key(text) {
            return Ok((options, text));
        }
        let mut rest = text;
        loop {
            rest = options.option(rest)?;
            match rest.strip_prefix(',') {
                Some(next) => rest = next,
                None if rest.starts_with([' ', '\t']) => break,
                None if rest.is_empty() => return Err(LineError::NoKey),
                None => return Err(unknown(rest)),
            }
        }
        let Self { after, before, .. } = options;
        if after.is_some_and(|after| before.is_some_and(|before| before <= after)) {
            return Err(LineError::EmptyWindow);
        }
        Ok((options, rest.trim_start_matches([' ', '\t'])))
    }

    /// Parses one option, and returns what follows it.
    fn option<'a>(&mut self, text: &'a str) -> Result<&'a str, LineError> {
        let end = text.find(['=', ',', ' ', '\t']).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "cert-authority" => Err(LineError::CertAuthority),
            "namespaces" => {
                let (value, rest) = value("namespaces", rest)?;
                put("namespaces", &mut self.namespaces, PatternList::new(value))?;
                Ok(rest)
            }
            "valid-after" => moment("valid-after", &mut self.after, rest),
            "valid-before" => moment("valid-before", &mut self.before, rest),
            _ => Err(unknown(text)),
        }
    }
}

fn unknown(text: &str) -> LineError {
    let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
    LineError::UnknownOption(text.split_at(end).0.into())
}

fn moment<'a>(name: &'static str, slot: &mut Option<i64>, text: &'a str) -> Result<&'a str, LineError> {
    let (value, rest) = value(name, text)?;
    // OpenSSH refuses second 0 as well, which stands for "no time" there.
    let time = time::parse(&value).filter(|time| *time > 0);
    put(name, slot, time.ok_or(LineError::Time(value))?)?;
    Ok(rest)
}

fn put<T>(name: &'static str, slot: &mut Option<T>, value: T) -> Result<(), LineError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(LineError::OptionTwice(name)),
    }
}

/// Reads `="..."`, in which `\"` stands for a quotation mark.
fn value<'a>(name: &'static str, text: &'a str) -> Result<(String, &'a str), LineError> {
    let quoted = text.strip_prefix("=\"").ok_or(LineError::OptionValue(name))?;
    let mut value = String::new();
    let mut characters = quoted.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Ok((value, quoted.split_at(at + 1).1)),
            '\\' if characters.next_if(|(_, next)| *next == '"').is_some() => value.push('"'),
            other => value.push(other),
        }
    }
    Err(LineError::Quote)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Result<Options, LineError> {
        Options::split_off(text).map(|(options, rest)| {
            assert_eq!(rest, "ssh-ed25519 AAAA");
            options
        })
    }

    #[test]
    fn options_are_read() {
        assert_eq!(options("ssh-ed25519 AAAA"), Ok(Options::default()));
        let found = options("NameSpaces=\"a b,\\\"c\",valid-after=\"19700101000001Z\"\tssh-ed25519 AAAA");
        let expected = Options { namespaces: Some(PatternList::new("a b,\"c")), after: Some(1), before: None };
        assert_eq!(found, Ok(expected));
    }

    #[test]
    fn other_options_are_refused() {
        let cases = [
            ("", LineError::NoKey),
            ("namespaces=\"a\"", LineError::NoKey),
            ("namespaces ssh-ed25519 AAAA", LineError::OptionValue("namespaces")),
            ("namespaces=a ssh-ed25519 AAAA", LineError::OptionValue("namespaces")),
            ("namespaces=\"a ssh-ed25519 AAAA", LineError::Quote),
            ("namespaces=\"a\",namespaces=\"b\" k", LineError::OptionTwice("namespaces")),
            ("namespaces=\"a\"x k", LineError::UnknownOption("x".into())),
            ("namespaces=\"a\", k", LineError::UnknownOption(String::new())),
            (",namespaces=\"a\" k", LineError::UnknownOption(String::new())),
            ("zone=\"a\" k", LineError::UnknownOption("zone=\"a\"".into())),
            ("cert-authority k", LineError::CertAuthority),
            ("Cert-Authority,namespaces=\"a\" k", LineError::CertAuthority),
            ("valid-after=\"soon\" k", LineError::Time("soon".into())),
            ("valid-after=\"19700101Z\" k", LineError::Time("19700101Z".into())),
            ("valid-after=\"20200101\",valid-before=\"20200101\" k", LineError::EmptyWindow),
        ];
        for (text, expected) in cases {
            assert_eq!(options(text), Err(expected), "{text}");
        }
    }
}
