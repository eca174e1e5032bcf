//! OpenSSH's patterns (ssh_config(5), "PATTERNS"): `*`, `?`, lists, `!`.

/// A comma-separated list of patterns, as in the first field of an allowed
/// signers line. A name matches if a pattern does and no `!` pattern does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternList(String);

impl PatternList {
    /// Wraps a list. Every text is valid.
    #[must_use]
    pub fn new(list: impl Into<String>) -> Self {
        Self(list.into())
    }

    /// Returns whether `name` matches. Case counts, as in OpenSSH.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let mut matched = false;
        for pattern in self.0.split(',') {
            match pattern.strip_prefix('!') {
                Some(negated) if glob(negated.as_bytes(), name.as_bytes()) => return false,
                Some(_) => {}
                None => matched |= glob(pattern.as_bytes(), name.as_bytes()),
            }
        }
        matched
    }

    /// Returns the list as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Matches without recursion, in time at most the product of the lengths: the
/// last `*` takes one more byte whenever what follows it does not match.
fn glob(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut taken) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(byte) = name.get(taken) {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, taken));
                at += 1;
            }
            Some(wanted) if *wanted == b'?' || wanted == byte => {
                at += 1;
                taken += 1;
            }
            _ => {
                let Some((star_at, star_taken)) = star else {
                    return false;
                };
                star = Some((star_at, star_taken + 1));
                at = star_at + 1;
                taken = star_taken + 1;
            }
        }
    }
    pattern.get(at..).is_some_and(|rest| rest.iter().all(|byte| *byte == b'*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_openssh() {
        let cases = [
            ("os", "os", true),
            ("os", "OS", false),
            ("os", "os2", false),
            ("*", "os", true),
            ("*", "", true),
            ("", "", true),
            ("", "os", false),
            ("o?", "os", true),
            ("o?", "o", false),
            ("app-*", "app-x", true),
            ("app-*", "app-", true),
            ("app-*", "apps", false),
            ("*-app-*", "a-app-b-app-c", true),
            ("*a*b", "aabab", true),
            ("*a*b", "aaba", false),
            ("a,b", "b", true),
            ("a,b", "a,b", false),
            ("*,!os", "os", false),
            ("!os,*", "os", false),
            ("!os,*", "app", true),
            ("!os", "app", false),
            ("!o*,os", "os", false),
            ("a,,b", "b", true),
            ("a,,b", "", true),
        ];
        for (list, name, expected) in cases {
            assert_eq!(PatternList::new(list).matches(name), expected, "{list} {name}");
        }
    }

    #[test]
    fn many_stars_end_soon() {
        let list = PatternList::new(format!("{}b", "a*".repeat(500)));
        assert!(!list.matches(&"a".repeat(2000)));
    }
}
