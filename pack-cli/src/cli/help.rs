//! `sealift --help`: the verbs under the people who use them.

use clap::error::{ContextKind, ContextValue};
use clap::{Command, CommandFactory as _, Error};

use super::Cli;
use super::show::BOLD;

/// Who uses which verbs, in the order of their work.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Publisher: make bundles", &["pack", "sign", "root", "key"]),
    ("Administrator: inspect and check bundles", &["verify", "info", "ls", "cat", "diff", "trust", "portal"]),
    (
        "Device: install bundles",
        &["unpack", "mount", "audit", "status", "seal", "measure", "digest", "request", "clean"],
    ),
    ("Other", &["completions"]),
];

/// Whether this program was built without what the verb needs: it then says so, and nobody is led to it.
pub(crate) fn is_lacking(verb: &str) -> bool {
    match verb {
        "portal" => !cfg!(feature = "portal"),
        "mount" => !cfg!(feature = "composefs"),
        _ => false,
    }
}

/// Those of [`GROUPS`] that this program has.
pub(crate) fn groups() -> impl Iterator<Item = (&'static str, impl Iterator<Item = &'static str>)> {
    GROUPS.iter().map(|(heading, verbs)| (*heading, verbs.iter().copied().filter(|verb| !is_lacking(verb))))
}

/// What each exit status means.
pub(crate) const STATUSES: [(&str, &str); 6] = [
    ("0", "good"),
    ("1", "damaged, or different"),
    ("2", "usage, input or output, a full disk"),
    ("3", "refused: signer, name, version, expiry or tag"),
    ("4", "the base of a delta is not here"),
    ("128 + N", "stopped by signal N (Ctrl-C: 130)"),
];

/// The command line with its verbs in groups, for which clap has no word.
pub(crate) fn command() -> Command {
    let command = Cli::command().max_term_width(80);
    let mut listed = String::new();
    for (heading, verbs) in groups() {
        listed.push_str(&format!("\n{BOLD}{heading}{BOLD:#}\n"));
        for verb in verbs {
            let found = command.find_subcommand(verb).and_then(Command::get_about);
            let about = found.map(ToString::to_string).unwrap_or_default();
            listed.push_str(&format!("  {BOLD}{verb:<11}{BOLD:#} {about}\n"));
        }
    }
    let mut statuses = String::new();
    for (status, meaning) in STATUSES {
        statuses.push_str(&format!("  {BOLD}{status:<11}{BOLD:#} {meaning}\n"));
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{listed}\n{BOLD}Options{BOLD:#}\n{{options}}\n\n\
        {BOLD}Exit status{BOLD:#}\n{statuses}\nBUNDLE may be -, for standard input.\n\
        Man pages after `cargo install`: sealift manual ~/.cargo/share/man/man1\n"
    );
    command.help_template(template)
}

/// Leaves out of an error's tips what is hidden, and says which verb does what people call by another name.
pub(crate) fn with_tips(mut error: Error) -> Error {
    if let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg)
        && let Some(tip) = tip_of_option(option)
    {
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        return error;
    }
    let Some(ContextValue::String(verb)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    let tip = tip_of_verb(verb);
    if let Some(ContextValue::Strings(similar)) = error.remove(ContextKind::SuggestedSubcommand) {
        let is_shown = |name: &String| groups().any(|(_, mut verbs)| verbs.any(|verb| verb == name));
        let shown: Vec<String> = similar.into_iter().filter(is_shown).collect();
        if !shown.is_empty() && tip.is_none() {
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(shown));
        } else {
            error.remove(ContextKind::Suggested);
        }
    }
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// What other programs call by this word.
fn tip_of_verb(verb: &str) -> Option<&'static str> {
    Some(match verb {
        "update" | "upgrade" | "install" | "apply" | "deploy" => {
            "'sealift unpack --update' brings a directory to what a bundle has"
        }
        "extract" | "restore" | "x" | "xf" | "import" | "pull" | "unzip" | "decompress" => {
            "'sealift unpack' takes the files out of a bundle"
        }
        "list" | "l" | "t" | "tf" | "tree" => "'sealift ls' lists the files in a bundle",
        "create" | "c" | "cf" | "compress" | "build" | "bundle" | "archive" | "backup" | "commit" => {
            "'sealift pack' makes a bundle"
        }
        "check" | "test" => "'sealift verify' checks a bundle, and 'sealift audit' an installed tree",
        "fsck" => "'sealift audit' checks an installed tree or repository, and 'sealift verify' a bundle",
        "keygen" | "genkey" | "generate-key" => "'sealift key generate' makes a key",
        "show" | "inspect" | "dump" => "'sealift info' says what a bundle is, and 'sealift ls' what is in it",
        "delta" | "static-delta" => "'sealift pack --base' makes a delta bundle",
        "help" => "'sealift --help' and 'sealift VERB --help' print help",
        "man" => "'sealift manual DIR' writes the man pages",
        _ => return None,
    })
}

/// What other programs call by this option.
fn tip_of_option(option: &str) -> Option<&'static str> {
    Some(match option.split('=').next().unwrap_or_default() {
        "--version" => "'--bundle-version' is the version of the bundle; 'sealift --version' is that of the program",
        "--sign" | "--sign-key" | "--gpg-sign" | "--signing-key" => "'--key' signs with an OpenSSH key",
        "--allowed-signers" | "--trusted" | "--pubkey" | "--public-key" | "--keyring" => {
            "'--trust' names the file of allowed signers, to which 'sealift trust add' adds a key"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clap_finds_nothing_wrong() {
        command().debug_assert();
    }

    #[test]
    fn every_verb_stands_in_one_group() {
        let mut grouped: Vec<&str> = groups().flat_map(|(_, verbs)| verbs).collect();
        let command = command();
        let mut verbs: Vec<&str> =
            command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name).collect();
        grouped.sort_unstable();
        verbs.sort_unstable();
        assert_eq!(grouped, verbs);
    }
}
