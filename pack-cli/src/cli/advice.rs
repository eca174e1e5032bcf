//! What a user can do about an error: the library says what is the case, and the program which option or command helps.

use sealift::{Error, FormatError, TrustError};

/// What helps, as the rest of the sentence that the error began.
pub(crate) fn advice(error: &Error) -> Option<String> {
    let fixed = match error {
        Error::Bundle { source, .. } => return advice(source),
        Error::Format(FormatError::Limit { what, declared, .. }) => return limit(what, *declared),
        Error::Format(FormatError::IsRequest) => ": pack a bundle for it with `sealift pack --for`",
        Error::Trust(TrustError::Untrusted(why) | TrustError::Revoked(why)) if !why.has_signers_file => {
            "; name that file with --trust, or put it at /etc/sealift/allowed_signers"
        }
        Error::Trust(TrustError::Expired { .. }) => "; get a newer bundle, or give --time if this clock is wrong",
        Error::Trust(TrustError::Downgrade { .. }) => {
            "; get a newer bundle, or give --allow-downgrade to use this one once"
        }
        Error::Trust(TrustError::DeviceUnknown { .. }) => {
            "; give --compatible TAG, or list this device's tags in /etc/sealift/compatible"
        }
        Error::Changed { .. } => ": pack a snapshot, or a tree that nothing writes to",
        Error::IsDelta { .. } => ": unpack it onto a target that holds that, or give that with --base",
        Error::OtherName { .. } => ": unpack elsewhere, or remove the target",
        Error::NotOurs { is_of_another: true, .. } => {
            ". If it is what you mean to update: --adopt takes it over, and with --dry-run lists what that would replace and delete"
        }
        Error::NotOurs { .. } => ": --adopt takes it over, and with --dry-run lists what that would replace and delete",
        Error::FoldedName { .. } => ": unpack to one that does",
        Error::Changing { .. } => ": repeat the update when it has finished",
        Error::HalfUpdated { .. } => ": repair it by unpacking one with --update",
        Error::State { .. } => "; restore it from a backup, or remove it, which resets the protection it gives",
        Error::StoreObject { .. } => ": unpack the bundle again with --rehash",
        Error::DamagedStore { .. } => ": unpack the full bundle with --rehash",
        Error::SignatureRefused { .. } => "; `--seal try` seals the index without the bundle's kernel signature",
        Error::NoRoom { .. } => "; remove one with `sign --remove`",
        Error::Foreign { .. } => ": remove it, or correct its owner and mode",
        Error::Exchanged { .. } => "; find out who replaced it, then repeat the command",
        Error::Busy { .. } => ": wait until it ends",
        Error::Exists { .. } => ": give --force to replace it",
        Error::SeveralRefs { .. } => "; choose one with --ref",
        Error::NotEmpty { .. } => ": unpack to a new directory, or with --update",
        Error::DirectoryInPlace { .. } => ": use --delete to replace it",
        Error::NoImages => ": it must be packed with --composefs",
        Error::NoImage { algorithm, .. } => return Some(format!(": it must be packed with --composefs={algorithm}")),
        Error::OverLimit { name, number, .. } => {
            return Some(format!(": with --limit {name}={number} it is packed, for readers that give the same limit"));
        }
        Error::NoStateDirectory => ": set HOME, or give --state DIR",
        _ => return None,
    };
    Some(fixed.to_owned())
}

/// What accepts a bundle that was refused for what it declares, if an option does.
fn limit(what: &str, declared: u64) -> Option<String> {
    let has_option = matches!(what, "entries" | "depth" | "memory" | "size");
    has_option.then(|| format!(": if you have room for that, --limit {what}={declared} accepts it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_limits_that_an_option_raises_are_advised_to_be_raised() {
        assert_eq!(limit("entries", 9).as_deref(), Some(": if you have room for that, --limit entries=9 accepts it"));
        assert_eq!(limit("length of a name", 9), None);
    }
}
