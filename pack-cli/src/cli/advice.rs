//! What a user can do about an error: the library states the error, and the program names the option or command that helps.

use std::path::Path;

use rustix::io::Errno;
use sealift::seal::KernelError;
use sealift::trust::{KernelSignError, SignError};
use sealift::trust::{Shortfall, SignatureError, Standing};
use sealift::{
    ArchiveFault, Class, Error, FileFault, FormatError, ImageFault, RecordFault, RepoFault, SlotFault, TrustError,
    VolumeFault,
};

/// The advice if the kernel has no certificate for a signature.
pub(crate) const ADD_CERTIFICATE: &str =
    ": as root, add it with `keyctl padd asymmetric '' %keyring:.fs-verity < CERT.der`";

/// Returns the advice for an error, as the end of its sentence.
pub(crate) fn advice(error: &Error) -> Option<String> {
    let fixed = match error {
        Error::Bundle { source, .. } => return advice(source),
        Error::Io { source, .. } if source.raw_os_error() == Some(Errno::NOTCONN.raw_os_error()) => {
            ": the program behind this mount has ended; unmount it with `umount`"
        }
        Error::Format(FormatError::Limit { what, declared, .. }) => return limit(what, *declared),
        Error::Volumes { fault, .. } => volumes(fault)?,
        Error::Format(FormatError::VolumeSize { needed, .. }) => return Some(format!("; use {needed} or more")),
        Error::Format(FormatError::IsVolume) => ": this verb takes the whole bundle in one file",
        Error::Format(FormatError::IsRequest) => ": pack a bundle for it with `sealift pack --for`",
        Error::Trust(TrustError::Untrusted(why) | TrustError::Revoked(why)) => return Some(signer(why)),
        Error::Trust(TrustError::Expired { .. }) => "; get a newer bundle, or use --time if the clock is wrong",
        Error::Trust(TrustError::Downgrade { .. }) => {
            "; get a newer bundle, or use --allow-downgrade to install this one once"
        }
        Error::Trust(TrustError::DeviceUnknown { .. }) => {
            "; use --compatible TAG, or list this device's tags in /etc/sealift/compatible"
        }
        Error::Mounted { place, .. } => {
            return Some(format!(
                ": unmount it, or remount it read-only with  mount -o remount,ro {}",
                place.display()
            ));
        }
        Error::Changed { .. } => ": pack a snapshot, or stop the program that writes to it",
        Error::Archive { path, fault, .. } => return archive(path, fault),
        Error::Image { fault, .. } => image(fault)?,
        Error::IsDelta { .. } => ": unpack it onto a target that holds its base, or give the base with --base",
        Error::MissingBase { .. } => "; use the full bundle",
        Error::OtherName { .. } => ": unpack elsewhere, or remove the target",
        Error::NotOurs { why, .. } if **why == RecordFault::OfAnother => {
            ". To update it anyway, use --adopt; --adopt --dry-run shows what that would replace and delete"
        }
        Error::NotOurs { .. } => {
            ": to take it over, use --adopt; --adopt --dry-run shows what that would replace and delete"
        }
        Error::FoldedName { .. } => ": unpack to a file system that does",
        Error::Changing { .. } => ": repeat the update when it has finished",
        Error::Slot { fault, .. } => slot(fault)?,
        Error::HalfUpdated { .. } | Error::GivenUp { .. } => ": repair it by unpacking either bundle with --update",
        Error::State { .. } => {
            "; restore it from a backup, or remove it, which also removes the protection it provides"
        }
        Error::Floor { name, .. } => {
            return Some(format!("; `sealift trust reset {name}` forgets it, and then any version is accepted"));
        }
        Error::Repository { fault, .. } => return repository(fault).map(str::to_owned),
        Error::NoStore { .. } => ": unpack a bundle to it first",
        Error::StoreObject { .. } => ": unpack the bundle again with --rehash",
        Error::DamagedStore { .. } => ": unpack the full bundle with --rehash",
        Error::Kernel { source, .. } => kernel(source)?,
        Error::SignatureRefused { source, .. } => {
            let sealing = "use `--seal try` to seal the index without the bundle's kernel signature";
            return Some(format!("{}; {sealing}", kernel(source).unwrap_or_default()));
        }
        Error::File { fault, .. } => file(fault)?,
        Error::Agent { .. } => {
            "; start it with `eval \"$(ssh-agent)\"`, load the key with `ssh-add FILE`, and touch the token or confirm if asked, or give the \
             private key's file"
        }
        Error::NoRoom { .. } => "; remove one with `sign --remove`",
        Error::Foreign { .. } => ": correct its owner and mode, or remove it",
        Error::OtherDirectory { .. } => {
            ", so it does not get the owner and the mode of that name: move it away, or use --delete to replace it"
        }
        Error::Needed { .. } => ": move it out of the target, or leave out --delete",
        Error::Exchanged { .. } => "; find out who replaced it, then repeat the command",
        Error::Unusable { .. } => "; choose another target",
        Error::Busy { .. } => ": wait until it has finished",
        Error::Exists { .. } => ": use --force to replace it",
        Error::SeveralRefs { .. } => "; choose one with --ref",
        Error::SameRef { .. } => ": give each its own, as in REF=SOURCE",
        Error::NoCollection { others, .. } if !others.is_empty() => {
            return Some(format!(": choose among those that have one: {}", others.join(", ")));
        }
        Error::NoCollection { .. } => {
            ": pack it from a repository that has one (core.collection-id), where it was committed"
        }
        Error::NoCommit => ": unpack it to a directory",
        Error::Ambiguous { .. } => ": write the one that you mean as `sealift ls` prints it",
        Error::NoRecord { .. } => ": pass the BUNDLE to compare with",
        Error::NotEmpty { .. } => ": unpack to a new directory, or use --update",
        Error::DirectoryInPlace { .. } => ": use --delete to replace it",
        Error::NoComposefs => ": use one built with `cargo xtask dist` or `cargo build --release --features composefs`",
        Error::NoImages => ": pack it with --composefs",
        Error::NoImage { algorithm, .. } => return Some(format!(": pack it with --composefs={algorithm}")),
        Error::OverLimit { name, number, .. } => {
            return Some(format!(": to pack it anyway, use --limit {name}={number}; readers need the same option"));
        }
        Error::Unstorable { .. } => "; unpack to another file system, or pack the tree without it",
        Error::Xattr { .. } if error.class() == Class::DiskFull => return None,
        Error::Xattr { .. } => "; pack the tree without it if devices do not need it",
        Error::NotKept { what: "owners", .. } => "; use --no-same-owner to leave files to the user who unpacks them",
        Error::NotKept { .. } => "; use --no-devices to leave devices out",
        Error::NoStateDirectory => ": set HOME, or use --state DIR",
        Error::UnlistedKey { .. } => ": give the public key; `sealift info` prints it for a bundle that it signed",
        _ => return None,
    };
    Some(fixed.to_owned())
}

/// Returns what to do about volumes that cannot be used.
fn volumes(fault: &VolumeFault) -> Option<&'static str> {
    Some(match fault {
        VolumeFault::Missing { .. } => ": copy them there, or give all volumes as arguments",
        VolumeFault::Twice { .. } => ": remove one of them",
        VolumeFault::OtherSet { .. } => ": leave it out",
        VolumeFault::Several { .. } => ": give one volume of the set that you mean",
        VolumeFault::Truncated { .. } | VolumeFault::Trailing { .. } => ": copy it again",
        VolumeFault::InTheWay { .. } => ": remove it, or choose another directory",
        _ => return None,
    })
}

/// Returns the advice for an error of a verb that writes to `target`: the user has to create a missing repository, and to remove an archive.
pub(crate) fn advice_for_target(error: &Error, target: &Path) -> Option<&'static str> {
    if matches!(error, Error::Exists { path } if path == target) {
        return Some(": remove it, or give another name");
    }
    let Error::Repository { path, fault } = error else { return None };
    let is_lacking = matches!(**fault, RepoFault::NoDirectory | RepoFault::NotARepository { .. });
    (is_lacking && path == target).then_some("; create one with `ostree init`")
}

/// Returns the option that accepts a bundle over a limit, if there is one.
fn limit(what: &str, declared: u64) -> Option<String> {
    let has_option = matches!(what, "entries" | "depth" | "paths" | "memory" | "size");
    let fewer = if what == "memory" { ", or fewer threads with --jobs" } else { "" };
    has_option.then(|| format!(": to accept it, use --limit {what}={declared}{fewer}"))
}

/// Returns how to trust a signer: a line to copy after comparing the key's id, which precedes it. There is no line for a key that is listed but
/// revoked or outside its time window, since that needs a decision.
fn signer(why: &Shortfall) -> String {
    let stranger = why.states.iter().find_map(|state| match &state.outcome {
        Ok(Standing::NotListed) => state.key.as_ref(),
        _ => None,
    });
    let (place, file) = match why.has_signers_file {
        true => ("add this line to the allowed signers", ""),
        false => (
            "write this line to an allowed signers file",
            "; name that file with --trust, or put it at /etc/sealift/allowed_signers",
        ),
    };
    let name = principal(&why.name);
    match stranger {
        Some(key) => {
            let (id, key) = (key.id(), key.to_openssh());
            format!("; if its owner confirms the key {id}, {place}: {name} namespaces=\"sealift\" {key}{file}")
        }
        None if why.has_signers_file => {
            "; ask the publisher to sign it with a key allowed for this name, or change the allowed signers".to_owned()
        }
        None => format!("; for each key to trust, {place}: {name} namespaces=\"sealift\" TYPE KEY{file}"),
    }
}

/// Returns a bundle's name, or `NAME` if it could be read as a pattern: the advised line must not trust a key for other bundles too.
fn principal(name: &str) -> &str {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    if !name.is_empty() && name.bytes().all(is_plain) { name } else { "NAME" }
}

fn archive(path: &Path, fault: &ArchiveFault) -> Option<String> {
    let fixed = match fault {
        ArchiveFault::Compressed { program, scheme } => {
            let file = if path == Path::new("-") { "FILE".into() } else { path.display().to_string() };
            return Some(format!(": decompress it, as in `{program} -dc {file} | sealift pack {scheme}:- ...`"));
        }
        ArchiveFault::BeyondEnd => ": join archives with `tar -A`",
        ArchiveFault::AclName { .. } => ": create the archive with `tar --xattrs`, which stores ACLs as numbers",
        _ => return None,
    };
    Some(fixed.to_owned())
}

fn image(fault: &ImageFault) -> Option<&'static str> {
    Some(match fault {
        ImageFault::NotALayout { .. } => {
            ": copy the image into a layout, as in `skopeo copy docker-daemon:NAME:TAG oci:DIR:TAG`"
        }
        ImageFault::NotAnImageTree { .. } => ": unpack it to a directory, or as tar:FILE",
        ImageFault::WouldLose { .. } => {
            ", which would be lost: unpack to a new directory, and copy from there, as in `skopeo copy oci:NEW:TAG oci:DIR:TAG`"
        }
        ImageFault::NotADockerArchive => {
            ": if it is an OCI archive, unpack it with `tar -x` and give the directory as oci:DIR"
        }
        ImageFault::Several { .. } | ImageFault::NoTag { .. } => "; name one behind a colon, as in oci:DIR:TAG",
        ImageFault::Platforms { .. } => {
            ": choose one, as in `skopeo copy --override-os linux --override-arch arm64 oci:DIR:TAG oci:NEW:TAG`"
        }
        ImageFault::Schema1 => ": convert it, as in `skopeo copy --format oci SOURCE oci:DIR:TAG`",
        ImageFault::Artifact { .. } => ": pack the directory itself, without oci:",
        ImageFault::Encrypted { .. } => ": decrypt it, as in `skopeo copy --decryption-key KEY SOURCE oci:DIR:TAG`",
        ImageFault::Missing { .. }
        | ImageFault::Size { .. }
        | ImageFault::Digest { .. }
        | ImageFault::DiffId { .. }
        | ImageFault::Damaged { .. } => ": copy the image again from where it came",
        ImageFault::Compression { .. } => {
            ": compress it anew, as in `skopeo copy --dest-compress-format zstd SOURCE oci:DIR:TAG`"
        }
        ImageFault::NotPlain { .. } => {
            ": unpack it to a directory, or pack the image with oci:DIR, which decompresses layers"
        }
        _ => return None,
    })
}

fn repository(fault: &RepoFault) -> Option<&'static str> {
    Some(match fault {
        RepoFault::NoDirectory => ": check its path; `sealift status` lists those to which bundles were unpacked",
        RepoFault::Parent { .. } => {
            ": use the parent, or copy the commits with `ostree pull-local` into a repository without a parent"
        }
        RepoFault::RefLink { .. } => ": remove it",
        RepoFault::SeveralRefs { .. } => "; name one, as in ostree:REPO:REF, or a commit by its checksum",
        RepoFault::Unnamed { .. } => ": put its ref's name before it, as in NAME=ostree:REPO:CHECKSUM",
        RepoFault::NoRemote { .. } => ": name one that `ostree remote list` shows, or add it with `ostree remote add`",
        RepoFault::Owner { .. } => "; a repository made with `ostree init --mode=bare-user` records owners instead",
        RepoFault::Locked { .. } => ": try again later",
        _ => return None,
    })
}

fn kernel(error: &KernelError) -> Option<&'static str> {
    Some(match error {
        KernelError::Unsupported => {
            ": use ext4 made with `mkfs.ext4 -O verity` (or enabled with `tune2fs -O verity`), f2fs or btrfs, and a kernel with CONFIG_FS_VERITY"
        }
        KernelError::OtherParameters { .. } => ": copy it, and seal the copy",
        KernelError::NotSealed => ": run `sealift seal`",
        KernelError::OpenForWriting => {
            ": close it, or wait until the program that has it open and its children have exited"
        }
        KernelError::Busy => ": wait until it has finished",
        KernelError::NoAlgorithm { .. } => ": load its module, or use sha256",
        KernelError::SignatureKey => ADD_CERTIFICATE,
        _ => return None,
    })
}

fn file(fault: &FileFault) -> Option<&'static str> {
    match fault {
        FileFault::Key(error) => key(error),
        FileFault::KernelKey(error) => kernel_key(*error),
        FileFault::Signature(SignatureError::Namespace(_)) => Some("; sign with `ssh-keygen -Y sign -n sealift`"),
        _ => None,
    }
}

fn slot(fault: &SlotFault) -> Option<&'static str> {
    Some(match fault {
        SlotFault::InUse(_) => ": unmount or detach it, or write to the other slot",
        SlotFault::Sealed => ": remove it, or write to another file",
        SlotFault::Unfinished => ": repeat that command, or unpack another bundle to it",
        SlotFault::Record(_) => ": to record what it holds now, use `sealift unpack --update --adopt`",
        SlotFault::ReadsOther { .. } => "; replace it",
        SlotFault::Label { .. } | SlotFault::Uuid { .. } => ": check which partition you mean",
        _ => return None,
    })
}

fn key(error: &SignError) -> Option<&'static str> {
    Some(match error {
        SignError::NotAPrivateKey => "; convert an older format with `ssh-keygen -p -f FILE`",
        SignError::PublicKey => "; load its private key into ssh-agent to sign with it",
        SignError::EmptyPassphrase => "; give one, or write the key without one",
        SignError::AgentOnly(_) => "; run `ssh-add FILE` and give FILE.pub",
        _ => return None,
    })
}

fn kernel_key(error: KernelSignError) -> Option<&'static str> {
    Some(match error {
        KernelSignError::NotAKey => ": convert other formats with `openssl pkey -in FILE -out KEY.pem`",
        KernelSignError::Encrypted => ": remove it first, as with `openssl pkey -in FILE`",
        KernelSignError::KeyType => ": sign with `fsverity sign` or openssl, and attach the signature",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_limits_that_an_option_raises_are_advised_to_be_raised() {
        assert_eq!(limit("entries", 9).as_deref(), Some(": to accept it, use --limit entries=9"));
        assert_eq!(limit("length of a name", 9), None);
    }

    #[test]
    fn a_compressed_archive_is_given_through_a_pipe() {
        let fault = ArchiveFault::Compressed { program: "xz", scheme: "cpio" };
        let of = |path: &str| archive(Path::new(path), &fault).expect("it is advised");
        assert_eq!(of("a.xz"), ": decompress it, as in `xz -dc a.xz | sealift pack cpio:- ...`");
        assert_eq!(of("-"), ": decompress it, as in `xz -dc FILE | sealift pack cpio:- ...`");
    }

    #[test]
    fn no_line_trusts_a_key_for_a_pattern_of_names() {
        for (name, principal) in
            [("os", "os"), ("a.b+c-d_e", "a.b+c-d_e"), ("*", "NAME"), ("a,b", "NAME"), ("", "NAME")]
        {
            assert_eq!(super::principal(name), principal);
        }
    }
}
