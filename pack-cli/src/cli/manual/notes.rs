//! What man pages say and the help does not.

/// A variable or a file, and the arguments of the verbs that it concerns.
pub(super) struct Note {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
    pub(super) of: &'static [&'static str],
}

pub(super) const DESCRIPTION: &str = "\
A tree of files becomes a bundle: one file with the contents, deduplicated and compressed, under an index that is signed. Any \
transport carries it, and whoever receives it checks every byte before it counts.

A bundle says in its head how large everything in it becomes. One that says more than the limits allow is refused before anything \
behind its head is read or allocated: 16777216 names of files, 4096 directories in each other and 4T of content, unless --limit says \
otherwise, as in --limit entries=1000000,memory=512M. Without it there is no limit of memory.

Each verb has a page of its own. A bundle called - is read from standard input.";

pub(super) const EXAMPLES: &str = "\
sealift key generate -o release-key
sealift pack /srv/os -o os.sealift --name os --bundle-version 7 --key release-key
sealift info os.sealift
sealift verify os.sealift --trust allowed_signers
sealift unpack os.sealift /srv/new --trust allowed_signers
sealift unpack os-8.sealift /srv/new --update --delete --trust allowed_signers
curl -s https://example.org/os.sealift | sealift unpack - /srv/second";

pub(super) const ENVIRONMENT: &[Note] = &[
    Note {
        name: "SOURCE_DATE_EPOCH",
        text: "The moment at which the bundle is said to be made, in seconds since 1970. The \
            moment at which the summary of a medium is said to be written.",
        of: &["bundle_version", "usb"],
    },
    Note {
        name: "SSH_ASKPASS, SSH_ASKPASS_REQUIRE, DISPLAY",
        text: "The program that asks for a passphrase where there is no terminal; ssh(1), ENVIRONMENT.",
        of: &["key", "passphrase"],
    },
    Note { name: "SSH_AUTH_SOCK", text: "Where the agent listens that signs for a public key.", of: &["key"] },
    Note {
        name: "HOME, XDG_CONFIG_HOME, XDG_STATE_HOME",
        text: "Where the folders of a user are. Root reads none of them.",
        of: OF_TRUST,
    },
    Note {
        name: "SEALIFT_STATE",
        text: "Where this device remembers the versions that it took, as with --state, which goes before it. Root reads it, too.",
        of: &["state"],
    },
    Note {
        name: "TMPDIR",
        text: "Where room is taken for what cannot be written in order.",
        of: &["sources", "delta"],
    },
    Note {
        name: "SEALIFT_LOG",
        text: "What is said on standard error, as with -v: a level such as debug, or modules with theirs, as in sealift_store::target=debug.",
        of: &[],
    },
    Note { name: "NO_COLOR", text: "Where it is set, nothing is coloured.", of: &[] },
];

pub(super) const FILES: &[Note] = &[
    Note {
        name: "/etc/sealift/allowed_signers",
        text: "Whose signatures count for which names; ssh-keygen(1), ALLOWED SIGNERS.",
        of: OF_TRUST,
    },
    Note {
        name: "/etc/sealift/revoked",
        text: "Keys that count no more: a list of ssh-keygen -k, or a public key a line.",
        of: OF_TRUST,
    },
    Note {
        name: "/etc/sealift/thresholds",
        text: "How many trusted keys must have signed: N, or PATTERN=N for some names, a line each.",
        of: &["threshold"],
    },
    Note { name: "/etc/sealift/compatible", text: "The tags of this device, a line each.", of: &["threshold"] },
    Note {
        name: "~/.config/sealift/",
        text: "Takes the place of /etc/sealift for its user, not for root, if allowed_signers lies in it.",
        of: OF_TRUST,
    },
    Note {
        name: "/var/lib/sealift/, ~/.local/state/sealift/",
        text: "The versions that this device took, those of root and of a user.",
        of: &["state"],
    },
    Note {
        name: "REPO/extensions/sealift/NAME",
        text: "In an OSTree repository, head and index of the last bundle of that name that it took: by that it knows the base of a delta \
            bundle. It may be removed.",
        of: &["mirror"],
    },
    #[cfg(feature = "composefs")]
    Note {
        name: "REPO/sealift/state/NAME",
        text: "In a composefs store, what it took last of the bundles of that name: by that its trees are mounted.",
        of: &["mirror", "mountpoint"],
    },
];

/// The argument of verbs that ask who signed.
const OF_TRUST: &[&str] = &["trust"];
/// The arguments of verbs that know OpenSSH's files.
pub(super) const OF_KEYS: &[&str] = &["trust", "key", "attach", "passphrase"];
