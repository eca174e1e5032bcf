//! How many distinct keys must have signed a bundle of a name.

use super::TrustFileError;
use super::pattern::PatternList;

/// A default, which is 1, and rules for name patterns. Where several rules
/// match a name, the largest number holds, so that their order cannot weaken it.
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
    /// Parses rules: `N` is the default, `PATTERN=N` holds for names that match.
    ///
    /// # Errors
    /// When a rule is neither, or N is 0 (to accept bundles without a trusted
    /// signature is a decision for one call, not for a rule).
    pub fn parse<'a>(rules: impl IntoIterator<Item = &'a str>) -> Result<Self, TrustFileError> {
        let mut thresholds = Self::default();
        for rule in rules {
            let refuse = || TrustFileError::Threshold(rule.into());
            let (pattern, number) = match rule.rsplit_once('=') {
                Some((pattern, number)) => (Some(pattern), number),
                None => (None, rule),
            };
            // `parse` alone would take a sign as well.
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
