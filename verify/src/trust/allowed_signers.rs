//! The administrator's list of keys: an `allowed_signers` file as in
//! ssh-keygen(1), "ALLOWED SIGNERS", but stricter.

use super::key_line::{self, KeyLine};
use super::options::Options;
use super::pattern::PatternList;
use super::word::word;
use super::{KeyId, LineError, Namespace, Now, PublicKey, Standing, TrustFileError};

/// Which keys may sign, for which names, and when.
///
/// It differs from OpenSSH in these ways, each of them safer: a line without a
/// `namespaces` option that names `sealift` grants nothing; `cert-authority` is
/// refused; times without `Z` are UTC; the whole file is checked, not only up
/// to the first line that matches. An empty file trusts no key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedSigners {
    lines: Vec<SignerLine>,
}

/// A key and what it may sign.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignerLine {
    /// The line in the file, counted from 1.
    pub line: usize,
    /// The names of bundles that it may sign.
    pub principals: PatternList,
    /// The first second in which it is valid, since 1970.
    pub valid_after: Option<i64>,
    /// The last second in which it is valid, since 1970.
    pub valid_before: Option<i64>,
    /// The id of the key.
    pub key: KeyId,
    /// The key itself; `None` if Sealift does not accept it. The line then does not grant the namespace `sealift`.
    pub public_key: Option<PublicKey>,
    /// The comment after the key.
    pub comment: String,
    namespaces: Option<PatternList>,
}

impl AllowedSigners {
    /// Parses the file.
    ///
    /// # Errors
    /// Returns an error if a line is malformed, names a certificate authority, or
    /// grants the namespace `sealift` to a key that Sealift does not accept.
    pub fn parse(file: &[u8]) -> Result<Self, TrustFileError> {
        let lines = key_line::content_lines(file)
            .map(|(number, text)| {
                text.and_then(|text| SignerLine::parse(number, text))
                    .map_err(|problem| TrustFileError::Signers { line: number, problem })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { lines })
    }

    /// Returns all lines, including those for other namespaces.
    #[must_use]
    pub fn lines(&self) -> &[SignerLine] {
        &self.lines
    }

    /// Returns the lines that let a key sign bundles.
    pub fn granting(&self) -> impl Iterator<Item = &SignerLine> {
        self.lines.iter().filter(|line| line.grants(Namespace::Bundle))
    }

    /// Returns what the file grants to a key for a bundle's name at a time. Of
    /// several lines with the key, the one that grants most decides.
    #[must_use]
    pub fn standing(&self, key: KeyId, name: &str, now: Now) -> Standing {
        self.standing_as(Namespace::Bundle, key, name, now)
    }

    /// Returns what the file grants to a key that signs for this namespace.
    pub(super) fn standing_as(&self, namespace: Namespace, key: KeyId, name: &str, now: Now) -> Standing {
        self.lines
            .iter()
            .filter(|line| line.key == key)
            .map(|line| line.standing(namespace, name, now))
            .max_by_key(Standing::rank)
            .unwrap_or(Standing::NotListed)
    }
}

impl SignerLine {
    /// Parses `PRINCIPALS [OPTIONS] TYPE KEY [COMMENT]`.
    fn parse(number: usize, text: &str) -> Result<Self, LineError> {
        let (principals, rest) = principals(text)?;
        let (options, rest) = Options::split_off(rest)?;
        let key = KeyLine::parse(rest)?;
        let (public_key, refusal) = match key.key {
            Ok(public_key) => (Some(public_key), None),
            Err(refusal) => (None, Some(refusal)),
        };
        let line = Self {
            line: number,
            principals: PatternList::new(principals),
            valid_after: options.after,
            valid_before: options.before,
            key: key.id,
            public_key,
            comment: key.comment.into(),
            namespaces: options.namespaces,
        };
        // The file may also be used for git, so a key that is not accepted is an
        // error only if the line grants it our namespace.
        match refusal {
            Some(error) if Namespace::ALL.iter().any(|namespace| line.grants(*namespace)) => Err(error.into()),
            _ => Ok(line),
        }
    }

    /// Returns whether the line lets its key sign for this namespace. Whoever may sign bundles may sign lists of them (channel 4).
    fn grants(&self, namespace: Namespace) -> bool {
        let has = |namespace: Namespace| self.namespaces.as_ref().is_some_and(|list| list.matches(namespace.as_str()));
        has(Namespace::Bundle) || has(namespace)
    }

    fn standing(&self, namespace: Namespace, name: &str, now: Now) -> Standing {
        let line = self.line;
        if !self.grants(namespace) {
            return Standing::OtherNamespace { line };
        }
        if !self.principals.matches(name) {
            let principals = self.principals.as_str().into();
            return Standing::OtherName { line, principals };
        }
        // The period includes both ends, as in OpenSSH.
        if let Some(after) = self.valid_after.filter(|after| now.seconds() < *after) {
            return Standing::NotYet { line, after };
        }
        if let Some(before) = self.valid_before.filter(|before| now.seconds() > *before) {
            return Standing::NoLonger { line, before };
        }
        Standing::Trusted { line, comment: self.comment.clone() }
    }
}

/// Splits off the first word, which may be in quotation marks.
fn principals(text: &str) -> Result<(&str, &str), LineError> {
    let Some(quoted) = text.strip_prefix('"') else {
        return Ok(word(text));
    };
    let (principals, rest) = quoted.split_once('"').ok_or(LineError::Quote)?;
    if rest.starts_with([' ', '\t']) {
        Ok((principals, rest.trim_start_matches([' ', '\t'])))
    } else {
        Err(LineError::NoKey)
    }
}

#[cfg(test)]
mod tests {
    use base64ct::Encoding as _;

    use super::super::sample;
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOpKbGPIrqNoUjz5UjhyUTZvMqMZMdMBP3Bu3TaHCYVu";
    const SHORT_DSA: &str = "ssh-dss AAAAB3NzaC1kc3M=";

    fn key() -> KeyId {
        KeyLine::parse(KEY).expect("a good key").id
    }

    fn standing(line: &str, name: &str, now: i64) -> Standing {
        AllowedSigners::parse(line.as_bytes()).expect("a good file").standing(key(), name, Now::exactly(now))
    }

    fn problem(line: &str) -> LineError {
        let file = format!("# first\n{line}\n");
        match AllowedSigners::parse(file.as_bytes()) {
            Err(TrustFileError::Signers { line: 2, problem }) => problem,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_line_grants_what_it_says() {
        let line = format!("os,app-*,!app-x namespaces=\"git,sealift\" {KEY} me@desk ");
        let trusted = Standing::Trusted { line: 1, comment: "me@desk".into() };
        assert_eq!(standing(&line, "os", 0), trusted);
        assert_eq!(standing(&line, "app-y", 0), trusted);
        for name in ["app-x", "OS", "o", ""] {
            assert!(matches!(standing(&line, name, 0), Standing::OtherName { line: 1, .. }));
        }
    }

    #[test]
    fn without_our_namespace_nothing_is_granted() {
        for option in ["", "namespaces=\"git\" ", "namespaces=\"\" ", "namespaces=\"*,!sealift\" "] {
            let line = format!("* {option}{KEY}");
            assert_eq!(standing(&line, "os", 0), Standing::OtherNamespace { line: 1 }, "{line}");
            assert!(AllowedSigners::parse(line.as_bytes()).is_ok_and(|file| file.granting().count() == 0));
        }
        assert_eq!(standing("# nobody\r\n\r\n \t\n", "os", 0), Standing::NotListed);
    }

    #[test]
    fn a_line_for_lists_grants_no_bundle() {
        let file = AllowedSigners::parse(format!("os namespaces=\"sealift-channel\" {KEY}").as_bytes()).expect("good");
        let standing = |namespace| file.standing_as(namespace, key(), "os", Now::exactly(0));
        assert!(standing(Namespace::List).is_trusted());
        assert_eq!(standing(Namespace::Bundle), Standing::OtherNamespace { line: 1 });
        assert_eq!(file.granting().count(), 0);
        let file = AllowedSigners::parse(format!("os namespaces=\"sealift\" {KEY}").as_bytes()).expect("good");
        assert!(file.standing_as(Namespace::List, key(), "os", Now::exactly(0)).is_trusted());
        assert!(!file.standing_as(Namespace::List, key(), "app", Now::exactly(0)).is_trusted());
    }

    #[test]
    fn windows_include_both_ends() {
        let options = "namespaces=\"sealift\",valid-after=\"19700101000010Z\",\
                       VALID-BEFORE=\"19700101000020\"";
        let line = format!("os {options} {KEY}");
        assert_eq!(standing(&line, "os", 9), Standing::NotYet { line: 1, after: 10 });
        assert!(standing(&line, "os", 10).is_trusted());
        assert!(standing(&line, "os", 20).is_trusted());
        assert_eq!(standing(&line, "os", 21), Standing::NoLonger { line: 1, before: 20 });
    }

    #[test]
    fn the_best_line_decides() {
        let file = format!("os {KEY}\nos namespaces=\"sealift\" {KEY}\nx namespaces=\"sealift\" {KEY}");
        assert!(matches!(standing(&file, "os", 0), Standing::Trusted { line: 2, .. }));
        assert!(matches!(standing(&file, "y", 0), Standing::OtherName { .. }));
    }

    #[test]
    fn principals_may_be_quoted() {
        let line = format!("\"os, app\" namespaces=\"sealift\" {KEY}");
        assert!(standing(&line, "os", 0).is_trusted());
        assert!(standing(&line, " app", 0).is_trusted());
        assert_eq!(problem(&format!("\"os {KEY}")), LineError::Quote);
        assert_eq!(problem(&format!("\"os\"{KEY}")), LineError::NoKey);
    }

    #[test]
    fn malformed_lines_are_named() {
        assert_eq!(problem("os"), LineError::NoKey);
        assert_eq!(problem("os ssh-ed25519"), LineError::NoKey);
        assert_eq!(problem("os ssh-ed25519 %"), LineError::Base64);
        assert_eq!(problem(&format!("os {KEY}=")), LineError::Base64);
        assert_eq!(problem(&format!("os ssh-rsa {}", &KEY[12..])), LineError::TypeMismatch("ssh-rsa".into()));
        assert_eq!(problem(&format!("os cert-authority {KEY}")), LineError::CertAuthority);
        assert_eq!(problem(&format!("os\0 {KEY}")), LineError::NotText);
        assert!(matches!(problem(KEY), LineError::UnknownOption(_)));
        let utf16 = AllowedSigners::parse(b"\xef\xbb\xbfos x");
        assert!(utf16.is_err_and(|error| error.to_string().contains("byte order mark")));
        assert!(AllowedSigners::parse(b"os \xff").is_err());
    }

    #[test]
    fn an_unaccepted_key_matters_only_where_it_is_granted_something() {
        let file = AllowedSigners::parse(format!("me {SHORT_DSA}\nme {KEY}").as_bytes()).expect("a good file");
        let keys: Vec<_> = file.lines().iter().map(|line| line.public_key.as_ref().map(PublicKey::id)).collect();
        assert_eq!(keys, [None, Some(key())]);
        let granted = problem(&format!("me namespaces=\"*\" {SHORT_DSA}"));
        assert!(granted.to_string().contains("ssh-dss"), "{granted}");
    }

    fn line_of(options: &str, fields: &[&[u8]]) -> String {
        let blob = sample::strings(fields);
        let key_type = core::str::from_utf8(fields[0]).expect("text");
        format!("me {options}{key_type} {}", base64ct::Base64::encode_string(&blob))
    }

    #[test]
    fn a_line_that_grants_nothing_may_have_any_key_in_its_form() {
        let [exponent, modulus] = [&[1, 0, 1][..], &[0x7f; 256]];
        for options in ["", "namespaces=\"git\" "] {
            for fields in [
                &[&b"ssh-later"[..], b"anything"][..],
                &[b"ssh-later"],
                &[b"ssh-ed25519-cert-v01@openssh.com", b""],
                &[b"ssh-rsa", exponent, modulus],
                &[b"ssh-rsa", &[1], modulus],
            ] {
                let line = line_of(options, fields);
                assert!(AllowedSigners::parse(line.as_bytes()).is_ok(), "{line}");
                let granting = line_of("namespaces=\"sealift\" ", fields);
                assert!(matches!(problem(&granting), LineError::Key(_)), "{granting}");
            }
            // A key of a known type has its form, whatever it is granted.
            for fields in [
                &[&b"ssh-ed25519"[..], &[0; 31]][..],
                &[b"ssh-ed25519", &[0; 32]],
                &[b"ssh-rsa", exponent],
                &[b"ssh-rsa", exponent, modulus, b""],
                &[b"ssh-rsa", &[0, 1, 0, 1], modulus],
                &[b"ssh-rsa", exponent, &[0x7e; 400]],
            ] {
                assert!(matches!(problem(&line_of(options, fields)), LineError::Key(_)), "{fields:?}");
            }
        }
    }

    #[test]
    fn a_line_that_grants_nothing_is_checked_like_any_other() {
        for options in [
            "zone=\"a\"",
            "cert-authority",
            "namespaces=\"git\",namespaces=\"git\"",
            "valid-after=\"20260101000060Z\"",
            "valid-after=\"19700101Z\"",
            "valid-after=\"20260101\",valid-before=\"20260101\"",
        ] {
            let refused = AllowedSigners::parse(format!("me {options} {KEY}").as_bytes());
            assert!(refused.is_err(), "{options}");
        }
    }
}
