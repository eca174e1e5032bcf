//! `sealift manual`: the man pages, generated from the definitions of the help.

mod notes;
mod plugin;

use std::path::PathBuf;

use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use sealift::Error;
use sealift::trust::Utc;

use super::failure::Failure;
use super::help;
use notes::Note;

/// Write the man pages
#[derive(Args, Debug)]
#[command(hide = true)]
pub(crate) struct Manual {
    /// The directory for the pages, one for sealift and one for each verb
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Manual {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let write = |()| pages().iter().try_for_each(|(name, page)| std::fs::write(self.folder.join(name), page));
        let written = std::fs::create_dir_all(&self.folder).and_then(write);
        Ok(written.map_err(|source| Error::Io { doing: "write", path: self.folder.clone(), source })?)
    }
}

/// Returns every page with its file name: those of sealift, its verbs and their subcommands, and of nbdkit's plugin.
fn pages() -> Vec<(String, String)> {
    let mut root = help::command();
    root.build();
    let mut queue = vec![root];
    let mut pages = Vec::new();
    while let Some(command) = queue.pop() {
        queue.extend(command.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned());
        pages.push((format!("{}.1", name(&command)), page(command)));
    }
    pages.push((format!("{}.1", plugin::NAME), plugin::page(&date())));
    pages
}

/// Returns the name of a command's page, such as `sealift-key-generate`.
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

fn is_root(command: &Command) -> bool {
    command.get_name() == "sealift"
}

fn page(mut command: Command) -> String {
    let behind = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let (mut more, mut examples) = behind.split_once("Examples:\n").unwrap_or((&behind, ""));
    let about = command.get_long_about().or_else(|| command.get_about()).map(ToString::to_string).unwrap_or_default();
    // The first paragraph is under NAME.
    let mut about = about.split_once("\n\n").map_or(&*about, |(_, rest)| rest);
    if is_root(&command) {
        (about, more, examples) = (notes::DESCRIPTION, "", notes::EXAMPLES);
    }
    let usage = command.render_usage().to_string();
    let description = format!("{about}\n\n{more}").trim_end().to_owned();
    let command = command.override_usage(usage.trim_start_matches("Usage: ").to_owned()).long_about(description);
    let mut own = Roff::new();
    add_verbs(&mut own, &command);
    if is_root(&command) {
        own.control("SH", ["LIMITS"]).text([roman(help::LIMITS)]);
        own.control("SH", ["PROGRESS"]).text([roman(help::PROGRESS)]);
    }
    own.control("SH", ["EXIT STATUS"]);
    for (status, meaning) in help::STATUSES {
        own.control("TP", []).text([bold(status)]).text([roman(meaning)]);
    }
    add_notes(&mut own, "ENVIRONMENT", notes::ENVIRONMENT, &command);
    add_notes(&mut own, "FILES", notes::FILES, &command);
    add_examples(&mut own, examples);
    add_see_also(&mut own, &command);
    derived(command) + &own.to_roff()
}

/// Returns the day on which this program was built.
fn date() -> String {
    let built = Utc(sealift::trust::build_time()).rfc3339();
    built.split('T').next().unwrap_or_default().to_owned()
}

/// Returns the part of the page that clap generates.
fn derived(command: Command) -> String {
    let title = name(&command).to_uppercase();
    let man = Man::new(command)
        .title(title)
        .date(date())
        .source(concat!("sealift ", env!("CARGO_PKG_VERSION")))
        .manual("Sealift");
    let mut out = Vec::new();
    // Writing to memory does not fail.
    let _ = man
        .render_title(&mut out)
        .and_then(|()| man.render_name_section(&mut out))
        .and_then(|()| man.render_synopsis_section(&mut out))
        .and_then(|()| man.render_description_section(&mut out))
        .and_then(|()| man.render_options_section(&mut out));
    tidy(&String::from_utf8_lossy(&out))
}

/// Moves the option headings below OPTIONS, and removes repeated lines.
fn tidy(parts: &str) -> String {
    let mut out = String::new();
    for (number, line) in parts.lines().enumerate() {
        match line.strip_prefix(".SH ") {
            // The definition of the apostrophe, needed once.
            _ if number > 1 && (line.starts_with(".ie ") || line.starts_with(".el ")) => continue,
            // A new paragraph in the text of an option.
            _ if line.is_empty() => out.push_str(".IP"),
            Some(heading) if !["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"].contains(&heading) => {
                let (first, rest) = heading.split_at(1);
                out.push_str(&format!(".SS {first}{}", rest.to_lowercase()));
            }
            _ => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

/// Adds the verbs below this one; those of sealift grouped by their users.
fn add_verbs(roff: &mut Roff, command: &Command) {
    if !command.has_subcommands() {
        return;
    }
    roff.control("SH", ["VERBS"]);
    if !is_root(command) {
        return command.get_subcommands().for_each(|verb| add_verb(roff, verb));
    }
    for (heading, verbs) in help::groups() {
        roff.control("SS", [heading]);
        verbs.filter_map(|verb| command.find_subcommand(verb)).for_each(|verb| add_verb(roff, verb));
    }
}

fn add_verb(roff: &mut Roff, verb: &Command) {
    let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
    roff.control("TP", []).text([bold(name(verb)), roman("(1)")]).text([roman(about)]);
}

/// Adds the notes on a verb's arguments; sealift's own page has all notes.
fn add_notes(roff: &mut Roff, heading: &str, notes: &[Note], command: &Command) {
    let mut notes = notes.iter().filter(|note| is_root(command) || has_argument(command, note.of)).peekable();
    if notes.peek().is_some() {
        roff.control("SH", [heading]);
    }
    for note in notes {
        roff.control("TP", []).text([bold(note.name)]).text([roman(note.text)]);
    }
}

fn has_argument(command: &Command, ids: &[&str]) -> bool {
    command.get_arguments().any(|argument| ids.contains(&argument.get_id().as_str()))
}

fn add_examples(roff: &mut Roff, examples: &str) {
    if examples.is_empty() {
        return;
    }
    roff.control("SH", ["EXAMPLES"]).control("EX", []);
    for line in examples.lines() {
        roff.text([roman(line.trim_start())]);
    }
    roff.control("EE", []);
}

fn add_see_also(roff: &mut Roff, command: &Command) {
    let above = name(command).rsplit_once('-').map(|(above, _)| above);
    let keys = is_root(command) || has_argument(command, notes::OF_KEYS);
    let names = above.into_iter().chain(keys.then_some("ssh-keygen"));
    let mut line = Vec::new();
    for name in names {
        if !line.is_empty() {
            line.push(roman(", "));
        }
        line.extend([bold(name), roman("(1)")]);
    }
    roff.control("SH", ["SEE ALSO"]).text(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the words of each call of sealift in a line of examples.
    fn calls(line: &str) -> Vec<Vec<&str>> {
        let words: Vec<&str> = line.split(' ').collect();
        let is_call = |place: &usize| words[*place] == "sealift" && (*place == 0 || words[place - 1] == "|");
        let is_word = |word: &&str| !["|", "||", ">", "&&", ""].contains(word);
        let starts = (0..words.len()).filter(is_call);
        starts.map(|start| words[start..].iter().copied().take_while(is_word).collect()).collect()
    }

    #[test]
    fn examples_are_understood() {
        let mut call_count = 0;
        for (file, page) in pages() {
            let examples = page.split_once(".EX\n").and_then(|(_, rest)| rest.split_once(".EE\n"));
            let examples = examples.map_or("", |(examples, _)| examples).replace("\\-", "-");
            // A call may continue on the next line.
            let examples = examples.replace(" \\\\\n", " ");
            // Skip examples with an abbreviated key id.
            for call in examples.lines().filter(|line| !line.contains("...")).flat_map(calls) {
                call_count += 1;
                if let Err(error) = help::command().try_get_matches_from(&call) {
                    panic!("{file}: {call:?}: {error}");
                }
            }
        }
        assert!(call_count > 30, "{call_count}");
    }
}
