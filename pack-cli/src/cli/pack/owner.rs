//! The values of `--owner` and `--owner-map`.

use sealift::source::OwnerRule;

/// Parses `UID:GID`, both numbers.
pub(super) fn parse_owner(text: &str) -> Result<(u32, u32), &'static str> {
    let owner = text.split_once(':').and_then(|(uid, gid)| Some((id(uid)?, id(gid)?)));
    owner.ok_or("write UID:GID in numbers, such as 0:0")
}

/// Parses `uid:FROM=TO` or `gid:FROM=TO`, all numbers.
pub(super) fn parse_rule(text: &str) -> Result<OwnerRule, &'static str> {
    let rule = || {
        let (kind, ids) = text.split_once(':')?;
        let (from, to) = ids.split_once('=')?;
        let (from, to) = (id(from)?, id(to)?);
        match kind {
            "uid" => Some(OwnerRule::Uid { from, to }),
            "gid" => Some(OwnerRule::Gid { from, to }),
            _ => None,
        }
    };
    rule().ok_or("write uid:FROM=TO or gid:FROM=TO in numbers, such as uid:1000=0")
}

/// Parses a number without a sign. The highest one means "unchanged" to chown(2), so no file has it.
fn id(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|id| digits && *id != u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        assert_eq!(parse_rule("uid:1000=0").ok(), Some(OwnerRule::Uid { from: 1000, to: 0 }));
        assert_eq!(parse_rule("gid:100=65534").ok(), Some(OwnerRule::Gid { from: 100, to: 65534 }));
        for bad in ["", "1000=0", "u:1=0", "uid:1", "uid:=0", "uid:+1=0", "uid:root=0", "uid:1=4294967295"] {
            assert!(parse_rule(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_owner("0:50").ok(), Some((0, 50)));
        for bad in ["", "0", "0:", ":0", "root:root", "-1:0", "0:4294967295"] {
            assert!(parse_owner(bad).is_err(), "{bad}");
        }
    }
}
