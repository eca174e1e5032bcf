//! `sealift --help`: the verbs grouped by their users.

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory as _, Error};

use sealift::without_secrets;

use super::Cli;
use super::limits::Limit;
use super::show::BOLD;

/// The verbs of each kind of user, in the order of use.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Publisher: make bundles", &["pack", "order", "simulate", "sign", "root", "split", "recovery", "key", "publish"]),
    ("Administrator: inspect and check bundles", &["verify", "info", "ls", "cat", "diff", "repair", "trust", "portal"]),
    (
        "Device: install bundles",
        &["unpack", "mount", "audit", "status", "seal", "measure", "digest", "request", "clean"],
    ),
    ("Other", &["completions"]),
];

/// The verbs that read no bundle, and so do not take `--limit`.
const UNLIMITED: [&[&str]; 11] = [
    &["order", "record"],
    &["order", "import"],
    &["order", "merge"],
    &["order", "diff"],
    &["key"],
    &["seal"],
    &["measure"],
    &["digest"],
    &["clean"],
    &["completions"],
    &["manual"],
];

/// Returns whether this program was built without what the verb needs: the verb then fails with an explanation, and help hides it.
pub(crate) fn is_lacking(verb: &str) -> bool {
    match verb {
        "portal" => !cfg!(feature = "portal"),
        _ => false,
    }
}

/// Returns the groups with the verbs that this program has.
pub(crate) fn groups() -> impl Iterator<Item = (&'static str, impl Iterator<Item = &'static str>)> {
    GROUPS.iter().map(|(heading, verbs)| (*heading, verbs.iter().copied().filter(|verb| !is_lacking(verb))))
}

/// The exit statuses and their meanings.
pub(crate) const STATUSES: [(&str, &str); 7] = [
    ("0", "success"),
    ("1", "damaged, or different"),
    ("2", "undetermined: wrong usage, I/O error, disk full"),
    ("3", "refused: signer, name, version, expiry or tag"),
    ("4", "the base of a delta is missing"),
    ("5", "installed, but the command of --then failed"),
    ("128 + N", "stopped by signal N (Ctrl-C: 130)"),
];

/// What `--limit` limits, and its defaults.
pub(crate) const LIMITS: &str = "\
A bundle declares how large its content is. sealift refuses a bundle over a limit before it reads or allocates anything, and refuses to \
pack one. The defaults of --limit are entries=16777216 (file names), depth=4096 (nested directories), paths=2G (total length of all \
paths), size=4T (total size of all files, holes included) and unlimited memory, which counts --jobs and the cache of mount. `sealift info` \
shows the most memory that unpacking a bundle takes.";

/// What the values of `--progress` show.
pub(crate) const PROGRESS: &str = "\
Verbs that take a while have --progress. auto, the default, shows a bar on a terminal, and nothing elsewhere; bar shows a line every five \
seconds elsewhere; none shows nothing. json prints one object per line on standard error, at least two per second, with v (1), phase \
(starting, listing, packing, encoding, finishing, verifying, hashing, copying, unpacking, moving, sealing, syncing), bytes, bytes_total, \
files, files_total, files_kept, first_written and seconds; a total is 0 until it is known. The last object has outcome: done, failed or \
cancelled. Fields and phases may be added.";

/// Returns a paragraph in lines of at most 78 characters, indented.
fn wrapped(paragraph: &str) -> String {
    let (mut text, mut len) = (String::new(), usize::MAX);
    for word in paragraph.split(' ') {
        if len.saturating_add(1 + word.len()) > 76 {
            text.push_str(if text.is_empty() { "  " } else { "\n  " });
            len = 0;
        } else {
            text.push(' ');
            len += 1;
        }
        text.push_str(word);
        len += word.len();
    }
    text
}

/// Returns the command line with its verbs in groups, which clap does not support.
pub(crate) fn command() -> Command {
    let command = refusing_limit(Cli::command()).max_term_width(80);
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
        Man pages after `cargo install`: sealift manual ~/.cargo/share/man/man1{{after-help}}\n"
    );
    let explained =
        format!("{BOLD}Limits{BOLD:#}\n{}\n\n{BOLD}Progress{BOLD:#}\n{}", wrapped(LIMITS), wrapped(PROGRESS));
    worded(command).help_template(template).after_long_help(explained)
}

/// Returns the arguments with `help` as an option: `sealift help pack` is `sealift pack --help`.
pub(crate) fn arguments() -> Vec<OsString> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|first| first == "help") {
        arguments.remove(1);
        arguments.push("--help".into());
    }
    // Users, passwords and tokens in addresses are used for requests alone: nothing else sees them.
    arguments.into_iter().map(|argument| without_secrets(Path::new(&argument)).into_os_string()).collect()
}

/// Returns the command line with our word for its subcommands.
fn worded(command: Command) -> Command {
    let command = match command.has_subcommands() {
        true => command.subcommand_value_name("VERB").subcommand_help_heading("Verbs"),
        false => command,
    };
    command.mut_subcommands(worded)
}

/// Returns the text of a usage error, with our word for subcommands, and our name in place of `error`.
pub(crate) fn text_of(error: &Error) -> String {
    let text = error.render().ansi().to_string().replacen("error:", "sealift:", 1);
    match error.kind() {
        ErrorKind::InvalidSubcommand => text.replacen("unrecognized subcommand", "unrecognized verb", 1).replacen(
            "similar subcommand",
            "similar verb",
            1,
        ),
        _ => text,
    }
}

/// Returns the command line in which the verbs that read no bundle do not list `--limit`, and refuse it.
fn refusing_limit(command: Command) -> Command {
    let Some(limit) = command.get_arguments().find(|argument| argument.get_id() == "limits") else { return command };
    let refused = |_: &str| Err::<Limit, _>("this verb reads no bundle");
    let limit = limit.clone().hide(true).global(false).value_parser(refused);
    UNLIMITED.iter().fold(command, |command, path| with_argument(command, path, &limit))
}

/// Returns a command in which the verb at `path` has its own form of a global argument.
fn with_argument(command: Command, path: &[&str], argument: &Arg) -> Command {
    match path {
        [] => command.arg(argument),
        [verb, rest @ ..] => command.mut_subcommand(*verb, |verb| with_argument(verb, rest, argument)),
    }
}

/// Removes hidden verbs from an error's tips, and suggests the verb for a name that other programs use.
pub(crate) fn with_tips(mut error: Error) -> Error {
    let takes_command = matches!(error.get(ContextKind::Usage), Some(ContextValue::StyledStr(usage)) if usage.to_string().contains("[-- <"));
    if let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg)
        && let Some(tip) = tip_of_argument(argument, takes_command)
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

/// Suggests the verb for a command of other programs.
fn tip_of_verb(verb: &str) -> Option<&'static str> {
    Some(match verb {
        "update" | "upgrade" | "install" | "apply" | "deploy" => {
            "'sealift unpack --update' updates a directory from a bundle"
        }
        "extract" | "restore" | "x" | "xf" | "import" | "pull" | "unzip" | "decompress" => {
            "'sealift unpack' extracts the files of a bundle"
        }
        "list" | "l" | "t" | "tf" | "tree" => "'sealift ls' lists the files in a bundle",
        "create" | "c" | "cf" | "compress" | "build" | "bundle" | "archive" | "backup" | "commit" => {
            "'sealift pack' makes a bundle"
        }
        "check" | "test" => "'sealift verify' checks a bundle, and 'sealift audit' an installed tree",
        "fsck" => "'sealift audit' checks an installed tree or repository, and 'sealift verify' a bundle",
        "keygen" | "genkey" | "generate-key" => "'sealift key generate' makes a key",
        "show" | "inspect" | "dump" => "'sealift info' describes a bundle, and 'sealift ls' lists its files",
        "delta" | "static-delta" => "'sealift pack --base' makes a delta bundle",
        "man" => "'sealift manual DIR' writes the man pages",
        _ => return None,
    })
}

/// Suggests the option for one that other programs have, or the `--` before a command.
fn tip_of_argument(argument: &str, takes_command: bool) -> Option<&'static str> {
    Some(match argument.split('=').next().unwrap_or_default() {
        word if takes_command && !word.starts_with('-') => "put '--' before the command: '-- COMMAND ARGUMENT...'",
        "--version" => {
            "'--bundle-version' sets the version of the bundle; 'sealift --version' prints that of the program"
        }
        "--sign" | "--sign-key" | "--gpg-sign" | "--signing-key" => "'--key' signs with an OpenSSH key",
        "--allowed-signers" | "--trusted" | "--pubkey" | "--public-key" | "--keyring" => {
            "'--trust' names the allowed signers file, and 'sealift trust add' adds a key to it"
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
