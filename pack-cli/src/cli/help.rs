//! `sealift --help`: the verbs under the people who use them.

use clap::error::{ContextKind, ContextValue};
use clap::{Command, CommandFactory as _, Error};

use super::Cli;
use super::show::BOLD;

/// Who uses which verbs, in the order of their work.
pub(crate) const GROUPS: [(&str, &[&str]); 4] = [
    ("Publisher: makes bundles", &["pack", "sign", "root", "key"]),
    ("Administrator: looks before it is used", &["verify", "info", "ls", "cat", "diff", "join", "trust", "portal"]),
    ("Device: takes what is in them", &["unpack", "mount", "audit", "seal", "measure", "digest", "request", "clean"]),
    ("Everybody: sees it work, and types less", &["demo", "completions"]),
];

/// What each exit status means.
pub(crate) const STATUSES: [(&str, &str); 4] = [
    ("0", "good"),
    ("1", "this bundle or target must not be used as it is"),
    ("2", "usage, input or output, a full disk"),
    ("128 + N", "stopped by signal N (Ctrl-C: 130)"),
];

/// The command line with its verbs in groups, for which clap has no word.
pub(crate) fn command() -> Command {
    let command = Cli::command().max_term_width(80);
    let mut groups = String::new();
    for (heading, verbs) in GROUPS {
        groups.push_str(&format!("\n{BOLD}{heading}{BOLD:#}\n"));
        for verb in verbs {
            let found = command.find_subcommand(verb).and_then(Command::get_about);
            let about = found.map(ToString::to_string).unwrap_or_default();
            groups.push_str(&format!("  {BOLD}{verb:<11}{BOLD:#} {about}\n"));
        }
    }
    let mut statuses = String::new();
    for (status, meaning) in STATUSES {
        statuses.push_str(&format!("  {BOLD}{status:<11}{BOLD:#} {meaning}\n"));
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{groups}\n{BOLD}Options{BOLD:#}\n{{options}}\n\n\
        {BOLD}Exit status{BOLD:#}\n{statuses}\nA bundle called - is read from standard input.\n"
    );
    command.help_template(template)
}

/// Leaves out of an error's tips what is hidden, and says which verb does what people call by another name.
pub(crate) fn with_tips(mut error: Error) -> Error {
    let Some(ContextValue::String(verb)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    let tip = match &**verb {
        "update" | "upgrade" | "install" => Some("'sealift unpack --update' brings a directory to what a bundle has"),
        _ => None,
    };
    if let Some(ContextValue::Strings(similar)) = error.remove(ContextKind::SuggestedSubcommand) {
        let is_shown = |name: &String| GROUPS.iter().any(|(_, verbs)| verbs.contains(&&**name));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clap_finds_nothing_wrong() {
        command().debug_assert();
    }

    #[test]
    fn every_verb_stands_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| verbs.iter().copied()).collect();
        let command = command();
        let mut verbs: Vec<&str> =
            command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name).collect();
        grouped.sort_unstable();
        verbs.sort_unstable();
        assert_eq!(grouped, verbs);
    }
}
