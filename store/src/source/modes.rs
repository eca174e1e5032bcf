//! Changes of permission bits, written as for chmod(1) and `tar --mode`.

use std::str::FromStr;

/// Changes of permission bits, such as `go-w` or `u=rwX,go=rX`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModeRules(Vec<ModeRule>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ModeRule {
    /// The bits of those whose permissions change.
    who: u16,
    sign: Sign,
    bits: u16,
    /// Whether the permission to execute is meant only for directories, and for files that someone may execute.
    is_conditional: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    Add,
    Remove,
    Set,
}

const EXECUTE: u16 = 0o111;
const SET_IDS: u16 = 0o6000;

impl ModeRules {
    /// Returns whether nothing changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the permission bits of a file that has these.
    #[must_use]
    pub fn change(&self, permissions: u16, is_directory: bool) -> u16 {
        self.0.iter().fold(permissions, |mode, rule| {
            let executes = rule.is_conditional && (is_directory || mode & EXECUTE != 0);
            let bits = rule.bits | if executes { rule.who & EXECUTE } else { 0 };
            match rule.sign {
                Sign::Add => mode | bits,
                Sign::Remove => mode & !bits,
                // As chmod does it, a directory keeps set-id bits that are not named.
                Sign::Set if is_directory => mode & !(rule.who & !SET_IDS) | bits,
                Sign::Set => mode & !rule.who | bits,
            }
        })
    }
}

impl FromStr for ModeRules {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut rules = Vec::new();
        for clause in text.split(',') {
            let is_who = |letter: char| "ugoa".contains(letter);
            let start = clause.find(|letter| !is_who(letter)).ok_or(FORM)?;
            let who = clause[..start].chars().fold(0, |who, letter| who | whose(letter));
            let who = if start == 0 { whose('a') } else { who };
            let mut rest = &clause[start..];
            while let Some(sign) = rest.chars().next() {
                let sign = match sign {
                    '+' => Sign::Add,
                    '-' => Sign::Remove,
                    '=' => Sign::Set,
                    _ => return Err(FORM),
                };
                let end = rest[1..].find(['+', '-', '=']).map_or(rest.len(), |end| end + 1);
                let letters = &rest[1..end];
                let bits = letters.chars().try_fold(0, |bits, letter| Some(bits | bits_of(letter)?)).ok_or(FORM)?;
                rules.push(ModeRule { who, sign, bits: bits & who, is_conditional: letters.contains('X') });
                rest = &rest[end..];
            }
        }
        Ok(Self(rules))
    }
}

const FORM: &str = "write it as for chmod, in letters, such as go-w or u=rwX,go=rX";

fn whose(letter: char) -> u16 {
    match letter {
        'u' => 0o4700,
        'g' => 0o2070,
        'o' => 0o1007,
        _ => 0o7777,
    }
}

fn bits_of(letter: char) -> Option<u16> {
    Some(match letter {
        'r' => 0o444,
        'w' => 0o222,
        'x' => 0o111,
        'X' => 0,
        's' => 0o6000,
        't' => 0o1000,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_mean_what_they_mean_to_chmod() {
        let table = [
            ("go-w", 0o664, false, 0o644),
            ("go-w", 0o775, true, 0o755),
            ("u=rwX,go=rX", 0o664, false, 0o644),
            ("u=rwX,go=rX", 0o700, false, 0o755),
            ("u=rwX,go=rX", 0o600, true, 0o755),
            ("u=rwX,go=rX", 0o4711, false, 0o755),
            ("u=rwX,go=rX", 0o2770, true, 0o2755),
            ("a=rX", 0o640, false, 0o444),
            ("+x", 0o640, false, 0o751),
            ("g+s", 0o755, true, 0o2755),
            ("o+t", 0o777, true, 0o1777),
            ("ug-s,o-t", 0o7777, false, 0o777),
            ("g=u-w", 0o640, false, 0),
            ("u-x+w", 0o500, false, 0o600),
        ];
        for (text, before, is_directory, after) in table {
            match text.parse::<ModeRules>() {
                Ok(rules) => assert_eq!(rules.change(before, is_directory), after, "{text} {before:o}"),
                Err(_) => assert_eq!(after, 0, "{text}"),
            }
        }
    }

    #[test]
    fn forms() {
        for bad in ["", "644", "u", "u=rwz", "x+u", "u=rw,", "u+r;g+r", "ü=r"] {
            assert!(bad.parse::<ModeRules>().is_err(), "{bad}");
        }
    }
}
