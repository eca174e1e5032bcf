//! docs/json.md documents each field that `--json` prints, in the section of its verb: as a key in an example, or as a word in the text.
//!
//! The fields are read from the structures that are serialized, so that rare ones are not forgotten.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::machine::repository;

/// The sections that document the output of a source, if their headings do not have the source's name. Progress has a schema and a test of its own.
#[rustfmt::skip] // a table
const SECTIONS: &[(&str, &str)] = &[
    ("audit_slot",  "audit"),
    ("audit_store", "audit"),
    ("channel",     "unpack"),
    ("composefs",   "mount"),
    ("copies",      "Errors and warnings"),
    ("diff_inside", "diff"),
    ("differences", "diff"),
    ("digests",     "info"),
    ("dm_verity",   "info"),
    ("estimate",    "pack"),
    ("failure",     "Errors and warnings"),
    ("images",      "pack"),
    ("info_channel", "info"),
    ("json_file",   "ls"),
    ("key",         "key generate"),
    ("refs",        "info"),
    ("serve",       "mount"),
    ("show",        "Errors and warnings"),
    ("signature",   "info"),
    ("signers",     "info"),
    ("several",     "Errors and warnings"),
    ("taken",       "unpack"),
    ("into",        "unpack"),
    ("then",        "unpack"),
    ("volume",      "verify"),
    ("verdict",     "verify"),
    ("lone_recovery", "verify"),
    ("next_volume", "unpack"),
    ("list",        "trust"),
    ("add",         "trust"),
    ("revoke",      "trust"),
    ("export",      "trust"),
    ("reset",       "trust"),
];
/// Statistics of the library, and the verb that prints them.
const STATISTICS: &[(&str, &str)] = &[
    ("pack-cli/src/clean.rs", "clean"),
    ("store/src/install/stats.rs", "unpack"),
    ("store/src/install/directory/stats.rs", "unpack"),
    ("store/src/install/directory/census.rs", "unpack"),
    ("store/src/install/ostree/stats.rs", "unpack"),
    ("store/src/install/composefs/stats.rs", "unpack"),
    ("store/src/install/slot/stats.rs", "unpack"),
];
const NO_JSON: [&str; 2] = ["portal", "progress_display"];

#[test]
fn every_field_is_told() {
    let page = super::read("docs/json.md");
    let sections = sections(&page);
    let mut untold = Vec::new();
    let mut count = 0;
    let at = |path: &str| repository().join(path);
    let of_library = STATISTICS.iter().map(|(path, _)| at(path));
    for source in sources(&at("pack-cli/src/cli")).into_iter().chain(of_library) {
        let section = STATISTICS.iter().find(|(path, _)| at(path) == source).map(|(_, section)| *section);
        let stem = section.unwrap_or_else(|| verb_of(&source));
        let text = fs::read_to_string(&source).unwrap();
        for field in fields(&text).into_iter().filter(|_| !NO_JSON.contains(&stem)) {
            let heading = SECTIONS.iter().find(|(file, _)| *file == stem).map_or(stem, |(_, heading)| heading);
            count += 1;
            if !sections.get(heading).is_some_and(|section| tells(section, &field)) {
                untold.push(format!("{heading}: {field}"));
            }
        }
    }
    assert!(untold.is_empty(), "docs/json.md does not tell of {untold:#?}");
    assert!(count > 100, "{count} fields were found");
}

/// Returns the name of a source, or of its folder if a verb has several.
fn verb_of(source: &Path) -> &str {
    let (folder, file) = (source.parent().unwrap(), source.file_stem().unwrap());
    let is_of_folder = folder.join("mod.rs").exists() && ["args", "mod", "report"].contains(&file.to_str().unwrap());
    if is_of_folder { folder.file_name().unwrap().to_str().unwrap() } else { file.to_str().unwrap() }
}

/// The kinds of errors are the words by which scripts distinguish them.
#[test]
fn every_kind_of_error_is_told() {
    let page = super::read("docs/json.md");
    let section = sections(&page)["Errors and warnings"];
    let mut count = 0;
    for source in ["store/src/error/word.rs", "format/src/kind.rs"] {
        let source = super::read(source);
        let (_, body) = source.split_once("fn word(").expect("errors have words");
        let (body, _) = body.split_once("\n    }\n").expect("it ends");
        for word in
            body.lines().filter_map(|line| line.trim().split_once("=> \"")?.1.split_once('"')).map(|(word, _)| word)
        {
            assert!(tells(section, word), "docs/json.md does not tell of the error {word}");
            count += 1;
        }
    }
    assert!(count > 30, "{count} words were found");
}

/// Returns the page's sections, by each verb of their headings.
fn sections(page: &str) -> BTreeMap<&str, &str> {
    let blocks = page.split("\n## ").skip(1);
    let named = blocks.filter_map(|block| block.split_once('\n'));
    named.flat_map(|(heading, text)| heading.split(", ").map(move |verb| (verb, text))).collect()
}

fn tells(section: &str, field: &str) -> bool {
    [format!("\"{field}\":"), format!("`{field}`"), format!(".{field}`")].iter().any(|form| section.contains(form))
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let mut all: Vec<_> = files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs")).collect();
    folders.iter().for_each(|folder| all.extend(sources(folder)));
    all
}

/// Returns the names under which the fields of a source's serialized structures are printed.
fn fields(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = source.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if !(line.starts_with("#[derive(") && line.contains("Serialize")) {
            continue;
        }
        let is_struct = lines
            .by_ref()
            .find(|line| !line.starts_with("#["))
            .is_some_and(|line| line.contains("struct ") && line.ends_with('{'));
        if !is_struct {
            continue;
        }
        let mut renamed = None;
        let mut is_shown = true;
        for line in lines.by_ref().take_while(|line| *line != "}") {
            if line.starts_with("#[serde(") {
                let rename = line.split_once("rename = \"").and_then(|(_, rest)| rest.split_once('"'));
                renamed = rename.map(|(name, _)| name.to_owned()).or(renamed);
                is_shown &= !line.contains("flatten") && !line.contains("(skip)");
                continue;
            }
            let Some((name, _)) = line.split_once(": ").filter(|_| !line.starts_with("//") && !line.starts_with('#'))
            else {
                continue;
            };
            let name = renamed.take().unwrap_or_else(|| name.rsplit(' ').next().unwrap_or(name).to_owned());
            if std::mem::replace(&mut is_shown, true) {
                found.push(name);
            }
        }
    }
    found
}

#[test]
fn fields_are_read() {
    let source = "#[derive(Serialize)]\nstruct A<'a> {\n    /// Not this: at all\n    #[serde(rename = \"type\", skip_serializing_if = \"Option::is_none\")]\n    \
        kind: Option<&'a str>,\n    pub(crate) name: String,\n    #[serde(skip)]\n    hidden: u8,\n    #[serde(flatten)]\n    rest: B,\n    last: u8,\n}\n\
        #[derive(Debug)]\nstruct C {\n    other: u8,\n}\n#[derive(Debug, Serialize)]\nenum D {\n    E,\n}\n";
    assert_eq!(fields(source), ["type", "name", "last"]);
    assert!(tells("{\"a\":1} and `b`, `c.d`", "a") && tells("`b`", "b") && tells("`c.d`", "d") && !tells("`ab`", "b"));
}
