//! The parts of the man pages that are not in the help.

/// An environment variable or a file, and the arguments of the verbs that use it.
pub(super) struct Note {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
    pub(super) of: &'static [&'static str],
}

pub(super) const DESCRIPTION: &str = "\
sealift packs a tree of files into a bundle: one file with a signed index and the deduplicated, compressed contents. Any transport can \
carry it, and the receiver checks every byte before using it.

Each verb has its own page. A bundle named - is read from standard input.";

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
        text: "The creation time to record in a bundle, in seconds since 1970, and in the summary of a \
            repository on removable media.",
        of: &["bundle_version", "usb"],
    },
    Note {
        name: "SSH_ASKPASS, SSH_ASKPASS_REQUIRE, DISPLAY",
        text: "The program that asks for a passphrase if there is no terminal; see ENVIRONMENT in ssh(1).",
        of: &["key", "passphrase"],
    },
    Note { name: "SSH_AUTH_SOCK", text: "The socket of the ssh-agent that signs for a public key.", of: &["key"] },
    Note {
        name: "HOME, XDG_CONFIG_HOME, XDG_STATE_HOME",
        text: "The locations of a user's configuration and state. Ignored for root.",
        of: OF_TRUST,
    },
    Note {
        name: "SEALIFT_STATE",
        text: "The directory for rollback protection, like --state, which takes precedence. Also used for root.",
        of: &["state"],
    },
    Note { name: "TMPDIR", text: "The directory for temporary files.", of: &["sources", "delta"] },
    Note {
        name: "SEALIFT_LOG",
        text: "What to log on standard error, like -v: a level such as debug, or levels of modules, as in sealift_store::install=debug.",
        of: &[],
    },
    Note {
        name: "SEALIFT_NAME, SEALIFT_VERSION, SEALIFT_TARGET, SEALIFT_DIGEST",
        text: "Set for the command of unpack --then: the bundle's name, its version, the target as it was given, and the digest of the content.",
        of: &["then"],
    },
    Note { name: "NO_COLOR", text: "If set, output is not coloured.", of: &[] },
];

pub(super) const FILES: &[Note] = &[
    Note {
        name: "/etc/sealift/allowed_signers",
        text: "The trusted keys, and the names each may sign; see ALLOWED SIGNERS in ssh-keygen(1).",
        of: OF_TRUST,
    },
    Note {
        name: "/etc/sealift/revoked",
        text: "The revoked keys: a list made by ssh-keygen -k, or one public key per line.",
        of: OF_TRUST,
    },
    Note {
        name: "/etc/sealift/thresholds",
        text: "The number of trusted keys that must have signed: N, or PATTERN=N for certain names, one per line.",
        of: &["threshold"],
    },
    Note { name: "/etc/sealift/compatible", text: "The tags of this device, one per line.", of: &["threshold"] },
    Note {
        name: "~/.config/sealift/",
        text: "Replaces /etc/sealift for its user if it contains allowed_signers. Ignored for root.",
        of: OF_TRUST,
    },
    Note {
        name: "/var/lib/sealift/, ~/.local/state/sealift/",
        text: "For root and for a user: the highest versions seen, for rollback protection, and the list of targets.",
        of: &["state"],
    },
    Note {
        name: "REPO/extensions/sealift/NAME",
        text: "In an OSTree repository, the head and index of the last bundle of that name imported there. They identify the base of a delta \
            bundle, and may be removed.",
        of: &["mirror"],
    },
    Note {
        name: "REPO/sealift/state/NAME",
        text: "In a composefs store, the install record of the last bundle of that name, which mounting its trees requires.",
        of: &["mirror", "mountpoint"],
    },
];

/// The argument of verbs that check signers.
pub(super) const OF_TRUST: &[&str] = &["trust"];
/// The arguments of verbs that use OpenSSH's files.
pub(super) const OF_KEYS: &[&str] = &["trust", "key", "attach", "passphrase"];
