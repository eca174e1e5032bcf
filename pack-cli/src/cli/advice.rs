//! What a user can do about an error: the library states the error, the program the option or command that helps.

use sealift::{Error, FormatError, TrustError};

/// Returns the advice for an error, as the end of its sentence.
pub(crate) fn advice(error: &Error) -> Option<String> {
    let fixed = match error {
        Error::Bundle { source, .. } => return advice(source),
        Error::Format(FormatError::Limit { what, declared, .. }) => return limit(what, *declared),
        Error::Format(FormatError::IsRequest) => ": pack a bundle for it with `sealift pack --for`",
        Error::Trust(TrustError::Untrusted(why) | TrustError::Revoked(why)) if !why.has_signers_file => {
            "; name that file with --trust, or put it at /etc/sealift/allowed_signers"
        }
        Error::Trust(TrustError::Expired { .. }) => "; get a newer bundle, or use --time if the clock is wrong",
        Error::Trust(TrustError::Downgrade { .. }) => {
            "; get a newer bundle, or use --allow-downgrade to install this one once"
        }
        Error::Trust(TrustError::DeviceUnknown { .. }) => {
            "; use --compatible TAG, or list this device's tags in /etc/sealift/compatible"
        }
        Error::Changed { .. } => ": pack a snapshot, or stop the program that writes to it",
        Error::IsDelta { .. } => ": unpack it onto a target that holds its base, or give that with --base",
        Error::OtherName { .. } => ": unpack elsewhere, or remove the target",
        Error::NotOurs { is_of_another: true, .. } => {
            ". To update it anyway, use --adopt; --adopt --dry-run shows what that would replace and delete"
        }
        Error::NotOurs { .. } => {
            ": to take it over, use --adopt; --adopt --dry-run shows what that would replace and delete"
        }
        Error::FoldedName { .. } => ": unpack to a file system that does",
        Error::Changing { .. } => ": repeat the update when it has finished",
        Error::HalfUpdated { .. } => ": repair it by unpacking either bundle with --update",
        Error::State { .. } => {
            "; restore it from a backup, or remove it, which also removes the protection it provides"
        }
        Error::StoreObject { .. } => ": unpack the bundle again with --rehash",
        Error::DamagedStore { .. } => ": unpack the full bundle with --rehash",
        Error::SignatureRefused { .. } => "; use `--seal try` to seal the index without the bundle's kernel signature",
        Error::NoRoom { .. } => "; remove one with `sign --remove`",
        Error::Foreign { .. } => ": remove it, or correct its owner and mode",
        Error::Exchanged { .. } => "; find out who replaced it, then repeat the command",
        Error::Busy { .. } => ": wait until it has finished",
        Error::Exists { .. } => ": use --force to replace it",
        Error::SeveralRefs { .. } => "; choose one with --ref",
        Error::NotEmpty { .. } => ": unpack to a new directory, or use --update",
        Error::DirectoryInPlace { .. } => ": use --delete to replace it",
        Error::NoImages => ": pack it with --composefs",
        Error::NoImage { algorithm, .. } => return Some(format!(": pack it with --composefs={algorithm}")),
        Error::OverLimit { name, number, .. } => {
            return Some(format!(": to pack it anyway, use --limit {name}={number}; readers need the same option"));
        }
        Error::NoStateDirectory => ": set HOME, or use --state DIR",
        _ => return None,
    };
    Some(fixed.to_owned())
}

/// Returns the option that accepts a bundle over a limit, if there is one.
fn limit(what: &str, declared: u64) -> Option<String> {
    let has_option = matches!(what, "entries" | "depth" | "memory" | "size");
    has_option.then(|| format!(": to accept it, use --limit {what}={declared}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_limits_that_an_option_raises_are_advised_to_be_raised() {
        assert_eq!(limit("entries", 9).as_deref(), Some(": to accept it, use --limit entries=9"));
        assert_eq!(limit("length of a name", 9), None);
    }
}
