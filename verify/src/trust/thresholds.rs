//! How many distinct keys must sign bundles of a name.

use super::pattern::PatternList;
use super::{TrustFileError, key_line};

/// A default, which is 1 unless a rule sets it, and rules for name patterns. If
/// several rules match a name, the largest number applies, so that their order
/// does not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thresholds {
    default: usize,
    rules: Vec<(PatternList, usize)>,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { default: 1, rules: Vec::new() }
    }
}

impl Thresholds {
    /// Parses rules: `N` sets the default, `PATTERN=N` applies to names that match.
    ///
    /// # Errors
    /// Returns an error if a rule is neither, or N is 0: accepting bundles without
    /// a trusted signature is a decision for one call, not for a rule.
    pub fn parse<'a>(rules: impl IntoIterator<Item = &'a str>) -> Result<Self, TrustFileError> {
        let mut thresholds = Self::default();
        for rule in rules {
            let refuse = || TrustFileError::Threshold(rule.into());
            let (pattern, number) = match rule.rsplit_once('=') {
                Some((pattern, number)) => (Some(pattern), number),
                None => (None, rule),
            };
            // `parse` alone would accept a sign as well.
            if !number.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(refuse());
            }
            let number: usize = number.parse().map_err(|_| refuse())?;
            match pattern {
                _ if number == 0 => return Err(refuse()),
                Some("") => return Err(refuse()),
                Some(pattern) => thresholds.rules.push((PatternList::new(pattern), number)),
                None => thresholds.default = number,
            }
        }
        Ok(thresholds)
    }

    /// Parses a file of rules, one per line, with `#` comments.
    ///
    /// # Errors
    /// As for [`Thresholds::parse`]; also if a line is not text.
    pub fn parse_file(file: &[u8]) -> Result<Self, TrustFileError> {
        let rules: Result<Vec<&str>, _> = key_line::content_lines(file)
            .map(|(line, text)| text.map_err(|problem| TrustFileError::Thresholds { line, problem }))
            .collect();
        Self::parse(rules?)
    }

    /// Returns the default and the rules, as they were written.
    pub fn rules(&self) -> impl Iterator<Item = (Option<&str>, usize)> {
        let rules = self.rules.iter().map(|(pattern, number)| (Some(pattern.as_str()), *number));
        core::iter::once((None, self.default)).chain(rules)
    }

    /// Returns the number of distinct keys that a name needs, at least 1.
    #[must_use]
    pub fn for_name(&self, name: &str) -> usize {
        self.rules
            .iter()
            .filter(|(pattern, _)| pattern.matches(name))
            .map(|(_, number)| *number)
            .max()
            .unwrap_or(self.default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_lists_rules() {
        let file = Thresholds::parse_file(b"# two people\r\n2\n\nos=3\n").expect("rules");
        assert_eq!(Ok(&file), Thresholds::parse(["2", "os=3"]).as_ref());
        assert_eq!(file.rules().collect::<Vec<_>>(), [(None, 2), (Some("os"), 3)]);
        assert_eq!(Thresholds::parse_file(b""), Ok(Thresholds::default()));
        for bad in [&b"0"[..], b"2\nos", b"os=\xff"] {
            assert!(Thresholds::parse_file(bad).is_err());
        }
    }

    #[test]
    fn the_largest_rule_that_matches_holds() {
        let thresholds = Thresholds::parse(["2", "app-*=1", "app-x=3", "os=4"]).expect("rules");
        for (name, expected) in [("os", 4), ("app-x", 3), ("app-y", 1), ("other", 2)] {
            assert_eq!(thresholds.for_name(name), expected, "{name}");
        }
        assert_eq!(Thresholds::default().for_name("os"), 1);
    }

    #[test]
    fn other_rules_are_refused() {
        for rule in ["", "0", "os=0", "os=", "=1", "os", "-1", "+1", "os=+1", "1.5"] {
            let refused = Thresholds::parse([rule]);
            assert_eq!(refused, Err(TrustFileError::Threshold(rule.into())));
        }
    }
}
